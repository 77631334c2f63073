# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The commands in README.md and the guides are typed here, taken from their text. Words in
capitals are replaced by the output of earlier commands, addresses of the examples by those of
the appliance; nothing else is changed, except that pings get a count."""

import contextlib
import json
import os
import re
import subprocess

import pytest

import net
from conn import wait_until
from guide import ROOT, Section
from polca import BUILD
import verbs

ENDLESS = re.compile(r'polca-ctl ping (?!.* -c )')
LINK_RECORDS = [{'from_lid': 7, 'from_port': 1, 'to_lid': 8, 'to_port': 1}]


class Terminal:
    """A shell in a directory that looks like the source tree, with the built programs."""

    def __init__(self, directory):
        self.dir = directory
        self.lines = []  # that stay in effect: export, alias
        self.values = {}
        self.said = {}
        self.job = None
        self.others = []  # programs in the background
        for name in ('config', 'docs', 'README.md'):
            os.symlink(os.path.join(ROOT, name), os.path.join(directory, name))
        os.symlink(BUILD, os.path.join(directory, 'build'))
        path = ':'.join(os.path.join(BUILD, 'app', p) for p in ('polca', 'polca-ctl'))
        self.env = dict(os.environ, PATH=path + ':' + os.environ['PATH'],
                        RUNTIME_DIRECTORY=directory)
        self.env.pop('POLCA_SOCKET', None)

    def fill_in(self, line):
        for word in sorted(self.values, key=len, reverse=True):
            line = re.sub(r'(?<![\w.])%s(?![\w.])' % re.escape(word),
                          lambda m, w=word: str(self.values[w]), line)
        return line

    def shell(self, line):
        script = '\n'.join(['shopt -s expand_aliases', *self.lines, line])
        return subprocess.run(['bash', '-c', script], cwd=self.dir, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)

    def type(self, line):
        """Run a command as written in the document; returns its output."""
        line = self.fill_in(line)
        if line.startswith(('export ', 'alias ')):
            self.lines.append(line)
            return ''
        r = self.shell(line + (' -c 2' if ENDLESS.match(line) else ''))
        assert r.returncode == 0, (line, r.returncode, r.stdout)
        return r.stdout

    def background(self, line, tcp_port):
        """Run a command that ends in &, until it listens on the port: a reader types more slowly."""
        script = '\n'.join([*self.lines, 'exec ' + self.fill_in(line.removesuffix(' &'))])
        job = verbs.Job(os.path.join(self.dir, 'background%d.log' % len(self.others)), ['bash', '-c', script],
                        self.env, self.dir)
        self.others.append(job)
        job.wait_listening(tcp_port)

    def start(self, line):
        """Run a command in the foreground of another terminal, until it is ready."""
        log = os.path.join(self.dir, 'polca.log')
        with open(log, 'w') as f:
            self.job = subprocess.Popen(['bash', '-c', 'exec ' + self.fill_in(line)],
                                        cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=f, stderr=f, preexec_fn=net.die_with_parent)

        def ready():
            with open(log) as f:
                text = f.read()
            assert self.job.poll() is None, text
            return 'polca: ready' in text
        wait_until(ready, timeout=60, step=0.05)

    def stop(self):
        """Ctrl-C ends it."""
        self.job.send_signal(2)
        assert self.job.wait(30) == 0

    def close(self):
        for proc in [self.job, *(job.proc for job in self.others)]:
            if proc is not None and proc.poll() is None:
                proc.kill()
                proc.wait()


@pytest.fixture(autouse=True)
def undisturbed():
    """These tests do not use the suite's own appliance: each starts what its document says."""


@pytest.fixture
def terminal(sockets, tmp_path):
    t = Terminal(str(tmp_path))
    for name in ('polca.sock', 'verbs.sock'):
        t.values['/tmp/' + name] = os.path.join(sockets, name)
    try:
        yield t
    finally:
        t.close()


@contextlib.contextmanager
def appliance(terminal, config, sm=False):
    """The appliance for the section's commands: an example of config/, or the built-in
    configuration. sm: a subnet manager uses its first port."""
    socket = terminal.values['/tmp/polca.sock']
    words = '-s ' + socket
    if config:
        with open(os.path.join(ROOT, 'config', config)) as f:
            text = json.load(f)
        del text['$schema']
        text['control'] = {'socket': socket}
        if sm:
            text['ports'][0]['ib']['sm'] = {}
        with open(os.path.join(terminal.dir, 'example.json'), 'w') as f:
            json.dump(text, f)
        words = '-c example.json'
    terminal.start('polca ' + words)
    terminal.lines.append('export POLCA_SOCKET=' + socket)
    yield
    terminal.stop()


def column(out, name):
    """The values of a table with one column."""
    found = re.search(r'^%s +(\S+)' % name, out, re.M)
    assert found, (name, out)
    return found.group(1)


def learn(terminal, line, out):
    """Find values for the words in capitals of the following lines."""
    values = terminal.values
    if ' mr register ' in line:
        values['KEY'], va = column(out, 'key'), int(column(out, 'va'), 0)
        values.update(VA=va, VA_PLUS_1024=va + 1024)
    elif ' qp create ' in line:
        name = 'B' if 'A' in values else 'A'
        values[name], values['PSN_' + name] = column(out, 'qp_num'), column(out, 'sq_psn')


SAYS = {  # the output a reader expects
    'pc port list': r'192\.0\.2\.1(.|\n)*192\.0\.2\.2',
    'pc qp connect': r'RTS',
    'pc mr read': r'68656c6c6f',
    'pc stats get': r'rx_packets',
    'pc qp show': r'sent_pkts',
    'pc sa table node': r'NodeRecord',
    'pc sa table path': r'PathRecord',
    'pc cm services': r'rping',
    'pc cm connect': r'10',
}
PINGPONG_PORT = 18515  # of ibv_rc_pingpong


def test_readme_verbs_programs(terminal):
    """One program in the background; the other one ends both."""
    there, variable, server, client = Section('Verbs programs of this host', 'README.md').commands()
    terminal.start(there)
    terminal.type(variable)
    terminal.background(server, PINGPONG_PORT)
    assert '1000 iters' in terminal.type(client)
    job, = terminal.others
    assert '1000 iters' in job.end()
    terminal.stop()


def test_readme_first_session(terminal):
    """hello is copied from the first kilobyte of the region to the second."""
    section = Section('A first session', 'README.md', twice=True)
    ran = []
    for command in section.here():
        line = command.text
        if line.startswith('build/app/polca/polca '):
            terminal.start(line)
        elif line.startswith('pc cq poll'):  # a reader types more slowly than the wire works
            wait_until(lambda text=line: 'SUCCESS' in terminal.type(text), timeout=30, step=0.05)
        else:
            out = terminal.type(line)
            learn(terminal, line, out)
            for start, what in SAYS.items():
                assert not line.startswith(start) or re.search(what, out), (line, out)
        ran.append(line)
    assert ran == section.commands()
    for start in SAYS:
        assert any(line.startswith(start) for line in ran), start
    terminal.stop()


def type_all(terminal, section, skip=()):
    """The polca-ctl commands of a section; test/check_docs.py lists its other commands."""
    for command in section.here():
        if not command.text.startswith('polca-ctl ') or command.text.startswith(tuple(skip)):
            continue
        out = terminal.type(command.text)
        assert 'help' in command.text or out.strip() or ' trap list' in command.text, command
        terminal.said[command.text] = out
    assert terminal.said, section
    return terminal.said


def test_guide_connect_a_linux_host(terminal):
    """Port 0 is the guide's Polca, port 1 stands for its Linux host."""
    terminal.values.update({'10.0.0.2': '192.0.2.2', 'PEER_QP_NUM': 0x1234, 'PEER_PSN': 77})
    with appliance(terminal, None):
        for command in Section('Connect a Linux host').here():
            if command.text.startswith('polca-ctl '):
                out = terminal.type(command.text)
                if ' qp create' in command.text:
                    terminal.values['QP_NUM'] = column(out, 'qp_num')
        assert 'RTS' in terminal.type('polca-ctl qp show QP_NUM')


def test_guide_subnet_administration(terminal):
    with open(os.path.join(terminal.dir, 'links.json'), 'w') as f:
        json.dump(LINK_RECORDS, f)
    with appliance(terminal, None):
        said = type_all(terminal, Section('Subnet administration'))
        imported = next(out for line, out in said.items() if ' sa import ' in line)
        assert imported.startswith('1808 records'), imported
        terminal.type('polca-ctl sa import fabric.json --replace')
        told = terminal.type(Section('Subnet administration').command('echo /polca/sa'))
        assert 'get_table' in json.loads(told)['/polca/sa']
    assert os.path.getsize(os.path.join(terminal.dir, 'fabric.json')) > 100000


def test_guide_native_infiniband_ports(terminal):
    with appliance(terminal, 'infiniband-static.json'):
        said = type_all(terminal, Section('Native InfiniBand ports'), skip=['polca-ctl sm '])
        assert 'port_state' in said['polca-ctl smp get PortInfo --dlid 2']


def test_guide_subnet_manager_behind_a_port(terminal):
    """The other port's trap arrives at it."""
    section = Section('Native InfiniBand ports')
    with appliance(terminal, 'infiniband-static.json', sm=True):
        terminal.type(section.command('polca-ctl sm set master'))
        terminal.type('polca-ctl trap send --number 144 --port 1')
        taken = terminal.type(section.command('polca-ctl sm take'))
        terminal.values['3'] = re.search(r'^ +smp +(\d+)$', taken, re.M).group(1)
        terminal.type(section.command('polca-ctl sm repress'))

        def state():
            trap, = json.loads(terminal.type('polca-ctl trap list --json'))['traps']
            return trap['state']
        wait_until(lambda: state() == 'REPRESSED')


@pytest.mark.parametrize('config,mine', [(None, '10.0.0.2'), ('infiniband-static.json', 'lid:2')])
def test_guide_ping(terminal, config, mine):
    """Pings to an address run on a RoCE port, those to a LID on a native one."""
    section = Section('Ping over management datagrams')
    other = [c.text for c in section.here() if mine not in c.text]
    terminal.values['10.0.0.2'] = '192.0.2.2'
    with appliance(terminal, config):
        for line, out in type_all(terminal, section, skip=other).items():
            assert re.search(r'\b2 received\b|\b2 answers\b|seq=2', out), (line, out)
    assert all('10.0.0.2' in line or 'lid:2' in line for line in section.commands())


def test_guide_watch_endports(terminal):
    """One of the two endports is down: the hook's command is run with it."""
    with open(os.path.join(terminal.dir, 'nodes'), 'w') as f:
        f.write('192.0.2.2  node2\n# elsewhere\n192.0.2.99  node3\n')
    terminal.values.update({'10.0.0.2': '192.0.2.2', '10.0.0.3': 'fe80::2', '3600': '3'})
    with appliance(terminal, None):
        said = type_all(terminal, Section('Watch endports'), skip=['polca-ctl live watch --file '])
        for line, out in said.items():
            assert re.search(r'^192\.0\.2\.2 +up ', out, re.M), (line, out)
        for command in Section('Watch endports').commands():
            if command.startswith('polca-ctl live watch --file '):
                out = terminal.shell(terminal.fill_in(command)).stdout  # status 1: one is down
                want = r'node 192\.0\.2\.99 down' if 'hook' in command else r'\.99 +down '
                assert re.search(want, out), (command, out)


def test_guide_watch_it(terminal):
    with appliance(terminal, None):
        terminal.type('polca-ctl pd create')
        terminal.type('polca-ctl cq create')
        terminal.values.update(QP_NUM=column(terminal.type('polca-ctl qp create 1 0'), 'qp_num'))
        terminal.values['10000'] = '100'  # no events arrive during this time
        type_all(terminal, Section('Watch it'), ['polca-ctl top'])  # test_top.py has a terminal
        told = terminal.type(Section('Watch it').command('echo /polca/port,0 | dpdk-telemetry.py'))
        assert 'rx_packets' in json.loads(told)['/polca/port']
        # a service's runtime directory is only in systemd's environment, not in the operator's
        del terminal.env['RUNTIME_DIRECTORY']
        terminal.values['/run/polca'] = terminal.dir
        told = terminal.type(Section('Watch it').command('echo /polca/port,0 | RUNTIME_DIRECTORY'))
        assert 'rx_packets' in json.loads(told)['/polca/port']


def test_guide_install(terminal):
    """Install into a directory of the test: DESTDIR is prepended to every path that meson
    installs to."""
    terminal.env['DESTDIR'] = root = os.path.join(terminal.dir, 'root')
    terminal.type(Section('Build and install').command('meson install'))
    for program in ('polca', 'polca-ctl'):
        run = subprocess.run([os.path.join(root, 'usr/local/bin', program), '--version'],
                             capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and run.stdout.startswith(program), run


def test_connect_page(terminal):
    """Port 0 is connect.md's Polca, the service on port 1 stands for its Linux host."""
    terminal.values['10.0.0.2'] = '192.0.2.2'
    with appliance(terminal, None):
        services = json.loads(terminal.type('polca-ctl cm services --json'))['services']
        for s in services:
            if s['kind'] == 'rping':  # the section's own replaces it
                terminal.type('polca-ctl cm unlisten %s' % s['service'])
        type_all(terminal, Section('Start a service', 'docs/connect.md'))
        type_all(terminal, Section('From a Linux host', 'docs/connect.md'))
        type_all(terminal, Section('Measure with perftest', 'docs/connect.md'))
        # without a service the queue pair is the caller's, and the connection stays
        terminal.type('polca-ctl cm listen echo --port 7777')
        terminal.type('polca-ctl pd create')
        terminal.type('polca-ctl cq create')
        type_all(terminal, Section('To a Linux host', 'docs/connect.md'),
                 skip=['polca-ctl cm show', 'polca-ctl cm disconnect'])
        made = json.loads(terminal.type('polca-ctl cm connect 192.0.2.2 7777 --pd 1 --send-cq 0 '
                                        '--json'))
        terminal.values['CONNECTION'] = made['connection']
        for start in ('polca-ctl cm show', 'polca-ctl cm disconnect'):
            terminal.type(Section('To a Linux host', 'docs/connect.md').command(start))


def test_services_page_rcopy(terminal):
    """The region's key is used as the key."""
    with appliance(terminal, None):
        terminal.type('polca-ctl pd create')
        terminal.values['0x1a2b3c4d'] = column(terminal.type(
            'polca-ctl mr register 1 --length 1M --access LOCAL_WRITE'), 'key')
        section = Section('rcopy', 'docs/services.md')
        assert 'rcopy' in terminal.type(section.command('polca-ctl cm listen rcopy'))
