# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A configuration with keys that every user of the host may read is warned of."""

import os
import re

import pytest

from polca import Polca
from polcapair import back_to_back


@pytest.mark.parametrize('mode,sm_key,warned', [
    (0o644, 0x1234, True), (0o640, 0x1234, False), (0o644, 1, False)])
def test_configuration_with_keys_is_private(sockets, mode, sm_key, warned):
    before = os.umask(0o666 & ~mode)
    try:
        name = 'keys-%o-%d' % (mode, sm_key)
        with Polca(sockets, back_to_back(), name=name, sa={'enabled': True, 'sm_key': sm_key}) as p:
            assert os.stat(p.config_path).st_mode & 0o777 == mode
            text = p.tail()
    finally:
        os.umask(before)
    advice = re.search(r'chgrp (\S+) (\S+); chmod 640 (\S+)', text)
    assert bool(advice) == warned
    assert not advice or advice.group(2) == advice.group(3) == p.config_path
    assert ('has sa.sm_key' in text) == warned
