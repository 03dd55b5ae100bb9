"""A workload path of PIONEER: any number of ranks carry out the I/O of a traced program.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation". The
command ``mpiio-ext pioneer path`` writes the path as a file (`mpiio_ext.pioneer.path.WorkloadPath`). The user names
the file with the kernel: ``--kernel pioneer:FILE``.

In the one phase, `mpiio_ext.pioneer.engine` carries out the path: MPI-IO, POSIX and stdio calls in the path's order,
including views and nonblocking calls. `time_scale` multiplies the slack times. The engine leaves out calls on names
(creating and listing folders, renaming), so that no method finds files that another method has left.
Each rank's plan has the bytes that the rank writes into each file. The bench compares these bytes between the methods.
It does not compare bytes that no rank writes, since MPI leaves them undefined, nor bytes to which two ranks write
different values.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mpiio_ext.bench.kernels.layout import FileLayout, Variable
from mpiio_ext.bench.kernels.program import Access, Kernel, Phase, Step
from mpiio_ext.bench.kernels.shapes import Bytes, Mask
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self

    from mpiio_ext.pioneer.engine import Plan
    from mpiio_ext.pioneer.path import WorkloadPath

_ARRAY = "data"
_LONGEST_NAME = 100
#: Period of the engine's data in bytes.
PATTERN = 251


def file_name(name: str) -> str:
    """Return the name of a path's file in the bench's folder, where all files lie side by side."""
    plain = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
    return f"{plain[-_LONGEST_NAME:]}-{zlib.crc32(name.encode()):08x}"


class _Flat:
    """Places of files, as `mpiio_ext.pioneer.engine.Places`: each file has one name in one folder."""

    def __init__(self, folder: Path, ending: str) -> None:
        self._folder, self._ending = folder, ending

    def of(self, name: str) -> Path:
        return self._folder / (file_name(name) + self._ending)


@functools.lru_cache(maxsize=8)
def _path_of(name: str) -> WorkloadPath:
    try:
        from mpiio_ext.pioneer.engine import without_names
        from mpiio_ext.pioneer.path import WorkloadPath

        return without_names(WorkloadPath.load(Path(name)))
    except (OSError, ValueError, ImportError) as error:
        raise ArgumentError(f"pioneer: {error}") from error


@functools.lru_cache(maxsize=1024)
def _plan_of(name: str, rank: int, ranks: int, folder: Path, ending: str) -> Plan:
    from mpiio_ext.pioneer.engine import make_plan

    return make_plan(_path_of(name), rank, ranks, _Flat(folder, ending))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """Rows of a plan that read data, and rows that write data."""

    reads: NDArray[np.bool_]
    writes: NDArray[np.bool_]


def _moved_of(plan: Plan) -> _Moved:
    from mpiio_ext.pioneer.engine.plan import reading_numbers, writing_numbers

    return _Moved(reads=np.isin(plan.operation, reading_numbers()), writes=np.isin(plan.operation, writing_numbers()))


@functools.lru_cache(maxsize=8)
def _extents(name: str, ranks: int) -> tuple[tuple[str, int], ...]:
    """Return (file, bytes) of every file that the ranks write or read, in the order of the ranks."""
    found: dict[str, int] = {}
    for rank in range(ranks):
        plan = _plan_of(name, rank, ranks, Path("/"), "")
        moved = _moved_of(plan)
        for row in np.flatnonzero((moved.reads | moved.writes) & (plan.file >= 0)):
            file = Path(plan.paths[plan.file[row]]).name
            end = int(plan.end[row]) if plan.end[row] >= 0 else int(plan.size[row])
            found[file] = max(found.get(file, 0), end)
    return tuple(found.items())


def _pieces(plan: Plan, row: int) -> Iterator[tuple[int, int, int]]:
    """Yield (offset in the file, length, base from which the bytes are counted) of a write with a known offset."""
    begin, size, through = int(plan.stream[row]), int(plan.size[row]), int(plan.through[row])
    if through < 0:
        yield begin, size, int(plan.place[row])
        return
    place = int(plan.place[row])
    for at, length in zip(*plan.in_force[through].pieces(begin, begin + size), strict=True):
        yield int(at), int(length), place
        place += int(length)


def _values_of(plan: Plan, file: str, size: int) -> Bytes | None:
    """Return the bytes that a rank writes into a file, 0 elsewhere; None if the path lacks the offset of a write."""
    values = np.zeros(size, np.uint8)
    mine = [number for number, path in enumerate(plan.paths) if Path(path).name == file]
    for row in np.flatnonzero(_moved_of(plan).writes & np.isin(plan.file, mine)):
        if plan.stream[row] < 0:
            return None
        for at, length, place in _pieces(plan, int(row)):
            values[at : at + length] = (place + np.arange(length)) % PATTERN + 1
    return values


@functools.lru_cache(maxsize=64)
def _written_of(name: str, ranks: int, file: str, size: int) -> Mask | None:
    """Return a mask of the bytes that are the same in any order of the writes; None if the path lacks an offset.

    The mask has the bytes that a rank writes, without those to which several ranks write different values.
    """
    whole, undecided = np.zeros(size, np.uint8), np.zeros(size, bool)
    for rank in range(ranks):
        values = _values_of(_plan_of(name, rank, ranks, Path("/"), ""), file, size)
        if values is None:
            return None
        undecided |= (whole > 0) & (values > 0) & (whole != values)
        whole = np.where(values > 0, values, whole)
    return (whole > 0) & ~undecided


@dataclass(frozen=True, slots=True, kw_only=True)
class Pioneer(Kernel):
    """A workload path.

    Attributes
    ----------
    path : the file
    time_scale : slack times are multiplied by it; 0: as fast as can be
    """

    name: ClassVar[str] = "pioneer"
    title: ClassVar[str] = "workload path"
    noncontiguous: ClassVar[bool] = False
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio",)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quick": {}, "laptop": {}, "published": {}}
    by_engine: ClassVar[bool] = True

    path: str = ""
    time_scale: float = 0.0

    @property
    def label(self) -> str:  # noqa: D102
        return f"{self.title} {Path(self.path).name}"

    @property
    def key(self) -> str:  # noqa: D102
        return f"{self.name}-{Path(self.path).stem}"

    @property
    def note(self) -> str:  # noqa: D102
        plan = _plan_of(self.path, 0, self.ranks, Path("/"), "")
        left = ", ".join(f"{count} x {name}" for name, count in sorted(plan.unknown.items()))
        return f"{self.label}: left out by rank 0: {left}" if left else ""

    def check(self) -> None:  # noqa: D102
        if not self.path:
            raise ArgumentError(f"{self.name}: name the workload path: --kernel {self.name}:FILE")
        if self.time_scale < 0:
            raise ArgumentError(f"{self.name}: time_scale must not be below 0, it is {self.time_scale}")
        try:
            extents = _extents(self.path, self.ranks)
        except ValueError as error:
            raise ArgumentError(f"{self.name}: {self.path}: {error}") from error
        if not extents:
            raise ArgumentError(f"{self.name}: {self.path}: no operation of this path moves data of an open file")

    def scaling(self, factor: float) -> dict[str, Any]:
        """Refuse: the volume is the path's."""
        raise ArgumentError(f"{self.name}: the volume is that of the path, which --scale {factor:g} cannot change")

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        return tuple(
            FileLayout(name=file, variables=(Variable(name=_ARRAY, dtype="|u1", shape=(size,)),))
            for file, size in _extents(self.path, self.ranks)
        )

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        moved = [_moved_of(self.plan(rank, Path("/"), "")) for rank in range(self.ranks)]
        reads, writes = any(item.reads.any() for item in moved), any(item.writes.any() for item in moved)
        return (Phase(name="replay", operation="both" if reads and writes else "read" if reads else "write"),)

    def plan(self, rank: int, folder: Path, ending: str) -> Plan:
        """Return the steps of a rank; files are in `folder`, with `ending` behind their names."""
        return _plan_of(self.path, rank, self.ranks, folder, ending)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:
        """Yield the accesses of a rank, to count them; the engine makes them, in its own order and way."""
        del phase, interface
        plan, numbers = self.plan(rank, Path("/"), ""), {layout.name: at for at, layout in enumerate(self.files())}
        moved = _moved_of(plan)
        for row in np.flatnonzero((moved.reads | moved.writes) & (plan.file >= 0)):
            slabs = (((max(0, int(plan.stream[row])),), (int(plan.size[row]),)),)
            yield Access(
                file=numbers[Path(plan.paths[plan.file[row]]).name],
                variable=_ARRAY,
                write=bool(moved.writes[row]),
                slabs=slabs,
                collective=False,
            )

    def versions(self, phase: str, interface: str) -> dict[tuple[int, str], int]:
        """Return no content: the engine writes its own bytes, which are compared between methods."""
        del phase, interface
        return {}

    def written(self, file: int, variable: str, begin: int, end: int) -> Mask | None:  # noqa: D102
        del variable
        name, size = _extents(self.path, self.ranks)[file]
        mask = _written_of(self.path, self.ranks, name, size)
        return None if mask is None else mask[begin:end]

    def replace(self, **changes: Any) -> Self:  # noqa: D102
        return dataclasses.replace(self, **changes)
