"""Random accesses through delegates with random hints, caches of many pages, and delegates that are killed.

tests/random_delegates.py makes hundreds of these, and one of them again.
"""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from support import fuzz
from support.marks import slow
from support.random_delegates import Outcome, Run, drawn, play

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S = 240.0
#: Runs of the quick tier, and kills of each level.
QUICK, KILLS, LONG = fuzz.examples(6, least=2), 3, 250
FIRST = {False: 1, True: 5001}  # seeds of runs and of kills
FIRST_DEATHS = {"memory": 5601, "replica": 5701, "disk": 5401}  # by level
MANY_PAGES = ("mpiox_delegates=2", "mpiox_delegate_page=4096", "mpiox_delegate_cache=64m")


def check(run: Run, folder: pathlib.Path) -> Outcome:
    """Run it; every byte is there, and nothing stays."""
    folder.mkdir(exist_ok=True)
    outcome = play(run, folder, LIMIT_S)
    assert not outcome.problem, f"{outcome.problem}\n{run}\n{outcome.text[-6000:]}"
    (folder / "file").unlink()
    return outcome


@pytest.mark.slow_with("0-thread", "512-spawn")
@pytest.mark.parametrize("mode", ["spawn", "thread", *slow("process")])
@pytest.mark.parametrize("bypass", ["0", "512"])
def test_a_cache_of_many_pages(tmp_path: pathlib.Path, mode: str, bypass: str) -> None:
    """16,000 pages in each cache, and more requests than one word of its ring's summary stands for."""
    hints = (*MANY_PAGES, f"mpiox_delegate_mode={mode}", f"mpiox_delegate_bypass={bypass}")
    for seed in (1, 2)[: fuzz.examples(2, least=1)]:
        check(Run(seed=seed, hints=hints, cells=40_000, accesses=3000), tmp_path / str(seed))


@pytest.mark.parametrize("name", ["page", *slow("cache", "bypass"), "write_behind"])
def test_absurd_sizes(tmp_path: pathlib.Path, name: str) -> None:
    """None at all, or more than any machine has, inside a node and between nodes: every byte is right."""
    sizes = (("0", 0), ("8000000000g", 1), ("0", 1), ("8000000000g", 0))
    for number, (size, per_node) in enumerate(sizes[: fuzz.examples(4, least=2)]):
        hints = ("mpiox_delegates=2", "mpiox_delegate_mode=spawn", f"mpiox_delegate_{name}={size}")
        run = Run(seed=number, hints=hints, ranks=3, per_node=per_node, cells=800, accesses=100, collective=1)
        check(run, tmp_path / str(number))


@pytest.mark.both
def test_a_few(tmp_path: pathlib.Path) -> None:
    for seed in range(FIRST[False], FIRST[False] + QUICK):
        check(drawn(seed, kill=False), tmp_path / str(seed))


@pytest.mark.parametrize("ack", [*slow("memory"), "replica", "disk"])
def test_a_few_deaths(tmp_path: pathlib.Path, ack: str) -> None:
    """At random moments, of delegates, of those who look after them, of both: ranks go on without, and lose no byte.

    On a busy machine they may all have come too late: then they come again, three times in all.
    """
    first = FIRST_DEATHS[ack]
    for turn in range(3):
        seen = [
            check(
                dataclasses.replace(drawn(first + i, kill=True, ack=ack), kill_at=i / KILLS), tmp_path / f"{turn}-{i}"
            )
            for i in range(KILLS)
        ]
        if any(outcome.went_on for outcome in seen):
            return
    pytest.fail("no delegate was killed while ranks went on")


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_many(tmp_path: pathlib.Path, kill: bool) -> None:
    """Hundreds."""
    for seed in range(FIRST[kill] + QUICK, FIRST[kill] + LONG):
        check(drawn(seed, kill=kill), tmp_path / str(seed))
