"""A study of the climate as text for a terminal or a cron job, and as a page that fetches nothing."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.jobs.climate.charts import averages_chart, correlation_chart, label_of, months_chart, signed
from mpiio_ext.analytics.jobs.climate.study import COVERAGE, Study, coverage
from mpiio_ext.analytics.jobs.climate.watch import Shift, Watched, contradicts, falls, largest_lasting, stopped, too_few
from mpiio_ext.analytics.jobs.coverage import MOST_COVERAGE
from mpiio_ext.analytics.jobs.derived import beyond
from mpiio_ext.analytics.jobs.filters import completeness, in_words, left_out
from mpiio_ext.analytics.jobs.history import UNKNOWN_SYSTEM, kind_of, name_of
from mpiio_ext.analytics.jobs.metrics import Box, metric
from mpiio_ext.analytics.jobs.regimes import REGIMES
from mpiio_ext.analytics.jobs.statistics.correlation import Correlation
from mpiio_ext.analytics.jobs.statistics.moved import Moved
from mpiio_ext.common import page as pages
from mpiio_ext.common.page import Figure, Finding, Grid, Number, Section
from mpiio_ext.common.printing import under_heads
from mpiio_ext.common.units import digits_text, number_words

#: Panels of a figure, and rows of a table of the page; JSON has all.
_MOST_PANELS, _MOST_ROWS = 16, 60
_MOST_MOVED = 4
#: Histories that have stopped, and changes, in the text.
_MOST_QUIET, _MOST_CHANGES = 10, 24
#: Slow jobs of the last days, in the text.
_MOST_OUTLIERS = 8
_LONGER = "†: counted over the job's time, so a slower job has more."


def _day(time: float, zone: datetime.tzinfo) -> str:
    return datetime.datetime.fromtimestamp(time, zone).strftime("%Y-%m-%d")


def _value(name: str, value: float) -> str:
    one = metric(name)
    return number_words(value * one.factor, one.unit)


def _p(value: float) -> str:
    return "–" if value != value else "< 0.0001" if value < 1e-4 else f"{value:.4f}"


def _change(ratio: float, before: str = "", none: str = "") -> str:
    """Return by how much a value has changed, behind words; `none` if unknown."""
    return none if ratio != ratio else f"{before}{100 * (ratio - 1):+.0f} %"


def _moved_words(shift: Shift, zone: datetime.tzinfo) -> list[str]:
    """Return a line for each of the metrics that moved most."""
    out = []
    for item in shift.moved[:_MOST_MOVED]:
        own = shift.own.get(item.metric)
        when = f"; its own change: {_day(own, zone)}" if own is not None else ""
        when += "; contradicts: the other direction" if contradicts(item, worse=shift.worse) else ""
        out.append(
            f"{label_of(item.metric)}: {_value(item.metric, item.before)} → {_value(item.metric, item.after)} "
            f"(effect {signed(item.effect)}{when})"
        )
    return out


def _moved_in_short(item: Moved, shift: Shift) -> str:
    against = " (contradicts)" if contradicts(item, worse=shift.worse) else ""
    return f"{label_of(item.metric)} {_value(item.metric, item.before)} → {_value(item.metric, item.after)}{against}"


def _headline(found: Watched, shift: Shift, target: str, zone: datetime.tzinfo) -> str:
    change = shift.change
    return (
        f"{name_of(found.motif, found.system, found.scale)}: since {_day(shift.time, zone)} "
        f"{_value(target, change.before)} → {_value(target, change.after)}{_change(change.ratio, ', ')} "
        f"(p {_p(shift.p_corrected)})"
    )


def _together(made: Study, zone: datetime.tzinfo) -> list[str]:
    """Return a line for each fall of several histories of a file system."""
    lines = []
    for fall in falls(made.watched):
        span = (
            ""
            if _day(fall.first, zone) == _day(fall.last, zone)
            else (f" (found from {_day(fall.first, zone)} to {_day(fall.last, zone)})")
        )
        where = f" of {fall.system}" if fall.system else ""
        lines.append(
            f"{fall.fallen:,} of {fall.watched:,} histories{where} changed for the worse together on "
            f"{_day(fall.middle, zone)}{span}{_change(fall.ratio, ', median ')}"
        )
    return lines


def _recent_outliers(made: Study, zone: datetime.tzinfo) -> list[str]:
    """Return a line for each slow job of the last days, the newest first."""
    newest = max((one.newest for one in made.watched), default=0.0)
    days = made.options.within_days
    slow = sorted(
        (
            (one, job)
            for one in made.watched
            for job in one.outliers
            if job.worse and (days is None or newest - job.time <= days * 86400)
        ),
        key=lambda pair: -pair[1].time,
    )
    target = made.options.target
    lines = [
        f"outlier: job {job.job} of {kind_of(one.motif, one.scale)}{f' on {one.system}' if one.system else ''}, "
        f"{_day(job.time, zone)}: {_value(target, job.value)}, expected {_value(target, job.expected)}"
        for one, job in slow[:_MOST_OUTLIERS]
    ]
    more = len(slow) - len(lines)
    return [*lines, *([f"and {more:,} more slow jobs; --json has all"] if more > 0 else [])]


def _silence(made: Study, zone: datetime.tzinfo) -> list[str]:
    """Return the blind spots of the watch: a history without new jobs, or with too few for two levels."""
    quiet = stopped(made.every)
    lines = [
        f"no run of {one.name} since {_day(time, zone)}, while others went on" for one, time in quiet[:_MOST_QUIET]
    ]
    if len(quiet) > _MOST_QUIET:
        lines.append(f"no run of {len(quiet) - _MOST_QUIET:,} more since earlier days; --json names all")
    few = too_few(made.every, made.watched, made.options)
    if few:
        verb, least = "has" if few == 1 else "have", 2 * made.options.least
        lines.append(
            f"{few:,} of {count_words(len(made.every), 'history', 'histories')} {verb} too few jobs: "
            f"a change needs {least}"
        )
    if made.unknown:
        lines.append(f"{count_words(made.unknown, 'job')} of no history: file system, motif or processes not known")
    return lines


def text(made: Study, zone: datetime.tzinfo) -> str:
    """Return the summary for the morning: regressions, since when, and which metrics changed with them."""
    lines = _together(made, zone)
    for found in made.regressions:
        assert found.regression is not None
        lines.append(f"regression: {_headline(found, found.regression, made.options.target, zone)}")
        lines += [f"  {line}" for line in _moved_words(found.regression, zone)]
    lines += [*_newest_changes(made, zone), *_recent_outliers(made, zone), *_silence(made, zone)]
    changes = sum(len(one.shifts) for one in made.watched)
    span = (
        ""
        if not len(made.table)
        else (f" of {_day(made.table.times()[0], zone)} to {_day(made.table.times()[-1], zone)}")
    )
    outliers = sum(len(one.outliers) for one in made.watched)
    lines.append(
        f"{count_words(len(made.table), 'job')}{span} in "
        f"{count_words(len(made.watched), 'history', 'histories')}: "
        f"{count_words(changes, 'change of level', 'changes of level')}, "
        f"{count_words(len(made.regressions), 'regression')}, {count_words(outliers, 'outlier')}"
    )
    note = [_LONGER] if any("†" in line for line in lines) else []
    return "\n".join([*lines, *left_out(made.steps), *in_words(made.table), *_hints(made), *note])


def _newest_changes(made: Study, zone: datetime.tzinfo) -> list[str]:
    """Return the newest change of each history as a table, the newest first."""
    found = sorted(((one, one.shifts[-1]) for one in made.watched if one.shifts), key=lambda pair: -pair[1].time)
    target, rows = made.options.target, []
    for one, shift in found[:_MOST_CHANGES]:
        rows.append(
            (
                name_of(one.motif, one.system, one.scale),
                _day(shift.time, zone),
                f"{_value(target, shift.change.before)} → {_value(target, shift.change.after)}",
                _change(shift.change.ratio, none="–"),
                _moved_in_short(shift.moved[0], shift) if shift.moved else "–",
            )
        )
    if not rows:
        return []
    more = len(found) - len(rows)
    return [
        "newest change of each history:",
        "",
        *under_heads(("history", "since", "median before → after", "change", "moved most"), rows),
        *([f"and {more:,} more; --json has all"] if more > 0 else []),
        "",
    ]


def _hints(made: Study) -> list[str]:
    """Return which options show more, if there is more."""
    within = made.options.within_days
    old = sum(one.regression is None and bool(one.shifts) and one.shifts[-1].worse for one in made.watched)
    hints = (
        [
            f"{count_words(old, 'history', 'histories')} fell more than {within:g} days before the newest job: "
            "--within 0 counts them as regressions"
        ]
        if old and within is not None
        else []
    )
    shown = any(one.shifts for one in made.watched)
    return [*hints, *(["-o FILE.html shows months, regimes and correlations"] if shown else [])]


# ---- the page --------------------------------------------------------------------------------------------------------


def _systems(made: Study) -> list[str]:
    return list(dict.fromkeys(history.system for history in made.every))


def _panels(made: Study, system: str) -> list[int]:
    """Return the histories of a file system that get a panel: histories with changes first, in their order."""
    mine = [at for at, history in enumerate(made.every) if history.system == system and len(history.jobs) > 1]
    changed = {(one.motif, one.scale) for one in made.watched if one.system == system and one.shifts}
    mine.sort(key=lambda at: ((made.every[at].motif, made.every[at].scale) not in changed, -len(made.every[at].jobs)))
    return sorted(mine[:_MOST_PANELS])


def _figures(made: Study, zone: datetime.tzinfo) -> dict[str, list[Figure]]:
    """Return the figures by their subject: each file system, and the correlations."""
    found: dict[str, list[Figure]] = {what: [] for what in _CAPTIONS}
    for number, system in enumerate(_systems(made)):
        places = _panels(made, system)
        if not places:
            continue
        watched = {(one.motif, one.scale): one for one in made.watched if one.system == system}
        histories = [made.every[at] for at in places]
        months = months_chart(f"months-{number}", system, histories, watched, made.options.target, zone)
        found["months"].append(pages.drawn(months, caption=_CAPTIONS["months"]))
        if made.partitions:
            parts, name = [made.partitions[at] for at in places], f"regimes-{number}"
            averages = averages_chart(name, system, parts, made.rules)
            found["averages"].append(pages.drawn(averages, caption=_CAPTIONS["averages"]))
    if (last := correlation_chart(made.correlations, made.options.level)) is not None:
        found["correlations"].append(pages.drawn(last, caption=_CAPTIONS["correlations"]))
    return found


def _grid(columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", *, folded: bool = False) -> Grid:
    left = len(rows) - _MOST_ROWS
    more = f"{left:,} more rows are not shown; --json has all. " if left > 0 else ""
    return Grid(columns=columns, rows=list(rows[:_MOST_ROWS]), note=more + note, folded=folded)


def _changes(made: Study, zone: datetime.tzinfo) -> Section:
    target = made.options.target
    findings: list[Finding] = []
    for one in made.regressions:
        assert one.regression is not None
        findings.append(
            Finding(
                weight="warning",
                title=_headline(one, one.regression, target, zone),
                evidence=_moved_words(one.regression, zone),
            )
        )
    shifts = sorted(((one, shift) for one in made.watched for shift in one.shifts), key=lambda pair: -pair[1].time)
    rows = [
        (
            kind_of(one.motif, one.scale),
            one.system,
            "; ".join(_moved_in_short(item, shift) for item in shift.moved[:2]) or "–",
            _day(shift.time, zone),
            _value(target, shift.change.before),
            _value(target, shift.change.after),
            _change(shift.change.ratio, none="–"),
            _p(shift.p_corrected),
        )
        for one, shift in shifts
    ]
    grids = (
        [
            _grid(
                (
                    "motif",
                    "file system",
                    "what moved with it",
                    *map(Number, ("since", "before", "after", "change", "p")),
                ),
                rows,
                _LONGER,
                folded=True,
            )
        ]
        if rows
        else []
    )
    unseen = [f"{line[0].upper()}{line[1:]}." for line in _silence(made, zone)]
    together = [f"{line}." for line in _together(made, zone)]
    return Section(
        anchor="changes", title="What changed", findings=findings, grids=grids, sentences=[*together, *unseen]
    )


def _quartiles(one: Box | None) -> str:
    """Return median and middle half of a share; a value that rounds to 0 has no sign."""
    if one is None:
        return "–"
    median, first, third = (f"{round(value, 3) + 0.0:.3f}" for value in (one.median, one.first, one.third))
    return f"{median} ({first} to {third})"


def _coverage_section(made: Study) -> Section:
    every = coverage(made.every)
    names = [name for name in COVERAGE if any(name in found for _, found in every)]
    rows = [
        (kind_of(history.motif, history.scale), history.system, *(_quartiles(found.get(name)) for name in names))
        for history, found in every
    ]
    grids = [_grid(("motif", "file system", *(Number(metric(name).label) for name in names)), rows)] if rows else []
    none = [] if rows else ["The table has no columns of what the servers moved."]
    unused = [f"{metric(name).label.rpartition(', ')[2]} ({count:,})" for name, count in beyond(made.table).items()]
    limit = (
        [
            f"Beyond {MOST_COVERAGE:g} a factor is not used, as samples of the servers are missing or a cache "
            f"answered: {', '.join(unused)}."
        ]
        if unused
        else []
    )
    return Section(
        anchor="coverage",
        title="Coverage and contention",
        grids=grids,
        sentences=[
            "Coverage factor: the job's own bytes over those that all servers of the file system "
            "moved meanwhile; 1 minus "
            "it is the contention. Median, and middle half of the jobs.",
            *limit,
            *none,
        ],
    )


def _correlation_rows(found: Sequence[Correlation]) -> list[tuple[str, ...]]:
    pairs: dict[tuple[str, str], dict[str, Correlation]] = {}
    for one in found:
        if one.coefficient == one.coefficient:
            pairs.setdefault((one.group, one.metric), {})[one.method] = one
    rows = []
    ordered = sorted(pairs.items(), key=lambda pair: -max(abs(one.coefficient) for one in pair[1].values()))
    for (group, name), both in ordered:
        cells = []
        for method in ("pearson", "spearman"):
            cell = both.get(method)
            cells += (
                ["–", "–", "–"]
                if cell is None
                else [signed(cell.coefficient), f"{signed(cell.low)} to {signed(cell.high)}", _p(cell.p_corrected)]
            )
        last = both.get("spearman")
        inside = (
            "–"
            if last is None or last.within != last.within
            else (f"{last.within:+.2f}{' ≠' if last.reversed_within else ''}")
        )
        rows.append((label_of(name), group, f"{next(iter(both.values())).pairs:,}", *cells, inside))
    return rows


def _correlation_section(made: Study, figures: Sequence[Figure]) -> Section:
    rows = _correlation_rows(made.correlations)
    numbers = ("jobs", "Pearson", "95 %", "p", "Spearman", "95 %", "p", "within histories")
    columns = ("metric", "file system", *map(Number, numbers))
    return Section(
        anchor="correlation",
        title="Correlation with performance",
        figures=figures,
        sentences=[
            "Of the normalised performance (over the best job of its kind) with each metric, over all jobs of a file "
            "system. p-values are corrected by Benjamini and Hochberg's procedure over the table. Last: the mean of "
            "Spearman's coefficients within the histories; ≠: its sign is the opposite: what correlates is the kind of "
            "I/O."
        ],
        grids=[_grid(columns, rows, _LONGER)] if rows else [],
    )


def _regimes_section(made: Study, figures: Sequence[Figure]) -> Section:
    counts = [
        (
            kind_of(one.history.motif, one.history.scale),
            one.history.system,
            *(f"{int((one.regimes == regime).sum()):,}" for regime in REGIMES),
        )
        for one in made.partitions
    ]
    rows = [
        (
            kind_of(one.motif, one.scale),
            one.system,
            one.regime,
            label_of(one.moved.metric),
            f"{one.jobs:,}",
            _value(one.moved.metric, one.moved.before),
            _value(one.moved.metric, one.moved.after),
            signed(one.moved.effect),
            _p(one.moved.p_corrected),
        )
        for one in sorted(made.differences, key=lambda one: -abs(one.moved.effect))
    ]
    grids = [_grid(("motif", "file system", *map(Number, REGIMES)), counts)]
    if rows:
        numbers = ("jobs", "normal", "in the regime", "effect", "p")
        columns = ("motif", "file system", "regime", "metric", *map(Number, numbers))
        grids.append(_grid(columns, rows, _LONGER))
    rules = made.rules
    return Section(
        anchor="regimes",
        title="Variation explained",
        figures=figures,
        grids=grids,
        sentences=[
            f"A history changes its region where the moving averages over {rules.short_days:g} and {rules.long_days:g} "
            "days cross. A region that lasts and differs from the jobs around it is long-term; a "
            "single job far from those "
            "around it is transient; the rest is normal. The second table names the metrics that "
            "differ from the normal "
            "jobs beside them."
        ],
    )


def _rows_section(made: Study) -> Section:
    steps = [
        (step.name, f"{step.dropped:,}", f"{step.left:,}", step.why if step.dropped else "–") for step in made.steps
    ]
    sentences = [f"Of {made.table.source}.", *(f"{line[0].upper()}{line[1:]}." for line in in_words(made.table))]
    return Section(
        anchor="rows",
        title="Rows that count",
        sentences=sentences,
        grids=[
            Grid(columns=("filter", Number("rows left out"), Number("rows left"), "why"), rows=steps),
            _known_grid(made),
        ],
    )


def _known_grid(made: Study) -> Grid:
    """Return how complete each source is on each file system of each file."""
    found = completeness(made.table)
    sources = list(dict.fromkeys(one.source for one in found))
    rows: dict[tuple[str, str], list[str]] = {}
    for one in found:
        row = rows.setdefault((one.file, one.system), [one.system or UNKNOWN_SYSTEM, f"{one.rows:,}"])
        row.append(f"{digits_text(100 * one.known / one.rows)} %" + (f" ({one.gaps:,} gaps)" if one.gaps else ""))
    several = any(file for file, _ in rows)
    return _grid(
        ("file system", *(("file",) if several else ()), *map(Number, ("rows", *sources))),
        [(row[0], *((file or "–",) if several else ()), *row[1:]) for (file, _), row in rows.items()],
        "Share of the rows in which each source has a value. A gap is a value that is stored and not used: "
        "the servers saw less than the job itself moved, or a 0 that cannot be.",
    )


_CAPTIONS = {
    "months": "Box from the first to the third quartile with the median, whiskers at the 5th and the 95th percentile; "
    "dashed: a change of level, to more (▲) or to less (▼).",
    "averages": "Shaded: long-term regions, orange low, blue high. Crosses: transients.",
    "correlations": f"Coloured and bold: sure after correction for all tests of the table. {_LONGER}",
}


def _lead(made: Study, zone: datetime.tzinfo) -> list[str]:
    """Return the first sentences: the largest lasting change, then recent falls."""
    target, within = made.options.target, made.options.within_days
    span = f" within the last {within:g} days" if within is not None else ""
    lasting = largest_lasting(made.watched, target)
    sentences = [] if lasting is None else [f"{_headline(*lasting, target, zone)}."]
    if not made.regressions:
        return [*sentences, f"No history has fallen to a lower level{span}."]
    fallen = [one for one in made.regressions if lasting is None or one.regression is not lasting[1]]
    for one in fallen[:1]:
        assert one.regression is not None
        more = f"{count_words(len(fallen), 'history has', 'histories have')} fallen{span}"
        sentences.append(f"Of the others {more}, first {_headline(one, one.regression, target, zone)}.")
    return sentences


def page(made: Study, title: str, zone: datetime.tzinfo) -> str:
    """Return the page: changes, months, coverage, correlations, regimes, and which rows count."""
    figures = _figures(made, zone)
    lasting = largest_lasting(made.watched, made.options.target)
    worst = [f"months-{_systems(made).index(one.system)}.csv" for one, _ in ([lasting] if lasting else [])]
    months = sorted(figures["months"], key=lambda one: one.name not in worst)
    sections = [
        _changes(made, zone),
        Section(anchor="climate", title="Climate", figures=months),
        _coverage_section(made),
        _correlation_section(made, figures["correlations"]),
        _regimes_section(made, figures["averages"]),
        _rows_section(made),
    ]
    head = (
        f"{count_words(len(made.table), 'job')} in {count_words(len(made.every), 'history', 'histories')} of the "
        "same application, file system, motif and processes."
    )
    none = "No picture: no history has two jobs."
    return pages.document(title, sections, lead=_lead(made, zone), none=none, head=head)
