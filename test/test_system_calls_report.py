#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What `dts/run --trace` says of recorded system calls. usage: test_system_calls_report.py"""

import os
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
sys.path.insert(0, os.path.join(ROOT, 'dts', 'lib'))

import system_calls  # noqa: E402


def report(calls, whole):
    """Of one process of af_packet that made these calls under its filter."""
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, 'af_packet-1-0.strace'), 'w') as f:
            f.write('7 execve("polca", ...) = 0\n')  # before the filter: it needs no place in the list
            f.write('7 seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, {len=1}) = 0\n')
            f.writelines('7 %s(1) = 0\n' % c for c in sorted(calls))
        return system_calls.report(d, whole)


def main():
    made = system_calls.Allowed().calls - set(system_calls.reasons())
    assert len(made) > 50
    assert report(made, whole=True)
    # a listed call without a reason: a part of the suites may lack it, all of them may not
    assert report(made - {'futex'}, whole=False)
    assert not report(made - {'futex'}, whole=True)
    # a call that the list lacks
    assert not report(made | {'execve'}, whole=False)
    # nothing was recorded
    assert not report(set(), whole=False)


if __name__ == '__main__':
    main()
