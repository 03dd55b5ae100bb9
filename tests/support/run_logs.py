"""Darshan logs of runs that are made up: ranks that each write small pieces of one file."""

from __future__ import annotations

import pathlib

import numpy as np

from mpiio_ext.pioneer.darshan.log import Job, write
from mpiio_ext.pioneer.darshan.names import record_id
from mpiio_ext.pioneer.darshan.records import Calls, Kind, Layout
from mpiio_ext.pioneer.darshan.shared import record_type
from mpiio_ext.pioneer.darshan.timeline import Heat, Segments

BEGIN_NS = 1_700_000_000_000_000_000


def calls(start_s: float, count: int, size: int, offset: int, each_s: float) -> Calls:
    """Return writes of one rank, one behind the other."""
    at = (start_s + each_s * np.arange(count)) * 1e9
    return Calls(
        record=np.zeros(count, np.int64),
        kind=np.full(count, Kind.WRITE),
        counter=np.full(count, -1),
        offset=offset + size * np.arange(count),
        size=np.full(count, size),
        start=at.astype(np.int64),
        end=(at + 0.9e9 * each_s).astype(np.int64),
    )


def _calls_of(ranks: int, count: int, size: int, name: str, each_s: float) -> tuple[list[bytes], list[bytes]]:
    heats, accesses = [], []
    for rank in range(ranks):
        heat, segments = Heat(), Segments()
        some = calls(0.1 + 0.05 * (rank % 10), count, size, rank * size * count, each_s / max(count, 1))
        heat.add(some)
        segments.add(some)
        heats.append(heat.packed("POSIX", rank, 10.0))
        accesses.append(segments.packed({name: 0}, rank, "node"))
    return heats, accesses


def log_of(
    path: pathlib.Path,
    ranks: int,
    *,
    count: int = 20,
    size: int = 512,
    dxt: bool = True,
    opening_s: float = 0.0,
    name: str = "/scratch/out.h5",
    maps: int = 0,
    each_s: float = 9.0,
) -> None:
    """Write a log of ranks that each write small pieces of one file, for `each_s` of ten seconds."""
    layout = Layout("POSIX")
    row = np.zeros(1, record_type(layout))
    row["id"], row["rank"] = record_id(name), -1
    values = {
        "OPENS": ranks,
        "WRITES": ranks * count,
        "BYTES_WRITTEN": ranks * count * size,
        "SEQ_WRITES": ranks * count,
        "SIZE_WRITE_100_1K": ranks * count,
        "FILE_NOT_ALIGNED": ranks * count,
        "FILE_ALIGNMENT": 4096,
        "SLOWEST_RANK_BYTES": count * size,
        "FASTEST_RANK_BYTES": count * size,
        "MMAPS": maps,
    }
    for counter, value in values.items():
        row["counters"][0, layout.at(counter)] = value
    times = {
        "F_WRITE_TIME": each_s * ranks,
        "F_META_TIME": opening_s * ranks,
        "F_WRITE_START_TIMESTAMP": 0.1,
        "F_WRITE_END_TIMESTAMP": 9.6,
        "F_OPEN_START_TIMESTAMP": 0.05,
        "F_CLOSE_END_TIMESTAMP": 9.7,
        "F_SLOWEST_RANK_TIME": each_s + opening_s,
        "F_FASTEST_RANK_TIME": each_s + opening_s,
    }
    for counter, value in times.items():
        row["times"][0, layout.at(counter)] = value
    heats, accesses = _calls_of(ranks, count, size, name, each_s)
    names = {record_id(name): name, record_id("heatmap:POSIX"): "heatmap:POSIX"}
    job = Job(
        start_ns=BEGIN_NS,
        end_ns=BEGIN_NS + 10 * 10**9,
        processes=ranks,
        identity=7,
        exe="./app -n 4",
        mounts=[("lustre", "/scratch")],
        metadata={},
    )
    regions = {"POSIX": row.tobytes(), "DXT_POSIX": b"".join(accesses) if dxt else b"", "HEATMAP": b"".join(heats)}
    write(path, job, names, regions, [])
