# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The README's commands for verbs programs, on the built-in configuration itself."""

import os
import re
import subprocess

from conn import wait_until
from polca import PROGRAM, give
from verbs import Programs
import guide
import net

TEST_SECONDS = 120
POLCA_RUN = 'build/app/polca-run/polca-run '


def commands_of_the_readme():
    """What polca-run runs there: [words of a command]; all but the last are in the background."""
    lines = [line for _, block in guide.blocks('README.md') for line in block if line.startswith(POLCA_RUN)]
    assert [line.endswith(' &') for line in lines] == [True, False], lines
    return [line.removesuffix(' &').split()[1:] for line in lines]


def test_readme(sockets, kept):
    give(sockets)
    log = os.path.join(kept, 'built-in.log')
    with open(log, 'w') as f:
        polca = subprocess.Popen([PROGRAM, '-s', os.path.join(sockets, 'readme.sock'), '--eal',
                                  '--file-prefix=readme-%d' % os.getpid()], stdout=f, stderr=f,
                                 env=dict(os.environ, RUNTIME_DIRECTORY=sockets), preexec_fn=net.die_with_parent)
    programs = Programs(os.path.join(sockets, 'verbs.sock'), kept)
    try:
        wait_until(lambda: 'ready' in open(log).read(), timeout=60)
        there, here = commands_of_the_readme()
        server = programs.spawn(*there)
        server.wait_listening(18515)
        text = programs.run(*here)
        assert re.search(r'1000 iters in', text) and re.search(r'1000 iters in', server.end())
    finally:
        programs.close()
        polca.terminate()
        assert polca.wait(60) == 0
    assert not os.path.exists(programs.socket) and not os.path.exists(programs.socket + '.sys')
