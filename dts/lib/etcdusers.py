# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""etcd with users, whose passwords it wants."""

import os
import shutil

from etcd import range_of
from polca import account, give

USER, PASSWORD = 'polca', 's3cret "word'


def enable_users(etcd, prefix='/polca/'):
    """root, whom the tests' own requests come from, and polca who may have keys of the prefix only."""
    for path, body in (
            ('/user/add', {'name': 'root', 'password': 'root'}),
            ('/role/add', {'name': 'root'}),
            ('/user/grant', {'user': 'root', 'role': 'root'}),
            ('/user/add', {'name': USER, 'password': PASSWORD}),
            ('/role/add', {'name': 'polca'}),
            ('/role/grant', {'name': 'polca', 'perm': dict(range_of(prefix), permType='READWRITE')}),
            ('/user/grant', {'user': USER, 'role': 'polca'}),
            ('/enable', {})):
        etcd.call('/v3/auth' + path, body)
    etcd.user = {'name': 'root', 'password': 'root'}


def password_file(directory, text=PASSWORD):
    """A file with the password, which polca alone may read."""
    path = os.path.join(directory, 'password')
    with open(path, 'w') as f:
        f.write(text + '\n')
    give(directory)
    shutil.chown(path, account().pw_uid)
    os.chmod(path, 0o600)
    return path
