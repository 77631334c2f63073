#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Check what no other tool knows of this tree; config/check.sh calls it.

    check_source.py names            function names are unique
    check_source.py lines            lines are not too long
    check_source.py includes         #include "folder/file.h" never points up
    check_source.py commits          subjects and bodies of the commits since this rule was made
    check_source.py message FILE     those of one message that is not yet committed

Prints a line for each mistake, and exits with 1 if there is one.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# --- names ---

# Names that programs or libraries must have, because somebody else calls them by this name.
INTERFACES = {"main"}
# House style: the return type stands on a line of its own, the name begins the next.
DEFINITION = re.compile(r"^(static )?.*\n([a-z]\w*)\([^;{}]*\)\n\{", re.M)


def sources(*folders):
    return sorted(f for top in folders for f in (ROOT / top).glob("**/*.[ch]"))


def definitions():
    """Of each function: the files that define it, and whether it is static there."""
    where = collections.defaultdict(dict)
    for file in sources("lib", "app", "provider", "test", "dts"):
        for static, name in DEFINITION.findall(file.read_text()):
            where[name][str(file.relative_to(ROOT))] = bool(static)
    return where


def check_names():
    """A test may replace a function of lib by its own, and fixtures may offer their tests the same names; a static
    function has its name for itself. A test's own name, test_<rule>, is unique within its program only."""
    for name, files in sorted(definitions().items()):
        ours = [file for file in sorted(files) if file.startswith(("lib/", "app/", "provider/"))]
        same = sorted(files) if any(files.values()) else ours
        if len(same) > 1 and name not in INTERFACES and not name.startswith("test_"):
            yield f"{same[0]}: {name}() is defined in {same[1]}, too: give one of them a name of its own"


# --- lines ---

COLUMNS = {".c": 100, ".h": 100, ".py": 120, ".md": 110}
# These may be longer: texts in C, which clang-format does not break; tables, commands and links in documents.
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
NOT_PROSE = re.compile(r"\||    |\t|#|.*\]\(|.*https?://")


def too_long(name, suffix):
    code = False
    for number, line in enumerate((ROOT / name).read_text(errors="replace").splitlines(), 1):
        code ^= line.startswith("```")
        columns = len(re.sub(r"\s*\\$", "", line.expandtabs(8)))
        if columns <= COLUMNS[suffix]:
            continue
        if suffix in (".c", ".h") and STRING.search(line) or suffix == ".md" and (code or NOT_PROSE.match(line)):
            continue
        yield f"{name}:{number}: {columns} columns, allowed: up to {COLUMNS[suffix]}"


def check_lines():
    # not docs/spec, whose sentences are compared with their sources, and not what is generated
    others = (":!test/data", ":!docs/spec", ":!docs/rpc.md")
    for name in git("ls-files", "-co", "--exclude-standard", "--deduplicate", *others).splitlines():
        path = pathlib.Path(name)
        if path.suffix in COLUMNS and (ROOT / path).is_file():
            yield from too_long(name, path.suffix)


# --- includes ---

# From top to bottom; folders of one row do not include each other.
LAYERS = (
    ("polca", "polca-bench", "polca-ctl", "polca-run"),
    ("verbs",),
    ("ctl",),
    ("engine",),
    ("svc", "link"),
    ("cm", "sa", "sma", "pma", "live"),
    ("rc", "mad", "store"),
    ("mem", "port"),
    ("wire", "table"),
    ("base", "ring"),
)
LEVEL = {name: i for i, row in enumerate(LAYERS) for name in row}


def check_includes():
    for file in sources("provider"):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = re.match(r'#include ["<](\w[\w-]*)/', line)
            if re.match("#include <rte_", line) or match and match[1] in LEVEL and match[1] != "ring":
                yield f"{file.relative_to(ROOT)}:{number}: the provider includes ring only"
    for file in sources("lib", "app"):
        name = file.relative_to(ROOT)
        own = name.parts[1]
        if own not in LEVEL:
            yield f"{name}: lib/{own} has no place in LAYERS (test/check_source.py)"
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = re.match(r'#include "(\w[\w-]*)/', line)
            # a program's own folders are its own business
            if not match or match[1] == own or match[1] not in LEVEL or (file.parent / match[1]).is_dir():
                continue
            if LEVEL[match[1]] <= LEVEL[own]:
                yield f"{name}:{number}: {own} includes {match[1]}, which is not below it"


# --- commits ---

SUBJECT_MAX = 60
# Its last line is the commit after which the rule holds.
SINCE = "config/commits-since.txt"
NOT_IMPERATIVE = re.compile(r"(?!(?:need|speed|embed|feed|shed|seed|exceed|proceed|bring|ring|string|ping)$)"
                            r"\w+(?:ed|ing)$|"
                            r"(?!(?:focus|bias|alias|canvas)$)\w+[^s]s$|"
                            r"(?:an?|the|no|who|what|when|where|how|there|it|its|is|are|more|some|not)$")


def check_message(text):
    """@return what is wrong with a commit's message"""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    while lines and not lines[0].strip():
        lines.pop(0)
    subject = lines[0] if lines else ""
    if len(subject) > SUBJECT_MAX:
        yield f"the subject has {len(subject)} characters, allowed: up to {SUBJECT_MAX}"
    match = re.match(r"([a-z0-9][\w./, -]*): (\S+)", subject)
    if not match:
        yield "the subject is no `component: imperative`"
    else:
        verb = match[2].rstrip(",")
        if verb[0].isupper():
            yield f"after the component, {verb!r} begins with a capital letter"
        elif NOT_IMPERATIVE.match(verb):
            yield f"after the component, {verb!r} is no imperative (`add`, `show`, `refuse`)"
    if subject.endswith("."):
        yield "the subject ends with a full stop"
    if len(lines) > 1 and lines[1].strip():
        yield "no blank line follows the subject"
    body = [line for line in lines[2:] if line.strip() and not re.match(r"[\w-]+: \S+ <.*>$", line)]
    if not body:
        yield "no body: say why"


def git(*words):
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def check_commits():
    since = (ROOT / SINCE).read_text().split()[-1]
    if not git("rev-parse", "--verify", "-q", f"{since}^{{commit}}"):
        print(f"commits: this clone does not reach back to {since[:7]}: none is checked")
        return
    for commit in git("rev-list", "--no-merges", f"{since}..HEAD").split():
        text = git("show", "-s", "--format=%B", commit)
        for why in check_message(text):
            yield f"{commit[:7]} {text.splitlines()[0]!r}: {why}"


def main(words):
    checks = {"names": check_names, "lines": check_lines, "includes": check_includes, "commits": check_commits,
              "message": lambda file: check_message(pathlib.Path(file).read_text())}
    if not words or words[0] not in checks:
        sys.exit(__doc__)
    wrong = list(checks[words[0]](*words[1:]))
    print("\n".join(wrong), end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
