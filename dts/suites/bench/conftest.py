# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""polca-bench as a process: started with arguments, awaited by its output, always ended."""

import os
import pty
import select
import subprocess
import time

import pytest

import time_limit
from hugepages import free
from polca import BUILD

PROGRAM = os.path.join(BUILD, 'app/polca-bench/polca-bench')
WAIT = 120
PAGES = 400  # of 2 MiB, for two processes


class Bench:
    def __init__(self, *words, terminal=False, ns=None):
        self.text = ''
        master, out = pty.openpty() if terminal else os.pipe()
        self.out = master
        self.process = subprocess.Popen((ns.prefix() if ns else []) + [PROGRAM, *words],
                                        stdin=subprocess.PIPE, stdout=out, stderr=out)
        os.close(out)

    def _more(self, seconds):
        if not select.select([self.out], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.out, 65536)
        except OSError:  # the terminal's other side is closed
            data = b''
        self.text += data.decode()
        return bool(data)

    def says(self, what):
        end = time_limit.end(WAIT)
        while what not in self.text:
            assert time.monotonic() < end and self._more(0.2), (what, self.text)

    def tell(self, line):
        """Type this on its standard input."""
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()

    def signal(self, number):
        self.process.send_signal(number)

    def ends(self):
        """Wait for its end; returns the exit status, and .text has the output."""
        end = time_limit.end(WAIT)
        while self._more(0.2):
            assert time.monotonic() < end, self.text
        return self.process.wait(WAIT)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        os.close(self.out)


@pytest.fixture
def bench():
    started = []

    def start(*words, **how):
        started.append(Bench(*words, **how))
        return started[-1]
    yield start
    for b in started:
        b.kill()


@pytest.fixture
def memif(sockets):
    """The link's arguments; its files are removed afterwards."""
    path = os.path.join(sockets, 'bench')
    yield '--link', 'memif,socket=' + path
    for name in (path, path + '.bench'):
        if os.path.exists(name):
            os.unlink(name)


@pytest.fixture
def hugepages():
    """Reserve enough pages for both processes."""
    with free(PAGES):
        yield
