"""Accesses by time: Darshan's heat maps, and with DXT every access.

Problem. Counters give amounts, not times. Algorithm: a heat map has the bytes read and written in bins of equal width,
200 at most. A call's bytes are spread over its time; when the run outlasts the bins, pairs are added up and the width
doubles (darshan-heatmap.c). DXT keeps offset, length, start and end of every access, of each file and rank.

Guarantees. All heat maps of a log have equal bins, up to the end of the job. DXT needs 32 bytes of memory for each
access, so it is made only on request.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import numpy as np

from mpiio_ext.pioneer.darshan.meanings import Kind
from mpiio_ext.pioneer.darshan.names import record_id
from mpiio_ext.pioneer.darshan.records import Calls, Integers

_MOST_BINS, _FIRST_WIDTH_S = 200, 0.1
_HOST_BYTES = 64
_SEGMENT = np.dtype([("offset", "i8"), ("length", "i8"), ("start", "f8"), ("end", "f8")])


class Heat:
    """Bytes that one rank wrote and read by one module, by time."""

    def __init__(self) -> None:
        self.width_s = _FIRST_WIDTH_S
        self._bins: Integers = np.zeros((2, _MOST_BINS), np.int64)  # written, read

    def _reach(self, end_s: float) -> None:
        while end_s > self.width_s * _MOST_BINS:
            pairs = self._bins.reshape(2, -1, 2).sum(axis=2)
            self._bins = np.concatenate([pairs, np.zeros_like(pairs)], axis=1)
            self.width_s *= 2

    def add(self, calls: Calls) -> None:
        """Add the bytes of calls."""
        some = calls.take(np.isin(calls.kind, (Kind.READ, Kind.WRITE)) & (calls.size > 0))
        if len(some.kind) == 0:
            return
        start, end = some.start / 1e9, some.end / 1e9
        self._reach(float(end.max()))
        first, last = (start / self.width_s).astype(np.int64), (end / self.width_s).astype(np.int64)
        last = np.minimum(last, _MOST_BINS - 1)
        line = (some.kind == Kind.READ).astype(np.int64)
        within = first == last
        np.add.at(self._bins, (line[within], first[within]), some.size[within])
        for at in np.flatnonzero(~within).tolist():
            edges = np.arange(first[at], last[at] + 2) * self.width_s
            edges[0], edges[-1] = start[at], end[at]
            share = np.diff(edges) / (end[at] - start[at])
            self._bins[line[at], first[at] : last[at] + 1] += np.round(some.size[at] * share).astype(np.int64)

    def add_bins(self, bins: Integers, width_ns: int, from_ns: int) -> None:
        """Add bins of another width, which begin `from_ns` after the start of the job; their sum stays."""
        filled = np.flatnonzero(bins.any(axis=0))
        if len(filled) == 0:
            return
        edges = (from_ns + np.arange(filled[-1] + 2) * width_ns) / 1e9
        self._reach(float(edges[-1]))
        ends = np.minimum(np.arange(1, _MOST_BINS + 1) * self.width_s, edges[-1])
        for line, some in enumerate(bins):
            so_far = np.concatenate([[0], np.cumsum(some[: filled[-1] + 1])])
            reached = np.round(np.interp(ends, edges, so_far)).astype(np.int64)
            self._bins[line] += np.diff(reached, prepend=0)

    def packed(self, module: str, rank: int, end_s: float) -> bytes:
        """Return the record up to the end of the job; none if no byte was moved."""
        self._reach(end_s)
        if not self._bins.any():
            return b""
        bins = min(max(math.ceil(end_s / self.width_s), 1), _MOST_BINS)
        kept = self._bins[:, :bins].copy()
        kept[:, -1] += self._bins[:, bins:].sum(axis=1)  # a bin of a recording may reach behind the end
        head = struct.pack("=QqdqQQ", record_id(f"heatmap:{module}"), rank, self.width_s, bins, 0, 0)
        return head + bytes(kept.tobytes())


class Segments:
    """Every access of one rank by one module."""

    def __init__(self) -> None:
        self._batches: list[Calls] = []

    def add(self, calls: Calls) -> None:
        """Keep the accesses among calls; an offset of -1 is not known."""
        self._batches.append(calls.take(np.isin(calls.kind, (Kind.READ, Kind.WRITE))))

    def packed(self, names: Mapping[str, int], rank: int, host: str) -> bytes:
        """Return the records of the rank's files; `names`: place of each."""
        data = {
            each: np.concatenate([getattr(one, each) for one in self._batches] or [np.zeros(0, np.int64)])
            for each in ("record", "kind", "offset", "size", "start", "end")
        }
        order = np.lexsort((np.arange(len(data["kind"])), data["kind"] == Kind.READ, data["record"]))
        data = {name: values[order] for name, values in data.items()}
        segments = np.zeros(len(order), _SEGMENT)
        segments["offset"], segments["length"] = data["offset"], data["size"]
        segments["start"], segments["end"] = data["start"] / 1e9, data["end"] / 1e9
        parts = []
        for name, place in names.items():
            low, high = np.searchsorted(data["record"], (place, place + 1))
            writes = int((data["kind"][low:high] == Kind.WRITE).sum())
            if high > low:
                parts.append(
                    struct.pack(
                        "=Qqq64sqq",
                        record_id(name),
                        rank,
                        0,
                        host.encode(errors="replace")[: _HOST_BYTES - 1],
                        writes,
                        high - low - writes,
                    )
                )
                parts.append(segments[low:high].tobytes())
        return b"".join(parts)
