"""Matrices of time in HDF5, whole, damaged, or of a period only: h5lmt, and the archives of pytokio.

Problem. A file that a disk or a copy has damaged still opens. HDF5 gives 0 for a chunk that its index does not lead to,
which is a value like any other. It refuses a whole matrix for one chunk that it cannot inflate. And a day of 248 OSTs
has 4 million values a matrix, of which a query about a job needs some minutes.

Algorithm. The chunks in the index are compared with the chunks that the shape needs. A complete matrix is read at once,
any other chunk by chunk. A value that is missing or cannot be read is NaN. Stamps are a grid: where nine of ten agree
on one, the others are damaged. For a period, what has a time axis (of h5lmt the last one, else the first) is cut to a
range of steps, whose bounds are those of chunks of all matrices.

Guarantees. A value is one that the file has, and that of a part is that of the whole. What is missing is noted.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.sources.records import LogError
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole
from mpiio_ext.common.extras import needing
from mpiio_ext.common.limits import limit_text, most_bytes

if TYPE_CHECKING:
    import h5py

#: Names, and values in time.
Columns = list[tuple[str, Numbers]]
#: What h5py raises for damaged files.
DAMAGE = (OSError, AttributeError, KeyError, ValueError, IndexError, TypeError, RuntimeError, OverflowError)
#: A matrix of a year of 5-s steps has fewer times; a damaged shape more.
_MOST_TIMES, _MOST_COLUMNS = 10_000_000, 65_536
#: Share of the stamps that must be on one grid.
_ON_GRID = 0.9
_STAMPS = ("FSStepsGroup/FSStepsDataSet", "datatargets/timestamps")
#: Steps that h5lmt and counters need before the first one asked for.
_BEFORE = 2


class Matrices:
    """The matrices of an open file.

    Parameters
    ----------
    period : (float, float), or None
        Of which steps and few around them are seen, where that is less than all; half open, in seconds since 1970 UTC.
        Of a file without any step of it the first ones are seen.
    """

    def __init__(self, file: h5py.File, period: tuple[float, float] | None) -> None:
        self.file = file
        self._noted: dict[str, None] = {}
        self._left = most_bytes()
        self._stamps = next((path for path in _STAMPS if path in file), "")
        self._steps, self._bounds = 0, (0, 0)
        if period is not None and self._stamps and len(file[self._stamps].shape) == 1:
            self._cut(period)

    def _cut(self, period: tuple[float, float]) -> None:
        steps = self.file[self._stamps].shape[0]
        unit = math.lcm(*set(self._chunk_lengths(self.file, steps)))
        if unit >= steps:
            return
        stamps = np.asarray(self.file[self._stamps][()], dtype=np.float64)
        apart = np.diff(stamps[np.isfinite(stamps)])
        step = float(np.median(apart)) if len(apart) else 0.0
        if not step > 0:
            return
        base = np.nanmedian(np.where(np.isfinite(stamps), stamps - step * np.arange(steps), np.nan))
        if not np.isfinite(base):
            return
        first, last = ((bound - base) / step for bound in period)
        if last <= 0 or first >= steps:  # of another day: its begin shows that
            first, last = 0.0, 1.0
        low = max(0, math.floor(first) - _BEFORE) // unit * unit
        self._steps, self._bounds = steps, (low, min(steps, -(-(math.ceil(last) + _BEFORE) // unit) * unit))

    def _axis(self, data: h5py.Dataset) -> int:
        return len(data.shape) - 1 if self._stamps == _STAMPS[0] else 0

    def _chunk_lengths(self, group: h5py.Group, steps: int) -> Iterator[int]:
        """Yield how many steps the chunks of the matrices have."""
        for name in group:
            found = group[name]
            if not hasattr(found, "shape"):
                yield from self._chunk_lengths(found, steps)
            elif found.chunks and found.shape[self._axis(found)] == steps:
                yield found.chunks[self._axis(found)]

    def _seen(self, data: h5py.Dataset) -> tuple[slice, ...]:
        """Return the part of a dataset that is seen."""
        parts = [slice(0, size) for size in data.shape]
        if self._steps and parts and data.shape[self._axis(data)] == self._steps:
            parts[self._axis(data)] = slice(*self._bounds)
        return tuple(parts)

    def note(self, line: str) -> None:
        """Note a mistake of the file, if it is new."""
        self._noted[line] = None

    def noted(self) -> str:
        """Return the mistakes, and forget them."""
        found = "; ".join(self._noted)
        self._noted = {}
        return found

    def shape(self, data: h5py.Dataset) -> tuple[int, ...]:
        """Return the shape of the visible part of a dataset."""
        return tuple(part.stop - part.start for part in self._seen(data)) if data.shape else data.shape

    def _take(self, count: int) -> None:
        """Raise `MemoryError` if the file has more values than the limit of logs allows."""
        self._left -= 8 * count
        if self._left < 0:
            raise MemoryError(f"matrices of {limit_text(most_bytes())}")

    def read(self, data: h5py.Dataset) -> Numbers:
        """Return the visible part of a dataset, as stored."""
        self._take(math.prod(self.shape(data)))
        return np.asarray(data[self._seen(data)], dtype=np.float64)

    def values(self, data: h5py.Dataset, shape: tuple[int, int]) -> Numbers:
        """Return a matrix as float64, NaN for unreadable values.

        Raises
        ------
        LogError
            The matrix has another shape.
        """
        name = str(data.name).rsplit("/", 1)[-1]
        if self.shape(data) != shape:
            raise LogError(f"{name} is a matrix of {self.shape(data)}, and names and times ask for {shape}")
        self._take(math.prod(shape))
        seen = self._seen(data)
        steps: tuple[int, ...] = data.chunks or ()
        ranges = (range(part.start, part.stop, step) for part, step in zip(seen, steps, strict=False))
        wanted = list(itertools.product(*ranges)) if steps else []
        stored: set[tuple[int, ...]] | None = None
        try:
            if steps:
                stored = {tuple(data.id.get_chunk_info(k).chunk_offset) for k in range(data.id.get_num_chunks())}
            if stored is None or stored.issuperset(wanted):
                return _sound(data[seen].astype(np.float64))
        except DAMAGE as error:
            self.note(f"part of {name} cannot be read: {str(error)[:120]}")
        out = np.full(shape, np.nan)
        lost = 0
        for start in wanted:
            part = tuple(slice(at, min(at + step, one.stop)) for at, step, one in zip(start, steps, seen, strict=True))
            try:
                if stored is None or start in stored:
                    here = (
                        slice(cut.start - one.start, cut.stop - one.start) for cut, one in zip(part, seen, strict=True)
                    )
                    out[tuple(here)] = data[part]
                    continue
            except DAMAGE:
                pass
            lost += 1
        if lost:
            self.note(f"{lost:,} of {len(wanted):,} chunks of {name} are missing or damaged")
        return _sound(out)

    def steps(self, data: h5py.Dataset, step_s: int) -> tuple[Whole, Flags]:
        """Return the numbers of the steps (time / step) at the stamps, and which of the stamps are damaged.

        Raises
        ------
        LogError
            The stamps are not so many seconds apart.
        """
        shape = self.shape(data)
        if len(shape) != 1 or shape[0] > _MOST_TIMES:
            raise LogError(f"{shape} time stamps")
        stamps = self.read(data)
        if not len(stamps):
            raise LogError("no time stamps")
        grid = step_s * np.arange(len(stamps), dtype=np.float64)
        base = np.nanmedian(np.where(np.isfinite(stamps), stamps - grid, np.nan))
        odd = ~(np.abs(stamps - grid - base) < step_s / 10)
        if np.isnan(base) or np.count_nonzero(~odd) < _ON_GRID * len(stamps):
            apart = np.diff(stamps)
            first = int(np.argmax(~(np.abs(apart - step_s) < step_s / 10))) if len(apart) else 0
            step = (
                f"{apart[first]:g} s behind time stamp {first + 1:,}" if len(apart) else "a single one that is no time"
            )
            raise LogError(f"steps of other than {step_s} s, which do not fit beside others: {step} of {len(stamps):,}")
        if odd.any():
            first = int(np.argmax(odd))
            self.note(
                f"{np.count_nonzero(odd):,} of {len(stamps):,} time stamps are not on the grid of {step_s} s, the first"
                f" is number {first + 1:,} ({stamps[first]:.15g} for {base + grid[first]:.15g}): their steps are NULL"
            )
        return np.rint((base + grid) / step_s).astype(np.int64), odd

    def names(self, data: h5py.Dataset, attribute: str) -> list[str]:
        """Return the names of columns; duplicates are empty, since one of them is damaged."""
        found = [
            item.decode("utf-8", "backslashreplace")
            if isinstance(item, bytes)
            else str(item).encode("utf-8", "backslashreplace").decode()  # h5py makes surrogates of other bytes
            for item in data.attrs[attribute]
        ]
        twice = [name for name, count in collections.Counter(filter(None, found)).items() if count > 1]
        if twice:
            self.note(f"several columns are called {', '.join(twice)[:80]}, and are left out")
        return ["" if name in twice else name for name in found]

    def rows(self, data: h5py.Dataset, attribute: str, times: int) -> Columns:
        """Return the rows of h5lmt's (name, time), in their order; the name of one that is left out is empty."""
        names = self.names(data, attribute)
        return list(zip(names, self.values(data, (len(names), times)), strict=True))

    def columns(self, data: h5py.Dataset, odd: Flags, scale: float = 1.0) -> Columns:
        """Return the columns of pytokio's (time, name), NaN if a value is lost; `odd`: damaged stamps."""
        names = self.names(data, "columns")
        shape = self.shape(data)  # more columns than names: some wait for one
        width = shape[1] if len(shape) == 2 and len(names) <= shape[1] <= _MOST_COLUMNS else len(names)
        values = self.values(data, (len(odd), width)) * scale
        values[odd] = np.nan
        values[(values == 0) & np.signbit(values)] = np.nan  # how pytokio marks what was lost
        return [(name, values[:, at]) for at, name in enumerate(names) if name]


@contextlib.contextmanager
def open_matrices(path: Path, period: tuple[float, float] | None) -> Iterator[Matrices]:
    """Open the matrices of a file, or of a period of it; h5py raises `DAMAGE` and MemoryError."""
    with needing("hdf5", "an HDF5 file"):
        import h5py

    with h5py.File(path, "r") as file:
        yield Matrices(file, period)


def _sound(values: Numbers) -> Numbers:
    """Return values with NaN for those that no server can have counted."""
    values[~np.isfinite(values) | (values < 0)] = np.nan
    return values
