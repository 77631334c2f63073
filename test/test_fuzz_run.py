#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Which runs of test/fuzz/run.sh keep what they learned, in a tree whose fuzz target is a script: it finds an input
called `new`, and of a corpus it keeps the file `new` only. usage: test_fuzz_run.py"""

import os
import shutil
import subprocess
import tarfile
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))
TARGET = '''#!/bin/sh
case $1 in
-set_cover_merge=1) cp "$5/new" "$4" ;;
*) echo found >"$5/new"; echo '#2 NEW'; echo 'Done 2 runs' ;;
esac
'''
COMMON = '''
ROOT=%s
die() { echo "run.sh: $*" >&2; exit 1; }
configure() { mkdir -p "$1"; }
compile() { mkdir -p build-fuzz/test/fuzz; cp target build-fuzz/test/fuzz/fuzz_packet; }
'''
OLD = 'old'


class Tree:
    def __init__(self, d):
        self.d = d
        for path in ('config', 'test/fuzz/corpus'):
            os.makedirs(os.path.join(d, path))
        shutil.copy(os.path.join(ROOT, 'test/fuzz/run.sh'), os.path.join(d, 'test/fuzz'))
        self.write('config/common.sh', COMMON % d)
        self.write('test/fuzz/make_corpus.py', 'import os, sys\nos.makedirs(sys.argv[1], exist_ok=True)\n')
        self.write('test/fuzz/fuzz_packet.c', '')
        self.write('target', TARGET)
        os.chmod(os.path.join(d, 'target'), 0o755)
        self.write(OLD, 'old')
        with tarfile.open(os.path.join(d, 'test/fuzz/corpus/packet.tar.gz'), 'w:gz') as t:
            t.add(os.path.join(d, OLD), OLD)

    def write(self, path, text):
        with open(os.path.join(self.d, path), 'w') as f:
            f.write(text)

    def run(self, *words):
        return subprocess.run(['bash', 'test/fuzz/run.sh', *words], cwd=self.d, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def corpus(self):
        with tarfile.open(os.path.join(self.d, 'test/fuzz/corpus/packet.tar.gz')) as t:
            return sorted(os.path.basename(name) for name in t.getnames() if name != '.')


def corpus_after(*words):
    with tempfile.TemporaryDirectory() as d:
        tree = Tree(d)
        r = tree.run(*words, 'packet')
        assert r.returncode == 0 and 'fuzz packet: 1 new inputs, 2 runs' in r.stdout, r.stdout
        return tree.corpus()


def main():
    # a short run leaves the work tree as it is
    assert corpus_after('20') == ['old']
    assert corpus_after('299') == ['old']
    # a long one adds what it found, and keeps no more than is needed
    assert corpus_after('300') == ['new']
    assert corpus_after('3600') == ['new']
    # unless told otherwise
    assert corpus_after('--keep', '20') == ['new']
    assert corpus_after('--no-keep', '3600') == ['old']
    with tempfile.TemporaryDirectory() as d:
        tree = Tree(d)
        for words in (('--kept', '20'), ('soon',), ('20', '--keep'), ('20', 'none')):
            r = tree.run(*words)
            assert r.returncode == 1 and 'run.sh: got ' in r.stdout, r.stdout
        assert '--no-keep' in tree.run('--help').stdout


if __name__ == '__main__':
    main()
