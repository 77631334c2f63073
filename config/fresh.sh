#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# fresh.sh bookworm|trixie [COMMAND...] - run the README's first command on a minimal Debian without other
# packages: create the tree once with debootstrap (from the mirror that this host's apt uses), copy it, copy this source tree
# into it, run quickstart.sh there as root and its traffic as an ordinary user, run programs of its ibverbs-utils on the
# provider that was built there, try the example of a fleet, and prove that a header of a test package would have
# broken the build. With COMMAND, run that in the source tree of the copy instead. Needs root.
# The trees are kept in POLCA_FRESH (/var/cache/polca-fresh), which is root's; a copy is removed when its run ends.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in
-h | --help) sed -n 5,11p "$0" | cut -c3-; exit 0 ;;
bookworm | trixie) RELEASE=$1; shift ;;
*) die "got '${1:-}', allowed: bookworm (Debian 12), trixie (Debian 13)" ;;
esac
. "$(dirname "$0")/tree.sh"

# During installation and build, LOG's time stamps are at most ten seconds apart, or twenty if the machine stalls.
# Then the traffic prints a line for each operation.
progress_was_reported() {
    sed -n -e '/starting polca/q' -e 's/^\[ *\([0-9]*\) s\].*/\1/p' "$1" | awk '
        NR > 1 && $1 - last > most { most = $1 - last }
        { last = $1 }
        END {
            if (NR < 4 || most > 20) { print "quickstart.sh was silent for " most " s; lines of progress: " NR; exit 1 }
        }' >&2
}

# Make lib use a header that only a test package provides: this must not build here.
breaks_with_a_test_header() {
    local file=lib/rc/cq.c
    sed -i '1i #include <iba/ib_types.h>' "$COPY$SOURCE/$file"
    if inside ninja -C build app/polca/polca >"$COPY/broken.log" 2>&1; then
        echo "a header of libopensm-dev was found: this tree is not as minimal as a user's" >&2
        return 1
    fi
    grep -q 'iba/ib_types.h: No such file' "$COPY/broken.log" || { cat "$COPY/broken.log" >&2; return 1; }
}

# As an ordinary user; this Debian's private ABI may be another than that of the machine which runs this.
provider_is_loaded() {
    inside apt-get -q -y install --no-install-recommends ibverbs-utils &&
        inside ninja -C build provider/libpolca-rdmav34.so provider/libpolca-node.so app/polca-run/polca-run &&
        inside setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent \
            /usr/bin/python3 -B config/fresh_verbs.py build
}

# What one appliance of the example stores, another has, also one that was killed and started again. All in one call,
# because the processes end with it.
fleet_example_works() {
    # shellcheck disable=SC2016 # for the inner shell
    inside bash -c '
        fleet() { config/fleet-example.sh "$@"; }
        fleet &&
            fleet ctl 2 sa set service service_id=7 service_gid=::ffff:192.0.2.1 service_name=seven &&
            fleet ctl 3 sa table service | grep seven &&
            fleet kill 1 && fleet && fleet ctl 1 sa table service | grep seven && fleet stop && ! ip netns | grep polca'
}

[ -e "$BASE" ] || make_base
trap remove_copy EXIT
trap 'exit 130' INT TERM
stage "copying the tree and the sources"
make_copy || die "no copy could be made in $STORE: is there room for 2 GiB?"
if [ $# -gt 0 ]; then
    inside "$@"
    exit
fi
stage "quickstart.sh as root"
set -o pipefail
inside config/quickstart.sh --werror | tee "$COPY/quickstart.log" || die "quickstart.sh failed on a fresh $RELEASE"
progress_was_reported "$COPY/quickstart.log" || die "quickstart.sh was silent for too long"
stage "quickstart.sh again"
inside config/quickstart.sh || die "the second run failed"
stage "its traffic as an ordinary user"
inside setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent \
    /usr/bin/python3 -B config/quickstart.py build || die "the traffic failed as an ordinary user"
stage "its libibverbs loads the provider"
provider_is_loaded >"$COPY/verbs.log" 2>&1 || { cat "$COPY/verbs.log" >&2; die "ibv_rc_pingpong failed"; }
stage "the example of a fleet"
fleet_example_works >"$COPY/fleet.log" 2>&1 || { cat "$COPY/fleet.log" >&2; die "fleet-example.sh failed"; }
stage "a header of a test package must break the build"
breaks_with_a_test_header || die "the step cannot detect a missing package"
stage "fresh $RELEASE: done"
