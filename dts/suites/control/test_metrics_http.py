# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""GET /metrics: read by Python's HTTP client, promtool and a real Prometheus, and disturbed by
clients that say nothing, too much, or something else."""

import http.client
import json
import os
import socket
import subprocess
import urllib.request

import pytest

import net
import time_limit
from conn import wait_until
from polca import Polca
from polcapair import back_to_back


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


@pytest.fixture(scope='module')
def address():
    return '127.0.0.1:%d' % free_port()


@pytest.fixture(scope='module')
def served(sockets, address):
    with Polca(sockets, back_to_back(), name='metrics', metrics={'listen': address}) as p:
        yield p


def get(address, path='/metrics', method='GET', headers={}):
    c = http.client.HTTPConnection(address, timeout=time_limit.limit(10))
    try:
        c.request(method, path, headers=headers)
        r = c.getresponse()
        return r.status, r.getheader('Content-Type'), r.read().decode()
    finally:
        c.close()


def names(text):
    return {line.split('{')[0].split(' ')[0] for line in text.splitlines() if line[:1] != '#'}


def test_same_text_as_the_command_prints(served, address):
    status, kind, text = get(address)
    assert (status, kind) == (200, 'text/plain; version=0.0.4; charset=utf-8')
    printed = served.ctl('stats', 'metrics').stdout
    assert names(text) == names(printed)
    r = subprocess.run(('promtool', 'check', 'metrics'), input=text, capture_output=True, text=True,
                       timeout=60)
    assert (r.returncode, r.stdout) == (0, ''), r


def test_queue_pairs_on_request_only(served, address):
    qpn = served.rpc('qp_create', qp_type='RC', pd=served.rpc('pd_create')['pd'],
                     send_cq=served.rpc('cq_create', depth=16)['cq'])['qp_num']
    assert 'polca_qp_info{' not in get(address)[2]
    assert 'qp_num="0x%06x"' % qpn in get(address, '/metrics?qp=1')[2]


@pytest.mark.parametrize('path,method,status', [
    ('/', 'GET', 404), ('/metrics/x', 'GET', 404), ('/metrics', 'HEAD', 200),
    ('/metrics', 'POST', 405), ('/metrics', 'DELETE', 405)])
def test_other_requests(served, address, path, method, status):
    got, _, text = get(address, path, method)
    assert got in (status, 501 if status == 405 else status)
    assert 'polca_' not in text


def test_request_that_is_too_long(served, address):
    assert get(address, headers={'X': 'a' * 10000})[0] in (400, 413, 431)
    assert get(address)[0] == 200


def test_clients_that_say_nothing(served, address):
    """Many connections leave the control socket its descriptors, and end by themselves."""
    host, port = address.split(':')
    open_before = len(os.listdir('/proc/%d/fd' % served.proc.pid))
    silent = []
    for _ in range(900):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex((host, int(port)))
        silent.append(s)
    with served.client() as c:
        assert c('version_get')
    assert len(os.listdir('/proc/%d/fd' % served.proc.pid)) < open_before + 700
    wait_until(lambda: len(os.listdir('/proc/%d/fd' % served.proc.pid)) <= open_before + 1,
               timeout=30)
    for s in silent:
        s.close()
    assert get(address)[0] == 200


def test_a_real_prometheus_scrapes(served, address, tmp_path):
    web = free_port()
    config = tmp_path / 'prometheus.yml'
    config.write_text(json.dumps({
        'global': {'scrape_interval': '1s'},
        'scrape_configs': [{'job_name': 'polca', 'static_configs': [{'targets': [address]}]}]}))
    log = open(tmp_path / 'log', 'w')
    p = subprocess.Popen(
        ['prometheus', '--config.file=%s' % config, '--storage.tsdb.path=%s' % (tmp_path / 'data'),
         '--web.listen-address=127.0.0.1:%d' % web], stdout=log, stderr=log,
        preexec_fn=net.die_with_parent)

    def query(expr):
        url = 'http://127.0.0.1:%d/api/v1/query?query=%s' % (web, expr)
        try:
            with urllib.request.urlopen(url, timeout=10) as r:
                return [s['value'][1] for s in json.load(r)['data']['result']]
        except OSError:
            return []
    try:
        wait_until(lambda: query('up') == ['1'], timeout=60)
        wait_until(lambda: query('polca_port_up') == ['1', '1'], timeout=60)
    finally:
        p.terminate()
        p.wait(30)
        log.close()


def test_unix_socket(sockets):
    path = os.path.join(sockets, 'metrics-unix.sock')
    with Polca(sockets, back_to_back(), name='metrics-unix-p', metrics={'listen': path}):
        c = http.client.HTTPConnection('localhost', timeout=time_limit.limit(10))
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(path)
        c.request('GET', '/metrics')
        assert b'polca_port_up' in c.getresponse().read()
        c.close()
    assert not os.path.exists(path)


def test_port_in_use(sockets, served, address):
    p = Polca(sockets, back_to_back(), name='metrics-again', metrics={'listen': address})
    assert 'metrics.listen: %s: Address already in use' % address in p.fails()


def test_connections_that_wait_are_logged(sockets):
    """One line, though polca tries again each second."""
    path = os.path.join(sockets, 'metrics-waiting.sock')
    line = 'metrics: limit reached: new connections wait: there are as many as metrics.listen takes'
    with Polca(sockets, back_to_back(), name='metrics-full', metrics={'listen': path}) as p:
        silent = [socket.socket(socket.AF_UNIX) for _ in range(700)]
        for s in silent:
            s.connect(path)
        wait_until(lambda: line in p.tail().splitlines(), timeout=10)
        for s in silent:
            s.close()
        assert p.tail().splitlines().count(line) == 1
