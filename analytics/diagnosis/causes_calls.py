"""The rules about how libraries carry calls out: read-modify-write, tiny pieces, pointers and reads of the MPI library.

Problem. What reaches the file system is not what the program asked for: the MPI library reads ranges to write pieces,
or to read them, and keeps a shared pointer in a file of its own. And a call may cost more than its bytes.

Algorithm. Bytes, calls and times of MPI-IO are held against those of POSIX. Read-modify-write writes the gaps as well:
so more is written than was asked for, by requests within the MPI-IO calls. Without gaps it shows by its order: each
read is followed by a write. Tiny pieces are a cause where a rank makes many, and spends the time in them.

Guarantees. Bytes that a program reads or writes through POSIX itself, beside MPI-IO, are not the MPI library's: where
the requests take longer than the MPI-IO calls, nothing is said; nor where exactly as much is written as was asked for,
and reads do not alternate with writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.model import IN_MPIIO, Advice, Evidence, Finding
from mpiio_ext.analytics.diagnosis.ranks import of_all, time_in_calls
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.analytics.factors.files import Files, bins
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import amount_text, size_text

#: Bytes of the largest request that is a piece of HDF5's metadata beside data: a bound of Darshan's histogram.
_LARGEST_PIECE = 1 << 10


def tiny_calls(case: Case) -> Finding | None:
    """Bytes or lines are handed over one by one: the calls take the time, though somebody gathers them."""
    return _tiny_collectives(case) or _tiny_pieces(case) or _waits_for_each(case)


def _tiny_pieces(case: Case) -> Finding | None:
    """Tiny pieces through the C library, or by the calls of POSIX or MPI-IO, one behind the other."""
    files, limits, calls = case.files, case.limits, np.nan_to_num(case.files["{requests}"])
    of_posix = files.requests("read") + files.requests("write") > 0
    calls = np.where(of_posix, files.requests(), calls)
    tiny = files["{bytes}"] <= limits.tiny_call_bytes * calls
    among = sum(np.nan_to_num(files[name]) for name in bins(files.direction)[:2])  # up to 1 KiB
    chosen = files.critical & (tiny | (of_posix & (among >= 0.9 * calls)))
    chosen &= calls >= limits.many_calls * np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    alone, together = np.nan_to_num(files["{independent}"]), np.nan_to_num(files["{collective}"])
    by_mpi = alone + together > 0
    own = (together == 0) & (alone >= 0.9 * calls) & (alone <= 1.1 * calls)  # each call of the program is a request
    chosen &= ~(of_posix & by_mpi) | own
    chosen &= ~of_posix if (chosen & ~of_posix).any() else of_posix
    chosen &= ~(case.opens * 2 * limits.requests_of_an_open > calls) & ~shared_pointers(files) & ~placeless(case)
    time, whole = float(np.nansum(case.in_calls[chosen])), float(case.exclusive[chosen].sum())
    if not chosen.any() or not time >= limits.busy_calls * whole:
        return None
    count, verb = float(calls[chosen].sum()), "written" if case.write else "read"
    mean, posix = case.total("{bytes}", chosen) / count, bool(of_posix[chosen].all())
    sure = bool(tiny[chosen].all())
    flushes = float(sum(each.flushes for each, it in zip(case.calls, chosen, strict=True) if it)) if case.write else 0.0
    flushed = flushes >= limits.flushed * count
    why = (
        ", and flushed again and again: each flush is a request"
        if flushed
        else (": each call is a request" if posix else ": the calls take the time, not the storage")
    )
    of_mpi = bool(own[chosen].all())
    through = "by independent MPI-IO calls" if of_mpi else "by read and write" if posix else "through the C library"
    of_what = f"MPI_File_{files.direction}_at" if of_mpi else "read, write" if posix else "fwrite, fprintf, fputc"
    return case.finding(
        "small_requests",
        f"Tiny pieces are {verb} {through}, {amount_text(case.value(mean)) if sure else 'most of 1 KiB or less'} a call"
        f"{why}.",
        time,
        "high" if sure else "medium",
        "number, bytes and time of these calls are in the log"
        + ("" if sure else "; some are larger, and what time these take is not"),
        [
            *case.evidence("mean piece", mean, "B"),
            *case.evidence(f"calls ({of_what} …)", count, "count"),
            *(case.evidence("flushes (fflush)", flushes, "count") if flushed else []),
            *case.evidence("time of a process in them", time, "s"),
        ],
        [
            say.larger_requests(files.direction, mpiio=True)
            if of_mpi
            else say.larger_pieces(flushed=flushed, plain=posix)
        ],
        chosen,
        at_most=True,
        costs=sure,
    )


def _tiny_collectives(case: Case) -> Finding | None:
    """Collective calls to which all ranks together give few bytes: each costs an exchange, and ranks meet in it."""
    files, limits = case.files, case.limits
    calls = np.nan_to_num(files["{collective}"]) / np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    moved = files["mpiio_bytes_written" if case.write else "mpiio_bytes_read"]
    chosen = files.critical & case.collective & (files["ranks"] > 1)
    chosen &= (calls >= limits.some_collectives) & (moved <= limits.tiny_bytes * calls)
    inside = np.minimum(case.in_mpi, case.exclusive)
    chosen &= inside >= 0.5 * case.exclusive
    if not chosen.any():
        return None
    each, count = float(moved[chosen].sum() / calls[chosen].sum()), float(calls[chosen].sum())
    sure = count >= limits.many_collectives
    return case.finding(
        "small_requests",
        f"Collective calls have few bytes, {amount_text(case.value(each))} of all ranks together: the calls take the"
        " time, not the storage.",
        float(inside[chosen].sum()),
        "high" if sure else "medium",
        "number, bytes and time of these calls are in the log"
        + ("" if sure else "; of so few, ranks may be late to some"),
        [
            *case.evidence("bytes of a call, all ranks together", each, "B"),
            *case.evidence("collective calls of a rank", count, "count"),
            *case.evidence("time of a rank in them", float(inside[chosen].sum()), "s"),
            *case.evidence("time for each", float(inside[chosen].sum()) / count, "s"),
        ],
        [say.larger_requests(files.direction, mpiio=True)],
        chosen,
        at_most=True,
        costs=sure,
    )


def small_rounds(case: Case) -> Flags:
    """Return for each file whether aggregators carry each collective call out in many small requests in a row.

    An aggregator makes one request of what its buffer has of adjacent bytes: so its buffer is small. Independent calls
    beside these, as of HDF5 for its headers, make a request each, and have few bytes.
    """
    files, limits = case.files, case.limits
    calls = np.nan_to_num(files["{collective}"]) / np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    rounds = _in_rounds(case) / np.maximum(calls * np.fmax(case.movers, 1.0), 1.0)
    found = files.critical & case.collective & (files["ranks"] > 1) & (rounds >= limits.small_rounds)
    found &= (case.request_bytes <= limits.small_bytes / 4) & ~sieving(case)
    found &= case.per_file["non_consecutive"] < limits.non_consecutive
    return found if found.any() and not case.beside_large(found) else np.zeros(len(files), bool)


def _in_rounds(case: Case) -> Numbers:
    """Return how many requests of each file are not those of independent calls."""
    return np.asarray(case.files.requests() - np.nan_to_num(case.files["{independent}"]))


def in_small_rounds(case: Case) -> Finding | None:
    """Collective calls are carried out in many rounds: each costs an exchange, and a request of a small buffer."""
    files, limits, chosen = case.files, case.limits, small_rounds(case)
    if not chosen.any():
        return None
    requests, moved = float(_in_rounds(case)[chosen].sum()), case.total("{bytes}", chosen)
    calls = float((files["{collective}"] / files["ranks"])[chosen].sum())
    time = float(np.minimum(np.fmax(case.in_mpi, case.in_calls), case.exclusive)[chosen].sum())
    each = time / (requests / max(case.mean(case.movers, chosen), 1.0))
    size = case.commonest(requests) or moved / requests
    sure = size <= limits.tiny_bytes and each >= limits.slow_request
    return case.finding(
        "small_requests",
        f"Collective calls are carried out in small rounds: requests of {size_text(case.value(size))} for"
        f" calls of {amount_text(case.value(moved / calls))} (cb_buffer_size).",
        time,
        "high" if sure else "medium",
        "requests of an aggregator are small, and one follows the other; the size of its buffer is not in the log",
        [
            *case.evidence("mean request", size, "B", exact=True),
            *case.evidence("bytes of a call, all ranks together", moved / calls, "B"),
            *case.evidence("requests", requests, "count"),
            *case.evidence("collective calls of a rank", calls, "count"),
            *case.evidence("time for each round", each, "s"),
        ],
        [say.LARGER_ROUNDS],
        chosen,
        at_most=True,
        costs=each >= limits.slow_request,
    )


def _waits_for_each(case: Case) -> Finding | None:
    """Small requests follow one another, and each takes as long as the storage needs: nobody gathers them."""
    files, limits = case.files, case.limits
    posix = files.requests()
    counts = np.where(posix > 0, posix, np.nan_to_num(files["{requests}"]))  # else of the C library
    ranks = np.maximum(np.fmin(np.nan_to_num(files["ranks"], nan=1.0), case.movers), 1.0)  # those that move data
    took, size = (
        np.divide(files[name], counts, out=np.full(len(files), np.nan), where=counts > 0)
        for name in ("{time}", "{bytes}")
    )
    chosen = files.critical & (counts >= 100 * ranks) & (size <= limits.tiny_bytes)
    chosen &= (took >= limits.slow_request) & (size <= limits.waiting * took)
    chosen &= ~(case.syncs > 0) & ~shared_pointers(files)
    if not chosen.any() or case.beside_large(chosen):
        return None
    each, mean = case.mean(took, chosen), case.mean(size, chosen)
    follows = case.mean(case.per_file["non_consecutive"], chosen) < limits.non_consecutive
    return case.finding(
        "small_requests",
        f"Each small {files.direction} waits for the storage: {worded(case.value(each), 's')} for"
        f" {amount_text(case.value(mean))}{', though one follows the other' if follows else ''}.",
        float(np.nansum(case.in_calls[chosen])),
        "medium",
        "number, bytes and time are in the log; whether the program asks for it (O_SYNC, O_DIRECT) is not",
        [
            *case.evidence("time for each request", each, "s"),
            *case.evidence("mean request", mean, "B", exact=True),
            *case.evidence("requests", float(counts[chosen].sum()), "count"),
        ],
        [say.larger_requests(files.direction, hdf5=case.by_hdf5(chosen), alone=case.lonely)],
        chosen,
        at_most=True,
        by_times=True,
    )


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
    part = case.part_up_to(_LARGEST_PIECE, chosen) if beside else 1.0
    return case.finding(
        "hdf5_metadata",
        f"HDF5 {verb} its own metadata (groups, attributes, headers) in small pieces,"
        f" {'beside large requests for' if beside else 'and hardly any'} data of datasets"
        f"{': the program flushes the file again and again' if often else ''}.",
        float(np.minimum(np.fmax(case.in_mpi, case.in_calls), case.exclusive)[chosen].sum()) * part,
        "high" if sure else "medium",
        "bytes of the files and of their datasets, and flushes, are in the log"
        + (
            ""
            if sure
            else "; requests that read or write chunks as a whole, for a piece of them, cannot be distinguished"
        ),
        [
            *case.evidence("bytes of the files", float(moved[chosen].sum()), "B"),
            *case.evidence("bytes of their datasets", float(data[chosen].sum()), "B"),
            *([] if beside else case.evidence("mean request", case.mean(case.request_bytes, chosen), "B")),
            *case.evidence(f"requests{' of at most 1 KiB' * beside}", float(pieces[chosen].sum()), "count"),
            *case.evidence("calls that access datasets", float(asked[chosen].sum()), "count"),
            *case.evidence("flushes of a process (H5Fflush)", each, "count"),
        ],
        [say.hdf5_metadata(files.direction, flushed=often)],
        chosen,
        at_most=True,
        costs=sure,
    )


#: Files in which MPI libraries keep the shared pointer of a file: that of ROMIO, those of OMPIO.
_POINTER = re.compile(r"/\.([^/]+)\.shfp\.\d+[^/]*$|\.lockedfile$|-\d+-\d+\.lock$")


def keeps_pointer(name: str | None) -> bool:
    """Return whether an MPI library keeps a shared pointer in a file of that name."""
    return bool(name and _POINTER.search(name))


def shared_pointers(files: Files) -> Flags:
    """Return for each file whether an MPI library keeps a shared pointer in it; false where names are not known."""
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
    inside, requests = np.array([max(each.mpi.values()) for each in case.calls]), time_in_calls(files, "both")
    place = int(np.argmax(inside))
    given = float(np.nansum([files["mpiio_bytes_read"], files["mpiio_bytes_written"]]))
    large = given > case.limits.tiny_bytes * calls  # then it is the data that take the time of the requests
    moving = min(float(np.nan_to_num(requests[place])), float(inside[place])) if large else 0.0
    time = min(max(float(inside[place]) - moving, float(np.nansum(requests[pointers]))), case.time)
    made = _by_all(files)
    return case.finding(
        "shared_pointer",
        f"Ranks wait for the shared file pointer ({made}): each call locks, reads and rewrites a hidden file.",
        time,
        "high" if time >= 0.3 * case.time and not large else "medium",
        "requests to that file are in the log; time in locks is not" + ("; each call moves much" if large else ""),
        [
            *case.evidence("requests to the file of the pointer", moves, "count"),
            *case.evidence("MPI-IO calls", calls, "count"),
            *case.evidence("time of the slowest rank in MPI-IO calls", float(inside[place]), "s"),
            *case.evidence("bytes of each", given / max(calls, 1.0), "B"),
        ],
        [say.own_offsets("write" if "write" in made else "read")],
        pointers | ((inside > 0) & (np.arange(len(files)) == place)),
        at_most=True,
        costs=True,
    )


def placeless(case: Case) -> Flags:
    """Return for each file whether calls have no place of their own, but ranks fill it together, between one another.

    A rank that has its own part of the file jumps there once.
    """
    files, way, limits = case.files, case.write, case.limits
    jumps = files.requests() - np.nan_to_num(files["{consecutive}"])
    calls = np.nan_to_num(files["{independent}"]) + np.nan_to_num(files["{collective}"])
    recorded = [way in each.asked and each.inside > 0 and not each.views for each in case.calls]  # others name no place
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
    return case.finding(
        "shared_pointer",
        f"Ranks wait for the shared file pointer ({_by_all(files, [files.direction])}), or seek before each call.",
        float(np.minimum(np.fmax(case.in_mpi, case.in_calls), case.exclusive)[chosen].sum()),
        "medium",
        "calls name no place and no view, and pieces of a rank lie between those of others; which pointer it is, is not"
        " in the log",
        [
            *case.evidence("MPI-IO calls", calls, "count"),
            *case.evidence("bytes of each", case.total("{bytes}", chosen) / calls, "B"),
        ],
        [say.own_offsets(files.direction)],
        chosen,
        at_most=True,
        costs=True,
    )


def read_amplification(case: Case) -> Finding | None:
    """The MPI library reads ranges of which the program wants pieces: data sieving, or collective buffers."""
    files, limits = case.files, case.limits
    asked, read = files["mpiio_bytes_read"], files["bytes_read"]
    chosen = files.critical & (asked > 0) & (read >= limits.amplified * asked) & ~(files["bytes_written"] > 0)
    chosen &= _within_calls(case) & (case.in_mpi > 0)
    if case.write or not chosen.any():
        return None
    more = float(read[chosen].sum() / asked[chosen].sum())
    wanted = float(asked[chosen].sum())
    return case.finding(
        "read_amplification",
        f"The MPI library reads {worded(case.value(more), 'ratio')} what the program asks for (data sieving):"
        f" {worded(case.value(float(read[chosen].sum())), 'B')} for {worded(case.value(wanted), 'B')}.",
        float((case.in_calls * (1 - asked / np.where(chosen, read, 1.0)))[chosen].sum()),
        "high",
        "bytes of MPI-IO and of POSIX are in the log; without it, each piece would be a request",
        [
            *case.evidence("read through POSIX", float(read[chosen].sum()), "B"),
            *case.evidence("read through MPI-IO", wanted, "B"),
            *case.evidence("what the program gets", wanted / case.time, "B/s"),
        ],
        [say.use_collective("read")],
        chosen,
        at_most=True,
        costs=wanted < limits.fast * case.time,
    )


def read_modify_write(case: Case) -> Finding | None:
    """The MPI library reads ranges of a file in order to write pieces of them: data sieving."""
    files, limits = case.files, case.limits
    asked, read = files["mpiio_bytes_read"], files["bytes_read"]
    written, stored = files["mpiio_bytes_written"], files["bytes_written"]
    extra = np.maximum(read - asked, 0.0)  # unknown where Darshan has either not
    many = files.requests("read") >= limits.reads_of_a_write * files.requests("write")  # of 0 bytes, of a new file
    reads = (extra >= limits.read_modify_write * written) | many  # else the program itself writes, too
    amplified = (stored >= limits.amplified * written) & reads
    sieved = (extra >= limits.read_modify_write * written) & _while_writing(files) & (extra <= 1.1 * stored)
    sieved &= (stored > written) | _followed(case)  # gaps are written with the pieces: else the program itself reads
    chosen = files.critical & (written > 0) & (sieved | amplified) & _within_calls(case)
    if not chosen.any():
        return None
    piece = _mean_piece(case, chosen)
    direction, much = files.direction, bool((amplified | (extra >= 0.5 * written))[chosen].any())
    needless = np.where(read > 0, extra / np.where(read > 0, read, 1.0), np.where(asked > 0, 0.0, 1.0))
    reading, writing = np.nan_to_num(files["read_time"]), np.nan_to_num(files["write_time"])
    cost = reading * needless + writing * np.clip(1 - written / np.maximum(stored, 1.0), 0, 1)
    part = np.where(
        much | (case.collective & (reading > 0)), cost / np.maximum(reading + writing, 1e-12), 1.0
    )  # alone, ranks lock meanwhile
    part = part if direction == "write" else needless
    inside = np.array([max(calls.mpi.values()) for calls in case.calls])
    known = inside > 0
    requests = time_in_calls(files, "both")
    busy = np.minimum(np.where(known, np.maximum(inside, requests), np.inf), case.exclusive)
    busy *= _of_requests(case)
    waits = bool((known & (busy > 2 * requests) & ~np.array(case.complete))[chosen].any())  # what for, nobody knows
    at_most = waits or (direction == "write" and not (much and known[chosen].all()))
    empty = float(files["read_size_0_100"][chosen].sum() / max(1.0, float(files.requests("read")[chosen].sum())))
    return case.finding(
        "read_modify_write",
        (
            f"The MPI library reads what it is about to overwrite: it writes {'small ' if piece else ''}pieces by"
            f" read-modify-write{_amplified(case, written, stored, chosen) if much else ''}."
        )
        if direction == "write"
        else "The reads are not the program's: the MPI library reads what it is about to overwrite.",
        float((busy * part)[chosen].sum()),
        "high" if not (asked[chosen] > 0).any() or amplified[chosen].any() else "medium",
        "POSIX reads or writes bytes of the file that no MPI-IO call asked for"
        + ("" if direction == "read" else "; how long the ranges stay locked is not in the log"),
        [
            *case.evidence("read through POSIX", float(read[chosen].sum()), "B"),
            *case.evidence("read through MPI-IO", float(asked[chosen].sum()), "B"),
            *case.evidence("written through POSIX", case.total("bytes_written", chosen & ~np.isnan(stored)), "B"),
            *case.evidence("written through MPI-IO", float(written[chosen].sum()), "B"),
            *piece,
            *(case.evidence("reads of at most 100 B, of all reads", empty, "share") if empty >= 0.5 and much else []),
            *(case.evidence("time in reads, all ranks", float(reading[chosen].sum()), "s") if much else []),
            *(case.evidence("time in writes, all ranks", float(writing[chosen].sum()), "s") if much else []),
            *(case.evidence(IN_MPIIO, float(inside[chosen].sum()), "s") if waits else []),
        ],
        _instead_of_sieving(case, float(written[chosen].sum()), float(np.nan_to_num(stored[chosen]).sum())),
        chosen,
        at_most=at_most,
        costs=direction == "read" or much,
    )


def _instead_of_sieving(case: Case, written: float, stored: float) -> list[Advice]:
    """Return what to do: writing the pieces alone gains where there are no gaps, or where these are far larger.

    Between, requests of the pieces may take longer than reading and writing the gaps: tried with programs of
    tests/corpora/advice_trials.py.
    """
    limits = case.limits
    alone = stored <= limits.no_gaps * written or stored >= limits.wide_gaps * written
    return list(say.NO_SIEVING) if alone else [say.MEASURE]


def _mean_piece(case: Case, chosen: Flags) -> list[Evidence]:
    """Return as evidence how large the pieces that the program writes are at most, where they are known to be small.

    No piece is larger than its call. Of what a request writes, with gaps, the program's bytes are no more than its part
    of all; without gaps, nothing tells where pieces end.
    """
    files = case.files
    written, stored = (float(np.nansum(files[name][chosen])) for name in ("mpiio_bytes_written", "bytes_written"))
    calls = sum(float(np.nansum(files[f"mpiio_{kind}_writes"][chosen])) for kind in ("coll", "indep", "nb"))
    requests = float(np.nansum(files.requests("write")[chosen])) if stored > written else 0.0
    mean = written / max(calls, requests, 1.0)
    return case.evidence("mean piece, at most", mean, "B") if 0 < mean < case.limits.small_bytes / 2 else []


#: Blocks of a rank from which on it is no chance where they lie, or that it reads each, and then writes it.
_BLOCKS = 10
#: How many times as much one of two numbers may be that are called alike.
_ALIKE = 1.1


def _alike(one: Numbers, other: Numbers) -> Flags:
    return np.asarray((one > 0) & (one <= _ALIKE * other) & (other <= _ALIKE * one))


def updated(files: Files, switches: Numbers) -> Flags:
    """Return for each file whether its blocks are read, each of them, and written right then.

    Reads alternate with writes, of which there are as many, with as many bytes, up to the same last block. What is
    written first, and then read back, begins with a write.
    """
    reads, writes = files.requests("read"), files.requests("write")
    blocks, ranks = np.minimum(reads, writes), np.maximum(np.nan_to_num(files["ranks"], nan=1.0), 1.0)
    found = (blocks >= _BLOCKS * ranks) & (switches + ranks >= 2 / _ALIKE * blocks)
    found &= _alike(reads, writes) & _alike(files["bytes_read"], files["bytes_written"])
    ends = np.abs(files["max_offset_read"] - files["max_offset_written"])
    found &= ends * np.maximum(writes, 1.0) <= files["bytes_written"]
    found &= (files["read_start"] <= files["write_start"]) & (files["read_end"] <= files["write_end"])
    return np.asarray(found)


def read_before_write(case: Case) -> Finding | None:
    """The program itself reads each block before it overwrites it, from front to back.

    At random places that is what an update is.
    """
    files, limits = case.files, case.limits
    switches = np.array([float(calls.switches) for calls in case.calls])
    chosen = files.critical & updated(files, switches)
    chosen &= (files["seq_reads"] >= limits.forward * files.requests("read")) & ~case.shifted
    chosen &= files["seq_writes"] >= limits.forward * files.requests("write")
    chosen &= files["bytes_written"] >= limits.one_rank_bytes
    by_library = np.nan_to_num(files["bytes_read"]) - np.nan_to_num(files["mpiio_bytes_read"])
    chosen &= ~(by_library >= limits.read_modify_write * files["mpiio_bytes_written"])
    if not chosen.any():
        return None
    processes, inside = max(float(np.nan_to_num(case.processes)), 1.0), time_in_calls(files, "both")
    time, whole = (of_all(files, np.where(it, inside, 0.0), processes) for it in (chosen, True))
    read, written = (float(files[name][chosen].sum()) for name in ("bytes_read", "bytes_written"))
    return case.finding(
        "read_before_write",
        f"Each block is read before it is overwritten: {worded(case.value(read), 'B')} are read, and as much is"
        " written, in turn.",
        time,
        "high",
        "reads and writes alternate, and have the same bytes and the same last block; whether the program needs what it"
        " reads, or keeps some of it, is not in the log",
        [
            *case.evidence("read", read, "B"),
            *case.evidence("written", written, "B"),
            *case.evidence("blocks", float(files.requests("write")[chosen].sum()), "count"),
            *case.evidence("reads after a write, and writes after a read", float(switches[chosen].sum()), "count"),
            *case.evidence("time of a rank in these reads and writes", time, "s"),
        ],
        [say.WRITE_WITHOUT_READING],
        chosen,
        at_most=True,
        whole=max(case.time, whole),
    )


def _within_calls(case: Case) -> Flags:
    """Return for each file whether its requests can be the MPI library's: its calls take as long; true if unknown."""
    inside = np.array([sum(calls.mpi.values()) for calls in case.calls])
    return np.asarray((inside <= 0) | (inside >= 0.5 * time_in_calls(case.files, "both")))


def _in_writes(case: Case) -> Numbers:
    """Return the time (s) of all ranks in MPI-IO writes of each file; 0 where it is not known."""
    return np.array([calls.mean[True] for calls in case.calls]) * max(float(np.nan_to_num(case.processes)), 1.0)


def _followed(case: Case) -> Flags:
    """Return for each file whether reads alternate with writes, all of them within MPI-IO writes; false if unknown."""
    files, switches = case.files, np.array([float(calls.switches) for calls in case.calls])
    requests = np.nan_to_num(files["read_time"]) + np.nan_to_num(files["write_time"])
    return np.asarray((switches >= np.maximum(files.requests("read"), 1.0)) & (_in_writes(case) >= 0.9 * requests))


def _of_requests(case: Case) -> Numbers:
    """Return which share of a file's MPI-IO writes are requests: of collective ones, where the rest is the exchange.

    Writes of single ranks hold locks meanwhile, and wait for those of others: there it is all. Such are collective
    calls, too, where each rank writes the ranges of all.
    """
    files, inside = case.files, _in_writes(case)
    requests = np.nan_to_num(files["read_time"]) + np.nan_to_num(files["write_time"])
    by_each = files["bytes_written"] >= 0.75 * files["ranks"] * files["mpiio_bytes_written"]
    together = np.nan_to_num(files["mpiio_coll_writes"]) > np.nan_to_num(files["mpiio_indep_writes"])
    together = case.collective if case.write else together & ~np.array(case.complete)  # DXT has the time of reads
    exchanged = together & (inside > 0) & ~by_each
    return np.where(exchanged, np.minimum(requests / np.maximum(inside, 1e-9), 1.0), 1.0)


def sieving(case: Case) -> Flags:
    """Return for each file whether more is read, while it is written, than MPI-IO asks for: by the MPI library."""
    files = case.files
    extra = np.nan_to_num(files["bytes_read"]) - np.nan_to_num(files["mpiio_bytes_read"])
    needless = extra > case.limits.read_modify_write * np.nan_to_num(files["bytes_written"])
    return np.asarray((files["bytes_written"] > 0) & needless & _while_writing(files))


def _while_writing(files: Files) -> Flags:
    """Return for each file whether it is read while it is written, and not before or afterwards; true if unknown."""
    apart = (files["read_start"] >= files["write_end"]) | (files["write_start"] >= files["read_end"])
    return np.asarray(~apart)


def _amplified(case: Case, written: Numbers, stored: Numbers, chosen: Flags) -> str:
    """Return in words how many bytes reach the file system of those that the program writes, or else are read."""
    asked, moved = float(written[chosen].sum()), float(np.nansum(stored[chosen]))
    if moved < 1.05 * asked:
        read = float(case.files["bytes_read"][chosen].sum())
        return f" (for {worded(case.value(asked), 'B')} of MPI-IO writes it reads {worded(case.value(read), 'B')})"
    return (
        f" ({worded(case.value(asked), 'B')} of MPI-IO writes are {worded(case.value(moved), 'B')} at the file system,"
        f" {worded(case.value(moved / asked), 'ratio')} as much)"
    )
