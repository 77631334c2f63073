#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# aarch64.sh - build the three programs for aarch64 with Debian's cross compiler, and run the unit tests of wire, rc, mem
# and mad under QEMU's user emulation. Compiler and libraries are in a Debian tree of their own, made once; nothing is
# installed on this host but what makes that tree. Needs root. Logs are in build-aarch64.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in
-h | --help) sed -n 5,8p "$0" | cut -c3-; exit 0 ;;
esac
RELEASE=bookworm
. "$(dirname "$0")/tree.sh"

# python3-scapy, tshark: the tests that need them are left out, they are no tests of the processor
HERE="gcc-aarch64-linux-gnu libc6-dev-arm64-cross meson ninja-build pkg-config python3 qemu-user"
# shellcheck disable=SC2086 # a list of words
THERE="$(printf '%s\n' $PACKAGES_BUILD | grep -e '-dev$') libcmocka-dev"
# shellcheck disable=SC2086 # a list of words
INSTALL="$HERE $(printf '%s:arm64 ' $THERE)"
CROSS=$STORE/$RELEASE-aarch64-$(echo "$INSTALL" | md5sum | cut -c1-8)
BUILD=$ROOT/build-aarch64

make_cross_tree() {
    [ -e "$BASE" ] || make_base
    make_copy || return 1
    stage "installing the cross compiler and arm64 libraries in a copy, once"
    # shellcheck disable=SC2016,SC2086 # for the inner shell; a list of words
    watched "$STORE/aarch64.log" inside sh -c 'set -e
        export DEBIAN_FRONTEND=noninteractive
        dpkg --add-architecture arm64
        apt-get -q update
        apt-get -q -y install --no-install-recommends "$@"
        apt-get clean' - $INSTALL || { tail -n 20 "$STORE/aarch64.log" >&2; return 1; }
    rm -rf --one-file-system "$COPY$SOURCE" "$STORE/aarch64.log" "$STORE/$RELEASE"-aarch64-*
    mv "$COPY" "$CROSS"
}

trap remove_copy EXIT
trap 'exit 130' INT TERM
[ -e "$CROSS" ] || make_cross_tree || die "no tree with a cross compiler could be made"
cp -a "$CROSS" "$COPY" && mkdir -p "$COPY$SOURCE" "$BUILD" && copy_sources "$COPY$SOURCE" || exit 1
cat >"$COPY/cross.ini" <<'END'
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-gcc-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
exe_wrapper = 'qemu-aarch64'
[properties]
pkg_config_libdir = ['/usr/lib/aarch64-linux-gnu/pkgconfig', '/usr/share/pkgconfig']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END

stage "building the programs and their tests"
# shellcheck disable=SC2086 # a list of words
inside sh -c 'set -e
    meson setup build --cross-file /cross.ini --werror -Dtests=true
    ninja -C build "$@"
    meson test -C build --suite unit --list 2>/dev/null | sed "s/.* \/ //" |
        grep -E "^(wire|rc|mem|mad)(_|:| )" | grep -v -E "tshark|scapy" >build/chosen' - $PROGRAMS \
    >"$BUILD/build.log" 2>&1 || { tail -n 40 "$BUILD/build.log" >&2; die "the cross build failed"; }
stage "unit tests of wire, rc, mem and mad"
# shellcheck disable=SC2016 # for the inner shell
inside bash -c 'mapfile -t tests <build/chosen
    meson test -C build --suite unit --print-errorlogs --timeout-multiplier 20 "${tests[@]}"' >"$BUILD/tests.log" 2>&1
status=$?
tail -n 12 "$BUILD/tests.log"
[ $status = 0 ] || die "unit tests failed under emulation (all that was said is in $BUILD/tests.log)"
stage "aarch64: done"
