#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Start polca with its built-in configuration, and run Debian's ibv_rc_pingpong between its two ports.

Called by fresh.sh with the build directory: fresh_verbs.py DIR. libibverbs of this Debian loads the provider, and both
programs compare each byte. They run twice: once they post by ibv_post_send(), once by ibv_wr_*, for which libibverbs
looks for the provider's mark behind as many operations as it knows itself.
"""
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from quickstart import Failed, start, stop

ROUNDS = 500
WAYS_TO_POST = ([], ["-N"])
SECONDS = 120


def free_tcp_port():
    """The programs exchange their queue pairs over TCP."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pingpong(prefix, way):
    """Server on port 0, client on port 1; the client tries until the server listens."""
    options = ["-g", "0", "-c", "-n", str(ROUNDS), "-p", str(free_tcp_port()), *way]
    server = subprocess.Popen([*prefix, "ibv_rc_pingpong", "-d", "polca0", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.monotonic() + SECONDS
    try:
        while True:
            client = subprocess.run([*prefix, "ibv_rc_pingpong", "-d", "polca1", *options, "localhost"],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS,
                                    check=False)
            if client.returncode == 0:
                break
            if server.poll() is not None or time.monotonic() > end:
                server.kill()
                raise Failed(f"ibv_rc_pingpong {way}: {client.stdout}\nserver: {server.communicate()[0]}")
            time.sleep(0.1)
        said = server.communicate(timeout=SECONDS)[0]
    finally:
        server.kill()
        server.wait()
    for text in (said, client.stdout):
        if f"{ROUNDS} iters in" not in text or "invalid data" in text:
            raise Failed(f"ibv_rc_pingpong {way}: {text}")
    return client.stdout


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = pathlib.Path(sys.argv[1]).resolve() / "app"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="polca-fresh-"))
    polca = None
    try:
        polca, _ = start(programs / "polca" / "polca", folder)
        for way in WAYS_TO_POST:
            print(pingpong([programs / "polca-run" / "polca-run", "-s", folder / "verbs.sock"], way), end="")
        stop(polca)
    except Failed as why:
        print(f"FAILED: {why}", file=sys.stderr)
        sys.stderr.write((folder / "polca.log").read_text(errors="replace")[-4000:])
        return 1
    finally:
        if polca is not None and polca.poll() is None:
            polca.kill()
            polca.wait()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
