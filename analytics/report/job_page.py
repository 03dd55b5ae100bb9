"""The page of a job: what :mod:`.output` prints as text, with pictures, all factors, and the guide's sections."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.report import howto, job
from mpiio_ext.analytics.report.drawing import figure
from mpiio_ext.analytics.report.findings import Known, findings
from mpiio_ext.analytics.report.grids import cell_words
from mpiio_ext.analytics.report.output import factor_rows, speed_facts, value_words
from mpiio_ext.analytics.report.steps import COLUMNS, Steps
from mpiio_ext.analytics.report.timeline import rank_chart
from mpiio_ext.common.page import Grid, Number, Section
from mpiio_ext.common.page import document as page_of

if TYPE_CHECKING:
    import pyarrow as pa

#: What the first sentences leave to the diagnosis: the limit of a bandwidth, and where a time is known from.
_LIMIT = re.compile(r" \(low: below [^()]*\)")
_TIME = re.compile(r"(?:estimated )?critical time(?: in which any rank (?:reads|writes))?")


def job_page(tables: Mapping[str, pa.Table], known: Known | None = None, *, steps: Steps | None = None) -> str:
    """Return the page of a job: diagnosis, time line, factors, load of the servers."""
    found = job.document(tables, known, steps)
    charts = job.charts(tables, found, known.activity if known is not None and steps is None else None)
    name, seen = ("", (known or Known()).activity) if steps is None else steps.busiest or ("", None)
    if seen is not None and (ranks := rank_chart(seen)) is not None:
        what, _, when = ranks.title.partition(": ")
        charts.insert(0, dataclasses.replace(ranks, title=f"{what}: {name}: {when}" if name else ranks.title))
    figures = {chart.name: figure(chart) for chart in charts}
    documents = [one["document"] for one in found["diagnosis"]]
    exact = [f"{one['direction'].capitalize()}s: {one['conclusion']}" for one in documents]
    exact = exact if steps is None else [steps.conclusion]
    servers = [figures.pop("lmt")] if "lmt" in figures else []
    rows, listed = factor_rows(found), findings(found["diagnosis"])
    factors = Grid(columns=("factor", Number("reading"), Number("writing"), "meaning"), rows=rows)
    first = [found.get("sentence", ""), *map(_plain, exact), found.get("undiagnosed", "")]
    lead = [text for text in first if text][:2]
    others_said = [text for text in exact if text != _plain(text) or text not in lead]
    sections = [
        Section(anchor="job", title="The job", facts=[*job.facts(tables, known), *speed_facts(found)]),
        Section(
            anchor="diagnosis",
            title="Diagnosis",
            findings=listed,
            sentences=others_said,
            grids=[] if steps is None else [_steps_grid(steps)],
        ),
        Section(anchor="time-line", title="Files and ranks over time", figures=list(figures.values())),
        Section(anchor="servers", title="File servers", figures=servers),
        Section(
            anchor="factors",
            title="Contributing factors",
            grids=[factors],
            sentences=[
                "Each factor is an average over the critical files (listed below), weighted by their exclusive time."
            ],
        ),
        _critical_section(found),
        *howto.section(listed),
    ]
    title = f"I/O of job {found['job_id']}"
    head = (
        "A run of a program, recorded by Darshan." if steps is None else f"A job, recorded by Darshan: {steps.order}."
    )
    none = "No picture: the log has no times of accesses."
    return page_of(title, sections, lead=lead, none=none, head=head)


def _plain(conclusion: str) -> str:
    """Return a conclusion without the words on how times were measured, and by which limits.

    The time of one direction is not all time in I/O, which the sentence before may be of.
    """
    way, colon, _ = conclusion.partition(": ")
    one = colon and way.lower() in ("reads", "writes")
    return _TIME.sub(f"time in which there were {way.lower()}" if one else "time in I/O", _LIMIT.sub("", conclusion))


def _steps_grid(steps: Steps) -> Grid:
    rows = steps.rows()
    left = len(steps.steps) - len(rows)
    return Grid(
        columns=COLUMNS, rows=rows, note=f"{left:,} more logs with less time in I/O are not shown." if left else ""
    )


def _critical_section(found: Mapping[str, Any]) -> Section:
    rows = [
        (row["file"] or "–", direction, cell_words(row["exclusive"]), value_words(row["share"], "share"))
        for direction, side in found["directions"].items()
        for row in sorted(side["critical_files"], key=lambda row: -row["exclusive"])[:20]
    ]
    table = Grid(
        columns=("file", "direction", Number("exclusive time [s]"), Number("share of the critical path")), rows=rows
    )
    return Section(
        anchor="critical",
        title="Critical files",
        grids=[table],
        sentences=[
            "Critical files are the fewest files whose I/O covers the critical path: all time with I/O. The exclusive"
            " time of a file is its part of the critical path."
        ],
    )
