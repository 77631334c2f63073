# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Features of verbs that the distribution's example programs do not use."""

from conn import wait_until

TEST_SECONDS = 120


def test_memory_windows(programs, left):
    """Type 1 by ibv_bind_mw, type 2 by a posted bind; local invalidate, Send with Invalidate; what they refuse."""
    programs.probe('windows').end()


def test_a_program_that_ends_leaves_no_windows(polca, programs, left):
    before = len(polca.rpc('mw_list')['windows'])
    programs.probe('windows', 'leave').end()
    wait_until(lambda: len(polca.rpc('mw_list')['windows']) == before, timeout=20)
