# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A subnet managed by opensm: appliances on unconfigured native InfiniBand ports, cabled to the
bridge, with opensm and fabric tools behind it."""

import os
import shutil

import capture
from conn import wait_until
from ibports import ib_port
from net import Namespace
from polca import Polca
from umad import Bridge, ended

GUID = 0x0002c90300880000
TOOLS_GUID = 0x0002c9fffe000011
SWITCH_GUID = 0x0002c9fffe000110
# otherwise, opensm writes its log and sweeps only seldom
CONF = 'force_log_flush TRUE\nsweep_interval 1\n'


class OpenSm:
    """opensm, unmodified from Debian; directory has its knowledge of LIDs."""

    def __init__(self, bridge, directory, kept):
        self.bridge, self.dir, self.kept, self.starts = bridge, directory, kept, 0
        self.conf = os.path.join(directory, 'opensm.conf')
        with open(self.conf, 'w') as f:
            f.write(CONF)
        bridge.env.update(OSM_CACHE_DIR=directory, OSM_TMP_DIR=directory)
        self.proc = None

    def start(self, up=True):
        self.starts += 1
        self.log = os.path.join(self.kept, 'opensm-%d.log' % self.starts)
        self.proc = self.bridge.popen(['opensm', '-f', self.log, '-D', '0x7', '-F', self.conf],
                                      os.path.join(self.kept, 'opensm-%d.out' % self.starts))
        if up:
            self.wait('SUBNET UP')
        return self

    def said(self):
        if not os.path.exists(self.log):
            return ''
        with open(self.log, errors='replace') as f:
            return f.read()

    def errors(self):
        """The errors it reported: its log lines of level ERROR."""
        return [line for line in self.said().splitlines() if ' ERR ' in line]

    def wait(self, text, times=1, timeout=30):
        def there():
            assert self.proc.poll() is None, 'opensm ended with %d' % self.proc.returncode
            return self.said().count(text) >= times
        wait_until(there, timeout=timeout, step=0.05)

    def stop(self):
        ended(self.proc)

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()


class Subnet:
    """names: one appliance each, .polca[name]; several are joined by the bridge's switch."""

    def __init__(self, kept, sockets, names, ib=None, **options):
        self.kept, self.names = kept, names
        self.ns = Namespace()
        self.polca, self.captures, self.namespaces, self.opensm = {}, {}, [], None
        for i, name in enumerate(names):
            ns = Namespace()
            self.namespaces.append(ns)
            self.ns.veth_to('t' + name, ns, 'pv0')
            ns.ip('link', 'set', 'pv0', 'address', self.mac(i))
            self.captures[name] = capture.Capture(self.ns, 't' + name,
                                                  os.path.join(kept, name + '.pcap'))
            self.polca[name] = Polca(
                sockets, [ib_port('port0', 'pv0', guid='0x%016x' % self.guid(name),
                                  **(ib or {}))], ns=ns, name=name,
                sma=dict(node_description='polca ' + name,
                         node_guid='0x%016x' % (self.guid(name) - 1)))
        self.bridge = Bridge(self.ns, ['t' + n for n in names], sockets,
                             **dict(dict(lid=0, sm_lid=0, state=2), **options))
        self.directory = sockets

    @staticmethod
    def mac(i):
        return '02:00:00:00:88:%02x' % (i + 1)

    def guid(self, name):
        return GUID + 0x100 * self.names.index(name) + 1

    def start(self):
        for p in self.polca.values():
            p.start()
        self.bridge.start()
        self.opensm = OpenSm(self.bridge, self.directory, self.kept)
        return self

    def port(self, name):
        return self.polca[name].rpc('port_list')['ports'][0]

    def lid(self, name):
        return self.port(name)['lid']

    def audit(self):
        """Check that tshark dissects all frames of the appliances without a malformed mark, and
        that the CRCs are right."""
        self.opensm.stop()
        self.bridge.stop()
        for i, name in enumerate(self.names):
            self.polca[name].stop()
            self.captures[name].stop()
            assert capture.check(self.captures[name].path, self.mac(i))['infiniband'], name

    def close(self):
        if self.opensm and self.opensm.proc:
            self.opensm.kill()
        self.bridge.kill()
        for p in self.polca.values():
            p.kill()
        for c in self.captures.values():
            c.stop()
        for ns in self.namespaces + [self.ns]:
            ns.close()
        for path in [self.bridge.log] + [p.log for p in self.polca.values()]:
            if os.path.exists(path):
                shutil.copy(path, self.kept)
