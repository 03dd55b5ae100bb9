"""The document of a run as one self-contained page.

Guarantees. The page begins with the first sentence and the time line of all ranks. It has at most `MOST_BYTES`: the
page leaves out parts until it fits, in the order of `_SMALLER`, and a line reports it. The document stands in the page,
where :func:`mpiio_ext.run_report` finds it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.analyses.result import Chart
from mpiio_ext.analytics.report import howto
from mpiio_ext.analytics.report.drawing import figure
from mpiio_ext.analytics.run.opening import help_sentence
from mpiio_ext.common.page import MOST_BYTES, Figure, Finding, Grid, Number, Section
from mpiio_ext.common.page import document as page_of
from mpiio_ext.common.programs import base_name, without_interpreter
from mpiio_ext.common.units import amount_text, count_text, seconds_text, size_text
from mpiio_ext.errors import ArgumentError

_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)

_LOCKS = (
    "A lock unit is the part of a file that one lock covers: a stripe, or a block. A rank that writes into a unit takes"
    " the lock from the rank that wrote into the unit before. The last two columns come from a model. The model carries"
    " out the collective writes with the method in force, and with each other method."
)

_TIMES = (
    "Times are means over the ranks. Exchange: a rank exchanges data with other ranks. Storage: a rank reads and"
    " writes. Waiting: a rank waits for other ranks. By itself: a rank carries out independent calls. mpiio_ext turns"
    " the program's calls into requests to the file system. A collective call works in rounds. In a round some ranks,"
    " the aggregators, each exchange one part of the file with the other ranks, and read or write this part."
)


Document = Mapping[str, Any]


def _count(value: float) -> str:
    return f"{value:,.0f}"


# ---- tables ----------------------------------------------------------------------------------------------------------

#: Name of a column, its value for a row (a field, or words made of the row), and how numbers of it are written;
#: None: it has words.
_Column = tuple[str, str | Callable[[Document], str], Callable[[float], str] | None]
_FILES: tuple[_Column, ...] = (
    ("file", "file", None),
    ("accessed by", "who", None),
    ("read", "asked_read_bytes", amount_text),
    ("written", "asked_written_bytes", amount_text),
    ("calls of the program", "asked", None),
    ("requests to the file system", "reached", None),
    ("arrays, by its views", "arrays", None),
    ("opens, of all ranks", "opens", _count),
    ("time of a rank, on average", "time_s", seconds_text),
    ("time of a rank in opening, closing, metadata, on average", "opening_s", seconds_text),
)
_METHODS: tuple[_Column, ...] = (
    ("file", "file", None),
    ("method", "method", None),
    ("aggregators", "aggregators", None),
    ("why", "why", None),
)
_LIBRARY: tuple[_Column, ...] = (
    ("file", "file", None),
    ("rounds", "rounds", _count),
    ("requests", "requests", _count),
    ("bytes of requests", "request_bytes", amount_text),
    ("mean request", "mean_request_bytes", size_text),
    ("between nodes", "between_nodes_bytes", amount_text),
    ("exchange", "exchange_s", seconds_text),
    ("storage", "storage_s", seconds_text),
    ("waiting", "wait_s", seconds_text),
    ("by itself", "independent_s", seconds_text),
    ("slowest rank", lambda row: _of_rank(row["slowest_s"], row["slowest_rank"]), seconds_text),
)
_HINTS: tuple[_Column, ...] = (
    ("hint", "hint", None),
    ("value", "value", None),
    ("set by", "set_by", None),
    ("files", "files", _count),
    ("for example", "for_example", None),
)
_STORAGE: tuple[_Column, ...] = (
    ("file", "file", None),
    ("file system", "file_system", None),
    ("stripe size", "stripe_size", lambda value: size_text(float(value))),
    ("stripes", lambda row: row["stripe_count"] or "unknown", _count),
    ("servers", lambda row: row["servers"] or "unknown", _count),
    ("locks", lambda row: row["lock_protocol"] or "unknown", None),
)
_CONFLICTS: tuple[_Column, ...] = (
    ("file", "file", None),
    ("locks", "locks", None),
    ("lock unit", lambda row: size_text(row["unit_bytes"]), size_text),
    ("recorded writes", lambda row: _recorded(row, "writes"), _count),
    ("units written", lambda row: _recorded(row, "units"), _count),
    ("units that several ranks wrote", lambda row: _recorded(row, "shared_units"), _count),
    ("locks taken from another rank", lambda row: _recorded(row, "conflicts"), _count),
    (
        "conflicts of lock requests, by the model",
        lambda row: (
            f"{row['method']}: {row['plan_conflicts']:,} of {row['plan_lock_requests']:,}" if row["method"] else "–"
        ),
        None,
    ),
    (
        "fewest, with another method",
        lambda row: f"{row['least_method']}: {row['least_conflicts']:,}" if row["least_method"] else "–",
        None,
    ),
)
_PARTS: tuple[_Column, ...] = (
    ("part of the time", "name", None),
    ("a rank, on average", "mean_s", seconds_text),
    ("least", lambda row: f"{_seconds(row['least_s'])}, rank {row['least_rank']}", seconds_text),
    ("most", lambda row: f"{_seconds(row['most_s'])}, rank {row['rank']}", seconds_text),
    ("contents of the part", "meaning", None),
)


def _seconds(value: float | None) -> str:
    return seconds_text(value) if value else "–"


def _of_rank(value: float | None, rank: int) -> str:
    return f"{rank}: {_seconds(value)}" if value else "–"


def _recorded(row: Document, name: str) -> str:
    return f"{row[name]:,}" if row["writes"] is not None else "–"


def _cell(row: Document, column: _Column) -> str:
    """Return a column's value for a row; a dash if it is unknown or empty."""
    _, key, form = column
    if callable(key):
        return key(row)
    value = row.get(key)
    return "–" if not value else str(value) if form is None else form(value)


def _grid(columns: Sequence[_Column], rows: Sequence[Document], note: str = "", optional: Sequence[str] = ()) -> Grid:
    """Return a table, without those `optional` columns that have no known value."""
    known = [one for one in columns if one[0] not in optional or any(_cell(row, one) != "–" for row in rows)]
    return Grid(
        columns=[name if form is None else Number(name) for name, _, form in known],
        rows=[[_cell(row, one) for one in known] for row in rows],
        note=note,
    )


def _files(document: Document, most: int) -> Section:
    rows = document["files"][:most]
    left = document["files_in_all"] - len(rows)
    least = "at least " if document.get("crowded") else ""
    note = f"Not shown: {least}{count_text(left, 'more file')} with less time." if left > 0 else ""
    grid = _grid(_FILES, rows, note, ["arrays, by its views"])
    return Section(anchor="files", title="File by file", grids=[grid])


def _library(document: Document, most: int) -> Section:
    rows = document["library"][:most]
    grids = [_grid(columns, rows, optional=[name for name, *_ in columns]) for columns in (_METHODS, _LIBRARY)]
    until = ["The tables contain only files that were closed before the job failed."] if document.get("ended") else []
    return Section(anchor="library", title="What the library did", grids=grids, sentences=[*until, _TIMES])


def _hints(document: Document, most: int) -> Section:
    rows = document["hints"][:most]
    shown = (
        "All other hints have their defaults. The command `mpiio-ext hints` lists all hints."
        if rows
        else "All hints of all files have their defaults. The command `mpiio-ext hints` lists all hints."
    )
    return Section(anchor="hints", title="Hints in force", grids=[_grid(_HINTS, rows)], sentences=[shown])


def _storage(document: Document) -> Section:
    locks = document.get("locks", ())  # none where no file system grants them
    grids = [_grid(_STORAGE, document["storage"]), _grid(_CONFLICTS, locks, _LOCKS)]
    shown = (
        "The tables contain the files that took the most time. After the run, mpiio_ext asked the file system for"
        " stripe sizes, stripes and the kind of locks."
    )
    return Section(anchor="storage", title="File system and stripes", grids=grids, sentences=[shown])


def _sections(document: Document, figures: Sequence[Figure], most: int) -> list[Section]:
    findings = [Finding(**one) for one in document["findings"]]
    unknown = [f"Not known: {text}." for text in document["unknown"]]
    if not document["facts"]:
        return []
    parts = [row for row in document.get("parts", ()) if row["most_s"] > 0]  # none if the recordings lack them
    run = Section(anchor="run", title="The run", facts=document["facts"], grids=[_grid(_PARTS, parts)])
    last = Section(anchor="unknown", title="What is not known", sentences=unknown)
    if not document["files"]:
        return [run, last]
    right = document["sentence"].endswith(("nothing to change.", "too little to be worth tuning."))
    right &= not document.get("failures")
    none = (
        ["Among the calls that had ended, none needs a change."]
        if document.get("ended")
        else ["Nothing needs a change."]
        if right
        else ["The diagnosis found nothing to change."]
        if document["sentence"].endswith("nothing found to change.")
        else []
    )
    return [
        Section(
            anchor="findings",
            title="Findings and next steps",
            findings=findings,
            sentences=[*document["conclusions"], *([] if findings else none)],
        ),
        Section(anchor="over-time", title="Over time", figures=figures),
        _files(document, most),
        *([_library(document, most), _hints(document, most)] if document["library"] else []),
        *([_storage(document)] if document["storage"] else []),
        run,
        *howto.section(findings),
        last,
    ]


def _name(command: str) -> str:
    """Return what a program is called: of an interpreter, its script."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return base_name(without_interpreter(words)[0]) if words else "a run"


def _page(document: Document, *, maps: bool = True, most: int = 100, data: bool = True) -> str:
    charts = [one for one in document["charts"] if maps or one["name"] != "heat"]
    figures = [figure(Chart(**one)) for one in charts]
    notices = [Finding(title=text, weight="warning") for text in document["notices"]]
    if document.get("failures"):
        notices.insert(0, Finding(title="Accesses failed.", evidence=document["failures"], weight="warning"))
    if document.get("at_end"):
        notices.insert(0, Finding(title="When the job failed.", evidence=document["at_end"], weight="warning"))
    if document["lacks"]:
        notices.append(Finding(title="The recordings are not complete.", evidence=document["lacks"], weight="warning"))
    return page_of(
        f"I/O of {_name(document['program'])}",
        _sections(document, figures, most),
        lead=[document["sentence"], document.get("spent_on", ""), help_sentence(document["help"])],
        none="No picture: the recordings have no times of accesses.",
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
        shown = [f"left out, to keep the page below 1 MB: {left_out}"] if left_out else []
        text = _page({**document, "unknown": [*document["unknown"], *shown]}, **options)
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
