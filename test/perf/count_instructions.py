#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What a message or a packet costs in instructions, against what docs/performance.md says.

usage: count_instructions.py POLCA_BENCH [--case TEXT] [--update]

Both roles run by turns on one lcore in virtual time under valgrind, with a CRC kernel and string
functions that every x86 CPU since 2013 has: the figures are those of the compiler and the code, not of
the machine. More than 5 % away from the table, either way, is a failure: a gain is written down, too
(--update).
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
TOLERANCE = 0.05

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
ROLES = ("requester_count", "responder_count")


def environment():
    """glibc chooses its string functions by the CPU: here those with AVX, always."""
    return {
        "PATH": os.environ["PATH"],
        "LD_BIND_NOW": "1",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-ERMS,-FSRM,-RTM"
                          ":glibc.cpu.x86_rep_movsb_threshold=0x7fffffff"
                          ":glibc.cpu.x86_non_temporal_threshold=0x7fffffff",
    }


def inclusive(profile):
    """Instructions below each function of ROLES, of callgrind's file."""
    names, cost, callee = {}, dict.fromkeys(ROLES, 0), None
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
    with tempfile.TemporaryDirectory() as tmp:
        profile = pathlib.Path(tmp) / "callgrind.out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}",
             "--toggle-collect=roles_count", bench, *args.split(), "-n", str(messages), "--crc",
             "pclmul", "--no-huge", "--json"], env=environment(), capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{name}: polca-bench ended with {run.returncode}:\n{run.stderr}")
        done = json.loads(run.stdout)["tables"][0]["rows"][0]["iterations"]
        cost = inclusive(profile)
    if not all(cost.values()):
        sys.exit(f"{name}: callgrind has seen nothing of {' and '.join(ROLES)}")
    return [cost[r] / done / packets for r in ROLES]


def table_rows(text):
    """What is written: name -> together."""
    if BEGIN not in text or END not in text:
        sys.exit(f"{TABLE}: there is no table between the marks")
    rows = text.split(BEGIN)[1].split(END)[0].splitlines()
    cells = [[c.strip() for c in r.strip("|").split("|")] for r in rows if r.startswith("|")]
    return {c[0]: float(c[4]) for c in cells[len(HEAD):]}


def update(text, figures):
    rows = [f"| {name} | {what} | {a:.0f} | {b:.0f} | {a + b:.0f} |"
            for (name, what, *_), (a, b) in figures]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    TABLE.write_text("\n".join([before + BEGIN, *HEAD, *rows, END + after]))


def compare(written, figures):
    """@return how many rows are wrong"""
    wrong = 0
    print(f"{'':24} {'for':18} {'requester':>9} {'responder':>9} {'together':>9} {'written':>8}")
    for (name, what, *_), (a, b) in figures:
        old = written.get(name)
        off = abs(a + b - old) / old if old else 1
        wrong += off > TOLERANCE
        print(f"{name:24} {what:18} {a:9.0f} {b:9.0f} {a + b:9.0f} {old or 0:8.0f} "
              f"{f'{(a + b - old) / old:+.1%}' if old else 'missing'}"
              f"{'  not as docs/performance.md says' if off > TOLERANCE else ''}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("bench", metavar="POLCA_BENCH")
    p.add_argument("--case", default="", help="only those whose name has it")
    p.add_argument("--update", action="store_true", help="write the table")
    a = p.parse_args()
    cases = [c for c in CASES if a.case.lower() in c[0].lower()]
    if not cases:
        sys.exit(f"--case: got {a.case!r}, there are {', '.join(c[0] for c in CASES)}")
    if a.update and a.case:
        sys.exit("--update: writes all rows: leave out --case")
    text = TABLE.read_text()
    written = table_rows(text)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        figures = list(zip(cases, pool.map(lambda c: count(a.bench, c), cases)))
    wrong = compare(written, figures)
    if a.update:
        update(text, figures)
    elif wrong:
        sys.stdout.flush()
        sys.exit(f"{wrong} of {len(cases)} differ by more than {TOLERANCE:.0%}: see what costs, or "
                 "write it down with --update")


if __name__ == "__main__":
    main()
