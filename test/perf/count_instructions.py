#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What a message or a packet costs in instructions, against what docs/performance.md says.

usage: count_instructions.py POLCA_BENCH [--case TEXT] [--update]

Both roles run by turns on one lcore in virtual time under valgrind, with a CRC kernel and string
functions that every x86 CPU since 2013 has: the figures are those of the compiler and the code, not of
the machine, but for one per cent on a busy one. More than 2 % away from the table in each of three runs,
either way, is a failure: a gain is written down, too (--update).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "performance.md"
BEGIN = "<!-- instructions: test/perf/count_instructions.py --update -->"
END = "<!-- instructions: end -->"
HEAD = ("| Instructions | for | Requester | Responder | Together |", "|---|---|---|---|---|")
TOLERANCE = 0.02
RUNS = 3  # at most, until one is as written
FEW = 50  # of fewer instructions, one more or less is nothing

# name, what the figure is for, what polca-bench is told, messages, packets of a message
SMALL = "-s 64 -q 4 -t 32"
LARGE = "-s 65536 -q 4 -t 32 -F 262144"
CASES = [
    ("Send", "64 bytes", f"send rate {SMALL}", 20000, 1),
    ("Send, an Ack each", "64 bytes", f"send rate {SMALL} --ack-each", 20000, 1),
    ("Send, ICRC not checked", "64 bytes", f"send rate {SMALL} --no-icrc", 20000, 1),
    ("Send, recorded", "64 bytes", f"send rate {SMALL} --record", 20000, 1),
    ("Write", "a packet of 4096", f"write bw {LARGE}", 1000, 16),
    ("Write, PMTU 1024", "a packet of 1024", f"write bw {LARGE} -m 1024", 500, 64),
    ("Read", "a packet of 4096", f"read bw {LARGE} -t 16", 1000, 16),
    ("Atomic", "an operation", "atomic rate -q 4 -t 16", 20000, 1),
]
ROLES = (("requester_count",), ("responder_count",))
# Messages of programs on the verbs socket (client_count): what a worker executes for them beyond what it
# would for own posts, in posting and in completing. The first function less those that it calls.
CLIENTS = [
    ("Write of a program", "64 bytes, beyond own", "write", 4000, 1),
    ("Send of a program", "64 bytes, beyond own", "send", 4000, 1),
]
# Turns in which nothing happens, in all of them: without a program, and what the worker executes more with programs
# that do nothing.
IDLE = [
    ("No program", "an idle turn", "clients", 1600, 1),
    ("64 idle programs", "a turn, beyond none", "clients", 1600, 1),
    ("10,000 idle queue pairs", "a turn, beyond none", "qps", 1600, 1),
]
IDLE_ROLES = {
    "No program": (("idle_turn_empty",),),
    "64 idle programs": (("idle_turn_clients", "idle_turn_empty"),),
    "10,000 idle queue pairs": (("idle_turn_qps", "idle_turn_clients"),),
}
CLIENT_ROLES = (("clients_post", "rc_post_send", "rc_post_recv"), ("clients_complete", "rc_cq_poll"))


def environment():
    """glibc chooses its string functions by the CPU: here those with AVX, always."""
    return {
        "PATH": os.environ["PATH"],
        "LD_BIND_NOW": "1",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-ERMS,-FSRM,-RTM"
                          ":glibc.cpu.x86_rep_movsb_threshold=0x7fffffff"
                          ":glibc.cpu.x86_non_temporal_threshold=0x7fffffff",
    }


def inclusive(profile, functions):
    """Instructions below each of these functions, of callgrind's file."""
    names, cost, callee = {}, dict.fromkeys(functions, 0), None
    lines = iter(profile.read_text().splitlines())
    for line in lines:
        called = re.match(r"(c?fn)=\((\d+)\)(?: (\S+))?", line)
        if called:
            what, number, name = called.groups()
            names.setdefault(number, name)
            callee = names[number] if what == "cfn" else None
        elif line.startswith("calls="):
            if callee in cost:
                cost[callee] += int(next(lines).split()[1])
    return cost


def count(bench, case):
    """Instructions for a message or packet, by role."""
    name, _, args, messages, packets = case
    if case in CLIENTS + IDLE:
        program = pathlib.Path(bench).resolve().parents[2] / "test" / "perf" / "client_count"
        roles = IDLE_ROLES.get(name, CLIENT_ROLES)
        collect = "client_idle" if case in IDLE else "client_messages"
        command = [program, args, str(messages)]
    else:
        roles, collect = ROLES, "roles_count"
        command = [bench, *args.split(), "-n", str(messages), "--crc", "pclmul", "--no-huge", "--json"]
    with tempfile.TemporaryDirectory() as tmp:
        profile = pathlib.Path(tmp) / "callgrind.out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}",
             f"--toggle-collect={collect}", *command], env=environment(), capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{name}: {command[0]} ended with {run.returncode}:\n{run.stderr}")
        result = json.loads(run.stdout)
        done = result if case in CLIENTS + IDLE else result["tables"][0]["rows"][0]["iterations"]
        cost = inclusive(profile, [function for role in roles for function in role])
    if not all(cost[role[0]] for role in roles):
        sys.exit(f"{name}: callgrind has seen nothing of {' and '.join(role[0] for role in roles)}")
    figures = [round((cost[r[0]] - sum(cost[f] for f in r[1:])) / done / packets, 2) + 0.0 for r in roles]
    return figures + [0] * (2 - len(figures))


def off(old, figures):
    """How far a row is from what is written, as a share of it."""
    return 1 if old is None else (sum(figures) - old) / max(old, FEW)


def count_until_as_written(bench, case, old):
    for _ in range(RUNS):
        figures = count(bench, case)
        if abs(off(old, figures)) <= TOLERANCE:
            break
    return figures


def table_rows(text):
    """What is written: name -> together."""
    if BEGIN not in text or END not in text:
        sys.exit(f"{TABLE}: there is no table between the marks")
    rows = text.split(BEGIN)[1].split(END)[0].splitlines()
    cells = [[c.strip() for c in r.strip("|").split("|")] for r in rows if r.startswith("|")]
    return {c[0]: float(c[4]) for c in cells[len(HEAD):]}


def update(text, figures):
    rows = [f"| {name} | {what} | {a:.0f} | {b:.0f} | {a + b:.0f} |".replace("-0", "0")
            for (name, what, *_), (a, b) in figures]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    TABLE.write_text("\n".join([before + BEGIN, *HEAD, *rows, END + after]))


def compare(written, figures):
    """@return how many rows are wrong"""
    wrong = 0
    print(f"{'':24} {'for':18} {'requester':>9} {'responder':>9} {'together':>9} {'written':>8}")
    for (name, what, *_), (a, b) in figures:
        old = written.get(name)
        share = off(old, (a, b))
        wrong += abs(share) > TOLERANCE
        print(f"{name:24} {what:18} {a:9.0f} {b:9.0f} {a + b:9.0f} {old or 0:8.0f} "
              f"{f'{share:+.1%}' if old is not None else 'missing'}"
              f"{'  not as docs/performance.md says' if abs(share) > TOLERANCE else ''}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("bench", metavar="POLCA_BENCH")
    p.add_argument("--case", default="", help="only those whose name has it")
    p.add_argument("--update", action="store_true", help="write the table")
    a = p.parse_args()
    cases = [c for c in CASES + CLIENTS + IDLE if a.case.lower() in c[0].lower()]
    if not cases:
        sys.exit(f"--case: got {a.case!r}, there are {', '.join(c[0] for c in CASES + CLIENTS + IDLE)}")
    if a.update and a.case:
        sys.exit("--update: writes all rows: leave out --case")
    text = TABLE.read_text()
    written = table_rows(text)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        figures = list(zip(cases, pool.map(
            lambda c: count(a.bench, c) if a.update else
            count_until_as_written(a.bench, c, written.get(c[0])), cases)))
    wrong = compare(written, figures)
    if a.update:
        update(text, figures)
    elif wrong:
        sys.stdout.flush()
        sys.exit(f"{wrong} of {len(cases)} differ by more than {TOLERANCE:.0%}: see what costs, or "
                 "write it down with --update")


if __name__ == "__main__":
    main()
