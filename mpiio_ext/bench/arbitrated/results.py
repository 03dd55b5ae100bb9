"""What the jobs did under each policy: JSON, and the figure beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mpiio_ext.common.files import write_whole
from mpiio_ext.common.plots import SERIES, Axis, Chart, Look, Panel, corners, look, svg_file
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.store import plain

#: Version of the JSON, which mpiio_ext.report.arbitration reads.
FORMAT = 1
#: Slots that make a point of the figure.
_SMOOTH = 3


def document(
    runs: Sequence[Mapping[str, Any]],
    curves: Mapping[str, Curve],
    configuration: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the results as plain data; `runs` as `run_policy` returns them."""
    return {
        "what": "arbitration run",
        "format": FORMAT,
        "units": {"_mb_per_s": "MB/s (10^6 bytes)", "_bytes": "bytes", "_s": "s"},
        "environment": dict(environment),
        "configuration": dict(configuration),
        "curves": {name: plain(curve) for name, curve in curves.items()},
        "policies": {
            str(run["policy"]): {
                **{key: value for key, value in run.items() if key != "policy"},
                "bandwidth_mb_per_s": _together(run),
            }
            for run in runs
        },
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
            out.append(
                f"{policy.upper()}: {name}: {job['bandwidth_mb_per_s']:,.0f} MB/s, I/O nodes "
                f"{' → '.join(map(str, counts))}"
            )
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


def _steps_of(run: Mapping[str, Any], name: str, end: float) -> tuple[list[float], list[float | None]]:
    times = [float(step["time_s"]) for step in run["map"]]
    return corners([*times, max(end, *times)], [float(step["io_nodes"].get(name, 0)) for step in run["map"]])


def draw(found: Mapping[str, Any]) -> Chart:
    """Return the bandwidth of each job over time for each policy, and its I/O nodes below."""
    policies, nodes = found["policies"], int(found["configuration"]["io_nodes"])

    def one(below: bool, policy: str, panel: Panel) -> None:
        jobs, first = policies[policy]["jobs"], policy == next(iter(policies))
        end = max(job["end_s"] for job in jobs.values())
        for index, (name, job) in enumerate(jobs.items()):
            x, y = _steps_of(policies[policy], name, end) if below else _points(job)
            panel.line(x, y, Look(look(index).colour, look(index).dash), name)
        if below:
            ticks = [(n, str(n)) for n in range(nodes + 1)]
            y_axis = Axis(label="I/O nodes" if first else "", low=0, grid=True, ticks=ticks)
            panel.frame(Axis(label="time [s]", low=0), y_axis)
        else:
            y_axis = Axis(label="bandwidth [MB/s]" if first else "", low=0, grid=True)
            panel.frame(Axis(low=0), y_axis, policy.upper())

    together = ", ".join(
        f"{run['bandwidth_mb_per_s']:,.0f} MB/s under {policy.upper()}" for policy, run in policies.items()
    )
    return Chart(
        name="arbitration",
        title=f"All jobs together: {together}, one run each",
        panels=[[partial(one, below, policy) for policy in policies] for below in (False, True)],
        width=4.2 * len(policies),
        height=4.2,
        heights=(3, 1),
        legend="above",
        columns=SERIES,
        share=True,
    )


def write(folder: Path, found: Mapping[str, Any]) -> list[Path]:
    """Write arbitration.json and arbitration.svg into a folder; whole.

    Raises
    ------
    OSError
        The file system fails.
    """
    paths = []
    for name, text in (
        ("arbitration.svg", svg_file(draw(found))),
        ("arbitration.json", json.dumps(found, indent=1) + "\n"),
    ):
        write_whole(folder / name, text)
        paths.append(folder / name)
    return paths
