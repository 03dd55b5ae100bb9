"""Which rows of a table count: the filters of the published year of summaries, and others like them.

Source: tokio-abcutils, ``sc18paper``: rows without a missing column; with a performance; that began between 2017-02-14
and 2018-02-15. They moved more than 1 GiB (a bug let VPIC end without writing). They are not HACC's writes to a shared
file, nor runs on Cori's Haswell nodes, a small part of the machine, which have 1,024 processes or fewer. A column is
missing where other rows of the same file have it: each platform's table has columns of its own. "Began" is
``_datetime_start``, and the days are those of the Pacific time zone: so the published numbers of rows come out. The
column itself contains local time as if it were UTC, so that the period is off by the 7 or 8 hours between the two; this
module does the same, because the published results rest on it.

Completeness of a table: in how many rows of each file system each source has a value, and where it is a gap.

A source is recognised by one column, or two, that it always has. A gap (:mod:`.coverage`) is a value that is stored and
not used. Rows are the rows of the given table, so that rows that filters left out are not counted here.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence

import numpy as np

from mpiio_ext.analytics.analyses.counting import count_words
from mpiio_ext.analytics.errors import HistoryError
from mpiio_ext.analytics.jobs.coverage import shares
from mpiio_ext.analytics.jobs.derived import SOURCES, derive
from mpiio_ext.analytics.jobs.table import FILE, MOTIF, PERFORMANCE, PROCESSES, START, SYSTEM, Jobs
from mpiio_ext.analytics.tables.arrays import Flags
from mpiio_ext.common.units import digits_text


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filters of rows; each part is optional, but for performance and start, which every row needs.

    Attributes
    ----------
    complete : bool
        Only rows without a missing column. Derived columns do not count, nor those that are empty in all rows of the
        row's file.
    since, until : datetime.date, optional
        Half-open: first day, and the day after the last.
    time_zone : str
        Whose days these are, an IANA name.
    above_gib : float, optional
        Only jobs that moved more, in GiB.
    without : sequence of str
        Motifs to leave out.
    above_processes : mapping of str to int
        File system -> only its jobs of more processes.
    within : float
        Leaves no row out: jobs whose processes differ by up to this factor are of one history; 1: the same number.
    """

    complete: bool = False
    since: datetime.date | None = None
    until: datetime.date | None = None
    time_zone: str = "UTC"
    above_gib: float | None = None
    without: Sequence[str] = ()
    above_processes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    within: float = 1.0


#: Columns that may be empty where all is well: notes, disks that have failed, and what is made of other columns, which
#: say themselves whether they are there. In a saved table some of the derived ones are empty throughout.
_OPTIONAL = frozenset({"_notes", "fshealth_disk_faults", FILE, *SOURCES}) - {MOTIF}
#: The filters of the SC18 paper.
PUBLISHED = Filter(
    complete=True,
    since=datetime.date(2017, 2, 14),
    until=datetime.date(2018, 2, 15),
    time_zone="America/Los_Angeles",
    above_gib=1.0,
    without=("hacc_io_write_shared_write",),
    above_processes={"cscratch": 1024},
)


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """The rows that a filter has left out: their number, that of the rest, and the reason."""

    name: str
    dropped: int
    left: int
    why: str


def zone_of(name: str) -> datetime.tzinfo:
    """Return a time zone; HistoryError if none has this name."""
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise HistoryError(f"'{name}' is no time zone; write for example America/Los_Angeles or UTC") from error


def _midnight(day: datetime.date, zone: str) -> float:
    return datetime.datetime(day.year, day.month, day.day, tzinfo=zone_of(zone)).timestamp()


def _incomplete(table: Jobs, whole: Jobs) -> Flags:
    """Return the rows that lack a column which others of their file have."""
    out = np.zeros(len(table), dtype=np.bool_)
    files = table.texts(FILE)
    missing = [(whole if name == MOTIF else table).missing(name) for name in table.names if name not in _OPTIONAL]
    for file in set(files.tolist()):
        mine = files == file
        for rows in missing:
            if not rows[mine].all():
                out |= mine & rows
    return out


def select(table: Jobs, rules: Filter | None = None) -> tuple[Jobs, list[Step]]:
    """Return the rows that count, with the derived columns, by start; and the number that each filter left out.

    Parameters
    ----------
    rules : Filter, optional
        Default: all rows with a performance and a start.

    Raises
    ------
    HistoryError
        There is no column of performance or of starts, or no such time zone.
    """
    rules = Filter() if rules is None else rules
    table.need(PERFORMANCE)
    whole = derive(table, within=rules.within)
    keep = np.ones(len(table), dtype=np.bool_)
    steps: list[Step] = []

    def only(name: str, rows: Flags, why: str) -> None:
        nonlocal keep
        before = int(keep.sum())
        keep = keep & rows
        steps.append(Step(name, before - int(keep.sum()), int(keep.sum()), why))

    if rules.complete:
        only("no column missing", ~_incomplete(table, whole), "a column missing")
    slow, late = np.isnan(table.numbers(PERFORMANCE)), np.isnan(table.times())
    lacking = [name for name, rows in (("performance", slow), ("start", late)) if (rows & keep).any()]
    only("performance and start known", ~slow & ~late, f"no {' or '.join(lacking or ['performance or start'])}")
    starts = table.numbers(START) if START in table else table.times()
    if rules.since is not None:
        only(f"since {rules.since}", starts >= _midnight(rules.since, rules.time_zone), f"before {rules.since}")
    if rules.until is not None:
        only(f"before {rules.until}", starts < _midnight(rules.until, rules.time_zone), f"not before {rules.until}")
    if rules.above_gib is not None:
        only(
            f"more than {digits_text(rules.above_gib, 6)} GiB",
            whole.numbers("darshan_total_gibs_posix") > rules.above_gib,
            f"not more than {digits_text(rules.above_gib, 6)} GiB",
        )
    if rules.without:
        names = ", ".join(rules.without)
        only(f"without {names}", ~np.isin(whole.texts(MOTIF), list(rules.without)), names)
    for system, least in rules.above_processes.items():
        name = f"{least:,} processes or fewer on {system}"
        small = (table.texts(SYSTEM) == system) & (table.numbers(PROCESSES) <= least)
        if small.any():
            only(f"without {name}", ~small, name)
    rows = np.flatnonzero(keep)
    times = table.times()[rows]
    taken = table.take(rows[np.argsort(times, kind="stable")])
    return derive(taken, within=rules.within), steps


def emptied(source: str, steps: Sequence[Step]) -> str:
    """Return in a sentence that no row of a table counts, and which filter left out the last ones."""
    last = next((step for step in steps if not step.left), None)
    if last is None or not last.dropped:
        return f"{source}: no row counts: the table is empty"
    return f"{source}: no row counts: the filter '{last.name}' left out the last {last.dropped:,}"


def left_out(steps: Sequence[Step]) -> list[str]:
    """Return in a line how many rows do not count, and why."""
    lost = [step for step in steps if step.dropped]
    if not lost:
        return []
    why = lost[0].why if len(lost) == 1 else ", ".join(f"{step.why} ({step.dropped:,})" for step in lost)
    dropped = sum(step.dropped for step in lost)
    return [f"{dropped:,} of {count_words(dropped + steps[-1].left, 'row')} left out: {why}"]


def published(table: Jobs) -> tuple[Jobs, list[Step]]:
    """Return the rows that pass the filters of the SC18 paper, and the number that each filter left out."""
    return select(table, PUBLISHED)


#: Source -> columns that it always has.
_SOURCES = {
    "program's log": (PERFORMANCE,),
    "servers' bytes": ("fs_tot_bytes_read", "fs_tot_bytes_written"),
    "metadata operations": ("fs_tot_open_ops",),
    "servers' load": ("fs_ave_oss_cpu",),
    "fullness": ("fshealth_ost_most_full_pct",),
    "failovers": ("fshealth_ost_overloaded_ost_count",),
    "states of disks": ("fshealth_disk_down_count",),
    "concurrent jobs": ("jobsdb_concurrent_nodes",),
    "topology": ("topology_job_max_radius",),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """In how many rows a source has a value.

    Attributes
    ----------
    file, system, source : file of the table ("": there is one), file system, and source.
    rows, known, gaps : int
        Rows of the file system in the file; rows with a value; rows whose value is stored and not used.
    """

    file: str
    system: str
    source: str
    rows: int
    known: int
    gaps: int


def completeness(table: Jobs) -> list[Known]:
    """Return the coverage of each file system of each file by each source; unknown sources are left out."""
    out = []
    files, systems = table.texts(FILE), table.texts(SYSTEM)
    sources = {
        source: columns
        for source, columns in _SOURCES.items()
        if any(name in table and not table.missing(name).all() for name in columns)
    }
    for rows in table.by_system():
        first = int(np.flatnonzero(rows)[0])
        for source, columns in sources.items():
            used = np.logical_and.reduce([~np.isnan(table.numbers(name)[rows]) for name in columns])
            stored = np.logical_and.reduce(
                [~table.missing(name)[rows] if name in table else ~rows[rows] for name in columns]
            )
            out.append(
                Known(
                    file=str(files[first]),
                    system=str(systems[first]),
                    source=source,
                    rows=int(rows.sum()),
                    known=int(used.sum()),
                    gaps=int((stored & ~used).sum()),
                )
            )
    return out


def in_words(table: Jobs) -> list[str]:
    """Return a line of the gaps that are no values anywhere, and one of shares that are shown in percent."""
    gaps: dict[str, int] = {}
    for one in completeness(table):
        gaps[one.source] = gaps.get(one.source, 0) + one.gaps
    named = ", ".join(f"{source} of {count:,}" for source, count in gaps.items() if count)
    lines = [f"gaps of monitoring in {count_words(len(table), 'row')}, used nowhere: {named}"] if named else []
    percent = dict.fromkeys(table.texts(SYSTEM)[shares(table)].tolist())
    return [
        *lines,
        *([f"fullness of {', '.join(percent)} is a share in the table, and shown in percent"] if percent else []),
    ]
