#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# quickstart.sh [MESON OPTION...] - from a bare Debian 12 or 13 to verified RDMA traffic: install packages (as root, or
# with sudo), build the three programs, start polca on its built-in configuration (two ports joined inside the
# process; no NIC, no hugepages), move data with every operation in both directions, check every byte, and measure
# the data path. Once the packages are installed it needs no root, and a second run takes seconds.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in -h | --help) sed -n 5,8p "$0" | cut -c3-; exit 0 ;; esac

# shellcheck disable=SC2086 # lists of words
need_packages $PACKAGES_BUILD || exit 1
BUILD=$ROOT/build
# the source tree belongs to another user: build in a writable directory
if [ ! -w "$ROOT" ] || { [ -e "$BUILD" ] && [ ! -w "$BUILD" ]; }; then
    BUILD=${XDG_CACHE_HOME:-$HOME/.cache}/polca/build
    mkdir -p "$BUILD" 2>/dev/null || BUILD=$(mktemp -d)/build
fi
# a directory that is also set up for the tests stays so; only the programs are built in it
if [ $# -gt 0 ] || [ ! -e "$BUILD/build.ninja" ]; then
    set -- -Dtests=false "$@"
fi
configure "$BUILD" "$@"
stage "building polca, polca-ctl and polca-bench in $BUILD"
# shellcheck disable=SC2086
compile "$BUILD" $PROGRAMS
stage "starting polca and moving data through it"
/usr/bin/python3 "$ROOT/config/quickstart.py" "$BUILD" || exit 1
stage "done"
