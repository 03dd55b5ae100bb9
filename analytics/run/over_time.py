"""Bytes of a run over time, of all ranks and of bands of ranks: from DXT, else from HEATMAP of its Darshan log."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.diagnosis.activity import BANDS, BINS, Activity, Line
from mpiio_ext.analytics.diagnosis.words import short_name
from mpiio_ext.analytics.report.timeline import LOST, exactly, rank_chart
from mpiio_ext.common.darshanfile import DamagedLogError, DarshanFile
from mpiio_ext.common.units import seconds_text, size_text

_LAYERS = ("POSIX", "STDIO")
#: Numbers of the looks of reads and writes; those of the time line of ranks.
_LOOKS = (("read", 0), ("written", 1))
#: Curves in the chart of files, and the shares of their bytes that are not in it from which on that is reported, and
#: from which on there is no chart.
_MOST_SERIES, _LOST, _TOO_MUCH = 4, 0.02, 0.5


def _mapped(path: Path, processes: int, run_s: float) -> tuple[Line, Line, float]:
    """Return bytes read and written by bands of ranks: in `BINS` bins, in the log's own bins, and their width (s)."""
    log = DarshanFile(path)
    bands = min(BANDS, processes)
    moved = np.zeros((2, bands, BINS))
    heats = [
        heat
        for heat in (log.heat() if "HEATMAP" in log.modules else ())
        if heat.layer in _LAYERS and 0 <= heat.rank < processes and len(heat.read)
    ]
    width = max((heat.width_s for heat in heats), default=0.0)
    own = np.zeros((2, bands, max((len(heat.read) for heat in heats), default=0)))
    for heat in heats:
        band = heat.rank * bands // processes
        edges = np.arange(len(heat.read) + 1) * heat.width_s
        edges[-1] = min(edges[-1], max(run_s, edges[-2]))  # the run ends within its last bin
        into = (np.arange(len(heat.read)) * heat.width_s / width + 1e-9).astype(int)  # widths are powers of two apart
        for way, each in enumerate((heat.read, heat.written)):
            sums = np.interp(np.linspace(0, run_s, BINS + 1), edges, np.append(0, np.cumsum(each)))
            moved[way, band] += np.diff(sums)
            np.add.at(own[way, band], into, each)
    return moved, own, width


def charts(path: Path, activity: Activity, every: float) -> list[Chart]:
    """Return bandwidth over time by direction, and bytes by rank and time; none if the log lacks them.

    `every`: bytes of all files. Where most of these are not seen, others than the ranks move them.
    """
    moved, width, source = activity.moved, 0.0, "DXT"
    try:
        mapped, own, bin_s = _mapped(path, activity.processes, activity.run_time)
    except DamagedLogError:
        mapped, own, bin_s = np.zeros(0), np.zeros(0), 0.0
    if not moved.any() or (activity.partial and mapped.sum() > moved.sum()):
        moved, width, source = mapped, bin_s, "HEATMAP"
    if not moved.any() or moved.sum() < _TOO_MUCH * every:
        return []
    line = np.concatenate([moved, np.zeros((1, *moved.shape[1:]))])
    heat = rank_chart(dataclasses.replace(activity, source="HEATMAP", line=line, bands=line.shape[1]))
    assert heat is not None
    lost = LOST if activity.partial and source == "DXT" else ""
    caption = str(heat.data["caption"]).partition(" Metadata calls")[0].replace("(HEATMAP)", f"({source})") + lost
    exact = heat.data["exact"]
    if own.any():  # the data beside the map are those of the recording, not those of the bins that are drawn
        exact = exactly(dict(zip(("reads", "writes"), own, strict=True)), "B", bin_s)
    heat = dataclasses.replace(
        heat, name="heat", title="Bytes by rank and time", data={**heat.data, "exact": exact, "caption": caption}
    )
    return [_bandwidth(moved.sum(axis=1), activity.run_time, width, source, lost), heat]


def of_files(rows: Sequence[Mapping[str, Any]], moved: Line, run_s: float) -> Chart | None:
    """Return bandwidth over time by file and direction; None if it is not known for most bytes.

    Parameters
    ----------
    rows : files, as the page has them.
    moved : array (files, 2, bins)
        Bytes of the first of them.
    """
    shown = [(place, way) for place in range(len(moved)) for way in (0, 1) if moved[place, way].any()][:_MOST_SERIES]
    every = [_LOOKS[way][0] for _, way in shown]
    if not shown:
        return None
    step = run_s / BINS
    names = [short_name(row["file"], {each["file"] for each in rows}) for row in rows[: len(moved)]]
    series = [
        {"name": f"{names[place]} {name}", "y": (moved[place, way] / step).tolist()}
        for (place, way), name in zip(shown, every, strict=True)
    ]
    kept = sum(float(moved[place].sum()) for place in {place for place, _ in shown})
    there = sum(rows[place]["read_bytes"] + rows[place]["written_bytes"] for place in {place for place, _ in shown})
    lost = max(0.0, 1 - kept / there) if there else 0.0
    if lost >= _TOO_MUCH:
        return None
    text = f"Each curve is the sum over all ranks, in steps of {seconds_text(step)}."
    if lost >= _LOST:
        text += (
            f" The curves lack {100 * lost:.0f} % of the bytes: a rank moved these bytes while it alternated between"
        )
        text += " files, and the recordings do not show to which file the bytes belong."
    which = ", ".join(dict.fromkeys(names[place] for place, _ in shown))
    title = f"Bandwidth of the files that took the most time: {which}"
    return _steps("bandwidth-files", title, series, run_s, text)


def _steps(name: str, title: str, series: Sequence[Mapping[str, Any]], run_s: float, caption: str) -> Chart:
    """Return a chart of bytes per second in the `BINS` steps of a run."""
    step = run_s / BINS
    return Chart(
        kind="steps",
        name=name,
        title=title,
        data={
            "x": [step * place for place in range(BINS)],
            "step": step,
            "series": series,
            "quantity": "rate",
            "wide": True,
            "spans": [],
            "x_range": (0.0, run_s),
            "caption": caption,
            "x_label": "time since the start of the run [s]",
            "y_label": "bytes per second",
        },
    )


def _bandwidth(moved: Line, run_s: float, width: float, source: str, lost: str) -> Chart:
    step = run_s / BINS
    starts = [step * place for place in range(BINS)]
    series = [
        {"name": name, "look": look, "y": (moved[way] / step).tolist()}
        for way, (name, look) in enumerate(_LOOKS)
        if moved[way].any()
    ]
    text = f"Bytes of all ranks' requests, in steps of {seconds_text(max(step, width))} ({source}).{lost}"
    return _steps("bandwidth", _peaks(series, starts, max(step, width)), series, run_s, text)


def _peaks(series: Sequence[Mapping[str, Any]], starts: Sequence[float], step: float) -> str:
    """Return the peaks of the bandwidth, in words; a step of time hides shorter peaks."""
    peaks = [(max(one["y"]), starts[int(np.argmax(one["y"]))], one["name"]) for one in series]
    text = ", ".join(f"{size_text(most)}/s {name} at {seconds_text(at)}" for most, at, name in peaks)
    return f"Bandwidth: the highest mean of a step of {seconds_text(step)} is {text}"
