"""The rules about how libraries carry calls out: read-modify-write, tiny pieces, pointers and reads of the MPI library.

Problem. The file system gets other requests than the program makes. The MPI library reads ranges in order to write or
read pieces, and stores a shared pointer in a file of its own. And a call may cost more than its bytes.

Algorithm. Bytes, calls and times of MPI-IO are compared with those of POSIX. Read-modify-write writes the gaps as well:
the requests within the MPI-IO calls write more bytes than the program. Without gaps its order shows it: a write follows
each read. Tiny pieces are a cause if a rank makes many, and spends its time in them.

Guarantees. Bytes that a program reads or writes through POSIX itself, beside MPI-IO, are not the MPI library's. So
there is no finding if the requests take longer than the MPI-IO calls. There is no finding either if the requests write
exactly the program's bytes, and reads do not alternate with writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.cause import ALWAYS, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.model import IN_MPIIO, Advice, Claim, Evidence, Finding
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.files import Files, bins
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import count_text

#: Bytes of the largest request that is a piece of HDF5's metadata beside data: a bound of Darshan's histogram.
_LARGEST_PIECE = 1 << 10


def hdf5_metadata(case: Case) -> Finding | None:
    """HDF5 makes small requests for groups, attributes and headers: the data of datasets are few, or in larger ones."""
    files, limits, ranks = case.files, case.limits, np.maximum(np.nan_to_num(case.files["ranks"], nan=1.0), 1.0)
    by_mpi = np.nan_to_num(files["{independent}"]) + np.nan_to_num(files["{collective}"]) > 0
    moved = np.where(by_mpi, files["mpiio_bytes_written" if case.write else "mpiio_bytes_read"], files["{bytes}"])
    moved, opened = np.nan_to_num(moved), np.array([calls.by_hdf5 for calls in case.calls])
    data = np.array([calls.datasets[case.write] for calls in case.calls])
    asked = np.array([calls.dataset_calls[case.write] for calls in case.calls])
    tiny, small = (np.nan_to_num(files[name]) for name in bins(files.direction)[:2])
    pieces, least = tiny + small, tiny + 100 * small  # least bytes: they are not those of datasets
    apart = data >= limits.wide_gaps * _LARGEST_PIECE * np.maximum(pieces, 1.0)
    apart &= moved - data >= least
    alone = (moved >= limits.wide_gaps * np.maximum(data, 1.0)) & (case.request_bytes <= limits.hdf5_bytes)
    pieces = np.where(apart, pieces, files.requests())
    chosen = files.critical & (opened > 0) & (alone | apart)
    chosen &= (pieces >= limits.some_collectives) & (asked <= 0.5 * pieces)
    if not chosen.any():
        return None
    flushes = float(sum(calls.hdf5_flushes for calls, it in zip(case.calls, chosen, strict=True) if it))
    each, verb = flushes / float(ranks[chosen].max()), "writes" if case.write else "reads"
    often = case.write and each >= limits.many_opens
    sure = not data[chosen].any()  # else a call may move pieces of many small chunks
    beside = bool(apart[chosen].all())
    flushed = f", flushed {count_text(round(case.value(each)), 'time')} by each process" if often else ""
    part = case.part_up_to(_LARGEST_PIECE, chosen) if beside else 1.0
    claim = Claim(
        title=f"HDF5 {verb} its own metadata (groups, attributes, headers) in small pieces,"
        f" {'beside large requests for' if beside else 'and hardly any'} data of datasets"
        f"{': the program flushes the file again and again' if often else ''}.",
        what=f"{files.direction}s{case.at(chosen)} of HDF5's own metadata (groups, attributes, headers){flushed}",
        time=float(np.minimum(np.fmax(case.in_mpi, case.in_calls), case.exclusive)[chosen].sum()) * part,
        confidence="high" if sure else "medium",
        reason="bytes of the files and of their datasets, and flushes, are in the log"
        + ("" if sure else "; some of the requests may move whole chunks, of which the program accesses a piece"),
        evidence=[
            *case.evidence("bytes of the files", float(moved[chosen].sum()), "B"),
            *case.evidence("bytes of their datasets", float(data[chosen].sum()), "B"),
            *([] if beside else case.evidence("mean request", case.mean(case.request_bytes, chosen), "B")),
            *case.evidence(f"requests{' of at most 1 KiB' * beside}", float(pieces[chosen].sum()), "count"),
            *case.evidence("calls that access datasets", float(asked[chosen].sum()), "count"),
            *case.evidence("flushes of a process (H5Fflush)", each, "count"),
        ],
        advice=[say.hdf5_metadata(files.direction, flushed=often)],
        at_most=True,
        costs=sure,
    )
    return case.finding(HDF5_METADATA, claim, chosen=chosen)


HDF5_METADATA = Cause(
    name="hdf5_metadata",
    rule=hdf5_metadata,
    cells=Cells(("data",)),
    effects=(
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
    section="Small requests, one by one",
    mechanism="HDF5 keeps groups, attributes and headers in small pieces of the file, and each flush writes them.",
    condition=(
        "The log has Darshan's module of HDF5, and HDF5 opens the file. The file gets {some_collectives} requests of"
        " {hdf5_bytes} or less on average, twice as many as the calls that access datasets, and {wide_gaps} times the"
        " bytes of the datasets. Or as many requests have 1 KiB or less, and the datasets have {wide_gaps} times the"
        " bytes that such small requests can have."
    ),
    sure="if no dataset is accessed",
    sentences=("its own metadata (groups, attributes, headers)",),
    advice=(
        Offer(
            "if a process flushes the files it writes {many_opens} times",
            lambda way: say.hdf5_metadata(way, flushed=True),
        ),
        Offer("else", lambda way: say.hdf5_metadata(way, flushed=False)),
    ),
)


#: Whose time it is that a shared pointer takes.
_BY_POINTER = " by the shared file pointer, for which ranks wait for one another"

#: Files in which MPI libraries keep the shared pointer of a file: that of ROMIO, those of OMPIO.
_POINTER = re.compile(r"(?:^|/)\.([^/]+)\.shfp\.\d+[^/]*$|\.lockedfile$|-\d+-\d+\.lock$")


def keeps_pointer(name: str | None) -> bool:
    """Return whether an MPI library keeps a shared pointer in a file of that name."""
    return bool(name and _POINTER.search(name))


def shared_pointers(files: Files) -> Flags:
    """Return for each file whether an MPI library stores a shared pointer in it; false if names are unknown."""
    names = files.table["file"].to_pylist() if "file" in files.table.schema.names else [None] * len(files)
    return np.array([keeps_pointer(name) for name in names], bool)


def _by_all(files: Files, ways: Sequence[str] = ("write", "read")) -> str:
    """Return the calls with a shared pointer that ranks make, or all of them in their order, where these are more."""
    asked = {
        (kind, way): np.nan_to_num(files[f"mpiio_{kind}_{way}s"]).sum() for kind in ("coll", "indep") for way in ways
    }
    ordered = sum(asked["coll", way] for way in ways) > sum(asked["indep", way] for way in ways)
    made = [way for way in ways if asked["coll", way] + asked["indep", way] > 0]
    return ", ".join(f"MPI_File_{way}_{'ordered' if ordered else 'shared'}" for way in made)


def shared_pointer(case: Case) -> Finding | None:
    """Calls with the shared file pointer: ranks lock, read and rewrite a hidden file, one after the other."""
    files, pointers = case.files, shared_pointers(case.files)
    moves = float((files.requests("read") + files.requests("write"))[pointers].sum())
    calls = float(np.nansum([files[f"mpiio_{kind}_{way}s"] for kind in ("coll", "indep") for way in ("read", "write")]))
    if not pointers.any() or not moves >= 0.5 * max(calls, 100.0):
        return _by_pointer(case)
    inside, requests = case.of_mpi("read", "write"), case.in_all_requests
    place = int(np.argmax(inside))
    given = float(np.nansum([files["mpiio_bytes_read"], files["mpiio_bytes_written"]]))
    large = given > case.limits.tiny_bytes * calls  # then it is the data that take the time of the requests
    moving = min(float(np.nan_to_num(requests[place])), float(inside[place])) if large else 0.0
    time = min(max(float(inside[place]) - moving, float(np.nansum(requests[pointers]))), case.time)
    chosen = pointers | ((inside > 0) & (np.arange(len(files)) == place))
    made = _by_all(files)
    way = "write" if "write" in made else "read"
    claim = Claim(
        title=f"Ranks wait for the shared file pointer ({made}): each call locks, reads and rewrites a hidden file.",
        what=f"{way}s{case.at(chosen & ~pointers, 'to' if way == 'write' else 'from')}{_BY_POINTER}",
        time=time,
        confidence="high" if time >= 0.3 * case.time and not large else "medium",
        reason=(
            "the log has the requests to the hidden file, but no time in locks"
            + ("; each call moves many bytes" if large else "")
        ),
        evidence=[
            *case.evidence("requests to the file of the pointer", moves, "count"),
            *case.evidence("MPI-IO calls", calls, "count"),
            *case.evidence("time of the slowest rank in MPI-IO calls", float(inside[place]), "s"),
            *case.evidence("bytes of an MPI-IO call", given / max(calls, 1.0), "B"),
        ],
        advice=[say.own_offsets(way)],
        at_most=True,
        costs=True,
    )
    return case.finding(SHARED_POINTER, claim, chosen=chosen)


def placeless(case: Case) -> Flags:
    """Return for each file whether calls have no place of their own, but ranks fill it together, between one another.

    A rank that has its own part of the file jumps there once.
    """
    files, way, limits = case.files, case.write, case.limits
    jumps = files.requests() - np.nan_to_num(files["{consecutive}"])
    calls = np.nan_to_num(files["{independent}"]) + np.nan_to_num(files["{collective}"])
    known = case.ledger.measured is not None  # else calls name no place
    recorded = [known and way in each.asked and not each.views for each in case.calls]
    unknown = np.array([each.asked[way][4] if it else 0.0 for each, it in zip(case.calls, recorded, strict=True)])
    found = files.critical & case.together & (unknown >= 0.9 * np.maximum(calls, limits.some_collectives))
    found &= jumps >= _BLOCKS * files["ranks"]
    return np.asarray(found & (files["{bytes}"] <= limits.tiny_bytes * calls))


def _by_pointer(case: Case) -> Finding | None:
    """Ranks write as by the pointer that they share."""
    files, chosen = case.files, placeless(case)
    if not chosen.any():
        return None
    calls = float((np.nan_to_num(files["{independent}"]) + np.nan_to_num(files["{collective}"]))[chosen].sum())
    claim = Claim(
        title=(
            f"Ranks wait for the shared file pointer ({_by_all(files, [files.direction])}), or seek before each call."
        ),
        what=f"{files.direction}s{case.at(chosen)}{_BY_POINTER}",
        confidence="medium",
        reason=(
            "the calls name no place and no view, and pieces of several ranks alternate in the file; the log does not"
            " show which pointer the calls use"
        ),
        evidence=[
            *case.evidence("MPI-IO calls", calls, "count"),
            *case.evidence("bytes of an MPI-IO call", case.total("{bytes}", chosen) / calls, "B"),
        ],
        advice=[say.own_offsets(files.direction)],
        at_most=True,
        costs=True,
    )
    return case.finding(SHARED_POINTER, claim, chosen=chosen)


SHARED_POINTER = Cause(
    name="shared_pointer",
    rule=shared_pointer,
    cells=Cells(("read", "write", "lock", "waiting"), ("POSIX", "MPI-IO")),
    effects=("waiting_calls", "turns", "stragglers", "slowed_down", "unaligned"),
    effects_if="anywhere",
    section="Syncs and shared file pointers",
    time_is="the time of these waits",
    mechanism="Each call locks and rewrites the hidden file that has the shared pointer.",
    condition=(
        "The hidden file gets half as many requests as there are MPI-IO calls, and at least 50. Or {some_collectives}"
        " calls or more, of {tiny_bytes} or less, name no place and no view, and in the file the pieces of one rank lie"
        " between pieces of other ranks (recordings of this library)."
    ),
    sure="if the calls take 30 % of the time, and move {tiny_bytes} or less each",
    sentences=("Ranks wait for the shared file pointer",),
    advice=(Offer(ALWAYS, say.own_offsets),),
)


def read_amplification(case: Case) -> Finding | None:
    """The MPI library reads ranges of which the program uses pieces: data sieving, or collective buffers."""
    files, limits = case.files, case.limits
    asked, read = files["mpiio_bytes_read"], files["bytes_read"]
    chosen = files.critical & (asked > 0) & (read >= limits.amplified * asked)
    chosen &= ~((files["bytes_written"] > 0) & _while_writing(files)) & (case.in_mpi > 0)
    chosen &= ~(_of_all(case, "read") < 0.5 * files["read_time"])  # else the requests are the program's
    if case.write or not chosen.any():
        return None
    more = float(read[chosen].sum() / asked[chosen].sum())
    wanted = float(asked[chosen].sum())
    claim = Claim(
        title=f"The MPI library reads {worded(case.value(more), 'ratio')} what the program asks for (data sieving):"
        f" {worded(case.value(float(read[chosen].sum())), 'B')} instead of {worded(case.value(wanted), 'B')}.",
        time=float((case.in_calls * (1 - asked / np.where(chosen, read, 1.0)))[chosen].sum()),
        confidence="high",
        reason="the log has the bytes of MPI-IO and of POSIX; without data sieving, each piece would be a request",
        evidence=[
            *case.evidence("read through POSIX", float(read[chosen].sum()), "B"),
            *case.evidence("read through MPI-IO", wanted, "B"),
            *case.evidence("bandwidth of the bytes that the program asks for", wanted / case.time, "B/s"),
        ],
        advice=[say.use_collective("read")],
        at_most=True,
        costs=wanted < limits.fast * case.time,
    )
    return case.finding(READ_AMPLIFICATION, claim, chosen=chosen)


READ_AMPLIFICATION = Cause(
    name="read_amplification",
    rule=read_amplification,
    cells=Cells(("read", "write"), ("POSIX", "MPI-IO")),
    effects=("small_requests", "unaligned", "waiting_calls", "redundant_reads", "contention"),
    phrase="{way}s{at} of far more bytes than the program asks for",
    section="More is read than was asked for",
    mechanism="The MPI library reads whole ranges, but the program asks for pieces of them.",
    condition=(
        "POSIX reads {amplified} times the bytes that MPI-IO reads, from a file that the job does not write meanwhile."
    ),
    sure=ALWAYS,
    sentences=("The MPI library reads ",),
    advice=(Offer(ALWAYS, say.use_collective),),
)


#: What no log shows of read-modify-write; and what the time of its reads is, where it is more than that of all ranks.
_LOCKING = "; the log does not show how long the MPI library locks ranges"
_ITS_CALLS = "; the time is that of the MPI-IO writes that make the reads"
#: Evidence of the time of MPI-IO writes, where it is more than that of the requests of their reads.
_READING = "longest time of a rank in MPI-IO writes, which make these reads"


def read_modify_write(case: Case) -> Finding | None:
    """The MPI library reads ranges of a file in order to write pieces of them: data sieving."""
    files, limits = case.files, case.limits
    asked, read = files["mpiio_bytes_read"], files["bytes_read"]
    written, stored = files["mpiio_bytes_written"], files["bytes_written"]
    extra = np.maximum(read - asked, 0.0)  # unknown where Darshan has either not
    many = files.requests("read") >= limits.reads_of_a_write * files.requests("write")  # of 0 bytes, of a new file
    more = extra >= limits.read_modify_write * written
    unasked = many & ~more & ~(asked > 0)
    amplified = (stored >= limits.amplified * written) & (more | many)  # else the program itself writes, too
    sieved = (more | unasked) & _while_writing(files) & (extra <= 1.1 * stored)
    sieved &= (stored > written) | _followed(case)  # gaps are written with the pieces: else the program itself reads
    chosen = files.critical & (written > 0) & (sieved | amplified) & _within_calls(case)
    if not chosen.any():
        return None
    piece = _mean_piece(case, chosen)
    small = "small " if piece else ""
    direction, much = files.direction, bool((amplified | unasked | (extra >= 0.5 * written))[chosen].any())
    needless = np.where(read > 0, extra / np.where(read > 0, read, 1.0), np.where(asked > 0, 0.0, 1.0))
    reading, writing = np.nan_to_num(files["read_time"]), np.nan_to_num(files["write_time"])
    cost = reading * needless + writing * np.clip(1 - written / np.maximum(stored, 1.0), 0, 1)
    computed = much | (case.collective & (reading > 0))  # alone, ranks lock meanwhile
    part = np.where(computed, cost / np.maximum(reading + writing, 1e-12), 1.0)
    part = part if direction == "write" else needless
    inside, requests = case.of_mpi("read", "write"), case.in_all_requests
    known = inside > 0
    busy = np.minimum(np.where(known, np.maximum(inside, requests), np.inf), case.exclusive)
    busy *= _of_requests(case)
    waits = bool((known & (busy > 2 * requests) & ~np.array(case.complete))[chosen].any())  # what for, nobody knows
    at_most = waits or (direction == "write" and not (much and bool(known[chosen].all())))
    called = _in_their_calls(case, chosen)
    time = max(float((busy * part)[chosen].sum()), called)
    at_most |= time == called
    most = min(float(inside[chosen].sum()), case.most_of_a_rank(READ_MODIFY_WRITE, chosen)) if waits else called
    empty = float(files["read_size_0_100"][chosen].sum() / max(1.0, float(files.requests("read")[chosen].sum())))
    claim = Claim(
        title=f"The MPI library reads what it is about to overwrite: it writes {small}pieces by read-modify-write"
        f"{_amplified(case, written, stored, chosen) if much else ''}."
        if case.write
        else f"Read-modify-write{case.at(chosen, 'of')}: the MPI library reads what it is about to overwrite.",
        what=f"{small}writes{case.at(chosen)} carried out by read-modify-write" if case.write else "",
        time=time,
        confidence="high" if not (asked[chosen] > 0).any() or amplified[chosen].any() else "medium",
        reason="bytes of the file are read or written that no MPI-IO call asked for"
        + (_LOCKING if case.write else _ITS_CALLS * (time > float(reading[chosen].sum()))),
        evidence=[
            *case.evidence("read through POSIX", float(read[chosen].sum()), "B"),
            *case.evidence("read through MPI-IO", float(asked[chosen].sum()), "B"),
            *case.evidence("written through POSIX", case.total("bytes_written", chosen & ~np.isnan(stored)), "B"),
            *case.evidence("written through MPI-IO", float(written[chosen].sum()), "B"),
            *piece,
            *(case.evidence("reads of at most 100 B among all reads", empty, "share") if empty >= 0.5 and much else []),
            *(case.evidence("time in reads, all ranks", float(reading[chosen].sum()), "s") if much else []),
            *(case.evidence("time in writes, all ranks", float(writing[chosen].sum()), "s") if much else []),
            *(case.evidence(IN_MPIIO if waits else _READING, most, "s") if most else []),
        ],
        advice=_instead_of_sieving(case, float(written[chosen].sum()), float(np.nan_to_num(stored[chosen]).sum())),
        at_most=at_most,
        costs=direction == "read" or much,
    )
    return case.finding(READ_MODIFY_WRITE, claim, chosen=chosen)


def _in_their_calls(case: Case, chosen: Flags) -> float:
    """Return the time (s) of a rank in writes of MPI-IO that read what they overwrite; 0 if requests hardly fill it.

    The calls go on between their reads. If the calls take far longer than requests, ranks exchange data, or wait.
    """
    called = 0.0 if case.write else case.busiest("write", layer="MPI-IO", chosen=chosen)
    called = 0.0 if np.array(case.complete)[chosen].all() else called  # DXT shows how long ranks read
    return called if called <= 2 * case.busiest("read", "write", chosen=chosen) else 0.0


def _instead_of_sieving(case: Case, written: float, stored: float) -> list[Advice]:
    """Return the advice: writing the pieces alone gains if there are no gaps, or if the gaps are far larger.

    Between, requests of the pieces may take longer than reading and writing the gaps: tried with programs of
    tests/corpora/advice_trials.py.
    """
    limits = case.limits
    alone = stored <= limits.no_gaps * written or stored >= limits.wide_gaps * written
    return list(say.NO_SIEVING) if alone else [say.MEASURE]


def _mean_piece(case: Case, chosen: Flags) -> list[Evidence]:
    """Return as evidence how large the pieces that the program writes are at most, where they are known to be small.

    No piece is larger than its call. With gaps, the program's bytes in a request are no more than their share of all
    bytes; without gaps, nothing shows the ends of pieces.
    """
    files = case.files
    written, stored = (float(np.nansum(files[name][chosen])) for name in ("mpiio_bytes_written", "bytes_written"))
    calls = sum(float(np.nansum(files[f"mpiio_{kind}_writes"][chosen])) for kind in ("coll", "indep", "nb"))
    requests = float(np.nansum(files.requests("write")[chosen])) if stored > written else 0.0
    mean = written / max(calls, requests, 1.0)
    return case.evidence("mean piece, at most", mean, "B") if 0 < mean < case.limits.small_bytes / 2 else []


_NO_OR_WIDE = (
    "if POSIX writes at most {no_gaps} times the bytes that MPI-IO writes (no gaps), or {wide_gaps} times as many"
)


READ_MODIFY_WRITE = Cause(
    name="read_modify_write",
    rule=read_modify_write,
    cells=Cells(("read", "write", "lock"), ("POSIX", "MPI-IO")),
    effects=(
        "small_requests",
        "unaligned",
        "root_reads",
        "waiting_calls",
        "turns",
        "stragglers",
        "slowed_down",
        "exchange",
    ),
    phrase="read-modify-write{of} (the MPI library reads what it is about to overwrite)",
    section="More is read than was asked for",
    mechanism="The MPI library reads a range of the file, changes pieces of it, and writes the range again.",
    condition=(
        "Through POSIX the job reads bytes that no MPI-IO call reads: {read_modify_write} of the bytes that MPI-IO"
        " writes. Or no MPI-IO call reads the file, and POSIX makes reads, also of 0 bytes, as many as"
        " {reads_of_a_write} of its writes. And POSIX writes more bytes than MPI-IO, or reads before each write."
    ),
    sure="if no MPI-IO call reads, or POSIX writes {amplified} times the bytes that MPI-IO writes",
    sentences=("MPI library reads what it is about to overwrite",),
    advice=(
        Offer(_NO_OR_WIDE, lambda _: say.NO_SIEVING[0]),
        Offer(_NO_OR_WIDE, lambda _: say.NO_SIEVING[1]),
        Offer("else", lambda _: say.MEASURE),
    ),
    least_sure=0.0,  # its requests are counted
)


#: Blocks of a rank from which on it is no chance where they lie, or that it reads each, and then writes it.
_BLOCKS = 10


#: How many times as much one of two numbers may be that are called alike.
_ALIKE = 1.1


def alike(one: Numbers, other: Numbers) -> Flags:
    """Return whether numbers are alike, and no zeros."""
    return np.asarray((one > 0) & (one <= _ALIKE * other) & (other <= _ALIKE * one))


def updated(files: Files, switches: Numbers) -> Flags:
    """Return for each file whether its blocks are read, each of them, and written right then.

    Reads alternate with writes, of which there are as many, with as many bytes, up to the same last block. What is
    written first, and then read back, begins with a write.
    """
    reads, writes = files.requests("read"), files.requests("write")
    blocks, ranks = np.minimum(reads, writes), np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    found = (blocks >= _BLOCKS * ranks) & (switches + ranks >= 2 / _ALIKE * blocks)
    found &= alike(reads, writes) & alike(files["bytes_read"], files["bytes_written"])
    ends = np.abs(files["max_offset_read"] - files["max_offset_written"])
    found &= ends * np.maximum(writes, 1.0) <= files["bytes_written"]
    found &= (files["read_start"] <= files["write_start"]) & (files["read_end"] <= files["write_end"])
    return np.asarray(found)


def read_before_write(case: Case) -> Finding | None:
    """The program itself reads each block before it overwrites it, from front to back.

    At random places that is what an update is.
    """
    files, limits = case.files, case.limits
    switches = _switches(case)
    chosen = files.critical & updated(files, switches)
    chosen &= (files["seq_reads"] >= limits.forward * files.requests("read")) & ~case.shifted
    chosen &= files["seq_writes"] >= limits.forward * files.requests("write")
    chosen &= files["bytes_written"] >= limits.one_rank_bytes
    by_library = np.nan_to_num(files["bytes_read"]) - np.nan_to_num(files["mpiio_bytes_read"])
    chosen &= ~(by_library >= limits.read_modify_write * files["mpiio_bytes_written"])
    if not chosen.any():
        return None
    read, written = (float(files[name][chosen].sum()) for name in ("bytes_read", "bytes_written"))
    claim = Claim(
        title=f"The program reads each block before it overwrites the block: it reads {worded(case.value(read), 'B')},"
        " and writes as much.",
        confidence="high",
        reason=(
            "reads and writes alternate, and have the same bytes and the same last block; the log does not show"
            " whether the program needs what it reads"
        ),
        evidence=[
            *case.evidence("read", read, "B"),
            *case.evidence("written", written, "B"),
            *case.evidence("blocks", float(files.requests("write")[chosen].sum()), "count"),
            *case.evidence("changes from reading to writing, and back", float(switches[chosen].sum()), "count"),
        ],
        advice=[say.WRITE_WITHOUT_READING],
        at_most=True,
    )
    return case.finding(READ_BEFORE_WRITE, claim, chosen=chosen)


READ_BEFORE_WRITE = Cause(
    name="read_before_write",
    rule=read_before_write,
    cells=Cells(("read", "write")),
    phrase="reads and writes{of} in turn, as the program reads each block before it overwrites the block",
    section="More is read than was asked for",
    mechanism="The program reads each block, and then overwrites the block.",
    condition=(
        "Reads and writes of a file alternate, and a read is the first. The reads have as many bytes as the writes,"
        " {one_rank_bytes} or more, and the same last block. Of the reads, and of the writes, {forward} lie behind the"
        " one before."
    ),
    sure=ALWAYS,
    sentences=("The program reads each block before it overwrites the block",),
    advice=(Offer(ALWAYS, lambda _: say.WRITE_WITHOUT_READING),),
)


def _switches(case: Case) -> Numbers:
    """Return how often ranks read each file after a write of POSIX, or write it after a read."""
    return np.array([float(calls.switches) for calls in case.calls])


def written_before(case: Case) -> Flags:
    """Return for each file whether the program has written all that it reads from it, and so before.

    It overwrites them later; or ranks pass data on through files, of which each rank has several for itself.
    """
    files, limits = case.files, case.limits
    switches, ranks = _switches(case), np.nan_to_num(files["ranks"], nan=1.0)
    found = files.critical & alike(files["bytes_read"], files["bytes_written"])
    found &= alike(files["max_offset_read"] + 1, files["max_offset_written"] + 1)
    found &= (files["write_start"] < files["read_start"]) & (files["write_end"] < files["read_end"])
    found &= (switches >= ranks) & (files["seq_reads"] >= limits.forward * files.requests("read"))
    found &= ~case.shifted & ~updated(files, switches) & ~(sieving(case) & (files["mpiio_bytes_written"] > 0))
    several = np.count_nonzero(found & (ranks == 1)) > case.processes
    return np.asarray(found & (several | (switches >= _ROUNDS * ranks)))


def read_back(case: Case) -> Finding | None:
    """The program reads all that it has just written: a check, or data that did not fit."""
    files, chosen = case.files, written_before(case)
    read = float(files["bytes_read"][chosen].sum())
    if case.write or not read >= case.limits.one_rank_bytes:
        return None
    claim = Claim(
        title=(
            f"The program reads back what it has just written: {worded(case.value(read), 'B')}, as much as it writes."
        ),
        confidence="medium",
        reason=(
            "reads follow writes, with as many bytes up to the same last byte; the log does not show what the"
            " reads are for"
        ),
        evidence=[
            *case.evidence("read", read, "B"),
            *case.evidence("written", float(files["bytes_written"][chosen].sum()), "B"),
            *case.evidence("changes from reading to writing, and back", float(_switches(case)[chosen].sum()), "count"),
        ],
        advice=[say.CHECK_IN_MEMORY],
        at_most=True,
    )
    return case.finding(READ_BACK, claim, chosen=chosen)


#: Turns from writes to reads, and back, of a rank from which on it overwrites what it has read back.
_ROUNDS = 2


READ_BACK = Cause(
    name="read_back",
    rule=read_back,
    cells=Cells(("read",)),
    effects=("small_requests", "small_files"),
    effects_if="found",  # of needless reads it is the second question how large they are, or the files
    phrase="reads{at} of what the program has just written",
    section="More is read than was asked for",
    mechanism="The program reads the data that it has written: to verify them, or because they do not fit into memory.",
    condition=(
        "The job first writes files, and then reads as many bytes from front to back, {one_rank_bytes} or more, up to"
        " the same last byte. Then the job overwrites the files: a rank changes from writes to reads, or back, twice or"
        " more. Or there are more such files, each of one rank, than processes."
    ),
    sentences=("The program reads back what it has just written",),
    advice=(Offer(ALWAYS, lambda _: say.CHECK_IN_MEMORY),),
)


def _within_calls(case: Case) -> Flags:
    """Return for each file whether its requests can be the MPI library's: its calls take as long; true if unknown."""
    inside = case.of_mpi("read", "write")
    return np.asarray((inside <= 0) | (inside >= 0.5 * case.in_all_requests))


def _of_all(case: Case, way: str) -> Numbers:
    """Return the time (s) of all ranks in MPI-IO reads or writes of each file; 0 if unknown."""
    return case.of_mpi(way, mean=True) * case.ledger.processes


def _followed(case: Case) -> Flags:
    """Return for each file whether reads alternate with writes, all of them within MPI-IO writes; false if unknown."""
    files, switches = case.files, _switches(case)
    requests = np.nan_to_num(files["read_time"]) + np.nan_to_num(files["write_time"])
    return np.asarray(
        (switches >= np.maximum(files.requests("read"), 1.0)) & (_of_all(case, "write") >= 0.9 * requests)
    )


def _of_requests(case: Case) -> Numbers:
    """Return the share of requests in a file's MPI-IO writes; in collective writes the rest is the exchange.

    All ranks wait for the one that is longest in requests.

    Writes of single ranks hold locks meanwhile, and wait for those of others: there it is all. Such are collective
    calls, too, where each rank writes the ranges of all.
    """
    files, inside = case.files, case.of_mpi("write")
    by_each = files["bytes_written"] >= 0.75 * files["ranks"] * files["mpiio_bytes_written"]
    together = np.nan_to_num(files["mpiio_coll_writes"]) > np.nan_to_num(files["mpiio_indep_writes"])
    together = case.collective if case.write else together & ~np.array(case.complete)  # DXT has the time of reads
    exchanged = together & (inside > 0) & ~by_each
    return np.where(exchanged, np.minimum(case.in_all_requests / np.maximum(inside, 1e-9), 1.0), 1.0)


def sieving(case: Case) -> Flags:
    """Return for each file whether, while it is written, the MPI library reads more than MPI-IO calls request."""
    files = case.files
    extra = np.nan_to_num(files["bytes_read"]) - np.nan_to_num(files["mpiio_bytes_read"])
    needless = extra > case.limits.read_modify_write * np.nan_to_num(files["bytes_written"])
    return np.asarray((files["bytes_written"] > 0) & needless & _while_writing(files))


def _while_writing(files: Files) -> Flags:
    """Return for each file whether the times of its reads and of its writes overlap; true if unknown."""
    apart = (files["read_start"] >= files["write_end"]) | (files["write_start"] >= files["read_end"])
    return np.asarray(~apart)


def _amplified(case: Case, written: Numbers, stored: Numbers, chosen: Flags) -> str:
    """Return in words how many bytes reach the file system of those that the program writes, or else are read."""
    asked, moved = float(written[chosen].sum()), float(np.nansum(stored[chosen]))
    if moved < 1.05 * asked:
        read = float(case.files["bytes_read"][chosen].sum())
        return f" (for {worded(case.value(asked), 'B')} of MPI-IO writes it reads {worded(case.value(read), 'B')})"
    return (
        f" ({worded(case.value(asked), 'B')} of MPI-IO writes become {worded(case.value(moved), 'B')} at the file"
        f" system, {worded(case.value(moved / asked), 'ratio')} as much)"
    )
