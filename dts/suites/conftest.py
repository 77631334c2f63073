# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Used by every suite: a directory of its own, a time limit for each test, a Hca per test."""

import os
import shutil
import signal
import sys
import tempfile
import time

import pytest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'lib'))
sys.dont_write_bytecode = True

import net  # noqa: E402
import time_limit  # noqa: E402
from hca import Hca  # noqa: E402
from lab import Lab  # noqa: E402
from failure_page import pytest_runtest_makereport  # noqa: E402, F401: a failure is one page
from polca import BUILD  # noqa: E402

TEST_SECONDS = 120


def pytest_sessionstart(session):
    net.sweep()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Limit the time of a test with its set-up and tear-down (a module may need more). On a
    loaded machine the limit is longer: see time_limit."""
    seconds = getattr(item.module, 'TEST_SECONDS', TEST_SECONDS)
    begin = time.monotonic()

    def over(signum, frame):
        ran, allowed = time.monotonic() - begin, time_limit.limit(seconds)
        if ran < allowed:
            signal.alarm(int(allowed - ran) + 1)
            return
        raise TimeoutError('%s ran for %d s; allowed are %d s on an idle machine' % (
            item.nodeid, ran, seconds))
    old = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture(scope='module')
def kept(request):
    """The directory of this module's logs and captures: BUILD/dts/SUITE/MODULE."""
    path = request.path
    d = os.path.join(BUILD, 'dts', path.parent.name, path.stem)
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    return d


@pytest.fixture(scope='module')
def sockets():
    """A directory with a short name, for Unix sockets."""
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as d:
        yield d


@pytest.fixture(scope='session')
def lab():
    """The soft-RoCE guest and an appliance on its wire, booted once."""
    with tempfile.TemporaryDirectory(prefix='polca-dts-') as d:
        made = Lab(d)
        try:
            yield made.start()
            made.polca.stop()
        finally:
            made.close()


@pytest.fixture
def guest(lab):
    return lab.guest


@pytest.fixture
def hca(polca):
    """Objects of this test on the module's appliance, which is restarted if it died."""
    if not polca.alive():
        polca.kill()
        polca.start()
    h = Hca(polca)
    yield h
    if polca.alive():
        h.close()
    assert polca.alive(), 'polca died with %s:\n%s' % (polca.proc.returncode, polca.tail())
