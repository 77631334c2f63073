# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The poll-mode drivers that need no hardware: RC traffic over each of them."""

import contextlib
import json
import os
import shutil
import signal
import socket

import pytest

import capture
from conn import Conn, PMTU, wait_until
from guest import Guest, Nic
from hca import Hca
from net import Namespace
from pattern import pattern
from polca import Polca, port
from polcapair import PolcaPair
from roce import NAK_ACCESS, Op, Station
from rxepair import MIB, RxePair

POLCA_MAC, STATION_MAC = '02:00:00:00:77:01', '02:00:00:00:77:02'
IP, IP6 = '10.77.0.1', 'fd77::1'


@contextlib.contextmanager
def running(kept, *polcas):
    """Start them in order; at the end all must stop with status 0, and their logs are kept."""
    try:
        for p in polcas:
            p.start()
        yield
        for p in reversed(polcas):
            p.stop()
    finally:
        for p in polcas:
            p.kill()
            if os.path.exists(p.log):
                shutil.copy(p.log, kept)


class Wire:
    """The parameters of conn.Conn for a wire whose other end is Scapy."""

    polca_ip, polca_ip6 = IP, IP6

    def __init__(self, ns, ifname, polca_mac):
        self.polca_mac = polca_mac
        self.station = Station(ns, ifname, STATION_MAC, '10.77.0.2', 'fd77::2')


def exercise(hca, wire, **attr):
    """The main operations in both directions, packet by packet."""
    for ipv6 in (False, True):
        c = Conn(hca, wire, ipv6=ipv6, **attr)
        c.post_buffer(8192)
        data = pattern(5, 3 * PMTU + 7)
        psns = c.send(data)
        c.peer.expect_acked(psns[-1])
        assert c.qp.poll()[0].byte_len == len(data) and c.mr.read(0, len(data)) == data
        psns = c.write(pattern(6, 2 * PMTU), off=16384)
        c.peer.expect_acked(psns[-1])
        assert c.mr.read(16384, 2 * PMTU) == pattern(6, 2 * PMTU)
        psn = c.next(3)
        c.peer.read(psn, c.va, c.key, 2 * PMTU + 1)
        assert c.read_answer(psn, 2 * PMTU + 1) == data[:2 * PMTU + 1]
        psn = c.next()
        c.peer.fetch_add(psn, c.va + 32768, c.key, 4)
        c.peer.expect(Op.ATOMIC_ACK, psn, original=0)
        c.qp.post_send('write', wr_id=1, sg=[(c.mr, 0, 2 * PMTU)], remote_addr=0x1000, rkey=5)
        got = c.requests(2)
        assert b''.join(bytes(r.payload) for r in got) == data[:2 * PMTU]
        c.peer.ack(got[-1].psn, 1)
        assert c.qp.poll()[0].status == 0
        psn = c.next()
        c.peer.write_only(psn, c.va, c.key ^ 0x100, b'x')
        c.peer.expect_nak(NAK_ACCESS, psn)
        c.close()


def by_hand(kept, sockets, name, device, ifnames, workers=1, before=None, **more):
    """Polca on device in a namespace, Scapy on the other end, everything captured and checked.

    ifnames: Polca's interface and Scapy's; they are the same if the driver creates a tap."""
    with Namespace() as ns:
        if ifnames[0] != ifnames[1]:
            ns.veth(*ifnames, mac_a=POLCA_MAC, mac_b=STATION_MAC)
        p = Polca(sockets, [port('port0', device, IP + '/24', IP6 + '/64')], ns=ns, name=name,
                  workers=workers, **more)
        with running(kept, p):
            cap = capture.Capture(ns, ifnames[1], os.path.join(kept, name + '.pcap'))
            mac = p.rpc('port_list')['ports'][0]['mac']
            wire = Wire(ns, ifnames[1], mac)
            try:
                yield p, wire
            finally:
                wire.station.close()
                cap.stop()
            capture.check(cap.path, mac)


on_wire = contextlib.contextmanager(by_hand)


def driver(p):
    return p.rpc('port_list')['ports'][0]['driver']


def test_af_packet(kept, sockets):
    with on_wire(kept, sockets, 'afp', 'net_af_packet0,iface=pv0', ('pv0', 'st0')) as (p, wire):
        assert driver(p) == 'net_af_packet'
        exercise(Hca(p), wire)


def test_af_packet_with_two_queues_and_workers(kept, sockets):
    """Packets reach their queue pair whichever queue the kernel chooses: by hand-off."""
    with on_wire(kept, sockets, 'afp2', 'net_af_packet0,iface=pv0,qpairs=2', ('pv0', 'st0'),
                 workers=2) as (p, wire):
        assert p.rpc('port_list')['ports'][0]['rx_queues'] == 2
        h = Hca(p)
        for worker in (0, 1):
            exercise_on_worker(h, wire, worker)
        workers = p.rpc('worker_list')['workers']
        assert sum(w['handoff_in'] for w in workers) > 0
        assert sum(w['handoff_full'] for w in workers) == 0


def test_fewer_queues_than_workers(kept, sockets):
    """Polca reports this at start, and everything works: one worker hands packets to the other."""
    with on_wire(kept, sockets, 'afp1', 'net_af_packet0,iface=pv0', ('pv0', 'st0'),
                 workers=2) as (p, wire):
        assert ('port0: net_af_packet has 1 receive queue for 2 workers: worker 0 hands the '
                'others their packets') in p.tail()
        exercise_on_worker(Hca(p), wire, 1)


def link(ns, name):
    """The kernel's settings of an interface: MTU, MAC address, and whether it is promiscuous."""
    row, = json.loads(ns.exec(['ip', '-j', '-d', 'link', 'show', 'dev', name]))
    return row['mtu'], row['address'], 'PROMISC' in row['flags']


@pytest.mark.parametrize('driver_name', ['af_packet', 'af_xdp'])
def test_the_interface_is_restored(kept, sockets, driver_name):
    """While Polca runs, the interface has a larger MTU and another MAC address: path MTU 4096
    works over af_packet. Afterwards the old values are restored."""
    mtu = {'af_packet': 4200, 'af_xdp': 3000}[driver_name]
    mac = '02:00:00:00:77:09'
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        before = link(ns, 'pv0')
        assert before == (1500, POLCA_MAC, False)
        p = Polca(sockets, [port('port0', 'net_%s0,iface=pv0' % driver_name, IP + '/24', IP6 + '/64',
                                 mtu=mtu, **({'mac': mac} if driver_name == 'af_packet' else {}))],
                  ns=ns, name='restore-' + driver_name)
        with running(kept, p):
            assert p.rpc('port_list')['ports'][0]['mtu'] == mtu
            assert link(ns, 'pv0')[0] == mtu
            assert 'port0: pv0 is changed while Polca runs, and restored at the end; by hand: ip link ' \
                'set pv0 mtu 1500' in p.tail()
            if driver_name == 'af_packet':
                assert link(ns, 'pv0')[1] == mac
        assert link(ns, 'pv0') == before


def test_what_others_changed_is_not_restored(kept, sockets):
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        p = Polca(sockets, [port('port0', 'net_af_packet0,iface=pv0', IP + '/24', mtu=4200)], ns=ns,
                  name='others')
        with running(kept, p):
            ns.ip('link', 'set', 'pv0', 'mtu', 2000)
        assert link(ns, 'pv0')[0] == 2000


@pytest.mark.parametrize('driver_name', ['af_packet', 'af_xdp'])
def test_the_interface_is_restored_after_a_kill(kept, sockets, driver_name):
    """A killed process left the interface changed; the next one restores it, at its start or at
    its end."""
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        before = link(ns, 'pv0')

        def polca(**keys):
            return Polca(sockets, [port('port0', 'net_%s0,iface=pv0' % driver_name, IP + '/24', **keys)],
                         ns=ns, name='killed-' + driver_name)
        first, second = polca(mtu=3000, promiscuous=True), polca()
        with running(kept, second):
            second.stop()
            first.start()
            first.kill()
            assert link(ns, 'pv0') == (3000, POLCA_MAC, True)
            second.start()
            assert link(ns, 'pv0')[0] == second.rpc('port_list')['ports'][0]['mtu'] == 1500
            assert 'port0: pv0 was still as a killed process had changed it, and is restored' in second.tail()
        assert link(ns, 'pv0') == before


def test_what_was_restored_is_not_restored_again(kept, sockets):
    """An end without a kill leaves no record of the interface's old state, although polca gave up
    root: an operator's later change stays, even to the value that polca had set."""
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        for mtu in (4200, None):
            p = Polca(sockets, [port('port0', 'net_af_packet0,iface=pv0', IP + '/24',
                                     **({'mtu': mtu} if mtu else {}))], ns=ns, name='again')
            with running(kept, p):
                assert link(ns, 'pv0')[0] == 4200
            assert link(ns, 'pv0')[0] == (1500 if mtu else 4200)
            ns.ip('link', 'set', 'pv0', 'mtu', 4200)


@pytest.mark.parametrize('driver_name', ['af_packet', 'af_xdp', 'pcap'])
def test_the_port_is_down_when_its_interface_is(kept, sockets, driver_name):
    """At start, when it is set down, and when the other end takes its carrier; traffic resumes
    when it is up. net_pcap does not open an interface that is down."""
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        p = Polca(sockets, [port('port0', 'net_%s0,iface=pv0' % driver_name, IP + '/24', IP6 + '/64')],
                  ns=ns, name='down-' + driver_name)

        def state_is(state):
            wait_until(lambda: p.rpc('port_list')['ports'][0]['state'] == state)
        if driver_name != 'pcap':
            ns.ip('link', 'set', 'pv0', 'down')
        with running(kept, p):
            if driver_name != 'pcap':
                assert p.rpc('port_list')['ports'][0]['state'] == 'DOWN'
                assert 'port0: link is down: pv0 is down or has no carrier' in p.tail()
            ns.ip('link', 'set', 'pv0', 'up')
            state_is('ACTIVE')
            for end in ('st0', 'pv0'):
                ns.ip('link', 'set', end, 'down')
                state_is('DOWN')
                ns.ip('link', 'set', end, 'up')
                state_is('ACTIVE')
            wire = Wire(ns, 'st0', p.rpc('port_list')['ports'][0]['mac'])
            try:
                exercise(Hca(p), wire)
            finally:
                wire.station.close()


KERNEL = 'port0: the kernel of this host holds 10.77.0.1 on %s as well and refuses RoCE packets to it ' \
    '(ICMP port unreachable). Type: ip addr del 10.77.0.1/24 dev %s'


@pytest.mark.parametrize('device,holder,told', [
    ('net_af_packet0,iface=pv0', 'pv0', True), ('net_af_packet0,iface=pv0', 'dm0', True),
    ('net_af_xdp0,iface=pv0', 'pv0', True), ('net_tap0,iface=pt0', 'dm0', True),
    ('net_memif0,role=server,socket-abstract=no,socket=%s/km', 'dm0', False),
    ('net_vhost0,iface=%s/kv,queues=1', 'dm0', False)])
def test_a_kernel_with_our_address_is_noticed_at_start(kept, sockets, device, holder, told):
    """Where, and only where, the kernel sees the port's packets."""
    with Namespace() as ns:
        ns.veth('pv0', 'st0')
        ns.veth('dm0', 'dm1')
        ns.ip('addr', 'add', IP + '/24', 'dev', holder)
        p = Polca(sockets, [port('port0', device % sockets if '%' in device else device, IP + '/24')],
                  ns=ns, name='kernel')
        if os.path.exists(p.log):
            os.unlink(p.log)
        with running(kept, p):
            assert (KERNEL % (holder, holder) in p.tail()) == told, p.tail()
            assert ('the kernel of this host' in p.tail()) == told, p.tail()


def exercise_on_worker(h, wire, worker):
    """Sixteen connections with different UDP source ports, all owned by one worker."""
    conns = [Conn(h, wire, qp={'worker': worker}) for _ in range(16)]
    for i, c in enumerate(conns):
        c.peer.sport = 0xc000 + 37 * i
        psns = c.write(pattern(i, 2 * PMTU))
        c.peer.expect_acked(psns[-1])
        assert c.mr.read(0, 2 * PMTU) == pattern(i, 2 * PMTU)
        c.close()


def test_af_xdp(kept, sockets):
    with on_wire(kept, sockets, 'xdp', 'net_af_xdp0,iface=pv0', ('pv0', 'st0')) as (p, wire):
        assert driver(p) == 'net_af_xdp'
        exercise(Hca(p), wire)


def test_af_xdp_with_the_largest_mtu(kept, sockets):
    """A larger MTU is rejected with the limit; frames of this size and of others are sent and
    received."""
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)

        def polca(mtu):
            ns.ip('link', 'set', 'st0', 'mtu', min(mtu, 3246))
            return Polca(sockets, [port('port0', 'net_af_xdp0,iface=pv0', IP + '/24', mtu=mtu)], ns=ns,
                         name='xdp-mtu')
        ns.ip('addr', 'add', '10.77.0.2/24', 'dev', 'st0')
        said = polca(3247).fails()
        assert said.splitlines()[-1] == \
            'polca: port0: mtu: got 3247, net_af_xdp allows up to 3246: a buffer is in one page', said
        for mtu in (1800, 3000, 3246):
            p = polca(mtu)
            with running(kept, p):
                ns.exec(['ping', '-c', '1', '-w', '10', '-M', 'do', '-s', str(mtu - 28), IP])


def test_af_xdp_says_why_it_does_not_start(kept, sockets):
    """The last line says what to do; a successful start prints nothing of libbpf's."""
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)

        def polca(**arg):
            more = ''.join(',%s=%s' % a for a in arg.items())
            return Polca(sockets, [port('port0', 'net_af_xdp0,iface=pv0' + more, IP + '/24')], ns=ns,
                         name='xdp-why')
        said = polca(start_queue=3).fails().splitlines()
        assert said[-1] == 'polca: port0: device net_af_xdp0,iface=pv0,start_queue=3: start_queue=3, ' \
            'queue_count=1: pv0 has 1 queue, from 0 on; ethtool -l pv0 shows them', said
        ns.ip('link', 'set', 'st0', 'mtu', 9000)
        said = polca().fails().splitlines()
        assert said[-1].startswith('polca: port0: device net_af_xdp0,iface=pv0: the kernel says: ') and \
            said[-1].endswith('Peer MTU is too large to set XDP. Type at the other end: ip link set '
                              'NAME mtu 1500'), said
        ns.ip('link', 'set', 'st0', 'mtu', 1500)
        p = polca()
        with running(kept, p):
            assert 'libbpf' not in p.tail() and 'libxdp' not in p.tail(), p.tail()


def flood(ns, ifname, count, to=POLCA_MAC):
    """Frames of an experimental EtherType to Polca's address, as fast as the kernel takes them."""
    frame = bytes.fromhex((to + STATION_MAC).replace(':', '') + '88b5') + bytes(50)
    with ns.call(socket.socket, socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind((ifname, 0))
        for _ in range(count):
            s.send(frame)


@pytest.mark.parametrize('driver_name', ['af_packet', 'af_xdp', 'pcap'])
def test_a_full_receive_ring_is_counted(kept, sockets, driver_name):
    """Polca is stopped until the receive ring of its second port is full. Then each frame was received or is
    in that port's rx_missed."""
    sent, mac = 20000, '02:00:00:00:79:01'
    with Namespace() as ns:
        ns.veth('pv0', 'st0', mac_a=POLCA_MAC, mac_b=STATION_MAC)
        ns.veth('pv1', 'st1', mac_a=mac, mac_b='02:00:00:00:79:02')
        p = Polca(sockets, [port('port0', 'net_%s0,iface=pv0' % driver_name, IP + '/24'),
                            port('port1', 'net_%s1,iface=pv1' % driver_name, '10.79.0.1/24')], ns=ns,
                  name='full-' + driver_name)
        with running(kept, p):
            def counted(index=1):
                row = p.rpc('stats_get')['ports'][index]
                return row['rx_packets'], row['rx_missed']

            before = sum(counted())
            flood(ns, 'st1', 10, mac)
            wait_until(lambda: counted()[0] >= before + 10)
            assert counted()[1] == 0
            p.proc.send_signal(signal.SIGSTOP)
            try:
                flood(ns, 'st1', sent, mac)
            finally:
                p.proc.send_signal(signal.SIGCONT)
            wait_until(lambda: sum(counted()) >= before + 10 + sent)
            assert counted()[1] > 0 and counted(0)[1] == 0
            # and no more once there is room
            missed = counted()[1]
            flood(ns, 'st1', 10, mac)
            wait_until(lambda: sum(counted()) >= before + 20 + sent)
            assert counted()[1] == missed


def test_tap(kept, sockets):
    with on_wire(kept, sockets, 'tap', 'net_tap0,iface=pt0', ('pt0', 'pt0')) as (p, wire):
        assert driver(p) == 'net_tap'
        h = Hca(p)
        exercise(h, wire)
        fragments_are_dropped(h, wire)


def fragments_are_dropped(h, wire):
    """Tested here, because the kernel reassembles fragments before an AF_PACKET ring sees them."""
    c = Conn(h, wire)
    for ip in ({'flags': 'MF'}, {'frag': 5}):
        before = h.verdicts()
        c.station.send(c.peer.build(Op.WRITE_ONLY, c.psn, b'evil', reth=(c.va, c.key, 4),
                                    ackreq=1, ip=ip))
        wait_until(lambda: h.verdicts()['ip_fragment'] == before['ip_fragment'] + 1)
        c.sync()
    assert c.mr.read(0, 4) == bytes(4)
    c.close()


def pair_of(kept, sockets, ports_a, ports_b, mtu=1024):
    a = Polca(sockets, [ports_a], name='a')
    b = Polca(sockets, [ports_b], name='b')
    with running(kept, a, b):
        p = PolcaPair(Hca(a), '10.77.0.1', Hca(b), '10.77.0.2', mtu=mtu)
        p.all_operations()
        p.atomics()
        p.move('write', MIB, seed=3)
        p.move('read', MIB, seed=4)


@pytest.mark.parametrize('mtu', [1024, 4096])
def test_memif(kept, sockets, mtu):
    """Two processes with shared memory between them."""
    path = os.path.join(sockets, 'memif')
    device = 'net_memif0,role=%s,id=0,socket-abstract=no,socket=' + path + ',bsize=8192'
    keys = {'mtu': mtu + 80} if mtu > 1024 else {}
    pair_of(kept, sockets, port('port0', device % 'server', '10.77.0.1/24', **keys),
            port('port0', device % 'client', '10.77.0.2/24', **keys), mtu)


@pytest.mark.parametrize('mtu', [256, 4096])
def test_back_to_back(kept, sockets, mtu):
    """net_ring inside one process."""
    keys = {'mtu': 4200} if mtu > 1024 else {}
    p = Polca(sockets, [
        dict(name='port0', back_to_back='port1', addresses=['10.77.0.1/24', 'fd77::1/64'], **keys),
        dict(name='port1', back_to_back='port0', addresses=['10.77.0.2/24', 'fd77::2/64'],
             **keys)], workers=2)
    with running(kept, p):
        a, b = Hca(p, 0), Hca(p, 1)
        for ips in (('10.77.0.1', '10.77.0.2'), ('fd77::1', 'fd77::2')):
            pair = PolcaPair(a, ips[0], b, ips[1], mtu=mtu)
            pair.all_operations()
            pair.atomics()
            pair.move('write', MIB, seed=3)
            pair.move('read', MIB, seed=4)


def test_vhost(kept, sockets):
    """A QEMU guest's own NIC with jumbo frames: soft-RoCE at path MTUs that do not fit a
    standard MTU."""
    path = os.path.join(sockets, 'vhost')
    p = Polca(sockets, [port('port0', 'net_vhost0,iface=%s,queues=1,client=0' % path,
                             '10.99.0.1/24', 'fd99::1/64', mtu=4200)])
    guest = Guest(kept, Nic.vhost(path), ip='10.99.0.2/24', ip6='fd99::2/64', mtu=4200, tcp=False)
    guest.agent_path, guest.rdma_path = (os.path.join(sockets, n) for n in ('agent', 'rdma'))
    with running(kept, p), guest:
        guest.start().wait_ready()
        h = Hca(p)
        wait_until(lambda: p.rpc('port_list')['ports'][0]['state'] == 'ACTIVE', timeout=30)
        for mtu in (4096, 2048, 1024):
            r = RxePair(h, guest, mtu=mtu)
            for i, op in enumerate(('send', 'write', 'write_imm', 'read')):
                for size in (0, 1, mtu, 3 * mtu + 5) + ((MIB,) if mtu == 4096 else ()):
                    r.from_polca(op, size, seed=10 * i + size)
                    r.from_rxe(op, size, seed=10 * i + size + 1)
        r = RxePair(h, guest, ipv6=True, polca_ip='fd99::1', mtu=4096)
        r.from_polca('send', 9000, seed=1)
        r.from_rxe('send', 9000, seed=2)
        assert guest.run('ping -c 3 -s 4000 10.99.0.1').status == 0
        assert guest.run('ping -6 -c 3 fd99::1').status == 0
