# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Unmodified verbs programs of this host, run on the devices of an appliance by polca-run."""

import os
import shutil
import subprocess
import time

import net
import time_limit
from polca import BUILD

# ibv_rc_pingpong gives up after half a second without an answer, and programs that poll share the CPUs with the
# workers: the appliance raises shorter timeouts.
PATIENT = {'min_ack_timeout': 18}
RUN = os.path.join(BUILD, 'app/polca-run/polca-run')
PROBE = os.path.join(BUILD, 'test/verbs/verbs_probe')


def best_of_rounds(what, run, most, rounds=5):
    """run() returns milliseconds: one round at least must take this many at most. Whatever else runs on the machine
    may spoil a round, not all."""
    for _ in range(rounds):
        took = run()
        print('%s after %.0f ms (at most %d)' % (what, took, most))
        if took <= most:
            return
    raise AssertionError('%s: no round of %d took %d ms or less' % (what, rounds, most))


def listens(pid, tcp_port):
    """True if this process, in whatever network namespace, listens on the TCP port."""
    own = {os.readlink(os.path.join('/proc/%d/fd' % pid, fd)) for fd in os.listdir('/proc/%d/fd' % pid)
           if os.path.islink(os.path.join('/proc/%d/fd' % pid, fd))}
    for table in ('tcp', 'tcp6'):
        with open('/proc/%d/net/%s' % (pid, table)) as f:
            for row in f.read().splitlines()[1:]:
                column = row.split()
                if int(column[1].split(':')[1], 16) == tcp_port and column[3] == '0A' and \
                        'socket:[%s]' % column[9] in own:
                    return True
    return False


class Job:
    """A program that runs; its output is in a file, so that it never waits for a reader."""

    def __init__(self, path, argv, env, cwd=None, stdin=subprocess.DEVNULL):
        self.path = path
        with open(path, 'w') as f:
            self.proc = subprocess.Popen(argv, stdin=stdin, stdout=f, stderr=f, env=env, cwd=cwd,
                                         preexec_fn=net.die_with_parent)

    def output(self):
        with open(self.path, errors='replace') as f:
            return f.read()

    def wait_line(self, line, times=1, timeout=30):
        """Wait until the program has written this line so often."""
        end = time_limit.end(timeout)
        while self.output().splitlines().count(line) < times:
            assert self.proc.poll() is None, 'ended with %s:\n%s' % (self.proc.returncode, self.output())
            assert time.monotonic() < end, 'no line "%s":\n%s' % (line, self.output())
            time.sleep(0.02)

    def tell(self, line):
        """Write a line to the program's standard input."""
        self.proc.stdin.write((line + '\n').encode())
        self.proc.stdin.flush()

    def wait_listening(self, tcp_port, timeout=20):
        end = time_limit.end(timeout)
        while True:
            assert self.proc.poll() is None, 'ended with %s:\n%s' % (self.proc.returncode, self.output())
            try:
                if listens(self.proc.pid, tcp_port):
                    return
            except OSError:
                pass
            assert time.monotonic() < end, 'does not listen on port %d:\n%s' % (tcp_port, self.output())
            time.sleep(0.05)

    def end(self, timeout=60):
        """Wait for the program, which must succeed; returns its output."""
        status = self.proc.wait(time_limit.limit(timeout))
        assert status == 0, 'ended with %d:\n%s' % (status, self.output())
        return self.output()

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()


def copy_for_others(directory):
    """polca-run with its libraries, where every user may read them; returns its path."""
    run = os.path.join(directory, 'app/polca-run/polca-run')
    os.makedirs(os.path.dirname(run))
    shutil.copy(RUN, run)
    shutil.copytree(os.path.join(BUILD, 'provider'), os.path.join(directory, 'provider'),
                    ignore=lambda d, names: [n for n in names if not n.endswith('.so')])
    return run


class Programs:
    """Runs programs on the verbs socket; keeps their output in a directory. prefix: what runs polca-run."""

    def __init__(self, socket, directory, prefix=(), run=RUN):
        self.socket, self.dir = socket, directory
        self.prefix = [*prefix, run]
        self.jobs = []

    def spawn(self, *argv, preload=None, **kw):
        path = os.path.join(self.dir, '%s-%02d-%s.log' % (os.path.basename(self.socket), len(self.jobs),
                                                          os.path.basename(argv[0])))
        env = dict(os.environ, POLCA_DEBUG='1')
        if preload is not None:
            env['LD_PRELOAD'] = preload
        job = Job(path, [*self.prefix, '-s', self.socket, *map(str, argv)], env, **kw)
        self.jobs.append(job)
        return job

    def probe(self, *argv):
        """Our own program of test/verbs, which is told lines."""
        return self.spawn(PROBE, *argv, stdin=subprocess.PIPE)

    def run(self, *argv, timeout=60):
        return self.spawn(*argv).end(timeout)

    def pair(self, tcp_port, *argv, client_device='polca1', under=(), timeout=90):
        """The same program as a server on polca0 and as a client on polca1; returns both outputs. under: what runs
        it."""
        server = self.spawn(*under, argv[0], '-d', 'polca0', '-p', tcp_port, *argv[1:])
        server.wait_listening(tcp_port)
        client = self.spawn(*under, argv[0], '-d', client_device, '-p', tcp_port, *argv[1:], 'localhost')
        try:
            return server.end(timeout), client.end(timeout)
        finally:
            server.kill()
            client.kill()

    def close(self):
        for job in self.jobs:
            job.kill()
