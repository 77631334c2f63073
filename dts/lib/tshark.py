# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""tshark with the Lua script of config/. From version 4.4 on it silently ignores scripts for
root, so root runs it as nobody. That user may not be able to open the files, so they are passed
open."""

import os
import subprocess

LUA = os.path.join(os.path.dirname(os.path.realpath(__file__)), '..', '..', 'config',
                   'infiniband-ethertype.lua')
AS_NOBODY = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups']


def run(path, *options, lua=LUA):
    """Run tshark on a capture file; returns its output. lua: the script to load, or None."""
    argv = AS_NOBODY[:] if os.geteuid() == 0 else []
    argv += ['tshark', '-n', '-r', '-']
    env = dict(os.environ, HOME='/nonexistent', LC_ALL='C.UTF-8')
    with open(path, 'rb') as capture, open(lua or os.devnull, 'rb') as script:
        if lua:
            argv += ['-X', 'lua_script:/proc/self/fd/%d' % script.fileno()]
        done = subprocess.run([*argv, *options], stdin=capture, capture_output=True, text=True,
                              env=env, pass_fds=[script.fileno()], check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
