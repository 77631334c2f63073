# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Clients of a fleet's subnet administration: services that they set, and who has them."""

import json

import mad
import sapeer
from mad import SERVICE, v1
from sawire import SM_KEY


def service(number):
    """A Set of class version 1, which is refused if the record is there already."""
    values = dict(service_id=number, gid=1 << 64 | number, pkey=0, lease=0xffffffff,
                  name=b'service %d' % number)
    return v1(mad.SET, SERVICE.attr, tid=sapeer.new_tid(), sm_key=SM_KEY, edit=mad.ADD,
              mask=SERVICE.mask(*values), data=SERVICE.put(**values))


def services(polca):
    """How many records each ServiceID has."""
    rows = json.loads(polca.ctl('sa', 'export', '-').stdout)['records']
    ids = [int(str(r['service_id']), 0) for r in rows if r['record'] == 'ServiceRecord']
    return {i: ids.count(i) for i in ids}
