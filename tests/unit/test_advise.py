"""`mpiio-ext advise` without running anything: where a program begins, and what is promised for it."""

from __future__ import annotations

import pathlib

import click
import pytest

from mpiio_ext.advise.checkpoints import checkpoints_of
from mpiio_ext.advise.command import _Check, _had, _main_file, split_command
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.tune.objective import Elapsed
from support.pioneer_paths import path_of, row, save


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        ("mpirun -n 4 {app} 13 3", "mpirun -n 4"),
        ("mpirun -n 4 --bind-to none -x OMP_NUM_THREADS=1 {app}", "mpirun -n 4 --bind-to none -x OMP_NUM_THREADS=1"),
        ("mpiexec --hostfile {hosts} -np 2 python app.py", "mpiexec --hostfile {hosts} -np 2"),
        ("mpirun -n 2 env A=1 {app}", "mpirun -n 2"),
        ("{app} 13", ""),
    ],
)
def test_where_the_program_begins(tmp_path: pathlib.Path, command: str, launcher: str) -> None:
    names = {"app": str(tmp_path / "app"), "hosts": str(tmp_path / "hosts")}
    (tmp_path / "app").write_text("#!/bin/sh\n")
    (tmp_path / "app").chmod(0o755)
    (tmp_path / "hosts").write_text("localhost\n")
    words = tuple(command.format(**names).split())
    first, rest = split_command(words, "openmpi")
    assert first == tuple(launcher.format(**names).split())
    assert (*first, *rest) == words


@pytest.mark.parametrize(
    ("command", "why"),
    [("mpirun -n 1 ls : -n 1 ls", "several programs"), ("mpirun -n 4 ./no-such", "where does the program begin")],
)
def test_where_no_program_is_found(command: str, why: str) -> None:
    with pytest.raises(click.UsageError, match=why):
        split_command(command.split(), "openmpi")


def test_the_main_file(tmp_path: pathlib.Path) -> None:
    """The one that MPI-IO moves most bytes of, on all ranks together, with the root's name."""
    save(
        [
            row("write", "log", "root", size=10**9),
            row("MPI_File_write", "small", "shared", "mpiio", size=5),
            row("MPI_File_write", "own.{rank}", "private", "mpiio", size=4),
            row("MPI_File_read", "own.{rank}", "private", "mpiio", size=4),
        ],
        tmp_path / "p.json",
    )
    assert _main_file(WorkloadPath.load(tmp_path / "p.json")) == "own.0"


def _loop(*steps: tuple[float, float, str]) -> WorkloadPath:
    """Return the path of a program that computes so long, then moves 2 MB of a new file in so long, again and again."""
    rows = []
    for number, (pause_s, call_s, call) in enumerate(steps):
        file = f"checkpoint{number}"
        rows += [
            row("MPI_File_open", file, "shared", "mpiio", slack=round(pause_s * 1e9)),
            {**row(call, file, "shared", "mpiio", size=1 << 20), "duration_0": round(call_s * 1e9)},
            row("MPI_File_close", file, "shared", "mpiio"),
        ]
    return path_of(rows)


WRITE, READ = "MPI_File_write_at_all", "MPI_File_read_at_all"


def test_checkpoints_are_found() -> None:
    """Some time between, in a while each: they could be written behind the program. The first step is its start."""
    found = checkpoints_of(_loop((0, 1.0, WRITE), (9, 1.5, WRITE), (11, 1.0, WRITE), (10, 1.0, WRITE)))
    assert found is not None
    assert (found.count, found.size_bytes, found.wait_s, found.compute_s) == (4, 2 << 20, 1.0, 10.0)
    assert found.hints == ("mpiox_delegates=2", "mpiox_close=staged", "mpiox_delegate_cache=2m")
    assert "waits 1 s for each and computes 10 s" in str(found)


@pytest.mark.parametrize(
    "steps",
    [
        [(0, 1.0, WRITE), (10, 1.0, WRITE)],  # one interval is none
        [(0, 1.0, READ), (10, 1.0, READ), (10, 1.0, READ)],
        [(0, 1.0, WRITE), (10, 1.0, READ), (10, 1.0, WRITE), (10, 1.0, READ), (10, 1.0, WRITE)],
        [(0, 3.0, WRITE), (2, 3.0, WRITE), (2, 3.0, WRITE)],  # no time to write it meanwhile
        [(0, 0.01, WRITE), (9, 0.01, WRITE), (9, 0.01, WRITE)],  # nothing to gain
        [(0, 1.0, WRITE), (0.01, 1.0, WRITE), (0.01, 1.0, WRITE)],  # one burst
        [],
    ],
)
def test_what_is_no_checkpoint(steps: list[tuple[float, float, str]]) -> None:
    assert checkpoints_of(_loop(*steps)) is None


def test_what_is_told(tmp_path: pathlib.Path) -> None:
    """Promised and had, each with the seconds behind it."""
    del tmp_path
    evidence = pytest.importorskip("mpiio_ext.tune.evidence")
    pytest.importorskip("scipy.stats")
    found = evidence.evidence([2.0] * 6, [1.0, 1.1, 0.9, 1.0, 1.05, 0.95])
    lines = _had(_Check(evidence=found, promised_s=1.6, promised=1.25), Elapsed())
    assert lines[0] == "promised for the program: 1.25 times as fast, 1.6 s in place of 2.000 s"
    assert lines[1].startswith("measured for the program: 2 times as fast (95% confidence: ")
    assert lines[1].endswith("6 pairs of runs in random order; 1.000 s in place of 2.000 s)")
