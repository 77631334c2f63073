#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# quickstart.sh - from a bare Debian 12 to verified RDMA traffic: install packages (as root, or with sudo), build, start
# polca on its built-in configuration (two ports joined inside the process; no NIC, no hugepages), move
# data with every operation in both directions, check every byte. Once the packages are there it needs no root.
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in -h | --help) sed -n 5,8p "$0" | cut -c3-; exit 0 ;; esac

need_packages $PACKAGES_BUILD || exit 1
BUILD=$ROOT/build
# somebody else's source tree: build where we may write
if [ ! -w "$ROOT" ] || { [ -e "$BUILD" ] && [ ! -w "$BUILD" ]; }; then
    BUILD=${XDG_CACHE_HOME:-$HOME/.cache}/polca/build
    mkdir -p "$BUILD" 2>/dev/null || BUILD=$(mktemp -d)/build
fi
say "building in $BUILD"
build "$BUILD"
say "starting polca and moving data through it"
exec /usr/bin/python3 "$ROOT/config/quickstart.py" "$BUILD/app/polca/polca"
