"""The one opener of logs: the bytes and lines of a file, unpacked if it is gzip, up to a limit.

Problem. Two megabytes of gzip can contain two gigabytes, and a line without an end is as long as its file: a reader
that takes all of either takes the memory of the machine. A gzip file may also end early, or be damaged in its middle.

Algorithm. The stream unpacks as much as its reader takes, and counts the bytes. Everything before a damage is there;
the stream then ends, and its `wrong` says why.

Guarantees. The stream has at most `most_bytes`, and ``MOST_LINE_BYTES`` a line. A reader that reads further gets an
error that names the file, both sizes, and the option. The stream itself takes some 2 MiB of memory.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mpiio_ext.analytics.sources.records import SourceError
from mpiio_ext.common.limits import limit_text, most_bytes

#: A line, at most: a statement of mysqldump is the longest one, of up to 16 MB.
MOST_LINE_BYTES = 16 << 20
_GZIP = b"\x1f\x8b"
_PIECE, _FED = 1 << 20, 64 << 10


class _Unpacked(io.RawIOBase):
    """The bytes of a file, unpacked if it is gzip (of several members)."""

    def __init__(self, file: BinaryIO, name: str, file_bytes: int) -> None:
        self._file, self._name = file, name
        self._fed = self._read(_FED)
        self._packed_bytes = file_bytes if self._fed.startswith(_GZIP) else None
        self._most = most_bytes(self._packed_bytes)
        self.count = 0
        self._member: Any = None
        self.wrong = ""

    def _read(self, most: int) -> bytes:
        try:
            return self._file.read(most)
        except OSError as error:
            raise SourceError(self._name, 0, f"cannot be read: {error.strerror or error}") from error

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        piece = self._plain(len(buffer)) if self._packed_bytes is None else self._inflated(len(buffer))
        self.count += len(piece)
        if self.count > self._most:
            raise SourceError(self._name, 0, limit_text(self._most, self._packed_bytes))
        buffer[: len(piece)] = piece
        return len(piece)

    def _plain(self, most: int) -> bytes:
        fed = self._fed or self._read(most)
        self._fed = fed[most:]
        return fed[:most]

    def _inflated(self, most: int) -> bytes:
        piece = b""
        while not piece and not self.wrong:
            if self._member is None and not self._begin():
                break
            fed = self._fed or self._read(_FED)
            try:
                piece = self._member.decompress(fed, most)
            except zlib.error as error:
                self.wrong = f"damaged gzip: {error}"
                break
            self._fed = self._member.unconsumed_tail
            if self._member.eof:
                self._fed, self._member = self._member.unused_data, None
            elif not fed and not piece:
                self.wrong = "gzip that ends early"
        return piece

    def _begin(self) -> bool:
        """Begin the next member; False: there is none."""
        if len(self._fed) < len(_GZIP):
            self._fed += self._read(_FED)
        if self._fed.startswith(_GZIP):
            self._member = zlib.decompressobj(wbits=31)
            return True
        count, zeros = 0, True  # tapes and some copies fill up with zeros
        while self._fed:
            count, zeros = count + len(self._fed), zeros and not self._fed.strip(b"\0")
            self._fed = self._read(_FED)
        self.wrong = "" if zeros else f"{count:,} bytes behind the end of the gzip data"
        return False


class Log(io.BufferedReader):
    """The contents of a file as a stream of bytes.

    Parameters
    ----------
    file : binary file
        It is closed with the stream.
    name : str
        Its name, for errors.
    file_bytes : int

    Raises
    ------
    SourceError
        The file cannot be read, or is empty.
    """

    def __init__(self, file: BinaryIO, name: str, file_bytes: int) -> None:
        self._unpacked = _Unpacked(file, name, file_bytes)
        super().__init__(self._unpacked, _PIECE)
        self._name = name
        if not file_bytes:
            raise SourceError(name, 0, "empty")

    @property
    def wrong(self) -> str:
        """The reason why the rest of the stream cannot be unpacked, known at its end; "" if there is no fault."""
        return self._unpacked.wrong

    @property
    def count(self) -> int:
        """How many bytes were read of it."""
        return self._unpacked.count

    def lines(self) -> Iterator[bytes]:
        """Yield the lines with their ends, but for one in which a damage is.

        Raises
        ------
        SourceError
            A line is longer than `MOST_LINE_BYTES`, or the unpacked contents are larger than the limit.
        """
        number = 0
        while line := self.readline(MOST_LINE_BYTES + 1):
            number += 1
            if len(line) > MOST_LINE_BYTES:
                raise SourceError(
                    self._name, number, f"a line of more than {MOST_LINE_BYTES:,} bytes, which no tool prints"
                )
            if line.endswith(b"\n") or not self.wrong:
                yield line


def open_log(path: Path) -> Log:
    """Open a file.

    Raises
    ------
    SourceError
        The file cannot be read, or is empty.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise SourceError(str(path), 0, f"cannot be read: {error.strerror or error}") from error
    return Log(file, str(path), os.fstat(file.fileno()).st_size)
