# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A Polca queue pair connected to a peer for which the test writes every packet."""

import itertools
import time

import time_limit
from roce import NO_CREDITS, Op, Peer, gid_of

PMTU = 1024
PEER_PSN = 0x1000  # of the peer's first request
POLCA_PSN = 0x2000  # of Polca's first request

_peer_qpns = itertools.count(0x101)


def neighbours(rpc):
    """Each row of neighbour_list, page by page."""
    cursor = 0
    while cursor is not None:
        page = rpc('neighbour_list', cursor=cursor, max=1000)
        yield from page['neighbours']
        cursor = page['cursor']


class Conn:
    """psn: of the peer's next request; msn: of Polca's last answer; mr: a region with all access
    rights."""

    def __init__(self, hca, wire, length=65536, mr_access=None, psn=PEER_PSN, sq_psn=POLCA_PSN,
                 qp=None, ipv6=False, peer_ip=None, polca_ip=None, next_hop=None, **attr):
        self.hca, self.wire, self.station = hca, wire, wire.station
        polca_ip = polca_ip or (wire.polca_ip6 if ipv6 else wire.polca_ip)
        peer_ip = peer_ip or (self.station.ip6 if ipv6 else self.station.ip)
        self.peer = Peer(self.station, next(_peer_qpns), peer_ip, wire.polca_mac, polca_ip)
        self.qp = hca.qp(**(qp or {}))
        self.peer.remote_qpn = self.qp.qpn
        self.mr = hca.mr(length, **({} if mr_access is None else {'access': mr_access}))
        self.psn, self.sq_psn, self.msn = psn, sq_psn, 0
        self.qp.connect(dest_qp_num=self.peer.qpn, dgid=gid_of(peer_ip), rq_psn=psn, sq_psn=sq_psn,
                        path_mtu=PMTU, **attr)
        # Polca answers only when the next hop is known, and the peer does not repeat requests
        hop = next_hop or peer_ip
        wait_until(lambda: any(n['gid'] == hop and n['state'] == 'RESOLVED'
                               for n in neighbours(hca.rpc)))

    @property
    def va(self):
        return self.mr.va

    @property
    def key(self):
        return self.mr.key

    def next(self, n=1):
        """PSN of the next request, which takes n packets or responses."""
        psn = self.psn
        self.psn = (self.psn + n) & 0xffffff
        return psn

    def sync(self):
        """An empty Write and its ACK: when it arrives, everything sent before has been
        processed, and caused no other packet than this ACK."""
        psn = self.next()
        self.peer.write_only(psn, 0, 0)
        r = self.peer.expect_ack(psn)
        self.msn = r.msn
        return r

    def prime(self):
        """Send an ACK that disables credits, so that Sends may follow one another (before the
        first answer, only one may be under way, rc-transport 3)."""
        self.qp.post_send('write', wr_id=999, remote_addr=0, rkey=0)
        r = self.peer.expect(Op.WRITE_ONLY, self.sq_psn)
        self.peer.ack(r.psn, 1)
        assert self.qp.poll()[0].status == 0
        self.sq_psn += 1
        return self

    def post_buffer(self, length, off=0, wr_id=0, n=1):
        for i in range(n):
            self.qp.post_recv(wr_id=wr_id + i,
                              sg=[(self.mr, off + i * length, length)] if length else [])

    def message(self, first, middle, last, data, ackreq_last=1, first_kw=None, last_kw=None,
                only=None):
        """Send data as the packets of one message; returns its PSNs."""
        n = max(1, -(-len(data) // PMTU))
        psns = [self.next() for _ in range(n)]
        for i, psn in enumerate(psns):
            part = data[i * PMTU:(i + 1) * PMTU]
            kw = dict(first_kw or {}) if i == 0 else {}
            if i == n - 1:
                kw.update(last_kw or {}, ackreq=ackreq_last)
            op = only if n == 1 else first if i == 0 else last if i == n - 1 else middle
            self.peer.tx(op, psn, part, **kw)
        return psns

    def send(self, data, **kw):
        return self.message(Op.SEND_FIRST, Op.SEND_MIDDLE, Op.SEND_LAST, data, only=Op.SEND_ONLY,
                            **kw)

    def write(self, data, off=0, key=None, dlen=None, **kw):
        reth = (self.va + off, self.key if key is None else key,
                len(data) if dlen is None else dlen)
        return self.message(Op.WRITE_FIRST, Op.WRITE_MIDDLE, Op.WRITE_LAST, data,
                            only=Op.WRITE_ONLY, first_kw=dict(reth=reth), **kw)

    def read_answer(self, psn, length, timeout=10):
        """Receive the responses to a Read request with that PSN; returns the data."""
        n = max(1, -(-length // PMTU))
        data = b''
        for i in range(n):
            op = (Op.READ_ONLY if n == 1 else Op.READ_FIRST if i == 0 else
                  Op.READ_LAST if i == n - 1 else Op.READ_MIDDLE)
            r = self.peer.expect(op, psn + i, timeout=timeout)
            assert len(r.payload) == min(PMTU, length - len(data)), r
            data += r.payload
        return data

    def answer_read(self, r, data, msn=1, psn=None, start=0, stop=None):
        """Answer Polca's Read request r with the response packets start..stop of data."""
        n = max(1, -(-len(data) // PMTU))
        psn = r.psn if psn is None else psn
        for i in range(start, n if stop is None else stop):
            op = (Op.READ_ONLY if n == 1 else Op.READ_FIRST if i == 0 else
                  Op.READ_LAST if i == n - 1 else Op.READ_MIDDLE)
            kw = {} if op == Op.READ_MIDDLE else {'aeth': (NO_CREDITS, msn)}
            self.peer.tx(op, psn + i, data[i * PMTU:(i + 1) * PMTU], **kw)

    def requests(self, n, timeout=10):
        return [self.peer.rx(timeout) for _ in range(n)]

    def close(self):
        self.peer.close()


def wait_until(condition, timeout=30, step=0.01):
    """Poll until condition() is true; returns its value. Fails with AssertionError on timeout."""
    end = time_limit.end(timeout)
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, 'did not come true within %g s (of an idle machine)' % timeout
        time.sleep(step)
