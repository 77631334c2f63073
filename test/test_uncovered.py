#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What test/uncovered.py finds wrong in a small tree whose document and report the test writes."""

import json
import pathlib
import tempfile
import unittest

import uncovered

FILE = "lib/rc/part.c"
SOURCE = """
static int
open_both(struct pair *p)
{
    p->a = take(p);
    if (p->a == NULL)
        return -ENOMEM;
    p->b = take(p);
    if (p->b == NULL ||
        p->b == p->a)
        return -ENOMEM;
    return 0;
}

int
close_both(struct pair *p)
{
    give(p->a);
    return 0;
}
"""
SECOND = "`p->b == p->a) return -ENOMEM;`"  # line 11


class Uncovered(unittest.TestCase):
    def setUp(self):
        tree = tempfile.TemporaryDirectory()
        self.addCleanup(tree.cleanup)
        self.addCleanup(setattr, uncovered, "ROOT", uncovered.ROOT)
        uncovered.ROOT = self.root = pathlib.Path(tree.name)
        (self.root / "lib/rc").mkdir(parents=True)
        (self.root / "docs").mkdir()
        (self.root / FILE).write_text(SOURCE)

    def document(self, *rows):
        (self.root / uncovered.DOCUMENT).write_text("\n".join([
            "# Lines", f"## {FILE}", "", uncovered.HEADER, "|---|---|---|", *rows, "", "## Others", "| `x` | 1 | y |"]))

    def compare(self, *lines):
        """The report says that these lines were not run, and those of another folder."""
        counts = [{"line_number": n, "count": int(n not in lines)} for n in range(5, 30)]
        report = self.root / "report.json"
        report.write_text(json.dumps({"files": [{"file": FILE, "lines": counts},
                                                {"file": "lib/sa/part.c", "lines": counts}]}))
        return uncovered.compare(report)

    def test_rows_that_are_true(self):
        self.document(f"| `open_both` | {SECOND} | no memory |", "| `close_both` | `give(p->a)` | nobody closes |")
        self.assertEqual(self.compare(11, 18), [])
        self.assertEqual(uncovered.wrong_rows(), [])

    def test_line_without_row(self):
        self.document(f"| `open_both` | {SECOND} | no memory |")
        self.assertEqual(self.compare(11, 18), [
            f"{FILE}:18: close_both(): no test runs `give(p->a);`: write a test, or its reason in docs/coverage.md"])

    def test_one_line_in_place_of_another(self):
        self.document(f"| `open_both` | {SECOND} | no memory |")
        self.assertEqual(self.compare(7), [
            f"{FILE}:7: open_both(): no test runs `if (p->a == NULL) return -ENOMEM;`: write a test, or its reason "
            "in docs/coverage.md",
            f"docs/coverage.md:6: {FILE}: open_both(): a test runs `p->b == p->a) return -ENOMEM;`: "
            "remove it from the row"])

    def test_row_with_a_line_too_many(self):
        self.document("| `close_both` | `give(p->a)`, `return 0` | nobody closes |")
        self.assertEqual(self.compare(18), [
            f"docs/coverage.md:6: {FILE}: close_both(): a test runs `return 0`: remove it from the row"])

    def test_lines_that_chance_or_the_machine_decides(self):
        for why in ("race: two close at once", "machine: it has no hugepages"):
            self.document(f"| `close_both` | `give(p->a)` | {why} |")
            self.assertEqual(self.compare(), [])
            self.assertEqual(self.compare(18), [])

    def test_functions_that_are_defined_twice(self):
        source = SOURCE + "#else\n" + SOURCE[SOURCE.index("int\nclose_both"):].replace("give", "keep")
        (self.root / FILE).write_text(source)
        self.document("| `close_both` | `keep(p->a)` | nobody closes |")
        number = source[:source.index("keep")].count("\n") + 1
        self.assertEqual(self.compare(number), [])

    def test_text_that_names_no_line(self):
        self.document("| `close_both` | `give(p->b)` | nobody closes |")
        wrong = [f"docs/coverage.md:6: {FILE}: close_both(): `give(p->b)` is found 0 times: a row names one line"]
        self.assertEqual(uncovered.wrong_rows(), wrong)
        self.assertEqual(self.compare(), wrong)

    def test_text_that_names_two_lines(self):
        self.document("| `open_both` | `return -ENOMEM` | no memory |")
        self.assertEqual(uncovered.wrong_rows(), [
            f"docs/coverage.md:6: {FILE}: open_both(): `return -ENOMEM` is found 2 times: a row names one line"])

    def test_two_rows_of_one_line(self):
        self.document("| `close_both` | `give(p->a)` | nobody closes |", "| `close_both` | `give` | nobody closes |")
        self.assertEqual(uncovered.wrong_rows(), [
            f"docs/coverage.md:7: {FILE}: close_both(): `give`: an earlier row names this line"])

    def test_functions_and_files_that_are_not_there(self):
        self.document("| `close_all` | `give(p->a)` | nobody closes |", "", "## lib/rc/gone.c", "",
                      "| `close_both` | `give` | nobody closes |")
        self.assertEqual(uncovered.wrong_rows(), [
            f"docs/coverage.md:6: {FILE}: close_all(): the file does not define this function",
            "docs/coverage.md:10: lib/rc/gone.c: close_both(): there is no such file"])

    def test_rows_of_another_form(self):
        for row in ("| `close_both` | 1 | nobody closes |", "| close_both | `give` | nobody closes |",
                    "| `close_both` | `give` | |", "| `close_both` | `give` |"):
            self.document(row)
            self.assertEqual(uncovered.wrong_rows(), [
                "docs/coverage.md:6: not a row of a function, lines in backquotes and a reason: " + row])

    def test_a_bar_in_the_text(self):
        self.document("| `open_both` | `if (p->b == NULL \\|\\|` | no memory |")
        self.assertEqual(self.compare(9), [])


if __name__ == "__main__":
    unittest.main()
