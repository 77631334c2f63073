# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Polca's Debian packages on a booted Debian 12 with a real systemd, in a container of systemd-nspawn. It is booted
once; tests go on where the ones before them ended, as an operator does."""

import base64
import glob
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

import net
import time_limit
from conn import wait_until
from polca import BUILD

CONFIG = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', '..', 'config')
ETC = '/etc/polca/polca.json'
DROP_INS = '/etc/systemd/system/polca.service.d'


class Host:
    """The container: run commands as its root, read and write its files."""

    def __init__(self, kept, packages):
        self.log = os.path.join(kept, 'console.log')
        with open(self.log, 'w') as log:
            self.proc = subprocess.Popen([os.path.join(CONFIG, 'boot.sh'), packages], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=net.die_with_parent)
        self.wait_for_boot()

    def wait_for_boot(self):
        for line in self.proc.stdout:
            if line.startswith('leader '):
                self.leader = line.split()[1]
                break
        else:
            raise AssertionError('no container:\n' + self.console())
        wait_until(lambda: self('systemctl is-system-running', check=False).strip() in ('running', 'degraded'), 60)

    def reboot(self):
        self('systemctl reboot', check=False)
        self.wait_for_boot()

    def console(self):
        with open(self.log, errors='replace') as f:
            return f.read()[-3000:]

    def argv(self, command):
        """What runs a shell command as the container's root."""
        return ['nsenter', '-t', self.leader, '-m', '-u', '-i', '-n', '-p', '-r', '-w', '--',
                'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8', 'sh', '-c', command]

    def run(self, command, **kw):
        """A shell command as the container's root."""
        return subprocess.run(self.argv(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=time_limit.limit(90), **kw)

    def __call__(self, command, check=True):
        r = self.run(command)
        assert not check or r.returncode == 0, '%s\n%s\n%s' % (command, r.stdout, self.journal())
        return r.stdout

    def write(self, path, text):
        self.run('mkdir -p $(dirname %s); cat > %s' % (path, path), input=text)

    def copy(self, path, to):
        """A file of this machine, into the container."""
        with open(path, 'rb') as f:
            data = base64.b64encode(f.read()).decode()
        r = self.run('mkdir -p $(dirname %s) && base64 -d >%s' % (to, to), input=data)
        assert r.returncode == 0, r.stdout

    def journal(self, *args):
        return self('journalctl -u polca --no-pager -o cat %s' % ' '.join(args), check=False)

    def show(self, key):
        return self('systemctl show -P %s polca' % key).strip()

    def start(self, config=None, drop_in=None, extra=None):
        """Start the service, with this configuration (a file's path, or text), the drop-in of this link, and the text
        of one more."""
        self('systemctl stop polca; systemctl reset-failed polca; rm -rf %s' % DROP_INS, check=False)
        if config is not None:
            self('cp %s %s' % (config, ETC)) if config.startswith('/') else self.write(ETC, config)
        if drop_in is not None:
            self('mkdir -p %s; cp /usr/share/polca/systemd/%s.conf %s' % (DROP_INS, drop_in, DROP_INS))
        if extra is not None:
            self.write(DROP_INS + '/extra.conf', extra)
        self('systemctl daemon-reload')
        self('systemctl start polca')

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        try:
            self.proc.wait(time_limit.limit(60))
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()


@pytest.fixture(scope='session')
def packages():
    """The packages of this tree, built and checked by lintian."""
    out = os.path.join(CONFIG, '..', 'build-deb')
    r = subprocess.run([os.path.join(CONFIG, 'package.sh'), out], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=time_limit.limit(600))
    assert r.returncode == 0, r.stdout[-3000:]
    return out


@pytest.fixture(scope='session')
def older(packages, host):
    """The packages under a lower number and with another line in the unit, as there is no release before: their
    directory in the container."""
    with open(os.path.join(CONFIG, '..', 'VERSION')) as f:
        version = f.read().strip()
    with tempfile.TemporaryDirectory() as d:
        for package in glob.glob(packages + '/polca*.deb'):
            if 'dbgsym' in package:
                continue
            tree, name = d + '/tree', os.path.basename(package).split('_')[0]
            subprocess.run(['dpkg-deb', '-R', package, tree], check=True)
            with open(tree + '/DEBIAN/control') as f:
                control = f.read()
            with open(tree + '/DEBIAN/control', 'w') as f:
                f.write(control.replace(version, '0.0.0'))
            for unit in glob.glob(tree + '/**/polca.service', recursive=True):
                subprocess.run(['sed', '-i', 's/^OOMScoreAdjust=.*/OOMScoreAdjust=-400/', unit], check=True)
            subprocess.run(['dpkg-deb', '-b', '--root-owner-group', tree, d + '/older.deb'], check=True,
                           stdout=subprocess.DEVNULL)
            shutil.rmtree(tree)
            host.copy(d + '/older.deb', '/older/%s.deb' % name)
    return '/older'


@pytest.fixture(scope='session')
def host(packages):
    kept = os.path.join(BUILD, 'dts', 'service')
    os.makedirs(kept, exist_ok=True)
    h = Host(kept, packages)
    yield h
    h.stop()
