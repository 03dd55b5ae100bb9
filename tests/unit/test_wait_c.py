"""Limits on waiting, and waking up (csrc/core/common/mpiox_wait.c), by a C program."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from support import cbuild


def test_limits() -> None:
    """A wait ends when nobody comes; signs of life, other threads' limits and time spent stopped do not count."""
    assert "0 failures" in cbuild.check(cbuild.program("common/test_wait.c", "common"))


@pytest.mark.parametrize("build", [cbuild.program, cbuild.threads_program], ids=["address", "threads"])
def test_no_wake_up_is_lost(build: Callable[[str], pathlib.Path]) -> None:
    """Between the last look at a word and the sleep, with many threads and many orders of what they do."""
    assert "0 failures" in cbuild.check(build("common/test_wake.c"))
