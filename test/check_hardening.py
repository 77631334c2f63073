#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Are the programs built with what makes errors hard to exploit?

usage: check_hardening.py PROGRAM ...

Looks at the binaries, not at the compiler's options: position-independent, read-only relocations that
are bound at the start, stack protector, checked string functions, and on x86 an endbr64 where an
indirect call may land and a probe of each page of a large stack frame.
"""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def missing(program):
    header, dynamic = run('readelf', '-hW', program), run('readelf', '-dW', program)
    symbols = run('readelf', '--dyn-syms', '-W', program)
    if not re.search(r'Type:\s+DYN', header):
        yield 'it is not position-independent (b_pie)'
    if 'GNU_RELRO' not in run('readelf', '-lW', program):
        yield 'no -z relro'
    if 'BIND_NOW' not in dynamic and not re.search(r'FLAGS_1.*\bNOW\b', dynamic):
        yield 'no -z now'
    if '__stack_chk_fail' not in symbols:
        yield 'no -fstack-protector-strong'
    if not re.search(r' __\w+_chk(@|\s)', symbols):
        yield 'no _FORTIFY_SOURCE'
    if 'X86-64' not in header:
        return
    if 'endbr64' not in run('objdump', '-d', '--disassemble=main', program):
        yield 'no -fcf-protection=full'
    # a function with a large frame touches it page by page
    probe = r'sub +\$0x1000,%rsp\n[^\n]*\b(?:or|mov)q +\$0x0,\(%rsp\)'
    if not re.search(probe, run('objdump', '-d', '--no-show-raw-insn', program)):
        yield 'no -fstack-clash-protection'


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = ['%s: %s' % (p, m) for p in sys.argv[1:] for m in missing(p)]
    sys.exit('\n'.join(found) or 0)


if __name__ == '__main__':
    main()
