"""Darshan logs made by hand: what the real ones do not have (layouts, absent counters, partial modules, versions)."""

from __future__ import annotations

import concurrent.futures
import errno
import os
import pathlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import pytest

from mpiio_ext.analytics.sources import darshan
from mpiio_ext.analytics.sources.base import Outcome
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.common import darshanfile, limits
from mpiio_ext.pioneer.darshan.log import counter_names
from support.darshan_logs import POSIX_COUNTERS, POSIX_DOUBLES, Job, Log, make_log, pack_job, posix, write_small_logs
from support.parts import require

require("darshan")

OPENS, READS, WRITES, BYTES_READ, BYTES_WRITTEN, SEQ_READS = 0, 3, 4, 14, 15, 20
FILE_ALIGNMENT, FASTEST_RANK, SLOWEST_RANK, SLOWEST_BYTES = 26, 65, 67, 68
READ_START, WRITE_START, READ_END, WRITE_END, READ_TIME = 1, 2, 5, 6, 8


def posix_of_version(version: int, record: bytes, fopens: int = 0) -> bytes:
    """Return a POSIX record of version 4 as an older version had it: without what came later, with what went."""
    integers = list(struct.unpack_from(f"<{POSIX_COUNTERS}q", record, 16))
    doubles = list(struct.unpack_from(f"<{POSIX_DOUBLES}d", record, 16 + 8 * POSIX_COUNTERS))
    if version < 4:
        del integers[10:13], integers[1:3]
    if version < 3:
        del doubles[3:5]
    if version < 2:
        integers[6:6] = [fopens, 0, 0, 0]
    return record[:16] + struct.pack(f"<{len(integers)}q{len(doubles)}d", *integers, *doubles)


def stdio(key: int, rank: int, bytes_written: int, writes: int = 1) -> bytes:
    """Return a STDIO record of version 2: opens, fdopens, reads, writes, seeks, flushes, bytes written and read …"""
    return struct.pack("<Qq14q15d", key, rank, 1, 0, 0, writes, 0, 0, bytes_written, *[0] * 7, *[0.0] * 15)


def mpiio(key: int, rank: int, opens: int, collective: int, split: int = 0) -> bytes:
    """Return an MPI-IO record of version 3: independent and collective opens, reads and writes …"""
    return struct.pack("<Qq51q17d", key, rank, 0, opens, 0, 0, 0, collective, 0, split, *[0] * 43, *[0.0] * 17)


def lustre1(key: int, offset: int, size: int, osts: Sequence[int], rank: int = -1) -> bytes:
    return struct.pack(f"<Qq5q{len(osts)}q", key, rank, 100, 1, offset, size, len(osts), *osts)


def lustre2(key: int, components: Sequence[tuple[int, int, int, int]], osts: Sequence[int]) -> bytes:
    """Return a Lustre record of version 2; components: stripe size, count, start and end of the extent."""
    parts = [struct.pack("<7q16s", size, count, 0, 0, start, end, 0, b"pool") for size, count, start, end in components]
    head = struct.pack("<Qqqq", key, -1, len(components), len(osts))
    return head + b"".join(parts) + struct.pack(f"<{len(osts)}q", *osts)


def words_swapped(data: bytes) -> bytes:
    """Return records in the other byte order (texts in them, too: nobody looks at those)."""
    return b"".join(data[at : at + 8][::-1] for at in range(0, len(data), 8))


def run(folder: pathlib.Path, data: bytes) -> tuple[Outcome, list[dict[str, Any]], list[dict[str, Any]]]:
    """Convert one log; return its outcome, jobs and files."""
    (folder / "one.darshan").write_bytes(data)
    converted = convert(["one.darshan"], str(folder))
    for table in converted.tables.values():
        table.validate(full=True)
    (outcome,) = converted.outcomes
    return outcome, converted.tables["darshan_job"].to_pylist(), converted.tables["darshan_file"].to_pylist()


def test_records_of_ranks_are_joined(tmp_path: pathlib.Path) -> None:
    records = [
        posix(7, 0, {OPENS: 1, BYTES_WRITTEN: 100, WRITES: 2}, {WRITE_START: 0.5, WRITE_END: 1.0}),
        posix(7, 3, {OPENS: 2, BYTES_WRITTEN: 50, WRITES: 1}, {WRITE_START: 0.25, WRITE_END: 2.0}),
        posix(7, 2, {OPENS: 0, BYTES_READ: 5}, {READ_TIME: 0.125}),
    ]
    job = Job(start=1000, start_ns=500_000_000, end=1010, processes=4)
    modules = {
        "POSIX": (4, b"".join(records)),
        "STDIO": (2, stdio(7, 3, 11)),
        "MPI-IO": (3, mpiio(8, -1, 4, 10, split=2)),
    }
    outcome, (row,), (first, second) = run(tmp_path, make_log(job, {7: "/scratch/a", 8: "/scratch2/b"}, modules))
    assert (outcome.status, outcome.rows) == ("whole", {"darshan_job": 1, "darshan_file": 2})
    assert (first["bytes_written"], first["writes"], first["opens"], first["bytes_read"]) == (161, 4, 4, 5)
    assert (first["write_start"], first["write_end"], first["read_start"]) == (1000.75, 1002.5, None)
    assert (first["ranks"], first["root_bytes_written"], first["read_time"]) == (2, 100, 0.125)
    assert (first["mount"], first["fs_type"]) == ("/scratch", "lustre")
    assert (second["mount"], second["ranks"], second["mpiio_coll_writes"]) == ("/", 4, 12)
    assert [second[name] for name in ("bytes_written", "opens", "read_time", "root_bytes_written")] == [None] * 4
    assert (row["start_time"], row["files"], row["files_written"], row["bytes_written"]) == (1000.5, 2, 1, 161)
    assert (row["app"], row["exe"], row["log_version"]) == ("app", "/home/me/bin/app -n 4", "3.41")


@pytest.mark.parametrize(
    ("rank", "counters", "times", "end"),
    [
        (1, {}, {9: 30.0}, 12.0),
        (1, {8: 5}, {9: 30.0}, 40.0),
        (1, {9: 5}, {9: 30.0}, 40.0),
        (1, {8: 5}, {9: 1.0}, 12.0),
        (1, {8: 5}, {9: 300.0}, 100.0),
        (-1, {8: 5}, {9: 40.0}, 20.0),
        (-1, {8: 5}, {9: 40.0, 10: 8.0, 14: 25.0}, 33.0),
    ],
    ids=["no sync", "fsync", "fdatasync", "within the writes", "of threads", "of all ranks", "of the slowest rank"],
)
def test_a_file_is_written_until_its_last_sync_ends(
    rank: int, counters: dict[int, int], times: dict[int, float], end: float, tmp_path: pathlib.Path
) -> None:
    """Darshan adds the time of syncs to that of writes and does not move the end of the last write."""
    record = posix(
        7, rank, {OPENS: 4, WRITES: 5, BYTES_WRITTEN: 500, **counters}, {WRITE_START: 10.0, WRITE_END: 12.0, **times}
    )
    job = Job(start=1000, end=1100, processes=4)
    _, (row,), (file,) = run(tmp_path, make_log(job, {7: "/a"}, {"POSIX": (4, record)}))
    assert (file["write_start"], file["write_end"], row["write_end"]) == (1010.0, 1000.0 + end, 1000.0 + end)


def test_absent_counters_are_null(tmp_path: pathlib.Path) -> None:
    """Darshan writes -1 for what it does not know; a sum leaves it out, and is absent where nobody knows."""
    records = [
        posix(1, 0, {OPENS: 1, READS: -1, SEQ_READS: -1, BYTES_READ: 8, FILE_ALIGNMENT: -1}, {READ_TIME: -1.0}),
        posix(1, 1, {OPENS: 1, READS: 3, SEQ_READS: -1, BYTES_READ: -1, FILE_ALIGNMENT: -1}, {READ_TIME: -1.0}),
    ]
    _, (job,), (row,) = run(tmp_path, make_log(Job(), {1: "/a"}, {"POSIX": (4, b"".join(records))}))
    assert [row[name] for name in ("reads", "seq_reads", "bytes_read", "alignment", "read_time")] == [
        3,
        None,
        8,
        None,
        None,
    ]
    assert (job["reads"], job["seq_reads"], job["read_time"]) == (3, None, None)


def test_extremes_of_a_shared_file(tmp_path: pathlib.Path) -> None:
    counters = {OPENS: 4, BYTES_WRITTEN: 100, FASTEST_RANK: 1, SLOWEST_RANK: 3, SLOWEST_BYTES: 9}
    outcome, _, (row,) = run(tmp_path, make_log(Job(), {1: "/a"}, {"POSIX": (4, posix(1, -1, counters, {14: 2.5}))}))
    assert (row["slowest_rank"], row["slowest_rank_bytes"], row["slowest_rank_time"]) == (3, 9, 2.5)
    assert (row["ranks"], row["root_bytes_written"], outcome.status) == (4, None, "whole")


LAYOUTS = {
    "one": ([(1 << 20, 2, 0, -1)], [5, 3], (1 << 20, 2, 1, [3, 5])),
    "progressive": (
        [(1 << 16, 1, 0, 1 << 20), (1 << 20, 4, 1 << 20, 1 << 30), (1 << 22, 3, 1 << 30, -1)],
        [9, 1, 2, 3, 9, 8, 7, 700],
        (1 << 22, 3, 3, [1, 2, 3, 7, 8, 9, 700]),
    ),
    "end without objects": (
        [(1 << 16, 1, 0, 1 << 20), (1 << 20, 2, 1 << 20, 1 << 30), (1 << 22, 0, 1 << 30, -1)],
        [9, 4, 5],
        (1 << 20, 2, 3, [4, 5, 9]),
    ),
    "unused components": ([(1 << 20, 1, 0, -1), (-1, 0, 0, 0)], [6, 0, 0], (1 << 20, 1, 1, [6])),
    "no objects": ([(1 << 20, 2, 0, -1)], [-1, -1], (1 << 20, 2, 1, [])),
    "none": ([], [], (None, None, 0, [])),
    "wide": ([(1 << 20, 2000, 0, -1)], list(range(5000, 3000, -1)), (1 << 20, 2000, 1, list(range(3001, 5001)))),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_version_2(name: str, tmp_path: pathlib.Path) -> None:
    components, osts, wanted = LAYOUTS[name]
    modules = {"POSIX": (4, posix(1, -1, {OPENS: 4})), "LUSTRE": (2, lustre2(1, components, osts))}
    outcome, _, (row,) = run(tmp_path, make_log(Job(), {1: "/scratch/a"}, modules))
    assert outcome.status == "whole", outcome.reason
    assert (row["stripe_size"], row["stripe_count"], row["components"], row["osts"]) == wanted
    assert row["stripe_offset"] is None


def test_layout_of_version_1_has_an_offset(tmp_path: pathlib.Path) -> None:
    records = lustre1(1, 17, 1 << 20, [17, 18], 0) + lustre1(1, 17, 1 << 20, [17, 18], 1) + lustre1(2, -1, 4096, [3])
    modules = {"POSIX": (3, b""), "LUSTRE": (1, records)}
    outcome, (job,), (first, second) = run(tmp_path, make_log(Job(), {1: "/a", 2: "/b"}, modules, version="3.10"))
    assert outcome.status == "whole", outcome.reason
    assert (first["stripe_offset"], first["stripe_count"], first["osts"]) == (17, 2, [17, 18])
    assert (second["stripe_offset"], second["stripe_size"], second["osts"]) == (None, 4096, [3])
    assert (first["ranks"], first["opens"], job["uses_lustre"], job["files"]) == (None, None, True, 0)


def test_modules_that_darshan_left_incomplete(tmp_path: pathlib.Path) -> None:
    modules = {"POSIX": (4, posix(1, -1, {OPENS: 4})), "HEATMAP": (1, b"\0" * 64)}
    outcome, (job,), (row,) = run(tmp_path, make_log(Job(), {1: "/a"}, modules, partial=["POSIX"]))
    assert outcome.status == "partial"
    assert (job["partial"], job["modules"], row["opens"]) == (True, ["POSIX", "HEATMAP"], 4)
    assert "POSIX is incomplete: Darshan ran out of memory" in outcome.reason


def test_of_a_module_without_a_name_nothing_is_claimed(tmp_path: pathlib.Path) -> None:
    """A newer release's, or a damaged header's: what its flag would mean is not known."""
    log = Log.parse(make_log(Job(), {1: "/a"}, {"POSIX": (4, posix(1, -1, {OPENS: 4})), 53: (1, b"what is no module")}))
    for log.partial in (0, 1 << 53) * 20:
        outcome, (job,), _ = run(tmp_path, log.pack())
        assert (outcome.reason, job["partial"], job["modules"]) == ("", False, ["POSIX", "module 53"])


@pytest.mark.parametrize("module", ["POSIX", "STDIO", "MPI-IO", "LUSTRE"])
def test_a_module_newer_than_the_reader(module: str, tmp_path: pathlib.Path) -> None:
    """It is left out with a reason; the other modules stay, and without POSIX what is added up over both is absent."""
    modules = {
        "POSIX": (4, posix(1, 0, {OPENS: 1, BYTES_WRITTEN: 5, SEQ_READS: 2})),
        "STDIO": (2, stdio(1, 0, 7)),
        "MPI-IO": (3, mpiio(1, 0, 1, 9)),
        "LUSTRE": (2, lustre2(1, [(1 << 20, 1, 0, -1)], [4])),
    }
    whole = run(tmp_path, make_log(Job(), {1: "/a"}, modules))
    modules[module] = (99, modules[module][1])
    outcome, (job,), (row,) = run(tmp_path, make_log(Job(), {1: "/a"}, modules))
    assert (whole[0].status, outcome.status, job["partial"]) == ("whole", "partial", True)
    assert outcome.reason.startswith(f"{module} left out: ")
    added = {"POSIX": None, "STDIO": 5}.get(module, 12)
    assert (row["bytes_written"], job["bytes_written"]) == (added, added)
    assert row["mpiio_coll_writes"] == (None if module == "MPI-IO" else 9)
    assert row["osts"] == (None if module == "LUSTRE" else [4])
    assert set(job["modules"]) == set(modules)
    assert outcome.log_id == whole[0].log_id


@pytest.mark.parametrize(("version", "lustre"), [("3.10", 1), ("3.41", 1), ("3.41", 2)])
def test_the_other_byte_order(version: str, lustre: int, tmp_path: pathlib.Path) -> None:
    """Logs of Blue Gene are big-endian; they give the same rows."""
    osts = [3, 700]
    layout = lustre1(1, 3, 1 << 20, osts) if lustre == 1 else lustre2(1, [(1 << 20, 2, 0, -1)], osts)
    record = posix(1, 0, {OPENS: 1, BYTES_READ: 1 << 40, SEQ_READS: 6}, {READ_START: 1.5, READ_TIME: 3.0})
    modules = {"POSIX": (4, record), "LUSTRE": (lustre, layout), "MPI-IO": (3, mpiio(1, -1, 4, 12))}
    swapped = {name: (number, words_swapped(data)) for name, (number, data) in modules.items()}
    job = Job(start_ns=5 * (version == "3.41"))
    little = run(tmp_path, make_log(job, {1: "/scratch/a"}, modules, version))
    big = run(tmp_path, make_log(job, {1: "/scratch/a"}, swapped, version, order=">"))
    assert little == big
    assert (big[0].status, big[2][0]["osts"], big[2][0]["bytes_read"]) == ("whole", osts, 1 << 40)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_versions_of_posix(version: int, tmp_path: pathlib.Path) -> None:
    """What the columns take has been in every version, at other places."""
    counters = {OPENS: 1, READS: 2, WRITES: 3, BYTES_READ: 4, BYTES_WRITTEN: 5, SEQ_READS: 6, FILE_ALIGNMENT: 7}
    record = posix(1, 0, counters, {READ_START: 1.0, WRITE_END: 2.0, READ_TIME: 3.0})
    data = make_log(Job(start=100), {1: "/a"}, {"POSIX": (version, posix_of_version(version, record))}, version="3.10")
    outcome, _, (row,) = run(tmp_path, data)
    assert outcome.status == "whole", outcome.reason
    assert [row[name] for name in ("opens", "reads", "writes", "bytes_read", "bytes_written", "seq_reads")] == [
        *range(1, 7)
    ]
    assert (row["alignment"], row["read_start"], row["write_end"], row["read_time"]) == (7, 101.0, 102.0, 3.0)


@pytest.mark.parametrize("order", ["<", ">"])
def test_versions_of_stdio_and_mpiio(order: str, tmp_path: pathlib.Path) -> None:
    """Version 1 of STDIO has no FDOPENS; of MPI-IO, versions 1 and 2 have two times fewer, behind what is joined."""
    old_stdio, old_mpiio = stdio(1, 2, 11, writes=3), mpiio(1, 2, 4, 10, split=2)
    records = (old_stdio[:24] + old_stdio[32:], old_mpiio[:-16])
    if order == ">":
        records = tuple(map(words_swapped, records))
    for version in (1, 2):
        modules = {"STDIO": (1, records[0]), "MPI-IO": (version, records[1])}
        _, _, (row,) = run(tmp_path, make_log(Job(), {1: "/a"}, modules, version="3.10", order=order))
        assert [row[name] for name in ("bytes_written", "writes", "opens")] == [11, 3, 1]
        assert (row["mpiio_coll_writes"], row["ranks"], row["root_bytes_written"]) == (12, 1, 0)


def test_the_names_of_counters_are_those_of_darshans_library() -> None:
    for module, names in darshanfile.COUNTERS.items():
        prefix = module.replace("-", "")
        found = [[f"{prefix}_{name}" for name in names[0]], [f"{prefix}_F_{name}" for name in names[1]]]
        assert found == [list(each) for each in counter_names(module)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_names_of_the_first_format(order: str, tmp_path: pathlib.Path) -> None:
    """Format 3.00 has the length of a name before it, and no NUL behind it."""
    log = Log.parse(make_log(Job(), {}, {"POSIX": (4, posix(1, 0, {OPENS: 1}) + posix(2, 0, {}))}, version="3.00"))
    names = [(1, b"/scratch/a"), (2, b"/b"), (1, b"/other")]
    log.names = zlib.compress(b"".join(struct.pack(f"{order}QI", key, len(name)) + name for key, name in names))
    if order == ">":
        version, records = log.modules[1]
        log.modules[1] = version, zlib.compress(words_swapped(zlib.decompress(records)))
        log.job = pack_job(Job(), new=False, order=order)
    outcome, _, rows = run(tmp_path, log.pack(order=order))
    assert (outcome.reason, [row["file"] for row in rows]) == ("", ["/scratch/a", "/b"])


def test_sums_end_at_the_highest_number(tmp_path: pathlib.Path) -> None:
    records = [posix(1, rank, {OPENS: 1, BYTES_READ: 1 << 62, READS: 1 << 40}) for rank in range(4)]
    _, (job,), (row,) = run(tmp_path, make_log(Job(), {1: "/a"}, {"POSIX": (4, b"".join(records))}))
    assert (row["bytes_read"], row["reads"], job["bytes_read"]) == ((1 << 63) - 1, 4 << 40, (1 << 63) - 1)


def test_a_log_that_needs_more_memory_than_may_be(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "10000")
    data = [posix(key, 0, {OPENS: 1}) for key in range(20)]
    names = dict.fromkeys(range(20), "/a")
    outcome, jobs, _ = run(tmp_path, make_log(Job(), names, {"POSIX": (4, b"".join(data))}))
    assert (outcome.status, outcome.reason, jobs) == ("skipped", f"a part of it has {limits.limit_text(10_000)}", [])
    assert run(tmp_path, make_log(Job(), names, {"POSIX": (4, data[0])}))[0].status == "whole"


def test_a_file_system_that_fails(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(darshanfile.DarshanFile, "whole", fails)
    outcome, _, _ = run(tmp_path, make_log(Job(), {1: "/a"}, {"POSIX": (4, posix(1, 0, {OPENS: 1}))}))
    assert (outcome.status, outcome.reason) == ("skipped", "cannot be read: Input/output error")


@pytest.mark.parametrize("how", [1, 2])
def test_other_compressions(how: int, tmp_path: pathlib.Path) -> None:
    """Darshan's tools can write logs compressed by bzip2; the format has logs that are not compressed."""
    log = Log.parse(make_log(Job(), {1: "/scratch/a"}, {"POSIX": (4, posix(1, 0, {OPENS: 1, BYTES_READ: 9}))}))
    wanted = run(tmp_path, log.pack())
    assert run(tmp_path, log.pack(how=how)) == wanted
    assert wanted[2][0]["bytes_read"] == 9


def test_what_bzip2_makes_comes_in_pieces(tmp_path: pathlib.Path) -> None:
    """A few bytes of bzip2 are hundreds of megabytes: no piece is larger than one of zlib may be."""
    records = posix(1, 0, {OPENS: 1}) * 200_000
    log = Log.parse(make_log(Job(), {1: "/a"}, {"POSIX": (4, records)}))
    path = tmp_path / "a.darshan"
    path.write_bytes(log.pack(how=1))
    read = darshanfile.DarshanFile(path)
    pieces = [len(piece) for piece in read._pieces(read.modules["POSIX"], "POSIX")]
    assert sum(pieces) == len(records) and max(pieces) <= darshanfile.PIECE
    assert read.whole("POSIX") == records
    log.modules[1] = (4, zlib.compress(posix(1, 0, {OPENS: 1})))
    path.write_bytes(log.pack(how=1) + bytes(100))
    assert len(darshanfile.DarshanFile(path).whole("POSIX")) == len(records) // 200_000


def test_a_name_of_a_million_folders(tmp_path: pathlib.Path) -> None:
    """It is looked up among the mount points at once; trying each of its folders took hours."""
    names = {1: "/scratch" + "/" * 1_000_000, 2: "/scratch/a", 3: "/scratch", 4: "/scratches" + "/x" * 3000}
    records = b"".join(posix(key, 0, {OPENS: 1}) for key in names)
    _, _, rows = run(tmp_path, make_log(Job(), names, {"POSIX": (4, records)}))
    assert [row["mount"] for row in rows] == ["/scratch", "/scratch", "/scratch", "/"]


def test_records_of_another_version_than_the_header_says(tmp_path: pathlib.Path) -> None:
    """The header has no checksum; bytes behind the last record say that they are no records of that version."""
    records = b"".join(posix(key, 0, {OPENS: 1, BYTES_READ: 7}) for key in range(10))
    for version, data in ((3, records), (4, records + bytes(100))):
        outcome, (job,), rows = run(tmp_path, make_log(Job(), {1: "/a"}, {"POSIX": (version, data)}))
        assert (outcome.status, outcome.reason) == ("partial", "POSIX left out: its bytes are cut off or damaged")
        assert (job["bytes_read"], rows) == (None, [])


def test_memory_that_ends_when_logs_are_joined(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    joined = darshan._joined

    def fails(logs: Sequence[Any]) -> Any:
        if logs:
            raise MemoryError
        return joined(logs)

    monkeypatch.setattr(darshan, "_joined", fails)
    outcome, jobs, rows = run(tmp_path, make_log(Job(), {1: "/a"}, {"POSIX": (4, posix(1, 0, {OPENS: 1}))}))
    assert (outcome.status, outcome.reason) == ("skipped", "needs more memory than there is")
    assert (jobs, rows) == ([], [])


def test_records_with_calls_of_stdio_are_left_out(tmp_path: pathlib.Path) -> None:
    """Of Darshan 3.0, records with STDIO calls among those of POSIX: they are missing, and the outcome says so."""
    records = [posix_of_version(1, posix(key, 0, {OPENS: 1}), fopens=int(key % 3 == 0)) for key in range(1, 101)]
    outcome, (job,), rows = run(tmp_path, make_log(Job(), {}, {"POSIX": (1, b"".join(records))}, version="3.10"))
    assert (outcome.status, job["partial"], len(rows)) == ("partial", True, 67)
    assert outcome.reason.startswith("33 records of POSIX left out")


def test_names_are_bytes(tmp_path: pathlib.Path) -> None:
    names = {1: "/scratch/\udcff\udcc3(", 2: "/scratch/größe", 3: "<STDIN>"}
    records = b"".join(posix(key, 0, {OPENS: 1}) for key in (1, 2, 3, 4))
    _, _, rows = run(tmp_path, make_log(Job(), names, {"POSIX": (4, records)}))
    assert [row["file"] for row in rows] == ["/scratch/\ufffd\ufffd(", "/scratch/größe", "<STDIN>", None]
    assert [row["mount"] for row in rows] == ["/scratch", "/scratch", None, None]


def test_ids_of_logs(tmp_path: pathlib.Path) -> None:
    """The same log has the same ID in any folder; another job, start or file name has another."""
    data = make_log(Job(), {}, {})
    jobs = (Job(job_id=43), Job(start=1_700_000_001), Job(exe="b"))
    others = [make_log(job, {}, {}) for job in jobs]
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.darshan").write_bytes(data)
    (tmp_path / "b.darshan").write_bytes(data)
    (tmp_path / "sub" / "a.darshan").write_bytes(data)
    for number, other in enumerate(others):
        (tmp_path / f"sub/{number}").mkdir()
        (tmp_path / f"sub/{number}/a.darshan").write_bytes(other)
    logs = ["a.darshan", "sub/a.darshan", "b.darshan", *(f"sub/{number}/a.darshan" for number in range(len(others)))]
    ids = [outcome.log_id for outcome in convert(logs, str(tmp_path)).outcomes]
    assert ids[0] == ids[1]
    assert len(set(ids)) == len(logs) - 1
    assert min(ids) > 0


def test_rows_of_many_calls(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the records of logs are too large to be joined at once, several joins give the same."""
    names = write_small_logs(tmp_path, 40)
    whole = convert(names, str(tmp_path))
    assert [(log.status, log.log) for log in whole.outcomes] == [("whole", name) for name in names]
    monkeypatch.setattr("mpiio_ext.analytics.sources.darshan.BATCH_BYTES", 10_000)
    parts = convert(names, str(tmp_path))
    assert parts.outcomes == whole.outcomes
    assert all(parts.tables[name].equals(whole.tables[name]) for name in whole.tables)


def test_several_threads_at_once(tmp_path: pathlib.Path) -> None:
    """Calls share nothing."""
    names = write_small_logs(tmp_path, 200)
    whole = convert(names, str(tmp_path))
    parts = [names[start : start + 25] for start in range(0, 200, 25)] * 3
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda part: convert(part, str(tmp_path)), parts))
    jobs = [row for each in found[:8] for row in each.tables["darshan_job"].to_pylist()]
    assert jobs == whole.tables["darshan_job"].to_pylist()
    assert [each.outcomes for each in found[8:16]] == [each.outcomes for each in found[:8]]


def test_no_logs() -> None:
    converted = convert([], "/")
    assert not converted.outcomes
    assert {table.num_rows for table in converted.tables.values()} == {0}
