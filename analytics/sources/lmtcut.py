"""A part of LMT's HDF5 by time: the file as if it had been written for a few hours only.

Problem. A day of 248 OSTs has 4 million values a matrix; a job is asked about minutes of it. The readers of such files
take whole matrices, and tell chunks that are missing or damaged from zeros.

Algorithm. A view of the open file, with those members that the readers use. Datasets with a time axis are cut to the
same range of steps, whose bounds are those of chunks, so that chunks keep their places on the grid and are told apart
as in the whole file. What has no time axis is as it is. Which axis that is follows from the form: h5lmt has the time
last, TOKIO's HDF5 first.

Guarantees. A value of the part is that of the whole file. Where chunks of matrices have different lengths in time, the
range is wide enough for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.tables.arrays import Numbers

if TYPE_CHECKING:
    import h5py

_STAMPS = {"h5lmt": "FSStepsGroup/FSStepsDataSet", "tokio": "datatargets/timestamps"}
#: Steps that h5lmt and counters need before the first one asked for.
_BEFORE = 2


class _Data:
    """A dataset, of which the steps [low, high) are seen."""

    def __init__(self, data: h5py.Dataset, axis: int, low: int, high: int) -> None:
        self._data, self._axis, self._low = data, axis, low
        length = min(high, data.shape[axis]) - low
        self.shape = (*data.shape[:axis], length, *data.shape[axis + 1 :])
        self.name, self.chunks, self.dtype, self.attrs = data.name, data.chunks, data.dtype, data.attrs
        self.id = SimpleNamespace(get_num_chunks=self._count, get_chunk_info=self._info)
        self._infos: list[SimpleNamespace] | None = None

    def _stored(self) -> list[SimpleNamespace]:
        """Return where the chunks of the part begin, in the part's coordinates; those off the grid are left out."""
        if self._infos is None:
            found = []
            for number in range(self._data.id.get_num_chunks()):
                offset = list(self._data.id.get_chunk_info(number).chunk_offset)
                offset[self._axis] -= self._low
                if 0 <= offset[self._axis] < self.shape[self._axis]:
                    found.append(SimpleNamespace(chunk_offset=tuple(offset)))
            self._infos = found
        return self._infos

    def _count(self) -> int:
        return len(self._stored())

    def _info(self, number: int) -> SimpleNamespace:
        return self._stored()[number]

    def __getitem__(self, key: slice | tuple[slice, ...] | tuple[()]) -> Numbers:
        parts = list(key) if isinstance(key, tuple) else [key]
        parts = [slice(None)] * len(self.shape) if key == () else parts
        start, stop, _ = parts[self._axis].indices(self.shape[self._axis])
        parts[self._axis] = slice(start + self._low, stop + self._low)
        found: Numbers = self._data[tuple(parts)]
        return found


class _Group:
    """A group or file, whose datasets with a time axis are cut."""

    def __init__(self, group: h5py.Group, form: str, steps: int, low: int, high: int) -> None:
        self._group, self._form, self._steps, self._bounds = group, form, steps, (low, high)

    def __contains__(self, name: str) -> bool:
        return name in self._group

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __getitem__(self, name: str) -> h5py.Group | h5py.Dataset | _Group | _Data:
        found = self._group[name]
        if not hasattr(found, "shape"):
            return _Group(found, self._form, self._steps, *self._bounds)
        axis = len(found.shape) - 1 if self._form == "h5lmt" else 0
        timed = bool(found.shape) and found.shape[axis] == self._steps
        return _Data(found, axis, *self._bounds) if timed else found


def _chunk_lengths(group: h5py.Group, form: str, steps: int) -> Iterator[int]:
    """Yield how many steps the chunks of the matrices hold."""
    for name in group:
        found = group[name]
        if not hasattr(found, "shape"):
            yield from _chunk_lengths(found, form, steps)
        elif found.chunks:
            axis = len(found.shape) - 1 if form == "h5lmt" else 0
            if found.shape[axis] == steps:
                yield found.chunks[axis]


def cut(file: h5py.File, period: tuple[float, float] | None) -> h5py.File:
    """Return an open HDF5 of LMT as if it had the steps of a period only, and few around it.

    Parameters
    ----------
    file : h5py.File
        h5lmt or TOKIO's HDF5.
    period : (float, float), or None
        Half open, in seconds since 1970 UTC; None: everything. Of a file without any step of it the first ones are
        seen.

    Returns
    -------
    h5py.File, or what has its members as far as the readers use them
        The file itself where a part of it would be no smaller, or it is none of both.
    """
    form = next((form for form, path in _STAMPS.items() if path in file), None)
    if period is None or form is None or len(file[_STAMPS[form]].shape) != 1:
        return file
    steps = file[_STAMPS[form]].shape[0]
    lengths = set(_chunk_lengths(file, form, steps))
    unit = math.lcm(*lengths) if lengths else 1
    if unit >= steps:
        return file
    stamps = np.asarray(file[_STAMPS[form]][()], dtype=np.float64)
    apart = np.diff(stamps[np.isfinite(stamps)])
    step = float(np.median(apart)) if len(apart) else 0.0  # 5 s of LMT, others of other tools
    base = np.nanmedian(np.where(np.isfinite(stamps), stamps - step * np.arange(steps), np.nan)) if step > 0 else np.nan
    if not np.isfinite(base):
        return file
    first, last = ((bound - base) / step for bound in period)
    if last <= 0 or first >= steps:  # of another day: its begin is enough to say so
        first, last = 0.0, 1.0
    low = max(0, math.floor(first) - _BEFORE) // unit * unit
    high = min(steps, -(-(math.ceil(last) + _BEFORE) // unit) * unit)
    return _Group(file, form, steps, low, high)
