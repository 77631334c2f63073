#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Check docs/conformance.md: every row has code and tests, and they exist.

Row: | id | source | rule | `path: function, function` | `path::test`, `path::test` |
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# A function of C in house style, a macro, or a function of Python or of the shell; a call or a declaration is none.
DEFINITION = r"^(?:{name}\([^;{{}}]*\)\n\{{|#define {name}\(|def {name}\(|{name}\(\) \{{)"
HEADER = "| id | source | rule, in our words | code | test |"


def text(path):
    file = ROOT / path
    return file.read_text() if file.is_file() else None


def check_code(cell):
    match = re.fullmatch(r"`([^`:]+)(?:: ([\w, ]+))?`", cell)
    if not match:
        yield f"code: got {cell!r}, expected `path: function`"
        return
    source = text(match[1])
    if source is None:
        yield f"code: there is no {match[1]}"
        return
    for name in re.split(r",\s*", match[2]) if match[2] else []:
        if not re.search(DEFINITION.format(name=name), source, re.M):
            yield f"code: {match[1]} does not define {name}()"


def check_tests(cell):
    if not cell:
        yield "no test"
    for item in filter(None, re.split(r",\s*", cell)):
        match = re.fullmatch(r"`([^`]+)::(\w+)`", item)
        if not match:
            yield f"test: got {item!r}, expected `path::name`"
            continue
        path, name = match.groups()
        source = text(path)
        pattern = rf"^def {name}\(" if path.endswith(".py") else rf"^{name}\("
        if source is None:
            yield f"test: there is no {path}"
        elif not re.search(pattern, source, re.M):
            yield f"test: {path} has no {name}"
        elif path.endswith(".c") and len(re.findall(rf"\b{name}\b", source)) < 2:
            yield f"test: {path} defines {name} and never runs it"


def check(lines):
    seen = set()
    in_table = False
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            in_table = False
            continue
        if not in_table:
            in_table = True
            if line != HEADER:
                yield number, f"a table's columns are: {HEADER}"
            continue
        if re.fullmatch(r"[|\- ]+", line):
            continue
        cells = [c.strip() for c in line.strip("|").split(" | ")]
        if len(cells) != 5:
            yield number, f"{len(cells)} cells where 5 belong"
            continue
        row, _, rule, code, tests = cells
        if row in seen:
            yield number, f"{row}: a second row of this id"
        seen.add(row)
        if not rule:
            yield number, f"{row}: no rule"
        for why in (*check_code(code), *check_tests(tests)):
            yield number, f"{row}: {why}"
    if not seen:
        yield 0, "no rows"


def main():
    path = ROOT / "docs/conformance.md"
    wrong = list(check(path.read_text().splitlines()))
    for number, why in wrong:
        print(f"docs/conformance.md:{number}: {why}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
