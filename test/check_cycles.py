#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The .c files of a room of lib/ that call each other in a circle: no more than LIMITS says.

    test/check_cycles.py         fails and names the files if a circle is larger than its room's limit
    test/check_cycles.py --list  the circles of every room

A file calls another if one of its functions names a function that the other defines, also by way of an inline
function of a header or as a function pointer. check.c is left out: a room's invariants look at all of its files.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# The files in each circle of a room, the largest first. A room that is not here has no circle. A number
# only ever gets smaller, and has its reason here.
LIMITS = {
    # worker.c dispatches packets; those of a QP that moves here wait in rehome.c, which dispatches them when the
    # move ends, in the middle of a receive as well. rehome_choose.c counts in the receive what handed-off packets
    # would gain by a move, and offers it to rehome.c.
    "engine": (3,),
    # A device frees its workers (worker.c), they free their QPs (qp.c), and these return their slots to the
    # device's directory (qp_directory.c).
    # A request that fails (refusals.c) still takes and retires the receive WQE that it names (responder.c).
    "rc": (3, 2),
}

# Not a field and not a tag
NAME = re.compile(r"(?<![\w.])(?<!->)(?<!struct )(?<!union )(?<!enum )[A-Za-z_]\w*")
# A variable or parameter: a type before it, and no bracket after it
VARIABLE = re.compile(r"(?<![\w.])(?<!->)(?!return\b|case\b|goto\b|else\b|sizeof\b)[A-Za-z_]\w*(?: +\**| *\*+ *)"
                      r"([A-Za-z_]\w*) *[;,=)\[]")
NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
# In our style the return type has a line of its own, and name and braces of a function begin their lines.
FUNCTION = re.compile(r"^(?P<type>[A-Za-z_][^\n;{}()]*(?:\([^\n;{}]*\)[^\n;{}()]*)?)\n"
                      r"(?P<name>\w+)(?P<arguments>\([^{};]*\))\s*\n\{\n(?P<body>.*?)^\}", re.M | re.S)
IGNORED = ("check.c",)


def functions(text):
    """Yield name, whether other files can call it, and the names in its body."""
    for found in FUNCTION.finditer(text):
        code = found["arguments"] + found["body"]
        yield (found["name"], "static" not in found["type"].split(),
               set(NAME.findall(code)) - set(VARIABLE.findall(code)))


def read(path):
    return NO_CODE.sub(" ", path.read_text())


def inline_functions(root):
    """The functions that headers define, and the names in their bodies."""
    return {name: names for path in sorted(root.glob("lib/*/*.h")) for name, _, names in functions(read(path))}


def reached(names, inlines):
    """The names, and those in the bodies of the inline functions among them."""
    todo, seen = list(names), set()
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += inlines.get(name, ())
    return seen


def calls(room, inlines):
    """Of each file of a room the files that it calls."""
    texts = {p.name: read(p) for p in sorted(room.glob("*.c")) if p.name not in IGNORED}
    defines = {name: file for file, text in texts.items() for name, public, _ in functions(text) if public}
    graph = {}
    for file, text in texts.items():
        inside = list(functions(text))
        own = {name for name, _, _ in inside}
        # outside of functions: tables of function pointers, and macros
        outside = FUNCTION.sub("", text)
        names = set(NAME.findall(outside)) - set(VARIABLE.findall(outside))
        names = names.union(*(names for _, _, names in inside))
        names = reached(names - own, inlines) - own
        graph[file] = {defines[n] for n in names & defines.keys()} - {file}
    return graph


def circles(graph):
    """The sets of more than one file of which each reaches each other (Tarjan), the largest first."""
    order, low, stack, found = {}, {}, [], []

    def visit(file):
        order[file] = low[file] = len(order)
        stack.append(file)
        for other in graph[file]:
            if other not in order:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], order[other])
        if low[file] == order[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for file in sorted(graph):
        if file not in order:
            visit(file)
    return sorted(found, key=len, reverse=True)


def wrong(root, limits):
    """What is to be said of the rooms of a tree."""
    inlines = inline_functions(root)
    rooms = sorted(p for p in root.glob("lib/*") if p.is_dir())
    said = []
    for room in rooms:
        found = circles(calls(room, inlines))
        allowed = (*limits.get(room.name, ()), *[1] * len(found))
        said += [f"lib/{room.name}: {len(files)} files call each other in a circle, allowed: {limit}: {' '.join(files)}"
                 for files, limit in zip(found, allowed) if len(files) > limit]
    return said


def show(root):
    inlines = inline_functions(root)
    for room in sorted(p for p in root.glob("lib/*") if p.is_dir()):
        for files in circles(calls(room, inlines)):
            print(f"{room.name:8} {len(files):2}  {' '.join(files)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--list", action="store_true", help="list the circles of every room")
    if parser.parse_args().list:
        show(ROOT)
        return 0
    said = wrong(ROOT, LIMITS)
    print("\n".join(said), end="\n" if said else "")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
