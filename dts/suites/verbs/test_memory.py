# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Memory that a program shares with others already: registered where it is, or refused by name."""

import os
import subprocess
import tempfile

import hugepages
import pytest
import swap

from conn import wait_until
from verbs import Programs


@pytest.mark.parametrize('how', ['keep', 'cut'])
def test_shared_memory(programs, polca, how):
    programs.probe('shared', how).end()
    assert polca.rpc('mr_list')['regions'] == []


@pytest.fixture
def hugetlbfs():
    """A mount of hugetlbfs with enough free pages, where everybody may make files."""
    with hugepages.free(8), tempfile.TemporaryDirectory(prefix='polca-huge-') as where:
        subprocess.run(['mount', '-t', 'hugetlbfs', '-o', 'mode=1777,pagesize=2M', 'none', where], check=True)
        yield where
        subprocess.run(['umount', where], check=True)


@pytest.mark.parametrize('how', ['keep', 'cut'])
@pytest.mark.parametrize('kind', ['memfd', 'mount'])
def test_shared_huge_pages(programs, polca, hugetlbfs, kind, how):
    """They stay where they are, and are free again when the program has ended."""
    free = hugepages.count()['Free']
    files = ['huge'] if kind == 'memfd' else [os.path.join(hugetlbfs, name) for name in ('from', 'to')]
    programs.probe('shared', how, *files).end()
    assert polca.rpc('mr_list')['regions'] == []
    for path in files if kind == 'mount' else []:
        os.unlink(path)
    wait_until(lambda: hugepages.count()['Free'] == free, timeout=10)


def test_a_file_on_a_disk_is_refused_by_name(programs):
    text = programs.probe('refused', os.path.join(programs.dir, 'on-a-disk')).end()
    assert 'cannot be registered: file: not in memory; shared memory must be a memfd, or on tmpfs' in text


def test_a_device_is_closed_with_regions_left(programs, polca, left):
    programs.probe('left').end()


def test_memory_that_is_swapped_out(programs, polca, left):
    """It is the program's still: a part of it is registered again, and no byte changes."""
    with swap.swapping() as group:
        inside = Programs(programs.socket, programs.dir, prefix=group.prefix)
        try:
            probe = inside.probe('swapped')
            probe.wait_line('registered')
            looks = 0

            def all_out():
                nonlocal looks
                group.swap_out()
                probe.tell('look')
                looks += 1
                wait_until(lambda: probe.output().count('in memory\n') + probe.output().count('swapped out\n') == looks,
                           timeout=20)
                return 'swapped out' in probe.output()
            wait_until(all_out, timeout=30)
            probe.end()
        finally:
            inside.close()
