"""Bad input and failing storage: what the messages say, and what no case of tests/differential/cases can do.

Every program writes what each rank saw into a JSON file.
"""

from __future__ import annotations

import errno
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from support.cases import Case, Cases
from support.launch import Launch, of_ranks, python_run
from support.processes import shared_memory

pytestmark = [pytest.mark.mpi, pytest.mark.both]
#: Of `small_disk`.
DISK_KIB = 2048

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
        arguments: tuple[str, ...] = (),
    ) -> tuple[list[dict[str, Any]], Launch]:
        folder = tmp_path / ("native" if native else "ours")
        folder.mkdir(exist_ok=True)
        script = folder / "program.py"
        script.write_text(PROLOGUE + text + "\nfinish()\n", encoding="utf-8")
        environment = {"NATIVE": "1" if native else "0", **(env or {})}
        launch = python_run([script, str(folder), *arguments], ranks, env=environment, timeout_s=60)
        return of_ranks(folder, ranks, "seen."), launch

    return run


def seen_by(cases: Cases, name: str, ranks: int) -> list[dict[str, Any]]:
    """Return what each rank of a case saw."""
    return of_ranks(cases.result(name).folder, ranks, "seen.")


FOLDER = """
attempt("open", MPI.File.Open, comm, str(folder), MPI.MODE_RDWR)
"""


def test_a_folder_is_opened(program: Any, extension: str) -> None:
    """The class of the error is that of the MPI library alone, on each rank."""
    classes = [[seen["open"][0] for seen in program(FOLDER, native=native)[0]] for native in (False, True)]
    assert classes[0] == classes[1] and "ok" not in classes[0]


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
    mpiox_exchange=sys.argv[2], mpiox_ranks_per_node=sys.argv[3]))
fh.Set_view(4 * rank, MPI.BYTE, MPI.BYTE.Create_vector(1024, 4, 4 * size).Commit())
data = np.zeros(4096, "b")
for value in range(3):
    attempt(f"write {value}", fh.Write_at_all, 0, np.full(4096, value, "b"))
for value in range(2):
    attempt(f"read {value}", fh.Read_at_all, 0, data)
seen["equal"] = bool((data == 2).all())
seen["errors"] = mpiio_ext.stats.of(fh).errors
fh.Close()
"""
#: The exchange, ranks of a pretended node (0: one node), and the error of a write of rank 1; its first read gives EIO.
FAULTS = [("two_phase", 0, "EROFS"), ("two_phase", 2, "EIO"), ("direct", 0, "ENOSPC"), ("direct", 2, "EDQUOT")]


@pytest.mark.parametrize(("exchange", "per_node", "error"), FAULTS)
def test_texts_of_a_failing_request(cases: Cases, exchange: str, per_node: int, error: str) -> None:
    """The text of each rank names the file, the error of the system, and the rank that met it; each error is counted.

    Ranks of several nodes that go direct agree before they access: rank 1 alone has the errors.
    """
    alone = (exchange, per_node) == ("direct", 2)
    for rank, seen in enumerate(seen_by(cases, f"fault {exchange} {per_node}", 4)):
        texts = [value[1] for name, value in seen.items() if name.startswith(("write", "read")) and value[0] != "ok"]
        numbers = [getattr(errno, error), errno.EIO] if rank == 1 or not alone else []
        assert len(texts) == seen["errors"] == len(numbers), seen
        for text, number in zip(texts, numbers, strict=True):
            assert "/data" in text and f"errno {number}" in text and "rank 1" in text, text
        assert seen["equal"], seen


FULL = """
import resource
bad, limit = int(sys.argv[3]) in (rank, size), int(sys.argv[4])
fh = MPI.File.Open(comm, str(pathlib.Path(sys.argv[2]) / "data"), MPI.MODE_RDWR | MPI.MODE_CREATE, info(
    mpiox_ranks_per_node=sys.argv[5]))
piece = np.full(65536, rank, "b")
fh.Write_at_all(65536 * rank, piece)
beyond = 65536 * size + (rank << 22)
if bad and limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond + limit, resource.RLIM_INFINITY))
attempt("full", fh.Write_at_all, *((beyond, np.full(1 << 22, 9, "b")) if bad else (65536 * rank, piece)))
attempt("next", fh.Write_at_all, 65536 * rank, piece)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
total = mpiio_ext.stats.of(fh)
seen["counted"] = [total.errors, total.bytes_written, total.rounds]
attempt("sync", fh.Sync)
fh.Set_view(4 * rank, MPI.BYTE, MPI.BYTE.Create_vector(16384, 4, 4 * size).Commit())
attempt("exchanged", fh.Write_at_all, 0, piece)
seen["rounds"] = mpiio_ext.stats.of(fh).rounds
fh.Close()
"""


def check_full(ours: list[dict[str, Any]], bad: int, error: tuple[str, int], sync: str = "") -> None:
    """The one write fails on a rank, or on all, and is not counted; each text names what its rank has met.

    Pieces that need no exchange have no rounds.
    """
    for rank, seen in enumerate(ours):
        failing = bad in (rank, len(ours))
        name, text = seen["full"]
        assert name == (error[0] if failing else "ok"), seen
        assert all(word in text for word in ("/data", f"errno {error[1]}", f"rank {rank}")) == failing, seen
        assert seen["counted"] == [failing, 65536 * (3 - failing), 0], seen
        assert seen["next"][0] == seen["exchanged"][0] == "ok" and seen["rounds"] > 0, seen
        assert seen["sync"][0] == ("ERR_IO" if sync else "ok"), seen
        assert seen["sync"][1].startswith(sync) and (not sync or f"errno {errno.EIO}" in seen["sync"][1]), seen


#: The rank whose write fails (4: each), and ranks of a pretended node.
ALONE = [(0, 1), (3, 2), (4, 2)]


@pytest.mark.parametrize(("bad", "per_node"), ALONE)
def test_texts_of_a_full_disk(cases: Cases, bad: int, per_node: int) -> None:
    """Of ranks that agree before they access, the one that fails has the error; that of a sync is everybody's."""
    sync = "MPI_ERR_IO: input or output failed: rank 2: fsync of "
    check_full(seen_by(cases, f"full {bad}", 4), bad, ("ERR_NO_SPACE", errno.ENOSPC), sync)


@pytest.mark.parametrize(("bad", "per_node"), ALONE)
def test_texts_at_the_limit_of_a_file(cases: Cases, bad: int, per_node: int) -> None:
    check_full(seen_by(cases, f"limit {bad}", 4), bad, ("ERR_IO", errno.EFBIG))


def test_texts_of_a_disk_that_is_full(program: Any, extension: str, small_disk: pathlib.Path) -> None:
    ours, _ = program(FULL, 4, arguments=(str(small_disk), "2", "0", "2"))
    check_full(ours, 2, ("ERR_NO_SPACE", errno.ENOSPC))


def test_fault_rules_with_a_typing_error_are_refused(program: Any, extension: str) -> None:
    """A test that asks for a fault must not pass because nobody understood it."""
    text = """
path = folder / "data"
attempt("open", MPI.File.Open, comm, str(path), MPI.MODE_RDWR | MPI.MODE_CREATE)
"""
    ours, launch = program(text, 2, env={"MPIOX_FAULT": "op=wriet,errno=EIO"})
    assert "MPIOX_FAULT" in launch.stderr and "wriet" in launch.stderr, launch.describe()
    assert len(ours) == 2


TWO_FILES = """
for name in ("data", "more"):
    MPI.File.Open(comm, str(folder / name), MPI.MODE_RDWR | MPI.MODE_CREATE).Close()
"""


def test_fault_rules_are_told_once_by_each_process(program: Any, extension: str) -> None:
    """However many files a process opens; and nothing where no rules are set."""
    for rules, lines in (("op=read,short=0", 2), ("", 0)):
        _, launch = program(TWO_FILES, 2, env={"MPIOX_FAULT": rules})
        assert launch.stderr.count("fault injection is on") == lines, launch.describe()
        assert launch.stderr.count(f'MPIOX_FAULT="{rules}"') == lines


NO_MEMORY = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))
fh = MPI.File.Open(comm, str(folder / "data"), MPI.MODE_RDWR | MPI.MODE_CREATE, info(
    mpiox_exchange="two_phase", cb_buffer_size=1 << 30, mpiox_buffers=8))
fh.Set_view(64 * rank, MPI.BYTE, MPI.BYTE.Create_vector(256, 64, 64 * size).Commit())
attempt("write", fh.Write_at_all, 0, np.full(16384, rank + 1, "b"))
attempt("write again", fh.Write_at_all, 0, np.full(16384, rank + 1, "b"))
fh.Close()
"""


def test_no_address_space_for_shared_memory(program: Any, extension: str) -> None:
    """Where the collective buffers cannot be mapped there is an error or another way, and no file stays in /dev/shm."""
    before = shared_memory()
    ours, launch = program(NO_MEMORY, 2)
    for name in ("write", "write again"):
        assert {seen[name][0] for seen in ours} in ({"ok"}, {"ERR_NO_MEM"}), launch.describe()
    assert not shared_memory() - before


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


def test_a_bad_count_on_one_rank(program: Any, extension: str) -> None:
    """Only one rank calls wrongly: nobody hangs, everybody hears of it, and the next collective works."""
    for seen in program(BAD_COUNT)[0]:
        assert seen["bad count"][0] in ("ERR_COUNT", "ERR_ARG"), seen
        assert "rank 1" in seen["bad count"][1]
        assert seen["good count"][0] == "ok"
        assert seen["file"] == (b"\1" * 8 + b"\2" * 8 + b"\3" * 8).hex()


# ---- what runs in common launches ------------------------------------------------------------------------------------


def case(text: str, rules: str, *arguments: object) -> Case:
    """Return a program of four ranks, whose storage fails by rules."""
    words = ("{folder}", *map(str, arguments))
    return Case(text=f"{PROLOGUE}{text}\nfinish()\n", ranks=4, arguments=words, environment={"MPIOX_FAULT": rules})


CASES = {
    f"fault {exchange} {per_node}": case(
        FAULT,
        f"op=write,rank=1,errno={error},after=1,times=1,path=*/data;op=read,rank=1,errno=EIO,times=1,path=*/data",
        exchange,
        per_node,
    )
    for exchange, per_node, error in FAULTS
}
for _bad, _per_node in ALONE:
    _rank = "" if _bad == 4 else f"rank={_bad},"
    _rules = f"op=write,{_rank}errno=ENOSPC,after=1,times=1,path=*/data;op=sync,rank=2,errno=EIO,times=1,path=*/data"
    CASES[f"full {_bad}"] = case(FULL, _rules, "{folder}", _bad, 0, _per_node)
    CASES[f"limit {_bad}"] = case(FULL, "", "{folder}", _bad, 1000, _per_node)
