# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The kernel's hugepages of 2 MiB: count them, and reserve more during a test.

They belong to the whole host: while a test reserves or counts them, a lock excludes tests of
other processes (dts/run's lanes)."""

import contextlib
import fcntl

LOCK = '/run/polca-dts-hugepages.lock'


def count():
    """{'Total': pages, 'Free': pages, ...}"""
    with open('/proc/meminfo') as f:
        lines = [line.split() for line in f if line.startswith('HugePages_')]
    return {name[10:-1]: int(n) for name, n in lines}


def _reserve(n):
    with open('/proc/sys/vm/nr_hugepages', 'w') as f:
        f.write(str(n))


@contextlib.contextmanager
def free(pages):
    """Reserve until at least this many pages are free, for the caller only; the reservation is
    undone afterwards."""
    with open(LOCK, 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        now = count()
        _reserve(now['Total'] + max(0, pages - now['Free']))
        try:
            assert count()['Free'] >= pages, 'the kernel finds no %d MiB in pieces of 2 MiB' % (2 * pages)
            yield
        finally:
            _reserve(now['Total'])
