"""The order in which workers of pytest-xdist take the files of tests names files that are there."""

from __future__ import annotations

from pathlib import Path

from support.workers import LONGEST

TESTS = Path(__file__).resolve().parents[1]


def test_files_that_go_first_are_there_once() -> None:
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
