# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""rdma-core's own tests, of Debian's package python3-pyverbs; docs/verbs.md says why some are skipped."""

import glob
import gzip
import os
import re
import shutil

import pytest

from guide import ROOT

TEST_SECONDS = 120
PACKAGED = '/usr/share/doc/rdma-core/tests'
CHAPTER = "## rdma-core's own tests"


@pytest.fixture
def unpacked(tmp_path):
    tests = tmp_path / 'tests'
    tests.mkdir()
    for path in glob.glob(PACKAGED + '/*.py') + glob.glob(PACKAGED + '/*.py.gz'):
        name = os.path.basename(path)
        with gzip.open(path) if name.endswith('.gz') else open(path, 'rb') as f, \
                open(tests / name.removesuffix('.gz'), 'wb') as to:
            shutil.copyfileobj(f, to)
    return tmp_path


def documented():
    """Texts of skips that docs/verbs.md explains."""
    with open(os.path.join(ROOT, 'docs/verbs.md')) as f:
        chapter = f.read().split(CHAPTER)[1].split('\n## ')[0]
    return re.findall(r'^\| `(.+?)` \|', chapter, re.M)


def test_claimed_features(programs, unpacked, left):
    names = ('test_pd.', 'test_cq.', 'test_mr.M', 'test_qp.', 'test_atomic.')
    text = programs.spawn('/usr/bin/python3', 'tests/run_tests.py', '-v', '--dev', 'polca0',
                          *(a for name in names for a in ('-k', name)), cwd=unpacked).end(timeout=110)
    ran = int(re.search(r'^Ran (\d+) tests', text, re.M)[1])
    skips = re.findall(r'skipped ["\'](.*)', text)
    print('%d tests, %d of them skipped' % (ran, len(skips)))
    assert ran - len(skips) >= 20
    texts = documented()
    assert [s for s in skips if not any(t in s for t in texts)] == []
    assert [t for t in texts if not any(t in s for s in skips)] == []
