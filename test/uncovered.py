#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Compare the lines that no test has run with docs/coverage.md, which has a reason for each.

usage: uncovered.py GCOVR_JSON [--rows]

A function with more such lines than the document says is a failure. A row whose lines are all run now is
reported, not a failure: rare races are run by chance. --rows prints what the document would have to say.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "coverage.md"
FOLDERS = ("lib/rc/", "lib/wire/", "lib/mem/", "lib/mad/")


def listed():
    """@return lines by file and function, as the document says"""
    rows, name = {}, ""
    for line in DOCUMENT.read_text().split("\n"):
        if m := re.match(r"## (lib/\S+)$", line):
            name = m.group(1)
        elif m := re.match(r"\| `(\w+)` \| (\d+) \| .*\S \|$", line):
            rows[name, m.group(1)] = int(m.group(2))
    return rows


def counted(report):
    """@return numbers of the lines that were not run, by file and function"""
    found = {}
    for f in json.loads(pathlib.Path(report).read_text())["files"]:
        if not f["file"].startswith(FOLDERS):
            continue
        begins = sorted((x["lineno"], x["name"]) for x in f["functions"])
        for line in f["lines"]:
            if line["count"] == 0 and not line.get("gcovr/noncode"):
                at = line["line_number"]
                name = [name for begin, name in begins if begin <= at][-1:] or ["?"]
                found.setdefault((f["file"], name[0]), []).append(at)
    return found


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    rows, found = listed(), counted(sys.argv[1])
    if sys.argv[2:] == ["--rows"]:
        for (name, function), lines in sorted(found.items()):
            print(f"{name} | `{function}` | {len(lines)} |")
        return 0
    bad = 0
    for (name, function), lines in sorted(found.items()):
        if len(lines) > rows.get((name, function), 0):
            bad += 1
            print(f"{name}: {function}: no test runs {len(lines)} lines ({', '.join(map(str, lines))}); "
                  f"docs/coverage.md has a reason for {rows.get((name, function), 0)}")
    for name, function in sorted(set(rows) - set(found)):
        print(f"{name}: {function}: all lines were run; docs/coverage.md may say so")
    print(f"{sum(map(len, found.values()))} lines are run by no test, {bad} functions without a reason for theirs")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
