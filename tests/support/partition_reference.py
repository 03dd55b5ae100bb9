"""Partition methods written straight from their definitions: stripe by stripe, with lists and Python's own integers.

Slow on purpose, and sharing nothing with the C planners: no closed forms, no strides. Extents are (start, end) bytes,
half-open. Every function returns, for each aggregator, the extents of its domain in the order of work; neighbouring
extents are merged by `merged` before they are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

Extent = tuple[int, int]
Domains = list[list[Extent]]
T = TypeVar("T")


class Case(NamedTuple):
    """A geometry in plain numbers (bytes)."""

    start: int
    end: int
    stripe_size: int
    servers: int
    aggregators: int


def stripes_of(case: Case) -> list[int]:
    """Return the indices of the stripes that the region touches."""
    if case.start == case.end:
        return []
    return list(range(case.start // case.stripe_size, (case.end - 1) // case.stripe_size + 1))


def clip(case: Case, start: int, end: int) -> Extent | None:
    """Return the part of [start, end) inside the region, or None."""
    start, end = max(start, case.start), min(end, case.end)
    return (start, end) if start < end else None


def deal(things: Sequence[T], parts: int) -> list[Sequence[T]]:
    """Cut a sequence into consecutive parts whose sizes differ by one at most, the larger ones first."""
    dealt, at = [], 0
    for i in range(parts):
        size = len(things) // parts + (1 if i < len(things) % parts else 0)
        dealt.append(things[at : at + size])
        at += size
    return dealt


def from_stripes(case: Case, owned: Sequence[Sequence[int]]) -> Domains:
    """Turn lists of stripes into clipped extents."""
    size = case.stripe_size
    return [[e for s in stripes if (e := clip(case, s * size, (s + 1) * size))] for stripes in owned]


def from_boundaries(case: Case, boundaries: Sequence[int]) -> Domains:
    """Turn ascending boundaries into one extent for each aggregator."""
    return [[e] if (e := clip(case, a, b)) else [] for a, b in itertools.pairwise(boundaries)]


def even_boundaries(case: Case) -> list[int]:
    boundaries = [case.start]
    for part in deal(range(case.start, case.end), case.aggregators):
        boundaries.append(boundaries[-1] + len(part))
    return boundaries


def even(case: Case) -> Domains:
    return from_boundaries(case, even_boundaries(case))


def aligned(case: Case) -> Domains:
    boundaries = even_boundaries(case)
    for i in range(1, case.aggregators):
        below = boundaries[i] // case.stripe_size * case.stripe_size
        above = below + case.stripe_size
        nearest = below if boundaries[i] - below < above - boundaries[i] else above
        boundaries[i] = min(max(nearest, case.start), case.end)
    return from_boundaries(case, boundaries)


def static_cyclic(case: Case) -> Domains:
    owned: list[list[int]] = [[] for _ in range(case.aggregators)]
    for s in stripes_of(case):
        owned[s % case.aggregators].append(s)
    return from_stripes(case, owned)


def adjusted(case: Case) -> int:
    """Return the largest number of aggregators, at most those given, that group-cyclic can use."""
    a = case.aggregators
    if a >= case.servers:
        while a % case.servers:
            a -= 1
    else:
        while case.servers % a:
            a -= 1
    return a


def group_cyclic(case: Case) -> Domains:
    used = adjusted(case)
    size = min(used, case.servers)
    owned: list[list[int]] = [[] for _ in range(case.aggregators)]
    for g, stripes in enumerate(deal(stripes_of(case), used // size)):
        for s in stripes:
            owned[g * size + s % size].append(s)
    return from_stripes(case, owned)


def transpose(case: Case) -> Domains:
    by_server = sorted(stripes_of(case), key=lambda s: (s % case.servers, s // case.servers))
    return from_stripes(case, deal(by_server, case.aggregators))


REFERENCE: dict[str, Callable[[Case], Domains]] = {
    "even": even,
    "aligned": aligned,
    "static_cyclic": static_cyclic,
    "group_cyclic": group_cyclic,
    "transpose": transpose,
}


def merged(extents: Sequence[Extent]) -> list[Extent]:
    """Join extents that touch and follow each other."""
    out: list[Extent] = []
    for start, end in extents:
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out


def servers_touched(case: Case, extents: Sequence[Extent]) -> int:
    """Return the number of different servers that hold bytes of the extents."""
    size = case.stripe_size
    return len({s % case.servers for start, end in extents for s in range(start // size, (end - 1) // size + 1)})


def windows_of_set(case: Case, stripe_set: tuple[int, int, int, int], window: int) -> list[list[Extent]]:
    """Return the windows of one stripe set by the rule of mpiox_partition.h, empty ones left out."""
    offset, length, stride, count = stripe_set
    whole: list[list[Extent]] = []
    if count == 1:
        cut = offset
        while cut < offset + length:
            after = min((cut // window + 1) * window, offset + length)
            whole.append([(cut, after)])
            cut = after
    elif length > window:
        for k in range(count):
            piece = offset + k * stride
            whole += [[(piece + c, piece + min(c + window, length))] for c in range(0, length, window)]
    else:
        per = window // length
        pieces = [(offset + k * stride, offset + k * stride + length) for k in range(count)]
        whole = [pieces[i : i + per] for i in range(0, count, per)]
    clipped = [[e for start, end in one if (e := clip(case, start, end))] for one in whole]
    return [one for one in clipped if one]
