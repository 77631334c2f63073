#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Change one token of the protocol code at a time, and check that a test fails.

The mutants are a seeded random sample of the function bodies of lib/{rc,wire,mem,mad,cm,sa}: the
same seed gives the same order. A mutant's place in it depends on its line alone, so a change of
other lines leaves the sample as it was: runs before and after it can be compared. Each is built in
a copy of the tree (two at a time), never in the tree itself. First the unit tests of the mutant's
folder run, then, if they pass, a short simulation (not with --units). A mutant is killed if a test
fails, crashes or hangs; it survives if everything passes. A survivor is a rule without a test, or a
change without effect.

A test hangs if it needs far more CPU time than before. As a slow machine can do that, too, the test
then runs once more without the change: if that needs more than a quarter of a limit, nothing is
known about the mutant, and it does not count.

The step fails if the share of killed mutants is below the floor.

200 mutants of the protocol's four largest rooms, against their unit tests alone (a quarter of an hour):
  test/mutate.py --mutants 200 --units --minutes 480 --files lib/rc lib/cm lib/mad lib/sa
The survivors of that run, or the mutants that --list prints in another tree, judged again here:
  test/mutate.py --units --again FILE
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from interruptible import interruptible

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("rc", "wire", "mem", "mad", "cm", "sa")
# Text for people and hints to the CPU: a change there violates no rule. Run-time checks are not in
# the build that is changed here, as its asserts.
SKIP_FILES = ("names.c", "verbs_names.c", "print.c", "prefetch.c", "check.c")
SKIP_LINES = re.compile(r"^\s*#|assert|ASSERT|prefetch|RTE_SET_USED|snprintf|printf|_log\b|\bfree\(|\bcase\b")
FLOOR = 0.85  # share of the built and tested mutants; seed 1 had 80 of 89 when this was written
NO_VERDICT = ("not compiled", "not judged")
LEAST = 40  # a smaller sample is not significant
SIMULATION = ["build/test/polca-sim", "--seeds", "60", "--jobs", "1"]
SIMULATION_TARGETS = ["test/polca-sim"]
BUILD_LIMIT = 600
CPU_LEAST = 10  # a test may take so many seconds of CPU time ...
CPU_TIMES = 10  # ... and so many times what it took before
WALL_TIMES = 10  # and so many times that limit in real time: for tests that sleep for ever
MEMORY_LIMIT = 8 << 30
NOT_COPIED = ("build", "build-*", ".git", "__pycache__")
SETUP = ("-Dtests=true",)

# pattern to replace in code whose comments and strings are blanked, and replacements
OPERATORS = [
    (r" == ", " != "), (r" != ", " == "),
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r"(?<=[\w)\]]) \+ (?=[\w(&*!~-])", " - "), (r"(?<=[\w)\]]) - (?=[\w(&*!~])", " + "),
    (r" \+= ", " -= "), (r" -= ", " += "), (r"\+\+", "--"), (r"(?<!-)--(?!-)", "++"),
    (r" && ", " || "), (r" \|\| ", " && "),
    (r"!(?=[\w(])", ""),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
]
NUMBER = re.compile(r"(?<![\w.])(0x[0-9A-Fa-f]+|\d+)(?![\w.])")
# of another value than 0; the numbers and truth values are replaced above
RETURN = re.compile(r"(?<=return )(?!NULL;)(?=.*[a-z]).+(?=;$)")
# a call, assignment or increment alone on its line; a declaration has two words before its `=`
STATEMENT = re.compile(r"^\t+(?:[\w.\[\]()*&>+-]+ (?:[-+|&^]|<<|>>)?= .*|[\w.\[\]>-]+(?:\+\+|--)|\w+\(.*\));$")


class Stopped(Exception):
    """The time is over, or the user pressed Ctrl-C."""


@functools.cache
def original(name):
    """A source file as it was at the start of the run: the tree may be edited meanwhile."""
    return (ROOT / name).read_text()


def blanked(text):
    """The text with blanks in place of comments and of the contents of strings and characters."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def body_lines(lines):
    """Numbers of the lines inside functions: in house style, both outer braces are in the first
    column."""
    inside = False
    for i, line in enumerate(lines):
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside:
            yield i


def mutants_of(path):
    """Every single-token change of one file: (path, line, column, old, new)."""
    name = str(path.relative_to(ROOT))
    code = blanked(original(name)).split("\n")
    for i in body_lines(code):
        line = code[i]
        if SKIP_LINES.search(line):
            continue
        for pattern, new in OPERATORS:
            for m in re.finditer(pattern, line):
                yield name, i, m.start(), m.group(0), new
        for m in NUMBER.finditer(line):
            old = m.group(1)
            yield name, i, m.start(), old, f"({old} + 1)"
        for m in RETURN.finditer(line):
            if m.group(0) not in ("true", "false"):
                yield name, i, m.start(), m.group(0), "0"
        if STATEMENT.match(line):
            indent = len(line) - len(line.lstrip())
            yield name, i, indent, line[indent:], ";"


def sources(wanted):
    for folder in FOLDERS:
        for path in sorted((ROOT / "lib" / folder).glob("*.c")):
            name = str(path.relative_to(ROOT))
            if path.name not in SKIP_FILES and (not wanted or any(name.startswith(w) for w in wanted)):
                yield path


def in_order(mutants, seed):
    """The sample's order: by a hash of each mutant's line and change, and not of its line's number."""
    seen = {}

    def place(mutant):
        name, number, column, old, new = mutant
        line = original(name).split("\n")[number]
        key = f"{seed} {name.split('/')[1]} {line.strip()} {column - len(line) + len(line.lstrip())} {old} {new}"
        seen[key] = seen.get(key, 0) + 1
        return hashlib.sha256(f"{key} {seen[key]}".encode()).digest()

    return sorted(mutants, key=place)


def cpu_limit(seconds):
    """For a test that took so many seconds of CPU time."""
    return math.ceil(CPU_LEAST + CPU_TIMES * seconds)


class Done:
    """What a command did: its exit status (None: it was ended by a limit), output, and seconds of real and CPU time."""

    def __init__(self, status, output, wall, cpu):
        self.status, self.output, self.wall, self.cpu = status, output, wall, cpu

    def quick(self, limit):
        """True if it needed less than a quarter of both limits."""
        return self.status is not None and self.cpu < limit / 4 and self.wall < limit * WALL_TIMES / 4


class Processes:
    """The running commands, to end all of them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.stopped = False

    def run(self, argv, cwd, wall, cpu=None, keep=False):
        """@param wall, cpu  limits of real time and of CPU time, in seconds. @return Done"""
        with tempfile.TemporaryFile() as out:
            with self.lock:
                if self.stopped:
                    raise Stopped
                begin = time.monotonic()
                p = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.DEVNULL, start_new_session=True,
                                     stdout=out if keep else subprocess.DEVNULL, stderr=subprocess.STDOUT,
                                     preexec_fn=lambda: bounded(cpu))
                self.running.add(p)
            try:
                in_time = ends_within(p, wall)
            finally:
                kill_group(p)
                _, status, usage = os.wait4(p.pid, 0)
                p.returncode = os.waitstatus_to_exitcode(status)
                with self.lock:
                    self.running.discard(p)
            if self.stopped:
                raise Stopped
            used = usage.ru_utime + usage.ru_stime
            # The process that reached its limit may be a child of this command, which then ends as it likes. The
            # kernel checks limits by a coarser clock, and may be early.
            if cpu is not None and used > cpu / 2:
                in_time = False
            out.seek(0)
            return Done(p.returncode if in_time else None, out.read().decode(errors="replace"),
                        time.monotonic() - begin, used)

    def stop(self):
        with self.lock:
            self.stopped = True
            for p in self.running:
                kill_group(p)


def ends_within(p, seconds):
    fd = os.pidfd_open(p.pid)
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)


def bounded(cpu):
    os.nice(10)
    if cpu is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def kill_group(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Copy:
    """A copy of the tree with its build directory."""

    def __init__(self, folder, processes, units):
        self.folder, self.processes, self.units = folder, processes, units
        self.build = folder / "build"
        self.tests = {}  # folder of lib -> [(argv, seconds of CPU time that it takes)]
        self.targets = {}  # folder of lib -> what ninja builds for them
        self.dirty = None  # the file to put back

    def relative(self, word):
        """A path of meson's to the build directory."""
        return os.path.relpath(self.build / word, self.build)

    def command(self, argv, what, cwd="."):
        done = self.processes.run(argv, self.folder / cwd, BUILD_LIMIT, keep=True)
        if done.status != 0:
            sys.exit(f"{what} failed without any mutant (status {done.status}):\n{done.output[-3000:]}")
        return done

    def introspect(self, what):
        return json.loads(self.command(["meson", "introspect", "build", what], "meson introspect").output)

    def prepare(self, folders):
        """Copy, build, and run every test once: a test that fails without a mutant is useless."""
        shutil.copytree(ROOT, self.folder, ignore=shutil.ignore_patterns(*NOT_COPIED), dirs_exist_ok=True)
        self.command(["meson", "setup", "build", *SETUP], "meson setup")
        tests = self.introspect("--tests")
        files = {t["id"]: [os.path.relpath(f, self.build) for f in t["filename"]] for t in self.introspect("--targets")}
        for folder in folders:
            mine = [t for t in tests if any(s.endswith("unit") for s in t["suite"]) and
                    any(self.relative(w).removeprefix("../").startswith(f"test/{folder}/") for w in t["cmd"])]
            words = {self.relative(w) for t in mine for w in t["cmd"]}
            self.targets[folder] = sorted({f for t in mine for d in t["depends"] for f in files.get(d, ())} |
                                          {w for w in words if w.startswith("test/")})
            self.tests[folder] = [(t["cmd"], 0) for t in mine]
        self.command(["ninja", "-C", "build", *([] if self.units else SIMULATION_TARGETS),
                      *sorted({t for ts in self.targets.values() for t in ts})], "the build")
        for folder, tests in self.tests.items():
            timed = [(argv, self.command(argv, f"test {' '.join(argv)}", "build").cpu) for argv, _ in tests]
            self.tests[folder] = sorted(timed, key=lambda t: t[1])
        if self.units:
            return
        done = self.processes.run(SIMULATION, self.folder, BUILD_LIMIT, keep=True)
        if done.status is None or simulation_failure(done):
            sys.exit("the simulation fails without any mutant")
        self.sim_seconds = done.cpu

    def restore(self):
        """Put back the file that was changed last."""
        if self.dirty:
            (self.folder / self.dirty).write_text(original(self.dirty))
        self.dirty = None

    def change(self, mutant):
        name, number, column, old, new = mutant
        self.restore()
        self.dirty = name
        lines = original(name).split("\n")
        line = lines[number]
        lines[number] = line[:column] + new + line[column + len(old):]
        (self.folder / name).write_text("\n".join(lines))

    def builds(self, targets):
        return self.processes.run(["ninja", "-C", "build", *targets], self.folder, BUILD_LIMIT).status == 0

    def judge(self, mutant):
        """@return (verdict, the test that decided)"""
        folder = mutant[0].split("/")[1]
        self.change(mutant)
        if not self.builds(self.targets[folder]):
            return "not compiled", ""
        for argv, seconds in self.tests[folder]:
            done = self.limited(argv, "build", seconds)
            name = next(pathlib.Path(w).name for w in argv if "/test/" in w)
            if done.status is None:
                return self.judge_late(name, self.targets[folder], argv, "build", seconds)
            if done.status != 0:
                return "killed", name
        if self.units:
            return "survived", ""
        if not self.builds(SIMULATION_TARGETS):
            return "not compiled", ""
        done = self.limited(SIMULATION, ".", self.sim_seconds)
        if done.status is None:
            return self.judge_late("simulation", SIMULATION_TARGETS, SIMULATION, ".", self.sim_seconds)
        why = simulation_failure(done)
        return ("killed", f"simulation: {why}") if why else ("survived", "")

    def limited(self, argv, cwd, seconds):
        """Run a test that took so many seconds of CPU time without a mutant."""
        limit = cpu_limit(seconds)
        return self.processes.run(argv, self.folder / cwd, limit * WALL_TIMES, limit, keep=argv is SIMULATION)

    def judge_late(self, name, targets, argv, cwd, seconds):
        """A test with a mutant reached a limit: does it without the mutant, on this machine, now?"""
        self.restore()
        if self.builds(targets) and self.limited(argv, cwd, seconds).quick(cpu_limit(seconds)):
            return "killed", f"{name} hangs"
        return "not judged", f"{name} is slow without it, too"


def simulation_failure(done):
    """Decide by the output: the exit status also reports that few seeds cannot reach everything."""
    bad = re.search(r"^seed \d+.*|^job \d+ died", done.output, re.M)
    return bad.group(0)[:100] if bad else None


def show(mutant):
    name, number, _, old, new = mutant
    text = original(name).split("\n")[number].strip()
    return f"{name}:{number + 1}: `{old.strip()}` -> `{new.strip() or '(nothing)'}` in: {text}"


def without_place(shown):
    """What show() prints, without file and line: code moves within its folder."""
    return re.sub(r"^lib/(\w+)/\S+:\d+: ", r"\1 ", shown)


def named_in(path, mutants):
    """The mutants that a file names as --list and the list of survivors do, in the sample's order:
    at the same place, or else all of the same change in the same folder."""
    named = {line.strip() for line in pathlib.Path(path).read_text().split("\n")
             if re.match(r"\s*lib/\w+/\S+:\d+: `", line)}
    exact = named & {show(m) for m in mutants}
    moved = {without_place(n) for n in named - exact}
    here = [m for m in mutants if show(m) in exact or without_place(show(m)) in moved]
    gone = moved - {without_place(show(m)) for m in here}
    print(f"{path} names {len(named)} changes; {len(gone)} are of lines that this tree has not")
    for change in sorted(gone):
        print(f"  gone: {change}")
    return here


class Run:
    """The sample, shared by the copies."""

    def __init__(self, mutants, most, deadline, log):
        self.mutants, self.most, self.deadline, self.log = iter(mutants), most, deadline, log
        self.lock = threading.Lock()
        self.results = []

    def work(self, copy):
        while time.monotonic() < self.deadline:
            with self.lock:
                mutant = next(self.mutants, None) if self.most > 0 else None
                self.most -= 1
            if mutant is None:
                return
            try:
                verdict, who = copy.judge(mutant)
            except Stopped:
                return
            with self.lock:
                self.most += verdict in NO_VERDICT
                self.results.append((mutant, verdict))
                print(f"{verdict:12} {show(mutant)[:140]}{'   by ' + who if who else ''}", file=self.log, flush=True)

    def count(self, verdict, folder=""):
        return sum(v == verdict and m[0].startswith(f"lib/{folder}") for m, v in self.results)

    def count_without(self):
        """The mutants that nothing is known about."""
        return sum(self.count(v) for v in NO_VERDICT)


def report(run, total, seed):
    """@return the share of mutants killed, and of how many"""
    survivors = sorted(m for m, v in run.results if v == "survived")
    if survivors:
        print("\nsurvivors:")
    for m in survivors:
        print(f"  {show(m)}")
    print(f"\n{'folder':12} {'killed':>7} {'survived':>9} {'not compiled':>13} {'not judged':>11} {'score':>6}")
    for name in (*FOLDERS, ""):
        folder = f"{name}/" if name else ""
        killed, survived = run.count("killed", folder), run.count("survived", folder)
        if killed + survived:
            print(f"{'lib/' + name if name else 'together':12} {killed:7} {survived:9} "
                  f"{run.count('not compiled', folder):13} {run.count('not judged', folder):11} "
                  f"{killed / (killed + survived):6.0%}")
    print(f"a sample of {len(run.results)} of {total} mutants, seed {seed}")
    judged = run.count("killed") + run.count("survived")
    return (run.count("killed") / judged if judged else 0), judged


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--minutes", type=float, default=10, help="time for the mutants; building the copies comes on top")
    p.add_argument("--mutants", type=int, default=sys.maxsize, help="judge so many that compile, then end")
    p.add_argument("--units", action="store_true", help="only the unit tests of the mutant's folder, no simulation")
    p.add_argument("--seed", type=int, default=1, help="order of the sample")
    p.add_argument("--files", nargs="+", default=[], help="only files whose path begins so, as lib/rc/responder.c")
    p.add_argument("--again", metavar="FILE", help="only the mutants that this file names as --list does")
    p.add_argument("--jobs", type=int, default=2, help="copies of the tree")
    p.add_argument("--list", action="store_true", help="print the mutants in the sample's order, and end")
    a = p.parse_args()
    mutants = [m for path in sources(a.files) for m in mutants_of(path)]
    if not mutants:
        sys.exit(f"--files: no mutant in {' '.join(a.files)}; paths are those of lib/{{{','.join(FOLDERS)}}}")
    mutants = in_order(mutants, a.seed)
    if a.again:
        mutants = named_in(a.again, mutants)
    if a.list:
        print("\n".join(show(m) for m in mutants))
        return 0
    interruptible()
    processes = Processes()
    folders = sorted({m[0].split("/")[1] for m in mutants})
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="polca-mutate-"))
    begin = time.monotonic()
    run = Run(mutants, a.mutants, float("inf"), sys.stdout)
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=a.jobs)

    def stage(text):
        print(f"[{time.monotonic() - begin:4.0f} s] {text}", flush=True)

    def all_copies(what, until, doing):
        """Do this in every copy, and print a line every ten seconds."""
        jobs = [pool.submit(what, c) for c in copies]
        while not concurrent.futures.wait(jobs, 10).done == set(jobs):
            stage(doing())
            if time.monotonic() > until:
                processes.stop()
        for j in jobs:
            j.result()

    try:
        stage(f"{len(mutants)} mutants in {', '.join('lib/' + f for f in folders)}; making {a.jobs} copies of the tree")
        copies = []
        for i in range(a.jobs):
            (scratch / str(i)).mkdir()
            copies.append(Copy(scratch / str(i), processes, a.units))
        all_copies(lambda c: c.prepare(folders), float("inf"),
                   lambda: "building and testing the copies without mutants")
        run.deadline = time.monotonic() + a.minutes * 60
        all_copies(run.work, run.deadline + 120, lambda: f"{run.count('killed')} killed, "
                   f"{run.count('survived')} survived, {run.count('not compiled')} not compiled")
    except KeyboardInterrupt:
        print("\ninterrupted; what is known so far:")
        report(run, len(mutants), a.seed)
        return 130
    finally:
        processes.stop()
        pool.shutdown(wait=True)
        shutil.rmtree(scratch, ignore_errors=True)
    score, judged = report(run, len(mutants), a.seed)
    if judged < min(LEAST, a.mutants) and judged < len(mutants) - run.count_without():
        sys.exit(f"only {judged} mutants were judged: at least {LEAST} make a sample; give it more --minutes")
    if not a.files and not a.again and judged >= LEAST and score < FLOOR:
        sys.exit(f"{score:.1%} were killed, the floor is {FLOOR:.0%}: write tests for the survivors above")
    return 0


if __name__ == "__main__":
    sys.exit(main())
