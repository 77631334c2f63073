# SPDX-License-Identifier: BSD-3-Clause
# Copyright(c) 2026 Polca contributors
"""The appliance on the guest's wire (lib/lab.py), with a capture of each module's packets."""

import pytest


@pytest.fixture(scope='module')
def polca(lab, request):
    with lab.captured('rxe_' + request.path.stem):
        yield lab.polca
