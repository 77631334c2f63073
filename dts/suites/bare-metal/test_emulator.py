# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The machine itself: an emulator that dies does not fail the tests behind it."""

import os
import signal

import pytest

from guest import GuestError

booted = []  # the emulators that this test has seen


def test_emulator_that_a_signal_ends(bench):
    """The error says how it ended. This test kills the first emulator and passes with a second one."""
    booted.append(bench.metal.proc.pid)
    if len(booted) == 1:
        os.kill(bench.metal.proc.pid, signal.SIGSEGV)
        with pytest.raises(GuestError, match='guest metal is gone, QEMU status -11'):
            while True:
                bench.check('true')
        pytest.fail('conftest.py repeats it')
    assert len(set(booted)) == 2
    assert bench.check('echo again') == 'again\n'
