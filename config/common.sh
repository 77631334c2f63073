# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# Sourced by the scripts of this folder: the tree and its packages, and functions that install, configure, build
# and report progress.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Packages to build and run the three programs; docs/dependencies.md gives the reasons.
PACKAGES_BUILD="gcc meson ninja-build pkg-config libdpdk-dev libnuma-dev libjansson-dev
    libcurl4-openssl-dev
    libevent-dev zlib1g-dev liblmdb-dev libseccomp-dev libcap-ng-dev libibverbs-dev python3"
# Further packages to build and run the tests. Only test.sh may install these: the `fresh` step proves that
# the programs need none of them.
PACKAGES_TEST="libcmocka-dev clang lld libclang-rt-dev python3-pytest python3-scapy python3-jsonschema tshark tcpdump
    iproute2 iputils-ping ethtool qemu-system-x86 busybox-static cpio kmod libopensm-dev
    infiniband-diags opensm valgrind debootstrap dpdk-dev stress-ng git prometheus
    shellcheck clang-format clang-tidy cppcheck codespell flake8 libjemalloc2 libtcmalloc-minimal4"
# Packages that only the functional suites need.
PACKAGES_DTS="ibutils ibsim-utils ibverbs-utils perftest python3-pyverbs rdmacm-utils iperf iperf3 qperf fio zsh fish
    tmux strace etcd-server nftables openssl"
# What building and checking Debian packages takes on top of PACKAGES_BUILD.
PACKAGES_DEB="debhelper dpkg-dev fakeroot lintian"
# The three programs, as ninja's targets.
PROGRAMS="app/polca/polca app/polca-ctl/polca-ctl app/polca-bench/polca-bench"

say() { printf '\n== %s\n' "$*"; }
# stage TEXT...: one line of progress, with the seconds since the script began.
stage() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# last_line LOG: the last line of LOG that is not empty, shortened.
last_line() { tail -c 4000 "$1" | tr '\r' '\n' | grep -a '[^[:space:]]' | tail -n 1 | cut -c1-90; }

# watched LOG COMMAND...: run COMMAND with its output in LOG, and print its progress: on a terminal once a
# second in the same line, else with a line every ten seconds.
watched() {
    local log=$1 pid every=10 next rc
    shift
    [ -t 1 ] && every=1
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    # a command in the background ignores Ctrl-C
    trap 'kill "$pid" 2>/dev/null; wait "$pid"; printf "\n"; exit 130' INT TERM
    next=$((SECONDS + every))
    while kill -0 "$pid" 2>/dev/null; do
        if [ "$SECONDS" -ge "$next" ]; then
            next=$((SECONDS + every))
            if [ -t 1 ]; then
                printf '\r\033[K[%4d s]   %s' "$SECONDS" "$(last_line "$log")"
            else
                stage "  $(last_line "$log")"
            fi
        fi
        sleep 0.2
    done
    wait "$pid"
    rc=$?
    trap - INT TERM
    [ -t 1 ] && printf '\r\033[K'
    return $rc
}

# need_packages NAME...: install missing packages, or print the command to type.
need_packages() {
    local missing=() p logs
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local root=(env DEBIAN_FRONTEND=noninteractive)
    local apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null || ! sudo -v; then
            die "these packages are missing; as root: apt-get install ${missing[*]}"
        fi
        root=(sudo "${root[@]}")
    fi
    if [ -n "$(dpkg --audit 2>/dev/null)" ]; then # an installation was killed; apt would refuse to continue
        stage "finishing an interrupted installation (dpkg --configure -a)"
        watched /dev/null "${root[@]}" dpkg --configure -a
    fi
    stage "installing ${#missing[@]} Debian packages: ${missing[*]}"
    logs=$(mktemp -d)
    # continue after a failed update: the error may concern another repository of this host
    watched "$logs/update" "${root[@]}" "${apt[@]}" update || stage "apt-get update failed; trying with the existing package lists"
    if ! watched "$logs/install" "${root[@]}" "${apt[@]}" -y install --no-install-recommends "${missing[@]}"; then
        tail -n 5 "$logs"/* >&2
        rm -rf "$logs"
        die "apt-get install failed (its last lines are above); is the machine online? By hand: apt-get install ${missing[*]}"
    fi
    rm -rf "$logs"
}

# copy_sources DIR: what git would commit now; an unpacked release has no .git and nothing to leave out but builds.
copy_sources() {
    if [ -e "$ROOT/.git" ]; then
        git -C "$ROOT" ls-files -coz --exclude-standard
    else
        (cd "$ROOT" && find . -path './build*' -prune -o -type f -print0)
    fi | tar -C "$ROOT" --null --ignore-failed-read -T - -c | tar -C "$1" -x
}

# configure DIR [meson option...]: set DIR up for this tree, or change its options if it is set up already. A
# directory that is half configured, or belongs to another tree or compiler, is created again.
configure() {
    local dir=$1 log=$1.log was want
    shift
    want="${CC:-cc} $*"
    was=$(cat "$dir/polca.options" 2>/dev/null)
    if [ -e "$dir/build.ninja" ] && grep -qF "\"source\": \"$ROOT\"" "$dir/meson-info/meson-info.json" 2>/dev/null; then
        { [ $# = 0 ] || [ "$was" = "$want" ]; } && return 0
        # use --reconfigure, because `meson configure` has no --werror
        [ "${was%% *}" = "${CC:-cc}" ] && meson setup --reconfigure "$dir" "$ROOT" "$@" >"$log" 2>&1 &&
            echo "$want" >"$dir/polca.options" && rm -f "$log" && return 0
    fi
    if [ -n "$(ls -A "$dir" 2>/dev/null)" ] && [ ! -d "$dir/meson-private" ]; then
        die "$dir is not a build directory: move it away"
    fi
    rm -rf "$dir"
    stage "configuring $dir"
    watched "$log" meson setup "$dir" "$ROOT" "$@" || { cat "$log" >&2; die "meson setup failed"; }
    rm -f "$log"
    echo "$want" >"$dir/polca.options"
}

# compile DIR [TARGET...]: build these targets, or all.
compile() {
    local dir=$1 log
    shift
    log=$(mktemp)
    watched "$log" ninja -C "$dir" "$@" || { cat "$log" >&2; rm -f "$log"; die "the build failed (in $dir)"; }
    rm -f "$log"
}

# build DIR [meson option...]: configure and compile everything.
build() {
    configure "$@"
    compile "$1"
}
