"""The accesses: files, phases, and in each phase the steps of one rank.

A `Program` has its sizes fixed, for a fixed number of ranks. A program is only a description: the files and arrays
(`files`), the phases that are timed (`phases`), and the steps of a rank in a phase (`steps`). The same description is
played through every interface, verified and counted by `mpiio_ext.bench.execution`. A `Kernel` is the I/O of an
application; a pattern (`mpiio_ext.bench.kernels.pattern`) is a program of one array.

Rules that the unit tests check by brute force: in a phase, the ranks that share a file have the same sequence of opens,
collective accesses, waits, syncs and closes of it. Every element of every array (of a pattern: those that `written`
names) is written at least once over all phases, by one rank per version. A phase that writes an array writes all of it.
A read names the version that was written last.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mpiio_ext.bench.kernels.layout import FileLayout, Slab, Variable, slab_pieces
from mpiio_ext.bench.kernels.shapes import Mask, Offsets
from mpiio_ext.bench.kernels.views import Call, Plan
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from typing_extensions import Self

_Index = tuple[int, ...]

#: (sizes, starts), in elements: an array in memory in which a slab is a rectangular part, e.g. inside its guard cells.
#: The part has the slab's extents, to which leading ones come and go; (sizes, starts, counts) names any others that
#: hold as many elements, e.g. one of the variables of every cell.
Box = tuple[_Index, _Index] | tuple[_Index, _Index, _Index]


def box_part(box: Box, count: _Index) -> tuple[_Index, _Index, _Index]:
    """Return (sizes, starts, counts) of the part of an array in memory that contains a slab of `count` elements.

    Raises
    ------
    ValueError
        Slab and part differ in their number of elements.
    """
    sizes, starts = box[0], box[1]
    if len(box) == 3:
        counts = box[2]
    else:
        counts = (1,) * (len(sizes) - len(count)) + count[max(0, len(count) - len(sizes)) :]
    if math.prod(counts) != math.prod(count):
        raise ValueError(f"a slab of {count} elements does not fit a part of {counts} in an array of {sizes}")
    return sizes, starts, counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Open file number `file`; collective over the ranks that share it.

    `mode`: "create" (a new file to write and read), "write" (a new file to write only), "read" or "update".
    """

    file: int
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Write or read parts of one array.

    Attributes
    ----------
    file, variable : which array
    write : direction
    slabs : disjoint parts of the array, in the order of the data in memory and of the array (all of one lies before
        all of the next, as HDF5 wants it); empty = nothing, but takes part
    boxes : for each slab the array in memory that it is a part of, one array behind the other; None = memory holds
        the slabs' elements and nothing else
    collective : all ranks that share the file call together
    alike : not collective, but every rank that shares the file makes it at the same place of its sequence: before it
        the ranks may do together what an independent access needs, such as setting a file view
    nonblocking : begun here, completed by `Wait`
    version : which writing of this array's elements: 0 the first, 1 the next over it, …
    memory : writes of a phase that name the same memory have one array between them, each in parts of its own;
        "" = an array of its own
    view, call : of a pattern: the same bytes in the file and their places in memory as datatypes, which MPI-IO takes in
        place of slabs and boxes
    """

    file: int
    variable: str
    write: bool
    slabs: tuple[Slab, ...]
    boxes: tuple[Box, ...] | None = None
    collective: bool = True
    alike: bool = False
    nonblocking: bool = False
    version: int = 0
    memory: str = ""
    view: Plan | None = None
    call: Call | None = None

    @property
    def elements(self) -> int:
        """Elements in all slabs."""
        return sum(math.prod(count) for _, count in self.slabs)

    @property
    def memory_elements(self) -> int:
        """Elements of the memory that the slabs are in, guard cells included."""
        if self.boxes is None:
            return self.elements
        return sum(math.prod(box[0]) for box in self.boxes)

    def data_bytes(self, variable: Variable) -> int:
        """Return the bytes moved of the array `variable`."""
        return self.call.memory.size_bytes if self.call is not None else self.elements * variable.item_bytes

    def memory_bytes(self, variable: Variable) -> int:
        """Return the bytes of the memory, guard cells included."""
        return self.call.memory.extent_bytes if self.call is not None else self.memory_elements * variable.item_bytes

    def pieces(self, variable: Variable) -> tuple[Offsets, Offsets]:
        """Return (offsets, lengths) in bytes in the array, shape (pieces,), in the order of the data."""
        if self.view is not None and self.call is not None:
            return self.view.file_pieces(self.call)
        return slab_pieces(variable.shape, self.slabs, variable.item_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Complete every nonblocking access of a file; collective where those were."""

    file: int
    collective: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """Flush a file (MPI_File_sync, H5Fflush, ncmpi_sync, fsync); collective over the ranks that share it."""

    file: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """All ranks wait for each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Close a file; collective over the ranks that share it."""

    file: int


Step = Open | Access | Wait | Sync | Barrier | Close


def made_independent(step: Step) -> Step:
    """Return the step as each rank would make it by itself: collective accesses and waits become independent ones."""
    if isinstance(step, Access) and step.collective:
        return dataclasses.replace(step, collective=False, alike=True)
    if isinstance(step, Wait):
        return dataclasses.replace(step, collective=False)
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A timed part of the run, between two barriers.

    Attributes
    ----------
    name : in the application's terms, e.g. "S" of MADBench2
    operation : "write", "read", or "both"
    contiguous : every access is one piece, although the program's others are not
    parts : it is one open, accesses, one close, and opening, the view, the data and closing are timed each by itself,
        between barriers
    """

    name: str
    operation: str
    contiguous: bool = False
    parts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(ABC):
    """The accesses. Subclasses are frozen dataclasses whose fields are the geometry or the parameters.

    Attributes
    ----------
    ranks : that are there; `active` says how many take part
    """

    #: "pattern" or "kernel", as in the results.
    kind: ClassVar[str]
    name: ClassVar[str]
    title: ClassVar[str]
    #: Accesses are noncontiguous in file or memory, so that collective buffering has work to do.
    noncontiguous: ClassVar[bool]
    #: Names of the interfaces in which it exists, the original's first.
    interfaces: ClassVar[tuple[str, ...]]
    #: The engine of PIONEER carries it out; its steps only say what it moves.
    by_engine: ClassVar[bool] = False

    ranks: int

    @property
    def label(self) -> str:
        """Name of this variant for people."""
        return self.title

    @property
    def key(self) -> str:
        """Name of this variant, fit for a file name."""
        return self.name

    @property
    def active(self) -> int:
        """How many ranks take part: the first ones."""
        return self.ranks

    @property
    def note(self) -> str:
        """One line on anything unusual, e.g. idle ranks; else empty."""
        return ""

    @abstractmethod
    def files(self) -> tuple[FileLayout, ...]:
        """Return every file, in the order of the numbers that steps use."""

    @abstractmethod
    def phases(self) -> tuple[Phase, ...]:
        """Return the timed phases in order."""

    @abstractmethod
    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:
        """Yield the steps of `rank` in a phase. `interface`: the original may differ between its variants."""

    def written(self, file: int, variable: str, begin: int, end: int) -> Mask | None:
        """Return a mask of the written bytes [begin, end) of an array, shape (end - begin,); None: all are written."""
        del file, variable, begin, end
        return None

    def versions(self, phase: str, interface: str) -> dict[tuple[int, str], int]:
        """Return the arrays that a phase writes: (file, name) -> version that is there at its end."""
        versions: dict[tuple[int, str], int] = {}
        for rank in range(self.active):
            for step in self.steps(phase, rank, interface):
                if isinstance(step, Access) and step.write:
                    place = (step.file, step.variable)
                    versions[place] = max(step.version, versions.get(place, 0))
        return versions

    def data_bytes(self, phase: str, interface: str) -> int:
        """Return the bytes that all ranks move in a phase."""
        files = self.files()
        return sum(
            step.data_bytes(files[step.file].variable(step.variable))
            for rank in range(self.active)
            for step in self.steps(phase, rank, interface)
            if isinstance(step, Access)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Program):
    """The I/O of one application; the fields, which have defaults, are its parameters."""

    kind: ClassVar[str] = "kernel"
    #: Name -> parameters: "quick" (a few MB in all on 4 ranks), "laptop" (some 100 MB), "published", and own classes.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]

    @classmethod
    def create(cls, ranks: int, parameters: Mapping[str, Any] | None = None, *, scale: float = 1.0) -> Self:
        """Return the kernel with these parameters, its volume multiplied by `scale`.

        Raises
        ------
        ArgumentError
            A parameter is unknown or does not fit the others or the number of ranks.
        """
        known = {field.name for field in dataclasses.fields(cls)} - {"ranks"}
        unknown = sorted(set(parameters or {}) - known)
        if unknown:
            raise ArgumentError(f"{cls.name}: unknown parameter '{unknown[0]}' (known: {', '.join(sorted(known))})")
        try:
            kernel = cls(ranks=ranks, **(parameters or {}))
            if scale != 1.0:
                kernel = kernel.scaled(scale)
            kernel.check()
        except (TypeError, ArithmeticError) as error:
            raise ArgumentError(f"{cls.name}: {error}") from error
        return kernel

    def traits(self) -> list[str]:
        """Return words that separate this variant from others: parts of its label, and without blanks of its key."""
        return []

    @property
    def label(self) -> str:  # noqa: D102
        return ", ".join([self.title, *self.traits()])

    @property
    def key(self) -> str:  # noqa: D102
        return "-".join([self.name, *(word.replace(" ", "") for word in self.traits())])

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return (Phase(name="write", operation="write"), Phase(name="read", operation="read"))

    def check(self) -> None:
        """Raise ArgumentError, naming the parameter, when the parameters make no sense."""

    def check_least(self, least: int, *names: str) -> None:
        """Raise ArgumentError if one of these parameters is smaller."""
        for name in names:
            if getattr(self, name) < least:
                raise ArgumentError(f"{self.name}: {name} must be at least {least}, not {getattr(self, name)}")

    def scaled(self, factor: float) -> Self:
        """Return the kernel with about `factor` times the bytes per rank, at least what its structure needs."""
        return self.replace(**self.scaling(factor))

    @abstractmethod
    def scaling(self, factor: float) -> dict[str, Any]:
        """Return the parameters that differ in `scaled`."""

    def replace(self, **changes: Any) -> Self:
        """Return the kernel with other parameters."""
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquareKernel(Kernel):
    """A kernel in which the largest square number of ranks takes part."""

    #: How a note on idle ranks begins.
    needs: ClassVar[str]

    @property
    def side(self) -> int:
        """Ranks a side of the square."""
        return math.isqrt(self.ranks)

    @property
    def active(self) -> int:  # noqa: D102
        return self.side**2

    @property
    def note(self) -> str:  # noqa: D102
        return "" if self.active == self.ranks else f"{self.needs}: {self.active} of {self.ranks} take part"
