"""The rules about ranks: one or few do the work, some have more of it, or all wait for metadata.

Problem. A sum over ranks does not tell what the job waits for: a rank does, the slowest one.

Algorithm. Times and bytes of one rank (:mod:`.ranks`) are held against the critical time and against the bytes of the
file. Confidence is high where both speak for the cause: the rank has the bytes, and it spends the time.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.model import Finding
from mpiio_ext.analytics.diagnosis.words import said
from mpiio_ext.analytics.tables.arrays import Flags, Numbers


def _collective(case: Case) -> Flags:
    """Return for each file whether at least half of its MPI-IO calls are collective."""
    found: Flags = (case.per_file["no_collective"] <= 0.5) & (case.files["{collective}"] > 0)
    return found


def _busy(case: Case, chosen: Flags) -> float:
    """Return the share of the chosen files' exclusive time in which their slowest rank is in data calls."""
    time = float(case.exclusive[chosen].sum())
    return float(np.nansum(case.in_calls[chosen])) / time if time > 0 else 0.0


def root_writes(case: Case) -> Finding | None:
    """One process moves most of the data, without collective calls."""
    files, limits = case.files, case.limits
    moved, total = np.nan_to_num(files["{bytes}"]), float(files.sum(files["{bytes}"])[0])
    root = case.per_job.get("root_writes", float("nan"))
    of_root = files["root_bytes_written"] >= limits.root * files["bytes_written"]
    single = files.critical & (case.movers * limits.one_rank <= 1) & ~_collective(case)
    largest = int(np.argmax(np.where(single, moved, -1)))
    share, chosen = moved[largest] / total if single.any() and total > 0 else 0.0, np.arange(len(files)) == largest
    if root >= share:
        share, chosen = root, files.critical & of_root
    by_root = (bool(of_root[chosen].all()) and files.direction == "write") or files["slowest_rank"][largest] == 0
    enough = limits.one_rank if not root >= share else max(limits.root, min(2 / case.processes, limits.one_rank))
    if not case.processes > 1 or not share >= enough or not chosen.any() or total < limits.one_rank_bytes:
        return None
    sure, verb = share >= limits.one_rank and _busy(case, chosen) >= limits.busy_rank, f"{files.direction}s"
    return case.finding(
        "root_writes" if files.direction == "write" else "root_reads",
        f"{'Rank 0' if by_root else 'One rank'} {verb} most of the data.",
        float(case.exclusive[chosen].sum()),
        "high" if sure else "medium",
        "bytes of each rank are in the log" + ("" if sure else "; the rank is in calls for a small part of the time"
                                              " only, or others have some"),
        [
            *case.evidence(f"bytes that {'rank 0' if by_root else 'it'} {'wrote' if verb == 'writes' else 'read'}",
                           share, "share"),
            *case.evidence("an equal part would be", 1 / case.processes, "share"),
            *case.evidence("processes", case.processes, "count"),
            *case.evidence("time of the rank in calls, of the critical time", _busy(case, chosen), "share"),
        ],
        [say.parallel_root()],
        chosen,
        at_most=True,
        costs=sure,
    )  # fmt: skip


def few_aggregators(case: Case) -> Finding | None:
    """Collective calls are carried out by one process, or by hardly any."""
    files, limits, ranks = case.files, case.limits, case.files["ranks"]
    stripes = np.nan_to_num(files["stripe_count"], nan=1.0)
    few = (case.movers * limits.one_rank <= 1) | ((case.movers <= ranks / 16) & (2 * case.movers <= stripes))
    chosen = files.critical & _collective(case) & (ranks > 1) & few
    chosen &= files["{bytes}"] >= limits.aggregated_bytes  # a single round of the exchange needs one aggregator
    if not chosen.any():
        return None
    row = next(row for row in case.order if chosen[row])
    count, sure = round(float(case.movers[row])), _busy(case, chosen) >= limits.busy_aggregator
    who = f"{count} of {said(case.value(ranks[row]), 'count')} processes"
    return case.finding(
        "few_aggregators",
        f"Too few aggregators: {who} {files.direction}{'s' * (count == 1)} all the data of the collective calls.",
        float(case.exclusive[chosen].sum()),
        "high" if sure else "medium",
        "the slowest rank has the bytes of the file, the calls are collective"
        + ("" if sure else "; it is in calls for a small part of the time only"),
        [
            *case.evidence("bytes of the file over those of its slowest rank", float(case.movers[row]), "ratio"),
            *case.evidence("processes that opened it", float(ranks[row]), "count"),
            *case.evidence("OSTs of the file", float(files["stripe_count"][row]), "count"),
            *case.evidence("time of that rank in calls, of the critical time", _busy(case, chosen), "share"),
        ],
        [say.aggregators(max(2, int(min(ranks[row], np.nanmax([stripes[row], 8])))))],
        chosen,
        at_most=True,
        costs=sure,
    )  # fmt: skip


def metadata(case: Case) -> Finding | None:
    """Opens, stats and syncs take the time of each process."""
    files = case.files
    (meta, data), calls = case.rank_time, np.nan_to_num(files["meta_time"])
    if not case.metadata >= case.limits.metadata or meta > 1.1 * case.run_time:
        return None  # of threads, or blocked in a pipe: no rank spends more time than there is
    shared = files["ranks"] > 1
    of_a_rank = calls / np.where(shared, files["ranks"], 1.0)
    together = bool(of_a_rank[shared].sum() >= 0.5 * meta)
    opens = float(np.nansum(files["opens"] / np.where(shared, files["ranks"], max(case.processes, 1.0))))
    chosen = calls > 0
    chosen &= shared if together else chosen
    much = meta >= case.limits.much_metadata * case.run_time
    sure = meta >= data and opens >= case.limits.many_opens and much
    who = "Every process opens or looks up the same file again and again" if together else "Metadata storm"
    return case.finding(
        "shared_opens" if together and sure else "metadata",
        f"{who}: metadata calls (open, stat, seek, sync) take most of the I/O time of each process."
        if sure
        else "Metadata calls (open, stat, seek, sync) take much of the I/O time.",
        meta,
        "high" if sure else "medium",
        "times of calls over all ranks, divided by the ranks that made them"
        + ("" if sure else "; few opens of each process, or not much of the run time"),
        [
            *case.evidence("metadata calls of a process", meta, "s"),
            *case.evidence("reads and writes of a process", data, "s"),
            *case.evidence("metadata, of its time in calls", case.metadata, "share"),
            *case.evidence("opens of a process", opens, "count"),
            *case.evidence("files", float(np.count_nonzero(chosen)), "count"),
            *case.evidence("run time", case.run_time, "s"),
        ],
        [say.metadata()],
        chosen,
        whole=max(case.time, meta + data),
    )


def syncs(case: Case) -> Finding | None:
    """Writes are followed by syncs."""
    files, limits, writes = case.files, case.limits, case.files.requests("write")
    if files.direction != "write":
        return None
    chosen = files.critical & (case.syncs >= limits.synced * writes)
    chosen &= case.syncs >= limits.many_syncs * np.maximum(np.nan_to_num(files["ranks"]), 1.0)
    if not chosen.any():
        return None
    each = case.total("write_time", chosen) / float(case.syncs[chosen].sum())
    sure = each >= limits.slow_sync and _busy(case, chosen) >= limits.busy_rank
    return case.finding(
        "syncs",
        "Writes are followed by syncs (fsync) again and again: each waits for the storage.",
        float(np.nansum(case.in_calls[chosen])),
        "high" if sure else "medium",
        "counted by Darshan, which adds the time of syncs to that of writes"
        + ("" if sure else "; they take little time, or not much of the critical time"),
        [
            *case.evidence("syncs", float(case.syncs[chosen].sum()), "count"),
            *case.evidence("writes", float(np.nansum(writes[chosen])), "count"),
            *case.evidence("time for each sync, with the writes before it", each, "s"),
            *case.evidence("time of the slowest rank in them, of the critical time", _busy(case, chosen), "share"),
        ],
        [say.fewer_syncs()],
        chosen,
        at_most=True,
        costs=sure,
    )


def stragglers(case: Case) -> Finding | None:
    """The slowest rank needs far longer than the average one."""
    files, ranks = case.files, case.files["ranks"]
    value = case.per_file["straggler"]
    moved = np.nan_to_num(files["{bytes}"])
    other = np.nan_to_num(files["bytes_read"]) + np.nan_to_num(files["bytes_written"]) - moved
    most_possible = 1 - 1 / np.where(ranks > 1, ranks, np.nan)
    uneven = (files["slowest_rank_bytes"] - other) * ranks >= case.limits.uneven * moved
    chosen = files.critical & (value >= case.limits.straggler * np.where(uneven, most_possible, 1.0))
    chosen &= files["{time}"] >= 0.5 * (files["read_time"] + files["write_time"])  # else it lags in the other direction
    if not chosen.any():
        return _uneven_files(case)
    row = next(row for row in case.order if chosen[row])
    most, least = float(files["slowest_rank_bytes"][row]), float(files["fastest_rank_bytes"][row])
    by_bytes = most > 2 * least
    sure = by_bytes and bool(uneven[row]) and _busy(case, chosen) >= case.limits.busy_rank
    return case.finding(
        "stragglers",
        f"{_LAGS[by_bytes]}.",
        float(np.sum(np.where(chosen, value * np.minimum(case.exclusive, files["slowest_rank_time"]), 0))),
        "high" if sure else "medium" if by_bytes else "low",
        "slowest and fastest rank are in the log, the others only as a sum",
        [
            *case.evidence(
                "time of the slowest rank that an average one does not need", case.mean(value, chosen), "share"
            ),
            *case.evidence("time of the slowest rank in calls", float(files["slowest_rank_time"][row]), "s"),
            *case.evidence("bytes of the slowest rank", most, "B"),
            *case.evidence("bytes of the fastest rank", least, "B"),
            *case.evidence("bytes of an average rank", float(moved[row] / ranks[row]), "B"),
        ],
        [say.imbalance(by_bytes)],
        chosen,
    )


_LAGS = {
    True: "Imbalance: the slowest rank needs far longer than an average one, and has more to do",
    False: "The slowest rank needs far longer than an average one, with as much to do",
}


def _uneven_files(case: Case) -> Finding | None:
    """Of files of one rank each, some have far more bytes, and take far longer."""
    files = case.files
    own = files.counted & (files["ranks"] == 1) & (files["{bytes}"] > 0)
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
        [say.imbalance(by_bytes=True)],
        own & (files["{bytes}"] >= case.limits.uneven * moved.mean()),
    )


def _lag(times: Numbers) -> float:
    """Return the share of the longest time that an average one does not have."""
    return float(1 - times.mean() / times.max()) if len(times) and times.max() > 0 else 0.0
