"""Parallel HDF5 through h5py: one contiguous dataset of doubles, collective transfers of hyperslab selections.

h5py's low-level interface is used, because its high-level one returns early for an empty selection and so leaves the
other ranks waiting in a collective transfer.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mpiio_ext.bench import extension
from mpiio_ext.bench.counters import change
from mpiio_ext.bench.interfaces.base import Interface, Session, Target
from mpiio_ext.bench.workloads.base import Plan, Slab, Workload

__all__ = ["Hdf5"]

_DATASET = b"data"


class Hdf5Session(Session):
    """One dataset named ``data``; an empty selection takes part in every collective call."""

    def __init__(self, target: Target) -> None:
        from mpi4py import MPI

        super().__init__(target)
        self._file: Any = None
        self._dataset: Any = None
        self._calls: list[tuple[Any, Any, Any]] = []
        self._before = extension.process_statistics()
        self._info = MPI.Info.Create()
        for name, value in target.hints.items():
            self._info.Set(name, value)

    def open(self) -> None:
        """Create or open the file with the mpio driver and the strategy's hints."""
        import h5py

        mode = "w" if self.target.writing else "r"
        self._file = h5py.File(self.target.path, mode, driver="mpio", comm=self.target.comm, info=self._info)

    def prepare(self) -> None:
        """Create or open the dataset and make the selections of every call."""
        from h5py import h5d, h5s, h5t

        shape = self.target.workload.array_shape
        assert shape is not None
        if self.target.writing:
            self._dataset = h5d.create(self._file.id, _DATASET, h5t.IEEE_F64LE, h5s.create_simple(shape))
        else:
            self._dataset = h5d.open(self._file.id, _DATASET)
        slabs_of_calls = self.target.workload.array_slabs(self.target.rank)
        for call, slabs in zip(self.target.plan.calls, slabs_of_calls, strict=True):
            data = self.target.buffer[call.memory_start_bytes : call.memory_start_bytes + call.memory.size_bytes]
            self._calls.append((*self._spaces(shape, slabs), data.view("<f8")))

    @staticmethod
    def _spaces(shape: tuple[int, ...], slabs: list[Slab]) -> tuple[Any, Any]:
        """Return the memory space and the file space of one call."""
        from h5py import h5s

        file_space = h5s.create_simple(shape)
        file_space.select_none()
        for start, count in slabs:
            operation = h5s.SELECT_SET if file_space.get_select_npoints() == 0 else h5s.SELECT_OR
            file_space.select_hyperslab(start, count, op=operation)
        elements = sum(math.prod(count) for _, count in slabs)
        memory_space = h5s.create_simple((max(elements, 1),))
        if elements == 0:
            memory_space.select_none()
        return memory_space, file_space

    def transfer(self) -> None:
        """Carry out every call collectively; the first error is raised after the last call."""
        import numpy as np
        from h5py import h5fd, h5p

        transfer_list = h5p.create(h5p.DATASET_XFER)
        transfer_list.set_dxpl_mpio(h5fd.MPIO_COLLECTIVE)
        call = self._dataset.write if self.target.writing else self._dataset.read
        first: Exception | None = None
        for memory_space, file_space, data in self._calls:
            try:
                call(memory_space, file_space, data if data.size else np.empty(1), dxpl=transfer_list)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def close(self) -> None:
        """Close dataset and file."""
        self._dataset = None
        self._calls = []
        try:
            if self._file is not None:
                self._file.close()
        finally:
            self._file = None
            if self._info:
                self._info.Free()

    @property
    def data_start_bytes(self) -> int:
        """Offset of the dataset's first byte in the file."""
        return int(self._dataset.get_offset())

    def statistics(self) -> dict[str, Any] | None:
        """Return the change of the process's counters since the session began; the raw file handle is HDF5's own."""
        if self._before is None:
            return None
        return change(extension.process_statistics() or {}, self._before)


class Hdf5(Interface):
    """Parallel HDF5; only for workloads that are arrays."""

    name: ClassVar[str] = "hdf5"
    title: ClassVar[str] = "HDF5"
    raw: ClassVar[bool] = False
    session: ClassVar[type[Session]] = Hdf5Session

    def absent_reason(self) -> str | None:
        """Name what is missing: h5py, or its MPI support."""
        try:
            import h5py
        except ImportError as error:
            return f"h5py cannot be imported ({error})"
        if not h5py.get_config().mpi:
            return f"h5py {h5py.__version__} is built without MPI"
        return None

    def plan(self, workload: Workload, rank: int, *, writing: bool) -> Plan:
        """Return the accesses with contiguous memory."""
        return super().plan(workload, rank, writing=writing).packed()

    def versions(self) -> dict[str, str]:
        """Return the versions of h5py and HDF5."""
        import h5py

        return {"h5py": h5py.__version__, "hdf5": h5py.version.hdf5_version}
