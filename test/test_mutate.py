#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""How test/mutate.py judges changes of a small tree that this test writes, whose own test a variable of the
environment makes as slow as a loaded machine does."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

import mutate

PART = "lib/rc/part.c"
TREE = {
    "meson.build": "project('small', 'c')\nsubdir('test/rc')\n",
    "test/rc/meson.build": "e = executable('test_part', 'test_part.c', '../../lib/rc/part.c')\n"
                           "test('part', e, suite: 'unit')\n",
    "test/rc/test_part.c": """
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int part_count(int n);
int part_wait(int n);

int
main(void)
{
	const char *slow = getenv("SLOW");
	int status;

	while (slow != NULL && clock() < atof(slow) * CLOCKS_PER_SEC)
		;
	if (fork() == 0)
		_exit(part_count(3) != 3 || part_wait(3) != 3);
	wait(&status);
	return status != 0;
}
""",
    PART: """
#include <unistd.h>

int
part_count(int n)
{
	volatile int i = 0;

	while (i < n)
		i++;
	return i;
}

int
part_wait(int n)
{
	volatile int left = n;

	while (left > 0) {
		usleep(1000);
		left--;
	}
	return n;
}

int
part_spare(int n)
{
	return n + 1;
}
"""}


def mutant(line, old, new):
    """The change of a line of the part."""
    number, = (i for i, text in enumerate(TREE[PART].split("\n")) if text.strip() == line)
    return PART, number, TREE[PART].split("\n")[number].index(old), old, new


SPINS = mutant("i++;", "i++;", ";")
SLEEPS = mutant("left--;", "left--;", ";")


class Judge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tree = tempfile.TemporaryDirectory()
        cls.addClassCleanup(tree.cleanup)
        for name in ("ROOT", "SETUP", "CPU_LEAST", "WALL_TIMES"):
            cls.addClassCleanup(setattr, mutate, name, getattr(mutate, name))
        cls.addClassCleanup(mutate.original.cache_clear)
        mutate.ROOT = pathlib.Path(tree.name) / "tree"
        mutate.SETUP = ()
        mutate.CPU_LEAST = 1
        mutate.WALL_TIMES = 30
        for name, text in TREE.items():
            path = mutate.ROOT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        cls.copy = mutate.Copy(pathlib.Path(tree.name) / "copy", mutate.Processes(), True)
        cls.copy.prepare(["rc"])

    def setUp(self):
        self.addCleanup(os.environ.pop, "SLOW", None)

    def expect(self, change, *verdict):
        self.assertEqual(self.copy.judge(change), verdict)

    def test_the_changes_are_of_the_sample(self):
        sample = list(mutate.mutants_of(mutate.ROOT / PART))
        self.assertIn(SPINS, sample)
        self.assertIn(SLEEPS, sample)

    def test_a_test_that_fails(self):
        self.expect(mutant("while (i < n)", " < ", " <= "), "killed", "test_part")

    def test_a_test_that_passes(self):
        self.expect(mutant("return n + 1;", " + ", " - "), "survived", "")

    def test_a_change_that_is_not_c(self):
        self.expect(mutant("return i;", "i;", "k;"), "not compiled", "")

    def test_a_test_that_spins(self):
        """The process that does so is a child of the test."""
        self.expect(SPINS, "killed", "test_part hangs")

    def test_a_test_that_sleeps(self):
        self.addCleanup(setattr, mutate, "WALL_TIMES", mutate.WALL_TIMES)
        mutate.WALL_TIMES = 5
        self.expect(SLEEPS, "killed", "test_part hangs")

    def test_a_slow_machine(self):
        """Without the change the test needs half of its two seconds, and then more than them."""
        for seconds in ("1", "100"):
            os.environ["SLOW"] = seconds
            self.expect(SPINS, "not judged", "test_part is slow without it, too")


class Count(unittest.TestCase):
    def test_what_is_not_judged_does_not_count(self):
        verdicts = ["not judged", "killed", "not compiled", "survived", "killed"]
        left = list(verdicts)

        class Copy:
            def judge(self, _):
                return left.pop(0), ""

        self.addCleanup(setattr, mutate, "show", mutate.show)
        mutate.show = str
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run = mutate.Run([SPINS] * len(verdicts), 2, float("inf"), out)
            run.work(Copy())
            self.assertEqual([v for _, v in run.results], verdicts[:4])
            self.assertEqual(mutate.report(run, len(verdicts), 1), (0.5, 2))
        self.assertRegex(out.getvalue(), r"lib/rc +1 +1 +1 +1 +50%\n")


if __name__ == "__main__":
    unittest.main()
