#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Each check of config/check.sh passes in a small tree, and fails when that is made wrong."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))

import check_conformance  # noqa: E402
import check_source  # noqa: E402

# A tree with what the checks need of ours, and one module with one unit test.
OURS = ("config/check.sh", "config/common.sh", "config/codespell-words.txt", "config/cppcheck.h",
        "config/cppcheck-suppressions.txt", "test/check_source.py", "test/check_cycles.py",
        ".clang-tidy", ".clang-format")
TREE = {
    "meson.build": "project('small', 'c')\ninclude = include_directories('lib')\n"
                   "wire = static_library('wire', 'lib/wire/half.c', include_directories: include)\n"
                   "if get_option('tests')\n    test('wire: half', executable('half', 'test/wire/half.c',\n"
                   "        include_directories: include, link_with: wire), suite: 'unit')\nendif\n",
    "meson_options.txt": "option('tests', type: 'boolean', value: false)\n",
    ".gitignore": "/build/\n",
    "lib/base/small.h": "#define SMALL 1\n",
    "lib/wire/half.h": "unsigned int half(unsigned int of);\n",
    "lib/wire/half.c": '#include "base/small.h"\n#include "wire/half.h"\n\n'
                       "unsigned int\nhalf(unsigned int of)\n{\n\treturn of / 2;\n}\n",
    "test/wire/half.c": '#include "wire/half.h"\n\nint\nmain(void)\n{\n\treturn half(4) != 2;\n}\n',
    "run.sh": '#!/bin/bash\necho "$1"\n',
    "tool.py": "import sys\nprint(sys.argv)\n",
    "page.md": "A page without mistakes.\n",
}


class Checks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="polca-check-")
        self.addCleanup(self.folder.cleanup)
        self.tree = pathlib.Path(self.folder.name)
        for name in OURS:
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.tree / name)
        for name, text in TREE.items():
            self.write(name, text)
        self.git("init", "-q")
        self.commit("all: begin", "There has to be a first one.")
        self.commit("all: go on", "There has to be one to compare with.")

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *words):
        subprocess.run(["git", "-C", self.tree, "-c", "user.name=n", "-c", "user.email=e", *words], check=True,
                       stdout=subprocess.DEVNULL)

    def commit(self, *paragraphs):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--no-verify", *(w for p in paragraphs for w in ("-m", p)))

    def run_check(self, *words):
        """@return exit status and output"""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "BASE", "MESON_"))}
        done = subprocess.run([self.tree / "config/check.sh", *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, cwd="/", env=environment)
        return done.returncode, done.stdout

    def passes(self, *words):
        status, out = self.run_check(*words)
        self.assertEqual(status, 0, out)
        return out

    def fails(self, check, says):
        status, out = self.run_check(check)
        self.assertEqual(status, 1, out)
        self.assertIn(says, out)
        self.assertIn(f"check.sh: failed: {check}", out)

    def test_format(self):
        self.passes("format")
        self.write("lib/wire/half.c", TREE["lib/wire/half.c"].replace("\treturn of / 2", "   return of/2"))
        self.fails("format", "half.c:7")

    def test_lines(self):
        long = "word " * 30
        self.write("page.md", f"| {long} |\n\n    {long}\n")
        self.write("lib/wire/text.c", f'const char *text =\n\t"{long}";\n')
        self.passes("format")
        self.write("page.md", f"{long}\n")
        self.fails("format", "page.md:1: 150 columns, allowed: up to 110")
        self.write("page.md", "")
        self.write("tool.py", f"# {long}\n")
        self.fails("format", "tool.py:1: 152 columns, allowed: up to 120")
        self.write("tool.py", "")
        self.write("lib/wire/half.h", f"/* {long} */\n" + TREE["lib/wire/half.h"])
        self.fails("format", "lib/wire/half.h:1: 156 columns, allowed: up to 100")

    def test_names(self):
        self.passes("names")
        self.write("lib/base/half.c", TREE["lib/wire/half.c"])
        self.fails("names", "lib/base/half.c: half() is defined in lib/wire/half.c, too")

    def test_names_of_static_functions_in_tests(self):
        fake = "int\nhalf(void)\n{\n\treturn 0;\n}\n"
        self.write("test/base/fake.c", fake)
        self.passes("names")
        self.write("test/base/fake.c", "static " + fake)
        self.fails("names", "lib/wire/half.c: half() is defined in test/base/fake.c, too")

    def test_includes(self):
        self.passes("includes")
        self.write("lib/base/small.h", '#include "wire/half.h"\n')
        self.fails("includes", "lib/base/small.h:1: base includes wire, which is not below it")
        self.write("lib/base/small.h", "")
        self.write("lib/attic/old.c", "")
        self.fails("includes", "lib/attic has no place")

    def test_provider(self):
        self.passes("provider")
        function = "int\nopen_one(void)\n{\n\treturn RING;\n}\n"
        ours = '#include "ring/small.h"\n#include <infiniband/verbs.h>\n\n' + function
        self.write("lib/ring/small.h", "#include <stdint.h>\n#define RING 1\n")
        self.write("provider/device.c", ours)
        self.passes("provider")
        foreign = "int rte_lcores(void);\n\n\treturn rte_lcores()"
        self.write("provider/device.c", ours.replace("return RING", foreign))
        self.fails("provider", "rte_lcores")
        self.write("provider/device.c", ours)
        self.write("lib/ring/small.h", "#include <rte_common.h>\n")
        self.fails("provider", "lib/ring/small.h:1")

    def test_cycles(self):
        limits = (self.tree / "test/check_cycles.py").read_text()
        self.write("test/check_cycles.py", limits.replace("LIMITS = {", 'LIMITS = {"wire": (6,),', 1))
        self.passes("cycles")
        back = 'unsigned int\nthird(unsigned int of)\n{\n\treturn half(of);\n}\n'
        self.write("lib/wire/third.c", back)
        self.passes("cycles")
        names = [f"part{i}" for i in range(5)]
        self.write("lib/wire/half.c", TREE["lib/wire/half.c"].replace("of / 2", "part0(of)"))
        for name, calls in zip(names, (*names[1:], "turn")):
            self.write(f"lib/wire/{name}.c", back.replace("third", name).replace("half", calls))
        # the sixth by way of an inline function, the seventh in a comment, as a field, a tag and a variable
        self.write("lib/wire/half.h", TREE["lib/wire/half.h"] + "static inline unsigned int\nturn(unsigned int of)\n"
                   "{\n\treturn half(of);\n}\n")
        self.write("lib/wire/last.c", back.replace("third", "last"))
        self.write("lib/wire/check.c", back.replace("third", "half_check"))
        tail = "struct last {\n\tint last;\n};\n\n/* last(1) */\nint\nlook(struct last *s)\n{\n" \
               "\tint last = s->last;\n\n\treturn last + half_check(last);\n}\n"
        self.write("lib/wire/half.c", (self.tree / "lib/wire/half.c").read_text() + tail)
        self.passes("cycles")
        self.write("lib/wire/part4.c", back.replace("third", "part4").replace("half(", "third("))
        self.fails("cycles", "lib/wire: 7 files call each other in a circle, allowed: 6: half.c part0.c part1.c")

    def test_cycles_of_a_room_without_limit(self):
        one = "int\none(void)\n{\n\treturn two();\n}\n"
        self.write("lib/base/one.c", one)
        self.write("lib/base/two.c", "int\ntwo(void)\n{\n\treturn 2;\n}\n")
        self.passes("cycles")
        self.write("lib/base/two.c", one.replace("two", "twice").replace("one", "two").replace("twice", "one"))
        self.fails("cycles", "lib/base: 2 files call each other in a circle, allowed: 1: one.c two.c")

    def test_spelling(self):
        self.passes("spelling")
        self.write("page.md", "It is not " + "nec" + "cessary.\n")
        self.fails("spelling", "page.md:1")

    def test_shell(self):
        self.passes("shell")
        self.write("run.sh", "#!/bin/bash\necho $1\n")
        self.fails("shell", "SC2086")
        self.write("run.sh", TREE["run.sh"])
        self.write("script", "#!/bin/sh\n[[ 1 ]]\n")
        self.fails("shell", "SC3010")

    def test_python(self):
        self.passes("python")
        self.write("tool.py", "import sys\nprint(argv)\n")
        self.fails("python", "tool.py:2:7: F821")
        self.write("tool.py", "")
        self.write("script", "#!/usr/bin/python3\nimport sys\n")
        self.fails("python", "script:2:1: F401")

    def test_commits(self):
        self.write("config/commits-since.txt", "# why\n" + "0" * 40 + "\n")
        self.assertIn("none is checked", self.passes("commits"))
        first = subprocess.run(["git", "-C", self.tree, "rev-parse", "HEAD~1"], capture_output=True, text=True,
                               check=True)
        self.write("config/commits-since.txt", "# why\n" + first.stdout)
        self.assertNotIn("none is checked", self.passes("commits"))
        self.commit("wire: halved the numbers", "They were twice as large.")
        self.fails("commits", "'halved' is no imperative")

    def test_tidy_of_changed_modules(self):
        self.passes("tidy")
        self.write("lib/wire/half.h", "unsigned int half(unsigned int number);\n")
        self.fails("tidy", "readability-inconsistent-declaration-parameter-name")
        self.commit("wire: name the number", "It had no telling name.")
        self.commit("all: go on", "There has to be one to compare with.")
        self.assertNotIn("inconsistent", self.passes("tidy"))
        status, out = self.run_check("--whole", "tidy")
        self.assertEqual((status, "inconsistent" in out), (1, True), out)

    def test_what_tidy_found_counts_when_its_time_is_over(self):
        self.write("bin/clang-tidy", "#!/bin/sh\n[ -z \"$SAYS\" ] || echo \"$SAYS\"\nsleep 100\n")
        (self.tree / "bin/clang-tidy").chmod(0o755)
        self.write("lib/wire/half.h", "unsigned int half(unsigned int number);\n")
        for says, status in (("half.c:1:1: error: wrong", 1), ("", 0)):
            with unittest.mock.patch.dict(os.environ, PATH=f"{self.tree}/bin:{os.environ['PATH']}", SAYS=says,
                                          TIDY_SECONDS="1"):
                got, out = self.run_check("tidy")
            self.assertEqual(got, status, out)
            self.assertIn(says or "were not looked at", out)

    def test_units_of_changed_modules(self):
        self.assertNotIn("half", self.passes("units"))
        self.write("lib/wire/half.c", TREE["lib/wire/half.c"].replace("of / 2", "of / 3"))
        self.fails("units", "half")

    def test_cppcheck(self):
        self.passes("cppcheck")
        self.write("lib/wire/half.c", "int\nhalf(void)\n{\n\tint a[2] = { 0 };\n\n\treturn a[2];\n}\n")
        self.fails("cppcheck", "arrayIndexOutOfBounds")

    def test_a_check_that_is_unknown(self):
        status, out = self.run_check("taste")
        self.assertEqual(status, 1)
        self.assertIn("no check 'taste'; there are: format names", out)

    def test_all_but_some(self):
        names = self.passes("--list").split()
        self.assertEqual(names[0], "format")
        out = self.passes("--without", *(n for n in names if n != "includes"))
        self.assertEqual([line.split()[0] for line in out.splitlines()], ["includes"])


class Messages(unittest.TestCase):
    def wrong(self, text):
        return list(check_source.check_message(text))

    def test_good_ones(self):
        for subject in ("rc: answer a duplicate read from the saved request", "dts, test: bring two peers",
                        "lib/rc: exceed no limit", "sa: process SA records in slices"):
            self.assertEqual(self.wrong(f"{subject}\n\nIt has a reason.\n# what git says\n"), [], subject)

    def test_bad_ones(self):
        for text, why in (("rc: " + "x" * 57 + "\n\nWhy.", "61 characters"),
                          ("Answer a duplicate\n\nWhy.", "no `component: imperative`"),
                          ("rc: Answer it\n\nWhy.", "capital letter"),
                          ("rc: answers it\n\nWhy.", "'answers' is no imperative"),
                          ("rc: answering it\n\nWhy.", "'answering' is no imperative"),
                          ("rc: who has gone may have said why\n\nWhy.", "'who' is no imperative"),
                          ("rc: answer it.\n\nWhy.", "full stop"),
                          ("rc: answer it\nWhy.\n\nWhy.", "no blank line"),
                          ("rc: answer it", "no body"),
                          ("rc: answer it\n\nSigned-off-by: N <n@example.org>\n", "no body")):
            found = self.wrong(text)
            self.assertEqual(len(found), 1, (text, found))
            self.assertIn(why, found[0])


class Citations(unittest.TestCase):
    def test_a_call_is_no_definition(self):
        with tempfile.TemporaryDirectory() as folder:
            was, check_conformance.ROOT = check_conformance.ROOT, pathlib.Path(folder)
            self.addCleanup(setattr, check_conformance, "ROOT", was)
            for text, good in (("int\nhalf(int of)\n{\n}\n", True), ("int half(int of);\n", False),
                               ("int\nhalf(int of);\n", False), ("int\nmain(void)\n{\n\thalf(4);\n}\n", False),
                               ("#define half(of) ((of) / 2)\n", True), ("def half(of):\n", True),
                               ("half() {\n", True)):
                (pathlib.Path(folder) / "half.c").write_text(text)
                found = list(check_conformance.check_code("`half.c: half`"))
                self.assertEqual(not found, good, (text, found))
            self.assertIn("there is no gone.c", next(check_conformance.check_code("`gone.c: half`")))

    def wrong(self, pairs, *code, lib="int\nfast(void)\n{\n\tif (COMMON_CASE(true))\n\t\treturn 1;\n}\n"
                                     "int\nslow(void)\n{\n}\n", other="", columns=check_conformance.PAIRS):
        """What is wrong with a table of pairs, and a rule for each code."""
        table = [columns, "|---|", *pairs, "", check_conformance.HEADER, "|---|"]
        table += [f"| R.{i} | s | a rule | {c} | `test/half.c::test_half` |" for i, c in enumerate(code)]
        with tempfile.TemporaryDirectory() as folder:
            with unittest.mock.patch.object(check_conformance, "ROOT", pathlib.Path(folder)):
                test = "void\ntest_half(void)\n{\n}\ntest_half\n"
                for name, source in (("lib/half.c", lib), ("lib/other.c", other), ("test/half.c", test)):
                    (pathlib.Path(folder) / name).parent.mkdir(exist_ok=True)
                    (pathlib.Path(folder) / name).write_text(source)
                return [why for _, why in check_conformance.check(table)]

    PAIR = "| half | `lib/half.c: fast` | `lib/half.c: slow` | `lib/half.c: fast` |"

    def test_a_rule_that_stands_twice_is_cited_twice(self):
        self.assertEqual(self.wrong([self.PAIR], "`lib/half.c: fast, slow`", "`test/half.c: test_half`"), [])
        for code, missing in (("`lib/half.c: fast`", "general"), ("`lib/half.c: slow`", "common")):
            self.assertEqual(self.wrong([self.PAIR], code),
                             [f"R.0: code: the rule stands twice (half); the {missing} case is not cited"])

    def test_a_switch_stands_for_its_pair(self):
        lib = ("int\nfast(void)\n{\n}\nint\nslow(void)\n{\n}\n"
               "int\nchoose(void)\n{\n\treturn COMMON_CASE(true) ? fast() : slow();\n}\n")
        pair = self.PAIR.replace("slow` | `lib/half.c: fast`", "slow` | `lib/half.c: choose`")
        for code, missing in (("choose", ["common", "general"]), ("choose, fast", ["general"]),
                              ("choose, slow", ["common"]), ("choose, fast, slow", [])):
            self.assertEqual(self.wrong([pair], f"`lib/half.c: {code}`", lib=lib),
                             [f"R.0: code: the rule stands twice (half); the {m} case is not cited" for m in missing])

    def test_a_file_stands_for_what_is_in_it(self):
        files = ("int\nfast(void)\n{\n\treturn COMMON_CASE(true);\n}\n", "int\nslow(void)\n{\n}\n")
        apart = self.PAIR.replace("`lib/half.c: slow`", "`lib/other.c: slow`")
        whole = apart.replace("`lib/other.c: slow`", "`lib/other.c`")
        for pair, code, missing in ((apart, "`lib/half.c`", ["general"]), (apart, "`lib/other.c`", ["common"]),
                                    (apart, "`lib/half.c`, `lib/other.c`", []),
                                    (apart, "`lib/half.c: fast`, `lib/other.c`", []),
                                    (whole, "`lib/other.c: slow`", ["common"]),
                                    (whole, "`lib/half.c: fast`, `lib/other.c: slow`", [])):
            self.assertEqual(self.wrong([pair], code, lib=files[0], other=files[1]),
                             [f"R.0: code: the rule stands twice (half); the {m} case is not cited" for m in missing])
        self.assertEqual(self.wrong([self.PAIR], "`lib/half.c`"), [])  # it has both

    def test_one_function_is_both_cases(self):
        lib = ("static inline int\nrule(bool fast)\n{\n\treturn fast;\n}\n"
               "/* rule() and\n\trule() */\nint rule(bool);\n"
               "int\nfast(void)\n{\n\treturn COMMON_CASE(true) ? rule(true) : %s(false);\n}\n"
               "int\nslow(bool fast)\n{\n}\n")
        row = "| half | `lib/half.c: %s` | `lib/half.c: fast` |"
        once = "half: lib/half.c: rule() is called once, so the general case is other code: a pair"
        many = "half: one function is the common and the general case; more are a pair"
        for cited, general, why in (("rule", "rule", []), ("rule", "slow", [once]), ("rule, slow", "rule", [many]),
                                    ("rule, slow", "slow", [many])):
            self.assertEqual(self.wrong([row % cited], "`lib/half.c: rule`", lib=lib % general,
                                        columns=check_conformance.SHAPES), why)
        self.assertEqual(self.wrong([row.replace(": %s", "")], "`lib/half.c: rule`", lib=lib % "rule",
                                    columns=check_conformance.SHAPES), [many])

    def test_bad_tables_of_pairs(self):
        both = "`lib/half.c: fast, slow`"
        for pairs, code, why in (([], both, "lib/half.c: fast() has a common case that no table lists"),
                                 ([self.PAIR], "`test/half.c: test_half`", "half: no row cites this pair"),
                                 ([self.PAIR.replace("slow", "gone")], "`lib/half.c: fast`",
                                  "half: code: lib/half.c does not define gone()"),
                                 ([f"{self.PAIR} more |"], both, "cells where 4"),
                                 ([f"{self.PAIR[:-2]}, `lib/half.c: slow` |"], both,
                                  "lib/half.c: slow() has no COMMON_CASE(...)"),
                                 ([self.PAIR.replace("half |", f"half {i} |") for i in range(5)], both,
                                  "5 pairs, at most 4 are allowed")):
            found = self.wrong(pairs, code)
            self.assertTrue(any(why in f for f in found), (why, found))


if __name__ == "__main__":
    unittest.main()
