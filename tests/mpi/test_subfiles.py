"""Files that are stored as several (mpiox_subfiles): everything of MPI-IO works on them, and damage is told."""

from __future__ import annotations

import textwrap

import pytest

from support import subfiles
from support.cases import Case, Cases

pytestmark = pytest.mark.mpi

HINTS = "*:mpiox_subfiles=4:mpiox_subfile_unit=1000"
DELEGATES = ":mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_delegate_page=4k"

START = """
import os, pathlib, sys
import numpy as np
from mpi4py import MPI

comm, folder = MPI.COMM_WORLD, sys.argv[1]
name = folder + "/file"
RDONLY, RDWR, CREATE = MPI.MODE_RDONLY, MPI.MODE_RDWR, MPI.MODE_CREATE

MERGE = "mpiio-ext subfiles merge"

def failed(function, *arguments, says=""):
    try:
        function(*arguments)
    except MPI.Exception as error:
        assert says in str(error), error
        return error.Get_error_class()
    return MPI.SUCCESS

def mine(n, rank=comm.rank):
    return np.random.default_rng(rank).integers(1, 255, n, "u1")

def everybody(n):
    return np.concatenate([mine(n, rank) for rank in range(comm.size)])

def together():
    comm.Barrier()
    return comm.rank == 0

def read_again(fh_comm, whole):
    fh = MPI.File.Open(fh_comm, name, RDONLY)
    back = np.zeros(fh.Get_size(), "u1")
    fh.Read_at_all(0, back)
    fh.Close()
    assert bytes(back) == bytes(whole)

def is_index():
    return pathlib.Path(name).read_bytes().startswith(b"mpiio_ext subfiles 1\\n")
"""

#: Programs by name; each leaves the file as `everybody(5000)`, or prints what it found.
PROGRAMS = {
    "collective": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        assert fh.Get_amode() == RDWR | CREATE
        pieces = MPI.BYTE.Create_vector(50, 100, 100 * comm.size).Commit()
        fh.Set_view(100 * comm.rank, MPI.BYTE, pieces)
        data = everybody(5000).reshape(-1, comm.size, 100)[:, comm.rank].ravel().copy()
        fh.Write_all(data)
        fh.Sync()
        back = np.zeros(5000, "u1")
        fh.Read_at_all(0, back)
        assert (back == data).all() and fh.Get_size() == 5000 * comm.size
        assert is_index() and b"state writing" in pathlib.Path(name).read_bytes()
        fh.Close()
        assert b"state whole" in pathlib.Path(name).read_bytes()  # on every rank, as soon as it is closed
        for some in (MPI.COMM_SELF, comm.Split(comm.rank % 2, -comm.rank)):
            read_again(some, everybody(5000))
        """,
    "independent": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_at(5000 * comm.rank, mine(5000))
        request = fh.Iread_at(5000 * comm.rank, back := np.zeros(5000, "u1"))
        request.Wait()
        assert (back == mine(5000)).all()
        fh.Close()
        """,
    "nonblocking": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        data = mine(5000)
        requests = [fh.Iwrite_at(5000 * comm.rank, data[:2000]), fh.Iwrite_at_all(5000 * comm.rank + 2000, data[2000:])]
        MPI.Request.Waitall(requests)
        fh.Seek(5000 * comm.rank)
        fh.Read_all_begin(back := np.zeros(5000, "u1"))
        fh.Read_all_end(back)
        assert (back == data).all()
        fh.Close()
        """,
    "shared pointer": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_ordered(mine(5000))
        assert fh.Get_position_shared() == 5000 * comm.size
        fh.Seek_shared(0, MPI.SEEK_END)
        assert fh.Get_position_shared() == 5000 * comm.size
        fh.Seek_shared(0)
        back = np.zeros(5000, "u1")
        fh.Read_shared(back)
        assert bytes(back) in bytes(everybody(5000))
        fh.Close()
        """,
    "atomic": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Set_atomicity(True)
        fh.Write_at(5000 * comm.rank, mine(5000))
        comm.Barrier()
        other = (comm.rank + 1) % comm.size
        fh.Read_at(5000 * other, back := np.zeros(5000, "u1"))
        assert fh.Get_atomicity() and (back == mine(5000, other)).all()
        fh.Close()
        """,
    "append": """
        for rank in range(comm.size):
            fh = MPI.File.Open(comm, name, RDWR | CREATE | MPI.MODE_APPEND)
            assert fh.Get_position() == fh.Get_position_shared() == 5000 * rank
            if comm.rank == rank:
                fh.Write(mine(5000))
            fh.Close()
        """,
    "sizes": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        for size in (1, 999, 4000, 12345, 77, 0):
            fh.Set_size(size)
            assert fh.Get_size() == size
        fh.Preallocate(9001)
        assert fh.Get_size() == 9001
        fh.Read_at_all(0, back := np.ones(10000, "u1"))
        assert not back[:9001].any() and back[9001:].all()
        assert failed(fh.Set_size, -1) != MPI.SUCCESS
        if comm.size > 1:
            assert failed(fh.Set_size, 5 + comm.rank) != MPI.SUCCESS
        fh.Set_size(0)
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        fh.Set_size(5000 * comm.size)
        fh.Close()
        fh = MPI.File.Open(comm, name, RDONLY)
        assert failed(fh.Set_size, 1) == MPI.ERR_READ_ONLY
        fh.Close()
        """,
    "two openers": """
        fh = [MPI.File.Open(MPI.COMM_SELF, name, RDWR | CREATE) for _ in range(2)]
        comm.Barrier()
        fh[comm.rank % 2].Write_at(5000 * comm.rank, mine(5000))
        fh[0].Close()
        comm.Barrier()
        assert b"state writing" in pathlib.Path(name).read_bytes()
        comm.Barrier()
        fh[1].Close()
        comm.Barrier()
        assert b"state whole" in pathlib.Path(name).read_bytes()
        """,
    "other representations": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        assert failed(fh.Set_view, 0, MPI.INT, MPI.INT, "external32", says=MERGE) == MPI.ERR_UNSUPPORTED_DATAREP
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        fh.Close()
        sequential = RDONLY | MPI.MODE_SEQUENTIAL
        assert failed(MPI.File.Open, comm, name, sequential, says=MERGE) == MPI.ERR_UNSUPPORTED_OPERATION
        """,
    "per node": """
        info = MPI.Info.Create()
        info.Set("mpiox_subfiles", "per_node=2")
        fh = MPI.File.Open(comm, name, RDWR | CREATE, info)
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        fh.Close()
        """,
    "own subfiles": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        import contextlib
        links = []
        for entry in os.scandir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # another thread has closed it since
                links.append(os.readlink(entry))
        opened = sorted({int(link.rsplit(".", 1)[1]) for link in links if link.startswith(name + ".sub")} - {0})
        found = comm.gather(opened)
        fh.Close()
        if comm.rank == 0:
            every = sorted(sum(found, []))
            assert every == [1, 2, 3], found  # no other rank writes them
        """,
}
ENVIRONMENTS = {
    "plain": {"MPIOX_HINTS": HINTS},
    "nodes": {"MPIOX_HINTS": f"{HINTS}:mpiox_exchange=two_phase", "MPIOX_RANKS_PER_NODE": "2", "MPIOX_LOCKS": "server"},
    "delegates": {"MPIOX_HINTS": HINTS + DELEGATES},
    "staged": {"MPIOX_HINTS": f"{HINTS}{DELEGATES}:mpiox_close=staged"},
}
#: Those that look at the file by its own name are not for a file that has it later.
AT_ONCE = ("plain", "nodes", "delegates")
ONLY = {
    "own subfiles": ("nodes",),
    "per node": ("plain", "nodes", "staged"),
    "other representations": ("plain",),
    "collective": AT_ONCE,
    "two openers": AT_ONCE,
}
RANKS = (1, 3, 4, 7)
FEWER = (1, 3, 4)
#: Of the files with extreme subfiles.
FEW_RANKS = 3


def case(text: str, ranks: int, environment: dict[str, str]) -> Case:
    if "per_node" in text:  # the environment would count more than the program
        environment = environment | {"MPIOX_HINTS": environment["MPIOX_HINTS"].replace("mpiox_subfiles=4:", "")}
    return Case(text=START + textwrap.dedent(text), ranks=ranks, environment=environment)


CASES = {
    f"{what} {where} {ranks}": case(text, ranks, ENVIRONMENTS[where])
    for ranks in RANKS
    for what, text in PROGRAMS.items()
    for where in ONLY.get(what, tuple(ENVIRONMENTS))
}

#: What is done to a whole file of 4 subfiles, and the class of the error that every opening gets.
DAMAGE = {
    "missing": ("os.unlink(parts[1])", "NO_SUCH_FILE"),
    "short": ("os.truncate(parts[2], 10)", "IO"),
    "long": ("os.truncate(parts[3], 10_000_000)", "IO"),
    "edited": ("index.write_bytes(index.read_bytes().replace(b'unit 1000', b'unit 1001'))", "IO"),
    "cut": ("index.write_bytes(index.read_bytes()[:-5])", "IO"),
    "newer": ("index.write_bytes(index.read_bytes().replace(b'subfiles 1', b'subfiles 2'))", "IO"),
    "a link": ("parts[1].rename(folder + '/x'); parts[1].symlink_to(folder + '/x')", "BAD_FILE"),
}
DAMAGED = """
fh = MPI.File.Open(comm, name, RDWR | CREATE)
fh.Write_at_all(5000 * comm.rank, mine(5000))
fh.Close()
index, parts = pathlib.Path(name), sorted(pathlib.Path(name + ".subfiles").iterdir())
if together():
    {what}
comm.Barrier()
before = index.read_bytes()
for mode in (RDONLY, RDWR):
    found = failed(MPI.File.Open, comm, name, mode)
    assert found == MPI.ERR_{error}, (MPI.Get_error_string(found), mode)
comm.Barrier()
assert index.read_bytes() == before
"""
CASES |= {
    f"damaged {what} {ranks}": case(DAMAGED.format(what=do, error=error), ranks, ENVIRONMENTS["plain"])
    for what, (do, error) in DAMAGE.items()
    for ranks in (1, 3)
}
OTHERS = {
    "deleted": """
        for mode in (0, MPI.MODE_DELETE_ON_CLOSE):
            fh = MPI.File.Open(comm, name, RDWR | CREATE | mode)
            fh.Write_at_all(5000 * comm.rank, mine(5000))
            fh.Close()
            assert os.path.exists(name) == (mode == 0)
            comm.Barrier()
            if together() and mode == 0:
                MPI.File.Delete(name)
            comm.Barrier()
            assert os.listdir(folder) == []
            comm.Barrier()
        """,
    "exclusive": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE | MPI.MODE_EXCL)
        fh.Close()
        assert is_index()
        assert failed(MPI.File.Open, comm, name, RDWR | CREATE | MPI.MODE_EXCL) == MPI.ERR_FILE_EXISTS
        """,
    "without the library": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        fh.Close()
        before = pathlib.Path(name).read_bytes()
        info = MPI.Info.Create()
        info.Set("mpiox_enable", "false")
        for mode in (RDONLY, RDWR, RDWR | CREATE):
            assert failed(MPI.File.Open, comm, name, mode, info) == MPI.ERR_UNSUPPORTED_OPERATION
        assert pathlib.Path(name).read_bytes() == before
        """,
    "not closed": """
        state = lambda: pathlib.Path(name).read_bytes().split(b"\\nstate ")[1].split(b"\\n")[0]
        for emptied in (False, True):
            fh = MPI.File.Open(comm, name, RDWR | CREATE)
            fh.Write_at_all(5000 * comm.rank, mine(5000))
            fh.Close()
            if together():  # as an index is that a killed job leaves
                lines = [one for one in pathlib.Path(name).read_bytes().split(b"\\n")[:-2] if one[:5] != b"size "]
                text = b"\\n".join(lines).replace(b"state whole", b"state writing") + b"\\n"
                pathlib.Path(name).write_bytes(text + b"checksum %08x\\n" % __import__("zlib").crc32(text))
            for mode in (RDONLY, RDWR, RDWR):
                comm.Barrier()
                fh = MPI.File.Open(comm, name, mode)
                if emptied and mode == RDWR:
                    fh.Set_size(0)
                    fh.Write_at_all(5000 * comm.rank, mine(5000))
                fh.Close()
                comm.Barrier()
                assert state() == (b"whole" if emptied and mode == RDWR else b"writing"), state()
        """,
    "a copy of the index": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        fh.Close()
        if together():
            pathlib.Path(name + ".copy").write_bytes(pathlib.Path(name).read_bytes())
        comm.Barrier()
        fh = MPI.File.Open(comm, name + ".copy", RDONLY)
        assert fh.Get_size() == 5000 * comm.size
        fh.Close()
        assert failed(MPI.File.Open, comm, name + ".copy", RDWR) != MPI.SUCCESS
        comm.Barrier()
        if together():
            MPI.File.Delete(name + ".copy")
        comm.Barrier()
        assert sorted(os.listdir(folder)) == ["file", "file.subfiles"]
        read_again(comm, everybody(5000))
        """,
    "there already": """
        if together():
            pathlib.Path(name).write_bytes(b"x" * 10)
        comm.Barrier()
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        fh.Close()
        assert os.listdir(folder) == ["file"] and not is_index()
        """,
}
STAGED = {
    "read behind its close": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_at_all(5000 * comm.rank, mine(5000))
        fh.Close()
        assert sorted(os.listdir(folder)) == [".file.staging", ".file.staging.parts", "file.subfiles"]
        comm.Barrier()
        for some in (MPI.COMM_SELF, comm.Split(comm.rank % 2, -comm.rank), comm):
            read_again(some, everybody(5000))
            comm.Barrier()
            assert sorted(os.listdir(folder)) == ["file", "file.subfiles"]  # who opens a closed file waits for its name
        """,
    "deleted behind its close": """
        for again in range(2):
            fh = MPI.File.Open(comm, name, RDWR | CREATE)
            fh.Write_at_all(5000 * comm.rank, mine(5000))
            fh.Close()
            comm.Barrier()
            if together():
                MPI.File.Delete(name)
            comm.Barrier()
            assert os.listdir(folder) == []
            comm.Barrier()
        """,
    "written again": """
        fh = MPI.File.Open(comm, name, RDWR | CREATE)
        fh.Write_at_all(5000 * comm.rank, mine(5000)[::-1].copy())
        fh.Close()
        fh = MPI.File.Open(comm, name, RDWR)
        fh.Write_at(5000 * comm.rank, mine(5000))
        fh.Sync()
        fh.Set_atomicity(True)
        fh.Write_at(5000 * comm.rank, mine(5000))
        fh.Close()
        """,
    "whole": """
        hints = {"mpiox_subfiles": "4", "mpiox_subfile_unit": "1000"}
        for close in ("written", "staged"):  # there already
            info = MPI.Info.Create()
            info.update(hints | {"mpiox_close": close})
            fh = MPI.File.Open(comm, name, RDWR | CREATE, info)
            assert fh.Get_info().Get("mpiox_close") == "written"
            fh.Write_at_all(5000 * comm.rank, mine(5000))
            fh.Close()
            assert b"state whole" in pathlib.Path(name).read_bytes()
            comm.Barrier()
        """,
}  # with a rate at which nothing is written before the job ends
#: What a deleted file has left in the queue of a delegate is refused, and tried again, at the end of the launch.
SLOWLY = ENVIRONMENTS["staged"]["MPIOX_HINTS"] + ":mpiox_drain_rate=1:mpiox_drain_patience=1"
CASES |= {
    f"{what} {ranks}": case(text, ranks, {"MPIOX_HINTS": "*" + DELEGATES if what == "whole" else SLOWLY})
    for what, text in STAGED.items()
    for ranks in FEWER
}
CASES |= {
    f"{what} {ranks}": case(text, ranks, ENVIRONMENTS["plain"]) for what, text in OTHERS.items() for ranks in FEWER
}
#: Subfiles and their unit: the least, the usual, the most.
EXTREMES = ((1, "1"), (1, "1m"), (8, "1m"), (3, "1"), (4096, "1"), (4096, "1t"), (4096, "100"))
#: Some files of many subfiles, and few descriptors, of which the program needs some, too.
FEW = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

def descriptors():
    return len(os.listdir("/proc/self/fd"))

before, opened, data = descriptors(), [], mine(5000)
for number in range(5):
    opened.append(MPI.File.Open(comm, f"{name}{number}" if number else name, RDWR | CREATE))
    for fh in opened:
        fh.Write_at_all(5000 * comm.rank, data)
    with open("/dev/null"):
        found = descriptors() - before
    assert found <= 256 // 4 + 10 * len(opened), found
for fh in opened:
    fh.Read_at_all(5000 * comm.rank, back := np.zeros(5000, "u1"))
    fh.Close()
    assert (back == data).all()
assert descriptors() <= before + 2
"""
CASES |= {
    f"extreme {count} {unit}": case(
        PROGRAMS["collective"].split("assert is_index()")[0] + "fh.Close()\n",
        FEW_RANKS,
        {"MPIOX_HINTS": f"*:mpiox_subfiles={count}:mpiox_subfile_unit={unit}"},
    )
    for count, unit in EXTREMES
} | {"few descriptors": case(FEW, FEW_RANKS, {"MPIOX_HINTS": "*:mpiox_subfiles=4096:mpiox_subfile_unit=100"})}
#: A file is made again by a program that empties it, as PnetCDF does.
EMPTIED = """
for again in range(2):
    fh = MPI.File.Open(comm, name, RDWR | CREATE)
    fh.Write_at_all(5000 * comm.rank, mine(5000))
    fh.Close()
    comm.Barrier()
    if comm.rank == 0:
        assert is_index() and len(os.listdir(name + ".subfiles")) == 4
    comm.Barrier()
    if comm.rank == 0 and not again:
        os.truncate(name, 0)
    comm.Barrier()
"""
CASES |= {f"emptied {ranks}": case(EMPTIED, ranks, ENVIRONMENTS["plain"]) for ranks in FEWER}


def expected(ranks: int) -> bytes:
    """Return what the programs write."""
    np = pytest.importorskip("numpy")
    return b"".join(np.random.default_rng(rank).integers(1, 255, 5000, "u1").tobytes() for rank in range(ranks))


@pytest.mark.both_with("*-3")
@pytest.mark.slow_with("*-4", "*-7")
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    ("what", "where"), [(what, where) for what in PROGRAMS for where in ONLY.get(what, tuple(ENVIRONMENTS))]
)
def test_everything_of_mpi_io(cases: Cases, what: str, where: str, ranks: int) -> None:
    """The bytes on disk are those that were written, in subfiles of exactly their shares, by an independent reader."""
    path = cases.result(f"{what} {where} {ranks}").folder / "file"
    assert subfiles.is_index(path)
    index = subfiles.read_index(path)
    nodes = (ranks - 1) // 2 + 1 if where == "nodes" else 1
    assert len(index.subfiles) == (2 * nodes if what == "per node" else 4)
    assert index.size == 5000 * ranks and index.unit == 1000
    assert subfiles.read(path) == expected(ranks)


@pytest.mark.both_with("*-3")
@pytest.mark.slow_with("*-4")
@pytest.mark.parametrize("ranks", FEWER)
@pytest.mark.parametrize("what", STAGED)
def test_files_that_are_closed_before_they_are_written(cases: Cases, what: str, ranks: int) -> None:
    """What the job reads behind a close is what it wrote. When it has ended, the files are whole."""
    folder = cases.result(f"{what} {ranks}").folder
    left = {path.name for path in folder.iterdir()}
    if what.startswith("deleted"):
        assert not left
        return
    assert left == {"file", "file.subfiles"}
    assert subfiles.read_index(folder / "file").size == 5000 * ranks
    assert subfiles.read(folder / "file") == expected(ranks)


@pytest.mark.both_with("*-3")
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_told_by_the_opening(cases: Cases, what: str, ranks: int) -> None:
    """Every rank gets the same error, and nothing is changed."""
    cases.result(f"damaged {what} {ranks}")


@pytest.mark.both_with("*-3")
@pytest.mark.slow_with("*-4")
@pytest.mark.parametrize("ranks", FEWER)
@pytest.mark.parametrize("what", OTHERS)
def test_files_that_come_and_go(cases: Cases, what: str, ranks: int) -> None:
    cases.result(f"{what} {ranks}")


@pytest.mark.parametrize(("count", "unit"), EXTREMES)
def test_few_and_many_subfiles_small_and_huge_units(cases: Cases, count: int, unit: str) -> None:
    path = cases.result(f"extreme {count} {unit}").folder / "file"
    index = subfiles.read_index(path)
    assert len(index.subfiles) == count and index.unit == {"1": 1, "100": 100, "1m": 1 << 20, "1t": 1 << 40}[unit]
    assert index.size == 5000 * FEW_RANKS and subfiles.read(path) == expected(FEW_RANKS)


def test_few_descriptors_serve_many_subfiles(cases: Cases) -> None:
    """Files share a quarter of the process's descriptors; the rest is the program's."""
    folder = cases.result("few descriptors").folder
    for number in range(5):
        assert subfiles.read(folder / (f"file{number}" if number else "file")) == expected(FEW_RANKS)


@pytest.mark.slow_with("4")
@pytest.mark.parametrize("ranks", FEWER)
def test_an_index_that_was_emptied_is_made_anew(cases: Cases, ranks: int) -> None:
    """The subfiles of before go with it."""
    assert subfiles.read(cases.result(f"emptied {ranks}").folder / "file") == expected(ranks)
