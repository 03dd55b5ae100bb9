"""The regions of a Darshan log: what each module wrote, in pieces, without Darshan's library.

Problem. DXT of many ranks is millions of requests. Darshan's library hands out a record at a time, crashes on damaged
logs, and needs a process of its own for that.

Algorithm. The header says where the region of each module lies. A region is one or more streams of zlib or bzip2, one
behind the other; each is inflated in pieces of at most :data:`PIECE` bytes. Records are put together from pieces.

Guarantees. Memory does not depend on the size of the log. A damaged log is a :class:`DamagedLogError`, never a crash.

Source: darshan-util, darshan-log-format.h, darshan-dxt-log-format.h, darshan-heatmap-log-format.h.
"""

from __future__ import annotations

import bz2
import dataclasses
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mpiio_ext.errors import MpiioExtError

PIECE = 4 << 20
_MAGIC = 6567223
#: Modules in the order of the header; formats before 3.41 lack some of them.
_MODULES = (
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
#: Versions of the DXT modules from which on a request has the thread that made it.
_WITH_THREAD = {"DXT_POSIX": 2, "DXT_MPIIO": 3}
_REQUEST = [("offset", "i8"), ("length", "i8"), ("start", "f8"), ("end", "f8")]
_DXT_HEAD, _HEAT_HEAD = "Qqq64sqq", "Qqdqqq"
#: Modules whose records are counters, then times, then other bytes: numbers of each, by version.
_COUNTERS = {
    "POSIX": {3: (64, 17, 0), 4: (69, 17, 0)},
    "STDIO": {2: (14, 15, 0)},
    "MPI-IO": {2: (51, 15, 0), 3: (51, 17, 0)},
    "DFS": {1: (52, 15, 32), 2: (52, 15, 32)},
    "DAOS": {1: (64, 15, 48), 2: (64, 15, 48)},
}
_MOST = 1 << 40

Requests = npt.NDArray[np.void]


class DamagedLogError(MpiioExtError, ValueError):
    """A region of a log cannot be read; the message says which one."""


@dataclasses.dataclass(frozen=True)
class Access:
    """Requests of one rank to one file in one direction, in their order: a record of DXT, or a part of it.

    ``requests`` has the fields offset and length (B), start and end (s since the job's start). `host` is that of the
    rank; `place` is how many requests of the module stand before the first one, reads of a record before its writes.
    """

    file: int
    rank: int
    write: bool
    requests: Requests
    host: str = ""
    place: int = 0


@dataclasses.dataclass(frozen=True)
class Heat:
    """Bytes that one rank moves in each bin of time: HEATMAP; `layer` is ``POSIX``, ``MPIIO`` or ``STDIO``."""

    layer: str
    rank: int
    width_s: float
    written: npt.NDArray[np.int64]
    read: npt.NDArray[np.int64]


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

    Raises
    ------
    OSError
        The file cannot be read.
    DamagedLogError
        It has no header of a log.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self.path.open("rb") as stream:
            head = stream.read(32 + 16 * 65 + 4 * 64)
        magic = head[8:16]
        self.order = next((order for order in "<>" if magic == struct.pack(f"{order}q", _MAGIC)), "")
        self.version = version = head[:8].rstrip(b"\0").decode("ascii", "replace")
        new = version.replace(".", "").isdigit() and float(version) >= 3.41
        count, at = (64, 32) if new else (16, 24)
        if not self.order or len(head) < at + 20 * count + 16:
            raise DamagedLogError(f"{path}: this is no log of Darshan, or its header is cut")
        self._how = head[16]
        (partial,) = struct.unpack_from(f"{self.order}{'Q' if new else 'I'}", head, 24 if new else 20)
        maps = list(struct.iter_unpack(f"{self.order}QQ", head[at : at + 16 * (count + 1)]))
        versions = struct.unpack_from(f"{self.order}{count}I", head, at + 16 * (count + 1))
        known = [name for name in _MODULES if name not in _LACKING.get(version, ())]
        self._names = _Region(0, maps[0][0], maps[0][1], False)
        first, end = at + 16 * (count + 1) + 4 * count, min((start for start, size in maps if size), default=_MOST)
        self._job, self._new = _Region(0, first, max(end - first, 0), False), new
        self.modules = {
            name: _Region(versions[k], maps[k + 1][0], maps[k + 1][1], bool(partial >> k & 1))
            for k, name in enumerate(known[:count])
            if maps[k + 1][1]
        }

    def partial(self, module: str) -> bool:
        """Return whether a module ran out of memory while it recorded."""
        return self.modules[module].partial

    def accesses(self, module: str) -> Iterator[Access]:
        """Yield what a module of DXT has recorded; long records come in parts.

        Raises
        ------
        DamagedLogError
            The region is damaged; what came before is right.
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

    def job(self) -> tuple[int, int]:
        """Return the number of processes and the start (ns since 1970); errors are those of `accesses`."""
        data = self._inflated(self._job, "job")
        _, start, *rest = struct.unpack(f"{self.order}{'7q' if self._new else '5q'}", data.all(56 if self._new else 40))
        return rest[3 if self._new else 1], start * 10**9 + (rest[0] if self._new else 0)

    def heat(self) -> Iterator[Heat]:
        """Yield the records of HEATMAP; errors are those of `accesses`."""
        data, layers = self._inflated(self.modules["HEATMAP"], "HEATMAP"), self._layers()
        while head := data.take(struct.calcsize(f"={_HEAT_HEAD}")):
            number, rank, width, bins, _, _ = struct.unpack(f"{self.order}{_HEAT_HEAD}", head)
            if not (0 <= bins < 1 << 24 and 0 < width < 1e9):
                raise DamagedLogError(f"{self.path}: module HEATMAP is damaged")
            both = np.frombuffer(data.all(16 * bins), f"{self.order}i8").astype(np.int64)
            yield Heat(layers.get(number, ""), rank, width, both[:bins], both[bins:])

    def counters(self, module: str) -> Iterator[Requests]:
        """Yield records of POSIX, STDIO, MPI-IO, DFS or DAOS, many at once; none of an unknown version.

        They have the fields file, rank (-1: all ranks), counters and times. Errors are those of `accesses`.
        """
        region = self.modules[module]
        sizes = _COUNTERS[module].get(region.version)
        if sizes is None:
            return
        record = np.dtype(
            [
                ("file", f"{self.order}u8"),
                ("rank", f"{self.order}i8"),
                ("counters", f"{self.order}i8", (sizes[0],)),
                ("times", f"{self.order}f8", (sizes[1],)),
                ("rest", f"V{sizes[2]}"),
            ]
        )
        data = self._inflated(region, module)
        while part := data.some(record.itemsize, PIECE // record.itemsize):
            yield np.frombuffer(part, record)

    def names(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the name of each file; errors are those of `accesses`."""
        text = self._inflated(self._names, "names").rest()
        at = 0
        while (end := text.find(b"\0", at + 8)) > 0:
            yield struct.unpack_from(f"{self.order}Q", text, at)[0], text[at + 8 : end].decode("utf-8", "replace")
            at = end + 1

    def _layers(self) -> dict[int, str]:
        return {number: name.partition(":")[2] for number, name in self.names() if name.startswith("heatmap:")}

    def _inflated(self, region: _Region, what: str) -> _Bytes:
        return _Bytes(self._pieces(region, what), f"{self.path}: {what} is cut or damaged")

    def _pieces(self, region: _Region, what: str) -> Iterator[bytes]:
        """Yield the bytes of a region, inflated."""
        inflater: _Inflater | None = None
        with self.path.open("rb") as stream:
            stream.seek(min(region.offset, _MOST))
            left, data = region.length, b""
            while left > 0 or data:
                if not data:
                    data = stream.read(min(left, PIECE >> 4))
                    left = left - len(data) if data else 0
                if self._how > 1:
                    yield data
                    data = b""
                    continue
                inflater = inflater or _Inflater(self._how == 1)
                try:
                    out, data = inflater.inflate(data)
                except (zlib.error, OSError, ValueError) as error:
                    raise DamagedLogError(f"{self.path}: {what} is damaged ({error})") from error
                inflater = None if inflater.ended else inflater
                yield out
        if inflater is not None:
            raise DamagedLogError(f"{self.path}: {what} is cut")


class _Inflater:
    """One stream of zlib or bzip2."""

    def __init__(self, bzip2: bool) -> None:
        self._zlib = None if bzip2 else zlib.decompressobj()
        self._bzip2 = bz2.BZ2Decompressor()
        self.ended = False

    def inflate(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what comes out, at most a piece of zlib, and the bytes that are left."""
        if self._zlib is None:
            out, self.ended = self._bzip2.decompress(data), self._bzip2.eof
            return out, self._bzip2.unused_data
        out, self.ended = self._zlib.decompress(data, PIECE), self._zlib.eof
        return out, self._zlib.unused_data if self.ended else self._zlib.unconsumed_tail


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
        """Return at most so many things of a size, all of them whole; none at the end."""
        first = self.take(size)
        if not first:
            return first
        while len(self._buffer) < size * (most - 1) and (piece := next(self._pieces, None)) is not None:
            self._buffer += piece
        return first + self.take(min(len(self._buffer) // size, most - 1) * size)

    def rest(self) -> bytes:
        """Return all that is left."""
        return bytes(self._buffer) + b"".join(self._pieces)
