# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A small swap file, and a control group whose memory the kernel swaps out when it is told to."""

import contextlib
import os
import subprocess
import tempfile

CGROUPS = '/sys/fs/cgroup'
# of both versions: where memory is controlled, and the file and text that take all that can be taken
KINDS = (('memory', 'memory.force_empty', '1'), ('', 'memory.reclaim', '1G'))
BYTES = 64 << 20


class Group:
    """prefix: runs a program in the group."""

    def __init__(self, path, file, text):
        self.path, self.file, self.text = path, file, text
        self.prefix = ('sh', '-c', 'echo $$ > %s/cgroup.procs && exec "$@"' % path, 'sh')

    def swap_out(self):
        """As much as can be: what is left is no error."""
        with contextlib.suppress(OSError):
            with open(os.path.join(self.path, self.file), 'w') as f:
                f.write(self.text)


@contextlib.contextmanager
def group():
    for folder, file, text in KINDS:
        path = os.path.join(CGROUPS, folder, 'polca-dts-%d' % os.getpid())
        if folder and not os.path.isdir(os.path.dirname(path)):
            continue
        os.mkdir(path)
        try:
            if os.path.exists(os.path.join(path, file)):
                yield Group(path, file, text)
                return
        finally:
            os.rmdir(path)
    raise AssertionError('no control group of this host controls memory: %s' % CGROUPS)


@contextlib.contextmanager
def swapping():
    """Yields a Group. On a disk: a swap file needs blocks of its own."""
    with tempfile.TemporaryDirectory(prefix='polca-swap-', dir='/var/tmp') as d, group() as g:
        path = os.path.join(d, 'swap')
        with open(path, 'wb') as f:
            os.fchmod(f.fileno(), 0o600)
            for _ in range(BYTES >> 20):
                f.write(bytes(1 << 20))
        subprocess.run(['mkswap', path], stdout=subprocess.DEVNULL, check=True)
        subprocess.run(['swapon', path], check=True)
        try:
            yield g
        finally:
            subprocess.run(['swapoff', path], check=True)
