"""First sentences on logs of people's programs that were answered wrongly once, and what speaks against each.

A log's truth is in ``strangers/README.md`` beside the project. Each rule has a made case beside the log, in which the
same numbers have another reason.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
import pytest

import mpiio_ext
from mpiio_ext.analytics.diagnosis import diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls, Row
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.ledger.records import of_part
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.report.logs import by_job
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.common.darshanfile import COUNTERS
from support import darshan_rows
from support.quiet_rows import JOB, fields, file, in_mpi

MIB = 1 << 20


@functools.cache
def of_log(name: str) -> dict[str, dict[str, Any]]:
    """Return the diagnosis of a log in each direction."""
    path = darshan_rows.shared_data("strangers", f"{name}.darshan")
    tables = convert([path.name], str(path.parent)).tables
    told = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(path, tables)))]
    return {one["direction"]: one for one in told}


def causes(document: dict[str, Any]) -> dict[str, str]:
    """Return cause -> confidence, the first finding first; of two findings of a cause, the first."""
    return {each["cause"]: each["confidence"] for each in reversed(document["findings"])}


def made(
    rows: list[dict[str, Any]], way: Any = "write", activity: Any = None, without_mpi: bool = False, **job: Any
) -> dict[str, Any]:
    """Return the diagnosis of made rows."""
    job = {**JOB, "run_time": 20.0, **job}
    return diagnose(job, rows, way, activity=activity, without_mpi=without_mpi).to_dict()


def test_a_heatmap_that_does_not_see_dfs_tells_nothing_of_ranks() -> None:
    """16 ranks write 1 MiB each through DFS, and rank 0 prints 2 kB, which is all that HEATMAP has."""
    found = of_log("dfs-ior-16")
    assert not found["write"]["findings"] and "ank 0 writes" not in found["write"]["conclusion"]


@pytest.mark.parametrize(("seen", "cause"), [(1.0, "root_writes"), (0.5, None)])
def test_a_heatmap_speaks_for_the_bytes_that_it_has(seen: float, cause: str | None) -> None:
    """The ranks of the files are not recorded: only HEATMAP can tell that rank 0 has the bytes."""
    row = file(0, 10, processes=16, ranks=16, write_time=9.0, root_bytes_written=None, mpiio_coll_writes=None)
    heat = np.zeros(16)
    heat[0] = seen * row["bytes_written"]
    activity = Activity("HEATMAP", 16, 20.0, heat={True: heat})
    assert ("root_writes" in causes(made([row], activity=activity, processes=16))) == (cause is not None)


@pytest.mark.parametrize(("of_root", "cause"), [(90 * MIB, "root_writes"), (30 * MIB, None)])
def test_rank_0_has_no_part_of_what_is_not_recorded(of_root: int, cause: str | None) -> None:
    """Rank 0 writes a file of its own; who writes the other file, the log does not tell."""
    common = {"processes": 8, "mpiio_coll_writes": None, "mpiio_indep_writes": None}
    own = file(0, 10, bytes_written=of_root, root_bytes_written=of_root, write_time=9.0, **common)
    other = file(0.5, 10, bytes_written=100 * MIB - of_root, root_bytes_written=None, ranks=8, write_time=1.0, **common)
    assert ("root_writes" in causes(made([own, other], processes=8))) == (cause is not None)


def test_headers_do_not_outvote_the_data() -> None:
    """2,505 independent reads of 512 B, and 496 collective ones of 107 MB each: one process reads for all."""
    found = of_log("collective-one-stripe-496")["read"]
    assert found["conclusion"].startswith("Too few aggregators: 1 of 496 processes reads all the data")
    assert causes(found)["few_aggregators"] == "high" and "root_reads" not in causes(found)
    assert "lfs setstripe" in str(found) and "cb_nodes" not in str(found), "one stripe has one aggregator"


@pytest.mark.parametrize(
    ("large", "collective", "independent", "cause"),
    [
        (64, 64, 5000, "few_aggregators"),
        (64, 5000, 64, "root_writes"),
        (64, 64, 64, "root_writes"),
        (0, 64, 5000, "root_writes"),
        (0, 5000, 64, "few_aggregators"),
    ],
)
def test_calls_are_what_their_bytes_are(large: int, collective: int, independent: int, cause: str) -> None:
    """One of 64 ranks writes all; the large calls are those of which there are 64. Of as many of both, none is sure."""
    row = file(0, 10)
    row |= fields(f"ranks=64 bytes_written={640 * MIB} slowest_rank=0 slowest_rank_bytes={640 * MIB}")
    row |= fields("fastest_rank_bytes=0 slowest_rank_time=9.0 write_time=9.0 root_bytes_written=None")
    row |= fields(f"mpiio_coll_writes={collective} mpiio_indep_writes={independent} mpiio_bytes_written={640 * MIB}")
    sizes = np.array([0, 5000, 0, 0, 0, 0, 64, 0, 0, 0.0])
    seen = Activity("", 64, 20.0, calls={row["file_id"]: Calls(sizes={True: sizes} if large else {})})
    assert next(iter(causes(made([row], activity=seen)))) == cause


def test_read_modify_write_without_gaps() -> None:
    """98 % of the reads are followed by a write of the same range, within MPI-IO writes; MPI-IO reads nothing."""
    found = of_log("sieved-no-gaps-192")
    assert causes(found["read"])["read_modify_write"]
    assert causes(found["write"])["read_modify_write"] == "high"
    (one,) = (each for each in found["write"]["findings"] if each["cause"] == "read_modify_write")
    assert "(for 17 GB of MPI-IO writes it reads 16.6 GB)" in one["title"] and one["share"]["value"] < 0.3


def test_read_modify_write_is_told_before_what_takes_less() -> None:
    """Of 100 to 108 s in I/O up to 60 s are calls that read what they overwrite; small writes of others take 57 s."""
    path = darshan_rows.shared_data("strangers", "sieved-no-gaps-192.darshan")
    assert next(iter(of_log("sieved-no-gaps-192"))) == "read", "the text begins with that direction"
    found = mpiio_ext.run_report(path).document
    words = r"; up to \d\d\.\d s of 10\d s were read-modify-write of `01[01]\.h5` and 1 more file \(the MPI library"
    assert re.search(words, found["sentence"]), found["sentence"]
    assert found["help"]["text"].startswith("Let mpiio_ext carry out the calls: it writes pieces as they are")
    by_each = [
        "each rank carries out by itself, without collective buffering" in one["title"] for one in found["findings"]
    ]
    assert by_each.index(True) > 0


@pytest.mark.parametrize(
    ("folder", "log", "small"),
    [
        ("strangers", "sieved-no-gaps-192", False),  # calls of 5.47 MB are requests of 512 KiB, without gaps
        ("darshan", "jlbez_8a_benchmark_write_parallel*", False),  # calls of 30.5 MB, requests of 16.7 MB
        ("known_truth", "read_modify_write-4-dxt", True),  # calls of 1 MiB; 32 KiB of each request are the program's
    ],
)
def test_pieces_are_small_where_counters_say_so(folder: str, log: str, small: bool) -> None:
    (path,) = darshan_rows.shared_data(folder).glob(f"{log}.darshan")
    document = mpiio_ext.run_report(path).document
    assert ("small" in document["sentence"]) == small and "read-modify-write" in document["sentence"]
    assert ("small pieces" in str(document)) == small == ("mean piece, at most: 32.8 kB" in str(document))


#: Written by MPI-IO, and read meanwhile by POSIX, exactly as much; the calls of a process take 9 s.
UPDATED: dict[str, Any] = fields(
    f"ranks=8 processes=8 bytes_written={800 * MIB} mpiio_bytes_written={800 * MIB} bytes_read={800 * MIB} "
    "mpiio_bytes_read=0 reads=800 read_size_1m_4m=800 writes=800 write_size_1m_4m=800 read_start=1.6e9 "
    f"read_end={1.6e9 + 10} read_time=40.0 write_time=30.0 slowest_rank_time=9.0"
)


@pytest.mark.parametrize(
    ("switches", "inside", "cause"),
    [(1600, 9.0, True), (8, 9.0, False), (1600, 5.0, False)],
    ids=["sieved", "read, then written", "the program itself reads each piece before it writes it"],
)
def test_who_reads_before_each_write(switches: int, inside: float, cause: bool) -> None:
    row = file(0, 10, **UPDATED, mpiio_coll_writes=0, mpiio_indep_writes=800)
    seen = Activity("", 8, 20.0, calls={row["file_id"]: Calls(switches=switches)})
    found = made([row], activity=in_mpi(seen, row, write=(inside, inside)), processes=8)
    assert ("read_modify_write" in causes(found)) == cause


@pytest.mark.parametrize(("collective", "least", "most"), [(True, 0.2, 0.4), (False, 0.5, 1.0)])
def test_the_exchange_of_collective_calls_is_no_read_modify_write(collective: bool, least: float, most: float) -> None:
    """Of 9 s in calls 3.5 s are requests: independent calls wait for locks meanwhile, collective ones exchange data."""
    changed = UPDATED | {"bytes_written": 1200 * MIB, "read_time": 16.0, "write_time": 12.0, "slowest_rank_time": 3.5}
    calls = {"mpiio_coll_writes": 800 * collective, "mpiio_indep_writes": 800 * (not collective)}
    row = file(0, 10, **changed, **calls)
    found = made([row], activity=in_mpi(Activity("", 8, 20.0), row, write=(9.0, 9.0)), processes=8)
    (one,) = (each for each in found["findings"] if each["cause"] == "read_modify_write")
    assert least < one["share"]["value"] < most
    assert not collective or "exchange" in causes(found)


def test_time_between_calls_and_requests_of_a_file_that_is_read_later() -> None:
    """172 rank-seconds of MPI-IO writes have 1.04 s of requests, one after the other; then the file is read."""
    found = of_log("ompio-locks-32-dxt")["write"]
    assert found["conclusion"].startswith("Ranks wait inside of MPI-IO calls: the calls take ")
    assert causes(found) == {"waiting_calls": "high"}


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"read_start": 1.6e9 + 11, "read_end": 1.6e9 + 12, "mpiio_bytes_read": 800 * MIB}, True),
        ({"mpiio_bytes_read": 800 * MIB}, True),
        ({}, False),
        ({"read_start": 1.6e9 + 11, "read_end": 1.6e9 + 12}, True),
    ],
    ids=["read later by MPI-IO", "read meanwhile by MPI-IO", "read by the MPI library", "read later by POSIX"],
)
def test_calls_that_wait_although_the_file_is_read(changed: dict[str, Any], cause: bool) -> None:
    times = {"read_time": 4.0, "write_time": 4.0, "slowest_rank_time": 1.0}
    row = file(0, 10, **UPDATED | times | changed, mpiio_coll_writes=0, mpiio_indep_writes=800)
    found = made([row], activity=in_mpi(Activity("", 8, 20.0), row, write=(9.0, 9.0)), processes=8)
    assert ("waiting_calls" in causes(found)) == cause


def test_no_target_is_slow_by_files_of_100_bytes() -> None:
    """A reader with 5 s in calls: 7 large files lie on all targets, and two dozen tiny ones on one each."""
    found = of_log("dlio-reader-1")["read"]
    assert not {"slow_ost", "slow_file"} & set(causes(found)), found["conclusion"]
    assert all(each["time"]["value"] <= 5.06 for each in found["findings"])


@pytest.mark.parametrize(
    ("moved", "in_calls", "there", "cause"),
    [(64 * MIB, 9.0, 4, "high"), (64 * MIB, 9.0, 1, None), (64 * MIB, 0.5, 4, None), (1000, 9.0, 4, None)],
    ids=["several", "one file is slow", "the program pauses", "tiny files"],
)
def test_a_target_is_slow_by_several_files_and_their_calls(
    moved: int, in_calls: float, there: int, cause: str | None
) -> None:
    """Files on 8 targets, one of which takes 9 s for what the others do in 0.5 s; a striped file touches it, too."""
    rows = [
        file(
            k * 0.001,
            9.0 if k % 8 == 3 and k // 8 < there else 0.5,
            bytes_written=moved,
            stripe_count=1,
            osts=[k % 8],
            write_time=in_calls if k % 8 == 3 and k // 8 < there else 0.5,
        )
        for k in range(32)
    ]
    striped = file(9.5, 19.5, bytes_written=4096 * MIB, osts=list(range(8)), stripe_count=8, write_time=10.0)
    found = made([*rows, striped])
    assert causes(found).get("slow_ost") == cause
    for each in found["findings"]:
        if each["cause"] == "slow_ost":
            assert each["time"]["value"] < 9.1 and striped["file"] not in each["files"]


def test_files_that_are_opened_once() -> None:
    """Each of three processes opens 157 Python modules once: none of them again and again."""
    for found in of_log("python-imports-3").values():
        first = "Every process opens or looks up the same 157 files: metadata calls (stat calls and opens) take most"
        assert found["conclusion"].startswith(first)
        assert "again and again" not in str(found) and "Open files once" not in str(found)
        assert "random" not in str(found), "each open reads a header, and then the rest"


@pytest.mark.parametrize(
    ("files", "opens", "words"),
    [
        (100, 1, "opens or looks up the same 100 files: "),
        (100, 2, "opens or looks up the same 100 files: "),
        (100, 20, "opens or looks up the same file again and again: "),
        (1, 200, "opens or looks up the same file again and again: "),
    ],
)
def test_what_is_opened_again_and_again(files: int, opens: int, words: str) -> None:
    rows = [
        file(
            k * 0.001,
            10,
            processes=8,
            ranks=8,
            opens=8 * opens,
            meta_time=64.0 / files,
            write_time=0.01,
            slowest_rank_time=8.0 / files,
            mpiio_coll_writes=None,
        )
        for k in range(files)
    ]
    found = made(rows, processes=8)
    assert words in found["conclusion"]
    assert ("Open files once" in str(found)) == ("again and again" in words)


@pytest.mark.parametrize(("end", "low"), [(8, True), (1024, False)])
def test_a_bandwidth_is_that_of_distinct_bytes(end: int, low: bool) -> None:
    """128 ranks read 8 MiB each in 1 s, 1.07 GB/s: of a file of 8 MiB the job gets 8.4 MB/s."""
    row = file(0, 1, "read")
    row |= fields(f"processes=128 ranks=128 bytes_read={1024 * MIB} reads=1024 read_size_1m_4m=1024 consec_reads=900")
    row |= fields(f"max_offset_read={end * MIB - 1} read_time=120.0 slowest_rank_time=1.0 slowest_rank_bytes={8 * MIB}")
    row |= fields(f"fastest_rank_bytes={8 * MIB} mpiio_coll_reads=None mpiio_indep_reads=None")
    found = made([row], "read", processes=128, run_time=2.0)
    assert found["low_bandwidth"] == low
    assert next(iter(causes(found)), None) == ("redundant_reads" if low else None)


@pytest.mark.parametrize(
    ("columns", "confidence"),
    [
        ({"ranks": 4, "max_offset_read": 32 * MIB - 1, "slowest_rank_bytes": 200 * MIB}, "high"),
        ({"ranks": 1, "max_offset_read": 40 * MIB - 1}, "medium"),
        ({"ranks": 4, "max_offset_read": 800 * MIB - 1, "slowest_rank_bytes": 200 * MIB}, None),
        ({"ranks": 4, "max_offset_read": 32 * MIB - 1, "reads": 12800, "read_size_10k_100k": 12800}, None),
    ],
    ids=["of a shared file", "of one rank", "once", "small ones, at random places"],
)
def test_large_pieces_are_read_again_whatever_their_order(columns: dict[str, Any], confidence: str | None) -> None:
    """Requests of 4 MiB jump back after each two: 800 MiB are read of a file of 32 MiB."""
    requests = {"reads": 200, "consec_reads": 100, "read_size_1m_4m": 0 if "reads" in columns else 200}
    of_ranks = {"slowest_rank_time": 9.0, "fastest_rank_bytes": columns.get("slowest_rank_bytes"), "read_time": 36.0}
    row = file(
        0,
        10,
        "read",
        processes=4,
        bytes_read=800 * MIB,
        mpiio_coll_reads=None,
        mpiio_indep_reads=None,
        **{**requests, **of_ranks, **columns},
    )
    assert causes(made([row], "read", processes=4)).get("redundant_reads") == confidence


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "redundant_writes"),
        ({"max_offset_written": 800 * MIB - 1}, None),
        ({"opens": 8 * 8}, None),
        ({"mpiio_bytes_written": 100 * MIB}, None),
        ({"slowest_rank_bytes": 400 * MIB, "fastest_rank_bytes": 0, "consec_writes": 800}, None),
    ],
    ids=["written twice", "once", "each open may append", "gaps are filled", "ranks append"],
)
def test_what_is_written_again(changed: dict[str, Any], cause: str | None) -> None:
    """8 ranks write 800 MiB into a file of 400 MiB."""
    columns = fields(
        f"processes=8 ranks=8 opens=8 bytes_written={800 * MIB} writes=800 write_size_1m_4m=800 consec_writes=700 "
        f"max_offset_written={400 * MIB - 1} write_time=72.0 slowest_rank_time=9.0 slowest_rank_bytes={100 * MIB} "
        f"fastest_rank_bytes={100 * MIB} mpiio_coll_writes=None mpiio_indep_writes=None"
    )
    found = made([file(0, 10, **columns | changed)], processes=8)
    assert ("redundant_writes" in causes(found)) == (cause is not None)
    assert cause is None or "The job writes 839 MB in the first 419 MB of the file: each byte 2 times on" in str(found)


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "redundant"),
        ({"seq_reads": 50_000, "seq_writes": 50_000}, "small_requests"),  # records at random places
        ({"max_offset_written": 800 * MIB - 1, "max_offset_read": 800 * MIB - 1}, "small_requests"),  # once
        ({"bytes_written": 0, "writes": 0, "write_size_1k_10k": 0}, "small_requests"),  # read backwards
        ({"max_offset_written": 8191, "max_offset_read": 8191}, "in place"),  # a chunk that no cache has room for
    ],
    ids=["moved", "random", "once", "read", "in place"],
)
@pytest.mark.parametrize("way", ["read", "write"])
def test_data_that_a_library_moves_are_no_small_requests(way: Any, changed: dict[str, Any], cause: str) -> None:
    """A header grows again and again: block by block, from behind, all data are read and written a bit behind."""
    row = {**file(0, 10), **file(0, 10, "read")}
    row |= fields("mpiio_coll_writes=None mpiio_coll_reads=None processes=1 write_size_1m_4m=0 read_size_1m_4m=0")
    row |= fields(f"read_time=4.0 write_time=4.0 max_offset_written={20 * MIB - 1} max_offset_read={20 * MIB - 1}")
    for one, done in (("read", "read"), ("write", "written")):
        row |= {f"bytes_{done}": 800 * MIB, f"{one}s": 100_000, f"{one}_size_1k_10k": 100_000}
        row |= {f"consec_{one}s": 1000, f"seq_{one}s": 1000}
    if way == "write" and not changed.get("writes", 1):
        return
    found = made([row | changed], way, processes=1)
    expected = f"redundant_{way}s" if cause == "redundant" else cause
    assert (
        cause == "in place"
        or causes(found) == {expected: "high"}
        or (expected == "small_requests" and causes(found)[expected] == "high")
    )
    assert (cause == "redundant") == ("Define all variables" in str(found))


@pytest.mark.parametrize(
    ("end", "switches", "asked", "moved"),
    [(3072, 128, 64, True), (0, 128, 64, False), (3072, 20, 64, False), (3072, 128, 0, False)],
    ids=["moved", "in place", "all reads first", "reads of the MPI library"],
)
@pytest.mark.parametrize("way", ["read", "write"])
def test_data_of_several_ranks_that_a_library_moves(way: Any, end: int, switches: int, asked: int, moved: bool) -> None:
    """Four ranks write 8 MiB, and move them eight times, in two blocks of 1 MiB each, from behind."""
    row = {**file(0, 2.2), **file(0, 2.2, "read"), "mpiio_coll_reads": 64, "mpiio_coll_writes": 72, "processes": 4}
    row |= {"ranks": 4, "file_id": 7, "bytes_read": 64 * MIB, "bytes_written": 72 * MIB, "reads": 64, "writes": 72}
    row |= {"read_size_1m_4m": 64, "write_size_1m_4m": 72, "seq_reads": 32, "seq_writes": 36, "mpiio_coll_writes": 72}
    row |= {"consec_reads": 0, "consec_writes": 0, "read_time": 3.4, "write_time": 3.9, "slowest_rank_time": 1.9}
    row |= {"max_offset_read": 8 * MIB - 1, "max_offset_written": 8 * MIB - 1 + end, "slowest_rank_bytes": 34 * MIB}
    row |= {"fastest_rank_bytes": 34 * MIB, "mpiio_bytes_read": asked * MIB, "mpiio_bytes_written": 72 * MIB}
    seen = in_mpi(Activity("", 4, 2.3, calls={7: Calls(switches=switches)}), row, read=(1.0, 1.0), write=(1.0, 1.0))
    found = made([row], way, activity=seen, processes=4, run_time=2.3)
    assert (causes(found).get(f"redundant_{way}s") == "high") == moved == ("a header grows" in found["conclusion"])


#: 8 ranks write 800 MiB by collective calls, and one of them makes the requests.
AGGREGATED: dict[str, Any] = fields(
    f"processes=8 ranks=8 bytes_written={800 * MIB} writes=800 write_size_1m_4m=800 write_time=8.0 "
    f"slowest_rank_time=8.0 slowest_rank_bytes={800 * MIB} fastest_rank_bytes=0 root_bytes_written=None "
    f"mpiio_coll_writes=800 mpiio_bytes_written={800 * MIB}"
)


@pytest.mark.parametrize(
    ("changed", "confidence"),
    [
        ({}, "high"),
        ({"write_time": 1.0, "slowest_rank_time": 1.0}, "medium"),
        ({"bytes_written": 80 * MIB, "mpiio_bytes_written": 80 * MIB, "slowest_rank_bytes": 80 * MIB}, "medium"),
        ({"slowest_rank_bytes": 100 * MIB, "fastest_rank_bytes": 100 * MIB}, None),
    ],
    ids=["one aggregator", "it is hardly in calls", "a slow server", "8 aggregators"],
)
def test_too_few_aggregators_by_the_time_in_their_calls(changed: dict[str, Any], confidence: str | None) -> None:
    found = made([file(0, 10, **AGGREGATED | changed)], processes=8)
    assert causes(found).get("few_aggregators") == confidence
    assert ("cb_nodes=8" in str(found)) == (confidence is not None)


@pytest.mark.parametrize(
    ("run_time", "ranks", "confidence"),
    [(19.0, 8, "high"), (21.0, 8, "medium"), (79.0, 8, "medium"), (81.0, 8, None), (81.0, 512, "high")],
)
def test_one_aggregator_a_node_is_the_usual_number(run_time: float, ranks: int, confidence: str | None) -> None:
    """It is too few where the run consists of its calls, which take 10 s, or where it has ranks of several nodes."""
    row = file(0, 10, **AGGREGATED | {"processes": ranks, "ranks": ranks})
    found = made([row], processes=ranks, run_time=run_time)
    assert causes(found).get("few_aggregators") == confidence
    assert ("one aggregator on each node is usual" in str(found)) == (confidence == "medium")


@pytest.mark.parametrize(
    ("wall", "cause"), [(8.0, "high"), (2.0, None), (1.0, None)], ids=["one at a time", "four at a time", "all"]
)
def test_an_aggregator_that_moves_between_ranks(wall: float, cause: str | None) -> None:
    """Each rank makes the requests of some calls: by the sums there are 8 aggregators, by DXT one at a time."""
    each, every = np.full(8, 100.0), np.arange(8)
    traced = Row(
        every, each, each * MIB, np.full(8, 1.0), np.zeros(8), np.full(8, 10.0), wall=wall, called=10.0, calls=each / 10
    )
    changed = {"slowest_rank_bytes": 100 * MIB, "fastest_rank_bytes": 100 * MIB, "slowest_rank_time": 1.0}
    row = file(0, 10, **AGGREGATED | changed)
    seen = Activity("DXT", 8, 20.0, rows={(row["file_id"], True): traced}, wall={True: 10.0})
    found = made([row], activity=seen, processes=8)
    assert causes(found).get("few_aggregators") == cause
    assert ("1 of 8 processes at a time writes all the data" in found["conclusion"]) == (cause is not None)
    named = [each for each in found["findings"] if each["cause"] == "few_aggregators"]
    assert all(each["by_times"] for each in named)  # a rank without a CPU is not in a request, either


@pytest.mark.parametrize(("took", "confidence"), [(1.0, "medium"), (6.0, "high")])
def test_small_requests_beside_collective_calls(took: float, confidence: str) -> None:
    """Small writes to one file take 5 % of the run, or 30 %; collective calls of another one take the rest of 80 %."""
    tiny = {"writes": 8000, "write_size_1k_10k": 8000, "write_size_1m_4m": 0, "consec_writes": 0}
    common = {"processes": 8, "ranks": 8, "mpiio_indep_writes": 0}
    small = file(
        0,
        took,
        **tiny | common,
        bytes_written=8000 * 4096,
        write_time=8 * took,
        slowest_rank_time=took,
        mpiio_coll_writes=None,
    )
    large = file(took, 16, **common, write_time=8.0, slowest_rank_time=1.0, mpiio_coll_writes=100, file_id=1)
    seen = in_mpi(Activity("", 8, 20.0), large, small, write=(16 - took, 16 - took))
    found = made([small, large], activity=seen, processes=8)
    assert causes(found)["small_requests"] == confidence
    assert (found["findings"][0]["cause"] == "exchange") == (confidence == "medium")


@pytest.mark.parametrize(
    ("opens", "in_order", "meta_time", "cause"),
    [(8, 0, 0.0, True), (8000, 16_000, 0.0, False), (8000, 0, 0.0, True), (8000, 0, 80.0, False)],
    ids=["random", "in order after each open", "random after each open", "opens take the time"],
)
def test_an_open_makes_no_random_place(opens: int, in_order: int, meta_time: float, cause: bool) -> None:
    """8 ranks read 24,000 pieces of 4 KiB: by one open, or by an open for every three."""
    row = file(0, 10, "read")
    row |= fields(f"processes=8 ranks=8 opens={opens} bytes_read={24_000 * 4096} reads=24_000 read_size_1k_10k=24_000")
    row |= fields(f"read_size_1m_4m=0 consec_reads={in_order} seq_reads=12_000 meta_time={meta_time} read_time=40.0")
    row |= fields(f"slowest_rank_time={(meta_time + 40.0) / 8} mpiio_coll_reads=None mpiio_indep_reads=None")
    found = made([row], "read", processes=8)
    assert ("at random places" in str(found)) == cause
    assert ("shared_opens" in causes(found)) == (meta_time > 0)


@pytest.mark.parametrize(("meta_time", "tail"), [(64.0, False), (0.0, True)])
def test_a_bandwidth_says_nothing_of_metadata_calls(meta_time: float, tail: bool) -> None:
    """8 ranks write 64 GiB in 4 s, which is not low: opens of 8 s are slow nevertheless, and so is one writer."""
    row = file(0, 10)
    row |= fields(
        f"processes=8 ranks=8 opens=8000 bytes_written={65536 * MIB} meta_time={meta_time} write_time=4.0 "
        f"slowest_rank_time={4.0 + meta_time / 8} slowest_rank=0 "
        f"slowest_rank_bytes={(8192 if meta_time else 65536) * MIB} "
        f"fastest_rank_bytes={8192 * MIB if meta_time else 0} root_bytes_written=None mpiio_coll_writes=None "
        "mpiio_indep_writes=None"
    )
    found = made([row], processes=8)
    assert not found["low_bandwidth"] and next(iter(causes(found))) == ("shared_opens" if meta_time else "root_writes")
    assert ("not low" in found["conclusion"]) == tail


def test_counts_say_whose_they_are() -> None:
    """192 ranks make 9,984 collective calls all together."""
    told = {
        one["meaning"]: one["value"]
        for each in of_log("sieved-no-gaps-192")["write"]["findings"]
        for one in each["evidence"]
    }
    assert told["collective MPI-IO calls, of all ranks"] == 9984


@pytest.mark.parametrize("maps", [0, 8])
def test_mapped_files_are_told_of(maps: int) -> None:
    """Accesses to mapped memory are no calls: few reads beside them are not "too little to be worth tuning" alone."""
    row = file(0, 0.01, "read", ranks=8, processes=8, bytes_read=4096, reads=8, read_time=0.01, mpiio_coll_reads=None)
    found = made([row], "read", processes=8, activity=Activity("", 8, 20.0, calls={row["file_id"]: Calls(maps=maps)}))
    assert found["conclusion"].startswith("No cause is reported, since ")
    assert ("The program maps /scratch/alice/out.0 into memory (mmap): " in found["conclusion"]) == bool(maps)
    no_calls = row | {"bytes_read": 0, "reads": 0, "read_size_1m_4m": 0, "read_start": None, "read_end": None}
    found = made(
        [no_calls | {"read_time": 0.0}],
        "read",
        activity=Activity("", 8, 20.0, calls={0: Calls(maps=maps)}),
        processes=8,
    )
    assert found["conclusion"].startswith("The log has no times of reads,")
    assert ("into memory (mmap)" in found["conclusion"]) == bool(maps)


def test_mapped_files_are_told_of_behind_a_sure_cause() -> None:
    """Rank 0 writes all, and whatever is done in the mapping is in no call."""
    row = file(0, 10, ranks=64, bytes_written=640 * MIB, slowest_rank=0, slowest_rank_bytes=640 * MIB)
    row |= {
        "fastest_rank_bytes": 0,
        "slowest_rank_time": 9.0,
        "write_time": 9.0,
        "mpiio_coll_writes": 0,
        "mpiio_indep_writes": 64,
    }
    found = made([row], activity=Activity("", 64, 20.0, calls={row["file_id"]: Calls(maps=3)}))
    assert causes(found)["root_writes"] == "high"
    assert "into memory (mmap): " in found["conclusion"]


def after_another(way: str, ranks: int, pause: float = 0.0, **columns: Any) -> dict[str, Any]:
    """Return the diagnosis of three files that are accessed one after the other, 4 s each."""
    times = {f"{way}_time": 4.0 * ranks, "slowest_rank_time": 4.0}
    rows = [
        file(k * (4.0 + pause), 4.0 + k * (4.0 + pause), way, ranks=ranks, processes=ranks, **times | columns)
        for k in range(3)
    ]
    return made(rows, way, processes=ranks, run_time=40.0)


def test_advice_has_its_condition() -> None:
    """What a program cannot do is not told to it: no writes to a reader, no MPI to one process without it."""
    plain = {"mpiio_coll_reads": None, "mpiio_indep_reads": None, "mpiio_coll_writes": None, "mpiio_indep_writes": None}
    several = str(after_another("read", 4))
    assert "(MPI_File_iread_all). Search for barriers" in several and "groups of ranks" in several
    assert "serialised" not in causes(after_another("read", 1, **plain)), "one process has no other way"
    assert "MPI_File_i" not in str(after_another("write", 4, **plain)), "groups of ranks may have files without MPI-IO"
    checkpoints = after_another("write", 4, pause=8.0)
    assert "serialised" not in causes(checkpoints), "the next checkpoint is not there to be written before"
    small = {"read_size_1m_4m": 0, "read_size_1k_10k": 100, "bytes_read": 4096 * 100, "consec_reads": 0}
    alone = str(made([file(0, 10, "read", processes=1, **small | plain)], "read", processes=1))
    assert "Read at least 1 MB at once, and take the records from memory." in alone and "writing" not in alone
    assert "mpiio-ext tune" not in alone and "HDF5" not in alone
    several = [file(0, 10, "read", processes=4, ranks=4, **small | plain)]
    assert "Or use MPI-IO" in str(made(several, "read", processes=4))
    without = str(made(several, "read", processes=4, without_mpi=True))
    assert "take the records from memory." in without and "go through MPI-IO" not in without


def test_bytes_say_of_which_layer_they_are() -> None:
    """384 ranks hand 258 GB to MPI-IO; the MPI library reads 25.9 GB beside that, and writes 266 GB."""
    (path,) = darshan_rows.shared_data("darshan").glob("jlbez*.darshan")
    page = dict(mpiio_ext.run_report(path).document["facts"])
    (logs,) = by_job([(path, convert([path.name], str(path.parent)).tables)])
    facts = logs.report(None, anonymous=False, low=1e9).document()["facts"]
    assert page["read, written by the program"] == "80 B, 258 GB"
    assert facts["read, written at the file system"] == "25.9 GB, 266 GB"
    assert not {"read, written"} & {*page, *facts}


@pytest.mark.parametrize(
    ("columns", "sizes", "seconds", "confidence"),
    [
        ({}, {512: 1860, MIB: 120}, 2.0, "high"),
        ({}, {512: 1860, MIB: 120}, 0.1, "medium"),
        ({}, {}, 2.0, "medium"),
        ({"slowest_rank_bytes": 31 * MIB}, {512: 1860, MIB: 120}, 2.0, None),
        ({"slowest_rank_time": 1.2}, {512: 1860, MIB: 120}, 2.0, None),
        ({"write_size_100k_1m": 0, "bytes_written": 1860 * 512}, {512: 1860}, 2.0, None),
    ],
    ids=["known", "the time is not theirs", "by the histogram", "one large more", "as fast", "small ones alone"],
)
def test_small_pieces_of_one_rank(
    columns: dict[str, Any], sizes: dict[int, int], seconds: float, confidence: str | None
) -> None:
    """4 ranks write 30 MiB each in 120 requests, and rank 0 also 1,860 headers of 512 B, for which it needs 3 s."""
    row = file(
        0,
        4,
        ranks=4,
        processes=4,
        **{
            "bytes_written": 120 * MIB + 1860 * 512,
            "writes": 1980,
            "write_size_100_1k": 1860,
            "write_size_100k_1m": 120,
            "write_size_1m_4m": 0,
            "consec_writes": 1830,
            "write_time": 7.0,
            "slowest_rank": 0,
            "slowest_rank_time": 4.0,
            "slowest_rank_bytes": 30 * MIB + 1860 * 512,
            "fastest_rank_bytes": 30 * MIB,
            "mpiio_coll_writes": None,
            "mpiio_indep_writes": None,
            **columns,
        },
    )
    durations = np.zeros((192, 1, 80), np.int64)
    durations[36, 0, 30] = seconds * 2**9  # of 512 B, 2**-9 s each
    seen = Activity("DXT", 4, 5.0, durations={True: durations}, common={"POSIX": sizes})
    found = made([row], activity=seen, processes=4, run_time=5.0)
    assert causes(found).get("pieces_of_one") == confidence
    words = "1,860 writes of 512 B to `out.0` by rank 0 alone"
    assert (words in str(found)) == bool(confidence), found
    assert confidence != "high" or list(causes(found)) == ["pieces_of_one"]


def test_headers_before_collective_writes() -> None:
    """Rank 0 makes 5,000 independent calls beside 80 collective ones, and is the aggregator: it has all requests."""
    row = file(0, 10)
    row |= fields(
        f"ranks=4 processes=4 file_id=7 bytes_written={20 * MIB + 5000 * 256} writes=5020 write_size_100_1k=5000 "
        "write_size_1m_4m=20 consec_writes=4980 write_time=7.0 slowest_rank=0 slowest_rank_time=7.0 "
        f"slowest_rank_bytes={20 * MIB + 5000 * 256} fastest_rank_bytes=0 mpiio_coll_writes=80 mpiio_indep_writes=5000 "
        f"mpiio_bytes_written={20 * MIB + 5000 * 256}"
    )
    sizes = {True: np.array([0, 5000, 0, 0, 80, 0, 0, 0, 0, 0.0])}
    calls = Calls(sizes=sizes, last=0, first=2, more=5000.0 * 256, apart=(1.5, 3.4, 9.0))
    seen = Activity("", 4, 20.0, calls={7: calls}, common={"MPI-IO": {256: 5000, 262144: 80}})
    seen = in_mpi(seen, row, write=(3.4, 9.0))
    first = made([row], activity=seen, processes=4, run_time=10.0)["findings"][0]
    assert (first["cause"], first["confidence"]) == ("pieces_of_one", "medium")


@pytest.mark.parametrize(
    ("apart", "opening", "moving", "cause"),
    [
        ((0.7, 4.5, 5.7), 4.0, 0.45, True),
        ((4.4, 4.5, 4.6), 4.0, 0.45, False),
        ((0.7, 2.0, 5.7), 1.5, 0.45, False),
        ((0.7, 4.5, 5.7), 0.5, 4.0, False),
    ],
    ids=["one is late", "all open for long", "one opens for long", "late to writes"],
)
def test_a_rank_that_is_late_to_open(
    apart: tuple[float, float, float], opening: float, moving: float, cause: bool
) -> None:
    """4 ranks open a file for 4 s on average, which takes POSIX 9 ms, and rank 2 hardly any time."""
    row = file(5.3, 5.8, ranks=4, processes=4, file_id=7, meta_time=0.04, write_time=0.3, slowest_rank_time=0.3)
    seen = Activity("", 4, 6.0, calls={7: Calls(apart=apart, alike=True, first=2, last=1)})
    seen = in_mpi(seen, row, opening=opening, write=(moving, moving))
    found = made([row], activity=seen, processes=4, run_time=6.0)
    words = "The other ranks wait for rank 2, which is late to open or close"
    assert (words in found["conclusion"] and causes(found)["late_rank"] == "medium") == cause


@pytest.mark.parametrize(("inside", "first"), [(3.6, "waiting_calls"), (1.0, "small_requests")])
def test_waits_in_calls_are_told_before_small_requests_that_take_far_less(inside: float, first: str) -> None:
    """1,536 requests of 64 KiB take 0.9 s of a rank, and the 96 independent calls that make them 3.6 s, as by locks."""
    row = file(0, 4)
    row |= fields(
        f"ranks=4 processes=4 file_id=7 bytes_written={96 * MIB} writes=1536 write_size_10k_100k=1536 "
        "write_size_1m_4m=0 consec_writes=0 seq_writes=1535 write_time=3.4 slowest_rank_time=0.9 "
        f"slowest_rank_bytes={24 * MIB} fastest_rank_bytes={24 * MIB} mpiio_coll_writes=0 mpiio_indep_writes=96 "
        f"mpiio_bytes_written={96 * MIB}"
    )
    seen = in_mpi(Activity("", 4, 5.0), row, write=(inside, inside))
    found = made([row], activity=seen, processes=4, run_time=5.0)
    assert found["findings"][0]["cause"] == first
    assert causes(found)["small_requests"] == ("medium" if first == "waiting_calls" else "high")


def _read_again(ranks: int, end: int, **changed: Any) -> dict[str, Any]:
    """Return a file of `end` bytes that each of some ranks reads 50 times through the C library, by 64 B each."""
    moved = 50 * ranks * end
    row = file(0, 10, "read", processes=ranks, ranks=ranks, bytes_read=moved, reads=moved // 64, read_size_1m_4m=0)
    row |= fields(f"consec_reads=None seq_reads=None max_offset_read={end - 1} read_time={9.0 * ranks}")
    row |= fields(f"slowest_rank_time=9.0 slowest_rank_bytes={50 * end} fastest_rank_bytes={50 * end} file_id=7")
    return row | {"mpiio_coll_reads": None, "mpiio_indep_reads": None, "opens": ranks} | changed


@pytest.mark.parametrize(
    ("ranks", "seeks", "changed", "cause"),
    [
        (1, 50, {}, "redundant_reads"),
        (1, 50, {"read_size_0_100": None}, "redundant_reads"),
        (4, 200, {}, "redundant_reads"),
        (1, 10**9, {}, "small_requests"),
        (1, 50, {"max_offset_read": 50 * MIB - 1}, "small_requests"),
        (1, 50, {"bytes_written": 50 * MIB, "max_offset_written": MIB - 1}, "small_requests"),
    ],
    ids=["by one", "without POSIX", "by each", "at random places", "once", "written between"],
)
def test_lines_are_read_again_from_the_start(ranks: int, seeks: int, changed: dict[str, Any], cause: str) -> None:
    """A table of 1 MiB is read from its start 50 times, by small calls: most of these are needless."""
    calls = {7: Calls(streamed=True, seeks=seeks)}
    found = made(
        [_read_again(ranks, MIB, **changed)], "read", activity=Activity("", ranks, 20.0, calls=calls), processes=ranks
    )
    assert found["findings"][0]["cause"] == cause
    assert ("small_requests" in causes(found)) == (cause == "small_requests")


def test_everything_written_again_is_judged_before_who_moves_it() -> None:
    """One aggregator writes 800 MiB into a file of 100 MiB, eight times over: seven of them are needless."""
    row = file(0, 10, **AGGREGATED | {"max_offset_written": 100 * MIB - 1, "mpiio_bytes_written": 800 * MIB})
    found = made([row], processes=8, run_time=12.0)
    assert causes(found).get("redundant_writes") == "medium" and "few_aggregators" not in causes(found)
    once = made([row | {"max_offset_written": 800 * MIB - 1}], processes=8, run_time=12.0)
    assert causes(once).get("few_aggregators") == "high"


def test_descriptors_of_a_stream_are_no_opens() -> None:
    """Darshan counts fileno of a stream as an open of POSIX beside that of the C library."""
    names, timed = COUNTERS["POSIX"]
    kind = [("file", "u8"), ("rank", "i8"), ("counters", "i8", (len(names),)), ("times", "f8", (len(timed),))]
    part = np.zeros(1, kind)
    part["counters"][0, [names.index("OPENS"), names.index("FILENOS")]] = 800, 400
    (record,) = of_part(part, 0, "POSIX", 1)
    assert record["opens"] == 400


def test_few_bytes_of_collective_calls_are_not_those_of_their_requests() -> None:
    """300 calls of 64 B of each rank: two aggregators make requests of 128 B of them, each behind a gap."""
    row = file(0, 10, processes=4, ranks=4, bytes_written=600 * 128, writes=600, write_size_1m_4m=0, file_id=7)
    row |= fields("write_size_100_1k=600 consec_writes=0 seq_writes=600 write_time=18.0 slowest_rank_time=9.0")
    row |= fields(f"mpiio_coll_writes=1200 mpiio_bytes_written={1200 * 64} slowest_rank_bytes={300 * 128}")
    found = made([row], activity=in_mpi(Activity("", 4, 20.0), row, write=(9.5, 9.5)), processes=4)
    assert "Collective calls have few bytes, 256 B of all ranks together" in found["conclusion"]
    assert "128 B" not in found["conclusion"]


@pytest.mark.parametrize(
    ("changed", "switches", "cause"),
    [
        ({}, 3, True),
        ({}, 1, False),
        ({"bytes_read": 20 * MIB}, 3, False),
        ({"write_start": 1.0, "write_end": 12.0}, 3, False),
    ],
    ids=["checked", "read at the end", "a part", "read first"],
)
def test_what_is_written_and_read_back(changed: dict[str, Any], switches: int, cause: bool) -> None:
    """Each checkpoint of 48 MiB is written, read by 64 KiB, and then overwritten by the next one."""
    write = fields(f"bytes_written={96 * MIB} writes=24 seq_writes=22 max_offset_written={48 * MIB - 1} write_time=2.0")
    row = file(1, 10, "read", processes=1, bytes_read=96 * MIB, reads=1536, read_size_1m_4m=0, file_id=7) | write
    row |= fields(f"read_size_10k_100k=1536 seq_reads=1534 consec_reads=1534 max_offset_read={48 * MIB - 1}")
    row |= {"read_time": 8.0, "mpiio_coll_reads": None, "write_start": row["read_start"] - 0.5}
    row |= {"write_end": row["read_end"] - 2}
    begun = {name: row["read_start"] + value for name, value in changed.items() if name.startswith("write_")}
    seen = Activity("", 1, 20.0, calls={7: Calls(switches=switches)})
    found = made([row | changed | begun], "read", activity=seen, processes=1)
    assert ("read_back" in causes(found)) == cause
    assert not cause or found["findings"][0]["cause"] == "read_back"


@pytest.mark.parametrize(("count", "processes", "cause"), [(3, 1, True), (1, 1, False), (3, 4, False)])
def test_steps_pass_data_on_through_files(count: int, processes: int, cause: bool) -> None:
    """Each step writes a file of 20 MiB, and the next one reads it; one file for each rank may be a result."""
    rows = []
    for k in range(count):
        row = file(2 + 2 * k, 3 + 2 * k, "read", processes=processes, bytes_read=20 * MIB, reads=20, file_id=k)
        row |= fields(f"bytes_written={20 * MIB} writes=20 seq_writes=19 max_offset_written={20 * MIB - 1}")
        row |= fields(f"seq_reads=19 consec_reads=19 max_offset_read={20 * MIB - 1} read_size_1m_4m=20 write_time=1.0")
        row |= {"mpiio_coll_reads": None, "write_start": row["read_start"] - 1.5, "write_end": row["read_start"] - 0.5}
        rows.append(row)
    seen = Activity("", processes, 20.0, calls={k: Calls(switches=1) for k in range(count)})
    found = causes(made(rows, "read", activity=seen, processes=processes))
    assert ("read_back" in found) == cause and not ("serialised" in found and cause), found
