"""The rules about imbalance: a rank needs longer than the others, as it has more to do or for another reason.

Problem. The slowest rank of a file is in the log, with what it moves both ways; of a job that has many files it may be
another one in each.

Algorithm. DXT has the time and bytes of each rank in each file, HEATMAP its bytes in all. A rank has more to do where
it moves 1.5 times what an average one does of those that move any. Ranks that are even over all files are no imbalance.

A rank has small pieces for itself where its bytes beyond the fastest rank's are those of all small pieces.

Guarantees. Aggregators of collective calls, and what fills a file before the ranks write (MPI_File_preallocate), are no
imbalance of the program.
"""

from __future__ import annotations

import collections

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.causes_ranks import busy_share, filled
from mpiio_ext.analytics.diagnosis.model import Finding
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.files import bins
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import amount_text


def _of_ranks(case: Case) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return of each file the lag of its slowest rank, that rank's time, and bytes of it and of an average rank.

    DXT has all ranks; without it a log has the slowest and the fastest one, with what they move both ways.
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

    Then each rank makes the requests of its own bytes; else a rank carries out what others have. The log has the sum of
    the squares of the ranks' shares: where one has more, and the others are alike, the shares of both are the same.
    Where all have as many bytes of requests, none of them does the work of others, either.
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
    limits, processes, traced = case.limits, max(case.processes, 1.0), case.traced(case.files.critical)
    heat = None if case.activity is None else case.activity.heat.get(case.write)
    as_much = heat is not None and heat.sum() > 0 and bool(heat.max() < limits.uneven * heat.mean())
    if len(traced) < len(case.order):
        return as_much, False
    busy: collections.Counter[int] = collections.Counter()
    for _, row in traced:
        busy.update(dict(zip(row.ranks.tolist(), row.busy.tolist(), strict=True)))
    return as_much, max(busy.values(), default=0.0) < limits.uneven * sum(busy.values()) / processes


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
        return (None if as_much else _uneven_ranks(case)) or _uneven_files(case)
    row = next(row for row in case.order if chosen[row])
    traced = case.complete[row]
    by_bytes = bool(uneven[row]) if traced else bool(not as_much and most[row] > 2 * files["fastest_rank_bytes"][row])
    sure = by_bytes and bool(uneven[row]) and busy_share(case, chosen) >= case.limits.busy_straggler
    return case.finding(
        "stragglers",
        f"{_LAGS[by_bytes]}.",
        float(np.sum(np.where(chosen, value * np.minimum(case.exclusive, time), 0))),
        "high" if sure else "medium" if by_bytes or traced else "low",
        "DXT has time and bytes of every rank"
        if traced
        else "slowest and fastest rank are in the log, the others only as a sum",
        [
            *case.evidence(
                "time of the slowest rank that an average one does not need", case.mean(value, chosen), "share"
            ),
            *case.evidence("time of the slowest rank in calls", float(time[row]), "s"),
            *case.evidence("bytes of the slowest rank", float(most[row]), "B"),
            *case.evidence("bytes of the fastest rank", np.nan if traced else files["fastest_rank_bytes"][row], "B"),
            *case.evidence("bytes of an average rank", float(mean[row]), "B"),
        ],
        [say.imbalance(by_bytes, bool(case.collective[chosen].any()))],
        chosen,
        by_times=not by_bytes,
    )


#: Bounds of the parts of Darshan's histogram that are small pieces (B); and the number of pieces that are many.
_SMALL, _MANY = np.array([0.0, 100.0, 1024.0, 10240.0]), 100


def _pieces(counts: Numbers, moved: float) -> tuple[float, float, float]:
    """Return how many small pieces there are beside large ones, and their bytes at least and at most; zeros if none.

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
        sure = alike and in_them >= 0.5 * longer
        return case.finding(
            "pieces_of_one",
            f"Rank {rank} alone {verb} {worded(case.value(small), 'count')} small pieces beside the large ones,"
            f" {amount_text(case.value(more / small))} each, and needs {worded(case.value(longer), 's')} longer than"
            " the others.",
            min(longer, case.calling),
            "high" if sure else "medium",
            "it moves as many bytes more than the fastest rank as all small pieces have"
            + ("" if sure else "; whether it needs its time for them, no request tells (DXT)"),
            [
                *case.evidence("small pieces", small, "count"),
                *case.evidence("mean piece", more / small, "B", exact=True),
                *case.evidence("larger ones", float(counts[3:].sum()), "count"),
                *case.evidence("bytes of that rank beyond those of the fastest", more, "B"),
                *case.evidence("its time in calls", most, "s"),
                *case.evidence("time of each other rank, on average", most - longer, "s"),
            ],
            [say.larger_requests(case.files.direction, mpiio=module == "MPI-IO")],
            np.arange(len(files)) == place,
            at_most=True,
            costs=True,
            whole=case.calling,
        )
    return None


_LAGS = {
    True: "Imbalance: the slowest rank needs far longer than an average one, and has more to do",
    False: "The slowest rank needs far longer than an average one, with as much to do",
}


def _uneven_ranks(case: Case) -> Finding | None:
    """Of files of one rank each, a rank has far more bytes than the others, and takes far longer."""
    files, limits, (times, moved) = case.files, case.limits, case.of_owners
    if len(times) < 2 or not moved.sum() >= max(limits.one_rank * case.total("{bytes}", files.counted), 1.0):
        return None
    slowest, most = int(np.argmax(times)), float(times.max())
    several = 2 * np.count_nonzero(moved >= 0.01 * moved.max()) >= len(moved)  # else few have any
    uneven = moved[slowest] >= max(limits.uneven * moved.mean(), limits.one_rank_bytes)
    if not several or not uneven or not _lag(times) >= limits.straggler * (1 - 1 / len(times)):
        return None
    share, over = float(moved[slowest] / moved.sum()), float(moved[slowest] / moved.mean())
    has = f"{worded(case.value(share), 'share')} of the bytes" if share >= limits.root else ""
    has = has or f"{worded(case.value(over), 'ratio')} the bytes of an average rank"
    sure = most >= limits.busy_straggler * case.time
    return case.finding(
        "stragglers",
        f"Imbalance: rank {slowest} {'writes' if case.write else 'reads'} {has}, and needs far longer than an average"
        " one.",
        min(most, case.time),
        "high" if sure else "medium",
        "each rank has files of its own, whose bytes and times are in the log"
        + ("" if sure else "; it is in calls for a small part of the time only"),
        [
            *case.evidence("time of that rank in calls", most, "s"),
            *case.evidence("time of an average rank", float(times.mean()), "s"),
            *case.evidence("bytes of that rank", float(moved[slowest]), "B"),
            *case.evidence("bytes of an average rank", float(moved.mean()), "B"),
            *case.evidence("files of that rank", float(((case.owners == slowest) & files.counted).sum()), "count"),
        ],
        [say.imbalance(by_bytes=True, collective=bool(case.collective[case.owners >= 0].any()))],
        files.counted & (case.owners == slowest),
        at_most=True,
    )


def _uneven_files(case: Case) -> Finding | None:
    """Of files of one rank each, some have far more bytes, and take far longer."""
    files = case.files
    own = files.counted & (files["ranks"] == 1) & (files["{bytes}"] > 0)
    own &= files["{bytes}"] >= 0.01 * np.max(files["{bytes}"], initial=0.0, where=own)  # not standard output
    count = int(own.sum())
    if count < 2 or not case.processes / 2 <= count <= case.processes:
        return None
    moved, times = files["{bytes}"][own], case.files["{time}"][own]
    value, unevenness = _lag(times), float(moved[np.argmax(times)] / moved.mean())
    if not value >= case.limits.straggler * (1 - 1 / count) or unevenness < case.limits.uneven:
        return None
    return case.finding(
        "stragglers",
        f"{_LAGS[True]}: a file of its own that is larger.",
        value * float(times.max()),
        "high",
        "each rank has a file of its own, whose bytes and time are in the log",
        [
            *case.evidence("time of the slowest rank that an average one does not need", value, "share"),
            *case.evidence("time of the slowest rank in calls", float(times.max()), "s"),
            *case.evidence("its bytes", float(moved[np.argmax(times)]), "B"),
            *case.evidence("bytes of an average rank", float(moved.mean()), "B"),
        ],
        [say.imbalance(by_bytes=True, collective=bool(case.collective[own].any()))],
        own & (files["{bytes}"] >= case.limits.uneven * moved.mean()),
    )


def _lag(times: Numbers) -> float:
    """Return the share of the longest time that an average one does not have."""
    return float(1 - times.mean() / times.max()) if len(times) and times.max() > 0 else 0.0
