"""How each file of a run was accessed: sizes, pattern, ranks, duration.

Problem. Counters of a log are sums; a reader wants a word: contiguous, strided, random.

Algorithm. Requests that follow the one before are contiguous. Requests at a distance that repeats are strided (DXT).
Requests that lie behind the one before go forward with gaps. All others are at random places.

Guarantees. A value that the log does not have is None. The result has at most `MOST` files, those that took the most
time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.diagnosis.activity import Activity, Calls, Row
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.ledger import Ledger, numbers_of
from mpiio_ext.analytics.report.accesses import label_of
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.analytics.tables.plain import column_of
from mpiio_ext.analytics.tables.schema import SIZE_BINS

#: Files that a document keeps.
MOST = 100
#: From which share on requests are called contiguous, strided or forward.
_MOST_OF = 0.9
_FORWARD = 0.75
#: The pattern of requests whose order no counter has: of the C library, or of DAOS.
UNTOLD = "order not known"


def own_time(files: Files, ledger: Ledger) -> Numbers:
    """Return the time of an average rank in the calls on each file (s): of all files it adds up to that of the run."""
    return ledger.at(numbers_of(files), ledger.means().least)


def longest(files: Files, ledger: Ledger) -> list[str]:
    """Return the names of files, those that took the most time first."""
    order = np.argsort(-own_time(files, ledger), kind="stable")[:MOST]
    names, numbers = files.table["file"], files.table["file_id"]
    rows = order.tolist()  # Arrow's take() imports pandas
    return [names[row].as_py() or f"file {numbers[row]}" for row in rows]


def asked_bytes(files: Files) -> tuple[float, float]:
    """Return the bytes that the program has read and written: by MPI-IO, of files that it accesses so."""
    calls = np.nansum(
        [files[f"mpiio_{kind}_{way}s"] for kind in ("coll", "indep", "nb") for way in ("read", "write")], axis=0
    )
    read, written = (
        float(np.nansum(np.where(calls > 0, files[f"mpiio_{name}"], files[name])))
        for name in ("bytes_read", "bytes_written")
    )
    return read, written


def _pattern(way: str, row: dict[str, Any], traced: Row | None, each: int, strided: int = 0) -> str | None:
    requests, consec, ahead = row[f"{way}s"] or 0, row[f"consec_{way}s"], row[f"seq_{way}s"]
    pairs = requests - each
    if requests <= 0:
        return None
    if pairs <= 0:
        return "one request a rank"
    if consec is None or ahead is None:
        return UNTOLD
    if consec >= _MOST_OF * pairs:
        return "contiguous"
    if traced is not None and traced.pairs > 0 and traced.regular >= _MOST_OF * (traced.pairs - each):
        return "strided"
    if ahead >= _FORWARD * pairs:
        return "forward, with gaps"
    return "strided" if strided >= 0.5 * (ahead - consec) > 0 else "random places"  # in several places in turn


def _who(row: dict[str, Any], traced: Sequence[Row | None], askers: set[int], processes: int) -> str:
    moving = askers or {int(rank) for one in traced if one is not None for rank in one.ranks}
    count = len(moving) or row["ranks"] or 0
    if processes == 1:
        return "the program"
    if not count:
        return "unknown"
    who = f"rank {moving.pop()} alone" if len(moving) == 1 else _of(count, processes)
    opened = row["ranks"] or 0
    return f"{who}; opened by {_of(opened, processes)}" if opened > count else who


def _of(count: int, processes: int) -> str:
    """Return a number of ranks in words."""
    every = "both ranks" if processes == 2 else f"all {processes:,} ranks"
    return every if count >= processes else f"{count:,} of {processes:,} ranks"


def _mean(row: dict[str, Any], way: str) -> float | None:
    requests, moved = row[f"{way}s"], row[f"bytes_{'read' if way == 'read' else 'written'}"]
    return moved / requests if requests and moved is not None else None


def _sizes(row: dict[str, Any], way: str) -> str | None:
    """Return the sizes of most requests: the bin of Darshan's histogram with the most of them."""
    counts = {name: row.get(f"{way}_size_{name}") or 0 for name in SIZE_BINS}
    if not any(counts.values()):
        return None
    name = max(counts, key=lambda each: counts[each])
    return f"{100 * counts[name] / sum(counts.values()):.0f} % of {label_of(name)}"


def _opens(row: dict[str, Any], activity: Activity | None) -> int | None:
    """Return how often the program has opened a file: by MPI-IO, if it uses that; opens below are the libraries'."""
    calls = None if activity is None else activity.calls.get(row["file_id"])
    opens: int | None = row["opens"]
    return calls.opens if calls is not None and calls.opens else opens


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def table(files: Files, activity: Activity | None, ledger: Ledger) -> list[dict[str, Any]]:
    """Return a row for each file, the files with the most time first; units are in the names.

    Times are those of an average rank.
    """
    time, processes = own_time(files, ledger), ledger.processes
    opening = np.minimum(ledger.at(numbers_of(files), ledger.opening_of_files()), time)
    order = np.argsort(-time, kind="stable")[:MOST].tolist()
    unaligned = files["unaligned"] / np.where(
        files.requests("read") + files.requests("write") > 0, files.requests("read") + files.requests("write"), np.nan
    )
    kept: pa.Table = files.table.take(column_of(order))
    out = []
    for place, row in zip(order, kept.to_pylist(), strict=True):
        known = activity.rows if activity is not None else {}
        traced = [known.get((row["file_id"], way)) for way in (False, True)]
        each = max(1, row["ranks"] or 1)
        movers = [each if one is None else len(one.ranks) for one in traced]
        calls = {f"collective_{way}s": row[f"mpiio_coll_{way}s"] or 0 for way in ("read", "write")}
        calls |= {
            f"independent_{way}s": (row[f"mpiio_indep_{way}s"] or 0) + (row[f"mpiio_nb_{way}s"] or 0)
            for way in ("read", "write")
        }
        by = "mpiio_" if any(calls.values()) else ""
        own = activity.calls.get(row["file_id"], Calls()) if activity is not None else Calls()
        out.append(
            {
                "file": row["file"] or f"file {row['file_id']}",
                "who": _who(row, traced, own.askers, processes),
                "asked_read_bytes": row[f"{by}bytes_read"],
                "asked_written_bytes": row[f"{by}bytes_written"],
                "read_bytes": row["bytes_read"],
                "written_bytes": row["bytes_written"],
                "reads": row["reads"],
                "writes": row["writes"],
                "mean_read_bytes": _mean(row, "read"),
                "mean_write_bytes": _mean(row, "write"),
                "read_sizes": _sizes(row, "read"),
                "write_sizes": _sizes(row, "write"),
                "read_pattern": _pattern("read", row, traced[0], movers[0], own.strided),
                "write_pattern": _pattern("write", row, traced[1], movers[1], own.strided),
                "time_s": float(time[place]),
                "opening_s": float(opening[place]),
                "opens": _opens(row, activity),
                **calls,
                "unaligned_share": _known(float(unaligned[place])),
                "mount": row["mount"],
                "file_system": row["fs_type"],
            }
        )
    return out
