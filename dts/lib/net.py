# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Network namespaces, veth pairs and taps that are always removed again.

Every namespace is named polca-dts-PID-N, so that sweep() can remove those of killed runs.
"""

import atexit
import ctypes
import fcntl
import itertools
import json
import os
import signal
import struct
import subprocess
import threading

PREFIX = 'polca-dts-'
_serial = itertools.count(1)
_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000


def die_with_parent():
    """preexec_fn: child processes end with the test, even if pytest is killed."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def sh(argv, check=True):
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if check and r.returncode:
        raise RuntimeError('%s: %s' % (' '.join(argv), r.stdout.strip()))
    return r.stdout


def sweep():
    """Remove the namespaces of runs that have ended."""
    for line in sh(['ip', 'netns', 'list'], check=False).splitlines():
        name = line.split()[0] if line.split() else ''
        if name.startswith(PREFIX):
            pid = name[len(PREFIX):].split('-')[0]
            if pid.isdigit() and not os.path.exists('/proc/' + pid):
                sh(['ip', 'netns', 'del', name], check=False)


class Namespace:
    """A network namespace in which the kernel has no address and sends no packets of its own."""

    def __init__(self):
        self.name = '%s%d-%d' % (PREFIX, os.getpid(), next(_serial))
        sh(['ip', 'netns', 'add', self.name])
        atexit.register(self.close)
        self.exec(['sh', '-c', 'for c in all default; do '
                   'echo 1 > /proc/sys/net/ipv6/conf/$c/disable_ipv6; done'])
        self.ip('link', 'set', 'lo', 'up')

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        if self.name:
            atexit.unregister(self.close)
            sh(['ip', 'netns', 'del', self.name], check=False)
            self.name = None

    def ip(self, *args):
        return sh(['ip', '-n', self.name] + [str(a) for a in args])

    def prefix(self):
        return ['ip', 'netns', 'exec', self.name]

    def exec(self, argv, check=True):
        return sh(self.prefix() + argv, check)

    def popen(self, argv, **kw):
        return subprocess.Popen(self.prefix() + argv, preexec_fn=die_with_parent, **kw)

    def call(self, fn, *args):
        """Run fn in the namespace and return its result, for sockets opened from Python."""
        box = []

        def work():
            try:
                with open('/run/netns/' + self.name) as ns:
                    if _libc.setns(ns.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), 'setns')
                box.append((True, fn(*args)))
            except BaseException as e:  # raised in the caller
                box.append((False, e))
        t = threading.Thread(target=work)
        t.start()
        t.join()
        good, value = box[0]
        if not good:
            raise value
        return value

    def veth(self, a, b, mtu=1500, mac_a=None, mac_b=None):
        self.ip('link', 'add', a, 'mtu', mtu, 'type', 'veth', 'peer', 'name', b, 'mtu', mtu)
        for name, mac in ((a, mac_a), (b, mac_b)):
            if mac:
                self.ip('link', 'set', name, 'address', mac)
            self.ip('link', 'set', name, 'up')

    def veth_to(self, a, other, b, mtu=1500, mac_a=None):
        """A veth pair whose other end is in another namespace."""
        self.veth(a, b, mtu, mac_a)
        self.ip('link', 'set', b, 'netns', other.name)
        other.ip('link', 'set', b, 'up')

    def lose(self, name, percent):
        """Lose this percentage of the packets that leave through an interface: a classifier
        picks them at random and sends them to a queue without room. (Some kernels lack netem. If
        a program sends on this interface, it sees the loss as an error: lose packets where they
        are forwarded.)"""
        odds = round(percent / 100 * (1 << 32))
        dice = '4,32 0 0 4294963256,37 1 0 %d,6 0 0 4294967295,6 0 0 0,' % odds

        def tc(*args):
            sh(['tc', '-n', self.name] + [str(a) for a in args])
        tc('qdisc', 'add', 'dev', name, 'root', 'handle', '1:', 'htb', 'default', '1', 'r2q', 100000)
        for cls, limit in (('1:1', 10000), ('1:2', 0)):
            tc('class', 'add', 'dev', name, 'parent', '1:', 'classid', cls, 'htb', 'rate',
               '100gbit')
            tc('qdisc', 'add', 'dev', name, 'parent', cls, 'pfifo', 'limit', limit)
        tc('filter', 'add', 'dev', name, 'parent', '1:', 'bpf', 'bytecode', dice, 'flowid', '1:2')

    def lost(self, name):
        """The number of packets lost by lose() on this interface."""
        stats = sh(['tc', '-n', self.name, '-s', '-j', 'qdisc', 'show', 'dev', name])
        return next(q['drops'] for q in json.loads(stats) if q.get('parent') == '1:2')

    def tap(self, name, mtu=1500):
        """A tap for QEMU: an open file. The interface exists while the file is open."""
        def make():
            fd = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(fd, TUNSETIFF, struct.pack('16sH22x', name.encode(), IFF_TAP | IFF_NO_PI))
            return fd
        fd = self.call(make)
        self.ip('link', 'set', name, 'mtu', mtu, 'up')
        return fd

    def bridge(self, name, *members):
        self.ip('link', 'add', name, 'type', 'bridge', 'stp_state', 0, 'forward_delay', 0,
                'mcast_snooping', 0)
        for m in members:
            self.ip('link', 'set', m, 'master', name)
        self.ip('link', 'set', name, 'up')
