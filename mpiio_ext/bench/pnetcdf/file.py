"""One netCDF file of the classic formats, opened by PnetCDF.

`File` is PnetCDF's C interface with NumPy arrays in, errors as exceptions, and the names of the C functions without
their prefix, so that PnetCDF's documentation is its documentation. What differs:

- A variable is a `Variable`, not a number, so that errors can name it and sizes can be checked.
- The memory of nonblocking requests is kept alive until they are waited for.
- Files are not filled with fill values unless asked for (PnetCDF's default, made explicit).

Every method says whether it is *collective* (all ranks of the file's communicator call it, with equal arguments unless
said otherwise), *independent* (any rank, between `begin_indep_data` and `end_indep_data`) or *local* (any time, no
communication). A rank whose arguments are wrong raises `ArgumentError` before it takes part in the call.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from mpiio_ext.bench.pnetcdf.access import blocking, posted
from mpiio_ext.bench.pnetcdf.errors import PnetcdfError
from mpiio_ext.bench.pnetcdf.library import Pnetcdf, load
from mpiio_ext.bench.pnetcdf.memory import TYPES, Variable, type_number
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpi4py import MPI

Format = Literal["cdf1", "cdf2", "cdf5"]

# pnetcdf.h
_WRITE = 0x0001
_NOCLOBBER = 0x0004
_FORMATS: dict[str, int] = {"cdf1": 0, "cdf2": 0x0200, "cdf5": 0x0020}
_FORMAT_NUMBERS = {1: "cdf1", 2: "cdf2", 5: "cdf5"}
_FILL, _NOFILL = 0, 0x100
_GLOBAL = -1
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
    comm : its communicator.
    format : "cdf1", "cdf2" (64-bit offsets) or "cdf5" (64-bit sizes and unsigned and 64-bit types).
    closed : whether it was closed.
    """

    def __init__(self, pnetcdf: Pnetcdf, number: int, path: str, comm: MPI.Intracomm) -> None:
        self._pnetcdf = pnetcdf
        self._number = number
        self._pending: dict[int, tuple[Any, ...]] = {}
        self._lengths: dict[int, int | None] = {}
        self.path = path
        self.comm = comm
        self.closed = False
        self.format = _FORMAT_NUMBERS.get(self._inquire("inq_format", "int"), "unknown")

    # ---- opening and closing ----------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        comm: MPI.Intracomm,
        *,
        info: MPI.Info | Mapping[str, str] | None = None,
        format: Format = "cdf5",  # noqa: A002 — netCDF's word
        clobber: bool = True,
        fill: bool = False,
    ) -> File:
        """Create a file, in define mode. Collective.

        Parameters
        ----------
        path : the file.
        comm : the ranks; PnetCDF duplicates it.
        info : hints for MPI-IO and PnetCDF; ranks may differ where MPI allows it.
        format : "cdf1", "cdf2" or "cdf5".
        clobber : replace an existing file; otherwise it is an error.
        fill : write fill values where nothing is written.

        Raises
        ------
        PnetcdfError
            The file cannot be created.
        LoadError
            There is no PnetCDF for this MPI.
        """
        if format not in _FORMATS:
            raise ArgumentError(f"format: {format!r}, must be one of {', '.join(_FORMATS)}")
        mode = _FORMATS[format] | (0 if clobber else _NOCLOBBER)
        file = cls._start("ncmpi_create", path, comm, mode, info)
        old = file._pnetcdf.ffi.new("int *")
        file._call("set_fill", _FILL if fill else _NOFILL, old)
        return file

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        comm: MPI.Intracomm,
        *,
        info: MPI.Info | Mapping[str, str] | None = None,
        writable: bool = False,
    ) -> File:
        """Open an existing file, in collective data mode. Collective.

        Raises
        ------
        PnetcdfError
            It does not exist, is not netCDF, may not be read or (``writable``) written.
        LoadError
            There is no PnetCDF for this MPI.
        """
        return cls._start("ncmpi_open", path, comm, _WRITE if writable else 0, info)

    @classmethod
    def _start(
        cls,
        call: str,
        path: str | os.PathLike[str],
        comm: MPI.Intracomm,
        mode: int,
        info: MPI.Info | Mapping[str, str] | None,
    ) -> File:
        from mpi4py import MPI

        pnetcdf = load()
        ffi = pnetcdf.ffi
        owned = None
        if info is None:
            info = MPI.INFO_NULL
        elif not isinstance(info, MPI.Info):
            info = owned = MPI.Info.Create(info)
        try:
            number = ffi.new("int *")
            status = getattr(pnetcdf.lib, call)(
                ffi.cast("MPI_Comm", MPI._handleof(comm)),
                os.fsencode(path),
                mode,
                ffi.cast("MPI_Info", MPI._handleof(info)),
                number,
            )
        finally:
            if owned is not None:
                owned.Free()
        if status:
            raise _error(pnetcdf, status, call, os.fspath(path), None)
        return cls(pnetcdf, number[0], os.fspath(path), comm)

    def close(self) -> None:
        """Close the file; pending requests are an error, and lost. Collective; does nothing the second time."""
        if self.closed:
            return
        self.closed = True
        status = self._pnetcdf.lib.ncmpi_close(self._number)
        self._pending.clear()
        self._check(status, "ncmpi_close")

    def __enter__(self) -> File:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Close; after an error pending requests are cancelled and a second error is not raised."""
        if error is None:
            self.close()
            return
        with contextlib.suppress(PnetcdfError):
            self.cancel()
        with contextlib.suppress(PnetcdfError):
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
        number = self._inquire("def_dim", "int", name.encode(), size, variable=name)
        self._lengths[number] = length
        return number

    def def_var(self, name: str, dtype: npt.DTypeLike, dimensions: Sequence[int]) -> Variable:
        """Define a variable. Collective, define mode.

        Parameters
        ----------
        name : its name.
        dtype : NumPy type of its values; "S1" is netCDF's character.
        dimensions : numbers of its dimensions, slowest first.
        """
        kind = np.dtype(dtype)
        kind = kind if kind.isnative else kind.newbyteorder("=")
        ids = self._pnetcdf.ffi.new("int[]", list(dimensions))
        number = self._inquire("def_var", "int", name.encode(), type_number(kind), len(dimensions), ids, variable=name)
        return Variable(id=number, name=name, dtype=kind, shape=tuple(self._length(d) for d in dimensions))

    def put_att_text(self, name: str, text: str, variable: Variable | None = None) -> None:
        """Give the file, or a variable, an attribute that is a text (UTF-8). Collective, define mode."""
        value = text.encode()
        number, label = (_GLOBAL, None) if variable is None else (variable.id, variable.name)
        self._call("put_att_text", number, name.encode(), len(value), value, variable=label)

    def enddef(
        self,
        *,
        header_free_bytes: int = 0,
        variable_alignment_bytes: int = 0,
        variable_free_bytes: int = 0,
        record_alignment_bytes: int = 0,
    ) -> None:
        """Leave define mode for collective data mode; the header is written. Collective.

        Parameters
        ----------
        header_free_bytes : room to keep for the header to grow.
        variable_alignment_bytes : alignment of the first fixed-size variable; 0 leaves it to the hints.
        variable_free_bytes : room to keep behind the fixed-size variables.
        record_alignment_bytes : alignment of the record variables.
        """
        layout = (header_free_bytes, variable_alignment_bytes, variable_free_bytes, record_alignment_bytes)
        if any(layout):
            self._call("_enddef", *layout)
        else:
            self._call("enddef")

    # ---- blocking access --------------------------------------------------------------------------------------------

    put_vara_all = blocking("put_vara_all")
    get_vara_all = blocking("get_vara_all")
    put_varn_all = blocking("put_varn_all")
    get_varn_all = blocking("get_varn_all")
    put_vara = blocking("put_vara")
    get_vara = blocking("get_vara")
    put_varn = blocking("put_varn")
    get_varn = blocking("get_varn")

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

    # ---- nonblocking access -----------------------------------------------------------------------------------------

    iput_vara = posted("iput_vara")
    iget_vara = posted("iget_vara")
    iput_varn = posted("iput_varn")
    iget_varn = posted("iget_varn")
    bput_vara = posted("bput_vara")
    bput_varn = posted("bput_varn")

    def buffer_attach(self, size_bytes: int) -> None:
        """Attach a buffer for `bput_vara` and `bput_varn`, as large as all that is posted before a wait. Local."""
        self._call("buffer_attach", size_bytes)

    def buffer_detach(self) -> None:
        """Free the attached buffer; requests that use it must have been waited for. Local."""
        self._call("buffer_detach")

    def buffer_usage(self) -> int:
        """Return how many bytes of the attached buffer are in use. Local."""
        return self._inquire("inq_buffer_usage", "MPI_Offset")

    def wait_all(self, requests: Sequence[int] | None = None) -> None:
        """Carry out posted requests in as few MPI-IO calls as possible. Collective; ranks may name different requests.

        Parameters
        ----------
        requests : what `iput_vara` and its kin returned; None: everything this rank has posted. May be empty.

        Raises
        ------
        PnetcdfError
            One of them failed; the message names its variable.
        """
        self._wait("wait_all", requests)

    def wait(self, requests: Sequence[int] | None = None) -> None:
        """Carry out posted requests of this rank. Independent; parameters and errors as in `wait_all`."""
        self._wait("wait", requests)

    def cancel(self, requests: Sequence[int] | None = None) -> None:
        """Forget posted requests without carrying them out; None: all. Local."""
        self._wait("cancel", requests)

    def _wait(self, name: str, requests: Sequence[int] | None) -> None:
        ffi = self._pnetcdf.ffi
        if requests is None:
            try:
                self._call(name, _REQ_ALL, ffi.NULL, ffi.NULL)
            finally:
                self._pending.clear()
            return
        numbers = ffi.new("int[]", list(requests))
        statuses = ffi.new("int[]", len(requests))
        # Kept until the call has returned, whatever it returns.
        waited = [self._pending.pop(request, (None, None)) for request in requests]
        try:
            self._call(name, len(requests), numbers, statuses)
        except PnetcdfError:
            self._raise_first(name, waited, list(statuses))
            raise
        self._raise_first(name, waited, list(statuses))

    def _raise_first(self, name: str, waited: list[tuple[Any, ...]], statuses: list[int]) -> None:
        """Raise the error of the first request that failed, which names its variable."""
        for (variable, _), status in zip(waited, statuses, strict=True):
            self._check(status, f"ncmpi_{name}", variable)

    def sync(self) -> None:
        """Write buffered data, and the header, to the file system (MPI_File_sync). Collective in collective mode."""
        self._call("sync")

    def flush(self) -> None:
        """Pass the data that PnetCDF itself buffers to MPI-IO. Collective in collective mode."""
        self._call("flush")

    # ---- inquiries --------------------------------------------------------------------------------------------------

    def _length(self, dimension: int) -> int | None:
        if dimension not in self._lengths:
            unlimited = self._inquire("inq_unlimdim", "int")
            length = self._inquire("inq_dimlen", "MPI_Offset", dimension)
            self._lengths[dimension] = None if dimension == unlimited else length
        return self._lengths[dimension]

    def dimension(self, name: str) -> tuple[int, int]:
        """Return number and present length of a dimension. Local."""
        number = self._inquire("inq_dimid", "int", name.encode(), variable=name)
        return number, self._inquire("inq_dimlen", "MPI_Offset", number)

    def variable(self, name: str) -> Variable:
        """Return a variable by its name. Local."""
        number = self._inquire("inq_varid", "int", name.encode(), variable=name)
        kind = self._inquire("inq_vartype", "int", number)
        dtype = next(np.dtype(code) for code, (value, _) in TYPES.items() if value == kind)
        dimensions = self._pnetcdf.ffi.new("int[]", max(1, self._inquire("inq_varndims", "int", number)))
        count = self._inquire("inq_varndims", "int", number)
        self._call("inq_vardimid", number, dimensions, variable=name)
        shape = tuple(self._length(dimensions[i]) for i in range(count))
        return Variable(id=number, name=name, dtype=dtype, shape=shape)

    def inq_varoffset(self, variable: Variable) -> int:
        """Return where a variable begins in the file, in bytes; known after `enddef`. Local."""
        return self._inquire("inq_varoffset", "MPI_Offset", variable.id, variable=variable.name)

    def header_size(self) -> int:
        """Return the size of the header in bytes. Local."""
        return self._inquire("inq_header_size", "MPI_Offset")

    def header_extent(self) -> int:
        """Return the first possible offset of a variable, in bytes, behind the header and its spare room. Local."""
        return self._inquire("inq_header_extent", "MPI_Offset")

    def put_size(self) -> int:
        """Return how many bytes this rank has written through the file, header included. Local."""
        return self._inquire("inq_put_size", "MPI_Offset")

    def pending(self) -> int:
        """Return the number of requests of this rank that were posted and not waited for. Local."""
        return self._inquire("inq_nreqs", "int")

    def get_att_text(self, name: str, variable: Variable | None = None) -> str:
        """Return an attribute that is a text. Local."""
        number, label = (_GLOBAL, None) if variable is None else (variable.id, variable.name)
        length = self._inquire("inq_attlen", "MPI_Offset", number, name.encode(), variable=label)
        text = self._pnetcdf.ffi.new("char[]", max(1, length))
        self._call("get_att_text", number, name.encode(), text, variable=label)
        return bytes(self._pnetcdf.ffi.buffer(text, length)).decode()

    def inq_file_info(self) -> dict[str, str]:
        """Return the hints in force, those of MPI-IO and of PnetCDF. Local."""
        from mpi4py import MPI

        ffi = self._pnetcdf.ffi
        handle = ffi.new("MPI_Info *")
        self._call("inq_file_info", handle)
        info = MPI.Info.fromhandle(int(ffi.cast("uintptr_t", handle[0])))
        try:
            return dict(info)
        finally:
            info.Free()
