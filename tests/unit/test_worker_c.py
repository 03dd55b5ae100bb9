"""The worker thread of nonblocking access, in C, under sanitizers."""

from __future__ import annotations

from support import cbuild


def test_worker_under_sanitizers() -> None:
    out = cbuild.check(cbuild.program("common/test_worker.c", "common"), timeout=120)
    assert out.splitlines()[-1].endswith(" 0 failures")
