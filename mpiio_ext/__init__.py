"""mpiio_ext: an MPI-IO middleware extension put under unchanged programs.

``import mpiio_ext`` before ``mpi4py.MPI`` (or h5py, or netCDF4) loads libmpiio_ext.so so that MPI_File_* of this
process goes through it. Importing neither initialises MPI nor needs an MPI launch. Imported too late, it raises
`MpiioExtError` and says what to do.

Subpackages: `mpiio_ext.partitioning` (file domains), `mpiio_ext.delegates` (I/O delegates), `mpiio_ext.pioneer`
(traces, synthesis), `mpiio_ext.analytics` (logs). None of them is imported here.
"""

from __future__ import annotations

from mpiio_ext._load import get_include, get_library, interposed, load
from mpiio_ext.errors import ArgumentError, FileSystemError, LoadError, MpiioExtError

__all__ = [
    "ArgumentError",
    "FileSystemError",
    "LoadError",
    "MpiioExtError",
    "__version__",
    "get_include",
    "get_library",
    "interposed",
]

# The one place that states the version: pyproject.toml and CMakeLists.txt read it from here.
__version__ = "0.1.0"

load()
