# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""SMPs, packet by packet: the answers to valid ones, and the drop reason of invalid ones
(smp-sma 1, 2, 4, 6). After each packet that must not be answered, a valid one is sent: no other
answer may come before its answer."""

import random

import pytest

from ibports import DESCRIPTION, LID, PEER_LID, PORT_GUID, STATIC
from ibwire import PERMISSIVE
from smp import (ACTIVE, ARMED, BAD_ATTRIBUTE, BAD_METHOD, BAD_VERSION, D_BIT, directed, DIRECTED,
                 DOWN, GET, GET_RESP, GUID_INFO, INVALID_FIELD, lid_routed, NODE_DESC, NODE_INFO,
                 PKEY_TABLE, PORT_INFO, REPRESS, SEND, SET, SM_INFO, Smp, SWITCH_INFO, TRAP)

CONFIG = dict(ib=dict(STATIC, vls=4), live=dict(rate=0))
MAD = {'lid': lid_routed, 'route': directed}
BOTH = pytest.mark.parametrize('kind', ['lid', 'route'])


def ask(station, kind, *args, **kw):
    """An SMP and its answer."""
    wire = kw.pop('wire', {})
    mad = MAD[kind](*args, **kw)
    return station.ask(mad, permissive=kind == 'route', **wire)


def still_there(station):
    """Receive the answer; nothing else arrives before it."""
    p = station.ask(lid_routed(GET, NODE_DESC))
    assert p.smp.data == DESCRIPTION.encode().ljust(64, b'\0'), p.smp


# ---- right ones

def test_answer_by_lid(station):
    """GetResp, LIDs swapped, VL 15, QP0 to QP0, P_Key FFFF, Q_Key 0, no GRH, 72 words."""
    mad = lid_routed(GET, NODE_INFO.attr)
    p = station.ask(mad, pkey=0x1234, sl=0)
    assert (p.vl, p.sl, p.slid, p.dlid, p.grh) == (15, 0, LID, PEER_LID, None)
    assert (p.dqp, p.sqp, p.qkey, p.pkey, len(p.raw)) == (0, 0, 0, 0xffff, 290)
    assert p.smp.raw == mad[:3] + b'\x81' + mad[4:64] + bytes.fromhex((
        '01010101' '0002c90300770003' '0002c90300770000' '0002c90300770001' '0040' '1234'
        '000000a0' '01' '000a0b').ljust(128, '0')) + bytes(128)


def test_answer_by_directed_route(station):
    """D bit, hop pointer back to the hop count, ReturnPath written, both LIDs permissive."""
    mad = directed(GET, NODE_DESC)
    p = station.ask(mad, permissive=True)
    assert (p.slid, p.dlid) == (PERMISSIVE, PERMISSIVE)
    assert p.smp.raw == mad[:3] + b'\x81\x80\x00\x01\x01' + mad[8:64] + \
        DESCRIPTION.encode().ljust(64, b'\0') + mad[128:192] + b'\x00\x01' + bytes(62)


def test_hop_pointer_already_advanced(station):
    """smp-sma 2: HopPointer == HopCount + 1 is accepted, and the path entry there is kept."""
    p = station.ask(directed(GET, NODE_DESC, pointer=2, back=b'\0\x07'), permissive=True)
    assert (p.smp.status, p.smp.hop_pointer, p.smp.hops) == (D_BIT, 1, 1)


def test_no_hops(station):
    p = station.ask(directed(GET, NODE_DESC, path=(), pointer=0), permissive=True)
    assert (p.smp.status, p.smp.hop_pointer, p.smp.hops, p.smp.back) == (D_BIT, 0, 0, bytes(64))


def test_the_longest_route(station):
    path = tuple(range(1, 64))
    p = station.ask(directed(GET, NODE_DESC, path=path, back=b'\0' + bytes(path[:62])),
                    permissive=True)
    assert (p.smp.status, p.smp.hop_pointer, p.smp.hops) == (D_BIT, 63, 63)
    assert p.smp.initial == b'\0' + bytes(path) and p.smp.back[63] == 1


def test_directed_route_that_begins_at_a_lid(station):
    """DrSLID is the requester's LID; LRH LIDs are the request's, swapped."""
    p = station.ask(directed(GET, NODE_DESC, path=(), pointer=0, dr_slid=PEER_LID))
    assert (p.slid, p.dlid, p.smp.raw[32:36].hex()) == (LID, PEER_LID, '%04xffff' % PEER_LID)


@pytest.mark.parametrize('dlid', [LID, PERMISSIVE])
def test_lid_routed_to_the_permissive_lid(station, dlid):
    p = station.ask(lid_routed(GET, NODE_DESC), dlid=dlid)
    assert (p.dlid, p.smp.status) == (PEER_LID, 0)


# ---- answered with a status

@BOTH
@pytest.mark.parametrize('fields, status', [
    (dict(method=GET, attr=NODE_DESC, version=2), BAD_VERSION),
    (dict(method=GET, attr=NODE_DESC, version=0), BAD_VERSION),
    (dict(method=SEND, attr=NODE_DESC), BAD_METHOD),
    (dict(method=0x06, attr=NODE_DESC), BAD_METHOD),
    (dict(method=0x12, attr=NODE_DESC), BAD_METHOD),
    (dict(method=0x7f, attr=NODE_DESC), BAD_METHOD),
    (dict(method=GET, attr=SWITCH_INFO), BAD_ATTRIBUTE),
    (dict(method=GET, attr=0x19), BAD_ATTRIBUTE),
    (dict(method=GET, attr=SM_INFO), BAD_ATTRIBUTE),
    (dict(method=GET, attr=0xff00), BAD_ATTRIBUTE),
    (dict(method=GET, attr=0), BAD_ATTRIBUTE),
    (dict(method=SET, attr=NODE_DESC), BAD_ATTRIBUTE),
    (dict(method=SET, attr=NODE_INFO.attr), BAD_ATTRIBUTE),
    (dict(method=GET, attr=NODE_DESC, modifier=1), INVALID_FIELD),
    (dict(method=GET, attr=PORT_INFO.attr, modifier=2), INVALID_FIELD),
    (dict(method=GET, attr=PKEY_TABLE, modifier=2), INVALID_FIELD),
    (dict(method=GET, attr=GUID_INFO, modifier=4), INVALID_FIELD)])
def test_status(station, kind, fields, status):
    fields = dict(fields)
    p = ask(station, kind, fields.pop('method'), fields.pop('attr'), **fields)
    assert (p.smp.method, p.smp.status & 0x7fff) == (GET_RESP, status), p.smp
    assert bool(p.smp.status & D_BIT) == (kind == 'route')


# ---- dropped, by reason

def dropped(station, verdict, why, *packets):
    """Each of these packets is dropped for exactly this reason."""
    for send in packets:
        send()
    still_there(station)
    grown = verdict.grown()
    assert grown == {why: len(packets), 'datagram': 1}, grown


@pytest.mark.parametrize('pointer, hops', [(1, 2), (0, 1), (1, 3), (2, 3), (3, 1), (255, 1),
                                           (63, 10)])
def test_not_the_end_of_the_route(station, verdict, pointer, hops):
    """A channel adapter forwards nothing (C14-9)."""
    path = tuple([1] * hops)
    dropped(station, verdict, 'smp_route', lambda: station.tx(
        directed(GET, NODE_DESC, path=path, pointer=pointer, hops=hops), permissive=True))


@pytest.mark.parametrize('pointer, hops', [(64, 64), (65, 64), (255, 255), (0, 64), (1, 128)])
def test_too_many_hops(station, verdict, pointer, hops):
    """HopCount above 63."""
    dropped(station, verdict, 'smp_route', lambda: station.tx(
        directed(GET, NODE_DESC, pointer=pointer, hops=hops), permissive=True))


def test_route_that_goes_on_by_lid(station, verdict):
    """DrDLID is not permissive: the destination is another node."""
    dropped(station, verdict, 'smp_route', lambda: station.tx(
        directed(GET, NODE_DESC, dr_dlid=LID), permissive=True))


@pytest.mark.parametrize('pointer, dr_slid, why', [
    (1, PERMISSIVE, 'mad_unmatched'), (0, LID, 'mad_unmatched'), (2, PERMISSIVE, 'smp_route'),
    (1, LID, 'smp_route')])
def test_responses_that_nobody_waits_for(station, verdict, pointer, dr_slid, why):
    dropped(station, verdict, why, lambda: station.tx(
        directed(GET_RESP, NODE_DESC, pointer=pointer, status=D_BIT, dr_slid=dr_slid),
        permissive=True))


@BOTH
def test_trap_where_no_manager_is(station, verdict, kind):
    dropped(station, verdict, 'smp_no_sm', lambda: station.tx(
        MAD[kind](TRAP, 2), permissive=kind == 'route'))


def test_repress_of_no_trap(station, polca):
    """Not answered, and counted."""
    def counter():
        return polca.rpc('stats_get')['ports'][0]['sma']['repress_unmatched']
    before = counter()
    station.tx(lid_routed(REPRESS, 2))
    still_there(station)
    assert counter() == before + 1


@pytest.mark.parametrize('wrong', [
    dict(vl=0), dict(vl=7), dict(vl=14)], ids=lambda w: '%s' % w)
def test_qp0_on_another_lane(station, verdict, wrong):
    dropped(station, verdict, 'smp_invalid', lambda: station.tx(lid_routed(GET, NODE_DESC),
                                                                **wrong))


def test_vl15_to_qp1(station, verdict):
    dropped(station, verdict, 'smp_invalid', lambda: station.tx(
        lid_routed(GET, 1, cls=0x32), qpn=1, vl=15))


def test_with_a_global_header(station, verdict):
    sgid = bytes.fromhex('fe800000000000000002c90300770002')
    dgid = bytes.fromhex('fe80000000000000%016x' % PORT_GUID)
    dropped(station, verdict, 'smp_invalid', lambda: station.tx(
        lid_routed(GET, NODE_DESC), gids=(sgid, dgid)))


@pytest.mark.parametrize('cls', [0x03, 0x04, 0x32, 0x34, 0x80, 0x00])
def test_other_classes_on_qp0(station, verdict, cls):
    dropped(station, verdict, 'smp_invalid', lambda: station.tx(lid_routed(GET, NODE_DESC,
                                                                           cls=cls)))


@pytest.mark.parametrize('cls', [1, DIRECTED])
def test_smps_on_qp1(station, cls):
    """QP1 has no such class: it is not answered like an SMP."""
    p = station.ask(lid_routed(GET, NODE_DESC, cls=cls), qpn=1)
    assert (p.dqp, p.smp.status, p.smp.data) == (1, BAD_VERSION, bytes(64)), p.smp
    still_there(station)


@pytest.mark.parametrize('base', [0, 2, 0x80])
def test_base_version(station, verdict, base):
    dropped(station, verdict, 'mad_version', lambda: station.tx(lid_routed(GET, NODE_DESC,
                                                                           base=base)))


@pytest.mark.parametrize('dlid', [LID + 1, 0, 0xc000, 0xfffe, LID + 0x8000])
def test_not_our_lid(station, verdict, dlid):
    dropped(station, verdict, 'not_our_lid', lambda: station.tx(lid_routed(GET, NODE_DESC),
                                                                dlid=dlid))


@pytest.mark.parametrize('wrong, why', [
    (dict(icrc_xor=1), 'icrc'), (dict(icrc_xor=0x80000000), 'icrc'), (dict(vcrc_xor=1), 'vcrc'),
    (dict(vcrc_xor=0x8000), 'vcrc')], ids=str)
def test_crc(station, verdict, wrong, why):
    dropped(station, verdict, why, lambda: station.tx(lid_routed(GET, NODE_DESC), **wrong))


@pytest.mark.parametrize('octets', [0, 24, 64, 128, 252, 260, 512])
def test_length(station, verdict, octets):
    mad = (lid_routed(GET, NODE_DESC) + bytes(256))[:octets]
    dropped(station, verdict, 'mad_length', lambda: station.tx(mad))


@pytest.mark.parametrize('cut', [1, 30, 200, 270])
def test_cut_short(station, verdict, cut):
    """PktLen says more than there is."""
    raw = station.build(lid_routed(GET, NODE_DESC))
    station.raw(raw[:-cut])
    still_there(station)
    grown = verdict.grown()
    assert grown.pop('datagram') == 1
    assert sum(grown.values()) == 1 and set(grown) <= {'runt', 'length', 'grh'}, grown


@pytest.mark.parametrize('words', [0, 1, 5, 0x7ff])
def test_packet_length_field(station, verdict, words):
    station.tx(lid_routed(GET, NODE_DESC), words=words)
    still_there(station)
    grown = verdict.grown()
    assert grown.pop('datagram') == 1
    assert sum(grown.values()) == 1 and set(grown) <= {'runt', 'length', 'grh'}, grown


@pytest.mark.parametrize('wrong, why', [
    (dict(lnh=0), 'grh'), (dict(lnh=1), 'grh'), (dict(lver=1), 'grh'),
    (dict(flags=0x01), 'tver'), (dict(opcode=0xbf), 'opcode')], ids=str)
def test_headers(station, verdict, wrong, why):
    dropped(station, verdict, why, lambda: station.tx(lid_routed(GET, NODE_DESC), **wrong))


def test_another_ethertype(station, verdict):
    dropped(station, verdict, 'ethertype', lambda: station.tx(lid_routed(GET, NODE_DESC),
                                                              ethertype=0x88b6))


def test_another_mac(station, verdict):
    """The LID decides; a frame for another MAC is not for this port."""
    station.tx(lid_routed(GET, NODE_DESC), dst='02:00:00:00:77:99')
    still_there(station)
    grown = verdict.grown()
    assert grown.pop('datagram') == 1 and grown in ({}, {'not_our_mac': 1}), grown


def test_broadcast(station):
    """Directed-route SMPs from a sender that does not know our MAC."""
    station.tx(directed(GET, NODE_DESC), dst='ff:ff:ff:ff:ff:ff', permissive=True)
    assert station.rx().smp.status == D_BIT


def test_garbage(station, verdict):
    """Frames of random octets, short and long: each gets one verdict, and the port keeps
    working."""
    dice = random.Random(5)
    for n in list(range(0, 64)) + [100, 290, 291, 600, 1500]:
        station.raw(dice.randbytes(n))
    still_there(station)
    grown = verdict.grown()
    assert sum(grown.values()) == 64 + 5 + 1, grown


# ---- sets

def info(station, **kw):
    return ask(station, 'lid', GET, PORT_INFO.attr, 0, **kw).smp


def with_fields(data, **values):
    n = int.from_bytes(data, 'big')
    for k, v in values.items():
        at, width = PORT_INFO.at[k]
        shift = 512 - at - width
        n = n & ~(((1 << width) - 1) << shift) | v << shift
    return n.to_bytes(64, 'big')


def set_info(station, kind='lid', m_key=0, base=None, **values):
    base = info(station, m_key=m_key).data if base is None else base
    data = with_fields(base, **dict(dict(state=0, phys_state=0, reregister=0), **values))
    return ask(station, kind, SET, PORT_INFO.attr, 0, data=data, m_key=m_key).smp


@BOTH
@pytest.mark.parametrize('values', [
    dict(lid=0), dict(lid=0xc000), dict(lid=0xffff), dict(sm_lid=0), dict(sm_lid=0xfffe),
    dict(state=ARMED), dict(state=5), dict(phys_state=2, state=ARMED), dict(width_enabled=8),
    dict(speed_enabled=8), dict(mtu=0), dict(mtu=6), dict(oper_vls=5)], ids=str)
def test_invalid_field_of_portinfo(station, kind, values):
    """Status 0x001C: the wrong field keeps its value, the others are set, and the answer shows
    the result."""
    before = info(station).data
    a = set_info(station, kind, vl_high_limit=9, **values)
    assert (a.method, a.status & 0x7fff) == (GET_RESP, INVALID_FIELD), a
    for k in values:
        if k != 'phys_state':
            assert PORT_INFO.get(a.data, k) == PORT_INFO.get(before, k), (k, a)
    assert PORT_INFO.get(a.data, 'vl_high_limit') == 9
    assert set_info(station, vl_high_limit=0).status == 0
    assert info(station).data == before


def test_set_takes_effect_at_once(station, polca):
    """The new LID is answered, the old one is not."""
    a = set_info(station, lid=0x77, sm_lid=5)
    assert a.status == 0 and PORT_INFO.get(a.data, 'lid') == 0x77
    station.tx(lid_routed(GET, NODE_DESC))  # to the old one
    p = station.ask(lid_routed(GET, NODE_DESC), dlid=0x77)
    assert p.slid == 0x77
    port = polca.rpc('port_list')['ports'][0]
    assert (port['lid'], port['sm_lid']) == (0x77, 5)
    back = directed(SET, PORT_INFO.attr, data=with_fields(a.data, lid=LID, sm_lid=PEER_LID,
                                                          state=0, phys_state=0))
    assert station.ask(back, permissive=True).smp.status == D_BIT


def test_read_only_fields_stay(station):
    before = info(station).data
    a = set_info(station, cap_mask=0, local_port=9, width_supported=0, width_active=8, vl_cap=1,
                 mtu_cap=1, guid_cap=0, resp_time=1, diag_code=7)
    assert a.status == 0 and a.data == before


# ---- M_Key

KEY = 0x1122334455667788


@pytest.fixture
def guarded(station, request):
    """Configure the port with an M_Key and these protect bits."""
    protect = getattr(request, 'param', 1)
    a = set_info(station, base=info(station).data, **{'protect': protect})
    a = ask(station, 'lid', SET, PORT_INFO.attr, 0, data=with_fields(
        a.data, m_key=KEY, protect=protect, state=0, phys_state=0)).smp
    assert a.status == 0
    station.drain()
    yield protect
    station.drain()
    now = ask(station, 'lid', GET, PORT_INFO.attr, 0, m_key=KEY).smp
    back = with_fields(now.data, m_key=0, protect=0, m_key_violations=0, state=0, phys_state=0)
    assert ask(station, 'lid', SET, PORT_INFO.attr, 0, data=back, m_key=KEY).smp.status == 0


def guarded_ask(station, mad):
    """The answer, or None if the answer to the next packet came first."""
    end = lid_routed(GET, NODE_DESC, m_key=KEY)
    station.tx(mad)
    station.tx(end)
    first = station.rx().smp
    if first.tid == Smp(end).tid:
        return None
    assert station.rx().smp.tid == Smp(end).tid
    return first


@pytest.mark.parametrize('guarded', [0, 1, 2, 3], indirect=True)
def test_get_without_key(station, guarded):
    """Protect bits 0: everything is shown; 1: all but the key; 2 and 3: no answer."""
    a = guarded_ask(station, lid_routed(GET, PORT_INFO.attr))
    if guarded >= 2:
        assert a is None
    else:
        assert a.status == 0
        assert PORT_INFO.get(a.data, 'm_key') == (KEY if guarded == 0 else 0)
        assert PORT_INFO.get(a.data, 'm_key_violations') == 0


@pytest.mark.parametrize('guarded', [0, 1, 2, 3], indirect=True)
@BOTH
def test_set_without_key(station, verdict, guarded, kind):
    """Never answered, has no effect, counts as a violation."""
    mad = MAD[kind](SET, PORT_INFO.attr, 0, data=bytes(64), m_key=0)
    if kind == 'route':
        station.tx(mad, permissive=True)
        a = guarded_ask(station, lid_routed(SET, PKEY_TABLE, data=bytes(64)))
    else:
        a = guarded_ask(station, mad)
    assert a is None
    now = info(station, m_key=KEY)
    assert PORT_INFO.get(now.data, 'm_key') == KEY and PORT_INFO.get(now.data, 'state') == 4
    assert PORT_INFO.get(now.data, 'm_key_violations') == (2 if kind == 'route' else 1)
    assert verdict['mkey_violation'] == (2 if kind == 'route' else 1)


@BOTH
def test_right_key(station, guarded, kind):
    mad = MAD[kind](GET, PORT_INFO.attr, m_key=KEY)
    a = station.ask(mad, permissive=kind == 'route').smp
    assert a.status & 0x7fff == 0 and PORT_INFO.get(a.data, 'm_key') == KEY and a.m_key == KEY


# ---- the VL15 buffer

def test_burst(station, verdict):
    """Many at once: each is answered, or dropped and counted."""
    for _ in range(300):
        station.tx(lid_routed(GET, NODE_DESC))
    got = 0
    while station.maybe(0.5):
        got += 1
    assert got + verdict['vl15_dropped'] == 300 and got >= 1
    still_there(station)


def test_down(station):
    """The port goes down and trains, and its answer shows that it is Active again, as
    configured."""
    a = set_info(station, state=DOWN)
    assert a.status == 0 and PORT_INFO.get(a.data, 'state') == ACTIVE
    assert PORT_INFO.get(info(station).data, 'lid') == PORT_INFO.get(a.data, 'lid') != 0
