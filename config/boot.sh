#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# boot.sh DIR [--tree] - boot a minimal Debian 12 with systemd in a container, with the packages of DIR (package.sh makes them)
# in /packages, not installed. Print "leader PID", the container's init, when it runs, and again after each reboot,
# then wait until the container ends; on SIGTERM it is shut down. nsenter -t PID -a runs commands in it. It has a
# network of its own, and nothing that is done in it stays. Needs root. The tree with systemd is made once, as those
# of fresh.sh; --tree only makes it, and prints where it is.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in
-h | --help) sed -n 5,9p "$0" | cut -c3-; exit 0 ;;
esac
PACKAGES=${1:-}
ls "$PACKAGES"/polca_*.deb >/dev/null 2>&1 || die "got '$PACKAGES', expected a directory with packages of config/package.sh"
RELEASE=bookworm
. "$(dirname "$0")/tree.sh"
need_packages systemd-container || exit 1

# The tree has what the packages depend on, so that they can be installed without a network.
INSTALL="systemd systemd-sysv dbus iproute2 dpdk-dev librte-net-af-packet23 librte-net-af-xdp23 librte-net-memif23
    ibverbs-utils rdmacm-utils"
depends() { for p in "$PACKAGES"/polca*.deb; do dpkg-deb -f "$p" Depends Recommends; done; }
WITH_SYSTEMD=$STORE/$RELEASE-systemd-$( (echo "$INSTALL"; depends) | md5sum | cut -c1-8)

make_tree_with_systemd() {
    [ -e "$BASE" ] || make_base
    make_copy && mkdir "$COPY/packages" && cp "$PACKAGES"/polca*.deb "$COPY/packages/" || return 1
    stage "installing systemd in a copy, once" >&2
    # shellcheck disable=SC2016,SC2086 # for the inner shell; a list of words
    inside sh -c 'set -e
        export DEBIAN_FRONTEND=noninteractive
        apt-get -q update
        apt-get -q -y install --no-install-recommends "$@" $(ls /packages/*.deb | grep -v dbgsym)
        dpkg --purge polca polca-tools polca-verbs
        rm -f /var/cache/apt/archives/*.deb' - $INSTALL >"$STORE/systemd.log" 2>&1 ||
        { tail -n 20 "$STORE/systemd.log" >&2; return 1; }
    rm -rf --one-file-system "$COPY$SOURCE" "$COPY/packages" "$STORE/systemd.log" "$STORE/$RELEASE"-systemd-*
    mv "$COPY" "$WITH_SYSTEMD"
}

trap remove_copy EXIT
[ -e "$WITH_SYSTEMD" ] || make_tree_with_systemd || die "no tree with systemd could be made"
if [ "${2:-}" = --tree ]; then
    echo "$WITH_SYSTEMD"
    exit
fi
cp -a "$WITH_SYSTEMD" "$COPY" && mkdir "$COPY/packages" && cp "$PACKAGES"/polca*.deb "$COPY/packages/" || exit 1

# EAL reads /sys/module, which nspawn does not mount.
# Programs with threads register memory with userfaultfd, which nspawn would refuse and no host does.
boot() {
    systemd-nspawn --quiet --directory "$COPY" --boot --register=no --keep-unit --private-network --link-journal=no \
        --console=read-only --bind-ro=/sys/module --machine="polca-$$" --rlimit=MEMLOCK=infinity \
        --capability=CAP_IPC_LOCK,CAP_NET_ADMIN,CAP_SYS_RESOURCE --system-call-filter="bpf userfaultfd" </dev/null >&2 &
    NSPAWN=$!
    until LEADER=$(pgrep -P "$NSPAWN"); do
        kill -0 "$NSPAWN" 2>/dev/null || die "systemd-nspawn ended"
        sleep 0.1
    done
    echo "leader $LEADER"
    wait "$NSPAWN"
}
# its init shuts the container down on SIGRTMIN+3
trap 'kill -s RTMIN+3 "$(pgrep -P "$NSPAWN")" 2>/dev/null; wait "$NSPAWN"; exit 0' INT TERM
REBOOT=133 # what systemd-nspawn exits with
boot
while [ $? = $REBOOT ]; do
    boot
done
