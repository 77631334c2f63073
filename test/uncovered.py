#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Compare the lines that no test has run with docs/coverage.md, which has a reason for each.

usage: uncovered.py                        check only that each row names one line of the source
       uncovered.py GCOVR_JSON [--rows]    compare; --rows prints what the document would have to say

A row names a function and the text of its lines, each in backquotes: a piece of the source, white space apart,
that ends in the line and is found once in the function. A line whose own text is found twice is named with what
stands before it: `if (a == NULL) return -1;`. In a table `|` is written `\\|`.

Each of these is a failure: a line that was not run and has no row, a row whose text is not found once, and a row
whose line was run. Only rows whose reason begins with `race:` or `machine:` may have been run: chance or the
machine decides.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = "docs/coverage.md"
FOLDERS = ("lib/rc/", "lib/wire/", "lib/mem/", "lib/mad/")
FUNCTION = re.compile(r"^(?!__attribute__)(\w+)\([^;{}]*\)\n\{.*?^\}", re.M | re.S)
HEADER = "| Function | Lines | Why |"


class Row:
    def __init__(self, at, file, function, piece, why):
        self.at, self.file, self.function, self.piece, self.why = at, file, function, piece, why
        self.by_chance = why.startswith(("race:", "machine:"))

    def fault(self, what):
        return f"{DOCUMENT}:{self.at}: {self.file}: {self.function}(): {what}"


class Source:
    """The functions of one file, each as pairs of a line's number and text. #if may define one twice."""

    def __init__(self, path):
        self.functions = {}
        text = path.read_text() if path.is_file() else ""
        for m in FUNCTION.finditer(text):
            first = text.count("\n", 0, m.start()) + 1
            self.functions.setdefault(m.group(1), []).extend(enumerate(m.group(0).split("\n"), first))

    def function_at(self, number):
        """@return name of the function with this line, or "?" """
        for name, lines in self.functions.items():
            if any(number == n for n, _ in lines):
                return name
        return "?"

    def lines_with(self, function, piece):
        """@return for each place of the piece in the function, the number of the line in which it ends"""
        text, line_of = "", []
        for number, line in self.functions[function]:
            for word in line.split():
                text += word + " "
                line_of += [number] * (len(word) + 1)
        piece = " ".join(piece.split())
        return [line_of[m.end(1) - 1] for m in re.finditer(f"(?=({re.escape(piece)}))", text)]

    def piece_for(self, number):
        """@return a text that names this line: its own, or with as many lines before it as it takes"""
        function, piece = self.function_at(number), ""
        if function == "?":
            return "?"
        for n, line in reversed(self.functions[function]):
            if n <= number:
                piece = " ".join(line.split() + piece.split())
            if piece and self.lines_with(function, piece) == [number]:
                break
        return piece


class Sources(dict):
    def __missing__(self, file):
        self[file] = Source(ROOT / file)
        return self[file]


def cells(line):
    return [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]


def listed():
    """@return the document's rows, one for each line they name, and what is wrong with their form"""
    rows, wrong, file = [], [], ""
    for at, line in enumerate((ROOT / DOCUMENT).read_text().split("\n"), 1):
        if line.startswith("## "):
            m = re.match(r"## (lib/\S+)$", line)
            file = m.group(1) if m else ""
        elif file and line.startswith("|") and line != HEADER and not line.startswith("|---"):
            row = cells(line)
            pieces = re.findall(r"`([^`]+)`", row[1]) if len(row) == 3 else []
            if not pieces or not re.fullmatch(r"`\w+`", row[0]) or not row[2]:
                wrong.append(f"{DOCUMENT}:{at}: not a row of a function, lines in backquotes and a reason: {line}")
            rows += [Row(at, file, row[0].strip("`"), piece, row[2]) for piece in pieces]
    return rows, wrong


def find_lines(rows, sources):
    """@return the rows by file and line, and what is wrong with the others"""
    by_line, wrong = {}, []
    for row in rows:
        if not (ROOT / row.file).is_file():
            wrong.append(row.fault("there is no such file"))
            continue
        if row.function not in sources[row.file].functions:
            wrong.append(row.fault("the file does not define this function"))
            continue
        lines = sources[row.file].lines_with(row.function, row.piece)
        if len(lines) != 1:
            wrong.append(row.fault(f"`{row.piece}` is found {len(lines)} times: a row names one line"))
        elif (row.file, lines[0]) in by_line:
            wrong.append(row.fault(f"`{row.piece}`: an earlier row names this line"))
        else:
            by_line[row.file, lines[0]] = row
    return by_line, wrong


def wrong_rows():
    """@return what is wrong with the document as far as the source tells"""
    rows, wrong = listed()
    return wrong + find_lines(rows, Sources())[1]


def not_run(report):
    """@return the lines that were not run, as pairs of file and number"""
    return sorted((f["file"], line["line_number"]) for f in json.loads(pathlib.Path(report).read_text())["files"]
                  if f["file"].startswith(FOLDERS)
                  for line in f["lines"] if line["count"] == 0 and not line.get("gcovr/noncode"))


def compare(report):
    """@return what is wrong with the document after this run of the tests"""
    sources = Sources()
    rows, wrong = listed()
    by_line, unclear = find_lines(rows, sources)
    wrong += unclear
    lines = not_run(report)
    for file, number in lines:
        if (file, number) not in by_line:
            wrong.append(f"{file}:{number}: {sources[file].function_at(number)}(): no test runs "
                         f"`{sources[file].piece_for(number)}`: write a test, or its reason in {DOCUMENT}")
    for at in sorted(set(by_line) - set(lines)):
        if not by_line[at].by_chance:
            wrong.append(by_line[at].fault(f"a test runs `{by_line[at].piece}`: remove it from the row"))
    return wrong


def print_rows(report):
    sources, file, pieces = Sources(), "", {}
    for name, number in not_run(report):
        pieces.setdefault((name, sources[name].function_at(number)), []).append(sources[name].piece_for(number))
    for name, function in pieces:
        if name != file:
            file = name
            print(f"\n## {file}\n\n{HEADER}\n|---|---|---|")
        text = ", ".join(f"`{p}`" for p in pieces[name, function]).replace("|", "\\|")
        print(f"| `{function}` | {text} | |")


def main():
    words = sys.argv[1:]
    if len(words) > 2 or words[1:] not in ([], ["--rows"]) or (words and words[0].startswith("-")):
        print(__doc__)
        return 2
    if words[1:]:
        print_rows(words[0])
        return 0
    wrong = compare(words[0]) if words else wrong_rows()
    for why in wrong:
        print(why)
    if words:
        print(f"{len(not_run(words[0]))} lines are run by no test; {DOCUMENT} is wrong in {len(wrong)} places")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
