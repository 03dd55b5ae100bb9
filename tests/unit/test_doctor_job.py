"""mpiio-ext doctor: what the answers of a library, a launcher and a job mean, those of broken ones among them."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from mpiio_ext import abi
from mpiio_ext.doctor import Finding, mpi
from mpiio_ext.doctor.children import Answer
from mpiio_ext.doctor.job import examine_job
from support.expected import Expected
from support.launch import base_environment, python_alone

HOST = {"host": "a", "mpiio_ext": "1", "version": "Open MPI v4", "library": "/l", "python": "3"}
WHOLE: dict[str, Any] = {
    "version": "Open MPI v4",
    "standard": [3, 1],
    "interposed": True,
    "size": 2,
    "ranks": [HOST, HOST],
    "trip_right": True,
    "trip_own": True,
    "trip_reason": "two-phase",
    "spawned": 1,
    "spawn_refused": "",
    "finalized": True,
}
JOB = mpi.Job(size=2, rank=0, launched=True)


def job(
    trouble: str = "",
    family: str = "openmpi",
    of: mpi.Job = JOB,
    program: dict[str, str] | None = None,
    output: str = "last words",
    **changes: Any,
) -> list[Finding]:
    values = {name: value for name, value in (WHOLE | changes).items() if value != "drop"}
    answer = Answer(values=values, trouble=trouble, output=output)
    return list(examine_job(answer, of, family, True, True, program or {}))


def only(*known: str) -> dict[str, str]:
    """Return what a job has not answered that hangs, but for some answers."""
    return {name: "drop" for name in WHOLE if name not in known}


def gets(library: str, version: str) -> dict[str, str]:
    """What is known of the MPI library of a program."""
    return {"abi": "x", "library": library, "version": version}


HANGS = "no answer within 9 s"
NAMED = {"program": gets("/o4/libmpi.so.40", "Open MPI v4")}
OTHER = {"mpi_paths": ["/o4/libmpi.so.40"]}
#: MPICH says the class of an error, and below the calls that it went through, the innermost last.
STACK = (
    "Other MPI error, error stack:\ninternal_Comm_spawn(113)...: MPI_Comm_spawn(command=x) failed\n"
    "MPIDU_Init_shm_put(12): unable to put\n"
)
CASES: dict[str, dict[str, Any]] = {
    "as it should be": {},
    "another MPI": {"version": "MPICH Version: 5.0"},
    "calls that do not reach the library": {"interposed": False},
    "one rank of two": {"size": 1},
    "two versions of mpiio_ext": {"ranks": [HOST, HOST | {"mpiio_ext": "2"}]},
    "two versions of MPI": {"ranks": [HOST, HOST | {"version": "v5"}]},
    "two paths": {"ranks": [HOST, HOST | {"library": "/m"}]},
    "no messages": {"ranks": "drop"},
    "other bytes": {"trip_right": False},
    "natively": {"trip_own": False, "trip_reason": "native: nfs"},
    "an error of a file": {"trip_error": "no space"},
    "a host that does not see a file": {"trip_error": "b does not see", "trip_blind": ["b"]},
    "no spawning": {"spawned": 0, "spawn_error": "no slots"},
    "no answer": {"trouble": HANGS, **only()},
    "MPI_Init hangs": {"trouble": HANGS, **only("version", "standard", "interposed")},
    "a file hangs": {"trouble": "ended by SIGABRT", "trip_right": "drop"},
    "spawning hangs": {"trouble": "ended by SIGABRT", "spawned": "drop"},
    # of a program in C, what mpi4py has or lacks is no error
    "mpi4py of another MPI": {"version": "MPICH Version: 5.0"},
    "mpi4py of another MPI than a program": {"version": "MPICH Version: 5.0", **NAMED},
    "no mpi4py": only(),
    "no mpi4py, but a program": {**only(), **NAMED},
    # one family, two libraries: both are named, and nothing is reported of the job of mpi4py's
    "another release": {**OTHER, "program": gets("/o5/libmpi.so.40", "Open MPI v5")},
    "a copy of the library": {**OTHER, "program": gets("/copy/libmpi.so.40", "Open MPI v4")},
    "the same library": {**OTHER, "program": gets("/o4/libmpi.so.40", "")},
    "another library": {**OTHER, "program": gets("/o5/libmpi.so.40", "")},
    "an unknown library": {"mpi_paths": [], "program": gets("/o5/libmpi.so.40", "")},
    "another family": {
        "version": "MPICH Version: 5.0",
        "mpi_paths": ["/m/libmpi.so"],
        "program": gets("/o5/libmpi.so.40", "Open MPI v5"),
    },
    # the standard ABI has MPIs of every family
    "the standard ABI": {"family": "mpiabi"},
    "no network": {"spawned": 0, "output": "pair of MPI processes are unable to reach each other for"},
    # it works, but no delegate is spawned: what decides is the library's rule
    "spawning that the library refuses": {"spawn_refused": "only with Open MPI 4"},
    "an error of spawning with a stack": {"spawned": 0, "spawn_error": STACK},
    "an error of spawning": {"spawned": 0, "spawn_error": "MPI_ERR_SPAWN: no\n"},
    "no spawning without a launcher": {"spawned": 0, "of": mpi.Job(size=1, rank=0, launched=False)},
    "no spawning under Slurm": {"slurm": "7", "spawned": 0},
    "no start under Slurm": {"slurm": "7", "trouble": "no answer", "size": "drop"},
}


@pytest.mark.parametrize("name", CASES)
def test_jobs(name: str, expected: Expected, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = dict(CASES[name])
    if slurm := changes.pop("slurm", ""):
        monkeypatch.setenv("SLURM_JOB_ID", slurm)
    else:
        monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    found = job(**changes)
    expected({one.key: " > ".join(filter(None, (f"{one.state.value}: {one.text}", one.advice))) for one in found})


def test_links_to_the_same_library_are_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / "libmpich.so.12").touch()
    (tmp_path / "libmpi.so.12").symlink_to("libmpich.so.12")
    program = gets(str(tmp_path / "libmpi.so.12"), "MPICH 4")
    paths = [str(tmp_path / "libmpich.so.12")]
    found = job(family="mpich", program=program, version="MPICH 4 of mpi4py", mpi_paths=paths)
    assert found[0].state.value == "ok"


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({}, (1, 0, False)),
        ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}, (4, 3, True)),
        ({"PMI_SIZE": "2", "PMI_RANK": "1"}, (2, 1, True)),
        ({"SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5"}, (8, 5, True)),
        ({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}, (1, 0, False)),  # a batch script
    ],
)
def test_place_in_the_job(environment: dict[str, str], expected: tuple[int, int, bool]) -> None:
    found = mpi.job_of(environment)
    assert (found.size, found.rank, found.launched) == expected


@pytest.mark.parametrize(
    "version, family",
    [
        ("Open MPI v5.0.1, package", "openmpi"),
        ("MPICH Version:      5.0", "mpich"),
        ("Intel(R) MPI Library 2021.18", "mpich"),
        ("MPI VERSION    : CRAY MPICH version 8.1", "mpich"),
        ("MVAPICH Version : 4.0", "mpich"),
        ("Fujitsu MPI", ""),
    ],
)
def test_families(version: str, family: str) -> None:
    assert mpi.family_of(version) == family


# ---- the launcher ----------------------------------------------------------------------------------------------------


def launcher_that_says(folder: pathlib.Path, text: str) -> dict[str, str]:
    path = folder / "mpirun"
    path.write_text(f"#!/bin/sh\necho '{text}'\n")
    path.chmod(0o755)
    return base_environment() | {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    "text, family, state",
    [
        ("mpirun (Open MPI) 4.1.4", "openmpi", "ok"),
        ("mpirun (Open MPI) 4.1.4", "mpich", "error"),
        ("HYDRA build details:", "openmpi", "error"),
        ("HYDRA build details:", "mpich", "ok"),
        ("something else", "mpich", "ok"),
    ],
)
def test_launcher(tmp_path: pathlib.Path, text: str, family: str, state: str) -> None:
    assert mpi.launcher(family, launcher_that_says(tmp_path, text), 60).state.value == state


@pytest.mark.parametrize(
    "text, state",
    [("mpirun (Open MPI) 4.1.4", "error"), ("mpirun (Open MPI) 6.0.0", "ok"), ("HYDRA build details:", "ok")],
)
def test_launcher_of_the_standard_abi(tmp_path: pathlib.Path, text: str, state: str) -> None:
    """MPICH has it from 5 on, Open MPI from 6 on."""
    assert mpi.launcher("mpiabi", launcher_that_says(tmp_path, text), 60).state.value == state


def test_right_launcher_is_named_where_it_is_there(tmp_path: pathlib.Path) -> None:
    environment = launcher_that_says(tmp_path, "mpirun (Open MPI) 4.1.4") | {"PATH": str(tmp_path)}
    found = mpi.launcher("mpich", environment, 60, of_wheel=True)
    assert "use the launcher of that MPI" in found.advice and "the program and its library" in found.text
    other = tmp_path / "mpirun.mpich"
    other.write_text("#!/bin/sh\necho HYDRA\n")
    other.chmod(0o755)
    found = mpi.launcher("mpich", environment, 60, of_wheel=True)
    assert f"use {other};" in found.advice and "mpiio_ext of the other" not in found.advice
    assert mpi.launcher("mpich", environment, 60, named="mpirun.mpich").facts["path"] == str(other)


def test_launcher_of_the_command_line_counts(tmp_path: pathlib.Path) -> None:
    environment = launcher_that_says(tmp_path, "mpirun (Open MPI) 4.1.4")
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    assert mpi.launcher("mpich", environment, 60, "srun").facts["family"] == "slurm"
    of_step = environment | {"SLURM_STEP_NUM_TASKS": "2"}
    assert mpi.launcher("mpich", of_step, 60).facts["family"] == "slurm"
    by_mpirun = of_step | {"OMPI_COMM_WORLD_SIZE": "2"}  # inside of an allocation
    assert mpi.launcher("openmpi", by_mpirun, 60).facts["family"] == "openmpi"
    by_hydra = of_step | {"HYDI_CONTROL_FD": "7", "PMI_SIZE": "2"}
    assert mpi.launcher("mpich", by_hydra, 60).facts["family"] == "mpich"


@pytest.mark.parametrize("family, other", [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_launcher_of_the_job_counts_not_that_on_path(tmp_path: pathlib.Path, family: str, other: str) -> None:
    texts = {"openmpi": "mpirun (Open MPI) 4.1.4", "mpich": "HYDRA build details:"}
    left = {"openmpi": {"OMPI_COMM_WORLD_SIZE": "2"}, "mpich": {"PMI_SIZE": "2", "MPI_LOCALNRANKS": "2"}}
    environment = launcher_that_says(tmp_path, texts[other]) | left[family]
    found = mpi.launcher(family, environment, 60)
    assert found.state.value == "ok" and found.facts["family"] == family and found.facts["job"] is True
    found = mpi.launcher(other, environment, 60)  # and that on PATH would be right
    assert found.state.value == "error" and "this job was started by" in found.text
    assert mpi.launcher(other, environment, 60, named=str(tmp_path / "mpirun")).state.value == "ok"


FAKE_MPI = """
#include <string.h>
int MPI_Get_library_version(char *text, int *length)
{
    strcpy(text, "Open MPI v" RELEASE ", package: fake");
    *length = (int)strlen(text);
    return 0;
}
"""


def test_a_launcher_of_another_release_than_the_library(tmp_path: pathlib.Path) -> None:
    source, library = tmp_path / "fake.c", tmp_path / "libmpi.so.40"
    source.write_text(FAKE_MPI)
    subprocess.run(["cc", "-shared", "-fPIC", '-DRELEASE="5.0.5"', "-o", str(library), str(source)], check=True)
    for release, state in (("4.1.4", "warning"), ("5.0.5", "ok")):
        environment = launcher_that_says(tmp_path, f"mpirun (Open MPI) {release}")
        found = mpi.launcher("openmpi", environment, 60, library=str(library))
        assert found.state.value == state, found
        if state == "warning":
            assert "Open MPI 4.1.4, the MPI library of 5.0.5" in found.text
            assert f"use the launcher of {library}" in found.advice


def test_no_launcher(tmp_path: pathlib.Path) -> None:
    assert mpi.launcher("openmpi", {"PATH": str(tmp_path)}, 60).state.value == "warning"
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    found = mpi.launcher("openmpi", {"PATH": str(tmp_path)}, 60)
    assert found.state.value == "ok" and "--mpi=list" in found.advice


# ---- the library ----------------------------------------------------------------------------------------------------


@pytest.mark.mpi
def test_library_of_this_environment(extension: str, family: str) -> None:
    own = mpi.examine_library(pathlib.Path(extension), base_environment(), 120)
    assert [item.state.value for item in own.findings] == ["ok"]
    assert own.family == family


@pytest.mark.parametrize("image", [None, b"", b"no library"])
def test_library_that_is_none(tmp_path: pathlib.Path, image: bytes | None) -> None:
    path = tmp_path / "libmpiio_ext.so"
    if image is not None:
        path.write_bytes(image)
    own = mpi.examine_library(path, base_environment(), 60)
    assert [item.state.value for item in own.findings] == ["error"] and own.family == ""


@pytest.mark.mpi
def test_library_whose_mpi_is_gone(extension: str, tmp_path: pathlib.Path) -> None:
    """A copy of it needs a library of another name, as where the module of the MPI is not loaded."""
    image = pathlib.Path(extension).read_bytes()
    name = next(found for found in (b"libmpi.so.40", b"libmpi.so.12") if found in image)
    copy = tmp_path / "libmpiio_ext.so"
    copy.write_bytes(image.replace(name + b"\0", name[:-2] + b"99\0"))
    (finding,) = mpi.examine_library(copy, base_environment(), 60).findings
    assert finding.state.value == "error" and "libmpi.so.99" in finding.text


@pytest.mark.mpi
def test_library_that_cannot_be_loaded(extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "ask", lambda *_, **__: Answer(trouble="ended by SIGSEGV"))
    (finding,) = mpi.examine_library(pathlib.Path(extension), base_environment(), 60).findings
    assert finding.state.value == "error" and "SIGSEGV" in finding.text


@pytest.fixture
def of_wheel(extension: str, tmp_path: pathlib.Path) -> pathlib.Path:
    """The library where a wheel has that for MPICH."""
    path = tmp_path / "abis" / "mpich" / "lib" / "libmpiio_ext.so"
    path.parent.mkdir(parents=True)
    return pathlib.Path(shutil.copy(extension, path))


@pytest.mark.mpi
@pytest.mark.parametrize(
    "why, state, words",
    [
        ("./app uses it", "ok", "of the wheel, for MPICH, Intel MPI, MVAPICH, Cray MPICH (libmpi.so.12): ./app uses"),
        ("", "warning", "which of its libraries fits is not known"),
    ],
)
def test_library_of_a_wheel(
    of_wheel: pathlib.Path, monkeypatch: pytest.MonkeyPatch, why: str, state: str, words: str
) -> None:
    """It says for which MPI it was chosen and why; the child is told which one is meant."""
    asked: list[dict[str, str]] = []

    def answer(*_: Any, environment: dict[str, str], **__: Any) -> Answer:
        asked.append(environment)
        return Answer(values={"version": "1", "package": "1", "family": "mpich"})

    monkeypatch.setattr(mpi, "ask", answer)
    own = mpi.examine_library(of_wheel, base_environment(), 60, why)
    (finding,) = own.findings
    assert finding.state.value == state and words in finding.text
    assert finding.facts["wheel"] is True and finding.facts["chosen_by"] == (why or None)
    assert own.part == "mpich" and asked[0][abi.VARIABLE] == "mpich"


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ("mpiio_ext.__version__ = '2'", 0, "is 0.1.0, the Python package 2: build or install mpiio_ext again"),
        (
            "found = importlib.util.find_spec('mpiio_ext._binding'); sys.modules[found.name] = "
            "types.ModuleType(found.name);"
            " sys.modules[found.name].__spec__ = found",
            2,
            "cannot be loaded: cannot import name 'ffi'",
        ),
    ],
    ids=["version", "binding"],
)
def test_run_says_that_the_library_does_not_fit(change: str, status: int, said: str, extension: str) -> None:
    """As doctor does, in one line; a library that lacks a function cannot be loaded."""
    code = f"import importlib.util, sys, types, mpiio_ext; {change}; from mpiio_ext.cli import main"
    done = python_alone(f"{code}; main(['run', '--', 'echo', 'ran'])")
    assert (done.returncode, done.stdout) == (status, "ran\n" if status == 0 else ""), done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "libmpiio_ext.so" in line)
    assert said in line and "Traceback" not in done.stderr


@pytest.mark.mpi
def test_library_of_another_version(extension: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"version": "1", "package": "2", "family": "mpich"}
    monkeypatch.setattr(mpi, "ask", lambda *_, **__: Answer(values=told))
    (finding,) = mpi.examine_library(pathlib.Path(extension), base_environment(), 60).findings
    assert finding.state.value == "error" and "is 1, the Python package 2" in finding.text


def test_this_python_has_a_linker() -> None:
    assert shutil.which(sys.executable) and mpi._linker().startswith("/")
