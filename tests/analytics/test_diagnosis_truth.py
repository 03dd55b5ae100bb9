"""First sentences held against the truth: logs of programs whose problem is known, and counters of public logs.

The counters of the large public logs (of thousands of ranks) are rebuilt as rows; what was wrong in them is written
beside each.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mpiio_ext.analytics.diagnosis import Finding, diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import Ledger, of_rows
from mpiio_ext.analytics.report import job as report
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB
from support import darshan_rows
from support.expected import Expected
from support.quiet_rows import JOB, file, in_mpi, small, summary

#: Truth -> the cause that is found with high confidence; None: there is none.
TRUTHS: dict[str, str | None] = {
    "one_writer": "root_writes",
    "few_aggregators": "few_aggregators",
    "small_independent": "small_requests",
    "random_reads": "small_requests",
    "metadata_storm": "metadata",
    "read_modify_write": "read_modify_write",
    "well_behaved": None,
    "little_io": None,
}


@pytest.mark.parametrize("dxt", ["", "-dxt"])
@pytest.mark.parametrize("truth", TRUTHS)
def test_known_truth(truth: str, dxt: str) -> None:
    """The first sentence is right, and no other cause is said with high confidence."""
    path = darshan_rows.shared_data("known_truth", f"{truth}-4{dxt}.darshan")
    rows = (path.parent / "truth.jsonl").read_text().splitlines()
    assert {json.loads(row)["log"]: json.loads(row)["truth"] for row in rows}[path.name] == truth
    tables = convert([path.name], str(path.parent)).tables
    told = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(path, tables)))]
    high = {each["cause"] for one in told for each in one["findings"] if each["confidence"] == "high"}
    assert high == ({TRUTHS[truth]} - {None})
    first = next(iter(told[0]["findings"]), None)
    assert first is None or TRUTHS[truth] is None or first["cause"] == TRUTHS[truth]
    assert told[0]["worth_tuning"] == (truth != "little_io")


def job(processes: int, run_time: float = 12.0) -> dict[str, Any]:
    return {**JOB, "processes": processes, "run_time": run_time}


SERIAL = {"mpiio_coll_writes": None, "mpiio_indep_writes": None}
#: 35,283 s of metadata calls are half a second of each rank; the one OST is met by one rank.
ONE_WRITER = {
    "processes": 65536,
    "ranks": 65536,
    "fastest_rank_bytes": 0,
    "stripe_count": 1,
    "osts": [7],
    "bytes_written": 43_600_000_000,
    "slowest_rank_bytes": 43_600_000_000,
    "slowest_rank_time": 352.0,
    "slowest_rank": 0,
    "meta_time": 35283.0,
    "write_time": 351.0,
    "opens": 65536,
    "root_bytes_written": None,
}
#: 56 of 512 ranks write: 77 GB become 305 GB, each piece after a read of no bytes that takes longer than it.
AMPLIFIED = {
    **small(),
    "processes": 512,
    "ranks": 512,
    "bytes_written": 305_000_000_000,
    "bytes_read": 0,
    "mpiio_bytes_written": 77_000_000_000,
    "mpiio_bytes_read": 0,
    "write_size_1k_10k": 0,
    "write_size_100k_1m": 990_000,
    "read_size_0_100": 990_000,
    "reads": 990_000,
    "read_time": 11200.0,
    "write_time": 3192.0,
    "slowest_rank_time": 262.0,
    "slowest_rank_bytes": 5_446_428_571,
    "fastest_rank_bytes": 0,
    "mpiio_coll_writes": 998_000,
    "mpiio_indep_writes": 2000,
    "stripe_count": 56,
}
#: Requests of 1 MiB are not small: they lie in the bin below the bound, which holds it.
WIDE = {
    "ranks": 64,
    "mpiio_coll_writes": 0,
    "mpiio_indep_writes": 524_288,
    "consec_writes": 0,
    "write_size_1m_4m": 0,
    "write_size_100k_1m": 524_288,
    "stripe_count": 64,
    "bytes_written": 524288 << 20,
}


def of_ranks(ranks: int, **columns: Any) -> list[dict[str, Any]]:
    """Return a file that some ranks share."""
    return [file(0, 10, **{"ranks": ranks, "processes": ranks, "stripe_count": 4, **columns})]


def rank_file(rank: int, **columns: Any) -> dict[str, Any]:
    return file(0, 10, **{"file": f"f{rank}", "file_id": rank, "processes": 4, "opens": 1, **columns})


def uneven(**columns: Any) -> list[dict[str, Any]]:
    """Return files of one rank each, of which one is larger."""
    large = file(0, 60, processes=4, bytes_written=800 << 20, file="f3")
    return [{**each, **columns} for each in (*(rank_file(rank) for rank in range(3)), large)]


def uneven_rank(ranks: int, write_time: float, most: int, least: int) -> list[dict[str, Any]]:
    shared = {"write_time": write_time, "slowest_rank_time": 9.5, "mpiio_coll_writes": 0, "mpiio_indep_writes": 100}
    return of_ranks(ranks, slowest_rank_bytes=most << 20, fastest_rank_bytes=least << 20, **shared)


def created(**columns: Any) -> list[dict[str, Any]]:
    """Return files of one rank each that are made, and not written."""
    nothing = {"write_start": None, "write_end": None, "bytes_written": 0, "write_time": 0.0, "opens": 1000}
    return [rank_file(rank, **{**nothing, "meta_time": 60.0, **columns}) for rank in range(8)]


def temporary(moved: int) -> list[dict[str, Any]]:
    """Return 1,600 temporary files, of which half have slow opens: together these take less time than 1 MiB of data."""
    own = {"processes": 4, "opens": 1, "write_time": 0.02}
    times = ((moved, 0.028), (1 << 20, 0.002))
    return [rank_file(k, **own, bytes_written=times[k % 2][0], meta_time=times[k % 2][1]) for k in range(1600)]


def appended(ends: int) -> dict[str, Any]:
    """Return tiny pieces that, by Darshan's count, each rank writes from the beginning: the ranks append in turn."""
    return {
        **small(),
        "processes": 4,
        "ranks": 4,
        "write_size_1k_10k": 0,
        "write_size_100_1k": 400_000,
        "consec_writes": 399_996,
        "seq_writes": 399_996,
        "bytes_written": 80_000_000,
        "slowest_rank_bytes": 20_000_000,
        "fastest_rank_bytes": 20_000_000,
        "slowest_rank_time": 9.0,
        "write_time": 36.0,
        "max_offset_written": ends - 1,
        **SERIAL,
    }


ALONE = {"processes": 16, "mpiio_coll_writes": None, "write_time": 9.0}
PRINTED = {"processes": 4, "write_time": 9.0}
#: Few opens, many small reads that POSIX did not count, and more time in neither reads nor writes: seeks.
SEEKS = {
    "processes": 4,
    "ranks": 4,
    "reads": 400_000,
    "bytes_read": 400000 * 128,
    "read_size_1m_4m": 0,
    "opens": 4,
    "read_time": 6.0,
    "meta_time": 30.0,
    "slowest_rank_time": 9.0,
    "mpiio_coll_reads": None,
}
#: The log has the bytes of a rank both ways: that each has written its part does not say that each reads.
READ_BACK = {
    "processes": 2,
    "ranks": 2,
    "bytes_read": 1 << 30,
    "bytes_written": 64 << 20,
    "read_time": 9.0,
    "slowest_rank": 0,
    "slowest_rank_bytes": (1 << 30) + (32 << 20),
    "fastest_rank_bytes": 32 << 20,
    "slowest_rank_time": 9.5,
    "mpiio_coll_reads": None,
    "mpiio_indep_reads": None,
}
#: Opens of files that are read are no matter of the lines that go to standard output.
STREAMS = [
    file(0, 10, file="<STDOUT>", bytes_written=200, file_id=90),
    file(0, 9, file="/tmp/ompi.host.0/pid.17/1/out_cid-3-17.sm", file_id=91),
    *(
        file(at / 100, at / 100 + 0.01, "read", meta_time=0.09, bytes_read=4096, read_time=0.01, opens=20, file_id=at)
        for at in range(1000)
    ),
]


def again_and_again(times: int) -> dict[str, Any]:
    """Return a log to which four ranks append, and which rank 3 reads from its beginning: of what is there then, 55
    times the file are 14."""
    end, read = 3600 << 10, (3600 << 10) * times
    return {
        "processes": 4,
        "ranks": 4,
        "bytes_read": read,
        "bytes_written": end,
        "read_time": 9.0,
        "slowest_rank": 3,
        "slowest_rank_bytes": read + end // 4,
        "fastest_rank_bytes": end // 4,
        "slowest_rank_time": 9.5,
        "reads": read >> 16,
        "seq_reads": (read >> 16) - times,
        "consec_reads": (read >> 16) - times,
        "read_size_1m_4m": 0,
        "read_size_10k_100k": read >> 16,
        "max_offset_read": end - 1,
        "max_offset_written": end // 4 - 1,
        "mpiio_coll_reads": None,
        "mpiio_indep_reads": None,
    }


def tiny_requests(piece: int, calls: int | None) -> dict[str, Any]:
    """Return pieces one behind the other, by POSIX, as of a program that flushes its own buffer after each piece."""
    count = 4_000_000
    return {
        "processes": 4,
        "ranks": 4,
        "writes": count,
        "bytes_written": count * piece,
        "write_size_1m_4m": 0,
        "write_size_100_1k": count,
        "write_time": 36.0,
        "slowest_rank_time": 9.0,
        "consec_writes": count,
        "seq_writes": count,
        "mpiio_coll_writes": calls,
    }


#: One behind the other, and each call is a request: the operating system merges the bytes, not the calls.
TINY = {
    "writes": 4_000_000,
    "write_size_1m_4m": 0,
    "write_size_100_1k": 4_000_000,
    "consec_writes": 4_000_000,
    "processes": 4,
    "ranks": 4,
    "bytes_written": 800_000_000,
    "write_time": 36.0,
    "slowest_rank_time": 9.0,
    "mpiio_coll_writes": 0,
    "mpiio_indep_writes": 4_000_000,
    "seq_writes": 4_000_000,
}
KIBIBYTES = {"bytes_written": 4096 * 4_000_000, "write_size_1k_10k": 4_000_000, "write_size_100_1k": 0}
#: Each of 64 ranks reads all of a file on one OST: the target is not the cause, what is asked of it is.
SAME_DATA = {
    "osts": [3],
    "processes": 64,
    "ranks": 64,
    "bytes_read": 4096 << 20,
    "reads": 4096,
    "read_size_1m_4m": 4096,
    "consec_reads": 4000,
    "max_offset_read": (64 << 20) - 1,
    "stripe_count": 1,
    "read_time": 600.0,
    "slowest_rank_time": 9.9,
    "slowest_rank_bytes": 64 << 20,
    "fastest_rank_bytes": 64 << 20,
    "mpiio_coll_reads": None,
    "mpiio_indep_reads": None,
}
OWN_PARTS = {"bytes_read": 64 << 20, "reads": 64, "slowest_rank_bytes": 1 << 20, "fastest_rank_bytes": 1 << 20}
ONE_RANK = {"slowest_rank_bytes": 4000 << 20, "fastest_rank_bytes": 1 << 20}
ON_FOUR = {
    "osts": [0, 1, 2, 3],
    "max_offset_read": (64 << 10) - 1,
    "bytes_read": 4 << 20,
    "read_size_1m_4m": 0,
    "read_size_10k_100k": 64,
    "reads": 64,
}


def filled(written: int) -> dict[str, Any]:
    """Return 200 MiB of which all but a header is written twice at 4 GB/s."""
    return file(0, 0.1, bytes_written=written, max_offset_written=(200 << 20) - 1, mpiio_coll_writes=None)


def short_files(meta: float) -> list[dict[str, Any]]:
    """Return 200 files of 1 MB that are written at 2 GB/s each, which says nothing of the opens."""
    each = {"bytes_written": 1_000_000, "writes": 1, "write_size_1m_4m": 0, "write_size_100k_1m": 1, "consec_writes": 0}
    own = {"write_time": 0.5e-3, "meta_time": meta, "mpiio_coll_writes": None, "processes": 8}
    return [file(at / 100, at / 100 + 0.5e-3, **each, **own) for at in range(200)]


#: The job, its files, and a direction, where it is not that of most time.
CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]] | tuple[dict[str, Any], list[dict[str, Any]], Any]] = {
    "1 of 65,536 ranks writes all": (job(65536, 900.0), [file(0, 400, **ONE_WRITER, **SERIAL)]),
    "1 of 65,536 ranks writes all, collectively": (
        job(65536, 900.0),
        [file(0, 400, **ONE_WRITER, mpiio_coll_writes=65536)],
    ),
    "write amplification by aggregators": (job(512, 1000.0), [file(0, 300, **AMPLIFIED)]),
    "requests of 1 MiB": (JOB, [file(0, 900, **WIDE)]),
    "requests of 1 MiB and a header": (JOB, [file(0, 900, **WIDE, write_size_0_100=1)]),
    "all ranks open one file again and again": (
        job(4),
        of_ranks(
            4,
            opens=20000,
            meta_time=32.0,
            write_time=0.4,
            slowest_rank_time=8.2,
            slowest_rank_bytes=4096,
            fastest_rank_bytes=4096,
            bytes_written=16384,
        ),
    ),
    "one rank of four has far more than the others": (job(4), uneven_rank(4, 13.0, 70, 10)),
    "one rank of two has far more than the other": (job(2), uneven_rank(2, 11.0, 85, 15)),
    "as much to do, and a little longer": (
        job(4),
        of_ranks(4, write_time=30.0, slowest_rank_time=9.5, slowest_rank_bytes=25 << 20, fastest_rank_bytes=25 << 20),
    ),
    "one rank writes, and waits for most of the time": (
        job(4),
        of_ranks(
            4, write_time=1.0, slowest_rank_time=1.0, slowest_rank_bytes=100 << 20, fastest_rank_bytes=0, **SERIAL
        ),
    ),
    "an output of 20 B beside a file": (
        job(2, 100.0),
        [rank_file(9, bytes_written=20, write_end=1.6e9 + 0.1, write_time=1e-5), rank_file(0, processes=2)],
    ),
    "uneven files of one rank each": (job(4, 100.0), uneven()),
    "uneven files of one rank each, by POSIX": (job(4, 100.0), uneven(**SERIAL)),
    "even files of one rank each": (job(4, 100.0), [rank_file(rank) for rank in range(4)]),
    "3 files of one rank each of 16": (job(16, 20.0), [rank_file(rank, **ALONE) for rank in range(3)]),
    "3 shared files of 16 ranks": (job(16, 20.0), [rank_file(rank, **ALONE, ranks=4) for rank in range(3)]),
    "standard output and shared memory, reads": (job(1, 110.0), STREAMS, "read"),
    "standard output and shared memory, writes": (job(1, 110.0), STREAMS, "write"),
    # a job that creates files and writes nothing has no time of writes; of threads, times are more than there is
    "metadata alone": (job(4, 130.0), created()),
    "metadata of threads": (job(4, 100.0), created()),
    "metadata of a small part of the run": (job(4, 100_000.0), created()),
    "slow opens of temporary files of 1 MiB": (job(4, 20.0), temporary(1 << 20)),
    "slow opens of temporary files of 1 KiB": (job(4, 20.0), temporary(1 << 10)),
    "ranks append in turn": (job(4), [file(0, 10, **appended(100_000 * 200))]),
    "ranks write one behind the other": (job(4), [file(0, 10, **appended(4 * 100_000 * 200))]),
    "rank 0 writes 20 B": (job(4), [file(0, 10, **PRINTED, bytes_written=20, root_bytes_written=20)]),
    "rank 0 writes 2 MiB": (job(4), [file(0, 10, **PRINTED, bytes_written=2 << 20, root_bytes_written=2 << 20)]),
    "rank 0 writes 2 MiB in tiny requests": (
        job(4),
        [
            file(
                0,
                10,
                **PRINTED,
                bytes_written=2 << 20,
                root_bytes_written=2 << 20,
                writes=8192,
                write_size_1m_4m=0,
                write_size_100_1k=8192,
            )
        ],
    ),
    "seeks of the C library": (job(4), [file(0, 10, "read", **SEEKS)]),
    "few seeks of the C library": (job(4), [file(0, 10, "read", **{**SEEKS, "reads": 40})]),
    "one rank reads what all have written": (job(2), [file(0, 10, "read", **READ_BACK)], "read"),
    "a rank of four reads a log 55 times": (job(4), [file(0, 10, "read", **again_and_again(55))], "read"),
    "a rank of four reads a log 12 times": (job(4), [file(0, 10, "read", **again_and_again(12))], "read"),
    "tiny requests": (job(4), [file(0, 10, **tiny_requests(100, None))]),
    "requests of 4 KiB": (job(4), [file(0, 10, **tiny_requests(4096, None))]),
    "tiny requests of collective calls": (job(4), [file(0, 10, **tiny_requests(100, 10))]),
    "tiny independent calls": (job(4), [file(0, 10, **TINY)]),
    # 100 calls hand over what becomes 10,000 requests
    "fewer independent calls": (job(4), [file(0, 10, **{**TINY, "mpiio_indep_writes": 40_000})]),
    "some collective calls": (
        job(4),
        [file(0, 10, **{**TINY, "mpiio_coll_writes": 4, "mpiio_indep_writes": 3_999_996})],
    ),
    "independent calls of 4 KiB": (job(4), [file(0, 10, **{**TINY, **KIBIBYTES})]),
    "ranks read the same data": (job(64), [file(0, 10, "read", **SAME_DATA)], "read"),
    "ranks read their own parts": (job(64), [file(0, 10, "read", **{**SAME_DATA, **OWN_PARTS})], "read"),
    "one rank reads again and again": (job(64), [file(0, 10, "read", **{**SAME_DATA, **ONE_RANK})], "read"),
    **{
        f"{name} of four targets": (job(64), [file(0, 10, "read", **{**SAME_DATA, **changed, **ON_FOUR})], "read")
        for name, changed in (("all", {}), ("own parts", OWN_PARTS), ("one rank", ONE_RANK))
    },
    # half of the time is needless, and 2 GB/s of data are not low
    "fill values": (job(1, 0.2), [filled(398 << 20)]),
    "no fill values": (job(1, 0.2), [filled(200 << 20)]),
    "opens longer than the data": (job(8, 4.0), short_files(1.2e-3)),
    "opens shorter than the data": (job(8, 4.0), short_files(0.2e-3)),
    # at most 100 % says nothing; the share of the run time does, and else the time
    "at most all of the time": (job(64, 10.0), [file(0, 10, ranks=9, unaligned=100)]),
}


@pytest.mark.parametrize("name", CASES)
def test_rules_of_counters(name: str, expected: Expected) -> None:
    expected(summary(diagnose(*CASES[name])))


@pytest.mark.parametrize(("inside", "waits"), [(9.0, True), (4.0, False)])
@pytest.mark.parametrize("way", ["read", "write"])
def test_what_mpiio_calls_wait_for_is_not_known(way: Any, inside: float, waits: bool) -> None:
    """The MPI library's requests take 3 s of its calls: the rest is locks, or an exchange; or what the reads take."""
    row = {**file(0, 10), **file(0, 10, "read")}
    row |= {"bytes_read": 300 << 20, "bytes_written": 400 << 20, "read_time": 1.0, "write_time": 2.0}
    row |= {"mpiio_bytes_written": 100 << 20, "mpiio_bytes_read": 0, "file_id": 7}
    seen = in_mpi(Activity("", 64, 100.0), row, write=(inside, inside))
    (found,) = [one for one in diagnose(JOB, [row], way, activity=seen).findings if one.cause == "read_modify_write"]
    assert (found.at_most, found.confidence) == (waits or way == "read", "high")
    assert any("in MPI-IO calls" in each.meaning for each in found.evidence) == waits


def test_bytes_of_daos_are_said_to_be_uncounted(expected: Expected) -> None:
    """Also what is unknown of other logs, and facts of one with standard output."""
    daos = {**JOB, "modules": ["POSIX", "DFS", "DAOS"], "uid": 1, "partial": True}
    found = [diagnose(each, files).unknown for each, files in ((daos, [file(0, 10)]), (daos, []), (JOB, [file(0, 10)]))]
    one_writer = diagnose(*CASES["1 of 65,536 ranks writes all"]).unknown
    expected([*found, one_writer, diagnose(*CASES["standard output and shared memory, writes"]).text()])


def test_logs_side_by_side() -> None:
    """24 programs at once for 100 s, the time of I/O 23 s: 23 % of the run time; their processes are added."""
    jobs = [{**JOB, "log_id": number, "processes": 4} for number in range(24)]
    files = [{**file(0, 23, processes=4), "log_id": number, "file_id": number} for number in range(24)]
    after = [{**each, "start_time": JOB["start_time"] + 1000 * each["log_id"]} for each in jobs]
    for at_once, share, processes in ((jobs, 0.23, 96), (after, 23 / 2400, 4)):
        facts = {fact.meaning: fact.value for fact in diagnose(at_once, files).facts}
        assert facts["critical time, as a share of the run time"] == pytest.approx(share)
        assert facts["processes"] == processes


def test_a_page_says_the_time_of_all_logs() -> None:
    jobs = [{**JOB, "log_id": number, "processes": 4, "start_time": 10.0 * number} for number in range(3)]
    tables = {
        "darshan_job": pa.Table.from_pylist(jobs, schema=DARSHAN_JOB.schema()),
        "darshan_file": DARSHAN_FILE.schema().empty_table(),
    }
    facts = dict(report.facts(tables))
    assert (facts["processes"], facts["run time"]) == ("12", "120 s")


@pytest.mark.parametrize("mover", [3, None], ids=["rank 3", "all alike"])
@pytest.mark.parametrize("way", ["write", "read"])
def test_one_rank_that_is_not_the_first_moves_all_files(way: str, mover: int | None, expected: Expected) -> None:
    """No file is most of the data, and all are of one rank: HEATMAP has its bytes."""
    calls = {f"mpiio_coll_{way}s": 0}
    rows = [file(at, at + 2, way, **{"processes": 4, "file_id": at, **calls}) for at in range(0, 8, 2)]
    moved = np.full(4, 100.0) if mover is None else 400.0 * (np.arange(4) == mover)
    heat = {True: np.zeros(4), False: np.zeros(4), way == "write": moved * (1 << 20)}
    expected(summary(diagnose(job(4, 10.0), rows, activity=Activity("HEATMAP", 4, 10.0, heat=heat))))


def test_of_causes_that_take_the_same_time_the_mechanism_leads() -> None:
    first, second = (
        Finding(cause="small_requests", title="", share=1.0, time=at, confidence="high", reason="", what="")
        for at in (0.76301, 0.76304)
    )
    assert first.rank == second.rank < dataclasses.replace(first, time=0.7).rank


@pytest.mark.parametrize("syncs", ["each", "each, fast", "few"])
def test_syncs_after_writes(syncs: str, expected: Expected) -> None:
    """A sync after each write is the cause, not the size of the writes; unless syncs are few or cost nothing."""
    row = file(0, 10, **{**small(), **SERIAL, "write_time": 36.0, "file_id": 7, "processes": 4, "ranks": 4})
    writes = sum(value for name, value in row.items() if name.startswith("write_size_"))
    row |= {"slowest_rank_time": 9.0, **({"write_time": writes * 5e-5} if "fast" in syncs else {})}
    seen = Activity("HEATMAP", 4, 12.0, calls={7: Calls(syncs=writes // 10 if syncs == "few" else writes)})
    expected(summary(diagnose(job(4), [row], activity=seen)))


@pytest.mark.parametrize(("opening", "opens"), [(9.0, 4000), (0.25, 4000), (9.0, 4)])
def test_opens_through_mpiio_for_each_request(opening: float, opens: int, expected: Expected) -> None:
    """The file system sees short opens; the ranks spend the time in MPI_File_open."""
    row = file(0, 10)
    row |= {
        "processes": 4,
        "ranks": 4,
        "opens": opens,
        "writes": 4000,
        "write_size_10k_100k": 4000,
        "write_size_1m_4m": 0,
    }
    row |= {"write_time": 0.1, "meta_time": 0.05, "slowest_rank_time": 0.04, "consec_writes": 0}
    seen = in_mpi(Activity("HEATMAP", 4, 12.0), row, opening=opening)
    expected(summary(diagnose(job(4), [row], activity=seen)))


@pytest.mark.parametrize("way", ["read", "write"])
@pytest.mark.parametrize(
    ("sources", "written"),
    [(None, 96), (None, 48), (0, 96), (2, 96)],
    ids=["gathers", "reads to select", "copies", "others read, too"],
)
def test_one_rank_copies_files(sources: int | None, written: int, way: Any, expected: Expected) -> None:
    """Rank 0 reads 96 MiB of files of all ranks, or of its own, and writes `written` MiB; that takes 4 s and 4 s."""
    common = {"processes": 4, **SERIAL, "root_bytes_written": None}
    source = file(0, 10, "read", bytes_read=96 << 20, reads=1536, read_time=4.0, file_id=1, **common)
    source |= {"ranks": 1, "bytes_written": 0} if sources == 0 else {"ranks": 4, "bytes_written": 24 << 20}
    target = file(0, 10, bytes_written=written << 20, writes=1536, write_time=4.0, file_id=2, **common)
    heat = {False: np.zeros(4), True: np.array([written, 8.0, 8.0, 8.0])}
    heat[False][[0, sources or 0]] = 96.0 if not sources else 48.0
    heat = {kind: each * (1 << 20) for kind, each in heat.items()}
    seen = Activity("HEATMAP", 4, 12.0, heat=heat, owners={2: 0} | ({1: 0} if sources == 0 else {}))
    expected(summary(diagnose(job(4), [source, target], way, activity=seen)))


@pytest.mark.parametrize("other", [2, 1])
def test_rank_0_is_not_alone_beside_one_with_as_much(other: int, expected: Expected) -> None:
    """Ranks 0 and 2 of four write 4 MiB each; or rank 2 writes half of that, and rank 0 two thirds of all."""
    rows = [
        rank_file(rank, processes=4, bytes_written=count << 21, mpiio_coll_writes=None, file_id=rank)
        for rank, count in ((0, 2), (2, other))
    ]
    rows[0]["root_bytes_written"] = rows[0]["bytes_written"]
    expected(summary(diagnose(job(4, 20.0), rows, activity=Activity("", 4, 20.0, owners={0: 0, 2: 2}))))


@pytest.mark.parametrize("writers", [2, 6])
def test_few_of_seven_ranks_write_all(writers: int, expected: Expected) -> None:
    """HEATMAP has the bytes of each rank; whether the others wait is not known."""
    share = (140 << 20) // writers
    row = file(0, 10)
    row |= {
        "processes": 7,
        "ranks": 7,
        "bytes_written": 140 << 20,
        "write_time": 9.0 * writers,
        "slowest_rank_time": 9.5,
    }
    row |= {"slowest_rank_bytes": share, "fastest_rank_bytes": 0, "mpiio_coll_writes": None}
    heat = np.where(np.arange(7) < writers, float(share), 0.0)
    seen = Activity("HEATMAP", 7, 12.0, heat={True: heat, False: np.zeros(7)})
    expected(summary(diagnose(job(7), [row], activity=seen)))


@pytest.mark.parametrize(
    ("ranks", "full"),
    [([5] * 10, False), ([5] * 10, True), (range(10), False), (range(40), False)],
    ids=["rank 5", "rank 5, the log has lost records", "ten ranks", "most ranks"],
)
def test_metadata_calls_of_one_rank_are_not_divided_by_all(
    ranks: Sequence[int], full: bool, expected: Expected
) -> None:
    """Rank 5 of 64 makes 1,000 files in 30 s: that is 30 s of the job, not half a second of each rank."""
    nothing = {"write_start": None, "write_end": None, "bytes_written": 0, "write_time": 0.0}
    rows = [rank_file(number, **nothing, processes=64, opens=100, meta_time=3.0) for number in range(len(ranks))]
    records = of_rows(Files(pa.Table.from_pylist(rows), "write"), 64, 100.0).records
    records["rank"] = ranks
    seen = Activity("HEATMAP", 64, 100.0, ledger=Ledger(records, 64, 100.0), full=full)
    expected(summary(diagnose(job(64, 100.0), rows, activity=seen)))


@pytest.mark.parametrize(
    ("opens", "end"), [(600, 10), (3, 10), (600, 0.01)], ids=["by MPI-IO", "besides by POSIX", "ranks wait for ranks"]
)
def test_opens_are_those_of_the_program(opens: int, end: float, expected: Expected) -> None:
    """Each MPI_File_open is two opens of POSIX; a program that opens besides, by POSIX, has these counted."""
    meta = {"meta_time": 30.0 if end == 10 else 0.01}
    one = file(0, end, ranks=4, opens=1200, bytes_written=400, writes=4, processes=4, file_id=0, **meta)
    seen = in_mpi(Activity("HEATMAP", 4, 10.0, calls={0: Calls(opens=opens)}), one, opening=8.0)
    expected(summary(diagnose(job(4, 10.0), [one], activity=seen)))


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize(
    ("piece", "calls", "busy"),
    [(1, 4_000_000, 9.0), (45, 4_000_000, 9.0), (100_000, 4_000_000, 9.0), (1, 4_000, 9.0), (1, 4_000_000, 0.5)],
)
def test_tiny_pieces_through_the_c_library(
    piece: int, calls: int, busy: float, flushed: bool, expected: Expected
) -> None:
    """POSIX has none of these calls: there is no histogram, only how many they are, how large, and how long."""
    row = file(0, 10)
    row |= {"processes": 4, "ranks": 4, "writes": calls, "bytes_written": calls * piece, "write_size_1m_4m": 0}
    row |= {"write_time": busy * 4, "slowest_rank_time": busy, "consec_writes": 0, "mpiio_coll_writes": None}
    seen = Activity("", 4, 12.0, calls={row["file_id"]: Calls(flushes=calls // 2)}) if flushed else None
    expected(summary(diagnose(job(4), [row], activity=seen)))
