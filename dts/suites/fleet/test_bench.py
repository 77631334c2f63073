# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The fleet's benchmark runs, and refuses what it does not know. Its times are not looked at here."""

import os
import re
import subprocess

import time_limit

BENCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'fleet_bench')


def bench(*argv):
    return subprocess.run([BENCH, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=time_limit.limit(120))


def test_rows_with_aims():
    r = bench('lag', 'start', '--records', '1000', '--build', os.environ.get('POLCA_BUILD') or 'build')
    assert r.returncode == 0, r
    for row in (r"follower's lag behind the leader's answer +median [\d.]+ ms, 99 % [\d.]+ ms +10 ms",
                r'start with 1000 records, copy present, beside LMDB +[\d.]+ \([\d.]+ s\) +1\.3',
                r'start with 1000 records, copy absent +\d+ s of CPU \(\d+ s\) +60 s of CPU'):
        assert re.search('^%s$' % row, r.stdout, re.M), r.stdout


def test_no_such_case():
    r = bench('lagg')
    assert r.returncode == 2 and "no case 'lagg'; there are: gap lag queries bulk start" in r.stderr, r
