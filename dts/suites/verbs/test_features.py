# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Features of verbs that the distribution's example programs do not use."""

import os
import re
import struct

import pytest

from conn import wait_until
from guide import ROOT
from rdmacm import Device

TEST_SECONDS = 120


def test_memory_windows(programs, left):
    """Type 1 by ibv_bind_mw, type 2 by a posted bind; local invalidate, Send with Invalidate; what they refuse."""
    programs.probe('windows').end()


def test_a_program_that_ends_leaves_no_windows(polca, programs, left):
    before = len(polca.rpc('mw_list')['windows'])
    programs.probe('windows', 'leave').end()
    wait_until(lambda: len(polca.rpc('mw_list')['windows']) == before, timeout=20)


def test_the_newer_ways_to_post_and_poll(programs, left):
    """ibv_wr_* and extended CQs, beside what rdma-core's own tests do."""
    programs.probe('wr').end()


def test_a_batch_is_flushed_when_polca_ends(polca, programs):
    probe = programs.probe('wr', 'death')
    probe.wait_line('ready')
    polca.kill()
    probe.wait_line('flushed')
    polca.start()
    probe.end()


def test_reset_and_up_again(programs, left):
    """No request and no completion of before RESET is there after it; those of other queue pairs are."""
    programs.probe('reset').end()


def refusals():
    """Of docs/verbs.md: call -> error."""
    with open(os.path.join(ROOT, 'docs/verbs.md')) as f:
        chapter = f.read().split('### Verbs that are refused')[1].split('\n## ')[0]
    rows = re.findall(r'^\| (`ibv_.*?) \| (E\w+) \| .', chapter, re.M)
    return {call: error for calls, error in rows for call in re.findall(r'`(.+?)`', calls)}


def test_verbs_that_are_refused(programs, left):
    """Each with the error that the documentation says, and the objects that it was called for work on."""
    said = programs.probe('unsupported').end()
    got = dict(re.findall(r'^(ibv_.*): (.*)$', said, re.M))
    assert len(got) > 30 and got == refusals()


@pytest.mark.parametrize('known,served', [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (8, 8), (0xffffffffffffffff, 15)])
def test_features_that_both_sides_know(programs, known, served):
    """Bits of a provider that is newer than this polca have no answer."""
    device = Device(programs.socket, known)
    assert struct.unpack_from('<IIQ', device.hello) == (1, 4, served)
    device.close()
