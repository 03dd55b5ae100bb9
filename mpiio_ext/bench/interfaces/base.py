"""Interfaces: files that are opened, defined, accessed, waited for, synced and closed.

An `Interface` is one of POSIX, MPI-IO, HDF5, PnetCDF, netCDF-4. The player calls its files on every rank in the order
of the program's steps. Its `Reader` reads a finished file by other means than the interface under test, for
verification.
"""

from __future__ import annotations

import filecmp
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mpiio_ext.bench.kernels.layout import FileLayout, Variable
from mpiio_ext.bench.kernels.program import Access, Open
from mpiio_ext.bench.kernels.shapes import Bytes

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Where:
    """The things that an open needs.

    Attributes
    ----------
    comm : mpi4py communicator of the ranks that share the file
    path : the file
    layout : what it holds
    mode : of `Open`
    hints : for MPI_Info, name -> value
    independent : no access will be collective
    """

    comm: MPI.Intracomm
    path: Path
    layout: FileLayout
    mode: str
    hints: dict[str, str]
    independent: bool = False

    @property
    def new(self) -> bool:
        """The file is to be made."""
        return self.mode in ("create", "write")


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """An access with its memory: the interface reads from `memory` or fills it, and uses it until a wait is done.

    Attributes
    ----------
    access, variable : what is done, to which array
    memory : the bytes
    shared : other ranks have the file open too
    arranged : what the interface has decided in `Interface.arrange`
    """

    access: Access
    variable: Variable
    memory: Bytes
    shared: bool = True
    arranged: Any = None


class OpenFile(ABC):
    """One open file on one rank. A step decides whether a method is collective."""

    def __init__(self, where: Where) -> None:
        self.where = where

    def build(self, requests: Sequence[Request]) -> None:
        """Make, before the clock of a phase in parts starts, the objects of its accesses, such as datatypes; local."""
        del requests

    @abstractmethod
    def open(self) -> None:
        """Open the file; collective over `where.comm`."""

    @abstractmethod
    def define(self) -> None:
        """Make the arrays of a new file, or find those of an existing one; collective over `where.comm`."""

    def select(self, requests: Sequence[Request]) -> None:
        """Set the view of the accesses of a phase in parts, or make their selections; collective over `where.comm`."""
        del requests

    @abstractmethod
    def access(self, request: Request) -> None:
        """Carry out an access, or begin it."""

    def access_all(self, requests: Sequence[Request]) -> None:
        """Carry out the accesses of a phase in parts; the first error is raised behind the last access."""
        first: Exception | None = None
        for request in requests:
            try:
                self.access(request)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def wait(self, *, collective: bool) -> None:
        """Complete the accesses that were begun; do nothing in an interface without nonblocking accesses."""
        del collective

    def statistics(self) -> dict[str, Any] | None:
        """Return the extension's counters of this rank for this open file, None if only the process's are known."""
        return None

    @abstractmethod
    def sync(self) -> None:
        """Flush; collective over `where.comm`."""

    @abstractmethod
    def close(self) -> None:
        """Close; collective over `where.comm`; harmless if `open` failed."""


class Reader(ABC):
    """A finished file, read alone by one rank."""

    @abstractmethod
    def read(self, variable: Variable, begin: int, end: int) -> Bytes:
        """Return bytes [begin, end) of an array, little-endian; fewer when the file ends before."""

    def wrong_size(self) -> str | None:
        """Return that the file is not as large as it must be, in words, or None."""
        return None

    def foreign(self) -> str | None:
        """Describe bytes of the file beside its arrays that no rank wrote; return None if there are none."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class RawReader(Reader):
    """Arrays at known offsets, read with plain reads.

    Parameters
    ----------
    path : the file
    offsets : array's name -> offset in bytes
    big_endian : items are stored that way
    layout : given for files that hold nothing but these arrays, whose size and gaps are then judged too
    """

    def __init__(
        self, path: Path, offsets: dict[str, int], *, big_endian: bool = False, layout: FileLayout | None = None
    ) -> None:
        self._file = path.open("rb")
        self._path, self._offsets, self._big_endian, self._layout = path, offsets, big_endian, layout

    def read(self, variable: Variable, begin: int, end: int) -> Bytes:  # noqa: D102
        item = variable.item_bytes
        first, last = begin // item * item, -(-end // item) * item
        self._file.seek(self._offsets[variable.name] + first)
        content = np.frombuffer(self._file.read(last - first), np.uint8)
        if self._big_endian and item > 1:
            content = content[: content.size // item * item].reshape(-1, item)[:, ::-1].reshape(-1)
        return content[begin - first : end - first]

    def wrong_size(self) -> str | None:  # noqa: D102
        size = self._path.stat().st_size
        if self._layout is None or size == self._layout.end_bytes:
            return None
        return f"a file of {size} bytes in place of {self._layout.end_bytes}"

    def foreign(self) -> str | None:  # noqa: D102
        if self._layout is None:
            return None
        wrong_size = self.wrong_size()
        if wrong_size is not None:
            return wrong_size
        position = 0
        for variable in sorted(self._layout.variables, key=lambda v: v.offset_bytes):
            self._file.seek(position)
            gap = np.frombuffer(self._file.read(variable.offset_bytes - position), np.uint8)
            if gap.any():
                i = int(np.flatnonzero(gap)[0])
                return f"0x{gap[i]:02x} at byte {position + i}, which no rank writes"
            position = variable.offset_bytes + variable.size_bytes
        return None

    def close(self) -> None:  # noqa: D102
        self._file.close()


class Interface(ABC):
    """A way to files."""

    name: ClassVar[str]
    title: ClassVar[str]
    suffix: ClassVar[str]
    #: Goes through MPI-IO, so that hints and the extension mean something.
    through_mpi: ClassVar[bool] = True
    file: ClassVar[type[OpenFile]]

    def absent_reason(self) -> str | None:
        """Return in one line why the interface cannot be used here, or None when it can."""
        return None

    def versions(self) -> dict[str, str]:
        """Return versions of the libraries involved."""
        return {}

    def path(self, folder: Path, layout: FileLayout) -> Path:
        """Return the file's path."""
        return folder / f"{layout.name}-{self.name}{self.suffix}"

    def arrange(self, comm: MPI.Intracomm, items: Sequence[Open | Request]) -> None:  # noqa: B027  (most have none)
        """Before the clock starts, decide what ranks that share a file must decide alike; collective over `comm`.

        `items` are the opens and accesses of a phase on this rank, in order.
        """

    @abstractmethod
    def reader(self, path: Path, layout: FileLayout) -> Reader:
        """Open a finished file for verification; local."""

    def compare(self, ours: Path, theirs: Path) -> tuple[str, str | None]:
        """Compare two finished files of the same program; local.

        Returns
        -------
        how : "bytes", or the name of the tool of the format
        difference : None when they are the same, else where they differ, in words
        """
        if filecmp.cmp(ours, theirs, shallow=False):
            return "bytes", None
        return self.compare_contents(ours, theirs)

    def compare_contents(self, ours: Path, theirs: Path) -> tuple[str, str | None]:
        """Return the same of files of which bytes differ."""
        return "bytes", first_difference(ours, theirs)


def first_difference(ours: Path, theirs: Path) -> str:
    """Return the place at which two files begin to differ, in words."""
    position = 0
    with ours.open("rb") as one, theirs.open("rb") as other:
        while True:
            a, b = (np.frombuffer(file.read(1 << 20), np.uint8) for file in (one, other))
            n = min(a.size, b.size)
            differs = np.flatnonzero(a[:n] != b[:n])
            if differs.size or a.size != b.size or n == 0:
                return f"at byte {position + (int(differs[0]) if differs.size else n)}"
            position += n


def tool_difference(command: Sequence[str | Path]) -> str | None:
    """Run a comparing tool of a format; return None if it finds no difference, else its first line."""
    from mpiio_ext.common.children import run

    done = run([str(word) for word in command], limit_s=600)
    if not done.trouble:
        return None
    lines = (done.output + done.errors).strip().splitlines()
    return lines[0] if lines else f"{command[0]}: {done.trouble}"
