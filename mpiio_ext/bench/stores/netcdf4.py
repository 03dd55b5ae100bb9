"""netCDF-4 through netCDF4-python: HDF5 files beneath, collective access."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mpiio_ext.bench.kernels.layout import FileLayout
from mpiio_ext.bench.stores.base import OpenFile, Reader, Request, Store, Where
from mpiio_ext.bench.stores.hdf5 import Hdf5, Hdf5Reader, compare_hdf5
from mpiio_ext.bench.stores.memory import pack, unpack
from mpiio_ext.bench.stores.mpiio import info_of

__all__ = ["Netcdf4"]


class Netcdf4File(OpenFile):
    """A parallel netCDF-4 dataset."""

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self._file: Any = None
        self._info = info_of(where.hints)

    def open(self) -> None:
        """Create or open the dataset."""
        import netCDF4

        mode = {"create": "w", "read": "r", "update": "r+"}[self.where.mode]
        self._file = netCDF4.Dataset(self.where.path, mode, format="NETCDF4", parallel=True, comm=self.where.comm,
                                     info=self._info)
        self._file.set_auto_maskandscale(False)

    def define(self) -> None:
        """Create groups, dimensions and variables without fill values, or leave them as they are."""
        if self.where.mode == "create":
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


class Netcdf4(Store):
    """netCDF-4."""

    name: ClassVar[str] = "netcdf4"
    title: ClassVar[str] = "netCDF-4"
    suffix: ClassVar[str] = ".nc4"
    file: ClassVar[type[OpenFile]] = Netcdf4File

    def absent_reason(self) -> str | None:
        """Name what is missing: netCDF4, its parallel support, or h5py to verify with."""
        try:
            import netCDF4
        except ImportError as error:
            return f"netCDF4 cannot be imported ({error})"
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

    def compare(self, ours: Path, theirs: Path) -> tuple[str, str | None]:  # noqa: D102
        return compare_hdf5(ours, theirs)
