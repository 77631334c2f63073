# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""librdmacm's commands from a program that sends what it likes, or dies at any time."""

import contextlib
import errno
import os
import random
import signal
import struct
import time

import pytest

from conn import wait_until
from net import Namespace
from polca import Polca, port
from rdmacm import (ADDR_RESOLVED, COMMANDS, CONNECT_REQUEST, CONNECT_RESPONSE, REJECTED, CmClient, CmError, Device,
                    pair_until_listening, until_listening)
from verbs import best_of_rounds

TEST_SECONDS = 240
PORT0, PORT1 = '192.0.2.1', '192.0.2.2'


@contextlib.contextmanager
def refused(number):
    with pytest.raises(CmError) as e:
        yield
    assert e.value.errno == number, e.value


@pytest.fixture
def clients(polca, programs):
    """clients(): a new program. Afterwards no descriptor and no connection is left, and programs go on."""
    fds = '/proc/%d/fd' % polca.proc.pid
    devices = []
    for _ in range(2):  # a worker's pipe, which stays, is made for its first program: both workers have theirs now
        devices.append(Device(programs.socket))
        devices[-1].queue_pair()
    for d in devices:
        d.close()
    wait_until(lambda: polca.rpc('qp_list')['qps'] == polca.rpc('client_list')['clients'] == [], timeout=20)
    before = len(os.listdir(fds))
    made = []

    def connect():
        made.append(CmClient(programs.socket))
        return made[-1]
    yield connect
    for c in made:
        c.close()
    wait_until(lambda: len(os.listdir(fds)) == before and not standing(polca), timeout=20)
    pair_until_listening(programs, ('rping', '-s', '-C', 2), ('rping', '-c', '-C', 2, '-a', PORT1))


def standing(polca):
    return [c for c in polca.rpc('cm_list')['connections'] if c['state'] != 'TIMEWAIT']


@pytest.fixture
def qpn(programs):
    """qpn(): a queue pair of this process, on polca0."""
    made = []

    def create():
        made.append(Device(programs.socket))
        return made[-1].queue_pair()
    yield create
    for s in made:
        s.close()


@pytest.fixture
def one_each(sockets, built_in):
    """one_each(options): an appliance with these limits of the verbs socket, and its socket.

    cm: options of the configuration's section cm; ports, ns: instead of the built-in ones.
    """
    path = os.path.join(sockets, 'few-verbs')
    started = []

    def start(cm=None, ports=None, ns=None, **limits):
        started.append(Polca(sockets, ports or built_in['ports'], workers=2, name='few', cm=cm or {}, ns=ns,
                             verbs={'enabled': True, 'socket': path, **limits}))
        return started[-1].__enter__(), path
    yield start
    for p in started:
        p.__exit__(None, None, None)


def limit_line(p, what, text):
    """Wait for the line of our own process that says which limit was reached."""
    line = 'verbs: limit reached: %s by user root (0), process %d: %s' % (what, os.getpid(), text)
    wait_until(lambda: line in p.tail(10000).splitlines(), timeout=10)


# --- what is not a command ---

@pytest.mark.parametrize('seed', range(4))
def test_any_commands(clients, seed):
    """Commands of the right sizes with any contents, mostly small numbers, which name IDs."""
    rng = random.Random(seed)
    c = clients()
    channels = [c.channel() for _ in range(3)]
    done = 0
    for i in range(1500):
        name = 'CREATE_ID' if i % 8 == 0 else rng.choice(list(COMMANDS))
        body = b''.join(struct.pack('<I', rng.choice((0, 0, 1, 1, 2, 3, 5, 0x0106, 0xffffffff, rng.getrandbits(32))))
                        for _ in range(COMMANDS[name][1] // 4))
        if name in ('BIND_IP', 'RESOLVE_IP') and rng.random() < 0.7:
            body = bytearray(body)
            at = 8 if name == 'BIND_IP' else 28
            body[at:at + 8] = struct.pack('<HH', 2, rng.getrandbits(16)) + bytes((192, 0, 2, rng.choice((1, 2, 77))))
        if name == 'CREATE_ID' and rng.random() < 0.7:
            body = struct.pack('<QQH', rng.getrandbits(64) | 1, 0, 0x0106)
        try:
            c.command(rng.choice(channels), name, bytes(body), id=rng.randrange(20) if COMMANDS[name][2] is not None
                      else None, source=rng.choice(channels))
            done += 1
        except CmError as e:
            assert e.errno != errno.EPROTO, e
    assert done > 150


@pytest.mark.parametrize('seed', range(2))
def test_any_bytes(clients, seed):
    rng = random.Random(seed)
    c = clients()
    channel = c.channel()
    for _ in range(500):
        with contextlib.suppress(CmError):
            c.raw(channel, rng.randbytes(rng.randrange(0, 640)))
    c.create(channel)


def test_wrong_sizes(clients):
    c = clients()
    channel = c.channel()
    c.create(channel)
    for name, (number, size, _) in COMMANDS.items():
        short = struct.pack('<IHH', number, size - 4, 512) + bytes(size - 4)
        with refused(errno.EINVAL):
            c.raw(channel, short)
        with refused(errno.EINVAL):  # it says more than there is
            c.raw(channel, struct.pack('<IHH', number, size + 64, 512) + bytes(size))
    with refused(errno.EINVAL):
        c.raw(channel, b'1234')
    for number in (13, 16, 17, 22, 99):  # GET_OPTION, multicast, and none
        with refused(errno.ENOSYS):
            c.raw(channel, struct.pack('<IHH', number, 64, 512) + bytes(64))
    with refused(errno.EBADF):
        c.create(channel + 1)


def test_sessions_are_of_one_kind(clients, programs):
    """A device's requests are none of librdmacm's, and the other way round."""
    d = Device(programs.socket)
    assert d.send(18)[0] == errno.EPROTO
    d.close()
    c = clients()
    assert c.send(2)[0] == errno.EPROTO


# --- names ---

def test_ids_are_the_channels_own(clients):
    a, b = clients(), clients()
    mine, other = a.channel(), a.channel()
    id = a.create(mine)
    with refused(errno.EINVAL):
        a.bind(other, id, PORT0)
    with refused(errno.ENOENT):
        a.bind(mine, id + 1, PORT0)
    theirs = b.channel()
    with refused(errno.ENOENT):  # another program's number is not the same ID
        b.destroy(theirs, id)
    a.bind(mine, id, PORT0)


def test_another_programs_queue_pair(polca, clients, programs, qpn):
    """Only queue pairs of this process are connected."""
    job = programs.spawn('ibv_rc_pingpong', '-d', 'polca0', '-g', '0', '-p', 18660)
    job.wait_listening(18660)
    foreign = polca.rpc('qp_list')['qps'][-1]['qp_num']
    c = clients()
    channel = c.channel()
    id = c.create(channel)
    c.route(channel, id, PORT1, 9)
    for number in (foreign, 0, 1, 0xffffffff):
        with refused(errno.EINVAL):
            c.connect(channel, id, number)
    c.connect(channel, id, qpn())
    job.kill()


def test_private_data_limits(clients, qpn):
    c = clients()
    channel = c.channel()
    id = c.create(channel)
    c.route(channel, id, PORT1, 9)
    with refused(errno.EINVAL):
        c.connect(channel, id, qpn(), length=57)
    c.connect(channel, id, qpn(), b'x' * 56)
    assert c.event(channel) == (id, REJECTED, 8)  # nobody listens there


# --- addresses ---

def test_port_numbers(clients):
    a, b = clients(), clients()
    ca, cb = a.channel(), b.channel()
    first = a.create(ca)
    a.bind(ca, first, '0.0.0.0', 7500)
    with refused(errno.EADDRINUSE):
        b.bind(cb, b.create(cb), PORT0, 7500)
    with refused(errno.EADDRNOTAVAIL):
        b.bind(cb, b.create(cb), '192.0.2.99')
    with refused(errno.ENODEV):
        b.bind(cb, b.create(cb), '127.0.0.1')
    with refused(errno.EINVAL):
        a.bind(ca, first, PORT0, 7501)
    a.destroy(ca, first)
    one, two = b.create(cb), b.create(cb)
    b.bind(cb, one, PORT0, 7500)
    b.bind(cb, two, PORT1, 7500)  # the addresses differ
    b.listen(cb, one)
    b.listen(cb, two)
    # both have the same service; the first one's end leaves the other's
    b.destroy(cb, one)
    c = clients()
    channel = c.channel()
    id = c.create(channel)
    c.route(channel, id, PORT1, 7500)


def test_nobody_has_the_address(clients):
    c = clients()
    channel = c.channel()
    id = c.create(channel)
    c.resolve(channel, id, '198.51.100.1')
    assert c.event(channel) == (id, 1, -errno.ENETUNREACH)
    c.resolve(channel, id, '192.0.2.77')
    assert c.event(channel) == (id, 1, -errno.EHOSTUNREACH)  # a port that is joined back to back knows
    c.resolve(channel, id, PORT0)  # it can be used again
    assert c.event(channel) == (id, ADDR_RESOLVED, 0)


def test_addresses_that_nobody_has_are_few(one_each):
    """So many of a user as its queue pairs may have; the user's programs share them."""
    with Namespace() as ns:
        ns.veth('va0', 'va1')
        p, path = one_each(ports=[port('port0', 'net_af_packet0,iface=va0', '10.79.0.1/16')], ns=ns)
        programs = [CmClient(path) for _ in range(2)]
        named = 0
        first = programs[0].channel()
        programs[0].resolve(first, programs[0].create(first), '10.79.0.1')  # the appliance's own
        for i, c in enumerate(programs):
            channel = c.channel()
            for k in range(150):
                try:
                    id = c.create(channel)
                    c.resolve(channel, id, '10.79.%d.%d' % (i + 1, k + 1), timeout_ms=600000)
                    named += 1
                except CmError as e:
                    assert e.errno == errno.ENOMEM and i == 1, e
        assert named == 256
        assert len(p.rpc('neighbour_list', max=1000)['neighbours']) <= 256 + 2
        limit_line(p, 'cm_command', 'dgid: too many addresses that programs named do not answer, or they fill half '
                   'of the neighbour table')
        c.resolve(channel, id, '10.79.0.1')  # the last ID, which was refused; this address is known
        assert c.event(channel) == (id, ADDR_RESOLVED, 0)
        for c in programs:
            c.close()


def test_query(clients):
    """Addresses, GIDs and the path, as librdmacm asks for them when the kernel knows AF_IB."""
    c = clients()
    channel = c.channel()
    id = c.create(channel)
    c.route(channel, id, PORT1, 7)

    def query(option):
        return c.command(channel, 'QUERY', struct.pack('<QII', 0, 0, option), id=id)
    reply = query(0)
    port, pkey, src_size, dst_size = struct.unpack_from('<BxHHH', reply, 8)
    assert (port, pkey, src_size, dst_size) == (1, 0xffff, 16, 16)
    # sockaddr_in: family, port, address
    assert reply[16 + 128:16 + 128 + 8] == struct.pack('<H', 2) + struct.pack('!H', 7) + bytes((192, 0, 2, 2))
    gids = query(2)
    assert gids[16 + 128 + 8:16 + 128 + 24] == bytes(10) + b'\xff\xff' + bytes((192, 0, 2, 2))
    path = query(1)
    assert struct.unpack_from('<I', path)[0] == 1 and len(path) == 8 + 72
    assert path[16 + 8:16 + 24] == gids[16 + 128 + 8:16 + 128 + 24]
    with refused(errno.ENOSYS):
        query(3)


def test_options(clients):
    c = clients()
    channel = c.channel()

    def option(id, level, name, value):
        c.command(channel, 'SET_OPTION', struct.pack('<QIIII', 0, 0, level, name, len(value)), id=id, more=value)
    one, two = c.create(channel), c.create(channel)
    for id in (one, two):
        option(id, 0, 1, struct.pack('<i', 1))  # REUSEADDR
        c.bind(channel, id, PORT0, 7650)
    for id in (one, two):
        with refused(errno.EADDRINUSE):  # who listens must be the only one
            c.listen(channel, id)
    c.destroy(channel, two)
    c.listen(channel, one)
    two = c.create(channel)
    with refused(errno.EADDRINUSE):  # one of them listens
        three = c.create(channel)
        option(three, 0, 1, struct.pack('<i', 1))
        c.bind(channel, three, PORT0, 7650)
    option(two, 0, 0, b'\x20')  # TOS
    option(two, 0, 3, b'\x10')  # ACK_TIMEOUT
    for level, name, value in ((0, 0, b'12'), (0, 1, b'1'), (0, 3, b'\x20'), (0, 9, b'1'), (0, 0, b'')):
        with refused(errno.EINVAL):
            option(two, level, name, value)
    with refused(errno.ENOSYS):
        option(two, 1, 1, bytes(72))


# --- events ---

def test_readable_while_events_wait(clients):
    c = clients()
    channel = c.channel()
    with refused(errno.EAGAIN):
        c.command(channel, 'GET_EVENT')
    ids = [c.create(channel, uid=i + 1) for i in range(3)]
    for id in ids:
        assert not c.readable(channel) or id > ids[0]
        c.resolve(channel, id, PORT0)
    assert c.readable(channel)
    assert c.event(channel)[0] == ids[0]
    assert c.readable(channel)
    # those of a destroyed ID vanish; it says how many were fetched
    assert c.destroy(channel, ids[1]) == 0
    assert c.destroy(channel, ids[0]) == 1
    assert c.readable(channel)
    assert c.event(channel)[0] == ids[2]
    assert not c.readable(channel)


def test_migrated_id_takes_its_events(clients):
    c = clients()
    one, two = c.channel(), c.channel()
    id = c.create(one)
    c.resolve(one, id, PORT0)
    with refused(errno.EINVAL):  # no channel of this program
        c.command(two, 'MIGRATE_ID', id=id)
    c.command(two, 'MIGRATE_ID', id=id, source=one)
    assert not c.readable(one) and c.readable(two)
    assert c.event(two) == (id, ADDR_RESOLVED, 0)
    with refused(errno.EINVAL):
        c.destroy(one, id)
    c.close_channel(one)
    assert c.destroy(two, id) == 1


def test_events_that_nobody_fetches(clients):
    c = clients()
    channel = c.channel()
    id = c.create(channel)
    with refused(errno.ENOBUFS):
        for _ in range(65):
            c.resolve(channel, id, '198.51.100.1')
    assert c.destroy(channel, id) == 0


@pytest.fixture
def request_of(clients, qpn):
    """request_of(): (program, two of its channels, an ID that listens on the first, one that nobody announced).

    The last is the new ID of a request that the program has not fetched. It has the next number, because the
    program has no other ID. A client's connection waits for the answer: ended() waits until it is rejected.
    """
    def request(port):
        server, client = clients(), clients()
        one, two, cc = server.channel(), server.channel(), client.channel()
        listening = server.create(one)
        server.bind(one, listening, '0.0.0.0', port)
        server.listen(one, listening)
        id = client.create(cc)
        client.route(cc, id, PORT1, port)
        client.connect(cc, id, qpn())
        wait_until(lambda: server.readable(one), timeout=20)

        def ended():
            assert client.event(cc) == (id, REJECTED, 28)
        return server, one, two, listening, listening + 1, ended
    return request


@pytest.mark.parametrize('name', [n for n in COMMANDS if COMMANDS[n][2] is not None and n != 'MIGRATE_ID'])
def test_new_id_that_is_not_announced(request_of, name):
    """A request's new ID is none to any command until the program has fetched the request."""
    server, one, _, listening, new, ended = request_of(7610)
    with refused(errno.ENOENT):
        server.command(one, name, id=new)
    assert server.event(one)[:2] == (new, CONNECT_REQUEST)
    if name == 'DESTROY_ID':
        assert server.destroy(one, new) == 0
    else:
        server.command(one, 'REJECT', id=new)
    ended()
    assert server.destroy(one, listening) == 1


@pytest.mark.parametrize('end', ['destroy new', 'close to', 'close from', 'destroy listening'])
def test_migrate_a_new_id_that_is_not_announced(request_of, end):
    """A request and its new ID stay together, whichever of both channels ends first."""
    server, one, two, listening, new, ended = request_of(7620)
    try:
        server.command(two, 'MIGRATE_ID', id=new, source=one)
        migrated = True
    except CmError as e:
        migrated = e.errno
    if end == 'destroy new':
        with contextlib.suppress(CmError):
            server.destroy(two, new)
    elif end == 'close to':
        server.close_channel(two)
    elif end == 'close from':
        server.close_channel(one)
    if end != 'close from':
        server.destroy(one, listening)
    ended()
    server.close()
    assert migrated == errno.ENOENT


@pytest.mark.parametrize('end', ['fetch', 'destroy', 'close'])
def test_migrated_listener_takes_its_requests(request_of, end):
    """Their new IDs, too: what becomes of the old channel is nothing to them."""
    server, one, two, listening, new, ended = request_of(7630)
    server.command(two, 'MIGRATE_ID', id=listening, source=one)
    assert not server.readable(one) and server.readable(two)
    with refused(errno.ENOENT):
        server.command(two, 'MIGRATE_ID', id=new, source=two)
    server.close_channel(one)
    if end == 'fetch':
        assert server.event(two)[:2] == (new, CONNECT_REQUEST)
        server.command(two, 'REJECT', id=new)
    elif end == 'destroy':
        assert server.destroy(two, listening) == 0
    else:
        server.close_channel(two)
    ended()


def test_backlog(clients, qpn):
    """Requests that the program has not fetched; a further one is rejected, as the kernel does."""
    server, client = clients(), clients()
    cs, cc = server.channel(), client.channel()
    listening = server.create(cs)
    server.bind(cs, listening, '0.0.0.0', 7600)
    server.listen(cs, listening, backlog=2)

    def connect():
        id = client.create(cc)
        client.route(cc, id, PORT1, 7600)
        client.connect(cc, id, qpn())
        return id
    sent = [connect() for _ in range(3)]

    def rejected():
        """One of them is; the order in which requests of several workers arrive is open."""
        id, event, reason = client.event(cc)
        assert (event, reason) == (REJECTED, 28)
        sent.remove(id)
    rejected()
    new, event, _ = server.event(cs)
    assert event == CONNECT_REQUEST
    sent += [connect(), connect()]  # there is room for one again
    rejected()
    # the listener's end rejects those that were not fetched, but not the fetched one
    assert server.destroy(cs, listening) == 1
    rejected()
    rejected()
    server.command(cs, 'REJECT', struct.pack('<IBB', 0, 5, 0) + b'\0\0' + b'sorry', id=new)
    rejected()
    assert not sent


@pytest.mark.parametrize('ends', [0, 1])
def test_end_of_one_of_two_listeners(clients, qpn, ends):
    """Both have one port number on two addresses. Requests to the other one still come, to this one none."""
    server, client = clients(), clients()
    cs, cc = server.channel(), client.channel()
    listening = [server.create(cs) for _ in range(2)]
    for id, address in zip(listening, (PORT0, PORT1)):
        server.bind(cs, id, address, 7690)
        server.listen(cs, id)

    def connect(address):
        id = client.create(cc)
        client.route(cc, id, address, 7690)
        client.connect(cc, id, qpn())
        return id
    for address in (PORT0, PORT1):
        connect(address)
        assert server.event(cs)[1] == CONNECT_REQUEST
    assert server.destroy(cs, listening[ends]) == 1
    id = connect((PORT0, PORT1)[ends])
    assert client.event(cc) == (id, REJECTED, 8)
    connect((PORT1, PORT0)[ends])
    assert server.event(cs)[1] == CONNECT_REQUEST
    assert server.destroy(cs, listening[1 - ends]) == 2


# --- limits ---

def test_limits_are_logged(one_each):
    p, path = one_each(max_cm_ids=2, max_cm_channels=1)
    c = CmClient(path)
    channel = c.channel()
    c.create(channel)
    c.create(channel)
    with refused(errno.ENOMEM):
        c.create(channel)
    limit_line(p, 'cm_command', 'id: all 2 are in use (verbs.max_cm_ids)')
    with refused(errno.EMFILE):
        c.channel()
    limit_line(p, 'cm_channel_open', 'channel: all 1 are in use (verbs.max_cm_channels)')
    c.close()


def test_more_listeners_than_allowed(one_each):
    """It is a limit of the configuration: the port number is free."""
    p, path = one_each(cm={'max_listeners': 2})
    c = CmClient(path)
    channel = c.channel()
    ids = [c.create(channel) for _ in range(3)]
    for i, id in enumerate(ids):
        c.bind(channel, id, PORT0, 7660 + i)
    c.listen(channel, ids[0])
    c.listen(channel, ids[1])
    with refused(errno.ENOMEM):
        c.listen(channel, ids[2])
    limit_line(p, 'cm_command', 'listen: all 2 listeners are in use (cm.max_listeners)')
    c.destroy(channel, ids[0])
    c.listen(channel, ids[2])  # there is room again, and the ID is as before
    c.close()


def test_port_number_of_a_service(polca, clients):
    """A service of the appliance listens: no limit is reached."""
    polca.rpc('cm_listen', kind='echo', name='taken', port=7670)
    c = clients()
    channel = c.channel()
    id = c.create(channel)
    c.bind(channel, id, PORT0, 7670)
    with refused(errno.EADDRINUSE):
        c.listen(channel, id)
    polca.rpc('cm_unlisten', service='taken')


def test_more_programs_than_allowed(one_each):
    """A program that uses librdmacm counts apart from the devices that it opens."""
    p, path = one_each(max_clients=1)
    c = CmClient(path)
    Device(path).close()
    with refused(errno.ENOMEM):
        wait_until(lambda: CmClient(path) is None, timeout=10)
    limit_line(p, 'a connection', 'all 1 clients of the socket are there already (verbs.max_clients)')
    c.close()


# --- programs that die ---

@pytest.mark.parametrize('state', ['bound', 'listening', 'event', 'request', 'connecting'])
def test_death_in_each_state(clients, qpn, state):
    """Its port number is free again, and the peer of its connection hears of it."""
    peer, c = clients(), clients()
    cp, channel = peer.channel(), c.channel()
    id = c.create(channel)
    if state == 'event':
        c.resolve(channel, id, PORT0)
    elif state == 'connecting':
        listening = peer.create(cp)
        peer.bind(cp, listening, '0.0.0.0', 7700)
        peer.listen(cp, listening)
        c.route(channel, id, PORT1, 7700)
        c.connect(channel, id, qpn())
        assert peer.event(cp)[1] == CONNECT_REQUEST
    else:
        c.bind(channel, id, '0.0.0.0', 7700)
        if state != 'bound':
            c.listen(channel, id)
        if state == 'request':
            theirs = peer.create(cp)
            peer.route(cp, theirs, PORT1, 7700)
            peer.connect(cp, theirs, qpn())
            wait_until(lambda: c.readable(channel), timeout=20)
    c.close()
    if state == 'request':
        assert peer.event(cp) == (theirs, REJECTED, 28)
    if state in ('bound', 'listening', 'request'):
        other = clients()
        there = other.channel()

        def free():
            with contextlib.suppress(CmError):
                other.bind(there, other.create(there), '0.0.0.0', 7700)
                return True
        wait_until(free, timeout=20)


@pytest.mark.parametrize('victim', ['server', 'client'])
def test_kill_9_of_an_established_program(polca, programs, left, victim):
    """The survivor gets DISCONNECTED, and nothing is left. A client ends then, a server goes on."""
    server = programs.spawn('rping', '-s', '-P', '-v') if victim == 'client' else programs.spawn('rping', '-s', '-v')
    client = None

    def established():
        nonlocal client
        if client is None or client.proc.poll() is not None:
            client = programs.spawn('rping', '-c', '-a', PORT1, '-C', 10000000)
        return any(c['state'] == 'ESTABLISHED' for c in standing(polca))
    wait_until(established, timeout=20)
    killed, survivor, line = (server, client, 'client DISCONNECT EVENT...') if victim == 'server' else \
        (client, server, 'server DISCONNECT EVENT...')
    assert line not in survivor.output(), survivor.output()
    killed.proc.send_signal(signal.SIGKILL)
    wait_until(lambda: line in survivor.output() or survivor.proc.poll() is not None, timeout=20)
    assert line in survivor.output(), survivor.output()  # rping's two streams mix within lines
    if victim == 'server':
        client.proc.wait(20)
    wait_until(lambda: not standing(polca), timeout=20)
    if victim == 'client':  # the server goes on
        assert 'rdma-ping' not in client.output()
        until_listening(programs, ('rping', '-c', '-a', PORT1, '-C', 3, '-v'), server)
    server.kill()
    client.kill()


def test_response_that_is_not_taken(clients, qpn, programs):
    """A program that does not answer CONNECT_RESPONSE, and then goes: the server hears of it."""
    server = programs.spawn('ucmatose')
    c = clients()
    channel = c.channel()
    deadline = []

    def responded():
        id = c.create(channel)
        c.route(channel, id, PORT1, 7471)
        c.connect(channel, id, qpn())
        event = c.event(channel)
        deadline.append(event)
        return event[1] == CONNECT_RESPONSE
    wait_until(responded, timeout=20)
    with refused(errno.EINVAL):  # the response is no request
        c.command(channel, 'ACCEPT', bytes(8 + 8 + 256 + 7) + b'\1', id=deadline[-1][0])
    c.close()
    server.proc.wait(20)
    assert 'event: RDMA_CM_EVENT_REJECTED' in server.output() or server.proc.returncode != 0, server.output()


@pytest.mark.parametrize('program', ['waits', 'pings'])
def test_polca_that_ends_tells_programs(polca, programs, program, capsys):
    """A program that waits for events gets an error, one that is connected gets that or its requests flushed, within a
    second; and the device comes back."""
    def told():
        jobs = [programs.spawn('rping', '-s', '-P')]
        until_listening(programs, ('rping', '-c', '-a', PORT0, '-C', 1), jobs[0])
        if program == 'pings':
            jobs.append(programs.spawn('rping', '-c', '-a', PORT0, '-C', 10000000))
            wait_until(lambda: any(c['state'] == 'ESTABLISHED' for c in standing(polca)), timeout=20)
        killed = time.monotonic()
        polca.kill()
        for job in jobs:
            assert job.proc.wait(30) != 0
            # two threads of rping: the one of the CQ says nothing of what is flushed, only of the error behind it
            assert 'rdma_get_cm_event: No such device' in job.output() or 'poll error -1' in job.output(), job.output()
        took = (time.monotonic() - killed) * 1e3
        polca.start()
        return took
    with capsys.disabled():
        best_of_rounds('programs of librdmacm have ended', told, 1000)
    pair_until_listening(programs, ('rping', '-s', '-C', 2), ('rping', '-c', '-C', 2, '-a', PORT1))
