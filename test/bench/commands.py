#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Runs each command of polca-bench for a moment and looks at its JSON: all fields are there, bytes
arrive as they were sent. No figure is judged. usage: commands.py polca-bench"""

import itertools
import json
import subprocess
import sys

FACTS = {'cpu', 'dpdk', 'build', 'lcores', 'memory', 'icrc', 'port', 'queues'}
COLUMNS = {
    'bw': {'bytes', 'iterations', 'bw_peak_mib', 'bw_average_mib', 'msg_rate_mpps',
           'requester_ns', 'responder_ns'},
    'rate': {'bytes', 'iterations', 'msg_rate_peak_mpps', 'msg_rate_mpps', 'requester_ns',
             'responder_ns'},
    'lat': {'bytes', 'iterations', 't_min_us', 't_max_us', 't_typical_us', 't_avg_us',
            't_stdev_us', 'p99_us', 'p999_us', 'p9999_us'},
}
SHORT = ['-n', '2000', '--no-huge', '--json']
VARIANTS = [
    ['send', '-s', '64', '-q', '4', '-t', '32', '--ack-each'],
    ['send', '-s', '64', '--no-icrc'],
    ['send', '-s', '1000', '-b', '-q', '3', '--check'],
    ['send', '-s', '5000', '-m', '1024', '--check'],
    ['send', '-s', '64', '-I', '64', '-Q', '16', '--check'],
    ['write', '-s', '9000', '--check'],
    ['write', '-s', '64', '-b', '--lcores', '2'],
    ['read', '-s', '9000', '--check'],
    ['send', 'lat', '-s', '64', '--check'],
    ['read', 'lat', '--lcores', '2'],
    ['atomic', '--check', '-q', '5'],
    ['atomic', '-A', 'cmp-swap'],
    ['write', '-s', '64', '-q', '8', '-w', '2', '--handoff', '50'],
    ['send', '-s', '64', '-q', '8', '-w', '2', '--no-rehome', '--handoff', '100'],
    ['send', '-s', '64', '-q', '10000', '-t', '1'],
]


def run(bench, words):
    done = subprocess.run([bench, *words, *SHORT], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=300)
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    assert done.stderr == '', (words, done.stderr)
    return json.loads(done.stdout)


def look(words, report, sizes):
    mode = words[1] if len(words) > 1 and words[1] in COLUMNS else 'bw'
    assert report['command'] == words[0], report['command']
    assert FACTS <= set(report['environment']), report['environment']
    assert all(report['environment'].values()), report['environment']
    assert report['options']['link'] == 'memory'
    table, = report['tables']
    assert table['name'] == mode, table['name']
    assert [row['bytes'] for row in table['rows']] == sizes, table['rows']
    for row in table['rows']:
        assert set(row) == COLUMNS[mode], sorted(row)
        assert row['iterations'] >= 2000, row


def main():
    bench = sys.argv[1]
    default = {'bw': 65536, 'rate': 64, 'lat': 2}
    for verb, mode in itertools.product(('send', 'write', 'read', 'atomic'), default):
        words = [verb, mode]
        look(words, run(bench, words), [8 if verb == 'atomic' else default[mode]])
    for words in VARIANTS:
        size = int(words[words.index('-s') + 1]) if '-s' in words else None
        report = run(bench, words)
        look(words, report, [size or report['options']['size']])
    words = ['write', '-a', '-s', '64']
    look(words, run(bench, words), [2, 4, 8, 16, 32, 64])
    print('%d runs' % (4 * len(default) + len(VARIANTS) + 1))


if __name__ == '__main__':
    main()
