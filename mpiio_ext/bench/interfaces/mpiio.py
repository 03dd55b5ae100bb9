"""MPI-IO through mpi4py: one file view, explicit offsets, collective calls."""

from __future__ import annotations

from typing import Any, ClassVar

from mpiio_ext.bench import extension
from mpiio_ext.bench.interfaces.base import Interface, Session, Target
from mpiio_ext.bench.shapes import Contiguous, free

__all__ = ["MpiIo"]


class MpiIoSession(Session):
    """Datatypes are built before the clock starts and freed after it stops."""

    def __init__(self, target: Target) -> None:
        from mpi4py import MPI

        super().__init__(target)
        self._file: Any = None
        plan = target.plan
        self._etype = plan.element.datatype()
        self._filetype = plan.file.datatype()
        self._owned = [self._etype, self._filetype]
        self._info = MPI.Info.Create()
        for name, value in target.hints.items():
            self._info.Set(name, value)
        self._messages: list[tuple[int, list[Any]]] = []
        memory_types: dict[int, Any] = {}
        for call in plan.calls:
            start, memory = call.memory_start_bytes, call.memory
            if isinstance(memory, Contiguous):
                message = [target.buffer[start : start + memory.size_bytes], memory.count, self._etype]
            else:
                if id(memory) not in memory_types:
                    memory_types[id(memory)] = memory.datatype()
                    self._owned.append(memory_types[id(memory)])
                message = [target.buffer[start : start + memory.extent_bytes], 1, memory_types[id(memory)]]
            self._messages.append((call.offset_elements, message))

    def open(self) -> None:
        """Open the file with the strategy's hints."""
        from mpi4py import MPI

        mode = MPI.MODE_WRONLY | MPI.MODE_CREATE if self.target.writing else MPI.MODE_RDONLY
        self._file = MPI.File.Open(self.target.comm, self.target.path, mode, self._info)

    def prepare(self) -> None:
        """Set the view."""
        self._file.Set_view(self.target.plan.displacement_bytes, self._etype, self._filetype, "native")

    def transfer(self) -> None:
        """Carry out every call; the first error is raised after the last call."""
        first: Exception | None = None
        call = self._file.Write_at_all if self.target.writing else self._file.Read_at_all
        for offset, message in self._messages:
            try:
                call(offset, message)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def close(self) -> None:
        """Close the file and free types and info."""
        try:
            if self._file is not None:
                self._file.Close()
        finally:
            self._file = None
            for datatype in self._owned:
                free(datatype)
            self._owned = []
            if self._info:
                self._info.Free()

    def statistics(self) -> dict[str, Any] | None:
        """Return the counters of this file."""
        return extension.file_statistics(self._file)


class MpiIo(Interface):
    """Plain MPI-IO."""

    name: ClassVar[str] = "mpiio"
    title: ClassVar[str] = "MPI-IO"
    raw: ClassVar[bool] = True
    session: ClassVar[type[Session]] = MpiIoSession

    def absent_reason(self) -> str | None:
        """MPI-IO is always there."""
        return None
