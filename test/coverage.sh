#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# coverage.sh [SEEDS] - what the unit tests and SEEDS (2000) seeds of the simulation run of each folder of lib, in
# lines and branches, and whether docs/coverage.md has a reason for each line of lib/{rc,wire,mem,mad} that
# they do not run. The report by line is build-coverage/html/index.html. A folder below its floor is a failure:
# write the test, or, when code with good tests has gone, lower the floor in this file.
set -u
. "$(dirname "$0")/../config/common.sh"
cd "$ROOT" || exit 1
SEEDS=${1:-2000} # fewer do not reach everything, and fail
DIR=build-coverage

# Least percentage of lines and of branches. Functional suites are not counted: ctl, engine, link, store and verbs
# have much that only they reach. Branches of an always-inline function count in each place it is used in, of which
# many cannot take them: base, wire, mem and rc have many of these. Assertions do not count, as they always hold.
FLOORS="
base    95 75
ring    97 95
wire    97 88
mem     94 43
port    97 95
rc      96 64
mad     96 90
store   91 79
sa      95 85
sma     97 93
pma     95 85
live    96 91
cm      96 86
svc     93 84
link    88 77
engine  86 72
table   88 74
ctl     90 82
verbs   40 33"

need_packages gcovr || exit 1
# Without optimization a branch of the machine is a branch of the source. Threads count atomically: gcov computes some
# counts from others, so that a lost one makes lines look as if they were never run.
build $DIR -Dtests=true -Db_coverage=true -Dbuildtype=debug -Dc_args=-fprofile-update=atomic
find $DIR -name '*.gcda' -delete

# counted WHAT LOG COMMAND...: a test that fails makes the figures worthless.
counted() {
    stage "$1"
    watched "$2" "${@:3}" || { tail -n 40 "$2" >&2; die "$1 failed (all it said is in $2)"; }
}
counted "unit tests" $DIR/unit.log meson test -C $DIR --suite unit --no-rebuild --timeout-multiplier 10
counted "simulation, $SEEDS seeds" $DIR/sim.log $DIR/test/polca-sim --seeds "$SEEDS"
mkdir -p $DIR/html
counted "reading the counters" $DIR/gcovr.log gcovr --root . --filter 'lib/' -j 2 --gcov-ignore-parse-errors --csv $DIR/coverage.csv \
    --exclude-branches-by-pattern '.*RTE_(ASSERT|VERIFY)\(.*' \
    --json $DIR/coverage.json --html-details $DIR/html/index.html --html-title "Polca, unit tests and $SEEDS seeds" $DIR/lib

reasons=true
test/uncovered.py $DIR/coverage.json || reasons=false

printf '\n%-10s %8s %7s %7s %9s %7s %7s\n' folder lines run floor branches taken floor
awk -F, -v floors="$FLOORS" '
    BEGIN { n = split(floors, f, " "); for (i = 1; i < n; i += 3) { line[f[i]] = f[i + 1]; branch[f[i]] = f[i + 2] } }
    FNR > 1 { split($1, at, "/"); d = at[2]; seen[d]; lt[d] += $2; lc[d] += $3; bt[d] += $5; bc[d] += $6 }
    END {
        for (i = 1; i < n; i += 3) if (!(f[i] in seen)) { print "lib/" f[i] ": nothing was counted"; bad = 1 }
        for (d in seen) {
            if (!(d in line)) { print "lib/" d ": has no floor in test/coverage.sh"; bad = 1 }
            l = 100 * lc[d] / lt[d]; b = bt[d] ? 100 * bc[d] / bt[d] : 100
            low = l < line[d] || b < branch[d]
            printf "%-10s %8d %6.1f%% %6d%% %9d %6.1f%% %6d%%%s\n", d, lt[d], l, line[d], bt[d], b, branch[d],
                low ? "  below its floor" : "" | "sort"
            bad = bad || low
        }
        close("sort")
        exit bad
    }' $DIR/coverage.csv || die "below a floor; which lines: $DIR/html/index.html"
$reasons || die "lines without a test or a reason in docs/coverage.md (above)"
echo "which lines: $DIR/html/index.html"
