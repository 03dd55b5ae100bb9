"""What an executable or a shared library asks the dynamic linker for, read from its ELF dynamic section.

Only what is needed to tell the MPI library of a program: DT_NEEDED and the interpreter. A packaged reader of ELF files
(pyelftools, lief) takes longer to import than `mpiio-ext run` may take; docs/project/dependencies.md. The file is only
read: a damaged one gives `ElfError`, never another exception (fuzzed in tests/unit/test_abi.py).

Source. System V ABI, chapters 4 and 5; /usr/include/elf.h.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_NEEDED, _DT_STRTAB = 0, 1, 5
_MOST_HEADERS = 1 << 12
_MOST_BYTES = 1 << 24  # of a dynamic section; real ones have some hundred
_MOST_NAME = 4096


_Data = bytes | mmap.mmap


class ElfError(ValueError):
    """No ELF file of a known form, or a damaged one."""


class Elf(NamedTuple):  # a data class would make every rank import `inspect`
    """The dynamic section of a file.

    Attributes
    ----------
    needed : names of the shared libraries that it asks for (DT_NEEDED), in their order.
    interpreter : path of the dynamic linker; empty for a shared library or a static executable.
    dynamic : False where there is no dynamic section: a static executable, on which LD_PRELOAD has no effect.
    """

    needed: tuple[str, ...]
    interpreter: str
    dynamic: bool


def _part(data: _Data, at: int, count: int) -> bytes:
    if at < 0 or count < 0 or at + count > len(data):
        raise ElfError("a part lies outside the file")
    return data[at : at + count]


def _text(data: _Data, at: int) -> str:
    if not 0 <= at < len(data):
        raise ElfError("a name lies outside the file")
    end = data.find(b"\0", at, at + _MOST_NAME)
    if end < 0:
        raise ElfError("a name has no end")
    return data[at:end].decode("utf-8", "replace")


def read(path: str | Path) -> Elf:
    """Read a file's dynamic section.

    Raises
    ------
    ElfError
        It is no ELF file, or damaged.
    OSError
        It cannot be read.
    """
    with Path(path).open("rb") as file:
        if file.read(4) != b"\x7fELF":
            raise ElfError("no ELF file")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:  # a program may have gigabytes
            return parse(data)


def parse(data: _Data) -> Elf:
    """Read the dynamic section of a file's content; raises `ElfError`."""
    head = _part(data, 0, 20)
    if head[:4] != b"\x7fELF" or head[4] not in (1, 2) or head[5] not in (1, 2):
        raise ElfError("no ELF file")
    order, wide = "<" if head[5] == 1 else ">", head[4] == 2
    offset, entry_bytes, count = _program_headers(data, order, wide)
    loads: list[tuple[int, int, int]] = []
    dynamic: tuple[int, int] | None = None
    interpreter = ""
    for index in range(count):
        kind, at, address, in_file = _segment(data, offset + index * entry_bytes, order, wide)
        if kind == _PT_LOAD:
            loads.append((address, at, in_file))
        elif kind == _PT_DYNAMIC:
            dynamic = at, in_file
        elif kind == _PT_INTERP:
            interpreter = _text(data, at)
    if dynamic is None:
        return Elf((), interpreter, dynamic=False)
    return Elf(_needed(data, dynamic, loads, order, wide), interpreter, dynamic=True)


def _program_headers(data: _Data, order: str, wide: bool) -> tuple[int, int, int]:
    """Return offset of the program headers, bytes of one, number."""
    if wide:
        (offset,) = struct.unpack(order + "Q", _part(data, 32, 8))
        size, count = struct.unpack(order + "HH", _part(data, 54, 4))
    else:
        (offset,) = struct.unpack(order + "I", _part(data, 28, 4))
        size, count = struct.unpack(order + "HH", _part(data, 42, 4))
    if count > _MOST_HEADERS:
        raise ElfError("too many program headers")
    return offset, size, count


def _segment(data: _Data, at: int, order: str, wide: bool) -> tuple[int, int, int, int]:
    """Return type, file offset, address and bytes in the file of a segment."""
    if wide:
        kind, _, offset, address, _, in_file = struct.unpack(order + "IIQQQQ", _part(data, at, 40))
    else:
        kind, offset, address, _, in_file = struct.unpack(order + "IIIII", _part(data, at, 20))
    return kind, offset, address, in_file


def _needed(
    data: _Data, dynamic: tuple[int, int], loads: list[tuple[int, int, int]], order: str, wide: bool
) -> tuple[str, ...]:
    section = _part(data, dynamic[0], dynamic[1])
    if len(section) > _MOST_BYTES:
        raise ElfError("the dynamic section is too long")
    entry = struct.Struct(order + ("qQ" if wide else "iI"))
    names: list[int] = []
    strings: int | None = None
    for tag, value in entry.iter_unpack(section[: len(section) // entry.size * entry.size]):
        if tag == _DT_NULL:
            break
        if tag == _DT_NEEDED:
            names.append(value)
        elif tag == _DT_STRTAB:
            strings = value
    if not names:
        return ()
    for address, at, in_file in loads:
        if strings is not None and address <= strings < address + in_file:
            return tuple(_text(data, strings - address + at + name) for name in names)
    raise ElfError("the table of names is in no segment")
