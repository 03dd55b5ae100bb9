"""A job as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from mpiio_ext.analytics.diagnosis.model import wrapped
from mpiio_ext.analytics.factors import factors
from mpiio_ext.analytics.report import job
from mpiio_ext.analytics.report.findings import Known
from mpiio_ext.analytics.report.steps import COLUMNS, Steps
from mpiio_ext.common.units import digits_text, seconds_text, size_text

_PAST = {"read": "reading", "write": "writing"}


def value_words(value: float | None, unit: str) -> str:
    """Return the value of a factor in its unit; "–" where it is not known."""
    if value is None or value != value:
        return "–"
    if unit == "share":
        return f"{100 * value:.1f} %"
    return ("yes" if value else "no") if unit == "flag" else digits_text(value, 4)


#: Factors whose numbers a report has of calls, and not of the times from the first to the last access of files: the
#: share of each critical file, and the time in which no rank reads or writes.
_OF_SPANS = ("dominant_file", "idle")


def factor_rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return (meaning, reading, writing) of each factor that is known."""
    rows = []
    for name, one in ((name, one) for name, one in factors().items() if name not in _OF_SPANS):
        values = [
            side["factors"].get(name) if side else None
            for side in (found["directions"].get(direction) for direction in _PAST)
        ]
        if any(value is not None for value in values):
            rows.append((name.replace("_", " "), *(value_words(value, one.unit) for value in values), one.meaning))
    return rows


def speed_facts(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (name, words) of the bandwidths of a job, and of its share of what its OSTs moved."""
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


def job_text(
    tables: Mapping[str, pa.Table],
    known: Known | None = None,
    steps: Steps | None = None,
    found: Mapping[str, Any] | None = None,
) -> str:
    """Return what is known of a job as text: facts, diagnosis, factors.

    Arguments as of :func:`.job_page.job_page`; `found` is the result of `job.document` for them, if it has been called.
    """
    found = found or job.document(tables, known, steps)
    lines = [f"job {found['job_id']}", ""]
    if "sentence" in found:
        lines += [*wrapped(found["sentence"]), ""]
    every = [*job.facts(tables, known), *speed_facts(found)]
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
    rows = factor_rows(found)
    if rows:
        lines += ["", f"{'Factors':<28}{'reading':>12}{'writing':>12}"]
        lines += [f"  {name:<26}{read:>12}{written:>12}" for name, read, written, _ in rows]
    return "\n".join(lines)


def _short(name: str, most: int = 40) -> str:
    """Shorten the name of a log in its middle: the ends of names differ most."""
    return name if len(name) <= most else f"{name[: most // 2 - 2]}…{name[-most // 2 - 1 :]}"


def _steps_text(steps: Steps) -> list[str]:
    """Return the table of steps as lines: numbers in columns, and the first sentence below them."""
    names = COLUMNS[:-1]
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
