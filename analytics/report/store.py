"""The page of a store: its contents, the gaps in them, and every analysis with its figures.

A page that counts three jobs, and omits five logs that could not be read, reports something false about a system.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from mpiio_ext.analytics.analyses import ANALYSES, analysis
from mpiio_ext.analytics.analyses.counting import count_words, jobs_of
from mpiio_ext.analytics.analyses.source import Remembered, Source, fetch
from mpiio_ext.analytics.report.drawing import figure
from mpiio_ext.analytics.report.grids import grid
from mpiio_ext.common.page import Section, document
from mpiio_ext.common.units import size_text

#: Most reasons that are printed; the manifest has all.
_MOST_REASONS = 8


def overview(source: Source, *, anonymous: bool = False, origin: str | None = "darshan") -> tuple[str, Section]:
    """Return the contents of the store, as a sentence and as facts, in one pass over the jobs."""
    jobs = jobs_of(
        source,
        origin,
        [
            "app",
            "uid",
            "files",
            "bytes_read",
            "bytes_written",
            "start_time",
            "end_time",
            "run_time",
            "processes",
            "partial",
        ],
    )
    row = fetch(
        jobs.aggregate(
            jobs=jobs.count(),
            apps=jobs["app"].fill_null("").nunique(),
            users=jobs["uid"].nunique(),
            files=jobs["files"].sum(),
            read=jobs["bytes_read"].sum(),
            written=jobs["bytes_written"].sum(),
            first=jobs["start_time"].min(),
            last=jobs["end_time"].max(),
            partial=jobs["partial"].fill_null(False).cast("int64").sum(),
            core_hours=(jobs["run_time"] * jobs["processes"]).sum() / 3600.0,
        )
    ).to_pylist()[0]
    facts = [
        ("jobs (logs)", f"{row['jobs']:,}, including {row['partial'] or 0:,} partial"),
        ("applications, users", f"{row['apps']:,}, {row['users']:,}"),
        ("files opened", f"{row['files'] or 0:,}"),
        ("read, written at the file system", f"{size_text(row['read'] or 0)}, {size_text(row['written'] or 0)}"),
        ("process hours", f"{row['core_hours'] or 0:,.0f}"),
    ]
    if row["first"] is not None and row["last"] is not None:
        if anonymous:
            facts.append(("period", count_words(max(1, round((row["last"] - row["first"]) / 86400)), "day")))
        else:
            facts.append(("period", f"{_date(row['first'])} to {_date(row['last'])} UTC"))
    known, missing = _coverage(source, anonymous=anonymous)
    none = "No logs to count: `mpiio-ext analyze manifest --all` lists the logs that the store knows."
    sentence = (
        f"{count_words(row['jobs'], 'job')} of {count_words(row['apps'], 'application')} read "
        f"{size_text(row['read'] or 0)} and wrote {size_text(row['written'] or 0)}."
    )
    return sentence if row["jobs"] else none, Section(
        anchor="store", title="What is in the store", facts=[*facts, *known], sentences=missing
    )


def _coverage(source: Any, *, anonymous: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Return facts (logs by status, rows by table) and sentences (why logs are not whole) of a store.

    Nothing of a source that is no store. `anonymous`: without reasons, which may name files.
    """
    catalog = getattr(source, "catalog", None)
    if catalog is None:
        return [], []
    from mpiio_ext.analytics.store.logtable import read_logs

    logs = read_logs(catalog.folder, catalog.manifest.logs).select(["kind", "status", "reason"])
    counts = logs.group_by(["kind", "status", "reason"]).aggregate([([], "count_all")]).to_pylist()
    rows: dict[str, int] = {}
    for entry in catalog.manifest.files:
        rows[entry.table] = rows.get(entry.table, 0) + entry.rows
    facts = [
        ("logs", _statuses(counts)),
        ("rows", ", ".join(f"{name} {count:,}" for name, count in rows.items()) or "none"),
    ]
    missing = [row for row in counts if row["status"] != "whole"]
    if anonymous or not missing:
        return facts, []
    missing.sort(key=lambda row: (-row["count_all"], row["kind"], row["status"], row["reason"] or ""))
    listed = [
        f"{count_words(row['count_all'], 'log')} of {row['kind']} {row['status']}: {row['reason'] or 'no reason given'}"
        for row in missing[:_MOST_REASONS]
    ]
    left = sum(row["count_all"] for row in missing[_MOST_REASONS:])
    more = f"; {left:,} more for other reasons" if left else ""
    return facts, [
        f"Not covered, or not complete: {'; '.join(listed)}{more}. `mpiio-ext analyze manifest` names each log."
    ]


def _statuses(counts: list[dict[str, Any]]) -> str:
    kinds: dict[str, dict[str, int]] = {}
    for row in counts:
        found = kinds.setdefault(row["kind"], {})
        found[row["status"]] = found.get(row["status"], 0) + row["count_all"]
    parts = []
    for kind, found in sorted(kinds.items()):
        listed = ", ".join(f"{count:,} {name}" for name, count in sorted(found.items()))
        parts.append(f"{kind} {sum(found.values()):,} ({listed})")
    return ", ".join(parts) or "none"


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")


def store_page(
    source: Source,
    *,
    title: str,
    anonymous: bool = False,
    areas: Mapping[str, str] | None = None,
    origin: str | None = "darshan",
) -> str:
    """Return the page of a store.

    Parameters
    ----------
    title : heading.
    anonymous, areas
        Whether names are left out, and the science areas that stand for applications.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).
    """
    source = Remembered(source)
    hide = anonymous or areas is not None
    sentence, first = overview(source, anonymous=hide, origin=origin)
    parts = [first]
    for name in ANALYSES:
        named: dict[str, Any] = {"anonymous": hide, "areas": areas} if name in ("applications", "root-causes") else {}
        result = analysis(name)(source, origin=origin, **named)
        figures = [figure(chart) for chart in result.charts]
        shown = grid(result.table if result.shown is None else result.shown)
        parts.append(
            Section(anchor=name, title=result.title, sentences=[result.caption], figures=figures, grids=[shown])
        )
    head = "Darshan, Slurm and LMT logs, analysed by mpiio-ext analyze. A job is one log: one run of a program."
    none = "No picture: the logs have nothing to draw."
    return document(title, parts, lead=[sentence], none=none, head=head)
