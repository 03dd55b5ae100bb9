"""Which operations the engine issues: each by its own name, by another call that does the same, or not at all.

What is left out is declared here with its reason, counted in the plan, and printed by ``mpiio-ext pioneer replay``; a
test holds this list against everything that the tracer records.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpiio_ext.pioneer.engine.beside import COPIES
from mpiio_ext.pioneer.operations import CATALOG

#: What the engine makes of an operation, where that is not the operation itself.
STAND_INS = {
    "openat": "open",
    "creat": "open",
    "mkstemp": "open",
    "dprintf": "write",
    "readv": "read",
    "writev": "write",
    "preadv": "pread",
    "pwritev": "pwrite",
    "preadv2": "pread",
    "pwritev2": "pwrite",
    "fallocate": "posix_fallocate",
    "lstat": "stat",
    "fstatat": "stat",
    "statx": "stat",
    "faccessat": "access",
    "unlinkat": "unlink",
    "mkdirat": "mkdir",
    "renameat": "rename",
    "fgets": "fread",
    "fgetc": "fread",
    "fputs": "fwrite",
    "fputc": "fwrite",
    "fprintf": "fwrite",
    "vfprintf": "fwrite",
    "fseeko": "fseek",
    "rewind": "fseek",
    "ftello": "ftell",
    "fdopen": "fopen",
    "freopen": "fopen",
    "remove": "unlink",
    "getdents": "readdir",
    **{f"MPI_{kind}{which}": "MPI_Wait" for kind in ("Wait", "Test") for which in ("all", "any", "some")},
    "MPI_Test": "MPI_Wait",
}

_NO_IO = "it does no I/O"
_NO_DATA = "it moves no data, and changes no name or length"
_DUPLICATE = "what goes through a duplicate goes through the descriptor itself"

#: Operations that are not made, and why.
LEFT_OUT: Mapping[str, str] = {
    "MPI_Init": "the engine is an MPI program by itself",
    "MPI_Init_thread": "the engine is an MPI program by itself",
    "MPI_Finalize": "the engine is an MPI program by itself",
    **{
        f"MPI_File_{name}": _NO_IO for name in ("create_errhandler", "get_errhandler", "c2f", "f2c", "toint", "fromint")
    },
    "MPI_File_set_errhandler": "the engine has to see errors: they are returned",
    "MPI_File_call_errhandler": "the engine has to see errors: they are returned",
    **dict.fromkeys(("dup", "dup2", "dup3", "fcntl"), _DUPLICATE),
    "MPI_Barrier": "ranks meet in the collective calls on files; their pace is in the slack times",
    **{f"MPI_Request_get_status{kind}": "it only looks at a request" for kind in ("", "_all", "_any", "_some")},
    **dict.fromkeys(
        (
            "chown",
            "lchown",
            "utime",
            "utimes",
            "utimensat",
            "readlink",
            "readlinkat",
            "statfs",
            "statvfs",
            "getxattr",
            "setxattr",
            "fchmod",
            "fchown",
            "futimens",
            "flock",
            "posix_fadvise",
            "readahead",
            "fstatfs",
            "fstatvfs",
            "fgetxattr",
            "fsetxattr",
        ),
        _NO_DATA,
    ),
    "symlink": "a link could lead out of the folder",
}

#: Of `getdents` on a descriptor that `open` has returned.
BY_DESCRIPTOR = "a folder is read through a descriptor"
#: Of calls without the name, or the second name, that they need.
NAMELESS = "the path names no file for it"
ONE_NAME = 'the path has no second name for it ("file2" in extra)'
#: Of what the engine itself leaves out.
NOT_OPEN = "its file is not open then: its open has failed, it is closed, or open in another way"
_NO_OPEN = "its file is not opened in the path"
_UNKNOWN = "the engine does not know it"
_NO_TARGET = "the file that it copies to is not open in the path"
_NO_VIEW = "the trace does not tell the file type: data goes to the offsets of its stream"


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
    """Numbers of the engine's operations by name; the library is loaded when the first is asked for."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] | None = None

    def get(self, name: str) -> int | None:
        """Return the number of an operation or of what stands in for it; None: the engine has neither."""
        if self._numbers is None:
            self._numbers = _load_operations()
        found = self._numbers.get(name)
        return self._numbers.get(STAND_INS.get(name, "")) if found is None else found


OPERATIONS = _Operations()


def engine_number(layer: str, name: str) -> int | None:
    """Return what the engine makes of an operation: its number; None: the engine leaves it out, or it is of no layer.

    An operation that is written under another layer than its own has no open file there, and is not made.
    """
    return OPERATIONS.get(name) if (layer, name) in CATALOG else None


def engine_name(number: int) -> str:
    """Return the name of one of the engine's operations."""
    from mpiio_ext.pioneer.engine.library import engine

    ffi, lib = engine()
    return str(ffi.string(lib.mpiio_ext_engine_name(number)).decode())
