"""The kind of each operation: the enforcement rules of POSIX and MPI-IO.

Source.    He, Du, Narasimhamurthy, "PIONEER", section IV-B and Figures 1a and 1b: operations of column 1 need no open
           file, those of column 2 are made in an open session, between an open and a close (a hard dependency). Seeks
           before and waits after an operation are soft dependencies.
Content.   `CATALOG` has every operation that the tracers and readers know, by the table of I/O calls. Another one is
           kept with its name, counts as one of column 1, and is not generated.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from mpiio_ext.common.iocalls import CALLS, Call


class Role(enum.Enum):
    """The role of an operation. The first ones belong to an open session."""

    OPEN = "open"
    CLOSE = "close"
    READ = "read"
    WRITE = "write"
    SEEK = "seek"
    SYNC = "sync"
    RESIZE = "resize"
    QUERY = "query"
    CONTROL = "control"  # views, hints, locks, modes
    BEGIN = "begin"  # first half of a split collective
    END = "end"
    MAP = "map"
    UNMAP = "unmap"
    DUPLICATE = "duplicate"
    WAIT = "wait"  # names no file
    META = "meta"  # column 1: needs a name, no open file


#: Roles of operations that move data of a file.
DATA = frozenset({Role.READ, Role.WRITE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation.

    Attributes
    ----------
    name : as in the unified table.
    layer : "posix", "stdio", "mpiio" or "mpi".
    role : what it does.
    writes : it writes; None: it moves nothing.
    explicit_offset : it does not use the file pointer.
    collective : of all processes that have opened the file.
    nonblocking : it returns a request, which a wait ends.
    shared_pointer : it uses the shared file pointer of MPI-IO.
    """

    name: str
    layer: str
    role: Role
    writes: bool | None = None
    explicit_offset: bool = False
    collective: bool = False
    nonblocking: bool = False
    shared_pointer: bool = False

    @property
    def in_session(self) -> bool:
        """Whether it is of column 2: it needs an open file."""
        return self.role not in (Role.META, Role.WAIT)


def _operation(call: Call) -> Operation:
    moves = {"read", "write"}.intersection(call.words)
    return Operation(
        name=call.name,
        layer=call.layer,
        role=Role(call.role),
        writes="write" in moves if moves else None,
        explicit_offset="at" in call.words,
        collective="collective" in call.words,
        nonblocking="nonblocking" in call.words,
        shared_pointer="shared" in call.words,
    )


#: Operations by layer and name.
CATALOG = {(call.layer, call.name): _operation(call) for call in CALLS if call.role}


def _with(word: str) -> frozenset[str]:
    return frozenset(call.name for call in CALLS if word in call.words)


#: Calls after which their file has no such name any more; that make their second name (`file2` of `extra`); calls
#: without a handle that succeed only where the file is there; that list a folder.
REMOVING, SECOND_NAMES, NEEDING, LISTING = _with("removes"), _with("second"), _with("needs"), _with("lists")

#: Origin of a seek, by its name in traces: 0 the beginning, 1 the file pointer, 2 the end. 600 and so on are
#: MPI_SEEK_SET, _CUR and _END of MPICH and Open MPI.
WHENCE = {
    "0": 0,
    "1": 1,
    "2": 2,
    "SEEK_SET": 0,
    "SEEK_CUR": 1,
    "SEEK_END": 2,
    "MPI_SEEK_SET": 0,
    "MPI_SEEK_CUR": 1,
    "MPI_SEEK_END": 2,
    "600": 0,
    "602": 1,
    "604": 2,
}

#: Names without the parts that `normal_name` removes -> those of the table.
_OTHER_NAMES = {call.name.lstrip("_"): call.values["is"] for call in CALLS if "is" in call.values}
_PREFIX = re.compile(r"^(?:SYS_|__libc_|__GI_|P(?=MPI_))")
#: Suffixes of C libraries: large files, checked forms.
_SUFFIX = re.compile(r"(?:64)?(?:_2|_chk)?$")


def normal_name(name: str) -> str:
    """Return the name of an operation without the additions of tracers and C libraries: SYS_, 64, _c, __xstat."""
    plain = _PREFIX.sub("", name)
    if plain.startswith("MPIO_"):  # waits of old MPICH releases
        plain = "MPI_" + plain.removeprefix("MPIO_")
    if plain.startswith("MPI_"):
        return plain.removesuffix("_c")
    plain = _SUFFIX.sub("", plain, count=1).lstrip("_")
    return _OTHER_NAMES.get(plain, plain)


def operation_of(layer: str, name: str) -> Operation:
    """Return an operation; one that is not in the catalogue is of column 1."""
    return CATALOG.get((layer, name)) or Operation(name=name, layer=layer, role=Role.META)
