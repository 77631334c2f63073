#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# test.sh - install what is missing, build with gcc and clang, run every suite.
# The last line is `N passed, N failed`; the exit status says the same. Needs root: the functional
# suites make network namespaces. A missing tool or peer is a failure.
#
#   config/test.sh              everything
#   config/test.sh unit sim     only these: build unit asan sim fuzz dts
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in -h | --help) sed -n 5,11p "$0" | cut -c3-; exit 0 ;; esac
STEPS=${*:-build unit asan sim fuzz dts}
for s in $STEPS; do
    case $s in build | unit | asan | sim | fuzz | dts) ;; *) die "no step '$s'; there are: build unit asan sim fuzz dts" ;; esac
done
[ "$(id -u)" = 0 ] || die "needs root: the functional suites make network namespaces"
need_packages $PACKAGES_BUILD $PACKAGES_TEST || exit 1

cd "$ROOT" || exit 1
export CMOCKA_MESSAGE_OUTPUT=stdout
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT
START=$SECONDS
SEEDS=${POLCA_SIM_SEEDS:-2000}
FUZZ_SECONDS=${POLCA_FUZZ_SECONDS:-60}

# meson_suite DIR SUITE LABEL: run it, keep its log for the count.
meson_suite() {
    meson test -C "$1" --suite "$2" --no-rebuild --print-errorlogs --timeout-multiplier 3 || true
    cp "$1/meson-logs/testlog.json" "$RESULTS/$3.meson.json"
}

# step NAME COMMAND...: one pass or fail of its own.
step() {
    local name=$1
    shift
    if "$@"; then echo "ok $name" >>"$RESULTS/steps.txt"; else echo "not ok $name" >>"$RESULTS/steps.txt"; fi
}

for s in $STEPS; do
    say "$s ($((SECONDS - START)) s)"
    case $s in
    build)
        step "build with gcc" build build --werror
        step "build with clang" env CC=clang bash -c ". config/common.sh; build build-clang --werror"
        ;;
    unit)
        build build --werror
        meson_suite build unit unit
        ;;
    asan)
        build build-asan --werror -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debug
        meson_suite build-asan unit asan
        ;;
    sim)
        build build --werror
        step "simulation, $SEEDS seeds" build/test/polca-sim --seeds "$SEEDS"
        ;;
    fuzz)
        step "fuzzing, $FUZZ_SECONDS s a target" test/fuzz/run.sh "$FUZZ_SECONDS"
        ;;
    dts)
        build build --werror
        dts/run --junit "$RESULTS/dts.junit.xml" || true
        [ -s "$RESULTS/dts.junit.xml" ] || echo "not ok functional suites: no result" >>"$RESULTS/steps.txt"
        ;;
    esac
done

say "summary ($((SECONDS - START)) s)"
exec /usr/bin/python3 config/count_results.py "$RESULTS"
