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


# A rule that etcd, its watch, or a disk breaks on purpose, seeds that are enough, and what a fleet's checks say of it.
PLANTED = {
    'fleet_no_fence': (400, 'does not lead'),
    'fleet_not_durable': (40, 'was acknowledged'),
    'fleet_twice': (40, 'was executed twice'),
    'fleet_import_twice': (40, 'was made twice'),
    'fleet_half': (40, 'records (acknowledged): there are'),
    'fleet_stage_stays': (40, 'the lease has ended, and etcd still has /p/s/'),
    'fleet_member_stays': (10, 'which is dead, has'),
    'fleet_member_hidden': (20, 'which lives, is removed'),
    'fleet_wrong_key': (20, 'is stored under another LID'),
    'fleet_notice_lost': (20, 'was acknowledged and never reported'),
    'fleet_notice_goes': (40, 'was acknowledged and never reported'),
    'fleet_watch_gap': (40, 'answers from other records than etcd has'),
    'fleet_early_answer': (4, 'is acknowledged by'),
    'fleet_two_leads': (20, 'are sure that they lead'),
    'fleet_copy_gap': (20, 'the copy of'),
}


def test_the_checks_of_a_fleet_find_what_is_broken_on_purpose():
    for scenario, (seeds, says) in PLANTED.items():
        r = run('--seeds', str(seeds), '--scenario', scenario)
        assert r.returncode == 1 and says in r.stdout, (scenario, r.returncode, r.stdout[-2000:])


test_a_failed_seed_prints_the_last_steps()
test_the_checks_of_a_fleet_find_what_is_broken_on_purpose()
test_steps_recorded_from_the_start_are_printed_once()
