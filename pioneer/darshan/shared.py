"""Records of all ranks, with those of files that all ranks have reduced to one, as Darshan's runtime does.

Problem. A file that 10,000 ranks use would have 10,000 records. Algorithm: where every rank has a record of a file,
sums, extremes and the most frequent values of all go into one record of rank -1. It also has the fastest and the
slowest rank (time of reads, writes and metadata) and the variances. Guarantee: a record is in exactly one of the
results; variances are those of a population; without MPI nothing is reduced.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mpiio_ext.pioneer.darshan.names import record_id
from mpiio_ext.pioneer.darshan.records import Integers, Layout, Records, common

_Member: TypeAlias = tuple[int, Records, int]  # rank, its records, place
#: Counters that are the first rank's, those that are the largest, and those that are set otherwise.
_SAME = re.compile(r"(RENAMED_FROM|MODE|(MEM|FILE)_ALIGNMENT)$")
_LARGEST = re.compile(r"MAX_BYTE_(READ|WRITTEN)$")
_BY_RANK = re.compile(r"(FAST|SLOW)EST_RANK|VARIANCE|STRIDE\d|ACCESS\d|MAX_\w+_TIME")
#: Counters that the tracer does not know; -1 as in Darshan's own logs.
_UNKNOWN = ("FILENOS", "MEM_NOT_ALIGNED", "MEM_ALIGNMENT")


def record_type(layout: Layout) -> np.dtype[np.void]:
    """Return how a record of a module lies in a log."""
    return np.dtype(
        [
            ("id", "u8"),
            ("rank", "i8"),
            ("counters", "i8", (len(layout.counters),)),
            ("times", "f8", (len(layout.times),)),
        ]
    )


def _values(layout: Layout, counters: Integers, name: str, seen: Mapping[int, int]) -> None:
    first, count = layout.at(f"{name}1_{name}"), layout.at(f"{name}1_COUNT")
    for number, (value, often) in enumerate(common(dict(seen)) if first >= 0 else ()):
        counters[first + number], counters[count + number] = value, often


def _merged(dictionaries: Iterator[dict[int, int]]) -> collections.Counter[int]:
    total: collections.Counter[int] = collections.Counter()
    for each in dictionaries:
        total.update(each)
    return total


def _single(layout: Layout, member: _Member, row: npt.NDArray[np.void]) -> None:
    rank, records, place = member
    row["rank"] = rank
    row["counters"] = records.counters[place]
    row["times"] = records.times[place] / 1e9
    for name, seen in (("ACCESS", records.sizes), ("STRIDE", records.strides)):
        _values(layout, row["counters"], name, seen[place])


def _reduced(layout: Layout, members: list[_Member], row: npt.NDArray[np.void]) -> None:
    """Put the records of all ranks for a file into one record."""
    at = layout.at
    counters = np.array([records.counters[place] for _, records, place in members])
    times = np.array([records.times[place] for _, records, place in members])
    row["rank"] = -1
    for number, name in enumerate(layout.counters):
        column = counters[:, number]
        if _LARGEST.search(name):
            row["counters"][number] = column.max()
        elif _SAME.search(name):
            row["counters"][number] = column[0]
        elif not _BY_RANK.search(name):
            row["counters"][number] = column.sum()
    for number, name in enumerate(layout.times):
        column = times[:, number]
        if "_START_" in name:
            row["times"][number] = min((value for value in column if value), default=0) / 1e9
        elif "_END_" in name or "_F_MAX_" in name:
            row["times"][number] = column.max() / 1e9
        elif not _BY_RANK.search(name):
            row["times"][number] = column.sum() / 1e9
    for verb in ("READ", "WRITE"):
        if (longest := at(f"F_MAX_{verb}_TIME")) >= 0:
            size = at(f"MAX_{verb}_TIME_SIZE")
            row["counters"][size] = counters[times[:, longest].argmax(), size]
    for name in ("ACCESS", "STRIDE"):
        seen = (records.sizes[place] if name == "ACCESS" else records.strides[place] for _, records, place in members)
        _values(layout, row["counters"], name, _merged(seen))
    took = times[:, [at(f"F_{name}_TIME") for name in ("READ", "WRITE", "META")]].sum(axis=1) / 1e9
    moved = counters[:, at("BYTES_READ")] + counters[:, at("BYTES_WRITTEN")]
    for name, chosen in (("FASTEST", int(took.argmin())), ("SLOWEST", int(took.argmax()))):
        row["counters"][at(f"{name}_RANK")] = members[chosen][0]
        row["counters"][at(f"{name}_RANK_BYTES")] = moved[chosen]
        row["times"][at(f"F_{name}_RANK_TIME")] = took[chosen]
    row["times"][at("F_VARIANCE_RANK_TIME")] = took.var()
    row["times"][at("F_VARIANCE_RANK_BYTES")] = moved.astype(np.float64).var()


def packed(
    layout: Layout, ranks: Mapping[int, Records], everyone: int, left_out: set[str]
) -> tuple[bytes, dict[int, str]]:
    """Return the records of a module as they lie in a log, and the names of their files by number.

    Parameters
    ----------
    ranks : records of each rank.
    everyone : processes of the job; 0 without MPI.
    left_out : names that get no record.
    """
    members: dict[str, list[_Member]] = {}
    for rank, records in sorted(ranks.items()):
        for name, place in records.names.items():
            if name not in left_out:
                members.setdefault(name, []).append((rank, records, place))
    shared = {name for name, some in members.items() if len(some) == everyone}
    rows = np.zeros(sum(1 if name in shared else len(some) for name, some in members.items()), record_type(layout))
    names, at = {}, 0
    for name, some in members.items():
        number = record_id(name)
        names[number] = name
        for one in (some,) if name in shared else ([each] for each in some):
            row = rows[at]
            row["id"] = number
            (_reduced(layout, one, row) if name in shared else _single(layout, one[0], row))
            at += 1
    for unknown in (layout.at(name) for name in _UNKNOWN):
        if unknown >= 0:
            rows["counters"][:, unknown] = -1
    return rows.tobytes(), names
