"""A program's calls on a file, and the requests that reached the file system, in words.

Problem. Between the calls of a program and the requests to the file system are views, aggregators and buffers: the
pattern of the one is not that of the other.

Algorithm. Of a file that the program accesses by MPI-IO its calls count: how many, of which size, how they follow each
other, and in which pieces its views have the file. What reached the file system are the calls of POSIX, or the
library's own counts, where it makes some requests through mapped memory.

Guarantees. What is not known is left out. Without MPI-IO both are the same.

The arrays in a file, by its views: "64 x 64 x 64 doubles in blocks of 32 x 32 x 64".

Problem. A program describes its arrays to MPI-IO by the file types of its views; libraries of files (HDF5) build these
of vectors.

Algorithm. A subarray and a darray have the shape in their arguments. Of vectors in vectors the counts are the block,
the ratios of their strides the array but for its first dimension, which the extent shows if it was resized.

Guarantees. What is no regular part of an array is left out. C's order of dimensions: the last one is contiguous.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.diagnosis.activity import Calls
from mpiio_ext.analytics.run.failures import Lost
from mpiio_ext.common.units import count_text, mean_text, size_text
from mpiio_ext.pioneer.file_types import FileType, ViewError, parse

_DONE = {"read": "read", "write": "written"}
#: From which share on calls are called contiguous, strided or forward, and their places are known.
_MOST_OF, _FORWARD, _HALF = 0.9, 0.75, 0.5


def _order(row: Mapping[str, Any], way: str, count: int, calls: Calls, views: Collection[str]) -> str:
    """Return how the calls of MPI-IO in one direction follow each other; "" where that is not known."""
    if by_view := pieces(views):
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


def by_program(row: Mapping[str, Any], calls: Calls, views: Collection[str], failed: Lost) -> str:
    """Return the accesses that the program requested, in words; `failed`: the ones among them that failed."""
    sentences = []
    for way, done in _DONE.items():
        lost = {kind: failed.calls.get((kind, way), 0) for kind in ("collective", "independent")}
        counts = {kind: row[f"{kind}_{way}s"] + lost[kind] for kind in lost}
        count, missed = sum(counts.values()), sum(lost.values())
        if not count:
            continue
        which = " and ".join(f"{number:,} {kind}" for kind, number in counts.items() if number)
        if count == missed:
            sentences.append(f"{done}: {which} call{'s' * (count != 1)}, which failed")
            continue
        each = mean_text((row[f"asked_{done}_bytes"] or 0) / (count - missed))
        mean = "" if count == 1 else " on average" if sum(map(bool, counts.values())) > 1 else " each"
        order = _order(row, way, count - missed, calls, views)
        only = f", {'at least ' * failed.more}{missed:,} of which failed, the others" if missed else ""
        sentences.append(f"{done}: {which} call{'s' * (count != 1)}{only} of {each}{mean}{', ' * bool(order)}{order}")
    return "; ".join(sentences) or by_storage(row, ())


def by_storage(row: Mapping[str, Any], library: Sequence[Mapping[str, Any]], *, mapped: bool = False) -> str:
    """Return what reached the file system; `library`: rows of the library about the file."""
    requests, moved = (sum(each[name] for each in library) for name in ("requests", "request_bytes"))
    if mapped and requests:
        return (
            f"{count_text(requests, 'request')} of {mean_text(moved / requests)} on average, some through mapped memory"
            " (the library counted the requests)"
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
    """Return the number of requests of each size in one direction."""
    count, sizes = row[f"{way}s"], row[f"{way}_sizes"]
    mean = "" if count == 1 else " on average"
    of_bin = f", {sizes}" if sizes and not sizes.startswith("100 %") else ""
    return f"{count_text(count, 'request')} of {mean_text(row[f'mean_{way}_bytes'])}{mean}{of_bin}"


#: Bytes of what etypes are called in words.
_WORDS = {
    "MPI_DOUBLE": ("doubles", 8),
    "MPI_FLOAT": ("floats", 4),
    "MPI_INT": ("ints", 4),
    "MPI_BYTE": ("bytes", 1),
    "MPI_CHAR": ("chars", 1),
    "MPI_DOUBLE_PRECISION": ("doubles", 8),
    "MPI_REAL": ("reals", 4),
    "MPI_INTEGER": ("integers", 4),
}
#: Most arrays of a file that are printed.
_MOST = 3
#: An unknown dimension.
_UNKNOWN = 0

_Shape = tuple[tuple[int, ...], tuple[int, ...], int]


def described(views: Collection[str]) -> str:
    """Return the arrays of a file, in words; "" where its views are of none."""
    found: dict[tuple[tuple[int, ...], str], set[tuple[int, ...]]] = {}
    for view in views:
        etype, _, text = view.rpartition(" ")
        try:
            shape = _shape(parse(text))
        except ViewError:
            continue
        if shape is not None:
            sizes, block, element = shape
            word, size = _WORDS.get(etype, ("", 0))
            what = word if size == element else f"elements of {size_text(element, exact=True)}"
            found.setdefault((sizes, what), set()).add(block)
    described = [f"{_by(sizes)} {what} {_blocks(sizes, blocks)}" for (sizes, what), blocks in found.items()]
    return "; ".join(
        [*described[:_MOST], *([f"and {len(described) - _MOST} more arrays"] if len(described) > _MOST else [])]
    )


def pieces(views: Collection[str]) -> str:
    """Return the pieces of files in views, in words; "" if each view is contiguous, or none is known."""
    found: set[int | None] = set()
    for view in views:
        try:
            made = parse(view.rpartition(" ")[2])
            if made.size not in (made.extent, piece := _piece(made)):
                found.add(piece)
        except ViewError:
            found.add(None)
    known = sorted(each for each in found if each is not None)
    if not found:
        return ""
    sizes = dict.fromkeys(size_text(each, exact=True) for each in (known[0], known[-1])) if None not in found else ()
    return f"in pieces{' of ' * bool(sizes)}{' to '.join(sizes)}, strided by a view"


def _piece(made: FileType) -> int | None:
    """Return the bytes of a contiguous piece of a file type with gaps; None where they are not known."""
    if (shape := _shape(made)) is None:
        return None
    sizes, block, piece = shape
    for whole, part in zip(reversed(sizes), reversed(block), strict=True):
        piece *= part
        if part != whole:
            break
    return piece


def _by(numbers: tuple[int, ...]) -> str:
    return " × ".join(f"{number:,}" if number != _UNKNOWN else "…" for number in numbers)


def _blocks(sizes: tuple[int, ...], blocks: Collection[tuple[int, ...]]) -> str:
    if set(blocks) == {sizes}:
        return "as a whole"
    ordered = sorted(blocks, key=math.prod)
    same = math.prod(ordered[0]) == math.prod(ordered[-1]) and len(ordered) == 1
    return f"in blocks of {_by(ordered[0])}" + ("" if same else f" to {_by(ordered[-1])}")


def _shape(made: FileType, total: int = 0) -> _Shape | None:
    """Return sizes, block and bytes of an element of the array that a file type is of; `total`: bytes of the array."""
    if made.kind == "R":
        return _shape(made.inner[0], made.numbers[1][0])
    if made.kind == "C" and made.numbers[0][0] == 1 and not made.is_plain:
        return _shape(made.inner[0], total)
    if made.kind in ("A", "D") and made.inner[0].is_plain:
        sizes, block = made.numbers[:2] if made.kind == "A" else (made.numbers[2], _largest(made))
        fortran = made.numbers[3 if made.kind == "A" else 6][0]
        order = slice(None, None, -1 if fortran else 1)
        return sizes[order], block[order], made.inner[0].size
    return _of_vectors(made, total)


def _largest(made: FileType) -> tuple[int, ...]:
    """Return the most elements that a rank has of each dimension of a darray."""
    sizes, kinds, _, processes = made.numbers[2:6]
    return tuple(
        size if kind == 0 else -(-size // ranks) for size, kind, ranks in zip(sizes, kinds, processes, strict=True)
    )


def _of_vectors(made: FileType, total: int) -> _Shape | None:
    counts, strides = [], []
    while made.kind in ("V", "C", "R") and not made.is_plain:
        if made.kind == "R":
            made = made.inner[0]
            continue
        count, length, stride = (
            (number[0] for number in made.numbers[:3])
            if made.kind == "V"
            else (made.numbers[0][0], 1, made.inner[0].extent)
        )
        counts.append(count)
        strides.append(stride)
        made = made.inner[0]
        if made.is_plain:
            counts.append(length)
            strides.append(made.size)
        elif length != 1:
            return None
    if len(counts) < 2 or not made.is_plain or min(counts) < 1 or min(strides) < 1:
        return None
    inner = [above // below for above, below in itertools.pairwise(strides)]
    if any(above % below for above, below in itertools.pairwise(strides)):
        return None
    if any(size < count for size, count in zip(inner, counts[1:], strict=True)):
        return None
    first = total // strides[0] if total % strides[0] == 0 and total // strides[0] >= counts[0] else _UNKNOWN
    return (first, *inner), tuple(counts), strides[-1]
