#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Run all functions at once in one polca for many minutes; no resource may grow.

polca runs with its built-in configuration: two ports joined inside the process. Nine clients use
it through the control socket at the same time: data of every operation in both directions,
connections to rping, echo and rstream, objects created and destroyed under traffic, SA queries,
pings, invalid requests, polca-ctl, and clients that are killed while they wait. Three more run
unmodified programs on the verbs socket: ibv_rc_pingpong, rping, and both of them killed at any
moment. Every minute all of them pause. Then every received packet must have one verdict, memory
and descriptors must be as after the warm-up, and no object and no program's device may be left. At
the end polca must have logged no error and stop with status 0.
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "config"))
sys.path.append(str(ROOT / "dts" / "lib"))
sys.dont_write_bytecode = True
import quickstart  # noqa: E402
import time_limit  # noqa: E402
import verbs  # noqa: E402
from interruptible import interruptible  # noqa: E402
from quickstart import Control, End, Failed  # noqa: E402
from rdmacm import pair_until_listening  # noqa: E402

# Growth since the end of the warm-up that does not count as a leak.
RSS_LIMIT_KB = 16384  # malloc keeps freed memory: this varies by up to half of the limit
FD_LIMIT = 0
WARM_UP = 30  # seconds until every pool and buffer has been used, and every client has done a turn
SETTLE = 60  # seconds in which the packets under way must end
# Services of ended connections are listed for a minute, after TIMEWAIT.
SETTLE_LAST = 150
LISTS = {"qp": ("qp_list", "qps"), "cq": ("cq_list", "cqs"), "srq": ("srq_list", "srqs"),
         "mr": ("mr_list", "regions"), "mw": ("mw_list", "windows"), "pd": ("pd_list", "domains"),
         "client": ("client_list", "clients")}
LISTS_LAST = {**LISTS, "connection": ("cm_list", "connections"), "service": ("service_list", "services")}
PORT_RSTREAM, PORT_ECHO = 7471, 7
PORT_PROGRAMS = 7500  # and the following ones, a client each
ADDRESSES = ("192.0.2.1", "192.0.2.2")
ADDRESSES6 = ("2001:db8::1", "2001:db8::2")


class Gate:
    """The clients wait here while polca is inspected."""

    def __init__(self):
        self.condition = threading.Condition()
        self.open, self.stopped = True, False
        self.inside = 0

    def enter(self):
        """@return False when the client must end"""
        with self.condition:
            self.condition.wait_for(lambda: self.open or self.stopped)
            self.inside += not self.stopped
            return not self.stopped

    def leave(self):
        with self.condition:
            self.inside -= 1
            self.condition.notify_all()

    def close(self, seconds):
        """@return False if a client did not stop within this time"""
        with self.condition:
            self.open = False
            return self.condition.wait_for(lambda: self.inside == 0, seconds)

    def reopen(self, stopped=False):
        with self.condition:
            self.open, self.stopped = True, stopped
            self.condition.notify_all()


# --- the clients: each turn removes everything it created ---


class Client:
    """turn() is called repeatedly; each client has its own random numbers."""

    def __init__(self, soak, number):
        self.soak = soak
        self.random = random.Random(soak.seed * 1000 + number)
        self.call = Control(soak.socket)
        self.call.sock.settimeout(time_limit.limit(120))  # five pings that are lost take 100 s
        self.turns = 0

    def until(self, condition, what):
        seconds = time_limit.limit(60)
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {seconds:.0f} s")
            time.sleep(0.02)


class Traffic(Client):
    """Every operation, one after the other, from both ports, with every byte checked."""

    OPERATIONS = [o for o in quickstart.OPERATIONS if o[1] != "SEND_WITH_INV"]  # it destroys others' windows

    def __init__(self, soak, number):
        super().__init__(soak, number)
        self.ends = [End(self.call, 0), End(self.call, 1)]
        self.ends[0].connect(self.ends[1])
        self.ends[1].connect(self.ends[0])

    def turn(self):
        a, b = self.random.sample(self.ends, 2)
        _, opcode, steps, sizes = self.random.choice(self.OPERATIONS)
        size, count = self.random.choice(list(sizes.items()))
        count = self.random.randint(1, count)
        seed = self.random.getrandbits(32)
        source, sink = (b, a) if opcode == "RDMA_READ" else (a, b)
        source.fill(seed)
        sink.fill(seed + 1)
        for _ in steps(a, b, opcode, size, count, seed):
            pass


class Connections(Client):
    """rping, echo and rstream: connect, exchange, and disconnect at the count or in the middle."""

    def turn(self):
        kind, port = self.random.choice((("rping", quickstart.PORT_RPING), ("echo", PORT_ECHO),
                                         ("rstream", PORT_RSTREAM)))
        side = self.random.randrange(2)
        whole = self.random.random() < 0.7
        count = self.random.randint(1, 50) if whole else 10 ** 9
        checks = {"verify": True} if kind in ("rping", "rstream") else {}
        made = self.call("cm_connect", local_port=side, dgid=self.random.choice((ADDRESSES, ADDRESSES6))[1 - side],
                         port=port, service=kind, size=self.random.randint(64, 1000), count=count, **checks)
        number = made["connection"]
        if whole:
            self.until(lambda: self.service(number).get("state") != "CONNECTED", f"{kind}: {count} exchanges")
            done = self.service(number)
            if done.get("exchanges", count) != count:
                raise Failed(f"{kind}: wanted {count} exchanges, got {done}")
        else:
            self.until(lambda: self.service(number).get("exchanges", 1) > 0, f"{kind}: the first exchange")
            done = self.service(number)
            self.call("cm_disconnect", connection=number)
        if done.get("mismatches"):
            raise Failed(f"{kind}: data differs: {done}")

    def service(self, connection):
        cursor = 0
        while cursor is not None:
            page = self.call("service_list", cursor=cursor, max=1000)
            for s in page["services"]:
                if s.get("connection") == connection:
                    return s
            cursor = page["cursor"]
        raise Failed(f"connection {connection}: its service is not listed")


class Objects(Client):
    """A PD with all its objects, connected, and destroyed while requests are under way."""

    def turn(self):
        call = self.call
        ends = [self.make(port) for port in (0, 1)]
        for i, (me, peer) in enumerate((ends, ends[::-1])):
            call("qp_connect", qp_num=me["qp"]["qp_num"], port=i, dgid=ADDRESSES[1 - i],
                 dest_qp_num=peer["qp"]["qp_num"], rq_psn=peer["qp"]["sq_psn"])
        a, b = ends
        call("post_send", qp_num=b["qp"]["qp_num"], wr=[{"opcode": "BIND_MW", "bind_mw": {
            "mw_key": b["mw"], "new_key": b["mw"] ^ 1, "mr_key": b["mr"]["key"], "addr": b["mr"]["va"],
            "length": b["length"], "access": ["REMOTE_WRITE"]}}])
        self.bound(b)
        call("post_send", qp_num=a["qp"]["qp_num"], wr=[
            {"opcode": "RDMA_WRITE", "sg_list": [{"key": a["mr"]["key"], "length": a["length"]}],
             "remote_addr": b["mr"]["va"], "rkey": b["mw"] ^ 1} for _ in range(self.random.randint(1, 64))])
        if self.random.random() < 0.5:
            call("cq_poll", cq=a["cq"], max=64, min=1, timeout_ms=10000)
        for end in self.random.sample(ends, 2):
            self.destroy(end, end["mw"] ^ (end is b))

    def bound(self, end):
        wc = self.call("cq_poll", cq=end["cq"], max=1, min=1, timeout_ms=10000)["wc"]
        if not wc or wc[0]["status"] != "SUCCESS":
            raise Failed(f"BIND_MW: completed with {wc}")

    def make(self, worker):
        call = self.call
        end = {"pd": call("pd_create")["pd"], "cq": call("cq_create", depth=256)["cq"],
               "length": 1 << self.random.randint(6, 18)}
        end["mr"] = call("mr_register", pd=end["pd"], length=end["length"], access=quickstart.ACCESS)
        end["mw"] = call("mw_create", pd=end["pd"], type="TYPE_2")["key"]
        end["srq"] = call("srq_create", pd=end["pd"], worker=worker)["srq"]
        end["qp"] = call("qp_create", pd=end["pd"], send_cq=end["cq"], srq=end["srq"])
        call("srq_post", srq=end["srq"], wr=[{"sg_list": []}])
        return end

    def destroy(self, end, window):
        call = self.call
        call("qp_destroy", qp_num=end["qp"]["qp_num"])
        call("srq_destroy", srq=end["srq"])
        call("mw_destroy", key=window)
        call("mr_deregister", key=end["mr"]["key"])
        call("cq_destroy", cq=end["cq"])
        call("pd_destroy", pd=end["pd"])


class Queries(Client):
    """The SA's records in both class versions, over the wire and locally; some queries are
    cancelled."""

    def turn(self):
        ask = {"op": "table", "record": self.random.choice(("node", "port", "pkey", "classportinfo"))}
        if ask["record"] == "classportinfo":
            ask["op"] = "get"
        elif self.random.random() < 0.3:
            ask["class_version"] = 1
        if self.random.random() < 0.5:
            side = self.random.randrange(2)
            ask.update(port=side, to=ADDRESSES[1 - side])
        query = self.call("sa_query", **ask)["query"]
        if self.random.random() < 0.9:
            self.until(lambda: self.call("sa_result", query=query, timeout_ms=1000)["state"] == "done",
                       f"sa_query {ask}")
        self.call("sa_cancel", query=query)


class Pings(Client):
    """Each kind of ping; none may be lost."""

    MODES = ("echo", "timestamp", "lidguid", "ibping", "sysstat_ping")

    def turn(self):
        side = self.random.randrange(2)
        mode = self.random.choice(self.MODES)
        more = {"size": self.random.choice((0, 56, 208, 5000))} if mode == "echo" else {}
        got = self.call("live_ping", port=side, dgid=ADDRESSES[1 - side], mode=mode, count=5, timeout_ms=20000,
                        **more)
        if got["received"] != 5:
            raise Failed(f"live_ping {mode} {more}: {got}")


class Hostile(Client):
    """Invalid requests on separate connections; a valid one at the same time is answered."""

    def turn(self):
        r = self.random
        junk = r.choice((
            lambda: r.randbytes(r.randint(1, 5000)),
            lambda: b"[" * r.randint(1, 5000) + b"\n",
            lambda: b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * r.randint(1, 100000) + b'"}\n',
            lambda: b'{"jsonrpc":"2.0","id":1,"method":"cq_create","params":{"depth":%d}}\n' % -r.getrandbits(70),
            lambda: b'{"jsonrpc":"2.0","id":[],"method":7,"params":[null]}\n' * r.randint(1, 100),
            lambda: b'{"jsonrpc":"2.0","id":1,"method":"rpc_list"}\n' * r.randint(1, 20),
            lambda: b'{"jsonrpc":"2.0","id":1,"method":"mr_fill","params":{"key":"\xff\xfe","sg":[[]]}}\n',
            lambda: b'{"jsonrpc":"2.0","id":1,"meth',
        ))()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(self.soak.socket)
            try:
                s.sendall(junk)
                if r.random() < 0.5:
                    s.recv(r.randint(1, 65536))
            except (TimeoutError, ConnectionError):
                pass  # the server closed the connection, or the line has no end: as documented
        self.call("version_get")


class CommandLine(Client):
    """polca-ctl as people type it, with right and wrong commands."""

    COMMANDS = (("port list", 0), ("qp list", 0), ("stats get --nonzero", 0), ("worker list", 0), ("--help", 0),
                ("service kinds", 0), ("cm list", 0), ("sa stats", 0), ("qp show 1", None), ("no such", None))

    def turn(self):
        command, status = self.random.choice(self.COMMANDS)
        done = subprocess.run([self.soak.ctl, "-s", self.soak.socket, "--wait", "60", *command.split()],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        if (done.returncode != 0) != (status is None):
            raise Failed(f"polca-ctl {command}: status {done.returncode}: {done.stderr[-500:]}")


class Killed(Client):
    """Clients that are killed while they wait."""

    WAITS = ("cq poll {cq} --timeout-ms 60000", "events --timeout-ms 60000 --since 0x7000000000000000",
             "live ping --dgid 203.0.113.9 --count 5")

    def __init__(self, soak, number):
        super().__init__(soak, number)
        self.cq = self.call("cq_create")["cq"]

    def turn(self):
        command = self.random.choice(self.WAITS).format(cq=self.cq)
        p = subprocess.Popen([self.soak.ctl, "-s", self.soak.socket, *command.split()], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            p.wait(self.random.uniform(0.01, 0.5))
        except subprocess.TimeoutExpired:
            pass
        p.kill()
        p.wait()


class Programs(Client):
    """Programs that know nothing of polca, on its verbs socket."""

    def __init__(self, soak, number):
        super().__init__(soak, number)
        self.cm_port = PORT_PROGRAMS + number

    def turn(self):
        with tempfile.TemporaryDirectory(dir=self.soak.folder) as output:
            programs = verbs.Programs(self.soak.verbs, output, run=self.soak.run_program)
            try:
                self.use(programs)
            finally:
                programs.close()

    @staticmethod
    def tcp_port():
        """One that is free, for the exchange of a pingpong's two ends."""
        with socket.create_server(("", 0)) as s:
            return s.getsockname()[1]

    def pingpong(self, count):
        sleeps = ["-e"] if self.random.random() < 0.5 else []
        return ["ibv_rc_pingpong", "-g", "0", "-c", "-n", count, "-s", self.random.randint(1, 20000), *sleeps]

    def rping(self, count):
        """The server's command line and the client's."""
        to = self.random.choice(self.random.choice((ADDRESSES, ADDRESSES6)))
        both = ["-V", "-C", count, "-S", self.random.randint(64, 20000), "-a", to, "-p", self.cm_port]
        return ["rping", "-s", *both], ["rping", "-c", *both]


class Pingpongs(Programs):
    def use(self, programs):
        programs.pair(self.tcp_port(), *self.pingpong(self.random.randint(1, 200)))


class Rpings(Programs):
    def use(self, programs):
        pair_until_listening(programs, *self.rping(self.random.randint(1, 30)))


class Crashes(Programs):
    """Both ends of a connection are killed: before there is one, or under traffic."""

    ENDLESS = 10 ** 8

    def use(self, programs):
        if self.random.random() < 0.5:
            serve, connect = self.rping(self.ENDLESS)
            server = programs.spawn(*serve)
            self.until(lambda: self.completed(server) is not None, "rping's server")
            client = programs.spawn(*connect)
        else:
            port, argv = self.tcp_port(), self.pingpong(self.ENDLESS)
            server = programs.spawn(*argv, "-d", "polca0", "-p", port)
            server.wait_listening(port)
            client = programs.spawn(*argv, "-d", "polca1", "-p", port, "localhost")
        least = self.random.choice((0, 1, 20))
        self.until(lambda: client.proc.poll() is not None or self.busy(server, client, least), "a program that works")
        for job in self.random.sample((server, client), 2):
            job.kill()
            self.until(lambda job=job: self.completed(job) is None, "the end of a killed program")

    def completed(self, job):
        """The work requests that were completed for a program; None: polca knows of no such program."""
        rows = [r["completed"] for r in self.call("client_list")["clients"] if r["pid"] == job.proc.pid]
        return max(rows, default=None)

    def busy(self, server, client, least):
        done = self.completed(server), self.completed(client)
        return None not in done and min(done) >= least


CLIENTS = (Traffic, Connections, Connections, Objects, Queries, Pings, Hostile, CommandLine, Killed, Pingpongs,
           Rpings, Crashes)


# --- the process and its checks ---


class Soak:
    def __init__(self, programs, folder, seed):
        self.folder, self.seed = folder, seed
        self.ctl = str(programs / "polca-ctl" / "polca-ctl")
        self.run_program = str(programs / "polca-run" / "polca-run")
        self.socket = str(folder / "polca.sock")
        self.verbs = str(folder / "verbs.sock")
        os.environ["RUNTIME_DIRECTORY"] = str(folder)  # DPDK's files are removed with the folder
        self.polca, self.call = quickstart.start(programs / "polca" / "polca", folder)
        self.gate = Gate()
        self.failures = []
        self.call("cm_listen", kind="rstream", port=PORT_RSTREAM)
        self.call("log_level_set", component="*", level="err")
        self.call("log_level_set", component="polca.*", level="err")
        self.logged = len(self.log())
        self.clients = []
        for number, kind in enumerate(CLIENTS):
            self.clients.append(kind(self, number))
        self.counts = {id(lists): self.objects(lists) for lists in (LISTS, LISTS_LAST)}
        self.threads = [threading.Thread(target=self.drive, args=(c,), daemon=True) for c in self.clients]
        for t in self.threads:
            t.start()

    def drive(self, client):
        while self.gate.enter():
            try:
                client.turn()
                client.turns += 1
            except Exception as why:  # pylint: disable=broad-except
                text = str(why) if isinstance(why, Failed) else traceback.format_exc()
                self.failures.append(f"{type(client).__name__}, turn {client.turns + 1}: {text}")
                return
            finally:
                self.gate.leave()

    def log(self):
        return (self.folder / "polca.log").read_text(errors="replace")

    def objects(self, lists):
        """The number of objects of each kind."""
        count = {}
        for name, (method, key) in lists.items():
            count[name], cursor = 0, 0
            while cursor is not None:
                page = self.call(method, cursor=cursor, max=1000)
                # services' objects remain until TIMEWAIT is over: the last inspection counts them
                # as connections
                count[name] += sum(lists is LISTS_LAST or row.get("service") is None for row in page[key])
                cursor = page["cursor"]
        return count

    def packets(self):
        """Packets received by each port, and those with a verdict."""
        return [(p["name"], p["rx_packets"], sum(p["served"].values()) + sum(p["dropped"].values()))
                for p in self.call("stats_get")["ports"]]

    def usage(self):
        pid = self.polca.pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        size = {row.split()[0]: int(row.split()[1]) for row in status.splitlines() if row.endswith(" kB")}
        return size["VmRSS:"], len(os.listdir(f"/proc/{pid}/fd")), size["HugetlbPages:"]

    def settle(self, condition, what, seconds):
        """Wait for the condition, a function that returns what is still wrong, or nothing."""
        end = time.monotonic() + seconds
        while True:
            wrong = condition()
            if not wrong:
                return True
            if time.monotonic() > end:
                self.failures.append(f"{what}, {seconds} s after the clients paused: {wrong}")
                return False
            time.sleep(0.1)

    def packets_without_verdict(self):
        rows = self.packets()
        return [f"{name}: {rx} received, {verdicts} verdicts" for name, rx, verdicts in rows if rx != verdicts]

    def leftover(self, lists):
        now, start = self.objects(lists), self.counts[id(lists)]
        return [f"{name}: {now[name]}, at the start {start[name]}" for name in lists if now[name] != start[name]]

    def look(self, minute, last=False):
        """Pause all clients, check, print a row, continue."""
        settle = time_limit.limit(SETTLE)
        if not self.gate.close(settle):
            self.failures.append(f"a client did not end its turn within {settle:.0f} s")
        self.settle(self.packets_without_verdict, "packets without a verdict, or with two", SETTLE)
        self.settle(lambda: self.leftover(LISTS), "objects left over", SETTLE)
        if last:
            self.settle(lambda: self.leftover(LISTS_LAST), "objects left over", SETTLE_LAST)
        rss, fds, huge = self.usage()
        if minute == 0:
            self.base = rss, fds, huge
        if rss - self.base[0] > RSS_LIMIT_KB:
            self.failures.append(f"memory: {rss} KiB, after the warm-up {self.base[0]} KiB; "
                                 f"allowed growth: {RSS_LIMIT_KB} KiB")
        if huge > self.base[2]:
            self.failures.append(f"hugepages: {huge} KiB, after the warm-up {self.base[2]} KiB")
        # the server's loop closes a disconnected client's descriptor later
        self.settle(lambda: [f"{self.usage()[1]}, after the warm-up {self.base[1]}"]
                    if self.usage()[1] > self.base[1] + FD_LIMIT else [], "descriptors", SETTLE)
        text = self.log()[self.logged:].strip()
        if text:
            self.failures.append(f"polca has logged: {text[-1000:]}")
        received = sum(rx for _, rx, _ in self.packets())
        turns = " ".join(f"{n:7}" for n in self.turns().values())
        print(f"{'warm-up' if minute == 0 else f'{minute:4.1f} min':8} {rss:8} {rss - self.base[0]:+7} {fds:4} "
              f"{received:11}  {turns}", flush=True)
        self.gate.reopen(stopped=last)

    def turns(self):
        count = collections.Counter()
        for c in self.clients:
            count[type(c).__name__] += c.turns
        return count

    def run(self, minutes):
        head = " ".join(f"{name[:7]:>7}" for name in self.turns())
        print(f"{'time':8} {'RSS KiB':>8} {'growth':>7} {'fds':>4} {'packets':>11}  {head}")
        begin = time.monotonic()
        warm = min(WARM_UP, minutes * 30)
        looks = [warm] + [warm + 60 * i for i in range(1, int(minutes) + 1)]
        for number, at in enumerate(looks):
            next_line = 10
            while not self.failures and (time.monotonic() - begin < at or 0 in self.turns().values()):
                if self.polca.poll() is not None:
                    raise Failed(f"polca ended with status {self.polca.returncode}")
                time.sleep(0.2)
                if time.monotonic() - begin > next_line:
                    next_line = time.monotonic() - begin + 10
                    print(f"[{time.monotonic() - begin:4.0f} s] "
                          f"{', '.join(f'{k} {v}' for k, v in self.turns().items())}", flush=True)
            if self.failures:
                break
            self.look(number, last=number == len(looks) - 1)
        for name, n in self.turns().items():
            if n == 0:
                self.failures.append(f"{name}: not one turn was done")

    def close(self):
        self.gate.reopen(stopped=True)
        if self.polca.poll() is None:
            self.polca.kill()
            self.polca.wait()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--minutes", type=int, default=5, help="under load; warm-up and the last inspection are extra")
    p.add_argument("--seed", type=int, default=1, help="seed of the clients' random choices")
    p.add_argument("--build", default=str(ROOT / "build"), help="build directory")
    a = p.parse_args()
    if a.minutes < 1:
        p.error(f"--minutes: got {a.minutes}, allowed: 1 and more")
    interruptible()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="polca-soak-"))
    soak = None
    try:
        soak = Soak(pathlib.Path(a.build) / "app", folder, a.seed)
        soak.run(a.minutes)
        if not soak.failures:
            quickstart.stop(soak.polca)
        failures = list(soak.failures)  # without the clients' errors after polca has ended
    except Failed as why:
        failures = [str(why)]
    except KeyboardInterrupt:
        failures = ["interrupted"]
    finally:
        if soak is not None:
            soak.close()
        log = (folder / "polca.log").read_text(errors="replace")[-2000:] if (folder / "polca.log").exists() else ""
        shutil.rmtree(folder, ignore_errors=True)
    for f in failures:
        print(f"FAILED: {f}", file=sys.stderr)
    if failures:
        print(f"seed {a.seed}; polca's log:\n{log}", file=sys.stderr)
        return 1
    print(f"{a.minutes} minutes: no packet without a verdict, nothing left over, no growth, no error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
