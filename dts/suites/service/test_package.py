# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Install, start, kill, hang, stop and purge: Polca's packages under a real systemd, as an operator sees them."""

import json
import re

import pytest

from conn import wait_until

TEST_SECONDS = 600  # the first test waits for the packages and the container

WATCHDOG = '[Service]\nWatchdogSec=2\n'


def main_pid(host):
    return int(host.show('MainPID'))


def answers(host):
    return host.run('polca-ctl version get').returncode == 0


def test_install(host):
    host('dpkg -i /packages/polca_*.deb /packages/polca-tools_*.deb')
    assert host('id -un polca').strip() == 'polca'
    # the operator names card and addresses first
    assert host('systemctl is-enabled polca', check=False).strip() == 'disabled'
    assert host.show('ActiveState') == 'inactive'
    assert host('dpkg-query -W -f "\\${Conffiles}" polca').split()[0] == '/etc/polca/polca.json'
    for page in ('man8/polca.8', 'man5/polca.json.5', 'man1/polca-ctl.1', 'man1/polca-bench.1'):
        host('test -s /usr/share/man/%s.gz' % page)


def test_exposure_is_at_most_3(host):
    text = host('systemd-analyze security polca --no-pager')
    exposure = float(re.search(r'Overall exposure level for polca.service: ([\d.]+)', text).group(1))
    assert exposure <= 3.0, text


def test_start_returns_when_the_control_socket_answers(host):
    host('systemctl enable --now polca')
    assert host('polca-ctl version get').strip()
    assert host.show('StatusText') == '2 ports, %s workers, control socket /run/polca/polca.sock' % (
        len(json.loads(host('polca-ctl --json worker list'))['workers']))


def test_it_runs_as_its_own_user_without_capabilities(host):
    status = host('cat /proc/%d/status' % main_pid(host))
    uid = host('id -u polca').strip()
    assert re.search(r'^Uid:\t%s\t%s\t%s' % (uid, uid, uid), status, re.M)
    assert re.search(r'^CapEff:\t0+$', status, re.M) and re.search(r'^CapBnd:\t0+$', status, re.M)
    assert re.search(r'^NoNewPrivs:\t1$', status, re.M) and re.search(r'^Seccomp:\t2$', status, re.M)


def test_rping_traffic(host):
    text = host('polca-ctl cm connect 192.0.2.2 7174 --service rping --count 10 --verify')
    assert re.search(r'\b10\b', text), text


def test_dpdk_telemetry_as_documented(host):
    text = host('echo /ethdev/list | RUNTIME_DIRECTORY=/run/polca dpdk-telemetry.py -f polca')
    assert '"/ethdev/list": [' in text.replace("'", '"'), text


def test_each_line_is_in_the_journal_once(host):
    lines = [line for line in host.journal().split('\n') if 'ready: ' in line]
    assert len(lines) == 1


def test_restart_after_kill_9(host):
    old = main_pid(host)
    host('kill -9 %d' % old)
    wait_until(lambda: host.show('NRestarts') == '1' and host.show('ActiveState') == 'active', 60)
    assert main_pid(host) != old and answers(host)


def test_the_watchdog_restarts_a_process_that_hangs(host):
    host.write('/etc/systemd/system/polca.service.d/watchdog.conf', WATCHDOG)
    host('systemctl daemon-reload; systemctl restart polca')
    old = main_pid(host)
    host('kill -STOP %d' % old)
    wait_until(lambda: main_pid(host) not in (0, old) and host.show('ActiveState') == 'active', 60)
    assert 'watchdog' in host('journalctl -u polca --no-pager').lower() and answers(host)


def test_stop_drains_and_is_no_failure(host):
    host('systemctl stop polca')
    assert host.show('Result') == 'success' and host.show('ExecMainStatus') == '0'
    assert 'stopping (signal 15)' in host.journal()


def test_a_fatal_start_is_in_the_journal_as_an_error(host):
    host.write('/etc/polca/polca.json', '{ "workers": { "count": -1 }, "ports": [] }')
    assert host.run('systemctl start polca').returncode != 0
    errors = host.journal('-p', 'err')
    assert '/etc/polca/polca.json:1: workers.count: got -1' in errors, host.journal()
    host('systemctl reset-failed polca', check=False)


@pytest.mark.parametrize('example,drop_in', [
    ('default', None), ('services', 'af_packet'), ('memif-server', None), ('af_packet', 'af_packet'),
    ('sa-server', 'af_packet'), ('infiniband', 'af_packet'), ('infiniband-static', 'af_packet')])
def test_examples_start_as_shipped(host, example, drop_in):
    if host.run('ip link show eth1').returncode != 0:
        host('ip link add eth1 type veth peer name eth2 && ip link set eth1 up && ip link set eth2 up')
    host.start('/usr/share/polca/examples/%s.json' % example, drop_in)
    socket = json.loads(host('polca -c /etc/polca/polca.json --print-config'))['control']['socket']
    host('polca-ctl -s %s port list' % (socket or '/run/polca/polca.sock'))
    host('systemctl stop polca')
    assert host.show('Result') == 'success', host.journal()


def test_an_operators_configuration_survives_an_upgrade(host):
    host.write('/etc/polca/polca.json', '{ "ports": [ { "name": "port7", "back_to_back": "port8", "addresses": '
               '["192.0.2.1/24"] }, { "name": "port8", "back_to_back": "port7", "addresses": ["192.0.2.2/24"] } ] }')
    host.start()
    host('dpkg --force-confold -i /packages/polca_*.deb')
    host('systemctl restart polca')
    assert 'port7' in host('polca-ctl port list')


def test_purge_leaves_nothing(host):
    host('systemctl stop polca')
    host('dpkg --purge polca polca-tools')
    assert host('ls -d /etc/polca /run/polca /usr/share/polca /lib/systemd/system/polca.service 2>/dev/null; true') == ''
