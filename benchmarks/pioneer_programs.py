"""Programs of `pioneer_fidelity.py`: kernels of the bench under tracers, CM1's trace, and replays of paths.

Every command has a limit in time and runs in a process group of its own, which is ended with it. What it prints goes to
a file beside its results; where it fails, the end of that is in the error.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.pioneer.compare.workload import not_below
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.readers import ltrace
from mpiio_ext.pioneer.table import TraceInfo
from mpiio_ext.pioneer.traces import path_of, read_sanitized, tables_of

__all__ = ["CM1", "KERNELS", "RANKS", "UNDER_LTRACE", "ProgramError", "Traced", "cm1", "replayed", "traced",
           "under_ltrace"]

RANKS = 4
#: Interface and parameters of each kernel.
KERNELS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "mpi_io_test_strided": ("mpiio", ("size=4096", "nobj=1000")), "ior_random": ("posix", ()),
    "s3asim": ("mpiio", ()), "nas_btio": ("mpiio", ()), "flash": ("hdf5", ()), "s3d": ("pnetcdf", ()),
}  # fmt: skip
#: What ltrace can follow: calls of mpi4py's module.
UNDER_LTRACE = ("mpi_io_test_strided", "s3asim", "nas_btio", "coll_perf")
CM1 = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "cm1_dftracer"

_BIN = Path(sys.prefix) / "bin"
_LIMIT_S = 180
_ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PATH": f"{_BIN}:{os.environ['PATH']}",
}
Tables = dict[int, pa.Table]


class ProgramError(RuntimeError):
    """A program has failed, or was ended since it took too long."""


class Traced:
    """What the application has done below a folder, by rank; names of files begin there.

    Attributes
    ----------
    tables : operations by rank.
    path : their workload path.
    makespan : s from the first call of any rank to the end of the last one.
    """

    def __init__(self, tables: Tables, info: TraceInfo) -> None:
        self.tables = tables
        self.path: WorkloadPath = path_of(tables, info)
        begins = min(pc.min(table["timestamp"]).as_py() for table in tables.values())
        ends = max(pc.max(pc.add(table["timestamp"], pc.fill_null(table["duration"], 0))).as_py()
                   for table in tables.values())  # fmt: skip
        self.makespan = float(ends - begins) / 1e9


# ---- commands --------------------------------------------------------------------------------------------------------


def _run(words: Sequence[Any], log: Path, seconds: float = _LIMIT_S) -> str:
    """Run a command, and return what it has printed.

    Raises
    ------
    ProgramError
        It has failed or taken too long.
    """
    with log.open("wb") as output:
        process = subprocess.Popen([*map(str, words)], env=_ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        try:
            status: int | None = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
    text = log.read_text(encoding="utf-8", errors="replace")
    if status != 0:
        how = f"was ended after {seconds:.0f} s" if status is None else f"ended with status {status}"
        raise ProgramError(f"{shlex.join(map(str, words))}\n{how}: {text[-1500:].strip()}")
    return text


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=5)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _launch(words: Sequence[Any], trace: Path, ranks: int, *options: str, seconds: float = _LIMIT_S) -> str:
    """Run a program under the tracer of this project, with options of the tracer's."""
    shutil.rmtree(trace, ignore_errors=True)
    command = ["mpirun", "-n", ranks, _BIN / "mpiio-ext", "trace", *options, "-o", trace, "--", *words]
    return _run(command, trace.with_suffix(".log"), seconds)


# ---- traces ----------------------------------------------------------------------------------------------------------


def _read(trace: Path, files: Path) -> Traced:
    """Return what the application has done to files below a folder, without the folder in their names."""
    below = f"{files.resolve()}/"
    info, rows = read_sanitized([trace], system_files=not_below(below))
    found = {rank: _renamed(table, below) for rank, table in tables_of(rows, below=below).items()}
    found = {rank: table for rank, table in found.items() if table.num_rows}
    if not found:
        raise ProgramError(f"{trace}: there are no operations on files below {files}")
    return Traced(found, info)


def _renamed(table: pa.Table, below: str) -> pa.Table:
    """Return the rows that name a file, with names that begin behind the folder."""
    table = table.filter(pc.or_(pc.is_valid(table["file"]), pc.equal(table["layer"].cast(pa.string()), "mpi")))
    short = pc.replace_substring_regex(table["file"].cast(pa.string()), f"^{re.escape(below)}", "")
    return table.set_column(table.schema.get_field_index("file"), "file", short)


def _kernel_words(name: str, files: Path, *, slow: bool = False) -> list[Any]:
    """Return the command that runs a kernel once, without the MPI launcher; slow: what traces it slows it down."""
    interface, given = KERNELS.get(name, ("mpiio", ()))
    given = tuple(item.replace("nobj=1000", "nobj=100") for item in given) if slow else given
    parameters = [word for item in given for word in ("-P", item)]
    return [sys.executable, "-m", "mpiio_ext.bench", "-k", name, "--preset", "quick", "-m", "native", "-i", interface,
            *parameters, "--repetitions", "1", "--no-figures", "--no-page", "--path", files,
            "--output", f"{files}-results"]  # fmt: skip


def traced(name: str, place: Path) -> Traced:
    """Return what a kernel of the bench does, by the tracer of this project; its files are below `place`.

    Raises
    ------
    ProgramError
        It has failed.
    """
    files = place / f"{name}-files"
    files.mkdir(parents=True, exist_ok=True)
    _launch(_kernel_words(name, files), place / f"{name}-trace", RANKS)
    return _read(place / f"{name}-trace", files)


def under_ltrace(name: str, place: Path) -> Traced:
    """Return the same by ltrace, as docs/reference/trace-formats.md says; the kernel makes fewer operations."""
    files, trace = place / f"{name}-ltrace-files", place / f"{name}-ltrace"
    files.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(trace, ignore_errors=True)
    trace.mkdir()
    family = "ltrace-mpich.conf" if "mpich" in _version() else "ltrace.conf"
    prototypes = Path(ltrace.__file__).with_name(family)
    rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
    words = shlex.join(map(str, _kernel_words(name, files, slow=True)))
    command = f"exec ltrace -F {prototypes} -f -S -tt -T -s 4096 -e 'MPI_*@MPI.*' -o {trace}/trace.{rank} {words}"
    _run(["mpirun", "-n", RANKS, "sh", "-c", command], place / f"{name}-ltrace.log")
    return _read(trace, files)


def _version() -> str:
    """Return the name and version of the MPI library, in small letters."""
    done = subprocess.run(["mpirun", "--version"], env=_ENVIRONMENT, capture_output=True, text=True, timeout=60)
    return "mpich" if "hydra" in done.stdout.lower() else done.stdout.lower()


def cm1(trace: Path) -> Traced:
    """Return CM1's trace."""
    info, rows = read_sanitized([trace])
    return Traced(tables_of(rows), info)


# ---- replays ---------------------------------------------------------------------------------------------------------


def replayed(path: WorkloadPath, place: Path, ranks: int, *, of_bench: bool = True, time_scale: float = 1.0,
             seconds: float = _LIMIT_S) -> tuple[Traced, str]:  # fmt: skip
    """Carry a path out under the tracer; return what was done, and what the replay has said.

    Parameters
    ----------
    path : what is carried out.
    place : folder for the path, the trace and the files, which are removed first.
    ranks : that carry it out.
    of_bench : the program was the bench, whose method "native" has the extension loaded and leaves files alone; the
        workload then runs in the same way, as opens take longer with it.
    time_scale : slack times are multiplied by it.
    seconds : after which it is ended.

    Raises
    ------
    ProgramError
        It has failed, or left nothing.
    """
    place.mkdir(parents=True, exist_ok=True)
    path.save(place / "synthetic.parquet")
    below = place / "below"
    shutil.rmtree(below, ignore_errors=True)
    words = [_BIN / "mpiio-ext", "pioneer", "replay", place / "synthetic.parquet", below, "--time-scale", time_scale,
             *(["-H", "mpiox_enable=false"] if of_bench else [])]  # fmt: skip
    # The path says which folders are looked at, and the tracer records the path's calls alone.
    said = _launch(words, place / "again", ranks, "--folders", seconds=seconds)
    return _read(place / "again", below), said
