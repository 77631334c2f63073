#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# fresh.sh bookworm|trixie [COMMAND...] - run the README's first command on a minimal Debian without other
# packages: create the tree once with debootstrap (from the mirror that this host's apt uses), copy it, copy this source tree
# into it, run quickstart.sh there as root and its traffic as an ordinary user, and prove that a header of a test
# package would have broken the build. With COMMAND, run that in the source tree of the copy instead. Needs root.
# The trees are kept in POLCA_FRESH (/var/cache/polca-fresh), which is root's; a copy is removed when its run ends.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in
-h | --help) sed -n 5,9p "$0" | cut -c3-; exit 0 ;;
bookworm | trixie) RELEASE=$1; shift ;;
*) die "got '${1:-}', allowed: bookworm (Debian 12), trixie (Debian 13)" ;;
esac
[ "$(id -u)" = 0 ] || die "needs root, for debootstrap and chroot"
need_packages debootstrap || exit 1

STORE=${POLCA_FRESH:-/var/cache/polca-fresh}
BASE=$STORE/$RELEASE
COPY=$STORE/copy-$$
SOURCE=/opt/polca # in the copy
umask 022
# root runs programs of these trees: no other user may have put them there
mkdir -p "$STORE" && chmod 700 "$STORE" || exit 1
[ "$(stat -c %u "$STORE")" = 0 ] || die "$STORE does not belong to root: remove it, or set POLCA_FRESH"

# mirror SUITE: the mirror from which this host's apt gets its own release with the suffix SUITE: "-security" or "".
mirror() {
    # shellcheck disable=SC2016 # apt-get's own variables
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
        awk -v own="$(. /etc/os-release && echo "$VERSION_CODENAME")$1" \
            '$2 == own && $3 == "main" && $4 == "Debian" { print $1; exit }'
}

# How this host's apt reaches its mirror: proxies and checks. None of this is written into the source tree.
apt_ways() { apt-config dump | grep -E '^Acquire::(http|https|Check|Retries)' || true; }

make_base() {
    local main log=$STORE/$RELEASE.log include=()
    main=$(mirror "")
    [ -n "$main" ] || die "this host's apt has no Debian mirror (apt-get update first?)"
    [ "${main#https}" = "$main" ] || include=(--include=ca-certificates)
    rm -rf --one-file-system "$BASE.new"
    stage "creating a minimal Debian tree ($RELEASE), once"
    eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)"
    export http_proxy https_proxy
    watched "$log" debootstrap --variant=minbase "${include[@]}" "$RELEASE" "$BASE.new" "$main" ||
        { tail -n 20 "$log" >&2; rm -rf --one-file-system "$BASE.new"; die "debootstrap failed"; }
    : >"$BASE.new/etc/apt/sources.list"
    rm -f "$log"
    mv "$BASE.new" "$BASE"
}

remove_copy() { rm -rf --one-file-system "$COPY"; }

make_copy() {
    local old main security
    for old in "$STORE"/copy-*; do # left by a run that was killed
        [ -e "$old" ] && ! kill -0 "${old##*-}" 2>/dev/null && rm -rf --one-file-system "$old"
    done
    cp -a "$BASE" "$COPY" && mkdir -p "$COPY$SOURCE" || return 1
    cp -L /etc/resolv.conf /etc/hosts "$COPY/etc/"
    # the suites that this host's apt uses today
    main=$(mirror "") security=$(mirror -security)
    {
        echo "deb $main $RELEASE main"
        [ -z "$security" ] || echo "deb $security $RELEASE-security main"
    } >"$COPY/etc/apt/sources.list"
    apt_ways >"$COPY/etc/apt/apt.conf.d/90host"
    # the files that git would commit now; an unpacked release has no .git, and only builds are left out
    if [ -e "$ROOT/.git" ]; then
        git -C "$ROOT" ls-files -coz --exclude-standard
    else
        (cd "$ROOT" && find . -path './build*' -prune -o -type f -print0)
    fi | tar -C "$ROOT" --null --ignore-failed-read -T - -c | tar -C "$COPY$SOURCE" -x
}

# inside COMMAND...: run it in the source tree of the copy, as root, with an environment of its own. Mounts and processes
# end with it.
inside() {
    # shellcheck disable=SC2016 # for the inner shells
    unshare --mount --pid --fork --kill-child --propagation private bash -c '
        root=$1 dir=$2
        shift 2
        mount --rbind /dev "$root/dev" && mount -t proc proc "$root/proc" &&
            mount --rbind /sys "$root/sys" && mount -t tmpfs tmpfs "$root/run" || exit 1
        exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            CI="${CI:-}" bash -c "cd \"\$0\" && exec \"\$@\"" "$dir" "$@"' - "$COPY" "$SOURCE" "$@"
}

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
stage "a header of a test package must break the build"
breaks_with_a_test_header || die "the step cannot detect a missing package"
stage "fresh $RELEASE: done"
