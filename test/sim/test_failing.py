# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What polca-sim prints of a failed seed. usage: test_failing.py POLCA_SIM"""
import re
import subprocess
import sys


def run(*args):
    return subprocess.run([sys.argv[1], '--scenario', 'failing', *args], stdout=subprocess.PIPE, text=True)


def test_a_failed_seed_prints_the_last_steps():
    r = run('--seeds', '1', '--jobs', '1')
    assert r.returncode == 1, r
    assert 'replay: polca-sim --seed 1 --scenario failing' in r.stdout, r.stdout
    for node in (0, 1):
        assert re.search(r'node %d:\nlast steps of QP 0x[0-9a-f]{6}, in ERR:\n' % node, r.stdout), r.stdout
    assert re.search(r'us  error          PSN \d+ .*  REM_\w+\n', r.stdout), r.stdout
    assert re.search(r'us  received       PSN \d+ +expected \d+ +Acknowledge, NAK ', r.stdout), r.stdout


def test_steps_recorded_from_the_start_are_printed_once():
    assert run('--seed', '1', '--record').stdout.count('node 0:\n') == 1


test_a_failed_seed_prints_the_last_steps()
test_steps_recorded_from_the_start_are_printed_once()
