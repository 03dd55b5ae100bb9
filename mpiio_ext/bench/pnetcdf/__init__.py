"""PnetCDF for the bench: parallel access to classic netCDF files, blocking and nonblocking.

PnetCDF (Parallel netCDF; J. Li et al., SC 2003, "Parallel netCDF: A High-Performance Scientific I/O Interface") has no
Python binding that can be installed beside both MPI families, and its aggregated nonblocking calls (W. Liao, K. Gao et
al.) are reached neither through netCDF4 nor through h5py. This package binds the functions that the bench uses:
defining a file, collective, independent and nonblocking access of subarrays, nonblocking access of lists of them, and
the inquiries for verification.

- `library` finds the shared library that belongs to the MPI of this process and loads it, without a compiler: the
  interface consists of integers and pointers, which cffi calls by its ABI mode;
- `memory` turns NumPy arrays and subarrays into what the C interface takes, and checks them;
- `file` has the class `File`.

The package can be imported without PnetCDF, and before MPI is initialised; `absent_reason` says whether it can be used.
The library is loaded at the first use, after libmpiio_ext.so, so that the MPI_File_* calls of PnetCDF go through it.
"""

from __future__ import annotations

from mpiio_ext.bench.pnetcdf.errors import PnetcdfError
from mpiio_ext.bench.pnetcdf.file import File
from mpiio_ext.bench.pnetcdf.library import absent_reason, library_path, version
from mpiio_ext.bench.pnetcdf.memory import Variable

__all__ = ["File", "PnetcdfError", "Variable", "absent_reason", "library_path", "version"]
