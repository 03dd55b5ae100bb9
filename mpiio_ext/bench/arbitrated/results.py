"""What the jobs did under each policy: JSON, and the figure beside it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.common.files import write_whole
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.store import plain

__all__ = ["FORMAT", "document", "draw", "lines", "write"]

#: Version of the JSON, which mpiio_ext.report.arbitration reads.
FORMAT = 1
#: Slots that make a point of the figure.
_SMOOTH = 3
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def document(runs: Sequence[Mapping[str, Any]], curves: Mapping[str, Curve], configuration: Mapping[str, Any],
             environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results as plain data; `runs` as `run_policy` returns them."""
    return {
        "what": "arbitration run", "format": FORMAT,
        "units": {"_mb_per_s": "MB/s (10^6 bytes)", "_bytes": "bytes", "_s": "s"},
        "environment": dict(environment), "configuration": dict(configuration),
        "curves": {name: plain(curve) for name, curve in curves.items()},
        "policies": {str(run["policy"]): {**{key: value for key, value in run.items() if key != "policy"},
                                          "bandwidth_mb_per_s": _together(run)} for run in runs},
    }


def _together(run: Mapping[str, Any]) -> float:
    """Return what all jobs moved over the time from the first begin to the last end."""
    jobs = run["jobs"].values()
    span = max(job["end_s"] for job in jobs) - min(job["begin_s"] for job in jobs)
    return float(sum(job["data_bytes"] for job in jobs) / 1e6 / max(span, 1e-9))


def lines(found: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each policy and job."""
    out = []
    for policy, run in found["policies"].items():
        for name, job in run["jobs"].items():
            counts = _counts(run["map"], name)
            out.append(f"{policy.upper()}: {name}: {job['bandwidth_mb_per_s']:,.0f} MB/s, I/O nodes "
                       f"{' → '.join(map(str, counts))}")
        out.append(f"{policy.upper()}: together {run['bandwidth_mb_per_s']:,.0f} MB/s")
    return out


def _counts(steps: Sequence[Mapping[str, Any]], name: str) -> list[int]:
    found: list[int] = []
    for step in steps:
        count = step["io_nodes"].get(name)
        if count is not None and found[-1:] != [count]:
            found.append(count)
    return found


def _points(job: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    slots = job["slots"]
    times, values = [], []
    for at in range(0, len(slots), _SMOOTH):
        part = slots[at : at + _SMOOTH]
        times.append(part[0]["time_s"] + len(part) * job["slot_s"] / 2)
        values.append(sum(slot["data_bytes"] for slot in part) / 1e6 / (len(part) * job["slot_s"]))
    return times, values


def _steps_of(run: Mapping[str, Any], name: str, end: float) -> tuple[list[float], list[float]]:
    times, values = [], []
    for step in run["map"]:
        times.append(float(step["time_s"]))
        values.append(float(step["io_nodes"].get(name, 0)))
    return [*times, max(end, *times)], [*values, values[-1]]


def draw(found: Mapping[str, Any]) -> str:
    """Return an SVG: for each policy the bandwidth of each job over time, and its I/O nodes below."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    policies = found["policies"]
    with mpl.rc_context({"svg.hashsalt": "mpiio_ext", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.2 * len(policies), 4.2), layout="constrained")
        FigureCanvasSVG(figure)
        axes: Any = figure.subplots(2, len(policies), squeeze=False, sharex=True, sharey="row",
                                    gridspec_kw={"height_ratios": (3, 1)})
        for column, (policy, run) in enumerate(policies.items()):
            _paint(axes[0][column], axes[1][column], run)
            axes[0][column].set_title(policy.upper(), fontsize=9)
            axes[1][column].set_xlabel("time (s)")
        axes[0][0].set_ylabel("bandwidth (MB/s)")
        axes[1][0].set_ylabel("I/O nodes")
        axes[0][0].set_xlim(left=0)
        axes[0][0].set_ylim(bottom=0)
        axes[1][0].set_yticks(range(int(found["configuration"]["io_nodes"]) + 1))
        figure.legend(*axes[0][0].get_legend_handles_labels(), fontsize=8, loc="outside upper left", frameon=False,
                      ncols=len(_COLOURS))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg"):]


def _paint(bandwidth: Any, nodes: Any, run: Mapping[str, Any]) -> None:
    end = max(job["end_s"] for job in run["jobs"].values())
    for index, (name, job) in enumerate(run["jobs"].items()):
        colour, style = _COLOURS[index % len(_COLOURS)], ("-", "--", ":", "-.")[index % 4]
        bandwidth.plot(*_points(job), color=colour, linestyle=style, label=name)
        nodes.step(*_steps_of(run, name, end), where="post", color=colour, linestyle=style)
    for axis in (bandwidth, nodes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", linewidth=0.4, alpha=0.6)


def write(folder: Path, found: Mapping[str, Any]) -> list[Path]:
    """Write arbitration.json and arbitration.svg into a folder; whole.

    Raises
    ------
    OSError
        The file system fails.
    """
    paths = []
    for name, text in (("arbitration.svg", draw(found)), ("arbitration.json", json.dumps(found, indent=1) + "\n")):
        write_whole(folder / name, text)
        paths.append(folder / name)
    return paths
