# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A failed seed prints its replay command and the last steps of every queue pair."""
import re
import subprocess
import sys


def run(*args):
    return subprocess.run([sys.argv[1], '--scenario', 'failing', *args], stdout=subprocess.PIPE, text=True)


r = run('--seeds', '1', '--jobs', '1')
assert r.returncode == 1, r
assert 'replay: polca-sim --seed 1 --scenario failing' in r.stdout, r.stdout
for node in (0, 1):
    assert re.search(r'node %d:\nlast steps of QP 0x[0-9a-f]{6}, in ERR:\n' % node, r.stdout), r.stdout
assert re.search(r'us  error          PSN \d+ .*  REM_\w+\n', r.stdout), r.stdout
assert re.search(r'us  received       PSN \d+ +expected \d+ +Acknowledge, NAK ', r.stdout), r.stdout
# once, and not again when the steps were recorded from the start
assert run('--seed', '1', '--record').stdout.count('node 0:\n') == 1
