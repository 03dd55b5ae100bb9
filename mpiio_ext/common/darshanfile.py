"""Darshan logs, without Darshan's library: the job, names, and what each module wrote, in pieces.

Problem. DXT of many ranks is millions of requests. Darshan's library returns one record at a time and crashes on
damaged logs. It treats the rest of a cut region as the whole region. So it would need a process of its own.

Algorithm. The header says where the region of each module lies. A region is one or more streams of zlib or bzip2, one
behind the other; each is inflated in pieces of at most :data:`PIECE` bytes. Records are put together from pieces, and
those of older versions get the form of the newest one, with -1 for what they lack.

Guarantees. Memory does not depend on the size of the log where records come in pieces. A damaged log is a
:class:`DamagedLogError`, never a crash: the checksum of each stream is looked at.

Source: darshan-util, darshan-log-format.h, darshan-{posix,stdio,mpiio,dxt,heatmap}-log-format.h, and how
darshan-logutils.c reads older versions.
"""

from __future__ import annotations

import bz2
import dataclasses
import functools
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpiio_ext.common.limits import limit_text, most_bytes
from mpiio_ext.errors import MpiioExtError

PIECE = 4 << 20
MAGIC = 6567223
#: First bytes of a file that are read at once: all of most logs. Header and first regions are in them.
_FIRST = 1 << 16
#: Bytes that go into an inflater at once; those behind the end of a stream, which may be small, are copied.
_FED = 1 << 13
#: Modules by their number, which is their place in the header; formats before 3.41 lack some of them.
MODULES = (
    "NULL",
    "POSIX",
    "MPI-IO",
    "H5F",
    "H5D",
    "PNETCDF_FILE",
    "PNETCDF_VAR",
    "BG/Q",
    "LUSTRE",
    "STDIO",
    "DXT_POSIX",
    "DXT_MPIIO",
    "MDHIM",
    "APXC",
    "APMPI",
    "HEATMAP",
    "DFS",
    "DAOS",
)
_LACKING = {
    "3.00": ("H5D", "PNETCDF_VAR"),
    "3.10": ("H5D", "PNETCDF_VAR"),
    "3.20": ("PNETCDF_VAR",),
    "3.21": ("PNETCDF_VAR",),
}
#: Most bytes of a job that are stored; its numbers and metadata, behind which are its command line and mounts.
_JOB_BYTES, _LEAST_JOB_BYTES, _METADATA_BYTES = 4096, 1081, 1024
#: A mount behind a newline: type and folder. As C's scanf, which Darshan uses, it may take them from later lines.
_MOUNT = re.compile(r"\n(?=\s*(\S+)\s+(\S+))", re.ASCII)
#: Versions of the DXT modules from which on a request has the thread that made it.
_WITH_THREAD = {"DXT_POSIX": 2, "DXT_MPIIO": 3}
_REQUEST = [("offset", "i8"), ("length", "i8"), ("start", "f8"), ("end", "f8")]
_DXT_HEAD, _HEAT_HEAD = "Qqq64sqq", "Qqdqqq"
_SIZES = "0_100 100_1K 1K_10K 10K_100K 100K_1M 1M_4M 4M_10M 10M_100M 100M_1G 1G_PLUS".split()
_RANKS = ("FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES")
_RANK_TIMES = ("FASTEST_RANK_TIME", "SLOWEST_RANK_TIME", "VARIANCE_RANK_TIME", "VARIANCE_RANK_BYTES")


def _common(what: str) -> list[str]:
    """Return the names of the four most common things, then those of how often each was."""
    return [f"{what}{k}_{of}" for of in (what, "COUNT") for k in range(1, 5)]


_EDGES = [f"{call}_{edge}_TIMESTAMP" for edge in ("START", "END") for call in ("OPEN", "READ", "WRITE", "CLOSE")]
_TIMES = (*_EDGES, "READ_TIME", "WRITE_TIME", "META_TIME", "MAX_READ_TIME", "MAX_WRITE_TIME", *_RANK_TIMES)
#: Modules whose records are counters, then times: the names of both in the newest version, in their order.
COUNTERS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "POSIX": (
        [
            *"OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS".split(),
            *"RENAME_SOURCES RENAME_TARGETS RENAMED_FROM MODE BYTES_READ BYTES_WRITTEN".split(),
            *"MAX_BYTE_READ MAX_BYTE_WRITTEN CONSEC_READS CONSEC_WRITES SEQ_READS SEQ_WRITES RW_SWITCHES".split(),
            *"MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED FILE_ALIGNMENT".split(),
            *"MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE".split(),
            *(f"SIZE_{way}_{size}" for way in ("READ", "WRITE") for size in _SIZES),
            *_common("STRIDE"),
            *_common("ACCESS"),
            *_RANKS,
        ],
        _TIMES,
    ),
    "MPI-IO": (
        [
            *"INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES SPLIT_READS SPLIT_WRITES".split(),
            *"NB_READS NB_WRITES SYNCS HINTS VIEWS MODE BYTES_READ BYTES_WRITTEN RW_SWITCHES".split(),
            *"MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE".split(),
            *(f"SIZE_{way}_AGG_{size}" for way in ("READ", "WRITE") for size in _SIZES),
            *_common("ACCESS"),
            *_RANKS,
        ],
        _TIMES,
    ),
    "STDIO": (
        [
            *"OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ".split(),
            *("MAX_BYTE_READ", "MAX_BYTE_WRITTEN"),
            *_RANKS,
        ],
        [
            *("META_TIME", "WRITE_TIME", "READ_TIME"),
            *(f"{call}_{edge}_TIMESTAMP" for edge in ("START", "END") for call in ("OPEN", "CLOSE", "WRITE", "READ")),
            *_RANK_TIMES,
        ],
    ),
}
_FD_CALLS = ("FILENOS", "DUPS", "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM")
_CLOSES = ("CLOSE_START_TIMESTAMP", "OPEN_END_TIMESTAMP")
#: Counters of the newest version that records of a version lack; other versions are not known.
_LACKS: Mapping[str, Mapping[int, Sequence[str]]] = {
    "POSIX": {1: (*_FD_CALLS, *_CLOSES), 2: (*_FD_CALLS, *_CLOSES), 3: _FD_CALLS, 4: ()},
    "MPI-IO": {1: _CLOSES, 2: _CLOSES, 3: ()},
    "STDIO": {1: ("FDOPENS",), 2: ()},
    "DFS": {1: (), 2: ()},
    "DAOS": {1: (), 2: ()},
    "H5F": {3: ()},
    "H5D": {2: ()},
    "PNETCDF_VAR": {1: ()},
}
#: Of other modules: numbers of counters, times and further words. The first counter of H5D and of PNETCDF_VAR is the
#: number of the file.
_OTHERS = {"DFS": (52, 15, 4), "DAOS": (64, 15, 6), "H5F": (3, 5, 0), "H5D": (95, 17, 0), "PNETCDF_VAR": (121, 17, 0)}
#: Words of version 1 of POSIX, first and last, that are counters of STDIO; the first one is of opens.
_STDIO_IN_POSIX = 8, 11
_MOST = 1 << 40

Requests = npt.NDArray[np.void]


class DamagedLogError(MpiioExtError, ValueError):
    """A region of a log cannot be read; the message names it. `what`: the message of Darshan's library about a job."""

    def __init__(self, message: str, what: str = "") -> None:
        super().__init__(message)
        self.what = what


@dataclasses.dataclass(frozen=True)
class Columns:
    """Counters and times of records of a module of :data:`COUNTERS`, by their names.

    Attributes
    ----------
    records : array (records)
        With the fields file, rank, counters and times.
    module : of which they are.
    """

    records: Requests
    module: str

    def count(self, *names: str) -> npt.NDArray[np.int64]:
        """Return the sum of some counters of each record; a counter that is not known (-1) is 0."""
        known = [np.maximum(self.value(name), 0) for name in names]
        return np.sum(known, axis=0, dtype=np.int64) if known else np.zeros(len(self.records), np.int64)

    def value(self, name: str) -> npt.NDArray[np.int64]:
        """Return a counter of each record as the log has it: -1 where it is not known."""
        column = self.records["counters"][:, COUNTERS[self.module][0].index(name)]
        return np.asarray(column.astype(np.int64))

    def time(self, name: str) -> npt.NDArray[np.float64]:
        """Return a time of each record (s) as the log has it."""
        return np.asarray(self.records["times"][:, COUNTERS[self.module][1].index(name)].astype(float))

    @property
    def rank(self) -> npt.NDArray[np.int64]:
        """Return the rank of each record: -1 for one that all ranks share."""
        return np.asarray(self.records["rank"].astype(np.int64))

    @property
    def file(self) -> npt.NDArray[np.int64]:
        """Return the number of each record's file as tables have it: 64 bits with a sign."""
        return np.asarray(self.records["file"].astype(np.uint64).view(np.int64))


@dataclasses.dataclass(frozen=True)
class Access:
    """Requests of one rank to one file in one direction, in their order: a record of DXT, or a part of it.

    ``requests`` has the fields offset and length (B), start and end (s since the job's start). `host` is the host of
    the rank; `place` is the number of the module's requests before the first one, reads of a record before its writes.
    """

    file: int
    rank: int
    write: bool
    requests: Requests
    host: str = ""
    place: int = 0

    @property
    def signed(self) -> int:
        """Return the number of the file as tables have it: 64 bits with a sign."""
        return self.file - (1 << 64) if self.file >= 1 << 63 else self.file


@dataclasses.dataclass(frozen=True)
class Heat:
    """Bytes that one rank moves in each bin of time: HEATMAP; `layer` is ``POSIX``, ``MPIIO`` or ``STDIO``."""

    layer: str
    rank: int
    width_s: float
    written: npt.NDArray[np.int64]
    read: npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobRecord:
    """Facts of a log about the run as a whole.

    Attributes
    ----------
    uid, processes, number : of the user, of ranks, of the job.
    start, start_ns, end, end_ns : whole seconds since 1970, and what there is beyond (ns; 0 before format 3.41).
    command : the command line; empty if no line of a mount follows, as Darshan's library has it.
    mounts : type and folder of file systems; None if the table is damaged.
    """

    uid: int
    start: int
    start_ns: int
    end: int
    end_ns: int
    processes: int
    number: int
    command: bytes
    mounts: Sequence[tuple[str, str]] | None


@dataclasses.dataclass(frozen=True)
class _Region:
    version: int
    offset: int
    length: int
    partial: bool


class DarshanFile:
    """A log.

    Parameters
    ----------
    path : str or Path

    Attributes
    ----------
    modules : mapping of str to region
        Modules with bytes in the log, by name (``module 53`` where it has none), in the order of their numbers.
    left_out : int
        Records of POSIX that :meth:`records` has left out so far: Darshan 3.0 mixed calls of STDIO into them.

    Raises
    ------
    OSError
        The file cannot be read.
    DamagedLogError
        The file has no header of a log.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self.path.open("rb") as stream:
            self.size, self._first = os.fstat(stream.fileno()).st_size, stream.read(_FIRST)
        head, self.left_out = self._first, 0
        magic = head[8:16]
        self.order = next((order for order in "<>" if magic == struct.pack(f"{order}q", MAGIC)), "")
        self.version = version = head[:8].partition(b"\0")[0].decode("ascii", "replace")
        self._new = new = re.fullmatch(r"[0-9]+(\.[0-9]+)?", version) is not None and float(version) >= 3.41
        count, at = (64, 32) if new else (16, 24)
        if not self.order or len(head) < at + 20 * count + 16:
            raise DamagedLogError(f"{path}: this is no log of Darshan, or its header is cut")
        self._how = head[16]
        (partial,) = struct.unpack_from(f"{self.order}{'Q' if new else 'I'}", head, 24 if new else 20)
        numbers = struct.unpack_from(f"{self.order}{2 * count + 2}Q{count}I", head, at)
        places, lengths, versions = (
            numbers[: 2 * count + 2 : 2],
            numbers[1 : 2 * count + 2 : 2],
            numbers[2 * count + 2 :],
        )
        self._begun = {place for place, length in zip(places, lengths, strict=True) if length}
        self._names = _Region(0, places[0], lengths[0], False)
        first = at + 16 * (count + 1) + 4 * count
        length = (next(filter(None, places), self.size) - first) % (1 << 32)  # as Darshan's library counts it
        self._job = _Region(0, first, length, False)
        self.modules = {
            name: _Region(versions[k], places[k + 1], lengths[k + 1], bool(partial >> k & 1))
            for k, name in enumerate(_modules(version, count))
            if lengths[k + 1]
        }

    @property
    def compression(self) -> int:
        """Return how regions are compressed: 0 by zlib, 1 by bzip2, 2 not at all."""
        return self._how

    def is_cut(self, module: str) -> bool:
        """Return whether the region of a module, or that of the ``names``, ends behind the file."""
        region = self._region(module)
        return region.length > 0 and region.offset + region.length > self.size

    def has_gap(self, module: str) -> bool:
        """Return whether bytes behind a region belong to no region: Darshan writes regions one behind the other.

        `module` : its name, or ``names``.
        """
        region = self._region(module)
        end = region.offset + region.length
        return region.length > 0 and end != self.size and end not in self._begun

    def _region(self, module: str) -> _Region:
        return self._names if module == "names" else self.modules[module]

    def version_of(self, module: str) -> int:
        """Return the version of a module's records."""
        return self.modules[module].version

    def partial(self, module: str) -> bool:
        """Return whether a module ran out of memory while it recorded."""
        return self.modules[module].partial

    def accesses(self, module: str) -> Iterator[Access]:
        """Yield the records of a module of DXT; long records come in parts.

        Raises
        ------
        DamagedLogError
            The region is damaged; the records before the damage are right.
        """
        region = self.modules[module]
        fields = [(name, f"{self.order}{kind}") for name, kind in _REQUEST]
        if region.version >= _WITH_THREAD[module]:
            fields.append(("thread", f"{self.order}i8"))
        request, data, before = np.dtype(fields), self._inflated(region, module), 0
        while head := data.take(struct.calcsize(f"={_DXT_HEAD}")):
            file, rank, _, name, writes, reads = struct.unpack(f"{self.order}{_DXT_HEAD}", head)
            if not (0 <= writes < _MOST and 0 <= reads < _MOST and -1 <= rank < 1 << 31):
                raise DamagedLogError(f"{self.path}: module {module} is damaged")
            host = name.partition(b"\0")[0].decode("utf-8", "replace")
            for write, left, place in ((True, writes, before + reads), (False, reads, before)):
                while left:
                    part = min(left, PIECE // request.itemsize)
                    requests = np.frombuffer(data.all(part * request.itemsize), request)
                    yield Access(file, rank, write, requests, host, place)
                    left, place = left - part, place + part
            before += writes + reads

    def start(self) -> int:
        """Return the job's begin (s since 1970); errors are those of `job`."""
        data = self._of_job(16, len(self._first) - self._job.offset, 16)
        return int(struct.unpack_from(f"{self.order}q", data, 8)[0])

    def job(self) -> JobRecord:
        """Return the job of the log.

        Raises
        ------
        DamagedLogError
            The record of the job is cut off, too short, or damaged.
        """
        data = self._of_job(_JOB_BYTES, self._job.length, _LEAST_JOB_BYTES)
        if self._new:
            uid, start, start_ns, end, end_ns, ranks, number = struct.unpack_from(f"{self.order}7q", data)
        else:
            uid, start, end, ranks, number = struct.unpack_from(f"{self.order}5q", data)
            start_ns = end_ns = 0
        text = data[(56 if self._new else 40) + _METADATA_BYTES :].partition(b"\0")[0]
        command, newline, _ = text.partition(b"\n")
        mounts = _MOUNT.findall(text_of(text))
        whole = mounts if len(mounts) == text.count(b"\n") else None
        return JobRecord(
            uid=uid,
            start=start,
            start_ns=start_ns,
            end=end,
            end_ns=end_ns,
            processes=ranks,
            number=number,
            command=command if newline else b"",
            mounts=whole,
        )

    def _of_job(self, count: int, length: int, least: int) -> bytes:
        """Return the first `count` bytes of the job, at least `least`, of a region of `length` bytes."""
        length = min(length, PIECE >> 2)
        data, found, at = self._bytes(self._job.offset, length), b"", 0
        if not data or len(data) < length:
            raise DamagedLogError(f"{self.path}: job is cut", "unable to read compressed data from file")
        while at < len(data) and len(found) < count:
            try:
                inflater = _Inflater(self._how)
                out, used = inflater.inflate(data[at:], count - len(found))
            except (zlib.error, OSError, ValueError) as error:
                problem = f"{self.path}: job is damaged ({error})"
                raise DamagedLogError(problem, "unable to inflate darshan log data") from error
            found, at = found + out, at + used
            if not inflater.ended:
                break
        if len(found) < least:
            raise DamagedLogError(f"{self.path}: job is too short", "failed to read darshan log file job data")
        return found[:count]

    def heat(self) -> Iterator[Heat]:
        """Yield the records of HEATMAP; errors are those of `accesses`."""
        data, layers = self._inflated(self.modules["HEATMAP"], "HEATMAP"), self._layers()
        while head := data.take(struct.calcsize(f"={_HEAT_HEAD}")):
            number, rank, width, bins, _, _ = struct.unpack(f"{self.order}{_HEAT_HEAD}", head)
            if not (0 <= bins < 1 << 24 and 0 < width < 1e9):
                raise DamagedLogError(f"{self.path}: module HEATMAP is damaged")
            both = np.frombuffer(data.all(16 * bins), f"{self.order}i8").astype(np.int64)
            yield Heat(layers.get(number, ""), rank, width, both[:bins], both[bins:])

    def knows(self, module: str) -> bool:
        """Return whether the version of a module's records is one that `counters` knows."""
        return self.modules[module].version in _LACKS[module]

    def counters(self, module: str) -> Iterator[Requests]:
        """Yield records of POSIX, STDIO, MPI-IO and of the modules in `_OTHERS`; none of an unknown version.

        The records have the fields file, rank (-1: all ranks), counters and times, in the form of the newest version; a
        field that an older version lacks is -1. Errors are those of `accesses`.
        """
        if not self.knows(module):
            return
        counters, times, rest = _shape(module)
        fields = [("file", "u8"), ("rank", "i8"), ("counters", "i8", (counters,)), ("times", "f8", (times,))]
        record, data = np.dtype([*fields, ("rest", f"V{8 * rest}")]), self._inflated(self.modules[module], module)
        size = 8 * self._width(module)
        while part := data.some(size, PIECE // size):
            yield self._newest(module, part).view(record)[:, 0]

    def whole(self, module: str) -> bytes:
        """Return all bytes of a module.

        Raises
        ------
        DamagedLogError
            The records cannot be read, as in `accesses`.
        MemoryError
            The module has more bytes than `common.limits.most_bytes`.
        """
        return self._inflated(self.modules[module], module).rest()

    def records(self, module: str, data: bytes) -> npt.NDArray[np.int64]:
        """Return the records in bytes of POSIX, STDIO or MPI-IO, as `counters` has them.

        A row each of file, rank, counters and the bits of times; :func:`place_of` returns the place of a counter.

        Raises
        ------
        DamagedLogError
            The last record is cut, as where the records are of another version than the header says.
        """
        if len(data) % (8 * self._width(module)):
            raise DamagedLogError(f"{self.path}: module {module} is damaged")
        return self._newest(module, data)

    def words(self, data: bytes) -> npt.NDArray[np.int64]:
        """Return bytes as numbers of 8 bytes; a last one is filled up with zeros."""
        data += bytes(-len(data) % 8)
        return np.frombuffer(data, f"{self.order}i8").astype(np.int64, copy=False)

    def _width(self, module: str) -> int:
        """Return the words of a record as it is in the log."""
        version, (first, last) = self.modules[module].version, _STDIO_IN_POSIX
        stdio = last + 1 - first if (module, version) == ("POSIX", 1) else 0
        return 2 + sum(_shape(module)) - len(_LACKS[module][version]) + stdio

    def _newest(self, module: str, data: bytes) -> npt.NDArray[np.int64]:
        """Return records in the form of the newest version, in this machine's byte order."""
        version, (first, last) = self.modules[module].version, _STDIO_IN_POSIX
        old = self.words(data).reshape(-1, self._width(module))
        if (module, version) == ("POSIX", 1):
            pure = old[:, first] <= 0
            self.left_out += int(np.count_nonzero(~pure))
            old = np.delete(old[pure], slice(first, last + 1), axis=1)
        if not _LACKS[module][version]:
            return old
        counters, times = COUNTERS[module]
        found = np.full((len(old), 2 + len(counters) + len(times)), -1, np.int64)
        lacks = [place_of(module, name) for name in _LACKS[module][version]]
        found[:, 2 + len(counters) :].view(np.float64)[:] = -1.0
        found[:, np.delete(np.arange(found.shape[1]), lacks)] = old
        return found

    def names(self, *, whole: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the number and the name of each file; errors are those of `accesses`.

        With `whole`, it is an error, too, if the last name has no end.
        """
        text = self._inflated(self._names, "names").rest()
        head = struct.Struct(f"{self.order}QI" if self.version == "3.00" else f"{self.order}Q")
        at, end = 0, len(text)
        while at + head.size < end:
            number, *length = head.unpack_from(text, at)
            start = at + head.size
            stop = start + length[0] if length else text.find(b"\0", start)
            if not start <= stop <= end:
                break
            yield number, text_of(text[start:stop].partition(b"\0")[0])
            at = stop if length else stop + 1
        if whole and at < end:
            raise DamagedLogError(f"{self.path}: names is damaged")

    def _layers(self) -> dict[int, str]:
        return {number: name.partition(":")[2] for number, name in self.names() if name.startswith("heatmap:")}

    def _inflated(self, region: _Region, what: str) -> _Bytes:
        return _Bytes(self._pieces(region, what), f"{self.path}: {what} is cut or damaged")

    def _bytes(self, place: int, count: int) -> bytes:
        """Return bytes of the file, fewer only at its end."""
        if count <= 0 or place + count <= len(self._first):
            return self._first[place : place + max(count, 0)]
        with self.path.open("rb") as stream:
            stream.seek(min(place, _MOST))
            return stream.read(count)

    def _pieces(self, region: _Region, what: str) -> Iterator[bytes]:
        """Yield the bytes of a region, inflated."""
        inflater: _Inflater | None = None
        place, left, data, at, full = region.offset, region.length, b"", 0, False
        while left > 0 or at < len(data) or full:
            if at == len(data) and not full:
                data, at = self._bytes(place, min(left, PIECE >> 4)), 0
                place, left = place + len(data), left - len(data) if data else 0
            try:
                inflater = inflater or _Inflater(self._how)
                out, used = inflater.inflate(b"" if full else data[at : at + _FED], PIECE)
                at, full = at + used, inflater.full
            except (zlib.error, OSError, ValueError) as error:
                raise DamagedLogError(f"{self.path}: {what} is damaged ({error})") from error
            inflater = None if inflater.ended else inflater
            yield out
        if inflater is not None:
            raise DamagedLogError(f"{self.path}: {what} is cut")


@functools.cache
def _modules(version: str, count: int) -> Sequence[str]:
    """Return the names of the modules of a format, as its header has them."""
    known = [name for name in MODULES if name not in _LACKING.get(version, ())]
    return (known + [f"module {k}" for k in range(len(MODULES), count)])[:count]


@functools.cache
def _shape(module: str) -> tuple[int, int, int]:
    """Return how many counters, times and further words the newest records of a module have."""
    if module in _OTHERS:
        return _OTHERS[module]
    counters, times = COUNTERS[module]
    return len(counters), len(times), 0


@functools.cache
def place_of(module: str, name: str) -> int:
    """Return where a counter or a time is in a row of `DarshanFile.records`."""
    counters, times = COUNTERS[module]
    return 2 + (counters.index(name) if name in counters else len(counters) + times.index(name))


def text_of(data: bytes) -> str:
    """Return a text of a log, with U+FFFD for each byte that is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return re.sub("[\udc80-\udcff]", "\ufffd", data.decode(errors="surrogateescape"))


class _Inflater:
    """One stream of zlib or bzip2, or bytes that are not compressed."""

    def __init__(self, how: int) -> None:
        self._zlib = zlib.decompressobj() if how == 0 else None
        self._bzip2 = bz2.BZ2Decompressor() if how == 1 else None
        self.ended = how > 1

    @property
    def full(self) -> bool:
        """Whether more comes out before anything else may go in."""
        return self._bzip2 is not None and not self.ended and not self._bzip2.needs_input

    def inflate(self, data: bytes, most: int) -> tuple[bytes, int]:
        """Return output, at most so many bytes, and the number of input bytes: below 0 if bzip2 gives some back."""
        if self._zlib is not None:
            out, self.ended = self._zlib.decompress(data, most), self._zlib.eof
            return out, len(data) - len(self._zlib.unused_data if self.ended else self._zlib.unconsumed_tail)
        if self._bzip2 is not None:
            out, self.ended = self._bzip2.decompress(data, most), self._bzip2.eof
            return out, len(data) - len(self._bzip2.unused_data)
        return data, len(data)


class _Bytes:
    """Bytes that are taken from pieces."""

    def __init__(self, pieces: Iterator[bytes], problem: str) -> None:
        self._pieces, self._problem, self._buffer = pieces, problem, bytearray()

    def take(self, count: int) -> bytes:
        """Return the next bytes; fewer only at the end, and then none."""
        while len(self._buffer) < count and (piece := next(self._pieces, None)) is not None:
            self._buffer += piece
        if 0 < len(self._buffer) < count:
            raise DamagedLogError(self._problem)
        found = bytes(self._buffer[:count])
        del self._buffer[:count]
        return found

    def all(self, count: int) -> bytes:
        """Return the next bytes, which must be there."""
        found = self.take(count)
        if len(found) < count:
            raise DamagedLogError(self._problem)
        return found

    def some(self, size: int, most: int) -> bytes:
        """Return at most so many complete items of a size; none at the end."""
        first = self.take(size)
        if not first:
            return first
        while len(self._buffer) < size * (most - 1) and (piece := next(self._pieces, None)) is not None:
            self._buffer += piece
        return first + self.take(min(len(self._buffer) // size, most - 1) * size)

    def rest(self) -> bytes:
        """Return all that is left, or raise `MemoryError` for more than `most_bytes`."""
        most, found, size = most_bytes(), [bytes(self._buffer)], len(self._buffer)
        for piece in self._pieces:
            found.append(piece)
            if (size := size + len(piece)) > most:
                raise MemoryError(f"a part of it has {limit_text(most)}")
        return b"".join(found)
