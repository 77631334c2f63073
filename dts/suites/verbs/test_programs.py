# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Debian's own verbs programs, unmodified, on the two ports of one appliance."""

import json
import os
import re
import subprocess

import pytest

import perftest_matrix
from polca import BUILD
from rdmacm import pair_until_listening
from verbs import RUN

TEST_SECONDS = 240
BENCH = os.path.join(BUILD, 'app/polca-bench/polca-bench')
REGISTER_BENCH = os.path.join(BUILD, 'test/perf/register_bench')
PORT = 18600  # of the programs' own exchange over TCP


def test_ibv_devices(programs):
    assert re.findall(r'^ +(polca\d)\s+[0-9a-f]{16}$', programs.run('ibv_devices'), re.M) == ['polca0', 'polca1']


def test_the_socket_of_another_directory(programs):
    """A name that is relative to the directory in which polca-run was called; the program changes its own."""
    directory, name = os.path.split(programs.socket)
    text = subprocess.run([RUN, '-s', name, 'sh', '-c', 'cd / && ibv_devices'], cwd=directory, check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    assert re.findall(r'^ +(polca\d)\s', text, re.M) == ['polca0', 'polca1']


def test_ibv_devinfo(programs):
    text = programs.run('ibv_devinfo', '-v')
    assert re.findall(r'hca_id:\t(\w+)', text) == ['polca0', 'polca1']
    assert text.count('PORT_ACTIVE') == 2 and text.count('Ethernet') == 2
    assert '::ffff:192.0.2.1' in text and '::ffff:192.0.2.2' in text
    assert text.count('active_mtu:\t\t4096 (5)') == 2


@pytest.mark.parametrize('options', [(), ('-c',), ('-e',), ('-c', '-e'), ('-c', '-r', '1', '-s', '1'),
                                     ('-c', '-m', '256', '-s', '100000', '-n', '200')], ids=' '.join)
def test_ibv_rc_pingpong(programs, left, options):
    """-c compares the bytes, -e sleeps on a completion channel."""
    for text in programs.pair(PORT, 'ibv_rc_pingpong', '-g', '0', *options):
        assert re.search(r'\d+ iters in', text), text
        assert 'invalid data' not in text, text


# What libibverbs and threads hold by pointers into the middle is "possibly lost".
VALGRIND = ('valgrind', '--error-exitcode=9', '--leak-check=full', '--show-leak-kinds=definite,indirect',
            '--errors-for-leak-kinds=definite,indirect',
            '--suppressions=' + os.path.join(os.path.dirname(os.path.realpath(__file__)), 'valgrind.supp'))


@pytest.mark.parametrize('command', ['ibv_rc_pingpong -c', 'ibv_rc_pingpong -c -e -m 256 -s 100000',
                                     'ibv_srq_pingpong -c -e'])
def test_valgrind(programs, left, command):
    """Neither the program nor the provider in it uses memory that is not its own or not set, and none is lost."""
    for text in programs.pair(PORT, *command.split(), '-g', '0', '-n', '100', under=VALGRIND):
        assert re.search(r'\d+ iters in', text) and 'ERROR SUMMARY: 0 errors' in text, text
        assert 'invalid data' not in text, text


@pytest.mark.parametrize('index', [0, 2])
def test_two_programs_on_one_port(programs, left, index):
    """Packets to the port's own address never leave it."""
    for text in programs.pair(PORT, 'ibv_rc_pingpong', '-g', index, '-c', client_device='polca0'):
        assert re.search(r'\d+ iters in', text) and 'invalid data' not in text, text


@pytest.mark.parametrize('index', [1, 2])
def test_ipv6_gids(programs, left, index):
    for text in programs.pair(PORT, 'ibv_rc_pingpong', '-g', index, '-c'):
        assert re.search(r'\d+ iters in', text) and 'invalid data' not in text, text


@pytest.mark.parametrize('options', [('-c',), ('-e',), ('-c', '-e')], ids=' '.join)
def test_ibv_srq_pingpong(programs, left, options):
    for text in programs.pair(PORT, 'ibv_srq_pingpong', '-g', '0', *options):
        assert re.search(r'\d+ iters in', text), text
        assert 'invalid data' not in text, text


@pytest.mark.parametrize('program', ['ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat',
                                     'ib_write_lat', 'ib_read_lat', 'ib_atomic_lat'])
def test_perftest(programs, left, program):
    server, client = programs.pair(PORT, program, '-x', '0', '-F', '-n', '1000')
    assert re.search(r'^ +\d+ +1000 ', client, re.M), client


@pytest.mark.parametrize('command', ['send rate -s 64 -q 3 -Q 4', 'send lat', 'write -s 64K', 'read -s 4K', 'atomic'])
def test_polca_bench(programs, left, command):
    text = programs.run(BENCH, *command.split(), '--verbs', 'polca0,polca1', '-D', '0.2', '--no-huge', '--json')
    report = json.loads(text[text.index('{'):])
    messages, calls = report['tables']
    assert (messages['name'], calls['name']) == ('verbs', 'calls')
    row, = messages['rows']
    assert all(row[key] > 0 for key in row if key not in ('extra_ns', 'added_us')), row
    assert len(calls['rows']) == 3 and all(row['median_ns'] > 0 for row in calls['rows']), calls


def test_register_bench(programs, left):
    text = programs.run(REGISTER_BENCH, '10')
    rows = re.findall(r'^((?:(?:de)?register|empty request|bare work).*?)  +([\d.]+) +([\d.]+)'
                      r'(?:  +([\d.]+), ([\d.]+))?$', text, re.M)
    assert len(rows) == 12 and all(float(median) > 0 for _, median, *_ in rows), text
    assert len([row for row in rows if row[3]]) == 5, text  # those with a limit
    parts = re.findall(r'^(\w.*?)  +[\d.]+ +[\d.]+ +[\d.]+$', text.split('parts, medians')[1], re.M)
    assert parts == ['ask about the memory', 'hold off writers', 'write to the file', 'map in place',
                     'map in another process', 'request and answer'], text


IN_CI = [c for c in perftest_matrix.MATRIX if ' -R' not in c]  # -R is in test_rdmacm.py


@pytest.mark.parametrize('command', perftest_matrix.chosen(*IN_CI))
def test_perftest_matrix(programs, left, command):
    words = perftest_matrix.words(command, 200)
    if ' -R' in command:
        words = (*words, '-p', PORT)
        _, text = pair_until_listening(programs, words, (*words, '192.0.2.2'))
    else:
        _, text = programs.pair(PORT, *words, '-x', '0')
    perftest_matrix.check(command, text, 200)


@pytest.mark.parametrize('command', ['ib_send_bw --use-srq -q 8', 'ib_send_bw -s 4 -I 4'])
def test_perftest_options(programs, left, command):
    _, text = programs.pair(PORT, *command.split(), '-x', '0', '-F', '-n', '500')
    assert re.search(r'^ +\d+ +(500|4000) ', text, re.M), text
