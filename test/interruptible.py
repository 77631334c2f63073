# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Ctrl-C for programs that run for many minutes."""
import signal


def _interrupted(*_):
    raise KeyboardInterrupt


def interruptible():
    """SIGINT and SIGTERM raise KeyboardInterrupt, so that the caller can clean up and report.
    SIGINT is set explicitly, because a non-interactive shell starts background programs with
    SIGINT ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupted)
