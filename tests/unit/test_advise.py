"""`mpiio-ext advise` without running anything: where a program begins, and what is promised for it."""

from __future__ import annotations

import pathlib

import click
import pytest

from mpiio_ext.advise.command import _Check, _had, _main_file, split_command
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.tune.objective import Elapsed
from support.pioneer_paths import row, save


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


@pytest.mark.parametrize(("command", "why"), [("mpirun -n 1 ls : -n 1 ls", "several programs"),
                                              ("mpirun -n 4 ./no-such", "where does the program begin")])  # fmt: skip
def test_where_no_program_is_found(command: str, why: str) -> None:
    with pytest.raises(click.UsageError, match=why):
        split_command(command.split(), "openmpi")


def test_the_main_file(tmp_path: pathlib.Path) -> None:
    """The one that MPI-IO moves most bytes of, on all ranks together, with the root's name."""
    save([row("write", "log", "root", size=10**9), row("MPI_File_write", "small", "shared", "mpiio", size=5),
          row("MPI_File_write", "own.{rank}", "private", "mpiio", size=4),
          row("MPI_File_read", "own.{rank}", "private", "mpiio", size=4)], tmp_path / "p.json")  # fmt: skip
    assert _main_file(WorkloadPath.load(tmp_path / "p.json")) == "own.0"


def test_what_is_told(tmp_path: pathlib.Path) -> None:
    """Promised and had, each with the seconds behind it."""
    del tmp_path
    evidence = pytest.importorskip("mpiio_ext.tune.evidence")
    pytest.importorskip("scipy.stats")
    found = evidence.evidence([2.0] * 6, [1.0, 1.1, 0.9, 1.0, 1.05, 0.95])
    lines = _had(_Check(evidence=found, promised_s=1.6, promised=1.25), Elapsed())
    assert lines[0] == "promised for the program: 1.25 times as fast, 1.6 s in place of 2.000 s"
    assert lines[1].startswith("had by the program: 2 times as fast (95% confidence: ")
    assert lines[1].endswith("6 pairs of runs in random order; 1.000 s in place of 2.000 s)")
