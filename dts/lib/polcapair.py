# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Two connected queue pairs of Polca, of one process or of two, over any kind of port."""

from pattern import pattern
from roce import gid_of

A, B = '192.0.2.1', '192.0.2.2'
OPS = ('send', 'send_imm', 'write', 'write_imm', 'read')
RECEIVING = ('send', 'send_imm', 'write_imm')


def back_to_back():
    """Ports 0 and 1 of one process, joined back to back, with the addresses A and B."""
    return [{'name': 'port0', 'back_to_back': 'port1', 'addresses': [A + '/24']},
            {'name': 'port1', 'back_to_back': 'port0', 'addresses': [B + '/24']}]


def path_to(address):
    """An IP address is a RoCE path; a number is a LID."""
    return dict(dlid=address) if isinstance(address, int) else dict(dgid=gid_of(address))


class PolcaPair:
    """.a and .b: (Hca, its address) each; .qa, .qb, .ma, .mb: queue pairs and regions."""

    def __init__(self, a, ip_a, b, ip_b, mtu=1024, size=1 << 20, workers=None, **attr):
        self.a, self.b = a, b
        on_a, on_b = ({'worker': w} for w in workers) if workers else ({}, {})
        self.qa, self.qb = a.qp(**on_a), b.qp(**on_b)
        self.ma, self.mb = a.mr(size), b.mr(size)
        self.qa.connect(dest_qp_num=self.qb.qpn, rq_psn=0x777, sq_psn=0xfffffe, path_mtu=mtu,
                        **path_to(ip_b), **attr)
        self.qb.connect(dest_qp_num=self.qa.qpn, rq_psn=0xfffffe, sq_psn=0x777, path_mtu=mtu,
                        **path_to(ip_a), **attr)

    def move(self, op, size, seed, timeout=30):
        """One operation from a to b (a Read: from b to a), verified."""
        data = pattern(seed, size)
        (self.mb if op == 'read' else self.ma).write(0, data)
        (self.ma if op == 'read' else self.mb).write(0, bytes(size))
        if op in RECEIVING:
            self.qb.post_recv(wr_id=seed, sg=[(self.mb, 0, size)] if size else [])
        wr = {} if op.startswith('send') else dict(remote_addr=self.mb.va, rkey=self.mb.key)
        if op.endswith('_imm'):
            wr['imm_data'] = seed
        self.qa.post_send(op, wr_id=seed, sg=[(self.ma, 0, size)] if size else [], **wr)
        wc, = self.qa.poll(timeout=timeout)
        assert (wc.wr_id, wc.status) == (seed, 0), wc
        if op in RECEIVING:
            wc, = self.qb.poll(timeout=timeout)
            assert (wc.wr_id, wc.status, wc.byte_len) == (seed, 0, size), wc
        assert (self.ma if op == 'read' else self.mb).same(0, data)

    def all_operations(self, sizes=(0, 1, 1024, 5003)):
        for i, op in enumerate(OPS):
            for size in sizes:
                self.move(op, size, seed=1 + i * 100 + size)

    def atomics(self):
        self.mb.write(0, (5).to_bytes(8, 'little'))
        self.qa.post_send('fetch_add', wr_id=1, sg=[(self.ma, 0, 8)], remote_addr=self.mb.va,
                          rkey=self.mb.key, compare_add=3)
        self.qa.post_send('cmp_swp', wr_id=2, sg=[(self.ma, 8, 8)], remote_addr=self.mb.va,
                          rkey=self.mb.key, compare_add=8, swap=77)
        assert [w.status for w in self.qa.poll(2)] == [0, 0]
        got = self.ma.read(0, 16) + self.mb.read(0, 8)
        assert got == b''.join(v.to_bytes(8, 'little') for v in (5, 8, 77))
