# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The bridge of dts/umad for a test: runs unmodified tools that use libibumad, and parses their
output."""

import copy
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import net
import time_limit

HERE = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', 'umad')
sys.path.insert(0, HERE)


def preload(directory):
    path = os.path.join(directory, 'umad-preload.so')
    if not os.path.exists(path):
        net.sh(['gcc', '-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', path,
                os.path.join(HERE, 'preload.c'), '-ldl'])
    return path


class Bridge:
    """interfaces: those of ns with a device; options: as for bridge.py, with _ for -."""

    def __init__(self, ns, interfaces, directory, name='bridge', **options):
        self.ns, self.dir = ns, os.path.join(directory, name)
        os.makedirs(self.dir)
        self.preload = preload(directory)
        self.log = os.path.join(directory, name + '.log')
        self.argv = ['/usr/bin/python3', '-B', os.path.join(HERE, 'bridge.py'), self.dir]
        for i in [interfaces] if isinstance(interfaces, str) else interfaces:
            self.argv += ['-i', i]
        for k, v in options.items():
            self.argv += ['--' + k.replace('_', '-')] + ([] if v is True else [str(v)])
        self.env = dict(os.environ, UMAD_BRIDGE=self.dir, LD_PRELOAD=self.preload)
        self.proc = None

    def start(self, timeout=20):
        with open(self.log, 'a') as log:
            self.proc = self.ns.popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time_limit.end(timeout)
        while 'ready' not in self.said():
            assert self.proc.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.02)
        return self

    def said(self):
        with open(self.log, errors='replace') as f:
            return f.read()

    def wrong(self):
        """Errors of the devices that the bridge has found: CRCs, lengths, RMPP."""
        return [line for line in self.said().splitlines() if line.startswith('BAD')]

    def command(self, argv):
        # preload into the tool only; no other process uses the bridge
        return self.ns.prefix() + ['env', 'LD_PRELOAD=' + self.preload] + [str(a) for a in argv]

    def tool_env(self):
        return dict({k: v for k, v in self.env.items() if k != 'LD_PRELOAD'}, LC_ALL='C',
                    HOME=self.dir)

    def run(self, *argv, check=True, timeout=60):
        """Run a tool; returns its output. check: it must exit with 0."""
        r = subprocess.run(self.command(argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, text=True, errors='replace',
                           env=self.tool_env(), timeout=time_limit.limit(timeout))
        assert not check or r.returncode == 0, '%s: %d\n%s\n%s' % (
            ' '.join(map(str, argv)), r.returncode, r.stdout, r.stderr)
        return r

    def popen(self, argv, log):
        """Start a tool that keeps running: opensm, or a server."""
        with open(log, 'w') as out:
            return subprocess.Popen(self.command(argv), stdout=out, stderr=out,
                                    stdin=subprocess.DEVNULL, env=self.tool_env(),
                                    preexec_fn=net.die_with_parent)

    def asking(self, lid):
        """The same, for tools that must use this LID as the subnet manager's."""
        other = copy.copy(self)
        other.dir = '%s-sm%d' % (self.dir, lid)
        shutil.rmtree(other.dir, ignore_errors=True)
        shutil.copytree(os.path.join(self.dir, 'sys'), os.path.join(other.dir, 'sys'))
        os.symlink(os.path.join(self.dir, 'socket'), os.path.join(other.dir, 'socket'))
        path = 'sys/class/infiniband/umad0/ports/1/sm_lid'
        with open(os.path.join(other.dir, path), 'w') as f:
            f.write('0x%x\n' % lid)
        other.env = dict(self.env, UMAD_BRIDGE=other.dir)
        return other

    def stop(self):
        """Stop. No device may have sent a wrong CRC, a bad length, or invalid RMPP."""
        if self.proc is None:
            return
        assert self.proc.poll() is None, self.said()
        self.proc.send_signal(signal.SIGTERM)
        status, self.proc = self.proc.wait(10), None
        assert status == 0 and not self.wrong(), self.wrong()[:10]

    def kill(self):
        if self.proc is not None:
            self.proc.kill()
            self.proc.wait()
            self.proc = None


def ended(proc, how=signal.SIGTERM, timeout=20):
    """End a tool started by popen()."""
    if proc.poll() is None:
        proc.send_signal(how)
        try:
            proc.wait(time_limit.limit(timeout))
        except subprocess.TimeoutExpired:
            proc.kill()
            proc.wait()


def fields(text):
    """Parse 'Key:....value' lines, the output of smpquery and saquery, into a dictionary."""
    out = {}
    for line in text.splitlines():
        m = re.match(r'\s*((?:[^.:]|\.(?!\.))+?)(?::\.+|\.{2,})\s*(.*?)\s*$', line)
        if m:
            out[m.group(1).strip()] = m.group(2)
    return out


def dumps(text):
    """Parse saquery's records: 'XRecord dump:' and the fields of each."""
    parts = re.split(r'^\s*(\w[\w ]*) dump:\s*$', text, flags=re.M)
    return [(kind, fields(body)) for kind, body in zip(parts[1::2], parts[2::2])]
