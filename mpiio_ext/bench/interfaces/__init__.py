"""Interfaces to files, one module each. A new one is one module and one line here."""

from __future__ import annotations

from mpiio_ext.bench.interfaces.base import Interface, OpenFile, Reader, Request, Where
from mpiio_ext.bench.interfaces.hdf5 import Hdf5
from mpiio_ext.bench.interfaces.mpiio import MpiIo
from mpiio_ext.bench.interfaces.netcdf4 import Netcdf4
from mpiio_ext.bench.interfaces.pnetcdf import Pnetcdf
from mpiio_ext.bench.interfaces.posix import Posix
from mpiio_ext.bench.interfaces.transposed import Transposed

__all__ = ["REGISTRY", "Interface", "OpenFile", "Reader", "Request", "Where"]

#: Interface name -> interface.
REGISTRY: dict[str, Interface] = {
    way.name: way for way in (MpiIo(), Hdf5(), Posix(), Pnetcdf(), Netcdf4(), Transposed())
}
