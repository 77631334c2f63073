# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The tree under /sys/class that libibumad reads for the tools' own port."""

import os
import struct

DEVICE = 'umad0'
STATES = ('NOP', 'DOWN', 'INIT', 'ARMED', 'ACTIVE')
PHYS = ('No state change', 'Sleep', 'Polling', 'Disabled', 'PortConfigurationTraining', 'LinkUp',
        'LinkErrorRecovery')
LANES = {1: 1, 2: 4, 4: 8, 8: 12}


def _quads(b):
    return ':'.join(b.hex()[i:i + 4] for i in range(0, len(b) * 2, 4))


def contents(node, port, pkeys):
    """Path under the root: line of text. node, port: NodeInfo and PortInfo as on the wire."""
    lid, sm_lid, capabilities = struct.unpack_from('>HHI', port, 16)
    lanes = LANES[port[31]]
    mad, device = 'sys/class/infiniband_mad/', 'sys/class/infiniband/%s/' % DEVICE
    at = device + 'ports/1/'
    files = {
        mad + 'abi_version': '5',
        device + 'node_type': '1: CA', device + 'fw_ver': '1.0', device + 'hw_rev': '0',
        device + 'hca_type': 'bridge', device + 'node_guid': _quads(node[12:20]),
        device + 'sys_image_guid': _quads(node[4:12]),
        at + 'lid': '0x%x' % lid, at + 'sm_lid': '0x%x' % sm_lid,
        at + 'sm_sl': str(port[36] & 15), at + 'lid_mask_count': str(port[34] & 7),
        at + 'state': '%d: %s' % (port[32] & 15, STATES[port[32] & 15]),
        at + 'phys_state': '%d: %s' % (port[33] >> 4, PHYS[port[33] >> 4]),
        at + 'rate': '%g Gb/sec (%dX)' % (2.5 * (port[35] >> 4) * lanes, lanes),
        at + 'cap_mask': '0x%08x' % capabilities, at + 'link_layer': 'InfiniBand',
        at + 'gids/0': _quads(port[8:16] + node[20:28]),
    }
    for name in ('umad0', 'issm0'):
        files[mad + name + '/ibdev'] = DEVICE
        files[mad + name + '/port'] = '1'
    for i in range(32):
        files[at + 'pkeys/%d' % i] = '0x%04x' % struct.unpack_from('>H', pkeys, 2 * i)[0]
    return files


class Tree:
    """Write files atomically, and only when they change."""

    def __init__(self, root):
        self.root, self.now = root, {}

    def write(self, files):
        for name, line in files.items():
            if self.now.get(name) == line:
                continue
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + '.new', 'w') as f:
                f.write(line + '\n')
            os.rename(path + '.new', path)
        self.now = dict(files)
