#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Does the service's unit allow each system call of the list that polca sets itself?

usage: check_unit_calls.py

The unit's groups (@system-service) are looked up as this host's systemd has them. Calls that only a kind of
link makes are in that link's drop-in.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
UNITS = os.path.join(ROOT, 'config', 'systemd')
sys.path.insert(0, os.path.join(ROOT, 'dts', 'lib'))

import system_calls  # noqa: E402

# 64-bit hosts have no such calls
OF_32_BITS = {'_llseek', 'fcntl64', 'ftruncate64', 'mmap2'}


def expand(name):
    """The calls of a group, and of the groups in it; a call is itself."""
    if not name.startswith('@'):
        return {name}
    text = subprocess.run(['systemd-analyze', 'syscall-filter', '--no-pager', name], check=True,
                          capture_output=True, text=True).stdout
    words = [line.strip() for line in text.splitlines()[1:]]
    return set().union(*(expand(w) for w in words if w and not w.startswith('#')))


def allowed(*files):
    """What the SystemCallFilter lines of unit and drop-ins allow."""
    calls = set()
    for name in files:
        with open(os.path.join(UNITS, name)) as f:
            for value in re.findall(r'^SystemCallFilter=(.*)$', f.read(), re.M):
                assert not value.startswith('~'), value
                for word in value.split():
                    calls |= expand(word)
    return calls


def main():
    ours = system_calls.Allowed()
    lacking = ours.calls - OF_32_BITS - allowed('polca.service.in')
    for name in sorted(lacking):
        print('polca makes %s, which polca.service does not allow' % name)
    xdp = ours.of(['af_xdp'])[0] - ours.calls - allowed('af_xdp.conf')
    for name in sorted(xdp):
        print('polca makes %s for af_xdp, which af_xdp.conf does not allow' % name)
    return 1 if lacking or xdp else 0


if __name__ == '__main__':
    sys.exit(main())
