# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""perftest's programs with the options that the suites run them with, and what their output must have.

Writes have no -e, latencies no -q, Atomics no -a (they have 8 bytes), and only Sends use shared receive queues."""

import math
import re

from scale import scaled

OPERATIONS = ('send', 'write', 'read', 'atomic')
PROGRAMS = tuple('ib_%s_%s' % (o, kind) for kind in ('bw', 'lat') for o in OPERATIONS)
ALL_SIZES = [2 << n for n in range(23)]


def has(program, option):
    _, operation, kind = program.split('_')
    return {'-a': operation != 'atomic', '-e': operation != 'write', '-R': True, '-q 64': kind == 'bw',
            '--use-srq': operation == 'send'}[option]


MATRIX = tuple('%s %s' % (program, option) for option in ('-a', '-e', '-R', '-q 64', '--use-srq')
               for program in PROGRAMS if has(program, option))


def chosen(*ci):
    """Command lines for a test's parameters: these in CI, all of them at full size."""
    assert set(ci) <= set(MATRIX), set(ci) - set(MATRIX)
    return scaled(ci, MATRIX)


def words(command, iterations):
    """-a takes long, and sends each size so often."""
    return (*command.split(), '-F', '-n', 5 if '-a' in command else iterations)


def check(command, text, iterations):
    """A row for each size, with its rate, or with the latencies, from the least to the 99.9th percentile.

    On a busy machine perftest may fail to measure how fast its clock is; it says so, and its times are no times."""
    has_clock = 'Correlation coefficient' not in text
    number = r'(\d+\.\d+|-?nan)' if has_clock else r'(\d+\.\d+|inf|-?nan)'
    rows = [[float(word) for word in line.split()] for line in text.splitlines()
            if re.fullmatch(r'\s+\d+\s+\d+(\s+%s)+\s*' % number, line)]
    sizes = [int(row[0]) for row in rows]
    if ' -a' in command:
        iterations = 5
        assert sizes == ALL_SIZES, text
    assert len(rows) >= 1 and all(row[1] == iterations * (64 if '-q 64' in command else 1) for row in rows), text
    for row in rows if has_clock else ():
        if command.split()[0].endswith('_lat'):
            least, most, typical, average = row[2:6]
            # the deviation of few iterations may be none
            assert ' -a' in command or not math.isnan(row[6]), text
            assert not any(map(math.isnan, row[:6] + row[7:])), text
            assert 0 < least <= typical <= most and least <= average <= most, text
        else:
            # megabytes of small messages round to 0, and so does the rate of the largest that -a sends
            assert not any(map(math.isnan, row)), text
            assert row[4] > 0 or (' -a' in command and row[3] > 0), text
