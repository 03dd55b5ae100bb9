"""Results of exploring: JSON, FORGE's table, curves with their versions, lines and a page.

Guarantees. The table is the one that ``arbitrate`` reads as FORGE's, a line for each repetition, so that a
            curve has the spread of its repetitions. Bandwidths are in MB/s of 10^6 bytes throughout (FORGE's own tables
            have 2^20). `request_bytes` stands beside FORGE's whole KiB. Files are replaced whole.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mpiio_ext.bench.explore.measure import Measured
from mpiio_ext.bench.explore.spec import Spec
from mpiio_ext.common.files import write_whole
from mpiio_ext.common.results import Spread
from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.pattern import Pattern

#: Version of the JSON.
FORMAT = 1
_COLUMNS = (
    "forwarders",
    "clients",
    "processes",
    "layout",
    "spatiality",
    "odirect",
    "stonewall",
    "request",
    "total",
    "operation",
    "time",
    "transfered",
    "bandwidth",
    "request_bytes",
    "repetition",
)
_MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measurement.

    Attributes
    ----------
    spec : what was carried out
    pattern : the properties that identify its curve
    io_nodes : delegates that were to own pages
    repetition : from 1
    measured : what came of it
    """

    spec: Spec
    pattern: Pattern
    io_nodes: int
    repetition: int
    measured: Measured


def curves_of(runs: Sequence[Run]) -> dict[Pattern, Curve]:
    """Return the curve of each pattern, in the order of the runs; its source names the most bytes of a run."""
    found: dict[Pattern, dict[int, list[float]]] = {}
    for run in runs:
        points = found.setdefault(run.pattern, {})
        points.setdefault(run.io_nodes, []).append(run.measured.bandwidth_mb_per_s)
    sources = {run.pattern: _source(run.spec) for run in runs}
    return {
        pattern: Curve({count: Point.of(values) for count, values in points.items()}, source=sources[pattern])
        for pattern, points in found.items()
    }


def _source(spec: Spec) -> str:
    stonewall = f", stonewall {spec.stonewall_s:g} s" if spec.stonewall_s else ""
    return f"explored: total {spec.total_bytes / 2**20:g} MiB{stonewall}"


def joint_curve(runs: Sequence[Run]) -> Curve:
    """Return the curve of a program that carries all patterns out one after the other.

    Raises
    ------
    CurveError
        The patterns have no number of delegates in common.
    """
    from mpiio_ext.delegates.arbitration.estimate import joined

    volumes = {run.pattern: float(run.spec.total_bytes) for run in runs}
    return joined([(volumes[pattern], curve) for pattern, curve in curves_of(runs).items()])


def _run(run: Run) -> dict[str, Any]:
    return {
        "pattern": run.pattern.name,
        "io_nodes": run.io_nodes,
        "repetition": run.repetition,
        **asdict(run.measured),
        "bandwidth_mb_per_s": run.measured.bandwidth_mb_per_s,
    }


def _summary(runs: Sequence[Run]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.pattern.name, run.io_nodes), []).append(run)
    out = []
    for (name, count), group in groups.items():
        spread = Spread.of([run.measured.bandwidth_mb_per_s for run in group])
        out.append(
            {
                "pattern": name,
                "io_nodes": count,
                "repetitions": spread.count,
                "median_mb_per_s": spread.median,
                "smallest_mb_per_s": spread.low,
                "largest_mb_per_s": spread.high,
                "data_bytes": max(run.measured.data_bytes for run in group),
                "stopped_ranks": max(run.measured.stopped_ranks for run in group),
                "serving_delegates": max(run.measured.serving_delegates or 0 for run in group),
                "delegated_part": _part(group),
            }
        )
    return out


def _part(group: Sequence[Run]) -> float | None:
    """Return the share of the bytes that went through pages of delegates; None without delegates."""
    if group[0].io_nodes == 0:
        return None
    return sum(r.measured.delegated_bytes for r in group) / max(sum(r.measured.data_bytes for r in group), 1)


def document(
    runs: Sequence[Run], environment: Mapping[str, Any], configuration: Mapping[str, Any], failure: str | None
) -> dict[str, Any]:
    """Return the results as plain data."""
    return {
        "what": "arbitration exploration",
        "format": FORMAT,
        "units": {"_mb_per_s": "MB/s (10^6 bytes)", "_bytes": "bytes", "_s": "s"},
        "environment": dict(environment),
        "configuration": dict(configuration),
        "failure": failure,
        "patterns": {run.pattern.name: asdict(run.spec) for run in runs},
        "summary": _summary(runs),
        "runs": [_run(run) for run in runs],
    }


def table(runs: Sequence[Run]) -> str:
    """Return the runs as FORGE's table, separated by semicolons."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";", lineterminator="\n")
    writer.writerow(_COLUMNS)
    for run in runs:
        spec, measured = run.spec, run.measured
        writer.writerow(
            [
                run.io_nodes,
                run.pattern.compute_nodes,
                run.pattern.processes,
                int(spec.layout == "shared"),
                int(spec.spatiality == "strided"),
                int(spec.direct),
                f"{spec.stonewall_s:g}",
                f"{spec.request_bytes / 1024:g}",
                f"{spec.total_bytes / 2**20:g}",
                spec.operation,
                f"{measured.data_s + measured.close_s:.6f}",
                f"{measured.data_bytes / _MB:.6f}",
                f"{measured.bandwidth_mb_per_s:.6f}",
                spec.request_bytes,
                run.repetition,
            ]
        )
    return out.getvalue()


def lines(summary: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each pattern and number of delegates."""
    out = []
    for row in summary:
        text = (
            f"{row['pattern']}, {row['io_nodes']}: {row['median_mb_per_s']:,.1f} MB/s "
            f"[{row['smallest_mb_per_s']:,.1f} to {row['largest_mb_per_s']:,.1f}], {row['repetitions']} times"
        )
        if row["delegated_part"] is not None and row["delegated_part"] < 0.5:
            text += (
                f"; {100 * (1 - row['delegated_part']):.0f} % of the bytes went past the delegates "
                "(mpiox_delegate_bypass)"
            )
        if 0 < row["serving_delegates"] < row["io_nodes"]:
            text += f"; {row['serving_delegates']} of the delegates had pages of it"
        out.append(text)
    return out


def _lead(summary: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on the measurements and their number."""
    patterns = len({row["pattern"] for row in summary})
    counts, times = ([row[key] for row in summary] for key in ("io_nodes", "repetitions"))
    ends = f"{min(times)}" if min(times) == max(times) else f"{min(times)} to {max(times)}"
    return (
        f"{patterns} pattern{'' if patterns == 1 else 's'} measured with {min(counts)} to {max(counts)} delegates, "
        f"{ends} time{'' if ends == '1' else 's'} each."
    )


def _caches(runs: Sequence[Run]) -> str:
    direct = {run.spec.direct for run in runs}
    if direct == {False}:
        return "through the page cache"
    return "past the page cache (O_DIRECT)" if direct == {True} else "-direct: past the page cache (O_DIRECT)"


def write(folder: Path, found: Mapping[str, Any], runs: Sequence[Run], *, page: bool) -> list[Path]:
    """Write results.json and curves.csv, with `page` curves.svg and index.html too; return the files.

    Raises
    ------
    OSError
        The file system fails.
    """
    texts = {"results.json": json.dumps(found, indent=1) + "\n", "curves.csv": table(runs)}
    if page and runs:
        from mpiio_ext.common import page as pages
        from mpiio_ext.common import plots
        from mpiio_ext.delegates.arbitration import draw

        chart = draw.draw_curves({pattern.name: curve for pattern, curve in curves_of(runs).items()})
        texts["curves.svg"] = plots.svg_file(chart)
        figure = pages.drawn(
            chart,
            caption=f"Bandwidth by number of delegates, with the standard deviation of a repetition; {_caches(runs)}.",
        )
        section = pages.Section(anchor="results", title="Results", sentences=lines(found["summary"]), figures=[figure])
        failed = [pages.Finding(title="The exploration ended early.", evidence=[found["failure"]], weight="warning")]
        texts["index.html"] = pages.document(
            "Exploration: bandwidth by number of delegates",
            [section],
            lead=[_lead(found["summary"])],
            notices=failed if found["failure"] else [],
        )
    paths = []
    for name, text in texts.items():
        write_whole(folder / name, text)
        paths.append(folder / name)
    return paths
