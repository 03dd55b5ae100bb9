"""Is every byte of a kernel's files what it must be? Read by other means than the interface under test.

The arrays are cut into chunks that are dealt to the ranks. A raw file must also hold nothing else and end with its last
array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from mpiio_ext.bench.kernels.content import Content
from mpiio_ext.bench.kernels.layout import FileLayout, Variable
from mpiio_ext.bench.kernels.program import Access, Kernel
from mpiio_ext.bench.stores import Reader, Store

__all__ = ["check_files", "written_versions"]

_CHUNK_BYTES = 1 << 20


def written_versions(kernel: Kernel, phase: str, interface: str) -> dict[tuple[int, str], int]:
    """Return the arrays that a phase writes: (file, name) -> version that is there at its end."""
    versions: dict[tuple[int, str], int] = {}
    for rank in range(kernel.active):
        for step in kernel.steps(phase, rank, interface):
            if isinstance(step, Access) and step.write:
                place = (step.file, step.variable)
                versions[place] = max(step.version, versions.get(place, 0))
    return versions


def _chunks(files: Iterable[tuple[int, list[tuple[Variable, int]]]]) -> Iterator[tuple[int, Variable, int, int, int]]:
    for number, variables in files:
        for variable, version in variables:
            for begin in range(0, variable.size_bytes, _CHUNK_BYTES):
                yield number, variable, version, begin, min(begin + _CHUNK_BYTES, variable.size_bytes)


def check_files(
    content: Content, store: Store, folder: Path, versions: dict[tuple[int, str], int], *, rank: int, ranks: int,
    complete: bool,
) -> tuple[str | None, str | None]:
    """Compare this rank's chunks with what must be there; local.

    Parameters
    ----------
    versions : from `written_versions`
    rank, ranks : chunks rank, rank + ranks, … are this caller's
    complete : all arrays of all files are written, so that what else is in a file is judged too

    Returns
    -------
    data : the first wrong byte of an array, in words, or None
    foreign : what a file holds that no rank wrote, in words, or None

    Raises
    ------
    OSError
        A file cannot be read.
    """
    by_file: dict[int, list[tuple[Variable, int]]] = {}
    for (number, name), version in versions.items():
        by_file.setdefault(number, []).append((content.files[number].variable(name), version))
    foreign, current, reader = None, -1, None
    try:
        for index, (number, variable, version, begin, end) in enumerate(_chunks(by_file.items())):
            if index % ranks != rank:
                continue
            if number != current:
                if reader is not None:
                    reader.close()
                reader, current = _reader(store, folder, content.files[number]), number
                foreign = foreign or (reader.foreign() if complete else None)
            assert reader is not None
            wrong = _difference(content, reader, number, variable, version, begin, end)
            if wrong is not None:
                return f"{store.path(folder, content.files[number])}, array {variable.name}, {wrong}", foreign
    finally:
        if reader is not None:
            reader.close()
    return None, foreign


def _reader(store: Store, folder: Path, layout: FileLayout) -> Reader:
    return store.reader(store.path(folder, layout), layout)


def _difference(
    content: Content, reader: Reader, number: int, variable: Variable, version: int, begin: int, end: int
) -> str | None:
    expected = content.stored(number, variable, begin, end, version)
    found = reader.read(variable, begin, end)
    n = min(found.size, expected.size)
    wrong = np.flatnonzero(found[:n] != expected[:n])
    if wrong.size:
        i = int(wrong[0])
        return f"byte {begin + i}: expected 0x{expected[i]:02x}, found 0x{found[i]:02x}"
    if found.size != expected.size:
        return f"byte {begin + n}: the file ends, or the array has another shape or type"
    return None
