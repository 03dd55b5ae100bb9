"""The rules about calls that move no data: opens, stats, seeks and the like, in MPI-IO too, and syncs.

Problem. The time of a job may be spent on calls that neither read nor write.

Algorithm. The rules compare the times of these calls (:mod:`.ranks`) with the time of a rank in data calls and with the
run time. Confidence is high where a process makes many of them, and they take much of the run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import MOST_NAMES, Case
from mpiio_ext.analytics.diagnosis.cause import ALWAYS, OF_MPI, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.causes_time import late_rank
from mpiio_ext.analytics.diagnosis.model import Advice, Claim, Evidence, Finding
from mpiio_ext.analytics.diagnosis.words import sized, worded
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import count_text

#: Share of the calls of the rank with most of them from which on each other rank makes as many.
_ALIKE = 0.9


@dataclasses.dataclass(frozen=True)
class Counted:
    """How often ranks make calls of one kind (`opens`, `stats`, `renames`, `seeks`), and which ranks make so many."""

    name: str
    number: float
    whose: str

    @classmethod
    def of(cls, name: str, each: Numbers, exact: bool) -> Counted:
        """Return the same of the calls of each rank; not `exact`: of ranks, only the sum is known."""
        busiest, mean = int(each.argmax()), float(each.mean())
        if exact and each.min() >= _ALIKE * each.max():
            return cls(name, mean, "each rank")
        if each[busiest] > 0.5 * each.sum():
            return cls(name, float(each[busiest]), f"rank {busiest}")
        return cls(name, mean, "an average rank")


def _counted(case: Case, chosen: Flags) -> list[Counted]:
    """Return the kinds of metadata calls on chosen files that have many calls, the kind with most calls first.

    Seeks count where a rank makes few other calls: a seek that fetches no data takes hardly any time.
    """
    found, exact = case.ledger_of(chosen).counts()
    named = max(float(found[name].max()) for name in ("opens", "stats", "renames"))
    often = named >= case.limits.many_opens
    there = {name: each for name, each in found.items() if each.max() >= (max(0.1 * named, 0.5) if often else 0.5)}
    if often:
        there.pop("seeks", None)
    return sorted((Counted.of(name, each, exact) for name, each in there.items()), key=lambda one: -one.number)


def metadata(case: Case) -> Finding | None:
    """Opens, stats and syncs take the time of each process."""
    files = case.files
    (meta, data), calls = case.rank_time, np.nan_to_num(files["meta_time"])
    if _only_streams(files):
        return None  # the calls are those of the files of the other direction
    if (again := _reopened(case)) is not None and again.time > meta:
        return again
    if not case.metadata >= case.limits.metadata or meta > 1.1 * case.run_time:
        return None  # of threads, or blocked in a pipe: no rank spends more time than there is
    shared = files["ranks"] > 1
    of_a_rank = calls / np.where(shared, files["ranks"], 1.0)
    together = bool(of_a_rank[shared].sum() >= 0.5 * meta)
    opens = float(np.nansum(case.opens / np.where(shared, files["ranks"], max(case.processes, 1.0))))
    opens = opens if case.alone is None else max(opens, case.alone[2])
    chosen = calls > 0
    chosen &= shared if together else chosen
    counted = _counted(case, chosen)
    opens = max([opens, *(one.number for one in counted if one.name != "seeks")])
    much = meta >= case.limits.much_metadata * case.run_time
    sure = (meta >= data or (not together and _stormed(case))) and opens >= case.limits.many_opens and much
    if much and meta >= data and opens < case.limits.many_opens and (found := _seeks(case, meta)) is not None:
        return found
    often = _again_and_again(case, chosen)
    of_all, own = together and bool((files["ranks"] >= case.processes)[chosen].all()), case.of_slowest(chosen)
    files_of_all, mean = int(np.count_nonzero(chosen)) if of_all else 0, ", on average" if together else ""
    claim = Claim(
        title=_storm(case, counted, files_of_all, often, sure),
        what=_calls(case, counted, chosen, int(np.count_nonzero(own))),
        time=min(meta, case.run_time),
        confidence="high" if sure else "medium",
        reason=(
            "the log has the time of metadata calls of all ranks together; each rank counts with an equal share of"
            " the time"
            if together
            else "the log has the times of the ranks that make the calls, but not whether other ranks wait meanwhile"
        )
        + ("" if sure else "; but a process makes few calls, or the calls take little of the run time"),
        evidence=[
            *case.evidence(f"{'' if together else 'longest '}time of a rank in metadata calls{mean}", meta, "s"),
            *case.evidence("longest time of a rank in reads and writes", data, "s"),
            *case.evidence("metadata calls, as a share of the sum of both times", case.metadata, "share"),
            *(each for one in counted for each in case.evidence(f"{one.name} of {one.whose}", one.number, "count")),
            *_below(case, chosen),
            *case.evidence("processes", case.processes, "count"),
            *case.evidence("files", float(np.count_nonzero(chosen)), "count"),
        ],
        advice=[_fewer_calls(case, counted, chosen, often)],
    )
    return case.finding(SHARED_OPENS if together and often and sure else METADATA, claim, chosen=chosen)


def _again_and_again(case: Case, chosen: Flags) -> bool:
    """Return whether most of the metadata time is of files that a process opens, or looks up, many times."""
    files, stats = case.files, np.array([float(calls.stats) for calls in case.calls])
    times = (np.nan_to_num(case.opens) + stats) / np.maximum(np.nan_to_num(files["ranks"]), 1.0)
    meta = np.where(chosen, np.nan_to_num(files["meta_time"]), 0.0)
    return bool(meta[times >= case.limits.many_opens].sum() >= 0.5 * meta.sum() > 0)


def _fewer_calls(case: Case, counted: Sequence[Counted], chosen: Flags, again: bool) -> Advice:
    """Return advice on the metadata calls that were made; `again`: many of them are on the same files."""
    names = [one.name for one in counted]
    opens = "opens" in names or not names
    many = opens and np.count_nonzero(chosen) >= case.limits.many_opens
    each = max((one.number for one in counted if one.name == "stats"), default=0.0)
    polled = each >= case.limits.polls * max(int(np.count_nonzero(chosen)), 1)
    return say.metadata(
        again=again and opens, many=bool(many), stats="stats" in names, polled=bool(polled), renames="renames" in names
    )


def _only_streams(files: Files) -> bool:
    """Return whether what moves this way are standard streams alone, and other files move the other way."""
    names = files.table["file"].to_pylist() if "file" in files.table.schema.names else []
    streams = np.array([bool(name and name.startswith("<STD")) for name in names], bool)
    other = files.timed("read" if files.direction == "write" else "write")
    return bool(len(streams) and files.timed().any() and streams[files.timed()].all() and (other & ~streams).any())


def _stormed(case: Case) -> bool:
    """Return whether much of the time belongs to files opened for little data, with more time for metadata.

    By their data and not by their time: of many files that are alike, some have slow opens by chance.
    """
    files = case.files
    moved = np.nan_to_num(files["bytes_read"]) + np.nan_to_num(files["bytes_written"])
    there = moved <= case.limits.tiny_bytes * np.nan_to_num(case.opens)
    meta, data = case.busiest("meta", chosen=there), case.busiest("read", "write", chosen=there)
    return meta >= data and meta >= case.limits.metadata * sum(case.rank_time)


def _storm(case: Case, counted: Sequence[Counted], shared: int, again: bool, sure: bool) -> str:
    """Return the activity of metadata calls, in words: of all ranks, or of the few that make nearly all of them.

    `counted`: the calls; `shared`: the number of files that all processes open; `again`: each process opens a file many
    times.
    """
    calls = f"metadata calls ({_listed([one.name for one in counted]) or 'open, stat, seek'})"
    if case.alone is not None:
        few = case.alone[0]
        more = f" and {len(few) - MOST_NAMES:,} more" if len(few) > MOST_NAMES else ""
        names = f"{', '.join(map(str, few[:MOST_NAMES]))}{more}"
        whose = f"{calls} of rank {few[0]} alone" if len(few) == 1 else f"{calls} of ranks {names}"
        who, its = ("one rank", "its") if len(few) == 1 else (f"{len(few):,} ranks", "their")
        return (
            f"Metadata storm of {who}: {whose} take most of {its} I/O time."
            if sure
            else f"{whose[0].upper()}{whose[1:]} take much of the I/O time."
        )
    if not sure:
        return f"{calls[0].upper()}{calls[1:]} take much of the I/O time."
    who = "Metadata storm"
    if shared:
        which = "same file" if again or shared == 1 else f"same {worded(case.value(shared), 'count')} files"
        who = f"Every process opens or looks up the {which}{' again and again' if again else ''}"
    part = "most" if case.metadata >= 0.5 else "much"
    return f"{who}: {calls} take {part} of the I/O time of each process."


def _below(case: Case, chosen: Flags) -> list[Evidence]:
    """Return how often files are opened below the program's own calls, where that is more often."""
    files, below = case.files, np.where(chosen, case.files["opens"] - case.opens, 0.0)
    each = float(np.nansum(below / np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)))
    return (
        case.evidence("opens that MPI libraries make in addition, of each process", each, "count") if each >= 1 else []
    )


def _seeks(case: Case, meta: float) -> Finding | None:
    """Small pieces through the C library: the time of few opens is spent on seeks, which drop the library's buffer."""
    files, limits = case.files, case.limits
    counts, posix = np.nan_to_num(files["{requests}"]), files.requests("read") + files.requests("write")
    chosen = counts >= limits.many_opens * 100 * np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    chosen &= ~(posix > 0) & (files["{bytes}"] <= limits.tiny_bytes * counts)
    time = min(meta, float(np.nansum((files["meta_time"] / np.maximum(files["ranks"], 1.0))[chosen])))
    if not time >= 0.5 * meta:
        return None
    mean = case.total("{bytes}", chosen) / float(counts[chosen].sum())
    claim = Claim(
        title=f"Small pieces are {'written' if case.write else 'read'} through the C library, with seeks between them.",
        what=f"{sized(case.value(mean), files.direction + 's')}{case.at(chosen)} through the C library, with seeks"
        f" between the {files.direction}s",
        time=case.busiest("meta", files.direction, chosen=chosen),
        confidence="high",
        reason=(
            "calls that are neither reads nor writes take more time than reads and writes; opens are few, so most"
            " of these calls are seeks"
        ),
        evidence=[
            *case.evidence("mean request", mean, "B", exact=True),
            *case.evidence("requests", float(counts[chosen].sum()), "count"),
            *case.evidence("longest time of a rank in seeks and the like", time, "s"),
        ],
        advice=[say.larger_requests(files.direction, alone=case.lonely)],
    )
    return case.finding(SEEKS, claim, chosen=chosen)


SEEKS = Cause(
    name="seeks",
    rule=metadata,
    cells=Cells(("data", "open"), ("STDIO",)),
    effects=("small_requests", "small_files"),
    section="Small requests, one by one",
    mechanism="A seek empties the buffer of the C library: it reads a whole buffer again, or writes the buffer.",
    condition=(
        "Seeks and other calls without data take {metadata} of the time that a rank is in calls, longer than its reads"
        " and writes, and {much_metadata} of the run time. A process makes fewer than {many_opens} opens, and 100 times"
        " as many calls of the C library, of at most {tiny_bytes} each. Or such calls of the C library take"
        " {slow_request} each, and {non_consecutive} of the calls follow a seek."
    ),
    sure=ALWAYS,
    sentences=("Small pieces are ",),
    advice=(
        Offer("if several processes work", say.larger_requests),
        Offer("if one process, or a program without MPI, works", lambda way: say.larger_requests(way, alone=True)),
    ),
)


def _reopened(case: Case) -> Finding | None:
    """All ranks open a file by MPI-IO for each request or two: few calls reach the file system, and each takes long."""
    files, limits = case.files, case.limits
    ranks = np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    requests = files.requests("read") + files.requests("write")
    chosen = files.critical & (ranks > 1) & (case.opens >= limits.many_opens * ranks)
    chosen &= (case.opening > 0) & (requests <= limits.requests_of_an_open * case.opens)
    time = case.busiest("meta", layer="MPI-IO", chosen=chosen)
    if not time >= limits.metadata * case.time:
        return None
    sure = time >= 0.5 * case.time and time >= limits.much_metadata * case.run_time
    opens = float(np.nansum((case.opens / ranks)[chosen]))
    claim = Claim(
        title="Every process opens the same file again and again through MPI-IO: these opens take most of the I/O time."
        if sure
        else "Opens of the same file through MPI-IO take much of the I/O time.",
        what=_calls(case, [Counted("opens", opens, "each rank")], chosen),
        time=time,
        confidence="high" if sure else "medium",
        reason="time of a rank in MPI-IO calls that open, close and set views; the time includes waits for other ranks",
        evidence=[
            *case.evidence("opens of a process", opens, "count"),
            *_below(case, chosen),
            *case.evidence("requests of a process", float(np.nansum((requests / ranks)[chosen])), "count"),
            *case.evidence("longest time of a rank in opens and the like", time, "s"),
        ],
        advice=[say.metadata(again=True)],
    )
    return case.finding(SHARED_OPENS if sure else METADATA, claim, chosen=chosen)


#: Calls by the names of their counts.
_CALLS = {"opens": "opens", "stats": "stat calls", "renames": "renames", "seeks": "seeks"}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(_CALLS[name] for name in names)


def _count(number: int, name: str, least: str) -> str:
    """Return "401 opens", or without a name "401 times"."""
    return f"{least}{f'{number:,} {_CALLS[name]}' if name else count_text(number, 'time')}"


def _calls(case: Case, counted: Sequence[Counted], chosen: Flags, files: int = 1) -> str:
    """Return which calls there are, of how many files, and how many a rank makes."""
    least = "at least " if case.activity is not None and case.activity.lost else ""
    calls, of = _listed([one.name for one in counted]) or "metadata calls (open, stat, seek)", case.at(chosen, "of")
    if files > 1:
        of = f" of {least}{count_text(case.value(files), 'file')}{case.such_as(chosen)}"
    counts = [_count(round(case.value(one.number)), one.name if files > 1 else "", least) for one in counted]
    by = {one.whose for one in counted}
    return f"{calls}{of} ({' and '.join(counts)} by {next(iter(by))})" if len(by) == 1 else f"{calls}{of}"


METADATA = Cause(
    name="metadata",
    rule=metadata,
    cells=Cells(("open", "stat", "rename", "unlink", "other")),
    effects=("small_files",),
    section="Opening, metadata, many small files",
    time_is="the time of these calls",
    mechanism="Opens, stats and seeks move no data. `shared_opens`: all ranks open the same files.",
    condition="Opens, stats and seeks take {metadata} of the time that a rank is in calls.",
    sure=(
        "if a process makes {many_opens} opens, and the calls take {much_metadata} of the run time; and the calls take"
        " half of the time that a rank is in calls, or the job opens files for little data"
    ),
    sentences=("Metadata ", "Every process opens", "Opens of the same file"),
    advice=(
        Offer(
            "if a process opens, or looks up, most of the files {many_opens} times", lambda _: say.metadata(again=True)
        ),
        Offer("if the job opens {many_opens} files", lambda _: say.metadata(again=False, many=True)),
        Offer(
            "if the calls are stats, and a process makes {polls} stats of each file",
            lambda _: say.metadata(again=False, polled=True),
        ),
        Offer("if the calls are renames", lambda _: say.metadata(again=False, renames=True)),
        Offer(
            "if the calls are stats, and a process makes fewer stats of each file",
            lambda _: say.metadata(again=False, stats=True),
        ),
        Offer("if none of these conditions is true", lambda _: say.metadata(again=False)),
    ),
    moves_data=False,
    of_opening=True,
)


SHARED_OPENS = dataclasses.replace(
    METADATA,
    name="shared_opens",
    cells=Cells(("open", "stat", "rename", "unlink", "other")),
    effects=("small_files", "stragglers", "waiting_calls"),
)


def opening(case: Case) -> Finding | None:
    """MPI-IO calls that open and close files take most of the time, and the POSIX calls below do not."""
    chosen, each = case.opening > 0, np.maximum(np.nan_to_num(case.files["ranks"], nan=1.0), 1.0)
    time = float(case.ledger.opening().max())
    data = max(case.rank_time[1], case.busiest("read", "write", layer="MPI-IO"))
    opens = float(np.nansum((case.opens / each)[chosen]))
    least = case.limits.slow_opening if opens < case.limits.many_opens else 0.0  # one open is in the best of runs
    enough = time >= max(data, least, case.limits.much_metadata * float(np.nan_to_num(case.run_time)))
    if not chosen.any() or not enough or metadata(case) is not None or late_rank(case) is not None:
        return None
    claim = Claim(
        title="MPI-IO calls that open and close files, or set views, take most of the I/O time.",
        time=time,
        confidence="medium",
        reason=(
            "time of a rank in these calls; whether the MPI library works there, or ranks wait for one another, is not"
            " in the log"
        ),
        evidence=[
            *case.evidence("opens of a process", opens, "count"),
            *case.evidence("longest time of a rank in reads and writes", data, "s"),
            *case.evidence("run time", case.run_time, "s"),
        ],
        advice=[say.open_once(again=bool((case.opens >= 2 * each)[chosen].any()))],
        by_times=opens < case.limits.many_opens,
    )
    return case.finding(OPENING, claim, chosen=chosen)


OPENING = Cause(
    name="opening",
    rule=opening,
    cells=Cells(("open", "other"), ("MPI-IO",)),
    phrase="opening and closing files, and other calls that neither read nor write",
    section="Opening, metadata, many small files",
    time_is="the time of these calls",
    mechanism="The MPI library opens files, closes files, or sets views; or ranks wait for one another in such calls.",
    condition=(
        "Without waits for a slower rank, calls of MPI-IO that open, close or set views take half of the time that a"
        " rank is in calls, and {much_metadata} of the run time. The calls take {slow_opening}, or a process makes"
        " {many_opens} opens. No rank is late. The calls of POSIX inside of them take less than {metadata}."
    ),
    sentences=("MPI-IO calls that open and close files",),
    advice=(
        Offer("if a process opens a file twice or more", lambda _: say.open_once()),
        Offer("if each process opens each file once", lambda _: say.open_once(again=False)),
    ),
    moves_data=False,
    of_opening=True,
    often_free=True,
)


def syncs(case: Case) -> Finding | None:
    """Writes are followed by syncs."""
    files, limits, writes = case.files, case.limits, case.files.requests("write")
    if files.direction != "write":
        return None
    chosen = files.counted & (case.syncs > 0) & (case.syncs >= limits.synced * writes)
    of_ranks = np.maximum(np.nan_to_num(files["ranks"]), 1.0)
    if not float(case.syncs[chosen].sum()) >= limits.many_syncs * case.processes:  # else of single files
        chosen &= case.syncs >= limits.many_syncs * of_ranks
    if not chosen.any():
        return None
    each = case.total("write_time", chosen) / float(case.syncs[chosen].sum())
    known = [place for place, _ in case.traced(chosen)]
    alone = _of_a_rank(case, case.syncing, chosen) if len(known) == int(chosen.sum()) else float("nan")
    both = case.busiest("write", "sync", chosen=chosen)
    whole = max(case.time, both)  # DXT has no syncs
    if both < 0.5 * limits.busy_sync * whole:
        return None
    time = both if np.isnan(alone) else alone
    sure = each >= limits.slow_sync and both >= limits.busy_sync * whole
    claim = Claim(
        title="Syncs (fsync) follow the writes again and again: each sync waits for the storage.",
        time=time,
        confidence="high" if sure else "medium",
        reason="Darshan counts syncs; the time of writes includes the time of syncs"
        + ("" if sure else "; but a sync takes little time, or syncs and writes take little of the critical time"),
        evidence=[
            *case.evidence("syncs", float(case.syncs[chosen].sum()), "count"),
            *case.evidence("writes", float(np.nansum(files["{requests}"][chosen])), "count"),
            *case.evidence("time of a sync, with the writes before the sync", each, "s"),
            *case.evidence("time of a rank in syncs, without the writes (DXT)", alone, "s"),
            *case.evidence("syncs and writes of a rank, as a share of the time in I/O", both / whole, "share"),
        ],
        advice=[say.FEWER_MPI_SYNCS if case.uses_mpiio else say.FEWER_SYNCS],
        at_most=bool(np.isnan(alone)),
        costs=sure,
    )
    return case.finding(SYNCS, claim, chosen=chosen)


def _of_a_rank(case: Case, times: Numbers, chosen: Flags) -> float:
    """Return the time (s) of a rank on the chosen files, of that on each: ranks with own files work side by side.

    DXT shows the ranks of each file, and then the time is that of the rank with most; else files of one rank each are
    spread evenly over ranks, except rank 0's.
    """
    rows = [(place, case.rows[place]) for place in np.flatnonzero(chosen).tolist()]
    if all(row is not None for _, row in rows):
        by_rank: dict[int, float] = {}
        for place, row in rows:
            for rank in row.ranks.tolist() if row is not None else ():
                by_rank[rank] = by_rank.get(rank, 0.0) + float(times[place])
        return max(by_rank.values(), default=0.0)
    files = case.files
    alone, root = files["ranks"] == 1, files["root_bytes_written"] >= np.maximum(files["bytes_written"], 1.0)
    shared, own, others = (float(np.nansum(times[chosen & kind])) for kind in (~alone, alone & root, alone & ~root))
    side = min(case.processes, float((chosen & alone & ~root).sum()))
    return shared + max(own, others / max(side, 1.0))


SYNCS = Cause(
    name="syncs",
    rule=syncs,
    cells=Cells(("sync", "write")),
    effects=("small_requests", "small_files", "serialised", "slowed_down", "unaligned"),
    phrase="syncs after {way}s{at}",
    section="Syncs and shared file pointers",
    time_is="the time of these syncs",
    mechanism="Each sync waits for the storage.",
    condition="A file has {synced} syncs for each write, and {many_syncs} for each rank.",
    sure="if a sync takes {slow_sync}, and syncs take {busy_sync} of the critical time",
    sentences=("follow the writes again and again",),
    advice=(Offer(OF_MPI, lambda _: say.FEWER_MPI_SYNCS), Offer("else", lambda _: say.FEWER_SYNCS)),
)
