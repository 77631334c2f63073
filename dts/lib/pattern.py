# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The test bytes of a seed, equal to those of guest/rdmacli.c."""

import array
import functools
import sys


@functools.lru_cache(maxsize=64)
def pattern(seed, length):
    """Little-endian words (seed + k) * 2654435761 for k = 0, 1, ..., cut to length."""
    a = array.array('I', ((seed + k) * 2654435761 & 0xffffffff for k in range((length + 3) // 4)))
    if sys.byteorder == 'big':
        a.byteswap()
    return a.tobytes()[:length]


def first_difference(a, b):
    """The first difference of two byte strings, as text for an assertion; empty if they are
    equal."""
    if a == b:
        return ''
    if len(a) != len(b):
        return 'lengths %d and %d' % (len(a), len(b))
    i = next(i for i in range(len(a)) if a[i] != b[i])
    return 'byte %d is 0x%02x, not 0x%02x' % (i, a[i], b[i])
