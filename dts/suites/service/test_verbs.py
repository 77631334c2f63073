# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""From the packages to verbs programs of an ordinary user, by the commands of docs/verbs.md; and the service restarted
under such a program."""

import os
import re
import subprocess

import pytest

from conn import wait_until
from guide import Section
from verbs import PROBE, Job

TEST_SECONDS = 600  # the first test waits for the packages and the container

SECTION = Section('From the package to a program', 'docs/verbs.md')
TREE = '/run/polca/verbs.sock.sys'
# server, client, and what both print when the bytes have arrived; those of the document are first
PROGRAMS = {
    'document': (*[c for c in SECTION.commands() if c.startswith('polca-run ')], r'rdma-ping-9:'),
    'events': ('polca-run ibv_rc_pingpong -d polca0 -g 0 -e -c',
               'polca-run ibv_rc_pingpong -d polca1 -g 0 -e -c localhost', r'1000 iters in'),
}
DROP_INS = '/etc/systemd/system/polca.service.d'
USERS = ('alice', 'stranger')


def as_user(user, command):
    return "runuser -u %s -- sh -c '%s'" % (user, command)


def pair(host, program, wrapper='polca-run'):
    """Both commands as alice, the client again until the server listens; their outputs must be the expected ones."""
    server, client, expected = PROGRAMS[program]
    server, client = [as_user('alice', c.removesuffix(' &').replace('polca-run', wrapper)) for c in (server, client)]
    host('rm -f /server.*')
    host('(%s; echo $? >/server.status) >/server.log 2>&1 </dev/null &' % server)

    def connected():
        r = host.run(client)
        ended = host.run('test -e /server.status').returncode == 0
        assert r.returncode == 0 or not ended, host('cat /server.log') + r.stdout
        return r if r.returncode == 0 else None
    text = wait_until(connected, 60, 0.2).stdout
    wait_until(lambda: host.run('test -s /server.status').returncode == 0, 60)
    assert host('cat /server.status').strip() == '0', host('cat /server.log')
    for said in (host('cat /server.log'), text):
        assert re.search(expected, said) and 'invalid data' not in said, said


@pytest.fixture(scope='module')
def packages_installed(host):
    host('rm -rf %s; systemctl daemon-reload' % DROP_INS)
    typed = SECTION.command('apt install')
    # the container has no network, and has what is typed but Polca's own packages
    host(typed.replace('apt install', 'apt-get -y --no-install-recommends install').replace('./build-deb', '/packages'))
    for user in USERS:
        host('useradd -m %s' % user)
    yield
    host('systemctl stop polca; dpkg --purge polca polca-verbs; rm -f /server.* /root/verbs_probe', check=False)
    for user in USERS:
        host('userdel -r ' + user, check=False)


@pytest.fixture(scope='module')
def service(host, packages_installed):
    """What the operator types: configuration, member and start."""
    assert host('python3 -c \'import json; print("verbs" in json.load(open("/etc/polca/polca.json")))\'').strip() == \
        'False'
    for typed in ('cp ', 'usermod ', 'systemctl enable'):
        host(SECTION.command(typed))
    return host


def test_the_links_of_the_package(packages_installed, host):
    """Made by the installation, without a boot, for as many ports as Polca can have."""
    for i in range(32):
        assert host('readlink -f /dev/infiniband/polca%d' % i).strip() == '/dev/null'
    assert '/etc/libibverbs.d/polca.driver' in host('dpkg-query -W -f "\\${Conffiles}" polca-verbs')


def test_the_shipped_configuration_serves_no_programs(host, packages_installed):
    """Until the operator names a group there is no verbs socket, and no tree of devices."""
    host('systemctl start polca')
    try:
        assert 'polca.sock' in host('ls /run/polca')  # it runs
        assert host('find /run /tmp -name "verbs.sock*"').strip() == ''
        assert host.run(as_user('alice', 'polca-run ibv_devices')).returncode != 0
    finally:
        host('systemctl stop polca')


def test_a_user_needs_no_configuration(host, packages_installed):
    """A polca of the user's own: the built-in configuration, and a socket that polca-run finds."""
    host("runuser -u alice -- sh -c 'echo $$ >/tmp/alice.pid; exec polca' >/alice.log 2>&1 </dev/null &")
    wait_until(lambda: 'polca1' in host(as_user('alice', 'polca-run ibv_devices'), check=False), 60)
    pair(host, 'document')
    host('kill $(cat /tmp/alice.pid)')
    wait_until(lambda: host.run('kill -0 $(cat /tmp/alice.pid)').returncode != 0, 60)
    host('rm /alice.log /tmp/alice.pid')


def test_who_may_use_the_socket(service):
    assert service('stat -c %U:%G:%a /run/polca/verbs.sock').strip() == 'polca:polca-verbs:660'
    # no drop-in of the unit is needed
    assert service.run('test -e ' + DROP_INS).returncode != 0
    text = service('systemd-analyze security polca --no-pager')
    assert float(re.search(r'Overall exposure level for polca.service: ([\d.]+)', text).group(1)) <= 3.0, text
    r = service.run(as_user('stranger', 'polca-run ibv_devinfo'))
    assert r.returncode != 0 and 'cannot open polca0' in r.stdout and 'Permission denied' in r.stdout, r.stdout


@pytest.mark.parametrize('program', PROGRAMS)
def test_a_member_runs_programs(service, program):
    pair(service, program)


def test_five_commands():
    """Once the packages are installed: those that the tests here run, and no other."""
    assert SECTION.all[0].text.startswith('apt install ') and len(SECTION.commands()) == 1 + 3 + 2
    assert [c.comment for c in SECTION.all[-2:]] == ['as alice'] * 2


@pytest.mark.parametrize('program', PROGRAMS)
def test_a_member_without_polca_run(service, program):
    """With the driver file and the links, one variable is enough."""
    variable, = re.findall(r'SYSFS_PATH=\S+', Section('Without polca-run', 'docs/verbs.md').command('SYSFS_PATH='))
    assert variable == 'SYSFS_PATH=' + TREE
    pair(service, program, variable)


def test_the_driver_file_tells_of_the_provider(service):
    devices = as_user('alice', 'SYSFS_PATH=%s ibv_devices' % TREE)
    assert 'polca0' in service(devices) and 'polca1' in service(devices)
    service('mv /etc/libibverbs.d/polca.driver /root/')
    try:
        assert 'polca0' not in service(devices, check=False)
        assert 'polca0' in service(as_user('alice', 'polca-run ibv_devices'))
    finally:
        service('mv /root/polca.driver /etc/libibverbs.d/')


def test_a_restart_of_the_service_under_a_program(service, kept):
    """The program gets what it has posted flushed, and the device's fatal event; it opens the device again."""
    service.copy(PROBE, '/root/verbs_probe')
    service('install -m 755 /root/verbs_probe /home/alice/')
    probe = Job(os.path.join(kept, 'restart.log'),
                service.argv(as_user('alice', 'exec polca-run /home/alice/verbs_probe death sleeps')),
                env=None, stdin=subprocess.PIPE)
    try:
        probe.wait_line('ready')
        pid = service.show('MainPID')
        service('systemctl restart polca')
        assert service.show('MainPID') != pid
        wait_until(lambda: re.search(r'fatal \d+', probe.output()), 30)
        probe.tell('polca is back')
        probe.end()
    finally:
        probe.kill()
    pair(service, 'document')
