"""The page of a run in which calls fail, or wait for locks: programs of which the counts are known."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

import mpiio_ext
from mpiio_ext.analytics.run.page import page
from mpiio_ext.analytics.run.shown import RunReport
from support import cbuild
from support.darshan_rows import shared_data
from support.launch import base_environment, launcher, run_bounded

pytestmark = pytest.mark.mpi

RUN = [sys.executable, "-m", "mpiio_ext", "run"]


def report(folder: pathlib.Path, ranks: int, *words: str, **variables: str) -> tuple[RunReport, str]:
    """Return the page of a program, and what was printed on standard error."""
    command = [*RUN, "--report", str(folder / "io.html"), "--", str(launcher()), "-n", str(ranks), *words]
    done = run_bounded(command, env=base_environment() | variables, timeout_s=120)
    return mpiio_ext.run_report(folder / "io.html"), done.stderr


def test_a_wait_for_a_lock_is_named(extension: str, tmp_path: pathlib.Path) -> None:
    found, _ = report(tmp_path, 3, str(cbuild.mpi_program("trace", "-O2")), "locked", str(tmp_path), "5")
    assert "waits for locks of `other` (flock)" in found.sentence, found.sentence
    (fact,) = (value for name, value in found.document["facts"] if name == "time in other calls on files")
    assert fact.startswith("waits for locks of `other` (flock): "), fact
    assert found.files.rows()[0]["file"] == str(tmp_path / "other")
    assert found.document["failures"] == [] and not found.advice


@pytest.mark.both
def test_failures_are_the_first_sentence(extension: str, tmp_path: pathlib.Path) -> None:
    """Of each kind of call, two of three a rank: on the page, in the table of files, and in the library's line."""
    program = str(cbuild.mpi_program("trace", "-O2"))
    found, printed = report(tmp_path, 2, program, "limited", str(tmp_path), MPIOX_STATS="line")
    first = found.sentence.partition(". ")[0]
    assert first.startswith("Accesses failed: ") and "on `data` failed with MPI_ERR_IO" in first, found.sentence
    for function in ("MPI_File_write_at_all", "MPI_File_write_at"):
        assert f"4 of 6 {function} calls" in first, first
    assert "4 of 6 MPI_Wait calls" in first
    calls = {(row["function"], row["error"]): row["calls"] for row in found.document["failed_calls"]}
    assert calls["MPI_File_write_at", "MPI_ERR_IO"] == 4
    asked = found.files.rows()[0]["asked"]
    assert asked.startswith("written: 6 collective and 12 independent calls, at least 8 of which failed"), asked
    assert "Nothing needs a change" not in page(found.document) and "nothing to change" not in found.sentence
    assert "Accesses failed." in page(found.document)
    assert f"mpiio_ext: {tmp_path / 'data'}: 12 writes failed (12 with MPI_ERR_IO); 2 ranks wrote " in printed, printed


@pytest.fixture()
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return a file system of 64 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small tmpfs can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def strangers_program(folder: pathlib.Path, name: str) -> str:
    """Return a program of the data beside the project."""
    source = shared_data("strangers5", f"{name}.c")
    program = folder / name
    command = [str(pathlib.Path(sys.prefix) / "bin" / "mpicc"), "-O2", "-o", str(program), str(source)]
    subprocess.run(command, check=True, timeout=120)
    return str(program)


@pytest.mark.slow
@pytest.mark.parametrize("hints", ["", "*:mpiox_enable=false"])
def test_a_full_disk(extension: str, family: str, tmp_path: pathlib.Path, small_disk: pathlib.Path, hints: str) -> None:
    """12 of 16 calls have failed, by this library or by the MPI library, which may not return it."""
    program = strangers_program(tmp_path, "full_disk")
    found, _ = report(tmp_path, 2, program, str(small_disk / "out"), MPIOX_HINTS=hints)
    assert found.sentence.startswith("Accesses failed: "), found.sentence
    assert "MPI_ERR_NO_SPACE" in found.sentence or "ENOSPC" in found.sentence
    if not hints:
        calls = [row["calls"] for row in found.document["failed_calls"] if row["error"] == "MPI_ERR_NO_SPACE"]
        assert sum(calls) == 12
    assert "nothing to change" not in found.sentence and "Nothing needs a change" not in page(found.document)


@pytest.mark.slow
def test_msync_is_named(extension: str, tmp_path: pathlib.Path) -> None:
    """Of 500 calls a rank, whatever they take, each is the file's."""
    found, _ = report(tmp_path, 4, strangers_program(tmp_path, "msync"), str(tmp_path), "start")
    (fact,) = (value for name, value in found.document["facts"] if name == "time in other calls on files")
    assert fact.startswith("syncs of mapped memory of `map.") and "(msync): " in fact, fact
    assert "syncs of mapped memory of `map." in found.sentence, found.sentence


@pytest.mark.slow
def test_locks_of_python_are_named(extension: str, tmp_path: pathlib.Path) -> None:
    """The locks are known, however long ranks waited for them."""
    program = str(shared_data("strangers5", "lock.py"))
    found, _ = report(tmp_path, 4, sys.executable, program, str(tmp_path))
    (fact,) = (value for name, value in found.document["facts"] if name == "time in other calls on files")
    assert fact.startswith("waits for locks of `lock` (flock): "), fact
