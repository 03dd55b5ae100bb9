"""First sentences on logs of people's programs that were answered wrongly once, and what speaks against each.

A log's truth is in ``strangers/README.md`` beside the project. Each rule has a made case beside the log, in which the
same numbers have another reason.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import mpiio_ext
from mpiio_ext.analytics.diagnosis import Diagnosis, diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls, Row
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.ledger.records import of_part
from mpiio_ext.analytics.report.findings import Known, diagnoses
from mpiio_ext.analytics.report.logs import by_job
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.common.darshanfile import COUNTERS
from support import darshan_rows
from support.expected import Expected
from support.quiet_rows import JOB, file, in_mpi, summary

MIB = 1 << 20


#: What is known of each log of `strangers` that is read here.
LOGS = {
    # 16 ranks write 1 MiB each through DFS, which HEATMAP does not see; rank 0 prints 2 kB, which is all that it has
    "dfs-ior-16",
    # 2,505 independent reads of 512 B, and 496 collective ones of 107 MB each: one process reads for all; one stripe
    # has one aggregator
    "collective-one-stripe-496",
    # 98 % of the reads are followed by a write of the same range, within MPI-IO writes; MPI-IO reads nothing
    "sieved-no-gaps-192",
    # 172 rank-seconds of MPI-IO writes have 1.04 s of requests, one after the other; then the file is read
    "ompio-locks-32-dxt",
    # a reader with 5 s in calls: 7 large files lie on all targets, and two dozen tiny ones on one each
    "dlio-reader-1",
    # each of three processes opens 157 Python modules once: each open reads a header, and then the rest
    "python-imports-3",
}


def of_log(name: str) -> dict[str, dict[str, Any]]:
    """Return the diagnosis of a log in each direction."""
    path = darshan_rows.shared_data("strangers", f"{name}.darshan")
    tables = convert([path.name], str(path.parent)).tables
    told = [one["document"] for one in diagnoses(tables, Known(activity=activity_of(path, tables)))]
    return {one["direction"]: one for one in told}


@pytest.mark.parametrize("name", sorted(LOGS))
def test_logs_of_strangers(name: str, expected: Expected) -> None:
    expected({way: [one["conclusion"], one["findings"]] for way, one in of_log(name).items()})


def causes(document: dict[str, Any]) -> dict[str, str]:
    """Return cause -> confidence, the first finding first; of two findings of a cause, the first."""
    return {each["cause"]: each["confidence"] for each in reversed(document["findings"])}


#: Made rows, a direction, what else the log says, and columns of the job.
Case = tuple[list[dict[str, Any]], str, Activity | None, dict[str, Any]]


def case(*rows: dict[str, Any], way: str = "write", activity: Activity | None = None, **job: Any) -> Case:
    return list(rows), way, activity, {"run_time": 20.0, **job}


def by_heatmap(seen: float) -> Case:
    """Return a file of unknown ranks: only HEATMAP can tell that rank 0 has the bytes, if it has them all."""
    row = file(0, 10, processes=16, ranks=16, write_time=9.0, root_bytes_written=None, mpiio_coll_writes=None)
    heat = np.zeros(16)
    heat[0] = seen * row["bytes_written"]
    return case(row, activity=Activity("HEATMAP", 16, 20.0, heat={True: heat}), processes=16)


def beside_root(of_root: int) -> Case:
    """Return a file that rank 0 writes; who writes the other file, the log does not tell."""
    common = {"processes": 8, "mpiio_coll_writes": None, "mpiio_indep_writes": None}
    own = file(0, 10, bytes_written=of_root, root_bytes_written=of_root, write_time=9.0, **common)
    other = file(0.5, 10, bytes_written=100 * MIB - of_root, root_bytes_written=None, ranks=8, write_time=1.0, **common)
    return case(own, other, processes=8)


def one_of_64(large: int, collective: int, independent: int) -> Case:
    """Return a file that one of 64 ranks writes. The large calls are those of which there are 64; of as many of both,
    none is sure."""
    row = file(0, 10)
    row |= {"ranks": 64, "bytes_written": 640 * MIB, "slowest_rank": 0, "slowest_rank_bytes": 640 * MIB}
    row |= {"fastest_rank_bytes": 0, "slowest_rank_time": 9.0, "write_time": 9.0, "root_bytes_written": None}
    row |= {"mpiio_coll_writes": collective, "mpiio_indep_writes": independent, "mpiio_bytes_written": 640 * MIB}
    sizes = np.array([0, 5000, 0, 0, 0, 0, 64, 0, 0, 0.0])
    return case(
        row, activity=Activity("", 64, 20.0, calls={row["file_id"]: Calls(sizes={True: sizes} if large else {})})
    )


#: Written by MPI-IO, and read meanwhile by POSIX, exactly as much; the calls of a process take 9 s.
UPDATED: dict[str, Any] = {
    "ranks": 8,
    "processes": 8,
    "bytes_written": 800 * MIB,
    "mpiio_bytes_written": 800 * MIB,
    "bytes_read": 800 * MIB,
    "mpiio_bytes_read": 0,
    "reads": 800,
    "read_size_1m_4m": 800,
    "writes": 800,
    "write_size_1m_4m": 800,
    "read_start": 1.6e9,
    "read_end": 1600000000.0 + 10,
    "read_time": 40.0,
    "write_time": 30.0,
    "slowest_rank_time": 9.0,
}
READ_LATER = {"read_start": 1.6e9 + 11, "read_end": 1.6e9 + 12}
BY_MPIIO = {"mpiio_bytes_read": 800 * MIB}


def updated(inside: float, switches: int = 0, collective: bool = False, **changed: Any) -> Case:
    """Return a file that is read and written; `inside`: the time of a rank in MPI-IO calls (s)."""
    calls = {"mpiio_coll_writes": 800 * collective, "mpiio_indep_writes": 800 * (not collective)}
    row = file(0, 10, **UPDATED | calls | changed)
    seen = Activity("", 8, 20.0, calls={row["file_id"]: Calls(switches=switches)} if switches else {})
    return case(row, activity=in_mpi(seen, row, write=(inside, inside)), processes=8)


def exchanged(collective: bool) -> Case:
    """Return 9 s in calls, of which 3.5 s are requests: independent calls wait for locks meanwhile, collective ones
    exchange data."""
    times = {"read_time": 16.0, "write_time": 12.0, "slowest_rank_time": 3.5}
    return updated(9.0, collective=collective, bytes_written=1200 * MIB, **times)


def waiting(**changed: Any) -> Case:
    return updated(9.0, **{"read_time": 4.0, "write_time": 4.0, "slowest_rank_time": 1.0, **changed})


def on_targets(moved: int, in_calls: float, there: int) -> Case:
    """Return files on 8 targets, one of which takes 9 s for what the others do in 0.5 s; a striped file touches it,
    too."""
    slow = [k % 8 == 3 and k // 8 < there for k in range(32)]
    rows = [
        file(
            k * 0.001,
            9.0 if is_slow else 0.5,
            bytes_written=moved,
            stripe_count=1,
            osts=[k % 8],
            write_time=in_calls if is_slow else 0.5,
        )
        for k, is_slow in enumerate(slow)
    ]
    return case(*rows, file(9.5, 19.5, bytes_written=4096 * MIB, osts=list(range(8)), stripe_count=8, write_time=10.0))


def opened(files: int, opens: int) -> Case:
    own = {"processes": 8, "ranks": 8, "opens": 8 * opens, "write_time": 0.01, "mpiio_coll_writes": None}
    times = {"meta_time": 64.0 / files, "slowest_rank_time": 8.0 / files}
    return case(*(file(k * 0.001, 10, **own, **times) for k in range(files)), processes=8)


def distinct(end: int) -> Case:
    """Return 8 MiB that each of 128 ranks reads in 1 s, 1.07 GB/s: of a file of 8 MiB the job gets 8.4 MB/s."""
    row = file(0, 1, "read")
    row |= {
        "processes": 128,
        "ranks": 128,
        "bytes_read": 1024 * MIB,
        "reads": 1024,
        "read_size_1m_4m": 1024,
        "consec_reads": 900,
    }
    row |= {
        "max_offset_read": end * MIB - 1,
        "read_time": 120.0,
        "slowest_rank_time": 1.0,
        "slowest_rank_bytes": 8 * MIB,
    }
    row |= {"fastest_rank_bytes": 8 * MIB, "mpiio_coll_reads": None, "mpiio_indep_reads": None}
    return case(row, way="read", processes=128, run_time=2.0)


def jumping(ranks: int, end: int, **columns: Any) -> Case:
    """Return 800 MiB that are read of a file of 32 MiB: requests of 4 MiB jump back after each two."""
    own = {} if ranks == 1 else {"slowest_rank_bytes": 200 * MIB, "fastest_rank_bytes": 200 * MIB}
    row = file(0, 10, "read", processes=4, ranks=ranks, max_offset_read=end * MIB - 1, slowest_rank_time=9.0)
    row |= {"bytes_read": 800 * MIB, "mpiio_coll_reads": None, "mpiio_indep_reads": None, "read_time": 36.0}
    row |= {"reads": 200, "consec_reads": 100, "read_size_1m_4m": 200}
    return case({**row, **own, **columns}, way="read", processes=4)


#: 8 ranks write 800 MiB into a file of 400 MiB.
TWICE: dict[str, Any] = {
    "processes": 8,
    "ranks": 8,
    "opens": 8,
    "bytes_written": 800 * MIB,
    "writes": 800,
    "write_size_1m_4m": 800,
    "consec_writes": 700,
    "max_offset_written": 400 * MIB - 1,
    "write_time": 72.0,
    "slowest_rank_time": 9.0,
    "slowest_rank_bytes": 100 * MIB,
    "fastest_rank_bytes": 100 * MIB,
    "mpiio_coll_writes": None,
    "mpiio_indep_writes": None,
}


def moved(way: str, end: int, switches: int, asked: int) -> Case:
    """Return 8 MiB that four ranks write, and move eight times, in two blocks of 1 MiB each, from behind."""
    row = {**file(0, 2.2), **file(0, 2.2, "read"), "mpiio_coll_reads": 64, "mpiio_coll_writes": 72, "processes": 4}
    row |= {"ranks": 4, "file_id": 7, "bytes_read": 64 * MIB, "bytes_written": 72 * MIB, "reads": 64, "writes": 72}
    row |= {"read_size_1m_4m": 64, "write_size_1m_4m": 72, "seq_reads": 32, "seq_writes": 36, "mpiio_coll_writes": 72}
    row |= {"consec_reads": 0, "consec_writes": 0, "read_time": 3.4, "write_time": 3.9, "slowest_rank_time": 1.9}
    row |= {"max_offset_read": 8 * MIB - 1, "max_offset_written": 8 * MIB - 1 + end, "slowest_rank_bytes": 34 * MIB}
    row |= {"fastest_rank_bytes": 34 * MIB, "mpiio_bytes_read": asked * MIB, "mpiio_bytes_written": 72 * MIB}
    seen = in_mpi(Activity("", 4, 2.3, calls={7: Calls(switches=switches)}), row, read=(1.0, 1.0), write=(1.0, 1.0))
    return case(row, way=way, activity=seen, processes=4, run_time=2.3)


def aggregated(ranks: int = 8, run_time: float = 20.0, **changed: Any) -> Case:
    """Return 800 MiB that the ranks write by collective calls, and one of them makes the requests."""
    row = file(0, 10, processes=ranks, ranks=ranks)
    row |= {
        "bytes_written": 800 * MIB,
        "writes": 800,
        "write_size_1m_4m": 800,
        "write_time": 8.0,
        "slowest_rank_time": 8.0,
        "slowest_rank_bytes": 800 * MIB,
        "fastest_rank_bytes": 0,
        "root_bytes_written": None,
        "mpiio_coll_writes": 800,
        "mpiio_bytes_written": 800 * MIB,
    }
    return case({**row, **changed}, processes=ranks, run_time=run_time)


def in_turn(wall: float) -> Case:
    """Return requests of some calls that each rank makes: by the sums there are 8 aggregators, by DXT one at a time."""
    each = np.full(8, 100.0)
    ones, ends = np.full(8, 1.0), np.full(8, 10.0)
    traced = Row(np.arange(8), each, each * MIB, ones, np.zeros(8), ends, wall=wall, called=10.0, calls=each / 10)
    rows, way, _, job = aggregated(slowest_rank_bytes=100 * MIB, fastest_rank_bytes=100 * MIB, slowest_rank_time=1.0)
    seen = Activity("DXT", 8, 20.0, rows={(rows[0]["file_id"], True): traced}, wall={True: 10.0})
    return rows, way, seen, job


def beside_collective(took: float) -> Case:
    """Return small writes to one file that take 5 % of the run, or 30 %; collective calls of another one take the rest
    of 80 %."""
    common = {"processes": 8, "ranks": 8, "mpiio_indep_writes": 0}
    tiny = file(0, took, **common, writes=8000, write_size_1k_10k=8000, bytes_written=8000 * 4096)
    tiny |= {"write_size_1m_4m": 0, "consec_writes": 0, "mpiio_coll_writes": None}
    tiny |= {"write_time": 8 * took, "slowest_rank_time": took}
    large = file(took, 16, **common, write_time=8.0, slowest_rank_time=1.0, mpiio_coll_writes=100, file_id=1)
    seen = in_mpi(Activity("", 8, 20.0), large, tiny, write=(16 - took, 16 - took))
    return case(tiny, large, activity=seen, processes=8)


def reopened(opens: int, in_order: int, meta_time: float) -> Case:
    """Return 24,000 pieces of 4 KiB that 8 ranks read: by one open, or by an open for every three."""
    row = file(0, 10, "read")
    row |= {
        "processes": 8,
        "ranks": 8,
        "opens": opens,
        "bytes_read": 24000 * 4096,
        "reads": 24_000,
        "read_size_1k_10k": 24_000,
    }
    row |= {
        "read_size_1m_4m": 0,
        "consec_reads": in_order,
        "seq_reads": 12_000,
        "meta_time": meta_time,
        "read_time": 40.0,
    }
    row |= {"slowest_rank_time": (meta_time + 40.0) / 8, "mpiio_coll_reads": None, "mpiio_indep_reads": None}
    return case(row, way="read", processes=8)


def fast(meta_time: float) -> Case:
    """Return 64 GiB that 8 ranks write in 4 s, which is not low: opens of 8 s are slow nevertheless, and so is one
    writer."""
    row = file(0, 10)
    row |= {
        "processes": 8,
        "ranks": 8,
        "opens": 8000,
        "bytes_written": 65536 * MIB,
        "meta_time": meta_time,
        "write_time": 4.0,
        "slowest_rank_time": 4.0 + meta_time / 8,
        "slowest_rank": 0,
        "slowest_rank_bytes": (8192 if meta_time else 65536) * MIB,
        "fastest_rank_bytes": 8192 * MIB if meta_time else 0,
        "root_bytes_written": None,
        "mpiio_coll_writes": None,
        "mpiio_indep_writes": None,
    }
    return case(row, processes=8)


def mapped(maps: int, calls: bool) -> Case:
    """Return few reads beside mapped memory, whose accesses are no calls: little time is not "too little" alone."""
    row = file(0, 0.01, "read", ranks=8, processes=8, bytes_read=4096, reads=8, read_time=0.01, mpiio_coll_reads=None)
    if not calls:
        row |= {"bytes_read": 0, "reads": 0, "read_size_1m_4m": 0, "read_start": None, "read_end": None}
        row |= {"read_time": 0.0}
    seen = Activity("", 8, 20.0, calls={row["file_id"]: Calls(maps=maps)})
    return case(row, way="read", activity=seen, processes=8)


#: Rank 0 writes all, and whatever is done in the mapping is in no call.
ROOT = file(0, 10, ranks=64, bytes_written=640 * MIB, slowest_rank=0, slowest_rank_bytes=640 * MIB)
ROOT |= {
    "fastest_rank_bytes": 0,
    "slowest_rank_time": 9.0,
    "write_time": 9.0,
    "mpiio_coll_writes": 0,
    "mpiio_indep_writes": 64,
}


def after_another(way: str, ranks: int, pause: float = 0.0, **columns: Any) -> Case:
    """Return three files that are accessed one after the other, 4 s each."""
    times = {f"{way}_time": 4.0 * ranks, "slowest_rank_time": 4.0}
    rows = [
        file(k * (4.0 + pause), 4.0 + k * (4.0 + pause), way, ranks=ranks, processes=ranks, **times | columns)
        for k in range(3)
    ]
    return case(*rows, way=way, processes=ranks, run_time=40.0)


PLAIN = {"mpiio_coll_reads": None, "mpiio_indep_reads": None, "mpiio_coll_writes": None, "mpiio_indep_writes": None}
SMALL = {"read_size_1m_4m": 0, "read_size_1k_10k": 100, "bytes_read": 4096 * 100, "consec_reads": 0}


def headers(sizes: dict[int, int], seconds: float, **columns: Any) -> Case:
    """Return 30 MiB that each of 4 ranks writes in 120 requests, and 1,860 headers of 512 B, which take rank 0 3 s."""
    row = file(0, 4, ranks=4, processes=4, writes=1980, write_size_100_1k=1860, slowest_rank=0)
    row |= {
        "bytes_written": 120 * MIB + 1860 * 512,
        "write_size_100k_1m": 120,
        "write_size_1m_4m": 0,
        "consec_writes": 1830,
        "write_time": 7.0,
        "slowest_rank_time": 4.0,
        "slowest_rank_bytes": 30 * MIB + 1860 * 512,
        "fastest_rank_bytes": 30 * MIB,
        "mpiio_coll_writes": None,
        "mpiio_indep_writes": None,
    }
    durations = np.zeros((192, 1, 80), np.int64)
    durations[36, 0, 30] = seconds * 2**9  # of 512 B, 2**-9 s each
    seen = Activity("DXT", 4, 5.0, durations={True: durations}, common={"POSIX": sizes})
    return case({**row, **columns}, activity=seen, processes=4, run_time=5.0)


def before_collective() -> Case:
    """Return 5,000 independent calls of rank 0 beside 80 collective ones: as the aggregator it has all requests."""
    row = file(0, 10)
    row |= {
        "ranks": 4,
        "processes": 4,
        "file_id": 7,
        "bytes_written": 20 * MIB + 5000 * 256,
        "writes": 5020,
        "write_size_100_1k": 5000,
        "write_size_1m_4m": 20,
        "consec_writes": 4980,
        "write_time": 7.0,
        "slowest_rank": 0,
        "slowest_rank_time": 7.0,
        "slowest_rank_bytes": 20 * MIB + 5000 * 256,
        "fastest_rank_bytes": 0,
        "mpiio_coll_writes": 80,
        "mpiio_indep_writes": 5000,
        "mpiio_bytes_written": 20 * MIB + 5000 * 256,
    }
    sizes = {True: np.array([0, 5000, 0, 0, 80, 0, 0, 0, 0, 0.0])}
    calls = Calls(sizes=sizes, last=0, first=2, more=5000.0 * 256, apart=(1.5, 3.4, 9.0))
    seen = Activity("", 4, 20.0, calls={7: calls}, common={"MPI-IO": {256: 5000, 262144: 80}})
    return case(row, activity=in_mpi(seen, row, write=(3.4, 9.0)), processes=4, run_time=10.0)


def late_to_open(apart: tuple[float, float, float], opening: float, moving: float) -> Case:
    """Return a file that 4 ranks open for 4 s on average, which takes POSIX 9 ms, and rank 2 hardly any time."""
    row = file(5.3, 5.8, ranks=4, processes=4, file_id=7, meta_time=0.04, write_time=0.3, slowest_rank_time=0.3)
    seen = Activity("", 4, 6.0, calls={7: Calls(apart=apart, alike=True, first=2, last=1)})
    return case(row, activity=in_mpi(seen, row, opening=opening, write=(moving, moving)), processes=4, run_time=6.0)


def locked(inside: float) -> Case:
    """Return 1,536 requests of 64 KiB that take 0.9 s of a rank, and their 96 calls, which take 3.6 s, as by locks."""
    row = file(0, 4)
    row |= {
        "ranks": 4,
        "processes": 4,
        "file_id": 7,
        "bytes_written": 96 * MIB,
        "writes": 1536,
        "write_size_10k_100k": 1536,
        "write_size_1m_4m": 0,
        "consec_writes": 0,
        "seq_writes": 1535,
        "write_time": 3.4,
        "slowest_rank_time": 0.9,
        "slowest_rank_bytes": 24 * MIB,
        "fastest_rank_bytes": 24 * MIB,
        "mpiio_coll_writes": 0,
        "mpiio_indep_writes": 96,
        "mpiio_bytes_written": 96 * MIB,
    }
    return case(row, activity=in_mpi(Activity("", 4, 5.0), row, write=(inside, inside)), processes=4, run_time=5.0)


def lines_again(ranks: int, seeks: int, **changed: Any) -> Case:
    """Return a table of 1 MiB that each of some ranks reads from its start 50 times through the C library, by 64 B
    each: most of these are needless."""
    moved = 50 * ranks * MIB
    row = file(0, 10, "read", processes=ranks, ranks=ranks, bytes_read=moved, reads=moved // 64)
    row |= {"consec_reads": None, "seq_reads": None, "max_offset_read": MIB - 1, "read_time": 9.0 * ranks}
    row |= {"slowest_rank_time": 9.0, "slowest_rank_bytes": 50 * MIB, "fastest_rank_bytes": 50 * MIB, "file_id": 7}
    row |= {"mpiio_coll_reads": None, "mpiio_indep_reads": None, "opens": ranks, "read_size_1m_4m": 0} | changed
    seen = Activity("", ranks, 20.0, calls={7: Calls(streamed=True, seeks=seeks)})
    return case(row, way="read", activity=seen, processes=ranks)


def few_bytes() -> Case:
    """Return 300 calls of 64 B of each rank: two aggregators make requests of 128 B of them, each behind a gap."""
    row = file(0, 10, processes=4, ranks=4, bytes_written=600 * 128, writes=600, write_size_1m_4m=0, file_id=7)
    row |= {
        "write_size_100_1k": 600,
        "consec_writes": 0,
        "seq_writes": 600,
        "write_time": 18.0,
        "slowest_rank_time": 9.0,
    }
    row |= {"mpiio_coll_writes": 1200, "mpiio_bytes_written": 1200 * 64, "slowest_rank_bytes": 300 * 128}
    return case(row, activity=in_mpi(Activity("", 4, 20.0), row, write=(9.5, 9.5)), processes=4)


def read_back(switches: int, write: tuple[float, float] = (-0.5, 7.0), **changed: Any) -> Case:
    """Return a checkpoint of 48 MiB that is written, read by 64 KiB, and then overwritten by the next one."""
    row = file(1, 10, "read", processes=1, bytes_read=96 * MIB, reads=1536, read_size_1m_4m=0, file_id=7)
    row |= {
        "bytes_written": 96 * MIB,
        "writes": 24,
        "seq_writes": 22,
        "max_offset_written": 48 * MIB - 1,
        "write_time": 2.0,
    }
    row |= {"read_size_10k_100k": 1536, "seq_reads": 1534, "consec_reads": 1534, "max_offset_read": 48 * MIB - 1}
    row |= {"read_time": 8.0, "mpiio_coll_reads": None, **changed}
    row |= {"write_start": row["read_start"] + write[0], "write_end": row["read_start"] + write[1]}
    seen = Activity("", 1, 20.0, calls={7: Calls(switches=switches)})
    return case(row, way="read", activity=seen, processes=1)


def passed_on(count: int, processes: int) -> Case:
    """Return files of 20 MiB that one step writes, and the next one reads; one file for each rank may be a result."""
    rows = []
    for k in range(count):
        row = file(2 + 2 * k, 3 + 2 * k, "read", processes=processes, bytes_read=20 * MIB, reads=20, file_id=k)
        row |= {"bytes_written": 20 * MIB, "writes": 20, "seq_writes": 19, "max_offset_written": 20 * MIB - 1}
        row |= {
            "seq_reads": 19,
            "consec_reads": 19,
            "max_offset_read": 20 * MIB - 1,
            "read_size_1m_4m": 20,
            "write_time": 1.0,
        }
        row |= {"mpiio_coll_reads": None, "write_start": row["read_start"] - 1.5, "write_end": row["read_start"] - 0.5}
        rows.append(row)
    seen = Activity("", processes, 20.0, calls={k: Calls(switches=1) for k in range(count)})
    return case(*rows, way="read", activity=seen, processes=processes)


CASES: dict[str, Case] = {
    "HEATMAP has the bytes": by_heatmap(1.0),
    "HEATMAP has half of the bytes": by_heatmap(0.5),
    "rank 0 has 90 % of the bytes": beside_root(90 * MIB),
    "rank 0 has 30 % of the bytes": beside_root(30 * MIB),
    "64 collective calls, 5,000 independent ones": one_of_64(64, 64, 5000),
    "5,000 collective calls, 64 independent ones": one_of_64(64, 5000, 64),
    "64 calls each": one_of_64(64, 64, 64),
    "64 collective calls of unknown sizes": one_of_64(0, 64, 5000),
    "64 independent calls of unknown sizes": one_of_64(0, 5000, 64),
    "sieved": updated(9.0, 1600),
    "read, then written": updated(9.0, 8),
    "the program itself reads each piece before it writes it": updated(5.0, 1600),
    "the exchange of collective calls": exchanged(True),
    "the locks of independent calls": exchanged(False),
    "calls that wait, read later by MPI-IO": waiting(**READ_LATER, **BY_MPIIO),
    "calls that wait, read meanwhile by MPI-IO": waiting(**BY_MPIIO),
    "calls that wait, read by the MPI library": waiting(),
    "calls that wait, read later by POSIX": waiting(**READ_LATER),
    "a slow target": on_targets(64 * MIB, 9.0, 4),
    "one slow file": on_targets(64 * MIB, 9.0, 1),
    "the program pauses": on_targets(64 * MIB, 0.5, 4),
    "a slow target by files of 1,000 B": on_targets(1000, 9.0, 4),
    "100 files are opened once": opened(100, 1),
    "100 files are opened twice": opened(100, 2),
    "100 files are opened 20 times": opened(100, 20),
    "a file is opened 200 times": opened(1, 200),
    "the bandwidth of distinct bytes": distinct(8),
    "the bandwidth of bytes that are all distinct": distinct(1024),
    "a shared file is read again": jumping(4, 32),
    "a file of one rank is read again": jumping(1, 40),
    "a file is read once": jumping(4, 800),
    "small pieces at random places": jumping(4, 32, reads=12800, read_size_10k_100k=12800, read_size_1m_4m=0),
    "written twice": case(file(0, 10, **TWICE), processes=8),
    "written once": case(file(0, 10, **TWICE | {"max_offset_written": 800 * MIB - 1}), processes=8),
    "each open may append": case(file(0, 10, **TWICE | {"opens": 8 * 8}), processes=8),
    "gaps are filled": case(file(0, 10, **TWICE, mpiio_bytes_written=100 * MIB), processes=8),
    "ranks append": case(
        file(0, 10, **TWICE | {"slowest_rank_bytes": 400 * MIB, "fastest_rank_bytes": 0, "consec_writes": 800}),
        processes=8,
    ),
    **{
        f"{name}, {way}s": moved(way, *numbers)
        for way in ("read", "write")
        for name, numbers in {
            "data are moved": (3072, 128, 64),
            "data are changed in place": (0, 128, 64),
            "all data are read first": (3072, 20, 64),
            "the MPI library reads": (3072, 128, 0),
        }.items()
    },
    "one aggregator": aggregated(),
    "one aggregator is hardly in calls": aggregated(write_time=1.0, slowest_rank_time=1.0),
    "one aggregator and a slow server": aggregated(
        bytes_written=80 * MIB, mpiio_bytes_written=80 * MIB, slowest_rank_bytes=80 * MIB
    ),
    "8 aggregators": aggregated(slowest_rank_bytes=100 * MIB, fastest_rank_bytes=100 * MIB),
    # one aggregator on each node is usual. It is too few where the run consists of its calls, which take 10 s, or where
    # it has ranks of several nodes
    **{
        f"one aggregator of {ranks} ranks, {run_time:g} s": aggregated(ranks, run_time)
        for run_time, ranks in ((19.0, 8), (21.0, 8), (79.0, 8), (81.0, 8), (81.0, 512))
    },
    "one aggregator at a time": in_turn(8.0),
    "four aggregators at a time": in_turn(2.0),
    "all aggregators at a time": in_turn(1.0),
    "small requests of 1 s beside collective calls": beside_collective(1.0),
    "small requests of 6 s beside collective calls": beside_collective(6.0),
    "random places": reopened(8, 0, 0.0),
    "in order after each open": reopened(8000, 16_000, 0.0),
    "random places after each open": reopened(8000, 0, 0.0),
    "opens take the time": reopened(8000, 0, 80.0),
    "slow opens of a high bandwidth": fast(64.0),
    "one writer of a high bandwidth": fast(0.0),
    **{
        f"{'reads' if calls else 'no reads'}, {maps} mappings": mapped(maps, calls)
        for calls in (True, False)
        for maps in (0, 8)
    },
    "mappings behind a sure cause": case(ROOT, activity=Activity("", 64, 20.0, calls={ROOT["file_id"]: Calls(maps=3)})),
    # what a program cannot do is not advised: no writes to a reader, no MPI to one process without it
    "reads one after the other": after_another("read", 4),
    "reads of one process one after the other": after_another("read", 1, **PLAIN),
    "writes one after the other, by POSIX": after_another("write", 4, **PLAIN),
    # the next checkpoint is not there to be written before
    "checkpoints": after_another("write", 4, pause=8.0),
    "small reads of one process": case(file(0, 10, "read", processes=1, **SMALL | PLAIN), way="read", processes=1),
    "small reads of four": case(file(0, 10, "read", processes=4, ranks=4, **SMALL | PLAIN), way="read", processes=4),
    "headers of rank 0": headers({512: 1860, MIB: 120}, 2.0),
    "headers of which the time is not": headers({512: 1860, MIB: 120}, 0.1),
    "headers by the histogram": headers({}, 2.0),
    "headers of rank 0, which has one large piece more": headers(
        {512: 1860, MIB: 120}, 2.0, slowest_rank_bytes=31 * MIB
    ),
    "headers of rank 0, which is as fast": headers({512: 1860, MIB: 120}, 2.0, slowest_rank_time=1.2),
    "headers alone": headers({512: 1860}, 2.0, write_size_100k_1m=0, bytes_written=1860 * 512),
    "headers before collective writes": before_collective(),
    "one is late to open": late_to_open((0.7, 4.5, 5.7), 4.0, 0.45),
    "all open for long": late_to_open((4.4, 4.5, 4.6), 4.0, 0.45),
    "one opens for long": late_to_open((0.7, 2.0, 5.7), 1.5, 0.45),
    "late to writes": late_to_open((0.7, 4.5, 5.7), 0.5, 4.0),
    "waits in calls before small requests": locked(3.6),
    "small requests without waits": locked(1.0),
    "lines are read again by one": lines_again(1, 50),
    "lines are read again without POSIX": lines_again(1, 50, read_size_0_100=None),
    "lines are read again by each": lines_again(4, 200),
    "lines at random places": lines_again(1, 10**9),
    "lines are read once": lines_again(1, 50, max_offset_read=50 * MIB - 1),
    "lines are written between": lines_again(1, 50, bytes_written=50 * MIB, max_offset_written=MIB - 1),
    # one aggregator writes 800 MiB into a file of 100 MiB, eight times over: seven of them are needless
    "written eight times by one aggregator": aggregated(run_time=12.0, max_offset_written=100 * MIB - 1),
    "written once by one aggregator": aggregated(run_time=12.0, max_offset_written=800 * MIB - 1),
    "few bytes of collective calls": few_bytes(),
    "checkpoints are read back": read_back(3),
    "checkpoints are read back at the end": read_back(1),
    "a part of checkpoints is read back": read_back(3, bytes_read=20 * MIB),
    "checkpoints are read first": read_back(3, write=(1.0, 12.0)),
    "steps pass data on": passed_on(3, 1),
    "one step passes data on": passed_on(1, 1),
    "steps of four processes pass data on": passed_on(3, 4),
}


def told(made: Case) -> Diagnosis:
    rows, way, activity, job = made
    return diagnose({**JOB, **job}, rows, way, activity=activity)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_rules_beside_the_logs(name: str, expected: Expected) -> None:
    expected(summary(told(CASES[name])))


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
    row |= {
        "mpiio_coll_writes": None,
        "mpiio_coll_reads": None,
        "processes": 1,
        "write_size_1m_4m": 0,
        "read_size_1m_4m": 0,
    }
    row |= {"read_time": 4.0, "write_time": 4.0, "max_offset_written": 20 * MIB - 1, "max_offset_read": 20 * MIB - 1}
    for one, done in (("read", "read"), ("write", "written")):
        row |= {f"bytes_{done}": 800 * MIB, f"{one}s": 100_000, f"{one}_size_1k_10k": 100_000}
        row |= {f"consec_{one}s": 1000, f"seq_{one}s": 1000}
    if way == "write" and not changed.get("writes", 1):
        return
    found = told(case(row | changed, way=way, processes=1)).to_dict()
    wanted = f"redundant_{way}s" if cause == "redundant" else cause
    assert (
        cause == "in place"
        or causes(found) == {wanted: "high"}
        or (wanted == "small_requests" and causes(found)[wanted] == "high")
    )
    assert (cause == "redundant") == ("Define all variables" in str(found))


def test_a_process_without_mpi_gets_no_advice_of_it(expected: Expected) -> None:
    rows, way, _, job = CASES["small reads of four"]
    expected(summary(diagnose({**JOB, **job}, rows, way, without_mpi=True)))  # type: ignore[arg-type]


def test_bytes_say_of_which_layer_they_are() -> None:
    """384 ranks hand 258 GB to MPI-IO; the MPI library reads 25.9 GB beside that, and writes 266 GB."""
    (path,) = darshan_rows.shared_data("darshan").glob("jlbez*.darshan")
    page = dict(mpiio_ext.run_report(path).document["facts"])
    (logs,) = by_job([(path, convert([path.name], str(path.parent)).tables)])
    facts = logs.report(None, anonymous=False, low=1e9).document()["facts"]
    assert page["read, written by the program"] == "80 B, 258 GB"
    assert facts["read, written at the file system"] == "25.9 GB, 266 GB"
    assert not {"read, written"} & {*page, *facts}


def test_descriptors_of_a_stream_are_no_opens() -> None:
    """Darshan counts fileno of a stream as an open of POSIX beside that of the C library."""
    names, timed = COUNTERS["POSIX"]
    kind = [("file", "u8"), ("rank", "i8"), ("counters", "i8", (len(names),)), ("times", "f8", (len(timed),))]
    part = np.zeros(1, kind)
    part["counters"][0, [names.index("OPENS"), names.index("FILENOS")]] = 800, 400
    (record,) = of_part(part, 0, "POSIX", 1)
    assert record["opens"] == 400
