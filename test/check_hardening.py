#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Are the programs and libraries built with what makes errors hard to exploit?

usage: check_hardening.py FILE ...

Looks at the binaries, not at the compiler's options: position-independent, read-only relocations that
are bound at the start, stack protector, checked string functions, and on x86 an endbr64 where an
indirect call may land and a probe of each page of a large stack frame.
"""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def landings(code):
    """The functions of ours, not the C runtime's, that begin with an endbr64."""
    found = re.findall(r'<(\w+)>:\n[^\n]*\bendbr64', code)
    return set(found) - {'_init', '_fini', '_start', 'frame_dummy'}


def missing(file):
    header, dynamic = run('readelf', '-hW', file), run('readelf', '-dW', file)
    symbols = run('readelf', '--dyn-syms', '-W', file)
    if not re.search(r'Type:\s+DYN', header):
        yield 'it is not position-independent (b_pie)'
    if 'GNU_RELRO' not in run('readelf', '-lW', file):
        yield 'no -z relro'
    if 'BIND_NOW' not in dynamic and not re.search(r'FLAGS_1.*\bNOW\b', dynamic):
        yield 'no -z now'
    if '__stack_chk_fail' not in symbols:
        yield 'no -fstack-protector-strong'
    # where nothing is printed, FORTIFY may have nothing to check
    if re.search(r' UND \w*printf(@|\s)', symbols) and not re.search(r' __\w+_chk(@|\s)', symbols):
        yield 'no _FORTIFY_SOURCE'
    if 'X86-64' not in header:
        return
    code = run('objdump', '-d', '--no-show-raw-insn', file)
    functions = landings(code)
    if not functions or ('<main>:' in code and 'main' not in functions):
        yield 'no -fcf-protection=full'
    # a function with a large frame touches it page by page; 16 digits are a small negative number
    for size in re.findall(r'\bsub +\$0x([0-9a-f]{4,15}),%rsp', code):
        if int(size, 16) > 0x1000:
            yield 'no -fstack-clash-protection: a frame of 0x%s bytes' % size


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = ['%s: %s' % (f, m) for f in sys.argv[1:] for m in missing(f)]
    sys.exit('\n'.join(found) or 0)


if __name__ == '__main__':
    main()
