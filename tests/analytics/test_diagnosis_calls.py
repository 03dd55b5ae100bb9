"""How libraries carry calls out: read-modify-write against the program's own requests, tiny calls, late ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpiio_ext.analytics.diagnosis import Diagnosis, diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls, Row
from mpiio_ext.analytics.diagnosis.activity_counters import _add_hdf5
from mpiio_ext.analytics.diagnosis.late import Late
from mpiio_ext.analytics.sweep.paths import Direction
from support.quiet_rows import JOB, fields, file, in_mpi, small

FOUR = {"processes": 4, "ranks": 4}


def told(row: dict[str, Any], way: str = "write", activity: Activity | None = None) -> Diagnosis:
    return diagnose({**JOB, "processes": 4, "run_time": 12.0}, [row], way, activity=activity)  # type: ignore[arg-type]


def causes(found: Diagnosis) -> dict[str, str]:
    return {each.cause: each.confidence for each in found.findings}


def calls(row: dict[str, Any], mpi: float, mean: float, way: str = "write", *others: dict[str, Any]) -> Activity:
    """Return what a log says of a file, in whose MPI-IO calls the slowest and an average rank are so long."""
    return in_mpi(Activity("", 4, 12.0, calls={row["file_id"]: Calls()}), row, *others, **{way: (mean, mpi)})


WRITES = {**FOUR}
WRITES |= fields(f"bytes_written={512 << 20} mpiio_bytes_read=0 write_time=20.0 slowest_rank_time=9.0")
WRITES |= fields(f"slowest_rank_bytes={200 << 20} fastest_rank_bytes={100 << 20}")


@pytest.mark.parametrize(
    ("what", "columns"),
    [
        (
            "the program reads back by POSIX what it wrote by MPI-IO",
            {
                "bytes_read": 512 << 20,
                "read_time": 8.0,
                "read_size_1m_4m": 100,
                "mpiio_bytes_written": 512 << 20,
                "read_start": 1.6e9 + 1,
                "read_end": 1.6e9 + 9,
            },
        ),
        (
            "one rank looks at each step",
            {"bytes_read": 64 << 20, "read_time": 0.1, "read_size_1m_4m": 16, "mpiio_bytes_written": 512 << 20},
        ),
        ("a rank fills the file by POSIX before", {"bytes_read": 0, "mpiio_bytes_written": 85 << 20}),
        (
            "a rank fills it by HDF5, which looks at its header",
            {"bytes_read": 4000, "read_size_0_100": 8, "mpiio_bytes_written": 256 << 20},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_requests_of_the_program_beside_mpiio_are_no_read_modify_write(what: str, columns: dict[str, Any]) -> None:
    for way in ("write", "read"):
        found = told(file(0, 10, **{**WRITES, **columns}), way)
        assert "read_modify_write" not in causes(found) and "overwrite" not in found.text(), what


def test_requests_that_take_far_longer_than_mpiio_calls_are_the_programs() -> None:
    sieved = file(0, 10, **WRITES)
    sieved |= fields(f"bytes_read={256 << 20} read_time=4.0 read_size_1m_4m=64 mpiio_bytes_written={128 << 20}")
    sieved |= fields("file_id=0")
    assert causes(told(sieved, activity=calls(sieved, 9.5, 9.0)))["read_modify_write"] == "high"
    assert "read_modify_write" not in causes(told(sieved, activity=calls(sieved, 1.0, 0.5)))


@pytest.mark.parametrize(("asked", "sieved"), [(0, True), (1 << 20, False)], ids=["the library", "the program"])
def test_reads_of_no_bytes_inside_of_collective_writes(asked: int, sieved: bool) -> None:
    """An aggregator reads 0 B behind the end of the file before each of its 40 writes, for 4.9 s of 7.5 s."""
    row = file(0, 10, **FOUR, file_id=0, reads=40, writes=40, read_size_0_100=40, write_size_1m_4m=40)
    row |= fields(
        "bytes_read=0 read_time=4.9 write_time=0.1 slowest_rank_time=5.0 bytes_written=41899200 seq_writes=39"
    )
    row |= fields("slowest_rank_bytes=41899200 mpiio_bytes_written=30720000 mpiio_coll_writes=160 consec_writes=0")
    row |= {"read_start": row["write_start"], "read_end": row["write_end"], "mpiio_bytes_read": asked}
    found = [told(row, way, calls(row, 7.5, 7.4)) for way in ("write", "read")]
    assert [causes(one).get("read_modify_write") == "high" for one in found] == [sieved, sieved]
    assert all("small_requests" not in causes(one) and "exchange" not in causes(one) for one in found)
    assert "For at least 32 % of the time in collective calls no rank is in a POSIX write" in found[0].text()
    assert not sieved or found[0].findings[0].time == pytest.approx(4.93, abs=0.01)


def test_tiny_pieces_by_posix() -> None:
    """100,000 writes of 200 B a rank, one behind the other, take the time; few of them, or larger ones, do not."""
    tiny = {**small(), **FOUR}
    tiny |= fields("write_size_1k_10k=0 write_size_100_1k=400_000 consec_writes=399_996 bytes_written=80_000_000")
    tiny |= fields("slowest_rank_time=9.0 write_time=36.0 max_offset_written=79_999_999 mpiio_coll_writes=None")
    tiny |= fields("mpiio_indep_writes=None")
    found = told(file(0, 10, **tiny))
    assert causes(found)["small_requests"] == "high"
    assert found.conclusion.startswith("Tiny pieces are written by read and write, 200 B a call: each call is a")
    assert not any("can merge such requests" in note for note in found.notes)
    few = {**tiny, "write_size_100_1k": 30_000, "consec_writes": 29_996, "bytes_written": 6_000_000}
    assert "small_requests" not in causes(told(file(0, 10, **{**few, "write_time": 0.4, "slowest_rank_time": 0.1})))
    quick = {**tiny, "write_time": 0.4, "slowest_rank_time": 0.1}
    assert "small_requests" not in causes(told(file(0, 10, **quick)))


def test_tiny_pieces_among_large_ones_are_only_possible() -> None:
    """90,000 headers of 64 B beside 120 pieces of 4 MiB: what of the time they take is not in the log."""
    mixed = {**small(), **FOUR}
    mixed |= fields("write_size_1k_10k=0 write_size_0_100=90_000 write_size_4m_10m=120 consec_writes=89_800")
    mixed |= fields("bytes_written=509_000_000 slowest_rank_time=9.0 write_time=12.0 mpiio_coll_writes=None")
    mixed |= fields("mpiio_indep_writes=None")
    found = told(file(0, 10, **mixed))
    assert causes(found)["small_requests"] == "medium" and "most of 1 KiB or less a call" in found.conclusion


@pytest.mark.parametrize(("each", "cause"), [(2e-3, "medium"), (2e-5, None)])
def test_small_requests_that_each_wait_for_the_storage(each: float, cause: str | None) -> None:
    waits = {**small(), **FOUR}
    waits |= fields(f"slowest_rank_bytes={250 << 14} fastest_rank_bytes={250 << 14} bytes_written={1000 << 14}")
    waits |= fields(f"write_size_10k_100k=1000 write_size_1k_10k=0 consec_writes=999 write_time={1000 * each}")
    waits |= fields(f"slowest_rank_time={260 * each} mpiio_coll_writes=None mpiio_indep_writes=None")
    found = told(file(0, 0.6, **waits))
    assert causes(found).get("small_requests") == cause
    assert ("Each small write waits for the storage: 2 ms for 16.4 kB" in found.conclusion) == bool(cause)


TINY = {**small(), **FOUR}
TINY |= fields("write_size_1k_10k=0 write_size_100_1k=24_000 bytes_written=12_288_000 mpiio_bytes_written=12_288_000")
TINY |= fields("mpiio_coll_writes=24_000 write_time=0.2 slowest_rank_time=0.1 slowest_rank_bytes=3_072_000")
TINY |= fields("fastest_rank_bytes=3_072_000 file_id=0")


def test_tiny_collective_calls() -> None:
    """6,000 calls of 2 kB of all ranks: requests take 0.1 s of 10 s, the calls all."""
    found = told(file(0, 10, **TINY), activity=calls(file(0, 10, **TINY), 9.9, 9.8))
    assert next(iter(causes(found).items())) == ("small_requests", "high")
    assert "Collective calls have few bytes, 2.05 kB of all ranks together" in found.conclusion
    assert "exchange" not in causes(found)
    assert "small_requests" not in causes(told(file(0, 10, **TINY), activity=calls(file(0, 10, **TINY), 1.0, 0.9)))
    some = {**TINY, "mpiio_coll_writes": 4 * 500, "write_time": 0.2}  # so few may wait for a rank that comes late
    assert (
        causes(told(file(0, 10, **some), activity=calls(file(0, 10, **some), 9.9, 9.8)))["small_requests"] == "medium"
    )


def test_one_aggregator_is_enough_for_tiny_calls() -> None:
    one = {**TINY}
    one |= fields("write_size_100_1k=0 write_size_1k_10k=10_000 mpiio_coll_writes=40_000 bytes_written=20_480_000")
    one |= fields("mpiio_bytes_written=20_480_000 slowest_rank_bytes=20_480_000 fastest_rank_bytes=0")
    one |= fields("slowest_rank_time=5.0 write_time=5.0")
    assert set(causes(told(file(0, 10, **one), activity=calls(file(0, 10, **one), 9.9, 9.8)))) == {"small_requests"}


@pytest.mark.parametrize(
    ("requests", "headers", "found"),
    [(288, 8, True), (288, 280, False), (12, 8, False)],
    ids=["of the collective calls", "of the independent calls", "few"],
)
def test_small_rounds_beside_headers(requests: int, headers: int, found: bool) -> None:
    """HDF5 makes two collective calls of six ranks: three aggregators have buffers of 64 KiB. It writes its headers."""
    row = file(0, 3.4)
    row |= fields(
        f"ranks=6 processes=6 file_id=0 writes={requests + 8} write_size_1m_4m=0 write_size_10k_100k={requests} "
        f"write_size_0_100=8 consec_writes={requests - 6} seq_writes={requests} bytes_written={requests << 16} "
        f"write_time=5.3 slowest_rank_time=1.8 slowest_rank_bytes={requests // 3 << 16} fastest_rank_bytes=100 "
        f"mpiio_coll_writes=12 mpiio_indep_writes={headers} mpiio_bytes_written={requests << 16} mpiio_bytes_read=0"
    )
    seen = calls(row, 3.2, 3.2)
    seen.calls[0].sizes[True] = np.array([headers, 0, 0, 0, 0, 12, 0, 0, 0, 0.0])
    seen.common["POSIX"] = {1 << 16: requests, 96: 8}
    told = diagnose({**JOB, "processes": 6, "run_time": 3.5}, [row], "write", activity=seen)
    words = "in small rounds: a call of all ranks together has 9.44 MB, and becomes requests of 65,536 B"
    assert (causes(told).get("small_requests") == "high" and words in told.conclusion) == found
    assert found or "rounds" not in told.text()


def test_of_files_that_a_log_has_lost_nobody_says_that_they_take_little() -> None:
    """Darshan keeps records of 1,024 files of a rank; a metadata storm has more."""
    little = file(0, 0.1, **{**FOUR, "bytes_written": 1 << 20, "write_time": 0.05})
    assert told(little).conclusion.endswith("of the run time (100 ms), too little to be worth tuning.")
    found = told(little, activity=Activity("", 4, 12.0, full=True))
    assert found.conclusion.startswith("No cause is reported, since by the records that are left, the critical time")
    assert "worth tuning" not in found.conclusion


def test_shared_file_pointer() -> None:
    names = ("/scratch/.ws.shfp.4131.416511540", "/scratch/ws-4131-1.lockedfile", "/scratch/ws-416511540-4131.lock")
    pointer = {
        **small("read"),
        **FOUR,
        "reads": 6000,
        "read_size_0_100": 6000,
        "read_size_1k_10k": 0,
        "write_size_0_100": 6000,
        "bytes_read": 48_000,
        "bytes_written": 48_000,
        "read_time": 1.0,
        "write_time": 1.0,
        "write_start": 1.6e9,
        "write_end": 1.6e9 + 10,
        "file_id": 1,
        **{f"mpiio_{kind}_{way}s": None for kind in ("coll", "indep") for way in ("read", "write")},
    }
    data = file(0, 10, **{**small(), **FOUR})
    data |= fields("mpiio_coll_writes=0 mpiio_indep_writes=6000 file_id=0 write_size_1k_10k=6000")
    data |= fields(f"bytes_written={24 << 20} write_time=0.2")
    job = {**JOB, "processes": 4, "run_time": 12.0}
    for name in (*names, "/scratch/ws.index", "/scratch/ws.lock"):
        rows = [data, file(0, 10, "read", **{**pointer, "file": name})]
        found = diagnose(job, rows, "write", activity=calls(data, 8.0, 7.5, "write", rows[1]))
        assert (causes(found).get("shared_pointer") == "high") == (name in names)


def test_the_sentence_on_a_shared_pointer_names_what_the_program_does() -> None:
    """The program reads `tasks.in`; the MPI library rewrites the file with the pointer, for longer."""
    none: dict[str, Any] = {f"mpiio_{kind}_{way}s": None for kind in ("coll", "indep") for way in ("read", "write")}
    eight = {f"{way}{rest}": value for way in ("read", "write") for rest, value in (("s", 720), ("_size_0_100", 720))}
    pointer = {**file(0, 10), **file(0, 10, "read"), **FOUR, **none, **eight, "bytes_read": 5760, "bytes_written": 5760}
    pointer |= {"file": "/scratch/.tasks.in.shfp.4131.416511540", "write_size_1m_4m": 0, "read_size_1m_4m": 0}
    data = file(0, 9, "read", **FOUR, file_id=0, file="/scratch/tasks.in", bytes_read=36 << 20, reads=360)
    data |= {"mpiio_coll_reads": 0, "mpiio_indep_reads": 360, "mpiio_coll_writes": 0, "mpiio_indep_writes": 0}
    job = {**JOB, "processes": 4, "run_time": 12.0}
    ways: tuple[Direction, ...] = ("read", "write")
    for way in ways:
        found = diagnose(job, [data, pointer], way, activity=calls(data, 8.0, 7.5, "read", pointer))
        one = next(each for each in found.to_dict()["findings"] if each["cause"] == "shared_pointer")
        assert "(MPI_File_read_shared)" in one["title"] and "MPI_File_read_at_all" in one["advice"][0]["text"]
        assert one["what"].startswith("reads from `tasks.in` by the shared file pointer, for which ranks")


@pytest.mark.parametrize(("mpi", "cause"), [(9.0, True), (1.0, False)])
def test_reads_of_more_than_was_asked_for(mpi: float, cause: bool) -> None:
    """16 times as much, within the MPI-IO calls; requests outside of these are the program's."""
    row = file(0, 10, "read", **FOUR)
    row |= fields(f"bytes_read={3200 << 20} mpiio_bytes_read={200 << 20} read_time=32.0 mpiio_coll_reads=0")
    row |= fields("mpiio_indep_reads=192 file_id=0 slowest_rank_time=8.5")
    found = told(row, "read", calls(row, mpi, mpi, "read"))
    assert (causes(found).get("read_amplification") == "high") == cause
    assert ("The MPI library reads 16 times what the program asks for" in found.conclusion) == cause
    less = told({**row, "mpiio_bytes_read": 3000 << 20}, "read", calls(row, mpi, mpi, "read"))
    assert "read_amplification" not in causes(less)
    for start, apart in ((-2, True), (1, False)):  # rank 0 has filled the file before; or it is filled meanwhile
        filled = {"bytes_written": 3200 << 20, "write_time": 12.0, "slowest_rank_time": 20.0, "slowest_rank": 0}
        times = {"write_start": row["read_start"] + start, "write_end": row["read_start"] + start + 1}
        found = told({**row, **filled, **times}, "read", calls({**row, **filled}, mpi, mpi, "read"))
        assert (causes(found).get("read_amplification") == "high") == (cause and apart)


def test_collective_calls_that_exchange_or_wait() -> None:
    """An average rank is in the calls for 9 s, and all ranks together are in requests for 2 s: 7 s are neither."""
    row = file(0, 10, **FOUR)
    row |= fields(f"write_time=2.0 file_id=0 slowest_rank_bytes={25 << 20} fastest_rank_bytes={25 << 20}")
    row |= fields("slowest_rank_time=0.6")
    found = told(row, activity=calls(row, 9.5, 9.0))
    assert causes(found)["exchange"] == "medium"
    assert not any("collective calls" in note for note in found.notes), "the finding has this time"
    assert "exchange" not in causes(told(row, activity=calls(row, 4.0, 3.0)))
    beside = in_mpi(Activity("", 4, 12.0), row, read=(9.0, 9.0), write=(9.0, 9.5))  # reads, most of them in requests
    assert "exchange" not in causes(told(row, activity=beside))


def test_waiting_in_collective_calls_is_time_for_io() -> None:
    """The storage needs 40 ms of 9.9 s in the calls, in which all ranks are for as long: one aggregator, or four."""
    for moved in (512 << 20, 128 << 20):
        row = file(0, 0.04, **FOUR)
        row |= fields(f"write_time=0.04 file_id=0 slowest_rank_time=0.04 slowest_rank_bytes={moved}")
        row |= fields(f"bytes_written={512 << 20}")
        found = told(row, activity=calls(row, 9.9, 9.75))
        assert causes(found)["exchange"] == "medium" and not found.trivial and not found.not_low
        assert found.findings[0].time == pytest.approx(9.7, abs=0.1)
        assert not any("no file is" in note or "no I/O" in note for note in found.notes)
    assert told(row, activity=calls(row, 0.05, 0.05)).trivial


@pytest.mark.parametrize(
    ("apart", "lost"), [((0.4, 2.8, 3.7), 1.7 * 4 / 3), ((0.4, 1.2, 3.7), 0.0), ((2.6, 2.8, 3.0), 0.0)]
)
def test_a_late_rank_by_counters(apart: tuple[float, float, float], lost: float) -> None:
    """A rank that waits for nobody is late; of one that stays longer than all others, an aggregator, none is."""
    row = file(0, 3.2, **FOUR)
    row |= fields(f"write_time=1.0 file_id=0 slowest_rank_time=1.0 mpiio_indep_writes=0 slowest_rank_bytes={96 << 20}")
    row |= fields(f"bytes_written={96 << 20}")
    activity = calls(row, 3.6, 2.7)
    activity.calls[0].apart, activity.calls[0].first, activity.calls[0].alike = apart, 1, True
    found = {each.cause: each for each in told(row, activity=activity).findings}
    assert found["few_aggregators"].time == pytest.approx(3.2 - lost)
    assert ("late_rank" in found) == (lost > 0)
    if lost:
        sure = found["late_rank"].confidence, found["few_aggregators"].confidence
        assert sure == ("medium", "medium") and "rank 1" in found["late_rank"].title
        activity.calls[0].alike = False
        assert "late_rank" not in causes(told(row, activity=activity))


def test_who_comes_late() -> None:
    """Of four ranks one computes for 1 s before each call, and another, an aggregator, leaves each call later."""
    late, opened, turns, aggregator = Late(), Late(0.0), Late(0.0), Late()
    step = np.arange(10) * 1.5
    for rank in range(4):
        begin = step + (1.0 if rank == 2 else 0.0)
        late.add(begin, step + 1.5, rank)
        opened.add(begin, step + 1.5, rank)
        turns.add(step + (np.arange(10) % 4 == rank), step + 1.5, rank)
        aggregator.add(step + (1.0 if rank == 1 else 0.1), step + (2.4 if rank == 1 else 1.55), rank)
    assert late.lost(4) == (pytest.approx(9), 2, 1)  # the pause before the first call is not known
    assert opened.lost(4) == (pytest.approx(10), 2, 1)
    assert turns.lost(4) == (pytest.approx(10), 0, pytest.approx(0.3))
    assert aggregator.lost(4)[0] < 0.5
    assert late.lost(8) == (0.0, -1, 0)  # not all ranks make the calls
    late.add(step[:5], step[:5] + 1, 4)
    assert late.lost(4) == (0.0, -1, 0)  # nor as many


@pytest.mark.parametrize(
    ("over", "back", "words", "sentence"),
    [
        (
            4,
            4,
            "Ranks read the same data, each for itself",
            "reads of the same data of `out.0` by all ranks, each for itself",
        ),
        (
            3,
            4,
            "Ranks read the same data, each for itself",
            "reads of the same data of `out.0` by several ranks, each for itself",
        ),
        (
            4,
            16,
            "Several ranks read the same data, or one rank reads the same data again",
            "by several ranks, or by one rank again",
        ),
        (10, 40, "Ranks read the same data again and again", "reads of the same data of `out.0` again and again"),
    ],
)
def test_data_that_are_read_more_often_than_there_are_ranks(over: int, back: int, words: str, sentence: str) -> None:
    """Four ranks that each read their part four times, or ten times, do not read the same: they jump back each time."""
    extent = 64 << 20
    row = file(0, 10, "read", **FOUR)
    row |= fields(
        f"bytes_read={over * extent} max_offset_read={extent - 1} slowest_rank_bytes={over * extent // 4} "
        f"fastest_rank_bytes={over * extent // 4} slowest_rank_time=9.0 read_time=36.0 mpiio_coll_reads=None "
        f"mpiio_indep_reads=None read_size_1m_4m={over * 64} consec_reads={over * 64 - back - 10} "
        f"seq_reads={over * 64 - back}"
    )
    found = told(row, "read")
    assert words in found.conclusion
    assert found.to_dict()["findings"][0]["what"].endswith(sentence)


@pytest.mark.parametrize(
    ("data", "chunk", "cause"),
    [(2 << 20, 2 << 20, True), (64 << 20, 2 << 20, False), (2 << 20, 0, False)],
    ids=["parts of a chunk", "all of it again", "no chunks"],
)
@pytest.mark.parametrize("way", ["read", "write"])
def test_chunks_that_no_cache_has_room_for(way: Any, data: int, chunk: int, cause: bool) -> None:
    """32 parts of a chunk of 2 MiB are written, or read: each time HDF5 reads all of it, and writes it if changed."""
    row = {**file(0, 10), **file(0, 10, "read"), "processes": 1, "file_id": 0, "file": "/d/tile.h5"}
    for one, done in (("read", "read"), ("write", "written"))[: 2 if way == "write" else 1]:
        row |= {f"bytes_{done}": 64 << 20, f"max_offset_{done}": (2 << 20) + 4095, f"{one}s": 32, f"{one}_time": 4.5}
        row |= {f"consec_{one}s": 0, f"seq_{one}s": 1, f"{one}_size_1m_4m": 32}
        row |= {f"mpiio_coll_{one}s": None, f"mpiio_indep_{one}s": None}
    row |= {} if way == "write" else {"bytes_written": 0, "writes": 0, "write_size_1m_4m": 0}
    own = Calls(by_hdf5=1, datasets={way == "write": float(data), way != "write": 0.0}, chunk=float(chunk), switches=62)
    found = told(row, way, Activity("", 1, 12.0, calls={0: own}))
    one = next(each for each in found.to_dict()["findings"] if each["cause"] == f"redundant_{way}s")
    both = "reads and writes" if way == "write" else "reads"
    words = f"HDF5 {both} whole chunks again and again, "
    assert (one["title"].startswith(words) and one["confidence"] == "high") == cause
    assert ("H5Pset_chunk_cache" in str(one)) == cause
    words = f"{both} of `tile.h5` by whole chunks, again and again, to access parts of chunks"
    assert (words in one["what"]) == cause


def test_chunks_that_each_rank_reads_once() -> None:
    """8 ranks read their columns of each chunk: each moves the 8 MiB of the file once, and no cache of one helps."""
    row = file(0, 10, "read", ranks=8, processes=8, file_id=0, reads=32, read_size_1m_4m=32, bytes_read=64 << 20)
    row |= {"max_offset_read": (8 << 20) - 1, "read_time": 36.0, "slowest_rank_time": 4.5, "consec_reads": 0}
    row |= {"mpiio_coll_reads": None, "mpiio_indep_reads": None, "seq_reads": 24, "file": "/d/tile.h5"}
    own = Calls(by_hdf5=8, datasets={False: float(8 << 20), True: 0.0}, chunk=float(2 << 20))
    found = told(row, "read", Activity("", 8, 12.0, calls={0: own}))
    assert "redundant_reads" in causes(found) and "H5Pset_chunk_cache" not in str(found.to_dict()), found


@pytest.mark.parametrize(
    ("behind", "words"), [(0, "none at a higher offset than the one before"), (50, "at random places")]
)
def test_backward_is_not_random(behind: int, words: str) -> None:
    row = file(0, 10, "read", **small("read", seq_reads=behind))
    assert words in told(row, "read").conclusion


#: 4 ranks read and write 240 blocks of 1 MiB, in turn, each its own part of the file from front to back.
IN_TURN: dict[str, Any] = {**FOUR}
IN_TURN |= fields(
    f"file_id=0 bytes_read={240 << 20} bytes_written={240 << 20} reads=240 writes=240 read_size_1m_4m=240 "
    "write_size_1m_4m=240 consec_reads=236 consec_writes=236 seq_reads=239 seq_writes=239 "
    f"max_offset_read={(240 << 20) - 1} max_offset_written={(240 << 20) - 1} read_start=1.6e9 read_end={1.6e9 + 9.9} "
    f"write_start={1.6e9 + 0.1} read_time=19.0 write_time=20.0 slowest_rank_time=9.9 slowest_rank_bytes={120 << 20} "
    f"fastest_rank_bytes={120 << 20} mpiio_coll_writes=None mpiio_indep_writes=None"
)


@pytest.mark.parametrize(
    ("what", "columns", "switches", "cause"),
    [
        ("updates", {}, 476, True),
        ("as many with gaps", {"consec_reads": 0, "consec_writes": 0}, 476, True),
        ("a copy within the file", {"max_offset_written": (480 << 20) - 1}, 476, False),
        ("read back", {"read_start": 1.6e9 + 0.2, "read_end": 1.6e9 + 10}, 476, False),
        ("all is read, then written", {}, 8, False),
        ("twice as much is read", {"bytes_read": 480 << 20, "reads": 480, "read_size_1m_4m": 480}, 476, False),
        ("at random places", {"seq_reads": 120, "seq_writes": 120, "consec_reads": 0, "consec_writes": 0}, 476, False),
        ("a header", {"bytes_read": 4000, "bytes_written": 4000}, 476, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_blocks_that_are_read_before_they_are_overwritten(
    what: str, columns: dict[str, Any], switches: int, cause: bool
) -> None:
    activity = Activity("", 4, 12.0, calls={0: Calls(switches=switches)})
    for way in ("read", "write"):
        found = told(file(0, 10, **{**IN_TURN, **columns}), way, activity)
        assert (causes(found).get("read_before_write") == "high") == cause, what
        assert ("it reads 252 MB, and writes as much" in found.conclusion) == cause, what


@pytest.mark.parametrize(
    ("calls", "movers", "itself"),
    [
        (4000, 4, True),  # as many requests as calls
        (4000, 1, False),  # one rank has the bytes of all
        (40_000, 4, False),  # ten calls are one request
        (400, 4, False),  # a call is ten requests: of holes, or of a buffer
    ],
)
def test_collective_calls_that_each_rank_carries_out_by_itself(calls: int, movers: int, itself: bool) -> None:
    """Of 4 ranks that write 1,000 blocks of 8 KiB each, between one another, each makes its own requests."""
    blocks: dict[str, Any] = {**small(), **FOUR}
    blocks |= fields(
        f"bytes_written={4000 * 8192} write_size_1k_10k=4000 seq_writes=3999 max_offset_written={4000 * 8192 - 1} "
        f"slowest_rank_bytes={4000 * 8192 // movers} fastest_rank_bytes={1000 * 8192 if movers == 4 else 0} "
        f"slowest_rank_time=9.0 write_time={9.0 * movers} mpiio_coll_writes={calls} mpiio_indep_writes=0 "
        f"mpiio_bytes_written={4000 * 8192}"
    )
    found = next(each for each in told(file(0, 10, **blocks)).findings if each.cause == "small_requests")
    assert ("which each rank carries out by itself" in found.what) == itself, found.what
    assert any("Switch collective buffering on" in each.text for each in found.advice) == (
        movers == 4 and calls <= 4000
    )


@pytest.mark.parametrize(
    ("size", "way", "locks"), [(1 << 18, "write", True), (1 << 13, "write", False), (1 << 18, "read", False)]
)
def test_writes_between_those_of_other_ranks_may_wait_for_locks(size: int, way: str, locks: bool) -> None:
    """4 ranks access 1,000 blocks, each of them every fourth, by POSIX; of tiny ones the calls cost more."""
    bin_of = "100k_1m" if size > 1 << 16 else "1k_10k"
    done = "written" if way == "write" else "read"
    blocks: dict[str, Any] = {**small(way), **FOUR}
    blocks |= fields(
        f"{way}_size_1k_10k=0 {way}_size_{bin_of}=1000 bytes_{done}={1000 * size} seq_{way}s=999 "
        f"max_offset_{done}={1000 * size - 1} slowest_rank_bytes={250 * size} fastest_rank_bytes={250 * size} "
        f"slowest_rank_time=9.0 {way}_time=36.0 mpiio_coll_{way}s=None mpiio_indep_{way}s=None"
    )
    found = next(each for each in told(file(0, 10, way, **blocks), way).findings if each.cause == "small_requests")
    assert f"with {way}s of other ranks" in found.what
    assert ("may wait for file-system locks" in found.what) == locks
    assert any("a lock of the file system" in each.text for each in found.advice) == locks


@pytest.mark.parametrize(
    ("changed", "size", "cause"),
    [
        ({"fs_type": "ext4"}, 1 << 18, False),
        ({"fs_type": "lustre"}, 1 << 18, True),
        ({"fs_type": "ext4"}, 1 << 14, True),
        ({"fs_type": "ext4", "mpiio_coll_writes": 0, "mpiio_indep_writes": 1000}, 1 << 18, True),
    ],
    ids=["pieces of 256 KiB", "where ranks lock blocks", "pieces of 16 KiB", "independent calls"],
)
def test_pieces_of_collective_calls_that_the_library_does_not_gather(
    changed: dict[str, Any], size: int, cause: bool
) -> None:
    """On the file system of one node, the bytes of large pieces take the time: nothing would be faster together."""
    row = file(0, 10, **small(bytes_written=1000 * size, max_offset_written=1000 * size - 1, seq_writes=990) | FOUR)
    row |= {"write_size_1k_10k": 0, "write_size_100k_1m": 1000, "writes": 1000, "slowest_rank_time": 9.0}
    row |= {"slowest_rank_bytes": 250 * size, "fastest_rank_bytes": 250 * size, "write_time": 36.0}
    row |= {"mpiio_coll_writes": 16, "mpiio_indep_writes": 0, "mpiio_bytes_written": 1000 * size, **changed}
    assert ("small_requests" in causes(told(row))) == cause


@pytest.mark.parametrize("extent", [1000, 1350])
def test_pieces_of_collective_writes_with_gaps(extent: int) -> None:
    """Each of four aggregators writes its domain in pieces of 12 KiB; with gaps of 4 KiB these are no one request."""
    size = 12 << 10
    row = file(0, 10, **small(bytes_written=1000 * size, max_offset_written=extent * size - 1, seq_writes=996) | FOUR)
    row |= {"file": "out", "file_id": 0, "writes": 1000, "write_size_1k_10k": 0, "write_size_10k_100k": 1000}
    row |= {"slowest_rank_time": 9.0, "write_time": 36.0, "mpiio_coll_writes": 16, "mpiio_bytes_written": 1000 * size}
    every = np.full(4, 250.0)
    traced = Row(
        np.arange(4), every, every * size, every * 0.036, np.zeros(4), np.full(4, 10.0), wall=10.0, called=10.0
    )
    traced.pairs, traced.forward, traced.extent = 996, 996, float(extent * size)
    found = told(row, activity=Activity("DXT", 4, 12.0, rows={(0, True): traced}))
    one = next(each for each in found.to_dict()["findings"] if each["cause"] == "small_requests")
    assert ("whole records" in str(one["advice"])) == (extent > 1000)
    words = "12.3 kB collective writes, with gaps between them, to `out`"
    assert (one["what"] == words) == (extent > 1000)


@pytest.mark.parametrize(
    ("what", "calls", "size", "confidence"),
    [
        ("groups and attributes", {"by_hdf5": 4, "hdf5_flushes": 600}, 500, "high"),
        ("some data", {"by_hdf5": 4, "datasets": {False: 0.0, True: 2e5}}, 500, "medium"),
        ("data of datasets", {"by_hdf5": 4, "datasets": {False: 0.0, True: 7e5}}, 500, None),
        (
            "few",
            {"by_hdf5": 4, "datasets": {False: 0.0, True: 2e4}, "dataset_calls": {False: 0.0, True: 9.0}},
            500,
            "medium",
        ),
        (
            "tiny chunks",
            {"by_hdf5": 4, "datasets": {False: 0.0, True: 2e4}, "dataset_calls": {False: 0.0, True: 1200.0}},
            500,
            None,
        ),
        ("chunks, or fill values", {"by_hdf5": 4}, 1 << 16, None),
        ("no module of HDF5 in the log", {"asked_syncs": 600}, 500, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_metadata_of_hdf5(what: str, calls: dict[str, Any], size: int, confidence: str | None) -> None:
    """4 ranks write 1,400 pieces for 3 s by independent calls, and flush the file 150 times."""
    pieces: dict[str, Any] = {
        **small(),
        **FOUR,
        "bytes_written": 1400 * size,
        "mpiio_bytes_written": 1400 * size,
        "write_size_1k_10k": 0,
        "write_size_100_1k" if size < 1000 else "write_size_10k_100k": 1400,
        "seq_writes": 900,
        "slowest_rank_time": 2.0,
        "write_time": 7.0,
        "mpiio_coll_writes": 0,
        "mpiio_indep_writes": 1400,
        "file_id": 0,
    }
    row = file(0, 6, **pieces)
    found = told(row, activity=in_mpi(Activity("", 4, 12.0, calls={0: Calls(**calls)}), row, write=(2.5, 3.0)))
    assert causes(found).get("hdf5_metadata") == confidence, what
    if confidence == "high":
        (one,) = found.findings  # small requests are its effect
        assert one.time == pytest.approx(3.0) and one.title.endswith("the program flushes the file again and again.")
        text = "".join(each.text for each in one.advice)
        assert all(name in text for name in ("H5Pset_coll_metadata_write", "H5Pset_meta_block_size", "H5Fflush"))
        document = found.to_dict()["findings"][0]
        assert document["what"].endswith(
            "of HDF5's own metadata (groups, attributes, headers), flushed 150 times by each process"
        )


@pytest.mark.parametrize(
    ("calls", "longest", "cause"),
    [
        ({}, 0.1, True),
        ({}, 1.9, False),
        ({"dataset_calls": {False: 900.0}}, 0.1, False),
        ({"datasets": {False: 3.0 * (8 << 20) + 1790 * 500}}, 0.1, False),
        ({"by_hdf5": 0}, 0.1, False),
    ],
    ids=["attributes", "the large reads take the time", "small datasets", "elements of a dataset", "not by HDF5"],
)
def test_metadata_of_hdf5_beside_large_reads(calls: dict[str, Any], longest: float, cause: bool) -> None:
    """3 ranks read attributes by 1,790 requests of 500 B for 1.8 s each, and a part of 8 MiB each by one more."""
    own = {"by_hdf5": 3, "datasets": {False: 3.0 * (8 << 20)}, "dataset_calls": {False: 3.0}, **calls}
    row = file(0, 2, "read")
    row |= fields(
        "ranks=3 processes=3 file_id=0 reads=1793 read_size_100_1k=1790 read_size_1m_4m=0 read_size_4m_10m=3 "
        f"consec_reads=1200 seq_reads=1700 bytes_read={3 * (8 << 20) + 1790 * 500} "
        f"mpiio_bytes_read={3 * (8 << 20) + 1790 * 500} mpiio_coll_reads=0 mpiio_indep_reads=1793 read_time=5.7 "
        "slowest_rank_time=1.95"
    )
    seen = Activity("", 3, 12.0, calls={0: Calls(longest={False: longest}, **own)})
    found = told(row, "read", in_mpi(seen, row, read=(1.9, 1.96)))
    assert (causes(found) == {"hdf5_metadata": "medium"}) == cause
    if cause:
        (one,) = found.findings
        assert one.title.endswith("in small pieces, beside large requests for data of datasets.")
        assert one.time == pytest.approx(1.96 * 5.4 / 5.7) and "H5Pset_all_coll_metadata_ops" in one.advice[0].text


class Hdf5:
    """What `activity` reads of a log with records of HDF5: a file of two datasets, and one without."""

    def __init__(self, version: int = 2, partial: str = "") -> None:
        self.modules, self._version, self._partial = ("H5F", "H5D"), version, partial

    def knows(self, module: str) -> bool:
        return module == "H5F" or self._version == 2

    def partial(self, module: str) -> bool:
        return module == self._partial

    def counters(self, module: str) -> Any:
        if module == "H5F":
            rows = np.zeros(3, [("file", "u8"), ("rank", "i8"), ("counters", "i8", (3,))])
            rows["file"], rows["counters"] = [2**64 - 5, 7, 7], [[4, 0, 1], [1, 150, 1], [1, 150, 1]]
        else:
            rows = np.zeros(2, [("file", "u8"), ("rank", "i8"), ("counters", "i8", (95,)), ("times", "f8", (17,))])
            rows["file"], rows["counters"][:, 0], rows["counters"][:, 5:7] = [1, 2], -5, [[100, 2000], [0, 3000]]
            rows["counters"][1, 83:86] = [8, 512, 512]  # size of an element, and of a chunk
            rows["counters"][:, 2:4] = [[1, 20], [0, 30]]
        yield rows


def test_what_a_log_has_of_hdf5() -> None:
    found = Activity("", 4, 12.0)
    _add_hdf5(found, Hdf5())  # type: ignore[arg-type]
    first, second = found.calls[-5], found.calls[7]
    assert (first.by_hdf5, first.hdf5_flushes, dict(first.datasets)) == (4, 0, {False: 100.0, True: 5000.0})
    assert dict(first.dataset_calls) == {False: 1.0, True: 50.0} and (first.chunk, second.chunk) == (1 << 21, 0.0)
    assert (second.by_hdf5, second.hdf5_flushes, dict(second.datasets)) == (2, 300, {False: 0.0, True: 0.0})
    assert (first.arrays, second.arrays) == (2, 0)
    for other in (Hdf5(version=1), Hdf5(partial="H5D"), Hdf5(partial="H5F")):  # then bytes of datasets are not known
        nothing = Activity("", 4, 12.0)
        _add_hdf5(nothing, other)  # type: ignore[arg-type]
        assert nothing.calls == ({} if other.knows("H5D") is False else {-5: Calls(arrays=2)})  # at least as many


@pytest.mark.parametrize(
    ("end", "words"),
    [(20 << 20, " The ranks read 105 MB from 21 MB of the file: each byte 5 times."), (90 << 20, "")],
    ids=["again and again", "hardly"],
)
def test_random_reads_of_a_part_of_the_file_again(end: int, words: str) -> None:
    row = file(0, 10, "read", **FOUR, file_id=0, max_offset_read=end - 1, **small("read"))
    row |= fields(f"reads=25600 bytes_read={100 << 20} read_size_1k_10k=25600 seq_reads=12800 slowest_rank_time=9.5")
    row |= fields("read_time=36.0 mpiio_coll_reads=None mpiio_indep_reads=None")
    (one,) = (each for each in told(row, "read").findings if each.cause == "small_requests")
    assert one.what == "4,096 B reads at random places from `out.0`"
    assert one.title == f"{one.what}.{words}"
    assert one.advice[0].text.startswith("Keep in memory the data that a rank needs again.") == bool(words)


@pytest.mark.parametrize(
    ("datasets", "asked", "words"),
    [
        (4000, 4000.0, "to 4,000 datasets of HDF5 in `out.0`"),
        (4000, 0.0, "to at least 4,000 datasets of HDF5 in `out.0`"),
        (20, 4000.0, "to `out.0`"),
    ],
    ids=["all are known", "the log lacks some", "few datasets"],
)
def test_many_small_datasets_are_named_by_their_number(datasets: int, asked: float, words: str) -> None:
    """4,000 writes of 96 B, and 100 of 7 KiB for HDF5's own metadata, take 0.5 ms each."""
    row = file(0, 4, file_id=0, writes=4100, write_size_0_100=4000, write_size_1k_10k=100, write_size_1m_4m=0)
    row |= fields("mpiio_coll_writes=None mpiio_indep_writes=None write_time=2.05 consec_writes=4000")
    row |= {"bytes_written": 4000 * 96 + 100 * 7168}
    seen = Calls(by_hdf5=int(asked > 0), arrays=datasets, dataset_calls={False: 0.0, True: asked})
    common = {"POSIX": {96: 4000, 7168: 100}}
    found = told(row, activity=Activity("", 4, 12.0, calls={0: seen}, common=common))
    (one,) = (each for each in found.findings if each.cause == "small_requests")
    assert one.what == f"96 B writes, each of which waits for the storage, {words}"
    row |= fields("write_size_1k_10k=0 write_size_1m_4m=100")  # then the large ones may take the time
    assert "small_requests" not in causes(told(row, activity=Activity("", 4, 12.0, calls={0: seen}, common=common)))
