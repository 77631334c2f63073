# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What polca-sim counts of a fleet is what docs/fleet.md says. usage: test_scale.py POLCA_SIM FLEET_MD APPLIANCES..."""
import re
import subprocess
import sys

POLCA_SIM, FLEET_MD = sys.argv[1:3]
# A row of the document's table, and where polca-sim prints that count.
ROWS = {
    'transactions a change': r'a change: +([\d.]+) transactions',
    'of all appliances: messages of watches a change': r'([\d.]+) messages of watches',
    'the same, events': r'([\d.]+) events',
    'the same, bytes of JSON': r'([\d.]+) bytes',
    'reads of the control keys a second': r'([\d.]+) ranges',
    'requests for leases a second': r'([\d.]+) requests for leases',
}
UNITS = {'': 1, 'kB': 1e3, 'MB': 1e6}
NEAR = 0.2  # the seed gives the counts; the code may change them a little before somebody counts again


def documented():
    """The table, as {row: {appliances: count}}."""
    with open(FLEET_MD) as f:
        text = f.read()
    counted = text.index('counted by `polca-sim --seed 1')
    lines = re.search(r'(?:^\|.*\n)+', text[counted:], re.M).group().splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]
    sizes = [int(cell.replace(',', '')) for cell in head[1:]]
    return {row[0]: dict(zip(sizes, map(number, row[1:]))) for row in rows}


def number(cell):
    value, unit = re.fullmatch(r'([\d.,]+) ?(\w*)', cell).groups()
    return float(value.replace(',', '')) * UNITS[unit]


def test_counts_are_those_of_the_document(appliances):
    r = subprocess.run([POLCA_SIM, '--seed', '1', '--scenario', 'fleet_scale', '--appliances', str(appliances)],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert r.returncode == 0, r.stdout[-2000:]
    counts = ''.join(re.findall(r'^ +a (?:second|change): .*\n', r.stdout, re.M))
    table = documented()
    assert set(table) == set(ROWS), set(table) ^ set(ROWS)
    for row, pattern in ROWS.items():
        counted, says = float(re.search(pattern, counts).group(1)), table[row][appliances]
        assert abs(counted - says) <= NEAR * says, (appliances, row, counted, says)


for n in sys.argv[3:]:
    test_counts_are_those_of_the_document(int(n))
