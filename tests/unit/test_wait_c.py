"""Limits on waiting (csrc/common/mpiox_wait.c), by a C program."""

from __future__ import annotations

from support import cbuild


def test_limits() -> None:
    """A wait ends when nobody comes; signs of life, other threads' limits and time spent stopped do not count."""
    assert "0 failures" in cbuild.check(cbuild.program("common/test_wait.c", "common"))
