"""The applications that read and write most.

Problem. A few programs make most of a system's traffic; improvements begin with them.

Algorithm. Logs are grouped by the name of their executable, their bytes added up, and the applications ranked, for
reads and for writes in one pass over the jobs. On request a name is replaced by its science area and a number
(Physics1, Physics2 …): the areas are the user's, an application without one is App1, App2 …. Numbers follow the bytes
moved, so that an application has the same label in both directions.

Source: IOMiner, Section III-C, Figures 5 and 6.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.analyses.counting import count_words, jobs_of, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result
from mpiio_ext.analytics.analyses.source import Source, fetch

#: Label of logs that do not name their executable.
NO_NAME = "(no name)"
#: Label of applications without a science area; a number follows.
_NO_AREA = "App"
_DIRECTIONS = (("read", "bytes_read"), ("write", "bytes_written"))


def labels(names: Sequence[str], areas: Mapping[str, str]) -> dict[str, str]:
    """Return a label without the name for each application, most important first.

    Parameters
    ----------
    names : applications, in the order in which they are numbered.
    areas : application -> science area; an application may be a pattern (``vasp*``). The first that matches counts.
    """
    counts: dict[str, int] = {}
    found = {}
    for name in names:
        area = next((area for pattern, area in areas.items() if fnmatch.fnmatchcase(name, pattern)), _NO_AREA)
        counts[area] = counts.get(area, 0) + 1
        found[name] = f"{area}{counts[area]}"
    return found


def _ranked(rows: Sequence[Mapping[str, Any]], direction: str, column: str, top: int) -> list[dict[str, Any]]:
    total = sum(row[column] or 0 for row in rows)
    moving = sorted((row for row in rows if row[column]), key=lambda row: (-row[column], row["app"]))
    return [
        {
            "direction": direction,
            "rank": rank,
            "application": row["app"],
            "bytes": row[column],
            "percent": share(row[column], total),
            "jobs": row["jobs"],
        }
        for rank, row in enumerate(moving[:top], 1)
    ]


def _names_words(rows: Sequence[Mapping[str, Any]], anonymous: bool, areas: Mapping[str, str]) -> list[str]:
    """Return the placeholders of the names, in words."""
    if not anonymous:
        return []
    if not areas:
        return ["Names are left out."]
    other = sum(re.fullmatch(rf"{_NO_AREA}\d+", row["app"]) is not None for row in rows)
    without = [f"{_NO_AREA} for the {count_words(other, 'application')} that no pattern matched."] if other else []
    return ["Names stand for science areas" + (", " + without[0] if without else ".")]


def _caption(ranked: Mapping[str, list[dict[str, Any]]], rows: Sequence[Mapping[str, Any]], names: list[str]) -> str:
    words = [f"{count_words(len(rows), 'application')} in {count_words(sum(row['jobs'] for row in rows), 'job')}."]
    for (direction, column), past in zip(_DIRECTIONS, ("read", "written"), strict=True):
        found = ranked[direction]
        if found:
            moved, every = (sum(row[key] or 0 for row in group) for key, group in (("bytes", found), (column, rows)))
            part = share_words(share(moved, every))
            who = "The one shown has" if len(found) == 1 else f"The {len(found)} shown have"
            words.append(f"{who} {past} {part} of all bytes {past}.")
        else:
            words.append(f"No bytes were {past}.")
    return " ".join([*words, *names])


def _chart(ranked: Mapping[str, list[dict[str, Any]]]) -> Chart:
    panels: list[dict[str, Any]] = [
        {
            "title": f"most bytes {past}",
            "labels": [row["application"] for row in ranked[direction]],
            "values": [row["bytes"] for row in ranked[direction]],
            "notes": [share_words(row["percent"]) for row in ranked[direction]],
            "axis": f"bytes {past}, all jobs together",
            "quantity": "bytes",
        }
        for direction, past in (("read", "read"), ("write", "written"))
        if ranked[direction]
    ]
    who = [panel["labels"][0] for panel in panels]
    did = [f"{panel['title'].removeprefix('most bytes ')} {panel['notes'][0]}" for panel in panels]
    text = (
        f"{who[0]} has {' and '.join(did)}"
        if len(set(who)) == 1
        else (" and ".join(f"{name} has {what}" for name, what in zip(who, did, strict=True)))
    )
    return Chart(kind="ranking", name="applications", title=f"{text} of all bytes", data={"panels": panels})


def applications(
    source: Source,
    *,
    top: int = 10,
    anonymous: bool = False,
    areas: Mapping[str, str] | None = None,
    origin: str | None = "darshan",
) -> Result:
    """Rank applications by bytes read and by bytes written.

    Parameters
    ----------
    source : with the table ``darshan_job``.
    top : applications to name in each direction.
    anonymous : name science areas instead of applications.
    areas : application (or pattern) -> science area; implies `anonymous`.
    origin : logs to count: ``darshan``, ``bench``, ``library``, or all (None).

    Returns
    -------
    Result
        Rows: ``direction``, ``rank``, ``application``, ``bytes`` [B], ``percent`` of all bytes of the direction,
        ``jobs`` of the application.
    """
    import pyarrow as pa

    jobs = jobs_of(source, origin, ["app", "bytes_read", "bytes_written"])
    query = jobs.group_by(app=jobs["app"].fill_null(NO_NAME)).agg(
        jobs=jobs.count(), bytes_read=jobs["bytes_read"].sum(), bytes_written=jobs["bytes_written"].sum()
    )
    rows = fetch(query).to_pylist()
    rows.sort(key=lambda row: (-((row["bytes_read"] or 0) + (row["bytes_written"] or 0)), row["app"]))
    anonymous = anonymous or areas is not None
    if anonymous:
        label = labels([row["app"] for row in rows], areas or {})
        rows = [{**row, "app": label[row["app"]]} for row in rows]
    names = _names_words(rows, anonymous, areas or {})
    ranked = {direction: _ranked(rows, direction, column, top) for direction, column in _DIRECTIONS}
    schema = pa.schema(
        [
            ("direction", pa.string()),
            ("rank", pa.int32()),
            ("application", pa.string()),
            ("bytes", pa.int64()),
            ("percent", pa.float64()),
            ("jobs", pa.int64()),
        ]
    )
    return Result(
        name="applications",
        title="Top applications by bytes read and written",
        unit="B",
        caption=_caption(ranked, rows, names),
        parameters={"top": top, "anonymous": anonymous, "origin": origin},
        table=pa.Table.from_pylist(ranked["read"] + ranked["write"], schema=schema),
        charts=[_chart(ranked)] if any(ranked.values()) else [],
    )
