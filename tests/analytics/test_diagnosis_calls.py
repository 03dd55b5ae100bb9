"""How libraries carry calls out: read-modify-write against the program's own requests, tiny calls, late ranks.

Rows are made (support/quiet_rows.py): each case is beside a bound of the diagnosis, or a counterexample of a rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mpiio_ext.analytics.diagnosis import diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity, Calls, Row
from mpiio_ext.analytics.diagnosis.activity_counters import _add_hdf5
from mpiio_ext.analytics.diagnosis.late import Late
from support.expected import Expected
from support.quiet_rows import JOB, file, in_mpi, small, summary

FOUR = {"processes": 4, "ranks": 4}
#: The files of a job, a direction, and the rest of what the log says.
Case = tuple[list[dict[str, Any]], str, Activity | None]


def calls(row: dict[str, Any], mpi: float, mean: float, way: str = "write", *others: dict[str, Any]) -> Activity:
    """Return what a log says of a file, in whose MPI-IO calls the slowest and an average rank are so long."""
    return in_mpi(Activity("", 4, 12.0, calls={row["file_id"]: Calls()}), row, *others, **{way: (mean, mpi)})


def case(row: dict[str, Any], way: str = "write", *in_calls: float, activity: Activity | None = None) -> Case:
    """Return a file; `in_calls`: of the slowest and an average rank in its MPI-IO calls (s)."""
    return [row], way, calls(row, *in_calls, way) if in_calls else activity


def both(name: str, row: dict[str, Any], *in_calls: float, activity: Activity | None = None) -> dict[str, Case]:
    """Return a file by its writes and by its reads, of which `in_calls` are those of the direction."""
    return {f"{name}, {way}s": case(row, way, *in_calls, activity=activity) for way in ("write", "read")}


WRITES = {
    **FOUR,
    "bytes_written": 512 << 20,
    "mpiio_bytes_read": 0,
    "write_time": 20.0,
    "slowest_rank_time": 9.0,
    "slowest_rank_bytes": 200 << 20,
    "fastest_rank_bytes": 100 << 20,
}
#: Requests of the program beside MPI-IO: no read-modify-write.
BESIDE = {
    "read back by POSIX": {
        "bytes_read": 512 << 20,
        "read_time": 8.0,
        "read_size_1m_4m": 100,
        "mpiio_bytes_written": 512 << 20,
        "read_start": 1600000000.0 + 1,
        "read_end": 1600000000.0 + 9,
    },
    "one rank looks at each step": {
        "bytes_read": 64 << 20,
        "read_time": 0.1,
        "read_size_1m_4m": 16,
        "mpiio_bytes_written": 512 << 20,
    },
    "filled before by POSIX": {"bytes_read": 0, "mpiio_bytes_written": 85 << 20},
    "filled by HDF5, which looks at its header": {
        "bytes_read": 4000,
        "read_size_0_100": 8,
        "mpiio_bytes_written": 256 << 20,
    },
}
SIEVED = file(
    0, 10, **WRITES, bytes_read=256 << 20, read_time=4.0, read_size_1m_4m=64, mpiio_bytes_written=128 << 20, file_id=0
)


def aggregator(asked: int) -> dict[str, Any]:
    """Return an aggregator that reads 0 B behind the end of the file before each of its 40 writes, for 4.9 s of 7.5 s;
    or a program that itself reads."""
    row = file(0, 10, **FOUR)
    row |= {
        "file_id": 0,
        "reads": 40,
        "writes": 40,
        "read_size_0_100": 40,
        "write_size_1m_4m": 40,
        "bytes_read": 0,
        "read_time": 4.9,
        "write_time": 0.1,
        "slowest_rank_time": 5.0,
        "bytes_written": 41899200,
        "seq_writes": 39,
        "slowest_rank_bytes": 41899200,
        "mpiio_bytes_written": 30720000,
        "mpiio_coll_writes": 160,
        "consec_writes": 0,
    }
    return row | {"read_start": row["write_start"], "read_end": row["write_end"], "mpiio_bytes_read": asked}


SERIAL = {"mpiio_coll_writes": None, "mpiio_indep_writes": None}
#: 100,000 writes of 200 B a rank, one behind the other, take the time; few of them, or larger ones, do not.
TINY_POSIX = {
    **small(),
    **FOUR,
    **SERIAL,
    "write_size_1k_10k": 0,
    "write_size_100_1k": 400_000,
    "consec_writes": 399_996,
    "bytes_written": 80_000_000,
    "slowest_rank_time": 9.0,
    "write_time": 36.0,
    "max_offset_written": 79_999_999,
}
QUICK = {"write_time": 0.4, "slowest_rank_time": 0.1}
FEW = {"write_size_100_1k": 30_000, "consec_writes": 29_996, "bytes_written": 6_000_000}
#: 90,000 headers of 64 B beside 120 pieces of 4 MiB: what of the time they take is not in the log.
MIXED = {
    **small(),
    **FOUR,
    **SERIAL,
    "write_size_1k_10k": 0,
    "write_size_0_100": 90_000,
    "write_size_4m_10m": 120,
    "consec_writes": 89_800,
    "bytes_written": 509_000_000,
    "slowest_rank_time": 9.0,
    "write_time": 12.0,
}


def waiting(each: float) -> dict[str, Any]:
    """Return small requests that take so long (s) each."""
    waits = {**small(), **FOUR, **SERIAL}
    waits |= {"slowest_rank_bytes": 250 << 14, "fastest_rank_bytes": 250 << 14, "bytes_written": 1000 << 14}
    waits |= {"write_size_10k_100k": 1000, "write_size_1k_10k": 0, "consec_writes": 999, "write_time": 1000 * each}
    return file(0, 0.6, **waits, slowest_rank_time=260 * each)


#: 6,000 calls of 2 kB of all ranks: requests take 0.1 s of 10 s, the calls all.
TINY = file(
    0,
    10,
    **{**small(), **FOUR},
    write_size_100_1k=24_000,
    mpiio_bytes_written=12_288_000,
    slowest_rank_time=0.1,
    slowest_rank_bytes=3_072_000,
    fastest_rank_bytes=3_072_000,
    file_id=0,
)
TINY |= {"write_size_1k_10k": 0, "bytes_written": 12_288_000, "mpiio_coll_writes": 24_000, "write_time": 0.2}
ONE_AGGREGATOR = {
    "write_size_100_1k": 0,
    "write_size_1k_10k": 10_000,
    "mpiio_coll_writes": 40_000,
    "bytes_written": 20_480_000,
    "mpiio_bytes_written": 20_480_000,
    "slowest_rank_bytes": 20_480_000,
    "fastest_rank_bytes": 0,
    "slowest_rank_time": 5.0,
    "write_time": 5.0,
}
#: Darshan keeps records of 1,024 files of a rank; a metadata storm has more.
LITTLE = file(0, 0.1, **{**FOUR, "bytes_written": 1 << 20, "write_time": 0.05})


def shared_pointer(name: str) -> Case:
    """Return a file of data, and another one that may have the shared file pointer."""
    none = {f"mpiio_{kind}_{way}s": None for kind in ("coll", "indep") for way in ("read", "write")}
    pointer = file(0, 10, "read", **{**small("read"), **FOUR, **none, "file": name})
    pointer |= {
        "reads": 6000,
        "read_size_0_100": 6000,
        "read_size_1k_10k": 0,
        "write_size_0_100": 6000,
        "bytes_read": 48_000,
        "bytes_written": 48_000,
        "read_time": 1.0,
        "write_time": 1.0,
        "write_start": 1.6e9,
        "write_end": 1600000000.0 + 10,
        "file_id": 1,
    }
    data = file(0, 10, **{**small(), **FOUR})
    data |= {"mpiio_coll_writes": 0, "mpiio_indep_writes": 6000, "file_id": 0, "write_size_1k_10k": 6000}
    data |= {"bytes_written": 24 << 20, "write_time": 0.2}
    return [data, pointer], "write", calls(data, 8.0, 7.5, "write", pointer)


def shared_tasks(way: str) -> Case:
    """Return `tasks.in`, which the program reads, and the file with the pointer, which the MPI library rewrites for
    longer."""
    none: dict[str, Any] = {f"mpiio_{kind}_{one}s": None for kind in ("coll", "indep") for one in ("read", "write")}
    eight = {f"{one}{rest}": 720 for one in ("read", "write") for rest in ("s", "_size_0_100")}
    pointer = {**file(0, 10), **file(0, 10, "read"), **FOUR, **none, **eight, "bytes_read": 5760, "bytes_written": 5760}
    pointer |= {"file": "/scratch/.tasks.in.shfp.4131.416511540", "write_size_1m_4m": 0, "read_size_1m_4m": 0}
    data = file(0, 9, "read", **FOUR, file_id=0, file="/scratch/tasks.in", bytes_read=36 << 20, reads=360)
    data |= {"mpiio_coll_reads": 0, "mpiio_indep_reads": 360, "mpiio_coll_writes": 0, "mpiio_indep_writes": 0}
    return [data, pointer], way, calls(data, 8.0, 7.5, "read", pointer)


#: 16 times as much is read as was asked for, within the MPI-IO calls; requests outside of these are the program's.
AMPLIFIED = file(0, 10, "read", **FOUR, mpiio_bytes_read=200 << 20, slowest_rank_time=8.5)
AMPLIFIED |= {
    "bytes_read": 3200 << 20,
    "read_time": 32.0,
    "mpiio_coll_reads": 0,
    "mpiio_indep_reads": 192,
    "file_id": 0,
}


def filled(start: int) -> dict[str, Any]:
    """Return what rank 0 has filled before, or what is filled meanwhile."""
    times = {"write_start": AMPLIFIED["read_start"] + start, "write_end": AMPLIFIED["read_start"] + start + 1}
    writes = {"bytes_written": 3200 << 20, "write_time": 12.0, "slowest_rank_time": 20.0, "slowest_rank": 0}
    return {**AMPLIFIED, **writes, **times}


#: An average rank is in the calls for 9 s, and all ranks together are in requests for 2 s: 7 s are neither.
EXCHANGED = file(0, 10, **FOUR, file_id=0, slowest_rank_bytes=25 << 20, fastest_rank_bytes=25 << 20)
EXCHANGED |= {"write_time": 2.0, "slowest_rank_time": 0.6}


def waited(moved: int) -> dict[str, Any]:
    """Return 40 ms of storage of 9.9 s in the calls, in which all ranks are for as long: one aggregator, or four."""
    row = file(0, 0.04, **FOUR)
    row |= {"write_time": 0.04, "file_id": 0, "slowest_rank_time": 0.04, "slowest_rank_bytes": moved}
    return row | {"bytes_written": 512 << 20}


def late(apart: tuple[float, float, float], alike: bool = True) -> Case:
    """Return a rank that waits for nobody, and is late; of one that stays longer than all others, an aggregator, none
    is."""
    row = file(0, 3.2, **FOUR)
    row |= {
        "write_time": 1.0,
        "file_id": 0,
        "slowest_rank_time": 1.0,
        "mpiio_indep_writes": 0,
        "slowest_rank_bytes": 96 << 20,
    }
    row |= {"bytes_written": 96 << 20}
    activity = calls(row, 3.6, 2.7)
    activity.calls[0].apart, activity.calls[0].first, activity.calls[0].alike = apart, 1, alike
    return [row], "write", activity


def read_again(over: int, back: int) -> dict[str, Any]:
    """Return data that are read more often than there are ranks.

    Four ranks that each read their part four times, or ten times, do not read the same: they jump back each time.
    """
    extent = 64 << 20
    row = file(0, 10, "read", **FOUR)
    return row | {
        "bytes_read": over * extent,
        "max_offset_read": extent - 1,
        "slowest_rank_bytes": over * extent // 4,
        "fastest_rank_bytes": over * extent // 4,
        "slowest_rank_time": 9.0,
        "read_time": 36.0,
        "mpiio_coll_reads": None,
        "mpiio_indep_reads": None,
        "read_size_1m_4m": over * 64,
        "consec_reads": over * 64 - back - 10,
        "seq_reads": over * 64 - back,
    }


def chunks(way: str, data: int, chunk: int) -> Case:
    """Return 32 parts of a chunk of 2 MiB: each time HDF5 reads all of it, and writes it if changed."""
    row = {**file(0, 10), **file(0, 10, "read"), "processes": 1, "file_id": 0, "file": "/d/tile.h5"}
    for one, done in (("read", "read"), ("write", "written"))[: 2 if way == "write" else 1]:
        row |= {f"bytes_{done}": 64 << 20, f"max_offset_{done}": (2 << 20) + 4095, f"{one}s": 32, f"{one}_time": 4.5}
        row |= {f"consec_{one}s": 0, f"seq_{one}s": 1, f"{one}_size_1m_4m": 32}
        row |= {f"mpiio_coll_{one}s": None, f"mpiio_indep_{one}s": None}
    row |= {} if way == "write" else {"bytes_written": 0, "writes": 0, "write_size_1m_4m": 0}
    own = Calls(by_hdf5=1, datasets={way == "write": float(data), way != "write": 0.0}, chunk=float(chunk), switches=62)
    return [row], way, Activity("", 1, 12.0, calls={0: own})


#: 8 ranks read their columns of each chunk: each moves the 8 MiB of the file once, and no cache of one helps.
COLUMNS = file(0, 10, "read", ranks=8, processes=8, file_id=0, reads=32, read_size_1m_4m=32, bytes_read=64 << 20)
COLUMNS |= {"max_offset_read": (8 << 20) - 1, "read_time": 36.0, "slowest_rank_time": 4.5, "consec_reads": 0}
COLUMNS |= {"mpiio_coll_reads": None, "mpiio_indep_reads": None, "seq_reads": 24, "file": "/d/tile.h5"}
BY_COLUMNS = Calls(by_hdf5=8, datasets={False: float(8 << 20), True: 0.0}, chunk=float(2 << 20))
#: 4 ranks read and write 240 blocks of 1 MiB, in turn, each its own part of the file from front to back.
IN_TURN: dict[str, Any] = {**FOUR}
IN_TURN |= {
    "file_id": 0,
    "bytes_read": 240 << 20,
    "bytes_written": 240 << 20,
    "reads": 240,
    "writes": 240,
    "read_size_1m_4m": 240,
    "write_size_1m_4m": 240,
    "consec_reads": 236,
    "consec_writes": 236,
    "seq_reads": 239,
    "seq_writes": 239,
    "max_offset_read": (240 << 20) - 1,
    "max_offset_written": (240 << 20) - 1,
    "read_start": 1.6e9,
    "read_end": 1600000000.0 + 9.9,
    "write_start": 1600000000.0 + 0.1,
    "read_time": 19.0,
    "write_time": 20.0,
    "slowest_rank_time": 9.9,
    "slowest_rank_bytes": 120 << 20,
    "fastest_rank_bytes": 120 << 20,
    "mpiio_coll_writes": None,
    "mpiio_indep_writes": None,
}


#: Blocks that are read before they are overwritten, and others that are not: the columns, and the switches.
UPDATES: dict[str, tuple[dict[str, Any], int]] = {
    "updates": ({}, 476),
    "updates with gaps": ({"consec_reads": 0, "consec_writes": 0}, 476),
    "a copy within the file": ({"max_offset_written": (480 << 20) - 1}, 476),
    "what is read back": ({"read_start": 1.6e9 + 0.2, "read_end": 1.6e9 + 10}, 476),
    "all is read, then written": ({}, 8),
    "twice as much is read": ({"bytes_read": 480 << 20, "reads": 480, "read_size_1m_4m": 480}, 476),
    "blocks at random places": ({"seq_reads": 120, "seq_writes": 120, "consec_reads": 0, "consec_writes": 0}, 476),
    "a header": ({"bytes_read": 4000, "bytes_written": 4000}, 476),
}


def by_itself(made: int, movers: int) -> dict[str, Any]:
    """Return 1,000 blocks of 8 KiB of each of 4 ranks, between one another: each makes its own requests."""
    return file(
        0,
        10,
        **{
            **small(),
            **FOUR,
            "bytes_written": 4000 * 8192,
            "write_size_1k_10k": 4000,
            "seq_writes": 3999,
            "mpiio_indep_writes": 0,
            "max_offset_written": 4000 * 8192 - 1,
            "slowest_rank_bytes": 4000 * 8192 // movers,
            "fastest_rank_bytes": 1000 * 8192 if movers == 4 else 0,
            "slowest_rank_time": 9.0,
            "write_time": 9.0 * movers,
            "mpiio_coll_writes": made,
            "mpiio_bytes_written": 4000 * 8192,
        },
    )


def between(size: int, way: str) -> dict[str, Any]:
    """Return 1,000 blocks, of which each of 4 ranks has every fourth, by POSIX; of tiny ones the calls cost more."""
    bin_of = "100k_1m" if size > 1 << 16 else "1k_10k"
    done = "written" if way == "write" else "read"
    return file(
        0,
        10,
        way,
        **{
            **small(way),
            **FOUR,
            f"{way}_size_1k_10k": 0,
            f"{way}_size_{bin_of}": 1000,
            f"bytes_{done}": 1000 * size,
            f"seq_{way}s": 999,
            f"max_offset_{done}": 1000 * size - 1,
            "slowest_rank_bytes": 250 * size,
            "fastest_rank_bytes": 250 * size,
            "slowest_rank_time": 9.0,
            f"{way}_time": 36.0,
            f"mpiio_coll_{way}s": None,
            f"mpiio_indep_{way}s": None,
        },
    )


def ungathered(size: int, **changed: Any) -> dict[str, Any]:
    """Return pieces of collective calls that the library does not gather. On the file system of one node, the bytes of
    large pieces take the time: nothing would be faster together."""
    row = file(0, 10, **small(bytes_written=1000 * size, max_offset_written=1000 * size - 1, seq_writes=990) | FOUR)
    row |= {"write_size_1k_10k": 0, "write_size_100k_1m": 1000, "writes": 1000, "slowest_rank_time": 9.0}
    row |= {"slowest_rank_bytes": 250 * size, "fastest_rank_bytes": 250 * size, "write_time": 36.0}
    return row | {"mpiio_coll_writes": 16, "mpiio_indep_writes": 0, "mpiio_bytes_written": 1000 * size, **changed}


def with_gaps(extent: int) -> Case:
    """Return a domain of each of four aggregators in pieces of 12 KiB; with gaps of 4 KiB these are no one request."""
    size = 12 << 10
    row = file(0, 10, **small(bytes_written=1000 * size, max_offset_written=extent * size - 1, seq_writes=996) | FOUR)
    row |= {"file": "out", "file_id": 0, "writes": 1000, "write_size_1k_10k": 0, "write_size_10k_100k": 1000}
    row |= {"slowest_rank_time": 9.0, "write_time": 36.0, "mpiio_coll_writes": 16, "mpiio_bytes_written": 1000 * size}
    every = np.full(4, 250.0)
    traced = Row(
        np.arange(4), every, every * size, every * 0.036, np.zeros(4), np.full(4, 10.0), wall=10.0, called=10.0
    )
    traced.pairs, traced.forward, traced.extent = 996, 996, float(extent * size)
    return [row], "write", Activity("DXT", 4, 12.0, rows={(0, True): traced})


def by_hdf5(size: int, **known: Any) -> Case:
    """Return 1,400 pieces that 4 ranks write for 3 s by independent calls; they flush the file 150 times."""
    row = file(
        0,
        6,
        **{
            **small(),
            **FOUR,
            "bytes_written": 1400 * size,
            "write_size_1k_10k": 0,
            "write_size_100_1k" if size < 1000 else "write_size_10k_100k": 1400,
            "mpiio_bytes_written": 1400 * size,
            "seq_writes": 900,
            "slowest_rank_time": 2.0,
            "write_time": 7.0,
            "mpiio_coll_writes": 0,
            "mpiio_indep_writes": 1400,
            "file_id": 0,
        },
    )
    return [row], "write", in_mpi(Activity("", 4, 12.0, calls={0: Calls(**known)}), row, write=(2.5, 3.0))


def attributes(longest: float = 0.1, **known: Any) -> Case:
    """Return attributes that 3 ranks read by 1,790 requests of 500 B for 1.8 s each, and a part of 8 MiB each by one
    request more."""
    own: dict[str, Any] = {"by_hdf5": 3, "datasets": {False: 3.0 * (8 << 20)}, "dataset_calls": {False: 3.0}, **known}
    row = file(0, 2, "read")
    row |= {
        "ranks": 3,
        "processes": 3,
        "file_id": 0,
        "reads": 1793,
        "read_size_100_1k": 1790,
        "read_size_1m_4m": 0,
        "read_size_4m_10m": 3,
        "consec_reads": 1200,
        "seq_reads": 1700,
        "bytes_read": 3 * (8 << 20) + 1790 * 500,
        "mpiio_bytes_read": 3 * (8 << 20) + 1790 * 500,
        "mpiio_coll_reads": 0,
        "mpiio_indep_reads": 1793,
        "read_time": 5.7,
        "slowest_rank_time": 1.95,
    }
    seen = Activity("", 3, 12.0, calls={0: Calls(longest={False: longest}, **own)})
    return [row], "read", in_mpi(seen, row, read=(1.9, 1.96))


def read_part(end: int) -> dict[str, Any]:
    row = file(0, 10, "read", **FOUR, file_id=0, max_offset_read=end - 1, **small("read"))
    row |= {
        "reads": 25600,
        "bytes_read": 100 << 20,
        "read_size_1k_10k": 25600,
        "seq_reads": 12800,
        "slowest_rank_time": 9.5,
    }
    return row | {"read_time": 36.0, "mpiio_coll_reads": None, "mpiio_indep_reads": None}


def datasets(known: int, asked: float, **changed: int) -> Case:
    """Return 4,000 writes of 96 B, and 100 of 7 KiB for HDF5's own metadata, of 0.5 ms each."""
    row = file(0, 4, file_id=0, writes=4100, write_size_0_100=4000, write_size_1k_10k=100, write_size_1m_4m=0)
    row |= {"mpiio_coll_writes": None, "mpiio_indep_writes": None, "write_time": 2.05, "consec_writes": 4000}
    row |= {"bytes_written": 4000 * 96 + 100 * 7168, **changed}
    seen = Calls(by_hdf5=int(asked > 0), arrays=known, dataset_calls={False: 0.0, True: asked})
    common = {"POSIX": {96: 4000, 7168: 100}}
    return [row], "write", Activity("", 4, 12.0, calls={0: seen}, common=common)


CASES: dict[str, Case] = {
    **{
        key: one
        for name, added in BESIDE.items()
        for key, one in both(name, file(0, 10, **{**WRITES, **added})).items()
    },
    "sieved": case(SIEVED, "write", 9.5, 9.0),
    "requests that take far longer than MPI-IO calls": case(SIEVED, "write", 1.0, 0.5),
    **both("reads of no bytes inside of collective writes", aggregator(0), 7.5, 7.4),
    **both("reads of the program inside of collective writes", aggregator(1 << 20), 7.5, 7.4),
    "tiny pieces by POSIX": case(file(0, 10, **TINY_POSIX)),
    "few tiny pieces by POSIX": case(file(0, 10, **{**TINY_POSIX, **FEW, **QUICK})),
    "quick tiny pieces by POSIX": case(file(0, 10, **{**TINY_POSIX, **QUICK})),
    "tiny pieces among large ones": case(file(0, 10, **MIXED)),
    "small requests that wait": case(waiting(2e-3)),
    "small requests that do not wait": case(waiting(2e-5)),
    "tiny collective calls": case(TINY, "write", 9.9, 9.8),
    "tiny collective calls of little time": case(TINY, "write", 1.0, 0.9),
    # so few may wait for a rank that comes late
    "few tiny collective calls": case({**TINY, "mpiio_coll_writes": 4 * 500, "write_time": 0.2}, "write", 9.9, 9.8),
    "one aggregator for tiny calls": case({**TINY, **ONE_AGGREGATOR}, "write", 9.9, 9.8),
    "little": case(LITTLE),
    "little, records are lost": case(LITTLE, activity=Activity("", 4, 12.0, full=True)),
    **{
        f"shared pointer, {name}": shared_pointer(f"/scratch/{name}")
        for name in (".ws.shfp.4131.416511540", "ws-4131-1.lockedfile", "ws-416511540-4131.lock", "ws.index", "ws.lock")
    },
    **{f"shared pointer of what is read, {way}s": shared_tasks(way) for way in ("read", "write")},
    **{
        f"{name}, {mpi} s in calls": case(row, "read", mpi, mpi)
        for mpi in (9.0, 1.0)
        for name, row in {
            "read amplification": AMPLIFIED,
            "little read amplification": {**AMPLIFIED, "mpiio_bytes_read": 3000 << 20},
            "read amplification after writes": filled(-2),
            "read amplification beside writes": filled(1),
        }.items()
    },
    "exchange": case(EXCHANGED, "write", 9.5, 9.0),
    "little exchange": case(EXCHANGED, "write", 4.0, 3.0),
    # reads, most of them in requests
    "exchange beside reads": case(
        EXCHANGED, activity=in_mpi(Activity("", 4, 12.0), EXCHANGED, read=(9.0, 9.0), write=(9.0, 9.5))
    ),
    "waiting in collective calls, one aggregator": case(waited(512 << 20), "write", 9.9, 9.75),
    "waiting in collective calls, four aggregators": case(waited(128 << 20), "write", 9.9, 9.75),
    "no waiting in collective calls": case(waited(128 << 20), "write", 0.05, 0.05),
    "a late rank": late((0.4, 2.8, 3.7)),
    "a late rank of ranks that are not alike": late((0.4, 2.8, 3.7), alike=False),
    "no late rank": late((0.4, 1.2, 3.7)),
    "ranks that stay alike": late((2.6, 2.8, 3.0)),
    **{
        f"read again, {over} times, {back} back": case(read_again(over, back), "read")
        for over, back in ((4, 4), (3, 4), (4, 16), (10, 40))
    },
    **{f"parts of a chunk, {way}s": chunks(way, 2 << 20, 2 << 20) for way in ("read", "write")},
    **{f"all of a chunk again, {way}s": chunks(way, 64 << 20, 2 << 20) for way in ("read", "write")},
    **{f"no chunks, {way}s": chunks(way, 2 << 20, 0) for way in ("read", "write")},
    "chunks that each rank reads once": case(COLUMNS, "read", activity=Activity("", 8, 12.0, calls={0: BY_COLUMNS})),
    "backward": case(file(0, 10, "read", **small("read", seq_reads=0)), "read"),
    "at random": case(file(0, 10, "read", **small("read", seq_reads=50)), "read"),
    **{
        key: one
        for name, (columns, switches) in UPDATES.items()
        for key, one in both(
            name,
            file(0, 10, **{**IN_TURN, **columns}),
            activity=Activity("", 4, 12.0, calls={0: Calls(switches=switches)}),
        ).items()
    },
    "as many requests as calls": case(by_itself(4000, 4)),
    "one rank has the bytes of all": case(by_itself(4000, 1)),
    "ten calls are one request": case(by_itself(40_000, 4)),
    "a call is ten requests": case(by_itself(400, 4)),  # of holes, or of a buffer
    "writes between those of other ranks": case(between(1 << 18, "write")),
    "tiny writes between those of other ranks": case(between(1 << 13, "write")),
    "reads between those of other ranks": case(between(1 << 18, "read"), "read"),
    "pieces of 256 KiB": case(ungathered(1 << 18, fs_type="ext4")),
    "pieces of 256 KiB where ranks lock blocks": case(ungathered(1 << 18, fs_type="lustre")),
    "pieces of 16 KiB": case(ungathered(1 << 14, fs_type="ext4")),
    "independent pieces of 256 KiB": case(
        ungathered(1 << 18, fs_type="ext4", mpiio_coll_writes=0, mpiio_indep_writes=1000)
    ),
    "pieces of collective writes": with_gaps(1000),
    "pieces of collective writes with gaps": with_gaps(1350),
    "HDF5, groups and attributes": by_hdf5(500, by_hdf5=4, hdf5_flushes=600),
    "HDF5, some data": by_hdf5(500, by_hdf5=4, datasets={False: 0.0, True: 2e5}),
    "HDF5, data of datasets": by_hdf5(500, by_hdf5=4, datasets={False: 0.0, True: 7e5}),
    "HDF5, few": by_hdf5(500, by_hdf5=4, datasets={False: 0.0, True: 2e4}, dataset_calls={False: 0.0, True: 9.0}),
    "HDF5, tiny chunks": by_hdf5(
        500, by_hdf5=4, datasets={False: 0.0, True: 2e4}, dataset_calls={False: 0.0, True: 1200.0}
    ),
    "HDF5, chunks, or fill values": by_hdf5(1 << 16, by_hdf5=4),
    "HDF5, no module of it in the log": by_hdf5(500, asked_syncs=600),
    "HDF5, attributes": attributes(),
    "HDF5, the large reads take the time": attributes(1.9),
    "HDF5, small datasets": attributes(dataset_calls={False: 900.0}),
    "HDF5, elements of a dataset": attributes(datasets={False: 3.0 * (8 << 20) + 1790 * 500}),
    "attributes not by HDF5": attributes(by_hdf5=0),
    "a part of a file is read again": case(read_part(20 << 20), "read"),
    "a part of a file is hardly read again": case(read_part(90 << 20), "read"),
    "4,000 datasets": datasets(4000, 4000.0),
    "at least 4,000 datasets": datasets(4000, 0.0),
    "20 datasets": datasets(20, 4000.0),
    # then the large ones may take the time
    **{
        f"{known} datasets of {asked} calls beside large writes": datasets(
            known, asked, write_size_1k_10k=0, write_size_1m_4m=100
        )
        for known, asked in ((4000, 4000), (4000, 0), (20, 4000))
    },
}


@pytest.mark.parametrize("name", CASES)
def test_rules_of_calls(name: str, expected: Expected) -> None:
    files, way, activity = CASES[name]
    job = {**JOB, "processes": 4, "run_time": 12.0}
    expected(summary(diagnose(job, files, way, activity=activity)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requests", "headers"),
    [(288, 8), (288, 280), (12, 8)],
    ids=["of the collective calls", "of the independent calls", "few"],
)
def test_small_rounds_beside_headers(requests: int, headers: int, expected: Expected) -> None:
    """HDF5 makes two collective calls of six ranks: three aggregators have buffers of 64 KiB. It writes its headers."""
    row = file(0, 3.4)
    row |= {
        "ranks": 6,
        "processes": 6,
        "file_id": 0,
        "writes": requests + 8,
        "write_size_1m_4m": 0,
        "write_size_10k_100k": requests,
        "write_size_0_100": 8,
        "consec_writes": requests - 6,
        "seq_writes": requests,
        "bytes_written": requests << 16,
        "write_time": 5.3,
        "slowest_rank_time": 1.8,
        "slowest_rank_bytes": requests // 3 << 16,
        "fastest_rank_bytes": 100,
        "mpiio_coll_writes": 12,
        "mpiio_indep_writes": headers,
        "mpiio_bytes_written": requests << 16,
        "mpiio_bytes_read": 0,
    }
    seen = calls(row, 3.2, 3.2)
    seen.calls[0].sizes[True] = np.array([headers, 0, 0, 0, 0, 12, 0, 0, 0, 0.0])
    seen.common["POSIX"] = {1 << 16: requests, 96: 8}
    expected(summary(diagnose({**JOB, "processes": 6, "run_time": 3.5}, [row], "write", activity=seen)))


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
