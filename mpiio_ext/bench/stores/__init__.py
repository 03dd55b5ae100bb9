"""The interfaces of the kernels, one module each. A new one is one module and one line here."""

from __future__ import annotations

from mpiio_ext.bench.stores.base import OpenFile, Reader, Request, Store, Where
from mpiio_ext.bench.stores.hdf5 import Hdf5
from mpiio_ext.bench.stores.mpiio import MpiIo
from mpiio_ext.bench.stores.netcdf4 import Netcdf4
from mpiio_ext.bench.stores.pnetcdf import Pnetcdf
from mpiio_ext.bench.stores.posix import Posix

__all__ = ["REGISTRY", "OpenFile", "Reader", "Request", "Store", "Where"]

#: Interface name -> interface.
REGISTRY: dict[str, Store] = {store.name: store for store in (Posix(), MpiIo(), Hdf5(), Pnetcdf(), Netcdf4())}
