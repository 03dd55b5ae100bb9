"""One thing to run: a program through an interface, with the user's request for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mpiio_ext.bench.interfaces import Interface
from mpiio_ext.bench.kernels import Program, Sizes
from mpiio_ext.bench.kernels.program import Phase, Step
from mpiio_ext.bench.kernels.request import KernelRequest
from mpiio_ext.bench.methods import Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One program through one interface.

    Attributes
    ----------
    program, interface : what, and how
    name : separates it from another case of the same program; "" = the program's own
    sizes : that a pattern was made from
    request : that a kernel was made from
    read_shift : in phases that read, a rank does what rank + read_shift would
    """

    program: Program
    interface: Interface
    name: str = ""
    sizes: Sizes | None = None
    request: KernelRequest | None = None
    read_shift: int = 0

    @property
    def variant(self) -> str:
        """Name of its rows."""
        return self.name or self.program.key

    @property
    def title(self) -> str:
        """For people, without the interface."""
        return f"{self.program.label} ({self.name})" if self.name else self.program.label

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.title}, {self.interface.title}"

    @property
    def bytes(self) -> int:
        """Bytes that the files take."""
        return sum(layout.end_bytes for layout in self.program.files())

    @property
    def compared(self) -> bool:
        """The files of all methods must be the same; of a pattern each method writes other bytes."""
        return self.program.kind == "kernel"

    def methods(self, wanted: list[Method]) -> list[Method]:
        """Return those that differ for this interface: without MPI-IO beneath, there is nothing to choose."""
        if self.interface.through_mpi:
            return wanted
        return [method for method in wanted if method.native][:1]

    def steps(self, phase: Phase, rank: int) -> Iterator[Step]:
        """Return the work of a rank in a phase."""
        if phase.operation == "read":
            rank = (rank + self.read_shift) % self.program.active
        return self.program.steps(phase.name, rank, self.interface.name)
