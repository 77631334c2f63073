# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A simulated fabric: ibsim's switches and hosts, managed by opensm, both unmodified from
Debian, in a namespace of their own."""

import itertools
import os
import select
import socket
import struct
import subprocess
import threading
import time

import net
import time_limit
from conn import wait_until
from umad import ended  # and where the bridge's modules are
from ibwire import datagram, PERMISSIVE
from wire import Cable

MAGIC = 0xdeadbeef
CONNECT, DISCONNECT = 1, 2
MAD_LEN = 256
_serial = itertools.count(1)

HOST_GUID, SWITCH_GUID = 0x0002c90300500000, 0x0002c90300600000


class Plan:
    """The fabric to simulate. Hosts have one port; link() takes the next free ports of switches."""

    def __init__(self, ports=12):
        self.ports, self.switches, self.hosts = ports, [], []
        self.cables = {}  # node: {port: (peer, its port, width and speed)}

    def switch(self, name):
        self.switches.append(name)
        self.cables[name] = {}
        return name

    def host(self, switch, speed='4xEDR'):
        name = 'h%d' % (len(self.hosts) + 1)
        self.hosts.append(name)
        self.cables[name] = {}
        self.link(name, switch, speed)
        return name

    def link(self, a, b, speed='4xEDR'):
        pa, pb = (len(self.cables[n]) + 1 for n in (a, b))
        self.cables[a][pa], self.cables[b][pb] = (b, pb, speed), (a, pa, speed)

    def guid(self, name):
        if name in self.hosts:
            return HOST_GUID + 0x10 * (self.hosts.index(name) + 1)
        return SWITCH_GUID + 0x10 * (self.switches.index(name) + 1)

    def port_guid(self, name):
        return self.guid(name) + (name in self.hosts)

    def text(self):
        out = []
        for name in self.hosts + self.switches:
            host = name in self.hosts
            out.append('vendid=0x2c9\nsysimgguid=0x%016x\n%sguid=0x%016x\n%s\t%d "%s"' % (
                self.guid(name), 'ca' if host else 'switch', self.guid(name),
                'Hca' if host else 'Switch', 1 if host else self.ports, name))
            for port, (peer, peer_port, speed) in sorted(self.cables[name].items()):
                out.append('[%d]\t"%s"[%d]\t\t# %s"%s" lid 0 %s' % (
                    port, peer, peer_port, 'lid 0 lmc 0 ' if host else '', peer, speed))
            out.append('')
        return '\n'.join(out)


class Client:
    """A port of the simulated fabric that sends and receives management datagrams."""

    def __init__(self, ns, host):
        self.number = os.getpid() * 100 + next(_serial)
        self.tids = itertools.count(1)

        def opened():
            return [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        self.ctl, self.data = ns.call(opened)
        self.ctl.bind(self.address('ctl%d' % self.number))
        self.data.bind(self.address('in%d' % self.number))
        self.ctl.connect(self.address('ctl'))
        info = self.command(CONNECT, struct.pack('=III32s', self.number, 0, 0, host.encode()))
        self.client, = struct.unpack_from('=I', info)
        self.data.connect(self.address('out%d' % self.client))

    @staticmethod
    def address(name):
        return b'\0sim:' + name.encode() + b'\0'

    def command(self, what, data):
        self.ctl.send(struct.pack('=IIII64s', MAGIC, getattr(self, 'client', 0), what, len(data),
                                  data))
        self.ctl.settimeout(time_limit.limit(10))
        reply = self.ctl.recv(80)
        assert struct.unpack_from('=I', reply, 8)[0] == what, 'ibsim refused %d' % what
        return reply[16:]

    def close(self):
        self.command(DISCONNECT, b'')
        self.ctl.close()
        self.data.close()

    def send(self, mad, lid, qpn):
        self.data.send(struct.pack('=IIIIIxxxx', socket.htons(lid),
                                   0xffff if lid == 0xffff else 0, socket.htonl(qpn),
                                   socket.htonl(qpn), 0) + struct.pack('>Q', MAD_LEN) + mad)

    def receive(self, timeout):
        """(MAD, LID of the sender, its queue pair); None after the timeout."""
        self.data.settimeout(timeout)
        try:
            raw = self.data.recv(512)
        except (socket.timeout, BlockingIOError):
            return None
        _, slid, _, sqp, _ = struct.unpack_from('=IIIII', raw)
        return raw[32:32 + MAD_LEN], socket.ntohs(slid & 0xffff), socket.ntohl(sqp)

    def ask(self, mad, lid, qpn=1):
        """Send a request and return its answer; ibsim replaces the upper 16 bits of the TID."""
        tid = next(self.tids)
        mad = mad[:8] + struct.pack('>Q', tid) + mad[16:]
        end = time_limit.end(20)
        while time.monotonic() < end:
            self.send(mad, lid, qpn)
            until = time.monotonic() + 1
            while time.monotonic() < until:
                got = self.receive(0.5)
                if got and struct.unpack_from('>Q', got[0], 8)[0] & 0xffffffff == tid:
                    return got[0]
        raise AssertionError('no answer from LID %d' % lid)


class Gateway(threading.Thread):
    """Connects an appliance's native port in place of a simulated host: packets from the
    appliance go to the fabric as the host's, and packets for the host go to the appliance. The
    host itself answers subnet management."""

    POINTER, INITIAL = 6, 128

    def __init__(self, ns, interface, fabric, host, lid):
        super().__init__(daemon=True)
        self.client, self.lid = fabric.client(host), lid
        self.cable = ns.call(Cable, interface)
        self.cable.arrive, self.cable.bad = self.out, self.bad
        self.tids, self.serial = {}, itertools.count(1)
        self.wrong, self.failure, self.ending = [], None, False
        self.start()

    def bad(self, what):
        self.wrong.append(what)

    def out(self, p):
        mad = bytearray(p.mad)
        if mad[1] == 0x81 and not mad[self.POINTER - 3] & 0x80:
            assert mad[self.POINTER] == 1 and mad[self.INITIAL + 1] == 1, mad.hex()
            mad[self.POINTER] = 0  # the start value of a route at its first port
        if not mad[3] & 0x80:
            tid = next(self.serial)
            self.tids[tid] = bytes(mad[8:16])
            mad[8:16] = struct.pack('>Q', tid)
        self.client.send(bytes(mad), p.dlid, p.dqp)

    def into(self, mad, slid, sqp):
        mad = bytearray(mad)
        was = self.tids.pop(struct.unpack_from('>Q', mad, 8)[0] & 0xffffffff, None)
        if was is None:
            return  # a request for the host, or a repeated answer
        mad[8:16] = was
        routed = mad[1] == 0x81
        if routed:
            mad[self.POINTER] = 1
        self.cable.send(datagram(bytes(mad), PERMISSIVE if routed else slid,
                                 PERMISSIVE if routed else self.lid, sqp, sqp))

    def tell(self, mad, slid):
        """Pass an SMP from the fabric, which is meant for the host, to the appliance."""
        self.cable.send(datagram(mad, slid, self.lid, 0, 0))

    def run(self):
        try:
            while not self.ending:
                ready, _, _ = select.select([self.cable.sock, self.client.data], [], [], 0.2)
                if self.cable.sock in ready:
                    self.cable.readable()
                if self.client.data in ready:
                    self.into(*self.client.receive(0.1))
        except BaseException as e:  # raised by close()
            self.failure = e

    def close(self):
        self.ending = True
        self.join(10)
        self.cable.sock.close()
        assert self.failure is None, self.failure
        assert not self.wrong, self.wrong


class Fabric:
    """ibsim with a plan; start() also starts opensm at the first host."""

    def __init__(self, plan, directory, *options, conf=''):
        self.plan, self.dir, self.options = plan, directory, list(options)
        os.makedirs(directory, exist_ok=True)
        self.ns = net.Namespace()
        self.procs = []
        self.clients = []
        self.net = self.write('net', plan.text())
        self.conf = self.write('opensm.conf', 'force_log_flush TRUE\n' + conf)
        self.log = os.path.join(directory, 'opensm.log')

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, 'w') as f:
            f.write(text)
        return path

    def popen(self, argv, name, **env):
        with open(os.path.join(self.dir, name), 'w') as out:
            p = self.ns.popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=self.dir,
                              env=dict(os.environ, **env))
        self.procs.append(p)
        return p

    def env(self, host):
        return dict(SIM_HOST=host, OSM_TMP_DIR=self.dir, OSM_CACHE_DIR=self.dir, LC_ALL='C')

    def said(self, name):
        path = os.path.join(self.dir, name)
        if not os.path.exists(path):
            return ''
        with open(path, errors='replace') as f:
            return f.read()

    def start(self):
        sim = self.popen(['ibsim', '-s', self.net], 'ibsim.out')

        def simulated():
            assert sim.poll() is None, self.said('ibsim.out')
            return 'simulator ready' in self.said('ibsim.out')
        wait_until(simulated)
        sm = self.popen(['ibsim-run', 'opensm', '-f', self.log, '-F', self.conf] + self.options,
                        'opensm.out', **self.env(self.plan.hosts[0]))

        def up():
            assert sm.poll() is None, self.said('opensm.log')
            return 'SUBNET UP' in self.said('opensm.log')
        wait_until(up, timeout=60, step=0.05)
        return self

    def console(self, command):
        """Type at ibsim's prompt: Unlink "NODE"[PORT], Link, ..."""
        self.procs[0].stdin.write(command.encode() + b'\n')
        self.procs[0].stdin.flush()

    def sweeps(self):
        """The number of completed sweeps of opensm."""
        return self.said('opensm.log').count('SUBNET UP')

    def run(self, *argv, host=None):
        """Run a tool at a host; returns its output."""
        r = subprocess.run(self.ns.prefix() + ['ibsim-run'] + list(argv), cwd=self.dir,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           stdin=subprocess.DEVNULL, timeout=time_limit.limit(60),
                           env=dict(os.environ, **self.env(host or self.plan.hosts[0])))
        assert r.returncode == 0, (argv, r)
        return r.stdout

    def client(self, host):
        c = Client(self.ns, host)
        self.clients.append(c)
        return c

    def close(self):
        for c in self.clients:
            c.ctl.close()
            c.data.close()
        for p in reversed(self.procs):
            ended(p)
        self.ns.close()
