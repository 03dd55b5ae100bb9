"""The value of every byte of a file: a pure function of the byte's offset and of a salt.

The bytes of a file are those of little-endian 64-bit words; word w is a bijective mix of w (multiplication by odd
constants and xor-shifts, after the finaliser of splitmix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), so that data that lands at a wrong offset, by whatever distance, is
found. The lowest bit of every byte is then set. A salt is an even number that is xored into every byte: it changes
from one run to the next, so that the remains of an older run are found, and it leaves the lowest bit alone. Hence:

* a written byte is never zero, so that it differs from a byte that no rank wrote;
* a written byte is never equal to `POISON` xored with any salt, which fills read buffers beforehand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.bench.kernels.shapes import Bytes, Offsets

#: Even, so that it differs from every written byte.
POISON = 0xA4

_LOWEST_BITS = np.uint64(0x0101010101010101)
_MULTIPLIER_1 = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9)
_CHUNK_WORDS = 1 << 15  # 256 KiB: the temporaries stay in the cache
_LONG_PIECE_BYTES = 4096  # from here on a Python loop over pieces costs less than indexing every byte


def salt_of_run(run: int) -> int:
    """Return the salt of the run-th run: even, and different for 127 consecutive runs."""
    return 2 * (run % 127 + 1)


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """Mix word numbers in place and return them as little-endian words."""
    words *= _MULTIPLIER_1
    words ^= words >> np.uint64(29)
    words *= _MULTIPLIER_2
    words ^= words >> np.uint64(32)
    words |= _LOWEST_BITS
    return words.astype("<u8", copy=False)


def fill_range(out: Bytes, offset_bytes: int) -> None:
    """Fill `out`, shape (n,), with the pattern of file bytes [offset_bytes, offset_bytes + n), salt 0."""
    done = 0
    while done < out.size:
        first_word, skip = divmod(offset_bytes + done, 8)
        take = min(out.size - done, _CHUNK_WORDS * 8 - skip)
        count = (skip + take + 7) // 8
        words = _mixed(np.arange(first_word, first_word + count, dtype=np.uint64))
        out[done : done + take] = words.view(np.uint8)[skip : skip + take]
        done += take


def _fill_short_pieces(out: Bytes, offsets: Offsets, lengths: Offsets) -> None:
    """Fill `out` with the pattern of short pieces, one after the other, by indexing every word or every byte."""
    unit = 8 if not ((offsets | lengths) & 7).any() else 1
    counts = lengths // unit
    starts = np.cumsum(counts) - counts
    index = np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(offsets // unit - starts, counts)
    if unit == 8:
        out[:] = _mixed(index.astype(np.uint64)).view(np.uint8)
        return
    words = np.ascontiguousarray(_mixed((index >> 3).astype(np.uint64))).view(np.uint8).reshape(-1, 8)
    out[:] = np.take_along_axis(words, (index & 7)[:, None], axis=1)[:, 0]


def fill_pieces(out: Bytes, offsets: Offsets, lengths: Offsets) -> None:
    """Fill `out` with the pattern of the pieces [offsets[i], offsets[i] + lengths[i]), one after the other, salt 0.

    Parameters
    ----------
    out : ndarray of uint8, shape (sum of lengths,)
    offsets, lengths : ndarray of int64, shape (pieces,), bytes
    """
    ends = np.cumsum(lengths)
    first = 0
    while first < offsets.size:
        begin = int(ends[first] - lengths[first])
        if lengths[first] >= _LONG_PIECE_BYTES:
            fill_range(out[begin : int(ends[first])], int(offsets[first]))
            first += 1
            continue
        last = int(np.searchsorted(ends, begin + _CHUNK_WORDS * 8, side="left")) + 1
        long = np.flatnonzero(lengths[first:last] >= _LONG_PIECE_BYTES)
        last = min(first + int(long[0]) if long.size else last, offsets.size)
        _fill_short_pieces(out[begin : int(ends[last - 1])], offsets[first:last], lengths[first:last])
        first = last
