# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The README's commands for verbs programs, on the built-in configuration itself."""

import os
import re

from polca import BUILD, give
from verbs import Job
import guide

TEST_SECONDS = 120
POLCA = 'build/app/polca/polca -s /tmp/polca.sock'
EXPORT = 'export POLCA_VERBS_SOCKET=/tmp/verbs.sock'


def commands_of_the_readme():
    """[lines of a terminal] of the one that runs polca, and of the other, which follows it there."""
    blocks = [block for _, block in guide.blocks('README.md')]
    at = [block[0] for block in blocks].index(EXPORT)
    return blocks[at - 1], blocks[at]


def test_readme(sockets, kept):
    """As they stand there, but in another directory and with this build."""
    give(sockets)
    environment = {k: v for k, v in os.environ.items() if k != 'RUNTIME_DIRECTORY'}
    jobs = []

    def begin(name, *lines):
        text = '\n'.join([*lines[:-1], 'exec ' + lines[-1]])
        text = text.replace('/tmp/', sockets + '/').replace('build/', BUILD + '/')
        jobs.append(Job(os.path.join(kept, name), ['bash', '-c', text], environment))
        return jobs[-1]

    first, (export, there, here) = commands_of_the_readme()
    assert first == [POLCA] and there.endswith(' &')
    # --file-prefix: beside another DPDK program of the same user
    polca = begin('polca.log', POLCA + ' --eal --file-prefix=readme-%d' % os.getpid())
    try:
        polca.wait_line('polca: ready: 2 ports, 2 workers, control socket %s/polca.sock' % sockets, timeout=60)
        server = begin('server.log', export, there.removesuffix(' &'))
        server.wait_listening(18515)
        text = begin('client.log', export, here).end()
        assert re.search(r'1000 iters in', text) and re.search(r'1000 iters in', server.end())
        polca.proc.terminate()
        polca.end()
    finally:
        for job in jobs:
            job.kill()
    assert not [name for name in os.listdir(sockets) if name.startswith(('polca.sock', 'verbs.sock'))]
