#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# test.sh - install what is missing, build with gcc and clang, run every suite.
# The last line is `N passed, N failed`; the exit status says the same. Needs root: the functional
# suites make network namespaces. A missing tool or peer is a failure.
#
#   config/test.sh              everything
#   config/test.sh unit sim     only these: build quickstart unit count asan sim fuzz dts
set -u
. "$(dirname "$0")/common.sh"
case ${1:-} in -h | --help) sed -n 5,11p "$0" | cut -c3-; exit 0 ;; esac
ALL="build quickstart unit count asan sim fuzz dts"
STEPS=${*:-$ALL}
for s in $STEPS; do
    case " $ALL " in *" $s "*) ;; *) die "no step '$s'; there are: $ALL" ;; esac
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

# meson_suite DIR SUITE LABEL [OPTION...]: run it, keep its log for the count.
meson_suite() {
    meson test -C "$1" --suite "$2" --no-rebuild --print-errorlogs --timeout-multiplier 3 "${@:4}" || true
    cp "$1/meson-logs/testlog.json" "$RESULTS/$3.meson.json"
}

# step NAME COMMAND...: one pass or fail of its own.
step() {
    local name=$1
    shift
    if "$@"; then echo "ok $name" >>"$RESULTS/steps.txt"; else echo "not ok $name" >>"$RESULTS/steps.txt"; fi
}

# The quickstart's traffic as somebody without rights, who cannot even read this tree.
quickstart_as_nobody() {
    local dir rc
    dir=$(mktemp -d) && chmod 755 "$dir" && cp build/app/polca/polca config/quickstart.py "$dir" || return 1
    (cd / && setpriv --reuid=65534 --regid=65534 --clear-groups \
        env -i PATH=/usr/bin:/bin HOME=/nonexistent /usr/bin/python3 -B "$dir/quickstart.py" "$dir/polca")
    rc=$?
    rm -rf "$dir"
    return $rc
}

for s in $STEPS; do
    say "$s ($((SECONDS - START)) s)"
    case $s in
    build)
        step "build with gcc" build build --werror
        step "build with clang" env CC=clang bash -c ". config/common.sh; build build-clang --werror"
        ;;
    quickstart)
        build build --werror
        step "quickstart" config/quickstart.sh
        step "quickstart as an ordinary user" quickstart_as_nobody
        ;;
    unit)
        build build --werror
        meson_suite build unit unit
        # that the benchmarks run; what they measure is nobody's pass or fail
        meson_suite build perf perf --no-suite count
        ;;
    count)
        build build --werror
        step "instructions a message" test/perf/count_instructions.py build/app/polca-bench/polca-bench
        ;;
    asan)
        build build-asan --werror -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debug
        meson_suite build-asan unit asan
        ;;
    sim)
        build build --werror
        step "simulation, $SEEDS seeds" build/test/polca-sim --seeds "$SEEDS"
        step "simulation, a seed that once found something" \
            build/test/polca-sim --seed 467 --scenario sa_hostile
        step "simulation, tables of a million records" build/test/polca-sim --seeds 10 --scenario sa_million
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
