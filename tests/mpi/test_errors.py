"""Bad input and failing storage: the right class on every rank, a message that says where, no hang, no wrong success.

Every program writes what each rank saw into a JSON file. Where the MPI library alone can run the same program, its
error classes are the reference.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.cases import Case, Cases
from support.launch import Launch, of_ranks, python_run
from support.processes import shared_memory

pytestmark = [pytest.mark.mpi, pytest.mark.both]

EXCHANGES = ("two_phase", "direct")
NODES = (0, 2)
RANKS = (1, 4)
PROLOGUE = '''
import ctypes, json, os, pathlib, signal, sys, time
NATIVE = os.environ.get("NATIVE") == "1"
if not NATIVE:
    import mpiio_ext.stats
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
folder = pathlib.Path(sys.argv[1])
seen = {}

def attempt(name, call, *arguments):
    """Note what a call gives: "ok" or the name of its error class and the text."""
    try:
        result = call(*arguments)
    except MPI.Exception as error:
        names = {getattr(MPI, n): n for n in dir(MPI) if n.startswith("ERR_")}
        seen[name] = [names.get(error.Get_error_class(), str(error.Get_error_class())), error.Get_error_string()]
        return None
    seen[name] = ["ok", ""]
    return result

def info(**hints):
    made = MPI.Info.Create()
    for key, value in hints.items():
        made.Set(key, str(value))
    return made

def finish():
    """Write down what this rank saw."""
    (folder / f"seen.{rank}.json").write_text(json.dumps(seen))
'''


@pytest.fixture()
def program(tmp_path: pathlib.Path) -> Callable[..., tuple[list[dict[str, Any]], Launch]]:
    """Return a function that runs a program text on some ranks and returns what each rank saw."""

    def run(
        text: str,
        ranks: int = 3,
        *,
        native: bool = False,
        env: dict[str, str] | None = None,
        timeout_s: float = 60.0,
        arguments: tuple[str, ...] = (),
        preload: bool = False,
    ) -> tuple[list[dict[str, Any]], Launch]:
        folder = tmp_path / ("native" if native else "ours")
        folder.mkdir(exist_ok=True)
        script = folder / "program.py"
        script.write_text(PROLOGUE + text + "\nfinish()\n", encoding="utf-8")
        environment = {"NATIVE": "1" if native else "0", **(env or {})}
        launch = python_run(
            [script, str(folder), *arguments], ranks, env=environment, timeout_s=timeout_s, preload=preload
        )
        return of_ranks(folder, ranks, "seen."), launch

    return run


def case(text: str, ranks: int, fault: str = "", arguments: tuple[str, ...] = ()) -> Case:
    """Return a program of this file as a case."""
    environment = {"MPIOX_FAULT": fault} if fault else {}
    text = PROLOGUE + text + "\nfinish()\n"
    return Case(text=text, ranks=ranks, arguments=("{folder}", *arguments), environment=environment)


def seen_by(cases: Cases, name: str) -> list[dict[str, Any]]:
    """Return what each rank of a case saw."""
    return of_ranks(cases.result(name).folder, cases.cases[name].ranks, "seen.")


OPENING = """
def opening(name, path, amode):
    fh = attempt(name, MPI.File.Open, comm, str(path), amode)
    if fh is not None:
        fh.Close()

existing = folder / "existing"
if rank == 0:
    existing.write_bytes(bytes(range(100)))
comm.Barrier()
opening("missing folder", folder / "no" / "such" / "file", MPI.MODE_RDWR | MPI.MODE_CREATE)
opening("missing file", folder / "nothing", MPI.MODE_RDONLY)
opening("exclusive", existing, MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_EXCL)
opening("folder as file", folder, MPI.MODE_RDWR)
opening("file as folder", existing / "x", MPI.MODE_RDWR | MPI.MODE_CREATE)
opening("bad mode", existing, MPI.MODE_RDWR | MPI.MODE_RDONLY)
fh = MPI.File.Open(comm, str(existing), MPI.MODE_RDONLY)
attempt("write to read-only", fh.Write_at_all, rank * 8, np.zeros(8, "b"))
attempt("read after it", fh.Read_at_all, rank * 8, np.zeros(8, "b"))
fh.Close()
fh = MPI.File.Open(comm, str(existing), MPI.MODE_WRONLY)
attempt("read from write-only", fh.Read_at_all, rank * 8, np.zeros(8, "b"))
attempt("write after it", fh.Write_at_all, rank * 8, np.zeros(8, "b"))
attempt("bad view", fh.Set_view, -5, MPI.BYTE, MPI.BYTE)
fh.Close()
"""


def test_open_and_mode_errors_are_the_native_ones(program: Any, cases: Cases) -> None:
    """The class of every error is what the MPI library alone gives, on every rank."""
    ours = seen_by(cases, "opening")
    native, _ = program(OPENING, native=True)
    for rank, (mine, theirs) in enumerate(zip(ours, native, strict=True)):
        for name, what in theirs.items():
            # OMPIO says "ok" on some or all ranks when a collective writes to a file open for reading, and to views
            # whose displacement is negative; MPICH gives rank 0 alone the class of a file that is there
            wrong = ("ERR_ARG",) if name == "bad view" else ("ERR_READ_ONLY", "ERR_ACCESS")
            better = what[0] == "ok" and mine[name][0] in wrong
            better |= what[0] == "ERR_OTHER" and mine[name][0] == native[0][name][0]
            assert mine[name][0] == what[0] or better, (rank, name)
    for name in ("missing folder", "missing file", "write to read-only", "read from write-only", "bad view"):
        assert all(mine[name][0] != "ok" for mine in ours), (name, [mine[name] for mine in ours])
    assert all(mine["read after it"][0] == "ok" and mine["write after it"][0] == "ok" for mine in ours)


HINTS = """
path = folder / "data"
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE, info(
    mpiox_partitoin="even", mpiox_partition="evenly", cb_buffer_size="many", mpiox_buffers="1", foreign_hint="kept"))
fh.Write_at_all(rank * 8, np.full(8, rank + 1, "b"))
force = fh.Get_info()
seen["partition"] = force.Get("mpiox_partition")
seen["buffers"] = force.Get("mpiox_buffers")
seen["writes"] = mpiio_ext.stats.of(fh).collective_writes
fh.Close()
comm.Barrier()
seen["bytes"] = path.read_bytes().hex()
"""


def test_unknown_hints_and_bad_values_are_ignored_and_reported_once(program: Any, extension: str) -> None:
    """MPI says ignore: the file works with the defaults, and rank 0 says each problem once, with the nearest name."""
    ours, launch = program(HINTS)
    for seen in ours:
        assert seen["partition"] == "auto"
        assert seen["buffers"] == "2"
        assert seen["writes"] == 1
        assert seen["bytes"] == (b"\1" * 8 + b"\2" * 8 + b"\3" * 8).hex()
    text = launch.stderr
    complaints = [line for line in text.splitlines() if "mpiox_partitoin" in line]
    assert len(complaints) == 1, text
    assert "mpiox_partition" in complaints[0].replace("mpiox_partitoin", "")
    for word in ("evenly", "many"):
        assert sum(word in line for line in text.splitlines()) == 1, text
    assert "foreign_hint" not in text


FAULT = """
path = folder / "data"
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE, info(
    cb_nodes=size, mpiox_io_rank="owner", striping_unit=4096, mpiox_partition="even",
    mpiox_exchange=sys.argv[2], mpiox_ranks_per_node=sys.argv[3], mpiox_synchronous=sys.argv[4]))
piece = MPI.BYTE.Create_vector(1024, 4, 4 * size).Commit()
fh.Set_view(4 * rank, MPI.BYTE, piece)
attempt("first write", fh.Write_at_all, 0, np.full(4096, rank + 1, "b"))
attempt("second write", fh.Write_at_all, 0, np.full(4096, rank + 11, "b"))
attempt("third write", fh.Write_at_all, 0, np.full(4096, rank + 21, "b"))
data = np.zeros(4096, "b")
attempt("first read", fh.Read_at_all, 0, data)
seen["equal"] = bool((data == rank + 21).all())
attempt("second read", fh.Read_at_all, 0, data)
seen["equal again"] = bool((data == rank + 21).all())
total = mpiio_ext.stats.of(fh)
seen["errors"] = total.errors
attempt("close", fh.Close)
seen["file"] = path.read_bytes() == b"".join(bytes([r + 21]) * 4 for r in range(size)) * 1024
"""


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("per_node", NODES)
@pytest.mark.parametrize("ranks", RANKS)
def test_one_failing_request_fails_everywhere_once(cases: Cases, exchange: str, per_node: int, ranks: int) -> None:
    """EIO on one rank's second write and first read: all ranks get it, and the next collectives work.

    With the hint mpiox_synchronous: without it ranks of several nodes that all go direct agree before they access.
    """
    bad = min(1, ranks - 1)
    ours = seen_by(cases, f"one failing {exchange} {per_node} {ranks}")
    for seen in ours:
        failed = [name for name in ("first write", "second write", "third write") if seen[name][0] != "ok"]
        assert len(failed) == 1, seen
        assert seen[failed[0]][0] == seen["first read"][0] == "ERR_IO", seen
        for text in (seen[failed[0]][1], seen["first read"][1]):
            assert "data" in text and "errno 5" in text and f"rank {bad}" in text, text
        assert seen["second read"][0] == seen["close"][0] == "ok"
        assert seen["errors"] == 2
    if all(seen["third write"][0] == "ok" for seen in ours):
        assert all(seen["equal again"] and seen["file"] for seen in ours)


def test_an_error_between_nodes_is_that_of_its_rank(cases: Cases) -> None:
    """Of ranks that agree before they access, the one whose request fails gets the error, and its data again."""
    for rank, seen in enumerate(seen_by(cases, "one failing alone")):
        calls = ("first write", "second write", "third write", "first read", "second read", "close")
        failed = {name: seen[name][1] for name in calls if seen[name][0] != "ok"}
        assert list(failed)[1:] == (["first read"] if rank == 1 else []), seen
        assert [name for name in failed if name.endswith("write")] == list(failed)[:1], seen
        assert all("errno 5" in text and "rank 1" in text for text in failed.values()), seen
        assert seen["equal again"] and seen["file"] and seen["errors"] == len(failed), seen


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_short_transfers_are_finished(cases: Cases, exchange: str) -> None:
    """A file system that moves 100 bytes at a time is slow, not wrong."""
    for seen in seen_by(cases, f"short transfers {exchange}"):
        assert all(seen[name][0] == "ok" for name in ("first write", "third write", "first read", "second read"))
        assert seen["equal"] and seen["equal again"] and seen["file"]
        assert seen["errors"] == 0


FULL = """
path = pathlib.Path(sys.argv[2]) / "data"
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE, info(cb_buffer_size=65536))
attempt("fits", fh.Write_at_all, rank * 65536, np.full(65536, rank + 1, "b"))
attempt("too much", fh.Write_at_all, rank << 21, np.full(1 << 21, 9, "b"))
attempt("fits again", fh.Write_at_all, rank * 65536, np.full(65536, rank + 1, "b"))
data = np.zeros(65536, "b")
attempt("read", fh.Read_at_all, rank * 65536, data)
seen["equal"] = bool((data == rank + 1).all())
attempt("close", fh.Close)
"""


@pytest.fixture()
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return a file system of 2 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small tmpfs can only be mounted by root (the injected ENOSPC test covers the same path)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_full_disk(program: Any, extension: str, small_disk: pathlib.Path) -> None:
    """A real ENOSPC: MPI_ERR_NO_SPACE on every rank with the file and errno; what fits still works."""
    ours, _ = program(FULL, 3, arguments=(str(small_disk),))
    for seen in ours:
        assert seen["fits"][0] == "ok"
        assert seen["too much"][0] == "ERR_NO_SPACE", seen
        assert str(small_disk / "data") in seen["too much"][1] and "errno 28" in seen["too much"][1]
        assert seen["fits again"][0] == seen["read"][0] == seen["close"][0] == "ok"
        assert seen["equal"]


def test_full_disk_injected(cases: Cases) -> None:
    """The same by fault injection on one rank."""
    for seen in seen_by(cases, "full disk"):
        assert seen["first write"][0] == "ERR_NO_SPACE", seen
        assert "errno 28" in seen["first write"][1] and "rank 1" in seen["first write"][1]
        assert seen["second write"][0] == seen["third write"][0] == "ok"
        assert seen["equal"] and seen["file"]


FULL_ALONE = '''
import resource
path, bad, limit = pathlib.Path(sys.argv[2]) / "data", int(sys.argv[3]) in (rank, size), int(sys.argv[5])
PIECE, LARGE = 65536, 1 << 22
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE, info(mpiox_ranks_per_node=sys.argv[4]))

def in_file(at, length):
    """Return bytes of the file, read without MPI."""
    with path.open("rb") as file:
        file.seek(at)
        return np.frombuffer(file.read(length), np.uint8)

def write(name, value, at=rank * PIECE, length=PIECE):
    """Note what it gives, the bytes that its status counts, and whether these are in the file."""
    status = MPI.Status()
    attempt(name, fh.Write_at_all, at, np.full(length, value, np.uint8), status)
    count = status.Get_count(MPI.BYTE)
    seen[name] += [count, np.array_equal(in_file(at, count), np.full(count, value))]

def limit_to(size_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))

write("first", rank + 1)
beyond = size * PIECE + rank * LARGE
if bad and limit:
    limit_to(beyond + limit)
write("full", rank + 11, *((beyond, LARGE) if bad else ()))
seen["kept"] = bool((in_file(rank * PIECE, PIECE) == rank + (1 if bad else 11)).all())
seen["moved"] = int((in_file(beyond, LARGE) == rank + 11).sum()) if bad else 0
write("next", rank + 21)
limit_to(resource.RLIM_INFINITY)
total = mpiio_ext.stats.of(fh)
seen["counted"] = [total.errors, total.bytes_written, total.rounds]
attempt("sync", fh.Sync)
attempt("sync again", fh.Sync)
fh.Set_view(4 * rank, MPI.BYTE, MPI.BYTE.Create_vector(PIECE // 4, 4, 4 * size).Commit())
attempt("exchanged", fh.Write_at_all, 0, np.full(PIECE, rank + 31, np.uint8))
seen["rounds"] = mpiio_ext.stats.of(fh).rounds
back = np.zeros(PIECE, np.uint8)
attempt("read", fh.Read_at_all, 0, back)
seen["equal"] = bool((back == rank + 31).all())
fh.Set_view()
write("last", rank + 41)
attempt("close", fh.Close)
'''


def check_full_alone(ours: list[dict[str, Any]], bad: int, errors: tuple[str, str], moved: int = 0) -> None:
    """The call fails on this rank, or on all, with such a class and text; all other calls succeed."""
    piece = ["ok", "", 65536, True]
    for rank, seen in enumerate(ours):
        failing = bad in (rank, len(ours))
        assert seen["first"] == seen["next"] == seen["last"] == piece, seen
        if failing:
            name, text, count, there = seen["full"]
            assert name == errors[0] and "/data" in text and errors[1] in text and f"rank {rank}" in text, seen
            assert (count, there) == (0, True), seen
            assert seen["moved"] >= moved, seen  # though what a part of a request has moved is not reported
        else:
            assert seen["full"] == piece, seen
        assert seen["kept"] and seen["counted"] == [failing, 65536 * (3 - failing), 0], seen
        assert seen["sync again"][0] == seen["exchanged"][0] == seen["read"][0] == seen["close"][0] == "ok", seen
        assert seen["equal"] and seen["rounds"] > 0, seen


LIMIT_BYTES = 1000
#: Between nodes, where ranks agree before they access: the rank that fails (as many as there are: each), of how many,
#: ranks of a pretended node.
ALONE = [(1, 3, 1), (0, 4, 2), (3, 4, 2), (4, 4, 2)]


@pytest.mark.parametrize(("bad", "ranks", "per_node"), ALONE)
def test_no_space_is_the_error_of_its_rank(cases: Cases, bad: int, ranks: int, per_node: int) -> None:
    """ENOSPC between nodes: no other rank, no later call and no sync returns it. That of a sync is everybody's."""
    ours = seen_by(cases, f"no space {bad} {ranks} {per_node}")
    check_full_alone(ours, bad, ("ERR_NO_SPACE", "errno 28"))
    for seen in ours:
        assert seen["sync"][0] == "ERR_IO" and "errno 5" in seen["sync"][1] and "rank 2" in seen["sync"][1], seen


@pytest.mark.parametrize(("bad", "ranks", "per_node"), ALONE)
def test_a_size_limit_is_the_error_of_its_rank(cases: Cases, bad: int, ranks: int, per_node: int) -> None:
    """RLIMIT_FSIZE amid a piece: its first bytes are in the file, and the status counts none."""
    ours = seen_by(cases, f"size limit {bad} {ranks} {per_node}")
    check_full_alone(ours, bad, ("ERR_IO", "errno 27"), moved=LIMIT_BYTES)
    assert all(seen["sync"][0] == "ok" for seen in ours), ours


def test_full_disk_between_nodes(program: Any, extension: str, small_disk: pathlib.Path) -> None:
    """A real ENOSPC of the one rank that needs space."""
    ours, _ = program(FULL_ALONE, 4, arguments=(str(small_disk), "2", "2", "0"))
    check_full_alone(ours, 2, ("ERR_NO_SPACE", "errno 28"))
    assert all(seen["sync"][0] == "ok" for seen in ours), ours


def test_fault_rules_with_a_typing_error_are_refused(program: Any, extension: str) -> None:
    """A test that asks for a fault must not pass because nobody understood it."""
    text = """
path = folder / "data"
attempt("open", MPI.File.Open, comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE)
"""
    ours, launch = program(text, 2, env={"MPIOX_FAULT": "op=wriet,errno=EIO"})
    assert "MPIOX_FAULT" in launch.stderr and "wriet" in launch.stderr, launch.describe()
    assert len(ours) == 2


SHORT = """
path = folder / "data"
if rank == 0:
    path.write_bytes(bytes(range(1, 101)))
comm.Barrier()
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDWR, info(mpiox_exchange=sys.argv[2]))
status = MPI.Status()
data = np.full(64, 99, "B")
fh.Read_at_all(64 * rank, data, status)
seen["count"] = status.Get_count(MPI.BYTE)
seen["data"] = data.tobytes().hex()
data[:] = 99
fh.Read_at_all(10_000, data, status)
seen["beyond"] = [status.Get_count(MPI.BYTE), bool((data == 99).all())]
fh.Write_at_all(100 + rank, np.full(1, rank + 101, "B"))
fh.Sync(); comm.Barrier(); fh.Sync()
fh.Read_at_all(0, data, status)
seen["later"] = [status.Get_count(MPI.BYTE), data[:4].tolist()]
fh.Close()
"""


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_file_shorter_than_the_read(cases: Cases, exchange: str) -> None:
    """The status says how much there was, and nothing beyond it is touched in memory."""
    ours = seen_by(cases, f"short file {exchange}")
    whole = bytes(range(1, 101))
    for rank, seen in enumerate(ours):
        there = whole[64 * rank : 64 * rank + 64]
        assert seen["count"] == len(there)
        assert bytes.fromhex(seen["data"]) == there + b"\x63" * (64 - len(there))
        assert seen["beyond"] == [0, True]
        assert seen["later"] == [64, [1, 2, 3, 4]]


BAD_COUNT = """
path = folder / "data"
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE)
library = ctypes.CDLL(None)
pointers = "Open MPI" in MPI.Get_library_version()
def handle(thing, pointer):
    return ctypes.c_void_p(MPI._handleof(thing)) if pointer else ctypes.c_int(MPI._handleof(thing))
data = np.full(8, rank + 1, "b")
def write(count):
    ignore = ctypes.c_void_p(0 if pointers else 1)  # MPI_STATUS_IGNORE
    code = library.MPI_File_write_at_all(
        handle(fh, True), ctypes.c_longlong(8 * rank), ctypes.c_void_p(data.ctypes.data), ctypes.c_int(count),
        handle(MPI.BYTE, pointers), ignore)
    if code:
        raise MPI.Exception(code)
attempt("bad count", write, -1 if rank == 1 else 8)
attempt("good count", write, 8)
fh.Close()
comm.Barrier()
seen["file"] = path.read_bytes().hex()
"""


def test_a_bad_count_on_one_rank(cases: Cases) -> None:
    """Only one rank calls wrongly: nobody hangs, everybody hears of it, and the next collective works."""
    for seen in seen_by(cases, "bad count"):
        assert seen["bad count"][0] in ("ERR_COUNT", "ERR_ARG"), seen
        assert "rank 1" in seen["bad count"][1]
        assert seen["good count"][0] == "ok"
        assert seen["file"] == (b"\1" * 8 + b"\2" * 8 + b"\3" * 8).hex()


KILLED = """
path = folder / "data"
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE, info(
    mpiox_exchange="two_phase", cb_buffer_size=4096, mpiox_ranks_per_node=sys.argv[2]))
fh.Set_view(8 * rank, MPI.BYTE, MPI.BYTE.Create_vector(1024, 8, 8 * size).Commit())
data = np.full(8192, rank, "b")
for step in range(100_000):
    if step == 20 and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    fh.Write_at_all(0, data)
"""


@pytest.mark.parametrize("per_node", [0, 2])
def test_a_killed_rank_ends_the_job_and_leaves_nothing_behind(
    tmp_path: pathlib.Path, extension: str, per_node: int
) -> None:
    """SIGKILL in a loop of collectives: mpirun ends the job in time, no shared-memory file stays."""
    script = tmp_path / "program.py"
    script.write_text(PROLOGUE + KILLED, encoding="utf-8")
    before = shared_memory()
    launch = python_run([script, str(tmp_path), str(per_node)], 4, timeout_s=60, check=False)
    after = shared_memory()
    assert not launch.timed_out, launch.describe()
    assert launch.returncode != 0
    assert not after - before


# ---- what runs in common launches ------------------------------------------------------------------------------------


def one_failing(exchange: str, per_node: int, ranks: int, synchronous: str = "true") -> Case:
    """EIO for the second write and the first read of one rank."""
    bad = f"rank={min(1, ranks - 1)},errno=EIO"
    rules = f"op=write,{bad},after=1,times=1,path=*/data;op=read,{bad},times=1,path=*/data"
    return case(FAULT, ranks, rules, (exchange, str(per_node), synchronous))


CASES = {
    f"one failing {exchange} {per_node} {ranks}": one_failing(exchange, per_node, ranks)
    for exchange in EXCHANGES
    for per_node in NODES
    for ranks in RANKS
}
for _exchange in EXCHANGES:
    CASES[f"short transfers {_exchange}"] = case(FAULT, 3, "short=100,path=*/data", (_exchange, "0", "false"))
    CASES[f"short file {_exchange}"] = case(SHORT, 3, "", (_exchange,))
CASES["full disk"] = case(FAULT, 3, "op=write,rank=1,errno=ENOSPC,times=1,path=*/data", ("two_phase", "0", "false"))
for _bad, _ranks, _per_node in ALONE:
    _rank = "" if _bad == _ranks else f"rank={_bad},"
    CASES[f"no space {_bad} {_ranks} {_per_node}"] = case(
        FULL_ALONE,
        _ranks,
        f"op=write,{_rank}errno=ENOSPC,after=1,times=1,path=*/data;op=sync,rank=2,errno=EIO,times=1,path=*/data",
        ("{folder}", str(_bad), str(_per_node), "0"),
    )
    CASES[f"size limit {_bad} {_ranks} {_per_node}"] = case(
        FULL_ALONE, _ranks, "", ("{folder}", str(_bad), str(_per_node), str(LIMIT_BYTES))
    )
CASES["one failing alone"] = one_failing("direct", 2, 4, "false")
CASES["bad count"] = case(BAD_COUNT, 3)
CASES["opening"] = case(OPENING, 3)
