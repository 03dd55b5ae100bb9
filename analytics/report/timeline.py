"""The time line of a log: what bands of ranks do when, from DXT or HEATMAP, as a chart.

Problem. Thousands of ranks do not fit on a page, least of all on a phone's. A reader wants to know which part of the
ranks reads, writes or waits for metadata, and when.

Algorithm. Ranks are put together to bands (:mod:`mpiio_ext.analytics.diagnosis.activity`). Each band is a row. In each
bin of time it has bars, one on the other. Their heights, in quarters, are the shares of the band's time in calls; where
only HEATMAP is there, of the most bytes of any band and bin. If a bar has less than half of a quarter, and there is no
other bar, it is a thin line. Bars of the same height beside each other are one. The numbers beside the chart are exact:
``exact`` has them for each band and bin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.diagnosis.activity import Activity, Line
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.common.plots import Axis, Look, Panel
from mpiio_ext.common.units import amount_text, seconds_text

#: Names of the planes of a time line; those from the fourth on are there only in recordings.
_PLANES = ("reads", "writes", "metadata", "MPI library", "mpiio_ext", "waiting", "messages")
#: What planes of recordings have, in a title and below the picture.
_RECORDED = {"writes": "writes and syncs", "metadata": "metadata and locks"}
_INCLUDED = " Writes include syncs, metadata calls include waits for locks."
#: What is drawn: planes, name, look; the last one stands at the foot of the band, each on those behind it.
_KINDS = (
    ((5,), "waiting", Look("series6")),
    ((3, 4, 6), "libraries", Look("series5")),
    ((2,), "metadata", Look("series3")),
    ((0,), "reads", Look("series0")),
    ((1,), "writes", Look("series1")),
)
#: Sentences about the kinds that are parts of MPI-IO calls.
_MEANT = {
    "waiting": " Waiting: a rank waits for other ranks in a call that mpiio_ext carries out.",
    "libraries": " Libraries: mpiio_ext (planning, copies, messages) and the MPI library (exchange of data, waits).",
}
#: Parts of a band's height, of which bars have whole quarters, or one where that would be none.
_LEVELS, _STEP = 24, 6
#: Share of a bin's time that is drawn, unless there is only less.
_LEAST = 0.002
_COLUMNS = ("what", "first rank", "last rank", "from [s]", "to [s]")
_UNITS = {"s": "time [s]", "B": "bytes"}
#: What a caption says where DXT ran out of memory, or is damaged.
LOST = " DXT ended early, or is damaged: requests are missing in the picture."
WIDTH_IN = 12.2  # as wide as a page in a window of 1280 pixels
#: Bands from which on two are one where it is narrow.
_NARROW_BANDS = 24


def rank_chart(activity: Activity, recorded: Line | None = None) -> Chart | None:
    """Return the time line of ranks; None if there is none, or only metadata calls whose times are not known.

    `recorded`: seconds in each class of time of recordings, not from the log.
    """
    line, source = (activity.line, activity.source) if recorded is None else (recorded, "recordings")
    seconds = source != "HEATMAP"
    if not source or not line.any():
        return None
    bands, bins = line.shape[1:]
    edges = np.ceil(np.arange(bands + 1) * activity.processes / bands)
    most = float(line[:2].sum(axis=0).max())
    full = np.diff(edges)[:, None] * activity.run_time / bins
    shares = {
        name: line[list(planes)].sum(axis=0) / (full if planes[0] >= 2 or seconds else max(most, 1.0))
        for planes, name, _ in reversed(_KINDS)
        if max(planes) < len(line)
    }
    least = min(_LEAST, max(float(share.max()) for share in shares.values()))
    levels, height = {}, np.zeros((bands, bins), int)
    for name, share in shares.items():
        own = (_STEP * np.floor(share * _LEVELS / _STEP + 0.5)).astype(int)
        own = np.where((own == 0) & (height == 0), share >= least, own)
        height = np.minimum(height + own, _LEVELS)
        levels[name] = np.where(own > 0, height, 0).tolist()
    row, step_s = "a group of ranks" if activity.processes > bands else "a rank", activity.run_time / bins
    by = f" ({source})" if recorded is None else ""
    full_bar = (
        f"{row} that spends the whole step in calls"
        if seconds
        else f"{amount_text(most)}, the most that {row} moves in a step"
    )
    spread = (
        " Metadata calls are drawn evenly over the time in which their file is open, because the log does not have the"
        " times of metadata calls."
    )
    if recorded is not None:
        meant = [_MEANT[name] for planes, name, _ in _KINDS if name in _MEANT and line[list(planes)].any()]
        spread = "".join([_INCLUDED, *meant])
    title, lost = _finding(line, activity, recorded is not None) if seconds else _when(levels, activity), ""
    if activity.partial and source == "DXT":
        title, lost = title.replace("Ranks over time", "Ranks over time, as far as DXT has them", 1), LOST
    values = dict(zip(_PLANES, line, strict=False))
    exact = exactly(values, "s" if seconds else "B", step_s)
    return Chart(
        kind="ranks",
        name="time-line-ranks",
        title=title,
        data={
            "levels": levels,
            "exact": exact,
            "edges": edges.tolist(),
            "run_time": activity.run_time,
            "x_label": "time since the start of the job [s]",
            "y_label": "rank",
            "caption": f"Each row is {row}, each column a step of {seconds_text(step_s)}{by}. A bar"
            f" of full height stands for {full_bar}. Heights are rounded to quarters. A thin line stands for less than"
            f" an eighth.{spread}{lost}",
        },
    )


def exactly(values: Mapping[str, Any], unit: str, step: float) -> dict[str, Any]:
    """Return the numbers of a time line: arrays (bands, bins) by what they are of, in s or B, in steps of s."""
    texts = {
        name: [[float(f"{each:.5g}") if unit == "s" else round(each) for each in row] for row in array.tolist()]
        for name, array in values.items()
        if array.any()
    }
    return {"unit": unit, "step": step, "values": texts}


def rows_of(data: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return columns and rows of the numbers of a time line; without what is 0."""
    edges, exact = data["edges"], data["exact"]
    step, end = exact["step"], data["run_time"]
    rows = [
        (
            name,
            int(edges[band]),
            int(edges[band + 1]) - 1,
            f"{at * step:.6g}",
            f"{min((at + 1) * step, end):.6g}",
            value,
        )
        for name, bands in exact["values"].items()
        for band, row in enumerate(bands)
        for at, value in enumerate(row)
        if value
    ]
    return (*_COLUMNS, _UNITS[exact["unit"]]), rows


def _finding(line: Line, activity: Activity, recorded: bool) -> str:
    """Return, in words, the shares of ranks' time by activity, the largest first, for a time line of calls."""
    whole, names = activity.processes * activity.run_time, [_RECORDED.get(name, name) for name in _PLANES]
    shares = sorted(
        ((float(plane.sum()) / whole, name) for name, plane in zip(names if recorded else _PLANES, line, strict=False)),
        reverse=True,
    )
    texts = [f"{name} {worded(min(share, 1.0), 'share')}" for share, name in shares if share > 0]
    return f"Ranks over time: {', '.join(texts)} of their time"


def _when(levels: Mapping[str, list[list[int]]], activity: Activity) -> str:
    """Return, for a time line of bytes, the begin and end of each activity of ranks."""
    texts = []
    for name, rows in levels.items():
        busy = np.flatnonzero(np.array(rows).any(axis=0))
        if busy.size:
            step = activity.run_time / len(rows[0])
            first, last = (seconds_text(float(at * step)) for at in (busy[0], busy[-1] + 1))
            texts.append(f"{name} from {first} to {last}")
    return f"Ranks over time: {', '.join(texts)}"


def _bars(levels: list[list[int]], step: float, most: float) -> list[tuple[float, float, float, float]]:
    """Return the rectangles of bars; adjacent bars of the same height become one."""
    places = []
    for band, row in enumerate(levels):
        at = 0
        while at < len(row):
            end = at + 1
            while end < len(row) and row[end] == row[at]:
                end += 1
            if row[at]:
                places.append((at * step, band - 0.45, (end - at) * step, most * row[at] / _LEVELS))
            at = end
    return places


def _ticks(firsts: Sequence[float]) -> list[tuple[float, str]]:
    """Return eight of the bands at most, by their first ranks."""
    return [(float(at), f"{firsts[at]:,.0f}") for at in range(0, len(firsts), max(1, -(-len(firsts) // 8)))]


def ranks(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a time line of ranks is drawn, and its margins."""
    firsts, levels = data["edges"][:-1], data["levels"]
    known = [(name, look) for _, name, look in _KINDS if any(map(any, levels.get(name, ())))]

    def draw(panel: Panel) -> None:
        both = 2 if panel.narrow and len(firsts) >= _NARROW_BANDS else 1  # bands that are one
        places = range(0, len(firsts), both)
        for name, look in known:
            rows = [[max(each) for each in zip(*levels[name][at : at + both], strict=True)] for at in places]
            if panel.narrow:  # a bin of two pixels would not be seen
                rows = [[max(row[at : at + 2]) for at in range(0, len(row), 2)] for row in rows]
            panel.tiles(_bars(rows, data["run_time"] / len(rows[0]), 0.9), look, name)
        panel.frame(
            Axis(label=data["x_label"], low=0, high=data["run_time"]),
            Axis(label=data["y_label"], low=-0.6, high=len(places) - 0.4, ticks=_ticks(firsts[::both])),
        )

    return {
        "panels": [[draw]],
        "width": WIDTH_IN,
        "table": rows_of(data),
        "height": 1.1 + max(0.075 * len(firsts), 1.0),
        "legend": "above",
        "keys": [(name, Look(look.colour, "-"), 5.0) for name, look in known],
        "margins": (26 + 5.6 * max(len(word) for _, word in _ticks(firsts)), 8, 22, 34),
    }
