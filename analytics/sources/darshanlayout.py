"""Lustre layouts of files, from the records of a Darshan log.

Problem. Version 1 has one layout a file: stripe offset, size, count, and the OSTs. Version 2 has any number of
components (progressive layouts, mirrors), each with a size, a count and an extent, then the OSTs of all of them, and no
offset.

Algorithm. The records are walked word by word, with every count checked before it is used. A row gets the component of
the largest extent among those that have OSTs (of all, when none has), the number of components, and the OSTs of all,
ascending, each once. Of several records of a file (one a rank), that with the most OSTs counts.

Source: darshan-util, darshan-lustre-logutils.c and darshan-lustre-log-format.h.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from mpiio_ext.analytics.tables.arrays import Whole

_MOST_COMPONENTS, _MOST_OSTS = 1 << 12, 1 << 20
#: Words: of the head of a record of version 1 (id, rank, OSTs, MDTs, offset, size, count) and 2 (id, rank, components,
#: OSTs), and of a component (size, count, pattern, flags, start and end of its extent, mirror, 16 bytes of a name).
_HEAD_1, _HEAD_2, _COMPONENT = 7, 4, 9
_LARGEST = np.iinfo(np.int64).max


@dataclasses.dataclass(frozen=True)
class Layouts:
    """Layouts of files, one each: `values` are stripe size, count and offset, and components (-1: not known).

    `counts` are OSTs of each, which stand one behind the other in `osts`.
    """

    files: Whole
    values: Whole
    counts: Whole
    osts: Whole


def layouts(words: Whole, version: int) -> Layouts:
    """Return the layouts of the records of LUSTRE, in the order of each file's first record.

    Raises
    ------
    ValueError
        The records are damaged.
    """
    if version == 1:
        starts, counts = _starts(words)
        values = np.stack([words[starts + 5], counts, words[starts + 4], np.ones_like(starts)], axis=1)
        files, places = words[starts], starts + _HEAD_1
    else:
        found = list(_components(words.tolist()))
        table = np.array([each[:-2] for each in found], np.int64).reshape(-1, 5)
        files, values = table[:, 0], table[:, 1:]
        places, counts = np.array([each[-2:] for each in found], np.int64).reshape(-1, 2).T
    record = np.repeat(np.arange(len(files)), counts)
    osts = words[np.arange(len(record)) + np.repeat(places - (np.cumsum(counts) - counts), counts)]
    real = (osts >= 0) & (osts < 1 << 31)  # -1: a stripe without an object yet
    order = np.lexsort((osts[real], record[real]))
    record, osts = record[real][order], osts[real][order]
    once = np.ones(len(osts), bool)
    once[1:] = (record[1:] != record[:-1]) | (osts[1:] != osts[:-1])
    record, osts = record[once], osts[once]
    counts = np.bincount(record, minlength=len(files)).astype(np.int64)
    most = _most(files, counts)
    keep = np.isin(record, most)  # the order of records is not that of files where a later one has more OSTs
    rank = np.empty(len(files), np.int64)
    rank[most] = np.arange(len(most))
    into = np.argsort(rank[record[keep]], kind="stable")
    return Layouts(files[most], values[most], counts[most], osts[keep][into])


def _most(files: Whole, counts: Whole) -> Whole:
    """Return which record counts of each file, in the order of the files' first records."""
    if not len(files):
        return np.zeros(0, np.int64)
    _, first, group = np.unique(files, return_index=True, return_inverse=True)
    order = np.lexsort((np.arange(len(files)), -counts, group))
    best = order[np.searchsorted(group[order], np.arange(len(first)))]
    found: Whole = best[np.argsort(first, kind="stable")]
    return found


def _starts(words: Whole) -> tuple[Whole, Whole]:
    """Return where records of version 1 begin, and the number of stripes of each."""
    listed, starts, counts, at = words.tolist(), [], [], 0
    while at < len(listed):
        count = listed[at + _HEAD_1 - 1] if at + _HEAD_1 <= len(listed) else -1
        if not 0 <= count <= _MOST_OSTS or at + _HEAD_1 + count > len(listed):
            raise ValueError("its records are damaged")
        starts.append(at)
        counts.append(count)
        at += _HEAD_1 + count
    return np.array(starts, np.int64), np.array(counts, np.int64)


def _components(words: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield of records of version 2: file, size, count, offset, components; where OSTs begin, and how many count."""
    at = 0
    while at < len(words):
        if at + _HEAD_2 > len(words):
            raise ValueError("its records are damaged")
        file, _, components, osts = words[at : at + _HEAD_2]
        body = at + _HEAD_2
        listed = body + components * _COMPONENT
        end = listed + osts if components else body  # no component, no OST
        if not (0 <= components <= _MOST_COMPONENTS and 0 <= osts <= _MOST_OSTS and end <= len(words)):
            raise ValueError("its records are damaged")
        every = [words[k : k + _COMPONENT] for k in range(body, listed, _COMPONENT)]
        used = next((k for k, each in enumerate(every) if each[0] == -1), components)  # the run time marks the others
        size, count, taken = _largest(every[:used], words[listed:end])
        yield file, size, count, -1, used, listed, taken
        at = end


def _largest(components: Sequence[Sequence[int]], osts: Sequence[int]) -> tuple[int, int, int]:
    """Return size and count of the component that stands for a layout, and how many OSTs the components have."""
    best, stands, following = (False, -1), (-1, -1), 0
    for size, count, _, _, start, end, *_ in components:
        extent = _LARGEST if end < 0 else 0 if end <= start or start < 0 else end - start
        mine = (count > 0 and following < len(osts) and osts[following] >= 0, extent)
        if mine > best:
            best, stands = mine, (size, count)
        following = min(following + max(count, 0), len(osts))
    return *stands, following
