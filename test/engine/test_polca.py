#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The appliance as a process: it starts for any user, stops when told, and survives its own sudden end.

usage: test_polca.py POLCA
"""

import atexit
import fcntl
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

POLCA = os.path.abspath(sys.argv[1])
NOBODY = 65534
checks = 0


def check(what, got, expected=True):
    global checks
    if got != expected:
        sys.exit(f"{what}: got {got!r}, expected {expected!r}")
    checks += 1
    print("ok:", what)


def rpc(path, method, **params):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(path))
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        s.sendall((json.dumps(request) + "\n").encode())
        return json.loads(s.makefile().readline())["result"]


class Polca:
    """A running polca, started as this user or another."""

    def __init__(self, directory, *args, uid=None, meanwhile=None):
        """meanwhile: a signal to send again and again until it is ready."""
        self.socket = directory / "polca.sock"
        self.env = dict(os.environ, XDG_RUNTIME_DIR=str(directory))
        self.process = subprocess.Popen([POLCA, *args], env=self.env, user=uid, group=uid,
                                        extra_groups=[] if uid else None, cwd="/",
                                        stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        if not self.wait_until_ready(meanwhile):
            self.process.kill()
            sys.exit("polca did not get ready:\n" + self.process.communicate()[1])

    def wait_until_ready(self, meanwhile):
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            if self.process.poll() is not None:
                return False
            try:
                return "version" in json.dumps(rpc(self.socket, "version_get"))
            except (FileNotFoundError, ConnectionRefusedError):
                if meanwhile is not None:
                    self.process.send_signal(meanwhile)
                time.sleep(0.1 if meanwhile is None else 0.001)
        return False

    def stop(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        errors = self.process.communicate(timeout=60)[1]
        return self.process.returncode, errors


def run(*args, **kw):
    return subprocess.run([POLCA, *args], capture_output=True, text=True, timeout=60, **kw)


def command_line():
    check("--version exits with 0", run("--version").returncode, 0)
    shown = run("--help")
    check("--help exits with 0", shown.returncode, 0)
    check("--help shows a first session", "polca-ctl port list" in shown.stdout)
    check("an unknown option is wrong usage", run("--nonsense").returncode, 2)
    check("an argument is wrong usage", run("config.json").returncode, 2)
    check("an empty path of a configuration is wrong usage", run("-c", "").returncode, 2)
    missing = run("-c", "/nonexistent.json")
    check("a missing configuration file fails", missing.returncode, 1)
    check("and is named", "/nonexistent.json" in missing.stderr)


def broken_device(directory):
    config = directory / "broken.json"
    config.write_text(json.dumps({"ports": [{"name": "port0", "device": "net_af_packet0,iface=nonesuch0"}]}))
    config.chmod(0o644)
    failed = run("-c", config, "-s", directory / "x.sock")
    check("a device that is not there fails", failed.returncode, 1)
    check("and says which port and device", "port0" in failed.stderr and "nonesuch0" in failed.stderr)


def life(directory, uid):
    who = f"uid {uid if uid is not None else os.geteuid()}"
    socket_args = ("-s", str(directory / "polca.sock"))
    p = Polca(directory, *socket_args, uid=uid)
    ports = rpc(p.socket, "port_list")["ports"]
    check(f"{who}: two ports without NIC, hugepages and configuration",
          [q["name"] for q in ports], ["port0", "port1"])
    check(f"{who}: each with its address", [q["gids"][0]["gid"] for q in ports],
          ["192.0.2.1", "192.0.2.2"])
    # a second one must not take the socket away from the first
    second = subprocess.run([POLCA, *socket_args], env=p.env, user=uid, group=uid,
                            extra_groups=[] if uid else None, capture_output=True, text=True,
                            timeout=60)
    check(f"{who}: a second polca on the same socket fails", second.returncode, 1)
    check(f"{who}: and names the first's pid", str(p.process.pid) in second.stderr)
    check(f"{who}: the first still serves", len(rpc(p.socket, "port_list")["ports"]), 2)
    check(f"{who}: SIGKILL kills", p.stop(signal.SIGKILL)[0], -signal.SIGKILL)
    check(f"{who}: and leaves a stale socket", p.socket.exists())
    p = Polca(directory, *socket_args, uid=uid)
    check(f"{who}: which the next start replaces", len(rpc(p.socket, "port_list")["ports"]), 2)
    check(f"{who}: SIGTERM ends it with 0", p.stop()[0], 0)
    check(f"{who}: and removes the socket", p.socket.exists(), False)
    p = Polca(directory, *socket_args, uid=uid)
    check(f"{who}: SIGINT ends it with 0", p.stop(signal.SIGINT)[0], 0)


def closed_terminal(directory):
    """SIGHUP, of which the kernel and the shell may each send one, ends nothing: it reads the file again."""
    socket_args = ("-s", str(directory / "polca.sock"))
    inherited = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until main() runs
    try:
        p = Polca(directory, *socket_args, meanwhile=signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, inherited)
    check("no SIGHUP ends it while it starts", len(rpc(p.socket, "port_list")["ports"]), 2)
    p.process.send_signal(signal.SIGHUP)
    for _ in range(5):
        check("nor when it runs", len(rpc(p.socket, "port_list")["ports"]), 2)
    code, said = p.stop()
    check("and SIGTERM ends it with 0", code, 0)
    check("and is what ends it", f"stopping (signal {signal.SIGTERM:d})" in said)


def signal_while_it_fails(directory):
    """A start that fails for its own reason says so, also if a signal came meanwhile."""
    store = directory / "broken-db"
    store.mkdir(0o700)
    config = directory / "broken-db.json"
    config.write_text(json.dumps({
        "sa": {"path": str(store)},
        "ports": [{"name": "port0", "back_to_back": "port1", "addresses": ["fe80::1/64"]},
                  {"name": "port1", "back_to_back": "port0", "addresses": ["fe80::2/64"]}]}))
    with open(store / "lock.mdb", "wb") as lock:
        lock.write(bytes(8192))  # not one of LMDB's
        lock.flush()
        fcntl.lockf(lock, fcntl.LOCK_EX, 1)  # LMDB waits for it
        p = subprocess.Popen([POLCA, "-c", str(config), "-s", str(directory / "polca.sock")],
                             stderr=subprocess.PIPE, text=True)
        atexit.register(p.kill)
        limit = time.monotonic() + 60
        while not re.search(rf"-> POSIX .* {p.pid} ", pathlib.Path("/proc/locks").read_text()):
            if p.poll() is not None or time.monotonic() > limit:
                sys.exit("polca did not wait for the lock:\n" + p.stderr.read())
            time.sleep(0.01)
        p.send_signal(signal.SIGTERM)
        while signal_is_pending(p.pid, signal.SIGTERM):
            time.sleep(0.01)
        fcntl.lockf(lock, fcntl.LOCK_UN, 1)
        said = p.communicate(timeout=60)[1]
    check("a start that fails after a signal fails", p.returncode, 1)
    check("and says why", said.splitlines()[-1].startswith(f"polca: sa.path: {store}: "))


def signal_is_pending(pid, sig):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^ShdPnd:\s*(\w+)", status, re.M)[1], 16) >> (sig - 1) & 1 == 1


def telemetry(directory):
    prefix = f"polca-test-{os.getpid()}"
    p = Polca(directory, "-s", str(directory / "polca.sock"), "--eal", f"--file-prefix={prefix}")
    runtime = pathlib.Path("/var/run/dpdk" if os.geteuid() == 0 else directory / "dpdk") / prefix
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(30)
        s.connect(str(runtime / "dpdk_telemetry.v2"))
        s.recv(16384)
        s.send(b"/")
        names = json.loads(s.recv(65536))["/"]
        s.send(b"/polca/sa")
        figures = json.loads(s.recv(65536))["/polca/sa"]
        s.send(b"/polca/live")
        live = json.loads(s.recv(65536))["/polca/live"]
        s.send(b"/polca/sma,1")
        sma = json.loads(s.recv(65536))["/polca/sma"]
    check("DPDK's telemetry socket knows /polca/", any(n.startswith("/polca/") for n in names))
    check("and the SA's counters", "get_table" in figures and "segments_sent" in figures)
    check("and those of liveness and subnet management", "echo" in live and "traps_sent" in sma)
    check("SIGTERM ends it", p.stop()[0], 0)
    shutil.rmtree(runtime, ignore_errors=True)


def sa_result(path, number):
    """All that a query brings, once it is done."""
    records, cursor = [], 0
    while cursor is not None:
        page = rpc(path, "sa_result", query=number, cursor=cursor, max=1000, timeout_ms=1000)
        records += page["records"]
        cursor = page["cursor"]
    rpc(path, "sa_cancel", query=number)
    return page["status"], records


def sa_ask(path, **params):
    return sa_result(path, rpc(path, "sa_query", **params)["query"])


def crash(directory):
    """What an SA has acknowledged survives SIGKILL in the middle of changes."""
    config = directory / "sa.json"
    config.write_text(json.dumps({
        "sa": {"path": str(directory / "sa-db"), "map_mb": 64},
        "ports": [{"name": "port0", "back_to_back": "port1", "addresses": ["fe80::1/64"]},
                  {"name": "port1", "back_to_back": "port0", "addresses": ["fe80::2/64"]}]}))
    known = 0
    for turn in range(4):
        p = Polca(directory, "-s", str(directory / "polca.sock"), "-c", str(config))
        found = [r["from_lid"] for r in sa_ask(p.socket, record="link")[1]]
        there = sum(1 for lid in found if int(lid) >= 1000)
        check(f"turn {turn}: at most one Config more than was acknowledged",
              there in (known, known + 10))
        check(f"turn {turn}: no Config is there by half", there % 10, 0)
        known = there
        for _ in range(5 + turn):
            records = [{"from_lid": 1000 + known + i, "from_port": 1, "to_lid": 1, "to_port": 1}
                       for i in range(10)]
            status, _ = sa_ask(p.socket, op="config_add", record="link", records=records)
            check("a Config is done", status, "OK")
            known += 10
        # one more is under way when the end comes
        records = [dict(r, from_lid=r["from_lid"] + 10) for r in records]
        rpc(p.socket, "sa_query", op="config_add", record="link", records=records)
        p.stop(signal.SIGKILL)


def account():
    try:
        return pwd.getpwnam("polca").pw_uid
    except KeyError:
        return NOBODY


def main():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # this suite may have been started with nohup
    command_line()
    # not below a directory that only root may enter
    with tempfile.TemporaryDirectory(prefix="polca-test-", dir="/tmp") as name:
        directory = pathlib.Path(name)
        if os.geteuid() == 0:  # polca becomes this user, and removes its socket at the end
            os.chown(name, account(), -1)
        broken_device(directory)
        life(directory, None)
        closed_terminal(directory)
        signal_while_it_fails(directory)
        telemetry(directory)
        crash(directory)
    if os.geteuid() == 0 and os.access(POLCA, os.X_OK):
        with tempfile.TemporaryDirectory(prefix="polca-test-", dir="/tmp") as name:
            # a copy that the ordinary user can reach
            global_polca = pathlib.Path(name) / "polca"
            shutil.copy(POLCA, global_polca)
            globals()["POLCA"] = str(global_polca)
            os.chown(name, NOBODY, NOBODY)
            life(pathlib.Path(name), NOBODY)
    print(f"{checks} checks passed")


if __name__ == "__main__":
    main()
