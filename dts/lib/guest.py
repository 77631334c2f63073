# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A Linux soft-RoCE host in QEMU (software emulation): boot it, run commands, and drive its
verbs.

    guest = Guest(dir, nic=Nic.tap(fd), ip='10.99.0.2/24')
    guest.start(); guest.wait_ready()
    print(guest.check('rdma link'))
    v = guest.rdma()
    qp = v('qp', sq=16, rq=16)

Observations of this peer (Linux 6.1): GID 0 is fe80::, GID 1 the IPv4 address, GID 2 the IPv6
one. MTU 1500 gives PMTU 1024, 4200 gives 4096. It sends UDP checksum 0, M = 0, P_Key 0xffff, no
credits in its ACKs (syndrome 31). It drops a packet with a damaged ICRC without counting it.
"""

import base64
import itertools
import os
import re
import shlex
import socket
import subprocess
import threading
import time

import net
import time_limit

HERE = os.path.dirname(os.path.realpath(__file__))
BUILD = os.path.join(HERE, '..', 'guest', 'build')
TCP_HOST = '10.0.2.2'  # the host, as the guest's second NIC sees it
MEMORY = '512M'

_serial = itertools.count(1)


def image():
    """The directory of the guest's kernel and initramfs, rebuilt if it is out of date."""
    r = subprocess.run([BUILD, '--print-dir'], stdout=subprocess.PIPE, text=True)
    if r.returncode:
        raise RuntimeError('the guest image could not be built')
    return r.stdout.strip()


class Nic:
    """The other end of the guest's eth0."""

    # no offloads, so that the guest sends frames as on a wire
    OFF = ''.join(',%s=off' % o for o in '''csum guest_csum gso guest_tso4 guest_tso6 guest_ecn
        guest_ufo host_tso4 host_tso6 host_ecn host_ufo'''.split())

    def __init__(self, netdev, fds=(), extra=(), device=''):
        self.netdev, self.fds, self.extra, self.device = netdev, fds, extra, device

    @classmethod
    def tap(cls, fd):
        return cls(['-netdev', 'tap,id=n0,fd=%d' % fd], fds=(fd,))

    @classmethod
    def vhost(cls, path):
        """A net_vhost port that listens at path."""
        # QEMU 7.2 without KVM dies in its MSI-X code when the driver starts a vhost-user NIC;
        # with vectors=0 (INTx) it works
        return cls(['-chardev', 'socket,id=vu,path=%s,reconnect=1' % path,
                    '-netdev', 'vhost-user,id=n0,chardev=vu,queues=1'],
                   extra=['-object', 'memory-backend-memfd,id=mem,size=%s,share=on' % MEMORY,
                          '-machine', 'memory-backend=mem'], device=',vectors=0')

    @classmethod
    def stream(cls, path, server):
        """The other guest, over a Unix socket; start the server first."""
        return cls(['-netdev', 'stream,id=n0,server=%s,addr.type=unix,addr.path=%s' % (
            'on' if server else 'off', path)])


class Result:
    def __init__(self, status, output):
        self.status, self.output = status, output

    def __repr__(self):
        return 'Result(%d, %r)' % (self.status, self.output)


class GuestError(Exception):
    pass


class Line:
    """A Unix socket with a line protocol. why: tells why the other end is gone, for the error."""

    def __init__(self, path, why, timeout=60):
        self.why = why
        end = time_limit.end(timeout)
        while True:
            self.sock = socket.socket(socket.AF_UNIX)
            try:
                self.sock.connect(path)
                break
            except OSError:
                self.sock.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self.buf = b''

    def send(self, text):
        try:
            self.sock.sendall(text.encode() + b'\n')
        except ConnectionError:
            raise GuestError(self.why()) from None

    def recv(self, timeout):
        """The next line, or None when none came in time."""
        end = time.monotonic() + timeout
        while b'\n' not in self.buf:
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.sock.settimeout(left)
            try:
                d = self.sock.recv(1 << 16)
            except socket.timeout:
                return None
            except ConnectionError:
                d = b''
            if not d:
                raise GuestError(self.why())
            self.buf += d
        line, self.buf = self.buf.split(b'\n', 1)
        return line.decode(errors='replace')

    def close(self):
        self.sock.close()


class Job:
    """A command that runs in the guest in the background."""

    def __init__(self, guest, name):
        self.guest, self.name = guest, name

    def poll(self):
        r = self.guest.run('cat /run/jobs/%s.status' % self.name)
        return int(r.output) if r.status == 0 and r.output.strip() else None

    def output(self):
        return self.guest.run('cat /run/jobs/%s.output' % self.name).output

    def wait(self, timeout=60):
        timeout = time_limit.limit(timeout)
        r = self.guest.run(
            'n=0; until [ -s /run/jobs/{0}.status ] || [ $n -ge {1} ]; do usleep 50000; '
            'n=$((n + 1)); done; cat /run/jobs/{0}.status'.format(self.name, int(timeout * 20)),
            timeout + 10)
        if not r.output.strip().isdigit():
            raise GuestError('job %s runs after %d s: %s' % (self.name, timeout, self.output()))
        return Result(int(r.output), self.output())


class Verbs:
    """A session of guest/rdmacli.c. Call it with a command and its values; it returns a dict."""

    def __init__(self, path, why):
        self.line = Line(path, why)
        self.restart()

    def _raw(self, text, timeout):
        self.line.send(text)
        data = []
        while True:
            line = self.line.recv(timeout)
            if line is None:
                raise GuestError('no answer to %r within %g s' % (text, timeout))
            word = line.split(' ', 1)[0]
            if word in ('ok', 'err'):
                return line, data
            data.append(line)

    def restart(self):
        """End the session's process in any state, and connect to the next one."""
        self.line.send('quit')
        end = time_limit.end(60)
        while time.monotonic() < end:
            token = 't%d' % next(_serial)
            self.line.send('ping token=' + token)
            line = self.line.recv(0.2)
            while line is not None:
                if line == 'ok token=' + token:
                    return self
                line = self.line.recv(0.2)
        raise GuestError('rdmacli does not answer')

    def fresh(self):
        """Free all objects of the session; if that fails, start a new process."""
        try:
            self('reset', timeout=5)
            self.events()
            return self
        except GuestError:
            return self.restart()

    @staticmethod
    def _fields(line):
        out = {}
        for word in line.split()[1:]:
            k, _, v = word.partition('=')
            try:
                out[k] = int(v, 0) if k not in ('hex', 'gid', 'state', 'token') else v
            except ValueError:
                out[k] = v
        return out

    def __call__(self, command, timeout=30, **values):
        text = ' '.join([command] + ['%s=%s' % (k, v) for k, v in values.items()])
        line, data = self._raw(text, time_limit.limit(timeout) + values.get('ms', 0) / 1000)
        if line.startswith('err'):
            raise GuestError('%s: %s' % (text[:200], line))
        out = self._fields(line)
        if data:
            out['lines'] = [dict(self._fields(d), kind=d.split()[0]) for d in data]
        return out

    def poll(self, qp, n=1, ms=20000, exact=True):
        """n completions as dicts; fewer within the time is an error unless exact is False."""
        ms = int(time_limit.limit(ms)) if exact else ms
        r = self('poll', qp=qp, n=n, ms=ms)
        if exact and r['n'] != n:
            raise GuestError('%d of %d completions within %d ms: %s' % (
                r['n'], n, ms, r.get('lines')))
        return r.get('lines', [])

    def events(self):
        return self('events').get('lines', [])

    def same(self, mr, seed, length, off=0):
        """An empty text if the range holds the pattern, else the difference."""
        r = self('check', mr=mr, off=off, len=length, seed=seed)
        return '' if r['same'] else 'byte %(at)d is 0x%(got)02x, not 0x%(want)02x' % r


def rping_raced(status, output):
    """rping closes the channel of its thread that reads events: this thread may then fail and end the process with
    status 255, when all is done and the connection is closed (librdmacm/examples/rping.c: cm_thread)."""
    return status == 255 and output.rstrip().endswith('rdma_get_cm_event: Bad file descriptor')


class Guest:
    def __init__(self, directory, nic, ip='10.99.0.2/24', ip6='', mac='52:54:00:99:00:02',
                 mtu='', name='guest', tcp=True, listen=(), smp=2):
        """listen: guest TCP ports that the host reaches at 127.0.0.1 (see host_port)."""
        self.dir, self.nic, self.name, self.mac = directory, nic, name, mac
        self.ip, self.ip6, self.mtu, self.tcp, self.smp = ip, ip6, mtu, tcp, smp
        self.listen = {p: _free_port() for p in listen}
        self.log = os.path.join(directory, name + '.console')
        self.agent_path = os.path.join(directory, name + '.agent')
        self.rdma_path = os.path.join(directory, name + '.rdma')
        self.proc = self.agent = self._verbs = None
        self.lock = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()

    def host_port(self, port):
        return self.listen[port]

    # overridden for other machines (bare_metal.py)

    def _machine(self):
        return ['-M', 'q35', '-cpu', 'max', '-smp', str(self.smp), '-m', MEMORY]

    def _nics(self):
        a = list(self.nic.extra) + list(self.nic.netdev)
        a += ['-device', 'virtio-net-pci,netdev=n0,mrg_rxbuf=on,romfile=,mac=%s%s%s' % (
            self.mac, Nic.OFF, self.nic.device)]
        if self.tcp:
            forward = ''.join(',hostfwd=tcp:127.0.0.1:%d-:%d' % (h, g)
                              for g, h in self.listen.items())
            a += ['-netdev', 'user,id=n1,ipv6=off' + forward, '-device',
                  'virtio-net-pci,netdev=n1,romfile=,mac=52:54:00:00:00:01']
        return a

    def _kernel_words(self):
        """Arguments for /init and the kernel."""
        return ['polca.%s=%s' % kv for kv in dict(
            ip=self.ip, ip6=self.ip6, mtu=self.mtu, name=self.name, tcp=int(self.tcp)).items()
            if kv[1] != '']

    def _initrd(self, where):
        return where + '/initramfs.cpio'

    def _serial_ports(self):
        return (('ag', self.agent_path, 'polca.agent'), ('rd', self.rdma_path, 'polca.rdma'))

    def _argv(self, where):
        a = ['qemu-system-x86_64', '-accel', 'tcg,thread=multi'] + self._machine()
        a += ['-nographic', '-nodefaults', '-no-reboot', '-monitor', 'none', '-serial',
              'file:' + self.log, '-device', 'virtio-rng-pci', '-kernel', where + '/vmlinuz',
              '-initrd', self._initrd(where), '-append',
              # no_timer_check: on a busy host, the timer check misses its interrupts
              'console=ttyS0 quiet panic=-1 mitigations=off nokaslr nowatchdog tsc=reliable '
              'no_timer_check net.ifnames=0 ' + ' '.join(self._kernel_words())]
        a += self._nics() + ['-device', 'virtio-serial-pci,bus=pcie.0']
        for chardev, path, port in self._serial_ports():
            a += ['-chardev', 'socket,id=%s,path=%s,server=on,wait=off' % (chardev, path),
                  '-device', 'virtserialport,chardev=%s,name=%s' % (chardev, port)]
        return a

    def start(self):
        argv = self._argv(image())
        out = open(os.path.join(self.dir, self.name + '.qemu'), 'w')
        out.write(' '.join(shlex.quote(x) for x in argv) + '\n')
        out.flush()
        self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                     pass_fds=self.nic.fds, preexec_fn=net.die_with_parent)
        out.close()
        return self

    def console(self):
        try:
            with open(self.log, errors='replace') as f:
                return f.read()
        except OSError:
            return ''

    def _boot(self, timeout):
        """False: it did not boot in time."""
        end = time_limit.end(timeout)
        while '@@READY' not in self.console() and self.proc.poll() is None:
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return '@@READY' in self.console()

    def wait_ready(self, timeout=120):
        """About one boot in a hundred hangs under emulation: try a second time."""
        if not self._boot(timeout) and self.proc.poll() is None:
            os.replace(self.log, self.log + '.hung')
            self.proc.kill()
            self.proc.wait()
            self.start()
            self._boot(timeout)
        if '@@READY' not in self.console():
            raise GuestError('guest %s did not come up (QEMU status %s), see %s:\n%s' % (
                self.name, self.proc.poll(), self.log, self.console()[-2000:]))
        if '@@WARN' in self.console():
            raise GuestError('guest %s: %s' % (self.name, self.console()))
        self.agent = Line(self.agent_path, self.how_it_ended)
        return self

    def run(self, command, timeout=30):
        """Run shell text; returns its exit status (143 or 124: it exceeded timeout) and its
        output."""
        ident, timeout = 'r%d' % next(_serial), time_limit.limit(timeout)
        with self.lock:
            self.agent.send('%s %d %s' % (ident, timeout,
                                          base64.b64encode(command.encode()).decode()))
            end = time.monotonic() + timeout + 20
            while time.monotonic() < end:
                line = self.agent.recv(end - time.monotonic())
                words = (line or '').split(' ')
                if words[0] == ident:
                    return Result(int(words[1]), base64.b64decode(words[2]).decode(
                        errors='replace'))
        raise GuestError('guest %s: no answer to %r' % (self.name, command))

    def crashed(self):
        """The emulator was ended by a signal. A panic of the guest's kernel ends it with status 0."""
        return self.proc is not None and (self.proc.poll() or 0) < 0

    def how_it_ended(self):
        """The emulator's status, and the last output of the emulator and of the console."""
        try:
            self.proc.wait(5)
        except subprocess.TimeoutExpired:
            pass
        with open(os.path.join(self.dir, self.name + '.qemu'), errors='replace') as f:
            said = f.read().split('\n', 1)[1]
        return 'guest %s is gone, QEMU status %s: %s\nconsole: %s' % (
            self.name, self.proc.poll(), said[-500:], self.console()[-1500:])

    def check(self, command, timeout=30):
        """Run shell text that must succeed; returns its output."""
        r = self.run(command, timeout)
        if r.status:
            raise GuestError('guest %s: %r gave %d: %s' % (
                self.name, command, r.status, r.output))
        return r.output

    def rping(self, command, timeout=30):
        """rping's client, with -C COUNT, must exchange them all; returns its output with the option -v."""
        command += ' -v'
        r = self.run(command, timeout)
        ended = r.status == 0 or rping_raced(r.status, r.output)
        pings = re.findall(r'rdma-ping-(\d+): ', r.output)
        count = int(re.search(r'-C (\d+)', command).group(1))
        if not ended or pings != [str(i) for i in range(count)]:
            raise GuestError('guest %s: %r gave %d: %s' % (self.name, command, r.status, r.output))
        return r.output

    def spawn(self, command, timeout=120):
        name, timeout = 'j%d' % next(_serial), time_limit.limit(timeout)
        self.check('(timeout -k 5 %d sh -c %s </dev/null >/run/jobs/%s.output 2>&1; '
                   'echo $? > /run/jobs/%s.status) >/dev/null 2>&1 &' % (
                       timeout, shlex.quote(command), name, name))
        return Job(self, name)

    def rdma(self):
        """A new verbs session; the previous one is ended."""
        if self._verbs is None:
            self._verbs = Verbs(self.rdma_path, self.how_it_ended)
            return self._verbs
        return self._verbs.fresh()

    def loss(self, percent, direction):
        """Lose that share of eth0's packets: direction 'out', 'in' or 'both'; 0 ends it."""
        text = 'modprobe -a sch_netem sch_ingress ifb cls_matchall act_mirred; '
        text += 'tc qdisc del dev eth0 root 2>/dev/null; tc qdisc del dev eth0 ingress 2>/dev/null;'
        if percent and direction in ('out', 'both'):
            text += 'tc qdisc add dev eth0 root netem loss %g%% limit 5000 || exit 1; ' % percent
        if percent and direction in ('in', 'both'):
            text += ('ip link add ifb0 type ifb 2>/dev/null; ip link set ifb0 up; '
                     'tc qdisc replace dev ifb0 root netem loss %g%% limit 5000 || exit 1; '
                     'tc qdisc add dev eth0 ingress || exit 1; tc filter add dev eth0 ingress '
                     'protocol all matchall action mirred egress redirect dev ifb0 || exit 1;'
                     % percent)
        self.check('ip() { /usr/bin/ip "$@"; }; tc() { /usr/bin/tc "$@"; }; ' + text + ' true')

    def losses(self):
        """How many packets netem has dropped since loss()."""
        out = self.check('/usr/bin/tc -s qdisc show')
        dropped = 0
        lines = out.splitlines()
        for i, line in enumerate(lines):
            if 'netem' in line and i + 1 < len(lines) and 'dropped' in lines[i + 1]:
                dropped += int(lines[i + 1].split('dropped ')[1].split(',')[0])
        return dropped

    def counters(self):
        """rxe0's hardware counters."""
        out = self.check('cd /sys/class/infiniband/rxe0/ports/1/hw_counters && '
                         'for f in *; do echo "$f $(cat $f)"; done')
        return {k: int(v) for k, v in (line.split() for line in out.splitlines())}

    def stop(self):
        for line in (self.agent, self._verbs and self._verbs.line):
            if line:
                try:
                    line.send('quit')
                except (OSError, GuestError):
                    pass
                line.close()
        self.agent = self._verbs = None
        if self.proc is not None:
            try:
                self.proc.wait(3)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
            self.proc = None
        for fd in self.nic.fds:
            try:
                os.close(fd)
            except OSError:
                pass
        self.nic.fds = ()


def _free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]
