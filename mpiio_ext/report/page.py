"""Results of the bench, and of ``bench compare``, as one page.

The page is made of the parts of every page (:mod:`mpiio_ext.common.page`): what is found stands first, then each row.

A page stays below `MOST_BYTES`, so that it can be sent, opened and printed anywhere. Some five hundred rows fit
completely. With more rows, details are left out by the levels of `_LEFT_OUT` until the page fits, and the page names
the omitted details. The ratios of every row are on it always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpiio_ext.common.page import MOST_BYTES, Cell, Finding, Fold, Grid, Number, Section, document
from mpiio_ext.common.results import OUTER_PHASES, OWN_PHASES, Measured, Spread
from mpiio_ext.common.units import megabytes, seconds_text
from mpiio_ext.report import arbitration, verdict, words, worth
from mpiio_ext.report.baseline import RULE, Comparison, Match, falls_below
from mpiio_ext.report.environment import describe, headline
from mpiio_ext.report.load import PeerSet, ResultSet
from mpiio_ext.report.reproduce import command
from mpiio_ext.report.worth import CLASSES, SYMBOLS

#: The parts that each level leaves out beside those of the levels before it.
_LEFT_OUT = (
    "",
    "times, explanations and sizes of requests of methods other than native and auto",
    "bandwidths of methods other than native and auto",
)
_KEPT_METHODS = ("native", "auto")
#: Meanings of marks on the page beside their meanings everywhere.
_MARKS = {
    "*": " than the other methods, because the full one would have taken too long; bandwidths are compared. Behind an "
    "operation: the native method did.",
    "†": ", although the method asks for them.",
}
#: Settings of the bench that the page shows.
_SETTINGS = (
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
#: Kinds of rows by the judgement of `verdict`.
_JUDGMENTS = ("faster", "level", "slower", "not judged")
#: Rows that have become slower, of which the worst come first.
_MOST_SLOWER = 10
_OF_PEERS = (
    "Median MB/s, and behind it smallest–largest. Bold: this library; underlined: the best native peer, to which "
    "“÷ native” refers. * on a smaller file."
)
_READING = (
    (
        "Bandwidth",
        "Bytes of all ranks over time, in 10⁶ bytes a second (MB/s). The time of a pattern is that of setting the view "
        "and of the data access (view + data), without open and close. The time of a kernel’s phase runs from the "
        "first rank’s begin to the last rank’s end, opening and closing included. Median over the repetitions; behind "
        "it smallest–largest.",
    ),
    (
        "× native",
        "The methods run one directly after the other in each repetition; a ratio is formed inside a repetition, so "
        "that a slow minute of the machine hits both. Median, and smallest–largest.",
    ),
    (
        "Verdict",
        "A row is ▲ faster or ▼ slower when it was measured at least three times, all its ratios lie on that side of "
        "1, to two decimals as shown, and their median is farther from 1 than the smallest is from the largest, as "
        "factors; ≈ the noise is larger; · fewer than three. A kind of access is worth it when more than half of its "
        "judged rows are faster.",
    ),
    (
        "Phases",
        "open, view, data and close follow each other. Of a pattern each runs from the first rank’s begin to the last "
        "rank’s end. Of a kernel’s phase, in which a rank may open and close many times, open, view (or making the "
        "dataset) and close are those of the rank that was inside longest, and data is the rest of the phase’s time. "
        "All are medians over the repetitions. The extension’s own times are those of the rank that spent longest in "
        "each, within the data phase: they overlap among ranks and do not add up.",
    ),
    (
        "Requests",
        "File-system requests of all ranks: for the extension its own count, for the MPI library (~) the system calls "
        "that read or write.",
    ),
    (
        "Measure it again",
        "The command measures the row’s method and native side by side; variables that were set stand before it. The "
        "path is that of the machine where the results come from.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page.

    Attributes
    ----------
    text : HTML
    left_out : what had to be left out to stay below `MOST_BYTES`; "" = nothing
    """

    text: str
    left_out: str


# ---- rows ------------------------------------------------------------------------------------------------------------


def _with_spread(text: str, spread: str) -> str:
    return f"{text} {spread}" if spread else text


def _bandwidth(spread: Spread, mark: str = "") -> str:
    """Return a median with its range behind it, if there is one."""
    return _with_spread(
        words.bandwidth(spread.median) + mark, words.bandwidth_spread(spread) if spread.low < spread.high else ""
    )


def _ratio(row: Measured) -> Cell:
    """Return a ratio with its symbol, its marks, and its range."""
    native, spread = row.key.strategy == "native", row.ratio
    judged = "" if native else verdict.judge(spread)
    ratio = words.ratio(spread.median) if spread else words.DASH
    text = f"{SYMBOLS[judged]} {ratio}{words.marks(row)}".lstrip()
    between = words.ratio_spread(spread) if spread and spread.count > 1 and not native else ""
    return Cell(text=_with_spread(text, between), style=CLASSES.get(judged, ""))


def _times(row: Measured, phases: Iterable[str]) -> str:
    return " · ".join(f"{name} {seconds_text(row.seconds[name])}" for name in phases if name in row.seconds)


def _kept(rows: Sequence[Measured]) -> Sequence[Measured]:
    """Return the rows that the shorter levels keep; all if that would be no row."""
    return [row for row in rows if row.key.strategy in _KEPT_METHODS] or rows


def _operation(row: Measured) -> str:
    return f"{row.key.phase}: {row.key.operation}" if row.key.phase else row.key.operation


def _did(row: Measured) -> tuple[str, ...]:
    """Return the parts of a row's time, the reasons of the library's choices, and the sizes of requests."""
    counts = row.last.request_size_log2
    return (
        _operation(row),
        row.key.strategy,
        _times(row, OUTER_PHASES),
        "" if row.native else _times(row, OWN_PHASES),
        words.done_by_extension(row),
        words.histogram_words(counts) if counts else "",
    )


# ---- a set of results ------------------------------------------------------------------------------------------------


def _grouped(rows: Iterable[Measured], key: Any) -> list[list[Measured]]:
    groups: dict[Any, list[Measured]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return list(groups.values())


def _cases(item: ResultSet) -> list[list[Measured]]:
    """Return the rows of each workload variant or kernel through one interface."""
    return _grouped(item.rows, lambda row: (row.key.variant, row.key.interface))


def _case(rows: Sequence[Measured]) -> str:
    return f"{rows[0].last.label} [{words.interface_title(rows[0].key.interface)}]"


def _methods(item: ResultSet) -> list[str]:
    return list(dict.fromkeys(row.key.strategy for row in item.rows))


def _blocks(rows: Iterable[Measured]) -> list[list[Measured]]:
    return _grouped(rows, lambda row: (row.key.phase, row.key.operation))


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
    chosen = [row for row in ours if row.key.strategy == "auto"] or ours[:1]
    if not chosen:
        return ""
    method = chosen[0].key.strategy
    gains = [
        f"{_operation(row)} {words.ratio(row.ratio.median)}×"
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


def _geometry(configuration: Mapping[str, Any], variant: str) -> list[str]:
    for group in ("kernels", "workloads"):
        recorded = configuration.get(group)
        if isinstance(recorded, Mapping) and variant in recorded:
            return [_plain(recorded[variant])]
    return []


def _fold(item: ResultSet, rows: Sequence[Measured], anchor: str, level: int) -> Fold:
    """Return all rows of a case: their bandwidths, times and explanations, and the commands that measure them."""
    blocks = _blocks(rows)
    speeds = [
        (_operation(row), row.key.strategy + words.marks(row), _bandwidth(row.bandwidth), _ratio(row))
        for block in blocks
        for row in (_kept(block) if level >= 2 else block)
    ]
    did = [_did(row) for block in blocks for row in (_kept(block) if level >= 1 else block)]
    commands = {row.key.strategy: command(item.environment, item.configuration, row) for row in reversed(rows)}
    return Fold(
        anchor=anchor,
        title=_case(rows),
        beside=_gains(rows),
        sentences=[f"{_facts(rows)}.", *_geometry(item.configuration, rows[0].key.variant)],
        grids=[
            Grid(columns=("operation", "method", Number("MB/s"), Number("× native")), rows=speeds),
            Grid(
                columns=(
                    "operation",
                    "method",
                    "where the time went",
                    "in the extension",
                    "what was done, and why",
                    "requests by size",
                ),
                rows=did,
            ),
        ],
        facts=[(f"Measure {method} again", commands[method]) for method in _methods(item) if method in commands],
    )


def _ratios(item: ResultSet, title: str) -> Grid:
    """Return the ratios to native: a row for each operation of each case, and a column for each method."""
    methods = [method for method in _methods(item) if method != "native"]
    rows = []
    for case in _cases(item):
        for block in _blocks(case):
            cells = {row.key.strategy: _ratio(row) for row in block}
            native = "".join(words.marks(row) for row in block if row.key.strategy == "native")
            name = f"{_case(case)}, {_operation(block[0])}{native}"
            rows.append((name, *(cells.get(method, words.DASH) for method in methods)))
    absent = "; ".join(f"{what}: {reason}" for what, reason in item.absent)
    return Grid(
        title=title,
        columns=("× native", *map(Number, methods)),
        rows=rows,
        note=f"Not run: {absent}." if absent else "",
    )


def _of_sets(sets: Sequence[ResultSet], level: int) -> list[Section]:
    """Return the ratios of all rows, and each row."""
    several = len(sets) > 1
    left_out = "; ".join(_LEFT_OUT[1 : level + 1])
    shorter = Finding(
        title=f"▲ Left out, to keep this page below 1 MB: {left_out}. A report of fewer results has them.",
        weight="warning",
    )
    return [
        Section(
            anchor="ratios",
            title="Ratios to native",
            sentences=[
                "Bandwidth over that of the MPI library alone in the same repetition: median, and behind it "
                "smallest–largest. ▲ faster, ≈ within the noise, ▼ slower, · measured too few times to judge."
            ],
            facts=words.notes((row for item in sets for row in item.rows), _MARKS),
            grids=[_ratios(item, item.name if several else "") for item in sets],
        ),
        Section(
            anchor="kernels",
            title="Row by row",
            findings=[shorter] if left_out else [],
            folds=[
                _fold(item, rows, f"k{number}-{at}", level)
                for number, item in enumerate(sets, 1)
                for at, rows in enumerate(_cases(item), 1)
            ],
        ),
    ]


def _verdict(rows: Sequence[Measured]) -> Section:
    tallies = verdict.tally(rows)
    grid = Grid(
        columns=(
            "rows of",
            *map(Number, ("rows", "▲ faster than native", "≈ within the noise", "▼ slower than native", "not judged")),
        ),
        rows=[(one.title, f"{len(one.rows):,}", *(f"{one.count(word):,}" for word in _JUDGMENTS)) for one in tallies],
    )
    shown = [Finding(title=f"{one.title.capitalize()}:", evidence=verdict.sentences(one)) for one in tallies]
    return Section(anchor="verdict", title="Verdict", findings=shown, grids=[grid])


# ---- two sets --------------------------------------------------------------------------------------------------------


def _match(match: Match, limit: float | None) -> tuple[str | Cell, ...]:
    gains = [words.ratio(row.ratio.median) if row.ratio else words.DASH for row in (match.old, match.new)]
    ratio, style = words.DASH, CLASSES.get(match.judgment, "")
    if match.ratio is not None and match.ratio_low is not None and match.ratio_high is not None:
        spread = Spread(match.ratio, match.ratio_low, match.ratio_high, 2)
        ratio = _with_spread(words.ratio(match.ratio), words.ratio_spread(spread))
    failed = "✖ " if limit is not None and falls_below(match, limit) else ""
    other = " (other size or ranks)" if match.other_size else ""
    return (
        words.case_title(match.new.last.label, match.key),
        match.key.strategy + words.marks(match.new),
        *(
            _with_spread(words.bandwidth(side.bandwidth.median), words.bandwidth_spread(side.bandwidth))
            for side in (match.old, match.new)
        ),
        Cell(text=ratio, style=style),
        Cell(text=f"{failed}{SYMBOLS[match.judgment]} {match.judgment}{other}", style=style),
        f"{gains[0]} → {gains[1]}",
    )


def _slower(comparison: Comparison) -> list[Finding]:
    """Return the rows that became slower, the worst first."""
    found = [(one.ratio, one) for one in comparison.matches if one.judgment == "slower" and one.ratio is not None]
    lines = [
        f"{words.row_title(match.new)}: {words.ratio(ratio)}×"
        for ratio, match in sorted(found, key=lambda item: item[0])
    ]
    left = len(lines) - _MOST_SLOWER
    shown = [*lines[:_MOST_SLOWER], *([f"and {left:,} more below"] if left > 0 else [])]
    return [Finding(title="Slower, the worst first", evidence=shown)] if lines else []


def _baseline(comparison: Comparison, limit: float | None) -> Section:
    below = f" ✖ marks rows whose whole range is below {limit}." if limit is not None else ""
    drift = comparison.native_drift
    counts = [
        f"{SYMBOLS[word]} {count:,} {word}"
        for word in ("faster", "within noise", "slower", "not judged")
        if (count := comparison.count(word)) or word != "not judged"
    ]
    warned = [
        Finding(
            title=f"▲ {pair.old_name} (old) and {pair.new_name} (new) were not measured under the same conditions:",
            evidence=[f"{item.what}: {item.old} → {item.new}" for item in pair.differences],
            weight="warning",
        )
        for pair in comparison.warned
    ]
    alone = [
        Grid(columns=(f"{len(rows):,} rows {where}",), rows=[(words.row_title(row),) for row in rows], folded=True)
        for where, rows in (
            ("only in the new results", comparison.only_new),
            ("only in the baseline", comparison.only_old),
        )
    ]
    matched = Grid(
        columns=(
            "row",
            "method",
            Number("old MB/s"),
            Number("new MB/s"),
            Number("new / old"),
            "judgment",
            Number("× native"),
        ),
        rows=[_match(match, limit) for match in comparison.matches],
    )
    return Section(
        anchor="baseline",
        title="Against the baseline",
        sentences=[
            f"{', '.join(counts)}.",
            f"Bandwidth, new over old. {RULE[0].upper()}{RULE[1:]}. The range of a ratio runs from slowest new over "
            f"fastest old to fastest new over slowest old.{below}",
            *(
                [f"The MPI library’s own rows changed by {words.ratio(drift)}× (median): that much is the machine’s."]
                if drift is not None
                else []
            ),
            *(["The two sets have no row in common."] if not comparison.matches else []),
        ],
        findings=[*warned, *_slower(comparison)],
        grids=[matched, *alone],
    )


# ---- bench compare ---------------------------------------------------------------------------------------------------


def _peers(item: PeerSet) -> Grid:
    """Return the bandwidths of every peer; those of this library and of the best native peer stand out."""
    rows = []
    for result in item.results:
        cells: list[str | Cell] = []
        for name in item.peers:
            spread = result.bandwidth(name)
            text = _bandwidth(spread, "*" if name in (result.scaled_bytes or ()) else "") if spread else words.DASH
            cells.append(
                Cell(text=text, style="ours" if name == result.ours else "best" if name == result.best_native else "")
            )
        ends = (result.ratio_native, result.ratio_raw)
        ratios = [words.DASH if ratio is None else words.ratio(ratio) for ratio in ends]
        rows.append((f"{result.pattern} {result.op}", *cells, *ratios))
    absent = [pair for one in item.results for pair in (one.absent or {}).items()]
    reasons = dict.fromkeys(f"{item.peers.get(name, name)}: {reason}" for name, reason in absent)
    return Grid(
        title=item.name,
        columns=("pattern", *map(Number, (*item.peers.values(), "÷ native", "÷ raw"))),
        rows=rows,
        note="; ".join(reasons),
    )


# ---- the page --------------------------------------------------------------------------------------------------------


def _environment(item: ResultSet | PeerSet, number: int) -> Fold:
    facts = list(describe(item.environment))
    if isinstance(item, ResultSet):
        settings, strategies = item.configuration, item.configuration.get("strategies")
        facts += [(name, _plain(settings[name])) for name in _SETTINGS if settings.get(name) not in (None, "")]
        hints = strategies.items() if isinstance(strategies, Mapping) else ()
        facts += [(f"hints of {name}", _plain(value)) for name, value in hints]
    return Fold(anchor=f"e{number}", title=item.name, facts=facts, sentences=[f"From {item.path}"])


def render(
    sets: Sequence[ResultSet],
    peers: Sequence[PeerSet],
    *,
    title: str,
    comparison: Comparison | None = None,
    limit: float | None = None,
    added: Sequence[Section] = (),
) -> Page:
    """Return the page, with as much detail as fits into `MOST_BYTES`; the shortest one if none fits.

    Parameters
    ----------
    sets, peers : what it shows, in this order.
    title : heading of the page.
    comparison : with a baseline, or None.
    limit : of ``--fail-below``, which the page then states; or None.
    added : sections behind those of the rows.
    """
    every: list[ResultSet | PeerSet] = [*sets, *peers]
    names = [f"{item.name}: " if len(every) > 1 else "" for item in every]
    openings = [
        *(worth.of_results(item, f"strip-{number}") for number, item in enumerate(sets, 1)),
        *(worth.of_peers(item, f"strip-peers-{number}") for number, item in enumerate(peers, 1)),
    ]
    figures = [figure for _, figure in openings if figure]
    between = [
        Section(anchor="pictures", title="Other results", figures=figures),
        _verdict([row for item in sets for row in item.rows]),
        *([_baseline(comparison, limit)] if comparison else []),
    ]
    environments = [_environment(item, number) for number, item in enumerate(every, 1)]
    behind = [
        Section(
            anchor="peers",
            title="Every MPI-IO at hand",
            sentences=[_OF_PEERS] if peers else [],
            grids=[_peers(item) for item in peers],
        ),
        *arbitration.sections(item.path for item in sets),
        *added,
        Section(anchor="environment", title="Environment", folds=environments),
        Section(anchor="reading", title="How to read this", facts=_READING),
    ]
    ended = [
        Finding(
            title=f"▲ The bench ended early{f' ({item.name})' if len(sets) > 1 else ''}:",
            evidence=[f"{item.failure}. What was measured before is shown."],
            weight="warning",
        )
        for item in sets
        if item.failure
    ]
    for level in range(len(_LEFT_OUT)):
        text = document(
            title,
            [*between, *(_of_sets(sets, level) if sets else []), *behind],
            lead=[name + sentence for name, (sentence, _) in zip(names, openings, strict=True)],
            none="No picture: there are no ratios.",
            head="; ".join(name + headline(item.environment) for name, item in zip(names, sets, strict=False)),
            notices=ended,
        )
        if len(text.encode("utf-8", "replace")) <= MOST_BYTES:
            break
    return Page(text=text, left_out="; ".join(_LEFT_OUT[1 : level + 1]))
