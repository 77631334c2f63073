# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Verbs programs of the soft-RoCE guest, run like those of this host (lib/verbs.py), so that a program of the one
is the peer of a program of the other."""

import io
import os
import re
import shlex
import socket
import subprocess
import tarfile
import threading

import time_limit
from guest import TCP_HOST, GuestError, rping_raced


class GuestJob:
    """A program in the guest, with the methods of verbs.Job. It is its own process object."""

    def __init__(self, guest, name, argv, timeout):
        self.guest, self.returncode = guest, None
        self.name = name  # what the kernel calls it
        self.job = guest.spawn(shlex.join(argv), timeout)
        self.proc = self

    def poll(self):
        if self.returncode is None:
            self.returncode = self.job.poll()
        return self.returncode

    def wait(self, timeout=60):
        if self.returncode is None:
            try:
                self.returncode = self.job.wait(timeout).status
            except GuestError:
                raise subprocess.TimeoutExpired(self.name, timeout, self.output()) from None
        return self.returncode

    def output(self):
        return self.job.output()

    def wait_listening(self, tcp_port, looks=600):
        """looks: how often the guest looks, every 50 ms, while the program runs."""
        r = self.guest.run(
            'n=0; until /usr/bin/ss -ltn | grep -q ":{0} "; do '
            '[ -s /run/jobs/{1}.status ] || [ $n -ge {2} ] && exit 1; usleep 50000; n=$((n + 1)); done'.format(
                tcp_port, self.job.name, looks), 60)
        assert r.status == 0, 'does not listen on port %d:\n%s' % (tcp_port, self.output())

    def end(self, timeout=60):
        """Wait for the program, which must succeed; returns its output."""
        status = self.wait(timeout)
        raced = self.name == 'rping' and rping_raced(status, self.output())
        assert status == 0 or raced, 'ended with %d:\n%s' % (status, self.output())
        return self.output()

    def kill(self):
        if self.poll() is None:
            self.guest.run('killall -q -9 %s' % shlex.quote(self.name))
            self.wait()


LIBRARIES = '/usr/lib/x86_64-linux-gnu/'


class GuestPrograms:
    """spawn() and run() as of verbs.Programs. prefix: what runs the programs, and becomes them, as polca-run does."""

    def __init__(self, guest, prefix=()):
        self.guest, self.prefix = guest, prefix
        self.dir = self.socket = None

    def spawn(self, *argv, preload=None, timeout=200):
        env = ['env', 'LD_PRELOAD=' + preload] if preload else []
        name = os.path.basename(str(argv[0]))
        return GuestJob(self.guest, name, [*env, *self.prefix, *map(str, argv)], timeout)

    def run(self, *argv, timeout=120):
        return self.spawn(*argv, timeout=timeout).end(timeout)

    def install(self, *paths):
        """Copy programs of this host, which has the guest's distribution, and the libraries that they need and
        the guest lacks. They are too large for an image that every suite boots."""
        wanted = {path: path for path in paths}
        for path in paths:
            out = subprocess.run(['ldd', path], stdout=subprocess.PIPE, text=True, check=True).stdout
            wanted.update((LIBRARIES + os.path.basename(so), so) for so in re.findall(r'=> (/\S+) \(', out))
        lacking = self.guest.check('for f in %s; do [ -e $f ] || echo $f; done; true' % ' '.join(wanted)).split()
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode='w') as tar:
            for path in lacking:
                tar.add(os.path.realpath(wanted[path]), path[1:])
        if lacking:
            self._give(data.getbuffer(), 'tar -x -C /')

    def put(self, data, path):
        self._give(data, 'cat >' + path)

    def _give(self, data, reader):
        with socket.create_server(('127.0.0.1', 0)) as listener:
            giving = threading.Thread(target=give_once, args=(listener, data), daemon=True)
            giving.start()
            self.guest.check('nc %s %d </dev/null | %s' % (TCP_HOST, listener.getsockname()[1], reader), 120)
            giving.join(time_limit.limit(10))


def give_once(listener, data):
    connection, _ = listener.accept()
    with connection:
        connection.sendall(data)
