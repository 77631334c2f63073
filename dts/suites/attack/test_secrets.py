# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A configuration with keys that every user of the host may read is warned of. The SA shows M_Keys to
holders of an operator's own SM_Key only, however often others ask, and bystanders go on."""

import json
import os
import re
import struct

import pytest

import mad
import sapeer
from bystanders import Bystanders
from mad import v2
from polca import Polca
from polcapair import back_to_back
from sawire import CmWire, node_json, port_json, SM_KEY

PORT_INFO_RECORD, LID, OFF_M_KEY = 0x12, 1, 4
M_KEY = 0x1122334455667788
WELL_KNOWN = 1  # the SM_Key that everybody knows
TIMES = 200


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


def test_reload_of_a_configuration_with_keys_that_all_may_read(sockets):
    before = os.umask(0o026)
    try:
        with Polca(sockets, back_to_back(), name='keys-reload', sa={'enabled': True, 'sm_key': 0x1234}) as p:
            assert 'has sa.sm_key' not in p.tail()
            os.chmod(p.config_path, 0o644)
            p.rpc('config_reload')
            assert p.config_path + ' has sa.sm_key, and every user of this host may read it' in p.tail()
    finally:
        os.umask(before)


@pytest.mark.parametrize('sm_key,shown', [(WELL_KNOWN, 0), (SM_KEY, M_KEY)])
def test_keys_of_ports_are_for_holders(kept, sockets, sm_key, shown):
    """Get of a PortInfoRecord, with the SM_Key of the configuration, after guesses of it."""
    wire = CmWire(kept, sockets, sa={'sm_key': sm_key})
    try:
        wire.polca.start()
        path = os.path.join(kept, 'ports.json')
        with open(path, 'w') as f:
            json.dump({'records': [node_json(LID), dict(port_json(LID), m_key='0x%x' % M_KEY)]}, f)
        with open(path) as f:
            assert wire.polca.rpc('sa_import', file=f, replace=True)['records'] == 2
        ask = v2(mad.GET, PORT_INFO_RECORD, struct.pack('!H', LID), mask=1)
        bystanders = Bystanders(wire)
        with wire.gsi() as gsi, bystanders.unharmed():
            for guess in range(2, 2 + TIMES):
                answer = gsi.ask(ask.but(tid=sapeer.new_tid(), sm_key=guess))
                assert answer.status != 0 and M_KEY.to_bytes(8, 'big') not in bytes(answer), answer
            answer = gsi.ask(ask.but(tid=sapeer.new_tid(), sm_key=sm_key))
            assert answer.status == 0
            assert struct.unpack_from('!Q', answer.data, OFF_M_KEY) == (shown,)
        bystanders.close()
        wire.audit()
    finally:
        wire.close()
