# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A reload adds addresses to a port and changes limits, and names those that need a restart. Each test has an
appliance of its own, as addresses cannot be taken away again."""

import json

import pytest

from conn import wait_until
from net import Namespace
from polca import Polca, port
from polcapair import A, back_to_back

IP, IP6, NEW, NEW6 = '10.77.0.1/24', 'fd77::1/64', '10.77.0.9/24', 'fd77::9/64'


def write_config(polca, **changes):
    with open(polca.config_path, 'w') as f:
        json.dump({**polca.config, **changes}, f, indent=1)


def changes(polca, method):
    return {c['path']: (c['was'], c['now'], c['restart']) for c in polca.rpc(method)['changes']}


def gids(polca, number=0):
    return [g['gid'] for g in polca.rpc('port_list')['ports'][number]['gids']]


def reloads(polca):
    return [line for line in polca.tail(100000).split('\n') if 'polca: reload: ' in line]


@pytest.fixture
def wire(sockets, request):
    """An appliance on one end of a wire, the kernel on the other one, with addresses of the port's subnets."""
    with Namespace() as ns:
        ns.veth('pv0', 'st0')
        ns.exec(['sh', '-c', 'echo 0 >/proc/sys/net/ipv6/conf/st0/disable_ipv6'])
        ns.ip('addr', 'add', '10.77.0.2/24', 'dev', 'st0')
        ns.ip('addr', 'add', 'fd77::2/64', 'dev', 'st0', 'nodad')
        with Polca(sockets, [port('port0', 'net_af_packet0,iface=pv0', IP)], ns=ns,
                   name=request.node.name[:32]) as p:
            yield p, ns


def flags(ns):
    row, = json.loads(ns.exec(['ip', '-j', 'link', 'show', 'dev', 'pv0']))
    return set(row['flags'])


def answers(ns, address):
    """True if an echo request is answered."""
    return ns.exec(['sh', '-c', 'ping -c 1 -w 2 %s >/dev/null && echo yes || true' % address.split('/')[0]]) == 'yes\n'


def test_added_addresses_are_served_at_once(wire):
    polca, ns = wire
    before = gids(polca)
    assert answers(ns, IP) and not answers(ns, NEW)
    assert not {'ALLMULTI', 'PROMISC'} & flags(ns)
    row = dict(polca.config['ports'][0], addresses=[IP, NEW, NEW6])
    write_config(polca, ports=[row])
    expected = changes(polca, 'config_diff')
    assert expected == {'ports[0].addresses[1]': ('none', '"%s"' % NEW, False),
                        'ports[0].addresses[2]': ('none', '"%s"' % NEW6, False)}
    assert not answers(ns, NEW)
    assert changes(polca, 'config_reload') == expected
    assert changes(polca, 'config_diff') == {}
    assert answers(ns, NEW) and answers(ns, NEW6) and answers(ns, IP)
    # the GIDs that were there keep their indexes
    assert gids(polca)[:len(before)] == before and len(gids(polca)) == len(before) + 2
    events = [e for e in polca.rpc('events')['events'] if e['event'] == 'GID_CHANGE']
    assert [e['text'] for e in events] == ['port0 has the address 10.77.0.9, too', 'port0 has the address fd77::9, too']
    # neighbours hear of them
    wait_until(lambda: polca.config['ports'] and '10.77.0.9' in ns.exec(['ip', 'neigh', 'show', 'dev', 'st0']))
    # the first IPv6 address made the interface receive multicast, which ends with the process
    assert {'ALLMULTI', 'PROMISC'} & flags(ns)
    polca.stop()
    assert not {'ALLMULTI', 'PROMISC'} & flags(ns)


def test_other_changes_of_addresses_need_a_restart(wire):
    polca, ns = wire
    row = polca.config['ports'][0]
    for addresses in ([NEW], [NEW, IP], []):
        write_config(polca, ports=[dict(row, addresses=addresses)])
        told = changes(polca, 'config_reload')
        assert told and all(restart for _, _, restart in told.values()), told
        assert reloads(polca)[-2].endswith(': needs a restart') and answers(ns, IP) and not answers(ns, NEW)
    # a port of another name is another port
    write_config(polca, ports=[dict(row, name='port7', addresses=[IP, NEW])])
    assert all(restart for _, _, restart in changes(polca, 'config_reload').values()) and not answers(ns, NEW)


def test_services_answer_at_an_added_address(sockets):
    with Polca(sockets, back_to_back(), name='pair') as polca:
        a, b = polca.config['ports']
        new = A.rsplit('.', 1)[0] + '.77/24'
        write_config(polca, ports=[a, dict(b, addresses=b['addresses'] + [new])],
                     services=[{'kind': 'rping', 'port': 7197}])
        polca.rpc('config_reload')
        r = polca.ctl('--json', 'cm', 'connect', new.split('/')[0], '7197', '--service', 'rping', '--count', '10',
                      '--verify')
        assert json.loads(r.stdout), r


def test_a_reload_that_is_refused_adds_no_address(wire):
    polca, ns = wire
    taken = polca.rpc('cm_listen', kind='echo', port=7198)['service']
    write_config(polca, ports=[dict(polca.config['ports'][0], addresses=[IP, NEW])],
                 services=[{'kind': 'rping', 'port': 7198}], limits={'max_cqe': 100})
    assert 'services[0]' in polca.rpc.request('config_reload', {})['error']['message']
    assert not answers(ns, NEW)
    polca.rpc('cq_create', depth=101)
    polca.rpc('cm_unlisten', service=taken)


def test_limits_of_new_objects(wire):
    """Those that exist stay; a limit that sizes memory is named as one that needs a restart."""
    polca, _ = wire
    pd, cq = polca.rpc('pd_create')['pd'], polca.rpc('cq_create', depth=64)['cq']
    qp = polca.rpc('qp_create', pd=pd, send_cq=cq, max_send_wr=100)['qp_num']
    write_config(polca, limits={'max_qp_wr': 50, 'max_cqe': 200, 'max_sge': 2, 'max_inline': 32, 'max_srq_wr': 40,
                                'window': 99, 'ack_interval': 7, 'min_ack_timeout': 3, 'quarantine': 9, 'max_cq': 99,
                                'max_rd_atomic': 3})
    told = {path.replace('limits.', ''): restart for path, (_, _, restart) in changes(polca, 'config_diff').items()}
    assert told == {'max_qp_wr': False, 'max_cqe': False, 'max_sge': False, 'max_inline': False, 'max_srq_wr': False,
                    'window': False, 'ack_interval': False, 'min_ack_timeout': False, 'quarantine': False,
                    'max_cq': True, 'max_rd_atomic': True}
    polca.ctl('config', 'reload')
    assert set(changes(polca, 'config_diff')) == {'limits.max_cq', 'limits.max_rd_atomic'}
    restarts = [line for line in reloads(polca) if line.endswith(': needs a restart')]
    assert len(restarts) == 2 and all('limits.max_' in line for line in restarts)

    def refused(method, **params):
        reply = polca.rpc.request(method, params)
        return 'error' in reply and reply['error']['message']

    assert 'allowed: 1 to 50' in refused('qp_create', pd=pd, send_cq=cq, max_send_wr=51, max_recv_wr=50,
                                         max_send_sge=1, max_recv_sge=1, max_inline_data=32)
    assert '200' in refused('cq_create', depth=201)
    assert 'allowed: 0 to 32' in refused('qp_create', pd=pd, send_cq=cq, max_send_wr=50, max_recv_wr=50,
                                         max_send_sge=1, max_recv_sge=1, max_inline_data=33)
    assert '40' in refused('srq_create', pd=pd, max_wr=41, max_sge=1)
    assert [q['qp_num'] for q in polca.rpc('qp_list')['qps']] == [qp]
    write_config(polca)
    polca.rpc('config_reload')
    assert changes(polca, 'config_diff') == {}
    polca.rpc('cq_create', depth=201)
