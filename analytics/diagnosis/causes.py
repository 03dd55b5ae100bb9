"""The rules: what in a job's critical files may have made it slow, and how much of the critical time that explains.

Each rule looks at a :class:`Case` and returns a finding or nothing. A share of critical time is either the exclusive
time of the files that the rule is about (``at_most``), or, where that can be computed, the time that it costs. Rules
know each other's pitfalls: small requests that are consecutive are no cause (the operating system merges them; IOMiner,
Section III-F); where collective calls are made, ranks do not meet at an OST, aggregators do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.model import Finding
from mpiio_ext.analytics.diagnosis.words import said
from mpiio_ext.analytics.factors.storage import alike, ost_times

__all__ = ["RULES", "dominant_file"]


def slow_ost(case: Case) -> Finding | None:
    """Files on one OST are far slower than their likes on the others."""
    limits, files = case.limits, case.files
    if not case.per_job["slow_ost"] >= limits.slow:
        return slow_file(case)
    _, osts, times, numbers = ost_times(files)
    bad = times >= limits.slow * np.median(times)
    order = np.argsort(-times[bad])
    worst, worst_times, worst_numbers = osts[bad][order], times[bad][order], numbers[bad][order]
    rows, targets = files.ost_pairs
    on_bad = np.zeros(len(files), dtype=bool)
    on_bad[rows[np.isin(targets, worst)]] = True
    on_bad &= files.counted
    sure = worst_numbers[0] >= 4 and len(worst) <= max(1, len(osts) // 4)
    names = case.ost_names(worst)
    evidence = [
        *case.evidence(
            f"mean time for a byte on OST {names[0]}, over the median OST", case.per_job["slow_ost"], "ratio"
        ),
        *case.evidence("bandwidth of a file there", 1 / worst_times[0], "B/s"),
        *case.evidence("bandwidth of a file on the median OST", 1 / float(np.median(times)), "B/s"),
        *case.evidence("alike files there", float(worst_numbers[0]), "count"),
        *case.evidence("OSTs compared", float(len(osts)), "count"),
        *case.evidence("critical time without the files there", case.time_without(on_bad), "s"),
    ]
    return case.finding(
        "slow_ost",
        f"OST {names[0]} is {said(case.value(case.per_job['slow_ost']), 'ratio')} slower than the others."
        if len(worst) == 1
        else f"{len(worst)} OSTs are far slower than the others, OST {names[0]} most.",
        case.time - case.time_without(on_bad),
        "high" if sure else "medium",
        "several alike files on the same OST are slow, and those on the others are not"
        if sure
        else "few alike files to compare, or many slow OSTs: it may also be load by others",
        evidence,
        say.contact(names),
        on_bad,
        worst,
    )


def slow_file(case: Case) -> Finding | None:
    """Single files are far slower than their likes, and it is not known, or not due to, which OST they are on."""
    if not case.per_job["slow_file"] >= case.limits.slow:
        return None
    times = alike(case.files)
    chosen = times >= case.limits.slow * np.nanmedian(times)
    evidence = [
        *case.evidence(
            "time for a byte of the slowest file, over the median of its likes", case.per_job["slow_file"], "ratio"
        ),
        *case.evidence("files that are alike", float(np.count_nonzero(~np.isnan(times))), "count"),
        *case.evidence("critical time without the slow ones", case.time_without(chosen), "s"),
    ]
    return case.finding(
        "slow_file",
        "Some files take far longer than others with as many bytes.",
        case.time - case.time_without(chosen),
        "low",
        "no OST stands out or none is known; caches, load by others and slow nodes do this too",
        evidence,
        [say.imbalance(by_bytes=False)],
        chosen,
    )


def small_requests(case: Case) -> Finding | None:
    """Requests are small and jump about."""
    limits = case.limits
    small, jumps = case.per_file["small"], case.per_file["non_consecutive"]
    chosen = case.files.critical & (small >= limits.small) & (jumps >= limits.non_consecutive)
    chosen &= case.request_bytes <= limits.small_bytes
    if not chosen.any():
        return None
    independent, collective = case.total("{independent}", chosen), case.total("{collective}", chosen)
    calls, requests = np.nansum([independent, collective]), float(np.nansum(case.files.requests()[chosen]))
    evidence = [
        *case.evidence(f"requests of at most {said(limits.small_bytes, 'B')}", case.mean(small, chosen), "share"),
        *case.evidence("requests that do not follow the one before", case.mean(jumps, chosen), "share"),
        *case.evidence("mean request", case.total("{bytes}", chosen) / requests, "B"),
        *case.evidence("requests", requests, "count"),
        *case.evidence("independent MPI-IO calls", independent, "count"),
        *case.evidence("collective MPI-IO calls (of each rank)", collective, "count"),
    ]
    direction = case.files.direction
    if calls > 0 and collective >= calls / 2:
        advice = [say.collective_buffering(direction)] if requests >= 0.9 * collective else []
    elif calls > 0:
        advice = [say.use_collective(direction), say.delegates()]
    else:
        advice = [say.larger_requests(mpiio=False)]
    return case.finding(
        "small_requests",
        f"The {direction}s of critical files are small and not consecutive.",
        float(case.exclusive[chosen].sum()),
        "high" if case.mean(small, chosen) > 0.9 else "medium",
        "counted by Darshan for each request that reached the operating system",
        evidence,
        [*advice, say.measure()],
        chosen,
        at_most=True,
    )


def read_modify_write(case: Case) -> Finding | None:
    """The MPI library reads ranges of a file in order to write pieces of them: data sieving."""
    files = case.files
    asked, read = files["mpiio_bytes_read"], files["bytes_read"]
    written, stored = files["mpiio_bytes_written"], files["bytes_written"]
    extra = read - asked  # unknown where Darshan has either not
    chosen = files.critical & (written > 0) & (extra >= case.limits.read_modify_write * written)
    if not chosen.any():
        return None
    direction = files.direction
    part = np.ones(len(files)) if direction == "write" else np.clip(extra / np.where(read > 0, read, np.nan), 0, 1)
    return case.finding(
        "read_modify_write",
        "The MPI library reads what it is about to overwrite: it writes small pieces by read-modify-write."
        if direction == "write"
        else "The reads are not the program's: the MPI library reads what it is about to overwrite.",
        float((case.exclusive * part)[chosen].sum()),
        "high" if not (asked[chosen] > 0).any() else "medium",
        "POSIX reads bytes of the file that no MPI-IO call asked for"
        + ("" if direction == "read" else "; how long the ranges stay locked is not in the log"),
        [
            *case.evidence("read through POSIX", float(read[chosen].sum()), "B"),
            *case.evidence("read through MPI-IO", float(asked[chosen].sum()), "B"),
            *case.evidence("written through POSIX", case.total("bytes_written", chosen & ~np.isnan(stored)), "B"),
            *case.evidence("written through MPI-IO", float(written[chosen].sum()), "B"),
        ],
        say.no_sieving(),
        chosen,
        at_most=direction == "write",
    )


def contention(case: Case) -> Finding | None:
    """Many processes meet at few OSTs."""
    ratio = case.per_file["processes_per_ost"]
    aggregated = case.per_file["no_collective"] < case.limits.independent
    chosen = case.files.critical & (ratio >= case.limits.contention) & ~aggregated
    if not chosen.any():
        return None
    row = next(row for row in case.order if chosen[row])
    ranks, count = float(case.files["ranks"][row]), float(case.files["stripe_count"][row])
    osts = f"{count:.0f} OST{'s' if count != 1 else ''}"
    return case.finding(
        "contention",
        f"{said(case.value(ranks), 'count')} processes {case.files.direction} a file that lies on {osts}.",
        float(case.exclusive[chosen].sum()),
        "high" if count == 1 and ranks >= 16 else "medium",
        "layout and processes are in the log; that they meet at the same time is assumed",
        [
            *case.evidence("processes per OST, weighted by exclusive time", case.mean(ratio, chosen), "ratio"),
            *case.evidence("OSTs of all files of the job", case.per_job["osts"], "count"),
            *case.evidence("OSTs that are known to exist", case.known_osts or float("nan"), "count"),
        ],
        [*say.stripes(ranks, count, case.known_osts), say.use_collective(case.files.direction)],
        chosen,
        at_most=True,
    )


def root_writes(case: Case) -> Finding | None:
    """Rank 0 writes most."""
    share = case.per_job.get("root_writes", float("nan"))
    if not share >= case.limits.root:
        return None
    root, written = case.files["root_bytes_written"], case.files["bytes_written"]
    chosen = case.files.critical & (root >= case.limits.root * written)
    processes = float(np.nanmax(case.files["processes"]))
    return case.finding(
        "root_writes",
        "Rank 0 writes most of the data.",
        float(case.exclusive[chosen].sum()),
        "high",
        "bytes of each rank are in the log",
        [
            *case.evidence("bytes that rank 0 wrote", share, "share"),
            *case.evidence("an equal part would be", 1 / processes, "share"),
            *case.evidence("processes", processes, "count"),
        ],
        [say.parallel_root()],
        chosen,
        at_most=True,
    )


def serialised(case: Case) -> Finding | None:
    """Files are accessed one after the other."""
    value, files = case.per_job["serialised"], case.files
    if not value >= case.limits.serialised or len(case.order) < 2:
        return None
    longest = float(files.largest(files.duration)[0])
    return case.finding(
        "serialised",
        f"Files are {'written' if files.direction == 'write' else 'read'} one after the other.",
        case.time - longest,
        "medium",
        "from the times of the files; whether the program could overlap them is not in the log",
        [
            *case.evidence("critical files", float(len(case.order)), "count"),
            *case.evidence("how little they overlap (1: not at all)", value, "share"),
            *case.evidence("longest single file", longest, "s"),
        ],
        [say.overlap()],
        files.critical,
        at_most=True,
    )


def metadata(case: Case) -> Finding | None:
    """Opens, stats and syncs take the time."""
    files = case.files
    data = np.nan_to_num(files["read_time"]) + np.nan_to_num(files["write_time"])
    total = files["meta_time"] + data
    share = np.divide(files["meta_time"], total, out=np.full(len(files), np.nan), where=total > 0)
    chosen = files.critical & (share >= case.limits.metadata)
    return case.finding(
        "metadata",
        "Metadata calls (open, stat, seek, sync) take much of the I/O time.",
        float(np.nansum(np.where(chosen, np.minimum(share * case.exclusive, files["meta_time"]), 0))),
        "medium",
        "times of calls are summed over ranks; how they overlap is not in the log",
        [
            *case.evidence("share of the critical files' time in calls", case.mean(share, chosen), "share"),
            *case.evidence("in all files of the job", case.per_job["metadata"], "share"),
            *case.evidence("opens of these files", case.total("opens", chosen), "count"),
        ],
        [say.metadata()],
        chosen,
    )


def stragglers(case: Case) -> Finding | None:
    """The slowest rank needs far longer than the average one."""
    value = case.per_file["straggler"]
    chosen = case.files.critical & (value >= case.limits.straggler)
    if not chosen.any():
        return None
    row = next(row for row in case.order if chosen[row])
    most, least = case.files["slowest_rank_bytes"][row], case.files["fastest_rank_bytes"][row]
    by_bytes = bool(most > 2 * least)
    return case.finding(
        "stragglers",
        "The slowest rank needs far longer than an average one, and has more to do."
        if by_bytes
        else "The slowest rank needs far longer than an average one, with as much to do.",
        float(np.sum(np.where(chosen, value * np.minimum(case.exclusive, case.files["slowest_rank_time"]), 0))),
        "medium" if by_bytes else "low",
        "slowest and fastest rank are in the log, the others only as a sum",
        [
            *case.evidence(
                "time of the slowest rank that an average one does not need", case.mean(value, chosen), "share"
            ),
            *case.evidence("time of the slowest rank in calls", float(case.files["slowest_rank_time"][row]), "s"),
            *case.evidence("bytes of the slowest rank", float(most), "B"),
            *case.evidence("bytes of the fastest rank", float(least), "B"),
        ],
        [say.imbalance(by_bytes)],
        chosen,
    )


def small_files(case: Case) -> Finding | None:
    """Many small files."""
    chosen = case.files.critical & (case.per_file["small_files"] > 0)
    small = case.files.counted & (case.files["{bytes}"] <= case.limits.small_file_bytes)
    return case.finding(
        "small_files",
        "The job spends its time on many small files.",
        float(case.exclusive[chosen].sum()),
        "medium",
        "each file is opened, and cannot be read ahead or written in large pieces",
        [
            *case.evidence(f"files of at most {said(case.limits.small_file_bytes, 'B')}", float(small.sum()), "count"),
            *case.evidence("bytes in them", case.total("{bytes}", small) if small.any() else float("nan"), "B"),
        ],
        [say.bundle()],
        chosen,
        at_most=True,
    )


def unaligned(case: Case) -> Finding | None:
    """Shared files are accessed across block boundaries."""
    value = case.per_file["unaligned"]
    chosen = case.files.critical & (value >= case.limits.unaligned) & (case.files["ranks"] > 1)
    return case.finding(
        "unaligned",
        "Requests to shared files do not begin at blocks of the file system.",
        float(case.exclusive[chosen].sum()),
        "low",
        "counted by Darshan; how much it costs depends on locks and caches",
        [
            *case.evidence("requests that are not aligned", case.mean(value, chosen), "share"),
            *case.evidence("block", case.mean(case.files["alignment"], chosen), "B"),
        ],
        [say.align()],
        chosen,
        at_most=True,
    )


def dominant_file(case: Case) -> Finding | None:
    """One file takes nearly all of the time, far more than its part of the bytes, and no rule says why."""
    row = case.order[0]
    chosen = np.zeros(len(case.files), dtype=bool)
    chosen[row] = True
    share, saved = case.per_job["dominant_file"], case.time - case.time_without(chosen)
    if saved < case.limits.dominant * case.time or int(case.files.counted.sum()) < 2 or case.busy < case.limits.busy:
        return None
    part = case.files["{bytes}"][row] / case.total("{bytes}", slice(None))
    if not share >= case.limits.dominant_excess * part:  # the file of the data beside small ones; or bytes unknown
        return None
    return case.finding(
        "dominant_file",
        "One file takes nearly all of the time, and has far less of the bytes.",
        saved,
        "medium",
        "from the times of the files; why it takes so long, its counters do not say",
        [
            *case.evidence("exclusive time of the file, of the critical time", share, "share"),
            *case.evidence("its bytes", float(case.files["{bytes}"][row]), "B"),
            *case.evidence("its share of the job's bytes", part, "share"),
            *case.evidence("processes that access it", float(case.files["ranks"][row]), "count"),
            *case.evidence("its OSTs", float(case.files["stripe_count"][row]), "count"),
        ],
        [say.measure()],
        chosen,
    )


#: In the order in which they are told where they explain the same.
RULES: tuple[Callable[[Case], Finding | None], ...] = (
    slow_ost,
    read_modify_write,
    small_requests,
    contention,
    root_writes,
    serialised,
    small_files,
    metadata,
    stragglers,
    unaligned,
)
