# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""ibv_rc_pingpong, unmodified from Debian, against Polca in both roles. The harness performs the
TCP exchange for Polca and drives Polca through the control socket."""

import re

import pytest

import pingpong
from guide import Section
from lab import GUEST_IP

POLCA_GID = {4: '::ffff:10.99.0.1', 6: 'fd99::1'}
RX_DEPTH = 32
SEND, RECV = 1, 2


class Player:
    """The operations of pingpong.c, on Polca."""

    def __init__(self, hca, size, family):
        self.size, self.gid = size, POLCA_GID[family]
        self.q = hca.qp(max_recv_wr=RX_DEPTH, max_send_wr=4)
        self.mr = hca.mr(max(size, 1))
        self.mr.write(0, b'\x7b' * size)
        self.hca, self.psn = hca, 0xfffff8
        self.q.modify(qp_state='INIT', port=0, pkey_index=0, qp_access_flags=[])
        self.posted = 0
        self.refill()

    def refill(self):
        n = RX_DEPTH - self.posted
        self.hca.rpc('post_recv', qp_num=self.q.qpn, wr=[
            {'wr_id': RECV, 'sg_list': [{'key': self.mr.key, 'length': self.size}]}] * n)
        self.posted += n

    def connect(self, qpn, psn, gid):
        self.q.modify(qp_state='RTR', ah_attr={'dgid': gid}, path_mtu=1024, dest_qp_num=qpn,
                      rq_psn=psn, max_dest_rd_atomic=1, min_rnr_timer=12)
        self.q.modify(qp_state='RTS', timeout=18, retry_cnt=7, rnr_retry=7, sq_psn=self.psn,
                      max_rd_atomic=1)
        return self.q.qpn, self.psn, self.gid

    def send(self):
        self.q.post_send('send', wr_id=SEND, sg=[(self.mr, 0, self.size)])

    def play(self, iters, serve):
        """serve: the peer sends first. Each side sends and receives iters messages."""
        sent = received = 0
        if not serve:
            self.send()
            sent += 1
        done = 0
        while done < iters or received < iters:
            for wc in self.q.poll(1, timeout=30):
                assert wc.status == 0, wc
                if wc.wr_id == SEND:
                    done += 1
                else:
                    received += 1
                    self.posted -= 1
                    assert wc.byte_len == self.size
                    if self.posted < 2:
                        self.refill()
                    if sent < iters:
                        self.send()
                        sent += 1


@pytest.mark.parametrize('size,iters,family', [(4096, 1000, 4), (1, 50, 4), (100000, 20, 4),
                                               (4096, 50, 6)])
def test_polca_as_server(hca, guest, size, iters, family):
    """The guest runs the client."""
    p = Player(hca, size, family)
    s = pingpong.Server()
    try:
        job = guest.spawn('ibv_rc_pingpong -d rxe0 -g %d -p %d -s %d -n %d 10.0.2.2' % (
            1 if family == 4 else 2, s.port, size, iters))
        s.exchange(p.connect)
        p.play(iters, serve=True)
        r = job.wait()
        assert r.status == 0 and '%d iters in' % iters in r.output, r
    finally:
        s.close()


@pytest.mark.parametrize('size,iters,family', [(4096, 200, 4), (1, 50, 4), (100000, 20, 4),
                                               (4096, 50, 6)])
def test_polca_as_client(hca, guest, size, iters, family):
    """The guest runs the server."""
    p = Player(hca, size, family)
    job = guest.spawn('ibv_rc_pingpong -d rxe0 -g %d -s %d -n %d' % (
        1 if family == 4 else 2, size, iters))
    guest.check('n=0; until /usr/bin/ss -ltn | grep -q :18515 || [ $n -ge 200 ]; do usleep 50000; '
                'n=$((n+1)); done; /usr/bin/ss -ltn | grep -q :18515')
    c = pingpong.Client(guest.host_port(18515))
    theirs = c.exchange(p.q.qpn, p.psn, p.gid)
    p.connect(*theirs)
    c.done()
    p.play(iters, serve=False)
    r = job.wait()
    assert r.status == 0 and '%d iters in' % iters in r.output, r


def test_gids_as_the_guide_shows_them(guest):
    """GID index 1 is the IPv4 one."""
    out = guest.check(Section('Connect a Linux host').command('ibv_devinfo'))
    assert re.search(r'^\s*GID\[\s*1\]:\s*::ffff:%s, RoCE v2$' % GUEST_IP, out, re.M), out
