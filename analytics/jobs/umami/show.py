"""An UMAMI as a figure, as text, as JSON and as a page: the weather during the job, beside the climate before it."""

from __future__ import annotations

import dataclasses
from typing import Any

from mpiio_ext.analytics.jobs.coverage import MOST_COVERAGE
from mpiio_ext.analytics.jobs.filters import left_out
from mpiio_ext.analytics.jobs.metrics import metric
from mpiio_ext.analytics.jobs.umami.figure import chart, value_words
from mpiio_ext.analytics.jobs.umami.rows import Umami
from mpiio_ext.common import page as pages
from mpiio_ext.common.page import Grid, Section
from mpiio_ext.common.printing import under_heads

_CAPTION = (
    "Left: each job of the history, by its start; the star is this job. Right: the distribution of the other jobs: box "
    "from the first to the third quartile with the median, whiskers at the 5th and the 95th percentile; dashed: this "
    "job. The colour shows its quarter, from red (worst) to blue (best); if small values are good, they are blue. "
    "Triangles at the edge: jobs far outside. No line goes through more than seven usual intervals without a job."
)


def document(found: Umami) -> dict[str, Any]:
    """Return the UMAMI as data for JSON; values are in the units of the columns."""
    rows = []
    for row in found.metrics:
        box = row.box
        rows.append(
            {
                "metric": row.metric.name,
                "label": row.metric.label,
                "big_is_good": row.metric.big_is_good,
                "value": row.value,
                "quarter": row.quarter,
                "verdict": row.verdict,
                "share_below": row.below,
                "history": box and box.as_json(),
            }
        )
    return {
        "job": found.job,
        "file_system": found.system,
        "motif": found.motif,
        "processes": found.scale or None,
        "start": float(found.times[found.place]),
        "history_jobs": len(found.times) - 1,
        "metrics": rows,
        "without_values": list(found.absent),
        "beyond_limit": list(found.beyond),
        "gaps": list(found.gaps),
        "other_processes": dict(found.other_scales),
        "filters": [dataclasses.asdict(step) for step in found.left_out],
    }


def _table(found: Umami) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for row in found.metrics:
        below = "–" if row.below is None else f"{100 * row.below:.0f} %"
        spread = "–" if row.box is None else f"{value_words(row.box.first, row)} to {value_words(row.box.third, row)}"
        rows.append(
            (
                row.metric.label,
                value_words(row.value, row),
                row.verdict or "–",
                value_words(row.box.median if row.box else None, row),
                spread,
                below,
            )
        )
    return rows


_COLUMNS = ("metric", "this job", "lies in", "median of the others", "their middle half", "others below")


def text(found: Umami) -> str:
    """Return the weather of the job as text: a line for each metric."""
    lines = under_heads(_COLUMNS, _table(found))
    return "\n".join([f"job {found.job}: {found.about}", "", *lines, "", found.summary, *_unused(found)])


def _unused(found: Umami) -> list[str]:
    """Return which values of the job are not used, and which rows are not compared."""
    names = {
        "Not used, as a factor above {0:g} means that samples of the servers are missing or a cache answered: "
        "{1}.": found.beyond,
        "Not used, as the servers saw less than the job itself moved or nothing at all: {1}.": found.gaps,
    }
    lines = [
        words.format(MOST_COVERAGE, ", ".join(metric(name).label for name in some))
        for words, some in names.items()
        if some
    ]
    others = [f"{count:,} of {scale} processes" for scale, count in found.other_scales.items()]
    lines += [f"Not compared: jobs of the same motif on the same file system, {', '.join(others)}."] if others else []
    return [*lines, *(f"{line}." for line in left_out(found.left_out))]


def page(found: Umami) -> str:
    """Return one page: the UMAMI, also narrow, and the weather as a table; it fetches nothing."""
    grid = Grid(columns=_COLUMNS, numbers=(False, True, False, True, True, True), rows=_table(found))
    figure = pages.drawn(chart(found), caption=_CAPTION, narrow=chart(found, narrow=True))
    missing = [f"Without a value in the history: {', '.join(found.absent)}."] if found.absent else []
    sections = [
        Section(
            anchor="weather",
            title="Weather during the job",
            figures=[figure],
            grids=[grid],
            sentences=[
                "Each metric while this job ran, beside all other jobs of the history.",
                *_unused(found),
                *missing,
            ],
        )
    ]
    head = f"{found.about}: one job against the history of its application, file system, motif and processes."
    return pages.document(f"Job {found.job}", sections, lead=[found.summary], head=head)
