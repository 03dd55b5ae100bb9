"""Verification of every byte of the files, read by other means than the interface under test.

The arrays are cut into chunks that are dealt to the ranks; each rank compares its chunks with the content, and bytes
that no rank writes with zero. A raw file must also contain no other bytes and end with its last written byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpiio_ext.bench.execution.content import Content
from mpiio_ext.bench.interfaces import Interface, Reader
from mpiio_ext.bench.kernels.layout import Variable
from mpiio_ext.bench.kernels.program import Access
from mpiio_ext.bench.kernels.shapes import Bytes, Mask

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Fault:
    """The first wrong byte that a rank found.

    Attributes
    ----------
    file, array, offset_bytes : where: numbers of file and array, byte of the array
    text : in words
    """

    file: int
    array: int = 0
    offset_bytes: int = 0
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFaults:
    """The first wrong byte of those that ranks write, and the first sign of a byte that no rank wrote."""

    data: Fault | None = None
    foreign: Fault | None = None


def _chunks(files: Iterable[tuple[int, list[tuple[Variable, int]]]]) -> Iterator[tuple[int, Variable, int, int, int]]:
    for number, variables in files:
        for variable, version in variables:
            for begin in range(0, variable.size_bytes, _CHUNK_BYTES):
                yield number, variable, version, begin, min(begin + _CHUNK_BYTES, variable.size_bytes)


def check_files(
    content: Content,
    interface: Interface,
    folder: Path,
    versions: dict[tuple[int, str], int],
    *,
    rank: int,
    ranks: int,
    complete: bool,
) -> FileFaults:
    """Compare this rank's chunks with the expected bytes; local.

    Parameters
    ----------
    versions : of the arrays to look at, from `Program.versions`
    rank, ranks : chunks rank, rank + ranks, … are this caller's
    complete : all arrays of all files are written, so that what else is in a file is judged too

    Raises
    ------
    OSError
        A file cannot be read.
    """
    by_file: dict[int, list[tuple[Variable, int]]] = {}
    for (number, name), version in versions.items():
        by_file.setdefault(number, []).append((content.files[number].variable(name), version))
    found, current, reader = FileFaults(), -1, None
    try:
        for index, (number, variable, version, begin, end) in enumerate(_chunks(by_file.items())):
            if index % ranks != rank:
                continue
            path = interface.path(folder, content.files[number])
            if number != current:
                if reader is not None:
                    reader.close()
                reader, current = interface.reader(path, content.files[number]), number
                if complete:
                    found = _first(found, _whole_file(content, reader, number, path))
            assert reader is not None
            found = _first(found, _chunk_faults(content, reader, number, variable, (version, begin, end), path))
            if found.data is not None:
                break
    finally:
        if reader is not None:
            reader.close()
    return found


def _first(known: FileFaults, new: FileFaults) -> FileFaults:
    return FileFaults(data=known.data or new.data, foreign=known.foreign or new.foreign)


def _whole_file(content: Content, reader: Reader, number: int, path: Path) -> FileFaults:
    """Return the differences of a file beside its arrays."""
    layout = content.files[number]
    behind = (len(layout.variables), layout.end_bytes)

    def fault(text: str | None) -> Fault | None:
        return (
            None
            if text is None
            else Fault(file=number, array=behind[0], offset_bytes=behind[1], text=f"{text} ({path})")
        )

    if layout.exact and (wrong_size := reader.wrong_size()) is not None:
        return FileFaults(data=fault(wrong_size))
    return FileFaults(foreign=fault(reader.foreign()))


def _chunk_faults(
    content: Content, reader: Reader, number: int, variable: Variable, chunk: tuple[int, int, int], path: Path
) -> FileFaults:
    """Compare a chunk (version, begin, end) of an array."""
    version, begin, end = chunk
    expected = content.stored(number, variable, begin, end, version)
    mask = content.program.written(number, variable.name, begin, end)
    if mask is not None:
        expected[~mask] = 0
    found = reader.read(variable, begin, end)
    n = min(found.size, expected.size)
    data, foreign = _differences(found[:n], expected[:n], None if mask is None else mask[:n])
    if data is None and found.size != expected.size and expected[n:].any():
        data = (n + int(np.flatnonzero(expected[n:])[0]), "the file ends, or the array has another shape or type")

    def fault(wrong: tuple[int, str] | None) -> Fault | None:
        if wrong is None:
            return None
        array = content.files[number].variables.index(variable)
        text = f"{path}, array {variable.name}, byte {begin + wrong[0]}: {wrong[1]}"
        return Fault(file=number, array=array, offset_bytes=begin + wrong[0], text=text)

    return FileFaults(data=fault(data), foreign=fault(foreign))


def _differences(
    found: Bytes, expected: Bytes, mask: Mask | None
) -> tuple[tuple[int, str] | None, tuple[int, str] | None]:
    """Return (index, words) of the first wrong byte among those that are written, and among the others."""
    differs = found != expected
    if not differs.any():
        return None, None
    in_data = np.flatnonzero(differs if mask is None else differs & mask)
    in_gaps = np.flatnonzero(differs & ~mask) if mask is not None else in_data[:0]
    data = foreign = None
    if in_data.size:
        i = int(in_data[0])
        data = i, f"expected 0x{expected[i]:02x}, found 0x{found[i]:02x}"
    if in_gaps.size:
        i = int(in_gaps[0])
        foreign = i, f"expected 0x00 (no rank writes this byte), found 0x{found[i]:02x}"
    return data, foreign


def check_memory(content: Content, access: Access, memory: Bytes, path: Path) -> Fault | None:
    """Compare the memory of an access after a read with the expected bytes, guard cells included.

    Parameters
    ----------
    path : of the file, for the words
    """
    wrong = np.flatnonzero(memory != content.memory(access))
    if wrong.size == 0:
        return None
    i = int(wrong[0])
    expected = int(content.memory(access)[i])
    position = content.position(access, i)
    where = (
        f"byte {i} of the memory, which is no part of the read"
        if position is None
        else f"byte {position} (byte {i} of the memory)"
    )
    layout = content.files[access.file]
    return Fault(
        file=access.file,
        array=layout.variables.index(layout.variable(access.variable)),
        offset_bytes=position or 0,
        text=f"{path}, array {access.variable}, {where}: expected 0x{expected:02x}, found 0x{memory[i]:02x}, "
        f"{wrong.size} bytes are wrong",
    )
