"""The knapsack of arbitration in C, under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

from support import cbuild


def test_knapsack_under_sanitizers() -> None:
    out = cbuild.check(cbuild.program("arbitration/test_mckp.c", "arbitration"))
    assert out.splitlines()[-1].endswith(" 0 failures")
