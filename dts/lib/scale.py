# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""Sizes of tests that prove the same rule with smaller data: CI takes the smaller number,
`dts/run --full` (and `config/test.sh --long functional`) the larger one."""

import os

FULL = os.environ.get('POLCA_DTS_FULL') == '1'


def scaled(ci, full):
    return full if FULL else ci
