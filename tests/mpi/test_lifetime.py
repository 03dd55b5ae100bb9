"""From MPI_Init to MPI_Finalize: files closed late or never, several worlds, ranks without the library, sessions.

Unchanged C programs of tests/programs and an h5py script, natively (the control of the program) and preloaded. Cases of
tests/differential cannot express this: their ranks all have the library, are one world, and close their files.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from support.cbuild import mpi_program
from support.launch import (
    Launch,
    base_environment,
    json_lines,
    launcher,
    mpi_run,
    posix_library,
    python_run,
    run_bounded,
)
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]

BLOCK_BYTES, BLOCKS = 1000, 20
OTHER_WORLD = "native: ranks of another MPI_COMM_WORLD share the file"
LACKING = "native: some of the ranks were started without the library"


def content_problem(path: pathlib.Path, length: int) -> str | None:
    """Return what is wrong with a file of ending.c, whose byte p is 1 + p % 251."""
    data = path.read_bytes()
    if len(data) != length:
        return f"{path.name}: {len(data)} bytes instead of {length}"
    expected = (bytes(range(1, 252)) * (length // 251 + 1))[:length]
    return None if data == expected else f"{path.name}: wrong bytes"


def statistics(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return the rows of a file of statistics, none when there is no such file."""
    return json_lines(path) if path.exists() else []


def run_parts(
    parts: Sequence[tuple[int, Mapping[str, str]]],
    program: Sequence[str],
    *,
    slots: int = 0,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60,
    check: bool = True,
) -> Launch:
    """Run a program in one MPI_COMM_WORLD whose parts have ranks and variables of their own.

    ``env`` is the launcher's, which spawned children inherit. Open MPI spawns only into free slots.
    """
    mpiexec = launcher()
    assert mpiexec is not None
    command = [mpiexec]
    for ranks, variables in parts:
        command += [":"] if len(command) > 1 else []
        command += ["--host", f"localhost:{slots}"] if slots else []
        command += ["-n", str(ranks), "env", *(f"{name}={value}" for name, value in variables.items()), *program]
    return run_bounded(command, env=base_environment() | dict(env or {}), timeout_s=timeout_s, check=check)


# ---- MPI_Finalize with open files ------------------------------------------------------------------------------------


def ending(tmp_path: pathlib.Path, ranks: int, case: str, per_node: int, *, preload: bool) -> list[dict[str, Any]]:
    """Run a case of ending.c and check its files; return the statistics."""
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")} if preload else {}
    if per_node:
        env["MPIOX_RANKS_PER_NODE"] = str(per_node)
    launch = mpi_run([mpi_program("ending"), tmp_path / "file", case], ranks, preload=preload, env=env, timeout_s=60)
    length = BLOCK_BYTES * BLOCKS * ranks
    problems = [content_problem(tmp_path / "file.world", 2 * length)]
    if case == "reopened":
        problems.append(content_problem(tmp_path / "file.late", length))
    if case == "left":
        problems += [content_problem(tmp_path / f"file.{rank}", 1 << 20) for rank in range(ranks)]
    assert not any(problems), f"{problems}\n{launch.describe()}"
    return statistics(tmp_path / "stats")


@pytest.mark.slow_with("*-2-0", "*-2-1", "closed-4-0", "behind-1-0")
@pytest.mark.parametrize(("ranks", "per_node"), [(1, 0), (2, 0), (2, 1), (4, 0), (4, 2)])
@pytest.mark.parametrize("case", ["closed", "behind"])
def test_closed_inside_finalize(extension: str, tmp_path: pathlib.Path, case: str, ranks: int, per_node: int) -> None:
    """As HDF5 does it. What is closed then has its report, and the run's comes last, unless MPI_Init was not seen."""
    rows = ending(tmp_path, ranks, case, per_node, preload=True)
    assert sorted(row["kind"] for row in rows) == ["file", "run"]
    row = rows[[row["kind"] for row in rows].index("file")]
    assert (row["collective_writes"], row["native_calls"], row["bytes_written"]) == (2, 0, 40000 * ranks)
    if case == "closed":
        assert rows[-1]["kind"] == "run"
        assert rows[-1]["bytes_written"] == 40000 * ranks


@pytest.mark.parametrize("per_node", [0, 2])
def test_opened_inside_finalize(extension: str, family: str, tmp_path: pathlib.Path, per_node: int) -> None:
    if family == "mpich":
        pytest.skip("ROMIO has ended by then: MPICH aborts when a file is opened in such a callback")
    rows = ending(tmp_path, 4, "reopened", per_node, preload=True)
    assert [row["collective_writes"] for row in rows] == [2, 1, 3]


@pytest.mark.parametrize(("ranks", "per_node"), [(1, 0), *slow((2, 0), (4, 0)), (4, 2)])
def test_never_closed(extension: str, family: str, tmp_path: pathlib.Path, ranks: int, per_node: int) -> None:
    """Nonblocking writes that nobody waits for arrive; nothing crashes."""
    if per_node and family == "mpich":
        pytest.skip("between nodes such a collective is the MPI library's, and ROMIO drops what nobody waits for")
    rows = ending(tmp_path, ranks, "left", per_node, preload=True)
    assert [row["kind"] for row in rows] == ["run"]


@pytest.mark.parametrize("case", ["left", "closed", "behind"])
def test_never_closed_is_told(extension: str, tmp_path: pathlib.Path, case: str) -> None:
    """One line for a file of all ranks, and for rank 0's own; none for what other attributes close."""
    launch = mpi_run([mpi_program("ending"), tmp_path / "file", case], 2, preload=True, timeout_s=60)
    told = [line for line in launch.stderr.splitlines() if "not closed before MPI_Finalize" in line]
    names = [tmp_path / f"file.{name}" for name in ("world", "0")] if case == "left" else []
    assert sorted(told) == sorted(
        f"mpiio_ext: {name}: not closed before MPI_Finalize: call MPI_File_close" for name in names
    ), launch.describe()


def test_ending_native(family: str, tmp_path: pathlib.Path) -> None:
    """The control of the program."""
    for case in ["closed", "behind"] + (["reopened"] if family == "openmpi" else []):
        ending(tmp_path, 2, case, 0, preload=False)


H5PY = """
import ctypes
import sys
import numpy as np
from mpi4py import MPI
import h5py
comm = MPI.COMM_WORLD
file = h5py.File(sys.argv[1], "w", driver="mpio", comm=comm)
data = file.create_dataset("x", (50 * comm.size, 7), dtype="i4")
with data.collective:
    data[comm.rank :: comm.size] = np.full((50, 7), comm.rank, "i4")
for kept in (file.id, data.id):  # so that not even the end of Python closes them
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
"""


@pytest.mark.parametrize(("ranks", "per_node"), [(1, 0), *slow((2, 1), (4, 0)), (4, 2)])
def test_h5py_without_close(extension: str, tmp_path: pathlib.Path, ranks: int, per_node: int) -> None:
    h5py = pytest.importorskip("h5py")
    script = tmp_path / "forgets.py"
    script.write_text(H5PY)
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    if per_node:
        env["MPIOX_RANKS_PER_NODE"] = str(per_node)
    launch = python_run([script, tmp_path / "x.h5"], ranks, preload=True, env=env, timeout_s=60)
    check = "import h5py, sys; x = h5py.File(sys.argv[1])['x'][:]; print([int(x[i, 6]) for i in range(len(x))])"
    done = run_bounded([sys.executable, "-c", check, str(tmp_path / "x.h5")], env=base_environment(), timeout_s=60)
    assert h5py and json.loads(done.stdout) == [i % ranks for i in range(50 * ranks)], launch.describe()
    assert statistics(tmp_path / "stats")[0]["collective_writes"] > 0


# ---- ranks without the library ---------------------------------------------------------------------------------------

WORLDS = {"parents", "children", "merged", "split_parents", "split_children", "first_of_each", "merged_again"} | {
    f"self_{i}" for i in range(4)
}
SHARED = {"merged", "first_of_each", "merged_again", "connected"}


def spawn(tmp_path: pathlib.Path, family: str, variables: Mapping[str, str], *arguments: str) -> dict[str, list[Any]]:
    """Run the spawning program on two ranks; return the statistics by name of file."""
    stats = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    program = [str(mpi_program("spawning")), str(tmp_path / "file"), "spawn", *arguments]
    launch = run_parts([(2, variables)], program, slots=8 if family == "openmpi" else 0, env=stats)
    lines = launch.stdout.splitlines()
    assert not [line for line in lines if line.startswith("FAILED")], launch.describe()
    # PyPI's MPICH has no ports
    expected = WORLDS | ({"connected"} if family == "openmpi" else set())
    assert {line.split()[-1] for line in lines if line.startswith("ok ")} == expected, launch.describe()
    found: dict[str, list[Any]] = {}
    for row in statistics(tmp_path / "stats"):
        if row["kind"] == "file":
            found.setdefault(row["path"].rpartition(".")[2], []).append(row)
    return found


def test_spawn_native(family: str, tmp_path: pathlib.Path) -> None:
    """The control of the program."""
    assert not spawn(tmp_path, family, {})


def test_children_without_the_library(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """As under `mpirun -n 2 mpiio-ext run -- app`: what parents and children share stays with the MPI library."""
    files = spawn(tmp_path, family, {"LD_PRELOAD": extension})
    for name in ["parents", "split_parents"]:
        assert [(row["collective_writes"], row["native_calls"]) for row in files[name]] == [(1, 0)]
    for name in SHARED & files.keys():
        assert [(row["reason"], row["native_calls"], row["ranks"]) for row in files[name]] == [(OTHER_WORLD, 2, 1)]
    assert {"merged", "first_of_each", "merged_again"} <= files.keys()
    assert not {"children", "split_children"} & files.keys()


def test_children_with_the_library(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """Each MPI_COMM_WORLD is taken over; what they share is not, and both sides say so."""
    files = spawn(tmp_path, family, {"LD_PRELOAD": extension}, extension)
    for name in ["parents", "split_parents", "children", "split_children"]:
        assert [(row["collective_writes"], row["native_calls"]) for row in files[name]] == [(1, 0)]
    for name in SHARED & files.keys():
        assert [(row["reason"], row["native_calls"]) for row in files[name]] == [(OTHER_WORLD, 2)] * 2


@pytest.mark.parametrize("preload", [False, True], ids=["native", "preloaded"])
def test_spawn_and_disconnect_again_and_again(
    extension: str, family: str, tmp_path: pathlib.Path, preload: bool
) -> None:
    """After MPI_Comm_disconnect nothing of the library connects parents and children, or keeps a descriptor.

    Open MPI 4.1's MPI_Comm_spawn waits for ever in PMIx_Lookup now and then: without this library 17 of 107 launches
    on two loaded processors did, with it 17 of 121. A launch that ends there is judged by its turns before.
    """
    stats = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")} if preload else {}
    program = [str(mpi_program("spawning")), str(tmp_path / "file"), "again", *([extension] if preload else [])]
    variables = {"LD_PRELOAD": extension} if preload else {}
    slots = 8 if family == "openmpi" else 0
    launch = run_parts([(2, variables)], program, slots=slots, env=stats, timeout_s=15, check=False)
    said = launch.stdout.splitlines()
    turns = said.count("spawned")
    if not (family == "openmpi" and launch.timed_out and said.count("spawn") > turns):
        assert launch.returncode == 0 and not launch.timed_out and turns == 6, launch.describe()
    lines = [line for line in said if line.startswith(("ok", "FAILED"))]
    merged = [["ok both merged"] * 2, ["ok both merged", "ok both merged_other"]]
    assert sorted(lines) == sorted(line for turn in range(turns) for line in [*merged[turn % 2], "ok parents parents"])
    for child in range(2 if turns else 0):
        assert (tmp_path / f"file.child_{child}").read_bytes() == (turns - 1).to_bytes(4, sys.byteorder)
    ours = [row for row in statistics(tmp_path / "stats") if row.get("path", "").endswith((".child_0", ".child_1"))]
    assert [row["native_calls"] for row in ours] == [0] * (2 * turns if preload else 0)


@pytest.mark.parametrize("first", [True, False], ids=["rank_0_has_it", "rank_0_lacks_it"])
def test_some_programs_without_the_library(extension: str, tmp_path: pathlib.Path, first: bool) -> None:
    """`mpiexec -n 2 env LD_PRELOAD=… app : -n 2 app`: only files of ranks that have it are taken over.

    That for calls past MPI, which they have, too, does not make up for it.
    """
    stats = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    library, stats = {"LD_PRELOAD": extension, **stats}, {"LD_PRELOAD": posix_library(), **stats}
    program = [str(mpi_program("spawning")), str(tmp_path / "file"), "mixed"]
    launch = run_parts([(2, library if first else stats), (2, stats if first else library)], program)
    assert launch.stdout.count("ok world") == 5, launch.describe()
    rows = [row for row in statistics(tmp_path / "stats") if row["kind"] == "file"]
    ours = "two" if first else "others"
    assert [(row["path"].rpartition(".")[2], row["collective_writes"], row["native_calls"]) for row in rows] == [
        (ours, 1, 0),
        ("all", 0, 2),
        (ours, 1, 0),
    ]
    assert rows[1]["reason"] == LACKING


# ---- MPIOX_STATS on some ranks ---------------------------------------------------------------------------------------


@pytest.mark.slow_with("plain-0", "alone-1")
@pytest.mark.parametrize("speaker", [0, 1])
@pytest.mark.parametrize("case", ["plain", "alone"])
def test_statistics_on_one_rank(extension: str, tmp_path: pathlib.Path, speaker: int, case: str) -> None:
    """Rank 0 of a file decides for all its ranks; a run without a file of all ranks has a total per process."""
    stats = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats")}
    parts = [(1, {"LD_PRELOAD": extension, **(stats if rank == speaker else {})}) for rank in range(2)]
    run_parts(parts, [str(mpi_program("ending")), str(tmp_path / "file"), case])
    found = [
        (os.path.basename(row.get("path", "")), row["ranks"], row["bytes_written"])
        for row in statistics(tmp_path / "stats")
    ]
    world, alone = ("file.world", 2, 40000), (f"file.{speaker}", 1, 5)
    if case == "alone" or speaker == 1:
        assert found == [alone, ("", 1, 5)]
    else:
        assert found == [world, alone, ("", 2, 40010)]


# ---- sessions --------------------------------------------------------------------------------------------------------

#: Case of sessions.c -> collective writes and native calls of its files. What is opened after MPI_Finalize stays with
#: the MPI library.
SESSIONS = {"alone": [], "init": [(1, 0)] * 2, "again": [(1, 0)] * 20, "outlives": [(1, 0), (0, 2)]}


@pytest.mark.slow_with("*-0-2", "*-1-1")
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("per_node", [0, 1])
@pytest.mark.parametrize("case", list(SESSIONS))
def test_sessions(extension: str, family: str, tmp_path: pathlib.Path, ranks: int, case: str, per_node: int) -> None:
    """The same answers as from the MPI library alone; beside MPI_Init sessions' communicators are taken over."""
    if family == "openmpi":
        pytest.skip("Open MPI 4.1 has no sessions")
    program: list[str | os.PathLike[str]] = [mpi_program("sessions"), tmp_path / "file", case]
    native = mpi_run(program, ranks, timeout_s=60)
    assert "WRONG" not in native.stdout, native.describe()
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(tmp_path / "stats"), "MPIOX_RANKS_PER_NODE": str(per_node)}
    ours = mpi_run(program, ranks, preload=True, env=env, timeout_s=60)
    assert sorted(ours.stdout.splitlines()) == sorted(native.stdout.splitlines()), ours.describe()
    rows = [row for row in statistics(tmp_path / "stats") if row["kind"] == "file"]
    assert [(row["collective_writes"], row["native_calls"]) for row in rows] == SESSIONS[case]
    if case != "alone":
        assert (tmp_path / "file").read_bytes() == b"".join(bytes([97 + rank]) * 64 for rank in range(ranks))


def test_a_library_that_is_unloaded(extension: str) -> None:
    """A host of plug-ins unloads it; calls past MPI, which the other library has, ask it no more."""
    text = (
        "import _ctypes, ctypes, os, sys\n"
        "_ctypes.dlclose(ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)._handle)\n"
        "print('opened', os.open('/proc/self/maps', os.O_RDONLY) > 0, os.path.exists('/nowhere'))\n"
    )
    env = os.environ | {"LD_PRELOAD": posix_library()}
    done = subprocess.run(
        [sys.executable, "-c", text, extension], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "opened True False\n"), done.stderr
