"""LANL's MPI-IO Test (fs_test): objects of one size, N processes to one file, strided or not, or to N files.

Source: github.com/fs-test/fs_test (``fs_test/fs_test.c``); parameters are named after its options. Object i of rank r
lies at (i·ranks + r)·size in a strided shared file, at (r·nobj + i)·size in a nonstrided (segmented) one and at
i·size in a file per process. Independent transfers are nonblocking, each completed before the next one begins (the
original seeks and calls MPI_File_iwrite or MPI_File_iread and MPIO_Wait); the places are given explicitly here. The
file is written and closed, opened, read and checked.

The object size is that of the published trace 32PE_N-N_448K (He et al., "Pioneer: A Solution to Parallel I/O Workload
Characterization and Generation", Table I). The paper does not give the number of objects that the run wrote; `nobj` is
ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.layout import FileLayout, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Step, Sync, Wait
from mpiio_ext.common.units import size_text
from mpiio_ext.errors import ArgumentError

_N_TO_N, _N_TO_1 = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiIoTest(Kernel):
    """Write: create, all objects, close; read: open, all objects, close.

    Attributes
    ----------
    size : of an object, in bytes
    nobj : objects per rank
    test_type : 1: a file per rank, 2: one file
    strided : the ranks' objects of one file take turns
    collective : in one file only
    shift : ranks read what the one half the ranks away has written
    sync : flush before closing what was written
    """

    noncontiguous: ClassVar[bool] = False
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "posix")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"nobj": 8},
        "laptop": {"nobj": 128},
        "published": {"nobj": 1024},
    }

    size: int = 448 << 10
    nobj: int = 128
    test_type: int = _N_TO_1
    strided: bool = False
    collective: bool = False
    shift: bool = False
    sync: bool = False

    @property
    def label(self) -> str:  # noqa: D102
        return f"{self.title}, {self.nobj} x {size_text(self.size, exact=True)}"

    @property
    def key(self) -> str:  # noqa: D102
        flags = {"strided": self.strided, "collective": self.collective, "shift": self.shift, "sync": self.sync}
        given = (flag for flag, on in flags.items() if on)
        return "-".join([self.name, f"type{self.test_type}", f"size{self.size}", f"nobj{self.nobj}", *given])

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "size", "nobj")
        if self.test_type not in (_N_TO_N, _N_TO_1):
            raise ArgumentError(f"{self.name}: test_type must be 1 (N-N) or 2 (N-1), not {self.test_type}")
        if self.test_type == _N_TO_N and (self.strided or self.collective):
            raise ArgumentError(f"{self.name}: strided and collective are for test_type 2 (N-1)")

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        return {"nobj": max(1, round(self.nobj * factor))}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        own = self.nobj * self.size
        if self.test_type == _N_TO_N:
            return tuple(
                FileLayout(
                    name=f"{self.key}.{rank}", variables=packed_variables(("objects", "|u1", (own,))), owner=rank
                )
                for rank in range(self.ranks)
            )
        return (FileLayout(name=self.key, variables=packed_variables(("objects", "|u1", (own * self.ranks,)))),)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del interface
        write = phase == "write"
        place = (rank + self.ranks // 2) % self.ranks if self.shift and not write else rank
        file = place if self.test_type == _N_TO_N else 0
        yield Open(file=file, mode="create" if write else "read")
        for i in range(self.nobj):
            yield Access(
                file=file,
                variable="objects",
                write=write,
                slabs=(((self._offset(place, i),), (self.size,)),),
                collective=self.collective,
                nonblocking=not self.collective,
            )
            if not self.collective:
                yield Wait(file=file, collective=False)
        if write and self.sync:
            yield Sync(file=file)
        yield Close(file=file)

    def _offset(self, rank: int, i: int) -> int:
        """Return where a rank's i-th object is, in bytes."""
        if self.test_type == _N_TO_N:
            return i * self.size
        if self.strided:
            return (i * self.ranks + rank) * self.size
        return (rank * self.nobj + i) * self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiIoTestStrided(MpiIoTest):
    """One file, the ranks in turn; collective, and in the preset "independent" as the original does by default."""

    name: ClassVar[str] = "mpi_io_test_strided"
    title: ClassVar[str] = "MPI-IO Test N-1 strided"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        **MpiIoTest.presets,
        "independent": {"nobj": 128, "collective": False},
    }

    strided: bool = True
    collective: bool = True
    shift: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiIoTestSegmented(MpiIoTest):
    """One file, with a part for every rank; nonblocking."""

    name: ClassVar[str] = "mpi_io_test_segmented"
    title: ClassVar[str] = "MPI-IO Test N-1 segmented"

    shift: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiIoTestNToN(MpiIoTest):
    """A file for every rank; nonblocking."""

    name: ClassVar[str] = "mpi_io_test_nn"
    title: ClassVar[str] = "MPI-IO Test N-N"

    test_type: int = _N_TO_N
