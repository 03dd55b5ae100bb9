"""POSIX: every rank moves its own pieces with preadv and pwritev, as the original codes do without MPI-IO."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import ClassVar

import numpy as np

from mpiio_ext.bench.interfaces.base import Interface, OpenFile, RawReader, Reader, Request, Where
from mpiio_ext.bench.interfaces.memory import pack, unpack
from mpiio_ext.bench.kernels.layout import FileLayout


class PosixFile(OpenFile):
    """A descriptor per rank."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self._descriptor = -1

    def open(self) -> None:
        """Open without truncation: the ranks of a shared file come one after the other."""
        flags = {
            "create": os.O_RDWR | os.O_CREAT,
            "write": os.O_WRONLY | os.O_CREAT,
            "read": os.O_RDONLY,
            "update": os.O_RDWR,
        }[self.where.mode]
        self._descriptor = os.open(self.where.path, flags, 0o644)

    def define(self) -> None:
        """Nothing: the places are known."""

    def access(self, request: Request) -> None:
        """Move the pieces one by one; memory with guard cells is packed before, or unpacked behind."""
        access, variable = request.access, request.variable
        data = request.memory if access.boxes is None else pack(request)
        offsets, lengths = access.pieces(variable)
        starts = itertools.accumulate((int(n) for n in lengths), initial=0)
        for offset, length, start in zip(offsets.tolist(), lengths.tolist(), starts, strict=False):
            self._move(access.write, data[start : start + length], variable.offset_bytes + offset)
        if access.boxes is not None and not access.write:
            unpack(request, data)

    def _move(self, write: bool, part: np.typing.NDArray[np.uint8], offset: int) -> None:
        call = os.pwrite if write else lambda fd, view, at: os.preadv(fd, [view], at)
        while part.size:
            moved = call(self._descriptor, part.data, offset)
            if moved == 0:
                raise OSError(f"end of file at offset {offset}, {part.size} bytes before the end of the access")
            part, offset = part[moved:], offset + moved

    def sync(self) -> None:
        """Flush to the device."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


class Posix(Interface):
    """Plain reads and writes."""

    name: ClassVar[str] = "posix"
    title: ClassVar[str] = "POSIX"
    suffix: ClassVar[str] = ".dat"
    through_mpi: ClassVar[bool] = False
    file: ClassVar[type[OpenFile]] = PosixFile

    def reader(self, path: Path, layout: FileLayout) -> Reader:  # noqa: D102
        return RawReader(path, {v.name: v.offset_bytes for v in layout.variables}, layout=layout)
