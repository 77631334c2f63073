# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""qperf and fio, unmodified, between two programs on verbs devices: those of their tests that check the data.

Both ask the kernel's TCP, or librdmacm, for the same address, so they run in a namespace that has the ports'
addresses."""

import contextlib
import re
import time

import time_limit
from net import Namespace
from rdmacm import REFUSED
from verbs import Programs

# the ver_ tests compare what each Atomic returns with what it must return
QPERF = ('rc_lat', 'rc_bw', 'rc_bi_bw', 'rc_rdma_read_lat', 'rc_rdma_read_bw', 'rc_rdma_write_lat',
         'rc_rdma_write_bw', 'rc_rdma_write_poll_lat', 'rc_fetch_add_mr', 'rc_compare_swap_mr',
         'ver_rc_fetch_add', 'ver_rc_compare_swap')
FIO = ('fio', '--ioengine=rdma', '--thread', '--port=18777', '--bs=16k', '--size=4m', '--filesize=4m',
       '--verify_state_save=0')
# fio asks for no repetition after RNR NAKs, so its server posts a receive request for every block.
FIO_SERVER = (*FIO, '--name=server', '--rw=read', '--iodepth=256')
FIO_CLIENT = (*FIO, '--name=client', '--rw=write', '--iodepth=4')
TOO_EARLY = 'RNR retry counter exceeded'


@contextlib.contextmanager
def with_addresses(programs, addresses):
    """The same programs in a namespace whose loopback interface has these addresses."""
    with Namespace() as ns:
        for address in addresses:
            ns.ip('addr', 'add', address + '/32', 'dev', 'lo')
        inside = [Programs(p.socket, p.dir, prefix=ns.prefix()) for p in programs]
        try:
            yield inside
        finally:
            for p in inside:
                p.close()


def run_one_qperf(client, *argv, tries=5):
    """qperf's server tells its port before it listens there: a client that is faster is rejected."""
    while True:
        try:
            return client.run('qperf', *argv)
        except AssertionError as e:
            tries -= 1
            if tries == 0 or 'Event rejected' not in str(e):
                raise


def run_qperf(server, client, address, tests=QPERF, port=19765):
    """Tests of queue pairs that librdmacm connects, each with a client of its own, against one server.

    A test lasts a second: most of them know no other end. port: of its own exchange over TCP."""
    serving = server.spawn('qperf', '-lp', port)
    try:
        serving.wait_listening(port)
        for test in tests:
            text = run_one_qperf(client, '-lp', port, '-cm1', '-ws', 60, '-to', 60, '-t', 1, address, test)
            assert re.search('^%s:$' % test, text, re.M) and 'mismatch' not in text, text
            assert serving.proc.poll() is None, serving.output()
        client.run('qperf', '-lp', port, address, 'quit')
        serving.end()
    finally:
        serving.kill()


def fio_pair(server, client, address, verb, server_check, client_check):
    """Run both; returns the server's job and the client's, which have ended.

    The client waits half a second for the server's receive requests. If these come later, as on a loaded machine,
    its first Send fails and it never ends: then both are run again."""
    end = time_limit.end(90)
    while True:
        serving = server.spawn(*FIO_SERVER, *server_check)
        job = client.spawn(*FIO_CLIENT, *client_check, '--verb=' + verb, '--hostname=' + address)
        while job.proc.poll() is None and TOO_EARLY not in job.output() and time.monotonic() < end:
            time.sleep(0.05)
        again = TOO_EARLY in job.output() or REFUSED.search(job.output())
        if job.proc.poll() is not None and not again:
            serving.proc.wait(time_limit.limit(60))
            return serving, job
        serving.kill()
        job.kill()
        assert again and time.monotonic() < end, job.output() + serving.output()


def run_fio(server, client, address, verb):
    """verb send: the server checks the checksum of each block. Reads and Writes: fio checks nothing."""
    check = ('--verify=crc32c', '--do_verify=0') if verb == 'send' else ()
    serving, job = fio_pair(server, client, address, verb, check[:1], check)
    for text, name in (job.end(), 'WRITE'), (serving.end(), 'READ'):
        assert 'verify:' not in text, text
        assert verb != 'send' or re.search(name + r': .* io=4096KiB', text), text


def refuse_fio(server, client, address):
    """Blocks without checksums, which the server must report: it does look at what it gets."""
    serving, _ = fio_pair(server, client, address, 'send', ('--verify=crc32c',), ())
    assert serving.proc.returncode != 0 and 'verify: bad magic header' in serving.output(), serving.output()
