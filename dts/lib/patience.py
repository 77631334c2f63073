# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Time limits that grow with the machine's load.

A limit only ends a test that would otherwise hang: it is never what a test proves. On a machine
with five runnable processes for each CPU, everything takes five times as long."""

import os
import time


def stretch():
    """How many times slower this machine is than an idle one."""
    with open('/proc/loadavg') as f:
        words = f.read().split()
    runnable = max(float(words[0]), float(words[3].split('/')[0]))
    return max(1.0, runnable / os.cpu_count())


def limit(seconds):
    """This limit of an idle machine, as it is now."""
    return seconds * stretch()


def end(seconds):
    """When a wait of at most so many seconds, which begins now, is given up."""
    return time.monotonic() + limit(seconds)
