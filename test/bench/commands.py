#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Runs each command of polca-bench for a moment and looks at its JSON: all fields are there, bytes
arrive as they were sent. No figure is judged. usage: commands.py polca-bench"""

import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../dts/lib'))
import guide  # noqa: E402

FACTS = {'cpu', 'dpdk', 'build', 'lcores', 'memory', 'icrc', 'port', 'queues'}
COLUMNS = {
    'bw': {'bytes', 'iterations', 'bw_peak_mib', 'bw_average_mib', 'msg_rate_mpps',
           'requester_ns', 'responder_ns'},
    'rate': {'bytes', 'iterations', 'msg_rate_peak_mpps', 'msg_rate_mpps', 'requester_ns',
             'responder_ns'},
    'lat': {'bytes', 'iterations', 't_min_us', 't_max_us', 't_typical_us', 't_avg_us',
            't_stdev_us', 'p99_us', 'p999_us', 'p9999_us'},
}
LOSS = {'bw_lossless_mib', 'bw_lossy_mib', 'ratio', 'ratio_total', 'lost', 'naks', 'retransmitted'}
BESIDE = {'t_typical_us', 't_typical_beside_us', 'p99_us', 'p99_beside_us', 'p99_ratio',
          'bw_beside_mib'}
SHORT = ['-n', '2000', '--no-huge', '--json']
VARIANTS = [
    ['send', '-s', '64', '-q', '4', '-t', '32', '--ack-each'],
    ['send', '-s', '64', '--no-icrc'],
    ['send', '-s', '64', '--record'],
    ['send', '-s', '1000', '-b', '-q', '3', '--check'],
    ['send', '-s', '5000', '-m', '1024', '--check'],
    ['send', '-s', '64', '-I', '64', '-Q', '16', '--check'],
    ['write', '-s', '9000', '--check'],
    ['write', '-s', '64', '-b', '--lcores', '2'],
    ['read', '-s', '9000', '--check'],
    ['send', 'lat', '-s', '64', '--check'],
    ['read', 'lat', '--lcores', '2'],
    ['atomic', '--check', '-q', '5'],
    ['atomic', '-A', 'cmp-swap', '--check'],
    ['write', '-s', '64', '-q', '8', '-w', '2', '--handoff', '50'],
    ['send', '-s', '64', '-q', '8', '-w', '2', '--no-rehome', '--handoff', '100'],
    ['send', '-s', '64', '-q', '10000', '-t', '1'],
]


def run(bench, words, short=SHORT):
    done = subprocess.run([bench, *words, *short], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
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
        assert row['iterations'] == 2000, row


# just so many messages: not as many as fill a burst, the queue pairs, a group of -Q or a moment
COUNTED = [
    ['write', 'lat', '-n', '100'], ['send', 'lat', '-n', '7'], ['read', 'lat', '-n', '101', '--lcores', '2'],
    ['send', '-n', '1001', '-Q', '16', '-q', '3', '--check'], ['write', '-n', '1001', '-b', '-q', '3'],
    ['write', '-n', '501', '-q', '8', '-w', '2'], ['write', '-n', '501', '-b', '--lcores', '2'],
    ['atomic', '-n', '5', '-q', '3', '--check'], ['send', '-b', '-n', '1'],
]


def look_at_counts(bench):
    for words in COUNTED:
        row, = run(bench, words, ['--no-huge', '--json'])['tables'][0]['rows']
        assert row['iterations'] == int(words[words.index('-n') + 1]), (words, row)


# measured by turns without and with something: words, table, columns that are above zero
BY_TURNS = [
    (['write', '-s', '9000', '--loss', '256', '--check'], 'loss', LOSS),
    (['send', '-s', '20000', '-q', '3', '-t', '4', '--loss', '256', '--check'], 'loss', LOSS),
    # two threads: a timeout that the machine's stalls do not outlast seven times
    (['read', '-s', '9000', '--loss', '256', '--check', '--lcores', '2', '-u', '18'], 'loss', {'lost'}),
    (['write', '-s', '9000', '-q', '4', '-w', '2', '--loss', '256', '-u', '18'], 'loss', LOSS),
    (['send', 'lat', '-s', '64', '--beside', '1M'], 'beside', BESIDE),
    (['send', 'lat', '-s', '64', '--beside', '64K', '--lcores', '2', '-m', '1024'], 'beside',
     BESIDE),
]
TIMERS = {'rnr': [10, 640, 5120], 'ack': [4.096 * 2 ** code for code in (8, 12, 14)]}


def look_at_turns(bench):
    for words, name, above in BY_TURNS:
        table, = run(bench, words)['tables']
        assert table['name'] == name, table['name']
        row, = table['rows']
        assert all(row[column] > 0 for column in above), (words, row)


# a packet that found no receive does not go again before the time its NAK says
def look_at_timers(bench):
    report = run(bench, ['timers'], ['-n', '3', '--no-huge', '--json'])
    assert [table['name'] for table in report['tables']] == list(TIMERS)
    for table in report['tables']:
        times = TIMERS[table['name']]
        assert len(table['rows']) == len(times)
        for row, expected in zip(table['rows'], times):
            assert abs(row['time_us'] - expected) < 0.001, row
            assert row['samples'] >= 3, row
            assert table['name'] != 'rnr' or row['error_min_us'] >= 0, row


# each bound is measured; no packet was bad, and no payload by reference is still out
def look_at_roofline(bench):
    report = run(bench, ['write', '-s', '9000', '--roofline'])
    notes = report['notes']
    roles, = (table['rows'] for table in report['tables'] if table['name'] == 'roofline')
    assert [row['role'] for row in roles] == ['requester', 'responder'], roles
    assert all(row['polca_ns'] > 0 and row['skeleton_ns'] > 0 and row['ratio'] > 0
               for row in roles), roles
    assert sum('ns per packet of 4096 bytes' in note for note in notes) == 8, notes
    assert not any('void' in note for note in notes), notes


# docs/benchmark.md's commands in memory, from its text, each for a moment
DOCUMENTED = ['polca-bench', 'A picture', 'Many queue pairs, several workers',
              'Loss, bulk beside a ping-pong, timers', 'The agents', 'What bounds it']
# what would take too long, or too much memory: queue pairs, bytes beside, seconds
LESS = {'100000': '5000', '1G': '1M', '10': '0.2'}


def documented():
    for title in DOCUMENTED:
        for text in guide.Section(title, 'docs/benchmark.md').commands():
            program, *words = text.split()
            assert program == 'polca-bench', text
            yield [LESS.get(word, word) for word in words]


def for_a_moment(words):
    if words[0] in ('sa', 'ping', 'cm'):
        return ['--short']
    if words[0] == 'timers':
        return ['-n', '3']
    return [] if '-D' in words else ['-D', '0.05']


def look_at_documented(bench):
    ran = 0
    with tempfile.TemporaryDirectory() as d:
        for words in documented():
            done = subprocess.run([bench, *words, *for_a_moment(words), '--no-huge'], cwd=d,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  timeout=300)
            assert done.returncode == 0, (words, done.returncode, done.stderr)
            ran += 1
        assert sorted(os.listdir(d)) == ['latency.svg', 'write.svg'], os.listdir(d)
    return ran


SVG = '{http://www.w3.org/2000/svg}'


def rate_at_work(row):
    return 1e9 / (row['requester_ns'] + row['responder_ns'])


def gbps_at_work(row):
    return rate_at_work(row) * row['bytes'] * 8 / 1e9


# words of a run, the table's columns of the series of each panel and what they are multiplied with
DRAWN = [
    (['write', '-a', '-s', '64K'], [
        [lambda row: row['bw_average_mib'] * 2 ** 20 * 8 / 1e9, gbps_at_work,
         lambda row: row['limit_gbps']],
        [lambda row: row['msg_rate_mpps'] * 1e6, rate_at_work,
         lambda row: row['limit_mpps'] * 1e6]]),
    (['send', 'rate', '-a', '-s', '8', '--no-icrc'], [
        [lambda row: row['msg_rate_mpps'] * row['bytes'] * 8 / 1e3, gbps_at_work,
         lambda row: row['limit_gbps']],
        [lambda row: row['msg_rate_mpps'] * 1e6, rate_at_work,
         lambda row: row['limit_mpps'] * 1e6]]),
    (['send', '-a', '-s', '4', '--lcores', '2'], [
        [lambda row: row['bw_average_mib'] * 2 ** 20 * 8 / 1e9],
        [lambda row: row['msg_rate_mpps'] * 1e6]]),
    (['read', 'lat', '-a', '-s', '8K'], [
        [lambda row: row['t_typical_us'], lambda row: row['p99_us'],
         lambda row: row['limit_ns'] / 1e3]]),
    # both ends at once on two lcores: no limit of one lcore bounds them
    (['send', 'lat', '-a', '-s', '4', '--lcores', '2'], [
        [lambda row: row['t_typical_us'], lambda row: row['p99_us']]]),
]


def look_at_series(rows, value, line, points):
    """A polyline with a point for each size; each point says its figure, and is where it belongs."""
    want = [value(row) for row in rows]
    at = [tuple(float(v) for v in p.split(',')) for p in line.get('points').split()]
    assert len(at) == len(points) == len(want), (at, want)
    for figure, point, (x, y) in zip(want, points, at):
        told = float(re.search(r': ([\d.e+-]+) ', point.find(SVG + 'title').text).group(1))
        assert math.isclose(told, figure, rel_tol=1e-5), (told, figure)
        assert (float(point.get('cx')), float(point.get('cy'))) == (x, y)
    step = [b[0] - a[0] for a, b in zip(at, at[1:])]
    assert max(step) - min(step) < 0.3, step
    return [(math.log10(figure), y) for figure, (_, y) in zip(want, at)]


def look_at_plot(bench):
    with tempfile.TemporaryDirectory() as d:
        file = os.path.join(d, 'plot.svg')
        for words, panels in DRAWN:
            with open(file, 'w') as f:
                f.write('what was there before\n' * 10000)
            report = run(bench, [*words, '--plot', file])
            rows = report['tables'][0]['rows']
            if len(report['tables']) > 1:
                assert report['tables'][1]['name'] == 'limit'
                for row, limit in zip(rows, report['tables'][1]['rows']):
                    assert row['bytes'] == limit['bytes'] and limit['limit_ns'] > 0, limit
                    row.update(limit)
            assert report['notes'][-1] == 'wrote ' + file, report['notes']
            root = xml.parse(file).getroot()
            assert (root.tag, root.get('version')) == (SVG + 'svg', '1.1')
            texts = [t.text for t in root.iter(SVG + 'text')]
            assert any(report['environment']['cpu'] in t for t in texts), texts
            assert any(report['environment']['queues'] in t for t in texts), texts
            lines, points = list(root.iter(SVG + 'polyline')), list(root.iter(SVG + 'circle'))
            assert len(lines) == sum(map(len, panels)), (words, len(lines))
            for panel in panels:
                spots = []
                for value in reversed(panel):  # the limit is behind the others
                    spots += look_at_series(rows, value, lines.pop(0),
                                            [points.pop(0) for _ in rows])
                # one scale for all of the panel: y falls with the logarithm
                (low, bottom), (high, top) = min(spots), max(spots)
                for log, y in spots:
                    want = bottom + (top - bottom) * (log - low) / (high - low)
                    assert abs(y - want) < 0.3, (words, log, y, want)


def refused(bench, words, status, why):
    done = subprocess.run([bench, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60)
    assert done.returncode == status and why in done.stderr, (words, done)
    return done


def look_at_plot_refused(bench):
    """Before anything is measured."""
    with tempfile.TemporaryDirectory() as d:
        file = os.path.join(d, 'none', 'plot.svg')
        done = refused(bench, ['send', '-a', '-s', '8', '-n', '100', '--no-huge', '--plot', file],
                       2, '--plot: cannot write %s: No such file or directory' % file)
        assert '#bytes' not in done.stdout, done.stdout
        file = os.path.join(d, 'plot.svg')
        refused(bench, ['send', '-s', '8', '--plot', file], 2, 'wants -a')
        # and no file of a run that did not come about
        refused(bench, ['send', '-a', '-s', '8', '--link', 'memif,socket=%s/none' % d, '--plot',
                        file], 1, '')
        assert os.listdir(d) == [], os.listdir(d)
    refused(bench, ['send', '-a', '-s', '8', '-n', '100', '--no-huge', '--plot', '/dev/full'], 1,
            '--plot: cannot write /dev/full: No space left on device')


# for people: no line is wider than a terminal of 120 columns
WIDTH = 120
WIDE = [['write', '-s', '9000', '--loss', '256'], ['send', 'lat', '--beside', '1M'], ['timers'],
        ['send', '-s', '64', '-w', '2', '-q', '8'], ['read', 'lat'], ['skeleton'],
        ['send', '-a', '-s', '64', '--plot', os.devnull]]


def look_at_width(bench):
    for words in WIDE:
        short = ['-D', '0.1'] if words[0] in ('timers', 'skeleton') else ['-n', '100']
        done = subprocess.run([bench, *words, *short, '--no-huge'], stdout=subprocess.PIPE,
                              text=True, timeout=300, check=True)
        lines = done.stdout.splitlines()
        assert any(line.startswith(' port  ') for line in lines), lines
        assert all(len(line.rstrip()) <= WIDTH for line in lines), (words, lines)


def cpu_ticks(process):
    assert process.poll() is None, process.communicate()
    with open('/proc/%d/stat' % process.pid) as f:
        return int(f.read().rsplit(')', 1)[1].split()[11])


def look_at_hangup(bench):
    """A closed terminal's SIGHUP ends it as Ctrl-C does: what was measured is told. After nohup it goes on."""
    for before, seconds in (signal.SIG_DFL, '600'), (signal.SIG_IGN, '2'):
        p = subprocess.Popen([bench, 'send', '-s', '64', '-D', seconds, '--no-huge'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, before))
        try:
            for line in p.stdout:
                if '#bytes' in line:
                    break
            begun = cpu_ticks(p)
            while cpu_ticks(p) < begun + 10:  # now it measures
                time.sleep(0.01)
            for _ in range(2):  # the kernel's and the shell's
                p.send_signal(signal.SIGHUP)
            out, err = p.communicate(timeout=60)
        finally:
            p.kill()
            p.wait()
        assert (p.returncode, err) == (0, ''), (before, p.returncode, err)
        assert re.match(r' 64 +[1-9]', out), (before, out)


# a message longer than the time: no figure is made up
def look_at_nothing_done(bench):
    report = run(bench, ['write', '-s', '512M', '-t', '1'],
                 ['-D', '0.001', '--no-huge', '--json'])
    row, = report['tables'][0]['rows']
    assert set(row) == COLUMNS['bw'], row
    assert row['iterations'] > 0 or row['requester_ns'] is None, row


def main():
    bench = os.path.abspath(sys.argv[1])
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
    look_at_counts(bench)
    look_at_hangup(bench)
    look_at_turns(bench)
    look_at_timers(bench)
    look_at_roofline(bench)
    look_at_plot(bench)
    look_at_plot_refused(bench)
    ran = look_at_documented(bench)
    look_at_width(bench)
    look_at_nothing_done(bench)
    print('%d runs' % (4 * len(default) + len(VARIANTS) + len(COUNTED) + len(BY_TURNS) + len(WIDE) +
                        len(DRAWN) + ran + 10))


if __name__ == '__main__':
    main()
