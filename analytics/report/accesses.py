"""Accesses of a job in three looks: their common sizes, a histogram of sizes, and offsets over time by rank.

Problem. Pages that people know (Darshan's summary, DXT Explorer) show which sizes accesses have, and where in a file
each rank is when.

Algorithm. Sizes are Darshan's own counts: the common sizes, and ten bins. Offsets are a sample of the
requests of DXT (:class:`mpiio_ext.analytics.diagnosis.activity.Places`), of the file with most requests in the sample;
ranks are put together to :data:`_GROUPS` groups at most, each with a colour.

Guarantees. Only facts of the log are drawn. The caption has the share of requests that are drawn, and of those that are
missing: DXT ends early where it runs out of memory.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.words import short_name, worded
from mpiio_ext.analytics.tables.schema import SIZE_BINS
from mpiio_ext.common.units import count_text, seconds_text, size_text

#: Common sizes that are named; groups of ranks with a colour of their own; points that are drawn.
_MOST_SIZES, _GROUPS, _MOST_POINTS = 4, 6, 512
#: Share of the requests that POSIX has counted, from which on DXT has all of them.
_ALL = 0.99
_DONE = {"read": "reads", "write": "writes"}


def common_sizes(activity: Activity | None) -> list[tuple[str, str]]:
    """Return the common sizes of accesses as a fact: of MPI-IO and of POSIX; none if the log lacks them."""
    parts = []
    for module, counts in ({} if activity is None else activity.common).items():
        first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_MOST_SIZES]
        if first:
            parts.append(f"{module}: {', '.join(f'{size_text(size)} ({count:,}×)' for size, count in first)}")
    return [("common access sizes", "; ".join(sorted(parts)))] if parts else []


def size_chart(files: pa.Table) -> Chart | None:
    """Return the histogram of the sizes of requests, of all files; None where no file has one."""
    counts = {
        way: [sum(value or 0 for value in files[f"{way}_size_{name}"].to_pylist()) for name in SIZE_BINS]
        for way in _DONE
    }
    known = {way: each for way, each in counts.items() if any(each)}
    if not known:
        return None
    labels = [label_of(name) for name in SIZE_BINS]
    parts = [
        f"most {_DONE[way]} are of {labels[int(np.argmax(each))]} ({100 * max(each) / sum(each):.0f} %)"
        for way, each in known.items()
    ]
    return Chart(
        kind="bars",
        name="request-sizes",
        title=f"Sizes of requests: {', '.join(parts)}",
        data={
            "series": [{"name": _DONE[way], "values": each} for way, each in known.items()],
            "labels": [label.replace(" to ", "\nto ").replace(" and ", "\nand ") for label in labels],
            "legend": True,
            "log": True,
            "x_label": "",
            "y_label": "requests",
            "caption": "All requests to the file system, of all files.",
        },
    )


@functools.cache
def label_of(name: str) -> str:
    """Return the sizes of a bin of Darshan's histogram of requests, in words."""
    bounds = [0, *SIZE_BINS.values()]
    low, high = bounds[list(SIZE_BINS).index(name)], SIZE_BINS[name]
    low_text, high_text = (size_text(each or 0, exact=True) for each in (low, high))
    return f"{low_text} {f'to {high_text}' if high else 'and more'}"


def place_chart(activity: Activity | None, files: pa.Table) -> Chart | None:
    """Return offsets over time by rank, of the file with most requests in the sample; None without DXT.

    `files`: rows with the names.
    """
    numbers, every = (np.zeros(0, np.int64), np.zeros((4, 0))) if activity is None else activity.places.of_all()
    names = dict(zip(files["file_id"].to_pylist(), files["file"].to_pylist(), strict=True))
    there = np.isin(numbers, np.array(list(names), np.int64))
    if activity is None or not there.any():
        return None
    which, counts = np.unique(numbers[there], return_counts=True)
    number = int(which[np.argmax(counts)])
    kept = every[:, numbers == number]
    step = -(-kept.shape[1] // _MOST_POINTS)
    rank, write, offset, start = kept[:, ::step]
    groups = min(_GROUPS, activity.processes)
    group = (rank.clip(0, activity.processes - 1) * groups // activity.processes).astype(int)
    edges = np.ceil(np.arange(groups + 1) * activity.processes / groups).astype(int)
    series = [_points(edges, each, offset[group == each], start[group == each]) for each in np.unique(group).tolist()]
    name = short_name(names[number] or f"file {number}", [each for each in names.values() if each])
    ways = [word for word, it in (("reads", (write == 0).any()), ("writes", (write > 0).any())) if it]
    drawn = activity.places.every * step
    sample = f"; one request in {drawn:,} is drawn" if drawn > 1 else ""
    share, until_s = _traced(activity, files, number)
    part, lost = (f"{worded(share, 'share')} of the ", _LOST) if share < _ALL else ("", "")
    return Chart(
        kind="places",
        name="places",
        title=f"Offsets over time: {part}{' and '.join(ways)} of {name} by {count_text(len(np.unique(rank)), 'rank')}",
        data={
            "series": series,
            "x_label": "time since the start of the job [s]",
            "y_label": "offset in the file",
            "x_range": (0.0, activity.run_time),
            "caption": "No other file has more requests. Each point is the start of a request (DXT)"
            f"{sample}. Each colour stands for one or more ranks."
            + lost.format(share=worded(share, "share"), until=seconds_text(until_s)),
        },
    )


#: What the caption says where DXT does not have all requests of the file.
_LOST = (
    " DXT has {share} of the requests of this file, and no request that begins after {until}. A rank may make further"
    " requests after its last point."
)


def _traced(activity: Activity, files: pa.Table, number: int) -> tuple[float, float]:
    """Return the share of a file's requests that DXT has, by the counters of POSIX, and when the last one ends (s)."""
    rows = [row for way in (False, True) if (row := activity.rows.get((number, way))) is not None]
    row = files["file_id"].to_pylist().index(number)
    every = sum(files[name][row].as_py() or 0 for name in ("reads", "writes"))
    known = float(sum(row.requests.sum() for row in rows))
    return known / every if every else 1.0, max((float(row.last.max()) for row in rows), default=0.0)


def _points(edges: Any, group: int, offset: Any, start: Any) -> dict[str, Any]:
    first, last = int(edges[group]), int(edges[group + 1]) - 1
    return {
        "name": f"rank {first}" if first == last else f"ranks {first:,} to {last:,}",
        "x": [float(f"{value:.6g}") for value in start.tolist()],
        "y": offset.tolist(),
    }
