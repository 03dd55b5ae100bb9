"""The contents of the index of a file that is stored as several subfiles.

Problem. A program of thousands of ranks has written one logical file as many. Every reader of its name has to recognise
the file's kind, including programs that do not know subfiles, and must not take the leftovers of a killed job for the
file.

Format. Text with a newline behind each line, in this order::

    mpiio_ext subfiles 1
    This is the index of a file that is stored as several. One plain file is made by: mpiio-ext subfiles merge NAME
    state whole            (writing: no closed file; then there is no size)
    unit 1048576           (bytes)
    count 4
    size 123456789         (bytes of the logical file; where it is written: writers N, if N > 1)
    id 0123456789abcdef    (at random)
    subfile NAME.subfiles/0123456789abcdef.0
    checksum 89abcdef      (CRC-32 of all bytes before this line)

Unit u is in subfile u mod count, at the place (u div count) · unit. Paths are relative to the folder of the index; in
them, a percent sign and bytes below 0x20 are percent-encoded. A subfile is named after the id and its number; .1 to .99
may follow, by which the library chooses a server. If the state is whole, each subfile has exactly its share of the
size; else the last byte of the file is the last one of any subfile.

Guarantees. A valid index has every line in its place, whole numbers in their ranges and the right checksum.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import zlib
from pathlib import Path

from mpiio_ext.common.files import read_plain
from mpiio_ext.errors import FileSystemError, MpiioExtError

HEAD = b"mpiio_ext subfiles "
_VERSION = 1
#: The suffix of a folder of subfiles, behind the name of the file.
FOLDER = ".subfiles"
WHOLE, WRITING = "whole", "writing"
MOST_UNIT, MOST_COUNT, MOST_SIZE = 2**62, 4096, 2**63 - 1
#: Bytes of the largest index that is read.
MOST_BYTES = 8 << 20
_CODE = re.compile(rb"%([0-9A-Fa-f]{2})")
_LINES = re.compile(
    rb"mpiio_ext subfiles (?P<version>[0-9]{1,9})\n[^\n]*\nstate (?P<state>whole|writing)\n"
    rb"unit (?P<unit>0|[1-9][0-9]{0,18})\ncount (?P<count>0|[1-9][0-9]{0,18})\n"
    rb"(?:size (?P<size>0|[1-9][0-9]{0,18})\n|writers (?:[2-9]|[1-9][0-9]{1,9})\n)?id (?P<id>[0-9a-f]{16})\n"
    rb"(?P<subfiles>(?:subfile [^\n]+\n)*)checksum (?P<checksum>[0-9a-f]{8})\n"
)


class SubfilesError(MpiioExtError):
    """A file that is stored as several cannot be used as requested; the message names it and the reason."""


class NoIndexError(SubfilesError):
    """A file is not the index of subfiles."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Striping:
    """Where the bytes of the logical file are.

    Attributes
    ----------
    unit : bytes.
    count : subfiles.
    """

    unit: int
    count: int

    def place(self, offset: int) -> tuple[int, int]:
        """Return the subfile of a byte of the logical file, and its place there."""
        row, inside = divmod(offset, self.unit)
        return row % self.count, row // self.count * self.unit + inside

    def logical(self, number: int, place: int) -> int:
        """Return where a byte of a subfile is in the logical file."""
        row, inside = divmod(place, self.unit)
        return (row * self.count + number) * self.unit + inside

    def end(self, number: int, length: int) -> int:
        """Return where the logical file ends if a subfile of `length` bytes has its last byte."""
        return self.logical(number, length - 1) + 1 if length else 0

    def length(self, number: int, size: int) -> int:
        """Return the bytes of a logical file of `size` bytes that are in a subfile."""
        rows, rest = divmod(size, self.unit * self.count)
        return rows * self.unit + min(max(rest - number * self.unit, 0), self.unit)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file that is stored as several, as its index has it.

    Attributes
    ----------
    path : of the index, which is the logical name.
    text : of the index.
    state : `WHOLE` or `WRITING`.
    striping : unit and count.
    size : bytes of the logical file; None while it is written.
    ident : 16 hexadecimal digits, which all subfiles have in their names.
    subfiles : their paths, in their order; relative ones as the index has them, until `stored.find` has found them.
    """

    path: Path
    text: bytes
    state: str
    striping: Striping
    size: int | None
    ident: str
    subfiles: tuple[Path, ...]

    @property
    def folder(self) -> Path:
        """Return the folder of the subfiles."""
        return self.subfiles[0].parent

    def is_named(self, number: int) -> bool:
        """Return whether a subfile has its name; a trial may be behind it, by which the library chooses a server."""
        return bool(re.fullmatch(rf"{self.ident}\.{number}(\.[1-9][0-9]?)?", self.subfiles[number].name))


def _plain(text: bytes) -> str:
    return os.fsdecode(_CODE.sub(lambda found: bytes([int(found[1], 16)]), text))


def parse(text: bytes, path: Path = Path("index")) -> Stored:
    """Return the contents of an index.

    Raises
    ------
    NoIndexError
        The text is no index: it does not begin as an index does.
    SubfilesError
        The index is damaged, or of another version.
    """
    if not text.startswith(HEAD):
        raise NoIndexError(f"{path}: is no index of subfiles: it does not begin with '{HEAD.decode().strip()}'")
    version = re.match(rb"([0-9]{1,9})\n", text[len(HEAD) :])
    if version is not None and int(version[1]) != _VERSION:
        raise SubfilesError(f"{path}: is an index of version {int(version[1])}; this release knows {_VERSION} alone")
    found = _LINES.fullmatch(text)
    if found is None:
        raise SubfilesError(f"{path}: is a damaged index: a line is missing, unknown or not in its place")
    written, right = found["checksum"].decode(), f"{zlib.crc32(text[: found.start('checksum') - len('checksum ')]):08x}"
    if written != right:
        raise SubfilesError(f"{path}: is a damaged index: its checksum is {written}, but its lines have {right}")
    unit, count, state = int(found["unit"]), int(found["count"]), found["state"].decode()
    size = None if found["size"] is None else int(found["size"])
    names = tuple(_plain(line.removeprefix(b"subfile ")) for line in found["subfiles"].split(b"\n")[:-1])
    wrong = _wrong(state, unit, count, size, names)
    if wrong:
        raise SubfilesError(f"{path}: is a damaged index: {wrong}")
    return Stored(
        path=path,
        text=text,
        state=state,
        striping=Striping(unit=unit, count=count),
        size=size,
        ident=found["id"].decode(),
        subfiles=tuple(map(Path, names)),
    )


def _wrong(state: str, unit: int, count: int, size: int | None, names: tuple[str, ...]) -> str:
    """Return the mistake in the values; "": none."""
    if not 1 <= unit <= MOST_UNIT:
        return f"its unit is {unit}"
    if not 1 <= count <= MOST_COUNT or len(names) != count:
        return f"it counts {count} subfiles and names {len(names)}"
    if (size is None) != (state == WRITING):
        return "an index has a size if its state is whole, and only then"
    if size is not None and size > MOST_SIZE:
        return f"its size is {size}"
    if len(set(names)) != count or any("\0" in name for name in names):
        return "two subfiles have one name, or a name has a byte 0"
    return ""


def read(path: Path) -> Stored:
    """Return the contents of an index.

    Raises
    ------
    SubfilesError
        As of `parse`.
    FileSystemError
        The file cannot be read.
    """
    try:
        if not is_index(path, missing_ok=False):
            return parse(b"", path)
        text = read_plain(path.resolve(), MOST_BYTES)
    except OSError as error:
        raise FileSystemError(error.errno, f"cannot be read: {error.strerror or error}", str(path)) from error
    if text is None:
        raise SubfilesError(f"{path}: is a damaged index: it is larger than {MOST_BYTES} B")
    return parse(text, path)


def is_index(path: Path, *, missing_ok: bool = True) -> bool:
    """Return whether a file begins as an index does; with `missing_ok` one that cannot be read does not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        if missing_ok:
            return False
        raise
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode) and os.pread(descriptor, len(HEAD), 0) == HEAD
    finally:
        os.close(descriptor)
