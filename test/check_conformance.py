#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Check docs/conformance.md: every row has code and tests, and they exist.

Row: | id | source | rule | `path: function, function`, `path: function` | `path::test`, `path::test` |

A rule whose code stands twice is one of at most PAIRS_MAX pairs, in a table of its own: a common case, the general case
and the switch that turns the common case off. A row that cites one of the three must cite both cases; a row that cites
a file without functions cites each function of this file. Each switch in lib is in this table, or in that of the common
cases that have no code of their own: there, one function is both cases, so that at least two places call it. A common
case with code that nothing else calls is a pair.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# A function of C in house style, a macro, or a function of Python or of the shell; a call or a declaration is none.
DEFINITION = r"^(?:{name}\([^;{{}}]*\)\n\{{|#define {name}\(|def {name}\(|{name}\(\) \{{)"
HEADER = "| id | source | rule, in our words | code | test |"
PAIRS = "| pair | common case | general case | switch |"
SHAPES = "| common case | function | switch |"
PAIRS_MAX = 4
SWITCH = "COMMON_CASE("


def text(path):
    file = ROOT / path
    return file.read_text() if file.is_file() else None


def cited(cell):
    """@return set of (path, function), None for a whole file; None if the cell is malformed"""
    item = r"`([^`:]+)(?:: ([\w, ]+))?`"
    if not re.fullmatch(rf"{item}(?:, {item})*", cell):
        return None
    return {(path, name or None) for path, names in re.findall(item, cell) for name in re.split(r",\s*", names)}


def meet(one, other):
    """Whether two sets of cited() have code in common."""
    return any(path == p and (name == n or None in (name, n)) for path, name in one for p, n in other)


def check_code(cell):
    code = cited(cell)
    if code is None:
        yield f"code: got {cell!r}, expected `path: function`"
        return
    for path, name in sorted(code, key=str):
        source = text(path)
        if source is None:
            yield f"code: there is no {path}"
        elif name and not re.search(DEFINITION.format(name=name), source, re.M):
            yield f"code: {path} does not define {name}()"


def switches():
    """@return set of (path, function): who may turn a common case off"""
    found = set()
    for file in sorted((ROOT / "lib").rglob("*.[ch]")):
        path, name = str(file.relative_to(ROOT)), None
        for line in file.read_text().splitlines():
            match = re.match(r"(\w+)\(", line)
            name = match[1] if match else name
            if SWITCH in line and path != "lib/base/common_case.h":
                found.add((path, name))
    return found


def calls(name):
    """How many places in lib call a function; neither its definition, nor a declaration, nor a comment is one."""
    found = 0
    for file in (ROOT / "lib").rglob("*.[ch]"):
        source = file.read_text()
        if name in source:
            source = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
            found += sum(len(re.findall(rf"\b{name}\(", line)) for line in source.splitlines() if line.startswith("\t"))
    return found


def check_shape(code):
    """What is wrong with the code of a common case that has none of its own."""
    (path, name), *more = sorted(code, key=str)
    if more or name is None:
        yield "one function is the common and the general case; more are a pair"
    elif calls(name) < 2:
        yield f"{path}: {name}() is called once, so the general case is other code: a pair"


class Pairs:
    """The tables of the common cases."""

    def __init__(self):
        self.pairs = {}  # name: code of the common case, code of the general case, their switch
        self.switches = set()
        self.cited = set()  # names of pairs

    def add(self, cells):
        """A row of either table. Yields what is wrong."""
        name, *code = cells
        for cell in code:
            yield from check_code(cell)
        if any(cited(c) is None for c in code):
            return
        self.switches |= cited(code[-1])
        if len(code) == 3:
            self.pairs[name] = tuple(cited(c) for c in code)
        else:
            yield from check_shape(cited(code[0]))

    def check_row(self, cell):
        code = cited(cell) or set()
        for name, (common, general, switch) in self.pairs.items():
            if not meet(code, common | general | switch):
                continue
            self.cited.add(name)
            for half, what in ((common, "common"), (general, "general")):
                if not meet(code, half):
                    yield f"code: the rule stands twice ({name}); the {what} case is not cited"

    def check_all(self):
        if len(self.pairs) > PAIRS_MAX:
            yield f"{len(self.pairs)} pairs, at most {PAIRS_MAX} are allowed: write the rule once"
        for name in sorted(self.pairs.keys() - self.cited):
            yield f"{name}: no row cites this pair"
        there = switches()
        for path, name in sorted(there - self.switches):
            yield f"{path}: {name}() has a common case that no table lists"
        for path, name in sorted(self.switches - there, key=str):
            yield f"{path}: {name}() has no {SWITCH}...)"


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


def rows(lines):
    """Yields number, header and cells of each row of a table; the cells are None where the header is unknown."""
    header = None
    for number, line in enumerate(lines, 1):
        if not line.startswith("|"):
            header = None
        elif header is None:
            header = line
            if line not in (HEADER, PAIRS, SHAPES):
                yield number, line, None
        elif not re.fullmatch(r"[|\- ]+", line):
            yield number, header, [c.strip() for c in line.strip("|").split(" | ")]


def check_rule(cells, seen):
    row, _, rule, code, tests = cells
    if row in seen:
        yield "a second row of this id"
    seen.add(row)
    if not rule:
        yield "no rule"
    yield from check_code(code)
    yield from check_tests(tests)


def check(lines):
    pairs = Pairs()
    seen = set()
    rules = []
    for number, header, cells in rows(lines):
        if cells is None:
            yield number, f"a table's columns are: {HEADER}"
        elif len(cells) != header.count("|") - 1:
            yield number, f"{len(cells)} cells where {header.count('|') - 1} belong"
        elif header == HEADER:
            rules.append((number, cells))
            yield from ((number, f"{cells[0]}: {why}") for why in check_rule(cells, seen))
        else:
            yield from ((number, f"{cells[0]}: {why}") for why in pairs.add(cells))
    for number, cells in rules:
        yield from ((number, f"{cells[0]}: {why}") for why in pairs.check_row(cells[3]))
    yield from ((0, why) for why in pairs.check_all())
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
