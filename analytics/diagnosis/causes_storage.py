"""The rules about the storage: slow targets, many processes at few of them, the same data again, disks down.

Problem. A log of the job shows only that calls take long: a target may be slow, asked by too many, or asked for the
same again and again. A disk that is down makes the others do its work, and one that is emptied has
copies to make besides.

Algorithm. A target is slow where several alike files on it take several times longer for a byte than those on the
others. What is slow on it is charged to it, not all that touches it. Ranks read the same where they read far more bytes
than there are up to the last one. The state of disks is that of the last list before the job began
(:func:`mpiio_ext.analytics.tools.health.disk_states`); no source shows how much of the time it costs, so that this
finding is never of high confidence.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import MOST_NAMES, Case
from mpiio_ext.analytics.diagnosis.causes_time import slow_stripe
from mpiio_ext.analytics.diagnosis.model import Advice, Finding
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.storage import alike, ost_times
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import amount_text


def slow_ost(case: Case) -> Finding | None:
    """Files on one OST are far slower than their likes on the others."""
    limits, files = case.limits, case.files
    if not case.per_job["slow_ost"] >= limits.slow:
        return slow_stripe(case) or slow_file(case)
    _, osts, times, numbers = ost_times(files)
    bad, (rows, targets) = times >= limits.slow * np.median(times), files.ost_pairs
    slow = alike(files) >= limits.slow * np.median(times)
    there = np.bincount(targets[slow[rows]], minlength=int(osts.max()) + 1)[osts]
    bad &= there >= np.maximum(2, numbers / 4)  # a single file may be slow by itself
    if not bad.any():
        return slow_stripe(case) or slow_file(case)
    order = np.argsort(-times[bad])
    worst, worst_times, worst_numbers = osts[bad][order], times[bad][order], numbers[bad][order]
    on_bad = np.zeros(len(files), dtype=bool)
    on_bad[rows[np.isin(targets, worst)]] = True
    on_bad &= slow
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
        f"OST {names[0]} is {worded(case.value(case.per_job['slow_ost']), 'ratio')} slower than the others."
        if len(worst) == 1
        else f"{len(worst)} OSTs are far slower than the others, OST {names[0]} most.",
        min(case.saved(on_bad), float(case.in_calls[on_bad].sum())),
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
    times, chosen = alike(case.files), slow_files(case)
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
        case.saved(chosen),
        "low",
        "no OST stands out or none is known; caches, load by others and slow nodes do this too",
        evidence,
        [say.imbalance(by_bytes=False)],
        chosen,
        by_times=True,
    )


def slow_files(case: Case) -> Flags:
    """Return for each file whether it is far slower than its likes."""
    times = alike(case.files)
    return np.asarray(times >= case.limits.slow * np.nanmedian(times))


#: What a move of data within a file looks like.
_SHIFTED = "The same data are read and written again and again, as where a header grows (new variables or attributes)"
_FILLED = "One rank writes a whole file, and then ranks write their data there (fill values)"
_EACH, _EITHER = "Ranks read the same data, each for itself", "The same data are read by several ranks, or by one again"
_CHUNKS = "HDF5 {} whole chunks again and again for parts of them: its chunk cache has no room for them"
_OVER = {False: "The same data are read again and again", True: "The same places of a file are written again and again"}


def _whole_chunks(case: Case) -> Flags:
    """Return for each file whether HDF5 moves chunks again that the program accesses in parts.

    Far more is moved than the program asks of datasets; and what is written is read again, to be completed.
    """
    files, limits = case.files, case.limits
    asked = np.array([max(calls.datasets.values()) if calls.chunk > 0 else np.nan for calls in case.calls])
    found = (asked > 0) & (files["{bytes}"] >= limits.again * asked)
    return np.asarray(found & (files["bytes_read"] >= limits.again * asked))


def _what(case: Case, chosen: Flags, again: Numbers) -> tuple[str, bool]:
    """Return in words what is moved again, and whether by ranks of which each does so once.

    Who reads again jumps back to do so, each time.
    """
    files, ranks = case.files, case.files["ranks"]
    by_one = case.write | (again > 1.25 * ranks) | (ranks == 1)  # a rank moves them again; else several ranks each once
    if bool((_whole_chunks(case) & by_one)[chosen].all()):
        other = files["bytes_written" if not case.write else "bytes_read"]
        both = bool((other >= case.limits.again * (files["max_offset_read"] + 1))[chosen].all())
        return _CHUNKS.format("reads and writes" if both else "reads"), False
    if bool(case.shifted[chosen].all()):
        return _SHIFTED, False
    if bool(case.filled_by_one[chosen].all()):
        return _FILLED, False
    if case.write or not (again <= 1.25 * ranks)[chosen].all() or (ranks[chosen] == 1).all():
        return _OVER[case.write], False  # some rank does it again
    back = files.requests() - np.fmax(files["{sequential}"], files["{consecutive}"])
    return (_EACH if (back < ranks * (again - 1))[chosen].all() else _EITHER), True


def redundant_reads(case: Case) -> Finding | None:
    """Ranks read the same data, each for itself; or the same places are written again and again."""
    files, limits = case.files, case.limits
    again, end = case.again, files["max_offset_written" if case.write else "max_offset_read"]
    chosen = files.critical & ~np.isnan(again) & (end >= limits.one_rank_bytes)
    if not chosen.any():
        return None
    least = np.where(again >= limits.again * files["ranks"], limits.tiny_bytes, limits.small_bytes / 2)  # its own again
    large = bool(((case.request_bytes >= least) & (files["ranks"] > 1))[chosen].all())
    many = bool((files["ranks"] >= limits.many_ranks)[chosen].all())  # small requests of few cost by themselves
    what, each = _what(case, chosen, again)
    shifted, filled, chunks = what == _SHIFTED, what == _FILLED, what.startswith("HDF5")
    sure = large or many or shifted or chunks
    time = float((case.in_calls * (1 - 1 / np.where(chosen, again, 1.0)))[chosen].sum())
    if not sure and time < limits.reported * case.run_time:
        return None
    moved = case.total("{bytes}", chosen)
    extent = float(end[chosen].sum() + chosen.sum())
    done = "written" if case.write else "read"
    advice = say.WRITE_ONCE if case.write else say.read_once(again=not each or case.lonely, alone=case.lonely)
    return case.finding(
        "redundant_writes" if case.write else "redundant_reads",
        f"{what}{';' if chunks else ':'} {amount_text(case.value(moved))} are {done} of"
        f" {amount_text(case.value(extent))}, {worded(case.value(moved / extent), 'ratio')} over.",
        time,
        "high" if sure and (shifted or filled or chunks or not case.write) else "medium",
        f"bytes of all ranks and the last byte that is {done} are in the log; "
        + ("whether the program needs each version is not" if case.write else "what caches of the nodes spare, is not"),
        [
            *case.evidence(f"bytes {done}", moved, "B"),
            *case.evidence(f"bytes up to the last one that is {done}", extent, "B"),
            *case.evidence("ranks that open the file", case.mean(files["ranks"], chosen), "count"),
            *case.evidence("OSTs of the file", case.mean(files["stripe_count"], chosen), "count"),
            *(case.evidence("chunk of a dataset", max(each.chunk for each in case.calls), "B") if chunks else []),
        ],
        [say.DEFINE_FIRST if shifted else say.NO_FILL if filled else say.CHUNK_CACHE if chunks else advice],
        chosen,
        at_most=True,
        costs=case.write or shifted,  # what is written twice is moved twice, however fast; reads may come from a cache
    )


def contention(case: Case) -> Finding | None:
    """Many processes meet at few OSTs."""
    aggregated = case.collective
    fewer = np.where(np.isnan(case.movers), 1.0, np.round(case.movers) / np.maximum(case.files["ranks"], 1.0))
    traced = case.traced(case.files.critical)
    for place, each in traced:  # DXT shows how many ranks meet
        fewer[place] = min(fewer[place], each.together / max(float(case.files["ranks"][place]), 1.0))
    ratio = case.per_file["processes_per_ost"] * fewer  # those that move nothing do not meet
    chosen = case.files.critical & (ratio >= case.limits.contention) & ~aggregated & ~(case.files["{bytes}"] == 0)
    chosen &= np.isnan(case.again)  # reads of the same data have a rule of their own
    if not chosen.any():
        return None
    row = next(row for row in case.order if chosen[row])
    most = np.fmax(case.files["fastest_rank_bytes"], case.files["slowest_rank_bytes"])[row]
    known = bool(most != 0)  # else two ranks move nothing, and what the others do is not in the log
    ranks, count = float(case.files["ranks"][row] * fewer[row]), float(case.files["stripe_count"][row])
    ranks, met = max(1.0, np.round(ranks)), row in [place for place, _ in traced]
    osts = f"{count:.0f} OST{'s' if count != 1 else ''}"
    return case.finding(
        "contention",
        f"{worded(case.value(ranks), 'count')} processes {case.files.direction if known else 'open'} a file that lies"
        f" on {osts}.",
        float(case.exclusive[chosen].sum()),
        "high" if (count == 1 and ranks >= 16 and known) or (met and ranks >= 8 * count) else "medium",
        "layout and processes are in the log; "
        + ("so many are in requests at once (DXT)" if met else "that they meet at the same time is assumed"),
        [
            *case.evidence("processes per OST, weighted by exclusive time", case.mean(ratio, chosen), "ratio"),
            *case.evidence("OSTs of all files of the job", case.per_job["osts"], "count"),
            *case.evidence("OSTs that are known to exist", case.known_osts or float("nan"), "count"),
        ],
        [*say.stripes(ranks, count, case.known_osts), say.use_collective(case.files.direction)],
        chosen,
        at_most=True,
    )


def storage_fault(case: Case) -> Finding | None:
    """Disks of the file system were down or not ready."""
    disks = case.disks
    if disks is None or not disks.words:
        return None
    bad = len(disks.words)
    names = [] if case.anonymous else [f"{disk} ({words})" for disk, words in list(disks.words.items())[:MOST_NAMES]]
    which = f": {', '.join(names)}{' …' if len(names) < bad else ''}" if names else ""
    evidence = [
        *case.evidence("disks that are not up (down, recovering)", float(len(disks.down)), "count"),
        *case.evidence("disks that are not ready (suspended, being emptied …)", float(len(disks.not_ready)), "count"),
        *case.evidence("disks of the file system", float(disks.disks), "count"),
        *case.evidence("age of the list of disks when the job began", disks.lead_s, "s"),
    ]
    were = "was" if bad == 1 else "were"
    return case.finding(
        "storage_fault",
        f"{case.value(bad):.0f} of {case.value(disks.disks):.0f} disks of the file system {were} not as they should be"
        f"{which}.",
        case.time,
        "medium" if disks.down else "low",
        "the list of disks says so; neither the list nor the log shows what it cost the job",
        evidence,
        [
            Advice(
                "Tell the administrators, and compare with runs at times when all disks were up.", "mmlsdisk DEVICE -e"
            )
        ],
        case.files.critical,
        at_most=True,
    )
