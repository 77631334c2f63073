# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""etcd with users and passwords, and with TLS on both sides."""

import os
import subprocess

import pytest

import net
from etcd import Etcd
from etcdusers import enable_users, password_file, USER
from fleet import caught_up, Fleet, put, records, status, until
from polca import give

TEST_SECONDS = 120


def test_passwords_and_tokens_that_etcd_forgets(where, ns, etcd):
    enable_users(etcd)
    f = Fleet(where, ns, etcd, user=USER, password_file=password_file(where))
    try:
        f.start('a', 'b')
        leader = f.leader()
        follower = next(p for p in f.alive() if p is not leader)
        until('the follower watches', lambda: caught_up(follower))
        until('a change', lambda: put(leader, 1, text='t1', check=False))
        until('the record', lambda: records(follower) == {1: 't1'})
        for k in etcd.alive():  # with them their tokens
            etcd.kill(k)
        until('they notice', lambda: not any(status(p)['connected'] for p in f.alive()))
        for k in range(3):
            etcd.launch(k)
        for p in f.alive():
            until('%s is back' % p.name, lambda: caught_up(p))
        until('a change', lambda: put(f.leader(), 2, text='t2', check=False))
        for p in f.alive():
            until('%s has both' % p.name, lambda: records(p) == {1: 't1', 2: 't2'})
    finally:
        f.close()


def knows_its_leader(etcd, k):
    try:
        return int(etcd.call('/v3/maintenance/status', {}, k).get('leader', 0)) != 0
    except OSError:
        return False


def test_members_forget_tokens_one_by_one(where, ns, etcd):
    """Each restarts alone, while nothing is changed: the writer still asks a member that does not know its token."""
    enable_users(etcd)
    f = Fleet(where, ns, etcd, user=USER, password_file=password_file(where))
    try:
        a, = f.start('a')
        assert f.leader() is a
        until('a change', lambda: put(a, 1, text='t1', check=False))
        for k in list(etcd.alive()):
            etcd.kill(k)
            etcd.launch(k)
            until('member %d is back' % k, lambda: knows_its_leader(etcd, k))
            until('a change after member %d' % k, lambda: put(a, 2 + k, text='t', check=False),
                  show=lambda: (status(a), a.tail(4000)))
    finally:
        f.close()


def test_wrong_password_is_said(where, ns, etcd):
    enable_users(etcd)
    f = Fleet(where, ns, etcd, user=USER, password_file=password_file(where, 'gue55ed'))
    try:
        a, = f.start('a')
        until('a line', lambda: 'authentication failed' in a.tail())
        assert status(a)['etcd_state'] == 'refuses' and 'authentication failed' in status(a)['reason']
        until('an event', lambda: 'FLEET_REFUSED' in [
            e['event'] for e in a.rpc('events', since=0, max=1000)['events']])
        assert 'etcd is away' not in a.tail(100000)
        assert not put(a, 1, check=False)
        assert 'gue55ed' not in a.tail(100000)
    finally:
        f.close()


def openssl(*args):
    subprocess.run(['openssl'] + list(args), check=True, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE)


def certificate(d, name, subject, ca=None, address='127.0.0.1'):
    key, cert = (os.path.join(d, '%s.%s' % (name, e)) for e in ('key', 'pem'))
    args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
            '-days', '30', '-keyout', key, '-out', cert, '-subj', subject]
    if ca:
        args += ['-CA', ca[1], '-CAkey', ca[0], '-addext', 'subjectAltName=IP:' + address,
                 '-addext', 'basicConstraints=critical,CA:FALSE']
    openssl(*args)
    os.chmod(key, 0o644)
    return key, cert


@pytest.fixture
def tls(where):
    ca = certificate(where, 'ca', '/CN=Test')
    server = certificate(where, 'server', '/CN=etcd', ca)
    client = certificate(where, 'client', '/O=polca', ca)  # no CN: etcd's gateway refuses one
    give(where)
    return {'ca': ca[1], 'key': server[0], 'cert': server[1], 'client': client}


def test_tls_users_and_several_members(where, tls):
    """All at once, while one member after the other is killed: changes go on."""
    with net.Namespace() as ns:
        etcd = Etcd(os.path.join(where, 'etcd'), ns, 3, tls)
        f = Fleet(where, ns, etcd, ca_file=tls['ca'], key_file=tls['client'][0], cert_file=tls['client'][1],
                  user=USER, password_file=password_file(where))
        try:
            etcd.start()
            enable_users(etcd)
            nodes = f.start('a', 'b')
            until('a change', lambda: put(f.leader(), 1, text='t', check=False))
            for k in range(3):
                etcd.kill(k)
                until('a change without member %d' % k, lambda: put(f.leader(), 2 + k, text='t', check=False))
                etcd.launch(k)
                etcd.wait(member=k)
            for p in nodes:
                until('%s has all' % p.name, lambda: records(p) == {n: 't' for n in range(1, 5)})
        finally:
            f.close()
            etcd.close()


def test_etcd_of_another_name(where, tls):
    """Its certificate is not for the address that it was asked at: nothing is told to it."""
    server = certificate(where, 'elsewhere', '/CN=etcd', (os.path.join(where, 'ca.key'), tls['ca']), '127.0.0.9')
    give(where)
    with net.Namespace() as ns:
        etcd = Etcd(os.path.join(where, 'etcd'), ns, 1, dict(tls, key=server[0], cert=server[1]))
        f = Fleet(where, ns, etcd, ca_file=tls['ca'], key_file=tls['client'][0], cert_file=tls['client'][1])
        try:
            etcd.launch(0)
            a, = f.start('a')
            until('a line', lambda: 'certificate' in a.tail())
            s = status(a)
            assert not s['connected'] and s['etcd_state'] == 'not asked' and 'certificate' in s['reason'], s
            assert not put(a, 1, check=False)
        finally:
            f.close()
            etcd.close()


def test_rights_for_another_prefix(where, ns, etcd):
    enable_users(etcd, '/other/')
    f = Fleet(where, ns, etcd, user=USER, password_file=password_file(where))
    try:
        a, = f.start('a')
        until('it is refused', lambda: status(a)['etcd_state'] == 'refuses')
        assert 'permission denied' in status(a)['reason'] and not put(a, 1, check=False)
    finally:
        f.close()


def test_tls_both_ways(where, tls):
    with net.Namespace() as ns:
        etcd = Etcd(os.path.join(where, 'etcd'), ns, 1, tls)
        f = Fleet(where, ns, etcd, ca_file=tls['ca'], key_file=tls['client'][0],
                  cert_file=tls['client'][1])
        strangers = Fleet(os.path.join(where, 'without'), ns, etcd, ca_file=tls['ca'])
        others = Fleet(os.path.join(where, 'unknown'), ns, etcd, key_file=tls['client'][0],
                       cert_file=tls['client'][1])
        try:
            etcd.start()
            a, b = f.start('a', 'b')
            leader = f.leader()
            assert put(leader, 1, text='t1')
            for p in (a, b):
                until('the record', lambda: records(p) == {1: 't1'})
            c, = strangers.start('c')  # no certificate of its own
            until('c is refused', lambda: status(c)['etcd_state'] == 'refuses')
            assert 'etcd refuses this appliance' in c.tail() and 'certificate' in status(c)['reason']
            d, = others.start('d')  # does not trust etcd's
            until('d refuses', lambda: 'certificate' in d.tail())
            assert records(c) == records(d) == {}
        finally:
            for x in (f, strangers, others):
                x.close()
            etcd.close()
