#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Connects tools that use libibumad with devices on Ethernet interfaces; see README.md.

Exits with status 1 if a device sent something that no device may send.
"""

import argparse
import os
import selectors
import signal
import socket
import sys

import madview as mv
from clients import Client
from host import Host
from switch import Switch
from sysfs import contents, Tree
from usermad import UserMad
from wire import Cable

CLIENT_IDS = 0x7000
TICK = 0.02  # while a tool waits for an answer


class SwitchPort:
    """The end of a cable at a switch, as seen by the node at its other end."""

    def __init__(self, switch, number):
        self.switch, self.number = switch, number

    def send(self, p):
        self.switch.arrive(self.number, p)


class HostCable:
    """The end of that cable at the host."""

    def __init__(self, host):
        self.host = host

    def send(self, p):
        self.host.arrive(p)


class Bridge:
    def __init__(self, args):
        self.verbose, self.wrong = args.verbose, 0
        self.poll = selectors.DefaultSelector()
        self.host = Host(args.guid, args.description, args.lid, args.sm_lid, args.state,
                         args.vl_cap, self.log)
        self.user = self.host.user = UserMad(self.host, self.log, self.bad)
        roce = (args.ip, args.peer_ip) if args.roce else None
        self.cables = [Cable(i, roce, args.ethertype) for i in args.interface]
        if len(self.cables) == 1 and not args.switch:
            self.host.link, self.cables[0].arrive = self.cables[0], self.host.arrive
        else:
            self.through_switch(args)
        for c in self.cables:
            c.bad = self.bad
            self.poll.register(c.sock, selectors.EVENT_READ, c.readable)
        self.tree, self.shown = Tree(args.directory), None
        self.listen(os.path.join(args.directory, 'socket'))
        self.show_port()

    def through_switch(self, args):
        self.switch = Switch(args.guid + 0x100, args.description + ' switch',
                             [HostCable(self.host)] + self.cables, args.vl_cap, self.log)
        self.host.link = SwitchPort(self.switch, 1)
        for i, c in enumerate(self.cables):
            c.arrive = lambda p, number=i + 2: self.switch.arrive(number, p)

    # ---- messages

    def log(self, text, *args):
        if self.verbose:
            args = tuple(mv.show(a) if isinstance(a, (bytes, bytearray)) else a for a in args)
            print(text % args, file=sys.stderr, flush=True)

    def bad(self, what):
        self.wrong += 1
        print('BAD', what, file=sys.stderr, flush=True)

    # ---- tools

    def listen(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.path.exists(path):
            if self.listener.connect_ex(path) == 0:
                sys.exit('bridge: another one serves %s' % os.path.dirname(path))
            os.unlink(path)  # left by a previous bridge
        self.listener.bind(path)
        self.listener.listen(32)
        self.poll.register(self.listener, selectors.EVENT_READ, self.accept)
        self.next_id = 1

    def accept(self):
        sock, _ = self.listener.accept()
        while self.next_id in self.user.clients:
            self.next_id = self.next_id % CLIENT_IDS + 1
        c = self.user.clients[self.next_id] = Client(sock, self.next_id, self)
        self.next_id = self.next_id % CLIENT_IDS + 1
        self.poll.register(sock, selectors.EVENT_READ, c.readable)

    def gone(self, client):
        self.poll.unregister(client.sock)
        client.sock.close()
        self.user.clients.pop(client.id, None)
        self.user.forget(client)
        if client.is_sm:
            self.sm_changed()

    def sm_changed(self):
        self.host.port.set_sm(any(c.is_sm for c in self.user.clients.values()))
        self.show_port()

    def show_port(self):
        port = self.host.port
        now = bytes(port.info), bytes(port.pkeys)
        if now != self.shown:
            self.shown = now
            self.tree.write(contents(self.host.node.info(1), *now))

    def run(self):
        print('ready', file=sys.stderr, flush=True)
        while True:
            for key, _ in self.poll.select(TICK if self.user.busy() else 0.5):
                key.data()
            self.user.late()
            self.show_port()


def number(text):
    return int(text, 0)


def arguments():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('directory', help='directory of the socket and the tree of /sys')
    p.add_argument('-i', '--interface', action='append', required=True,
                   help='interface of a device; several are joined by a switch')
    p.add_argument('--switch', action='store_true', help='use a switch even for a single device')
    p.add_argument('--roce', action='store_true', help='carry QP1 by RoCEv2')
    p.add_argument('--ip', default='192.0.2.1')
    p.add_argument('--peer-ip', default='192.0.2.2')
    p.add_argument('--lid', type=number, default=1, help="LID of the tools' port; 0: none yet")
    p.add_argument('--sm-lid', type=number, default=2)
    p.add_argument('--state', type=int, default=4, help="its state: 2 Initialize, 4 Active")
    p.add_argument('--vl-cap', type=int, default=4, help='VLCap: 1 is VL0, 4 is VL0-7')
    p.add_argument('--guid', type=number, default=0x0002c9fffe000010)
    p.add_argument('--description', default='bridge')
    p.add_argument('--ethertype', type=number, default=0x88b5)
    p.add_argument('-v', '--verbose', action='store_true')
    return p.parse_args()


def main():
    bridge = Bridge(arguments())

    def end(signum, frame):
        sys.exit(1 if bridge.wrong else 0)
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, end)
    bridge.run()


if __name__ == '__main__':
    main()
