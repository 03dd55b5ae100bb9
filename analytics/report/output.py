"""A job as a page, and as text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics.diagnosis.model import wrapped
from mpiio_ext.analytics.factors import factors
from mpiio_ext.analytics.report import howto, job
from mpiio_ext.analytics.report.findings import Known, findings
from mpiio_ext.analytics.report.grids import cell_words
from mpiio_ext.analytics.report.steps import COLUMNS, Steps
from mpiio_ext.common.page import Grid, Section
from mpiio_ext.common.page import document as page_of
from mpiio_ext.common.units import digits_text, seconds_text, size_text

#: What the first sentences leave to the diagnosis: the limit of a bandwidth, and where a time is known from.
_LIMIT = re.compile(r" \(--low-bandwidth: [^()]*\)")
_TIME = re.compile(
    r"time in which at least one rank is in a read or write \(DXT\)|time in which bytes move \(HEATMAP\)|critical time"
)
_PAST = {"read": "reading", "write": "writing"}


def _value_words(value: float | None, unit: str) -> str:
    if value is None or value != value:
        return "–"
    if unit == "share":
        return f"{100 * value:.1f} %"
    return ("yes" if value else "no") if unit == "flag" else digits_text(value, 4)


def _factor_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return (meaning, reading, writing) of each factor that is known."""
    rows = []
    for name, one in factors().items():
        values = [
            side["factors"].get(name) if side else None
            for side in (found["directions"].get(direction) for direction in _PAST)
        ]
        if any(value is not None for value in values):
            rows.append((name.replace("_", " "), *(_value_words(value, one.unit) for value in values), one.meaning))
    return rows


def _speed_facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    out = []
    for direction, side in found["directions"].items():
        row = side["factors"]
        if row["bandwidth"] is None or row["critical_time"] is None:
            continue
        speed = "not known" if row["critical_bandwidth"] is None else f"{size_text(row['critical_bandwidth'])}/s"
        out.append(
            (
                _PAST[direction],
                f"{size_text(row['bandwidth'])}/s from the first to the last access; {speed} over "
                f"the critical path ({seconds_text(row['critical_time'])})",
            )
        )
        if side["own_share"] is not None:
            share = f"{100 * side['own_share']:.0f} %"
            words = f"{share} of the bytes that the job's OSTs moved during the job were the job's own"
            out.append((f"the job's OSTs, {_PAST[direction]}", words))
    return out


def job_page(tables: Mapping[str, pa.Table], known: Known | None = None, *, steps: Steps | None = None) -> str:
    """Return the page of a job: diagnosis, time line, factors, load of the servers."""
    from mpiio_ext.analytics.report.drawing import figure
    from mpiio_ext.analytics.report.timeline import rank_chart

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
    rows, listed = _factor_rows(found), findings(found["diagnosis"])
    factors = Grid(columns=("factor", "reading", "writing", "meaning"), numbers=(False, True, True, False), rows=rows)
    first = [found.get("sentence", ""), *map(_plain, exact), found.get("undiagnosed", "")]
    lead = [text for text in first if text][:2]
    others_said = [text for text in exact if text != _plain(text) or text not in lead]
    sections = [
        Section(anchor="job", title="The job", facts=[*job.facts(tables, known), *_speed_facts(found)]),
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
    names, numbers = zip(*COLUMNS, strict=True)
    rows = steps.rows()
    left = len(steps.steps) - len(rows)
    return Grid(
        columns=names,
        numbers=numbers,
        rows=rows,
        note=f"{left:,} more logs with less time in I/O are not shown." if left else "",
    )


def _critical_section(found: Mapping[str, Any]) -> Section:
    rows = [
        (row["file"] or "–", direction, cell_words(row["exclusive"]), _value_words(row["share"], "share"))
        for direction, side in found["directions"].items()
        for row in sorted(side["critical_files"], key=lambda row: -row["exclusive"])[:20]
    ]
    table = Grid(
        columns=("file", "direction", "exclusive time [s]", "share of the critical path"),
        numbers=(False, False, True, True),
        rows=rows,
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


def job_text(
    tables: Mapping[str, pa.Table],
    known: Known | None = None,
    steps: Steps | None = None,
    found: Mapping[str, Any] | None = None,
) -> str:
    """Return what is known of a job as text: facts, diagnosis, factors.

    Arguments as of `job_page`; `found` is what `job.document` returns of them, where that has been called.
    """
    found = found or job.document(tables, known, steps)
    lines = [f"job {found['job_id']}", ""]
    if "sentence" in found:
        lines += [*wrapped(found["sentence"]), ""]
    every = [*job.facts(tables, known), *_speed_facts(found)]
    width = max(len(name) for name, _ in every)
    lines += [f"  {name:<{width}}  {text}" for name, text in every]
    if steps is None:
        lines += [line for one in found["diagnosis"] for line in ("", one["text"].rstrip())]
    else:
        lines += ["", *wrapped(steps.conclusion), "", f"{steps.order}:", *_steps_text(steps)]
        for words, one in steps.diagnosed():
            lines += ["", f"==== {words}", one["text"].rstrip()]
    if "undiagnosed" in found:
        lines += ["", found["undiagnosed"]]
    rows = _factor_rows(found)
    if rows:
        lines += ["", f"{'Factors':<28}{'reading':>12}{'writing':>12}"]
        lines += [f"  {name:<26}{read:>12}{written:>12}" for name, read, written, _ in rows]
    return "\n".join(lines)


def _short(name: str, most: int = 40) -> str:
    """Shorten the name of a log in its middle: the ends of names differ most."""
    return name if len(name) <= most else f"{name[: most // 2 - 2]}…{name[-most // 2 - 1 :]}"


def _steps_text(steps: Steps) -> list[str]:
    """Return the table of steps as lines: numbers in columns, and the first sentence below them."""
    names = [name for name, _ in COLUMNS[:-1]]
    rows = [(_short(name), *cells) for name, *cells in steps.rows()]
    widths = [max(map(len, column)) for column in zip(names, *(row[:-1] for row in rows), strict=True)]
    lines, before = [], ""
    for *cells, sentence in ([*names, ""], *rows):
        padded = [
            f"{cell:<{width}}" if name == "log" else f"{cell:>{width}}"
            for name, cell, width in zip(names, cells, widths, strict=True)
        ]
        lines.append(f"  {'  '.join(padded)}")
        listed = wrapped("the same" if sentence == before else sentence) if sentence else []
        lines += [f"      {line}" for line in listed]
        before = sentence
    left = len(steps.steps) - len(rows)
    return [*lines, *([f"  {left:,} more logs with less time in I/O are not shown."] if left else [])]
