"""What each operation is: the enforcement rules of POSIX and MPI-IO.

Source.    He, Du, Narasimhamurthy, "PIONEER", section IV-B and Figures 1a and 1b: operations of column 1 need no open
           file, those of column 2 are made in an open session, between an open and a close (a hard dependency). Seeks
           before and waits after an operation are soft dependencies.
Content.   `CATALOG` has every operation that the tracers and readers know. An operation that is not in it is kept with
           its name, counts as one of column 1, and is not generated.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass


class Role(enum.Enum):
    """What an operation does. The first ones belong to an open session."""

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


def _plain(layer: str, role: Role, names: str, *, collective: bool = False) -> Iterable[Operation]:
    for name in names.split():
        yield Operation(name=name, layer=layer, role=role, collective=collective)


def _data(layer: str, reads: str, writes: str, *, explicit_offset: bool = False) -> Iterable[Operation]:
    for role, names in ((Role.READ, reads), (Role.WRITE, writes)):
        for name in names.split():
            yield Operation(
                name=name, layer=layer, role=role, writes=role is Role.WRITE, explicit_offset=explicit_offset
            )


def _posix() -> Iterable[Operation]:
    yield from _plain("posix", Role.OPEN, "open openat creat mkstemp")
    yield from _plain("posix", Role.CLOSE, "close")
    yield from _data("posix", "read readv sendfile copy_file_range", "write writev dprintf")
    yield from _data("posix", "pread preadv preadv2", "pwrite pwritev pwritev2", explicit_offset=True)
    yield from _plain("posix", Role.SEEK, "lseek")
    yield from _plain("posix", Role.SYNC, "fsync fdatasync sync_file_range msync")
    yield from _plain("posix", Role.RESIZE, "ftruncate fallocate posix_fallocate")
    yield from _plain("posix", Role.QUERY, "fstat fstatfs fstatvfs readdir getdents fgetxattr")
    yield from _plain(
        "posix", Role.CONTROL, "fcntl flock fchmod fchown futimens fsetxattr posix_fadvise readahead ioctl"
    )
    yield from _plain("posix", Role.MAP, "mmap")
    yield from _plain("posix", Role.UNMAP, "munmap")
    yield from _plain("posix", Role.DUPLICATE, "dup dup2 dup3")
    yield from _plain("posix", Role.OPEN, "opendir")
    yield from _plain("posix", Role.CLOSE, "closedir")
    yield from _plain(
        "posix",
        Role.META,
        "stat lstat fstatat statx access faccessat unlink unlinkat rename renameat mkdir mkdirat "
        "rmdir truncate chmod chown lchown link symlink readlink readlinkat statfs statvfs utime utimes utimensat "
        "getxattr setxattr umask chdir remove",
    )


def _stdio() -> Iterable[Operation]:
    yield from _plain("stdio", Role.OPEN, "fopen fdopen freopen tmpfile")
    yield from _plain("stdio", Role.CLOSE, "fclose")
    yield from _data("stdio", "fread fgets fgetc getline fscanf", "fwrite fputs fputc fprintf vfprintf")
    yield from _plain("stdio", Role.SEEK, "fseek fseeko rewind fsetpos")
    yield from _plain("stdio", Role.SYNC, "fflush")
    yield from _plain("stdio", Role.QUERY, "ftell ftello feof ferror fileno fgetpos")
    yield from _plain("stdio", Role.CONTROL, "setvbuf setbuf")
    yield from _plain("stdio", Role.META, "remove")


def _mpiio_data() -> Iterable[Operation]:
    """Yield MPI_File_[i]{read,write}[_at|_shared|_ordered][_all][_begin|_end]."""
    for verb, role in (("read", Role.READ), ("write", Role.WRITE)):
        for where in ("", "_at", "_shared"):
            for kind in ("", "i"):
                yield Operation(
                    name=f"MPI_File_{kind}{verb}{where}",
                    layer="mpiio",
                    role=role,
                    writes=verb == "write",
                    explicit_offset=where == "_at",
                    nonblocking=kind == "i",
                    shared_pointer=where == "_shared",
                )
        for where, shared in (("_all", False), ("_at_all", False), ("_ordered", True)):
            for kind in ("", "i") if not shared else ("",):
                yield Operation(
                    name=f"MPI_File_{kind}{verb}{where}",
                    layer="mpiio",
                    role=role,
                    writes=verb == "write",
                    explicit_offset="_at" in where,
                    collective=True,
                    nonblocking=kind == "i",
                    shared_pointer=shared,
                )
            for half, part in (("_begin", Role.BEGIN), ("_end", Role.END)):
                yield Operation(
                    name=f"MPI_File_{verb}{where}{half}",
                    layer="mpiio",
                    role=part,
                    writes=verb == "write",
                    explicit_offset="_at" in where,
                    collective=True,
                    shared_pointer=shared,
                )


def _mpiio() -> Iterable[Operation]:
    yield from _plain("mpiio", Role.OPEN, "MPI_File_open", collective=True)
    yield from _plain("mpiio", Role.CLOSE, "MPI_File_close", collective=True)
    yield from _mpiio_data()
    yield from _plain("mpiio", Role.SEEK, "MPI_File_seek")
    yield from _plain("mpiio", Role.SEEK, "MPI_File_seek_shared", collective=True)
    yield from _plain("mpiio", Role.SYNC, "MPI_File_sync", collective=True)
    yield from _plain("mpiio", Role.RESIZE, "MPI_File_set_size MPI_File_preallocate", collective=True)
    yield from _plain(
        "mpiio",
        Role.QUERY,
        "MPI_File_get_size MPI_File_get_position MPI_File_get_position_shared MPI_File_get_view "
        "MPI_File_get_byte_offset MPI_File_get_amode MPI_File_get_group MPI_File_get_info MPI_File_get_atomicity "
        "MPI_File_get_type_extent MPI_File_get_errhandler",
    )
    controls = "MPI_File_set_view MPI_File_set_info MPI_File_set_atomicity"
    yield from _plain("mpiio", Role.CONTROL, controls, collective=True)
    yield from _plain("mpiio", Role.CONTROL, "MPI_File_set_errhandler MPI_File_call_errhandler")
    yield from _plain("mpiio", Role.META, "MPI_File_delete")
    waits = "MPI_Wait MPI_Waitall MPI_Waitany MPI_Waitsome MPI_Test MPI_Testall MPI_Testany MPI_Testsome"
    yield from _plain("mpi", Role.WAIT, waits)


#: Calls after which their file has no such name any more; that make their second name (`file2` of `extra`); calls
#: without a handle that succeed only where the file is there.
REMOVING = frozenset({"unlink", "unlinkat", "remove", "rename", "renameat", "rmdir", "MPI_File_delete"})
SECOND_NAMES = frozenset({"rename", "renameat", "link"})
NEEDING = frozenset(
    {"unlink", "unlinkat", "remove", "rename", "renameat", "truncate", "link", "chmod", "MPI_File_delete"}
)

#: What a seek starts from, by what traces call it: 0 the beginning, 1 the file pointer, 2 the end. 600 and so on are
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

#: Operations by layer and name.
CATALOG = {(item.layer, item.name): item for item in (*_posix(), *_stdio(), *_mpiio())}

_VERSIONED = {
    "xstat": "stat",
    "lxstat": "lstat",
    "fxstat": "fstat",
    "fxstatat": "fstatat",
    "newfstatat": "fstatat",
    "llseek": "lseek",
    "IO_getc": "fgetc",
}
_PREFIX = re.compile(r"^(?:SYS_|__libc_|__GI_|P(?=MPI_))")
#: What C libraries append: large files, checked forms.
_SUFFIX = re.compile(r"(?:64)?(?:_2|_chk)?$")


def normal_name(name: str) -> str:
    """Return the name of an operation without what tracers and C libraries add to it: SYS_, 64, _c, __xstat."""
    plain = _PREFIX.sub("", name)
    if plain.startswith("MPIO_"):  # waits of old MPICH releases
        plain = "MPI_" + plain.removeprefix("MPIO_")
    if plain.startswith("MPI_"):
        return plain.removesuffix("_c")
    plain = _SUFFIX.sub("", plain, count=1).lstrip("_")
    return _VERSIONED.get(plain, plain)


def operation_of(layer: str, name: str) -> Operation:
    """Return an operation; one that is not in the catalogue is of column 1."""
    return CATALOG.get((layer, name)) or Operation(name=name, layer=layer, role=Role.META)
