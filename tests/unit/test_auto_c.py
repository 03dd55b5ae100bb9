"""What `auto` decides, in C under address and undefined-behaviour sanitizers, with facts up to the limits."""

from __future__ import annotations

import os

from support import cbuild


def test_decisions_under_sanitizers() -> None:
    out = cbuild.check(
        cbuild.program("auto_select/test_auto.c", "auto_select", "domains"),
        os.environ.get("MPIOX_TEST_SEED", "20081115"),
        timeout=300,
    )
    assert out.splitlines()[-1].endswith(" 0 failures")
