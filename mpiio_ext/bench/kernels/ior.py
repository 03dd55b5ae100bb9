"""IOR: every rank writes and reads blocks of a shared file, or of a file of its own.

Source: github.com/hpc/ior (``src/ior.c``, ``src/aiori-HDF5.c``, user guide); parameters are named after its options.
The file is a sequence of `segment_count` segments. In a shared file a segment consists of one block of every rank in
turn, in a file per process of that process's block alone. A rank transfers a block in several accesses. So transfer t
of segment s of rank r lies at ((s·ranks + r)·block_size + t·transfer_size) in a shared file. Through HDF5 each segment
is a dataset of 64-bit integers.

Configurations: Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms" (Table 3).
It does not give the transfer size, so that is IOR's default. Lockwood et al., "TOKIO on ClusterStor" (Table
"benchmarking configurations") with the options in the input files of github.com/NERSC/tokio-abc; ior-hard of IO500.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mpiio_ext.bench.kernels.layout import FileLayout, Variable, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Step, Sync
from mpiio_ext.common.units import size_text
from mpiio_ext.errors import ArgumentError

_KIB, _MIB = 1 << 10, 1 << 20
_ITEM_BYTES = 8  # IOR_size_t
#: IO500's ior-hard.
_HARD_BYTES = 47_008


@dataclass(frozen=True, slots=True, kw_only=True)
class Ior(Kernel):
    """Write: create, all transfers, fsync if requested, close; read: open, all transfers, close.

    Attributes
    ----------
    segment_count : -s
    block_size, transfer_size : -b and -t, in bytes, multiples of 8; a block is a multiple of a transfer
    file_per_process : -F
    collective : -c
    reorder_tasks : -C: rank r reads what rank r + `task_per_node_offset` wrote
    task_per_node_offset : -Q
    fsync : -e: flush before closing what was written
    """

    noncontiguous: ClassVar[bool] = False

    segment_count: int = 1
    block_size: int = _MIB
    transfer_size: int = 256 * _KIB
    file_per_process: bool = False
    collective: bool = False
    reorder_tasks: bool = False
    task_per_node_offset: int = 1
    fsync: bool = False

    @property
    def label(self) -> str:  # noqa: D102
        blocks = f"{self.segment_count} x {size_text(self.block_size, exact=True)}"
        transfers = "" if self.transfer_size == self.block_size else f" by {size_text(self.transfer_size, exact=True)}"
        return f"{self.title}, {blocks}{transfers}"

    @property
    def key(self) -> str:  # noqa: D102
        flags = {"F": self.file_per_process, "c": self.collective, "C": self.reorder_tasks, "e": self.fsync}
        sizes = f"s{self.segment_count}-b{self.block_size}-t{self.transfer_size}"
        return "-".join([self.name, sizes, *(flag for flag, given in flags.items() if given)])

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "segment_count", "block_size", "transfer_size")
        if self.transfer_size % _ITEM_BYTES:
            raise ArgumentError(
                f"{self.name}: transfer_size must be a multiple of {_ITEM_BYTES}, not {self.transfer_size}"
            )
        if self.block_size % self.transfer_size:
            raise ArgumentError(
                f"{self.name}: block_size {self.block_size} is not a multiple of transfer_size {self.transfer_size}"
            )
        if self.file_per_process and self.collective:
            raise ArgumentError(f"{self.name}: collective is of no use with file_per_process")

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        blocks = self.segment_count * factor
        if blocks >= 1:
            return {"segment_count": round(blocks)}
        transfers = max(1, round(self.block_size * blocks / self.transfer_size))
        return {"segment_count": 1, "block_size": transfers * self.transfer_size}

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        arrays = self._arrays()
        if self.file_per_process:
            return tuple(
                FileLayout(name=f"{self.key}.{rank:08d}", variables=arrays, owner=rank) for rank in range(self.ranks)
            )
        return (FileLayout(name=self.key, variables=arrays),)

    @property
    def _segment_bytes(self) -> int:
        return self.block_size if self.file_per_process else self.block_size * self.ranks

    def _arrays(self) -> tuple[Variable, ...]:
        """Return an array per segment as through HDF5; one for all without HDF5 and with many segments."""
        items = self._segment_bytes // _ITEM_BYTES
        if "hdf5" not in self.interfaces:
            return packed_variables(("data", "<i8", (items * self.segment_count,)))
        return packed_variables(*((_dataset(segment), "<i8", (items,)) for segment in range(self.segment_count)))

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del interface
        write = phase == "write"
        pretended = rank if write or not self.reorder_tasks else (rank + self.task_per_node_offset) % self.ranks
        file = pretended if self.file_per_process else 0
        yield Open(file=file, mode="create" if write else "read")
        count = (self.transfer_size // _ITEM_BYTES,)
        for segment in range(self.segment_count):
            for offset in self._offsets(pretended):
                name, start = _dataset(segment), offset
                if "hdf5" not in self.interfaces:
                    name, start = "data", segment * self._segment_bytes + offset
                slab = ((start // _ITEM_BYTES,), count)
                yield Access(file=file, variable=name, write=write, slabs=(slab,), collective=self.collective)
        if write and self.fsync:
            yield Sync(file=file)
        yield Close(file=file)

    def _offsets(self, rank: int) -> range:
        """Return the offsets of a rank's transfers in a segment, in bytes, in the order of time."""
        begin = 0 if self.file_per_process else rank * self.block_size
        return range(begin, begin + self.block_size, self.transfer_size)


def _dataset(segment: int) -> str:
    return f"Dataset-0000.{segment:04d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IorShared(Ior):
    """One file, large transfers."""

    name: ClassVar[str] = "ior_shared"
    title: ClassVar[str] = "IOR shared file"
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "posix", "hdf5")
    #: "published" is IOR-MPI of Table 3, "posix_s" its POSIX-S; the TOKIO ones are read in the order of writing.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "segment_count": 4,
            "block_size": _MIB,
            "transfer_size": 256 * _KIB,
            "collective": True,
            "reorder_tasks": True,
        },
        "laptop": {
            "segment_count": 16,
            "block_size": 4 * _MIB,
            "transfer_size": 4 * _MIB,
            "collective": True,
            "reorder_tasks": True,
        },
        "published": {"block_size": 128 * _MIB},
        "posix_s": {"block_size": 128 * _MIB},
        "tokio_mira": {
            "segment_count": 16,
            "block_size": 4 * _MIB,
            "transfer_size": 4 * _MIB,
            "collective": True,
            "fsync": True,
        },
        "tokio_edison": {
            "segment_count": 64,
            "block_size": 4 * _MIB,
            "transfer_size": 4 * _MIB,
            "collective": True,
            "fsync": True,
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class IorFilePerProcess(Ior):
    """A file for every rank, large transfers."""

    name: ClassVar[str] = "ior_fpp"
    title: ClassVar[str] = "IOR file per process"
    interfaces: ClassVar[tuple[str, ...]] = ("posix", "mpiio", "hdf5")
    #: "published" is POSIX-L of Table 3.
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"segment_count": 4, "block_size": _MIB, "transfer_size": _MIB},
        "laptop": {"segment_count": 16, "block_size": 4 * _MIB, "transfer_size": 4 * _MIB},
        "published": {"block_size": 64 * _MIB},
        "tokio_mira": {
            "segment_count": 16,
            "block_size": 4 * _MIB,
            "transfer_size": 4 * _MIB,
            "reorder_tasks": True,
            "fsync": True,
        },
        "tokio_edison": {
            "segment_count": 256,
            "block_size": 4 * _MIB,
            "transfer_size": 4 * _MIB,
            "reorder_tasks": True,
            "fsync": True,
        },
    }

    file_per_process: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class IorHard(Ior):
    """IO500's ior-hard: one file of small unaligned blocks of the ranks in turn, read by the next rank.

    IO500 leaves collective calls to the user; they are used here. It writes until its time is up; how many segments
    "published" has is ours.
    """

    name: ClassVar[str] = "ior_hard"
    title: ClassVar[str] = "IOR hard"
    noncontiguous: ClassVar[bool] = True
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "posix")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"segment_count": 64},
        "laptop": {"segment_count": 1024},
        "published": {"segment_count": 100_000, "fsync": True},
    }

    block_size: int = _HARD_BYTES
    transfer_size: int = _HARD_BYTES
    collective: bool = True
    reorder_tasks: bool = True
