"""``mpiio-ext run --darshan``: a log of real runs, of those that fail, and beside Darshan's own runtime."""

from __future__ import annotations

import pathlib
import sys

import pytest
from darshan.backend import cffi_backend

from corpora import diagnosis_corpus
from support import cbuild, darshan_counters
from support.darshan_records import darshan_runtime, read_records
from support.launch import Launch, base_environment, launcher, run_bounded
from support.marks import slow

pytestmark = pytest.mark.mpi

RUN = [sys.executable, "-m", "mpiio_ext", "run"]
#: Counters that differ when both see the same calls; docs/howto/darshan.md says how.
DIFFERENT = {"POSIX_FILENOS", "POSIX_MMAPS", "POSIX_STATS", "POSIX_MEM_NOT_ALIGNED", "POSIX_MEM_ALIGNMENT"}
#: What depends on which rank or call was the slowest.
BY_CLOCK = ("FASTEST_RANK", "SLOWEST_RANK", "TIME_SIZE", "_F_")


@pytest.fixture(scope="module")
def program(family: str) -> str:
    return str(cbuild.mpi_program("darshan_calls", "-O1"))


def run(
    log: pathlib.Path,
    words: list[str],
    *,
    outside: bool,
    ranks: int = 3,
    wait: bool = False,
    check: bool = True,
    dxt: bool = True,
) -> Launch:
    """Run a program in a launcher with a log; `wait` until the log is there, for a while."""
    start = [str(launcher()), "-n", str(ranks)]
    command = [*RUN, f"--darshan={log}", *(["--darshan-dxt"] if dxt else [])]
    command = [*command, "--", *start, *words] if outside else [*start, *command, "--", *words]
    if wait:
        looks = "n=0; until [ -e $0 ] || [ $n -gt 300 ]; do sleep .1; n=$((n+1)); done"
        script = f'"$@"; status=$?; {looks}; exit $status'
        command = ["sh", "-c", script, str(log), *command]
    return run_bounded(command, env=base_environment(), timeout_s=120, check=check and not wait)


@pytest.mark.parametrize("dxt", [True, False])
def test_the_first_call_of_a_program_without_mpi_counts(extension: str, tmp_path: pathlib.Path, dxt: bool) -> None:
    """It is what makes the trace, which begins with it."""
    code = "import os; [os.close(os.open(name, os.O_CREAT | os.O_WRONLY)) for name in 'pqr']"
    command = [*RUN, f"--darshan={tmp_path / 'log'}", *(["--darshan-dxt"] if dxt else []), "--only", f"{tmp_path}/*"]
    run_bounded([*command, "--", sys.executable, "-c", code], env=base_environment(), timeout_s=60, cwd=tmp_path)
    found = read_records(tmp_path / "log")
    assert [found["POSIX", str(tmp_path / name), 0]["POSIX_OPENS"] for name in "pqr"] == [1, 1, 1]


@pytest.mark.both
@pytest.mark.parametrize(("outside", "dxt"), [(True, True), (False, False)], ids=["run_mpiexec", "mpiexec_run"])
def test_a_log_of_a_run(program: str, extension: str, tmp_path: pathlib.Path, outside: bool, dxt: bool) -> None:
    """Of a trace, and of recordings where not every access is asked for."""
    data = tmp_path / "data"
    data.mkdir()
    done = run(tmp_path / "log", [program, str(data)], outside=outside, dxt=dxt)
    assert f"wrote {tmp_path / 'log'}: 3 processes" in done.stderr
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["data", "log"]
    handle = cffi_backend.log_open(str(tmp_path / "log"))
    assert cffi_backend.log_get_job(handle)["nprocs"] == 3
    assert cffi_backend.log_get_exe(handle) == f"{program} {data}"
    modules = cffi_backend.log_get_modules(handle)
    assert set(modules) == {"POSIX", "MPI-IO", "STDIO", "HEATMAP"} | ({"DXT_POSIX", "DXT_MPIIO"} if dxt else set())
    assert not any(module["partial_flag"] for module in modules.values())
    found = read_records(tmp_path / "log")
    shared = found["MPI-IO", str(data / "shared"), -1]
    ways = [name for name in shared if name.endswith(("READS", "WRITES", "OPENS"))]
    assert {name.removeprefix("MPIIO_"): shared[name] for name in ways} == {
        "INDEP_OPENS": 0,
        "COLL_OPENS": 3,
        "INDEP_READS": 3,
        "INDEP_WRITES": 3,
        "COLL_READS": 3,
        "COLL_WRITES": 6,
        "SPLIT_READS": 3,
        "SPLIT_WRITES": 3,
        "NB_READS": 3,
        "NB_WRITES": 3,
    }
    assert (shared["MPIIO_HINTS"], shared["MPIIO_VIEWS"], shared["MPIIO_SYNCS"], shared["MPIIO_MODE"]) == (3, 3, 3, 9)
    for rank in range(3):
        alone = found["MPI-IO", str(data / f"alone.{rank}"), rank]
        assert (alone["MPIIO_INDEP_OPENS"], alone["MPIIO_BYTES_WRITTEN"], alone["MPIIO_HINTS"]) == (1, 77, 0)
        assert found["STDIO", str(data / f"stdio.{rank}"), rank]["STDIO_BYTES_WRITTEN"] == 8000 + 8 + 7 + 1


@pytest.mark.both
@pytest.mark.slow_with("0-run_mpiexec", "1-mpiexec_run")
@pytest.mark.parametrize("outside", [True, False], ids=["run_mpiexec", "mpiexec_run"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_leaves(program: str, extension: str, tmp_path: pathlib.Path, outside: bool, rank: int) -> None:
    """The launcher ends the others; the log has what was done until then, and is marked."""
    data = tmp_path / "data"
    data.mkdir()
    done = run(tmp_path / "log", [program, str(data), str(rank)], outside=outside, wait=True, dxt=outside)
    assert not done.timed_out
    assert done.returncode != 0
    found = read_records(tmp_path / "log")
    assert sum(record.get("MPIIO_INDEP_WRITES", 0) for record in found.values()) == 3, done.describe()
    handle = cffi_backend.log_open(str(tmp_path / "log"))
    assert all(module["partial_flag"] for module in cffi_backend.log_get_modules(handle).values())


@pytest.mark.both
@pytest.mark.parametrize("dxt", [*slow(True), False])
def test_a_fortran_program(extension: str, tmp_path: pathlib.Path, dxt: bool) -> None:
    words = [str(cbuild.fortran_program(2)), str(tmp_path / "data")]
    done = run(tmp_path / "log", words, outside=True, ranks=2, dxt=dxt)
    assert f"wrote {tmp_path / 'log'}: 2 processes" in done.stderr and "MPI_Finalize" not in done.stderr
    handle = cffi_backend.log_open(str(tmp_path / "log"))
    assert not any(module["partial_flag"] for module in cffi_backend.log_get_modules(handle).values())
    assert read_records(tmp_path / "log")["MPI-IO", str(tmp_path / "data"), -1]["MPIIO_COLL_WRITES"] == 4


@pytest.mark.parametrize(("script", "status"), [("echo a > f; exit 3", 3), ("echo a > f; kill -9 $$", -9)])
def test_the_status_without_mpi(extension: str, tmp_path: pathlib.Path, script: str, status: int) -> None:
    command = [*RUN, f"--darshan={tmp_path / 'log'}", "--", "sh", "-c", script]
    done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path, check=False)
    assert done.returncode == status
    found = read_records(tmp_path / "log")["POSIX", str(tmp_path / "f"), 0]
    assert found["POSIX_OPENS"] - found["POSIX_DUPS"] == 1, done.describe()


@pytest.mark.parametrize(
    ("target", "status", "message"),
    [
        (".", 2, "is a folder; name a file in it, for example {path}/run.darshan"),
        ("/", 2, "/: is a folder; name a file in it"),
        ("missing/log", 2, "there is no folder"),
        ("log", 127, "cannot execute ./missing"),
    ],
)
def test_what_cannot_be_done(extension: str, tmp_path: pathlib.Path, target: str, status: int, message: str) -> None:
    """It is said before the program is started, and nothing is left behind."""
    command = [*RUN, f"--darshan={tmp_path / target}", "--", "./missing" if status == 127 else "touch", "started"]
    done = run_bounded(command, env=base_environment(), timeout_s=60, cwd=tmp_path, check=False)
    assert (done.returncode, message.format(path=tmp_path) in done.stderr) == (status, True), done.describe()
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_every_rank_refuses(extension: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "log").mkdir()
    done = run(tmp_path / "log", ["touch", str(tmp_path / "started")], outside=False, ranks=2, check=False)
    assert done.stderr.count("is a folder") == 1, done.describe()
    assert done.returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize(
    ("kind", "recording"),
    [
        ("calls", False),
        ("calls", True),
        *slow(("few_aggregators", True), ("metadata_storm", True), ("random_reads", True)),
    ],
)
def test_the_counters_are_darshans(
    kind: str, recording: bool, extension: str, program: str, tmp_path: pathlib.Path
) -> None:
    """Darshan's runtime and the tracer see the same calls of one run; what differs is named."""
    runtime = darshan_runtime()
    data = str(tmp_path / "data")
    words = [program, data] if kind == "calls" else [diagnosis_corpus.program(), kind, data, "1"]
    theirs, ours = darshan_counters.logs(words, 2, runtime, tmp_path, recording=recording)
    mine = [key for key in theirs if "/stdio." not in key[1] or key[0] == "STDIO"]  # the tracer asks for descriptors
    first = darshan_counters.differences({key: theirs[key] for key in mine}, ours)
    different = {name for name in first if not any(word in name for word in BY_CLOCK)}
    behind = {"POSIX_MAX_BYTE_READ"} if kind == "calls" else set()  # a read behind a pread: Darshan takes its place
    assert different - DIFFERENT == behind, first
    assert any("POSIX_OPENS" in theirs[key] for key in theirs.keys() & ours.keys()) and "POSIX_OPENS" not in first
