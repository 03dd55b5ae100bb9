"""The lock model in C under address and undefined-behaviour sanitizers."""

from __future__ import annotations

import os

from support import cbuild


def test_locks_under_sanitizers() -> None:
    out = cbuild.check(
        cbuild.program("lock_model/test_lock_model.c", "lock_model", "domains"),
        os.environ.get("MPIOX_TEST_SEED", "20081115"),
        timeout=300,
    )
    assert out.splitlines()[-1].endswith(" 0 failures")
