"""The rules about ranks: one or few do the work, some have more of it, or all wait for metadata.

Problem. A sum over ranks does not show what the job waits for: it waits for one rank, the slowest.

Algorithm. Times and bytes of one rank (:mod:`.ranks`) are held against the critical time and against the bytes of the
file. Confidence is high where both speak for the cause: the rank has the bytes, and it spends the time.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import MOST_NAMES, Case
from mpiio_ext.analytics.diagnosis.causes_calls import small_rounds
from mpiio_ext.analytics.diagnosis.causes_time import late_rank, slowed_down, waiting_for_late
from mpiio_ext.analytics.diagnosis.model import Advice, Evidence, Finding
from mpiio_ext.analytics.diagnosis.ranks import metadata_and_data, of_all, time_in_calls
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.files import Files
from mpiio_ext.analytics.tables.arrays import Flags, Numbers

#: Ranks in a request at once, on average, up to which no two ever are, but for the clocks.
_ALONE = 1.02


def filled(case: Case) -> Flags:
    """Return for each file whether no MPI-IO call asked for many of its bytes: something has filled it."""
    files, limits = case.files, case.limits
    sieved = np.nan_to_num(files["bytes_read"]) >= limits.read_modify_write * files["{bytes}"]
    return np.asarray(case.write & (files["{bytes}"] >= limits.amplified * files["mpiio_bytes_written"]) & ~sieved)


def _by_one(case: Case) -> Flags:
    """Return for each file whether its bytes are not those of many ranks, though its calls are collective.

    One rank gives them all, or something else has filled the file, as MPI_File_preallocate does.
    """
    given = np.array([calls.given for calls in case.calls])
    return case.collective & (filled(case) | (given >= case.limits.one_rank))


def busy_share(case: Case, chosen: Flags) -> float:
    """Return the share of the chosen files' exclusive time in which their slowest rank is in data calls."""
    time = float(case.exclusive[chosen].sum())
    return float(np.nansum(case.in_calls[chosen])) / time if time > 0 else 0.0


def _all_move(case: Case) -> Flags:
    """Return for each file whether the rank that moves least moves more than a header: ranks differ then, no more."""
    files = case.files
    other = np.nan_to_num(files["bytes_read"]) + np.nan_to_num(files["bytes_written"]) - np.nan_to_num(files["{bytes}"])
    least = np.fmin(files["fastest_rank_bytes"], files["slowest_rank_bytes"]) - other / np.maximum(files["ranks"], 1.0)
    for place, row in case.traced(files.critical):
        least[place] = row.moved.min() if len(row.ranks) >= files["ranks"][place] else 0.0
    most = np.fmax(files["fastest_rank_bytes"], files["slowest_rank_bytes"])
    return np.asarray(least >= 0.02 * np.where(most > 0, most, np.inf))


def root_writes(case: Case) -> Finding | None:
    """One process moves most of the data, without collective calls."""
    files, limits = case.files, case.limits
    moved, total = np.nan_to_num(files["{bytes}"]), float(files.sum(files["{bytes}"])[0])
    known = float(files.sum(np.where(np.isnan(files["root_bytes_written"]), 0.0, moved))[0]) / max(total, 1.0)
    root = case.per_job.get("root_writes", float("nan")) * known  # at least: of the other bytes, it may have none
    of_root = files["root_bytes_written"] >= limits.root * files["bytes_written"]
    own = files.critical & (~case.collective | _by_one(case))
    single = own & (case.movers * limits.one_rank <= 1) & ~_all_move(case)
    largest = int(np.argmax(np.where(single, moved, -1)))
    share, chosen = moved[largest] / total if single.any() and total > 0 else 0.0, np.arange(len(files)) == largest
    if root >= share:
        share, chosen = root, files.critical & of_root
    alone = _of_one(case, own)
    if alone is not None and alone[1] > share:
        rank, share, chosen = *alone, own & (moved > 0) & ~(case.movers >= 2)
        of_root = np.full(len(files), rank == 0)
    by_root = (bool(of_root[chosen].all()) and files.direction == "write") or files["slowest_rank"][largest] == 0
    enough = limits.one_rank if not root >= share else max(limits.root, min(2 / case.processes, limits.one_rank))
    if not case.processes > 1 or not share >= enough or not chosen.any() or total < limits.one_rank_bytes:
        return None
    busy, verb = busy_share(case, chosen) >= limits.busy_rank, f"{files.direction}s"
    most = share >= limits.one_rank
    if not most and few_writers(case) is not None:
        return None
    sure, part = most and busy, "most" if most else worded(case.value(share), "share")
    return case.finding(
        "root_writes" if files.direction == "write" else "root_reads",
        f"{'Rank 0' if by_root else 'One rank'} {verb} {part} of the data.",
        float(case.in_calls[chosen].sum()),
        "high" if sure else "medium",
        "bytes of each rank are in the log"
        + ("" if sure else "; the rank is in calls for a small part of the time only, or others have some"),
        [
            *case.evidence(
                f"bytes that {'rank 0' if by_root else 'it'} {'wrote' if verb == 'writes' else 'read'}", share, "share"
            ),
            *case.evidence("an equal part would be", 1 / case.processes, "share"),
            *case.evidence("processes", case.processes, "count"),
            *case.evidence("time of the rank in calls, of the critical time", busy_share(case, chosen), "share"),
        ],
        [say.parallel_root(files.direction, filled=bool((case.collective & filled(case) & chosen).any()))],
        chosen,
        at_most=True,
        costs=sure,
    )


def _of_one(case: Case, own: Flags) -> tuple[int, float] | None:
    """Return the rank that moves nearly all bytes, in whatever files of these, and its share of all; None without.

    HEATMAP has the bytes of each rank.
    """
    heat = None if case.activity is None else case.activity.heat.get(case.write)  # of all bytes, or it is not there
    if heat is None or len(heat) < 2 or not 0 < heat.max() * 0.02 > heat.min():
        return None  # all move more than a header: ranks differ then, no more
    rank, moved = int(np.argmax(heat)), np.nan_to_num(case.files["{bytes}"])
    share = min(float(heat[rank] / heat.sum()), float(moved[own].sum() / max(moved.sum(), 1.0)))
    return (rank, share) if share >= case.limits.one_rank else None


def few_writers(case: Case) -> Finding | None:
    """At most half of the processes move all data, without collective calls: by HEATMAP, or by files of one each."""
    files, limits, ranks = case.files, case.limits, case.processes
    heat = None if case.activity is None else case.activity.heat.get(case.write)
    moved = np.nan_to_num(files["{bytes}"]) if heat is None else heat
    if not moved.sum() >= limits.aggregated_bytes:
        return None
    large = moved > 0.02 * moved.max()
    if heat is None and not (files["ranks"][large] == 1).all():
        return None
    count = float(large.sum())
    chosen = files.critical & (files["{bytes}"] > 0)
    if not 2 <= count <= ranks / 2 or (case.collective & chosen).any() or busy_share(case, chosen) < limits.busy_rank:
        return None
    verb = "write" if case.write else "read"
    return case.finding(
        "few_writers" if case.write else "few_readers",
        f"{'' if heat is not None else 'At most '}{worded(case.value(count), 'count')} of"
        f" {worded(case.value(ranks), 'count')} processes {verb} all of the data.",
        float(case.in_calls[chosen].sum()),
        "medium",
        ("each of the files has one process" if heat is None else "HEATMAP has the bytes of each rank")
        + "; that the others wait meanwhile is not in the log",
        [
            *case.evidence("processes that move data", count, "count"),
            *case.evidence("processes", ranks, "count"),
            *case.evidence(
                "time of the slowest of them in calls, of the critical time", busy_share(case, chosen), "share"
            ),
        ],
        [say.parallel_root(files.direction)],
        chosen,
        at_most=True,
    )


#: Why too few aggregators are not sure, where their calls take less than half of the run, and where these take more.
_UNSURE = {
    False: "; but one on each node is the usual number, and the calls take less than half of the run",
    True: "; but it hardly is in calls, or these are slow, as of a loaded server, or another is late",
}


def few_aggregators(case: Case) -> Finding | None:
    """Collective calls are carried out by one process, or by hardly any."""
    files, limits, ranks = case.files, case.limits, case.files["ranks"]
    stripes = np.nan_to_num(files["stripe_count"], nan=1.0)
    movers, busy = _at_once(case)
    few = (movers * limits.one_rank <= 1) | ((movers <= ranks / 16) & (2 * movers <= stripes))
    chosen = files.critical & case.collective & ~_by_one(case) & (ranks > 1) & few
    chosen &= files["{bytes}"] >= limits.aggregated_bytes  # a single round of the exchange needs one aggregator
    chosen &= ~(files["{bytes}"] * ranks <= limits.tiny_bytes * files["{collective}"])  # and so do tiny ones
    if not chosen.any():
        return None
    row = next(row for row in case.order if chosen[row])
    count, whole = round(float(movers[row])), float(case.exclusive[chosen].sum())
    part, moved = float(busy[chosen].sum()) / whole if whole > 0 else 0.0, case.total("{bytes}", chosen)
    rate = moved / max(part * whole, 1e-9)
    who = f"{count} of {worded(case.value(ranks[row]), 'count')} processes"
    in_turn = bool(case.movers[row] > 1.5 * movers[row])  # seen by times, which a busy machine makes as well
    who += " at a time" if in_turn else ""
    late = sum(waiting_for_late(case, place) for place in case.order if chosen[place])  # not for the aggregator
    wide = ranks[row] >= limits.node_ranks * count
    if not wide and whole < limits.aggregated * case.run_time:
        return None
    much = wide or not whole - late < limits.much_aggregated * case.run_time
    sure = much and part >= limits.busy_aggregator and not late >= limits.late * whole
    slow = rate < limits.slow_rank and bool((case.request_bytes > limits.tiny_bytes)[chosen].all())
    sure &= not slow and slowed_down(case) is None  # else it is the storage that the process waits for
    sure &= not small_rounds(case)[chosen].any()  # which any number of aggregators makes
    return case.finding(
        "few_aggregators",
        f"Too few aggregators: {who} {files.direction}{'s' * (count == 1)} all the data of the collective calls.",
        max(0.0, whole - late),
        "high" if sure else "medium",
        "the slowest rank has the bytes of the file, the calls are collective" + (_UNSURE[much] if not sure else ""),
        [
            *case.evidence("bytes of the file over those of its slowest rank", float(case.movers[row]), "ratio"),
            *case.evidence("bandwidth in its calls", rate, "B/s"),
            *case.evidence("processes that opened it", float(ranks[row]), "count"),
            *case.evidence("OSTs of the file", float(files["stripe_count"][row]), "count"),
            *case.evidence("time of that rank in calls, of the critical time", part, "share"),
            *case.in_mpiio(chosen, whole - late),
        ],
        _more_aggregators(case, row),
        chosen,
        at_most=True,
        costs=sure,
        by_times=in_turn,
    )


def _at_once(case: Case) -> tuple[Numbers, Numbers]:
    """Return how many ranks move the bytes of each file at once, and the time (s) in which they do.

    An aggregator may be another rank in each call: of all calls each rank has its part then, never two at once, and the
    others are in the call meanwhile. DXT shows it. Several aggregators begin together, when the exchange is done.
    """
    movers, busy = case.movers.copy(), case.in_calls.copy()
    for place, row in case.traced(case.files.critical & case.collective):
        alone = row.together <= _ALONE and row.called_for >= case.limits.waits
        alone &= row.wall >= case.limits.busy_aggregator * row.called  # else no request is what the calls wait for
        if alone and row.requests.sum() >= 3 * len(row.ranks):
            movers[place], busy[place] = 1.0, max(busy[place], min(row.wall, float(case.exclusive[place])))
    return movers, busy


def _more_aggregators(case: Case, row: int) -> list[Advice]:
    """Return how a file gets more aggregators; one stripe has one, since more would wait for one another there."""
    count, ranks = float(case.files["stripe_count"][row]), float(case.files["ranks"][row])
    if count == 1:
        return say.stripes(ranks, count, case.known_osts)
    wanted = 8 if np.isnan(count) else 2 * count
    return [say.aggregators(case.files.direction, max(2, int(min(ranks, wanted))))]


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
    much = meta >= case.limits.much_metadata * case.run_time
    sure = (meta >= data or (not together and _stormed(case))) and opens >= case.limits.many_opens and much
    if much and meta >= data and opens < case.limits.many_opens and (found := _seeks(case, meta)) is not None:
        return found
    often = _again_and_again(case, chosen)
    files_of_all = int(np.count_nonzero(chosen)) if together else 0
    return case.finding(
        "shared_opens" if together and often and sure else "metadata",
        _storm(case, files_of_all, often, sure),
        min(meta, case.run_time),
        "high" if sure else "medium",
        (
            "times of calls over all ranks, divided by the ranks that made them"
            if case.alone is None
            else "times of calls of these ranks; that the others wait for them is not in the log"
        )
        + ("" if sure else "; few opens of each process, or not much of the run time"),
        [
            *case.evidence("metadata calls of a process", meta, "s"),
            *case.evidence("reads and writes of a process", data, "s"),
            *case.evidence("metadata, of its time in calls", case.metadata, "share"),
            *case.evidence("opens of a process", opens, "count"),
            *_below(case, chosen),
            *case.evidence("processes", case.processes, "count"),
            *case.evidence("files", float(np.count_nonzero(chosen)), "count"),
            *case.evidence("run time", case.run_time, "s"),
        ],
        [_fewer_calls(case, chosen, often)],
        chosen,
        whole=max(case.time, meta + data),
    )


def opening(case: Case) -> Finding | None:
    """MPI-IO calls that open and close files take most of the time, and those of POSIX below do not."""
    files, processes = case.files, case.processes if case.processes > 0 else 1.0
    chosen, each = case.opening > 0, np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    moving = np.array([sum(calls.mpi.values()) for calls in case.calls])
    time = of_all(files, np.maximum(case.opening, np.nan_to_num(files["meta_time"]) / each), processes)
    data = max(case.rank_time[1], of_all(files, moving, processes))
    opens = float(np.nansum((case.opens / each)[chosen]))
    least = case.limits.slow_opening if opens < case.limits.many_opens else 0.0  # one open is in the best of runs
    enough = time >= max(data, least, case.limits.much_metadata * float(np.nan_to_num(case.run_time)))
    if not chosen.any() or not enough or metadata(case) is not None or late_rank(case) is not None:
        return None
    return case.finding(
        "opening",
        "MPI-IO calls that open and close files, or set views, take most of the I/O time.",
        time,
        "medium",
        "time of a rank in these calls; whether the MPI library works there, or ranks wait for one another, is not in"
        " the log",
        [
            *case.evidence("opens of a process", opens, "count"),
            *case.evidence("reads and writes of a process", data, "s"),
            *case.evidence("run time", case.run_time, "s"),
        ],
        [say.open_once(again=bool((case.opens >= 2 * each)[chosen].any()))],
        chosen,
        whole=time + data,
    )


def _again_and_again(case: Case, chosen: Flags) -> bool:
    """Return whether most of the metadata time is of files that a process opens, or looks up, many times."""
    files, stats = case.files, np.array([float(calls.stats) for calls in case.calls])
    times = (np.nan_to_num(case.opens) + stats) / np.maximum(np.nan_to_num(files["ranks"]), 1.0)
    meta = np.where(chosen, np.nan_to_num(files["meta_time"]), 0.0)
    return bool(meta[times >= case.limits.many_opens].sum() >= 0.5 * meta.sum() > 0)


def _fewer_calls(case: Case, chosen: Flags, again: bool) -> Advice:
    """Return what to do about the metadata calls that there are; `again`: many of them are of the same files."""
    files = max(1.0, float(np.count_nonzero(chosen)))
    calls = [each for each, it in zip(case.calls, chosen, strict=True) if it]
    return say.metadata(
        again=again,
        many=files >= case.limits.many_opens,
        stats=any(each.stats for each in calls),
        syncs=any(each.syncs + each.flushes for each in calls),
    )


def _only_streams(files: Files) -> bool:
    """Return whether what moves this way are standard streams alone, and other files move the other way."""
    names = files.table["file"].to_pylist() if "file" in files.table.schema.names else []
    streams = np.array([bool(name and name.startswith("<STD")) for name in names], bool)
    other = files.timed("read" if files.direction == "write" else "write")
    return bool(len(streams) and files.timed().any() and streams[files.timed()].all() and (other & ~streams).any())


def _stormed(case: Case) -> bool:
    """Return whether files that are opened for little data, and take more time for metadata, take much of the time.

    By their data and not by their time: of many files that are alike, some have slow opens by chance.
    """
    files = case.files
    moved = np.nan_to_num(files["bytes_read"]) + np.nan_to_num(files["bytes_written"])
    there = moved <= case.limits.tiny_bytes * np.nan_to_num(case.opens)
    meta, data = metadata_and_data(files, case.processes if case.processes > 0 else 1.0, there)
    return meta >= data and meta >= case.limits.metadata * sum(case.rank_time)


def _storm(case: Case, shared: int, again: bool, sure: bool) -> str:
    """Return what metadata calls do, in words: of all ranks, or of the few that make nearly all of them.

    `shared`: so many files that all processes open; `again`: each of them many times.
    """
    calls = "metadata calls (open, stat, seek, sync)"
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
    return case.evidence("further opens of a process, by MPI-IO libraries", each, "count") if each >= 1 else []


def _seeks(case: Case, meta: float) -> Finding | None:
    """Small pieces through the C library: what takes the time of few opens is the seeks, which drop its buffer."""
    files, limits = case.files, case.limits
    counts, posix = np.nan_to_num(files["{requests}"]), files.requests("read") + files.requests("write")
    chosen = counts >= limits.many_opens * 100 * np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    chosen &= ~(posix > 0) & (files["{bytes}"] <= limits.tiny_bytes * counts)
    time = min(meta, float(np.nansum((files["meta_time"] / np.maximum(files["ranks"], 1.0))[chosen])))
    if not time >= 0.5 * meta:
        return None
    return case.finding(
        "small_requests",
        f"Small pieces are {'written' if case.write else 'read'} through the C library, with seeks between them.",
        time,
        "high",
        "calls that are neither reads nor writes take more time than these; there are few opens, so they are seeks",
        [
            *case.evidence("mean request", case.total("{bytes}", chosen) / float(counts[chosen].sum()), "B"),
            *case.evidence("requests", float(counts[chosen].sum()), "count"),
            *case.evidence("time of a process in seeks and the like", time, "s"),
        ],
        [say.larger_requests(files.direction, alone=case.lonely)],
        chosen,
        whole=max(case.time, time),
    )


def _reopened(case: Case) -> Finding | None:
    """All ranks open a file by MPI-IO for each request or two: few calls reach the file system, and each takes long."""
    files, limits = case.files, case.limits
    ranks = np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    requests = files.requests("read") + files.requests("write")
    chosen = files.critical & (ranks > 1) & (case.opens >= limits.many_opens * ranks)
    opening = np.array([calls.opening for calls in case.calls])
    chosen &= (opening > 0) & (requests <= limits.requests_of_an_open * case.opens)
    time = float(opening[chosen].sum())
    if not time >= limits.metadata * case.time:
        return None
    sure = time >= 0.5 * case.time and time >= limits.much_metadata * case.run_time
    return case.finding(
        "shared_opens" if sure else "metadata",
        "Every process opens the same file again and again through MPI-IO: that takes most of the I/O time."
        if sure
        else "Opens of the same file through MPI-IO take much of the I/O time.",
        time,
        "high" if sure else "medium",
        "time of a rank in MPI-IO calls that open, close and set views; waiting for one another is in it",
        [
            *case.evidence("opens of a process", float(np.nansum((case.opens / ranks)[chosen])), "count"),
            *_below(case, chosen),
            *case.evidence("requests of a process", float(np.nansum((requests / ranks)[chosen])), "count"),
            *case.evidence("time of a process in opens and the like", time, "s"),
            *case.evidence("run time", case.run_time, "s"),
        ],
        [say.metadata(again=True)],
        chosen,
        whole=max(case.time, time),
    )


def syncs(case: Case) -> Finding | None:
    """Writes are followed by syncs."""
    files, limits, writes = case.files, case.limits, case.files.requests("write")
    if files.direction != "write":
        return None
    chosen = files.critical & (case.syncs >= limits.synced * writes)
    of_ranks = np.maximum(np.nan_to_num(files["ranks"]), 1.0)
    if not float(case.syncs[chosen].sum()) >= limits.many_syncs * case.processes:  # else of single files
        chosen &= case.syncs >= limits.many_syncs * of_ranks
    if not chosen.any():
        return None
    each = case.total("write_time", chosen) / float(case.syncs[chosen].sum())
    known = [place for place, _ in case.traced(chosen)]
    alone = _of_a_rank(case, case.syncing, chosen) if len(known) == int(chosen.sum()) else float("nan")
    inside = time_in_calls(files)
    for place, traced in case.traced(chosen):
        inside[place] = max(inside[place], traced.busy.max() + case.syncing[place])
    both = min(_of_a_rank(case, inside, chosen), case.time)
    if both < 0.5 * limits.busy_sync * case.time:
        return None
    time = both if np.isnan(alone) else alone
    sure = each >= limits.slow_sync and both >= limits.busy_sync * case.time
    return case.finding(
        "syncs",
        "Writes are followed by syncs (fsync) again and again: each waits for the storage.",
        time,
        "high" if sure else "medium",
        "counted by Darshan, which adds the time of syncs to that of writes"
        + ("" if sure else "; they take little time, or not much of the critical time"),
        [
            *case.evidence("syncs", float(case.syncs[chosen].sum()), "count"),
            *case.evidence("writes", float(np.nansum(files["{requests}"][chosen])), "count"),
            *case.evidence("time for each sync, with the writes before it", each, "s"),
            *case.evidence("time of a rank in syncs, without the writes (DXT)", alone, "s"),
            *case.evidence("time of a rank in both, of the time in I/O", both / case.time, "share"),
        ],
        [say.FEWER_SYNCS],
        chosen,
        at_most=bool(np.isnan(alone)),
        costs=sure,
    )


def _of_a_rank(case: Case, times: Numbers, chosen: Flags) -> float:
    """Return the time (s) of a rank on the chosen files, of that on each: ranks with own files work side by side.

    DXT shows whose the files are, and then it is the time of the rank with most; else files of one rank each are spread
    evenly, but those of rank 0.
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
