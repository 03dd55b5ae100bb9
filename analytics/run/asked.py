"""A program's calls on a file, and the requests that reached the file system, in words.

Problem. Between the calls of a program and the requests to the file system are views, aggregators and buffers: the
pattern of the one is not that of the other.

Algorithm. Of a file that the program accesses by MPI-IO its calls count: how many, of which size, how they follow each
other, and in which pieces its views have the file. What reached the file system are the calls of POSIX, or what the
library says of its requests, where it makes some through mapped memory.

Guarantees. What is not known is left out. Without MPI-IO both are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.diagnosis.activity import Calls
from mpiio_ext.analytics.run import arrays
from mpiio_ext.common.units import count_text, mean_text

_DONE = {"read": "read", "write": "written"}
#: From which share on calls are called contiguous, strided or forward, and their places are known.
_MOST_OF, _FORWARD, _HALF = 0.9, 0.75, 0.5


def _order(row: Mapping[str, Any], way: str, count: int, calls: Calls, views: Collection[str]) -> str:
    """Return how the calls of MPI-IO in one direction follow each other; "" where that is not known."""
    if by_view := arrays.pieces(views):
        return by_view
    known = calls.asked.get(way == "write")
    if known is None:  # single calls were not kept: if each is a request, these show it
        alike = abs((row[f"{way}s"] or 0) - count) <= (1 - _MOST_OF) * count
        return row[f"{way}_pattern"] or "" if alike and not views else ""
    pairs, adjacent, behind, regular, unknown = (float(each) for each in known)
    ranks = max(1, len(calls.askers))
    if unknown >= _HALF * count:
        return "in contiguous parts, by views" if views else "by the file pointer"
    if pairs <= 0:
        return "one call a rank" if count > 1 else ""
    if adjacent >= _MOST_OF * pairs:
        return "contiguous"
    if regular > 0 and regular >= _MOST_OF * (pairs - ranks):
        return "strided"
    return "forward, with gaps" if behind >= _FORWARD * pairs else "at random places"


def by_program(row: Mapping[str, Any], calls: Calls, views: Collection[str]) -> str:
    """Return what the program asked for."""
    sentences = []
    for way, done in _DONE.items():
        counts = {kind: row[f"{kind}_{way}s"] for kind in ("collective", "independent")}
        count = sum(counts.values())
        if not count:
            continue
        each = mean_text((row[f"asked_{done}_bytes"] or 0) / count)
        which = " and ".join(f"{number:,} {kind}" for kind, number in counts.items() if number)
        mean = "" if count == 1 else " on average" if sum(map(bool, counts.values())) > 1 else " each"
        order = _order(row, way, count, calls, views)
        sentences.append(f"{done}: {which} call{'s' * (count != 1)} of {each}{mean}{', ' * bool(order)}{order}")
    return "; ".join(sentences) or by_storage(row, ())


def by_storage(row: Mapping[str, Any], library: Sequence[Mapping[str, Any]], *, mapped: bool = False) -> str:
    """Return what reached the file system; `library`: rows of the library about the file."""
    requests, moved = (sum(each[name] for each in library) for name in ("requests", "request_bytes"))
    if mapped and requests:
        return (
            f"{count_text(requests, 'request')} of {mean_text(moved / requests)} on average, some of them through"
            " mapped memory (by the library's count)"
        )
    by_rounds = any(each["rounds"] for each in library)
    return "; ".join(
        f"{done}: {_requests(row, way)}{_following(row, way, by_rounds)}"
        for way, done in _DONE.items()
        if row[f"{way}_pattern"]
    )


def _following(row: Mapping[str, Any], way: str, by_rounds: bool) -> str:
    """Return how requests follow each other; aggregators take windows of their file domains in turn."""
    order = row[f"{way}_pattern"] if row[f"{way}s"] != 1 else ""
    order = "by rounds of aggregators" if by_rounds and order == "random places" else order
    return f", {order}" if order else ""


def _requests(row: Mapping[str, Any], way: str) -> str:
    """Return how many requests of which sizes there are in one direction."""
    count, sizes = row[f"{way}s"], row[f"{way}_sizes"]
    mean = "" if count == 1 else " on average"
    of_bin = f", {sizes}" if sizes and not sizes.startswith("100 %") else ""
    return f"{count_text(count, 'request')} of {mean_text(row[f'mean_{way}_bytes'])}{mean}{of_bin}"
