"""The interfaces, one module each. A new one (PnetCDF, netCDF4, POSIX) is one module and one line here."""

from __future__ import annotations

from mpiio_ext.bench.interfaces.base import Interface, Session, Target
from mpiio_ext.bench.interfaces.hdf5 import Hdf5
from mpiio_ext.bench.interfaces.mpiio import MpiIo

__all__ = ["REGISTRY", "Interface", "Session", "Target"]

#: Interface name -> interface, in the order in which the bench runs them.
REGISTRY: dict[str, Interface] = {interface.name: interface for interface in (MpiIo(), Hdf5())}
