"""What `auto` decides is what collective I/O does, and its line in the statistics says so.

The files lie on this machine's file system; the environment variable MPIOX_LOCKS says that it locked as Lustre or GPFS
do, hints say how it stripes.
"""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from mpiio_ext.partitioning import Geometry, choose
from support.cases import Case, Cases
from support.launch import python_run

pytestmark = pytest.mark.mpi

KIB = 1024

# Interleaved pieces of 1000 bytes, written, read back and verified; rank 0 prints what the statistics say.
PROGRAM = """
import json, pathlib, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, path = MPI.COMM_WORLD, pathlib.Path(sys.argv[1]) / "file"
pieces = int(sys.argv[2])
mine = np.random.default_rng(comm.rank).integers(0, 256, pieces * 1000, dtype=np.uint8)
fh = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR)
piece = MPI.BYTE.Create_contiguous(1000).Create_resized(0, 1000 * comm.size).Commit()
fh.Set_view(1000 * comm.rank, MPI.BYTE, piece)
fh.Write_all(mine)
back = np.zeros_like(mine)
fh.Seek(0)
fh.Read_all(back)
assert np.array_equal(back, mine)
read = mpiio_ext.stats.of(fh)
fh.Write_at_all(0, mine)
stats = mpiio_ext.stats.of(fh)
requests = comm.allreduce(stats.write_requests)
largest = comm.allreduce(max((i for i, n in enumerate(stats.request_size_log2) if n), default=0), MPI.MAX)
fh.Close()
fh = MPI.File.Open(comm, str(path), MPI.MODE_RDONLY)  # nothing is held any more
fh.Set_view(1000 * comm.rank, MPI.BYTE, piece)
fh.Read_all(back)
assert np.array_equal(back, mine)
reopened = mpiio_ext.stats.of(fh)
fh.Close()
if comm.rank == 0:
    content = np.fromfile(path, np.uint8).reshape(pieces, comm.size, 1000)
    for rank in range(comm.size):
        expected = np.random.default_rng(rank).integers(0, 256, pieces * 1000, dtype=np.uint8)
        assert np.array_equal(content[:, rank].ravel(), expected)
    said = [stats.partition, stats.reason, read.partition, read.reason]
    ways = [[s.write_partition, s.write_stripe_size_io, s.write_reason, s.read_partition, s.read_stripe_size_io,
             s.read_reason] for s in (read, stats, reopened)]
    print(json.dumps([*said, requests, largest, ways]))
"""

# Interleaved pieces of so many bytes in subfiles; each rank reads what its neighbour wrote. Rank 0 prints the reasons.
SUBFILES = """
import json, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, path, size = MPI.COMM_WORLD, f"{sys.argv[1]}/file", int(sys.argv[2])
data = lambda rank: np.random.default_rng(rank).integers(0, 256, 5 * size, dtype=np.uint8)
fh = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
piece = MPI.BYTE.Create_contiguous(size).Create_resized(0, size * comm.size).Commit()
fh.Set_view(size * comm.rank, MPI.BYTE, piece)
fh.Write_all(data(comm.rank))
fh.Sync()
comm.Barrier()
fh.Sync()
other = (comm.rank + 1) % comm.size
fh.Set_view(size * other, MPI.BYTE, piece)
back = np.zeros(5 * size, np.uint8)
fh.Read_all(back)
assert np.array_equal(back, data(other))
stats = mpiio_ext.stats.of(fh)
fh.Close()
if comm.rank == 0:
    print(json.dumps([stats.write_reason, stats.read_reason]))
"""


def case(locks: str, hints: str, *, ranks: int = 6, pieces: int = 400, nodes: int = 0) -> Case:
    """Return the program as on a file system with such locks."""
    environment = {
        "MPIOX_HINTS": f"*:{hints}",
        "MPIOX_RANKS_PER_NODE": str(nodes),
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": "{folder}/statistics",
    }
    if locks:
        environment["MPIOX_LOCKS"] = locks
    return Case(text=PROGRAM, ranks=ranks, arguments=("{folder}", str(pieces)), environment=environment)


STRIPES = f"striping_unit={64 * KIB}:striping_factor"
CASES = {
    "own": case("", "mpiox_exchange=two_phase"),
    "multiple": case("server", f"{STRIPES}=3:cb_nodes=6"),
    "multiple, nodes": case("server", f"{STRIPES}=3:cb_nodes=6", nodes=2),
    "factor": case("server", f"{STRIPES}=6:cb_nodes=3"),
    "kept": case("server", f"{STRIPES}=4:cb_nodes=4:cb_buffer_size=1M", ranks=4, pieces=1000),
    "apart": case("server", f"{STRIPES}=4:cb_nodes=6"),
    "token": case("token", f"{STRIPES}=4:cb_nodes=4"),
    "few": case("server", f"striping_unit={16 * KIB * KIB}:striping_factor=2:cb_nodes=4"),
    "number": case("server", f"{STRIPES}=3", nodes=1),
    "by hint": case("server", f"{STRIPES}=3:cb_nodes=6:mpiox_partition=transpose"),
    "stripes": case("server", f"{STRIPES}=3:cb_nodes=6:cb_buffer_size=1M:mpiox_stripe_size_io=enable"),
    "windows": case(
        "server", f"{STRIPES}=3:cb_nodes=2:cb_buffer_size=1M:mpiox_stripe_size_io=disable:mpiox_partition=aligned"
    ),
}
CASES |= {
    f"subfiles, {locks}, {size}": Case(
        text=SUBFILES,
        ranks=4,
        arguments=("{folder}", str(size)),
        environment={"MPIOX_HINTS": "*:mpiox_subfiles=3", "MPIOX_LOCKS": locks},
    )
    for locks in ("none", "server")
    for size in (1000, 16 * KIB, 64 * KIB)
}


def seen(cases: Cases, name: str) -> tuple[str, str, int, int]:
    """Return method and reason of a write, write requests and the largest request's power of two."""
    partition, reason, _, _, requests, largest, _ = json.loads(cases.result(name).stdout[0].splitlines()[-1])
    return partition, reason, requests, largest


@pytest.mark.both
@pytest.mark.parametrize("name", ["multiple", "multiple, nodes", "factor", "kept", "apart", "token", "few", "number"])
def test_a_collective_does_what_the_rules_say(cases: Cases, name: str) -> None:
    """The statistics of writes and reads name what choose() says of the same facts and history, in its words."""
    *_, ways = json.loads(cases.result(name).stdout[0].splitlines()[-1])
    (first, _, first_reason, read, _, read_reason), (last, _, last_reason, *_), (*_, alone, _, alone_reason) = ways
    hints = dict(hint.split("=") for hint in CASES[name].environment["MPIOX_HINTS"].removeprefix("*:").split(":"))
    size = int(hints["striping_unit"])
    geometry = Geometry(
        end_bytes=CASES[name].ranks * int(CASES[name].arguments[1]) * 1000,
        stripe_size_bytes=size,
        servers=int(hints["striping_factor"]),
        aggregators=int(hints.get("cb_nodes", 6)),
    )
    lock = CASES[name].environment["MPIOX_LOCKS"]
    window = choose(geometry, lock=lock, nodes=1).window_bytes if "cb_buffer_size" not in hints else KIB * KIB
    for operation, method, said, held, written in (
        ("write", first, first_reason, None, False),
        ("read", read, read_reason, first, True),
        ("write", last, last_reason, read, read == first),
        ("read", alone, alone_reason, None, False),
    ):
        choice = choose(
            geometry,
            lock=lock,
            operation=operation,
            window_bytes=window,
            held=held,
            held_bytes=geometry.end_bytes if written else 0,
        )
        assert method == choice.method, said
        assert said.startswith("two-phase: ") and said.endswith(f"; {choice.reason}"), said


def test_reads_keep_the_method_of_the_writes(cases: Cases) -> None:
    """Where servers lock; another file handle, which has written nothing, takes what is best for its reads."""
    *_, ways = json.loads(cases.result("kept").stdout[0].splitlines()[-1])
    (written, _, _, read, *_), (again, *_), (*_, alone, _, _) = ways
    assert (written, read, again, alone) == ("static_cyclic", "static_cyclic", "static_cyclic", "aligned")
    assert ways[0][-1].endswith(" with a change of owners"), ways[0]


def test_one_kernel_is_as_it_always_was(cases: Cases) -> None:
    partition, why, _requests, _largest = seen(cases, "own")
    assert partition == "aligned"
    assert why.endswith("; one page cache, no lock traffic: contiguous whole blocks (measured)"), why


@pytest.mark.parametrize(
    ("locks", "size", "written", "read"),
    [
        ("none", 1000, False, False),
        ("none", 16 * KIB, True, False),
        ("none", 64 * KIB, True, True),
        ("server", 64 * KIB, False, False),
    ],
)
def test_subfiles_of_servers_without_locks_need_no_exchange(
    cases: Cases, locks: str, size: int, *, written: bool, read: bool
) -> None:
    """Pieces that interleave go straight there, unless they are small."""
    for reason, direct in zip(
        json.loads(cases.result(f"subfiles, {locks}, {size}").stdout[0]), (written, read), strict=True
    ):
        assert reason.startswith("direct: pieces that are not small, in subfiles" if direct else "two-phase: "), reason


def test_a_named_method_wins(cases: Cases) -> None:
    partition, why, _requests, _largest = seen(cases, "by hint")
    assert (partition, why) == ("transpose", "two-phase: a hint names a method")


def test_stripe_size_io_is_what_the_requests_are(cases: Cases) -> None:
    _partition, why, requests, largest = seen(cases, "stripes")
    assert ", window 1 MiB, one stripe a request; " in why, why
    assert largest <= 16  # 64 KiB
    assert requests >= 400 * 6 * 1000 // (64 * KIB)
    _partition, _why, fewer, larger = seen(cases, "windows")
    assert larger > 16 and fewer < requests


@pytest.mark.parametrize("name", ["multiple", "factor", "by hint", "stripes", "own"])
def test_writes_and_reads_are_told_apart(cases: Cases, name: str) -> None:
    """What the last write and the last read did stays in the statistics beside what the last collective did."""
    result = cases.result(name)
    last, why, read_partition, read_reason, _, _, ways = json.loads(result.stdout[0].splitlines()[-1])
    (first_written, *_, read, read_stripes, read_why), (written, stripes, write_why, *kept), _ = ways
    assert (read, read_why) == (read_partition, read_reason)  # when it was the last
    assert (written, write_why) == (last, why)
    assert kept == [read, read_stripes, read_why]  # the write behind it has not changed them
    assert first_written == written
    assert (stripes, read_stripes) == ((True, True) if name == "stripes" else (False, False))
    report = json.loads((result.folder / "statistics").read_text(encoding="utf-8").splitlines()[0])
    names = [f"{way}_{what}" for way in ("write", "read") for what in ("partition", "stripe_size_io", "reason")]
    assert [report[name] for name in names] == ways[1]
    assert (report["partition"], report["reason"]) == (last, why)


def test_the_table_tells_writes_and_reads_apart(tmp_path: pathlib.Path) -> None:
    """Lines of their own where a file was written and read; else one method and one reason."""
    environment = {
        "MPIOX_STATS": "1",
        "MPIOX_LOCKS": "server",
        "MPIOX_HINTS": f"*:{STRIPES}=4:cb_nodes=2:cb_buffer_size=1M",
    }
    done = python_run(["-c", PROGRAM, tmp_path, "200"], 2, env=environment)
    table, reopened, _run = done.stderr.split("mpiio_ext: statistics of ")[1:]
    lines = dict(re.findall(r"^  (\w[\w, ]*?)  +(.*)$", table, re.MULTILINE))
    assert lines["partition, writes"].endswith(", whole windows")
    assert re.fullmatch(r"\w+, (whole windows|one stripe a request)", lines["partition, reads"])
    assert lines["reason, writes"].startswith("two-phase: ") and lines["reason, reads"].startswith("two-phase: ")
    assert "partition" not in lines and "reason" not in lines
    lines = dict(re.findall(r"^  (\w[\w, ]*?)  +(.*)$", reopened, re.MULTILINE))
    assert "partition" in lines and lines["reason"].startswith("two-phase: ") and "reason, reads" not in lines


def test_an_unknown_protocol_of_a_test_is_told(tmp_path: pathlib.Path) -> None:
    """A test that means Lustre must not go on with the real file system in silence."""
    environment = {"MPIOX_LOCKS": "lustre"}
    done = python_run(["-c", PROGRAM, tmp_path, "10"], 2, env=environment)
    assert "MPIOX_LOCKS=lustre is ignored: server, token, none or local" in done.stderr
