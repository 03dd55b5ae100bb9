"""The bench runs workload paths like any kernel: every method, files compared with the native ones, all results."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import pytest

from mpiio_ext.bench.execution.carried_out import difference
from mpiio_ext.bench.kernels import create
from mpiio_ext.bench.kernels.pioneer import Pioneer
from mpiio_ext.errors import ArgumentError
from support.launch import PROGRAMS, Launch, base_environment, python_run, run_bounded
from support.marks import slow
from support.pioneer_paths import EVERYTHING, row, save

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

METHODS = "native,native_tuned,auto,direct,even,aligned,static_cyclic,group_cyclic,transpose"


def bench(folder: pathlib.Path, path: pathlib.Path, *words: str, ranks: int = 4, **options: Any) -> Launch:
    (folder / "files").mkdir(exist_ok=True)
    command = [
        "-m",
        "mpiio_ext.bench",
        "--kernel",
        f"pioneer:{path}",
        "--path",
        folder / "files",
        "--output",
        folder / "results",
        "-r",
        "2",
        "--no-figures",
        *words,
    ]
    return python_run(command, ranks, timeout_s=200, **options)


@pytest.fixture(scope="module")
def views(extension: str, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the path of a program with views of many kinds, traced on four ranks."""
    folder = tmp_path_factory.mktemp("views")
    (folder / "data").mkdir()
    program = [sys.executable, PROGRAMS / "pioneer_views.py", folder / "data"]
    python_run(["-m", "mpiio_ext", "trace", "-o", folder / "trace", "--", *program], 4, timeout_s=120)
    command = [
        sys.executable,
        "-m",
        "mpiio_ext",
        "pioneer",
        "path",
        str(folder / "trace"),
        "--each-rank",
        "-o",
        str(folder / "views.parquet"),
    ]
    launch = run_bounded(command, env=base_environment(), timeout_s=120)
    assert launch.returncode == 0, launch.describe()
    return folder / "views.parquet"


@pytest.mark.parametrize("ranks", [3, *slow(4)])
def test_every_method(views: pathlib.Path, tmp_path: pathlib.Path, ranks: int) -> None:
    """By as many ranks as were traced and by fewer: rows of every method, compared byte by byte, and a report."""
    launch = bench(tmp_path, views, "-m", METHODS, ranks=ranks)
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    rows = found["runs"]
    assert {item["strategy"] for item in rows} == set(METHODS.split(",")), launch.describe()
    assert len(rows) == 2 * len(METHODS.split(","))
    assert {(item["workload"], item["variant"], item["phase"], item["kind"]) for item in rows} == {
        ("pioneer", "pioneer-views", "replay", "kernel")
    }
    assert {item["data_bytes"] for item in rows} == {ranks * 1912}  # 1512 written, 400 read
    for item in rows:
        ours = not item["strategy"].startswith("native")
        assert (item["collectives_taken_over"] > 0) == ours, item
    for repetition in (0, 1):
        compared = [item["compared"] for item in rows if item["repetition"] == repetition]
        assert sorted(compared) == ["", *["bytes"] * (len(compared) - 1)]
    assert "workload path views.parquet" in (tmp_path / "results" / "report.html").read_text()
    assert "workload path views.parquet" in launch.stdout
    assert found["configuration"]["kernels"]["pioneer-views"]["path"] == str(views)
    assert not list((tmp_path / "files").iterdir())


def test_bytes_that_differ_are_found(tmp_path: pathlib.Path) -> None:
    """Bytes that a rank writes have to be the same; those of nobody, and those of two ranks that differ, need not."""
    view = {"displacement": 100, "filetype": "V(2;1;40;10)"}
    views = [view, {"displacement": 110, "filetype": "V(2;1;30;10)"}]
    save(
        [
            row("MPI_File_open", "all", "shared", "mpiio"),
            row("MPI_File_write_at", "all", "shared", "mpiio", at=0, size=9),
            row("MPI_File_set_view", "all", "shared", "mpiio", extra={**view, "groups": views}),
            row("MPI_File_write_at", "all", "shared", "mpiio", at=0, size=20),
            row("MPI_File_close", "all", "shared", "mpiio"),
        ],
        tmp_path / "path.parquet",
    )
    kernel = create(f"pioneer:{tmp_path / 'path.parquet'}", 2)
    assert isinstance(kernel, Pioneer)
    (layout,) = kernel.files()
    mask = kernel.written(0, "data", 0, layout.end_bytes)
    assert mask is not None
    sure = [*range(9), *range(100, 120)]  # 140 to 149 are the second piece of both ranks, which count from 100 and 110
    assert [at for at, known in enumerate(mask) if known] == sure
    first, second = tmp_path / "first", tmp_path / "second"
    content = bytearray(layout.end_bytes)
    first.write_bytes(content)
    for at in range(layout.end_bytes):
        content[at] = 7
        second.write_bytes(content)
        found = difference(kernel, layout, first, second)
        assert found == (f"at byte {at}" if at in sure else None)
        content[at] = 0
    second.write_bytes(content[:115])
    assert difference(kernel, layout, first, second) == "ends at byte 115 under one method alone"
    second.unlink()
    assert difference(kernel, layout, first, second) == f"is there under one method alone ({first})"


def test_a_call_that_fails_ends_the_bench(views: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Under a method of the extension, whose writes fail; the native one before it is in the results."""
    env = {"MPIOX_FAULT": "rank=1,op=write,errno=EIO"}
    launch = bench(tmp_path, views, "-m", "native,auto+mpiox_exchange=direct", env=env, check=False)
    assert launch.returncode == 1, launch.describe()
    assert "of the path, MPI_File_" in launch.stderr, launch.describe()
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert [item["strategy"] for item in found["runs"]] == ["native"]
    assert "MPI_File_" in found["failure"]


@pytest.mark.slow
def test_everything_but_names(tmp_path: pathlib.Path) -> None:
    """POSIX and streams run too; what is done to folders is left out; a dry run says what moves."""
    save(EVERYTHING, tmp_path / "all.parquet")
    launch = bench(tmp_path, tmp_path / "all.parquet", "-m", "native,auto", "-P", "time_scale=0.5", ranks=3)
    assert "left out by rank 0: 1 x" not in launch.stdout, launch.describe()
    rows = json.loads((tmp_path / "results" / "results.json").read_text())["runs"]
    assert {(item["operation"], item["files"]) for item in rows} == {("both", 9)}, launch.describe()
    dry = bench(tmp_path, tmp_path / "all.parquet", "--dry-run", "-m", "native,auto", ranks=1)
    assert "0.0 MB written, 0.0 MB read, 5 files" in dry.stdout, dry.describe()
    assert f"-k pioneer:{tmp_path / 'all.parquet'}" in dry.stdout


def test_what_cannot_be_run(tmp_path: pathlib.Path) -> None:
    """One line says what is wrong with the file, the name or the size."""
    save([row("stat", "a", "shared")], tmp_path / "none.parquet")
    (tmp_path / "no.parquet").write_bytes(b"no path")
    for name, words in (("no.parquet", "no.parquet"), ("missing", "missing"), ("none.parquet", "moves data")):
        with pytest.raises(ArgumentError, match=words):
            create(f"pioneer:{tmp_path / name}", 2)
    save(EVERYTHING, tmp_path / "all.parquet")
    with pytest.raises(ArgumentError, match="cannot change"):
        create(f"pioneer:{tmp_path / 'all.parquet'}", 2, scale=2.0)
    launch = python_run(["-m", "mpiio_ext.bench", "--kernel", "pioneer"], 1, timeout_s=60, check=False)
    assert launch.returncode == 2
    assert "needs a file: pioneer:FILE" in launch.stderr, launch.describe()
