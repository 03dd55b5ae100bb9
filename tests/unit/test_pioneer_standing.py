"""What a rank of a replay says that makes no progress."""

from __future__ import annotations

import itertools
import pathlib
import time

import pytest

from mpiio_ext.pioneer.engine.places import Places
from mpiio_ext.pioneer.engine.plan import Plan, make_plan
from mpiio_ext.pioneer.engine.standing import description, reported
from support.pioneer_paths import path_of, row


@pytest.fixture
def plan() -> Plan:
    rows = [row("open", "a", "shared"), row("write", "a", "shared", size=9), row("close", "a", "shared")]
    return make_plan(path_of(rows), 0, 2, Places(pathlib.Path("/replay")))


def test_descriptions(plan: Plan) -> None:
    assert [description(plan, number) for number in (1, 6, 8, 13)] == [
        "waits for all ranks to meet before operation 0 of the path, open of /replay/a; 0 of 3 are behind it",
        "in the slack time before operation 1 of the path, write of /replay/a; 1 of 3 are behind it",
        "in operation 2 of the path, close of /replay/a; 2 of 3 are behind it",
        "waits for all ranks to meet behind its last operation",
    ]


def test_only_what_stands_is_said(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    """Every time at another row: nothing; always at one: once, and again only after twice the time."""
    asked = itertools.count()
    with reported(plan, 3, lambda: 4 * next(asked), 0.02):
        while next(asked) < 40:
            time.sleep(0.01)
    assert capsys.readouterr().err == ""
    with reported(plan, 3, lambda: 4 + 0 * next(asked), 0.02):
        while next(asked) < 200:
            time.sleep(0.01)
    said = capsys.readouterr().err.splitlines()
    assert 1 <= len(said) < 20
    assert all(line.startswith("mpiio-ext: replay: rank 3: no progress for ") for line in said)
    with reported(plan, 3, lambda: 4, 0):
        pass
    assert capsys.readouterr().err == ""
