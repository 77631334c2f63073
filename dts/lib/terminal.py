# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""An interactive bash or zsh on a terminal, with keys typed as by a user."""

import os
import pty
import re
import select
import subprocess
import time

PROMPT = 'ready> '


class Terminal:
    SHELL = ['bash', '--norc', '--noprofile', '-i']
    # print long candidate lists at once, without a question
    SETUP = "bind 'set completion-query-items 0'; bind 'set page-completions off'"

    def __init__(self, env):
        self.master, slave = pty.openpty()
        env = dict(os.environ, PS1=PROMPT, PROMPT_COMMAND='', TERM='dumb', INPUTRC='/dev/null',
                   HISTFILE='', COLUMNS='200', **env)
        self.proc = subprocess.Popen(self.SHELL, stdin=slave, stdout=slave, stderr=slave, env=env,
                                     start_new_session=True, preexec_fn=lambda: self.own_terminal())
        os.close(slave)
        self.text = ''  # output since the last type()
        self.expect(re.escape(PROMPT))
        self.run(self.SETUP)

    @staticmethod
    def own_terminal():
        import fcntl
        import termios
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        self.text += os.read(self.master, 65536).decode(errors='replace')
        self.text = re.sub('\x1b\\[[?0-9;]*[A-Za-z]|[\r\a]', '', self.text)
        return True

    def expect(self, pattern, timeout=30):
        """Wait until the pattern is in the output since the last type(); returns the match."""
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
        """Run a command that ends; returns its output."""
        self.type(line + '\n')
        self.expect(r'\n(.*\n)*' + re.escape(PROMPT) + '$')
        return self.text.split('\n', 1)[1].rsplit(PROMPT, 1)[0]

    def complete(self, line):
        """Type this line and TAB; returns the completed command line, which is then discarded."""
        self.type(line + '\t\x05<')  # TAB, the end of the line, a mark
        self.expect('<$')
        typed = self.text.rsplit(PROMPT, 1)[-1][:-1]
        self.leave_line()
        return typed

    def candidates(self, line):
        """The candidates that TAB lists: the first TAB may only add their common prefix."""
        self.type(line + '\t\t\t\x05<')
        self.expect('<$')
        lines = self.text.split('\n')[1:]
        self.leave_line()
        return [word for text in lines if not text.startswith(PROMPT) for word in text.split()]

    def leave_line(self):
        self.type('\x05\x15\n')  # to its end, kill all of it
        self.expect('\n' + re.escape(PROMPT) + '$')

    def close(self):
        os.close(self.master)  # the terminal hangs up: bash gets SIGHUP and end of input
        self.proc.wait(10)


class Zsh(Terminal):
    SHELL = ['zsh', '-f', '-i', '-o', 'no_prompt_sp', '-o', 'no_list_ambiguous']
    SETUP = 'LISTMAX=0; autoload -Uz compinit && compinit -u -D'

    def complete(self, line):
        """zsh takes the blank behind the completed word away when the mark is typed."""
        return super().complete(line).replace('\x08 \x08', '')
