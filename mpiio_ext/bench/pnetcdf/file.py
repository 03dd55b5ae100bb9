"""One netCDF file (CDF-5), opened by PnetCDF.

`File` is PnetCDF's C interface with NumPy arrays in, errors as exceptions, and the names of the C functions without
their prefix, so that PnetCDF's documentation is its documentation. What differs:

- A variable is a `Variable`, not a number, so that errors can name it and sizes can be checked.
- The memory of nonblocking requests is kept alive until they are waited for.

Every method is marked as *collective* (all ranks of the file's communicator call it, with equal arguments unless stated
otherwise), *independent* (any rank, between `begin_indep_data` and `end_indep_data`) or *local* (any time, no
communication). A rank whose arguments are wrong raises `ArgumentError` before it takes part in the call.

An access takes a variable, a place in it, and memory, all of which may differ between ranks:

- ``start`` and ``count``: first index and number of values in each dimension; a rank without data counts 0 values. Of a
  list (``varn``) they are integers of shape (n, number of dimensions); n may be 0.
- ``data``: values, contiguous in C order and writable; they are converted to the type of the variable. Of a
  nonblocking access they must neither be changed nor read until they are waited for.
- ``box``: the part of ``data`` that is accessed, if not all of it is (guard cells).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mpiio_ext.bench.pnetcdf.errors import PnetcdfError
from mpiio_ext.bench.pnetcdf.library import Pnetcdf, load
from mpiio_ext.bench.pnetcdf.memory import Box, Place, Variable, memory, subarray, subarrays, type_number
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpi4py import MPI

Array = npt.NDArray[Any]

# pnetcdf.h
_WRITE, _CDF5 = 0x0001, 0x0020
_UNLIMITED = 0
_REQ_ALL = -1


def _error(pnetcdf: Pnetcdf, status: int, call: str, path: str, variable: str | None) -> PnetcdfError:
    text = pnetcdf.ffi.string(pnetcdf.lib.ncmpi_strerror(status)).decode(errors="replace")
    name = pnetcdf.ffi.string(pnetcdf.lib.ncmpi_strerrno(status)).decode(errors="replace")
    return PnetcdfError(status=status, name=name, text=text, call=call, path=path, variable=variable)


class File:
    """An open file; made by `create` and `open`, closed by `close` or as a context manager.

    Attributes
    ----------
    path : the name it was opened by.
    closed : whether it was closed.
    """

    def __init__(self, pnetcdf: Pnetcdf, number: int, path: str) -> None:
        self._pnetcdf = pnetcdf
        self._number = number
        self._posted: list[Array] = []
        self.path = path
        self.closed = False

    # ---- opening and closing ----------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], comm: MPI.Intracomm, *, info: Mapping[str, str] | None = None
    ) -> File:
        """Create a file, in define mode, in place of an existing one. Collective.

        Parameters
        ----------
        path : the file.
        comm : the ranks; PnetCDF duplicates it.
        info : hints for MPI-IO and PnetCDF; ranks may differ where MPI allows it.

        Raises
        ------
        PnetcdfError
            The file cannot be created.
        LoadError
            There is no PnetCDF for this MPI.
        """
        return cls._start("ncmpi_create", path, comm, _CDF5, info)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        comm: MPI.Intracomm,
        *,
        info: Mapping[str, str] | None = None,
        writable: bool = False,
    ) -> File:
        """Open an existing file, in collective data mode. Collective.

        Raises
        ------
        PnetcdfError
            The file does not exist, is not netCDF, or cannot be opened for reading or (``writable``) for writing.
        LoadError
            This machine has no PnetCDF for this MPI.
        """
        return cls._start("ncmpi_open", path, comm, _WRITE if writable else 0, info)

    @classmethod
    def _start(
        cls, call: str, path: str | os.PathLike[str], comm: MPI.Intracomm, mode: int, info: Mapping[str, str] | None
    ) -> File:
        from mpi4py import MPI

        pnetcdf = load()
        ffi = pnetcdf.ffi
        hints = MPI.Info.Create(info or {})
        try:
            number = ffi.new("int *")
            status = getattr(pnetcdf.lib, call)(
                ffi.cast("MPI_Comm", MPI._handleof(comm)),
                os.fsencode(path),
                mode,
                ffi.cast("MPI_Info", MPI._handleof(hints)),
                number,
            )
        finally:
            hints.Free()
        if status:
            raise _error(pnetcdf, status, call, os.fspath(path), None)
        return cls(pnetcdf, number[0], os.fspath(path))

    def close(self) -> None:
        """Close the file; pending requests are an error, and lost. Collective; does nothing the second time."""
        if self.closed:
            return
        self.closed = True
        status = self._pnetcdf.lib.ncmpi_close(self._number)
        self._posted.clear()
        self._check(status, "ncmpi_close")

    def __enter__(self) -> File:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Close; after an error a second one is not raised."""
        with contextlib.suppress(*(() if error is None else (PnetcdfError,))):
            self.close()

    # ---- calling ----------------------------------------------------------------------------------------------------

    def _check(self, status: int, call: str, variable: str | None = None) -> None:
        if status:
            raise _error(self._pnetcdf, status, call, self.path, variable)

    def _call(self, name: str, *arguments: Any, variable: str | None = None) -> None:
        if self.closed:
            raise ArgumentError(f"{self.path}: ncmpi_{name}: the file is closed")
        call = f"ncmpi_{name}"
        self._check(getattr(self._pnetcdf.lib, call)(self._number, *arguments), call, variable)

    def _inquire(self, name: str, kind: str, *arguments: Any, variable: str | None = None) -> int:
        """Return the number that an inquiry writes to its last argument."""
        value = self._pnetcdf.ffi.new(f"{kind} *")
        self._call(name, *arguments, value, variable=variable)
        return int(value[0])

    # ---- definition -------------------------------------------------------------------------------------------------

    def def_dim(self, name: str, length: int | None) -> int:
        """Define a dimension and return its number; ``length`` None makes it unlimited. Collective, define mode."""
        size = _UNLIMITED if length is None else length
        return self._inquire("def_dim", "int", name.encode(), size, variable=name)

    def def_var(self, name: str, dtype: npt.DTypeLike, dimensions: Sequence[int]) -> Variable:
        """Define a variable. Collective, define mode.

        Parameters
        ----------
        name : its name.
        dtype : NumPy type of its values; "S1" is netCDF's character.
        dimensions : numbers of its dimensions, slowest first.
        """
        kind = type_number(np.dtype(dtype).newbyteorder("="))
        ids = self._pnetcdf.ffi.new("int[]", list(dimensions))
        number = self._inquire("def_var", "int", name.encode(), kind, len(dimensions), ids, variable=name)
        return Variable(id=number, name=name, dimensions=len(dimensions))

    def enddef(self) -> None:
        """Leave define mode for collective data mode; the header is written. Collective."""
        self._call("enddef")

    # ---- access -----------------------------------------------------------------------------------------------------

    def put_vara_all(
        self, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike, data: Array, box: Box | None = None
    ) -> None:
        """Write a subarray. Collective."""
        self._access("put_vara_all", variable, self._subarray(variable, start, count), data, box)

    def get_vara_all(
        self, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike, data: Array, box: Box | None = None
    ) -> None:
        """Read a subarray. Collective."""
        self._access("get_vara_all", variable, self._subarray(variable, start, count), data, box)

    def put_vara(
        self, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike, data: Array, box: Box | None = None
    ) -> None:
        """Write a subarray. Independent."""
        self._access("put_vara", variable, self._subarray(variable, start, count), data, box)

    def get_vara(
        self, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike, data: Array, box: Box | None = None
    ) -> None:
        """Read a subarray. Independent."""
        self._access("get_vara", variable, self._subarray(variable, start, count), data, box)

    def iput_vara(
        self, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike, data: Array, box: Box | None = None
    ) -> None:
        """Post the write of a subarray. Local."""
        self._post("iput_vara", variable, self._subarray(variable, start, count), data, box)

    def iget_vara(
        self, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike, data: Array, box: Box | None = None
    ) -> None:
        """Post the read of a subarray. Local."""
        self._post("iget_vara", variable, self._subarray(variable, start, count), data, box)

    def iput_varn(self, variable: Variable, starts: npt.ArrayLike, counts: npt.ArrayLike, data: Array) -> None:
        """Post the write of a list of subarrays. Local."""
        self._post("iput_varn", variable, subarrays(self._pnetcdf, variable, starts, counts), data, None)

    def iget_varn(self, variable: Variable, starts: npt.ArrayLike, counts: npt.ArrayLike, data: Array) -> None:
        """Post the read of a list of subarrays. Local."""
        self._post("iget_varn", variable, subarrays(self._pnetcdf, variable, starts, counts), data, None)

    def _subarray(self, variable: Variable, start: npt.ArrayLike, count: npt.ArrayLike) -> Place:
        return subarray(self._pnetcdf, variable, start, count)

    def _access(
        self, name: str, variable: Variable, place: Place, data: Array, box: Box | None, *request: object
    ) -> None:
        with memory(self._pnetcdf, variable, place, data, box) as items:
            self._call(name, variable.id, *place.arguments, *items, *request, variable=variable.name)

    def _post(self, name: str, variable: Variable, place: Place, data: Array, box: Box | None) -> None:
        self._access(name, variable, place, data, box, self._pnetcdf.ffi.new("int *"))
        self._posted.append(data)

    def wait_all(self) -> None:
        """Carry out all that was posted, in as few MPI-IO calls as possible. Collective."""
        self._wait("wait_all")

    def wait(self) -> None:
        """Carry out all that this rank has posted. Independent."""
        self._wait("wait")

    def _wait(self, name: str) -> None:
        try:
            self._call(name, _REQ_ALL, self._pnetcdf.ffi.NULL, self._pnetcdf.ffi.NULL)
        finally:
            self._posted.clear()

    def begin_indep_data(self) -> None:
        """Go from collective to independent data mode. Collective."""
        self._call("begin_indep_data")

    def end_indep_data(self) -> None:
        """Go back to collective data mode. Collective."""
        self._call("end_indep_data")

    @contextlib.contextmanager
    def independent(self) -> Iterator[None]:
        """Be in independent data mode for the block. Collective at its begin and end."""
        self.begin_indep_data()
        try:
            yield
        finally:
            self.end_indep_data()

    def sync(self) -> None:
        """Write buffered data, and the header, to the file system (MPI_File_sync). Collective in collective mode."""
        self._call("sync")

    # ---- inquiries --------------------------------------------------------------------------------------------------

    def variable(self, name: str) -> Variable:
        """Return a variable by its name. Local."""
        number = self._inquire("inq_varid", "int", name.encode(), variable=name)
        return Variable(id=number, name=name, dimensions=self._inquire("inq_varndims", "int", number))

    def inq_varoffset(self, variable: Variable) -> int:
        """Return where a variable begins in the file, in bytes; known after `enddef`. Local."""
        return self._inquire("inq_varoffset", "MPI_Offset", variable.id, variable=variable.name)
