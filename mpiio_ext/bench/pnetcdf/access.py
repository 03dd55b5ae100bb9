"""The accesses of a netCDF file: methods of `File`, one for each function of PnetCDF.

All of them take the same: a variable, a place in it and memory. A name says the rest: ``put`` or ``get``, ``vara`` (a
subarray) or ``varn`` (a list of them), ``_all`` (collective), ``i`` (nonblocking) or ``b`` (nonblocking and buffered).
The memory of nonblocking requests is kept alive until they are waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

from mpiio_ext.bench.pnetcdf.datatypes import classic
from mpiio_ext.bench.pnetcdf.library import Pnetcdf
from mpiio_ext.bench.pnetcdf.memory import Place, Variable, memory, subarray, subarrays
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpiio_ext.bench.pnetcdf.file import File

Array = npt.NDArray[Any]
_Method = TypeVar("_Method", bound=Callable[..., Any])
_REQ_NULL = -1

_PARAMETERS = """

        Parameters
        ----------
        variable : where.
        first, counts : of ``vara`` first index and number of values in each dimension; a rank without data counts 0
            values. Of ``varn`` integers of shape (n, number of dimensions), n may be 0; ``counts`` None is one each.
        data : values, contiguous in C order and writable (PnetCDF swaps bytes in place and back); they are converted
            to the type of the variable; several subarrays follow each other. Of ``iput`` and ``iget`` it must neither
            be changed nor read until the request is waited for, of ``bput`` it may be changed at once.
        bufcount, buftype : instead, that many items (default 1) of a committed MPI type at the first byte of ``data``.
        """


def blocking(name: str) -> Callable[..., None]:
    """Return the method of `File` that does an access.

    Parameters
    ----------
    name : of the function of PnetCDF, without its prefix.
    """

    def access(
        file: File,
        variable: Variable,
        first: npt.ArrayLike,
        counts: npt.ArrayLike | None,
        data: Array,
        *,
        bufcount: int | None = None,
        buftype: MPI.Datatype | None = None,
    ) -> None:
        place = _place(file._pnetcdf, name, variable, first, counts)
        items = memory(file._pnetcdf, variable, place, data, bufcount=bufcount, buftype=buftype, changed=True)
        with classic(file._pnetcdf, items.datatype) as kind:
            arguments = (*place.arguments, items.address, items.count, kind)
            file._call(name, variable.id, *arguments, variable=variable.name)

    kind = "Collective" if name.endswith("_all") else "Independent"
    return _named(access, name, f"{_words(name)}. {kind}, blocking; place and data differ between ranks.")


def posted(name: str) -> Callable[..., int]:
    """Return the method of `File` that posts an access and returns the request.

    Parameters
    ----------
    name : of the function of PnetCDF, without its prefix.
    """
    buffered = name.startswith("bput")

    def post(
        file: File,
        variable: Variable,
        first: npt.ArrayLike,
        counts: npt.ArrayLike | None,
        data: Array,
        *,
        bufcount: int | None = None,
        buftype: MPI.Datatype | None = None,
    ) -> int:
        place = _place(file._pnetcdf, name, variable, first, counts)
        items = memory(file._pnetcdf, variable, place, data, bufcount=bufcount, buftype=buftype, changed=not buffered)
        with classic(file._pnetcdf, items.datatype) as kind:
            arguments = (*place.arguments, items.address, items.count, kind)
            request = file._inquire(name, "int", variable.id, *arguments, variable=variable.name)
        if request != _REQ_NULL:  # nothing to do: no data
            file._pending[request] = (variable.name, None if buffered else items.data)
        return request

    copied = ", copied to the attached buffer," if buffered else ""
    return _named(post, name, f"{_words(name)}{copied} by `wait_all` or `wait`; return the request. Local.")


def _place(
    pnetcdf: Pnetcdf, name: str, variable: Variable, first: npt.ArrayLike, counts: npt.ArrayLike | None
) -> Place:
    if "varn" in name:
        return subarrays(pnetcdf, variable, first, counts)
    if counts is None:
        raise ArgumentError(f"{variable.name}: {name} needs the number of values in each dimension")
    return subarray(pnetcdf, variable, first, counts)


def _words(name: str) -> str:
    return f"{'Write' if 'put' in name else 'Read'} {'a list of subarrays' if 'varn' in name else 'a subarray'}"


def _named(method: _Method, name: str, says: str) -> _Method:
    method.__name__, method.__qualname__, method.__doc__ = name, f"File.{name}", says + _PARAMETERS
    return method
