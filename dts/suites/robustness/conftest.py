# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Each test has its own wire and appliance, because most tests break them."""

import contextlib
import os
import shutil

import pytest

from hca import Hca
from net import Namespace
from polca import Polca, port
from roce import Station

POLCA_MAC, STATION_MAC = '02:00:00:00:77:01', '02:00:00:00:77:02'


class Wire:
    polca_mac, polca_ip, polca_ip6 = POLCA_MAC, '10.77.0.1', 'fd77::1'

    def __init__(self, sockets, device, ifnames, workers, **more):
        self.ns = Namespace()
        self.veth = ifnames[0] != ifnames[1]
        self.ifnames = ifnames
        if self.veth:
            self.ns.veth(*ifnames, mac_a=POLCA_MAC, mac_b=STATION_MAC)
        self.polca = Polca(sockets, [port('port0', device, '10.77.0.1/24', 'fd77::1/64')],
                           ns=self.ns, workers=workers, **more)
        self.station = None

    def start(self):
        self.polca.start()
        if self.station is None:
            self.station = Station(self.ns, self.ifnames[1], STATION_MAC, '10.77.0.2', 'fd77::2')
        self.polca_mac = self.polca.rpc('port_list')['ports'][0]['mac']
        return self

    def hca(self):
        return Hca(self.polca)

    def close(self):
        self.polca.kill()
        if self.station:
            self.station.close()
        self.ns.close()


@pytest.fixture
def bench(kept, sockets, request):
    """bench(...): a Wire that is always removed; the appliance's log is kept."""
    made = []

    @contextlib.contextmanager
    def make(device='net_af_packet0,iface=pv0', ifnames=('pv0', 'st0'), workers=1, **more):
        w = Wire(sockets, device, ifnames, workers, **more)
        made.append(w)
        yield w
    yield make
    for w in made:
        w.close()
        if os.path.exists(w.polca.log):
            shutil.move(w.polca.log, os.path.join(kept, request.node.name + '.log'))
