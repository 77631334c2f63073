#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# dpdk-source.sh [--programs] DIR - try Polca with another DPDK than Debian's. DIR is an unpacked DPDK source
# tree (dpdk-25.11.tar.xz, or a git clone). Builds the drivers that Polca's tests and the quickstart use into
# a prefix of their own, builds Polca against them, checks that no library of another DPDK is mixed in, and
# runs the unit tests and the quickstart's traffic; with --programs only the latter. All files are in
# build-dpdk-VERSION/; the installed DPDK and build/ are not changed. Needs root, or sudo, only to install
# missing Debian packages.
set -u
. "$(dirname "$0")/common.sh"
TESTS=true
case ${1:-} in
-h | --help) sed -n 5,10p "$0" | cut -c3-; exit 0 ;;
--programs) TESTS=false; shift ;;
esac
[ $# = 1 ] || die "usage: $0 [--programs] DIR (the source tree of DPDK), or --help"
[ -r "$1/VERSION" ] || die "$1: not a source tree of DPDK: it has no file VERSION"
SOURCE=$(cd "$1" && pwd)
VERSION=$(cat "$SOURCE/VERSION")
TOP=$ROOT/build-dpdk-$VERSION
PREFIX=$TOP/prefix
LIBS=$PREFIX/lib
BUILD=$TOP/polca
[ $TESTS = true ] || BUILD=$TOP/programs
DRIVERS=bus/pci,bus/vdev,mempool/ring,net/af_packet,net/memif,net/null,net/pcap,net/ring,net/tap,net/vhost,net/virtio
# Drivers in addition to those of every DPDK. Versions before 23.11 build all of theirs.
LIBRARIES=bpf,cryptodev,dmadev,gso,pcapng,pdump,vhost
# DPDK reads its ELF files with pyelftools; net_pcap needs libpcap. The unit tests run the rest.
PACKAGES_DPDK="python3-pyelftools libpcap-dev linux-libc-dev"
[ $TESTS = false ] || PACKAGES_DPDK+=" libcmocka-dev zlib1g-dev python3-scapy python3-jsonschema tshark libopensm-dev"

# quietly COMMAND...: print its progress, and its output only if it fails.
quietly() {
    watched "$TOP/log" "$@" || { tail -n 40 "$TOP/log" >&2; die "failed: $* (all of its output: $TOP/log)"; }
}

# The EAL loads no driver from below a world-writable directory such as /tmp.
safe_place() {
    local dir=$ROOT
    while [ "$dir" != / ]; do
        [ -z "$(find "$dir" -maxdepth 0 -perm -o+w)" ] ||
            die "DPDK loads no driver from below $dir, which is world-writable: move this source tree elsewhere"
        dir=$(dirname "$dir")
    done
}

# one_dpdk FILE...: check that every librte_* listed in these files comes from our prefix.
one_dpdk() {
    local foreign
    foreign=$(grep -ho '/[^ ]*/librte_[^ ]*' "$@" | sort -u | grep -v "^$LIBS/")
    [ -z "$foreign" ] || die "libraries of another DPDK than $LIBS: $foreign"
    grep -q "$LIBS/librte_eal" "$@" || die "$LIBS/librte_eal.so is not used at all"
}

# Drivers are loaded at run time, so check the files that a running polca has mapped.
check_running_polca() {
    local polca=$BUILD/app/polca/polca socket=$TOP/check.sock pid i
    "$polca" -s "$socket" >"$TOP/check.log" 2>&1 &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        [ ! -S "$socket" ] || break
        kill -0 $pid 2>/dev/null || { cat "$TOP/check.log" >&2; die "polca does not start"; }
        sleep 0.1
    done
    cat /proc/$pid/maps >"$TOP/maps"
    kill -TERM $pid
    wait $pid || { cat "$TOP/check.log" >&2; die "polca did not stop with status 0"; }
    grep -q "/librte_mempool_ring" "$TOP/maps" || die "polca did not load the drivers of $LIBS"
    one_dpdk "$TOP/maps"
}

safe_place
# shellcheck disable=SC2086 # lists of words
need_packages $PACKAGES_BUILD $PACKAGES_DPDK || exit 1
mkdir -p "$TOP" || exit 1

stage "DPDK $VERSION: building libraries and drivers in $TOP/dpdk"
# Debian's own Python is the one that has python3-pyelftools.
if [ ! -e "$TOP/dpdk/build.ninja" ]; then
    libraries=()
    ! grep -q "'enable_libs'" "$SOURCE/meson_options.txt" || libraries=("-Denable_libs=$LIBRARIES")
    quietly env PATH="/usr/bin:$PATH" meson setup "$TOP/dpdk" "$SOURCE" --prefix "$PREFIX" --libdir lib -Dplatform=generic \
        -Dtests=false "-Ddisable_apps=*" -Denable_drivers=$DRIVERS "${libraries[@]}" -Ddeveloper_mode=disabled \
        "-Dc_link_args=-Wl,-rpath,$LIBS"
fi
quietly ninja -C "$TOP/dpdk" install

stage "building Polca against it in $BUILD"
export PKG_CONFIG_PATH=$LIBS/pkgconfig
build "$BUILD" --werror -Dtests=$TESTS "-Dc_link_args=-Wl,-rpath,$LIBS"

stage "checking that no other DPDK is mixed in"
for program in polca polca-bench; do
    ldd "$BUILD/app/$program/$program" >"$TOP/ldd.$program" || die "ldd failed"
done
one_dpdk "$TOP"/ldd.*
check_running_polca
"$BUILD/app/polca/polca" --version

status=0
if [ $TESTS = true ]; then
    stage "unit tests"
    meson test -C "$BUILD" --suite unit --no-rebuild --print-errorlogs --timeout-multiplier 3 || status=1
fi

stage "the quickstart's traffic"
/usr/bin/python3 "$ROOT/config/quickstart.py" "$BUILD" || status=1

[ $status = 0 ] || die "Polca does not pass with DPDK $VERSION"
stage "Polca passes with DPDK $VERSION"
