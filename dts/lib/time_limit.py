# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Time limits that grow with the machine's load.

A limit only ends a test that would otherwise hang; it never proves anything. With five runnable
processes per CPU, everything takes five times as long."""

import os
import time


def stretch():
    """How many times slower this machine is than an idle one."""
    with open('/proc/loadavg') as f:
        words = f.read().split()
    runnable = max(float(words[0]), float(words[3].split('/')[0]))
    return max(1.0, runnable / os.cpu_count())


def limit(seconds):
    """The limit for an idle machine, scaled to the present load."""
    return seconds * stretch()


def end(seconds):
    """The time at which a wait that begins now and may take this many seconds ends."""
    return time.monotonic() + limit(seconds)
