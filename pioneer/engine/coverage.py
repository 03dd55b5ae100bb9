"""The operations that the engine issues: each by its own name, by another call with the same effect, or not at all.

The table of I/O calls states which of these applies, and the reason for leaving an operation out. The plan counts these
operations, and ``mpiio-ext pioneer replay`` prints the counts. A test holds it against everything that the tracer
records.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpiio_ext.common.iocalls import CALLS
from mpiio_ext.pioneer.engine.beside import COPIES
from mpiio_ext.pioneer.operations import CATALOG

#: The engine's stand-in for an operation that it does not make itself.
STAND_INS = {
    call.name: call.values.get("as") or call.values["plain"]
    for call in CALLS
    if call.role and {"as", "plain"} & call.values.keys() and "left" not in call.values
}

#: Why an operation is left out, by the word of the table of I/O calls.
_REASONS = {
    "mpi_program": "the engine is an MPI program by itself",
    "no_io": "it does no I/O",
    "no_data": "it moves no data, and changes no name or length",
    "errors": "the engine has to see errors: they are returned",
    "duplicate": "what goes through a duplicate goes through the descriptor itself",
    "pace": "ranks meet in the collective calls on files; their pace is in the slack times",
    "looks": "it only probes a request",
    "link": "a link could lead out of the folder",
}
#: Operations that are not made, and why.
LEFT_OUT: Mapping[str, str] = {call.name: _REASONS[call.values["left"]] for call in CALLS if "left" in call.values}

#: Of `getdents` on a descriptor that `open` has returned.
BY_DESCRIPTOR = "a folder is read through a descriptor"
#: Of calls without the name, or the second name, that they need.
NAMELESS = "the path names no file for it"
ONE_NAME = 'the path has no second name for it ("file2" in extra)'
#: Reasons for operations that the engine itself leaves out.
NOT_OPEN = "its file is not open then: its open failed, it was closed, or it is open in another mode"
_NO_OPEN = "its file is not opened in the path"
_UNKNOWN = "the engine does not know it"
_NO_TARGET = "the file that it copies to is not open in the path"
_NO_VIEW = "the trace does not have the file type: data goes to the offsets of its stream"


def reason_of(name: str, *, known: bool) -> str:
    """Return why an operation is left out; `known`: the engine could make it."""
    if known and name in COPIES:
        return _NO_TARGET
    if known:
        return _NO_VIEW if name == "MPI_File_set_view" else _NO_OPEN
    return LEFT_OUT.get(name, _UNKNOWN)


def _load_operations() -> dict[str, int]:
    from mpiio_ext.pioneer.engine.library import engine

    ffi, lib = engine()
    names: dict[str, int] = {}
    while (name := lib.mpiio_ext_engine_name(len(names))) != ffi.NULL:
        names[ffi.string(name).decode()] = len(names)
    return names


class _Operations:
    """Numbers of the engine's operations by name; the library is loaded at the first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] | None = None

    def get(self, name: str) -> int | None:
        """Return the number of an operation or of its stand-in; None: the engine has neither."""
        if self._numbers is None:
            self._numbers = _load_operations()
        found = self._numbers.get(name)
        return self._numbers.get(STAND_INS.get(name, "")) if found is None else found


OPERATIONS = _Operations()


def engine_number(layer: str, name: str) -> int | None:
    """Return the engine's number of an operation; None if the engine leaves it out, or it is of no layer.

    An operation that is written under another layer than its own has no open file there, and is not made.
    """
    return OPERATIONS.get(name) if (layer, name) in CATALOG else None


def engine_name(number: int) -> str:
    """Return the name of one of the engine's operations."""
    from mpiio_ext.pioneer.engine.library import engine

    ffi, lib = engine()
    return str(ffi.string(lib.mpiio_ext_engine_name(number)).decode())
