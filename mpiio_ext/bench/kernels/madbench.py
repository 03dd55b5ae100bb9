"""MADBench2: out-of-core matrices of a cosmology code, written (S), read and written over (W), and read again (C).

Source: J. Borrill, MADbench2.c (2006; J. Borrill, L. Oliker, J. Shalf, H. Shan, "Investigation of leading HPC I/O
performance using a scientific-application derived benchmark", SC07), in the IO mode, which leaves the computation out.
Bez et al. run it with 64 processes and MPI-IO on one shared file; it writes 16.2 GiB and reads as much.

no_bin matrices of no_pix × no_pix doubles are distributed over a square of processes in ScaLAPACK's block-cyclic way
with blocks of sblocksize. A process has a contiguous part of a matrix: its part of the file, which begins at a multiple
of fblocksize bytes. S: every process writes its part of every matrix. W: all processes read no_gang matrices one after
the other, then each of the no_gang gangs writes the product of one of them, distributed over the gang alone, into the
place of the matrices that have been read. C: every gang reads its products. So all three phases move the same number of
bytes per direction. IOMETHOD MPI is the interface ``mpiio``, IOMETHOD POSIX ``posix``; IOMODE ASYNC (MPI_File_iwrite,
_iread, the wait one matrix later) is for the first.

The original opens its file once; here every phase opens it, because what a phase has written is verified before the
next. Processes pass a token to let one of r_mod (w_mod) neighbours at a time read (write); barriers do that here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.layout import FileLayout, Variable
from mpiio_ext.bench.kernels.program import Access, Barrier, Close, Open, Phase, SquareKernel, Step, Wait
from mpiio_ext.errors import ArgumentError

_DOUBLE_BYTES = 8


def local_elements(no_pix: int, block: int, side: int, process: int) -> int:
    """Return how many elements of a block-cyclic no_pix × no_pix matrix a process of side × side has.

    ScaLAPACK's NUMROC for rows and columns; process = column · side + row.
    """

    def extent(coordinate: int) -> int:
        blocks, rest = divmod(no_pix, block)
        rounds, over = divmod(blocks, side)
        return rounds * block + (block if coordinate < over else rest if coordinate == over else 0)

    return extent(process % side) * extent(process // side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Madbench(SquareKernel):
    """Phases S, W and C. Names of the parameters are those of the command line and the environment.

    Attributes
    ----------
    no_pix : rows of a matrix
    no_bin : matrices
    no_gang : gangs of phases W and C, a square number; more than one need even shares without gaps between them
    sblocksize : rows and columns of a ScaLAPACK block
    fblocksize : bytes; a matrix begins at a multiple of it
    r_mod, w_mod : one of so many neighbours reads (writes) at a time
    filetype : "SHARED", or "UNIQUE" for a file per process
    iomode : "SYNC" or "ASYNC"
    """

    name: ClassVar[str] = "madbench"
    title: ClassVar[str] = "MADBench2"
    needs: ClassVar[str] = "MADBench2 needs a square number of processes"
    noncontiguous: ClassVar[bool] = False
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "posix")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"no_pix": 512, "no_bin": 8},
        "laptop": {"no_pix": 1024, "no_bin": 16},
        "published": {"no_pix": 11648, "no_bin": 8},  # the size for the volume of Bez et al., Table 3
    }

    no_pix: int = 1024
    no_bin: int = 16
    no_gang: int = 1
    sblocksize: int = 8
    fblocksize: int = 8
    r_mod: int = 1
    w_mod: int = 1
    filetype: str = "SHARED"
    iomode: str = "SYNC"

    def traits(self) -> list[str]:  # noqa: D102
        gangs = [f"{self.no_gang} gangs"] if self.no_gang > 1 else []
        return gangs + [word.lower() for word in (self.filetype, self.iomode) if word in ("UNIQUE", "ASYNC")]

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "no_bin", "no_gang", "sblocksize", "r_mod", "w_mod")
        if self.filetype not in ("SHARED", "UNIQUE") or self.iomode not in ("SYNC", "ASYNC"):
            raise ArgumentError(
                f"{self.name}: filetype must be SHARED or UNIQUE, iomode SYNC or ASYNC, not "
                f"{self.filetype} and {self.iomode}"
            )
        if self.fblocksize < _DOUBLE_BYTES or self.fblocksize % _DOUBLE_BYTES:
            raise ArgumentError(f"{self.name}: fblocksize must be a positive multiple of 8, not {self.fblocksize}")
        if math.ceil(self.no_pix / self.sblocksize) < self.side:
            raise ArgumentError(
                f"{self.name}: {self.no_pix} rows in blocks of {self.sblocksize} are too few for "
                f"{self.side} × {self.side} processes"
            )
        self._check_gangs()

    def _check_gangs(self) -> None:
        gang = self.active // self.no_gang
        if math.isqrt(self.no_gang) ** 2 != self.no_gang or self.active % self.no_gang or self.no_bin % self.no_gang:
            raise ArgumentError(
                f"{self.name}: no_gang must be a square number that divides no_bin ({self.no_bin}) and "
                f"the processes ({self.active}), not {self.no_gang}"
            )
        if gang % self.r_mod or gang % self.w_mod:
            raise ArgumentError(
                f"{self.name}: r_mod and w_mod must divide the {gang} processes of a gang, not "
                f"{self.r_mod} and {self.w_mod}"
            )
        even = self.no_pix % (self.sblocksize * self.side) == 0 and self._stride == self._part(0)
        if self.no_gang > 1 and not even:
            raise ArgumentError(
                f"{self.name}: with gangs no_pix must be a multiple of sblocksize times {self.side}, "
                f"and a process's {self._part(0) * _DOUBLE_BYTES} bytes of a matrix one of fblocksize"
            )

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        unit = self.sblocksize * self.side
        return {"no_pix": max(1, round(self.no_pix * factor**0.5 / unit)) * unit}

    def _part(self, rank: int) -> int:
        """Elements of a matrix over all processes that a rank has."""
        return local_elements(self.no_pix, self.sblocksize, self.side, rank)

    @property
    def _stride(self) -> int:
        """Elements from a matrix to the next in a process's part of the file."""
        unit = self.fblocksize // _DOUBLE_BYTES
        return -(-self._part(0) // unit) * unit

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        parts = []
        for rank in range(self.active):
            first = 0 if self.filetype == "UNIQUE" else rank * self.no_bin
            parts.append(
                tuple(
                    Variable(
                        name=f"pe{rank}/W{group}",
                        dtype="<f8",
                        shape=(self.no_gang * self._part(rank),),
                        offset_bytes=(first + group * self.no_gang) * self._stride * _DOUBLE_BYTES,
                    )
                    for group in range(self.no_bin // self.no_gang)
                )
            )
        if self.filetype == "UNIQUE":
            return tuple(FileLayout(name=f"madbench_{rank}", variables=v, owner=rank) for rank, v in enumerate(parts))
        return (FileLayout(name="madbench", variables=tuple(v for part in parts for v in part)),)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return tuple(
            Phase(name=name, operation=operation) for name, operation in (("S", "write"), ("W", "both"), ("C", "read"))
        )

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        file = rank if self.filetype == "UNIQUE" else 0
        resync = [Wait(file=file, collective=False)] if self.iomode == "ASYNC" and interface == "mpiio" else []
        yield Open(file=file, mode={"S": "create", "W": "update", "C": "read"}[phase])
        for moves in {"S": self._build, "W": self._solve, "C": self._derive}[phase](file, rank, bool(resync)):
            yield from moves
            yield from resync
        yield Close(file=file)

    def _build(self, file: int, rank: int, later: bool) -> Iterator[Iterator[Step]]:
        for number in range(self.no_bin):
            yield self._matrix(file, rank, number, write=True, later=later)

    def _solve(self, file: int, rank: int, later: bool) -> Iterator[Iterator[Step]]:
        """Read a group, and then write the products of the one before, which has been read completely."""
        groups = self.no_bin // self.no_gang
        for group in range(groups + 1):
            if group < groups:
                for number in range(group * self.no_gang, (group + 1) * self.no_gang):
                    yield self._matrix(file, rank, number, write=False, later=later)
            if group > 0:
                yield self._product(file, rank, group - 1, write=True, later=later)

    def _derive(self, file: int, rank: int, later: bool) -> Iterator[Iterator[Step]]:
        for group in range(self.no_bin // self.no_gang):
            yield self._product(file, rank, group, write=False, later=later)

    def _matrix(self, file: int, rank: int, number: int, *, write: bool, later: bool) -> Iterator[Step]:
        """Move a rank's part of one of the matrices of S."""
        group, place = divmod(number, self.no_gang)
        part = self._part(rank)
        access = Access(
            file=file,
            variable=f"pe{rank}/W{group}",
            write=write,
            slabs=(((place * part,), (part,)),),
            collective=False,
            nonblocking=later,
        )
        return self._in_turn(access, rank)

    def _product(self, file: int, rank: int, group: int, *, write: bool, later: bool) -> Iterator[Step]:
        """Move a rank's part of its gang's matrix of W."""
        slab = ((0,), (self.no_gang * self._part(rank),))
        access = Access(
            file=file,
            variable=f"pe{rank}/W{group}",
            write=write,
            slabs=(slab,),
            collective=False,
            nonblocking=later,
            version=1,
        )
        return self._in_turn(access, rank % (self.active // self.no_gang))

    def _in_turn(self, access: Access, process: int) -> Iterator[Step]:
        """Let one of so many neighbours in the gang go at a time, between barriers."""
        turns = self.w_mod if access.write else self.r_mod
        for turn in range(turns):
            yield Barrier()
            if process % turns == turn:
                yield access
        yield Barrier()
