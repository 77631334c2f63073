# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""polca-ctl top on a terminal of 80 columns and 24 rows, as tmux shows it."""

import os
import re
import shlex
import signal
import subprocess

import pytest

from conn import wait_until
from hca import Hca
from polca import CTL_PROGRAM, Polca
from polcapair import A, B, PolcaPair, back_to_back

KEYS = 'q quit'


class Tmux:
    def __init__(self, directory, socket):
        self.path = str(directory / 'tmux')
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', '80', '-y', '24',
                  'exec env PS1=ready: sh')
        self.wait('ready:')
        self.top = '%s -s %s top --delay 0.2' % (CTL_PROGRAM, shlex.quote(socket))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.tmux('kill-server')

    def tmux(self, *args):
        return subprocess.run(['tmux', '-S', self.path, *args], check=True, timeout=30,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout

    def lines(self):
        return self.tmux('capture-pane', '-p').split('\n')[:-1]

    def keys(self, *keys):
        self.tmux('send-keys', *keys)

    def wait(self, pattern):
        """Wait until a line matches; returns the screen's lines."""
        try:
            wait_until(lambda: any(re.search(pattern, line) for line in self.lines()))
        except Exception:
            print('\n'.join(self.lines()))
            raise
        return self.lines()

    def start(self):
        self.keys('stty -g; ' + self.top, 'Enter')
        return self.wait(KEYS)

    def pid(self):
        shell = self.tmux('display-message', '-p', '#{pane_pid}').strip()
        return int(subprocess.run(['pgrep', '-P', shell], check=True, timeout=10,
                                  stdout=subprocess.PIPE).stdout)

    def restored(self):
        """The shell's screen, cursor and terminal modes are as before."""
        self.wait('ready:')
        assert self.tmux('display-message', '-p', '#{alternate_on} #{cursor_flag}').strip() == '0 1'
        self.keys('clear; stty -a', 'Enter')
        modes = ' '.join(self.wait('(^|[ ])echo([ ]|$)'))
        assert re.search(r'(?<!-)\bicanon\b', modes) and 'susp = ^Z' in modes


@pytest.fixture
def tmux(polca, tmp_path):
    with Tmux(tmp_path, polca.socket) as t:
        yield t


def column(lines, title, name):
    """The first row's value in the column of a heading."""
    head = next(i for i, line in enumerate(lines) if line.startswith(title))
    return lines[head + 1][:lines[head].index(name) + len(name)].split()[-1]


def test_all_is_seen_at_80x24(polca, tmux, traffic):
    lines = tmux.start()
    assert len(lines) == 24 and lines[0].startswith('polca-ctl top') and KEYS in lines[23]
    for title in ('PORT', 'WORKER', 'DROPS', 'SA', 'QP'):
        assert sum(line.startswith(title) for line in lines) == 1, title
    assert any('0x%06x RTS' % traffic.qa.qpn in line for line in lines)

    def shown():
        traffic.move('write', 3000, seed=3)
        lines = tmux.lines()
        return (column(lines, 'PORT', 'RX pkt/s') != '0' and column(lines, 'QP', 'TX/s') != '0' and
                column(lines, 'WORKER', 'POLLS/s') != '0')
    wait_until(shown)
    # a request that no queue pair takes, and a question to the SA
    lost = PolcaPair(Hca(polca, 0), A, Hca(polca, 1), B)
    lost.qb.destroy()
    lost.qa.post_send('write', wr_id=1, rkey=1, remote_addr=0)
    polca.ctl('sa', 'table', 'port')
    tmux.wait(r'^DROPS +qpn_unknown \S+/s \([1-9]')
    tmux.wait(r'^SA .*  get_table \S+/s \([1-9]')
    tmux.keys('q')
    tmux.restored()


def test_keys_sort_and_filter(tmux, traffic):
    tmux.start()
    for by in ('rx', 'retransmitted', 'posted', 'qp', 'tx'):
        tmux.keys('s')
        tmux.wait('queue pairs .* by %s' % by)
    tmux.keys('/')
    tmux.wait('show queue pairs with: _')
    tmux.keys('%06xz' % traffic.qb.qpn, 'BSpace')
    tmux.wait('show queue pairs with: %06x_' % traffic.qb.qpn)
    tmux.keys('Enter')
    lines = tmux.wait(KEYS)
    assert [line[2:8] for line in lines if line.startswith('0x')] == ['%06x' % traffic.qb.qpn]
    tmux.keys('/', 'q', 'Enter')  # a letter of the filter
    wait_until(lambda: not any(line.startswith('0x') for line in tmux.lines()))
    tmux.keys('Escape')
    tmux.wait('^0x%06x' % traffic.qa.qpn)
    tmux.tmux('resize-window', '-x', '60', '-y', '15')
    wait_until(lambda: len(tmux.lines()) == 15 and KEYS in tmux.lines()[14])
    tmux.keys('q')
    tmux.restored()


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV])
def test_terminal_is_given_back(tmux, sig):
    tmux.start()
    os.kill(tmux.pid(), sig)
    tmux.restored()


def test_without_a_terminal(polca):
    said = polca.ctl('top', check=False)
    assert said.returncode == 2
    assert 'top: this is no terminal: use stats get --rate 1' in said.stderr


def test_server_starts_again(sockets, tmp_path):
    with Polca(sockets, back_to_back(), name='again') as p, Tmux(tmp_path, p.socket) as t:
        t.start()
        p.stop()
        t.wait('polca does not run at %s' % p.socket[:20])
        p.start()
        t.wait('^PORT')
        t.keys('q')
        t.restored()
