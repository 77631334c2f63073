# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A Polca queue pair connected to one of a Linux soft-RoCE guest, with a region on each side."""

import contextlib

from guest import GuestError
from pattern import pattern
from roce import gid_of

MIB = 1 << 20
RECEIVING = ('send', 'send_imm', 'send_inv', 'write_imm')
RXE_OPCODE = {'send': 0, 'send_imm': 0, 'send_inv': 0, 'write': 1, 'write_imm': 1, 'read': 2,
              'cmp_swp': 3, 'fetch_add': 4}


class RxePair:
    """.q, .mr: Polca's; .v, .rq, .rmr: the guest's. PSNs start near the wrap-around on purpose."""

    def __init__(self, hca, guest, polca_ip='10.99.0.1', ipv6=False, mtu=1024, size=2 * MIB,
                 timeout=18, polca_rnr=7, rxe_rnr=7, min_rnr_timer=12, rd=16, access=None,
                 rxe_access=15, verbs=None, depth=64, qp=None):
        self.hca, self.v = hca, verbs or guest.rdma()
        self.q = hca.qp(**dict(dict(max_send_wr=depth, max_recv_wr=depth), **(qp or {})))
        self.mr = hca.mr(size, **({'access': access} if access else {}))
        made = self.v('qp', sq=depth, rq=depth)
        self.rq, self.rqpn = made['qp'], made['qpn']
        self.rmr = self.v('mr', size=size, access=rxe_access)
        polca_psn, rxe_psn = 0xfffff0, 0xffffe0
        rxe_ip = guest.ip6.split('/')[0] if ipv6 else guest.ip.split('/')[0]
        self.v('init', qp=self.rq, access=14)
        self.v('rtr', qp=self.rq, dest=self.q.qpn, psn=polca_psn, gid=gid_of(polca_ip), mtu=mtu,
               sgid_index=2 if ipv6 else 1, min_rnr=min_rnr_timer, rd=rd)
        self.q.connect(dest_qp_num=self.rqpn, dgid=gid_of(rxe_ip), rq_psn=rxe_psn,
                       sq_psn=polca_psn, path_mtu=mtu, timeout=timeout, rnr_retry=polca_rnr,
                       min_rnr_timer=min_rnr_timer, max_rd_atomic=rd, max_dest_rd_atomic=rd)
        self.v('rts', qp=self.rq, psn=rxe_psn, timeout=timeout, rnr=rxe_rnr, rd=rd)

    # ---- one operation, verified at both sides

    def from_polca(self, op, size, seed, inv=None):
        data = pattern(seed, size)
        if op != 'read':
            self.mr.write(0, data)
        elif size:
            self.v('fill', mr=self.rmr['mr'], off=0, len=size, seed=seed)
        if op in RECEIVING:
            self.rxe_recv(size, wr_id=seed)
        wr = {}
        if op in ('write', 'write_imm', 'read'):
            wr = dict(remote_addr=self.rmr['addr'], rkey=self.rmr['rkey'])
        if op.endswith('_imm'):
            wr['imm_data'] = seed
        if op == 'send_inv':
            wr['invalidate_rkey'] = inv
        self.q.post_send(op, wr_id=seed, sg=[(self.mr, 0, size)] if size else [], **wr)
        wc, = self.q.poll()
        assert (wc.wr_id, wc.status) == (seed, 0), wc
        if op in RECEIVING:
            r = self.v.poll(self.rq)[0]
            assert (r['wr_id'], r['status'], r['byte_len']) == (seed, 0, size), r
            assert r.get('imm') == (seed if op.endswith('_imm') else None)
            assert r.get('inv') == inv, r
        if op == 'read':
            assert wc.byte_len == size
            assert self.mr.same(0, data)
        elif size:
            assert self.v.same(self.rmr['mr'], seed, size) == ''

    def from_rxe(self, op, size, seed, inv=None):
        data = pattern(seed, size)
        if op == 'read':
            self.mr.write(0, data)
        elif size:
            self.v('fill', mr=self.rmr['mr'], off=0, len=size, seed=seed)
        if op in RECEIVING:
            self.q.post_recv(wr_id=seed, sg=[(self.mr, 0, size)] if size else [])
        extra = {'inv': inv} if op == 'send_inv' else {'imm': seed}
        self.rxe_post(op, size, wr_id=seed, **extra)
        r = self.v.poll(self.rq)[0]
        assert (r['wr_id'], r['status'], r['opcode']) == (seed, 0, RXE_OPCODE[op]), r
        if op in RECEIVING:
            wc, = self.q.poll()
            assert (wc.wr_id, wc.status, wc.byte_len) == (seed, 0, size), wc
            assert wc.imm == (seed if op.endswith('_imm') else None)
            assert wc.inv == inv
        if op == 'read':
            if size:
                assert self.v.same(self.rmr['mr'], seed, size) == ''
        else:
            assert self.mr.same(0, data)

    # ---- parts of an operation

    def rxe_post(self, op, size, off=0, raddr=None, rkey=None, **kw):
        self.v('post', qp=self.rq, op=op, mr=self.rmr['mr'], off=off, len=size,
               raddr=self.mr.va if raddr is None else raddr,
               rkey=self.mr.key if rkey is None else rkey, **kw)

    def rxe_recv(self, size, off=0, **kw):
        self.v('recv', qp=self.rq, mr=self.rmr['mr'], off=off, len=size, **kw)

    def rxe_peek(self, off, length):
        return bytes.fromhex(self.v('peek', mr=self.rmr['mr'], off=off, len=length)['hex'])

    def rxe_poke(self, off, data):
        self.v('poke', mr=self.rmr['mr'], off=off, hex=data.hex())

    def rxe_state(self):
        return self.v('query', qp=self.rq)['state']


@contextlib.contextmanager
def lossy(guest, percent, direction='both'):
    guest.loss(percent, direction)
    try:
        yield
    finally:
        guest.loss(0, 'both')


__all__ = ['RxePair', 'GuestError', 'lossy', 'MIB']
