# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An interactive bash on a terminal, typed into key by key as a user does."""

import os
import pty
import re
import select
import subprocess
import time

PROMPT = 'ready> '


class Terminal:
    def __init__(self, env):
        self.master, slave = pty.openpty()
        env = dict(os.environ, PS1=PROMPT, PROMPT_COMMAND='', TERM='dumb', INPUTRC='/dev/null',
                   HISTFILE='', COLUMNS='200', **env)
        self.proc = subprocess.Popen(['bash', '--norc', '--noprofile', '-i'], stdin=slave,
                                     stdout=slave, stderr=slave, env=env, start_new_session=True,
                                     preexec_fn=lambda: self.own_terminal())
        os.close(slave)
        self.text = ''  # what came since the last type()
        self.expect(re.escape(PROMPT))
        # long candidate lists come at once, without a question
        self.run("bind 'set completion-query-items 0'; bind 'set page-completions off'")

    @staticmethod
    def own_terminal():
        import fcntl
        import termios
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        self.text += os.read(self.master, 65536).decode(errors='replace')
        self.text = re.sub('[\r\a]', '', self.text)
        return True

    def expect(self, pattern, timeout=30):
        """Until the pattern is in what has come since the last type(); the match."""
        end = time.monotonic() + timeout
        while True:
            found = re.search(pattern, self.text)
            if found:
                return found
            assert self.read(max(0, end - time.monotonic())), (pattern, self.text[-2000:])

    def type(self, keys):
        self.text = ''
        os.write(self.master, keys.encode())

    def run(self, line):
        """The output of a command, which ends."""
        self.type(line + '\n')
        self.expect(r'\n(.*\n)*' + re.escape(PROMPT) + '$')
        return self.text.split('\n', 1)[1].rsplit(PROMPT, 1)[0]

    def complete(self, line):
        """The command line after TAB was pressed at the end of this one; it is left again."""
        self.type(line + '\t\x05<')  # TAB, the end of the line, a mark
        self.expect('<$')
        typed = self.text.rsplit(PROMPT, 1)[-1][:-1]
        self.leave_line()
        return typed

    def candidates(self, line):
        """What TABs list: the first may add what all of them have in common."""
        self.type(line + '\t\t\t\x05<')
        self.expect('<$')
        lines = self.text.split('\n')[1:]
        self.leave_line()
        return [word for text in lines if not text.startswith(PROMPT) for word in text.split()]

    def leave_line(self):
        self.type('\x05\x15\n')  # to its end, kill all of it
        self.expect('\n' + re.escape(PROMPT) + '$')

    def close(self):
        os.close(self.master)  # the terminal hangs up: bash has SIGHUP, and its input ends
        self.proc.wait(10)
