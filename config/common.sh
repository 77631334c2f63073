# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Sourced by quickstart.sh and test.sh: what both need to find, install and build.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What building and running Polca takes; docs/dependencies.md gives the reasons.
PACKAGES_BUILD="gcc meson ninja-build pkg-config libdpdk-dev libnuma-dev libjansson-dev
    libcmocka-dev zlib1g-dev liblmdb-dev python3"
# What testing it takes on top.
PACKAGES_TEST="clang libclang-rt-14-dev python3-pytest python3-scapy python3-jsonschema tshark tcpdump
    iproute2 iputils-ping ethtool qemu-system-x86 busybox-static cpio kmod libibverbs-dev libopensm-dev
    infiniband-diags opensm valgrind"

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# need_packages NAME...: install what is missing, or say what to type.
need_packages() {
    local missing=() p
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    local apt=(apt-get)
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "these packages are missing; as root: apt-get install ${missing[*]}"
        apt=(sudo apt-get)
    fi
    export DEBIAN_FRONTEND=noninteractive
    "${apt[@]}" -q update >/dev/null || die "apt-get update failed: is the machine online?"
    "${apt[@]}" -q -y install --no-install-recommends "${missing[@]}" >/dev/null ||
        die "apt-get install failed; try by hand: apt-get install ${missing[*]}"
}

# build DIR [meson option...]: configure once, compile.
build() {
    local dir=$1
    shift
    if [ ! -e "$dir/build.ninja" ]; then
        meson setup "$dir" "$ROOT" "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; die "meson setup failed"; }
        rm -f "$dir.log"
    fi
    # ninja's progress line is for people; a log gets only what went wrong
    if [ -t 1 ]; then
        ninja -C "$dir" || die "the build failed"
    else
        local log
        log=$(mktemp)
        ninja -C "$dir" >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; die "the build failed"; }
        rm -f "$log"
    fi
}
