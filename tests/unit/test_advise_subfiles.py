"""Where `mpiio-ext advise` proposes subfiles, and what it says: cases whose truth is known, and silence elsewhere."""

from __future__ import annotations

import pathlib

import pytest

from mpiio_ext import layout
from mpiio_ext.advise.subfiles import Gain, Reason, in_turn, reason_of
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support.pioneer_paths import path_of, row

PIECE = 1 << 16
GLUSTER = {"targets": 4, "file_system": "glusterfs", "lock_protocol": "none"}
LUSTRE = {"file_system": "lustre", "lock_protocol": "server", "stripe_count": 4}
LOCAL = {"file_system": "ext4", "lock_protocol": "local"}


def of_ranks(name: str, places: list[list[int]], size: int = PIECE, **more: object) -> WorkloadPath:
    """Return a path in which each of the ranks makes calls of a name at its places; None: no offset is told."""
    rows = []
    for number in range(len(places[0])):
        item = row(name, "out", "shared", "mpiio", size=size, groups=(1 << len(places)) - 1)
        for rank, own in enumerate(places):
            item |= {f"size_{rank}": size, f"offset_{rank}": own[number], f"slack_{rank}": 0}
        rows.append(item | more)
    return path_of(rows, members=tuple((rank,) for rank in range(len(places))))


def turns(ranks: int, rounds: int, *, first: int = 0, piece: int = PIECE) -> list[list[int]]:
    return [[(first + number * ranks + rank) * piece for number in range(rounds)] for rank in range(ranks)]


def blocks(ranks: int, rounds: int) -> list[list[int]]:
    return [[(rank * rounds + number) * PIECE for number in range(rounds)] for rank in range(ranks)]


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    found: dict[str, object] = {}

    def inspect(path: pathlib.Path) -> object:
        assert path == pathlib.Path("/d")
        return type("Found", (), {"value": staticmethod(found.get)})()

    monkeypatch.setattr(layout, "inspect", inspect)
    monkeypatch.setattr("mpiio_ext.advise.subfiles._name_of", lambda _: "/d/out")
    return found


WRITE, TOGETHER = "MPI_File_write_at", "MPI_File_write_at_all"


def test_one_file_on_one_server(facts: dict[str, object]) -> None:
    """Whatever the accesses: collective, in turn, in blocks; not for reads, nor for next to nothing."""
    facts |= GLUSTER
    for name, places in ((TOGETHER, turns(4, 8)), (WRITE, turns(4, 8)), (WRITE, blocks(4, 8))):
        found = reason_of(of_ranks(name, places), "/d/out")
        assert found == Reason(
            why="each file of /d lies on one of 4 servers of glusterfs", hints={"mpiox_subfiles": "per_server"}
        )
    assert reason_of(of_ranks("MPI_File_read_at", turns(4, 8)), "/d/out") is None
    assert reason_of(of_ranks(WRITE, turns(4, 1), size=100), "/d/out") is None
    facts["targets"] = 1
    assert reason_of(of_ranks(WRITE, turns(4, 8)), "/d/out") is None


def test_pieces_in_turn_under_locks_of_servers(facts: dict[str, object]) -> None:
    """The hints are those that the lock model has no conflict for (test_locks_subfiles)."""
    facts |= LUSTRE
    found = reason_of(of_ranks(WRITE, turns(4, 8)), "/d/out")
    assert found == Reason(
        why="4 ranks write pieces of 64 KiB in turn, under locks of lustre",
        hints={"mpiox_subfiles": "4", "mpiox_subfile_unit": str(PIECE)},
    )
    assert reason_of(of_ranks(TOGETHER, turns(4, 8)), "/d/out") is None  # file domains remove the conflicts
    assert reason_of(of_ranks(WRITE, blocks(4, 8)), "/d/out") is None  # there are hardly any
    facts.clear()
    facts |= LOCAL
    assert reason_of(of_ranks(WRITE, turns(4, 8)), "/d/out") is None


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (turns(4, 8), PIECE),
        (turns(4, 8, first=4), PIECE),
        (turns(4, 8)[::-1], PIECE),  # in another order of the ranks
        (turns(4, 1), None),  # nobody comes again
        (blocks(4, 8), None),
        ([[at + 1 for at in own] for own in turns(4, 8)], None),  # pieces lie across units
        ([own[:4] + turns(4, 8)[(rank + 1) % 4][4:] for rank, own in enumerate(turns(4, 8))], None),  # turns change
        ([[0] * 8] * 4, None),
    ],
)
def test_what_is_in_turn(places: list[list[int]], expected: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mpiio_ext.advise.subfiles._name_of", lambda _: "/d/out")
    assert in_turn(of_ranks(WRITE, places), "/d/out") == expected
    assert in_turn(of_ranks("MPI_File_write", places), "/d/out") is None  # by the file pointer: a view may be under it


def test_the_sentence() -> None:
    reason = Reason(why="each file of /d lies on one of 4 servers of glusterfs", hints={"mpiox_subfiles": "per_server"})
    text = str(Gain(reason=reason, before_s=4.0, after_s=1.0, merge_s=1.0, merged_by="copy_file_range"))
    assert text == (
        "each file of /d lies on one of 4 servers of glusterfs: with mpiox_subfiles=per_server the calls "
        "take 1 s in place of 4 s, and the merge 1 s (copy_file_range): 2 times as fast with the merge"
    )
    text = str(Gain(reason=reason, before_s=1.5, after_s=1.0, merge_s=1.0, merged_by="copy_file_range"))
    assert text.endswith("slower with the merge: use it only without one")
