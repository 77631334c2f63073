# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The fleet's benchmark runs, judges what it has measured, and refuses what it does not know. Its times are not looked
at here."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess

import time_limit

TEST_SECONDS = 240
BENCH = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'fleet_bench')
GAP = r'median [\d.]+ s, most [\d.]+ s'


def bench(*argv):
    return subprocess.run([BENCH, *argv, '--build', os.environ.get('POLCA_BUILD') or 'build'], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=time_limit.limit(200))


def module():
    """The program, as a module."""
    loader = importlib.machinery.SourceFileLoader('fleet_bench', BENCH)
    m = importlib.util.module_from_spec(importlib.util.spec_from_loader('fleet_bench', loader))
    loader.exec_module(m)
    return m


def has_rows(r, *rows):
    """Each of these rows, and the status that they call for, with a line for each missed one."""
    for row in rows:
        assert re.search('^%s$' % row, r.stdout, re.M), r.stdout
    missed = len(re.findall('  missed$', r.stdout, re.M))
    assert len(re.findall('^missed: ', r.stderr, re.M)) == missed, r
    assert r.returncode == (1 if missed else 0), r


def test_rows_with_aims():
    judged = '  +(met|missed)'
    has_rows(bench('lag', 'start', '--records', '1000'),
             r"follower's lag behind the leader's answer +median [\d.]+ ms, 99 % [\d.]+ ms +10 ms" + judged,
             r'start with 1000 records, copy present, beside LMDB +[\d.]+ \([\d.]+ s\) +1\.3' + judged,
             r'start with 1000 records, copy absent +\d+ s of CPU \(\d+ s\) +60 s of CPU' + judged)


def test_gaps_with_users():
    """etcd wants passwords, and members that restart do not know the tokens that it gave."""
    election = r"  +[\d.]+ s: etcd's election \+ 3\.0 s  +(met|missed)"
    r = bench('gap', '--users', '--rounds', '1')
    has_rows(r, r"gap for changes, Polca's leader dies +%s  +3\.0 s +(met|missed)" % GAP,
             r"gap for changes, etcd's leader dies +" + GAP + election,
             r'gap for changes, both die +' + GAP + election)
    assert len(re.findall("^end of a lease of etcd's own, meanwhile +%s$" % GAP, r.stdout, re.M)) == 3, r.stdout


def test_missed_aims_are_said(capsys):
    b = module()
    good, none = b.Row('lag', 'median 0.5 ms', '10 ms', True), b.Row('end of a lease', 'median 2.0 s', '', None)
    assert b.verdict([good, none]) == 0
    assert capsys.readouterr().err == ''
    assert b.verdict([good, b.Row('import', 'median 0.40', '0.5', False), none]) == 1
    assert capsys.readouterr().err == 'missed: import: median 0.40; aim: 0.5\n'


def test_limits_of_gaps():
    is_met = module().is_gap_met
    assert is_met(3.0, 0, 3.0) and not is_met(3.1, 0, 3.0)
    assert is_met(4.4, 1.4, 3.0) and not is_met(4.5, 1.4, 3.0)
    # etcd's own lease ended after 4.25 s: 5 s are 0.85 of what can be reached
    assert is_met(5.0, 1.4, 3.0, 4.25) and not is_met(5.1, 1.4, 3.0, 4.25)
    # a limit that is shorter than the aim does not count
    assert is_met(4.4, 1.4, 3.0, 2.0)


def test_no_such_case():
    r = bench('lagg')
    assert r.returncode == 2 and "no case 'lagg'; there are: gap lag queries bulk start" in r.stderr, r
