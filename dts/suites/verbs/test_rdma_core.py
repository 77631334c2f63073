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
from net import Namespace
from verbs import Programs

TEST_SECONDS = 120
PACKAGED = '/usr/share/doc/rdma-core/tests'
CHAPTER = "## rdma-core's own tests"
# of devices of one vendor
VENDORS = ('test_mlx5', 'test_efa', 'test_cuda')
RUN = ('/usr/bin/python3', 'tests/run_tests.py', '-v', '--dev', 'polca0')
# The tests of librdmacm look in /sys for the device's network interface, and use its first address.
WITH_INTERFACE = 'mount -t tmpfs sysfs /sys && mkdir -p /sys/class/infiniband/polca0/device/net/va0 && exec "$@"'
# The tests of UD, which librdmacm cannot have here, would fail: they know no skip.
RDMACM = ('*.test_rdmacm.*_sync_*', '*.test_rdmacm.*_async_[!u]*')
# skips that depend on the host: the test is skipped for another reason elsewhere
HOSTS = ('There are no huge pages',)


@pytest.fixture
def unpacked(tmp_path):
    tests = tmp_path / 'tests'
    tests.mkdir()
    for path in glob.glob(PACKAGED + '/*.py') + glob.glob(PACKAGED + '/*.py.gz'):
        name = os.path.basename(path)
        if name.startswith(VENDORS):
            continue
        with gzip.open(path) if name.endswith('.gz') else open(path, 'rb') as f, \
                open(tests / name.removesuffix('.gz'), 'wb') as to:
            shutil.copyfileobj(f, to)
    return tmp_path


def documented():
    """Texts of skips that docs/verbs.md explains."""
    with open(os.path.join(ROOT, 'docs/verbs.md')) as f:
        chapter = f.read().split(CHAPTER)[1].split('\n## ')[0]
    return re.findall(r'^\| `(.+?)` \|', chapter, re.M)


def run(programs, directory, patterns):
    """@return how many tests passed, and the texts of skips"""
    text = programs.spawn(*RUN, *(a for p in patterns for a in ('-k', p)), cwd=directory).end(timeout=110)
    ran = int(re.search(r'^Ran (\d+) tests', text, re.M)[1])
    skips = re.findall(r'skipped ["\'](.*)', text)
    print('%d tests, %d of them skipped' % (ran, len(skips)))
    return ran - len(skips), skips


@pytest.fixture
def with_interface(programs):
    """The same programs in a namespace that shows them an interface of the device."""
    with Namespace() as ns:
        ns.veth('va0', 'va1')
        ns.ip('addr', 'add', '192.0.2.1/24', 'dev', 'va0')
        p = Programs(programs.socket, programs.dir, prefix=[*ns.prefix(), 'sh', '-c', WITH_INTERFACE, 'sh'])
        p.jobs = programs.jobs  # the numbers of files with output go on
        yield p
        p.close()


def test_all_modules(programs, with_interface, unpacked, left):
    names = [os.path.basename(path)[:-3] + '.' for path in glob.glob(str(unpacked / 'tests/test_*.py'))]
    names.remove('test_rdmacm.')
    assert len(names) >= 18
    passed, skips = run(programs, unpacked, names)
    assert passed >= 55
    connected, more = run(with_interface, unpacked, RDMACM)
    assert connected == 6
    texts = documented()
    assert [s for s in skips + more if not any(t in s for t in texts)] == []
    assert [t for t in texts if not t.startswith(HOSTS) and not any(t in s for s in skips + more)] == []
