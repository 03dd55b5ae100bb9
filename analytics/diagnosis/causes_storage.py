"""The rules about files and storage: slow targets, many processes at few of them, the same data again, order, layouts.

Problem. A log of the job shows only that calls take long. A target may be slow, get too many requests, or get the same
request again and again. Files may be many, or one after the other. If a disk is down, the others do its work; a disk
that is being emptied has to copy besides.

Algorithm. A target is slow if several alike files on it take several times longer for a byte than files on other
targets. Only their slow time is charged to the target, not the time of all its files. Ranks read the same bytes if they
read far more bytes than there are up to the last one. Files are one after the other if they do not overlap. If no rule
is about the file with most of the time, that file is named. The state of disks is that of the last list before the job
began (:func:`mpiio_ext.analytics.tools.health.disk_states`). No source shows how much of the time the state costs, so
that this finding is never of high confidence.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import MOST_NAMES, Case
from mpiio_ext.analytics.diagnosis.cause import ALWAYS, OF_MPI, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.causes_calls import written_before
from mpiio_ext.analytics.diagnosis.model import Advice, Claim, Finding
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.storage import alike, ost_times
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import amount_text, size_text


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
        *case.evidence(f"bandwidth of a file on OST {names[0]}", 1 / worst_times[0], "B/s"),
        *case.evidence("bandwidth of a file on the median OST", 1 / float(np.median(times)), "B/s"),
        *case.evidence(f"alike files on OST {names[0]}", float(worst_numbers[0]), "count"),
        *case.evidence("OSTs compared", float(len(osts)), "count"),
        *case.evidence("critical time without the slow files", case.time_without(on_bad), "s"),
    ]
    claim = Claim(
        title=f"OST {names[0]} is {worded(case.value(case.per_job['slow_ost']), 'ratio')} slower than the others."
        if len(worst) == 1
        else f"{len(worst)} OSTs are far slower than the others, OST {names[0]} most.",
        time=min(case.saved(on_bad), float(case.in_calls[on_bad].sum())),
        confidence="high" if sure else "medium",
        reason="several alike files on the same OST are slow, and alike files on the other OSTs are not"
        if sure
        else "few alike files to compare, or many slow OSTs: other jobs may load the OSTs",
        evidence=evidence,
        advice=say.contact(names),
    )
    return case.finding(SLOW_OST, claim, chosen=on_bad, osts=worst)


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
        claim = Claim(
            title=(
                f"The OST of stripe {worst} of a file is {worded(case.value(float(times[worst] / median)), 'ratio')}"
                " slower than the OSTs of the other stripes."
            ),
            time=lost * float(case.exclusive[place]),
            confidence="high",
            reason="DXT has the requests to each stripe: requests to the other stripes are not slow",
            evidence=[
                *case.evidence(
                    "time for a byte on that stripe, over the median stripe", float(times[worst] / median), "ratio"
                ),
                *case.evidence("stripes compared", float(there.sum()), "count"),
                *case.evidence("slow stripes", float(slow.sum()), "count"),
            ],
            advice=say.contact([]),
        )
        return case.finding(SLOW_OST, claim, chosen=np.arange(len(case.files)) == place)
    return None


SLOW_OST = Cause(
    name="slow_ost",
    rule=slow_ost,
    cells=Cells(("data",), ("POSIX", "STDIO")),
    phrase="{way}s{at} on a slow server",
    section="The storage was slow",
    mechanism="A storage target is slow.",
    condition=(
        "On one storage target, alike files take {slow} times as long for a byte as on the median target. Or"
        " requests to one stripe take {slow} times as long (DXT)."
    ),
    sure="if four alike files, or eight requests, go to that target, and at most a quarter of the targets are slow",
    sentences=("slower than the others", "slower than the OSTs of the other stripes"),
    advice=(Offer(ALWAYS, lambda _: say.contact(["1"])[0]), Offer(ALWAYS, lambda _: say.contact(["1"])[1])),
    on_lustre=True,
)


def slow_file(case: Case) -> Finding | None:
    """Single files are far slower than their likes, and it is not known, or not due to, which OST they are on."""
    if not case.per_job["slow_file"] >= case.limits.slow:
        return None
    times, chosen = alike(case.files), slow_files(case)
    evidence = [
        *case.evidence(
            "time for a byte of the slowest file, as a multiple of the median of similar files",
            case.per_job["slow_file"],
            "ratio",
        ),
        *case.evidence("slow files", float(chosen.sum()), "count"),
        *case.evidence("similar files that are not slow", float(np.sum(~np.isnan(times) & ~chosen)), "count"),
        *case.evidence("critical time without the slow files", case.time_without(chosen), "s"),
    ]
    claim = Claim(
        title="Some files take far longer than others with as many bytes.",
        time=max(case.saved(chosen), case.busiest(case.files.direction, chosen=chosen)),
        confidence="low",
        reason="the log does not show whether an OST is slow; a cache, a slow node or other jobs may be the reason",
        evidence=evidence,
        advice=[say.SLOW_FILES],
        by_times=True,
    )
    return case.finding(SLOW_FILE, claim, chosen=chosen)


def slow_files(case: Case) -> Flags:
    """Return for each file whether it is far slower than its likes."""
    times = alike(case.files)
    return np.asarray(times >= case.limits.slow * np.nanmedian(times))


SLOW_FILE = Cause(
    name="slow_file",
    rule=slow_ost,
    cells=Cells(("data",), ("POSIX", "STDIO")),
    effects=("stragglers",),
    effects_if="found",
    phrase="{way}s{at}, which take far longer than {way}s of other files with as many bytes (a slow server,"
    " or other jobs)",
    section="The storage was slow",
    mechanism="A rank, a node or a target is slow.",
    condition=(
        "One file takes {slow} times as long for a byte as the median of at least {alike_files} alike files, and no"
        " storage target explains the difference."
    ),
    sentences=("Some files take far longer",),
    advice=(Offer(ALWAYS, lambda _: say.SLOW_FILES),),
)


#: What a move of data within a file looks like.
_SHIFTED = "A library moves the data of a file again and again, as if a header grows (new variables or attributes)"


_FILLED = "One rank writes a whole file, and then ranks write their data there (fill values)"


_EACH, _EITHER = (
    "Ranks read the same data, each for itself",
    "Several ranks read the same data, or one rank reads the same data again",
)


_CHUNKS = (
    "HDF5 {} whole chunks again and again, to access parts of chunks: its chunk cache has no room for whole chunks"
)


_OVER = {
    False: "Ranks read the same data again and again",
    True: "Ranks write the same places of a file again and again",
}


def _whole_chunks(case: Case) -> Flags:
    """Return for each file whether HDF5 moves chunks again that the program accesses in parts.

    Far more is moved than the program asks of datasets; and what is written is read again, to be completed.
    """
    files, limits = case.files, case.limits
    asked = np.array([max(calls.datasets.values()) if calls.chunk > 0 else np.nan for calls in case.calls])
    found = (asked > 0) & (files["{bytes}"] >= limits.again * asked)
    return np.asarray(found & (files["bytes_read"] >= limits.again * asked))


def _what(case: Case, chosen: Flags, again: Numbers) -> tuple[str, bool]:
    """Return in words the bytes that are moved again, and whether several ranks move them, each rank once.

    Who reads again jumps back to do so, each time.
    """
    files, ranks = case.files, case.files["ranks"]
    # a rank moves them again; else several ranks each once
    by_one = case.write | (again > 1.25 * ranks) | (ranks == 1) | case.by_itself(again)
    if bool((_whole_chunks(case) & by_one)[chosen].all()):
        other = files["bytes_written" if not case.write else "bytes_read"]
        both = bool((other >= case.limits.again * (files["max_offset_read"] + 1))[chosen].all())
        return _CHUNKS.format("reads and writes" if both else "reads"), False
    if bool(case.shifted[chosen].all()):
        return _SHIFTED, False
    if bool(case.filled_by_one[chosen].all()):
        return _FILLED, False
    if by_one[chosen].any():
        return _OVER[case.write], False
    back = files.requests() - np.fmax(files["{sequential}"], files["{consecutive}"])
    return (_EACH if (back < ranks * (again - 1))[chosen].all() else _EITHER), True


def redundant_reads(case: Case) -> Finding | None:
    """Ranks read the same data, each for itself; or the same places are written again and again."""
    files, limits = case.files, case.limits
    again, end = case.again, files["max_offset_written" if case.write else "max_offset_read"]
    itself = case.by_itself(again)
    each_rank = again >= limits.often * np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    least = np.where(each_rank, limits.one_rank_bytes, limits.aggregated_bytes)
    enough = (end >= limits.one_rank_bytes) | (itself & (files["{bytes}"] >= least))
    chosen = files.critical & ~np.isnan(again) & enough
    if not chosen.any():
        return None
    own = bool((itself & ~(case.request_bytes >= limits.small_bytes / 2))[chosen].all()) and not case.write
    least = np.where(again >= limits.again * files["ranks"], limits.tiny_bytes, limits.small_bytes / 2)  # its own again
    large = bool(((case.request_bytes >= least) & (files["ranks"] > 1))[chosen].all())
    many = bool((files["ranks"] >= limits.many_ranks)[chosen].all())  # small requests of few cost by themselves
    what, each = _what(case, chosen, again)
    shifted, filled, chunks = what == _SHIFTED, what == _FILLED, what.startswith("HDF5")
    sure = large or many or shifted or chunks or own
    time = float((case.in_calls * (1 - 1 / np.where(chosen, again, 1.0)))[chosen].sum())
    if not sure and time < limits.reported * case.run_time:
        return None
    moved = case.total("{bytes}", chosen)
    extent, number = float(end[chosen].sum() + chosen.sum()), int(chosen.sum())
    named = "the file" if number == 1 else f"{case.value(number):,.0f} files"
    done = "written" if case.write else "read"
    advice = say.WRITE_ONCE if case.write else say.read_once(again=not each or case.lonely, alone=case.lonely)
    claim = Claim(
        title=f"{what}. The job {files.direction}s {amount_text(case.value(moved))} in the first"
        f" {amount_text(case.value(extent))} of {named}: each byte {worded(case.value(moved / extent), 'ratio')} on"
        " average.",
        what=_again(case, chosen, what, moved / extent),
        time=time,
        confidence="high" if sure and (shifted or filled or chunks or not case.write) else "medium",
        reason=f"the log has the number of bytes of all ranks and the highest offset that is {done}; "
        + (
            "the log does not show whether the program needs each version"
            if case.write
            else "the log does not show how many of the reads a cache of the node serves"
        ),
        evidence=[
            *case.evidence(f"bytes {done}", moved, "B"),
            *case.evidence(f"bytes up to the highest offset that is {done}", extent, "B"),
            *case.evidence("ranks that open the file", case.mean(files["ranks"], chosen), "count"),
            *case.evidence("OSTs of the file", case.mean(files["stripe_count"], chosen), "count"),
            *(case.evidence("chunk of a dataset", max(each.chunk for each in case.calls), "B") if chunks else []),
        ],
        advice=[say.DEFINE_FIRST if shifted else say.NO_FILL if filled else say.CHUNK_CACHE if chunks else advice],
        at_most=True,
        costs=case.write or shifted or own,
    )
    return case.finding(REDUNDANT_WRITES if case.write else REDUNDANT_READS, claim, chosen=chosen)


#: Of the ranks that open a file: so many are all of them.
_NEARLY = 0.95


def _again(case: Case, chosen: Flags, what: str, over: float) -> str:
    """Return what is read or written again, `over` times, and by whom."""
    way, at = case.files.direction, case.at(chosen)
    if what == _FILLED:
        return f"writes{at} of everything twice, as one rank writes fill values, and data replace them"
    if what == _SHIFTED:
        return f"{way}s{at} of data that a library moves again and again, as if a header grows"
    if what.startswith("HDF5"):
        both = "reads and writes" if "reads and writes" in what else f"{way}s"
        why = "HDF5's chunk cache has no room for whole chunks"
        return f"{both}{case.at(chosen, 'of')} by whole chunks, again and again, to access parts of chunks: {why}"
    if what == _EACH:
        who = "all" if over >= _NEARLY * case.mean(case.files["ranks"], chosen) else "several"
        return f"reads of the same data{case.at(chosen, 'of')} by {who} ranks, each for itself"
    if what == _EITHER:
        return f"reads of the same data{case.at(chosen, 'of')} by several ranks, or by one rank again"
    same = "to the same places" if case.write else "of the same data"
    return f"{way}s {same}{case.at(chosen, 'of')} again and again"


REDUNDANT_READS = Cause(
    name="redundant_reads",
    rule=redundant_reads,
    cells=Cells(("read",)),
    effects=("contention", "slowed_down", "small_requests", "root_reads", "few_readers"),
    section="More is read than was asked for",
    mechanism="Ranks read the same data, or one rank reads data again; or ranks write the same places again.",
    condition=(
        "The job moves {again} times the bytes of a file, up to the last byte that it moves. If several ranks read the"
        " file, they read it at least as often as {alike_ranks} of the number of ranks; or the busiest rank reads the"
        " file {often} times or more, from front to back. The file has {one_rank_bytes} or more. A smaller file counts"
        " if the busiest rank reads the file {often} times or more, and the job reads {aggregated_bytes} or more. If"
        " each rank reads a small file so often, {one_rank_bytes} are enough. If the job overwrites data before it"
        " reads the place again, the reads do not count. For reads through the C library, seeks and opens show whether"
        " a rank reads from front to back."
    ),
    sure=(
        "if HDF5 accesses whole chunks, and the program accesses parts of chunks. For reads also if requests have half"
        " of {small_bytes}, or {many_ranks} ranks read, or the busiest rank reads the file {often} times by smaller"
        " requests; if each rank reads the file {again} times, requests of {tiny_bytes} are enough. For writes also if"
        " one rank fills the file: it moves as many bytes more than the fastest rank as the file has. Or if a library"
        " moves data within the file: the job reads the file as often as it writes the file, and fewer than {backward}"
        " of the requests lie behind the one before. If the file grows, one request for each move of a rank does not"
        " count"
    ),
    sentences=(
        "Ranks read the same data",
        "Several ranks read the same data, or one rank",
        "whole chunks again and again, to access parts of chunks",
        "Ranks write the same places of a file",
        "A library moves the data of a file",
        "One rank writes a whole file",
    ),
    advice=(
        Offer("if one rank fills the file", lambda _: say.NO_FILL),
        Offer("if a library moves data within the file", lambda _: say.DEFINE_FIRST),
        Offer(
            "if HDF5 reads {again} times the bytes that the program asks of datasets with chunks",
            lambda _: say.CHUNK_CACHE,
        ),
        Offer("if the job writes the file", lambda _: say.WRITE_ONCE),
        Offer("if each rank reads the file once", lambda _: say.read_once()),
        Offer("if ranks read the file again", lambda _: say.read_once(again=True)),
        Offer("if one process reads the file", lambda _: say.read_once(again=True, alone=True)),
    ),
)


REDUNDANT_WRITES = dataclasses.replace(
    REDUNDANT_READS,
    name="redundant_writes",
    cells=Cells(("write",)),
    effects=("stragglers", "root_writes", "few_writers", "few_aggregators", "small_requests", "turns"),
    effects_if="found",  # who writes needless bytes, and by which requests, is the second question
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
    claim = Claim(
        title=(
            f"{worded(case.value(ranks), 'count')} processes {case.files.direction if known else 'open'} a file that"
            f" lies on {osts}."
        ),
        time=float(case.exclusive[chosen].sum()),
        confidence="high" if (count == 1 and ranks >= 16 and known) or (met and ranks >= 8 * count) else "medium",
        reason="the log has the layout and the processes; "
        + (
            "so many processes are in requests at once (DXT)"
            if met
            else "the log does not show whether they are in requests at once"
        ),
        evidence=[
            *case.evidence("processes per OST, weighted by exclusive time", case.mean(ratio, chosen), "ratio"),
            *case.evidence("OSTs of all files of the job", case.per_job["osts"], "count"),
            *case.evidence("OSTs that are known to exist", case.known_osts or float("nan"), "count"),
        ],
        advice=[*say.stripes(ranks, count, case.known_osts), say.use_collective(case.files.direction)],
        at_most=True,
    )
    return case.finding(CONTENTION, claim, chosen=chosen)


CONTENTION = Cause(
    name="contention",
    rule=contention,
    cells=Cells(("data",), ("POSIX", "STDIO")),
    phrase="{way}s{at} by many processes at few storage targets",
    section="Ranks share blocks, stripes or servers",
    mechanism="Many processes use few OSTs at the same time.",
    condition="Without collective calls, {contention} processes move data for each OST of the file.",
    sure="if 16 processes use one OST, or 8 ranks for each OST are in requests at once (DXT)",
    sentences=("a file that lies on",),
    advice=(
        Offer("if the file system has more OSTs, or an unknown number", lambda _: say.stripes(16, 1, None)[0]),
        Offer("in the same case", lambda _: say.stripes(16, 1, None)[1]),
        Offer(ALWAYS, say.use_collective),
    ),
    on_lustre=True,
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
    claim = Claim(
        title=(
            f"{case.value(bad):.0f} of {case.value(disks.disks):.0f} disks of the file system {were} not up and"
            f" ready{which}."
        ),
        time=case.time,
        confidence="medium" if disks.down else "low",
        reason="the list of disks shows this; neither the list nor the log shows how much time this cost the job",
        evidence=evidence,
        advice=[
            Advice(
                "Report the disks to the administrators, and compare with runs at times when all disks were up.",
                "mmlsdisk DEVICE -e",
            )
        ],
        at_most=True,
    )
    return case.finding(STORAGE_FAULT, claim, chosen=case.files.critical)


STORAGE_FAULT = Cause(
    name="storage_fault",
    rule=storage_fault,
    cells=Cells(("data",), ("POSIX", "STDIO")),
    phrase="{way}s{at} while disks of the file system were not up and ready",
    section="The storage was slow",
    mechanism="Disks are down, or the administrators move data off disks.",
    condition="The last list of `mmlsdisk` before the job names disks that are down, or that administrators empty.",
    sentences=("disks of the file system",),
    advice=(),
)


#: Share of the time from the first access to the last without any I/O, from which on files are those of steps.
_STEPS = 0.25


def serialised(case: Case) -> Finding | None:
    """Files are accessed one after the other."""
    value, files = case.per_job["serialised"], case.files
    if case.lonely or not value >= case.limits.serialised or len(case.order) < 2:
        return None  # one process accesses its files in turn
    if case.per_job["gaps"] >= _STEPS:
        return None  # between the files the program does something else: the data of a checkpoint are not there before
    if float(case.exclusive[case.pending].sum()) >= 0.5 * case.time:
        return None  # the program goes on between a nonblocking call and the end of its access
    if case.per_job["slow_file"] >= case.limits.slow and case.time_without(slow_files(case)) < 0.5 * case.swept:
        return None  # the time is that of slow files, in whatever order
    alone = case.of_owners[0]
    if alone.max() >= max(case.limits.root * case.time, case.limits.uneven * alone.mean()):
        return None  # one rank has most of them for itself: it is that rank's work that is not shared out
    if 2 * float(case.exclusive[written_before(case)].sum()) >= case.time:
        return None  # a file is written before it can be read
    longest = float(files.largest(files.duration)[0])
    logs, lasting = np.nan_to_num(files["log_id"]), np.nan_to_num(files.duration)
    waited = sum(
        max(0.0, float(files.exclusive[logs == log].sum() - lasting[logs == log].max())) for log in np.unique(logs)
    )  # a program that follows another one does not wait for it
    claim = Claim(
        title=f"Files are {'written' if files.direction == 'write' else 'read'} one after the other.",
        time=min(
            waited * case.time / case.swept, float(np.nansum((files["{time}"] + files["meta_time"])[files.critical]))
        ),
        confidence="medium",
        reason="the log has the times of the files, but not whether the program could access them at once",
        evidence=[
            *case.evidence("critical files", float(len(case.order)), "count"),
            *case.evidence("time in which the files do not overlap", value, "share"),
            *case.evidence("longest single file", longest, "s"),
        ],
        advice=[say.overlap(files.direction, mpi=case.uses_mpiio)],
        at_most=True,
    )
    return case.finding(SERIALISED, claim, chosen=files.critical)


SERIALISED = Cause(
    name="serialised",
    rule=serialised,
    cells=Cells(("data",)),
    phrase="{way}s{at}, one file after the other",
    section="One rank, or few, do it all",
    mechanism="The job accesses its files one after the other.",
    condition=(
        "The job has several processes, and its critical files do not overlap for {serialised} of their time. The"
        " cause is not reported if the job has no I/O for a quarter of the time from the first access to the last, as"
        " between checkpoints. The cause is not reported either if one rank is in calls on files of its own for {root}"
        " of the critical time, and {uneven} times as long as an average rank."
    ),
    sentences=("Files are ",),
    advice=(Offer("if MPI-IO moves the bytes", say.overlap), Offer("else", lambda way: say.overlap(way, mpi=False))),
)


def small_files(case: Case) -> Finding | None:
    """Many small files."""
    chosen = case.files.critical & (case.per_file["small_files"] > 0)
    small = case.files.counted & (case.files["{bytes}"] <= case.limits.small_file_bytes)
    opens = case.metadata >= 0.5  # take longer than the data: of these a bandwidth says nothing
    claim = Claim(
        title="The job spends its time on many small files.",
        time=float(case.exclusive[chosen].sum()),
        confidence="medium",
        reason="each file is opened, and cannot be read ahead or written in large pieces",
        evidence=[
            *case.evidence(f"files of at most {size_text(case.limits.small_file_bytes)}", float(small.sum()), "count"),
            *case.evidence("bytes in them", case.total("{bytes}", small) if small.any() else float("nan"), "B"),
        ],
        advice=[say.BUNDLE],
        at_most=True,
        costs=opens,
    )
    return case.finding(SMALL_FILES, claim, chosen=chosen)


SMALL_FILES = Cause(
    name="small_files",
    rule=small_files,
    cells=Cells(("open", "data")),
    phrase="{way}s{at}, each of them small",
    section="Opening, metadata, many small files",
    mechanism="The job opens each file for few bytes.",
    condition=(
        "The job accesses {many_files} files of at most {small_file_bytes}. If the bandwidth is {fast} or more, opens"
        " have to take longer than reads and writes."
    ),
    sentences=("The job spends its time on many small files",),
    advice=(Offer(ALWAYS, lambda _: say.BUNDLE),),
    moves_data=False,
    of_opening=True,
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
    claim = Claim(
        title="Requests to shared files do not begin at blocks of the file system.",
        time=float(np.where(np.isnan(files["slowest_rank_time"]) & ~sure, case.exclusive, case.in_calls)[chosen].sum()),
        confidence="high" if sure else "medium" if alone and met else "low",
        reason="the file system locks blocks, and ranks that write large pieces share blocks"
        if sure
        else "Darshan counts these requests; how much time they cost depends on locks and caches",
        evidence=[
            *case.evidence("requests that are not aligned", case.mean(value, chosen), "share"),
            *case.evidence("block of the file system", case.mean(files["alignment"], chosen), "B", exact=True),
            *case.evidence("mean request", case.mean(case.request_bytes, chosen), "B", exact=True),
            *(
                case.evidence("blocks written in part that several ranks write (DXT)", shared / blocks, "share")
                if blocks
                else []
            ),
        ],
        advice=[say.align(collective=bool((files["{collective}"] > 0)[chosen].any()))],
        at_most=True,
    )
    return case.finding(UNALIGNED, claim, chosen=chosen)


UNALIGNED = Cause(
    name="unaligned",
    rule=unaligned,
    cells=Cells(("data", "lock")),
    phrase="{way}s{at} that do not begin at blocks of the file system, which several ranks share",
    section="Ranks share blocks, stripes or servers",
    mechanism="Two ranks write into one block, which the file system locks.",
    condition="{unaligned} of the requests to a shared file do not begin at a block. The file system is not local.",
    sure=(
        "if ranks write large pieces to Lustre, GPFS or BeeGFS, without collective calls, and 90 % of the pieces do"
        " not begin at a block"
    ),
    sentences=("Requests to shared files do not begin",),
    advice=(
        Offer("if calls are collective", lambda _: say.align(collective=True)),
        Offer("if no call is collective", lambda _: say.align(collective=False)),
    ),
    often_free=True,
)


def many_osts(case: Case) -> Finding | None:
    """Small files are striped over many OSTs: each open contacts all of them, and hardly any has data."""
    files = case.files
    size = np.fmax(files["max_offset_written"], files["max_offset_read"]) + 1
    chosen = files.critical & (files["stripe_count"] >= case.limits.many_stripes) & (size <= files["stripe_size"])
    if not chosen.any():
        return None
    claim = Claim(
        title="Too many OSTs: files that fit into one stripe are striped over many OSTs.",
        time=float(case.exclusive[chosen].sum()),
        confidence="medium",
        reason="the log has layout and size, but not the time that the other OSTs cost at each open",
        evidence=[
            *case.evidence("files that fit into one stripe", float(chosen.sum()), "count"),
            *case.evidence("OSTs of such a file", case.mean(files["stripe_count"], chosen), "count"),
            *case.evidence("size of such a file", case.mean(size, chosen), "B"),
        ],
        advice=[say.FEWER_STRIPES],
        at_most=True,
    )
    return case.finding(MANY_OSTS, claim, chosen=chosen)


MANY_OSTS = Cause(
    name="many_osts",
    rule=many_osts,
    cells=Cells(("open", "data")),
    phrase="{way}s{at} of small files that are striped over many storage targets",
    section="Ranks share blocks, stripes or servers",
    mechanism="Each open sends messages to all OSTs of the file.",
    condition="The data of a file fit into one stripe, and the file lies on {many_stripes} OSTs.",
    sentences=("Too many OSTs: ",),
    advice=(Offer(ALWAYS, lambda _: say.FEWER_STRIPES),),
    on_lustre=True,
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
    claim = Claim(
        title=f"Too many aggregators: {worded(case.value(round(float(case.movers[row]))), 'count')} ranks write"
        f" {worded(case.value(osts), 'count')} OST{'s' if osts != 1 else ''} in pieces of less than a stripe.",
        confidence="high" if sure else "medium",
        reason="DXT has stripes that several ranks write"
        if sure
        else "the log has layout, ranks and sizes, but not whether several ranks write into one stripe",
        evidence=[
            *case.evidence("ranks that write, for each OST", float(case.movers[row] / osts), "ratio"),
            *case.evidence("mean request", case.mean(case.request_bytes, chosen), "B", exact=True),
            *case.evidence("size of a stripe", float(files["stripe_size"][row]), "B", exact=True),
            *(
                case.evidence("stripes written in part that several ranks write (DXT)", shared / blocks, "share")
                if blocks
                else []
            ),
        ],
        advice=[say.aggregators(files.direction, max(1, int(osts)), fewer=True)],
        at_most=True,
    )
    return case.finding(MANY_AGGREGATORS, claim, chosen=chosen)


MANY_AGGREGATORS = Cause(
    name="many_aggregators",
    rule=many_aggregators,
    cells=Cells(("write", "lock"), ("POSIX", "MPI-IO")),
    phrase="collective {way}s{at} by more aggregators than the storage targets take",
    section="Ranks share blocks, stripes or servers",
    mechanism="Ranks write into the same stripes, which the file system locks.",
    condition=(
        "In collective calls {aggregators_per_ost} ranks write for each OST, and their requests are smaller than a"
        " stripe."
    ),
    sure="if several ranks write half of the stripes (DXT)",
    sentences=("Too many aggregators: ",),
    advice=(Offer(ALWAYS, lambda way: say.aggregators(way, 4, fewer=True)),),
    on_lustre=True,
)


def dominant_file(case: Case) -> Finding | None:
    """One file takes nearly all of the time, far more than its part of the bytes, and no rule says why."""
    row = case.order[0]
    if any(about[row] for about in case.about.values()):
        return None  # another rule is about it
    chosen = np.zeros(len(case.files), dtype=bool)
    chosen[row] = True
    share, saved = case.per_job["dominant_file"], case.saved(chosen)
    if saved < case.limits.dominant * case.time or int(case.files.counted.sum()) < 2 or case.busy < case.limits.busy:
        return None
    part = case.files["{bytes}"][row] / case.total("{bytes}", slice(None))
    if not share >= case.limits.dominant_excess * part:  # the file of the data beside small ones; or bytes unknown
        return None
    claim = Claim(
        title="One file takes nearly all of the time, but has a far smaller share of the bytes.",
        time=saved,
        confidence="medium",
        reason="the log has the times of the files, but no counter explains the time of this file",
        evidence=[
            *case.evidence(f"share of the file in the {case.of_time}", case.exclusive[row] / case.time, "share"),
            *case.evidence("bytes of the file", float(case.files["{bytes}"][row]), "B"),
            *case.evidence("share of the file in the job's bytes", part, "share"),
            *case.evidence("processes that access the file", float(case.files["ranks"][row]), "count"),
            *case.evidence("OSTs of the file", float(case.files["stripe_count"][row]), "count"),
        ],
        advice=[say.MEASURE] if case.uses_mpiio else [],
    )
    return case.finding(DOMINANT_FILE, claim, chosen=chosen)


DOMINANT_FILE = Cause(
    name="dominant_file",
    rule=dominant_file,
    cells=Cells(("data",)),
    phrase="{way}s{at}, which has a far smaller share of the bytes",
    section="The storage was slow",
    mechanism="One file is slow, and no counter explains why.",
    condition=(
        "Without one file the critical time would be shorter by {dominant}. The file's share of the time is"
        " {dominant_excess} times its share of the bytes. No rule of another cause finds the file."
    ),
    sentences=("One file takes nearly all",),
    advice=(Offer(OF_MPI, lambda _: say.MEASURE),),
)
