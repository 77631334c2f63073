#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Size of the C code in tokens without comments: lib and app together, and test.

count_tokens.py [REVISION]    of the work tree, or of a commit

Clang's raw lexer counts what is written: each file once, macros where they are used, and not what
headers and macros expand to in every file that includes them.

Figures of main, to compare with (lib and app, test):
d5e6db7, before lib/table: lib and app 581553 (lib 439674, app 141879), test 635456
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ('lib', 'app', 'test')
# "raw_identifier 'main'\t Loc=<...>"; what begins on one line and ends on another is no token of C's
TOKEN = re.compile(rb"^(?!comment |unknown |eof )[a-z_]+ '.*Loc=<", re.MULTILINE)


def tokens(path):
    """Tokens of a file that are neither comments nor white space."""
    r = subprocess.run(['clang', '-x', 'c', '-std=gnu11', '-fsyntax-only', '-Xclang', '-dump-raw-tokens', str(path)],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    return len(TOKEN.findall(r.stderr))


def count(root):
    files = [p for f in FOLDERS for p in sorted((root / f).rglob('*.[ch]'))]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        n = dict(zip(files, pool.map(tokens, files)))
    return {f: sum(v for p, v in n.items() if p.relative_to(root).parts[0] == f) for f in FOLDERS}


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as tmp:
        root = ROOT
        if len(sys.argv) == 2:
            root = pathlib.Path(tmp)
            tar = subprocess.run(['git', '-C', str(ROOT), 'archive', sys.argv[1], *FOLDERS], check=True,
                                 stdout=subprocess.PIPE).stdout
            subprocess.run(['tar', '-x', '-C', tmp], input=tar, check=True)
        n = count(root)
    print('lib and app %d (lib %d, app %d), test %d' % (n['lib'] + n['app'], n['lib'], n['app'], n['test']))


if __name__ == '__main__':
    main()
