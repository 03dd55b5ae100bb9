"""MPI calls of the library that fail as they do when a process has died: errors, not undefined bytes, not a hang.

The programs tests/programs/undefined.c and undefine.c, which is preloaded: four ranks on two pretended nodes.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil

import pytest

from support.cbuild import mpi_program
from support.launch import Launch, library_path, mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both]

RANKS = 4
#: Between nodes, what other ranks would wait for in vain: the job ends, with a line that says why.
ENDS_THE_JOB = {
    ("write", "Irecv", 1): "agreeing on the access region",
    ("write", "Isend", 1): "agreeing on the access region",
    ("write", "Irecv", 2): "exchanging views",
    ("read", "Irecv", 0): "agreeing on the access region",
    ("ordered", "Irecv", 1): "agreeing on the access region",
    ("ordered", "Isend", 1): "agreeing on the access region",
    ("ordered", "Irecv", 2): "exchanging views",
    ("write", "Imrecv", 0): "receiving a message from another node",
    ("read", "Imrecv", 0): "receiving a message from another node",
    ("write", "Improbe", 0): "probing for a message from another node",
    ("read", "Improbe", 0): "probing for a message from another node",
}
#: Then the file is the MPI library's, or the library goes on without what it asked for.
DOES_WITHOUT = {"open"}
#: Their results lead to another way of doing the same.
HARMLESS = {
    ("write", "Bcast", 0),
    ("write", "Allreduce", 0),
    ("write", "Irecv", 0),
    ("write", "Isend", 0),
    ("ordered", "Irecv", 0),
}
#: Phase, function, which call of it.
CASES = [
    *(
        ("open", name, n)
        for name, count in [
            ("Allreduce", 7),
            ("Bcast", 3),
            ("Comm_split", 3),
            ("Comm_split_type", 1),
            ("Allgather", 1),
            ("Irecv", 3),
            ("Isend", 3),
        ]
        for n in range(count)
    ),
    *(
        ("write", name, n)
        for name, n in [
            ("Bcast", 0),
            ("Allreduce", 0),
            ("Irecv", 0),
            ("Isend", 0),
            ("Irecv", 3),
            ("Isend", 3),
            ("Issend", 0),
            ("Issend", 3),
        ]
    ),
    *(("read", "Irecv", n) for n in (2, 3)),
    *(("ordered", name, 0) for name in ("Bcast", "Allreduce", "Exscan", "Irecv")),
    *((phase, name, 0) for phase in ("sync", "atomicity", "close") for name in ("Irecv", "Isend")),
    *ENDS_THE_JOB,
]
QUICK = [
    ("open", "Irecv", 1),
    ("open", "Comm_split", 1),
    ("write", "Irecv", 0),
    ("write", "Issend", 0),
    ("read", "Irecv", 2),
    ("ordered", "Exscan", 0),
    ("close", "Irecv", 0),
    ("write", "Imrecv", 0),
]
SUPPRESSIONS = pathlib.Path("/usr/share/openmpi/openmpi-valgrind.supp")


def undefined(
    extension: str, folder: pathlib.Path, *words: object, tool: tuple[str, ...] = (), timeout_s: float = 60
) -> Launch:
    """Run the program; small buffers, so that there are several rounds."""
    environment = {
        "LD_PRELOAD": f"{mpi_program('undefine', '-shared', '-fPIC')}:{extension}",
        "MPIOX_HINTS": "*:mpiox_exchange=two_phase:cb_buffer_size=4k:cb_nodes=2",
        "MPIOX_RANKS_PER_NODE": "2",
    }
    program: list[str | os.PathLike[str]] = [*tool, mpi_program("undefined"), folder / "file", *map(str, words)]
    return mpi_run(program, RANKS, env=environment, timeout_s=timeout_s, check=False, last_words=folder / "errors")


def judge(launch: Launch, case: tuple[str, str, int]) -> None:
    """The call ends alike on all ranks, with an error where it cannot be carried out, and everything else works."""
    assert not launch.timed_out, launch.describe()
    if case in ENDS_THE_JOB:
        assert launch.returncode != 0, launch.describe()
        assert ENDS_THE_JOB[case] in launch.stderr, launch.describe()
        assert not re.search(r"egmentation|signal 11|SIGSEGV", launch.stderr), launch.describe()
        return
    assert launch.returncode == 0, launch.describe()
    found = re.findall(r"^rank \d: \w+ class=(\d+) failed=(\d) right=\d$", launch.stdout, re.M)
    assert len(found) == RANKS, launch.describe()
    assert "1" in {failed for _, failed in found}, launch.describe()
    classes = {error_class for error_class, _ in found}
    assert len(classes) == 1, launch.describe()
    if case[:2] == ("open", "Bcast") and case[2] == 0:
        assert classes != {"0"}, launch.describe()
    elif case[0] in DOES_WITHOUT or case in HARMLESS:
        assert classes == {"0"}, launch.describe()
    else:
        assert classes != {"0"}, launch.describe()
    assert "later" not in launch.stdout, launch.describe()
    assert launch.stdout.count("afterwards fine") == RANKS, launch.describe()


@pytest.mark.parametrize("case", QUICK, ids=lambda case: "-".join(map(str, case)))
def test_quick(extension: str, tmp_path: pathlib.Path, case: tuple[str, str, int]) -> None:
    """Results are overwritten with garbage, which would lead somewhere."""
    judge(undefined(extension, tmp_path, *case), case)


@pytest.mark.slow
def test_all(extension: str, tmp_path: pathlib.Path) -> None:
    """Each function that the library calls between nodes, in each phase of a file's life."""
    for case in CASES:
        judge(undefined(extension, tmp_path, *case), case)


@pytest.mark.slow
def test_no_call_is_forgotten(extension: str, tmp_path: pathlib.Path) -> None:
    """The list of cases holds every function that is called, in every phase."""
    launch = undefined(extension, tmp_path, "counts")
    assert launch.returncode == 0, launch.describe()
    lines = [line.split() for line in launch.stdout.splitlines() if "=" in line]
    called = {(line[0], word.partition("=")[0]) for line in lines for word in line[1:]}
    sends = {("read", "Isend"), ("read", "Issend")}  # tests/mpi/test_internal_failures.py
    assert called - sends <= {case[:2] for case in CASES}


@pytest.mark.slow
@pytest.mark.parametrize("case", QUICK, ids=lambda case: "-".join(map(str, case)))
def test_under_valgrind(extension: str, family: str, tmp_path: pathlib.Path, case: tuple[str, str, int]) -> None:
    """No decision depends on what a failed call has left."""
    if family != "openmpi" or not SUPPRESSIONS.exists() or shutil.which("valgrind") is None:
        pytest.skip("needs valgrind and Open MPI's list of suppressions")
    tool = ("valgrind", "-q", "--fair-sched=yes", f"--suppressions={SUPPRESSIONS}", f"--log-file={tmp_path}/log.%p")
    judge(undefined(library_path() or "", tmp_path, *case, tool=tool, timeout_s=300), case)
    text = "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in tmp_path.glob("log.*"))
    blocks = (
        re.sub(r"^.*: MPI_Init(_thread)? \(.*\n", "", block, flags=re.M)
        for block in re.split(r"^==\d+== \n", text, flags=re.M)
    )
    found = [block for block in blocks if "mpiox_" in block or "libmpiio_ext" in block]
    assert not found, "\n".join(found)[:8000]
