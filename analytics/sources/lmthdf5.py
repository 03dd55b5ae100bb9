"""LMT's records in HDF5, of both forms, whole or damaged, to the steps of each OST.

Problem. h5lmt holds rates of the interval that *ends* at a stamp, as (OST, time); TOKIO's HDF5 bytes of the interval
that *begins* at it, as (time, OST). A file that a disk or a copy has damaged still opens. HDF5 gives 0 for a chunk that
its index does not lead to, which is a value like any other. It refuses a whole matrix for one chunk that it cannot
inflate.

Algorithm. The chunks that the index names are compared with those that the shape asks for; a matrix with all of them is
read at once, any other chunk by chunk. What is not there or cannot be read is NaN. Stamps are a grid of 5 s: where nine
of ten agree on one, the others are damaged, and their steps are NaN.

Guarantees. A value is one that the file has; the returned problem says what is missing, and why.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mpiio_ext.analytics.sources.lmtcut import cut
from mpiio_ext.analytics.sources.lmtsteps import STEP_S, LmtError, Steps
from mpiio_ext.analytics.tables.arrays import Flags, Numbers, Whole

if TYPE_CHECKING:
    import h5py

#: A matrix of a year of 5-s steps has fewer times; a damaged shape more.
_MOST_TIMES, _MOST_COLUMNS = 10_000_000, 65_536
#: Share of the stamps that must be on one grid.
_ON_GRID = 0.9
#: What h5py raises for damaged files.
DAMAGE = (OSError, AttributeError, KeyError, ValueError, IndexError, TypeError, RuntimeError, OverflowError)


class Hdf5Problems:
    """What is wrong with a file, each once."""

    def __init__(self) -> None:
        self.lines: dict[str, None] = {}

    def add(self, line: str) -> None:
        """Note a problem; one that is known already is not noted again."""
        self.lines[line] = None

    def __str__(self) -> str:
        return "; ".join(self.lines)


# ---- values ----------------------------------------------------------------------------------------------------------


def _chunks(data: h5py.Dataset) -> Iterator[tuple[int, ...]]:
    """Yield where the chunks of a matrix begin."""
    return itertools.product(*(range(0, size, step) for size, step in zip(data.shape, data.chunks, strict=True)))


def _stored(data: h5py.Dataset) -> set[tuple[int, ...]]:
    """Return where the chunks begin that the index of a matrix leads to, off the grid too."""
    number = data.id.get_num_chunks()
    return {tuple(data.id.get_chunk_info(index).chunk_offset) for index in range(number)}


def matrix_values(data: h5py.Dataset, shape: tuple[int, int], problems: Hdf5Problems) -> Numbers:
    """Return a matrix as float64, NaN where it cannot be read."""
    name = str(data.name).rsplit("/", 1)[-1]
    if data.shape != shape:
        raise LmtError(f"{name} is a matrix of {data.shape}, and names and times ask for {shape}")
    wanted = list(_chunks(data)) if data.chunks else []
    stored: set[tuple[int, ...]] | None = None
    try:
        stored = _stored(data) if data.chunks else None
        if stored is None or stored.issuperset(wanted):
            return _sound(data[()].astype(np.float64))
    except DAMAGE as error:
        problems.add(f"part of {name} cannot be read: {str(error)[:120]}")
    out = np.full(shape, np.nan)
    lost = 0
    for start in wanted:
        part = tuple(slice(at, at + step) for at, step in zip(start, data.chunks, strict=True))
        try:
            if stored is None or start in stored:
                out[part] = data[part]
                continue
        except DAMAGE:
            pass
        lost += 1
    if lost:
        problems.add(f"{lost:,} of {len(wanted):,} chunks of {name} are missing or damaged")
    return _sound(out)


def _sound(values: Numbers) -> Numbers:
    """Return values with NaN for those that no server can have counted."""
    values[~np.isfinite(values) | (values < 0)] = np.nan
    return values


def column_names(dataset: h5py.Dataset, attribute: str, problems: Hdf5Problems) -> list[str]:
    """Return the names of OSTs; those that stand there twice are empty, since one of them is damaged."""
    found = [
        item.decode("utf-8", "backslashreplace")
        if isinstance(item, bytes)
        else str(item).encode("utf-8", "backslashreplace").decode()  # h5py makes surrogates of bytes that are no UTF-8
        for item in dataset.attrs[attribute]
    ]
    twice = [name for name, count in collections.Counter(filter(None, found)).items() if count > 1]
    if twice:
        problems.add(f"several columns are called {', '.join(twice)[:80]}, and are left out")
    return ["" if name in twice else name for name in found]


def step_places(data: h5py.Dataset, problems: Hdf5Problems) -> tuple[Whole, Flags]:
    """Return the numbers of the steps at the stamps of a file, and which of the stamps are damaged.

    Raises
    ------
    LmtError
        The stamps are not 5 s apart.
    """
    if len(data.shape) != 1 or data.shape[0] > _MOST_TIMES:
        raise LmtError(f"{data.shape} time stamps")
    stamps = np.asarray(data[()], dtype=np.float64)
    if not len(stamps):
        raise LmtError("no time stamps")
    grid = STEP_S * np.arange(len(stamps), dtype=np.float64)
    base = np.nanmedian(np.where(np.isfinite(stamps), stamps - grid, np.nan))
    odd = ~(np.abs(stamps - grid - base) < STEP_S / 10)
    if np.isnan(base) or np.count_nonzero(~odd) < _ON_GRID * len(stamps):
        steps = np.diff(stamps)
        first = int(np.argmax(~(np.abs(steps - STEP_S) < STEP_S / 10))) if len(steps) else 0
        step = f"{steps[first]:g} s behind time stamp {first + 1:,}" if len(steps) else "a single one that is no time"
        raise LmtError(f"steps of other than {STEP_S} s, which do not fit beside others: {step} of {len(stamps):,}")
    if odd.any():
        first = int(np.argmax(odd))
        problems.add(
            f"{np.count_nonzero(odd):,} of {len(stamps):,} time stamps are not on the grid of {STEP_S} s, the first is"
            f" number {first + 1:,} ({stamps[first]:.15g} for {base + grid[first]:.15g}): their steps are NULL"
        )
    return np.rint((base + grid) / STEP_S).astype(np.int64), odd


# ---- forms -----------------------------------------------------------------------------------------------------------


def _missing(file: h5py.File, shape: tuple[int, int], problems: Hdf5Problems) -> Flags:
    """Return which values h5lmt says are lost; all of those of which it cannot be read whether they are."""
    if "FSMissingGroup" not in file:
        return np.zeros(shape, dtype=bool)
    marks = matrix_values(file["FSMissingGroup/FSMissingDataSet"], shape, problems)
    lost: Flags = np.isnan(marks) | (marks != 0)
    return lost


def _h5lmt(file: h5py.File, problems: Hdf5Problems) -> list[Steps]:
    """Read h5lmt: (OST, time) rates of the interval that ends at the stamp; the first column has no interval."""
    places, odd = step_places(file["FSStepsGroup/FSStepsDataSet"], problems)
    found: dict[str, tuple[list[str], Numbers]] = {}
    for key, path in (("read", "OSTReadGroup/OSTBulkReadDataSet"), ("written", "OSTWriteGroup/OSTBulkWriteDataSet")):
        try:
            columns = column_names(file[path], "OSTNames", problems)
            found[key] = columns, matrix_values(file[path], (len(columns), len(places)), problems)
        except DAMAGE as error:
            problems.add(f"{path} cannot be read: {str(error)[:120]}")
    if not found:
        raise LmtError(str(problems))
    names = next(iter(found.values()))[0]
    gone, nothing = _missing(file, (len(names), len(places)), problems) | odd, np.full(len(places), np.nan)
    parts = []
    for number, name in enumerate(names):
        row = {}
        for key in ("read", "written"):
            columns, data = found.get(key, ([], nothing))
            values = data[columns.index(name)] * STEP_S if name in columns else nothing
            row[key] = np.where(gone[number], np.nan, values)[1:]
        parts.append(Steps(name, places[1:] - 1, row["read"], row["written"]))
    return [part for part in parts if part.name]


def tokio_columns(
    group: h5py.Group, name: str, odd: Flags, problems: Hdf5Problems, scale: float = 1.0
) -> tuple[list[str], Numbers]:
    """Return the names and values of a dataset of TOKIO's HDF5: (time, column), NaN where a value is lost."""
    names = column_names(group[name], "columns", problems)
    values = matrix_values(group[name], (len(odd), _width(group[name], names)), problems) * scale
    values[odd] = np.nan
    values[(values == 0) & np.signbit(values)] = np.nan  # how TOKIO marks what was lost
    return names, values


def _matrix(group: h5py.Group, direction: str) -> tuple[str, float] | None:
    for name, scale in ((f"{direction}bytes", 1.0), (f"{direction}rates", float(STEP_S))):
        if name in group:
            return name, scale
    return None


def _width(data: h5py.Dataset, columns: list[str]) -> int:
    """Return how many columns a matrix may have: those with names, and some that wait for one."""
    return data.shape[1] if len(data.shape) == 2 and len(columns) <= data.shape[1] <= _MOST_COLUMNS else len(columns)


def _tokio(file: h5py.File, problems: Hdf5Problems) -> list[Steps]:
    """Read TOKIO's HDF5: (time, OST) bytes of the interval that begins at the stamp (rates: bytes a second)."""
    group = file["datatargets"]
    places, odd = step_places(group["timestamps"], problems)
    found: dict[str, tuple[list[str], Numbers]] = {}
    for direction in ("read", "write"):
        named = _matrix(group, direction)
        if named is None:
            continue
        try:
            found[direction] = tokio_columns(group, named[0], odd, problems, named[1])
        except DAMAGE as error:
            problems.add(f"{named[0]} cannot be read: {str(error)[:120]}")
    if not found:
        raise LmtError(str(problems) or "HDF5 without readbytes, readrates, writebytes or writerates of data targets")
    nothing = np.full(len(places), np.nan)
    parts = []
    for name in dict.fromkeys(itertools.chain.from_iterable(columns for columns, _ in found.values())):
        values = []
        for direction in ("read", "write"):
            columns, data = found.get(direction, ([], nothing))
            values.append(data[:, columns.index(name)] if name in columns else nothing)
        parts.append(Steps(name, places, *values))
    return [part for part in parts if part.name]


def read_hdf5(path: Path, between: tuple[float, float] | None = None) -> tuple[list[Steps], str]:
    """Read a file of either form.

    Parameters
    ----------
    path : Path
    between : (float, float), optional
        Read the steps of this half-open period only (s since 1970 UTC), and some around it.

    Returns
    -------
    parts : list of Steps
        One of each OST.
    problem : str
        What could not be read, and why; empty where everything could.

    Raises
    ------
    LmtError
        It is neither, or nothing of it can be read.
    """
    import h5py

    problems = Hdf5Problems()
    try:
        with h5py.File(path, "r") as opened:
            file = cut(opened, between)
            if "OSTReadGroup" in file or "OSTWriteGroup" in file:
                return _h5lmt(file, problems), str(problems)
            if "datatargets" in file:
                return _tokio(file, problems), str(problems)
            raise LmtError("HDF5, but neither h5lmt nor TOKIO's: it has neither OSTReadGroup nor datatargets")
    except (*DAMAGE, MemoryError) as error:
        raise LmtError(f"HDF5 that cannot be read: {error}") from error
