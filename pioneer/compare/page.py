"""A comparison as files: one self-contained HTML page, the JSON document, and the figures as SVG.

Every figure is also in the JSON document as numbers. A file is there whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpiio_ext.common import plots
from mpiio_ext.common.files import write_whole
from mpiio_ext.common.page import Cell, Finding, Grid, Number, Section, document, drawn
from mpiio_ext.common.plots import Axis, Chart, Look, Panel, corners, cumulative
from mpiio_ext.common.units import amount_text, digits_text
from mpiio_ext.pioneer.compare.comparison import Comparison, Metric, choices, operation_rows, to_json
from mpiio_ext.pioneer.compare.metrics import UNITS

_NAMES = ("original", "synthetic")
_LOOKS = (Look("series0"), Look("series1", "--"))
_GROUPS = ("total", "counts", "span", "holes", "duplicates", "order", "slack", "slack_us", "arrival", "makespan")
_FOOT = (
    "The figures and metrics are those of He, Du and Narasimhamurthy, PIONEER: A Solution To Parallel I/O "
    "Workload Characterization And Generation, section VI."
)


# ---- figures ---------------------------------------------------------------------------------------------------------


def _chart(
    name: str,
    title: str,
    lines: Sequence[tuple[Sequence[float], Sequence[float | None]]],
    x_label: str,
    y_label: str,
    most: float | None = None,
) -> Chart:
    """Return a line of each workload; both axes begin at 0."""

    def draw(panel: Panel) -> None:
        for one, look, (x, y) in reversed([*zip(_NAMES, _LOOKS, lines, strict=True)]):
            panel.line(x, y, look, one, width=1.7, clip=False)
        panel.frame(
            x=Axis(label=x_label, low=0, form=_label), y=Axis(label=y_label, low=0, high=most, grid=True, form=_label)
        )

    return Chart(
        name=name,
        title=title,
        panels=[[draw]],
        height=2.9,
        legend="above",
        margins=(70, 18, 24, 36),
        keys=[(one, look, 1.7) for one, look in zip(_NAMES, _LOOKS, strict=True)],
    )


def _label(value: float) -> str:
    return digits_text(value, 4)


def _known(values: NDArray[np.float64]) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def beside(figures: Sequence[float], unit: str) -> str:
    """Return the same number of both workloads, and by how much the synthetic one's differs."""
    first, second = (f"{digits_text(value, 4)} {unit}" for value in figures)
    if first == second:
        return f"{first} in both workloads"
    more = 100 * (figures[1] / figures[0] - 1) if figures[0] else 0
    difference = f" ({'+' if more > 0 else ''}{digits_text(more, 2)} %)" if more else ""
    return f"{first} in the original, {second} in the synthetic workload{difference}"


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else 0.0


def _figures(comparison: Comparison) -> list[tuple[str, Chart]]:
    """Return (caption, chart) of each figure."""
    figures = comparison.figures
    bins = figures.throughput[0].size
    edges = np.linspace(0, bins * figures.bin_ns / 1e9, bins + 1, dtype=np.float64).tolist()
    sides = [side.activity for side in (comparison.original, comparison.synthetic)]
    means = [
        1e3 * sum(each.total_bytes(writes=way) for way in (False, True)) / each.makespan if each.makespan else 0.0
        for each in sides
    ]
    shares = [100 * _mean(one) for one in figures.data_ratio]
    counts = [float(one.sum()) for one in figures.data_operations]
    over_time = (
        (
            "throughput",
            f"Mean throughput: {beside(means, 'MB/s')}",
            "throughput [MB/s]",
            None,
            1e-6,
            figures.throughput,
            "Figure 5 of the paper. 10⁶ bytes read and written per second, by all processes; 1,000 "
            "MB/s are the paper's 1 MB/ms. Peaks are of single bins, and not judged; the mean follows from "
            "the makespan.",
        ),
        (
            "data-ratio",
            f"Share of file-data operations, mean of the bins: {beside(shares, '%')}",
            "share of the operations",
            1.0,
            1.0,
            figures.data_ratio,
            "Figure 6. Reads and writes of file data among all operations that begin in a bin; bins without any "
            "are left out.",
        ),
        (
            "data-operations",
            f"File-data operations: {beside(counts, 'operations')}",
            "operations per bin",
            None,
            1.0,
            figures.data_operations,
            "Figure 6, right axis. Reads and writes of file data that begin in a bin.",
        ),
    )
    found = [
        (
            caption,
            _chart(
                name,
                title,
                [corners(edges, _known(factor * one)) for one in values],
                "time since the first operation [s]",
                label,
                most,
            ),
        )
        for name, title, label, most, factor, values, caption in over_time
    ]
    return [*found, _arrivals(comparison)]


def _arrivals(comparison: Comparison) -> tuple[str, Chart]:
    figures = comparison.figures
    unit = f"{digits_text(figures.unit_ns / 1e9, 4)} s"
    caption = (
        f"Figure 7. Share of the time units of {unit}, 1/{UNITS} of the original's makespan, in which at most "
        f"so many operations begin, of all processes. The metric “arrival” is of "
        "the root alone."
    )
    arrivals = [cumulative(one.tolist()) for one in figures.arrivals]
    title = f"Arrival rates: the distributions are {figures.arrival_distance:.4f} apart at most"
    return caption, _chart("arrival-rate", title, arrivals, f"operations in {unit}", "share of time units", 1.0)


# ---- the page --------------------------------------------------------------------------------------------------------


def _facts(comparison: Comparison) -> list[tuple[str, str, str]]:
    sides = (comparison.original, comparison.synthetic)
    rows = {
        "read from": [side.name for side in sides],
        "kind": [f"{side.kind}{f', {side.format}' if side.format else ''}" for side in sides],
        "processes": [f"{side.activity.ranks:,}" for side in sides],
        "groups": [" + ".join(str(len(ranks)) for ranks in side.path.info.members) for side in sides],
        "operations": [f"{side.operations:,.0f}" for side in sides],
        "operations of the path": [f"{side.path.table.num_rows:,}" for side in sides],
        "written": [amount_text(side.activity.total_bytes(writes=True)) for side in sides],
        "read": [amount_text(side.activity.total_bytes(writes=False)) for side in sides],
        "makespan": [f"{digits_text(side.activity.makespan / 1e9, 6)} s" for side in sides],
        "lines not understood": [f"{side.skipped:,}" for side in sides],
    }
    return [(name, first, second) for name, (first, second) in rows.items()]


def _verdict(metric: Metric) -> Cell:
    if not metric.judged:
        return Cell(text="· not judged", style="")
    return Cell(text="✔ passed", style="up") if metric.passed else Cell(text="✖ FAILED", style="dn")


def _notices(comparison: Comparison) -> list[Finding]:
    """Return the limits that do not hold."""
    failed = [f"{metric.name} {metric.text} (limit {metric.limit:g})" for metric in comparison.failed]
    return [Finding(title="✖ Beyond their limits:", evidence=failed, weight="warning")] if failed else []


def _lead(comparison: Comparison) -> list[str]:
    """Return whether the limits hold, which metrics were judged, and why others were not."""
    judged, every = len(comparison.judged), len(comparison.metrics)
    if comparison.failed:
        many = f"{len(comparison.failed)} of {judged} metrics"
        first = f"✖ {many} are beyond their limits: the synthetic workload differs from the original."
    elif judged == every:
        first = f"✔ All limits hold ({judged} metrics): the synthetic workload is like the original."
    else:
        names = dict.fromkeys(metric.name.rpartition(".")[2] for metric in comparison.judged)
        first = f"✔ All limits hold for {judged} of {every} metrics: by {', '.join(names)}, the synthetic workload is "
        first += f"like the original. The other {every - judged} metrics were not judged."
    return [first, *(f"Not judged: {why}." for why in comparison.not_judged)]


def render(comparison: Comparison) -> str:
    """Return the page."""
    metrics = sorted(comparison.metrics, key=lambda metric: metric.name not in _GROUPS)
    counts = [
        (row["layer"], row["operation"], f"{row['original']:,}", f"{row['synthetic']:,}", f"{row['difference']:.4f}")
        for row in operation_rows(comparison)
    ]
    figures = [drawn(chart, caption=caption) for caption, chart in _figures(comparison)]
    sections = [
        Section(
            anchor="metrics",
            title="Metrics",
            sentences=["0 is no difference. KS: Kolmogorov–Smirnov distance of two distributions, 0 to 1."],
            grids=[
                Grid(
                    columns=("metric", Number("value"), Number("limit"), "", "what it is"),
                    rows=[
                        (metric.name, metric.text, f"{metric.limit:g}", _verdict(metric), metric.meaning)
                        for metric in metrics
                    ],
                )
            ],
        ),
        Section(anchor="figures", title="Figures", figures=figures),
        Section(
            anchor="operations",
            title="Operations of the workload paths",
            grids=[Grid(columns=("layer", "operation", *map(Number, (*_NAMES, "relative difference"))), rows=counts)],
        ),
        Section(anchor="workloads", title="Workloads", grids=[Grid(columns=("", *_NAMES), rows=_facts(comparison))]),
        Section(
            anchor="choices",
            title="How it was counted",
            facts=[(name.replace("_", " "), text) for name, text in choices(comparison).items()],
        ),
    ]
    names = comparison.original.name, comparison.synthetic.name
    return document(
        "PIONEER: original and synthetic workload",
        sections,
        lead=_lead(comparison),
        head=f"{names[0]} against {names[1]}",
        notices=_notices(comparison),
        foot=_FOOT,
    )


def save_html(comparison: Comparison, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ReportError
        The file cannot be written; what was there before still is.
    """
    write_whole(path, render(comparison))


def save_json(comparison: Comparison, path: Path) -> None:
    """Write the document; errors are those of `save_html`."""
    write_whole(path, json.dumps(to_json(comparison), indent=1, allow_nan=False) + "\n")


def save_all(comparison: Comparison, folder: Path) -> list[Path]:
    """Write comparison.html, comparison.json and the figures (SVG) into a folder; return all their names.

    Raises
    ------
    OSError, ReportError
        The folder cannot be made, or a file not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, document_of = folder / "comparison.html", folder / "comparison.json"
    save_html(comparison, page)
    save_json(comparison, document_of)
    files = []
    for _, chart in _figures(comparison):
        files.append(folder / f"{chart.name}.svg")
        plots.save(chart, files[-1])
    return [page, document_of, *files]
