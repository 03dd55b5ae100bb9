"""The document of a run as one self-contained page.

Guarantees. The page begins with the first sentence and the time line of all ranks. It has at most `MOST_BYTES`: what
does not fit is left out, in the order of `_SMALLER`, and a line says so. The document stands in the page, where
:func:`mpiio_ext.run_report` finds it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.report import howto
from mpiio_ext.analytics.report.drawing import figure
from mpiio_ext.analytics.run.opening import help_sentence
from mpiio_ext.common.page import Figure, Finding, Grid, Section
from mpiio_ext.common.page import document as page_of
from mpiio_ext.common.units import amount_text, count_text, seconds_text, size_text
from mpiio_ext.errors import ArgumentError

MOST_BYTES = 1_000_000
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)

#: Programs that run another one's text, and how the names of such end.
_INTERPRETER, _SCRIPTS = (
    re.compile(r"(python|pypy|perl|ruby|julia|Rscript|bash|sh)[0-9.]*"),
    (".py", ".pl", ".rb", ".jl", ".R", ".sh"),
)

_LOCKS = (
    "A rank that writes into a unit takes its lock from the one that wrote there last. The model"
    " carries the collective writes out under the method in force, and under each other one."
)

_TIMES = (
    "Times are those of a rank, on average: in which ranks exchange data, in which they read and write (storage),"
    " in which they wait for each other, and in independent calls (by itself). Requests are those to the file"
    " system, which the library makes of the program's calls."
)


Document = Mapping[str, Any]


def _amount(value: float | None) -> str:
    return "–" if not value else amount_text(value)


def _size(value: float | None) -> str:
    return "–" if not value else size_text(value)


def _count(value: float | None) -> str:
    return "–" if not value else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "–" if not value else seconds_text(value)


def _figure(one: Document) -> Figure:
    chart = Chart(kind=one["kind"], name=one["name"], title=one["title"], data=one["data"])
    return figure(chart, one["data"].get("caption", ""))


#: Column of the table of files that is there only where a view tells of arrays.
_ARRAYS = 6


def _files(document: Document, most: int) -> Section:
    rows = []
    for row in document["files"][:most]:
        rows.append(
            (
                row["file"],
                row["who"],
                _amount(row["asked_read_bytes"]),
                _amount(row["asked_written_bytes"]),
                row["asked"] or "–",
                row["reached"] or "–",
                row.get("arrays") or "–",
                _count(row["opens"]),
                _seconds(row["time_s"]),
                _seconds(row.get("opening_s")),
            )
        )
    left = document["files_in_all"] - len(rows)
    least = "At least " if document.get("crowded") else ""
    note = f"{least}{count_text(left, 'more file')}, with less time: not shown." if left > 0 else ""
    columns = (
        "file",
        "accessed by",
        "read",
        "written",
        "what the program asked for",
        "what reached the file system",
        "arrays, by its views",
        "opens, of all ranks",
        "time of a rank",
        "of it opening, closing, metadata",
    )
    known = [place for place in range(len(columns)) if place != _ARRAYS or any(row[place] != "–" for row in rows)]
    numbers = (False, False, True, True, False, False, False, True, True, True)
    grid = Grid(
        columns=[columns[place] for place in known],
        rows=[[row[place] for place in known] for row in rows],
        numbers=[numbers[place] for place in known],
        note=note,
    )
    return Section(anchor="files", title="File by file", grids=[grid])


def _library(document: Document, most: int) -> Section:
    rows = document["library"][:most]
    words = [(row["file"], row["method"], row["aggregators"] or "–", row["why"] or "–") for row in rows]
    numbers = [
        (
            row["file"],
            _count(row["rounds"]),
            _count(row["requests"]),
            _amount(row["request_bytes"]),
            _size(row["mean_request_bytes"]),
            _amount(row["between_nodes_bytes"]),
            _seconds(row["exchange_s"]),
            _seconds(row["storage_s"]),
            _seconds(row["wait_s"]),
            _seconds(row["independent_s"]),
            f"{row['slowest_rank']}: {_seconds(row['slowest_s'])}" if row["slowest_s"] else "–",
        )
        for row in rows
    ]
    grids = [
        _known(("file", "method", "aggregators", "why"), words, of_words=True),
        _known(
            (
                "file",
                "rounds",
                "requests",
                "bytes of requests",
                "mean request",
                "between nodes",
                "exchange",
                "storage",
                "waiting",
                "by itself",
                "slowest rank",
            ),
            numbers,
        ),
    ]
    until = ["Of files that were closed before the job failed."] if document.get("ended") else []
    return Section(anchor="library", title="What the library did", grids=grids, sentences=[*until, _TIMES])


def _known(columns: Sequence[str], rows: Sequence[Sequence[str]], *, of_words: bool = False) -> Grid:
    """Return a table without the columns in which nothing is known; but for the first they have numbers, or words."""
    known = [place for place in range(len(columns)) if any(row[place] != "–" for row in rows)]
    return Grid(
        columns=[columns[place] for place in known],
        rows=[[row[place] for place in known] for row in rows],
        numbers=[place > 0 and not of_words for place in known],
    )


def _hints(document: Document, most: int) -> Section:
    rows = [
        (row["hint"], row["value"], row["set_by"], _count(row["files"]), row["for_example"])
        for row in document["hints"][:most]
    ]
    grid = Grid(
        columns=("hint", "value", "set by", "files", "for example"),
        rows=rows,
        numbers=(False, False, False, True, False),
    )
    return Section(
        anchor="hints",
        title="Hints in force",
        grids=[grid] if rows else [],
        sentences=[
            "All others have their defaults; `mpiio-ext hints` lists every hint."
            if rows
            else "No file had a hint that is no default; `mpiio-ext hints` lists them."
        ],
    )


def _locks(document: Document) -> list[Grid]:
    """Return what writes cost in locks; none where no file system grants them."""
    rows = []
    for row in document.get("locks", ()):
        plan = f"{row['method']}: {row['plan_conflicts']:,} of {row['plan_lock_requests']:,}" if row["method"] else "–"
        least = f"{row['least_method']}: {row['least_conflicts']:,}" if row["least_method"] else "–"
        counted = [
            f"{row[name]:,}" if row["writes"] is not None else "–"
            for name in ("writes", "units", "shared_units", "conflicts")
        ]
        rows.append((row["file"], row["locks"], size_text(row["unit_bytes"]), *counted, plan, least))
    columns = (
        "file",
        "locks",
        "lock unit",
        "recorded writes",
        "units written",
        "by several ranks in turn",
        "locks taken from another rank",
        "conflicts of lock requests, by the model",
        "with fewer",
    )
    return (
        [
            Grid(
                columns=columns,
                rows=rows,
                numbers=(False, False, True, True, True, True, True, False, False),
                note=_LOCKS,
            )
        ]
        if rows
        else []
    )


def _storage(document: Document) -> Section:
    rows = [
        (
            row["file"],
            row["file_system"] or "–",
            _size(float(row["stripe_size"] or 0)),
            row["stripe_count"] or "not told",
            row["servers"] or "not told",
            row["lock_protocol"] or "not told",
        )
        for row in document["storage"]
    ]
    grid = Grid(
        columns=("file", "file system", "stripe size", "stripes", "servers", "locks"),
        rows=rows,
        numbers=(False, False, True, True, True, False),
    )
    return Section(
        anchor="storage",
        title="File system and stripes",
        grids=[grid, *_locks(document)],
        sentences=["As the file system told after the run, of the files that took the most time."],
    )


def _sections(document: Document, figures: Sequence[Figure], most: int) -> list[Section]:
    findings = [Finding(**one) for one in document["findings"]]
    unknown = [f"Not known: {text}." for text in document["unknown"]]
    run = Section(
        anchor="run", title="The run", facts=[(name, text) for name, text in document["facts"]], grids=_parts(document)
    )
    if not document["facts"]:
        return []
    last = [Section(anchor="unknown", title="What is not known", sentences=unknown)] if unknown else []
    if not document["files"]:
        return [run, *last]
    right = document["sentence"].endswith(("nothing to change.", "too little to be worth tuning."))
    none = (
        ["Of the calls that had ended, none needs a change."]
        if document.get("ended")
        else ["Nothing needs a change."]
        if right
        else []
    )
    return [
        Section(
            anchor="findings",
            title="Findings and next steps",
            findings=findings,
            sentences=[*document["conclusions"], *([] if findings else none)],
        ),
        *([Section(anchor="over-time", title="Over time", figures=figures)] if figures else []),
        _files(document, most),
        *([_library(document, most), _hints(document, most)] if document["library"] else []),
        *([_storage(document)] if document["storage"] else []),
        run,
        *howto.section(findings),
        *last,
    ]


def _parts(document: Document) -> list[Grid]:
    """Return where the time of a rank went; none where the recordings do not tell."""
    rows = [
        (
            row["name"],
            _seconds(row["mean_s"]),
            f"{_seconds(row['least_s'])}, rank {row['least_rank']}",
            f"{_seconds(row['most_s'])}, rank {row['rank']}",
            row["meaning"],
        )
        for row in document.get("parts", ())
        if row["most_s"] > 0
    ]
    return (
        [
            Grid(
                columns=("where the time went", "a rank, on average", "least", "most", "what that is"),
                rows=rows,
                numbers=(False, True, True, True, False),
            )
        ]
        if rows
        else []
    )


def _name(command: str) -> str:
    """Return what a program is called: of an interpreter, its script."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    if not words:
        return "a run"
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    shown = script if _INTERPRETER.fullmatch(words[0].rsplit("/", 1)[-1]) and script.endswith(_SCRIPTS) else words[0]
    return shown.rsplit("/", 1)[-1]


def _page(document: Document, *, maps: bool = True, most: int = 100, data: bool = True) -> str:
    charts = [one for one in document["charts"] if maps or one["name"] != "heat"]
    figures = [_figure(one) for one in charts]
    picture = figures[0] if charts and charts[0]["kind"] == "ranks" else None
    none = "No picture: the recordings have no times of accesses."
    notices = [Finding(title=text, weight="warning") for text in document["notices"]]
    if document.get("at_end"):
        notices.insert(0, Finding(title="When the job failed.", evidence=document["at_end"], weight="warning"))
    if document["lacks"]:
        notices.append(Finding(title="The recordings are not whole.", evidence=document["lacks"], weight="warning"))
    lead = [
        text for text in (document["sentence"], document.get("spent_on", ""), help_sentence(document["help"])) if text
    ]
    return page_of(
        f"I/O of {_name(document['program'])}",
        _sections(document, figures[1:] if picture else figures, most),
        lead=lead,
        picture=picture or none,
        notices=notices,
        data=document if data else None,
    )


#: What a page leaves out to be small enough, step by step: options of `_page`, and what they leave out.
_SMALLER: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, ""),
    ({"most": 25}, "files behind the first 25"),
    ({"most": 25, "maps": False, "data": False}, "files behind the first 25, the map of bytes, the data for programs"),
)


def page(document: Document) -> str:
    """Return the page of a document."""
    for options, left_out in _SMALLER:
        told = [f"left out, to keep the page below 1 MB: {left_out}"] if left_out else []
        text = _page({**document, "unknown": [*document["unknown"], *told]}, **options)
        if len(text.encode("utf-8", "replace")) <= MOST_BYTES:
            break
    return text


def document_of(path: Path) -> dict[str, Any]:
    """Return the document that a page was made of.

    Raises
    ------
    ArgumentError
        The file is no page of a run, or one that was too large for its data.
    """
    found = _DATA.search(path.read_text(encoding="utf-8", errors="replace"))
    document = json.loads(found[1]) if found else {}
    if document.get("kind") != "mpiio_ext run":
        raise ArgumentError(f"{path}: no page of `mpiio-ext run --report`, or one without its data")
    return dict(document)
