# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Commands of the documents, so that a suite runs exactly these. A command is an indented line;
text after # is a comment. A command whose comment says "there" or "on the Linux host" is for
another host."""

import os
import re
import shlex

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..'))
GUIDE = 'docs/operator-guide.md'
THERE = ('on the Linux host', 'there')


class Command:
    def __init__(self, text, comment):
        self.text, self.comment = text, comment
        self.there = any(comment.startswith(w) for w in THERE)

    def __repr__(self):
        return self.text


def split(line):
    """(command, comment): a # within quotes begins no comment."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ''
    try:
        words = list(lexer)
    except ValueError:  # program output with an unmatched quote
        words = line.split()
    at = next((i for i, w in enumerate(words) if w.startswith('#')), len(words))
    if at == len(words):
        return line.strip(), ''
    place = re.search(r'\s(?=%s)' % re.escape(words[at]), line) if at else None
    cut = place.end() if place else 0
    return line[:cut].strip(), line[cut:].lstrip('# ').strip()


def blocks(path):
    """(section, lines) of each indented block; a line that ends with \\ continues on the next."""
    section, block = '', []
    with open(os.path.join(ROOT, path)) as f:
        lines = f.read().split('\n')
    for line in lines + ['# end']:
        if line.startswith('    '):
            if block and block[-1].endswith('\\'):
                block[-1] = block[-1][:-1].rstrip() + ' ' + line.strip()
            else:
                block.append(line.strip())
        elif block:
            yield section, block
            block = []
        title = re.match(r'#+ (?:\d+\. )?(.*)', line)
        if title:
            section = title.group(1)


class Section:
    """The commands of one section, in order."""

    def __init__(self, title, path=GUIDE, twice=False):
        self.all = [Command(*split(line)) for section, block in blocks(path)
                    if section == title for line in block]
        assert self.all, '%s has no section "%s" with commands' % (path, title)
        self.done = set()
        for c in self.commands():
            assert twice or self.commands().count(c) == 1, 'twice in %s: %s' % (path, c)

    def commands(self):
        return [c.text for c in self.all]

    def here(self):
        return [c for c in self.all if not c.there]

    def command(self, start):
        """The only command that starts with this text; it now counts as run."""
        found = [c for c in self.commands() if c.startswith(start)]
        exact = [c for c in found if c == start]
        assert len(exact or found) == 1, 'commands "%s...": %r' % (start, found)
        c, = exact or found
        self.done.add(c)
        return c

    def left(self):
        return [c for c in self.commands() if c not in self.done]
