"""The output for a snapshot: tables of words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mpiio_ext.common.units import amount_text, number_words
from mpiio_ext.top.jobs import Rank, Rates, files_of
from mpiio_ext.top.pages import Counts
from mpiio_ext.top.snapshot import NOTHING, Snapshot, Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: `title` is a sentence above it, the first `texts` columns are words, the others numbers.

    If the table is too wide, the texts of `long` are shortened, at their start or their end, and the columns of `spare`
    are left out, the first one first.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    long: str = ""
    cut_at_start: bool = False
    spare: tuple[str, ...] = ()


def ago(seconds: float) -> str:
    """Return a time that has passed: 4 s, 12:05, 1:02:03."""
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}" if minutes else f"{rest} s"


def clock(unix_s: float) -> str:
    """Return a time of this day, as clocks here show it."""
    return time.strftime("%H:%M:%S", time.localtime(unix_s))


def _speed(bytes_per_s: float) -> str:
    return f"{amount_text(round(bytes_per_s))}/s" if bytes_per_s else "–"


def _mean(total: Counts, moved: Rates) -> str:
    """Return the mean size of an access, in the last interval, or so far if that had none."""
    calls = moved.reads_per_s + moved.writes_per_s
    if calls > 0:
        return amount_text(round(moved.bytes_per_s / calls))
    calls = total.reads + total.writes
    return amount_text(round((total.read_bytes + total.written_bytes) / calls)) if calls else "–"


def _moved(total: Counts, moved: Rates) -> tuple[str, ...]:
    return (
        _speed(moved.written_bytes_per_s),
        _speed(moved.read_bytes_per_s),
        number_words(round(moved.reads_per_s + moved.writes_per_s)),
        _mean(total, moved),
        amount_text(total.written_bytes),
        amount_text(total.read_bytes),
    )


_MOVED = ("written", "read", "calls/s", "mean size", "written so far", "read so far")


def job_list(seen: Snapshot) -> Table:
    """Return the jobs, a line each."""
    rows = []
    for watched in seen.jobs:
        job, page = watched.job, watched.job.first
        rows.append(
            (
                job.name,
                page.scheduler_job or "–",
                job.called,
                _here(watched),
                f"ended {clock(ended)}"
                if (ended := job.ended_unix_s) is not None
                else ago(seen.sampled_unix_s - page.started_unix_s),
                *_moved(job.total, job.rates),
            )
        )
    return Table(
        title=f"Jobs on {seen.host}",
        columns=("job", "scheduler's", "command", "ranks", "up", *_MOVED),
        rows=tuple(rows),
        texts=3,
        long="command",
        spare=("scheduler's", "mean size", "calls/s", "up"),
    )


def _here(watched: Watched) -> str:
    here, all_of_them = len(watched.job.ranks), watched.job.first.ranks
    return str(here) if here == all_of_them else f"{here} of {all_of_them}"


def _rank_table(ranks: Sequence[Rank], title: str) -> Table:
    rows = tuple(
        (str(rank.page.rank), rank.state, str(rank.pid), str(rank.page.open), *_moved(rank.page.total, rank.rates))
        for rank in ranks
    )
    return Table(
        title=title,
        columns=("rank", "state", "pid", "files", *_MOVED),
        rows=rows,
        texts=2,
        spare=("pid", "mean size", "files", "calls/s"),
    )


def _file_table(watched: Watched) -> Table:
    ranks = watched.job.ranks
    rows = tuple((file.path, str(file.ranks), *_moved(file.total, file.rates)) for file in files_of(ranks))
    beyond = sum(rank.page.unlisted for rank in ranks)
    more = f"; {beyond} openings that their ranks' pages have no room for are not listed" if beyond else ""
    title = "Open files" if watched.job.ended_unix_s is None else "Files that were open at the last reading"
    return Table(
        title=f"{title}{more}",
        columns=("file", "ranks", *_MOVED),
        rows=rows,
        long="file",
        cut_at_start=True,
        spare=("mean size", "ranks", "calls/s"),
    )


def _delegate_table(watched: Watched) -> Table:
    rows = []
    for row in watched.delegates:
        item, speed = row.status, row.rates
        rows.append(
            (
                str(item.delegate),
                row.state,
                str(item.pid),
                str(item.queued),
                str(len(item.waiting)),
                _speed(speed.written_mb_per_s * 1e6),
                _speed(speed.read_mb_per_s * 1e6),
                _speed(speed.flushed_mb_per_s * 1e6),
                amount_text(item.dirty_bytes),
                f"{item.pages_used} of {item.pages}",
                str(item.counters["errors"]),
            )
        )
    return Table(
        title=f"Delegates on {watched.delegates[0].status.host} (mpiio-ext delegates status shows more)",
        columns=("#", "state", "pid", "queue", "waiting", "in", "out", "drain", "dirty", "pages", "errors"),
        rows=tuple(rows),
        texts=2,
        spare=("pid", "pages", "errors", "waiting"),
    )


def _arbiter_line(watched: Watched) -> str:
    given = watched.arbiter
    if given is None:
        return ""
    if given.nodes is None:
        return f"Arbiter {given.folder}: {given.problem}"
    nodes = ", ".join(map(str, given.nodes)) or "none"
    return f"Arbiter {given.folder}: I/O nodes {nodes} (map {given.generation})"


def heading(seen: Snapshot, watched: Watched) -> str:
    """Return the title line of the job: its name, its program, its ranks and its time."""
    page = watched.job.first
    scheduler = f", the scheduler's {page.scheduler_job}" if page.scheduler_job else ""
    ranks = "rank" if page.ranks == 1 else "ranks"
    ended = watched.job.ended_unix_s
    up = ago((seen.sampled_unix_s if ended is None else ended) - page.started_unix_s)
    return (
        f"Job {watched.job.name}{scheduler}: {watched.job.called}, {_here(watched)} {ranks} on {seen.host}, "
        f"{up if ended is None else f'ended at {clock(ended)} after {up}'}"
    )


def notes(seen: Snapshot, watched: Watched | None) -> tuple[str, ...]:
    """Return sentences that stand below the tables."""
    found = [*([] if seen.jobs else [f"{NOTHING[0].upper()}{NOTHING[1:]}."]), *seen.problems]
    if watched is not None:
        job = watched.job
        found += [line for line in (_arbiter_line(watched),) if line]
        if job.ended_unix_s is not None:
            found.append("Numbers of an ended job are the last ones that were read.")
            return tuple(found)
        if job.first.service and not watched.delegates:
            found.append("The job's delegates are not on this node.")
        if job.first.ranks > len(job.ranks):
            found.append(
                f"{job.first.ranks - len(job.ranks)} ranks are not shown: they are on other nodes (run this there, "
                "too), ended, or without the library."
            )
        gone = [str(rank.page.rank) for rank in job.ranks if rank.state == "gone"]
        if gone:
            found.append(
                f"Ended without MPI_Finalize: rank{'s' * (len(gone) > 1)} {', '.join(gone[:20])}"
                + (" …" if len(gone) > 20 else "")
            )
    return tuple(found)


def tables(seen: Snapshot, watched: Watched) -> tuple[Table, ...]:
    """Return the tables of one job: the ranks that move most come first if not all can be shown."""
    job = watched.job
    parts = [_rank_table(job.ranks, heading(seen, watched)), _file_table(watched)]
    if len(job.ranks) > 1:
        whole = ("all", "", "", "", *_moved(job.total, job.rates))
        parts[0] = replace(parts[0], rows=(whole, *parts[0].rows))
    parts += [_delegate_table(watched)] if watched.delegates else []
    return tuple(parts)
