# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Completion of the three programs in bash, zsh and fish, as their packages install it."""

import os
import shutil
import subprocess

import pytest

from polca import BUILD, CTL_PROGRAM, PROGRAM
from terminal import Terminal, Zsh

FILES = os.path.join(os.path.dirname(os.path.realpath(__file__)), '../../../config/completion')
BENCH = os.path.join(BUILD, 'app/polca-bench/polca-bench')
PATH = ':'.join([os.path.dirname(p) for p in (PROGRAM, CTL_PROGRAM, BENCH)] + [os.environ['PATH']])

# what is typed, and what TAB makes of it: the only candidate, or the files of the directory
COMPLETED = [
    ('polca-ctl neigh', 'polca-ctl neighbour '),
    ('polca-ctl qp connect --dest-qp', 'polca-ctl qp connect --dest-qp-num '),
    ('polca-ctl post send 5 --opcode RDMA_R', 'polca-ctl post send 5 --opcode RDMA_READ '),
    ('polca --print-c', 'polca --print-config '),
    ('polca -c /etc/passw', None),
    ('polca-bench skel', 'polca-bench skeleton '),
    ('polca-bench send ra', 'polca-bench send rate '),
    ('polca-bench send --iter', 'polca-bench send --iters '),
    ('polca-bench sa --shor', 'polca-bench sa --short '),
]


class Fish:
    """fish has a command that lists what TAB would offer."""

    def __init__(self, env):
        self.env = dict(os.environ, **env)

    def offered(self, line):
        script = 'for f in %s/*.fish; source $f; end; complete -C "$argv"' % FILES
        return subprocess.run(['fish', '--no-config', '-c', script, line], env=self.env, stdout=subprocess.PIPE,
                              text=True, timeout=30).stdout.split()

    def complete(self, line):
        offered = self.offered(line)
        return line.rsplit(' ', 1)[0] + ' ' + offered[0] + ' ' if len(offered) == 1 else line

    def candidates(self, line):
        return self.offered(line)

    def close(self):
        pass


@pytest.fixture(scope='module', params=['bash', 'zsh', 'fish'])
def shell(request, tmp_path_factory):
    where = tmp_path_factory.mktemp('completion')
    env = {'PATH': PATH, 'POLCA_SOCKET': str(where / 'nobody')}
    if request.param == 'bash':
        s = Terminal(env)
        s.run('. %s/polca-ctl.bash; . %s/polca.bash' % (FILES, FILES))
    elif request.param == 'zsh':
        for name in ('polca', 'polca-ctl'):
            shutil.copy('%s/%s.zsh' % (FILES, name), where / ('_' + name))
        s = Zsh({'FPATH': '%s:%s' % (where, subprocess.run(['zsh', '-fc', 'echo $FPATH'], stdout=subprocess.PIPE,
                                                           text=True).stdout.strip()), **env})
    else:
        s = Fish(env)
    yield s
    s.close()


@pytest.mark.parametrize('typed,completed', COMPLETED)
def test_what_tab_completes(shell, typed, completed):
    if completed is None:
        assert any(w.endswith(('passwd', 'passwd-', 'passwd ')) for w in shell.candidates(typed))
    else:
        assert shell.complete(typed) == completed


def test_what_tab_lists(shell):
    assert {'create', 'connect', 'list'} <= set(shell.candidates('polca-ctl qp '))
    assert {'send', 'write', 'sa'} <= set(shell.candidates('polca-bench '))
    assert {'--config', '--socket', '--version'} <= set(shell.candidates('polca --'))
