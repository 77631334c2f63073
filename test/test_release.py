#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""config/release.sh in a repository of its own. usage: test_release.py BUILD"""

import datetime
import gzip
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), '..'))


def main(build):
    env = dict(os.environ, BUILD=os.path.abspath(build), GIT_CONFIG_GLOBAL='/dev/null', GIT_CONFIG_SYSTEM='/dev/null')
    for who in ('AUTHOR', 'COMMITTER'):
        env.update({'GIT_%s_NAME' % who: 'A tester', 'GIT_%s_EMAIL' % who: 'tester@polca.example'})
    with tempfile.TemporaryDirectory() as d:
        def run(*words):
            return subprocess.run(words, cwd=d, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        def release(version, says):
            r = run('config/release.sh', version)
            assert says in r.stdout, r.stdout
            return r.returncode

        shutil.copytree(os.path.join(ROOT, 'config'), os.path.join(d, 'config'))
        with open(os.path.join(d, 'CHANGELOG.md'), 'w') as f:
            f.write('# Changes\n\n## 0.2.0 - not released\n\n- New.\n\n## 0.1.0 - 2026-01-01\n\n- Old.\n')
        for words in (('init', '-q'), ('add', '.'), ('commit', '-qm', 'config: begin')):
            assert run('git', *words).returncode == 0
        assert release('two', "got 'two', expected a version as 1.2.3") == 1
        assert release('0.3.0', 'v0.3.0 is committed and tagged') == 0
        with open(os.path.join(d, 'CHANGELOG.md')) as f:
            assert '\n## 0.3.0 - %s\n\n- New.\n\n## 0.1.0 - 2026-01-01\n' % (
                datetime.datetime.now(datetime.timezone.utc).date()) in f.read()
        with open(os.path.join(d, 'VERSION')) as f:
            assert f.read() == '0.3.0\n'
        with gzip.open(os.path.join(d, 'test/data/store/0.3.0.mdb.gz')) as f:
            assert b'polca records' in f.read()
        assert run('git', 'status', '--porcelain').stdout == ''
        assert run('git', 'tag', '--points-at', 'HEAD').stdout == 'v0.3.0\n'
        # the number of the package follows
        assert run('config/debian_changelog.py', 'CHANGELOG.md').stdout.startswith('polca (0.3.0) unstable')
        assert release('0.3.0', 'there is a tag v0.3.0 already') == 1
        assert release('0.4.0', 'the top section of CHANGELOG.md is no') == 1
        with open(os.path.join(d, 'VERSION'), 'w') as f:
            f.write('0.4.0\n')
        assert release('0.4.0', 'changes that are not committed') == 1
        r = run('config/debian_changelog.py', 'CHANGELOG.md')
        assert r.returncode != 0 and 'VERSION says 0.4.0' in r.stdout, r.stdout


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
