"""A comparison as files: one self-contained HTML page, the JSON document, and the figures as SVG.

The page has the style of ``bench report`` in it, needs nothing else and no script. Every figure is also in the JSON
document as numbers. A file is there whole or not at all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

import mpiio_ext
import mpiio_ext.report
from mpiio_ext.common.files import write_whole
from mpiio_ext.pioneer.compare.charts import Series, chart, cumulative, standalone, steps
from mpiio_ext.pioneer.compare.comparison import Comparison, Metric, choices, operation_rows, to_json
from mpiio_ext.pioneer.compare.metrics import UNITS

__all__ = ["render", "save_all", "save_html", "save_json"]

_NAMES = ("original", "synthetic")
_GROUPS = ("total", "counts", "span", "holes", "duplicates", "order", "slack", "slack_us", "arrival", "makespan")


# ---- figures ---------------------------------------------------------------------------------------------------------


def _over_time(comparison: Comparison) -> list[dict[str, Any]]:
    figures = comparison.figures
    bins = figures.throughput[0].size
    edges = np.linspace(0, bins * figures.bin_ns / 1e9, bins + 1, dtype=np.float64)
    drawn = (
        ("throughput", "Throughput (Figure 5 of the paper)", "MB/s", None, 1e-6, figures.throughput,
         "10⁶ bytes read and written per second, by all processes; 1,000 MB/s are the paper's 1 MB/ms."),
        ("data-ratio", "File-data operation ratio (Figure 6)", "share", 1.0, 1.0, figures.data_ratio,
         "Reads and writes of file data among all operations that begin in a bin; bins without any are left out."),
        ("data-operations", "File-data operations (Figure 6, right axis)", "operations per bin", None, 1.0,
         figures.data_operations, "Reads and writes of file data that begin in a bin."),
    )  # fmt: skip
    found = []
    for file, title, unit, most, factor, values, caption in drawn:
        lines: list[Series] = []
        for name, one in zip(_NAMES, values, strict=True):
            lines.append(steps(name, edges, factor * one))
        drawing = chart(lines, x_label="time since the first operation [s]", y_label=unit, y_most=most)
        found.append({"file": file, "title": title, "caption": caption, "drawing": drawing})
    return found


def _figures(comparison: Comparison) -> list[dict[str, Any]]:
    figures = comparison.figures
    lines = [cumulative(name, one) for name, one in zip(_NAMES, figures.arrivals, strict=True)]
    unit = f"{figures.unit_ns / 1e9:.4g} s"
    caption = (f"Share of the time units of {unit}, 1/{UNITS} of the original's makespan, in which at most so many "
               f"operations begin, of all processes. Largest distance: {figures.arrival_distance:.4f}. The metric "
               f"“arrival” is of the root alone.")  # fmt: skip
    drawing = chart(lines, x_label=f"operations in {unit}", y_label="share of time units", y_most=1.0)
    last = {"file": "arrival-rate", "title": "Arrival rate, cumulative (Figure 7)", "caption": caption,
            "drawing": drawing}  # fmt: skip
    return [*_over_time(comparison), last]


# ---- the page --------------------------------------------------------------------------------------------------------


def _amount(count: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:,.2f} {unit}"
    return f"{count:,.0f} B"


def _facts(comparison: Comparison) -> list[tuple[str, str, str]]:
    sides = (comparison.original, comparison.synthetic)
    rows = {
        "read from": [side.name for side in sides],
        "kind": [f"{side.kind}{f', {side.format}' if side.format else ''}" for side in sides],
        "processes": [f"{side.activity.ranks:,}" for side in sides],
        "groups": [" + ".join(str(len(ranks)) for ranks in side.path.info.members) for side in sides],
        "operations": [f"{side.operations:,.0f}" for side in sides],
        "operations of the path": [f"{side.path.table.num_rows:,}" for side in sides],
        "written": [_amount(side.activity.total_bytes(writes=True)) for side in sides],
        "read": [_amount(side.activity.total_bytes(writes=False)) for side in sides],
        "makespan": [f"{side.activity.makespan / 1e9:,.6g} s" for side in sides],
        "lines not understood": [f"{side.skipped:,}" for side in sides],
    }
    return [(name, first, second) for name, (first, second) in rows.items()]


def _verdict(metric: Metric) -> dict[str, str]:
    if not metric.judged:
        return {"word": "not judged", "style": "no", "symbol": "·"}
    return {"word": "passed", "style": "up", "symbol": "✔"} if metric.passed else {
        "word": "FAILED", "style": "dn", "symbol": "✖"}  # fmt: skip


def _metrics(comparison: Comparison) -> list[dict[str, Any]]:
    rows = [{"name": metric.name, "meaning": metric.meaning, "value": metric.text,
             "limit": f"{metric.limit:g}", **_verdict(metric)} for metric in comparison.metrics]  # fmt: skip
    return sorted(rows, key=lambda row: row["name"] not in _GROUPS)


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("comparison.html")


def render(comparison: Comparison) -> str:
    """Return the page."""
    folder = Path(mpiio_ext.report.__file__).parent / "templates"
    return _template().render(
        style=(folder / "style.css").read_text(encoding="utf-8"), version=mpiio_ext.__version__, comparison=comparison,
        facts=_facts(comparison), metrics=_metrics(comparison), operations=operation_rows(comparison),
        figures=_figures(comparison), choices=choices(comparison),
    )  # fmt: skip


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
    """Write comparison.html, comparison.json and the figures (SVG) into a folder; the names of all.

    Raises
    ------
    OSError, ReportError
        The folder cannot be made, or a file not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page, document = folder / "comparison.html", folder / "comparison.json"
    save_html(comparison, page)
    save_json(comparison, document)
    drawn = []
    for figure in _figures(comparison):
        drawn.append(folder / f"{figure['file']}.svg")
        write_whole(drawn[-1], standalone(figure["drawing"], _NAMES))
    return [page, document, *drawn]
