# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Machines of a fleet: each is a network namespace with a member of etcd and an appliance. They can be
cut off from each other, an appliance from etcd, and what an appliance and etcd tell each other can be
late.

    appliance --- relay --- its machine's etcd --- bridge --- the etcd of the others
                    \\______________________________/
"""

import asyncio
import os
import threading

import net
from etcd import Etcd, Place

RELAY_PORT = 3790


class Relay:
    """A TCP port on the loopback of a namespace for each target; every byte is .delay seconds late in
    both directions."""

    def __init__(self, ns, targets):
        self.delay, self.targets = 0, targets
        self.loop, self.ready = None, threading.Event()
        self.thread = threading.Thread(target=ns.call, args=(self._run,), daemon=True)
        self.thread.start()
        self.ready.wait()

    def urls(self):
        return ['http://127.0.0.1:%d' % (RELAY_PORT + i) for i in range(len(self.targets))]

    def close(self):
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()

    def _run(self):
        asyncio.run(self._serve())

    async def _serve(self):
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        servers = [await asyncio.start_server(self._accepted(target), '127.0.0.1', RELAY_PORT + i)
                   for i, target in enumerate(self.targets)]
        self.ready.set()
        await self.stop.wait()
        for s in servers:
            s.close()

    def _accepted(self, target):
        async def accepted(reader, writer):
            try:
                out_reader, out_writer = await asyncio.open_connection(*target)
            except OSError:
                writer.close()
                return
            await asyncio.gather(self._forward(reader, out_writer), self._forward(out_reader, writer))
        return accepted

    async def _forward(self, reader, writer):
        late = asyncio.Queue()

        async def receive():
            data = True
            while data:
                try:
                    data = await reader.read(1 << 16)
                except OSError:
                    data = b''
                late.put_nowait((self.loop.time() + self.delay, data))
        receiver = asyncio.create_task(receive())
        try:
            while True:
                due, data = await late.get()
                await asyncio.sleep(due - self.loop.time())
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            receiver.cancel()
            writer.close()


class Machine:
    """Address 10.90.0.I+1 on the bridge of the hub."""

    def __init__(self, i, hub):
        self.ns, self.address = net.Namespace(), '10.90.0.%d' % (i + 1)
        self.relay = None
        self.ns.veth_to('eth0', hub, 'm%d' % i)
        self.ns.ip('address', 'add', self.address + '/24', 'dev', 'eth0')

    def _cut(self, *rules):
        self.ns.exec(['nft', 'add table inet cut; '
                      'add chain inet cut in { type filter hook input priority 0; }; '
                      'add chain inet cut out { type filter hook output priority 0; }; ' +
                      '; '.join('add rule inet cut ' + r for r in rules)])

    def isolate(self):
        """Nothing goes to the other machines or comes from them."""
        self._cut('in iifname eth0 drop', 'out oifname eth0 drop')

    def cut_appliance(self):
        """The appliance does not reach etcd; etcd's members reach each other."""
        self._cut('out tcp dport %d-%d drop' % (RELAY_PORT, RELAY_PORT + 99))

    def join(self):
        self.ns.exec(['nft', 'delete table inet cut'])

    def close(self):
        if self.relay:
            self.relay.close()
        self.ns.close()


class Machines:
    """As many machines, with etcd and relays; the appliances are started by others."""

    def __init__(self, directory, number=3):
        self.hub, self.all, self.etcd = net.Namespace(), [], None
        try:
            for i in range(number):
                self.all.append(Machine(i, self.hub))
            self.hub.bridge('br0', *('m%d' % i for i in range(number)))
            self.etcd = Etcd(os.path.join(directory, 'etcd'), places=[
                Place(m.ns, m.address) for m in self.all], options=(
                    '--max-txn-ops', '128', '--auto-compaction-mode', 'periodic',
                    '--auto-compaction-retention', '10m'))
            self.etcd.start()
            for m in self.all:
                m.relay = Relay(m.ns, [self.etcd.client(i) for i in range(number)])
        except BaseException:
            self.close()
            raise

    def delay(self, seconds):
        for m in self.all:
            m.relay.delay = seconds

    def close(self):
        if self.etcd:
            self.etcd.close()
        for m in self.all:
            m.close()
        self.hub.close()
