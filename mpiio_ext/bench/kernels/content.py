"""The bytes that a kernel's accesses must write and find, as a function of place, version and run.

The bytes of all arrays of all files have consecutive addresses; the byte at an address has the value of
`mpiio_ext.bench.pattern`, xored with a salt that differs between runs and between versions. No byte depends on which
rank writes it or on the interface, so that whatever another rank, another format or another method makes of the file is
known beforehand.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from mpiio_ext.bench.kernels.layout import FileLayout, Slab, Variable, address_of
from mpiio_ext.bench.kernels.program import Access, Kernel, box_part
from mpiio_ext.bench.pattern import POISON, Bytes, Offsets, fill_pieces, fill_range, salt_of_run
from mpiio_ext.bench.shapes import coalesce

__all__ = ["Content", "slab_pieces"]


def slab_pieces(shape: tuple[int, ...], slabs: tuple[Slab, ...], item_bytes: int) -> tuple[Offsets, Offsets]:
    """Return (offsets, lengths) in bytes of the slabs in a row-major array, in the order of the data, joined."""
    offsets, lengths = [], []
    for start, count in slabs:
        if math.prod(count) == 0:
            continue
        inner = len(shape)  # dimensions from here on are whole: they and the one before are one run
        while inner > 1 and count[inner - 1] == shape[inner - 1]:
            inner -= 1
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        rows = np.zeros(1, np.int64)
        for d in range(inner - 1):
            rows = (rows[:, None] + (start[d] + np.arange(count[d], dtype=np.int64)) * strides[d]).reshape(-1)
        rows = rows + sum(start[d] * strides[d] for d in range(inner - 1, len(shape)))
        offsets.append(rows * item_bytes)
        lengths.append(np.full(rows.size, math.prod(count[inner - 1:]) * item_bytes, np.int64))
    if not offsets:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return coalesce(np.concatenate(offsets), np.concatenate(lengths))


class Content:
    """Expected bytes of one kernel in one run.

    Parameters
    ----------
    kernel : the kernel
    run : number of the run; consecutive runs have different bytes everywhere
    """

    def __init__(self, kernel: Kernel, run: int) -> None:
        self.files: tuple[FileLayout, ...] = kernel.files()
        self._run = run
        self._address = functools.cache(lambda file, name: address_of(self.files, file, name))

    def salt(self, version: int) -> int:
        """Return what is xored into every byte of a version; even, and never the same for neighbouring versions."""
        return salt_of_run(self._run + 31 * version)

    def pieces(self, access: Access) -> tuple[Offsets, Offsets]:
        """Return (offsets, lengths) of an access's bytes in its array, in the order of the data."""
        variable = self.files[access.file].variable(access.variable)
        return slab_pieces(variable.shape, access.slabs, variable.item_bytes)

    def packed(self, access: Access) -> Bytes:
        """Return the bytes that an access moves, in their order."""
        variable = self.files[access.file].variable(access.variable)
        out = np.empty(access.elements * variable.item_bytes, np.uint8)
        offsets, lengths = self.pieces(access)
        fill_pieces(out, offsets + self._address(access.file, access.variable), lengths)
        out ^= np.uint8(self.salt(access.version))
        return out

    def memory(self, access: Access) -> Bytes:
        """Return the memory before a write or after a read: the data in place, poison in every guard cell."""
        if access.boxes is None:
            return self.packed(access)
        memory = self.poison(access)
        self.place(access, memory)
        return memory

    def place(self, access: Access, memory: Bytes) -> None:
        """Put the data of an access into its places in the memory."""
        packed = self.packed(access)
        if access.boxes is None:
            memory[:] = packed
            return
        dtype = self.files[access.file].variable(access.variable).dtype
        data, elements = packed.view(dtype), memory.view(dtype)
        taken = begin = 0
        for (_, count), box in zip(access.slabs, access.boxes, strict=True):
            sizes, starts, counts = box_part(box, count)
            array = elements[begin : begin + math.prod(sizes)].reshape(sizes)
            part = data[taken : taken + math.prod(count)].reshape(counts)
            array[tuple(slice(s, s + c) for s, c in zip(starts, counts, strict=True))] = part
            begin, taken = begin + math.prod(sizes), taken + part.size

    def poison(self, access: Access) -> Bytes:
        """Return the memory before a read: not one byte is what the read must bring."""
        variable = self.files[access.file].variable(access.variable)
        return np.full(access.memory_elements * variable.item_bytes, POISON ^ self.salt(access.version), np.uint8)

    def stored(self, file: int, variable: Variable, begin: int, end: int, version: int) -> Bytes:
        """Return the bytes [begin, end) of an array as they must be in the file, little-endian."""
        out = np.empty(end - begin, np.uint8)
        fill_range(out, self._address(file, variable.name) + begin)
        out ^= np.uint8(self.salt(version))
        return out
