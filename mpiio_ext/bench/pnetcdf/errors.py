"""The error of a PnetCDF call."""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError


class PnetcdfError(MpiioExtError):
    """A PnetCDF call returned an error.

    Attributes
    ----------
    status : PnetCDF's error code, negative (NC_E…).
    name : name of that code, "NC_ENOENT".
    call : the C function, "ncmpi_open".
    path : the file.
    variable : the variable, or None when the call is about the whole file.
    """

    def __init__(self, *, status: int, name: str, text: str, call: str, path: str, variable: str | None = None) -> None:
        where = path if variable is None else f"{path}, variable {variable!r}"
        super().__init__(f"{where}: {call}: {text} ({name})")
        self.status = status
        self.name = name
        self.call = call
        self.path = path
        self.variable = variable
