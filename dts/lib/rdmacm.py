# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs that use librdmacm: no table of the kernel tells whether their servers listen."""

import re
import time

import time_limit

# what the programs say when nobody listens yet: REJ 8, or its errno
REFUSED = re.compile(r'REJECTED, error 8|error 8\b|refused|Unexpected CM event bl 8', re.I)
PRELOAD = '/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so'


def until_listening(programs, client, server, timeout=90, preload=None):
    """Run the client, again as long as the server, a job, does not listen. Returns its output."""
    end = time_limit.end(timeout)
    while True:
        job = programs.spawn(*client, preload=preload)
        try:
            status = job.proc.wait(time_limit.limit(timeout))
        finally:
            job.kill()
        if status == 0 or not REFUSED.search(job.output()) or time.monotonic() > end:
            return job.end(1)
        assert server.proc.poll() is None, 'ended with %s:\n%s' % (server.proc.returncode, server.output())
        time.sleep(0.1)


def pair_until_listening(programs, server, client, client_programs=None, timeout=90, preload=None):
    """Run both command lines; the client again as long as the server does not listen. Returns both outputs."""
    serving = programs.spawn(*server, preload=preload)
    try:
        text = until_listening(client_programs or programs, client, serving, timeout, preload)
        return serving.end(timeout), text
    finally:
        serving.kill()
