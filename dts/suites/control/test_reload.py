# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A reload takes over what can change, all of it or nothing; queue pairs go on (see the fixture `undisturbed`)."""

import json
import os
import pwd
import re
import signal

import pytest

from conn import wait_until

RPING = {'kind': 'rping', 'port': 7197}


def write_config(polca, **changes):
    with open(polca.config_path, 'w') as f:
        json.dump({**polca.config, **changes}, f, indent=1)


@pytest.fixture
def edit(polca):
    """Change the configuration file; at the end it is as before, and so is what is in effect."""
    yield lambda **changes: write_config(polca, **changes)
    write_config(polca)
    polca.rpc('config_reload')


def changes(polca, method):
    return {c['path']: (c['was'], c['now'], c['restart']) for c in polca.rpc(method)['changes']}


def services(polca):
    return [s['kind'] for s in polca.rpc('service_list')['services']]


def level(polca):
    return polca.rpc('log_level_get', component='polca.engine')['components'][0]['level']


def reloads(polca):
    return [line for line in polca.tail(100000).split('\n') if 'polca: reload: ' in line]


def test_diff_shows_what_a_reload_would_do(polca, edit):
    assert changes(polca, 'config_diff') == {}
    edit(services=[RPING], workers={**polca.config['workers'], 'stall_ms': 2345},
         log=[{'component': 'polca.engine', 'level': 'debug'}], limits={**polca.config['limits'], 'max_cq': 300})
    expected = changes(polca, 'config_diff')
    assert expected['limits.max_cq'] == ('256', '300', True)
    assert expected['workers.stall_ms'] == ('1000', '2345', False)
    assert not expected['services[0]'][2] and not expected['log[0]'][2] and len(expected) == 4
    assert services(polca) == [] and level(polca) == 'info'
    assert changes(polca, 'config_reload') == expected
    assert services(polca) == ['rping'] and level(polca) == 'debug'
    assert list(changes(polca, 'config_diff')) == ['limits.max_cq']
    assert [line for line in reloads(polca) if line.endswith('limits.max_cq: 256 -> 300: needs a restart')]
    assert 'limits.max_cq' in polca.ctl('config', 'diff').stdout


def test_levels_and_services_that_are_left_out_go_back(polca, edit):
    edit(services=[RPING], log=[{'component': 'polca.engine', 'level': 'debug'}])
    polca.rpc('config_reload')
    assert services(polca) == ['rping'] and level(polca) == 'debug'
    edit()
    polca.rpc('config_reload')
    assert services(polca) == [] and level(polca) == 'info'


def test_sighup_reads_the_file_and_never_kills(polca, edit):
    edit(services=[RPING])
    polca.proc.send_signal(signal.SIGHUP)
    wait_until(lambda: services(polca) == ['rping'])


def test_a_bad_file_changes_nothing_and_the_log_says_why(polca, edit):
    edit(services=[RPING], workers={'count': -1})
    before = len(reloads(polca))
    polca.proc.send_signal(signal.SIGHUP)
    wait_until(lambda: len(reloads(polca)) > before)
    assert 'nothing has changed: ' in reloads(polca)[-1] and 'workers.count: got -1' in reloads(polca)[-1]
    assert services(polca) == []
    r = polca.ctl('config', 'reload', check=False)
    assert r.returncode == 1 and 'workers.count: got -1' in r.stderr


def test_diff_refuses_what_a_reload_refuses(polca, edit):
    """DPDK's components are known to the running polca only: --print-config lets them pass."""
    edit(log=[{'component': 'pmd.nix', 'level': 'debug'}])
    for method in ('config_diff', 'config_reload'):
        assert 'log[0].component: got "pmd.nix"' in polca.rpc.request(method, {})['error']['message']


def test_all_errors_of_a_file_are_told(polca, edit):
    edit(workers={'count': -1}, limitz={}, metrics={'listen': 'x'})
    message = polca.rpc.request('config_reload', {})['error']['message']
    for words in ('workers.count: got -1', 'limitz', 'metrics.listen: got "x", allowed: '):
        assert words in message, message
    assert message.startswith(polca.config_path + ':')


def test_a_file_that_cannot_be_read_is_told_as_such(polca, edit):
    os.rename(polca.config_path, polca.config_path + '.away')
    try:
        error = polca.rpc.request('config_reload', {})['error']
        assert error['data']['errno'] == 'ENOENT'
        assert error['message'] == polca.config_path + ': No such file or directory'
        os.mkdir(polca.config_path)
        assert polca.rpc.request('config_reload', {})['error']['data']['errno'] == 'EISDIR'
        os.rmdir(polca.config_path)
        os.close(os.open(polca.config_path, os.O_CREAT | os.O_WRONLY, 0))
        error = polca.rpc.request('config_reload', {})['error']
        assert error['data']['errno'] == 'EACCES'
        assert error['message'] == '%s: Permission denied: it must be readable for user %s' % (
            polca.config_path, pwd.getpwuid(os.stat('/proc/%d' % polca.proc.pid).st_uid).pw_name)
    finally:
        os.rename(polca.config_path + '.away', polca.config_path)


def test_one_service_that_cannot_listen_undoes_the_others(polca, edit):
    taken = polca.rpc('cm_listen', kind='echo', port=7198)['service']
    try:
        edit(services=[RPING, {'kind': 'rping', 'port': 7198}], log=[{'component': 'polca.engine', 'level': 'debug'}])
        r = polca.rpc.request('config_reload', {})
        assert 'services[1]' in r['error']['message'], r
        assert services(polca) == ['echo'] and level(polca) == 'info'
    finally:
        polca.rpc('cm_unlisten', service=taken)


def test_a_reload_without_changes_says_so(polca, edit):
    assert polca.ctl('config', 'diff').stdout == 'no difference: the file says what is in effect\n'
    assert polca.ctl('config', 'reload').stdout == 'nothing to change: the file says what is in effect\n'
    assert reloads(polca)[-1].endswith('polca: reload: done, there was nothing to change')
    edit(limits={**polca.config['limits'], 'max_cq': 300})
    r = polca.ctl('config', 'reload').stdout
    assert 'limits.max_cq' in r and r.endswith('\nnothing has changed: all of this needs a restart\n')


def test_levels_that_were_set_are_set_again_and_named(polca, edit):
    polca.rpc('log_level_set', component='polca.engine', level='debug')
    expected = {'log[polca.engine].level': ('"debug"', '"info"', False)}
    assert changes(polca, 'config_diff') == expected and level(polca) == 'debug'
    assert changes(polca, 'config_reload') == expected and level(polca) == 'info'
    assert changes(polca, 'config_reload') == {}
    # the file's own level is no reset
    edit(log=[{'component': 'polca.eng*', 'level': 'debug'}])
    assert list(changes(polca, 'config_reload')) == ['log[0]'] and changes(polca, 'config_diff') == {}


PERFTEST = [{'kind': 'perftest', 'tcp_port': 18515}, {'kind': 'perftest', 'tcp_port': 18516}]


def numbers(polca):
    return {s['tcp_port'] or s['service_id']: s['service'] for s in polca.rpc('service_list')['services']}


def test_services_that_ended_start_again(polca, edit):
    edit(services=[RPING] + PERFTEST)
    polca.rpc('config_reload')
    before = numbers(polca)
    assert len(before) == 3 and changes(polca, 'config_reload') == {} and numbers(polca) == before
    polca.rpc('cm_unlisten', service=before[18516])
    wait_until(lambda: len(numbers(polca)) == 2)
    log = polca.tail(10000).splitlines()
    assert 'engine: service %d listens no more' % before[18516] in log
    rping, = [s for s in polca.rpc('service_list')['services'] if s['kind'] == 'rping']
    assert 'engine: service %d, rping, listens at service ID 0x%x' % (
        rping['service'], 0x1060000 + RPING['port']) in log
    was, now, restart = changes(polca, 'config_diff')['services[2]']
    assert was == 'ended' and json.loads(now)['tcp_port'] == 18516 and not restart
    assert list(changes(polca, 'config_reload')) == ['services[2]']
    after = numbers(polca)
    assert after[18516] != before[18516] and {**after, 18516: before[18516]} == before


def test_an_ended_service_whose_id_is_taken_names_the_one_that_has_it(polca, edit):
    """All or nothing: no other ended service listens again either. What the message says to type is enough."""
    edit(services=[RPING] + PERFTEST)
    polca.rpc('config_reload')
    before = numbers(polca)
    for number in before.values():
        polca.rpc('cm_unlisten', service=number)
    wait_until(lambda: numbers(polca) == {})
    taker = polca.rpc('cm_listen', kind='echo', name='taker', port=RPING['port'])
    r = polca.ctl('config', 'reload', check=False)
    assert r.returncode == 1
    assert 'services[0]: service_id: 0x%016x is taken by service %d (taker): end that with ' \
        'polca-ctl cm unlisten %d, or use another ID' % (0x1060000 + RPING['port'], taker['service'],
                                                         taker['service']) in r.stderr, r.stderr
    assert services(polca) == ['echo']
    polca.ctl(*re.search('polca-ctl (cm unlisten [0-9]+)', r.stderr).group(1).split())
    wait_until(lambda: services(polca) == [])
    polca.ctl('config', 'reload')
    assert set(numbers(polca)) == set(before)


def test_the_service_that_is_left_out_stops_and_no_other_one(polca, edit):
    """Services without an ID are told apart by where they listen."""
    edit(services=PERFTEST)
    polca.rpc('config_reload')
    before = numbers(polca)
    edit(services=PERFTEST[:1])
    polca.rpc('config_reload')
    wait_until(lambda: numbers(polca) == {18515: before[18515]})
