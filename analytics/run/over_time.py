"""Bytes of a run over time, of all ranks and of bands of ranks: from the heat maps of its Darshan log."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.diagnosis.activity import BANDS, BINS, Activity
from mpiio_ext.analytics.report.timeline import rank_chart
from mpiio_ext.common.darshanfile import DamagedLogError, DarshanFile
from mpiio_ext.common.units import seconds_text

_LAYERS = ("POSIX", "STDIO")


@dataclasses.dataclass
class _Moved:
    """Bytes read and written: of bands of ranks in `BINS` bins, and of all ranks in the log's own bins."""

    bands: np.ndarray[Any, np.dtype[np.float64]]
    total: np.ndarray[Any, np.dtype[np.float64]]
    width_s: float


def _moved(path: Path, processes: int, run_s: float) -> _Moved | None:
    log = DarshanFile(path)
    if "HEATMAP" not in log.modules:
        return None
    bands = min(BANDS, processes)
    found = _Moved(np.zeros((2, bands, BINS)), np.zeros((2, 0)), 0.0)
    for heat in log.heat():
        if heat.layer not in _LAYERS or not 0 <= heat.rank < processes or not len(heat.read):
            continue
        both = np.stack([heat.read, heat.written]).astype(float)
        more = max(0, both.shape[1] - found.total.shape[1])
        found.total = np.pad(found.total, ((0, 0), (0, more)))
        found.total[:, : both.shape[1]] += both
        found.width_s = max(found.width_s, heat.width_s)
        edges = np.arange(both.shape[1] + 1) * heat.width_s
        edges[-1] = min(edges[-1], max(run_s, edges[-2]))  # the run ends within its last bin
        for way in (0, 1):
            sums = np.interp(np.linspace(0, run_s, BINS + 1), edges, np.append(0, np.cumsum(both[way])))
            found.bands[way, heat.rank * bands // processes] += np.diff(sums)
    return found if found.total.any() else None


def charts(path: Path, activity: Activity) -> list[Chart]:
    """Return bandwidth over time by direction, and bytes by rank and time; none where the log does not tell."""
    run_s = activity.run_time
    try:
        moved = _moved(path, activity.processes, run_s)
    except DamagedLogError:
        moved = None
    if moved is None:
        return []
    width = moved.width_s
    starts = (np.arange(moved.total.shape[1]) * width).tolist()
    last = max(run_s - starts[-1], 1e-3) if len(starts) == 1 else width
    lengths = np.append(np.full(len(starts) - 1, width), min(width, max(run_s - starts[-1], 0.05 * width)))
    series = [{"name": name, "y": (moved.total[way] / lengths).tolist()}
              for way, name in ((0, "read"), (1, "written")) if moved.total[way].any()]
    out = [Chart(kind="steps", name="bandwidth", title=_finding(series, starts), data={
        "x": starts, "step": last, "series": series, "quantity": "rate", "spans": [],
        "x_label": "time since the start of the run [s]", "y_label": "bytes per second",
        "caption": f"All ranks, at the file system's interface, in steps of {seconds_text(width)}.",
    })]  # fmt: skip
    line = np.concatenate([moved.bands, np.zeros((1, *moved.bands.shape[1:]))])
    heat = rank_chart(dataclasses.replace(activity, source="HEATMAP", line=line, bands=line.shape[1]))
    if heat is not None:
        caption = str(heat.data["caption"]).partition(" Metadata calls")[0]
        out.append(dataclasses.replace(heat, name="heat", title="Bytes by rank and time",
                                       data={**heat.data, "caption": caption}))  # fmt: skip
    return out


def _finding(series: list[dict[str, Any]], starts: list[float]) -> str:
    """Return what the bandwidth shows: its peaks."""
    from mpiio_ext.common.units import size_text

    peaks = [(max(one["y"]), starts[int(np.argmax(one["y"]))], one["name"]) for one in series]
    told = ", ".join(f"{size_text(most)}/s {name} at {seconds_text(at)}" for most, at, name in peaks)
    return f"Bandwidth: at most {told}"
