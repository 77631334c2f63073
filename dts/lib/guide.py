# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Commands of the operator guide, so that a suite runs what operators read."""

import os
import re

GUIDE = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'docs',
                     'operator-guide.md')


class Section:
    """The indented lines of one section, each once; those of another host say so in a comment."""

    def __init__(self, title, path=GUIDE):
        with open(path) as f:
            text = f.read()
        found = re.search(r'^## \d+\. %s$(.*?)(?=^## |\Z)' % re.escape(title), text, re.M | re.S)
        assert found, 'the guide has no section "%s"' % title
        self.here, self.there, self.done = [], [], set()
        for line in re.findall(r'^    (\S.*)$', found.group(1), re.M):
            command, _, comment = line.partition('#')
            (self.there if 'on the Linux host' in comment else self.here).append(command.strip())
        for c in self.commands():
            assert self.commands().count(c) == 1, 'twice in the guide: ' + c

    def commands(self):
        return self.here + self.there

    def command(self, start):
        """The one command that starts so; from now on it has been run."""
        found = [c for c in self.commands() if c.startswith(start)]
        exact = [c for c in found if c == start]
        assert len(exact or found) == 1, 'the guide\'s commands "%s...": %r' % (start, found)
        c, = exact or found
        self.done.add(c)
        return c

    def left(self):
        return [c for c in self.commands() if c not in self.done]
