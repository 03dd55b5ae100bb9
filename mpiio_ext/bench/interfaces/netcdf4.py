"""netCDF-4 through netCDF4-python: HDF5 files beneath, collective access."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mpiio_ext.bench.interfaces.base import Interface, OpenFile, Reader, Request, Where
from mpiio_ext.bench.interfaces.hdf5 import Hdf5, Hdf5Reader
from mpiio_ext.bench.interfaces.memory import pack, unpack
from mpiio_ext.bench.interfaces.mpiio import info_of
from mpiio_ext.bench.kernels.layout import FileLayout

_PART_BYTES = 16 << 20


class Netcdf4File(OpenFile):
    """A parallel netCDF-4 dataset."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self._file: Any = None
        self._info = info_of(where.hints)

    def open(self) -> None:
        """Create or open the dataset."""
        import netCDF4

        mode: Any = {"create": "w", "write": "w", "read": "r", "update": "r+"}[self.where.mode]
        self._file = netCDF4.Dataset(
            self.where.path, mode, format="NETCDF4", parallel=True, comm=self.where.comm, info=self._info
        )
        self._file.set_auto_maskandscale(False)

    def define(self) -> None:
        """Create groups, dimensions and variables without fill values, or leave them as they are."""
        if self.where.new:
            self._file.set_fill_off()
            for variable in self.where.layout.variables:
                names = [f"{variable.name.replace('/', '_').replace('#', '_')}_{d}" for d in range(len(variable.shape))]
                for name, length in zip(names, variable.shape, strict=True):
                    self._file.createDimension(name, length)
                self._file.createVariable(variable.name, variable.dtype, names, contiguous=True)
        for variable in self.where.layout.variables:
            self._file[variable.name].set_auto_maskandscale(False)
            self._file[variable.name].set_collective(True)

    def access(self, request: Request) -> None:
        """Transfer the slabs one by one."""
        access, variable = request.access, self._file[request.variable.name]
        if not access.slabs or math.prod(access.slabs[0][1]) == 0:
            raise ValueError(f"array {request.variable.name}: netCDF4-python leaves out empty accesses, so others hang")
        variable.set_collective(access.collective)
        packed = request.memory if access.boxes is None else pack(request)
        data, begin = packed.view(request.variable.dtype), 0
        for start, count in access.slabs:
            place = tuple(slice(s, s + c) for s, c in zip(start, count, strict=True))
            part = data[begin : begin + math.prod(count)]
            if access.write:
                variable[place] = part.reshape(count)
            else:
                part[:] = np.asarray(variable[place]).reshape(-1)
            begin += part.size
        if access.boxes is not None and not access.write:
            unpack(request, packed)

    def sync(self) -> None:
        """nc_sync."""
        self._file.sync()

    def close(self) -> None:
        """Close the dataset."""
        try:
            if self._file is not None:
                self._file.close()
        finally:
            self._file = None
            if self._info:
                self._info.Free()


class Netcdf4(Interface):
    """netCDF-4."""

    name: ClassVar[str] = "netcdf4"
    title: ClassVar[str] = "netCDF-4"
    suffix: ClassVar[str] = ".nc4"
    file: ClassVar[type[OpenFile]] = Netcdf4File

    def absent_reason(self) -> str | None:
        """Name the missing package: netCDF4, its parallel support, or h5py to verify with."""
        try:
            import netCDF4
        except ImportError as error:
            return (
                f"netCDF4 cannot be imported ({error}): it has to be built with a parallel netCDF, "
                "CC=mpicc pip install --no-binary=netCDF4 netCDF4"
            )
        if not netCDF4.__has_parallel4_support__:
            return f"netCDF4 {netCDF4.__version__} is built without parallel HDF5"
        return Hdf5().absent_reason()

    def versions(self) -> dict[str, str]:
        """Return the versions of netCDF4 and netCDF-C."""
        import netCDF4

        return {"netCDF4": netCDF4.__version__, "netcdf-c": netCDF4.__netcdf4libversion__}

    def reader(self, path: Path, layout: FileLayout) -> Reader:  # noqa: D102
        del layout
        return Hdf5Reader(path)

    def compare_contents(self, ours: Path, theirs: Path) -> tuple[str, str | None]:
        """Compare the contents as netCDF-4 reads them.

        Not by h5diff: the library stores a dataset for every dimension, which no program writes. Two runs of the same
        program may store different bytes in it.
        """
        return "netCDF4", _difference(ours, theirs)


def _difference(ours: Path, theirs: Path) -> str | None:
    """Return the difference of two files in groups, dimensions or variables, in words, or None; local."""
    import netCDF4

    with netCDF4.Dataset(ours) as one, netCDF4.Dataset(theirs) as other:
        stack = [("", one, other)]
        while stack:
            path, a, b = stack.pop()
            for kind in ("dimensions", "variables", "groups"):
                if list(getattr(a, kind)) != list(getattr(b, kind)):
                    return f"in the names of {kind} of group {path or '/'}"
            if any(len(a.dimensions[name]) != len(b.dimensions[name]) for name in a.dimensions):
                return f"in the lengths of dimensions of group {path or '/'}"
            for name, variable in a.variables.items():
                if not _same_variable(variable, b.variables[name]):
                    return f"in variable {path}/{name}"
            stack += [(f"{path}/{name}", a.groups[name], b.groups[name]) for name in a.groups]
    return None


def _same_variable(one: Any, other: Any) -> bool:
    """Return whether type, shape, attributes and bytes are the same; read in parts of the first dimension."""
    if (one.dtype, one.dimensions, one.shape) != (other.dtype, other.dimensions, other.shape):
        return False
    if list(one.__dict__) != list(other.__dict__):
        return False
    if not all(np.array_equal(value, other.__dict__[name]) for name, value in one.__dict__.items()):
        return False
    rows = max(1, _PART_BYTES // max(1, math.prod(one.shape[1:]) * one.dtype.itemsize))
    for variable in (one, other):
        variable.set_auto_maskandscale(False)
    for begin in range(0, one.shape[0] if one.shape else 0, rows):
        a, b = (np.ascontiguousarray(v[begin : begin + rows]).reshape(-1).view(np.uint8) for v in (one, other))
        if not np.array_equal(a, b):
            return False
    return True
