"""Programs that do what MPI and POSIX allow and hardly anybody tests: with types, handlers, requests, processes, tools.

The programs are tests/programs/strangers (many cases in one launch, each judges itself), leaving.c (ends of jobs,
each a launch) and tool.c (a profiling library of somebody else's).
"""

from __future__ import annotations

import os
import pathlib
import re

import pytest

from support.cbuild import mpi_library, mpi_program, mpi_program_of
from support.launch import Launch, library_path, mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both]

#: Cases with the number of ranks that they need.
CASES = {
    name: int(least)
    for path in sorted((pathlib.Path(__file__).parents[1] / "programs" / "strangers").glob("*.c"))
    for name, least in re.findall(r'\{"(\w+)", (\d+), \w+\}', path.read_text(encoding="utf-8"))
}
#: Needs more groups than three ranks have, and some seconds.
ORDERS = "orders"
#: Takes types that MPI_Type_get_envelope refuses; a launch of its own, as MPICH ends the job where that is forgotten.
LARGE_COUNTS = "large_counts"
#: Hundreds of collectives: in the quick tier only where waiting does not spin.
LONG = {"many_views", "many_opens", "handle_recycled", "jump_out_of_open", "thousands", "view_given_back"}

#: Not tried with the MPI library alone.
NOT_NATIVE = {
    "openmpi": {
        "end_of_the_world"  # the write "succeeds", and the next collective never ends
    },
    "mpich": {
        "end_of_the_world",  # ROMIO divides the file among its aggregators, misses, and aborts
        "not_to_be_copied",  # ROMIO duplicates the type, and dies of the callback that forbids it
        "looked_at",  # MPI_Request_get_status with MPI_STATUS_IGNORE aborts
        "together",  # MPI_Testall fails when one of ROMIO's requests is among others
        "many_views",  # minutes
        "many_opens",  # a quarter of one
        "threads_in_turn",  # ROMIO's set_view overflows a stack of 128 KiB
    },
}
#: What the MPI library alone does wrong, and the library too where it hands the call on.
DEVIATIONS = {
    "openmpi": {
        "devices",  # a full device is no error to OMPIO's collectives
        "freed",  # a request that is freed takes its write with it
        "interrupted",  # MPI_File_preallocate lets the other ranks go on before the size has changed
        "cancelled",  # the status of a request after MPI_Cancel says nothing
    },
    "mpich": {
        "attributes",  # the view is a duplicate
        "freed",
    },
}
#: Between nodes, without MPI_THREAD_MULTIPLE, nonblocking collectives are the MPI library's.
BETWEEN_NODES = {"freed"}


def verdicts(launch: Launch) -> dict[str, str]:
    """Return what each case of a launch that has come to its end says."""
    assert not launch.timed_out, launch.describe()
    found = dict(re.findall(r"^(\w+): (ok|rank .*)$", launch.stdout, re.M))
    assert launch.stdout.rstrip().endswith("end"), launch.describe()
    return found


def run(
    tmp_path: pathlib.Path, ranks: int, cases: set[str], *, preload: bool, env: dict[str, str] | None = None
) -> dict[str, str]:
    """Run cases in one launch; every one must have said something. Return those that are not right."""
    wanted = {name for name in cases if CASES[name] <= ranks}
    program: list[str | os.PathLike[str]] = [mpi_program_of("strangers"), tmp_path, *sorted(wanted)]
    launch = mpi_run(program, ranks, preload=preload, env=env, timeout_s=120, check=False)
    found = verdicts(launch)
    assert found.keys() == wanted, launch.describe()
    return {name: text for name, text in found.items() if text != "ok"}


def names() -> set[str]:
    """Return the cases that need no launch of their own."""
    return set(CASES) - {ORDERS, LARGE_COUNTS}


def quick(family: str) -> set[str]:
    """Return those of them that are tried every time."""
    return names() - (LONG if family == "mpich" else set())


@pytest.mark.slow
def test_native(family: str, tmp_path: pathlib.Path) -> None:
    """The control of the program: nothing else fails with the MPI library alone."""
    wrong = run(tmp_path, 3, quick(family) - NOT_NATIVE[family], preload=False)
    assert wrong.keys() <= DEVIATIONS[family], wrong


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.slow), 3, pytest.param(5, marks=pytest.mark.slow)])
def test_preloaded(extension: str, family: str, tmp_path: pathlib.Path, ranks: int) -> None:
    assert not run(tmp_path, ranks, quick(family) if ranks == 3 else names(), preload=True)


@pytest.mark.parametrize("per_node", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_on_pretended_nodes(extension: str, family: str, tmp_path: pathlib.Path, per_node: int) -> None:
    """Several nodes; on MPICH, whose waiting spins, with as few ranks as make them."""
    few = names() - LONG - NOT_NATIVE[family]
    ranks = 2 * per_node if family == "mpich" else 4
    wrong = run(tmp_path, ranks, few, preload=True, env={"MPIOX_RANKS_PER_NODE": str(per_node)})
    assert wrong.keys() <= BETWEEN_NODES | DEVIATIONS[family], wrong


@pytest.mark.parametrize("preload", [False, True], ids=["native", "preloaded"])
def test_large_count_types(extension: str, family: str, tmp_path: pathlib.Path, preload: bool) -> None:
    if family == "openmpi":
        pytest.skip("Open MPI 4.1 has no large-count functions")
    assert not run(tmp_path, 2, {LARGE_COUNTS}, preload=preload)


def test_many_groups(extension: str, family: str, tmp_path: pathlib.Path, pytestconfig: pytest.Config) -> None:
    """A file on a group of ranks of its own, time and again: what is kept of each has a limit."""
    if family == "mpich" and not pytestconfig.getoption("--run-slow"):
        pytest.skip("slow: MPICH's waiting spins")
    assert not run(tmp_path, 5, {ORDERS}, preload=True)


def test_longjmp_out_of_open_between_nodes(extension: str, tmp_path: pathlib.Path) -> None:
    assert not run(tmp_path, 2, {"jump_out_of_open"}, preload=True, env={"MPIOX_RANKS_PER_NODE": "1"})


#: What the tool wraps -> cases that use it.
TOOLS = {
    "TOOL_WAITS": {"freed_at_once", "crossed", "others_come_later", "names"},
    "TOOL_WRITES": {"freed_early", "twice", "each_for_itself", "interrupted"},
}


@pytest.mark.parametrize("order", ["before", "behind"])
@pytest.mark.parametrize("wraps", list(TOOLS))
def test_beside_a_tool(extension: str, tmp_path: pathlib.Path, wraps: str, order: str) -> None:
    """A profiling library before this one hides calls from it; behind it, it gets none."""
    libraries = [str(mpi_library("tool", f"-D{wraps}")), str(library_path())]
    preload = {"LD_PRELOAD": ":".join(libraries if order == "before" else libraries[::-1])}
    program: list[str | os.PathLike[str]] = [mpi_program_of("strangers"), tmp_path, *sorted(TOOLS[wraps])]
    launch = mpi_run(program, 3, env=preload, timeout_s=60, check=False)
    assert not launch.timed_out, launch.describe()
    found = dict(re.findall(r"^(\w+): (.*)$", launch.stdout, re.M))
    assert found.pop("tool", None) == ("ok" if order == "before" else None), launch.describe()
    assert found == dict.fromkeys(TOOLS[wraps], "ok"), launch.describe()
    said = "a library in front of this one wraps MPI_File_write_at_all" in launch.stderr
    assert said == (wraps == "TOOL_WRITES" and order == "before"), launch.describe()


@pytest.mark.parametrize("hint", ["mpiox_subfiles=2", "mpiox_delegates=1,*log:mpiox_close=staged"])
def test_a_tool_that_writes_a_log_at_the_end(extension: str, tmp_path: pathlib.Path, hint: str) -> None:
    """Its open reaches the library, and its close does not."""
    log = tmp_path / "log"
    env = {"LD_PRELOAD": f"{library_path()}:{mpi_library('tool', '-DTOOL_LOGS')}", "TOOL_LOG": str(log)}
    program: list[str | os.PathLike[str]] = [mpi_program_of("strangers"), tmp_path, "names"]
    launch = mpi_run(program, 3, env=env | {"MPIOX_HINTS": f"*log:{hint}"}, timeout_s=60)
    assert log.read_bytes() == b"log" and "not closed" not in launch.stderr, launch.describe()


def test_an_mpi_library_with_more_functions(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """Calls of a function that is not wrapped would miss the library's views and caches: it carries out none."""
    if family == "mpich":
        pytest.skip("built with MPICH 5, the library has all functions")
    preload = {"LD_PRELOAD": f"{library_path()}:{mpi_library('tool', '-DTOOL_NEWER')}"}
    launch = mpi_run([mpi_program_of("strangers"), tmp_path, "twice"], 2, env=preload, timeout_s=60, check=False)
    assert "twice: ok" in launch.stdout, launch.describe()
    assert "the MPI library is newer than the one that this library was built with" in launch.stderr, launch.describe()


@pytest.mark.parametrize("how", ["atexit", "destructor", "handler", "thread", "exit"])
def test_leaving(extension: str, family: str, tmp_path: pathlib.Path, how: str) -> None:
    """MPI_Finalize in odd places, or none: the file is whole, and the job ends as with the MPI library alone."""
    if how == "destructor" and family == "mpich":
        pytest.skip("MPICH alone is now and then killed in a destructor: its own have run before")
    ranks, bytes_each = 1 if how == "exit" else 3, 200 * 1024
    launch = mpi_run([mpi_program("leaving"), tmp_path, how], ranks, preload=True, timeout_s=30, check=False)
    assert not launch.timed_out, launch.describe()
    expected = 1 if how == "exit" and family == "openmpi" else 0  # mpirun of Open MPI misses the MPI_Finalize
    assert launch.returncode == expected, launch.describe()
    content = (tmp_path / "leaving").read_bytes()
    assert content == b"".join(bytes([ord("a") + rank]) * bytes_each for rank in range(ranks))
