"""The rules about ranks: one or few do the work, or one needs longer than the others.

Problem. A sum over ranks does not show the rank that the job waits for: the slowest one, which may differ from file to
file.

Algorithm. Times and bytes of one rank (:mod:`.ranks`) are compared with the critical time and with the bytes of the
file. Confidence is high if both support the cause: the rank has the bytes, and it spends the time. DXT has the time and
bytes of each rank in each file, HEATMAP the bytes of each rank in all files. A rank has more to do if it moves 1.5
times the bytes of an average rank that moves any. Ranks that are even over all files are no imbalance. A rank alone has
small pieces if all small pieces together have the bytes that it moves beyond the fastest rank's.

Guarantees. Aggregators of collective calls, and the filling of a file before the ranks write (MPI_File_preallocate),
are no imbalance of the program.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.cause import ALWAYS, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.causes_calls import alike
from mpiio_ext.analytics.diagnosis.causes_requests import small_rounds
from mpiio_ext.analytics.diagnosis.causes_time import slowed_down, waiting_for_late
from mpiio_ext.analytics.diagnosis.model import Advice, Claim, Finding
from mpiio_ext.analytics.diagnosis.words import sized, worded
from mpiio_ext.analytics.factors.files import bins
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import amount_text, count_text, mean_text

#: Ranks in a request at once, on average, up to which no two ever are, but for the clocks.
_ALONE = 1.02
#: Mean request (B) up to which one rank's requests are slow because they are tiny.
_TINY = 8 << 10


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
    heat = None if case.activity is None else case.activity.heat.get(case.write)
    each = case.of_owners[1] if heat is None else heat
    as_much = np.count_nonzero((each > 0) & (limits.uneven * each >= share * each.sum())) > 1  # of another rank, too
    if not most and (as_much or few_writers(case) is not None):
        return None
    mean = case.total("{bytes}", chosen) / max(float(np.nansum(files.requests()[chosen])), 1.0)
    tiny = mean <= _TINY  # such calls cost as much whoever makes them
    sure, part = most and busy and not tiny, "most" if most else worded(case.value(share), "share")
    claim = Claim(
        title=f"{'Rank 0' if by_root else 'One rank'} {verb} {part} of the data.",
        what=f"{verb}{case.at(chosen)} by {'rank 0' if by_root else 'one rank'} alone",
        confidence="high" if sure else "medium",
        reason="the log has the bytes of each rank; the log does not show whether the other ranks wait meanwhile"
        + (
            ""
            if sure
            else "; but the rank makes tiny requests, which cost time whoever makes them"
            if tiny
            else "; but other ranks have some of the bytes"
            if not most
            else "; but the rank is in calls for a small part of the time"
        ),
        evidence=[
            *case.evidence(
                f"bytes that {'rank 0' if by_root else 'the rank'} {'wrote' if case.write else 'read'}", share, "share"
            ),
            *case.evidence("an equal part for each rank would be", 1 / case.processes, "share"),
            *case.evidence("processes", case.processes, "count"),
            *case.evidence(
                f"time of the rank in calls, as a share of the {case.of_time}", busy_share(case, chosen), "share"
            ),
        ],
        advice=[say.parallel_root(files.direction, filled=bool((case.collective & filled(case) & chosen).any()))],
        at_most=True,
        costs=sure,
    )
    return case.finding(ROOT_WRITES if files.direction == "write" else ROOT_READS, claim, chosen=chosen)


def _of_one(case: Case, own: Flags) -> tuple[int, float] | None:
    """Return the rank that moves nearly all bytes, in any of these files, and its share of all bytes; None if none.

    HEATMAP has the bytes of each rank.
    """
    heat = None if case.activity is None else case.activity.heat.get(case.write)  # of all bytes, or it is not there
    if heat is None or len(heat) < 2 or not 0 < heat.max() * 0.02 > heat.min():
        return None  # all move more than a header: ranks differ then, no more
    rank, moved = int(np.argmax(heat)), np.nan_to_num(case.files["{bytes}"])
    share = min(float(heat[rank] / heat.sum()), float(moved[own].sum() / max(moved.sum(), 1.0)))
    return (rank, share) if share >= case.limits.one_rank else None


ROOT_WRITES = Cause(
    name="root_writes",
    rule=root_writes,
    cells=Cells(("write",)),
    effects=("contention", "serialised", "stragglers", "slowed_down"),
    section="One rank, or few, do it all",
    mechanism="One rank has only the bandwidth and the memory of one node.",
    condition=(
        "Without collective calls, rank 0 moves {root} of the bytes, or another rank moves {one_rank} of the bytes. The"
        " job moves {one_rank_bytes} or more."
    ),
    sure=(
        "if the rank moves {one_rank} of the bytes, is in calls for {busy_rank} of the critical time, and its requests"
        " have more than 8 KiB on average"
    ),
    sentences=("Rank 0 ", "One rank "),
    advice=(
        Offer(ALWAYS, say.parallel_root),
        Offer(
            "if collective calls write the file, and did not ask for most of its bytes",
            lambda way: say.parallel_root(way, filled=True),
        ),
    ),
    by_few=True,
    not_shown="No record shows whether the other ranks wait meanwhile.",
)


ROOT_READS = dataclasses.replace(ROOT_WRITES, name="root_reads", cells=Cells(("read",)))


def copies(case: Case) -> Finding | None:
    """One rank alone reads data, and writes as much to other files: it copies files, or gathers those of all ranks."""
    files, heat = case.files, {} if case.activity is None else case.activity.heat
    if len(heat) < 2 or not case.processes > 1:
        return None
    rank, read = int(np.argmax(heat[False])), float(heat[False].max())
    own = (case.owners == rank) & ~alike(files["bytes_read"], files["bytes_written"])  # else it reads its own back
    written = float(np.nansum(files["bytes_written"][own]))
    least = max(case.limits.one_rank * float(heat[False].sum()), float(case.limits.one_rank_bytes))
    if not read >= least or not alike(np.array(read), np.array(written)):
        return None
    chosen, much = (files["bytes_read"] > 0) | (own & (files["bytes_written"] > 0)), worded(case.value(read), "B")
    each = (read + written) / max(np.nansum(files["reads"]) + np.nansum(files["writes"][own]), 1.0)
    calls = sized(case.value(each), "reads and writes") if each < case.limits.tiny_bytes else "reads and writes"
    claim = Claim(
        title=f"Rank {rank} alone reads {much}, and writes as much to other files, as if it copies files.",
        what=f"{calls}{case.at(chosen, 'of')} by rank {rank} alone, which writes as much as it reads ({much}),"
        " as if it copies files",
        confidence="high",
        reason="bytes of each rank are in the log; it does not show whether the data that are written are those read",
        evidence=[
            *case.evidence("bytes that the rank reads", read, "B"),
            *case.evidence("bytes that it writes to files of its own", written, "B"),
            *case.evidence("bytes that all ranks read", float(heat[False].sum()), "B"),
            *case.evidence("processes", case.processes, "count"),
        ],
        advice=[say.NO_COPY],
        at_most=True,
        costs=True,
    )
    return case.finding(COPIES, claim, chosen=chosen)


COPIES = Cause(
    name="copies",
    rule=copies,
    cells=Cells(("read", "write")),
    effects=(
        "root_writes",
        "root_reads",
        "few_writers",
        "few_readers",
        "small_requests",
        "redundant_writes",
        "redundant_reads",
        "stragglers",
        "serialised",
        "turns",
        "dominant_file",
    ),
    section="One rank, or few, do it all",
    mechanism="One rank copies files, or gathers the files of all ranks, while the other ranks wait.",
    condition=(
        "One rank reads {one_rank} of all bytes that the job reads, {one_rank_bytes} or more. It writes as many bytes"
        " to files that no other rank opens, and does not read these files back (HEATMAP, DXT)."
    ),
    sure=ALWAYS,
    sentences=("as if it copies files",),
    advice=(Offer(ALWAYS, lambda _: say.NO_COPY),),
    by_few=True,
    not_shown=ROOT_WRITES.not_shown,
)


#: Requests of all aggregators, or of each of few writers, from which on these are too few: of fewer requests, which are
#: large, no verdict follows.
_REQUESTS = 10


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
    if not files.requests()[chosen].sum() >= _REQUESTS * count:
        return None
    verb = "write" if case.write else "read"
    claim = Claim(
        title=f"{'' if heat is not None else 'At most '}{worded(case.value(count), 'count')} of"
        f" {worded(case.value(ranks), 'count')} processes {verb} all of the data.",
        confidence="medium",
        reason=(
            "one process alone accesses each of the files" if heat is None else "HEATMAP has the bytes of each rank"
        )
        + "; whether the other processes wait meanwhile is not in the log",
        evidence=[
            *case.evidence("processes that move data", count, "count"),
            *case.evidence("processes", ranks, "count"),
            *case.evidence(
                f"time of the slowest of these processes in calls, as a share of the {case.of_time}",
                busy_share(case, chosen),
                "share",
            ),
        ],
        advice=[say.parallel_root(files.direction)],
        at_most=True,
    )
    return case.finding(FEW_WRITERS if case.write else FEW_READERS, claim, chosen=chosen)


FEW_WRITERS = Cause(
    name="few_writers",
    rule=few_writers,
    cells=Cells(("write",)),
    phrase="{way}s{at} by few of the processes",
    section="One rank, or few, do it all",
    mechanism="Few ranks have only the bandwidth of few nodes.",
    condition=(
        "At most half of the processes move all bytes, {aggregated_bytes} or more, and each of them makes"
        f" {_REQUESTS} requests or more. The slowest of these processes is in calls for {{busy_rank}} of the critical"
        " time."
    ),
    sentences=("of the data",),
    advice=(Offer(ALWAYS, say.parallel_root),),
    by_few=True,
)


FEW_READERS = dataclasses.replace(FEW_WRITERS, name="few_readers", cells=Cells(("read",)))


#: Why too few aggregators are not sure, where their calls take less than half of the run, and where these take more.
_UNSURE = {
    False: "; but one aggregator on each node is usual, and the calls take less than half of the run",
    True: "; but this rank is in calls for little of the time, or its calls are slow, or another rank is late",
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
    if not files.requests()[chosen].sum() >= _REQUESTS:
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
    claim = Claim(
        title=f"Too few aggregators: {who} {files.direction}{'s' * (count == 1)} all the data of the collective calls.",
        time=max(0.0, whole - late),
        confidence="high" if sure else "medium",
        reason=(
            "the calls are collective; the number of aggregators is an estimate: the bytes of the file, divided by the"
            f" bytes that its slowest rank {files.direction}s" + (_UNSURE[much] if not sure else "")
        ),
        evidence=[
            *case.evidence("bytes of the file, over the bytes of its slowest rank", float(case.movers[row]), "ratio"),
            *case.evidence("bandwidth of the slowest rank in its calls", rate, "B/s"),
            *case.evidence("processes that opened the file", float(ranks[row]), "count"),
            *case.evidence("OSTs of the file", float(files["stripe_count"][row]), "count"),
            *case.evidence(f"time of the slowest rank in calls, as a share of the {case.of_time}", part, "share"),
            *case.in_mpiio(chosen, whole - late),
        ],
        advice=_more_aggregators(case, row),
        at_most=True,
        costs=sure,
        by_times=in_turn,
    )
    return case.finding(FEW_AGGREGATORS, claim, chosen=chosen)


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


FEW_AGGREGATORS = Cause(
    name="few_aggregators",
    rule=few_aggregators,
    cells=Cells(("data", "exchange"), ("POSIX", "MPI-IO")),
    effects=("contention", "serialised", "stragglers", "slowed_down"),
    phrase="collective {way}s{at} that too few aggregators carry out",
    section="One rank, or few, do it all",
    mechanism="One rank, or few, make the requests of the collective calls.",
    condition=(
        "One rank moves {one_rank} of a file of {aggregated_bytes} or more, or one rank at a time moves data (DXT). Or"
        " at most one rank in sixteen moves data, and at most one rank for two stripes. The ranks that move data make"
        f" {_REQUESTS} requests or more. The calls take {{aggregated}} of the run time, or each rank that moves data"
        " works for {node_ranks} ranks."
    ),
    sure=(
        "if the calls take {much_aggregated} of the run time, or each rank that moves data works for {node_ranks}"
        " ranks; and the rank is in its calls for {busy_aggregator} of the time of the calls, and moves {slow_rank} or"
        " more; and no other rank is late; and the storage is not slow for a while (DXT)"
    ),
    sentences=("Too few aggregators: ",),
    advice=(
        Offer("if the file has one stripe, and there are more OSTs", lambda _: say.stripes(16, 1, None)[0]),
        Offer("in the same case", lambda _: say.stripes(16, 1, None)[1]),
        Offer(
            "if the file has several stripes, or an unknown number: `cb_nodes` is twice the number",
            lambda way: say.aggregators(way, 8),
        ),
    ),
    by_few=True,
)


def _of_ranks(case: Case) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return of each file the lag of its slowest rank, that rank's time, and bytes of it and of an average rank.

    DXT has all ranks. A log without DXT has the slowest and the fastest rank, with the bytes that they move both ways.
    """
    files, moved = case.files, np.nan_to_num(case.files["{bytes}"])
    other = np.nan_to_num(files["bytes_read"]) + np.nan_to_num(files["bytes_written"]) - moved
    value, most = case.per_file["straggler"].copy(), files["slowest_rank_bytes"] - other
    time, mean = files["slowest_rank_time"].copy(), moved / np.maximum(files["ranks"], 1.0)
    lags = files["{time}"] >= 0.5 * (files["read_time"] + files["write_time"])  # else it does in the other direction
    value = np.where(lags & (~case.collective | _gives(case, most / np.maximum(moved, 1.0))), value, np.nan)
    for place, row in case.traced(files.critical & (files["ranks"] > 1)):
        ranks = float(len(row.ranks))  # those that move data this way: others may have opened it for the other
        if case.collective[place] or (files["{collective}"][place] > 0 and ranks < files["ranks"][place]):
            continue  # aggregators
        if not row.busy.max() > 0:
            continue
        slowest = int(np.argmax(row.busy))
        value[place], time[place] = 1 - row.busy.sum() / ranks / row.busy[slowest], row.busy[slowest]
        most[place], mean[place] = row.moved[slowest], row.moved.sum() / ranks
    return value, time, most, mean


def _gives(case: Case, share: Numbers) -> Flags:
    """Return for each file whether the rank with that share of its requests' bytes gives as much to collective calls.

    Then each rank makes the requests of its own bytes; else a rank carries out requests of other ranks. The log has the
    sum of the squares of the ranks' shares: where one has more, and the others are alike, the shares of both are the
    same. If all ranks have as many bytes of requests, none of them does the work of others, either.
    """
    files, given = case.files, np.array([calls.given for calls in case.calls])
    ranks, least = files["ranks"], files["fastest_rank_bytes"]
    squares = share**2 + (1 - share) ** 2 / np.maximum(ranks - 1, 1.0)
    own = (share * ranks >= case.limits.uneven) & (np.abs(squares - given) <= 0.02)
    even = (np.abs(share * ranks - 1) <= 0.05) & (np.abs(files["slowest_rank_bytes"] - least) <= 0.05 * least)
    return np.asarray((ranks > 1) & (own | even))


def _balanced(case: Case) -> tuple[bool, bool]:
    """Return whether all ranks move as much over all files, and whether they take as long for it; false if unknown.

    A rank that is the slowest in one file may be the fastest in the next, as where each writes a file of its own and
    reads another one's.
    """
    way, uneven = case.files.direction, case.limits.uneven
    heat = None if case.activity is None else case.activity.heat.get(case.write)
    as_much = heat is not None and heat.sum() > 0 and bool(heat.max() < uneven * heat.mean())
    return as_much, 0 < case.ledger.slowest(way).most < uneven * case.ledger.mean(way).least


def stragglers(case: Case) -> Finding | None:
    """The slowest rank needs far longer than the average one."""
    files, ranks = case.files, case.files["ranks"]
    value, time, most, mean = _of_ranks(case)
    as_much, as_long = _balanced(case)
    if as_long:
        return None
    value[filled(case) & np.array([calls.alike for calls in case.calls])] = np.nan  # not by what ranks write
    most_possible = 1 - 1 / np.where(ranks > 1, ranks, np.nan)
    uneven = (most >= case.limits.uneven * mean) & (not as_much)
    chosen = files.critical & (value >= case.limits.straggler * np.where(uneven, most_possible, 1.0))
    chosen &= files["{bytes}"] >= case.limits.one_rank_bytes
    if not chosen.any():
        return (_slow_ranks(case) if as_much else _uneven_ranks(case)) or _uneven_files(case)
    row = next(row for row in case.order if chosen[row])
    traced = case.complete[row]
    by_bytes = bool(uneven[row]) if traced else bool(not as_much and most[row] > 2 * files["fastest_rank_bytes"][row])
    sure = by_bytes and bool(uneven[row]) and busy_share(case, chosen) >= case.limits.busy_straggler
    claim = Claim(
        title=f"{_LAGS[by_bytes]}.",
        what=_of_slowest(case, chosen, float(most[row]) if by_bytes else 0.0, float(mean[row])),
        time=float(np.sum(np.where(chosen, value * np.minimum(case.exclusive, time), 0))),
        confidence="high" if sure else "medium" if by_bytes or traced else "low",
        reason="DXT has time and bytes of every rank"
        if traced
        else "the log has the slowest and the fastest rank, and only the sum of the others",
        evidence=[
            *case.evidence(
                "gap between the slowest and an average rank, as a share of the time of the slowest rank",
                case.mean(value, chosen),
                "share",
            ),
            *case.evidence("time of the slowest rank in calls", float(time[row]), "s"),
            *case.evidence("bytes of the slowest rank", float(most[row]), "B"),
            *case.evidence("bytes of the fastest rank", np.nan if traced else files["fastest_rank_bytes"][row], "B"),
            *case.evidence("bytes of an average rank", float(mean[row]), "B"),
        ],
        advice=[say.imbalance(by_bytes, bool(case.collective[chosen].any()))],
        by_times=not by_bytes,
    )
    return case.finding(STRAGGLERS, claim, chosen=chosen)


_LAGS = {
    True: "Imbalance: the slowest rank has more to do than an average rank, and needs far longer",
    False: "The slowest rank has as much to do as an average rank, but needs far longer",
}


def _slow_ranks(case: Case) -> Finding | None:
    """A rank needs several times as long as another one for as many bytes: as several ranks may, on slower storage."""
    files, moved = case.files, case.activity.heat[case.write] if case.activity is not None else np.zeros(0)
    times = [case.ledger.ranks(files.direction, layer=layer) for layer in ("POSIX", "STDIO")]
    least, most = (np.sum([getattr(each, bound) for each in times], axis=0) for bound in ("least", "most"))
    slow, fast = int(np.argmax(least)), int(np.argmin(most))
    longer = float(least[slow] / most[fast]) if most[fast] > 0 else 0.0
    if not longer >= case.limits.slow or not moved[slow] <= case.limits.uneven * moved[fast]:
        return None
    chosen = files.critical & ((case.owners < 0) | (case.owners == slow))
    chosen &= case.exclusive >= case.limits.reported * case.time
    each = f"rank {slow} needs at least {worded(case.value(longer), 'ratio')} as long as rank {fast} for as many bytes"
    claim = Claim(
        title=f"Ranks have as much to do, but {each}.",
        what=f"{files.direction}s{case.at(chosen)} of slow ranks: {each}",
        time=float(least[slow] - most[fast]),
        confidence="medium",
        reason="the log has the bytes of each rank, and bounds of its time, but not why one is served more slowly",
        evidence=[
            *case.evidence("time of the slowest rank in requests, at least", float(least[slow]), "s"),
            *case.evidence("time of the fastest rank in requests, at most", float(most[fast]), "s"),
            *case.evidence("time of an average rank in requests", case.ledger.mean(files.direction).least, "s"),
            *case.evidence("bytes of the slowest rank", float(moved[slow]), "B"),
            *case.evidence("bytes of the fastest rank", float(moved[fast]), "B"),
        ],
        advice=[say.imbalance(False)],
        at_most=True,
        by_times=True,
    )
    return case.finding(STRAGGLERS, claim, chosen=chosen)


def _uneven_ranks(case: Case) -> Finding | None:
    """Of files of one rank each, a rank has far more bytes than the others, and takes far longer."""
    files, limits, (times, moved) = case.files, case.limits, case.of_owners
    if len(times) < 2 or not moved.sum() >= max(limits.one_rank * case.total("{bytes}", files.counted), 1.0):
        return None
    slowest, most, some = int(np.argmax(times)), float(times.max()), moved >= 0.01 * moved.max()
    several = 2 * np.count_nonzero(some) >= len(moved)  # else few have any
    uneven = moved[slowest] >= max(limits.uneven * moved[some].mean(), limits.one_rank_bytes)
    if not several or not uneven or not _lag(times) >= limits.straggler * (1 - 1 / len(times)):
        return None
    share, over = float(moved[slowest] / moved.sum()), float(moved[slowest] / moved.mean())
    has = f"{worded(case.value(share), 'share')} of the bytes" if share >= limits.root else ""
    has = has or f"{worded(case.value(over), 'ratio')} the bytes of an average rank"
    sure, chosen = most >= limits.busy_straggler * case.time, files.counted & (case.owners == slowest)
    claim = Claim(
        title=(
            f"Imbalance: rank {slowest} {'writes' if case.write else 'reads'} {has}, and needs far longer than an"
            " average rank."
        ),
        what=f"{files.direction}s{case.at(chosen)} by rank {slowest}, which has {has}",
        time=min(most, case.time),
        confidence="high" if sure else "medium",
        reason="each rank has files of its own; the log has the bytes and the times of the files"
        + ("" if sure else "; but the rank is in calls for a small part of the time"),
        evidence=[
            *case.evidence(f"time of rank {slowest} in calls", most, "s"),
            *case.evidence("time of an average rank", float(times.mean()), "s"),
            *case.evidence(f"bytes of rank {slowest}", float(moved[slowest]), "B"),
            *case.evidence("bytes of an average rank", float(moved.mean()), "B"),
            *case.evidence(f"files of rank {slowest}", float(chosen.sum()), "count"),
        ],
        advice=[say.imbalance(by_bytes=True, collective=bool(case.collective[case.owners >= 0].any()))],
        at_most=True,
    )
    return case.finding(STRAGGLERS, claim, chosen=chosen)


def _uneven_files(case: Case) -> Finding | None:
    """Of files of one rank each, some have far more bytes, and take far longer."""
    files = case.files
    own = files.counted & (files["ranks"] == 1) & (files["{bytes}"] > 0)
    own &= files["{bytes}"] >= 0.01 * np.max(files["{bytes}"], initial=0.0, where=own)  # not standard output
    count = int(own.sum())
    if count < 2 or not case.processes / 2 <= count <= case.processes:
        return None
    moved, times = files["{bytes}"][own], case.files["{time}"][own]
    value, most = _lag(times), float(moved[np.argmax(times)])
    if not value >= case.limits.straggler * (1 - 1 / count) or most < case.limits.uneven * moved.mean():
        return None
    chosen = own & (files["{bytes}"] >= case.limits.uneven * moved.mean())
    claim = Claim(
        title=f"{_LAGS[True]}. The file of the slowest rank is larger.",
        what=_of_slowest(case, chosen, most, float(moved.mean())),
        time=value * float(times.max()),
        confidence="high",
        reason="each rank has a file of its own; the log has the bytes and the time of each file",
        evidence=[
            *case.evidence(
                "gap between the slowest and an average rank, as a share of the time of the slowest rank",
                value,
                "share",
            ),
            *case.evidence("time of the slowest rank in calls", float(times.max()), "s"),
            *case.evidence("bytes of the slowest rank", most, "B"),
            *case.evidence("bytes of an average rank", float(moved.mean()), "B"),
        ],
        advice=[say.imbalance(by_bytes=True, collective=bool(case.collective[own].any()))],
    )
    return case.finding(STRAGGLERS, claim, chosen=chosen)


def _lag(times: Numbers) -> float:
    """Return the share of the longest time that an average one does not have."""
    return float(1 - times.mean() / times.max()) if len(times) and times.max() > 0 else 0.0


def _of_slowest(case: Case, chosen: Flags, most: float, mean: float) -> str:
    """Return, in words, the accesses in which the slowest rank takes longer than an average one.

    Parameters
    ----------
    most, mean : bytes of that rank and of an average one; 0: their bytes do not differ.
    """
    what = f"{case.files.direction}s{case.at(chosen)}"
    if most > 0 and mean > 0:
        return f"{what} by the slowest rank for longer than by an average rank, with {most / mean:.1f} times the bytes"
    return f"{what} by one slow rank for longer than by an average rank, with as much to do"


STRAGGLERS = Cause(
    name="stragglers",
    rule=stragglers,
    cells=Cells(("data",)),
    section="Ranks wait for one another",
    mechanism="One rank has more to do than the others, or ranks are slow.",
    condition=(
        "On a file that ranks share, the slowest rank is in calls for longer than an average rank, by {straggler} of"
        " the time of the slowest rank. Or each rank has files for itself, the difference is as large, and the slowest"
        " rank moves {uneven} times the bytes of an average rank. Or the slowest rank is in requests for {slow} times"
        " as long as the fastest rank, and moves at most {uneven} times its bytes (HEATMAP, DXT)."
    ),
    sure=(
        "if the slowest rank moves {uneven} times the bytes of an average rank, and is in calls for {busy_straggler}"
        " of the critical time"
    ),
    sentences=("Imbalance: ", "The slowest rank ", "Ranks have as much to do, but "),
    advice=(
        Offer("if that rank has more bytes, and the calls are not collective", lambda _: say.imbalance(True, False)),
        Offer("if that rank has more bytes, and the calls are collective", lambda _: say.imbalance(True)),
        Offer("if that rank has as many bytes as the others", lambda _: say.imbalance(False)),
    ),
)


#: Bounds of the parts of Darshan's histogram that are small pieces (B); and the number of pieces that are many.
_SMALL, _MANY = np.array([0.0, 100.0, 1024.0, 10240.0]), 100


def _pieces(counts: Numbers, moved: float) -> tuple[float, float, float]:
    """Return the number of small pieces beside large ones, and bounds of their bytes; zeros if there are none.

    The large ones have most of the bytes, and hardly any request lies between.
    """
    small, between, large = counts[:3].sum(), counts[3], counts[4:].sum()
    least, most = float(counts[:3] @ _SMALL[:3]), float(counts[:3] @ _SMALL[1:])
    two = small >= max(_MANY, 2 * large) > 0 and large > 0 and between <= 0.05 * small and 2 * most <= moved
    return (float(small), least, most) if two else (0.0, 0.0, 0.0)


def _ahead(case: Case, place: int) -> tuple[int, float, tuple[float, float, float], Numbers, float, str]:
    """Return of a file its slowest rank, that rank's bytes beyond those of the fastest, times, sizes, bytes and module.

    The times (s) are those of the fastest, an average and the slowest rank: in MPI-IO calls, or else in requests.
    """
    files, calls = case.files, case.calls[place]
    sizes = calls.sizes.get(case.write)
    if sizes is not None and sizes.sum() > 0:
        moved = files["mpiio_bytes_written" if case.write else "mpiio_bytes_read"][place]
        return calls.last, calls.more, calls.apart, sizes, float(moved), "MPI-IO"
    more, last = (files["slowest_rank_bytes"] - files["fastest_rank_bytes"])[place], files["slowest_rank"][place]
    counts = np.nan_to_num(np.array([files[name][place] for name in bins(files.direction)]))
    whole = np.nansum([files[name][place] for name in ("read_time", "write_time", "meta_time")])
    mean, most = whole / max(float(files["ranks"][place]), 1.0), float(files["slowest_rank_time"][place])
    return int(np.nan_to_num(last, nan=-1.0)), more, (0.0, mean, most), counts, float(files["{bytes}"][place]), "POSIX"


def pieces_of_one(case: Case) -> Finding | None:
    """One rank writes many small pieces alone, as of a header, beside the large ones of all, and needs far longer."""
    files, verb = case.files, "writes" if case.write else "reads"
    for place in case.order:
        ranks = float(files["ranks"][place])
        if not ranks > 1:
            continue
        rank, more, (_, mean, most), counts, moved, module = _ahead(case, place)
        small, low, high = _pieces(counts, moved)
        if not (small and rank >= 0 and 0.98 * low <= more <= 1.02 * high and more > 0):
            continue
        other = np.nansum([files["bytes_read"][place], files["bytes_written"][place]]) - files["{bytes}"][place]
        longer = most - (mean * ranks - most) / (ranks - 1)
        if not longer >= 0.5 * most > 0 or other > 0.1 * more:
            continue
        common = {} if case.activity is None else case.activity.common.get(module, {})
        exact, count = (sum(size**power * n for size, n in common.items() if size <= _SMALL[-1]) for power in (1, 0))
        alike = abs(exact - more) <= 0.02 * more
        if not alike and 0.98 * small <= count <= 1.02 * small:
            continue  # the sizes are known, and have other bytes
        in_them = 0.0 if case.activity is None else case.activity.time_up_to(_SMALL[-1], case.write)[0]
        sure, chosen = alike and in_them >= 0.5 * longer, np.arange(len(files)) == place
        claim = Claim(
            title=f"Rank {rank} alone {verb} {worded(case.value(small), 'count')} small pieces of"
            f" {amount_text(case.value(more / small))} beside the large pieces, and needs"
            f" {worded(case.value(longer), 's')} longer than the other ranks.",
            what=f"{count_text(case.value(small), files.direction)} of {mean_text(case.value(more / small))}"
            f"{case.at(chosen)} by rank {rank} alone, beside the large pieces",
            time=min(longer, case.calling),
            confidence="high" if sure else "medium",
            reason="the rank moves more bytes than the fastest rank: as many more as all small pieces have"
            + ("" if sure else "; no request in the log (DXT) shows that the small pieces take this time"),
            evidence=[
                *case.evidence("small pieces", small, "count"),
                *case.evidence("mean piece", more / small, "B", exact=True),
                *case.evidence("larger pieces", float(counts[3:].sum()), "count"),
                *case.evidence("bytes of the rank beyond the bytes of the fastest rank", more, "B"),
                *case.evidence("time of the rank in calls", most, "s"),
                *case.evidence("time of each other rank, on average", most - longer, "s"),
            ],
            advice=[say.larger_requests(case.files.direction, mpiio=module == "MPI-IO")],
            at_most=True,
            costs=True,
        )
        return case.finding(PIECES_OF_ONE, claim, chosen=chosen)
    return None


PIECES_OF_ONE = Cause(
    name="pieces_of_one",
    rule=pieces_of_one,
    cells=Cells(("data",), ("POSIX", "MPI-IO")),
    effects=("small_requests", "stragglers", "few_aggregators", "root_writes", "root_reads", "slowed_down"),
    effects_if="found",
    section="Small requests, one by one",
    mechanism="One rank moves the small pieces of all ranks, as a header, and the other ranks wait.",
    condition=(
        "Most requests have 10 KiB or less, but requests of more than 100 KiB have most of the bytes. The slowest rank"
        " moves more bytes than the fastest rank, by the bytes of the small requests. The slowest rank takes twice the"
        " time of the other ranks."
    ),
    sure="if common sizes in the log have exactly these bytes, and the small requests take most of the time (DXT)",
    sentences=(" beside the large pieces, and needs",),
    advice=(
        Offer("if they are calls of MPI-IO", lambda way: say.larger_requests(way, mpiio=True)),
        Offer("else", say.larger_requests),
    ),
)
