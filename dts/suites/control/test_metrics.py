# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Metrics as Prometheus reads them, and the alert rules and the dashboard made from them."""

import json
import os
import re
import subprocess

import pytest

from conn import wait_until
from hca import Hca
from polca import CTL_PROGRAM, Polca
from polcapair import A, B, PolcaPair
from roce import gid_of

MONITORING = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../config/monitoring')
REM_INV_REQ_ERR = 9  # IBV_WC_REM_INV_REQ_ERR
RETRY_EXC_ERR = 12  # IBV_WC_RETRY_EXC_ERR
DASHBOARD = os.path.join(MONITORING, 'dashboard.json')
ALERTS = os.path.join(MONITORING, 'alerts.yml')
ALERT_TESTS = os.path.join(MONITORING, 'alerts_test.yml')

# prometheus/node_exporter: collector/infiniband_linux.go, as of its release 1.11. All have the labels device and port,
# but info; a name in _total is a counter, and the others are gauges.
NODE_EXPORTER = set('''
    info state_id physical_state_id rate_bytes_per_second
    link_downed_total multicast_packets_received_total multicast_packets_transmitted_total
    port_data_received_bytes_total port_data_transmitted_bytes_total port_discards_received_total
    port_discards_transmitted_total port_errors_received_total port_packets_received_total
    port_packets_transmitted_total port_transmit_wait_total unicast_packets_received_total
    unicast_packets_transmitted_total
    duplicate_requests_packets_total implied_nak_seq_errors_total local_ack_timeout_errors_total
    np_cnp_packets_sent_total np_ecn_marked_roce_packets_received_total out_of_buffer_drops_total
    out_of_sequence_packets_received_total packet_sequence_errors_total req_cqes_errors_total
    req_cqes_flush_errors_total req_remote_access_errors_total req_remote_invalid_request_errors_total
    resp_cqes_errors_total resp_cqes_flush_errors_total resp_local_length_errors_total
    resp_remote_access_errors_total rnr_nak_retry_packets_received_total rp_cnp_packets_handled_total
    rp_cnp_ignored_packets_received_total rx_atomic_requests_total rx_read_requests_total
    rx_write_requests_total rx_icrc_encapsulated_errors_total'''.split())
# at native IB ports
NODE_EXPORTER_IB = set('''
    excessive_buffer_overrun_errors_total local_link_integrity_errors_total vl15_dropped_total'''.split())
# what Polca cannot know, or does not have: docs/operator-guide.md says why
NODE_EXPORTER_NEVER = set('''
    legacy_multicast_packets_received_total legacy_multicast_packets_transmitted_total
    legacy_data_received_bytes_total legacy_packets_received_total legacy_unicast_packets_received_total
    legacy_unicast_packets_transmitted_total legacy_data_transmitted_bytes_total
    legacy_packets_transmitted_total link_error_recovery_total port_constraint_errors_received_total
    port_constraint_errors_transmitted_total port_receive_remote_physical_errors_total
    port_receive_switch_relay_errors_total symbol_error_total lifespan_seconds roce_adp_retransmits_total
    roce_adp_retransmits_timeout_total roce_slow_restart_used_total roce_slow_restart_cnps_total
    roce_slow_restart_total rx_dct_connect_requests_total'''.split())
GUIDE = os.path.join(MONITORING, '../../docs/operator-guide.md')


def promtool(*args, text=None):
    r = subprocess.run(('promtool',) + args, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=60)
    assert r.returncode == 0, r.stdout
    return r.stdout


def samples(text):
    """{'name{labels}': value}"""
    return {k: float(v) for k, v in (line.rsplit(' ', 1) for line in text.splitlines() if line[0] != '#')}


def metrics(polca, *args):
    return polca.ctl('stats', 'metrics', *args).stdout


def expressions():
    with open(DASHBOARD) as f:
        found = [t['expr'].replace('$__rate_interval', '5m') for p in json.load(f)['panels'] for t in p['targets']]
    assert len(found) >= 10
    return found


@pytest.mark.parametrize('more', [(), ('--qp',)])
def test_promtool_finds_nothing_to_report(polca, traffic, more):
    traffic.move('write', 5000, seed=1)
    text = metrics(polca, *more)
    assert promtool('check', 'metrics', text=text) == ''
    assert ('polca_qp_info{' in text) == bool(more)


def test_metrics_are_the_counters(polca, traffic):
    traffic.move('write', 5000, seed=2)
    told, stats = samples(metrics(polca)), polca.rpc('stats_get')
    for i, port in enumerate(stats['ports']):
        assert told['polca_port_receive_packets_total{port="%d"}' % i] == port['rx_packets']
        assert told['node_infiniband_port_packets_received_total{device="polca",port="%d"}' % (i + 1)] \
            == port['rx_packets']
        for verdict, n in port['served'].items():
            assert told['polca_port_served_packets_total{port="%d",verdict="%s"}' % (i, verdict)] == n
        assert told['polca_rc_sent_pkts_total{port="%d"}' % i] == port['rc']['sent_pkts'] > 0
    assert sum(p['rc']['sent_pkts'] for p in stats['ports']) == stats['rc']['sent_pkts']
    assert told['node_infiniband_state_id{device="polca",port="1"}'] == 4
    assert told['polca_worker_stalled{worker="0"}'] == 0


def node_exporter_metrics(polca):
    """{name: type}, without the prefix."""
    found = re.findall(r'^# TYPE node_infiniband_(\w+) (\w+)$', metrics(polca), re.M)
    assert len(dict(found)) == len(found)
    return dict(found)


def test_names_and_types_are_node_exporters(polca):
    found = node_exporter_metrics(polca)
    assert set(found) == NODE_EXPORTER
    for name, kind in found.items():
        assert kind == ('counter' if name.endswith('_total') else 'gauge'), name
    for sample in samples(metrics(polca)):
        if sample.startswith('node_infiniband_info'):
            assert re.fullmatch(r'\w+{device="polca",board_id="",firmware_version="[^"]+",hca_type="Polca"}', sample)
        elif sample.startswith('node_infiniband_'):
            assert re.fullmatch(r'\w+{device="polca",port="[12]"}', sample), sample


def test_native_infiniband_has_more_of_them(sockets):
    ports = [{'name': 'port%d' % i, 'back_to_back': 'port%d' % (1 - i), 'encapsulation': 'ib'} for i in range(2)]
    with Polca(sockets, ports, name='native') as native:
        assert set(node_exporter_metrics(native)) == NODE_EXPORTER | NODE_EXPORTER_IB


def test_names_that_polca_does_not_have_are_explained():
    with open(GUIDE) as f:
        text = f.read()
    for name in NODE_EXPORTER_NEVER:
        assert re.search(r'`(%s|%s_\*)`' % (name, name.split('_')[0]), text) or \
            re.search(r'`%s_\*`' % '_'.join(name.split('_')[:2]), text) or \
            re.search(r'`%s_\*`' % '_'.join(name.split('_')[:3]), text), name


def test_units_are_bytes_and_ticks(polca, traffic):
    """Bytes, where performance management has words of four."""
    before = samples(metrics(polca))
    traffic.move('write', 100000, seed=3)
    after, stats = samples(metrics(polca)), polca.rpc('stats_get')['ports'][0]
    name = 'node_infiniband_port_data_transmitted_bytes_total{device="polca",port="1"}'
    assert after[name] == stats['tx_bytes'] and after[name] - before[name] > 100000


def test_alert_rules():
    promtool('check', 'rules', ALERTS)
    promtool('test', 'rules', ALERT_TESTS)


def test_each_alert_has_a_test_of_its_rule():
    with open(ALERTS) as rules, open(ALERT_TESTS) as tests:
        alerts, tested = re.findall(r'- alert: (\w+)', rules.read()), re.findall(r'alertname: (\w+)', tests.read())
    assert len(alerts) > 10 and set(alerts) == set(tested)


def test_dashboard_expressions(tmp_path):
    rules = [{'record': 'dashboard:%d' % i, 'expr': e} for i, e in enumerate(expressions())]
    path = tmp_path / 'dashboard.yml'
    path.write_text(json.dumps({'groups': [{'name': 'dashboard', 'rules': rules}]}))
    promtool('check', 'rules', str(path))


def test_rules_and_dashboard_name_metrics_that_exist(polca):
    names = {k.split('{')[0] for k in samples(metrics(polca))}
    with open(ALERTS) as f:
        used = re.findall(r'(?:polca|node_infiniband)_\w+', ' '.join(expressions()) + f.read())
    assert len(used) > 20
    # those of a fleet exist in a fleet: fleet/test_fleet.py
    assert not {u for u in used if not u.startswith('polca_fleet_')} - names


def test_rates(polca):
    r = json.loads(polca.ctl('--json', 'stats', 'get', '--rate', '0.2').stdout)
    assert [p['port'] for p in r['ports']] == [0, 1]
    assert r['rc']['retry_exceeded_err'] == 0.0
    # what does not grow is not shown: none of this port's counters of errors
    shown = json.loads(polca.ctl('--json', 'stats', 'get', '--nonzero', '--rate', '0.2').stdout)
    assert 0.0 not in shown.get('rc', {}).values() and not any(
        v == 0.0 for p in shown['ports'] for v in p.values() if isinstance(v, float))
    assert polca.ctl('stats', 'get', '--rate', '0', check=False).returncode == 2


def test_device_counters(polca):
    for port in polca.rpc('stats_get', xstats=True)['ports']:
        assert {'rx_missed', 'rx_errors', 'rx_nombuf'} <= set(port)
        assert 'rx_good_packets' in port['xstats']
    assert 'xstats' not in polca.rpc('stats_get')['ports'][0]


def test_regions_have_their_node(polca):
    """In the list as in the reply to mr_register; more nodes than one: suite bare-metal, test_placement.py."""
    nodes = [int(n[4:]) for n in os.listdir('/sys/devices/system/node') if re.fullmatch(r'node\d+', n)]
    made = polca.rpc('mr_register', pd=polca.rpc('pd_create')['pd'], length=4096)
    row, = [m for m in polca.rpc('mr_list')['regions'] if m['key'] == made['key']]
    assert row['numa_node'] == made['numa_node'] and row['numa_node'] in nodes
    assert 'numa_node' in polca.ctl('mr', 'list').stdout


def runbook(alert):
    with open(ALERTS) as f:
        return re.search(r'alert: %s\n.*?runbook: (.*?)(?=- alert|\Z)' % alert, f.read(), re.S).group(1)


def typed(polca, command):
    """What a command of a runbook prints."""
    return subprocess.run(command.replace('polca-ctl', '%s -s %s' % (CTL_PROGRAM, polca.socket)), shell=True,
                          stdout=subprocess.PIPE, text=True, timeout=60).stdout


def test_the_runbook_finds_the_queue_pair_of_a_connection_that_is_gone(polca):
    """PolcaAccessRefused: what its runbook says, when neither `qp list` nor `qp show` has the queue pair any more."""
    service = polca.rpc('cm_listen', kind='memory', port=7191)['service']
    pd, cq = polca.rpc('pd_create')['pd'], polca.rpc('cq_create')['cq']
    made = polca.rpc('cm_connect', dgid=B, port=7191, pd=pd, send_cq=cq)
    try:
        mine, theirs = made['qp_num'], polca.rpc('qp_show', qp_num=made['qp_num'])['dest_qp_num']
        mr = polca.rpc('mr_register', pd=pd, length=4096)
        sg = [dict(lkey=mr['key'], addr=mr['va'], length=64)]
        polca.rpc('post_send', qp_num=mine, wr=[dict(opcode='RDMA_WRITE', sg_list=sg, remote_addr=0, rkey=1, wr_id=1)])
        wait_until(lambda: theirs not in [q['qp_num'] for q in polca.rpc('qp_list')['qps']])
        # more events than one reply has, all of them newer
        for _ in range(60):
            polca.rpc('cm_unlisten', service=polca.rpc('cm_listen', kind='sink', port=7192)['service'])
    finally:
        polca.rpc('cm_unlisten', service=service)
    command, = re.findall(r'polca-ctl events \| grep .*', runbook('PolcaAccessRefused'))
    line, = [line for line in typed(polca, command).splitlines() if 'QP 0x%x on port1 is in ERR' % theirs in line]
    assert 'sent NAK 0x62 (remote access error)' in line and 'peer %s QP 0x%x' % (A, mine) in line
    # the log has it too: journalctl -u polca -g
    assert line.split('QP 0x', 1)[1] in polca.tail(100000)


def test_from_an_alert_to_queue_pair_peer_and_reason(polca):
    """PolcaRetriesExceeded: the commands of its runbook, for a queue pair that still exists."""
    before = samples(metrics(polca))['polca_rc_retry_exceeded_err_total{port="0"}']
    pair = PolcaPair(Hca(polca, 0), A, Hca(polca, 1), B, timeout=8, retry_cnt=1)
    pair.qb.modify(qp_state='ERR')
    pair.qa.post_send('write', wr_id=1, rkey=pair.mb.key, remote_addr=pair.mb.va)
    assert pair.qa.poll()[0].status == RETRY_EXC_ERR
    assert samples(metrics(polca))['polca_rc_retry_exceeded_err_total{port="0"}'] == before + 1
    failed = [k for k, v in samples(metrics(polca, '--qp')).items() if 'qp_retry_exceeded_err' in k and v]
    assert 'qp_num="0x%06x"' % pair.qa.qpn in failed[-1]
    events, show, count = re.findall(r'polca-ctl [^;\n]+', runbook('PolcaRetriesExceeded'))
    ours = re.compile(r'QP (0x%x) on port0 is in ERR: (.*)' % pair.qa.qpn)
    wait_until(lambda: ours.search(typed(polca, events)))
    number, said = ours.search(typed(polca, events)).groups()
    assert 'the peer did not answer' in said and 'peer %s QP 0x%x' % (B, pair.qb.qpn) in said
    shown = typed(polca, show.replace('QP_NUM', number))
    assert '0x%06x' % pair.qb.qpn in shown and B in shown and 'ERR' in shown
    assert 'local_ack_timeout_err' in typed(polca, count.replace('QP_NUM', number))


def test_from_lost_packets_to_the_queue_pair_that_misses_them(polca):
    """PolcaPacketLoss: the peer's first five packets are lost, as its PSN says."""
    qa, qb = Hca(polca, 0).qp(), Hca(polca, 1).qp()
    qa.connect(dest_qp_num=qb.qpn, rq_psn=0, sq_psn=105, path_mtu=1024, dgid=gid_of(B), timeout=8, retry_cnt=1)
    qb.connect(dest_qp_num=qa.qpn, rq_psn=100, sq_psn=0, path_mtu=1024, dgid=gid_of(A))
    qa.post_send('write', wr_id=1, rkey=1, remote_addr=0)
    find, show, count = re.findall(r'polca-ctl [^(\n]+', runbook('PolcaPacketLoss'))
    found = re.compile(r'^polca_qp_out_of_sequence_total{qp_num="(0x%06x)"} [1-9]' % qb.qpn, re.M)
    wait_until(lambda: found.search(typed(polca, find)))
    number = found.search(typed(polca, find)).group(1)
    shown = typed(polca, show.replace('QP_NUM', number))
    assert '0x%06x' % qa.qpn in shown and A in shown and 'RTS' in shown
    assert 'out_of_sequence' in typed(polca, count.replace('QP_NUM', number))


def test_a_refused_request_counts_for_the_alert(polca):
    """PolcaQueuePairsFailed: an Atomic at an address that is not aligned, which breaks no key."""
    def failures():
        told = samples(metrics(polca))
        with open(ALERTS) as f:
            rule, = re.findall(r'alert: PolcaQueuePairsFailed\n(.*?)labels:', f.read(), re.S)
        return [[told['%s{port="%d"}' % (name, port)] for name in re.findall(r'polca_rc_\w+', rule)]
                for port in (0, 1)]
    before = failures()
    pair = PolcaPair(Hca(polca, 0), A, Hca(polca, 1), B)
    pair.qa.post_send('fetch_add', wr_id=1, sg=[(pair.ma, 0, 8)], remote_addr=pair.mb.va + 1, rkey=pair.mb.key,
                      compare_add=3)
    assert pair.qa.poll()[0].status == REM_INV_REQ_ERR
    after = failures()
    assert sum(after[0]) > sum(before[0]) and sum(after[1]) > sum(before[1])
    command, = re.findall(r'polca-ctl events \| grep .*', runbook('PolcaQueuePairsFailed'))
    wait_until(lambda: 'QP 0x%x on port1 is in ERR' % pair.qb.qpn in typed(polca, command))


def test_an_overrun_completion_queue_counts_for_the_alert(polca):
    """PolcaCompletionQueueOverrun: more Writes complete than the queue holds, and nobody polls."""
    def failures():
        return [samples(metrics(polca))['polca_rc_cq_overrun_total{port="%d"}' % port] for port in (0, 1)]
    before = failures()
    a, b = Hca(polca, 0), Hca(polca, 1)
    qa, qb, mb = a.qp(cq=a.cq(depth=2)), b.qp(), b.mr(4096)
    qa.connect(dest_qp_num=qb.qpn, rq_psn=0, sq_psn=0, path_mtu=1024, dgid=gid_of(B))
    qb.connect(dest_qp_num=qa.qpn, rq_psn=0, sq_psn=0, path_mtu=1024, dgid=gid_of(A))
    qa.post_sends([qa.send_wr('write', wr_id=i, rkey=mb.key, remote_addr=mb.va) for i in range(5)])
    wait_until(lambda: qa.state() == 'ERR')
    assert failures() == [before[0] + 1, before[1]]
    queues, find = re.findall(r'polca-ctl [^,\n]+', runbook('PolcaCompletionQueueOverrun'))
    line, = [line for line in typed(polca, queues).splitlines() if line.split()[:1] == [str(qa.cq)]]
    assert 'yes' in line.split()
    wait_until(lambda: 'QP 0x%x on port0 is in ERR' % qa.qpn in typed(polca, find))


def test_the_senders_of_damaged_packets():
    """PolcaDamagedPackets: what its command makes of tcpdump's lines."""
    tcpdump, = re.findall(r'timeout 10 tcpdump .*', runbook('PolcaDamagedPackets'))
    lines = ('12:00:00.1 IP 192.0.2.1.49152 > 192.0.2.2.4791: UDP, length 28\n'
             '12:00:00.2 IP 192.0.2.1.49153 > 192.0.2.2.4791: UDP, length 28\n'
             '12:00:00.3 IP6 2001:db8::7.49153 > 2001:db8::2.4791: UDP, length 28\n')
    seen = subprocess.run(tcpdump.split(' | ', 1)[1], shell=True, input=lines, stdout=subprocess.PIPE, text=True,
                          timeout=60, check=True).stdout
    assert [line.split() for line in seen.splitlines()] == [['2', '192.0.2.1'], ['1', '2001:db8::7']]
