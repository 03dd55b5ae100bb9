"""A run with statistics of which no call reached the library: one line for the job, and the program as without it."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

from support import cbuild
from support.launch import PATIENCE, PROGRAMS, base_environment, launcher, preload_environment

pytestmark = pytest.mark.mpi

RUN = [sys.executable, "-m", "mpiio_ext", "run"]
NOTHING = [sys.executable, "-c", "pass"]
NO_FILE = [sys.executable, "-c", "from mpi4py import MPI"]
FILES = [sys.executable, str(PROGRAMS / "two_files.py")]
NO_MPI = "mpiio-ext: no statistics: no MPI call reached the library: "
NO_OPEN = "mpiio-ext: no statistics: no MPI_File_open reached the library: "


def done(command: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run until standard error has no writer any more: the witness outlives the program by a moment."""
    return subprocess.run(
        command, env=base_environment() | variables, capture_output=True, text=True, check=False, timeout=60 * PATIENCE
    )


def lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith(("mpiio-ext: ", "mpiio_ext: "))]


def commands(program: Sequence[str], option: str = "--stats") -> dict[str, list[str]]:
    mpiexec = [str(launcher()), "-n", "2"]
    return {
        "outside": [*RUN, option, "--", *mpiexec, *program],
        "inside": [*mpiexec, *RUN, option, "--", *program],
        "alone": [*RUN, option, "--", *program],
    }


@pytest.fixture(scope="module")
def static() -> str:
    """A program without any library."""
    source = pathlib.Path(cbuild.scratch()) / "static.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("ran"); return 0; }\n', encoding="utf-8")
    return str(cbuild.compile_c([cbuild.compiler(), "-static", str(source)], "static"))


@pytest.mark.parametrize("form", ["outside", "inside", "alone"])
def test_a_static_program(static: str, form: str) -> None:
    result = done(commands([static])[form])
    assert result.returncode == 0 and result.stdout.count("ran") == (1 if form == "alone" else 2)
    (line,) = lines(result)
    words = [*commands([static])[form][6:-1], static] if form == "outside" else [static]
    shown = " ".join(words) if len(" ".join(words)) <= 100 else words[0]
    assert line.startswith(NO_MPI + "a static program, ")
    assert line.endswith(f" mpiio-ext doctor -- {shown} finds the reason")


@pytest.mark.both
@pytest.mark.parametrize("form", ["outside", "inside", "alone"])
def test_a_program_that_opens_no_file(form: str) -> None:
    (line,) = lines(done(commands(NO_FILE, "--stats=line")[form]))
    assert line.startswith(NO_OPEN + "serial HDF5 ")


def test_the_line_is_one_whatever_the_words() -> None:
    (line,) = lines(done(commands([sys.executable, "-c", "pass\n" * 3])["alone"]))
    assert line.endswith(f" mpiio-ext doctor -- {sys.executable} finds the reason")


@pytest.mark.parametrize("form", ["outside", "inside"])
def test_a_program_with_files_is_not_told_so(tmp_path: pathlib.Path, form: str) -> None:
    told = lines(done(commands([*FILES, str(tmp_path / "data"), "4096"], "--stats=line")[form]))
    assert len(told) == 4 and all(line.startswith("mpiio_ext: ") for line in told), told


@pytest.mark.parametrize(
    ("mark", "hints", "opens", "warns"),
    [
        ("GIO library version 1.0.0", "", False, True),
        ("GIO library version 1.0.0", "", True, False),
        ("GIO library version 1.0.0", "nc_driver=mpiio", False, False),
        ("built without", "", False, False),
    ],
)
def test_a_pnetcdf_with_its_own_driver(tmp_path: pathlib.Path, mark: str, hints: str, opens: bool, warns: bool) -> None:
    """One line for all ranks, without any statistics."""
    library = tmp_path / "libpnetcdf.so.8"
    (tmp_path / "pnetcdf.c").write_text(f'const char ncmpi_driver[] = "{mark}";\n', encoding="utf-8")
    subprocess.run([cbuild.compiler(), "-shared", "-o", library, tmp_path / "pnetcdf.c"], check=True, timeout=60)
    code = (
        "import ctypes, sys; ctypes.CDLL(sys.argv[1]); from mpi4py import MPI; "
        "amode = MPI.MODE_CREATE | MPI.MODE_WRONLY; "
        "len(sys.argv) > 2 and MPI.File.Open(MPI.COMM_WORLD, sys.argv[2], amode).Close()"
    )
    program = [sys.executable, "-c", code, str(library), *([str(tmp_path / "data")] if opens else [])]
    found = lines(done([str(launcher()), "-n", "2", *RUN, "--", *program], PNETCDF_HINTS=hints))
    assert found == (
        ["mpiio_ext: if PnetCDF wrote files, its GIO passed MPI-IO by; set PNETCDF_HINTS=nc_driver=mpiio"]
        if warns
        else []
    )


@pytest.mark.both
def test_one_rank_that_opens_a_file_is_enough(tmp_path: pathlib.Path) -> None:
    """It is not the one with the witness."""
    code = (
        "import sys; from mpi4py import MPI; amode = MPI.MODE_CREATE | MPI.MODE_WRONLY; "
        "MPI.COMM_WORLD.rank and MPI.File.Open(MPI.COMM_SELF, sys.argv[1], amode).Close()"
    )
    told = lines(done(commands([sys.executable, "-c", code, str(tmp_path / "data")], "--stats=line")["inside"]))
    assert told == [f"mpiio_ext: {tmp_path}/data: 1 rank moved no data: no data call reached this library"]


def test_nobody_who_did_not_ask_is_told() -> None:
    assert lines(done([*RUN, "--", *NOTHING])) == []
    assert lines(done([*RUN, "--", *NOTHING], MPIOX_STATS="0")) == []
    assert len(lines(done([*RUN, "--", *NOTHING], MPIOX_STATS="line"))) == 1
    assert len(lines(done([*RUN, "--", *NOTHING], MPIOX_STATS_FILE=os.devnull))) == 1


def test_nothing_is_loaded_for_those_who_did_not_ask() -> None:
    """Each of thousands of ranks would load it."""
    for option, loaded in (([], False), (["--stats"], True)):
        command = [sys.executable, "-X", "importtime", *RUN[1:], *option, "--", "true"]
        assert ("mpiio_ext.cli.witness" in done(command).stderr) == loaded


def test_once_where_both_ask() -> None:
    inner = commands(NOTHING)["inside"]
    assert len(lines(done([*RUN, "--stats", "--", *inner]))) == 1


@pytest.mark.both
def test_ranks_on_other_nodes() -> None:
    """Within a launcher the line says which node it is about; outside there is none."""
    inside = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    (line,) = lines(done([*RUN, "--stats", "--", *NOTHING], **inside))
    assert line.startswith(f"mpiio-ext: no statistics on {os.uname().nodename}: no MPI call ")
    assert lines(done([*RUN, "--stats", "--", *NOTHING], **inside | {"OMPI_COMM_WORLD_RANK": "1"})) == []
    assert lines(done(commands(NOTHING)["outside"], SLURM_JOB_ID="4711", SLURM_JOB_NUM_NODES="2")) == []


def test_the_program_is_the_process_that_was_started() -> None:
    """Same process ID, no child, the exit status, and the signal that ends it."""
    code = "import os; print(os.getpid())\ntry: os.wait()\nexcept ChildProcessError: raise SystemExit(7)"
    command = [*RUN, "--stats", "--", sys.executable, "-c", code]
    pipe = subprocess.PIPE
    started = subprocess.Popen(command, env=base_environment(), stdout=pipe, stderr=pipe, text=True)
    out, err = started.communicate(timeout=60 * PATIENCE)
    assert (out, started.returncode, err.count(NO_MPI)) == (f"{started.pid}\n", 7, 1)
    for number in (signal.SIGTERM, signal.SIGKILL):
        killed = done([*RUN, "--stats", "--", sys.executable, "-c", f"import os; os.kill(os.getpid(), {int(number)})"])
        assert (killed.returncode, len(lines(killed))) == (-number, 1)


def test_what_was_not_started_has_no_calls_to_miss(tmp_path: pathlib.Path) -> None:
    result = done([*RUN, "--stats", "--", str(tmp_path / "nothing")])
    assert result.returncode == 127
    assert [line for line in lines(result) if "cannot execute" not in line] == []


def test_the_library_says_it_where_there_is_no_run() -> None:
    said = lines(done(NO_FILE, MPIOX_STATS="1", **preload_environment()))
    assert said == ["mpiio_ext: rank 0 opened no file through this library; why: mpiio-ext doctor -- PROGRAM"]


# ---- recorded runs ---------------------------------------------------------------------------------------------------

NOT_LOADED = "no process reported that it had loaded mpiio_ext"
RECORDED = {
    "report": ["run", "--report", "io.html"],
    "darshan": ["run", "--darshan", "io.darshan"],
    "timeline": ["run", "--timeline", "io.pftrace"],
    "trace": ["trace", "-o", "traces"],
}


def recorded(kind: str, folder: pathlib.Path, program: Sequence[str], **variables: str) -> tuple[int, str]:
    """Return exit status and standard error of a command that records."""
    result = subprocess.run(
        [sys.executable, "-m", "mpiio_ext", *RECORDED[kind], "--", *program],
        env=base_environment() | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * PATIENCE,
    )
    return result.returncode, result.stderr


@pytest.mark.parametrize("kind", RECORDED)
def test_a_recorded_run_without_the_library_has_a_status_of_its_own(
    kind: str, static: str, tmp_path: pathlib.Path
) -> None:
    status, text = recorded(kind, tmp_path, [str(launcher()), "-n", "2", static])
    assert status == 125 and NOT_LOADED in " ".join(text.lower().split()), text
    status, text = recorded(kind, tmp_path, ["sh", "-c", f"{static}; exit 3"])
    assert status == 3, text
    assert not list(tmp_path.glob(".io*"))


@pytest.mark.parametrize("kind", RECORDED)
def test_a_recorded_program_that_does_no_io_has_loaded_the_library(kind: str, tmp_path: pathlib.Path) -> None:
    status, text = recorded(kind, tmp_path, ["true"])
    assert status == 0 and NOT_LOADED not in text, text


@pytest.mark.parametrize("kind", RECORDED)
def test_a_launcher_that_passes_no_variables_on(kind: str, tmp_path: pathlib.Path) -> None:
    """A stand-in for one whose documents promise what a site's wrapper takes away."""
    wrapper = tmp_path / "jsrun"
    wrapper.write_text('#!/bin/sh\nshift 2\nexec env -i PATH="$PATH" "$@"\n')
    wrapper.chmod(0o755)
    status, text = recorded(kind, tmp_path, [str(wrapper), "true"])
    assert status == 125 and NOT_LOADED in " ".join(text.lower().split()), text


def test_a_log_has_the_number_that_the_ranks_know(tmp_path: pathlib.Path) -> None:
    """The launcher makes the batch job: the command before it is in none."""
    darshan = pytest.importorskip("darshan")
    wrapper = tmp_path / "aprun"
    wrapper.write_text('#!/bin/sh\nexport "$2" PBS_JOBID=4711.host\nshift 2\nexec "$@"\n')
    wrapper.chmod(0o755)
    status, text = recorded("darshan", tmp_path, [str(wrapper), "cat", str(tmp_path / "aprun")])
    assert status == 0, text
    assert darshan.DarshanReport(str(tmp_path / "io.darshan")).metadata["job"]["jobid"] == 4711
