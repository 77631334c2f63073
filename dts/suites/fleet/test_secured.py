# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""etcd with users and passwords, and with TLS on both sides."""

import base64
import os
import shutil
import subprocess

import pytest

import net
from etcd import Etcd
from fleet import caught_up, Fleet, put, records, status, until
from polca import account, give

TEST_SECONDS = 120


def b64(text):
    return base64.b64encode(text.encode()).decode()


def enable_users(etcd, prefix='/polca/'):
    """root, and polca who may have keys of the prefix only."""
    for path, body in (
            ('/user/add', {'name': 'root', 'password': 'root'}),
            ('/role/add', {'name': 'root'}),
            ('/user/grant', {'user': 'root', 'role': 'root'}),
            ('/user/add', {'name': 'polca', 'password': 's3cret "word'}),
            ('/role/add', {'name': 'polca'}),
            ('/role/grant', {'name': 'polca', 'perm': {
                'permType': 'READWRITE', 'key': b64(prefix),
                'range_end': b64(prefix[:-1] + chr(ord(prefix[-1]) + 1))}}),
            ('/user/grant', {'user': 'polca', 'role': 'polca'}),
            ('/enable', {})):
        etcd.call('/v3/auth' + path, body)


def password(where, text):
    path = os.path.join(where, 'password')
    with open(path, 'w') as f:
        f.write(text + '\n')
    give(where)
    shutil.chown(path, account().pw_uid)
    os.chmod(path, 0o600)
    return path


def test_passwords_and_tokens_that_etcd_forgets(where, ns, etcd):
    enable_users(etcd)
    f = Fleet(where, ns, etcd, user='polca', password_file=password(where, 's3cret "word'))
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


def test_wrong_password_is_said(where, ns, etcd):
    enable_users(etcd)
    f = Fleet(where, ns, etcd, user='polca', password_file=password(where, 'gue55ed'))
    try:
        a, = f.start('a')
        until('a line', lambda: 'authentication failed' in a.tail())
        assert not put(a, 1, check=False)
        assert 'gue55ed' not in a.tail(100000)
    finally:
        f.close()


def openssl(*args):
    subprocess.run(['openssl'] + list(args), check=True, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE)


def certificate(d, name, subject, ca=None):
    key, cert = (os.path.join(d, '%s.%s' % (name, e)) for e in ('key', 'pem'))
    args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
            '-days', '30', '-keyout', key, '-out', cert, '-subj', subject]
    if ca:
        args += ['-CA', ca[1], '-CAkey', ca[0], '-addext', 'subjectAltName=IP:127.0.0.1',
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
            until('c is refused', lambda: 'etcd is away' in c.tail())
            d, = others.start('d')  # does not trust etcd's
            until('d refuses', lambda: 'certificate' in d.tail())
            assert records(c) == records(d) == {}
        finally:
            for x in (f, strangers, others):
                x.close()
            etcd.close()
