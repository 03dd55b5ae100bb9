"""Random accesses through delegates with random hints, caches of many pages, and delegates that are killed.

tests/random_delegates.py makes hundreds of these, and one of them again.
"""

from __future__ import annotations

import pathlib

import pytest

from support import fuzz
from support.marks import slow
from support.random_delegates import Run, drawn, play

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]
LIMIT_S = 240.0
#: Runs and kills of the quick tier.
QUICK, LONG = {False: fuzz.examples(6, least=2), True: fuzz.examples(6, least=4)}, 250
FIRST = {False: 1, True: 5001}  # seeds of runs and of kills
MANY_PAGES = ("mpiox_delegates=2", "mpiox_delegate_page=4096", "mpiox_delegate_cache=64m")


def check(run: Run, folder: pathlib.Path) -> bool:
    """Run it; tell whether somebody was killed."""
    folder.mkdir(exist_ok=True)
    outcome = play(run, folder, LIMIT_S)
    assert not outcome.problem, f"{outcome.problem}\n{run}\n{outcome.text[-6000:]}"
    (folder / "file").unlink()
    return bool(outcome.killed)


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
@pytest.mark.parametrize("kill", [False, *slow(True)])
def test_a_few(tmp_path: pathlib.Path, kill: bool) -> None:
    """Random runs, and random deaths: some of them come before the end."""
    killed = [
        check(drawn(seed, kill=kill), tmp_path / str(seed)) for seed in range(FIRST[kill], FIRST[kill] + QUICK[kill])
    ]
    assert any(killed) == kill


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_many(tmp_path: pathlib.Path, kill: bool) -> None:
    """Hundreds."""
    for seed in range(FIRST[kill] + QUICK[kill], FIRST[kill] + LONG):
        check(drawn(seed, kill=kill), tmp_path / str(seed))
