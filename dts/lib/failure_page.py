# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""A pytest plugin: a failure prints at most one page, however large the compared values are.

pytest itself does not truncate anything in CI, and never a message written by a test."""

import pytest

LINES, COLUMNS = 60, 300


def _short(line):
    if len(line) <= COLUMNS:
        return line
    return '%s... (%d characters more)' % (line[:COLUMNS], len(line) - COLUMNS)


def cut(lines):
    """The first two thirds of a page, and the end."""
    out = list(lines)
    if len(out) > LINES:
        head, tail = LINES * 2 // 3, LINES // 3
        out[head:-tail] = ['... (%d lines more)' % (len(out) - head - tail)]
    return [_short(line) for line in out]


def cut_text(text):
    return '\n'.join(cut(text.split('\n')))


def _cut_traceback(chain):
    for traceback, crash, _ in chain:
        if crash is not None:
            crash.message = cut_text(crash.message)
        for entry in traceback.reprentries:
            entry.lines = cut(line for text in entry.lines for line in text.split('\n'))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if hasattr(report.longrepr, 'chain'):
        _cut_traceback(report.longrepr.chain)
    elif isinstance(report.longrepr, str):
        report.longrepr = cut_text(report.longrepr)
    report.sections = [(name, cut_text(text)) for name, text in report.sections]
