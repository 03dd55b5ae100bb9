"""What a trace of a PIONEER replay has to show: the expected path, and what of two paths can be compared."""

from __future__ import annotations

from typing import Any

from mpiio_ext.pioneer.engine.expected import comparable_path, expected_path
from mpiio_ext.pioneer.engine.unknown import unknown_sizes
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support.small_paths import grouped


def checkpoint() -> WorkloadPath:
    """Return a path of a shared, a private and a root's file, with operations that are left out or have stand-ins."""
    slack = {"g0": (None, None, 5), "g1": (None, None, 7)}
    return grouped(
        [
            {"operation": "open", "file": "all", "owner": "shared"},
            {"operation": "dup", "file": "all", "owner": "shared"} | slack,
            {"operation": "writev", "file": "all", "owner": "shared"} | slack,
            {"operation": "close", "file": "all", "owner": "shared"},
            {"operation": "open", "file": "p.{rank}", "owner": "private"},
            {"operation": "close", "file": "p.{rank}", "owner": "private"},
            {"operation": "stat", "file": "c", "owner": "shared", "groups": 2},
            {"operation": "stat", "file": "log", "owner": "root", "groups": 1},
        ]
    )


def rows_of(path: WorkloadPath) -> list[tuple[Any, ...]]:
    return [(row["operation"], row["file"], row["owner"], row["groups"]) for row in path.table.to_pylist()]


def test_expected_of_several_ranks() -> None:
    """What is left out is not there, its slack time is the next one's; stand-ins have their names."""
    found = expected_path(checkpoint(), 8)
    assert rows_of(found) == [
        ("open", "all", "shared", 3),
        ("write", "all", "shared", 3),
        ("close", "all", "shared", 3),
        ("open", "p.{rank}", "private", 3),
        ("close", "p.{rank}", "private", 3),
        ("stat", "c", "shared", 2),
        ("stat", "log", "root", 1),
    ]
    assert [row["slack_1"] for row in found.table.to_pylist()][1] == 14
    assert found.table["id"].to_pylist() == list(range(7))
    assert (found.info.members, found.info.ranks) == (((0,), (1, 2, 3, 4, 5, 6, 7)), 8)
    assert expected_path(found, 8).table.to_pylist() == found.table.to_pylist()


def reads(owner: str = "shared", place: str = "") -> WorkloadPath:
    """Return two reads at the file pointer behind each seek, a write behind them, and an access at an offset."""
    file = {"file": f"{place}all", "owner": owner}
    own = {"file": f"{place}p.{{rank}}", "owner": "private"}
    return grouped(
        [
            {"operation": "open", **file},
            {"operation": "read", **file, "g0": (0, 10, 0), "g1": (0, 10, 0)},
            {"operation": "read", **file, "g0": (10, 10, 0), "g1": (10, 10, 0)},
            {"operation": "pread", **file, "g0": (70, 10, 0), "g1": (70, 10, 0)},
            {"operation": "write", **file, "g0": (20, 10, 0), "g1": (20, 10, 0)},
            {"operation": "lseek", **file, "g0": (40, 0, 0), "g1": (40, 0, 0)},
            {"operation": "write", **file, "g0": (40, 5, 0), "g1": (40, 5, 0)},
            {"operation": "read", **file, "g0": (45, 5, 0), "g1": (45, 5, 0)},
            {"operation": "close", **file},
            {"operation": "open", **own},
            {"operation": "read", **own, "g0": (0, 10, 0), "g1": (0, 10, 0)},
            {"operation": "read", **own, "g0": (10, 10, 0), "g1": (10, 10, 0)},
            {"operation": "close", **own},
        ]
    )


def test_reads_that_end_early_since_ranks_are_missing() -> None:
    """Only offsets that a short read may have moved are not compared, and only where ranks are missing."""
    full = [0, 10, 70, 20, 40, 40, 45, 0, 10]
    less = [0, None, 70, None, 40, 40, 45, 0, 10]

    def offsets(path: WorkloadPath) -> list[int | None]:
        rows = path.table.to_pylist()
        return [row["offset_0"] for row in rows if row["operation"] not in ("open", "close")]

    assert offsets(expected_path(reads(), 4)) == offsets(expected_path(reads(), 8)) == full
    for ranks in (1, 2, 3):
        assert offsets(expected_path(reads(), ranks)) == less
    again = reads("root", "/tmp/x/below/")
    assert offsets(comparable_path(again, reads(), 1)) == less
    assert offsets(comparable_path(again, reads(), 4)) == full
    assert offsets(comparable_path(again, reads("root"), 1)) == full


def test_what_reads_move_since_ranks_are_missing() -> None:
    """Of files that those would have written it is in neither path; of others, and of what else is told, it is."""

    def told(path: WorkloadPath) -> list[object]:
        return [row["extra"] for row in path.table.to_pylist() if row["operation"] == "read"]

    def path(owner: str, place: str = "") -> WorkloadPath:
        return grouped(
            [
                {"operation": "read", "file": f"{place}all", "owner": owner, "extra": extra}
                for extra in ({"moved": 3}, {"value": 1, "moved": 0})
            ]
        )

    again = path("root", "/tmp/x/below/")
    assert told(expected_path(path("shared"), 1)) == told(comparable_path(again, path("shared"), 1))
    assert told(expected_path(path("shared"), 1)) == [None, '{"value":1}']
    assert told(comparable_path(again, path("shared"), 4)) == told(again) == told(expected_path(path("shared"), 4))
    assert told(comparable_path(again, path("root"), 1)) == told(again)


def derived(place: str = "", size: int | None = None) -> WorkloadPath:
    """Return a path as ltrace has it: a collective of a derived type has no size; or what a replay has left."""
    file = {"file": f"{place}all", "owner": "shared", "layer": "mpiio"}
    return grouped(
        [
            {"operation": "MPI_File_open", **file},
            {"operation": "MPI_File_write_all", **file, "g0": (None, size, 0), "g1": (None, size, 0)},
            {"operation": "MPI_File_write_all", **file, "g0": (None, 80, 0), "g1": (None, 40, 0)},
            {"operation": "MPI_File_read_at", **file, "g0": (0, 0, 0), "g1": (0, 8, 0)},
            {"operation": "MPI_File_close", **file},
        ]
    )


def test_sizes_that_no_tracer_could_record_are_in_neither_path() -> None:
    """The engine makes those calls with 0 bytes: these are left out; known sizes stay, zeros of other calls, too."""

    def sizes(path: WorkloadPath) -> list[tuple[int | None, int | None]]:
        return [(row["size_0"], row["size_1"]) for row in path.table.to_pylist()[1:4]]

    told = [(None, None), (80, 40), (0, 8)]
    again = derived("/tmp/x/below/", 0)
    for ranks in (1, 2, 4, 8):
        expected = expected_path(derived(), ranks)
        assert unknown_sizes(expected) == {"MPI_File_write_all": 1}
        if ranks > 1:
            assert sizes(expected) == sizes(comparable_path(again, derived(), ranks)) == told
    assert sizes(comparable_path(again, derived(size=0), 4)) == [(0, 0), (80, 40), (0, 8)]  # told, and none
    assert unknown_sizes(derived(size=0)) == {}
    wrong = derived("/tmp/x/below/", 16)  # bytes that the engine should not have moved are compared
    assert sizes(comparable_path(wrong, derived(), 4))[0] == (16, 16)


def test_offsets_in_a_file_whose_writes_are_of_no_known_size() -> None:
    """The file of a replay has its whole length at once: a read that had met its end goes on, the pointer with it."""
    file = {"file": "all", "owner": "shared"}
    rows: list[dict[str, Any]] = [
        {"operation": "MPI_File_open", "layer": "mpiio", **file},
        {"operation": "MPI_File_write_at", "layer": "mpiio", **file, "g0": (0, None, 0), "g1": (9, None, 0)},
        {"operation": "MPI_File_close", "layer": "mpiio", **file},
        {"operation": "open", **file},
        {"operation": "read", **file, "g0": (0, 10, 0), "g1": (0, 10, 0)},
        {"operation": "read", **file, "g0": (6, 10, 0), "g1": (6, 10, 0)},
        {"operation": "lseek", **file, "g0": (40, 0, 0), "g1": (40, 0, 0)},
        {"operation": "read", **file, "g0": (40, 5, 0), "g1": (40, 5, 0)},
        {"operation": "close", **file},
    ]
    for ranks in (2, 4, 8):
        for found in (expected_path(grouped(rows), ranks), comparable_path(grouped(rows), grouped(rows), ranks)):
            assert found.table["offset_0"].to_pylist() == [None, 0, None, None, 0, None, 40, 40, None]


def test_expected_of_one_rank_and_of_two() -> None:
    """One rank has files of its own only; what one child alone uses is a child's."""
    assert {row[2] for row in rows_of(expected_path(checkpoint(), 1))} == {"root"}
    assert [row[1] for row in rows_of(expected_path(checkpoint(), 1))][-2:] == ["p.{rank}", "log"]
    two = {row[1]: row[2] for row in rows_of(expected_path(checkpoint(), 2))}
    assert two == {"all": "shared", "p.{rank}": "private", "c": "child", "log": "root"}
