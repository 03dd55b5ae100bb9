"""The model of the page, and its HTML.

The page is one file: style, drawings and the few lines of script are in it, and nothing is fetched. It says everything
without the script, which only opens, closes and filters. All text from results is escaped by the template engine; what
the model hands over besides are numbers and words made here.

The model holds what the template shows and no more, so that the template has no arithmetic.

A page stays below `LIMIT_BYTES`, so that it can be sent, opened and printed anywhere. Some five hundred rows fit in
whole; with more, details are left out by the levels of `_LEFT_OUT` until the page fits, and the page says which. The
ratios of every row are on it always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext.common.page import Section, fill
from mpiio_ext.common.results import OUTER_PHASES, OWN_PHASES, Measured, Spread
from mpiio_ext.common.units import megabytes, seconds_text, size_text
from mpiio_ext.report import arbitration, charts, verdict, words, worth
from mpiio_ext.report.baseline import RULE, Comparison, Match, falls_below
from mpiio_ext.report.charts import LogScale, Piece, Whisker
from mpiio_ext.report.environment import describe, headline
from mpiio_ext.report.load import PeerSet, ResultSet
from mpiio_ext.report.reproduce import command
from mpiio_ext.report.worth import CLASSES, SYMBOLS

LIMIT_BYTES = 1_000_000
#: What each level leaves out beside what the levels before it do.
_LEFT_OUT = (
    "",
    "drawings of request sizes",
    "times and explanations of methods other than native and auto",
    "bandwidths of methods other than native and auto",
)
_KEPT_METHODS = ("native", "auto")

_MARKS = {
    "~": "system calls that read or write, counted by the kernel.",
    "*": "ran on a smaller file than the other methods, because the full one would have taken too long; bandwidths are "
    "compared. Behind an operation: the native method did.",
    "°": "wrote bytes that no rank wrote (MPI leaves them undefined in a new file); its data is right.",
    "!": "the extension passed these calls on to the MPI library.",
    "†": "no access went through delegates, although the method asks for them.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page.

    Attributes
    ----------
    text : HTML
    left_out : what had to be left out to stay below `LIMIT_BYTES`; "" = nothing
    """

    text: str
    left_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """A ratio in a table: symbol, class of the style sheet, ratio, range and marks."""

    symbol: str
    style: str
    ratio: str
    spread: str
    marks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowView:
    """One method in a block of a section."""

    method: str
    native: bool
    marks: str
    bandwidth: str
    bandwidth_spread: str
    bar: Whisker
    cell: _Cell
    whisker: Whisker | None
    pieces: list[Piece]
    outer: str
    own: str
    did: str
    histogram: str
    histogram_words: str
    histogram_title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """One phase and operation of a section; `explained` are the rows whose times and doings are shown."""

    title: str
    rows: list[_RowView]
    explained: list[_RowView]
    buckets: range
    bucket_ends: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One phase and operation in the table of ratios; a cell per method, None where it was not run.

    `marks` are those of the native row, which has no cell and to which all others are compared.
    """

    title: str
    marks: str
    cells: list[_Cell | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """One workload variant or kernel through one interface."""

    anchor: str
    title: str
    facts: str
    geometry: str
    gains: str
    lines: list[_Line]
    blocks: list[_Block]
    commands: list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SetView:
    """One set of results."""

    anchor: str
    name: str
    path: str
    headline: str
    failure: str | None
    environment: list[tuple[str, str]]
    configuration: list[tuple[str, str]]
    absent: Sequence[tuple[str, str]]
    methods: list[str]
    hints: list[tuple[str, str]]
    sections: list[_Section]


# ---- rows ------------------------------------------------------------------------------------------------------------


def _cell(row: Measured) -> _Cell:
    judged = "" if row.key.strategy == "native" else verdict.judge(row.ratio)
    spread = row.ratio
    return _Cell(
        symbol=SYMBOLS[judged],
        style=CLASSES[judged],
        ratio=words.ratio(spread.median) if spread else words.DASH,
        spread=words.ratio_spread(spread) if spread and spread.count > 1 and row.key.strategy != "native" else "",
        marks=words.marks(row),
    )


def _times(row: Measured, phases: Iterable[str]) -> str:
    return " · ".join(f"{name} {seconds_text(row.seconds[name])}" for name in phases if name in row.seconds)


def _row_view(row: Measured, bar: Whisker, pieces: list[Piece], scale: LogScale, buckets: range) -> _RowView:
    counts = row.last.request_size_log2
    return _RowView(
        method=row.key.strategy,
        native=row.native,
        marks=words.marks(row),
        bandwidth=words.bandwidth(row.bandwidth.median),
        bandwidth_spread=words.bandwidth_spread(row.bandwidth) if row.bandwidth.count > 1 else "",
        bar=bar,
        cell=_cell(row),
        whisker=scale.whisker(row.ratio) if row.ratio else None,
        pieces=pieces,
        outer=_times(row, OUTER_PHASES),
        own="" if row.native else _times(row, OWN_PHASES),
        did=words.done_by_extension(row),
        histogram=charts.histogram_path(counts, buckets) if counts and buckets else "",
        histogram_words=words.histogram_words(counts, most=2) if counts else "",
        histogram_title=words.histogram_words(counts) if counts else "",
    )


def _kept(rows: Sequence[_RowView]) -> list[_RowView]:
    """Return the rows that the shorter levels keep; all, where that would be none."""
    return [row for row in rows if row.method in _KEPT_METHODS] or list(rows)


def _block(rows: Sequence[Measured], scale: LogScale, level: int) -> _Block:
    key = rows[0].key
    buckets = charts.shown_buckets(row.last.request_size_log2 for row in rows) if level == 0 else range(0)
    views = [
        _row_view(row, bar, pieces, scale, buckets)
        for row, bar, pieces in zip(rows, charts.bars(rows), charts.pieces(rows), strict=True)
    ]
    ends = (size_text(2 ** buckets[0], exact=True), size_text(2**buckets.stop, exact=True)) if buckets else ("", "")
    return _Block(
        title=_operation_title(key.phase, key.operation),
        rows=_kept(views) if level >= 3 else views,
        explained=_kept(views) if level >= 2 else views,
        buckets=buckets,
        bucket_ends=ends,
    )


def _operation_title(phase: str, operation: str) -> str:
    return f"{phase}: {operation}" if phase else operation


# ---- sections --------------------------------------------------------------------------------------------------------


def _grouped(rows: Iterable[Measured], key: Any) -> list[list[Measured]]:
    groups: dict[Any, list[Measured]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _facts(rows: Sequence[Measured]) -> str:
    last = rows[0].last
    out = [f"{last.ranks} ranks", f"{megabytes(max(row.last.data_bytes for row in rows))} of data"]
    if last.files is not None:
        out.append("one file" if last.files == 1 else f"{last.files:,} files")
    if last.noncontiguous is not None:
        out.append("noncontiguous" if last.noncontiguous else "contiguous")
    repetitions = {row.bandwidth.count for row in rows}
    ends = (min(repetitions), max(repetitions))
    out.append(f"{ends[0]} repetitions" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} repetitions")
    compared = sorted({row.compared for row in rows if row.compared})
    if compared:
        out.append(f"files of all methods compared by {', '.join(compared)}")
    return ", ".join(out)


def _gains(rows: Sequence[Measured]) -> str:
    ours = [row for row in rows if not row.native and row.ratio is not None]
    default = [row for row in ours if row.key.strategy == "auto"]
    chosen = default or ours[:1]
    if not chosen:
        return ""
    method = chosen[0].key.strategy
    gains = [
        f"{_operation_title(row.key.phase, row.key.operation)} {words.ratio(row.ratio.median)}×"
        for row in chosen
        if row.key.strategy == method and row.ratio is not None
    ]
    return f"{method}: {', '.join(gains)}"


def _plain(value: Any) -> str:
    """Return a recorded setting on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_plain(item)}" for name, item in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(item) for item in value)
    return str(value)


def _geometry(configuration: Mapping[str, Any], variant: str) -> str:
    for group in ("kernels", "workloads"):
        recorded = configuration.get(group)
        if isinstance(recorded, Mapping) and variant in recorded:
            return _plain(recorded[variant])
    return ""


def _section(
    item: ResultSet, number: str, rows: list[Measured], methods: list[str], scale: LogScale, level: int
) -> _Section:
    first = rows[0]
    blocks = _grouped(rows, lambda row: (row.key.phase, row.key.operation))
    lines = []
    for block in blocks:
        by_method = {row.key.strategy: _cell(row) for row in block}
        native = "".join(words.marks(row) for row in block if row.key.strategy == "native")
        lines.append(
            _Line(
                title=_operation_title(block[0].key.phase, block[0].key.operation),
                marks=native,
                cells=[by_method.get(method) for method in methods],
            )
        )
    commands = {row.key.strategy: command(item.environment, item.configuration, row) for row in reversed(rows)}
    return _Section(
        anchor=f"k{number}",
        title=f"{first.last.label} [{words.interface_title(first.key.interface)}]",
        facts=_facts(rows),
        geometry=_geometry(item.configuration, first.key.variant),
        gains=_gains(rows),
        lines=lines,
        blocks=[_block(block, scale, level) for block in blocks],
        commands=[(method, commands[method]) for method in methods if method in commands],
    )


def _set_view(item: ResultSet, number: int, scale: LogScale, level: int) -> _SetView:
    methods = list(dict.fromkeys(row.key.strategy for row in item.rows))
    sections = _grouped(item.rows, lambda row: (row.key.variant, row.key.interface))
    strategies = item.configuration.get("strategies")
    shown = (
        "sizes",
        "hints",
        "delegates",
        "delegate_mode",
        "repetitions",
        "read_shift",
        "suite",
        "budget_s",
        "native_limit_s",
        "native_bytes",
    )
    settings = item.configuration
    return _SetView(
        anchor=f"s{number}",
        name=item.name,
        path=str(item.path),
        headline=headline(item.environment),
        failure=item.failure,
        environment=describe(item.environment),
        configuration=[(key, _plain(settings[key])) for key in shown if settings.get(key) not in (None, "")],
        absent=item.absent,
        methods=methods,
        hints=[(str(name), _plain(value)) for name, value in strategies.items()]
        if isinstance(strategies, Mapping)
        else [],
        sections=[_section(item, f"{number}-{k}", rows, methods, scale, level) for k, rows in enumerate(sections, 1)],
    )


# ---- two sets --------------------------------------------------------------------------------------------------------


def _ratio_of(match: Match) -> Spread | None:
    if match.ratio is None or match.ratio_low is None or match.ratio_high is None:
        return None
    return Spread(match.ratio, match.ratio_low, match.ratio_high, 2)


def _match_view(match: Match, scale: LogScale, limit: float | None) -> dict[str, Any]:
    spread = _ratio_of(match)
    gains = [words.ratio(row.ratio.median) if row.ratio else words.DASH for row in (match.old, match.new)]
    return {
        "title": words.case_title(match.new.last.label, match.key),
        "method": match.key.strategy,
        "marks": words.marks(match.new),
        "old": words.bandwidth(match.old.bandwidth.median),
        "old_spread": words.bandwidth_spread(match.old.bandwidth),
        "new": words.bandwidth(match.new.bandwidth.median),
        "new_spread": words.bandwidth_spread(match.new.bandwidth),
        "ratio": words.ratio(spread.median) if spread else words.DASH,
        "ratio_spread": words.ratio_spread(spread) if spread else "",
        "whisker": scale.whisker(spread) if spread else None,
        "symbol": SYMBOLS[match.judgment],
        "style": CLASSES[match.judgment],
        "judgment": match.judgment,
        "gain": f"{gains[0]} → {gains[1]}",
        "other_size": match.other_size,
        "failed": limit is not None and falls_below(match, limit),
    }


def _slower(comparison: Comparison) -> list[str]:
    """Return the rows that became slower, the worst first."""
    found = [
        (match.ratio, match) for match in comparison.matches if match.judgment == "slower" and match.ratio is not None
    ]
    return [
        f"{words.row_title(match.new)}: {words.ratio(ratio)}×"
        for ratio, match in sorted(found, key=lambda item: item[0])
    ]


def _comparison_view(comparison: Comparison, limit: float | None) -> dict[str, Any]:
    scale = charts.ratio_scale(_ratio_of(match) for match in comparison.matches)
    cases: dict[str, list[dict[str, Any]]] = {}
    for match in comparison.matches:
        view = _match_view(match, scale, limit)
        cases.setdefault(view["title"], []).append(view)
    return {
        "counts": [
            (word, SYMBOLS[word], comparison.count(word)) for word in ("faster", "within noise", "slower", "not judged")
        ],
        "cases": cases,
        "slower": _slower(comparison),
        "only_new": [words.row_title(row) for row in comparison.only_new],
        "only_old": [words.row_title(row) for row in comparison.only_old],
        "warned": comparison.warned,
        "drift": words.ratio(comparison.native_drift) if comparison.native_drift is not None else "",
        "rule": RULE,
        "limit": limit,
        "one": scale.at(1),
        "ticks": worth.ticks(scale),
    }


# ---- bench compare ---------------------------------------------------------------------------------------------------


def _peer_view(item: PeerSet, number: int) -> dict[str, Any]:
    names = list(item.peers)
    lines = []
    for result in item.results:
        cells = []
        for name in names:
            spread = result.bandwidth.get(name)
            cells.append(
                {
                    "text": words.bandwidth(spread.median) + ("*" if name in result.scaled else "")
                    if spread
                    else words.DASH,
                    "spread": words.bandwidth_spread(spread) if spread and spread.low < spread.high else "",
                    "best": name == result.best_native,
                    "ours": name == result.ours,
                }
            )
        lines.append(
            {
                "pattern": result.pattern,
                "operation": result.operation,
                "cells": cells,
                "native": words.ratio(result.ratio_native) if result.ratio_native is not None else words.DASH,
                "raw": words.ratio(result.ratio_raw) if result.ratio_raw is not None else words.DASH,
            }
        )
    reasons = {
        f"{item.peers.get(name, name)}: {reason}": None
        for result in item.results
        for name, reason in result.absent.items()
    }
    return {
        "anchor": f"p{number}",
        "name": item.name,
        "path": str(item.path),
        "titles": list(item.peers.values()),
        "lines": lines,
        "environment": describe(item.environment),
        "absent": list(reasons),
    }


# ---- the page --------------------------------------------------------------------------------------------------------


def _notes(rows: Iterable[Measured]) -> list[tuple[str, str]]:
    used: set[str] = set()
    for row in rows:
        used.update(words.marks(row))
        if row.last.requests_source == "kernel" and row.requests is not None:
            used.add("~")
    return [(mark, text) for mark, text in _MARKS.items() if mark in used]


def render(
    sets: Sequence[ResultSet],
    peers: Sequence[PeerSet],
    *,
    title: str,
    comparison: Comparison | None = None,
    limit: float | None = None,
    added: Sequence[Section] = (),
) -> Page:
    """Return the page, with as much detail as fits into `LIMIT_BYTES`; the shortest one if none fits.

    Parameters
    ----------
    sets, peers : what it shows, in this order.
    title : heading of the page.
    comparison : with a baseline, or None.
    limit : of ``--fail-below``, which the page then states; or None.
    added : sections behind those of the rows.
    """
    rows = [row for item in sets for row in item.rows]
    scale = charts.ratio_scale(row.ratio for row in rows)
    template = Path(__file__).with_name("page.html")
    script = template.with_name("script.js").read_text(encoding="utf-8")
    content = {
        "title": title,
        "openings": [
            *(worth.of_results(item, scale, several=len(sets) + len(peers) > 1) for item in sets),
            *(worth.of_peers(item, several=len(sets) + len(peers) > 1) for item in peers),
        ],
        "tallies": [(item, verdict.sentences(item)) for item in verdict.tally(rows)],
        "ratio_text": words.ratio,
        "peers": [_peer_view(item, k) for k, item in enumerate(peers, 1)],
        "comparison": _comparison_view(comparison, limit) if comparison else None,
        "notes": _notes(rows),
        "one": scale.at(1),
        "ticks": worth.ticks(scale),
        "added": [*arbitration.sections(item.path for item in sets), *added],
    }
    for level in range(len(_LEFT_OUT)):
        left_out = "; ".join(_LEFT_OUT[1 : level + 1])
        views = [_set_view(item, k, scale, level) for k, item in enumerate(sets, 1)]
        text = fill(template, {**content, "sets": views, "left_out": left_out}, script=script)
        page = Page(text=text, left_out=left_out)
        if len(page.text.encode("utf-8", "replace")) <= LIMIT_BYTES:
            break
    return page
