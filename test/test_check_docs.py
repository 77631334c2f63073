#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""What test/check_docs.py reports in a tree with errors, and what it accepts."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import check_docs  # noqa: E402
import guide  # noqa: E402

PAGE = '''# A page

See [there](other.md#two-words), [here](#a-page), [out](https://example.org/none) and `[not](a-link)`.

    program [neither](this)

## Section

    polca-ctl port list       # "two ports"
    polca-ctl \\
        qp list
    gid=10.0.0.1,qpn=7        # what it says
'''
OTHER = '# Other\n\n## Two words\n\n## 2. `Two` words\n\n## Two words\n'


class Documents(unittest.TestCase):
    def setUp(self):
        self.tree = tempfile.TemporaryDirectory()
        self.addCleanup(self.tree.cleanup)
        for module in (check_docs, guide):
            self.addCleanup(setattr, module, 'ROOT', module.ROOT)
            module.ROOT = self.tree.name
        self.write('page.md', PAGE)
        self.write('other.md', OTHER)

    def write(self, name, text):
        with open(os.path.join(self.tree.name, name), 'w') as f:
            f.write(text)

    def test_good_links(self):
        self.assertEqual(list(check_docs.bad_links('page.md')), [])

    def test_anchors_are_githubs(self):
        self.assertEqual(check_docs.anchors('other.md'),
                         {'other', 'two-words', '2-two-words', 'two-words-1'})

    def test_bad_links(self):
        for link, why in (('gone.md', 'there is no gone.md'), ('#gone', 'no heading for #gone'),
                          ('other.md#gone', 'other.md has no heading for #gone'),
                          ('folder/../gone.svg', 'there is no gone.svg')):
            self.write('page.md', PAGE + '\n![picture](%s)\n' % link)
            found = list(check_docs.bad_links('page.md'))
            self.assertEqual(len(found), 1, found)
            self.assertIn('page.md:14: %s: ' % link, found[0])
            self.assertIn(why, found[0])

    def test_blocks_and_comments(self):
        section, lines = list(guide.blocks('page.md'))[1]
        self.assertEqual(section, 'Section')
        self.assertEqual([guide.split(line) for line in lines],
                         [('polca-ctl port list', '"two ports"'), ('polca-ctl qp list', ''),
                          ('gid=10.0.0.1,qpn=7', 'what it says')])
        self.assertEqual(guide.split("log level 'a # b' debug"), ("log level 'a # b' debug", ''))

    def test_commands_that_nobody_runs(self):
        found = list(check_docs.bad_commands('page.md', set()))
        self.assertEqual([f.split('\n')[0].split(': ', 3)[-1] for f in found],
                         ['program [neither](this)', 'polca-ctl port list', 'polca-ctl qp list'])
        rows = ('page.md', 'A page', '', 'x'), ('page.md', 'Section', 'polca-ctl p', 'x')
        was, check_docs.RUN = check_docs.RUN, rows
        self.addCleanup(setattr, check_docs, 'RUN', was)
        used = set()
        found = list(check_docs.bad_commands('page.md', used))
        self.assertEqual(len(found), 1, found)
        self.assertIn('polca-ctl qp list', found[0])
        self.assertEqual(used, set(rows))

    def test_names_that_no_source_contains(self):
        for folder in ('lib', 'test'):
            os.mkdir(os.path.join(self.tree.name, folder))
        self.write('lib/rc.h', 'X(rcvd_seq_err, "PSN sequence NAKs received")\nuint64_t rx_errors;\n')
        self.write('test/rc.c', '/* packet_seq_err */\n')
        self.write('page.md', 'Look at `rcvd_seq_err`, `stats get: rx_errors`, `polca_rc_rcvd_seq_err_total`,\n'
                              '`polca_port_receive_errors_total`, `rcvd_*`, `tests/no_name.c`, no_code, `word`.\n')
        known = check_docs.known_names()
        self.assertEqual(list(check_docs.bad_names('page.md', known)), [])
        for name in ('packet_seq_err', 'polca_rc_packet_seq_err_total', 'polca_port_transmit_errors_total'):
            self.write('page.md', '\nLook at `dropped`, `%s`.\n' % name)
            self.assertEqual(list(check_docs.bad_names('page.md', known)),
                             ['page.md:2: no source contains the name %s' % name])

    def test_sources_that_a_map_lacks(self):
        os.makedirs(os.path.join(self.tree.name, 'lib', 'rc'))
        for name in ('a.c', 'b.c', 'b.h'):
            self.write('lib/rc/' + name, '')
        was, check_docs.MAPS = check_docs.MAPS, (('page.md', 'lib/rc: a map', 'lib/rc'),)
        self.addCleanup(setattr, check_docs, 'MAPS', was)
        self.write('page.md', '# A page\n\n## lib/rc: a map\n\n`a.c` and\n`b.c`, `b.h`\n\n## Other\n\n`c.c`\n')
        self.assertEqual(list(check_docs.bad_map()), [])
        self.write('page.md', '# A page\n\n## lib/rc: a map\n\n`a.c` and `c.c`\n\n## Other\n\n`b.c`\n')
        self.assertEqual(list(check_docs.bad_map()),
                         ['page.md: section "lib/rc: a map" does not name lib/rc/b.c',
                          'page.md: section "lib/rc: a map": there is no lib/rc/c.c'])

    def test_tests_that_are_not_there(self):
        self.write('suite.py', 'def test_here(): pass\n')
        self.write('script.sh', 'program --option\n')
        was = check_docs.RUN
        self.addCleanup(setattr, check_docs, 'RUN', was)
        for start, where, count in (('x', 'suite.py::test_here', 0), ('x', 'suite.py::test_gone', 1),
                                    ('x', 'gone.py::test_here', 1), ('program', 'script.sh', 0),
                                    ('other', 'script.sh', 1)):
            check_docs.RUN = (('page.md', 'Section', start, where),)
            self.assertEqual(len(list(check_docs.bad_tests())), count, where)


if __name__ == '__main__':
    unittest.main()
