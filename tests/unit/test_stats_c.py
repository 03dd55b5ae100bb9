"""When statistics say that delegates would pay, in C under sanitizers."""

from __future__ import annotations

from support import cbuild


def test_delegates_that_would_pay() -> None:
    out = cbuild.check(cbuild.program("stats/test_paying.c", "stats", "common"))
    assert out.splitlines()[-1].endswith(" 0 failures")
