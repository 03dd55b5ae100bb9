"""Files that a part of the ranks open together: traced, carried out by as many, fewer and more ranks, traced again."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.readers import own
from mpiio_ext.pioneer.synthesis import find_violations
from support.launch import PROGRAMS, base_environment, python_run, run_bounded
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

TRACED, STEPS, BLOCK = 4, 6, 500


@pytest.fixture(scope="module")
def program(extension: str, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the folder of a program's trace and data, traced on four ranks."""
    del extension
    folder = tmp_path_factory.mktemp("program")
    (folder / "data").mkdir()
    words = [
        "-m",
        "mpiio_ext",
        "trace",
        "-o",
        folder / "trace",
        "--",
        sys.executable,
        PROGRAMS / "pioneer_parts.py",
        folder / "data",
    ]
    python_run(words, TRACED, timeout_s=120)
    return folder


def test_the_trace_tells_the_members(program: pathlib.Path) -> None:
    _, batches = own.read([program / "trace"])
    opens = [row for batch in batches for row in batch.to_pylist() if row["operation"] == "MPI_File_open"]
    found: dict[str, set[tuple[int, str, int, str | None]]] = {}
    for row in opens:
        extra = json.loads(row["extra"])
        about = row["rank"], extra["comm"], extra["comm_size"], extra.get("members")
        found.setdefault(pathlib.Path(row["file"]).name, set()).add(about)
    assert found == {
        "half.0": {(rank, "other", 2, "0-1") for rank in (0, 1)},
        "half.1": {(rank, "other", 2, "2-3") for rank in (2, 3)},
        "pair_01.dat": {(rank, "other", 2, "0,2") for rank in (0, 2)},
        "pair_02.dat": {(rank, "other", 2, "1,3") for rank in (1, 3)},
        "even.dat": {(rank, "other", 2, "0,2") for rank in (0, 2)},
        "all.dat": {(rank, "world", 4, None) for rank in range(TRACED)},
    }


@pytest.mark.parametrize("ranks", [2, *slow(8, 4)])
def test_the_loop_closes(program: pathlib.Path, tmp_path: pathlib.Path, ranks: int) -> None:
    """All metrics but those of time hold, and every rank has opened its files with the right ones."""
    command = [
        sys.executable,
        "-m",
        "mpiio_ext",
        "pioneer",
        "all",
        str(program / "trace"),
        "-n",
        str(ranks),
        "-o",
        str(tmp_path / "out"),
        "--only",
        f"{program}/data/*",
        "--time-scale",
        "0",
    ]
    launch = run_bounded(command, env=base_environment(), timeout_s=180, check=False)
    assert launch.returncode == 0, launch.describe()
    assert "communicators" not in launch.stderr, launch.describe()
    path = WorkloadPath.load(tmp_path / "out" / "path.parquet")
    assert [rule.to_json() for rule in path.info.communicators] == [
        {"blocks": 2},
        {"every": 2},
        {"every": 2, "which": [0]},
    ]
    assert not [item for item in find_violations(path) if "MPI_File" in item.why]
    files = (tmp_path / "out" / "run" / "files").joinpath(*program.parts[1:], "data")
    parts = range((ranks + 1) // 2)
    assert {item.name for item in files.iterdir()} == {
        "all.dat",
        "even.dat",
        *(f"half.{part}" for part in parts),
        "pair_01.dat",
        "pair_02.dat",
    }
    assert {(files / f"half.{part}").stat().st_size for part in parts} == {2 * STEPS * BLOCK}
    assert (files / "even.dat").stat().st_size == ranks // 2 * BLOCK
    if ranks == TRACED:
        assert (files / "pair_02.dat").stat().st_size == (program / "data" / "pair_02.dat").stat().st_size
    _, batches = own.read([tmp_path / "out" / "run" / "trace"])
    sizes = {
        (pathlib.Path(row["file"]).name, json.loads(row["extra"])["comm_size"])
        for batch in batches
        for row in batch.to_pylist()
        if row["operation"] == "MPI_File_open"
    }
    half = ranks // 2
    assert sizes == {
        ("all.dat", ranks),
        ("even.dat", half),
        ("pair_01.dat", half),
        ("pair_02.dat", half),
        *((f"half.{part}", 2) for part in parts),
    }


@pytest.mark.slow
def test_an_odd_number_of_ranks_and_one(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The last block has one rank; nobody waits for others that are not there."""
    words = [
        "-m",
        "mpiio_ext",
        "pioneer",
        "path",
        program / "trace",
        "-o",
        tmp_path / "path.parquet",
        "--only",
        f"{program}/data/*",
    ]
    run_bounded([sys.executable, *map(str, words)], env=base_environment(), timeout_s=120)
    for ranks in (1, 3, 5):
        words = [
            "-m",
            "mpiio_ext",
            "pioneer",
            "replay",
            tmp_path / "path.parquet",
            tmp_path / str(ranks),
            "--time-scale",
            "0",
        ]
        launch = python_run(words, ranks, timeout_s=120)
        assert "0 calls failed" in launch.stdout, launch.describe()
        dry = python_run([*words, "--dry-run"], ranks, timeout_s=120)
        said = "communicators of" in dry.stdout
        assert said == (ranks > 1), dry.describe()
