# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Programs that use librdmacm: no table of the kernel tells whether their servers listen."""

import re
import time

import time_limit

# what the programs say when nobody listens yet: REJ 8, or its errno
REFUSED = re.compile(r'REJECTED, error 8|error 8\b|refused', re.I)


def pair_until_listening(server_programs, server, client, client_programs=None, timeout=90):
    """Run both command lines; the client again as long as the server does not listen. Returns both outputs."""
    end = time_limit.end(timeout)
    serving = server_programs.spawn(*server)
    try:
        while True:
            job = (client_programs or server_programs).spawn(*client)
            status = job.proc.wait(time_limit.limit(timeout))
            if status == 0 or not REFUSED.search(job.output()) or time.monotonic() > end:
                return serving.end(timeout), job.end(1)
            assert serving.proc.poll() is None, 'ended with %s:\n%s' % (serving.proc.returncode, serving.output())
            time.sleep(0.1)
    finally:
        serving.kill()
