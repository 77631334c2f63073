# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What meson install makes, with its default prefix, is a service as the operator guide says."""

import os
import subprocess

import pytest

import time_limit
from guide import Section
from polca import BUILD

TEST_SECONDS = 600  # the first test waits for the packages and the container


@pytest.fixture
def installed(host, tmp_path):
    """The tree that is installed, unpacked in the container."""
    subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--strip', '--destdir',
                    tmp_path / 'root'], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   timeout=time_limit.limit(120))
    subprocess.run(['tar', '-C', tmp_path / 'root', '--owner=root', '--group=root', '-czf', tmp_path / 'root.tgz', '.'],
                   check=True)
    host.copy(tmp_path / 'root.tgz', '/root/root.tgz')
    host('tar -C / -xzf /root/root.tgz')
    yield
    host('systemctl stop polca', check=False)
    host('tar -tzf /root/root.tgz | grep -i polca | grep -v /$ | (cd /; xargs rm -f); userdel polca; '
         'groupdel polca-verbs; rm -rf /root/root.tgz /var/lib/polca; systemctl daemon-reload')


def test_service_of_meson_install(host, installed):
    section = Section('Build and install')
    for start in ('systemd-sysusers', 'systemd-tmpfiles', 'systemctl daemon-reload'):
        host(section.command(start))
    assert host('stat -c %U:%a /var/lib/polca').strip() == 'polca:750'
    assert os.path.dirname(host.show('FragmentPath')) == '/usr/local/lib/systemd/system'
    host('systemctl start polca')
    assert '-c\0/etc/polca/polca.json' in host('cat /proc/%s/cmdline' % host.show('MainPID'))
    assert host('/usr/local/bin/polca-ctl version get').strip()
    host('test -x /usr/local/share/polca/setup-host.sh; grep -q /usr/local/share/polca/setup-host.sh '
         '/usr/local/lib/systemd/system/polca-setup.service; test -s /etc/default/polca')
