# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The appliance as a process: start it with a configuration, send it commands, stop it."""

import json
import os
import pwd
import signal
import socket
import subprocess
import time

import net
import system_calls
import time_limit
from rpc import Client, RpcError

BUILD = os.environ.get('POLCA_BUILD') or os.path.join(
    os.path.dirname(os.path.realpath(__file__)), '..', '..', 'build')
PROGRAM = os.path.join(BUILD, 'app/polca/polca')
CTL_PROGRAM = os.path.join(BUILD, 'app/polca-ctl/polca-ctl')


# DPDK makes the number of an interface's fanout group of its index and the process' pid, and the kernel refuses one
# that an interface of another process in this namespace has.
FANOUT_TAKEN, FANOUT_TRIES = 'could not set PACKET_FANOUT on AF_PACKET socket', 3


def port(name, device, *addresses, **more):
    row = {'name': name, 'device': device, 'addresses': list(addresses)}
    if device.startswith('net_memif'):
        row['trusted'] = True
    return dict(row, **more)


def account():
    """The user that polca becomes when root starts it."""
    try:
        return pwd.getpwnam('polca')
    except KeyError:
        return pwd.getpwnam('nobody')


def give(directory):
    """Let polca, as this user, make and remove files there."""
    os.chown(directory, account().pw_uid, -1)
    while directory != '/':
        directory = os.path.dirname(directory)
        os.chmod(directory, os.stat(directory).st_mode | 0o111)


class Polca:
    """directory has its configuration, socket and log; ns is the namespace in which it runs."""

    def __init__(self, directory, ports, ns=None, name='polca', workers=1, **config):
        self.dir, self.ns, self.name = directory, ns, name
        give(directory)
        self.socket = os.path.join(directory, name + '.sock')
        self.config_path = os.path.join(directory, name + '.json')
        self.log = os.path.join(directory, name + '.log')
        self.config = {
            'control': {'socket': self.socket},
            'eal': {'file_prefix': '%s-%d' % (name, os.getpid())},
            # other processes of the test also need CPUs
            'workers': {'count': workers, 'idle': 'backoff'},
            'limits': {},
            'ports': ports,
        }
        for k, v in config.items():
            if isinstance(v, dict):
                self.config.setdefault(k, {}).update(v)
            else:
                self.config[k] = v
        self.proc = self.rpc = None
        self.prefix = []  # what runs polca

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        if exc[0] is None:
            self.stop()
        else:
            self.kill()

    def launch(self):
        """Start the process without waiting for it."""
        with open(self.config_path, 'w') as f:
            json.dump(self.config, f, indent=1)
        argv = [*self.prefix, PROGRAM, '-c', self.config_path]
        if os.environ.get('POLCA_TRACE'):
            argv = system_calls.traced(argv, os.environ['POLCA_TRACE'], self.config)
        log = open(self.log, 'a')
        # the EAL never removes its runtime directory, so it is inside the test's directory
        kw = dict(stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                  env=dict(os.environ, RUNTIME_DIRECTORY=self.dir))
        if self.ns is None:
            self.proc = subprocess.Popen(argv, preexec_fn=net.die_with_parent, **kw)
        else:
            self.proc = self.ns.popen(argv, **kw)
        log.close()

    def start(self, timeout=60):
        self.launch()
        end, tries = time_limit.end(timeout), FANOUT_TRIES
        while True:
            if not self.alive() and FANOUT_TAKEN in self.tail() and tries > 0:
                tries -= 1
                self.launch()
            assert self.alive(), 'polca ended with %s:\n%s' % (self.proc.returncode, self.tail())
            try:
                self.rpc = Client(self.socket)
                break
            except OSError:
                assert time.monotonic() < end, 'no control socket:\n' + self.tail()
                time.sleep(0.05)
        self.rpc('version_get')
        return self

    def fails(self, timeout=60):
        """Expect the start to fail; returns its output."""
        if os.path.exists(self.log):
            os.unlink(self.log)
        self.launch()
        status = self.proc.wait(time_limit.limit(timeout))
        self.proc = None
        assert status == 1, 'polca ended with %d:\n%s' % (status, self.tail())
        return self.tail()

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def tail(self, n=3000):
        with open(self.log, errors='replace') as f:
            return f.read()[-n:]

    def client(self, timeout=30):
        return Client(self.socket, timeout)

    def ctl(self, *args, check=True, timeout=60):
        """Run polca-ctl with these arguments; returns what subprocess.run() returns."""
        r = subprocess.run([CTL_PROGRAM, '-s', self.socket] + [str(a) for a in args],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           timeout=time_limit.limit(timeout))
        assert not check or r.returncode == 0, (args, r)
        return r

    def telemetry(self, *commands):
        """The answers of DPDK's telemetry socket to these commands, as JSON."""
        path = os.path.join(self.dir, 'dpdk', self.config['eal']['file_prefix'],
                            'dpdk_telemetry.v2')
        out = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(time_limit.limit(20))
            s.connect(path)
            s.recv(4096)  # its greeting
            for c in commands:
                s.send(c.encode())
                out.append(json.loads(s.recv(1 << 20)))
        return out

    def _drop_rpc(self):
        if self.rpc:
            self.rpc.close()
            self.rpc = None

    def stop(self, timeout=30):
        """SIGTERM: it drains and exits with 0."""
        if self.proc is None:
            return
        assert self.alive(), 'polca ended by itself with %s:\n%s' % (
            self.proc.returncode, self.tail())
        self._drop_rpc()
        self.proc.send_signal(signal.SIGTERM)
        try:
            status = self.proc.wait(time_limit.limit(timeout))
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError('polca does not end on SIGTERM:\n' + self.tail()) from None
        self.proc = None
        assert status == 0, 'polca ended with %d:\n%s' % (status, self.tail())

    def kill(self):
        if self.proc is not None:
            self._drop_rpc()
            self.proc.kill()
            self.proc.wait()
            self.proc = None


def refused(path):
    """True if no process listens on this socket."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) != 0


__all__ = ['Polca', 'RpcError', 'port', 'refused', 'PROGRAM', 'CTL_PROGRAM']
