# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The functions of the kernel's user-MAD layer: TIDs that identify the tool of an answer,
retries and timeouts, RMPP in both directions, and requests dispatched to the agent that
registered for them."""

import collections
import errno
import time

import madview as mv
import rmpp

KEPT = 256  # finished transfers whose last ACK may have to be repeated


class Request:
    """A tool's MAD that waits for its answer."""

    def __init__(self, client, agent, mad, lid, qpn, timeout, retries):
        self.client, self.agent, self.mad, self.lid, self.qpn = client, agent, mad, lid, qpn
        self.timeout, self.retries = timeout, retries
        self.receiver, self.send = None, lambda: None
        self.again()

    def again(self):
        self.deadline = time.monotonic() + self.timeout


class UserMad:
    """host: the port that sends; bad: called with the errors of a device."""

    def __init__(self, host, log, bad):
        self.host, self.log, self.bad = host, log, bad
        self.clients = {}
        self.requests = {}  # by TID
        self.senders = {}  # by TID
        self.incoming = {}  # requests of several packets, by (LID, TID)
        self.finished = collections.OrderedDict()  # Receiver by TID
        self.traps = {}  # the device's own TID, by its lower half

    # ---- from a tool

    def from_tool(self, client, agent, mad, lid, qpn, sl, timeout, retries, qkey):
        whole = mv.can_rmpp(mad) and mad[26] & mv.ACTIVE and mad[25] in (0, mv.DATA)
        if not whole:  # if a tool does RMPP itself, each of its MADs is one packet
            mad = mad.ljust(256, b'\0')
        if not mv.is_response(mad):
            mad = mv.with_tid(mad, client.id << 48 | agent << 32 | mv.tid(mad) & 0xffffffff)
        elif mad[3] == mv.REPRESS:
            mad = mv.with_tid(mad, self.traps.get(mv.tid(mad) & 0xffffffff, mv.tid(mad)))
        self.log('> %s to LID %d', mad, lid)

        def emit(m):
            self.host.send(m, lid, qpn, sl, qkey)
        if not mv.is_response(mad) and timeout:
            r = self.requests[mv.tid(mad)] = Request(client, agent, mad, lid, qpn, timeout, retries)
            r.send = lambda: emit(mad)
        if whole and not (lid and lid == self.host.lid):
            self.senders[mv.tid(mad)] = rmpp.Sender(mad, emit)
        elif len(mad) > 256 and not whole:
            self.log('a MAD of %d bytes without RMPP', len(mad))
        else:
            emit(mad)

    # ---- from the port

    def response(self, mad, slid, sqp):
        r = self.requests.pop(mv.tid(mad), None)
        if r is None:
            return self.log('no request for %s', mad)
        r.client.deliver(mad, slid or r.lid, sqp, agent=r.agent)

    def unsolicited(self, mad, slid, sqp):
        if mad[3] == mv.TRAP:
            self.traps[mv.tid(mad) & 0xffffffff] = mv.tid(mad)
        for client in list(self.clients.values()):
            agent = client.agent_of(mad)
            if agent is not None:
                return client.deliver(mad, slid, sqp, agent=agent)
        self.log('no agent for %s', mad)

    def rmpp(self, mad, slid, sqp):
        tid = mv.tid(mad)
        if mad[25] != mv.DATA:
            sender = self.senders.get(tid)
            if sender is None:
                request = self.requests.get(tid)
                if mad[25] in (mv.STOP, mv.ABORT) and request:
                    self.log('transfer ended by the other side, status %d', mad[27])
                return
            sender.take(mad)
            if sender.done:
                del self.senders[tid]
            return
        if mv.is_response(mad):
            request = self.requests.get(tid)
            receiver = request.receiver if request else self.finished.get(tid)
            if receiver is None and request is None:
                return self.log('RMPP without a receiver: %s', mad)
            if receiver is None:
                receiver = request.receiver = rmpp.Receiver()
        else:
            request = None
            receiver = self.incoming.setdefault((slid, tid), rmpp.Receiver())
        self.segment(receiver, request, mad, slid, sqp)

    def segment(self, receiver, request, mad, slid, sqp):
        first = receiver.result is None
        answer = receiver.take(mad)
        if answer:
            self.host.send(answer, slid or (request.lid if request else 0), 1)
        if receiver.error:
            self.bad(receiver.error)
            receiver.error = None
        if request:
            request.deadline = time.monotonic() + max(request.timeout, 2)
            request.retries = 0
        if receiver.result is None or not first:
            return
        whole, receiver.result = receiver.result, b''
        receiver.parts = []
        self.log('%d bytes of %s', len(whole), mad)
        if request is None:
            return self.unsolicited(whole, slid, sqp)
        self.finished[mv.tid(mad)] = receiver
        if len(self.finished) > KEPT:
            self.finished.popitem(last=False)
        self.response(whole, slid, sqp)

    # ---- time

    def late(self):
        now = time.monotonic()
        for tid, r in list(self.requests.items()):
            if now < r.deadline:
                continue
            if r.retries > 0:
                r.retries -= 1
                r.again()
                r.send()
            else:
                del self.requests[tid]
                self.log('timeout of %s', r.mad)
                r.client.deliver(r.mad, r.lid, r.qpn, status=errno.ETIMEDOUT, agent=r.agent)
        for tid, s in list(self.senders.items()):
            if now >= s.deadline:
                s.late()
                if s.done:
                    del self.senders[tid]
        if len(self.incoming) > KEPT:
            self.incoming.clear()

    def busy(self):
        return bool(self.requests or self.senders)

    def forget(self, client):
        for tid in [t for t, r in self.requests.items() if r.client is client]:
            del self.requests[tid]
