"""PIONEER's loop: a program is traced, its path carried out by fewer, as many and more ranks, and that traced again."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.profile import find_sessions
from mpiio_ext.pioneer.synthesis import find_violations
from support.launch import PROGRAMS, base_environment, python_run, run_bounded
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

STEPS, BLOCK, LINES = 12, 1000, 10
#: What Python does besides to a file that it opens, and what it does to find a place for one.
BESIDE = (
    "stat",
    "lstat",
    "fstat",
    "statx",
    "fcntl",
    "ioctl",
    "lseek",
    "mkdir",
    "readlink",
    "opendir",
    "closedir",
    "MPI_File_set_errhandler",
)
COLUMNS = ("layer", "operation", "file", "owner", "groups", "offset_0", "offset_1", "size_0", "size_1")


def traced_path(folder: pathlib.Path, words: list[Any], ranks: int, *options: str) -> WorkloadPath:
    """Trace a Python program on so many ranks; its workload path, made with these options."""
    trace = folder / "trace"
    # With what Python looks at: beside it the folders that a rank happens to make for all would count as behaviour.
    tracer = ["-m", "mpiio_ext", "trace", "-o", trace, "--folders", "--"]
    python_run([*tracer, sys.executable, *words], ranks, timeout_s=120)
    assert len(list(trace.glob("*.mpioxtrace"))) == ranks
    command = [
        sys.executable,
        "-m",
        "mpiio_ext",
        "pioneer",
        "path",
        str(trace),
        "-o",
        str(folder / "path.parquet"),
        *options,
    ]
    launch = run_bounded(command, env=base_environment(), timeout_s=120)
    assert launch.returncode == 0, launch.describe()
    return WorkloadPath.load(folder / "path.parquet")


def data_operations(path: WorkloadPath, folder: pathlib.Path) -> list[tuple[Any, ...]]:
    """Return what is done to files of a folder, without what only looks at them; names without what is before it."""
    place = str(folder)
    rows = [row for row in path.table.to_pylist() if row["file"] is not None and f"{place}/" in row["file"]]
    assert rows, path.table.to_pylist()[:5]
    return [
        tuple(row[name] if name != "file" else row[name].rpartition(f"{place}/")[2] for name in COLUMNS)
        for row in rows
        if row["operation"] not in BESIDE
    ]


@pytest.fixture(scope="module")
def original(extension: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, WorkloadPath]:
    """Return the folder of a program's files and its path, traced on four ranks."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "data").mkdir()
    return folder, traced_path(folder, [PROGRAMS / "pioneer_checkpoint.py", folder / "data"], 4)


def test_the_path_of_a_program(original: tuple[pathlib.Path, WorkloadPath]) -> None:
    """Each operation of the application, and none that MPI-IO makes for it."""
    folder, path = original
    assert path.info.ranks == 4
    assert [len(group) for group in path.info.members] == [1, 3]
    found = data_operations(path, folder / "data")
    shared = [
        ("mpiio", f"MPI_File_{name}", "all.dat", "shared", 3)
        for name in ("open", *["write_at_all"] * STEPS, "sync", "read_at", "close")
    ]
    private = [("posix", name, "own_{rank:03}.txt", "private", 3) for name in ("open", *["write"] * LINES, "close")]
    root = [("posix", name, "log.txt", "root", 1) for name in ("open", "write", "close")]
    assert [row[:5] for row in found] == [*shared, *private, *root]
    writes = [row[5:] for row in found if row[1] == "MPI_File_write_at_all"]
    assert writes == [(4 * step * BLOCK, (4 * step + 1) * BLOCK, BLOCK, BLOCK) for step in range(STEPS)]
    sizes = [100 + line for line in range(LINES)]
    places = [sum(sizes[:line]) for line in range(LINES)]
    assert [row[5:] for row in found if row[2] == "own_{rank:03}.txt" and row[1] == "write"] == [
        (place, place, size, size) for place, size in zip(places, sizes, strict=True)
    ]
    assert not [item for item in find_violations(path) if "MPI_File" in item.why or "write" in item.why]


@pytest.mark.parametrize("ranks", [3, *slow(2, 4, 7)])
def test_carried_out_and_traced_again(
    original: tuple[pathlib.Path, WorkloadPath], tmp_path: pathlib.Path, ranks: int
) -> None:
    """The same operations on the same files at the same offsets, by any number of ranks."""
    folder, path = original
    below = tmp_path / "below"
    words = ["-m", "mpiio_ext", "pioneer", "replay", folder / "path.parquet", below, "--time-scale", "0"]
    again = traced_path(tmp_path, words, ranks)
    assert data_operations(again, folder / "data") == data_operations(path, folder / "data")
    data = below.joinpath(*folder.parts[1:], "data")
    own = {f"own_{rank:03}.txt" for rank in range(ranks)}
    assert {item.name for item in data.iterdir()} == {"all.dat", "log.txt", *own}
    assert (data / f"own_{ranks - 1:03}.txt").stat().st_size == sum(100 + line for line in range(LINES))


def replay_words(path: pathlib.Path, below: pathlib.Path) -> list[Any]:
    return ["-m", "mpiio_ext", "pioneer", "replay", path, below, "--time-scale", "0"]


def test_views_make_the_same_bytes(tmp_path: pathlib.Path) -> None:
    """Views of seven kinds and nonblocking accesses: a replay by as many ranks makes the same files, byte by byte."""
    (tmp_path / "data").mkdir()
    traced_path(tmp_path, [PROGRAMS / "pioneer_views.py", tmp_path / "data"], 4, "--each-rank")
    below = tmp_path / "below"
    launch = python_run(replay_words(tmp_path / "path.parquet", below), 4, timeout_s=120)
    assert "MPI_File" not in launch.stdout.replace("MPI_File_set_errhandler", ""), launch.describe()
    again = below.joinpath(*tmp_path.parts[1:], "data")
    for name in ("tiles", "cyclic", "spread"):
        assert (again / name).read_bytes() == (tmp_path / "data" / name).read_bytes(), name
    first, second = ((folder / "irregular").read_bytes() for folder in (again, tmp_path / "data"))
    # Each rank writes the first 400 bytes of its stream. What is between the blocks is undefined: an MPI library that
    # sieves may leave there what was in its buffer.
    for rank in range(4):
        blocks = [(rank * 7 + k * 28 + k % 3, 4 + k % 2) for k in range(400)]
        written = [at + byte for at, length in blocks for byte in range(length)][:400]
        assert bytes(first[at] for at in written) == bytes(second[at] for at in written), rank


@pytest.mark.slow
def test_a_replay_records_the_path_alone(original: tuple[pathlib.Path, WorkloadPath], tmp_path: pathlib.Path) -> None:
    """What the replay does for itself is not in its trace: folders, the path's own file, input files."""
    folder, path = original
    again = traced_path(tmp_path, replay_words(folder / "path.parquet", tmp_path / "below"), 4)
    made = [item for item in again.table["operation"].to_pylist() if item in ("mkdir", "pwrite", "ftruncate")]
    asked = [item for item in path.table["operation"].to_pylist() if item in ("mkdir", "pwrite", "ftruncate")]
    assert made == asked
    assert not [name for name in again.table["file"].to_pylist() if name is not None and "path.parquet" in name]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [4, 2])
def test_several_handles_on_one_file(extension: str, tmp_path: pathlib.Path, ranks: int) -> None:
    """Each call goes through the handle that it went through: nothing fails, and the files are as long."""
    del extension
    (tmp_path / "data").mkdir()
    only = ("--only", f"{tmp_path}/data/*")
    path = traced_path(tmp_path, [PROGRAMS / "pioneer_handles.py", tmp_path / "data"], 4, *only)
    own = [item for item in find_sessions(path).sessions if item.file.startswith(f"{tmp_path}/data/own.")]
    assert len(own) == 4  # the one that makes the file, the writer, the reader, and the root's
    assert find_violations(path) == []
    launch = python_run(replay_words(tmp_path / "path.parquet", tmp_path / "below"), ranks, timeout_s=120)
    assert "0 calls failed" in launch.stdout, launch.describe()
    again = (tmp_path / "below").joinpath(*tmp_path.parts[1:], "data")
    names = ["all", *(f"own.{rank}" for rank in range(ranks))]
    assert sorted(item.name for item in again.iterdir()) == names
    sizes = [(2 * 4 + ranks) * 100, *([400] * ranks)]  # steps are as far apart as they were
    assert [(again / name).stat().st_size for name in names] == sizes, launch.describe()
