#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""debian_changelog.py CHANGELOG.md: print debian/changelog, made from its sections "## VERSION - DATE"."""

import email.utils
import os
import re
import sys
import textwrap
import time

MAINTAINER = 'Polca contributors <polca@polca.example>'


def main(path):
    with open(path) as f:
        text = f.read()
    sections = re.findall(r'(?ms)^## (\S+) - ([^\n]+)\n(.*?)(?=^## |\Z)', text)
    if not sections:
        sys.exit('%s: got no section, expected "## VERSION - YYYY-MM-DD" or "## VERSION - not released"' % path)
    with open(os.path.join(os.path.dirname(path), 'VERSION')) as f:
        number = f.read().strip()
    if sections[0][0] != number:
        sys.exit('%s: the top section is of %s, VERSION says %s' % (path, sections[0][0], number))
    for version, date, body in sections:
        released = re.fullmatch(r'\d{4}-\d\d-\d\d', date) is not None
        when = time.mktime(time.strptime(date, '%Y-%m-%d')) if released else 0
        print('polca (%s) %s; urgency=medium\n' % (version, 'unstable' if released else 'UNRELEASED'))
        for item in re.findall(r'(?ms)^- (.*?)(?=^- |\Z)', body):
            print(textwrap.fill(' '.join(item.split()), 78, initial_indent='  * ', subsequent_indent='    '))
        print('\n -- %s  %s\n' % (MAINTAINER, email.utils.formatdate(when)))


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
