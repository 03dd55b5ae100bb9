"""Rows in the order in which the calls began, where a trace has them in the order in which they ended.

Problem.    DFTracer writes a call when it is over, so that calls inside stand before it; threads have own files.
Algorithm.  Of one stream, the last `WINDOW` rows wait, and what comes is sorted with them. Several streams are merged
            batch by batch: up to the earliest of their last times all rows are known.
Guarantee.  Stable. A row that comes later than `WINDOW` others that began after it is not moved before them all:
            this is counted in the source's Loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from mpiio_ext.pioneer.table import SCHEMA, Source

WINDOW = 8192


def _times(batch: pa.RecordBatch) -> np.ndarray:
    return np.asarray(batch.column(0))


def whole(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches as one, of which the dictionaries have been united."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches, SCHEMA).unify_dictionaries().combine_chunks()
    found = table.to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], SCHEMA)


def _sorted(batch: pa.RecordBatch) -> pa.RecordBatch:
    times = _times(batch)
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return batch
    return batch.take(pa.array(np.argsort(times, kind="stable")))


def _joined(one: pa.RecordBatch, other: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return two sorted batches as sorted ones, of which only the rows that overlap in time have been moved."""
    if not len(one) or not len(other):
        return [one, other]
    first, last = _times(other)[0], _times(one)[-1]
    stays = int(np.searchsorted(_times(one), first, side="right"))
    comes = int(np.searchsorted(_times(other), last, side="left"))
    if stays == len(one):
        return [one, other]
    return [one.slice(0, stays), _sorted(whole([one.slice(stays), other.slice(0, comes)])), other.slice(comes)]


def ordered(batches: Iterable[pa.RecordBatch], source: Source, window: int = WINDOW) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stream sorted by time, as far as a window of rows allows."""
    held: list[pa.RecordBatch] = []  # together they are sorted, and not more than the window
    last: int | None = None
    late = 0
    for batch in batches:
        tail = whole(held) if held else batch.slice(0, 0)
        held = [each for each in _joined(tail, _sorted(batch)) if len(each)]
        excess = sum(len(each) for each in held) - window
        while excess > 0:
            ready = held[0].slice(0, excess)
            held[:1] = [held[0].slice(excess)] if excess < len(held[0]) else []
            excess -= len(ready)
            times = _times(ready)
            if last is not None:
                late += int(np.searchsorted(times, last, side="left"))
            last = max(int(times[-1]), last if last is not None else int(times[-1]))
            yield ready
    yield from held
    if late:
        source.loss.add(0, f"{late} calls stand more than {window} rows behind later ones: not sorted", count=0)


def merged(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of several streams, each sorted, as one."""
    heads: dict[int, pa.RecordBatch] = {}
    open_streams = dict(enumerate(streams))
    while open_streams or heads:
        for i in [i for i in open_streams if i not in heads]:
            batch = next((each for each in open_streams[i] if len(each)), None)
            if batch is None:
                del open_streams[i]
            else:
                heads[i] = batch
        if not heads:
            return
        limits = [_times(heads[i])[-1] for i in heads if i in open_streams]
        limit = min(limits) if limits else np.iinfo(np.int64).max
        pieces = []
        for i in list(heads):
            count = int(np.searchsorted(_times(heads[i]), limit, side="right"))
            pieces.append(heads[i].slice(0, count))
            heads[i] = heads[i].slice(count)
            if not len(heads[i]):
                del heads[i]
        yield _sorted(whole([piece for piece in pieces if len(piece)]))
