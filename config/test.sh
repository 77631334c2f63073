#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# test.sh - install what is missing, build, run every suite. Needs root: the functional suites make network namespaces.
# If a tool or a peer is missing, tests fail. The last line is `N passed, N failed`; the exit status agrees.
#
#   config/test.sh               every step, as CI runs it
#   config/test.sh unit sim      only these steps: check build unit count asan tsan general sim fuzz fresh12 fresh13 dts
#                                (fresh is fresh12 and fresh13: the first command on minimal Debian trees)
#   config/test.sh --long STEP   a step that is too long for CI: functional seeds fuzz debian13 coverage mutation mutants
#                                soak analyse aarch64 writes vfio trace fleet etcd
#   config/test.sh --load MODULE one functional module (cm/test_perftest.py) or suite while ten busy processes run
set -u
. "$(dirname "$0")/common.sh"

# Each step with its share of CI's time in minutes, on two CPUs: together the plan of 60, and more than the steps were
# measured to take. CI ends at 90 minutes. A new suite brings its share, and saves more than that elsewhere.
STEPS="check=1 build=3 unit=3 count=1 asan=10 tsan=4 general=3 sim=3 fuzz=3 fresh12=4 fresh13=3 dts=22"
LONG="functional=40 seeds=40 fuzz=40 debian13=40 coverage=40 mutation=40 mutants=40 soak=130 analyse=40 aarch64=40 writes=10 vfio=10 trace=60 fleet=90 etcd=15"

# Functional modules, or tests, of those who send what they may not. AddressSanitizer watches them in the step asan; the
# step dts leaves them out, the long step functional runs them without it.
HOSTILE="attack sa/test_hostile.py cm/test_hostile.py cm/test_passive.py cm/test_alternate.py control/test_hostile.py
    rc/test_drops.py rc/test_naks.py rc/test_duplicates.py agents/test_smp.py agents/test_flood.py
    verbs/test_hostile.py verbs/test_rdmacm_hostile.py robustness/test_wire.py::test_completion_queue_overrun
    robustness/test_wire.py::test_garbage robustness/test_wire.py::test_destroyed_under_traffic"
# One of them needs a rate that a build with AddressSanitizer does not reach: the step dts runs it.
NEEDS_SPEED=attack/test_cm.py::test_a_peer_connects_in_a_flood

steps_of() { local s out=; for s in $1; do out+="${out:+ }${s%%=*}"; done; echo "$out"; }
share_of() { local s; for s in $KNOWN; do [ "${s%%=*}" = "$1" ] && echo "${s#*=}"; done; }

KNOWN=$STEPS
PREFIX=step
case ${1:-} in
-h | --help) sed -n 5,13p "$0" | cut -c3-; exit 0 ;;
--load)
    [ $# = 2 ] || die "--load wants one module, as cm/test_perftest.py, or one suite"
    ;;
--long)
    KNOWN=$LONG PREFIX=long
    shift
    [ $# -gt 0 ] || die "--long wants a step; there are: $(steps_of "$LONG")"
    ;;
-*) die "no option '$1'; there are: --long STEP, --load MODULE, --help" ;;
esac
if [ "${1:-}" != --load ]; then
    RUN=${*:-$(steps_of "$KNOWN")}
    [ "$KNOWN" = "$LONG" ] || RUN=$(for s in $RUN; do [ "$s" = fresh ] && echo fresh12 fresh13 || echo "$s"; done)
    for s in $RUN; do
        case " $(steps_of "$KNOWN") " in *" $s "*) ;; *) die "no step '$s'; there are: $(steps_of "$KNOWN")" ;; esac
    done
fi
[ "$(id -u)" = 0 ] || die "needs root: the functional suites make network namespaces"
case " ${RUN:-dts} " in *" dts "* | *" functional "* | *" soak "* | *" trace "* | *" fleet "* | *" etcd "*) PACKAGES_TEST+=" $PACKAGES_DTS" ;; esac
# shellcheck disable=SC2086 # lists of words
need_packages $PACKAGES_BUILD $PACKAGES_TEST || exit 1

cd "$ROOT" || exit 1
export CMOCKA_MESSAGE_OUTPUT=stdout
# each build links 250 tests: with ld that takes as long as all the compiling
export CC_LD=lld
if [ "${1:-}" = --load ]; then
    build build --werror -Dtests=true
    exec dts/run --load "$2"
fi

RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT
SEEDS=${POLCA_SIM_SEEDS:-1000}
FUZZ_SECONDS=${POLCA_FUZZ_SECONDS:-10}

# result NAME COMMAND...: count the command as one test.
result() {
    local name=$1
    shift
    if "$@"; then echo "ok $name" >>"$RESULTS/steps.txt"; else echo "not ok $name" >>"$RESULTS/steps.txt"; fi
}

# meson_suite DIR SUITE LABEL [OPTION | TEST...]: build what it needs and run it, keep its log for the count. Tests wait
# for timers as long as they compute: two run on each CPU.
meson_suite() {
    meson test -C "$1" --suite "$2" --print-errorlogs --timeout-multiplier 3 --num-processes $((2 * $(nproc))) "${@:4}" ||
        true
    cp "$1/meson-logs/testlog.json" "$RESULTS/$3.meson.json"
}

build_all() { build build --werror -Dtests=true; }

# --- the steps of CI ---

# All of config/check.sh but the unit suites, which the step `unit` runs.
step_check() {
    local c
    result "check: its own test" test/test_check.py
    for c in $(config/check.sh --list | grep -vx units); do
        result "check: $c" config/check.sh "$c"
    done
}

step_build() { result "build with gcc" build_all; }

step_unit() {
    build_all
    # of the benchmarks, only check that they run; their results do not count
    meson_suite build unit unit --suite perf --no-suite count
}

step_count() {
    build_all
    result "instructions a message" test/perf/count_instructions.py build/app/polca-bench/polca-bench
}

# The unit tests of what has common cases (lib/base/common_case.h), or sends and receives by them, without these.
step_general() {
    local tests
    configure build-checks --werror -Dtests=true -Dchecks=true
    mapfile -t tests < <(meson introspect build-checks --tests | /usr/bin/python3 -c '
import json, sys
for test in json.load(sys.stdin):
    if "polca:unit" in test["suite"] and test["name"].partition("_")[0] in sys.argv[1:]:
        print(test["name"])' base rc wire link mem cm mad live svc engine)
    POLCA_GENERAL_CASE=1 meson_suite build-checks unit general "${tests[@]}"
}

# With clang, whose warnings are errors as well; each invariant is checked after each event.
step_asan() {
    CC=clang build build-asan --werror -Dtests=true -Dchecks=true -Db_sanitize=address,undefined -Db_lundef=false \
        -Dbuildtype=debug
    meson_suite build-asan unit asan
    # whoever reads behind a received packet is found (lib/link/guard.h)
    # shellcheck disable=SC2086 # a list of words
    dts/run --build build-asan $HOSTILE --without $NEEDS_SPEED --junit "$RESULTS/asan-hostile.junit.xml" || true
    [ -s "$RESULTS/asan-hostile.junit.xml" ] || echo "not ok hostile suites: no result" >>"$RESULTS/steps.txt"
}

# Races: the tests in which several threads use the same objects, each report a failure (test/tsan.supp).
step_tsan() {
    CC=clang configure build-tsan --werror -Dtests=true -Db_sanitize=thread -Db_lundef=false
    compile build-tsan thread_tests
    TSAN_OPTIONS="suppressions=$ROOT/test/tsan.supp" meson_suite build-tsan threads tsan
}

step_sim() {
    build_all
    # every invariant is checked after each event
    configure build-checks --werror -Dtests=true -Dchecks=true
    compile build-checks test/polca-sim
    # with and without the common cases
    result "simulation, $SEEDS seeds both ways" build-checks/test/polca-sim --seeds "$SEEDS" --both-ways
    result "simulation, a seed that once found a defect" build/test/polca-sim --seed 467 --scenario sa_hostile
    result "simulation, tables of a million records" build/test/polca-sim --seeds 10 --scenario sa_million
    result "simulation, a fleet on one etcd, $((SEEDS / 2)) seeds" build/test/polca-sim --seeds $((SEEDS / 2)) --scenario fleet
    result "simulation, faults of a fleet are found" python3 -B test/sim/test_failing.py build/test/polca-sim
    result "simulation, counts of a fleet are those of its document" python3 -B test/sim/test_scale.py \
        build/test/polca-sim docs/fleet.md 3 10 100
    result "simulation, 30 days" build-checks/test/polca-sim --seeds 20 --scenario month
}

step_fuzz() { result "fuzzing, $FUZZ_SECONDS s a target" test/fuzz/run.sh "$FUZZ_SECONDS"; }

# The packages are those that the functional suite `service` installs.
step_fresh12() {
    result "first command on a fresh Debian 12" config/fresh.sh bookworm
    result "Debian packages" config/package.sh
}

step_fresh13() { result "first command on a fresh Debian 13" config/fresh.sh trixie; }

# functional_suites LABEL [OPTION...]
functional_suites() {
    build_all
    dts/run "${@:2}" --junit "$RESULTS/$1.junit.xml" || true
    [ -s "$RESULTS/$1.junit.xml" ] || echo "not ok functional suites, $1: no result" >>"$RESULTS/steps.txt"
}

# shellcheck disable=SC2046,SC2086 # a list of words
step_dts() {
    functional_suites dts $(printf -- '--without %s ' $HOSTILE)
    functional_suites dts-speed $NEEDS_SPEED
}

# --- steps that are too long for CI ---

long_functional() { functional_suites dts --full; }

long_seeds() {
    build_all
    result "simulation, 20000 seeds" build/test/polca-sim --seeds 20000
}

# two targets at a time: an hour of fuzzing takes half an hour; a run that long keeps its corpus in the tree
long_fuzz() { result "fuzzing, 360 s a target" test/fuzz/run.sh 360; }

long_debian13() {
    result "unit tests on a fresh Debian 13" config/fresh.sh trixie config/test.sh unit
    result "a fleet with Debian 13's etcd" config/fresh.sh trixie config/test.sh --long etcd
}

# with the etcd that is installed
long_etcd() { functional_suites dts fleet/test_fleet.py fleet/test_secured.py fleet/test_restored.py fleet/test_space.py; }

long_coverage() { result "coverage" test/coverage.sh; }

long_mutation() {
    build_all
    result "mutation" test/mutate.py --minutes 35
}

# A sample to compare before and after a change of these rooms; test/mutate.py --help.
long_mutants() {
    build_all
    result "mutants" test/mutate.py --mutants 200 --units --minutes 120 --files lib/rc lib/cm lib/mad lib/sa
}

long_analyse() {
    result "clang-tidy, whole tree" config/check.sh --whole tidy
    result "cppcheck, whole tree" config/check.sh cppcheck
}

long_aarch64() { result "cross build for aarch64" config/aarch64.sh; }

# the unit test has a million
long_writes() {
    build_all
    result "100,000,000 writes to pages that move" build/test/provider/test_provider_mirror 100000000
}

long_vfio() {
    build_all
    result "Debian packages" config/package.sh
    result "the packages with cards of vfio-pci" dts/vfio_service
}

# Each call that polca makes is listed; each listed one is made, or has a reason (docs/security.md).
long_trace() {
    build_all
    result "system calls in all functional suites" dts/run --trace
}

# 50 rounds of kills and cuts, and the measures of docs/fleet.md with their aims
long_fleet() {
    functional_suites dts --full fleet/test_chaos.py
    result "the fleet's benchmark" dts/fleet_bench
    result "the fleet's gaps with etcd's users and tokens" dts/fleet_bench gap --users
}

long_soak() {
    build_all
    result "soak" test/soak.py --minutes 120
}

# --- run them ---

for s in $RUN; do
    say "$s ($SECONDS s since the start)"
    begin=$SECONDS
    # a subshell: if a step cannot continue, only that step ends
    ("${PREFIX}_$s") || echo "not ok $s: could not be completed" >>"$RESULTS/steps.txt"
    echo "$s $((SECONDS - begin)) $(share_of "$s")" >>"$RESULTS/times"
done

say "times"
awk 'BEGIN { printf "%-10s %8s %8s\n", "step", "minutes", "share" }
    { printf "%-10s %8.1f %8.1f%s\n", $1, $2 / 60, $3, ($2 / 60 > $3 ? "  over its share" : ""); t += $2; p += $3 }
    END { printf "%-10s %8.1f %8.1f\n", "together", t / 60, p }' "$RESULTS/times"
rm "$RESULTS/times"
say "results"
/usr/bin/python3 config/count_results.py "$RESULTS"
