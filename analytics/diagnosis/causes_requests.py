"""The rules about small requests: pieces that jump about, tiny pieces, calls of few bytes, rounds of small buffers.

Problem. A call may cost more than its bytes, whatever makes it: the program, the C library, or the MPI library.

Algorithm. Small requests are a cause if they are at random places, or cost more than their bytes. Consecutive requests
are no cause (the operating system merges them; IOMiner, Section III-F), nor is the only request of each open. Tiny
pieces are a cause if a rank makes many, and spends its time in them.
"""

from __future__ import annotations

import numpy as np

from mpiio_ext.analytics.diagnosis import advice as say
from mpiio_ext.analytics.diagnosis.case import Case
from mpiio_ext.analytics.diagnosis.cause import OF_MPI, Cause, Cells, Offer
from mpiio_ext.analytics.diagnosis.causes_calls import placeless, shared_pointers, sieving
from mpiio_ext.analytics.diagnosis.causes_metadata import SEEKS
from mpiio_ext.analytics.diagnosis.model import COMMON_SIZE, MOST_SIZE, Advice, Claim, Evidence, Finding
from mpiio_ext.analytics.diagnosis.ranks import appended
from mpiio_ext.analytics.diagnosis.words import sized, worded
from mpiio_ext.analytics.factors.files import bins
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.common.units import amount_text, size_text

#: Share of the bytes of a file that is nearly all of them.
_NEARLY_ALL = 0.9
#: Bytes of the largest piece that updates a header, and where such pieces go.
_PIECE, _UPDATES = 1 << 10, ", which go back to overwrite a few bytes (a header, for example),"


def small_requests(case: Case) -> Finding | None:
    """Requests are small, and jump about, or cost more than their bytes."""
    return in_small_rounds(case) or _tiny_collectives(case) or _jumping(case) or tiny_calls(case)


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
    (most, _), sizes = case.common_request(chosen), _common_sizes(case, chosen)
    part = float(np.nan_to_num(case.traced_part(limits.small_bytes, chosen), nan=1.0))
    time = float(np.nansum(case.in_calls[chosen])) * part
    large = part == 1.0 and most > 0 and not 2 * case.of_large(chosen) <= case.total("{time}", chosen)
    tiny = np.fmin(mean, most) <= limits.tiny_bytes and case.mean(small, chosen) > 0.9 and not large
    evidence = [
        *case.evidence(f"requests of at most {size_text(limits.small_bytes)}", case.mean(small, chosen), "share"),
        *case.evidence("requests that do not begin where the one before ended", case.mean(jumps, chosen), "share"),
        *case.evidence("requests at a higher offset than the one before", forward, "share"),
        *case.evidence("mean request", mean, "B", exact=True),
        *(each for size in sizes for each in case.evidence(COMMON_SIZE, size, "B", exact=True)),
        *([] if sizes else case.evidence(MOST_SIZE, most, "B", exact=True)),
        *case.evidence("requests", requests, "count"),
        *case.evidence("independent MPI-IO calls", independent, "count"),
        *case.evidence("collective MPI-IO calls, of all ranks", collective, "count"),
        *case.in_mpiio(chosen, time),
    ]
    aggregated = bool((case.movers[chosen] < 0.9 * case.files["ranks"][chosen]).any())
    by_each = bool(not alone and calls > 0 and requests >= 0.9 * collective) and not aggregated
    advice = _advice(case, chosen, bool(alone), float(calls), forward, by_each)
    between = bool((case.together & ~together)[chosen].all())
    locks = between and case.write and mean > limits.tiny_bytes  # of smaller ones the calls cost more
    place = _place(case, ordered, forward, bool(together[chosen].all()))
    gaps = _leaves_gaps(case, chosen)
    behind = "" if place or gaps or not between else f"{_ALTERNATING.format(direction)}{_LOCKED * locks}"
    place = place or (", with gaps between them," if gaps else "" if behind else _SCATTERED)
    given = case.total("mpiio_bytes_written" if case.write else "mpiio_bytes_read", chosen)
    by_each &= requests <= 1.1 * collective and abs(given - mean * requests) <= 0.1 * given  # each request is a call
    kind = "independent " if alone else "collective " if collective > 0 else ""
    small = _sizes([case.value(size) for size in sizes], case.value(mean), case.value(most), f"{kind}{direction}s")
    beside = most > 0 and (not sizes or mean > 2 * max(sizes))
    which = _BY_EACH if by_each else f"{place}{f' between larger {direction}s' * beside}"
    once = [say.read_once(again=True, alone=case.lonely)] if (over := _read_again(case, chosen)) else []
    what = f"{small}{which}{_at(case, chosen)}{behind}"
    most_s = _most_of(case, chosen, time) if part == 1.0 else time
    claim = Claim(
        title=f"{what[0].upper()}{what[1:]}.{over}" if over else "",
        what=what,
        time=most_s,
        confidence="high" if tiny else "medium",
        reason=_known(most_s > time, large, by_each, locks),
        evidence=evidence,
        advice=[*once, *advice, *[say.OWN_REGIONS] * bool(locks), *[say.MEASURE] * bool(calls > 0)],  # hints of MPI-IO
        at_most=True,
        costs=tiny,
    )
    return case.finding(SMALL_REQUESTS, claim, chosen=chosen)


def _most_of(case: Case, chosen: Flags, requests: float) -> float:
    """Return the most time (s) that independent calls with small requests take, where `requests` is that of these (s).

    A call takes longer than its requests, and a program without the calls saves both. Where the calls take far longer,
    ranks wait in them, which is another cause. Requests to a file that no MPI-IO call accesses have their own time.
    """
    alone = np.nan_to_num(case.files["{independent}"])[chosen].min() > 0 and not case.total("{collective}", chosen) > 0
    inside = case.inside_mpi(chosen) if alone else 0.0
    return inside if requests < inside <= 2 * requests else requests


def _read_again(case: Case, chosen: Flags) -> str:
    """Return how often chosen files are read, by their bytes up to the highest offset; "" if that is not twice."""
    read, ends = case.total("bytes_read", chosen), float((case.files["max_offset_read"][chosen] + 1).sum())
    if case.write or not read >= max(case.limits.again * ends, case.limits.one_rank_bytes):
        return ""
    moved, there = (worded(case.value(each), "B") for each in (read, ends))
    return f" The ranks read {moved} from {there} of the file: each byte {worded(case.value(read / ends), 'ratio')}."


def _updates(case: Case) -> Flags:
    """Return for each file whether most of its writes are pieces that overwrite what was written, as a header is.

    What is written beyond the file's size has a part of a piece's bytes for each of them, and hardly any of all bytes;
    so the larger writes fill the file once. And the program returns to earlier places again and again.
    """
    files = case.files
    pieces = sum(np.nan_to_num(files[name]) for name in bins("write")[:2])  # up to 1 KiB
    more = files["bytes_written"] - files["max_offset_written"] - 1
    back = files.requests("write") - files["seq_writes"]
    found = (pieces >= 0.5 * files.requests("write")) & (more >= 0.9 * pieces) & (more <= _PIECE * pieces)
    found &= (more <= 0.1 * files["bytes_written"]) & (back >= case.limits.backward * files.requests("write"))
    return np.asarray(case.write & found & ~appended(files))


def _common_sizes(case: Case, chosen: Flags) -> list[float]:
    """Return the sizes (B) of most requests to chosen files; of updates of a header, those of the pieces alone."""
    most = _PIECE if _updates(case)[chosen].all() else np.inf
    return [size for size in case.common_sizes(chosen) if size <= most]


def _leaves_gaps(case: Case, chosen: Flags) -> bool:
    """Return whether collective calls write all chosen files from front to back, and leave gaps, as DXT shows."""
    gapped = np.zeros(len(case.files), bool)
    for place, row in case.traced(chosen & case.collective & case.write):
        forward = row.forward >= case.limits.forward * row.pairs > 0
        gapped[place] = forward and row.moved.sum() < _NEARLY_ALL * row.extent
    return bool(gapped[chosen].all())


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


#: Where small requests are that go from front to back, if ranks alternate; and writes that may wait for locks.
_ALTERNATING, _LOCKED = ", interleaved in the file with {}s of other ranks", ", and may wait for file-system locks"
_SCATTERED = " at scattered offsets"
#: Collective calls of which each is a request.
_BY_EACH = ", which each rank carries out by itself, without collective buffering,"


def _place(case: Case, ordered: Flags, forward: float, together: bool) -> str:
    """Return in words where requests are that do not go from front to back, or are appended; "" for others."""
    if ordered.any() and _updates(case)[ordered].all():
        return _UPDATES
    if forward < case.limits.backward:
        return ", none at a higher offset than the one before,"
    if forward < case.limits.forward and not _regular(case, ordered):
        return " at random places"
    return ", which several ranks append in turn," if together else ""


def _sizes(common: list[float], mean: float, most: float, requests: str) -> str:
    """Return requests with their size: the common ones, else the most that most of them have, else the mean."""
    if common:
        return f"{' and '.join(size_text(each) for each in sorted(common))} {requests}"
    return f"{size_text(most)} and smaller {requests}" if most > 0 else sized(mean, requests)


def _scattered(case: Case, together: Flags) -> Flags:
    """Return for each file whether its requests are small and jump about; `together`: ranks append to it in turn."""
    limits, small, jumps = case.limits, case.per_file["small"], case.per_file["non_consecutive"]
    chosen = case.files.critical & (small >= limits.small) & ((jumps >= limits.non_consecutive) | together)
    chosen &= case.request_bytes < limits.small_bytes / 2  # requests of exactly the bound are in the bin below it
    chosen &= ~_reopened(case) | together
    chosen &= ~shared_pointers(case.files) & ~placeless(case) & ~case.shifted  # these are moved block by block
    chosen &= ~(case.on_one_node & case.collective & case.together & (case.request_bytes > limits.tiny_bytes))
    return np.asarray(chosen)


def _known(called: bool, large: bool, by_each: bool, locks: bool) -> str:
    """Return, in words, the source of the facts on small requests, and the facts that the log does not have.

    Parameters
    ----------
    called : the time of the cause is that of the MPI-IO calls.
    """
    return (
        "Darshan counts each request that reaches the operating system; the time of the cause is the time that the"
        f" slowest rank spent in {'the MPI-IO calls that make these requests' if called else 'these requests'}"
        + ("; the log does not divide this time between small and larger requests" if large else "")
        + ("; the counts are the same if every rank is an aggregator of small calls" if by_each else "")
        + ("; time in locks of the file system is not in the log" if locks else "")
    )


def _regular(case: Case, chosen: Flags) -> bool:
    """Return whether most gaps of requests to chosen files have a common size: several places are accessed in turn."""
    strided = float(sum(calls.strided for calls, it in zip(case.calls, chosen, strict=True) if it))
    return strided >= 0.5 * (case.total("{sequential}", chosen) - case.total("{consecutive}", chosen)) > 0


def _reopened(case: Case) -> Flags:
    """Return for each file whether its requests jump because it is opened again and again, and begins anew.

    Each open makes one request that does not follow the one before; other requests at new places are the program's. And
    where opens have few requests each, and take as long as these, they are what it waits for.
    """
    files, limits, counts, opens = case.files, case.limits, case.files.requests(), np.nan_to_num(case.opens)
    jumps = counts - np.nan_to_num(files["{consecutive}"]) - opens
    few = limits.requests_of_an_open * opens
    slow = np.nan_to_num(files["meta_time"]) >= np.nan_to_num(files["{time}"])
    return np.asarray(
        (few > counts) | (jumps < limits.non_consecutive * (counts - opens)) | ((2 * few > counts) & slow)
    )


def _at(case: Case, chosen: Flags) -> str:
    """Return chosen files after "to" or "from", and how many small datasets of HDF5 they have, where these are many."""
    calls = [one for one, it in zip(case.calls, chosen, strict=True) if it]
    count, least = sum(one.arrays for one in calls), not sum(one.dataset_calls[case.write] for one in calls)
    if not count >= case.limits.some_collectives or case.total("{bytes}", chosen) > case.limits.tiny_bytes * count:
        return case.at(chosen)
    to = "to" if case.write else "from"
    return f" {to} {'at least ' * least}{worded(case.value(count), 'count')} datasets of HDF5{case.at(chosen, 'in')}"


def tiny_calls(case: Case) -> Finding | None:
    """Bytes or lines are handed over one by one: the calls take the time, though somebody gathers them."""
    return _tiny_pieces(case) or _waits_for_each(case)


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
    if not mean and not case.write:
        return _empty_reads(case, chosen, count, time)
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
    claim = Claim(
        what=f"{sized(case.value(mean), files.direction + 's')}{' through the C library' * (not posix)}"
        f"{', each of them flushed,' * flushed}{_at(case, chosen)}",
        title=(
            f"Tiny pieces are {verb} {through}, {amount_text(case.value(mean)) if sure else 'most of 1 KiB or less'} a"
            f" call{why}."
        ),
        time=time,
        confidence="high" if sure else "medium",
        reason="the log has number, bytes and time of these calls"
        + ("" if sure else "; some of the calls are larger, and the log does not have the time of each size"),
        evidence=[
            *case.evidence("mean piece", mean, "B"),
            *case.evidence(f"calls ({of_what} …)", count, "count"),
            *(case.evidence("flushes (fflush)", flushes, "count") if flushed else []),
            *_longest(case, chosen, time),
        ],
        advice=[
            say.larger_requests(files.direction, mpiio=True)
            if of_mpi
            else say.larger_pieces(flushed=flushed, plain=posix)
        ],
        at_most=True,
        costs=sure,
    )
    return case.finding(SMALL_REQUESTS, claim, chosen=chosen)


def _longest(case: Case, chosen: Flags, time: float) -> list[Evidence]:
    """Return as evidence how long a rank is in calls on chosen files (s), of the times of each file's slowest rank."""
    return case.evidence(
        "longest time of a rank in these calls", min(time, case.most_of_a_rank(SMALL_REQUESTS, chosen)), "s"
    )


def _empty_reads(case: Case, chosen: Flags, count: float, time: float) -> Finding | None:
    """Reads at the end of a file, again and again, until another process has written there."""
    claim = Claim(
        title=f"Reads return no data, as at the end of a file: the program makes {case.value(count):,.0f} such calls.",
        what=f"reads that return no data{case.at(chosen)}",
        time=time,
        confidence="high",
        reason="the log has number, bytes and time of these calls",
        evidence=[*case.evidence("calls that read 0 B (read …)", count, "count"), *_longest(case, chosen, time)],
        advice=[say.NO_POLLING],
        at_most=True,
        costs=True,
    )
    return case.finding(SMALL_REQUESTS, claim, chosen=chosen)


def _tiny_collectives(case: Case) -> Finding | None:
    """Collective calls with few bytes from all ranks together: each costs an exchange, in which all ranks meet."""
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
    claim = Claim(
        what=f"collective {files.direction}s{_at(case, chosen)} of few bytes, {amount_text(case.value(each))} a call of"
        " all ranks together",
        title=(
            f"Collective calls have few bytes, {amount_text(case.value(each))} of all ranks together: the calls take"
            " the time, not the storage."
        ),
        confidence="high" if sure else "medium",
        reason="the log has number, bytes and time of these calls"
        + ("" if sure else "; the calls are few, so that late ranks may explain the time"),
        evidence=[
            *case.evidence("bytes of a call, all ranks together", each, "B"),
            *case.evidence("collective calls of a rank", count, "count"),
            *_longest(case, chosen, float(inside[chosen].sum())),
            *case.evidence("time of a call", float(inside[chosen].sum()) / count, "s"),
        ],
        advice=[say.larger_requests(files.direction, mpiio=True)],
        at_most=True,
        costs=sure,
    )
    return case.finding(SMALL_REQUESTS, claim, chosen=chosen)


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
    return found if found.any() and not case.common_request(found)[0] > 0 else np.zeros(len(files), bool)


def _in_rounds(case: Case) -> Numbers:
    """Return the number of requests of each file that do not come from independent calls."""
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
    claim = Claim(
        what=f"collective {files.direction}s{case.at(chosen)} carried out in rounds of {size_text(case.value(size))}",
        title="Collective calls are carried out in small rounds: a call of all ranks together has"
        f" {amount_text(case.value(moved / calls))}, and becomes requests of {size_text(case.value(size))}.",
        time=time,
        confidence="high" if sure else "medium",
        reason=(
            "requests of an aggregator are small, and come one after the other; the log does not have the size of the"
            " aggregators' buffer"
        ),
        evidence=[
            *case.evidence("mean request", size, "B", exact=True),
            *case.evidence("bytes of a call, all ranks together", moved / calls, "B"),
            *case.evidence("requests", requests, "count"),
            *case.evidence("collective calls of a rank", calls, "count"),
            *case.evidence("time for each round", each, "s"),
        ],
        advice=[say.LARGER_ROUNDS],
        at_most=True,
        costs=each >= limits.slow_request,
    )
    return case.finding(SMALL_REQUESTS, claim, chosen=chosen)


def _waits_for_each(case: Case) -> Finding | None:
    """Small requests follow one another, and each takes as long as the storage needs: no library combines them."""
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
    larger = sum(case.total(name, chosen) for name in bins(files.direction)[4:])  # than 100 KiB
    if not chosen.any() or (case.common_request(chosen)[0] > 0 and larger > 0):  # few are large
        return None
    each, mean = case.mean(took, chosen), case.mean(size, chosen)
    follows = case.mean(case.per_file["non_consecutive"], chosen) < limits.non_consecutive
    calls = [one for one, it in zip(case.calls, chosen, strict=True) if it]
    number, meta = float(counts[chosen].sum()), float(np.nansum(files["meta_time"][chosen]))
    jumped = sum(one.seeks for one in calls) >= limits.non_consecutive * number
    if all(one.streamed for one in calls) and jumped and case.total("{time}", chosen) > meta:
        return _after_seeks(case, chosen, mean, number)
    sizes = [case.value(size) for size in case.common_sizes(chosen)]
    small = _sizes(sizes, case.value(mean), np.nan, f"{files.direction}s")
    claim = Claim(
        what=f"{small}, each of which waits for the storage,{_at(case, chosen)}",
        title=f"Each small {files.direction} waits for the storage: {worded(case.value(each), 's')} for"
        f" {amount_text(case.value(mean))}{'. The requests are consecutive: a cache could gather them' * follows}.",
        confidence="medium",
        reason="the log has number, bytes and time of the requests, but not whether the program opens the file with"
        " O_SYNC or O_DIRECT",
        evidence=[
            *case.evidence("time for each request", each, "s"),
            *case.evidence("mean request", mean, "B", exact=True),
            *case.evidence("requests", float(counts[chosen].sum()), "count"),
        ],
        advice=[say.larger_requests(files.direction, hdf5=case.by_hdf5(chosen), alone=case.lonely)],
        at_most=True,
        by_times=True,
    )
    return case.finding(SMALL_REQUESTS, claim, chosen=chosen)


def _after_seeks(case: Case, chosen: Flags, mean: float, number: float) -> Finding | None:
    """Pieces through the C library fetch or write a whole buffer each, since a seek has dropped the last one."""
    direction = case.files.direction
    claim = Claim(
        title=f"Small pieces are {'written' if case.write else 'read'} through the C library, with seeks between them.",
        what=f"{sized(case.value(mean), direction + 's')}{case.at(chosen)} through the C library, with seeks between"
        f" the {direction}s",
        time=float(np.nansum(case.in_calls[chosen])),
        confidence="high",
        reason="the log has number, bytes and time of these calls, and about as many seeks",
        evidence=[*case.evidence("mean request", mean, "B", exact=True), *case.evidence("requests", number, "count")],
        advice=[say.larger_requests(direction, alone=case.lonely)],
        by_times=True,
    )
    return case.finding(SEEKS, claim, chosen=chosen)


SMALL_REQUESTS = Cause(
    name="small_requests",
    rule=small_requests,
    cells=Cells(("data",)),
    effects=("waiting_calls", "slowed_down", "exchange"),
    section="Small requests, one by one",
    mechanism="Each call costs more than its bytes.",
    condition=(
        "Requests to a file are small and scattered: {small} of the requests have at most {small_bytes}, and"
        " {non_consecutive} of the requests do not begin where the one before ended. On a file system of one node,"
        " this condition does not apply to collective calls with requests of more than {tiny_bytes} each. Or a rank"
        " makes {many_calls} calls of at most {tiny_call_bytes} each. Or a rank makes {some_collectives} collective"
        " calls, and all ranks together move at most {tiny_bytes} in each call. Or requests of at most {tiny_bytes}"
        " take {slow_request} each, and move at most {waiting}. Or aggregators make {small_rounds} requests for each"
        " collective call, one behind the other, of a quarter of {small_bytes} or less. Writes that go back to update"
        " a header count if they have 1 KiB or less."
    ),
    sure=(
        "if the requests have at most {tiny_bytes} on average, and take a fifth of the time in calls, and ranks do not"
        " wait in MPI-IO calls for twice as long. Or if a rank makes {many_collectives} such collective calls, or each"
        " round of {tiny_bytes} takes {slow_request}. If most requests are far smaller than the mean, the large"
        " requests have to take less than half of the time, even if each takes as long as the longest request"
    ),
    sentences=(
        "at random places",
        "s of other ranks",
        "at scattered offsets",
        "with gaps between them",
        "none at a higher offset than the one before",
        "which several ranks append in turn",
        "which each rank carries out by itself",
        "Tiny pieces are ",
        "Reads return no data",
        "Collective calls have few bytes",
        "Collective calls are carried out in small rounds",
        "Each small ",
    ),
    advice=(
        Offer("if aggregators make the requests in small rounds", lambda _: say.LARGER_ROUNDS),
        Offer(
            "if scattered reads have {again} times the bytes of the file, up to the last byte that is read",
            lambda _: say.read_once(again=True),
        ),
        Offer(
            "if the calls are collective, and all ranks make requests, nearly one for each call",
            say.collective_buffering,
        ),
        Offer("if collective calls write from front to back, and leave gaps (DXT)", lambda _: say.WHOLE_RECORDS),
        Offer("if the calls are independent, and ranks share the file", say.use_collective),
        Offer("if ranks write between one another, more than {tiny_bytes} in each request", lambda _: say.OWN_REGIONS),
        Offer(
            "if the calls are independent, ranks share the file, and {forward} or more of the requests lie"
            " behind the one before",
            lambda _: say.DELEGATES,
        ),
        Offer(
            "if the calls are independent, and one rank uses each file; or MPI-IO calls move tiny pieces",
            lambda way: say.larger_requests(way, mpiio=True),
        ),
        Offer("if several processes work without MPI-IO", say.larger_requests),
        Offer("if one process, or a program without MPI, works", lambda way: say.larger_requests(way, alone=True)),
        Offer("if HDF5 works without MPI-IO", lambda way: say.larger_requests(way, hdf5=True)),
        Offer(
            "if HDF5 works in one process, or without MPI", lambda way: say.larger_requests(way, hdf5=True, alone=True)
        ),
        Offer("if the reads return no data", lambda _: say.NO_POLLING),
        Offer(
            "if tiny pieces go through POSIX, and each call is a request",
            lambda _: say.larger_pieces(flushed=False, plain=True),
        ),
        Offer(
            "if tiny pieces go through the C library, with {flushed} flushes for each call",
            lambda _: say.larger_pieces(flushed=True, plain=False),
        ),
        Offer(
            "if tiny pieces go through the C library, without flushes",
            lambda _: say.larger_pieces(flushed=False, plain=False),
        ),
        Offer(OF_MPI, lambda _: say.MEASURE),
    ),
    least_sure=0.2,  # they are nearly everywhere, and seldom what a job waits for
)
