#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Start polca with its built-in configuration, run every operation in both directions, check
every byte.

Called by quickstart.sh with the build directory: quickstart.py DIR. It ends with the speed of
the data path as measured by polca-bench. It is also a small example of a control-socket client:
one JSON-RPC request per line, one reply per line.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

MASK = (1 << 64) - 1
SIZES = {64: 512, 65536: 64}  # bytes in a message: number of messages
ATOMICS = {8: 512}
INVALIDATES = {64: 64, 65536: 64}
DEPTH = 512
REGION = 64 * 65536
PORT_RPING, PING, PINGS = 7174, 1000, 100
BENCHMARKS = (("Send", "send", "64"), ("RDMA Write", "write", "65536"))
ACCESS = ["LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC", "MW_BIND"]


class Failed(Exception):
    """An operation did not have the right result; the text says which."""


class Control:
    """A connection to the control socket."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(path)
        self.file = self.sock.makefile("rw")
        self.number = 0

    def __call__(self, method, **params):
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.file.write(json.dumps(request) + "\n")
        self.file.flush()
        line = self.file.readline()
        if not line:
            raise Failed(f"{method}: polca closed the connection")
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(f"{method}: {reply['error']['message']}")
        return reply["result"]


def pattern(seed, length):
    """The bytes that mr_fill writes, computed independently: SplitMix64 from seed,
    little-endian."""
    out = bytearray()
    while len(out) < length:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        out += (z ^ z >> 31).to_bytes(8, "little")
    return bytes(out[:length])


class End:
    """One end of the connection: a QP with its completion queues and memory."""

    def __init__(self, call, port):
        self.call, self.port = call, port
        attrs = call("port_list")["ports"][port]
        self.name = attrs["name"]
        self.gid = attrs["gids"][0]["gid"]
        self.pd = call("pd_create")["pd"]
        self.mr = call("mr_register", pd=self.pd, length=REGION, access=ACCESS)
        self.send_cq = call("cq_create", depth=DEPTH)["cq"]
        self.recv_cq = call("cq_create", depth=DEPTH)["cq"]
        qp = call("qp_create", pd=self.pd, send_cq=self.send_cq, recv_cq=self.recv_cq,
                  max_send_wr=DEPTH, max_recv_wr=DEPTH)
        self.qpn, self.psn = qp["qp_num"], qp["sq_psn"]

    def connect(self, peer):
        self.call("qp_connect", qp_num=self.qpn, port=self.port, dgid=peer.gid,
                  dest_qp_num=peer.qpn, rq_psn=peer.psn, timeout=18,
                  qp_access_flags=["REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"])

    def sge(self, offset, length):
        return [{"key": self.mr["key"], "offset": offset, "length": length}]

    def post(self, requests):
        self.call("post_send", qp_num=self.qpn, wr=requests)

    def wait(self, cq, count, what):
        done = []
        while len(done) < count:
            got = self.call("cq_poll", cq=cq, max=256, min=min(256, count - len(done)),
                            timeout_ms=10000)["wc"]
            if not got:
                raise Failed(f"{what}: {len(done)} of {count} completions came within 10 s")
            for wc in got:
                if wc["status"] != "SUCCESS":
                    raise Failed(f"{what}: a work request ended with {wc['status']}")
            done += got
        return done

    def retries(self):
        c = self.call("qp_show", qp_num=self.qpn)["counters"]
        return c["retransmitted_pkts"]

    def expect(self, seed, length, what):
        got = self.call("mr_checksum", key=self.mr["key"], length=length)["crc32"]
        if got != zlib.crc32(pattern(seed, length)):
            raise Failed(f"{what}: the bytes that arrived are not the bytes that were sent")

    def fill(self, seed, length=REGION):
        self.call("mr_fill", key=self.mr["key"], seed=seed, length=length)


def two_sided(a, b, opcode, size, count, seed):
    """Sends, and Writes with Immediate, which also take a receive."""
    b.call("post_recv", qp_num=b.qpn, wr=[
        {"wr_id": i, "sg_list": b.sge(i * size, size)} for i in range(count)])
    yield
    a.post([{"wr_id": i, "opcode": opcode, "sg_list": a.sge(i * size, size), "imm_data": 1000 + i,
             "remote_addr": b.mr["va"] + i * size, "rkey": b.mr["rkey"]} for i in range(count)])
    a.wait(a.send_cq, count, opcode)
    for i, wc in enumerate(b.wait(b.recv_cq, count, opcode)):
        if wc["wr_id"] != i or wc["byte_len"] != size:
            raise Failed(f"{opcode}: receive {i} says {wc}")
        if opcode.endswith("_IMM") and wc["imm_data"] != 1000 + i:
            raise Failed(f"{opcode}: receive {i} has immediate {wc['imm_data']}")
    yield
    b.expect(seed, count * size, opcode)


def send_with_invalidate(a, b, opcode, size, count, seed):
    """Each Send invalidates the key of a window that the receiver has bound for it."""
    keys = [b.call("mw_create", pd=b.pd, type="TYPE_2")["key"] for _ in range(count)]
    b.post([{"wr_id": k, "opcode": "BIND_MW", "bind_mw": {
        "mw_key": k, "new_key": k ^ 1, "mr_key": b.mr["key"], "addr": b.mr["va"], "length": 64,
        "access": ["REMOTE_WRITE"]}} for k in keys])
    b.wait(b.send_cq, count, "BIND_MW")
    b.call("post_recv", qp_num=b.qpn, wr=[
        {"wr_id": i, "sg_list": b.sge(i * size, size)} for i in range(count)])
    yield
    a.post([{"opcode": opcode, "sg_list": a.sge(i * size, size), "invalidate_rkey": keys[i] ^ 1}
            for i in range(count)])
    a.wait(a.send_cq, count, opcode)
    for i, wc in enumerate(b.wait(b.recv_cq, count, opcode)):
        if wc.get("invalidated_rkey") != keys[i] ^ 1:
            raise Failed(f"{opcode}: receive {i} says {wc}")
    yield
    b.expect(seed, count * size, opcode)
    windows = b.call("mw_list", max=256)["windows"]
    if any(w["bound"] for w in windows):
        raise Failed(f"{opcode}: a window is still bound")
    for w in windows:
        b.call("mw_destroy", key=w["key"])


def one_sided(a, b, opcode, size, count, seed):
    yield
    a.post([{"opcode": opcode, "sg_list": a.sge(i * size, size),
             "remote_addr": b.mr["va"] + i * size, "rkey": b.mr["rkey"]} for i in range(count)])
    a.wait(a.send_cq, count, opcode)
    yield
    (a if opcode == "RDMA_READ" else b).expect(seed, count * size, opcode)


def atomic(a, b, opcode, size, count, seed):
    """A counter at b is increased by one or by three; each result must be the previous value."""
    step = 1 if opcode == "ATOMIC_CMP_AND_SWP" else 3
    b.call("mr_write", key=b.mr["key"], data="00" * 8)
    yield
    a.post([{"opcode": opcode, "sg_list": a.sge(i * 8, 8), "remote_addr": b.mr["va"],
             "rkey": b.mr["rkey"], "compare_add": i if step == 1 else step, "swap": i + 1}
            for i in range(count)])
    a.wait(a.send_cq, count, opcode)
    yield

    def read(end, n):
        return bytes.fromhex(end.call("mr_read", key=end.mr["key"], length=n)["data"])

    olds = read(a, 8 * count)
    for i in range(count):
        if int.from_bytes(olds[8 * i:8 * i + 8], sys.byteorder) != i * step:
            raise Failed(f"{opcode}: result {i} is wrong")
    if int.from_bytes(read(b, 8), sys.byteorder) != count * step:
        raise Failed(f"{opcode}: the counter is wrong")


OPERATIONS = (
    ("Send", "SEND", two_sided, SIZES),
    ("Send with Immediate", "SEND_WITH_IMM", two_sided, SIZES),
    ("Send with Invalidate", "SEND_WITH_INV", send_with_invalidate, INVALIDATES),
    ("RDMA Write", "RDMA_WRITE", one_sided, SIZES),
    ("RDMA Write with Imm.", "RDMA_WRITE_WITH_IMM", two_sided, SIZES),
    ("RDMA Read", "RDMA_READ", one_sided, SIZES),
    ("Compare and Swap", "ATOMIC_CMP_AND_SWP", atomic, ATOMICS),
    ("Fetch and Add", "ATOMIC_FETCH_AND_ADD", atomic, ATOMICS),
)


def rate(size, count, seconds):
    per_second = count / seconds
    bits = per_second * size * 8
    speed = f"{bits / 1e9:.2f} Gb/s" if bits >= 1e9 else f"{bits / 1e6:.2f} Mb/s"
    return f"{per_second:,.0f}/s {speed:>11}"


def run(a, b):
    seed = 1
    for title, opcode, steps, sizes in OPERATIONS:
        for size, count in sizes.items():
            seed += 1
            source, sink = (b, a) if opcode == "RDMA_READ" else (a, b)
            source.fill(seed)
            sink.fill(seed + 1000)
            before = a.retries() + b.retries()
            todo = steps(a, b, opcode, size, count, seed)
            next(todo)
            start = time.monotonic()
            next(todo)
            seconds = time.monotonic() - start
            for _ in todo:  # check every message
                pass
            again = a.retries() + b.retries() - before
            print(f"{a.name} > {b.name}  {title:21} {size:7,} {count:8}  "
                  f"{rate(size, count, seconds):>22} {again:8}  every byte", flush=True)


def rping(a, b):
    """Connect as a program does, to the service that listens from the start; the service checks
    the data."""
    done = {}
    begin = time.monotonic()
    connection = a.call("cm_connect", local_port=a.port, dgid=b.gid, port=PORT_RPING,
                        service="rping", size=PING, count=PINGS, verify=True)["connection"]
    while done.get("exchanges", 0) < PINGS and time.monotonic() < begin + 60:
        time.sleep(0.01)
        done, = [s for s in a.call("service_list")["services"] if s.get("connection") == connection]
    seconds = time.monotonic() - begin
    if done["exchanges"] < PINGS or done["mismatches"] or done["errors"]:
        raise Failed(f"rping: {done['exchanges']} of {PINGS} exchanges, {done['mismatches']} wrong")
    print(f"{a.name} > {b.name}  {'rping, by rdma_cm':21} {PING:7,} {PINGS:8}  "
          f"{rate(PING, PINGS, seconds):>22} {'-':>8}  every byte", flush=True)


def benchmark(program, verb, size):
    """A second of polca-bench: the cost of a message for each role in ns, and the share that is
    unavoidable."""
    done = subprocess.run([program, verb, "rate", "-s", size, "-D", "1", "--roofline", "--json"],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise Failed(f"polca-bench {verb}: {done.stderr[-2000:]}")
    for table in json.loads(done.stdout)["tables"]:
        if table["name"] == "roofline":
            return [row["polca_ns"] for row in table["rows"]], [row["ratio"] for row in table["rows"]]
    raise Failed(f"polca-bench {verb}: no limit was measured")


def data_path(program):
    """The data path by itself, both ends on one core; its limit is the least possible work for
    such messages."""
    print(f"\n{'data path, one core':36} {'bytes':>7}  {'rate':>22}  {'requester':>9}  {'responder':>9}  "
          f"{'limit':>12}  reached")
    for title, verb, size in BENCHMARKS:
        ours, ratios = benchmark(program, verb, size)
        least = sum(ns * ratio for ns, ratio in zip(ours, ratios))
        print(f"{title:36} {int(size):7,}  {rate(int(size), 1, sum(ours) / 1e9):>22}  {ours[0]:6,.0f} ns  "
              f"{ours[1]:6,.0f} ns  {1e9 / least:10,.0f}/s  {least / sum(ours):7.0%}", flush=True)


def start(program, folder):
    sock = str(folder / "polca.sock")
    log = open(folder / "polca.log", "wb")
    polca = subprocess.Popen([program, "-s", sock], stdout=log, stderr=subprocess.STDOUT,
                             stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while True:
        try:
            return polca, Control(sock)
        except OSError:
            if polca.poll() is not None:
                raise Failed(f"polca ended with status {polca.returncode}") from None
            if time.monotonic() > deadline:
                polca.kill()
                raise Failed("polca did not open its control socket within 60 s") from None
            time.sleep(0.05)


def stop(polca):
    polca.send_signal(signal.SIGTERM)
    try:
        if polca.wait(20) != 0:
            raise Failed(f"polca ended with status {polca.returncode} when told to stop")
    except subprocess.TimeoutExpired:
        polca.kill()
        raise Failed("polca did not stop within 20 s") from None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    programs = pathlib.Path(sys.argv[1]) / "app"
    program = programs / "polca" / "polca"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="polca-quickstart-"))
    polca = None
    try:
        polca, call = start(program, folder)
        a, b = End(call, 0), End(call, 1)
        a.connect(b)
        b.connect(a)
        print(f"{'direction':13}  {'operation':21} {'bytes':>7} {'messages':>8}  {'rate':>22} "
              f"{'retries':>8}  verified")
        run(a, b)
        run(b, a)
        rping(a, b)
        rping(b, a)
        stop(polca)
        polca = None
        print("\nAll operations moved their data both ways; every byte was checked. These rates include the control "
              "socket,\nas the work was posted as lines of JSON; retries are packets sent again.", flush=True)
        data_path(programs / "polca-bench" / "polca-bench")
    except Failed as why:
        print(f"\nFAILED: {why}", file=sys.stderr)
        print("polca's log:", file=sys.stderr)
        sys.stderr.write((folder / "polca.log").read_text(errors="replace")[-4000:])
        return 1
    finally:
        if polca is not None and polca.poll() is None:
            polca.kill()
            polca.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print("\nBoth ends ran on one core, in memory: no NIC was involved. The limit is the least work that such messages "
          "can be\non this core, measured in turn with them (docs/benchmark.md).\n"
          f"Next: start {os.path.relpath(program)} yourself and read \"A first session\" in README.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
