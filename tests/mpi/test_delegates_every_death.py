"""A delegate, or it and its supervisor, are killed at every point of a file's life, one after another.

The points are those that the library names (MPIOX_POINT of csrc/core/common/mpiox_testing.h): the requests to a
delegate, and what it does to a file. A run without a death lists the points that tests/programs/delegates_every_death.c
passes, and how often. Whoever dies, the program reads what it has closed, or gets an error; no staging name stays.
"""

from __future__ import annotations

import collections
import functools
import pathlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

from mpiio_ext.delegates.cli_draining import wait
from support.cbuild import mpi_program
from support.launch import ROOT, launcher, preload_environment
from support.processes import job

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.usefixtures("extension")]
RANKS, LIMIT_S, GRACE_S = 3, 120.0, 60.0
BYTES = 3000 * 8 * RANKS
#: The seed with which each file was closed last.
SEEDS = {"a": 3, "b": 5, "c": 4, "d": 6}
#: Points of whoever writes the bytes of a dead delegate: its supervisor may be killed there.
HEIRS = ("rescue", "rescued", "end", "ended", "name", "named", "forgotten", "settled")
#: Of a point that is passed more often, the first passages and the last one.
PASSAGES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a job runs: its level of acknowledgement, its pretended nodes, and which delegate dies."""

    level: str
    nodes: int
    delegate: int

    def __str__(self) -> str:
        """Return it as the name of a test."""
        return f"{self.level}-{self.nodes}-{self.delegate}"

    def environment(self, rules: str) -> dict[str, str]:
        """Return the environment of the job."""
        hints = (
            "*:mpiox_delegates=2:mpiox_delegate_cache=2m:mpiox_delegate_page=4k:striping_unit=4k:mpiox_close=staged:"
            f"mpiox_delegate_ack={self.level}"
        )
        return {
            **preload_environment(),
            "MPIOX_HINTS": hints,
            "MPIOX_RANKS_PER_NODE": "2" if self.nodes > 1 else "0",
            "MPIOX_DEATH": f"{self.delegate}:{rules}",
        }


PLACES = [
    Place(level=level, nodes=nodes, delegate=delegate)
    for level in ("memory", "replica", "disk")
    for nodes, delegate in ((1, 1), (2, 0), (2, 1))
]


def content(seed: int) -> bytes:
    """As byte_at() of tests/programs/report.h."""
    places = np.arange(1, BYTES + 1, dtype=np.uint64)
    mixed = places * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 7919)
    return (1 + (mixed >> np.uint64(40)) % np.uint64(255)).astype(np.uint8).tobytes()


def play(folder: pathlib.Path, place: Place, rules: str) -> list[str]:
    """Run the program under these rules; return what is wrong."""
    (files := folder / "files").mkdir(parents=True)
    command = [str(launcher()), "-n", str(RANKS), str(mpi_program("delegates_every_death")), str(files)]
    with job(command, folder / "log", place.environment(rules)) as running:
        status = running.status(LIMIT_S)
        left = running.left(GRACE_S)
        text = running.text()
    wrong = re.findall(r"^(?:wrong|error): .*", text, re.MULTILINE)
    wrong += [f"status {status}"] * (status != 0 or not re.search("^end$", text, re.MULTILINE))
    wrong += left
    wrong += re.findall("^.*(?:lost bytes|was left by).*", text, re.MULTILINE)
    if names := {path.name for path in files.iterdir()} ^ set(SEEDS):
        wrong.append(f"names {sorted(names)}")
    wrong += [
        f"{name} has other bytes"
        for name, seed in SEEDS.items()
        if (files / name).exists() and (files / name).read_bytes() != content(seed)
    ]
    waited = CliRunner().invoke(wait, ["--patience", "0s", *(str(files / name) for name in SEEDS)])
    wrong += [f"wait: {waited.exit_code} {waited.output}"] * (waited.exit_code != 0)
    return [*wrong, text] if wrong else []


@functools.cache
def points(place: Place, folder: pathlib.Path) -> list[tuple[str, int]]:
    """Return the points that a run without a death passes, each with the numbers of its passages."""
    wrong = play(folder, place, f"owner,0,{folder}.points,*")
    assert not wrong, "\n".join(wrong)
    passed = collections.Counter(pathlib.Path(f"{folder}.points").read_text().splitlines())
    return [
        (name, number)
        for name, count in sorted(passed.items())
        for number in sorted({*range(1, min(count, PASSAGES) + 1), count})
    ]


def check_all(folder: pathlib.Path, deaths: Sequence[tuple[Place, str]]) -> None:
    """Play all of them, one after the other; each failure is shown.

    A point that is passed for the last time in one run need not be passed so often in another one.
    """
    wrong, died = list[str](), 0
    for number, (place, rules) in enumerate(deaths):
        (each := folder / str(number)).mkdir(parents=True)
        if found := play(each / "job", place, rules.replace("DIED", f"{each}/died")):
            wrong += [f"{place} {rules}", *found]
        died += (each / "died").exists()
        shutil.rmtree(each)
    assert not wrong, "\n".join(wrong)
    assert died > 0.9 * len(deaths)


@pytest.mark.parametrize(
    "rules",
    [
        "both,2,DIED,request open",  # of the copies: what had staged closes has none
        "both,2,DIED,answered close",
        "both,1,DIED,ended",
        "owner,2,DIED,request close;heir,1,DIED,rescued",
    ],
)
def test_a_death(memory_folder: pathlib.Path, rules: str) -> None:
    """One of each kind: while a file is opened, closed, gets its name, and is written by another process."""
    check_all(memory_folder, [(Place(level="replica", nodes=2, delegate=1), rules)])


@pytest.mark.slow
@pytest.mark.parametrize("who", ["owner", "both"])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_death(memory_folder: pathlib.Path, place: Place, who: str) -> None:
    passed = points(place, memory_folder / "listed")
    check_all(memory_folder, [(place, f"{who},{number},DIED,{name}") for name, number in passed])


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_death_of_an_heir(memory_folder: pathlib.Path, place: Place) -> None:
    """A delegate is killed with bytes of a file, its supervisor while it writes them, or gives the file its name."""
    rules = [
        f"owner,{number},DIED,{name};heir,1,DIED,{heir}"
        for name, number in (("request flush", 1), ("answered close", 1), ("answered close", 2), ("end", 1))
        for heir in HEIRS
    ]
    check_all(memory_folder, [(place, each) for each in rules])


@pytest.mark.slow
def test_no_point_is_missed(memory_folder: pathlib.Path) -> None:
    """Each point that the library names is passed by the delegates somewhere, or by their supervisors."""
    named = {
        name
        for path in (ROOT / "csrc").rglob("*.c")
        for name in re.findall(r'MPIOX_POINT(?:_OF)?\("([^"]+)"', path.read_text("utf-8"))
    }
    passed = {name for number, place in enumerate(PLACES) for name, _ in points(place, memory_folder / str(number))}
    kinds = {name.split(" ", 1)[0] for name in passed}  # "request open" is one of "request"
    assert named - passed - kinds - set(HEIRS) == set()
