# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A subscriber to a fleet's Reports."""

import threading

import mad
import sapeer
from fleet import ask
from mad import INFORM_INFO, v2
from sawire import SM_KEY

SUBSCRIBER_QP = 0x4b001


class Subscriber(threading.Thread):
    """One QP with a wire to each appliance. While deaf it answers no Report."""

    def __init__(self, host, nodes, qpn=SUBSCRIBER_QP):
        super().__init__(daemon=True)
        self.gsi = [host.gsi(i, qpn) for i in range(len(nodes))]
        self.reports, self.deaf, self.stop = [], False, False  # (appliance, TID, Notice)

    def subscribe(self, i, **fields):
        values = dict(gid=0, lid_begin=0xffff, is_generic=1, subscribe=1, type=0xffff,
                      trap_number=0xffff, producer_type=0xffffff)
        q = v2(mad.SET, INFORM_INFO.attr, INFORM_INFO.put(**dict(values, **fields)),
               tid=sapeer.new_tid(), sm_key=SM_KEY)
        assert ask(self.gsi[i], q).status == 0
        self.start()

    def run(self):
        while not self.stop:
            for i, g in enumerate(self.gsi):
                m = g.maybe(0.005)
                if m is None or m.method != mad.REPORT:
                    continue
                self.reports.append((i, m.tid, bytes(m.data[:80]), self.deaf))
                if not self.deaf:
                    g.tx(m.turned())

    def close(self):
        self.stop = True
        self.join()
        for g in self.gsi:
            g.close()


def trap_of(report):
    return int.from_bytes(report[2][4:6], 'big')


def kept(etcd):
    """Notices in etcd."""
    return etcd.count('/polca/e/')
