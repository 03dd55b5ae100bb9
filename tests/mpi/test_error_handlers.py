"""Error handlers of files: called once on every rank, for the right file, with the right class; or the end of the job.

The program is tests/programs/handlers.c. What the MPI library alone does is the reference, apart from its deviations.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from support.cbuild import failed_checks, mpi_program
from support.launch import Launch, mpi_run
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]

#: First word of a call's name -> error classes that say what is wrong with it.
CLASSES = {
    "count": {"COUNT"},
    "type": {"TYPE"},
    "offset": {"ARG"},
    "seek": {"ARG"},
    "whence": {"ARG"},
    "size": {"ARG"},
    "view": {"ARG"},
    "filetype": {"IO"},
    "datarep": {"UNSUPPORTED_DATAREP"},
    "not the same": {"NOT_SAME"},
    "rdonly": {"READ_ONLY"},
    "wronly": {"ACCESS"},
    "limit": {"IO"},
    "inherited": {"COUNT"},
    "kept": {"COUNT"},
    "first": {"COUNT"},
    "delete": {"NO_SUCH_FILE"},
    "denied": {"ACCESS"},
    "open missing": {"NO_SUCH_FILE"},
    "open existing EXCL": {"FILE_EXISTS"},
    "open below a file": {"BAD_FILE", "OTHER"},
    "open folder": {"BAD_FILE"},
    "open amode": {"AMODE"},
}
#: What the MPI library alone does otherwise: some ranks or all are told nothing, or not the class. With the library
#: preloaded such a call may go either way, but the handler is never called twice or for another file.
DEVIATIONS = {
    "openmpi": {
        "limit collective",
        "limit independent",
        "offset collective",
        "offset independent",
        "rdonly collective",
        "rdonly pointer collective",
        "rdonly ordered",
        "seek",
        "view",
        "wronly collective",
        "wronly pointer collective",
        "size",
        "open existing EXCL",
    },
    # ranks other than 0 get rank 0's code, which means nothing there
    "mpich": {"open existing EXCL", "open below a file", "rdonly ordered", "rdonly split", "denied"},
}
#: Those of them that the library has taken over: every rank is told.
MENDED = {
    "limit collective",
    "limit independent",
    "offset collective",
    "offset independent",
    "rdonly collective",
    "rdonly ordered",
    "rdonly split",
    "rdonly pointer collective",
    "view",
    "wronly collective",
    "wronly pointer collective",
}
LINE = re.compile(r"^call (?P<name>[^;]*); (\d+) (?P<calls>\d+) (?P<file>[01]) (?P<result>\w+) (?P<handler>\w+)$", re.M)


def expected(name: str) -> set[str]:
    """Return the classes that are right for a call."""
    return next(classes for start, classes in CLASSES.items() if name.startswith(start))


def problems(text: str, ranks: int, deviations: set[str], family: str) -> list[str]:
    """Return what is wrong with the lines of a run."""
    found = list(LINE.finditer(text))
    names = {line["name"] for line in found}
    wrong = [f"{name}: not on every rank" for name in names if sum(line["name"] == name for line in found) != ranks]
    for line in found:
        # after a user's handler MPICH's functions return MPI_SUCCESS
        results = {line["handler"], "SUCCESS"} if family == "mpich" else {line["handler"]}
        told = line["calls"] == "1" and line["file"] == "1"
        fine = told and line["handler"] in expected(line["name"]) and line["result"] in results
        lenient = line["name"] in deviations and (told or (line["calls"] == "0" and line["result"] == "SUCCESS"))
        if not fine and not lenient:
            wrong.append(line.group())
    return wrong


def run(
    tmp_path: pathlib.Path,
    ranks: int,
    *words: str,
    preload: bool,
    prefix: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    last_words: pathlib.Path | None = None,
) -> Launch:
    """Run the program on a file in an own folder."""
    path = tmp_path / "file"
    path.with_name("file.folder").mkdir()
    launch = mpi_run(
        [*prefix, mpi_program("handlers"), path, *words],
        ranks,
        preload=preload,
        env=env,
        timeout_s=30,
        check=False,
        last_words=last_words,
    )
    assert not launch.timed_out, launch.describe()
    return launch


def test_native(family: str, tmp_path: pathlib.Path) -> None:
    """The control of the program."""
    launch = run(tmp_path, 3, preload=False)
    assert len(LINE.findall(launch.stdout)) >= 3 * 37, launch.describe()
    assert not problems(launch.stdout, 3, DEVIATIONS[family], family), launch.describe()
    assert not failed_checks(launch.stdout, 11) and launch.stdout.rstrip().endswith("end"), launch.describe()


@pytest.mark.parametrize("ranks", [*slow(1), 3, *slow(4)])
def test_preloaded(extension: str, family: str, tmp_path: pathlib.Path, ranks: int) -> None:
    launch = run(tmp_path, ranks, preload=True)
    assert len(LINE.findall(launch.stdout)) >= ranks * 37, launch.describe()
    assert not problems(launch.stdout, ranks, DEVIATIONS[family] - MENDED, family), launch.describe()
    assert not failed_checks(launch.stdout, 11) and launch.stdout.rstrip().endswith("end"), launch.describe()


@pytest.mark.parametrize(("ranks", "per_node"), [(1, 1), *slow((2, 2), (3, 3), (4, 4)), (4, 2), (3, 1)])
def test_wrong_on_one_rank_only(extension: str, family: str, tmp_path: pathlib.Path, ranks: int, per_node: int) -> None:
    """Wrong views and offsets of the last rank: every rank is told the same, none waits, and the view stays.

    Not tried with the MPI libraries alone: ROMIO's other ranks wait for ever, OMPIO takes the view and ends the job in
    the first access. Nor are nonblocking collectives between nodes, which are theirs.
    """
    path, env = tmp_path / "file", {"MPIOX_RANKS_PER_NODE": str(per_node)}
    mode = "alone" if per_node == ranks else "alone-blocking"
    launch = mpi_run([mpi_program("handlers"), path, mode], ranks, preload=True, env=env, timeout_s=20, check=False)
    assert not launch.timed_out, launch.describe()
    calls = 15 + 2 * (ranks > 1) - 2 * (per_node < ranks)
    assert len(LINE.findall(launch.stdout)) == ranks * calls, launch.describe()
    assert not problems(launch.stdout, ranks, set(), family), launch.describe()
    assert not failed_checks(launch.stdout, 3) and launch.stdout.rstrip().endswith("end"), launch.describe()


def test_disabled(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """A file left to the MPI library from its open on: no handler runs for a call that the program did not make."""
    launch = run(tmp_path, 3, preload=True, env={"MPIOX_HINTS": "mpiox_enable=false"})
    assert len(LINE.findall(launch.stdout)) >= 3 * 35, launch.describe()
    assert not problems(launch.stdout, 3, DEVIATIONS[family], family), launch.describe()
    assert not failed_checks(launch.stdout, 11) and launch.stdout.rstrip().endswith("end"), launch.describe()


@pytest.mark.parametrize("ranks", [*slow(1), 3, *slow(2)])
def test_errors_of_nonblocking_calls(extension: str, family: str, tmp_path: pathlib.Path, ranks: int) -> None:
    """What MPI_Wait finds out goes to the file's handler, not to that of MPI_COMM_WORLD, which would end the job.

    Not tried with the MPI libraries alone: OMPIO's MPI_Wait looks for the handler of a failed request at an address
    that is none, and crashes; ROMIO's never returns when the file system refuses the write.
    """
    path = tmp_path / "file"
    launch = mpi_run([mpi_program("handlers"), path, "late"], ranks, preload=True, timeout_s=20, check=False)
    assert not launch.timed_out, launch.describe()
    assert len(LINE.findall(launch.stdout)) == ranks * 3, launch.describe()
    assert not problems(launch.stdout, ranks, set(), family), launch.describe()
    assert not failed_checks(launch.stdout, 1) and launch.stdout.rstrip().endswith("end"), launch.describe()


@pytest.mark.parametrize("preload", [False, True], ids=["native", "preloaded"])
def test_permission_denied(extension: str, family: str, tmp_path: pathlib.Path, preload: bool) -> None:
    """A file without any permission; root gives up the capability that lets it open everything."""
    path = tmp_path / "file"
    path.write_bytes(b"secret")
    path.chmod(0)
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root needs setpriv to be refused anything")
        prefix = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
        probe = subprocess.run([*prefix, "cat", str(path)], capture_output=True, check=False, timeout=20)
        if probe.returncode == 0 or b"Permission denied" not in probe.stderr:
            pytest.skip("root cannot give up its right to open every file here")
    launch = run(tmp_path, 2, "denied", preload=preload, prefix=prefix)
    assert len(LINE.findall(launch.stdout)) == 2, launch.describe()
    assert not problems(launch.stdout, 2, DEVIATIONS[family], family), launch.describe()
    first = next(LINE.finditer(launch.stdout))
    assert first["handler"] == "ACCESS", launch.describe()


#: Handler, call that goes wrong, what the message must contain (None: the MPI library dies without one).
FATAL = [
    ("fatal", "collective", "count"),
    ("fatal", "independent", "count"),
    ("fatal", "nonblocking", "count"),
    ("null", "collective", "count"),
    ("abort", "collective", "count"),
    ("null", "open", None),
]


@pytest.mark.slow_except("*-preloaded", "null-open-None-*")
@pytest.mark.parametrize("preload", [False, True], ids=["native", "preloaded"])
@pytest.mark.parametrize(("kind", "how", "message"), FATAL)
def test_fatal_handlers_end_the_job(
    extension: str, family: str, tmp_path: pathlib.Path, kind: str, how: str, message: str | None, preload: bool
) -> None:
    """MPI_ERRORS_ARE_FATAL, set or inherited, and MPI_ERRORS_ABORT: a status, a message, nobody goes on or hangs."""
    if kind == "abort" and family == "openmpi":
        pytest.skip("Open MPI 4.1 has no MPI_ERRORS_ABORT")
    launch = run(tmp_path, 3, "die", kind, how, preload=preload, last_words=tmp_path / "errors")
    assert launch.returncode != 0, launch.describe()
    assert "survived" not in launch.stdout
    if message is not None:
        assert message in (launch.stdout + launch.stderr).lower(), launch.describe()


@pytest.mark.parametrize("ranks", [*slow(1), 3])
def test_fatal_storage_error(extension: str, tmp_path: pathlib.Path, ranks: int) -> None:
    """An error of the device, with MPI_ERRORS_ARE_FATAL: the message names the file and the errno."""
    path = tmp_path / "file"
    env = {"MPIOX_FAULT": f"op=write,rank={ranks - 1},errno=EIO"}
    program: list[str | os.PathLike[str]] = [mpi_program("handlers"), path, "die", "fatal", "collective"]
    hints = {"MPIOX_HINTS": "mpiox_exchange=direct"}  # every rank writes
    last_words = tmp_path / "errors"
    launch = mpi_run(program, ranks, preload=True, env=env | hints, timeout_s=30, check=False, last_words=last_words)
    assert not launch.timed_out, launch.describe()
    assert launch.returncode != 0
    assert "survived" not in launch.stdout
    assert "ok before" in launch.stdout
    assert re.search(r"write of \S*file failed at offset 0, length 4096: .*errno 5", launch.stderr + launch.stdout)
