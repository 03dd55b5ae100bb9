"""The rules: what in a job's critical files may have made it slow, and how much of the critical time that explains.

Each rule looks at a :class:`Case` and returns a finding or nothing. A share of critical time is either the exclusive
time of the files that the rule is about (``at_most``), or, where that can be computed, the time that it costs. Evidence
against a cause keeps it away. Small requests that are consecutive are no cause (the operating system merges them;
IOMiner, Section III-F), nor is the only request of each open. Where few ranks move the data, not all meet at an OST. A
sure cause removes those that are only its effects (:data:`EFFECTS`). Rules about single ranks are in
:mod:`.causes_ranks` and :mod:`.causes_imbalance`, those about what happens when in :mod:`.causes_time`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.causes_calls import (
    hdf5_metadata,
    in_small_rounds,
    placeless,
    read_amplification,
    read_before_write,
    read_modify_write,
    shared_pointer,
    shared_pointers,
    tiny_calls,
)
from mpiio_ext.analytics.diagnosis.causes_imbalance import pieces_of_one, stragglers
from mpiio_ext.analytics.diagnosis.causes_ranks import (
    few_aggregators,
    few_writers,
    metadata,
    opening,
    root_writes,
    syncs,
)
from mpiio_ext.analytics.diagnosis.causes_storage import (
    contention,
    redundant_reads,
    slow_files,
    slow_ost,
    storage_fault,
)
from mpiio_ext.analytics.diagnosis.causes_time import (
    exchange,
    late_rank,
    load_by_others,
    slowed_down,
    turns,
    waiting_calls,
)
from mpiio_ext.analytics.diagnosis.model import COMMON_SIZE, MOST_SIZE, Advice, Finding
from mpiio_ext.analytics.diagnosis.ranks import appended
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.tables.arrays import Flags
from mpiio_ext.common.units import size_text

#: What is said of collective calls of which each makes requests of its own, and of writes that may wait for locks.
_BY_EACH = " (collective calls that each rank carries out by itself)"
_LOCKS = ", for whose locks of the file system they may wait"


def small_requests(case: Case) -> Finding | None:
    """Requests are small, and jump about, or cost more than their bytes."""
    return in_small_rounds(case) or _jumping(case) or tiny_calls(case)


def _jumping(case: Case) -> Finding | None:
    """Requests are small and jump about."""
    limits, counts = case.limits, case.files.requests()
    small, jumps = case.per_file["small"], case.per_file["non_consecutive"]
    together = appended(case.files) & (case.files.direction == "write")
    chosen = _scattered(case, together)
    if not chosen.any():
        return None
    independent, collective = case.total("{independent}", chosen), case.total("{collective}", chosen)
    calls, requests = np.nansum([independent, collective]), float(np.nansum(counts[chosen]))
    ordered = chosen & ~np.isnan(case.files["{sequential}"])  # for other files nothing shows where requests go
    mean = case.total("{bytes}", chosen) / requests
    forward = case.total("{sequential}", ordered) / max(float(np.nansum(counts[ordered])), 1.0)
    direction = case.files.direction
    alone = calls > 0 and collective < calls / 2
    (most, _), sizes = case.common_request(chosen), case.common_sizes(chosen)
    part = float(np.nan_to_num(case.traced_part(limits.small_bytes, chosen), nan=1.0))
    time = float(np.nansum(case.in_calls[chosen])) * part
    large = part == 1.0 and most > 0 and not 2 * case.of_large(chosen) <= case.total("{time}", chosen)
    tiny = np.fmin(mean, most) <= limits.tiny_bytes and case.mean(small, chosen) > 0.9 and not large
    evidence = [
        *case.evidence(f"requests of at most {size_text(limits.small_bytes)}", case.mean(small, chosen), "share"),
        *case.evidence("requests that do not follow the one before", case.mean(jumps, chosen), "share"),
        *case.evidence("requests behind the one before, with or without a gap", forward, "share"),
        *case.evidence("mean request", mean, "B", exact=True),
        *(each for size in sizes for each in case.evidence(COMMON_SIZE, size, "B", exact=True)),
        *([] if sizes else case.evidence(MOST_SIZE, most, "B", exact=True)),
        *case.evidence("requests", requests, "count"),
        *case.evidence("independent MPI-IO calls", independent, "count"),
        *case.evidence("collective MPI-IO calls, of all ranks", collective, "count"),
        *case.in_mpiio(chosen, time),
    ]
    gapped = _leaves_gaps(case, chosen)
    aggregated = bool((case.movers[chosen] < 0.9 * case.files["ranks"][chosen]).any())
    by_each = bool(not alone and calls > 0 and requests >= 0.9 * collective) and not aggregated
    advice = _advice(case, chosen, bool(alone), float(calls), forward, by_each)
    between = bool((case.together & ~together)[chosen].all())
    locks = between and case.write and mean > limits.tiny_bytes  # of smaller ones the calls cost more
    where = f"not consecutive{', between those of other ranks' * between}{_LOCKS * locks}"
    where = (
        _elsewhere(case, ordered, forward, bool(together[chosen].all()))
        or f"{where}{', with gaps between them' * gapped}"
    )
    given = case.total("mpiio_bytes_written" if case.write else "mpiio_bytes_read", chosen)
    by_each &= requests <= 1.1 * collective and abs(given - mean * requests) <= 0.1 * given  # each request is a call
    kind = " (independent calls)" if alone else _BY_EACH * by_each
    return case.finding(
        "small_requests",
        f"The {direction}s of critical files are small and {where}{kind}.",
        time,
        "high" if tiny else "medium",
        _known(large, by_each, locks),
        evidence,
        [*advice, *([say.OWN_REGIONS] if locks else []), *([say.MEASURE] if calls > 0 else [])],  # hints of MPI-IO
        chosen,
        at_most=True,
        costs=tiny,
    )


def _leaves_gaps(case: Case, chosen: Flags) -> bool:
    return bool((case.gapped & case.collective)[chosen].all())


def _advice(case: Case, chosen: Flags, alone: bool, calls: float, forward: float, by_each: bool) -> list[Advice]:
    """Return what helps small requests of calls that are independent (`alone`), collective, or not of MPI-IO."""
    direction = case.files.direction
    if not alone and calls > 0:
        advice = [*[say.collective_buffering(direction)] * by_each, *[say.WHOLE_RECORDS] * _leaves_gaps(case, chosen)]
    elif alone and not (case.files["ranks"][chosen] == 1).all():
        advice = [say.use_collective(direction)]
        if not forward < case.limits.forward:  # pages of delegates are of no use to accesses at random places
            advice.append(say.DELEGATES)
    else:  # others have no part in a file that a rank has for itself
        advice = [say.larger_requests(direction, mpiio=alone, hdf5=case.by_hdf5(chosen), alone=case.lonely)]
    return advice


def _elsewhere(case: Case, ordered: Flags, forward: float, together: bool) -> str:
    """Return in words where requests are that do not go from front to back, or are appended; "" for others."""
    if forward < case.limits.backward:
        return "none of them behind the one before"
    if forward < case.limits.forward and not _regular(case, ordered):
        return "at random places"
    return "appended to one file by several ranks" if together else ""


def _scattered(case: Case, together: Flags) -> Flags:
    """Return for each file whether its requests are small and jump about; `together`: ranks append to it in turn."""
    limits, small, jumps = case.limits, case.per_file["small"], case.per_file["non_consecutive"]
    chosen = case.files.critical & (small >= limits.small) & ((jumps >= limits.non_consecutive) | together)
    chosen &= case.request_bytes < limits.small_bytes / 2  # requests of exactly the bound are in the bin below it
    chosen &= ~_reopened(case) | together
    chosen &= ~shared_pointers(case.files) & ~placeless(case) & ~case.shifted  # these are moved block by block
    chosen &= ~(case.on_one_node & case.collective & case.together & (case.request_bytes > limits.tiny_bytes))
    return np.asarray(chosen)


def _known(large: bool, by_each: bool, locks: bool) -> str:
    """Return where small requests are known from, and what of them the log does not have."""
    return (
        "counted by Darshan for each request that reached the operating system; the time is that of the slowest rank in"
        " these calls"
        + ("; how much of it is that of the few large ones, is not in the log" if large else "")
        + ("; so they are, too, where every rank is an aggregator of small calls" if by_each else "")
        + ("; time in locks of the file system is not in the log" if locks else "")
    )


def _regular(case: Case, chosen: Flags) -> bool:
    """Return whether most gaps of requests to chosen files have a common size: several places are accessed in turn."""
    strided = float(sum(calls.strided for calls, it in zip(case.calls, chosen, strict=True) if it))
    return strided >= 0.5 * (case.total("{sequential}", chosen) - case.total("{consecutive}", chosen)) > 0


def _reopened(case: Case) -> Flags:
    """Return for each file whether its requests jump because it is opened again and again, and begins anew.

    Each open makes one request that does not follow the one before; what else jumps is the program's. And where opens
    have few requests each, and take as long as these, they are what it waits for.
    """
    files, limits, counts, opens = case.files, case.limits, case.files.requests(), np.nan_to_num(case.opens)
    jumps = counts - np.nan_to_num(files["{consecutive}"]) - opens
    few = limits.requests_of_an_open * opens
    slow = np.nan_to_num(files["meta_time"]) >= np.nan_to_num(files["{time}"])
    return np.asarray(
        (few > counts) | (jumps < limits.non_consecutive * (counts - opens)) | ((2 * few > counts) & slow)
    )


def serialised(case: Case) -> Finding | None:
    """Files are accessed one after the other."""
    value, files = case.per_job["serialised"], case.files
    if not value >= case.limits.serialised or len(case.order) < 2:
        return None
    if case.per_job["gaps"] >= case.limits.gaps:
        return None  # between the files the program does something else: the data of a checkpoint are not there before
    if case.per_job["slow_file"] >= case.limits.slow and case.time_without(slow_files(case)) < 0.5 * case.swept:
        return None  # the time is that of slow files, in whatever order
    alone = case.of_owners[0]
    if not case.lonely and alone.max() >= max(case.limits.root * case.time, case.limits.uneven * alone.mean()):
        return None  # one rank has most of them for itself: it is that rank's work that is not shared out
    longest = float(files.largest(files.duration)[0])
    logs, lasting = np.nan_to_num(files["log_id"]), np.nan_to_num(files.duration)
    waited = sum(
        max(0.0, float(files.exclusive[logs == log].sum() - lasting[logs == log].max())) for log in np.unique(logs)
    )  # a program that follows another one does not wait for it
    return case.finding(
        "serialised",
        f"Files are {'written' if files.direction == 'write' else 'read'} one after the other.",
        min(waited * case.time / case.swept, float(np.nansum((files["{time}"] + files["meta_time"])[files.critical]))),
        "medium",
        "from the times of the files; whether the program could overlap them is not in the log",
        [
            *case.evidence("critical files", float(len(case.order)), "count"),
            *case.evidence("how little they overlap (1: not at all)", value, "share"),
            *case.evidence("longest single file", longest, "s"),
        ],
        [say.overlap(files.direction, mpi=case.uses_mpiio, alone=case.lonely)],
        files.critical,
        at_most=True,
    )


def small_files(case: Case) -> Finding | None:
    """Many small files."""
    chosen = case.files.critical & (case.per_file["small_files"] > 0)
    small = case.files.counted & (case.files["{bytes}"] <= case.limits.small_file_bytes)
    opens = case.metadata >= 0.5  # take longer than the data: of these a bandwidth says nothing
    return case.finding(
        "small_files",
        "The job spends its time on many small files.",
        float(case.exclusive[chosen].sum()),
        "medium",
        "each file is opened, and cannot be read ahead or written in large pieces",
        [
            *case.evidence(f"files of at most {size_text(case.limits.small_file_bytes)}", float(small.sum()), "count"),
            *case.evidence("bytes in them", case.total("{bytes}", small) if small.any() else float("nan"), "B"),
        ],
        [say.BUNDLE],
        chosen,
        at_most=True,
        costs=opens,
    )


#: File systems that lock blocks, or stripes, for one node at a time.
_LOCKING = ("lustre", "gpfs", "beegfs", "ocfs2", "gfs2")


def unaligned(case: Case) -> Finding | None:
    """Shared files are accessed across block boundaries."""
    files, value = case.files, case.per_file["unaligned"]
    chosen = files.critical & (value >= case.limits.unaligned) & (files["ranks"] > 1)
    several = (case.movers >= 2) & (case.request_bytes > case.limits.tiny_bytes)  # that meet, and nothing else is wrong
    alone = bool((several & ~(files["{collective}"] > 0))[chosen].all()) and case.mean(value, chosen) >= 0.9
    traced = case.traced(chosen)
    blocks, shared = (sum(getattr(row, name) for _, row in traced) for name in ("blocks", "shared"))
    chosen &= ~case.on_one_node
    kinds = [kind for kind, it in zip(case.file_systems, chosen, strict=True) if it]
    locks = bool(kinds) and all(kind in _LOCKING for kind in kinds)
    lost = any(flag for flag in (files["partial"] > 0)[chosen])  # a log without all counters
    large = bool((case.request_bytes >= case.limits.small_bytes / 2)[chosen].all())  # small ones cost by themselves
    met = not traced or shared >= 0.5 * max(blocks, 1)
    known = bool((files["alignment"] > 1)[chosen].all()) and not lost
    sure = alone and locks and large and met and case.write and known
    return case.finding(
        "unaligned",
        "Requests to shared files do not begin at blocks of the file system.",
        float(np.where(np.isnan(files["slowest_rank_time"]) & ~sure, case.exclusive, case.in_calls)[chosen].sum()),
        "high" if sure else "medium" if alone and met else "low",
        "the file system locks blocks, and ranks that write large pieces share them"
        if sure
        else "counted by Darshan; how much it costs depends on locks and caches",
        [
            *case.evidence("requests that are not aligned", case.mean(value, chosen), "share"),
            *case.evidence("block", case.mean(files["alignment"], chosen), "B", exact=True),
            *case.evidence("mean request", case.mean(case.request_bytes, chosen), "B", exact=True),
            *(
                case.evidence("blocks written in part that several ranks write (DXT)", shared / blocks, "share")
                if blocks
                else []
            ),
        ],
        [say.align(collective=bool((files["{collective}"] > 0)[chosen].any()))],
        chosen,
        at_most=True,
    )


def many_osts(case: Case) -> Finding | None:
    """Small files are striped over many OSTs: each open asks all of them, and hardly any has data."""
    files = case.files
    size = np.fmax(files["max_offset_written"], files["max_offset_read"]) + 1
    chosen = files.critical & (files["stripe_count"] >= case.limits.many_stripes) & (size <= files["stripe_size"])
    if not chosen.any():
        return None
    return case.finding(
        "many_osts",
        "Too many OSTs: files that lie on one stripe are striped over many.",
        float(case.exclusive[chosen].sum()),
        "medium",
        "layout and size are in the log; what the other OSTs cost at each open is not",
        [
            *case.evidence("such files", float(chosen.sum()), "count"),
            *case.evidence("their OSTs", case.mean(files["stripe_count"], chosen), "count"),
            *case.evidence("their size", case.mean(size, chosen), "B"),
        ],
        [say.FEWER_STRIPES],
        chosen,
        at_most=True,
    )


def many_aggregators(case: Case) -> Finding | None:
    """Collective calls are carried out by far more ranks than there are OSTs, in pieces of less than a stripe."""
    files = case.files
    chosen = files.critical & case.collective & (case.movers >= case.limits.aggregators_per_ost * files["stripe_count"])
    chosen &= case.request_bytes < files["stripe_size"]
    if not chosen.any() or not case.write:
        return None
    row = next(row for row in case.order if chosen[row])
    traced = [each for _, each in case.traced(chosen)]
    blocks, shared = (sum(getattr(each, name) for each in traced) for name in ("blocks", "shared"))
    sure = blocks > 0 and shared >= 0.5 * blocks
    osts = float(files["stripe_count"][row])
    return case.finding(
        "many_aggregators",
        f"Too many aggregators: {worded(case.value(round(float(case.movers[row]))), 'count')} ranks write"
        f" {worded(case.value(osts), 'count')} OST{'s' if osts != 1 else ''} in pieces of less than a stripe.",
        float(np.nansum(case.in_calls[chosen])),
        "high" if sure else "medium",
        "DXT has stripes that several of them write"
        if sure
        else "layout, ranks and sizes are in the log; that ranks meet in a stripe is not",
        [
            *case.evidence("ranks that write, for each OST", float(case.movers[row] / osts), "ratio"),
            *case.evidence("mean request", case.mean(case.request_bytes, chosen), "B", exact=True),
            *case.evidence("stripe", float(files["stripe_size"][row]), "B", exact=True),
            *(
                case.evidence("stripes written in part that several ranks write (DXT)", shared / blocks, "share")
                if blocks
                else []
            ),
        ],
        [say.aggregators(files.direction, max(1, int(osts)), fewer=True)],
        chosen,
        at_most=True,
    )


def dominant_file(case: Case) -> Finding | None:
    """One file takes nearly all of the time, far more than its part of the bytes, and no rule says why."""
    row = case.order[0]
    chosen = np.zeros(len(case.files), dtype=bool)
    chosen[row] = True
    share, saved = case.per_job["dominant_file"], case.saved(chosen)
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
        [say.MEASURE] if case.uses_mpiio else [],
        chosen,
    )


#: In the order in which they are reported if they explain the same.
RULES: tuple[Callable[[Case], Finding | None], ...] = (
    slow_ost,
    read_modify_write,
    read_before_write,
    read_amplification,
    shared_pointer,
    pieces_of_one,
    hdf5_metadata,
    small_requests,
    redundant_reads,
    contention,
    root_writes,
    few_writers,
    few_aggregators,
    many_aggregators,
    many_osts,
    serialised,
    small_files,
    metadata,
    opening,
    stragglers,
    turns,
    late_rank,
    exchange,
    waiting_calls,
    syncs,
    slowed_down,
    load_by_others,
    storage_fault,
    unaligned,
)

#: Time in calls without requests: where it is far longer than what a cause explains, it is no effect of that.
_BETWEEN = ("exchange", "waiting_calls")
#: What is only an effect of a cause, where that is sure and about the same files.
EFFECTS: dict[str, tuple[str, ...]] = {
    "read_modify_write": (
        "small_requests",
        "unaligned",
        "root_reads",
        "waiting_calls",
        "turns",
        "stragglers",
        "slowed_down",
        "exchange",
    ),
    "syncs": ("small_requests", "small_files", "serialised", "slowed_down", "unaligned"),
    "turns": ("contention", "stragglers", "waiting_calls", "serialised", "unaligned"),
    "pieces_of_one": ("small_requests", "stragglers", "few_aggregators", "root_writes", "root_reads", "slowed_down"),
    "hdf5_metadata": (
        "small_requests",
        "syncs",
        "unaligned",
        "root_writes",
        "root_reads",
        "waiting_calls",
        "stragglers",
        "slowed_down",
        "exchange",
    ),
    "small_requests": ("waiting_calls", "slowed_down", "exchange"),
    "late_rank": ("exchange", "waiting_calls", "stragglers", "slow_file"),
    "shared_pointer": ("waiting_calls", "turns", "stragglers", "slowed_down", "unaligned"),
    "read_amplification": ("small_requests", "unaligned", "waiting_calls", "redundant_reads", "contention"),
    "redundant_reads": ("contention", "slowed_down"),
    "redundant_writes": ("stragglers", "root_writes", "few_writers", "turns"),
    "metadata": ("small_files",),
    "shared_opens": ("small_files", "stragglers", "waiting_calls"),
    "root_writes": ("contention", "serialised", "stragglers", "slowed_down"),
    "root_reads": ("contention", "serialised", "stragglers", "slowed_down"),
    "few_aggregators": ("contention", "serialised", "stragglers", "slowed_down"),
}


def without_effects(case: Case, found: list[Finding]) -> list[Finding]:
    """Return the findings without those that are only effects of a sure one about the same files.

    A shared pointer is there or not, and so are pieces of one rank: what they cost may not be sure, that waiting, or
    one rank's time, is their effect is.
    """
    pointer = any(each.cause == "shared_pointer" for each in found)
    found = [each for each in found if not (pointer and each.cause in EFFECTS["shared_pointer"])]
    there = ("pieces_of_one",)
    sure = [each for each in found if each.cause in there or (each.confidence == "high" and each.costs)]
    return [
        _less_sure(each, found)
        for each in found
        if not any(
            each.cause in EFFECTS.get(one.cause, ())
            and not (_about(case, each) & ~_about(case, one)).any()
            and not (each.cause in _BETWEEN and each.time > 2 * one.time)
            for one in sure
        )
    ]


def _less_sure(one: Finding, found: list[Finding]) -> Finding:
    """Return a finding of small requests that is not sure, where ranks wait far longer in calls beside them."""
    waits = max((each.time for each in found if each.cause == "waiting_calls"), default=0.0)
    if one.cause != "small_requests" or one.confidence != "high" or waits <= 2 * one.time:
        return one
    reason = f"{one.reason}; but ranks wait in the calls for far longer than these take"
    return dataclasses.replace(one, confidence="medium", reason=reason)


def _about(case: Case, finding: Finding) -> Flags:
    """Return the critical files that take the time of which a finding is, without those that hardly take any."""
    there = case.about[finding.cause] & case.files.critical
    return np.asarray(there & (case.exclusive >= case.limits.reported * case.time))
