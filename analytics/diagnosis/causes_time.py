"""The rules about what happens when: ranks that take turns, calls that wait, requests that slow down.

Problem. Sums of counters do not show whether ranks work at the same time, or wait for each other, for a server, or for
other jobs.

Algorithm. :mod:`.activity` has the requests of each rank by time. Ranks take turns if many of them move data and hardly
more than one is in a request at once, although some rank always is. Calls wait if MPI-IO needs far more time than the
requests that it makes. A stripe is slow if requests within it need several times more time for a byte than requests in
other stripes. Requests slow down if equal requests need several times more time in some windows of time, while the job
does no more than before. Then other jobs load the storage, or the storage has a fault.

Guarantees. Without DXT or HEATMAP the module reports none of these causes, with two exceptions: the load by others,
which needs the servers' counters, and calls that wait, which need the times of MPI-IO.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.activity import WINDOWS, Activity, Row
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.cause import ALWAYS, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.causes_calls import sieving
from mpiio_ext.analytics.diagnosis.late import all_but_one
from mpiio_ext.analytics.diagnosis.model import Claim, Evidence, Finding
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.ledger import numbers_of
from mpiio_ext.analytics.tables.arrays import Flags, Numbers

#: Share of the waiting from which on all of it is for one rank.
_ONE = 0.9


def _one(case: Case, place: int) -> Flags:
    return np.asarray(np.arange(len(case.files)) == place)


#: Seconds for which a rank has a CPU, at most, before another one has it.
_SLICE = 0.01


def turns(case: Case) -> Finding | None:
    """Many ranks access files, one at a time."""
    limits = case.limits
    alone = ~case.collective  # else data are exchanged
    alone &= _waiting(case)[1] < limits.waits  # else calls overlap, and wait for locks
    found: list[tuple[int, float, bool, float, list[Evidence]]] = []
    for place, row in case.traced(case.files.critical & alone):
        span = float(row.last.max() - row.first.min())
        busy = float(row.busy.sum() / max(float(row.busy.max()), 1e-12))  # else one rank is in requests, and the others
        enough = case.movers[place] >= limits.taking_turns and busy >= 2 and row.requests.sum() >= 3 * len(row.ranks)
        synced = _synced(case, place, row)
        sure = row.wall >= limits.turning * span
        if enough and row.together <= limits.in_turn and (sure or row.wall + synced >= limits.turning_calls * span):
            evidence = [
                *case.evidence("ranks in a request at once, on average", row.together, "count"),
                *case.evidence("time from the first request to the end of the last", span, "s"),
                *case.evidence("share of this time in which some rank is in a request", row.wall / span, "share"),
                *(case.evidence("time in syncs, while no rank is in a request", synced, "s") if synced else []),
            ]
            found.append((place, row.wall + synced, sure, row.wall / row.requests.sum(), evidence))
    if not found:
        return _turns_by_heatmap(case, alone)
    places, times, certain, each, every = zip(*found, strict=True)
    why = "DXT has each request of each rank" + ("" if all(certain) else "; of the syncs only the sum is known")
    chosen = np.isin(np.arange(len(case.files)), places)
    short = min(each) < _SLICE  # of ranks that share a CPU, one at a time moves data, too
    claim = Claim(
        time=sum(times), confidence="high" if all(certain) else "medium", reason=why, evidence=every[0], by_times=short
    )
    return _turns(case, chosen, float(case.movers[places[0]]), claim)


def _synced(case: Case, place: int, row: Row) -> float:
    """Return the time (s) in all syncs of a file, where no rank is in a request during nearly any of them; else 0.

    DXT has no syncs. By the counters it is known how many there are, and how long they take together: so often, at
    least, the file has a pause as long as most of a sync.
    """
    syncs = float(case.calls[place].syncs)
    every = float(np.nan_to_num(case.files["write_time"][place])) - float(row.busy.sum())
    if not (case.write and syncs >= 2 and every > 0):
        return 0.0
    apart = float((row.pauses >= 0.5 * every / syncs).sum()) >= 0.9 * (syncs - 1)  # the last one is behind all requests
    return every if apart else 0.0


def _turns_by_heatmap(case: Case, alone: Flags) -> Finding | None:
    """Bytes of one rank in each bin of time, while calls of all ranks take about as long as the time that passes."""
    seen, limits = case.activity, case.limits
    if not alone[case.files.critical].all():
        return None
    if seen is None or any(case.complete):
        return None
    together, bins = seen.in_turn.get(case.write, (0.0, 0))
    calls = case.total("{time}", case.files.critical) / max(case.swept, 1e-12)
    if not 0 < together <= limits.in_turn or not limits.turning_calls <= calls <= limits.in_turn:
        return None
    moved = seen.heat[case.write]
    ranks = float(moved.sum() / max(float(moved.max()), 1.0))
    if ranks < limits.taking_turns or bins < 2 * ranks or seen.most_bins.get(case.write, 0) * ranks > 2 * bins:
        return None  # where one moves most of the time, it is slow: the others are done
    evidence = [
        *case.evidence("ranks that move bytes in the same bin of time, on average (HEATMAP)", together, "count"),
        *case.evidence("ranks in calls at once, on average", calls, "count"),
    ]
    why = "HEATMAP has the bytes of each rank in each bin of time, but no calls"
    claim = Claim(time=case.time, confidence="medium", reason=why, evidence=evidence, by_times=True)
    return _turns(case, case.files.critical, ranks, claim)


def _turns(case: Case, chosen: Flags, moving: float, claim: Claim) -> Finding | None:
    """Return the finding that ranks take turns on files: `moving` ranks move data in the time of the claim."""
    turns = dataclasses.replace(
        claim,
        title=f"Ranks take turns: many ranks {case.files.direction} data, but only one rank at a time.",
        time=(claim.time or 0.0) * (1 - 1 / max(moving, 2.0)),
        evidence=[*case.evidence("ranks that move data", moving, "count"), *claim.evidence],
        advice=[say.at_once(case.files.direction)],
        costs=True,
        at_most=True,
    )
    return case.finding(TURNS, turns, chosen=chosen)


TURNS = Cause(
    name="turns",
    rule=turns,
    cells=Cells(("waiting", "lock")),
    effects=("contention", "stragglers", "waiting_calls", "serialised", "unaligned"),
    phrase="{way}s{at} by one rank at a time",
    section="One rank, or few, do it all",
    time_is="the time in which ranks wait for their turn",
    mechanism="Ranks work one after the other.",
    condition=(
        "At least {taking_turns} ranks move data, and on average at most {in_turn} ranks are in a request at once (DXT,"
        " HEATMAP). Some rank is in a request for {turning} of the time from the first request to the last (DXT). Or"
        " the calls of all ranks together take {turning_calls} of this time (HEATMAP; or DXT, with the time of syncs)."
    ),
    sure="if DXT has all requests, and some rank is in a request for {turning} of the time",
    sentences=("Ranks take turns: ",),
    advice=(Offer(ALWAYS, say.at_once),),
    outside=True,
)


def _waiting(case: Case) -> tuple[Numbers, Numbers]:
    """Return how long a rank waits in MPI-IO calls on each file (s), and their time over that of their requests.

    The slowest rank in calls and the slowest in requests may be two: where each rank's times are known, they count.
    """
    inside = np.minimum(case.in_mpi, case.exclusive)
    waits, longer = inside - case.in_calls, inside / np.maximum(case.in_calls, 1e-9)
    for place, row in case.traced(case.files.critical):
        waits[place] = max(waits[place], min(row.waits, case.exclusive[place]))
        longer[place] = max(longer[place], row.called_for)
    return waits, longer


def waiting_calls(case: Case) -> Finding | None:
    """Independent MPI-IO calls take far longer than the requests that they make: locks, atomic mode, or copies."""
    waits, longer = _waiting(case)
    alone = (case.per_file["no_collective"] > 0) & ~case.collective
    chosen = case.files.critical & alone & ~sieving(case) & (case.files["ranks"] > 1) & ~(case.movers < 2)
    chosen &= (longer >= case.limits.waits) & (waits >= 0.3 * case.exclusive)
    if not chosen.any():
        return None
    together, most = [row.together for _, row in case.traced(chosen)], case.most_of_a_rank(WAITING_CALLS, chosen)
    sure = bool(together) and max(together) <= case.limits.in_turn
    claim = Claim(
        title="Ranks wait inside of MPI-IO calls: the calls take"
        f" {worded(case.value(case.mean(longer, chosen)), 'ratio')} as long as"
        " their requests (locks, atomic mode, a shared file pointer, or copies of pieces).",
        time=float(waits[chosen].sum()),
        confidence="high" if sure else "medium",
        reason="requests of all ranks follow one another (DXT), but calls overlap"
        if sure
        else "the log has the times of MPI-IO and of POSIX, but not what happens between requests",
        evidence=[
            *case.evidence(
                "longest time that a rank waits in MPI-IO calls", min(float(waits[chosen].sum()), most), "s"
            ),
            *case.evidence("longest time of a rank in requests", min(float(case.in_calls[chosen].sum()), most), "s"),
            *(case.evidence("ranks in a request at once, on average", max(together), "count") if together else []),
        ],
        advice=[say.NO_LOCKS],
        costs=True,
        by_times=True,
    )
    return case.finding(WAITING_CALLS, claim, chosen=chosen)


WAITING_CALLS = Cause(
    name="waiting_calls",
    rule=waiting_calls,
    cells=Cells(("lock", "waiting"), ("MPI-IO",)),
    phrase="waiting inside of MPI-IO calls{at}, as for locks or in atomic mode",
    section="Ranks wait for one another",
    time_is="the time of these waits",
    mechanism="Independent calls wait for locks, or copy pieces.",
    condition="Calls take {waits} times as long as their requests, and ranks wait for 30 % of the time.",
    sure="if the requests of all ranks come one after the other (DXT)",
    sentences=("Ranks wait inside of MPI-IO calls",),
    advice=(Offer(ALWAYS, lambda _: say.NO_LOCKS),),
    waits=True,
)


def late_rank(case: Case) -> Finding | None:
    """A rank comes late to collective calls, and the others wait in these for it: not for the storage."""
    files, limits = case.files, case.limits
    together = ((files["{collective}"] > 0) & ~(files["{independent}"] > 0)) | _by_library(case)
    if (found := late_to_open(case) or _early_to_open(case)) is not None:
        return found
    waits = _late_to_open(case)
    for place, row in case.traced(files.critical & together):
        lost, inside = min(row.late, float(case.exclusive[place])), float(row.calls.mean() if len(row.calls) else 0.0)
        if lost < limits.late * case.exclusive[place]:
            continue
        to_open, who = waits[place]
        to_open = to_open if who == row.late_rank else 0.0
        claim = Claim(
            title=_title(case, place, row.late_rank, most=row.late_share < _ONE),
            what=_in_calls(case, place, row.late_rank, most=row.late_share < _ONE),
            time=lost + to_open,
            confidence="high",
            reason=("DXT has the beginning and the end of each rank's calls, but not what the rank does between calls"),
            evidence=[
                *case.evidence("time that each other rank waits for the last rank, on average", lost, "s"),
                *(
                    case.evidence("time that each other rank waits to open or close the file, on average", to_open, "s")
                    if to_open
                    else []
                ),
                *case.evidence("time of an average rank in the collective calls", inside, "s"),
                *case.evidence("time in which any rank is in a request of POSIX", row.wall, "s"),
            ],
            advice=[say.come_together(row.late_rank)],
            costs=True,
            by_times=True,
        )
        return case.finding(LATE_RANK, claim, chosen=_one(case, place))
    return _early_rank(case, together & (~np.array(case.complete) | _by_library(case)))


def _by_library(case: Case) -> Flags:
    """Return for each file whether ranks wait in collective calls of HDF5 or PnetCDF, beside independent ones below."""
    return np.array([calls.within != "MPI-IO" for calls in case.calls], bool)


def _late_to_open(case: Case) -> list[tuple[float, int]]:
    """Return for each file how long a rank waits to open and close it for a late one (s), and for which."""
    known = case.ledger.late()
    return [known.get(number, (0.0, -1)) for number in numbers_of(case.files).tolist()]


def late_to_open(case: Case) -> Finding | None:
    """A rank comes late to open or close a file, and the others wait in these calls for it."""
    if not len(case.files):
        return None
    found = _late_to_open(case)
    place = max(range(len(case.files)), key=lambda place: found[place][0])
    (waits, late), row = found[place], case.rows[place]
    again = 0.0  # for the same rank in collective reads and writes
    if row is not None and case.complete[place] and row.late_rank == late and row.late_share >= _ONE:
        again = min(row.late, float(case.exclusive[place]))
    whole = case.time + waits
    if not waits + again >= case.limits.late * whole > 0 or waits < again:
        return None
    claim = Claim(
        title=_title_to_open(case, place, late),
        what=_to_open(case, place, late),
        time=waits + again,
        confidence="high",
        reason="the library has measured how long each rank waits, but not what the late rank does meanwhile",
        evidence=[
            *case.evidence("time that each other rank waits to open or close the file, on average", waits, "s"),
            *(
                case.evidence("time that each other rank waits in collective calls, on average", again, "s")
                if again
                else []
            ),
            *case.evidence("time of a rank in opening and closing, without waits", float(case.opening[place]), "s"),
        ],
        advice=[say.come_together(late)],
        costs=True,
        by_times=True,
    )
    return case.finding(LATE_RANK, claim, chosen=_one(case, place))


def _early_to_open(case: Case) -> Finding | None:
    """One rank spends far less time than the others in opening and closing a file by MPI-IO: it is late to these calls.

    As in collective calls, all ranks but one must be in them for as long as the slowest, and not for their requests.
    """
    files = case.files
    meta = np.nan_to_num(files["meta_time"]) / np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    ranks, data = np.nan_to_num(files["ranks"]).tolist(), case.of_mpi("read", "write", mean=True).tolist()
    for place, calls in enumerate(case.calls):
        (least, _, most), count = calls.apart, ranks[place]
        if not most > least:
            continue
        opening, moving = float(case.opening[place] - meta[place]), data[place]
        lost = min(all_but_one(*calls.apart, count), opening) * count / max(count - 1, 1)  # the late one does not wait
        if not lost >= max(case.limits.late * (case.calling + lost), 2 * moving):
            continue
        claim = Claim(
            title=_title_to_open(case, place, calls.first),
            what=_to_open(case, place, calls.first),
            time=lost,
            confidence="medium",
            reason=(
                "the late rank spends far less time in MPI-IO calls, which hardly read and write; the log does not show"
                " whether the rank is late to the open or to the close"
            ),
            evidence=[
                *case.evidence("time of the late rank in MPI-IO calls", least, "s"),
                *case.evidence("time of the slowest rank in MPI-IO calls", most, "s"),
                *case.evidence("time of an average rank in opening and closing", float(case.opening[place]), "s"),
                *case.evidence("time of an average rank in the calls of POSIX below", float(meta[place]), "s"),
            ],
            advice=[say.come_together(calls.first)],
            costs=True,
            by_times=True,
        )
        return case.finding(LATE_RANK, claim, chosen=_one(case, place))
    return None


def waiting_for_late(case: Case, place: int) -> float:
    """Return the time (s) that each other rank waits in a file's collective calls for a late one; 0 if none is.

    DXT shows it. Else a rank that is late spends far less time in the calls than the others, which give them as many
    bytes: it does not wait. An aggregator stays longer in the calls than others, so the requests of the slowest rank
    are no waiting, and all ranks but one must be in the calls for as long as the slowest.
    """
    row, calls, count = case.rows[place], case.calls[place], float(np.nan_to_num(case.files["ranks"][place]))
    if row is not None and case.complete[place] and calls.within == "MPI-IO":
        return row.late
    in_requests = float(np.nan_to_num(case.in_requests[place]))
    of_all = min(calls.alike * all_but_one(*calls.apart, count), float(case.mean_in_mpi[place]) - in_requests)
    return max(0.0, of_all) * count / max(count - 1, 1)  # the late one does not wait


def _early_rank(case: Case, chosen: Flags) -> Finding | None:
    """One rank spends far less time in collective calls than the others, which give them as many bytes: it is late."""
    requests = case.in_requests
    for place in np.flatnonzero(chosen).tolist():
        calls, lost = case.calls[place], waiting_for_late(case, place)
        (least, mean, most), inside = calls.apart, float(case.mean_in_mpi[place])
        if not lost >= case.limits.late * max(inside, case.exclusive[place]) > 0:
            continue
        claim = Claim(
            title=_title(case, place, calls.first),
            what=_in_calls(case, place, calls.first),
            time=lost,
            confidence="medium",
            reason=(
                "the late rank gives the calls as many bytes as the slowest rank, and spends far less time in these"
                " calls; the log does not show whether the rank is late once or to each call"
            ),
            evidence=[
                *case.evidence(f"time of the late rank in {calls.within} calls", least, "s"),
                *case.evidence(f"time of an average rank in {calls.within} calls", mean, "s"),
                *case.evidence(f"time of the slowest rank in {calls.within} calls", most, "s"),
                *case.evidence("time of the slowest rank in requests", float(requests[place]), "s"),
            ],
            advice=[say.come_together(calls.first)],
            costs=True,
            by_times=True,
        )
        return case.finding(LATE_RANK, claim, chosen=_one(case, place))
    return None


def _title(case: Case, place: int, rank: int, *, most: bool = False) -> str:
    """Return as a sentence in which collective calls ranks wait, and for whom; `most`: for others, too."""
    who = (
        f"ranks wait for late ranks, mostly for rank {rank}"
        if most
        else f"the other ranks wait for rank {rank}, which is late"
    )
    return f"In collective {case.files.direction}s{case.at(_one(case, place))} {who}."


def _title_to_open(case: Case, place: int, rank: int) -> str:
    """Return as a sentence the file at whose opening or closing ranks wait, and the ranks that they wait for."""
    return f"The other ranks wait for rank {rank}, which is late{case.at(_one(case, place), 'to open or close')}."


def _in_calls(case: Case, place: int, rank: int, *, most: bool = False) -> str:
    """Return in which collective calls ranks wait, and for whom; `most`: for others, too."""
    who = f"late ranks (rank {rank} is the latest)" if most else f"rank {rank}, which is late,"
    return f"waits for {who} in collective {case.files.direction}s{case.at(_one(case, place))}"


def _to_open(case: Case, place: int, rank: int) -> str:
    """Return the file at whose opening or closing ranks wait, and the ranks that they wait for."""
    return f"waits for rank {rank}, which is late{case.at(_one(case, place), 'to open or close')}"


LATE_RANK = Cause(
    name="late_rank",
    rule=late_rank,
    cells=Cells(("waiting",), ("MPI-IO",)),
    effects=("exchange", "waiting_calls", "stragglers", "slow_file"),
    section="Ranks wait for one another",
    time_is="the time in which ranks wait for the late rank",
    mechanism="Ranks wait in collective calls for one rank.",
    condition="Each other rank waits for {late} of the time, on average.",
    sure="if DXT has the calls of each rank, or a recording has how long ranks wait at opens",
    sentences=("ranks wait for ",),
    advice=(Offer(ALWAYS, lambda _: say.come_together(1)),),
    of_opening=True,
    waits=True,
)


def without_requests(case: Case, place: int) -> tuple[float, float]:
    """Return of the time in a file's collective calls (s) that in which no rank is in a request, and the whole.

    DXT shows both; else it is at least what an average rank spends in the calls beyond the requests of all ranks. A
    library may read in order to write.
    """
    row, files = case.rows[place], case.files
    if not case.collective[place]:
        return 0.0, 0.0
    if row is not None and case.complete[place] and row.called > 0:
        return row.called - row.wall, row.called
    inside = float(case.mean_in_mpi[place])
    return max(0.0, inside - float(np.nansum([files[f"{way}_time"][place] for way in ("read", "write")]))), inside


def _waited(case: Case, place: int) -> float:
    """Return the time (s) of a file's collective calls without requests; of ranks that make these side by side.

    DXT shows it; else the slowest rank's requests are all that the calls wait for, where ranks share the work.
    """
    least, inside = without_requests(case, place)
    if case.complete[place]:
        return least
    return max(0.0, inside - float(case.in_all_requests[place]))


def exchange(case: Case) -> Finding | None:
    """Most of the time in MPI-IO calls no rank is in a request: data are exchanged, or a rank comes late.

    Of both directions: each exchange takes some time, and that of the reads alone is no cause beside large writes.
    """
    files = case.files
    idle = np.array([_waited(case, place) for place in range(len(files))])
    inside = np.maximum(case.exclusive, np.where(idle > 0, case.in_mpi, 0.0))
    chosen = (files["ranks"] > 1) & (idle > 0) & (idle >= 0.5 * inside)
    if not chosen.any() or idle[chosen].sum() < 0.5 * case.of_mpi("read", "write", mean=True).sum():
        return None
    traced = bool(np.array(case.complete)[chosen].all())
    claim = Claim(
        title=(
            "For most of the time in collective calls no rank reads or writes at the file system: ranks exchange data,"
            " or wait for a late rank."
        ),
        time=float(idle[chosen].sum()),
        confidence="medium",
        reason="the log has the times of calls and of requests, but not what ranks do between requests",
        at_most=not traced,
        evidence=[
            *case.evidence(
                f"time in collective calls without a request{'' if traced else ', at most'}",
                float(idle[chosen].sum()),
                "s",
            ),
            *case.evidence(
                "time of all ranks in requests",
                float(np.nansum([case.total(f"{way}_time", chosen) for way in ("read", "write")])),
                "s",
            ),
        ],
        advice=[say.come_together()],
        costs=True,
        by_times=True,
    )
    return case.finding(EXCHANGE, claim, chosen=chosen)


EXCHANGE = Cause(
    name="exchange",
    rule=exchange,
    cells=Cells(("exchange", "waiting"), ("MPI-IO",)),
    phrase="exchange of data between ranks, or waits for a late rank, in collective {way}s{at}",
    section="Ranks wait for one another",
    time_is="the time without requests",
    mechanism="Ranks exchange data, or wait for a late rank.",
    condition=(
        "For half of the time in collective calls no rank reads or writes at the file system. This part takes half of"
        " the time of a rank in MPI-IO calls, reads and writes together."
    ),
    sentences=("For most of the time in collective calls no rank reads or writes",),
    advice=(Offer(ALWAYS, lambda _: say.come_together()),),
    waits=True,
)


def _slowed(seen: Activity, write: bool) -> tuple[Numbers, Numbers, int] | None:
    """Return the median duration and the number of equal requests in each window, of the size that takes most time."""
    counts = seen.durations.get(write)
    if counts is None:
        return None
    lengths = 2.0 ** (np.arange(counts.shape[2]) / 2 - 24)
    size = int(np.argmax((counts.sum(axis=1) * lengths).sum(axis=1)))
    here = counts[size]
    number = here.sum(axis=1)
    middle = (np.cumsum(here, axis=1) >= np.maximum(number, 1)[:, None] / 2).argmax(axis=1)
    return np.where(number >= 16, lengths[middle], np.nan), number.astype(float), size


def slowed_down(case: Case) -> Finding | None:
    """Equal requests take several times longer for a while, though the job asks for no more than before."""
    seen = case.activity
    found = None if seen is None or not any(case.complete) else _slowed(seen, case.write)
    if seen is None or found is None:
        return None
    took, number, size = found
    known = ~np.isnan(took)
    if known.sum() < 4:
        return None
    usual = float(np.nanmedian(took))
    if 2.0 ** (size / 4) / usual >= case.limits.fast:
        return None  # of memory: they slow down when a cache is full
    load = seen.line[int(case.write)].sum(axis=0).reshape(WINDOWS, -1).sum(axis=1) / (seen.run_time / WINDOWS)
    slow = known & (took >= case.limits.slow * usual) & (number <= np.median(number[known]))
    slow &= load <= 1.5 * np.median(load[known])
    spent = number * np.nan_to_num(took)
    if not slow.any() or spent[slow].sum() < 0.1 * spent.sum():
        return None
    lost = float((spent * (1 - usual / np.where(known, took, 1.0)))[slow].sum() / spent.sum())
    others = case.own_share is not None and case.own_share <= 0.5
    claim = Claim(
        title="Equal requests take several times longer for a while: other jobs load the storage, or the storage has a"
        " fault.",
        time=lost * case.time,
        confidence="high" if others else "medium",
        reason="DXT has each request; "
        + ("the servers moved more for others meanwhile" if others else "what the servers did meanwhile is not known"),
        evidence=[
            *case.evidence(
                "duration of a request in the slowest window, over the usual duration",
                float(np.nanmax(took) / usual),
                "ratio",
            ),
            *case.evidence("slow windows of time", float(slow.sum()), "count"),
            *case.evidence("windows of time with requests of that size", float(known.sum()), "count"),
            *case.evidence("size of the compared requests", 2.0 ** (size / 4), "B", exact=True),
            *case.evidence("the job's own share of what its OSTs moved", _share(case), "share"),
        ],
        advice=[say.OTHER_LOAD],
        by_times=True,
    )
    return case.finding(SLOWED_DOWN, claim, chosen=case.files.critical)


def _share(case: Case) -> float:
    return float("nan") if case.own_share is None else case.own_share


SLOWED_DOWN = Cause(
    name="slowed_down",
    rule=slowed_down,
    cells=Cells(("data",), ("POSIX", "STDIO")),
    phrase="{way}s{at} that took several times longer for a while",
    section="The storage was slow",
    mechanism="Other jobs load the storage, or the storage has a fault.",
    condition="In some windows of time equal requests take {slow} times as long as usual (DXT).",
    sure="if the servers moved more for other jobs",
    sentences=("Equal requests take several times longer for a while",),
    advice=(Offer(ALWAYS, lambda _: say.OTHER_LOAD),),
)


def load_by_others(case: Case) -> Finding | None:
    """The job's OSTs move far more for others than for it."""
    if case.own_share is None or case.own_share > case.limits.own_share:
        return None
    claim = Claim(
        title=(
            f"Other jobs load the job's OSTs: {worded(case.value(1 - case.own_share), 'share')} of the bytes that the"
            " OSTs moved meanwhile were not the job's."
        ),
        time=case.time * (1 - case.own_share),
        confidence="medium",
        reason="the servers show that these bytes are not the job's, but not how much longer the job's own took",
        evidence=case.evidence("the job's own share of what its OSTs moved", case.own_share, "share"),
        advice=[say.OTHER_LOAD],
        at_most=True,
    )
    return case.finding(LOAD_BY_OTHERS, claim, chosen=case.files.critical)


LOAD_BY_OTHERS = Cause(
    name="load_by_others",
    rule=load_by_others,
    cells=Cells(("data",), ("POSIX", "STDIO")),
    phrase="{way}s{at} while other jobs loaded the storage",
    section="The storage was slow",
    mechanism="Other jobs load the storage: the servers' logs show it.",
    condition="At most {own_share} of the bytes that the job's OSTs moved are the job's own.",
    sentences=("Other jobs load the job's OSTs",),
    advice=(Offer(ALWAYS, lambda _: say.OTHER_LOAD),),
)
