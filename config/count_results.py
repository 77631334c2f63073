#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Count the results of test.sh: count_results.py DIR

DIR has *.meson.json (meson's testlog), *.junit.xml (pytest) and steps.txt. Prints a row per
suite, the names of failed tests, and `N passed, N failed`; exits with 0 only if at least one
test passed and none failed.
"""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml


def meson(path):
    """A cmocka program counts its own tests; any other program is one test."""
    for line in path.read_text().splitlines():
        run = json.loads(line)
        out = run.get("stdout", "")
        ok = re.findall(r"^\[       OK \] (\S+)", out, re.M)
        bad = re.findall(r"^\[  FAILED  \] (\S+)$", out, re.M)
        if run["result"] in ("OK", "EXPECTEDFAIL") and not bad:
            yield from ((f"{run['name']}: {t}", True) for t in ok or ["(program)"])
        else:  # a crash counts even if every test before it passed; a skip is a failure
            yield from ((f"{run['name']}: {t}", True) for t in ok)
            yield from ((f"{run['name']}: {t}", False) for t in sorted(set(bad)) or [run["result"]])


def junit(path):
    for case in xml.parse(path).getroot().iter("testcase"):
        failed = any(case.find(k) is not None for k in ("failure", "error", "skipped"))
        yield f"{case.get('classname')}::{case.get('name')}", not failed


def steps(path):
    for line in path.read_text().splitlines():
        good = line.startswith("ok ")
        yield line[3 if good else 7:], good


def main():
    passed = failed = 0
    for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        read = meson if path.name.endswith(".meson.json") else junit if path.suffix == ".xml" else steps
        results = list(read(path))
        good = sum(ok for _, ok in results)
        print(f"{path.name.split('.')[0]:8} {good:5} passed {len(results) - good:5} failed")
        for name, ok in results:
            if not ok:
                print(f"    FAILED {name}")
        passed += good
        failed += len(results) - good
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
