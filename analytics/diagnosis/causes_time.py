"""The rules about what happens when: ranks that take turns, calls that wait, requests that slow down.

Problem. Sums of counters do not show whether ranks work at the same time, or wait for each other, for a server, or for
other jobs.

Algorithm. :mod:`.activity` has the requests of each rank by time. Ranks take turns where many move data and hardly more
than one is in a request at once, although some rank always is. Calls wait where MPI-IO takes far longer than the
requests that it makes. A stripe is slow where requests within it take several times longer for a byte than in the
others. Requests slow down where equal ones take several times longer in some windows of time, while the job does no
more than before: then others load the storage, or it is at fault.

Guarantees. Without DXT or HEATMAP none of these is said, but for the load by others, which needs the servers' counters,
and for calls that wait, which need the times of MPI-IO.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.activity import WINDOWS, Activity, Row
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.causes_calls import sieving
from mpiio_ext.analytics.diagnosis.late import all_but_one
from mpiio_ext.analytics.diagnosis.model import Confidence, Evidence, Finding
from mpiio_ext.analytics.diagnosis.ranks import time_in_calls
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.tables.arrays import Flags, Numbers

#: Share of the waiting from which on all of it is for one rank.
_ONE = 0.9


def _one(case: Case, place: int) -> Flags:
    return np.asarray(np.arange(len(case.files)) == place)


def turns(case: Case) -> Finding | None:
    """Many ranks access a file, one at a time."""
    limits = case.limits
    alone = ~case.collective  # else data are exchanged
    alone &= _waiting(case)[1] < limits.waits  # else calls overlap, and wait for locks
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
                *case.evidence("of it, some rank is in a request", row.wall / span, "share"),
                *(case.evidence("time in syncs, while no rank is in a request", synced, "s") if synced else []),
            ]
            why = "DXT has each request of each rank" + ("" if sure else "; syncs between them are known by their sum")
            time, moving = row.wall + synced, float(case.movers[place])
            return _turns(case, _one(case, place), time, moving, evidence, "high" if sure else "medium", why)
    return _turns_by_heatmap(case, alone)


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
        *case.evidence("ranks that move bytes in a bin of time with any (HEATMAP)", together, "count"),
        *case.evidence("ranks in calls at once, on average", calls, "count"),
    ]
    why = "HEATMAP has bytes by rank and bin of time, not calls"
    return _turns(case, case.files.critical, case.time, ranks, evidence, "medium", why)


def _turns(
    case: Case, chosen: Flags, time: float, moving: float, evidence: list[Evidence], confidence: Confidence, why: str
) -> Finding | None:
    return case.finding(
        "turns",
        f"Ranks take turns: many {case.files.direction} the data, and only one of them at a time.",
        time * (1 - 1 / max(moving, 2.0)),
        confidence,
        why,
        [*case.evidence("ranks that move data", moving, "count"), *evidence],
        [say.at_once(case.files.direction)],
        chosen,
        costs=True,
        at_most=True,
        by_times=True,
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
    together = [row.together for _, row in case.traced(chosen)]
    sure = bool(together) and max(together) <= case.limits.in_turn
    return case.finding(
        "waiting_calls",
        "Ranks wait inside of MPI-IO calls: these take"
        f" {worded(case.value(case.mean(longer, chosen)), 'ratio')} as long as"
        " the requests that they make (locks, atomic mode, a shared file pointer, or copies of pieces).",
        float(waits[chosen].sum()),
        "high" if sure else "medium",
        "the requests of all ranks are one after the other (DXT), their calls are not"
        if sure
        else "times of MPI-IO and of POSIX are in the log; what happens between, is not",
        [
            *case.evidence("time that a rank waits in MPI-IO calls", float(waits[chosen].sum()), "s"),
            *case.evidence("time of the slowest rank in requests", float(case.in_calls[chosen].sum()), "s"),
            *(case.evidence("ranks in a request at once, on average", max(together), "count") if together else []),
        ],
        [say.NO_LOCKS],
        chosen,
        costs=True,
        by_times=True,
    )


def late_rank(case: Case) -> Finding | None:
    """A rank comes late to collective calls, and the others wait in these for it: not for the storage."""
    files, limits = case.files, case.limits
    together = ((files["{collective}"] > 0) & ~(files["{independent}"] > 0)) | _by_library(case)
    if (found := late_to_open(case) or _early_to_open(case)) is not None:
        return found
    for place, row in case.traced(files.critical & together):
        lost, inside = min(row.late, float(case.exclusive[place])), float(row.calls.mean() if len(row.calls) else 0.0)
        if lost < limits.late * case.exclusive[place]:
            continue
        to_open = case.calls[place].waits if case.calls[place].late_rank == row.late_rank else 0.0
        who = f"rank {row.late_rank}{' most' if row.late_share < _ONE else ''}"
        return case.finding(
            "late_rank",
            f"Ranks wait in collective calls for one that comes late, {who}: not for the storage.",
            lost + to_open,
            "high",
            "DXT has the beginning and the end of each rank's calls; what the rank does between them is not in it",
            [
                *case.evidence("time that each of the others waits for the last one, on average", lost, "s"),
                *(case.evidence("and to open or close the file", to_open, "s") if to_open else []),
                *case.evidence("time of an average rank in these calls", inside, "s"),
                *case.evidence("time in which any rank is in a request", row.wall, "s"),
            ],
            [say.come_together(row.late_rank)],
            _one(case, place),
            costs=True,
            whole=case.time + to_open if to_open else None,
            by_times=True,
        )
    return _early_rank(case, together & (~np.array(case.complete) | _by_library(case)))


def _by_library(case: Case) -> Flags:
    """Return for each file whether ranks wait in collective calls of HDF5 or PnetCDF, beside independent ones below."""
    return np.array([calls.within != "MPI-IO" for calls in case.calls], bool)


def late_to_open(case: Case) -> Finding | None:
    """A rank comes late to open or close a file, and the others wait in these calls for it."""
    if not len(case.files):
        return None
    place = max(range(len(case.files)), key=lambda place: case.calls[place].waits)
    calls, row = case.calls[place], case.rows[place]
    again = 0.0  # for the same rank in collective reads and writes
    if row is not None and case.complete[place] and row.late_rank == calls.late_rank and row.late_share >= _ONE:
        again = min(row.late, float(case.exclusive[place]))
    whole = case.time + calls.waits
    if not calls.waits + again >= case.limits.late * whole > 0 or calls.waits < again:
        return None
    return case.finding(
        "late_rank",
        f"Ranks wait for one that comes late to open or close a file, rank {calls.late_rank}: not for the storage.",
        calls.waits + again,
        "high",
        "the library has measured how long each rank waits; what the late one does meanwhile is not known",
        [
            *case.evidence("time that each of the others waits there, on average", calls.waits, "s"),
            *(case.evidence("and in collective calls", again, "s") if again else []),
            *case.evidence("time of a rank in opening and closing, without that", calls.opening, "s"),
        ],
        [say.come_together(calls.late_rank)],
        _one(case, place),
        costs=True,
        whole=whole,
        by_times=True,
    )


def _early_to_open(case: Case) -> Finding | None:
    """One rank spends far less time than the others in opening and closing a file by MPI-IO: it is late to these calls.

    As in collective calls, all ranks but one must be in them for as long as the slowest, and not for their requests.
    """
    files = case.files
    meta = np.nan_to_num(files["meta_time"]) / np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    for place, calls in enumerate(case.calls):
        (least, _, most), count = calls.apart, float(np.nan_to_num(files["ranks"][place]))
        opening, moving = calls.opening - float(meta[place]), sum(calls.mean.values())
        lost = min(all_but_one(*calls.apart, count), opening) * count / max(count - 1, 1)  # the late one does not wait
        if not lost >= max(case.limits.late * (case.calling + lost), 2 * moving):
            continue
        return case.finding(
            "late_rank",
            f"Ranks wait for one that comes late to open or close a file, rank {calls.first}: not for the storage.",
            lost,
            "medium",
            "the rank spends far less time in MPI-IO calls, which hardly read and write; whether in opening or in"
            " closing, and what it does meanwhile, is not in the log",
            [
                *case.evidence("time of that rank in MPI-IO calls", least, "s"),
                *case.evidence("time of the slowest rank in them", most, "s"),
                *case.evidence("time of an average rank in opening and closing", calls.opening, "s"),
                *case.evidence("time of it in the calls of POSIX below", float(meta[place]), "s"),
            ],
            [say.come_together(calls.first)],
            _one(case, place),
            costs=True,
            whole=case.calling + lost,
            by_times=True,
        )
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
    in_requests = float(np.nan_to_num(time_in_calls(case.files)[place]))
    of_all = min(calls.alike * all_but_one(*calls.apart, count), calls.mean[case.write] - in_requests)
    return max(0.0, of_all) * count / max(count - 1, 1)  # the late one does not wait


def _early_rank(case: Case, chosen: Flags) -> Finding | None:
    """One rank spends far less time in collective calls than the others, which give them as many bytes: it is late."""
    requests = time_in_calls(case.files)
    for place in np.flatnonzero(chosen).tolist():
        calls, lost = case.calls[place], waiting_for_late(case, place)
        (least, mean, most), inside = calls.apart, calls.mean[case.write]
        if not lost >= case.limits.late * max(inside, case.exclusive[place]) > 0:
            continue
        return case.finding(
            "late_rank",
            f"Ranks wait in collective calls for one that comes late, rank {calls.first}: not for the storage.",
            lost,
            "medium",
            "the rank gives the calls as many bytes as the slowest one, and spends far less time in them; whether once"
            " or in each call is not in the log",
            [
                *case.evidence(f"time of that rank in {calls.within} calls", least, "s"),
                *case.evidence("time of an average rank in them", mean, "s"),
                *case.evidence("time of the slowest rank in them", most, "s"),
                *case.evidence("time of the slowest rank in requests", float(requests[place]), "s"),
            ],
            [say.come_together(calls.first)],
            _one(case, place),
            costs=True,
            whole=case.calling,
            by_times=True,
        )
    return None


def without_requests(case: Case, place: int) -> tuple[float, float]:
    """Return of the time in a file's collective calls (s) that in which no rank is in a request, and the whole.

    DXT shows both; else it is at least what an average rank spends in the calls beyond the requests of all ranks.
    """
    row, files = case.rows[place], case.files
    if not case.collective[place]:
        return 0.0, 0.0
    if row is not None and case.complete[place] and row.called > 0:
        return row.called - row.wall, row.called
    inside = case.calls[place].mean[case.write]
    return max(0.0, inside - float(np.nan_to_num(files["{time}"][place]))), inside


def _waited(case: Case, place: int) -> float:
    """Return the time (s) of a file's collective calls without requests; of ranks that make these side by side.

    DXT shows it; else the slowest rank's requests are all that the calls wait for, where ranks share the work.
    """
    least, inside = without_requests(case, place)
    if case.complete[place]:
        return least
    return max(0.0, inside - float(np.nan_to_num(time_in_calls(case.files)[place])))


def exchange(case: Case) -> Finding | None:
    """Most of the time in MPI-IO calls no rank is in a request: data are exchanged, or a rank comes late.

    Of both directions: each exchange takes some time, and that of the reads alone is no cause beside large writes.
    """
    files = case.files
    idle = np.array([_waited(case, place) for place in range(len(files))])
    inside = np.maximum(case.exclusive, np.where(idle > 0, case.in_mpi, 0.0))
    chosen = (files["ranks"] > 1) & (idle > 0) & (idle >= 0.5 * inside)
    if not chosen.any() or idle[chosen].sum() < 0.5 * sum(sum(calls.mean.values()) for calls in case.calls):
        return None
    return case.finding(
        "exchange",
        "Collective calls are not in requests for most of their time: ranks exchange data, or wait for one that comes"
        " late.",
        float(idle[chosen].sum()),
        "medium",
        "times of the calls and of the requests are in the log; which of the two it is, is not",
        [
            *case.evidence("time in collective calls without a request", float(idle[chosen].sum()), "s"),
            *case.evidence("time of all ranks in requests", case.total("{time}", chosen), "s"),
        ],
        [say.come_together()],
        chosen,
        costs=True,
        whole=case.calling,
        by_times=True,
    )


def slow_stripe(case: Case) -> Finding | None:
    """Requests to one OST of a striped file take far longer than those to the others."""
    for place, row in case.traced(case.files.critical):
        there = row.stripe_bytes > 0
        if there.sum() < case.limits.alike_osts:
            continue
        times = np.where(there, row.stripe_time / np.maximum(row.stripe_bytes, 1.0), np.nan)
        median = float(np.nanmedian(times))
        slow = there & (times >= case.limits.slow * median)
        enough = row.stripe_bytes[slow] * float(row.requests.sum()) / max(float(row.moved.sum()), 1.0) >= 8
        if not slow.any() or slow.sum() > max(1, there.sum() // 4) or not enough.all():
            continue
        lost = float((row.stripe_time - row.stripe_bytes * median)[slow].sum() / row.stripe_time.sum())
        worst = int(np.nanargmax(np.where(slow, times, np.nan)))
        return case.finding(
            "slow_ost",
            f"The OST of stripe {worst} of a file is {worded(case.value(float(times[worst] / median)), 'ratio')} slower"
            " than those of the others.",
            lost * float(case.exclusive[place]),
            "high",
            "DXT has the requests to each stripe: those to the others are not slow",
            [
                *case.evidence("time for a byte there, over the median stripe", float(times[worst] / median), "ratio"),
                *case.evidence("stripes compared", float(there.sum()), "count"),
                *case.evidence("slow ones among them", float(slow.sum()), "count"),
            ],
            say.contact([]),
            _one(case, place),
        )
    return None


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
    return case.finding(
        "slowed_down",
        "Equal requests take several times longer for a while: others load the storage, or it is at fault.",
        lost * case.time,
        "high" if others else "medium",
        "DXT has each request; "
        + ("the servers moved more for others meanwhile" if others else "what the servers did meanwhile is not known"),
        [
            *case.evidence("duration in the slowest window, over the usual", float(np.nanmax(took) / usual), "ratio"),
            *case.evidence("windows of time that are slow", float(slow.sum()), "count"),
            *case.evidence("windows with such requests", float(known.sum()), "count"),
            *case.evidence("size of these requests", 2.0 ** (size / 4), "B", exact=True),
            *case.evidence("the job's own share of what its OSTs moved", _share(case), "share"),
        ],
        [say.OTHER_LOAD],
        case.files.critical,
        by_times=True,
    )


def _share(case: Case) -> float:
    return float("nan") if case.own_share is None else case.own_share


def load_by_others(case: Case) -> Finding | None:
    """The job's OSTs move far more for others than for it."""
    if case.own_share is None or case.own_share > case.limits.own_share:
        return None
    return case.finding(
        "load_by_others",
        f"Others load the job's OSTs: {worded(case.value(1 - case.own_share), 'share')} of what they moved meanwhile"
        " was not the job's.",
        case.time * (1 - case.own_share),
        "medium",
        "the servers show that these bytes are not the job's, but not how much longer the job's own took",
        case.evidence("the job's own share of what its OSTs moved", case.own_share, "share"),
        [say.OTHER_LOAD],
        case.files.critical,
        at_most=True,
    )
