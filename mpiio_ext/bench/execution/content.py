"""The bytes that a program's accesses must write and find, as a function of place, version and run.

The bytes of all arrays of all files have consecutive addresses; the byte at an address has the value of
`mpiio_ext.bench.execution.values`, xored with a salt that differs between runs and between versions. No byte depends on
which rank writes it or on the interface, so that whatever another rank, another format or another method makes of the
file is known beforehand.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from mpiio_ext.bench.execution.values import POISON, fill_pieces, fill_range, salt_of_run
from mpiio_ext.bench.kernels.layout import FileLayout, Variable, address_of
from mpiio_ext.bench.kernels.program import Access, Program, box_part
from mpiio_ext.bench.kernels.shapes import Bytes


class Content:
    """Expected bytes of a program.

    Parameters
    ----------
    program : what is accessed
    run : number of the run, may be changed; consecutive runs have different bytes everywhere
    keep : images of memory are kept from run to run, which takes as much memory again as the accesses have
    """

    def __init__(self, program: Program, run: int, *, keep: bool = False) -> None:
        self.program = program
        self.files: tuple[FileLayout, ...] = program.files()
        self.run = run
        self._kept: dict[int, tuple[Access, Bytes]] | None = {} if keep else None
        self._address = functools.cache(lambda file, name: address_of(self.files, file, name))

    def salt(self, version: int) -> int:
        """Return the value xored into every byte of a version; even, and never the same for neighbouring versions."""
        return salt_of_run(self.run + 31 * version)

    def variable(self, access: Access) -> Variable:
        """Return the array of an access."""
        return self.files[access.file].variable(access.variable)

    def packed(self, access: Access) -> Bytes:
        """Return the bytes that an access moves, in their order."""
        packed = self._values(access)
        packed ^= np.uint8(self.salt(access.version))
        return packed

    def _values(self, access: Access) -> Bytes:
        """Return the same with salt 0."""
        variable = self.variable(access)
        out = np.empty(access.data_bytes(variable), np.uint8)
        offsets, lengths = access.pieces(variable)
        fill_pieces(out, offsets + self._address(access.file, access.variable), lengths)
        return out

    def memory(self, access: Access, out: Bytes | None = None) -> Bytes:
        """Return the memory before a write or after a read, in `out` if given: data in place, poison in guard cells."""
        image = self._image(access)
        if out is None and self._kept is None:
            out = image
        memory: Bytes = np.bitwise_xor(image, np.uint8(self.salt(access.version)), out=out)
        return memory

    def _image(self, access: Access) -> Bytes:
        """Return the memory with salt 0."""
        if self._kept is not None and id(access) in self._kept:
            return self._kept[id(access)][1]
        variable = self.variable(access)
        packed = self._values(access)
        image = packed
        if access.boxes is not None or packed.size != access.memory_bytes(variable):
            image = np.full(access.memory_bytes(variable), POISON, np.uint8)
            _scatter(access, variable, packed, image)
        if self._kept is not None:
            self._kept[id(access)] = (access, image)  # with the access, so that its id stays its own
        return image

    def place(self, access: Access, memory: Bytes) -> None:
        """Put the data of an access into its places in the memory."""
        _scatter(access, self.variable(access), self.packed(access), memory)

    def poison(self, access: Access, out: Bytes | None = None) -> Bytes:
        """Return the memory before a read, in `out` if given: every byte differs from the one that the read brings."""
        if out is None:
            out = np.empty(access.memory_bytes(self.variable(access)), np.uint8)
        out[:] = POISON ^ self.salt(access.version)
        return out

    def position(self, access: Access, index: int) -> int | None:
        """Return the byte of the array that byte `index` of the memory belongs to; None if it belongs to no array."""
        variable = self.variable(access)
        packed = np.empty(access.data_bytes(variable), np.uint8)
        place = np.zeros(access.memory_bytes(variable), np.int64)
        for digit in range(8):  # where the number of each byte of the data lands, one digit after the other
            packed[:] = np.arange(1, packed.size + 1, dtype=np.int64) >> (8 * digit) & 0xFF
            memory = np.zeros(place.size, np.uint8)
            _scatter(access, variable, packed, memory)
            place |= memory.astype(np.int64) << (8 * digit)
        if place[index] == 0:
            return None
        offsets, lengths = access.pieces(variable)
        ends = np.cumsum(lengths)
        number = int(place[index]) - 1
        piece = int(np.searchsorted(ends, number, side="right"))
        return int(offsets[piece] + number - (ends[piece] - lengths[piece]))

    def stored(self, file: int, variable: Variable, begin: int, end: int, version: int) -> Bytes:
        """Return the bytes [begin, end) of an array as they must be in the file, little-endian."""
        out = np.empty(end - begin, np.uint8)
        fill_range(out, self._address(file, variable.name) + begin)
        out ^= np.uint8(self.salt(version))
        return out


def _scatter(access: Access, variable: Variable, packed: Bytes, memory: Bytes) -> None:
    """Copy the bytes of an access, one behind the other in `packed`, to their places in the memory."""
    if access.call is not None:
        access.call.memory.scatter(memory, packed)
        return
    if access.boxes is None:
        memory[:] = packed
        return
    data, elements = packed.view(variable.dtype), memory.view(variable.dtype)
    taken = begin = 0
    for (_, count), box in zip(access.slabs, access.boxes, strict=True):
        sizes, starts, counts = box_part(box, count)
        array = elements[begin : begin + math.prod(sizes)].reshape(sizes)
        part = data[taken : taken + math.prod(count)].reshape(counts)
        array[tuple(slice(s, s + c) for s, c in zip(starts, counts, strict=True))] = part
        begin, taken = begin + math.prod(sizes), taken + part.size
