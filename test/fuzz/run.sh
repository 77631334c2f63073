#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
#
# run.sh [--keep | --no-keep] SECONDS [TARGET ...] - build the fuzz targets and give each SECONDS, two at a time. What a
# target finds stays in build-fuzz/found/ with the command that replays it. Targets begin with the inputs that
# make_corpus.py writes and with those in test/fuzz/corpus. A run of 300 SECONDS or more keeps what it learned: it adds
# the new inputs there, and of all keeps few that together reach the same. A shorter one, as in CI, leaves the work tree
# as it is. --keep and --no-keep decide otherwise.
set -u
. "$(dirname "$0")/../../config/common.sh"
cd "$ROOT" || exit 1
LONG_RUN=300
KEEP=
case ${1:-} in
--keep) KEEP=1 && shift ;;
--no-keep) KEEP=0 && shift ;;
-h | --help) sed -n 5,9p "$0" | cut -c3-; exit 0 ;;
esac
SECONDS_EACH=${1:-60}
case $SECONDS_EACH in
*[!0-9]*) die "got '$1', allowed: [--keep | --no-keep] SECONDS [TARGET ...]" ;;
esac
[ -n "$KEEP" ] || KEEP=$((SECONDS_EACH >= LONG_RUN))
shift
TARGETS=${*:-packet qp rpc config mad smp live cm perftest import etcd forward service link neigh ring verbs}
for t in $TARGETS; do
    [ -f "test/fuzz/fuzz_$t.c" ] || die "got the target '$t', allowed: those of test/fuzz/fuzz_*.c"
done
CC=clang configure build-fuzz -Dfuzz=true -Db_lundef=false -Dbuildtype=debug -Doptimization=1
# only the targets: the unit tests and the programs are not fuzzed
# shellcheck disable=SC2086,SC2046 # lists of words
compile build-fuzz $(printf 'test/fuzz/fuzz_%s ' $TARGETS)
mkdir -p build-fuzz/found
/usr/bin/python3 test/fuzz/make_corpus.py build-fuzz/seeds || exit 1

keep() {
    local t=$1 least=build-fuzz/least/$1
    rm -rf "$least"
    mkdir -p "$least" test/fuzz/corpus
    "build-fuzz/test/fuzz/fuzz_$t" -set_cover_merge=1 -max_len=8192 -rss_limit_mb=4096 "$least" "build-fuzz/corpus/$t" \
        >"build-fuzz/found/$t.merge.log" 2>&1 || return 1
    tar -C "$least" --sort=name --owner=0 --group=0 --mtime=@0 -cf - . | gzip -n9 >"test/fuzz/corpus/$t.tar.gz"
}

one() {
    local t=$1 log=build-fuzz/found/$1.log
    mkdir -p "build-fuzz/corpus/$t"
    [ ! -f "test/fuzz/corpus/$t.tar.gz" ] || tar -xzf "test/fuzz/corpus/$t.tar.gz" -C "build-fuzz/corpus/$t"
    if ! "build-fuzz/test/fuzz/fuzz_$t" -max_total_time="$SECONDS_EACH" -max_len=8192 -rss_limit_mb=4096 \
            -artifact_prefix="build-fuzz/found/$t-" "build-fuzz/corpus/$t" "build-fuzz/seeds/$t" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz $t: FAILED; replay: build-fuzz/test/fuzz/fuzz_$t build-fuzz/found/$t-..."
        return 1
    fi
    [ "$KEEP" = 0 ] || keep "$t" || return 1
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
