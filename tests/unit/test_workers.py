"""The order in which workers of pytest-xdist take the files of tests names files that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.workers import LONGEST, place

TESTS = Path(__file__).resolve().parents[1]


def test_files_that_go_first_are_there_once() -> None:
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_inherited_tests_go_with_the_file_that_inherits_them(request: pytest.FixtureRequest) -> None:
    """Those of every partition method are written in tests/support."""
    module = pytest.Module.from_parent(request.session, path=TESTS / "unit" / "test_partition_methods.py")
    name = next(name for name in vars(module.obj) if name.startswith("Test"))
    (item, *_) = pytest.Class.from_parent(module, name=name).collect()
    assert "support" in item.location[0] and place(item)[1].endswith("unit/test_partition_methods.py")
