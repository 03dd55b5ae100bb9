"""Two tracers, one program: what ltrace's trace is sanitized to is what the tracer of this project has recorded.

The tracer in front of the C library knows what the program has called. ltrace sees the MPI calls of the program and all
system calls of the process, of its MPI library and of its loader too: what is left of them must be the same operations
on the same files, at the same offsets and of the same sizes, in the same order.
"""

from __future__ import annotations

import pathlib
import shlex
import shutil
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.pioneer.readers import ltrace, own
from mpiio_ext.pioneer.readers.prototypes import prototypes
from mpiio_ext.pioneer.sanitize.sanitize import SANITIZED, application_only, sanitize
from mpiio_ext.pioneer.table import TraceInfo
from support import cbuild
from support.launch import base_environment, mpi_run
from support.marks import slow

pytestmark = pytest.mark.mpi

PATTERNS = ("contiguous", *slow("interleaved"), "nonblocking", *slow("files"))
KERNELS = ("mpi_io_test_strided", "coll_perf", "nas_btio")
RANKS = 3
#: What mpi4py does when it opens a file.
BESIDE = ("MPI_File_set_errhandler",)
#: What a wait is called and how often a test is made depends on the run, not on the program.
WAITS = ("MPI_Wait", "MPI_Test")


@pytest.fixture(scope="module")
def tracer() -> str:
    found = shutil.which("ltrace")
    if found is None:
        pytest.skip("no ltrace")
    done = subprocess.run([found, "-o", "/dev/null", "true"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"ltrace does not work here: {done.stderr.strip()}")
    return found


@pytest.fixture(scope="module")
def program(family: str) -> pathlib.Path:
    return cbuild.mpi_program("trace_patterns", "-no-pie", "-Wl,-z,lazy")


def sanitized(reader: Any, folder: pathlib.Path) -> tuple[TraceInfo, pa.Table]:
    info, batches = reader.read([folder])
    return info, pa.Table.from_batches(list(sanitize(batches)), SANITIZED)


def run_under_ltrace(
    family: str, tracer: str, words: list[Any], traces: pathlib.Path, calls: str = "MPI_*", seconds: float = 120
) -> None:
    """Trace a program on RANKS ranks, as docs/reference/trace-formats.md says; the traces are traces/trace.RANK."""
    traces.mkdir()
    known = traces.with_name(f"{traces.name}.conf")
    known.write_text(prototypes(mpich=family != "openmpi"))
    output = f"{traces}/trace.${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}"
    options = f"-F {known} -f -S -tt -T -s 4096 -e '{calls}' -o {output}"
    mpi_run(["sh", "-c", f"exec {tracer} {options} {shlex.join(map(str, words))}"], RANKS, timeout_s=seconds)


def nothing_of_interest_is_lost(info: TraceInfo, files: pathlib.Path) -> None:
    lost = [problem for source in info.sources for problem in source.loss.problems]
    lines = sum(source.lines for source in info.sources)
    assert info.skipped <= 2 + lines / 5000, lost  # ltrace itself misses the beginning of a call now and then
    assert not [item for item in lost if "MPI_" in item.text or str(files) in item.text], lost


def operations(table: pa.Table, rank: int, folder: pathlib.Path) -> list[tuple[Any, ...]]:
    """Return what a rank has done: layer, operation, file below the folder, offset, size."""
    rows = application_only(table).to_pylist()
    return [
        (
            row["layer"],
            row["operation"],
            row["file"] and row["file"].removeprefix(f"{folder}/"),
            row["offset"],
            row["size"],
        )
        for row in rows
        if row["rank"] == rank and not row["operation"].startswith(WAITS)
    ]


def waits(table: pa.Table, rank: int) -> set[tuple[str, str | None]]:
    """Return the functions that have waited for accesses, with the file."""
    rows = application_only(table).to_pylist()
    return {
        (row["operation"], row["file"]) for row in rows if row["rank"] == rank and row["operation"].startswith(WAITS)
    }


def parents_are_mpi_calls(table: pa.Table, files: pathlib.Path) -> set[str]:
    """Check the parent of everything that MPI-IO has done; return the calls that have moved the program's data."""
    rows = table.to_pylist()
    masked = [row for row in rows if row["mask"] in ("inside MPI-IO", "descriptor of MPI-IO")]
    lines = {(row["rank"], row["line"]): row for row in rows}
    for row in masked:
        assert lines[row["rank"], row["parent"]]["layer"] in ("mpi", "mpiio")
    moved = [
        row
        for row in masked
        if row["operation"] in ("pwrite", "pread", "read", "write", "readv", "writev")
        and str(files) in (row["file"] or "")
    ]
    return {lines[row["rank"], row["parent"]]["operation"] for row in moved}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_ltrace_and_the_tracer_agree(
    family: str, tracer: str, program: pathlib.Path, tmp_path: pathlib.Path, pattern: str
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    command = [sys.executable, "-m", "mpiio_ext", "trace", "-o", tmp_path / "own", "--", program, pattern, files]
    mpi_run(command, RANKS, timeout_s=120)
    shutil.rmtree(files)
    files.mkdir()
    run_under_ltrace(family, tracer, [program, pattern, files], tmp_path / "ltrace")
    symbols = subprocess.run(["nm", str(program)], capture_output=True, env=base_environment(), check=True, timeout=60)
    (tmp_path / "ltrace" / "program.symbols").write_bytes(symbols.stdout)
    own_info, expected = sanitized(own, tmp_path / "own")
    info, found = sanitized(ltrace, tmp_path / "ltrace")
    assert own_info.skipped == 0
    nothing_of_interest_is_lost(info, files)
    assert info.ranks == own_info.ranks == RANKS
    assert len(operations(found, 0, files)) >= 6
    for each in range(RANKS):
        assert operations(found, each, files) == operations(expected, each, files)
        assert waits(found, each) == waits(expected, each)
    called = {name for each in range(RANKS) for _, name, *_ in operations(found, each, files)}
    called |= {name for each in range(RANKS) for name, _ in waits(found, each)}
    parents = parents_are_mpi_calls(found, files)
    assert parents
    assert parents <= called


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_of_the_bench(family: str, tracer: str, tmp_path: pathlib.Path, kernel: str) -> None:
    """Python programs: the MPI calls are those of mpi4py. What is done to the data's files is compared."""
    words = [
        sys.executable,
        "-m",
        "mpiio_ext.bench",
        "-k",
        kernel,
        "--preset",
        "quick",
        "--scale",
        "0.05",
        "-m",
        "native",
        "-i",
        "mpiio",
        "--repeats",
        "1",
        "--no-figures",
        "--no-page",
    ]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    paths = {name: ["--path", tmp_path / name, "--output", tmp_path / f"results-{name}"] for name in ("one", "two")}
    command = [sys.executable, "-m", "mpiio_ext", "trace", "-o", tmp_path / "own", "--", *words, *paths["one"]]
    mpi_run(command, RANKS, timeout_s=120)
    run_under_ltrace(family, tracer, [*words, *paths["two"]], tmp_path / "ltrace", "MPI_*@MPI.*", 240)
    _, expected = sanitized(own, tmp_path / "own")
    info, found = sanitized(ltrace, tmp_path / "ltrace")
    nothing_of_interest_is_lost(info, tmp_path / "two")
    assert parents_are_mpi_calls(found, tmp_path / "two")
    compared = sizes = 0
    for rank in range(RANKS):
        one, two = on_data(expected, rank, tmp_path / "one"), on_data(found, rank, tmp_path / "two")
        compared += len(one)  # nas_btio leaves ranks idle
        assert [row[:3] for row in two] == [row[:3] for row in one]
        known = [(row, other) for row, other in zip(two, one, strict=True) if row[4] is not None]
        assert [row for row, _ in known] == [other for _, other in known]
        sizes += len(known)
    assert compared >= 6
    if family == "mpich" and kernel == "mpi_io_test_strided":  # a predefined datatype: its handle has the size
        assert sizes >= 6


def on_data(table: pa.Table, rank: int, folder: pathlib.Path) -> list[tuple[Any, ...]]:
    """Return the MPI-IO of a rank on files below a folder; names without the part that is drawn by chance."""
    found = []
    for layer, name, file, offset, size in operations(table, rank, folder):
        if layer == "mpiio" and file and not file.startswith("/") and name not in BESIDE:
            found.append((layer, name, file.partition("/")[2] or file, offset, size))
    return found
