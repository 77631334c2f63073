# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The harness: a failure prints at most one page."""

import os
import subprocess

import pytest

import failure_page

BODIES = {
    'message': "assert not big, '\\n'.join(big)",
    'comparison': "assert big == []",
    'line': "assert not big, 'x' * 24000000",
    'captured': "print('\\n'.join(big))\n    assert not big[:1]",
}


@pytest.mark.parametrize('body', BODIES.values(), ids=BODIES)
def test_a_failure_is_one_page(tmp_path, body):
    """As in CI, where pytest does not truncate."""
    (tmp_path / 'test_large.py').write_text(
        "def test_large():\n    big = ['line %%d' %% i for i in range(20000)]\n    %s\n" % body)
    junit = tmp_path / 'junit.xml'
    r = subprocess.run(
        ['/usr/bin/python3', '-B', '-m', 'pytest', '-p', 'no:cacheprovider', '-p', 'failure_page',
         '-v',
         '--tb=short', '--junit-xml', str(junit), str(tmp_path)], cwd=tmp_path,
        env=dict(os.environ, CI='true', PYTHONPATH=os.path.dirname(failure_page.__file__)),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert r.returncode == 1 and '1 failed' in r.stdout, r.stdout
    assert 'more)' in r.stdout
    lines = r.stdout.split('\n')
    assert len(lines) < 2 * failure_page.LINES + 30 and max(map(len, lines)) < failure_page.COLUMNS + 100
    assert junit.stat().st_size < 3 * failure_page.LINES * failure_page.COLUMNS
