# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Verbs objects of a running appliance, created through its control socket.

A Hca destroys the objects that it created: one per test keeps tests independent.
"""

import time
import zlib

import time_limit
from rpc import RpcError

ALL = ['LOCAL_WRITE', 'REMOTE_WRITE', 'REMOTE_READ', 'REMOTE_ATOMIC']
STATUS = '''SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR
    BAD_RESP_ERR LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR
    RNR_RETRY_EXC_ERR'''.split()
OPCODES = {'send': 'SEND', 'send_imm': 'SEND_WITH_IMM', 'send_inv': 'SEND_WITH_INV',
           'write': 'RDMA_WRITE', 'write_imm': 'RDMA_WRITE_WITH_IMM', 'read': 'RDMA_READ',
           'cmp_swp': 'ATOMIC_CMP_AND_SWP', 'fetch_add': 'ATOMIC_FETCH_AND_ADD',
           'local_inv': 'LOCAL_INV', 'bind_mw': 'BIND_MW'}
CQ_POLL_MS = 30000  # of one cq_poll, which may wait for at most a minute
CHUNK = 256 * 1024  # bytes in one mr_read or mr_write


def number(v):
    """The control socket returns numbers above 2^63 - 1 as hex text."""
    return int(v, 16) if isinstance(v, str) else v


class Completion:
    """One entry of a CQ; status as ibv_wc_status numbers it."""

    def __init__(self, row):
        self.row = row
        self.wr_id, self.status = number(row['wr_id']), STATUS.index(row['status'])
        self.qp_num, self.opcode = row['qp_num'], row.get('opcode')
        self.byte_len, self.imm = row.get('byte_len'), row.get('imm_data')
        self.inv, self.mw_key = row.get('invalidated_rkey'), row.get('mw_key')

    def __repr__(self):
        return 'wc%r' % self.row


class Region:
    def __init__(self, hca, row):
        self.hca, self.key, self.length = hca, row['key'], row['length']
        self.va = number(row['va'])
        self.live = True

    def read(self, off, length):
        data = b''
        while len(data) < length:
            part = self.hca.rpc('mr_read', key=self.key, offset=off + len(data),
                                length=min(CHUNK, length - len(data)))
            data += bytes.fromhex(part['data'])
        return data

    def write(self, off, data):
        for i in range(0, len(data), CHUNK):
            self.hca.rpc('mr_write', key=self.key, offset=off + i,
                         data=data[i:i + CHUNK].hex())

    def crc(self, off, length):
        return self.hca.rpc('mr_checksum', key=self.key, offset=off, length=length)['crc32']

    def same(self, off, data):
        """True if the region has these bytes at this offset. Large ones are compared by CRC
        first."""
        if len(data) > CHUNK:
            return self.crc(off, len(data)) == zlib.crc32(data)
        return self.read(off, len(data)) == data

    def deregister(self):
        self.hca.rpc('mr_deregister', key=self.key)
        self.live = False


class Qp:
    def __init__(self, hca, qpn, cq):
        self.hca, self.qpn, self.cq, self.live = hca, qpn, cq, True

    def connect(self, **attr):
        """qp_connect: from RESET to RTS in one call."""
        for k, v in (('timeout', 18), ('retry_cnt', 7), ('rnr_retry', 7), ('min_rnr_timer', 12),
                     ('max_rd_atomic', 16), ('max_dest_rd_atomic', 16), ('port', self.hca.port),
                     ('qp_access_flags', ALL[1:])):
            attr.setdefault(k, v)
        attr['qp_access_flags'] = [f.upper() for f in attr['qp_access_flags']]
        return self.hca.rpc('qp_connect', qp_num=self.qpn, **attr)

    def modify(self, **attr):
        if 'qp_access_flags' in attr:
            attr['qp_access_flags'] = [f.upper() for f in attr['qp_access_flags']]
        return self.hca.rpc('qp_modify', qp_num=self.qpn, **attr)

    def show(self):
        return self.hca.rpc('qp_show', qp_num=self.qpn)

    def state(self):
        return self.show()['qp_state']

    def counters(self):
        return self.show()['counters']

    @staticmethod
    def _sg(sg):
        return [{'addr': mr.va + off, 'length': length, 'lkey': mr.key} for mr, off, length in sg]

    def send_wr(self, op, wr_id=0, sg=(), flags=('SIGNALED',), **wr):
        """sg: (region, offset, length) each; wr: further fields of ibv_send_wr."""
        row = dict({'wr_id': wr_id, 'opcode': OPCODES[op], 'send_flags': list(flags)}, **wr)
        if sg:
            row['sg_list'] = self._sg(sg)
        return row

    def post_send(self, op, **wr):
        return self.post_sends([self.send_wr(op, **wr)])

    def post_sends(self, rows):
        return self.hca.rpc('post_send', qp_num=self.qpn, wr=rows)

    def post_recv(self, wr_id=0, sg=()):
        return self.hca.rpc('post_recv', qp_num=self.qpn,
                            wr=[{'wr_id': wr_id, 'sg_list': self._sg(sg)}])

    def poll(self, n=1, timeout=20):
        """n completions; fewer within the time is an error."""
        return self.hca.poll(self.cq, n, timeout)

    def expect_no_completion(self):
        rows = self.hca.rpc('cq_poll', cq=self.cq, max=16)['wc']
        assert rows == [], rows

    def destroy(self):
        self.hca.rpc('qp_destroy', qp_num=self.qpn)
        self.live = False


class Hca:
    def __init__(self, polca, port=0):
        self.polca, self.rpc, self.port = polca, polca.rpc, port
        self.mine = {'qp': [], 'mr': [], 'cq': [], 'pd': [], 'srq': []}
        self._pd = None
        self.events()  # discard events of earlier tests

    @property
    def pd(self):
        if self._pd is None:
            self._pd = self.new_pd()
        return self._pd

    def new_pd(self):
        pd = self.rpc('pd_create')['pd']
        self.mine['pd'].append(pd)
        return pd

    def cq(self, depth=256):
        cq = self.rpc('cq_create', depth=depth)['cq']
        self.mine['cq'].append(cq)
        return cq

    def mr(self, length, access=ALL, pd=None, **attr):
        r = Region(self, self.rpc('mr_register', pd=self.pd if pd is None else pd, length=length,
                                  access=[a.upper() for a in access], **attr))
        self.mine['mr'].append(r)
        return r

    def qp(self, cq=None, pd=None, **attr):
        cq = self.cq() if cq is None else cq
        attr.setdefault('sq_sig_all', False)
        made = self.rpc('qp_create', pd=self.pd if pd is None else pd, send_cq=cq, recv_cq=cq,
                        **attr)
        q = Qp(self, made['qp_num'], cq)
        self.mine['qp'].append(q)
        return q

    def poll(self, cq, n=1, timeout=20):
        rows, end = [], time_limit.end(timeout)
        while len(rows) < n and time.monotonic() < end:
            ms = min(CQ_POLL_MS, max(0, int(1000 * (end - time.monotonic()))))
            rows += self.rpc('cq_poll', cq=cq, max=n - len(rows), min=n - len(rows),
                             timeout_ms=ms)['wc']
        assert len(rows) == n, '%d of %d completions: %s' % (len(rows), n, rows)
        return [Completion(r) for r in rows]

    def events(self):
        """New asynchronous events: (type, element) each."""
        rows = []
        while True:
            page = self.rpc('events')['events']
            if not page:
                break
            rows += page
        return [(e['event'], next((e[k] for k in ('qp_num', 'cq', 'srq', 'worker', 'port')
                                   if k in e), None)) for e in rows]

    def stats(self):
        return self.rpc('stats_get')

    def port_stats(self):
        return self.rpc('stats_get', port=self.port)['ports'][0]

    def verdicts(self):
        """Outcomes of the packets received on the port: reason to count."""
        row = self.port_stats()
        return dict(row['served'], **row['dropped'])

    def close(self):
        """Destroy all created objects; some may already be gone."""
        for q in self.mine['qp']:
            if q.live:
                self._quiet('qp_destroy', qp_num=q.qpn)
        for srq in self.mine['srq']:
            self._quiet('srq_destroy', srq=srq)
        for r in self.mine['mr']:
            if r.live:
                self._quiet('mr_deregister', key=r.key)
        for cq in self.mine['cq']:
            self._quiet('cq_destroy', cq=cq)
        for pd in self.mine['pd']:
            self._quiet('pd_destroy', pd=pd)

    def _quiet(self, method, **params):
        try:
            self.rpc(method, **params)
        except RpcError:
            pass
