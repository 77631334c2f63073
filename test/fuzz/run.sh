#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# run.sh SECONDS [TARGET ...] - build the fuzz targets and give each SECONDS, two at a time. What a target finds
# stays in build-fuzz/found/ with the command that replays it.
set -u
. "$(dirname "$0")/../../config/common.sh"
cd "$ROOT" || exit 1
SECONDS_EACH=${1:-60}
shift
TARGETS=${*:-packet qp rpc config mad smp live cm perftest import}
CC=clang configure build-fuzz -Dfuzz=true -Db_lundef=false -Dbuildtype=debugoptimized
# only the targets: the unit tests and the programs are not fuzzed
# shellcheck disable=SC2086,SC2046 # lists of words
compile build-fuzz $(printf 'test/fuzz/fuzz_%s ' $TARGETS)
mkdir -p build-fuzz/found
/usr/bin/python3 test/fuzz/make_corpus.py build-fuzz/seeds || exit 1

one() {
    local t=$1 log=build-fuzz/found/$1.log
    mkdir -p "build-fuzz/corpus/$t"
    if ! "build-fuzz/test/fuzz/fuzz_$t" -max_total_time="$SECONDS_EACH" -max_len=8192 -rss_limit_mb=4096 \
            -artifact_prefix="build-fuzz/found/$t-" "build-fuzz/corpus/$t" "build-fuzz/seeds/$t" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz $t: FAILED; replay: build-fuzz/test/fuzz/fuzz_$t build-fuzz/found/$t-..."
        return 1
    fi
    echo "fuzz $t: $(grep -c NEW "$log") new inputs, $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log") runs"
}

bad=0
# shellcheck disable=SC2086 # a list of words
set -- $TARGETS
while [ $# -gt 0 ]; do
    one "$1" & a=$!
    b=
    if [ $# -gt 1 ]; then one "$2" & b=$!; fi
    wait $a || bad=1
    [ -z "$b" ] || wait "$b" || bad=1
    shift; [ $# -eq 0 ] || shift
done
exit $bad
