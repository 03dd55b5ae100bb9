"""Parallel HDF5 through h5py's low-level interface: a contiguous dataset per array, hyperslab selections.

The low-level interface is used because the high-level one returns early for an empty selection and so leaves the other
ranks waiting in a collective transfer. A finished file is read with HDF5's POSIX driver.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mpiio_ext.bench.interfaces.base import Interface, OpenFile, Reader, Request, Where, tool_difference
from mpiio_ext.bench.interfaces.memory import pack, unpack
from mpiio_ext.bench.interfaces.mpiio import info_of
from mpiio_ext.bench.kernels.layout import FileLayout, Variable
from mpiio_ext.bench.kernels.program import box_part
from mpiio_ext.bench.kernels.shapes import Bytes

if TYPE_CHECKING:
    from h5py import h5s


class Hdf5File(OpenFile):
    """An HDF5 file with the MPI-IO driver."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self._file: Any = None
        self._datasets: dict[str, Any] = {}
        self._lists: dict[bool, Any] = {}
        self._selections: dict[int, tuple[Any, Any]] = {}
        self._info = info_of(where.hints)

    def open(self) -> None:
        """Create or open the file."""
        import h5py

        mode = {"create": "w", "write": "w", "read": "r", "update": "r+"}[self.where.mode]
        self._file = h5py.File(self.where.path, mode, driver="mpio", comm=self.where.comm, info=self._info)

    def define(self) -> None:
        """Create the groups and datasets, without fill values and times, or open them."""
        from h5py import h5d, h5fd, h5p, h5s, h5t

        for collective in (True, False):
            transfer = h5p.create(h5p.DATASET_XFER)
            transfer.set_dxpl_mpio(h5fd.MPIO_COLLECTIVE if collective else h5fd.MPIO_INDEPENDENT)
            self._lists[collective] = transfer
        if not self.where.new:
            self._datasets = {v.name: h5d.open(self._file.id, v.name.encode()) for v in self.where.layout.variables}
            return
        links = h5p.create(h5p.LINK_CREATE)
        links.set_create_intermediate_group(True)
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_fill_time(h5d.FILL_TIME_NEVER)
        properties.set_obj_track_times(False)
        for variable in self.where.layout.variables:
            kind = h5t.py_create(np.dtype(variable.dtype))
            space = h5s.create_simple(variable.shape)
            name = variable.name.encode()
            self._datasets[variable.name] = h5d.create(self._file.id, name, kind, space, properties, links)

    def select(self, requests: Sequence[Request]) -> None:
        """Make the selections of all accesses."""
        self._selections = {id(request): _spaces(request) for request in requests}

    def access(self, request: Request) -> None:
        """Transfer the selections of all slabs in one call; several arrays with guard cells are packed, as there."""
        access, variable = request.access, request.variable
        memory_space, file_space = self._selections.get(id(request)) or _spaces(request)
        several = access.boxes is not None and len(access.boxes) > 1
        memory = pack(request) if several else request.memory
        data = memory.view(variable.dtype) if memory.size else np.empty(1, variable.dtype)
        dataset = self._datasets[variable.name]
        call = dataset.write if access.write else dataset.read
        call(memory_space, file_space, data, dxpl=self._lists[access.collective])
        if several and not access.write:
            unpack(request, memory)

    def sync(self) -> None:
        """H5Fflush."""
        self._file.flush()

    def close(self) -> None:
        """Close datasets and file."""
        self._datasets, self._lists, self._selections = {}, {}, {}
        try:
            if self._file is not None:
                self._file.close()
        finally:
            self._file = None
            if self._info:
                self._info.Free()


def _spaces(request: Request) -> tuple[h5s.SpaceID, h5s.SpaceID]:
    """Return the selections of an access in memory and in the dataset."""
    from h5py import h5s

    file_space = h5s.create_simple(request.variable.shape)
    file_space.select_none()
    for start, count in request.access.slabs:
        operation = h5s.SELECT_SET if file_space.get_select_npoints() == 0 else h5s.SELECT_OR
        file_space.select_hyperslab(start, count, op=operation)
    return _memory_space(request), file_space


def _memory_space(request: Request) -> h5s.SpaceID:
    """Return the selection in memory: everything, or the part inside the guard cells of one array."""
    from h5py import h5s

    access = request.access
    if access.boxes is None or len(access.boxes) != 1:
        space = h5s.create_simple((max(access.elements, 1),))
        if access.elements == 0:
            space.select_none()
        return space
    sizes, starts, counts = box_part(access.boxes[0], access.slabs[0][1])
    space = h5s.create_simple(sizes)
    space.select_hyperslab(starts, counts)
    return space


class Hdf5Reader(Reader):
    """Datasets read alone, without MPI: plain reads at the place in the file that HDF5 names."""

    def __init__(self, path: Path) -> None:
        import h5py

        self._file = h5py.File(path, "r", driver="sec2", locking=False)
        self._raw = path.open("rb")

    def read(self, variable: Variable, begin: int, end: int) -> Bytes:  # noqa: D102
        dataset = self._file[variable.name]
        stored = np.dtype(dataset.dtype)
        if dataset.shape != variable.shape or stored != np.dtype(variable.dtype):
            return np.zeros(0, np.uint8)
        offset = dataset.id.get_offset()
        if offset is not None:
            self._raw.seek(offset + begin)
            return np.frombuffer(self._raw.read(end - begin), np.uint8)
        row_bytes = math.prod(variable.shape[1:]) * variable.item_bytes
        first, last = begin // row_bytes, -(-end // row_bytes)
        rows = np.ascontiguousarray(dataset[first:last]).reshape(-1).view(np.uint8)
        return rows[begin - first * row_bytes : end - first * row_bytes]

    def close(self) -> None:  # noqa: D102
        self._raw.close()
        self._file.close()


class Hdf5(Interface):
    """Parallel HDF5."""

    name: ClassVar[str] = "hdf5"
    title: ClassVar[str] = "HDF5"
    suffix: ClassVar[str] = ".h5"
    file: ClassVar[type[OpenFile]] = Hdf5File

    def absent_reason(self) -> str | None:
        """Name the missing package: h5py, or its MPI support."""
        try:
            import h5py
        except ImportError as error:
            return (
                f"h5py cannot be imported ({error}): it has to be built with a parallel HDF5, "
                "HDF5_MPI=ON CC=mpicc pip install --no-binary=h5py h5py"
            )
        if not h5py.get_config().mpi:
            return f"h5py {h5py.__version__} is built without MPI"
        return None

    def versions(self) -> dict[str, str]:
        """Return the versions of h5py and HDF5."""
        import h5py

        return {"h5py": h5py.__version__, "hdf5": h5py.version.hdf5_version}

    def reader(self, path: Path, layout: FileLayout) -> Reader:  # noqa: D102
        del layout
        return Hdf5Reader(path)

    def compare_contents(self, ours: Path, theirs: Path) -> tuple[str, str | None]:
        """Compare by h5diff."""
        if shutil.which("h5diff") is None:
            return "h5diff", "files differ, and without h5diff (not installed) their contents cannot be compared"
        return "h5diff", tool_difference(["h5diff", "-c", ours, theirs])
