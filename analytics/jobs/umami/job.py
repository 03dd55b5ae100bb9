"""The row of a table that is the requested job, and the jobs of its history.

A job of the scheduler may run several programs, each a row: then the motif says which. What the history is, the paper
leaves to the reader of the figure. Here it is the jobs of the same file system, motif and processes that began before:
what came later was no part of what could be expected. Later ones are taken if they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.jobs.derived import groups_of
from mpiio_ext.analytics.jobs.errors import HistoryError
from mpiio_ext.analytics.jobs.table import ID, LOG, MOTIF, SCALE, SYSTEM, Jobs

if TYPE_CHECKING:
    from mpiio_ext.analytics.jobs.umami.rows import Umami
    from mpiio_ext.analytics.tables.arrays import Flags

#: The job that began last.
LAST = "last"
#: Names in a message.
_MOST_NAMES = 10


def find(table: Jobs, job: str = LAST, *, motif: str | None = None, system: str | None = None) -> int:
    """Return the place of a job's row.

    Parameters
    ----------
    table : Jobs
        By start (:func:`mpiio_ext.analytics.jobs.select`).
    job : str
        Job ID, or ``last``.
    motif, system : str, optional
        Only rows of this motif (a part of its name is enough where that is clear), and of this file system.

    Raises
    ------
    HistoryError
        There is no such job, or it has rows of several motifs and none was chosen.
    """
    rows = np.ones(len(table), dtype=np.bool_)
    if system is not None:
        rows &= _named(table, SYSTEM, system, "file system")
    if motif is not None:
        rows &= _named(table, MOTIF, motif, "motif")
    if job != LAST:
        ids = table.texts(ID) == job
        if not ids.any():
            raise HistoryError(f"{table.source}: there is no job {job} among the {len(table):,} rows that count")
        rows &= ids
    places = np.flatnonzero(rows)
    if not len(places):
        raise HistoryError(f"{table.source}: no row is of this job, motif and file system together")
    if job != LAST:
        names = sorted(
            {
                f"{one} on {where}"
                for one, where in zip(
                    table.texts(MOTIF)[places].tolist(), table.texts(SYSTEM)[places].tolist(), strict=True
                )
            }
        )
        if len(names) > 1:
            raise HistoryError(
                f"{table.source}: job {job} has several rows; choose one by --motif or --file-system:{_listed(names)}"
            )
    return int(places[-1])


def find_log(table: Jobs, log: Path, *, motif: str | None = None, system: str | None = None) -> int:
    """Return the place of the row of a Darshan log: of its name, or else that which began when the log's job did.

    Raises
    ------
    HistoryError
        The log cannot be read, or no row is its.
    """
    places = np.flatnonzero(_rows_of(table, log))
    if not len(places):
        raise HistoryError(f"{table.source}: no row that counts is of {log}; mpiio-ext analyze summarize-job adds it")
    return int(places[find(table.take(places), motif=motif, system=system)])


def _rows_of(table: Jobs, log: Path) -> Flags:
    """Return the rows of a log's name that began when its job did; without one of this name all that began then."""
    from mpiio_ext.analytics.sources.darshanheader import start_of

    try:
        start = start_of(log)
    except OSError as error:
        raise HistoryError(f"{log}: cannot be read: {error.strerror}") from error
    if start is None:
        raise HistoryError(f"{log}: not a Darshan log, or damaged: it has no start time of the job")
    with np.errstate(invalid="ignore"):
        rows: Flags = np.abs(table.times() - start) < 1
    named = rows & (table.texts(LOG) == log.name)
    return named if named.any() else rows


def has_log(table: Jobs, log: Path) -> bool:
    """Return whether a row is of this Darshan log; HistoryError where the log cannot be read."""
    return bool(_rows_of(table, log).any())


def with_log(table: Jobs, log: Path, system: str | None = None) -> Jobs:
    """Return the table with the row of a Darshan log behind it, which has the columns of Darshan and no others.

    Parameters
    ----------
    system : str, optional
        The file system by its name in the table, which the log does not know: it has mount points.

    Raises
    ------
    HistoryError
        The log cannot be read.
    """
    from mpiio_ext.analytics.jobs.summarize import summarize

    found = summarize([log])
    if not len(found):
        what = [str(note["what"]) for note in found.notes.to_pylist()]
        raise HistoryError(what[0] if what else f"{log}: cannot be read")
    if system is not None:
        found = found.joined({SYSTEM: [system] * len(found)})
    known = found.table.select([name for name in found.names if not found.missing(name).all()])
    return Jobs.stacked([table, Jobs(known, str(log))], table.source)


def _named(table: Jobs, column: str, wanted: str, what: str) -> Flags:
    """Return the rows of a name; if it is no whole name, those of the only name that contains it."""
    texts = table.texts(column)
    known = sorted(set(texts.tolist()))
    holding = [name for name in known if wanted in name]
    if wanted not in known and len(holding) == 1:
        wanted = holding[0]
    if wanted not in known:
        which = f"several names hold it:{_listed(holding)}" if holding else f"there are:{_listed(known)}"
        raise HistoryError(f"{table.source}: there is no {what} '{wanted}'; {which}")
    out: Flags = texts == wanted
    return out


def _listed(names: Sequence[str]) -> str:
    """Return names as lines."""
    more = [f"and {len(names) - _MOST_NAMES:,} more"] if len(names) > _MOST_NAMES else []
    return "".join(f"\n  {name}" for name in [*(name or "(not known)" for name in names[:_MOST_NAMES]), *more])


def history_of(table: Jobs, place: int, *, later: bool = False, days: float | None = None) -> tuple[Jobs, int]:
    """Return the jobs of the same file system, motif and scale, by start, and the place of the job among them.

    A job of which one of these is not known, while that of others is, has no history.

    Parameters
    ----------
    table : Jobs
        By start.
    place : int
        Row of the job.
    later : bool
        Also jobs that began after it.
    days : float, optional
        Only jobs that began within so many days of it.
    """
    times, rows = table.times(), np.zeros(len(table), dtype=np.bool_)
    rows[next((places for places in groups_of(table).values() if place in places), place)] = True
    if days is not None:
        rows &= np.abs(times - times[place]) <= days * 86400
    if not later:
        rows &= np.arange(len(table)) <= place
    places = np.flatnonzero(rows)
    return table.take(places), int(np.flatnonzero(places == place)[0])


def other_scales(table: Jobs, place: int) -> dict[str, int]:
    """Return processes -> jobs of the same file system and motif that are of another history than this one."""
    system, motif, scale = (str(table.texts(name)[place]) for name in (SYSTEM, MOTIF, SCALE))
    return {
        key[2]: len(rows) for key, rows in groups_of(table).items() if key[:2] == (system, motif) and key[2] != scale
    }


def of_job(
    history: str | Path,
    job: str = LAST,
    *,
    motif: str | None = None,
    system: str | None = None,
    metrics: Sequence[str] | None = None,
) -> Umami:
    """Return a job of a table against the jobs like it that began before.

    Parameters
    ----------
    history : table of jobs, as ``mpiio-ext analyze summarize-job`` makes it.
    job, motif, system : of `find`.
    metrics : columns; None: those of the paper.

    Raises
    ------
    HistoryError
        The table cannot be used, or there is no such job.
    """
    from mpiio_ext.analytics.jobs import read, select
    from mpiio_ext.analytics.jobs.umami.rows import umami

    table, _ = select(read(history, slices=False))
    before, place = history_of(table, find(table, job, motif=motif, system=system))
    return umami(before, place, metrics)
