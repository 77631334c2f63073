# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""polca-bench's help, and its errors for a wrong command line: the option, its value, the
allowed values. Exit status 2."""

import os
import re
import signal
import subprocess

import pytest

from polca import BUILD

COMMANDS = ('send', 'write', 'read', 'atomic', 'server')

WRONG = [
    ([], 'a command is missing'),
    (['shout'], 'command: got "shout", allowed: send, write, read, atomic, server'),
    (['snd'], 'command: got "snd", allowed: send, write, read, atomic, server, sa, ping, cm, '
     'skeleton, timers; did you mean send?'),
    (['send', 'fast'], 'send: got "fast", allowed: bw, rate, lat'),
    (['send', 'bw', 'lat'], 'send: "lat" is one word too many'),
    (['server', 'bw'], 'server: "bw" is one word too many'),
    (['server', '-q', '4'], '-q, --qp: is no option of server'),
    (['send', '-A', 'cmp-swap'], '-A, --atomic_type: is no option of send'),
    (['send', '-s', '0'], '-s, --size: got 0, allowed: integer 1..1073741824'),
    (['send', '-s'], '-s, --size: wants BYTES'),
    (['send', '-q', '1x'], '-q, --qp: got "1x", allowed: integer 1..1000000'),
    (['send', '-D', 'long'], '-D, --duration: got "long", allowed: number above 0'),
    (['send', '-m', '1500'], '-m, --mtu: got 1500, allowed: 256, 512, 1024, 2048, 4096'),
    (['send', '-Q', '9', '-t', '8'], '-Q, --cq-mod: got 9, allowed: up to -t (8)'),
    (['atomic', '-s', '16'], 'atomic: an operand has 8 bytes'),
    (['send', 'lat', '-b'], 'lat: a ping-pong goes both ways: leave out -b'),
    (['send', '--handoff', '101'], '--handoff: got 101, allowed: integer 0..100'),
    (['send', '--handoff', '5'], '--handoff: got 5 without -w, --workers 2 or more'),
    (['send', '--loss', '1'], '--loss: got 1, allowed: integer 2..4294967295'),
    (['write', '--loss', '64', '--link', 'memif'], '--loss: for one size in memory'),
    (['send', '--beside', '1M'], '--beside: for send lat'),
    (['timers', '-s', '64'], '-s, --size: is no option of timers'),
    (['send', '-u', '32'], '-u, --qp-timeout: got 32, allowed: integer 1..31'),
    (['write', '--no-rehome'], '--no-rehome: wants -w, --workers 2 or more'),
    (['send', '--peer', '/x'], '--peer: got "/x", but with --link memory there is no second'),
    (['sa', '--case', 'nosuch'], '--case: no case has "nosuch" in its name'),
    (['send', '--frobnicate'], 'there is no option --frobnicate'),
    (['send', '--link', 'carrier-pigeon'], '--link: got "carrier-pigeon", allowed: memory, memif'),
    (['send', '--link', 'memif,path=/x'],
     '--link memif: got "path=/x", allowed: KEY=VALUE of: socket, zero-copy'),
    (['send', '--link', 'memif,socket='], '--link memif: got "socket=", allowed: KEY=VALUE of: '),
    (['send', '--link', ''], '--link: wants LINK'),
    (['server'], 'server: --link memory has no second process, allowed: memif'),
    (['server', '--link', 'memif,zero-copy=maybe'],
     '--link memif: zero-copy: got "maybe", allowed: yes, no'),
    (['server', '--link', 'memif,socket=/tmp/' + 96 * 'x'],
     '--link memif: socket: got 101 bytes, allowed: up to 100'),
    (['server', '--link', 'net_ring0'], 'server: --link net_ring0: needs --peer HOST:PORT'),
    (['server', '--link', 'net_ring0', '--peer', '-'], 'server: --peer: got "-", allowed: '),
    (['skeleton', '-b'], '-b, --bidirectional: is no option of skeleton'),
    (['skeleton', '-n', '5'], '-n, --iters: is no option of skeleton'),
]


@pytest.mark.parametrize('words,why', WRONG, ids=[' '.join(w) or 'none' for w, _ in WRONG])
def test_a_wrong_command_line(bench, words, why):
    b = bench(*words)
    assert b.ends() == 2
    assert b.text.startswith('polca-bench: ' + why), b.text
    assert 'EAL' not in b.text


def test_help_names_every_command(bench):
    b = bench('--help')
    assert b.ends() == 0
    for command in COMMANDS:
        assert re.search(r'^  %s  ' % command, b.text, re.M), b.text
    assert re.search(r'^  memif ', b.text, re.M)


@pytest.mark.parametrize('command', COMMANDS)
def test_help_of_a_command(bench, command):
    b = bench(command, '--help')
    assert b.ends() == 0
    assert b.text.startswith('polca-bench %s: ' % command)
    assert '--json' in b.text
    assert ('--tx-depth N' in b.text) == (command != 'server')
    assert ('--atomic_type TYPE' in b.text) == (command == 'atomic')
    assert ('\nModes: bw ' in b.text) == (command != 'server')
    assert all(len(line) <= 80 for line in b.text.splitlines()[1:]), b.text


def test_version(bench):
    b = bench('--version')
    assert b.ends() == 0
    assert re.match(r'polca-bench [0-9.]+, DPDK 2', b.text), b.text


def test_a_table_that_perftest_users_know(bench):
    b = bench('write', '-a', '-s', '8', '-n', '500', '--no-huge')
    assert b.ends() == 0
    lines = b.text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith(' #bytes'))
    assert re.split(r'  +', lines[head].strip())[:5] == [
        '#bytes', '#iterations', 'BW peak[MiB/sec]', 'BW average[MiB/sec]', 'MsgRate[Mpps]']
    assert [int(line.split()[0]) for line in lines[head + 1:head + 4]] == [2, 4, 8]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_ended_by_the_user_it_reports_so_far(bench, number):
    b = bench('send', '-s', '64', '-D', '1000', '--no-huge', terminal=True)
    b.says('M messages/s')  # the live line
    b.signal(number)
    assert b.ends() == 0
    assert re.search(r'^ *(.*\x1b\[K)? 64 +[0-9]{3,} ', b.text, re.M), b.text


@pytest.mark.parametrize('words', [('write', '-a', '-s', '8', '-D', '1.3'),
                                   ('send', '-s', '4096', '-n', '2000000')],
                         ids=['sizes', 'messages'])
def test_the_live_line_has_the_rate_of_now(bench, words):
    b = bench(*words, '--no-huge', terminal=True)
    assert b.ends() == 0
    rates = re.findall(r'bytes: ([0-9.]+) M messages/s, ', b.text)
    assert rates and all(float(rate) < 1000 for rate in rates), rates


def test_no_live_line_where_there_is_no_terminal(bench):
    b = bench('send', '-s', '64', '-D', '2.5', '--no-huge')
    assert b.ends() == 0
    assert '\r' not in b.text and '\x1b' not in b.text


def test_a_report_that_cannot_be_written():
    words = [os.path.join(BUILD, 'app/polca-bench/polca-bench'), 'send', '-s', '64', '-n', '500']
    with open('/dev/full', 'w') as full:
        done = subprocess.run([*words, '--no-huge'], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=300)
    assert done.returncode == 1
    assert done.stderr == 'polca-bench: the report could not be written\n'


def test_too_little_memory_is_one_sentence(bench):
    """A sentence of polca-bench, not of DPDK."""
    b = bench('send', '-q', '1000000', '-t', '16384', '--no-huge')
    assert b.ends() == 1
    assert len(b.text.splitlines()) == 1, b.text
    assert re.match(r'polca-bench: \d+ MiB of memory are needed, this machine has \d+: ', b.text), \
        b.text
