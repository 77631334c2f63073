# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""etcd with users, whose passwords it wants."""

import base64
import os
import shutil

from polca import account, give

USER, PASSWORD = 'polca', 's3cret "word'


def b64(text):
    return base64.b64encode(text.encode()).decode()


def enable_users(etcd, prefix='/polca/'):
    """root, whom the tests' own requests come from, and polca who may have keys of the prefix only."""
    for path, body in (
            ('/user/add', {'name': 'root', 'password': 'root'}),
            ('/role/add', {'name': 'root'}),
            ('/user/grant', {'user': 'root', 'role': 'root'}),
            ('/user/add', {'name': USER, 'password': PASSWORD}),
            ('/role/add', {'name': 'polca'}),
            ('/role/grant', {'name': 'polca', 'perm': {
                'permType': 'READWRITE', 'key': b64(prefix),
                'range_end': b64(prefix[:-1] + chr(ord(prefix[-1]) + 1))}}),
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
