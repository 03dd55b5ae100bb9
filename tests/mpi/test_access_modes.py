"""Access modes, communicators, handles and sizes: unchanged C programs, natively and with the library preloaded."""

from __future__ import annotations

import os
import pathlib

import pytest

from support.cbuild import failed_checks, mpi_program
from support.launch import Launch, mpi_run, python_run
from support.tiers import slow

pytestmark = pytest.mark.mpi

#: Cases of tests/programs/modes.c -> number of checks.
CASES = {
    "append": 8,
    "excl": 5,
    "unique": 3,
    "delete_on_close": 6,
    "sequential": 5,
    "self": 5,
    "communicators": 6,
    "intercommunicator": 2,
    "null_handles": 10,
    "delete_open": 9,
    "resize": 8,
}

#: What the MPI library itself does not do as MPI says.
DEVIATIONS = {
    # ROMIO hands rank 0's error code to the other ranks, where it means nothing: an error, but of no class
    "mpich": {"EXCL: an existing file is refused"},
    # OMPIO does not look at MPI_MODE_SEQUENTIAL in these calls
    "openmpi": {
        "SEQUENTIAL: explicit offsets are refused",
        "SEQUENTIAL: individual pointers are refused",
        "SEQUENTIAL: so is get_position",
    },
}


#: Of these, what the library puts right.
PUT_RIGHT = {"EXCL: an existing file is refused"}


def run(tmp_path: pathlib.Path, ranks: int, cases: list[str], *, preload: bool) -> Launch:
    """Run cases of modes.c; its exit status, the number of failures, is left to the caller."""
    program: list[str | os.PathLike[str]] = [mpi_program("modes"), tmp_path / "file", *cases]
    launch = mpi_run(program, ranks, preload=preload, timeout_s=60, check=False)
    assert not launch.timed_out, launch.describe()
    return launch


def checks(ranks: int) -> int:
    """Return how many checks all cases come to; on one rank there is no intercommunicator."""
    return 1 + sum(CASES.values()) - (CASES["intercommunicator"] if ranks == 1 else 0)


def test_native(family: str, tmp_path: pathlib.Path) -> None:
    """The control of the program: nothing else fails with the MPI library alone."""
    launch = run(tmp_path, 3, list(CASES), preload=False)
    assert failed_checks(launch.stdout, checks(3)) == DEVIATIONS[family], launch.describe()


@pytest.mark.parametrize("ranks", [1, 4, *slow(2, 7)])
def test_preloaded(extension: str, family: str, tmp_path: pathlib.Path, ranks: int) -> None:
    launch = run(tmp_path, ranks, list(CASES), preload=True)
    assert failed_checks(launch.stdout, checks(ranks)) <= DEVIATIONS[family] - PUT_RIGHT, launch.describe()


@pytest.mark.parametrize("preload", [False, True], ids=["native", "preloaded"])
@pytest.mark.parametrize("case", ["many", "preallocate"])
def test_many_files_and_preallocate(
    extension: str, family: str, tmp_path: pathlib.Path, case: str, preload: bool
) -> None:
    """200 files open at once, every second one deleted on close; and MPI_File_preallocate, each in a job of its own."""
    # In OMPIO rank 0 grows the file while the others go on: now and then they still find the old size.
    deviations = {"preallocate: size"} if family == "openmpi" and not preload else set()
    launch = run(tmp_path, 2, [case], preload=preload)
    assert failed_checks(launch.stdout, 5) <= deviations, launch.describe()


@pytest.mark.parametrize("per_node", [1, 2])
def test_on_pretended_nodes(extension: str, family: str, tmp_path: pathlib.Path, per_node: int) -> None:
    """The same when the ranks of a communicator are on several nodes, where deleting and resizing need agreement."""
    cases = ["append", "excl", "delete_on_close", "self", "communicators", "delete_open", "resize"]
    program: list[str | os.PathLike[str]] = [mpi_program("modes"), tmp_path / "file", *cases]
    env = {"MPIOX_RANKS_PER_NODE": str(per_node)}
    launch = mpi_run(program, 4, preload=True, env=env, timeout_s=60, check=False)
    assert not launch.timed_out, launch.describe()
    least = 1 + sum(CASES[case] for case in cases)
    assert failed_checks(launch.stdout, least) <= DEVIATIONS[family] - PUT_RIGHT, launch.describe()


#: Cases of tests/programs/differing.c -> number of checks.
DIFFERING = {"amode": 10, "names": 11, "sizes": 13, "pointers": 8, "failing": 5}


@pytest.mark.parametrize("hints", ["", "mpiox_ranks_per_node=1", "mpiox_delegates=1,mpiox_close=staged"])
def test_arguments_that_differ(extension: str, tmp_path: pathlib.Path, hints: str) -> None:
    """What MPI wants to be the same on all ranks is not, or an open fails: every rank gets the error."""
    program: list[str | os.PathLike[str]] = [mpi_program("differing"), tmp_path / "file", *DIFFERING]
    launch = mpi_run(program, 3, preload=True, env={"MPIOX_HINTS": hints}, timeout_s=30, check=False)
    assert not launch.timed_out, launch.describe()
    assert failed_checks(launch.stdout, 1 + sum(DIFFERING.values())) == set(), launch.describe()


def test_who_differs(extension: str, tmp_path: pathlib.Path) -> None:
    """The text of the error names its class, in the same words under each MPI, the rank, what differs and the file."""
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nimport mpiio_ext\nfrom mpi4py import MPI\n"
        "mode = MPI.MODE_WRONLY if MPI.COMM_WORLD.rank == 1 else MPI.MODE_RDWR\n"
        "name = sys.argv[1] if MPI.COMM_WORLD.rank < 2 or len(sys.argv) == 2 else sys.argv[2]\n"
        "try:\n    MPI.File.Open(MPI.COMM_WORLD, name, mode | MPI.MODE_CREATE)\n"
        "except MPI.Exception as error:\n    print(f'{error}\\n', end='')\n",
        encoding="utf-8",
    )
    one, other = tmp_path / "one", tmp_path / "other"
    for names, text in (
        ([one], f"rank 1: open with another access mode than rank 0 ({one})"),
        ([one, other], f"rank 2: open of another file than rank 0 ({one})"),
    ):
        launch = python_run([script, *names], 3, preload=True, timeout_s=30)
        lines = launch.stdout.splitlines()
        assert lines == [f"MPI_ERR_NOT_SAME: arguments differ between ranks: {text}"] * 3, launch.describe()
    assert not other.exists()


#: MPI's own open, of arguments that differ: whatever it returns, each rank of the library makes the same calls.
UNLIKE = """
import sys
import mpiio_ext
from mpi4py import MPI
world = MPI.COMM_WORLD
mode = MPI.MODE_CREATE | MPI.MODE_WRONLY | (MPI.MODE_SEQUENTIAL if sys.argv[2] == "sequential" else 0)
try:
    MPI.File.Open(world, sys.argv[1], mode | (MPI.MODE_DELETE_ON_CLOSE if world.rank == 1 else 0))
except MPI.Exception:
    pass
found = world.gather(world.allreduce(1), 0)
if world.rank == 0:
    print("sums", found, flush=True)
"""


@pytest.mark.parametrize("how", ["sequential", "not enabled"])
def test_arguments_that_differ_where_mpi_opens_the_file(extension: str, tmp_path: pathlib.Path, how: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(UNLIKE, encoding="utf-8")
    env = {"MPIOX_HINTS": "*:mpiox_enable=false"} if how == "not enabled" else {}
    launch = python_run([script, tmp_path / "file", how], 2, preload=True, env=env, timeout_s=30, check=False)
    assert not launch.timed_out, launch.describe()
    assert launch.stdout == "sums [2, 2]\n", launch.describe()
