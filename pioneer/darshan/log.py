"""A log in Darshan's format, written by the C library of Darshan's own tools.

Problem. The format has a header of places, compressed regions and versions that change with Darshan's releases.
Algorithm. libdarshan-util, which the package ``darshan`` brings, writes it, region by region in the order that it
wants: job, program, mounts, names, then the modules by number. The library returns the counters of a record.
Guarantee. What was written is opened again and its job is read, before it gets its name; else there is no file.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext.common.darshanfile import MODULES
from mpiio_ext.common.extras import darshan_library
from mpiio_ext.common.files import replacing
from mpiio_ext.errors import FileSystemError, MpiioExtError

#: Module -> the version of its records; they are written in this order, which is that of the modules' numbers.
_VERSIONS = {"POSIX": 4, "MPI-IO": 3, "STDIO": 2, "DXT_POSIX": 1, "DXT_MPIIO": 2, "HEATMAP": 1}
_METADATA_BYTES, _EXE_BYTES, _MOUNT_BYTES, _NAME_BYTES = 1024, 4000, 3015, 4096
#: Most bytes in one call: the library takes an int.
_PIECE_BYTES = 1 << 28
#: Most bytes of the library's standard error that are kept; bytes of a test write.
_MOST_SAID, _PROBE_BYTES = 1 << 16, 1 << 16
_DECLARATIONS = """
struct darshan_job { int64_t uid, start_time_sec, start_time_nsec, end_time_sec, end_time_nsec, nprocs, jobid;
                     char metadata[1024]; };
struct darshan_mnt_info { char mnt_type[3015]; char mnt_path[3015]; };
struct name_record { uint64_t id; char name[]; };
struct hash_handle { void *table, *previous, *next, *hash_previous, *hash_next, *key; unsigned key_bytes, hash; };
struct name_reference { struct name_record *name_record; struct hash_handle hlink; };
void *darshan_log_create(const char *, int, uint64_t);
void *darshan_log_open(const char *);
int darshan_log_get_job(void *, struct darshan_job *);
int darshan_log_put_job(void *, struct darshan_job *);
int darshan_log_put_exe(void *, char *);
int darshan_log_put_mounts(void *, struct darshan_mnt_info *, int);
int darshan_log_put_namehash(void *, struct name_reference *);
int darshan_log_put_mod(void *, int, void *, int, int);
void darshan_log_close(void *);
extern char *posix_counter_names[]; extern char *posix_f_counter_names[];
extern char *mpiio_counter_names[]; extern char *mpiio_f_counter_names[];
extern char *stdio_counter_names[]; extern char *stdio_f_counter_names[];
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The facts of a log about the run as a whole.

    Attributes
    ----------
    start_ns, end_ns : since 1970.
    processes : of MPI_COMM_WORLD; 1 without MPI.
    identity : number of the job.
    exe : command line of the program.
    mounts : type and folder of file systems.
    metadata : name -> value, without "=" and newlines.
    """

    start_ns: int
    end_ns: int
    processes: int
    identity: int
    exe: str
    mounts: Sequence[tuple[str, str]]
    metadata: Mapping[str, str]


@functools.cache
def _library() -> tuple[Any, Any]:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(_DECLARATIONS)
    try:
        return ffi, ffi.dlopen(darshan_library("a Darshan log", "pioneer"))
    except OSError as error:
        raise MpiioExtError(f"Darshan's library cannot be loaded: {error}") from error


@functools.cache
def counter_names(module: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of a module's counters, whole numbers and floating-point ones, in the order of its records."""
    ffi, library = _library()

    def listed(array: Any) -> tuple[str, ...]:
        names: list[str] = []
        while not (name := ffi.string(array[len(names)]).decode()).endswith("_NUM_INDICES"):
            names.append(name)
        return tuple(names)

    prefix = module.replace("-", "").lower()
    return listed(getattr(library, f"{prefix}_counter_names")), listed(getattr(library, f"{prefix}_f_counter_names"))


def _cut(text: str, most_bytes: int) -> bytes:
    return os.fsencode(text).replace(b"\0", b"?")[: most_bytes - 1]


def _metadata(pairs: Mapping[str, str]) -> bytes:
    """Return ``NAME=VALUE`` lines, as many as there is room for."""
    lines = b""
    for name, value in pairs.items():
        line = f"{name}={value}\n".replace("\0", "?").encode(errors="replace")
        if len(lines) + len(line) < _METADATA_BYTES:
            lines += line
    return lines


def _names(ffi: Any, names: Mapping[int, str]) -> tuple[Any, list[Any]]:
    """Return the first of a chain of names, and the objects that must live as long."""
    alive: list[Any] = []
    first = ffi.NULL
    for number, name in names.items():
        record = ffi.new("struct name_record *", {"id": number, "name": _cut(name, _NAME_BYTES) + b"\0"})
        reference = ffi.new("struct name_reference *", {"name_record": record})
        reference.hlink.next = first
        first = reference
        alive += (record, reference)
    return first, alive


def _job(ffi: Any, job: Job) -> Any:
    made = ffi.new("struct darshan_job *")
    made.uid, made.nprocs, made.jobid = os.getuid(), job.processes, job.identity
    made.start_time_sec, made.start_time_nsec = divmod(job.start_ns, 10**9)
    made.end_time_sec, made.end_time_nsec = divmod(job.end_ns, 10**9)
    made.metadata = _metadata(job.metadata)
    return made


def _put(part: Path, job: Job, names: Mapping[int, str], modules: Mapping[str, bytes], partial: int) -> bool:
    """Write all regions; return whether the library took them."""
    ffi, library = _library()
    handle = library.darshan_log_create(os.fsencode(part), 0, partial)
    if handle == ffi.NULL:
        return False
    mounts = ffi.new("struct darshan_mnt_info[]", max(len(job.mounts), 1))
    for place, (kind, folder) in zip(mounts, job.mounts):  # noqa: B905  (none: one empty place)
        place.mnt_type, place.mnt_path = _cut(kind, _MOUNT_BYTES), _cut(folder, _MOUNT_BYTES)
    first, alive = _names(ffi, names)
    taken = [
        library.darshan_log_put_job(handle, _job(ffi, job)),
        library.darshan_log_put_exe(handle, ffi.new("char[]", _cut(job.exe, _EXE_BYTES))),
        library.darshan_log_put_mounts(handle, mounts, len(job.mounts)),
        library.darshan_log_put_namehash(handle, first),
    ]
    del alive
    for module, version in _VERSIONS.items():
        number, data = MODULES.index(module), modules.get(module, b"")
        for at in range(0, len(data), _PIECE_BYTES):
            piece = ffi.from_buffer(data[at : at + _PIECE_BYTES])
            taken.append(library.darshan_log_put_mod(handle, number, piece, len(piece), version))
    library.darshan_log_close(handle)
    return all(code >= 0 for code in taken)


def _is_readable(part: Path) -> bool:
    ffi, library = _library()
    handle = library.darshan_log_open(os.fsencode(part))
    if handle == ffi.NULL:
        return False
    try:
        return bool(library.darshan_log_get_job(handle, ffi.new("struct darshan_job *")) == 0)
    finally:
        library.darshan_log_close(handle)


def write(path: Path, job: Job, names: Mapping[int, str], modules: Mapping[str, bytes], partial: Sequence[str]) -> None:
    """Write a log, whole or not at all.

    Parameters
    ----------
    path : file that it is afterwards; one that is there is replaced.
    names : number of a record -> name of its file.
    modules : name of a module -> its records, one behind the other.
    partial : modules that lack something.

    Raises
    ------
    FileSystemError
        The log cannot be written, for example because the disk is full.
    MissingExtraError
        The package ``darshan`` is not installed.
    """
    flags = sum(1 << MODULES.index(module) for module in partial)
    with replacing(path) as part, _errors_of() as printed:
        if not (_put(part, job, names, modules, flags) and part.exists() and _is_readable(part)):
            raise FileSystemError(None, f"cannot be written: {_reason(part, printed())}", str(path))


@contextlib.contextmanager
def _errors_of() -> Iterator[Callable[[], str]]:
    """Capture standard error in the block, that of C code, too; yield the function that returns it."""
    with tempfile.TemporaryFile() as kept:
        before = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield lambda: os.pread(kept.fileno(), _MOST_SAID, 0).decode(errors="replace")
        finally:
            os.dup2(before, 2)
            os.close(before)


def _reason(part: Path, printed: str) -> str:
    """Return why a log could not be written: Darshan's library only names the failed step."""
    try:
        with part.open("ab") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or "its file system refuses"
    return next((line.removeprefix("Error: ") for line in printed.splitlines() if line), "it cannot be read again")
