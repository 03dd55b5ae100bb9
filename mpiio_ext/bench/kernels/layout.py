"""The data of an application: files, and in each file arrays of numbers.

An array is known by its shape and its element type. Self-describing formats place it themselves; in a raw file (POSIX,
MPI-IO) it lies row-major, little-endian, at a place that the kernel gives, as in the file of the original code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from mpiio_ext.bench.kernels.shapes import Offsets, coalesce

#: (start, count) of a rectangular part of an array, in elements, one number per dimension.
Slab = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An array in a file.

    Attributes
    ----------
    name : its name in self-describing formats; "/" separates groups
    dtype : little-endian NumPy type, e.g. ``"<f8"``
    shape : elements per dimension, slowest first
    offset_bytes : where it begins in a raw file
    steps : the first dimension counts time steps: an MPI-IO program sets one view for a step and goes through them
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset_bytes: int = 0
    steps: bool = False

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return int(np.dtype(self.dtype).itemsize)

    @property
    def size_bytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.item_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """A file.

    Attributes
    ----------
    name : file name without folder and without the suffix of the format
    variables : what it holds; all of it is written in the end, where the program does not say otherwise
    owner : None when all ranks share the file, else the rank that writes it; in a phase one rank alone uses it
    written_end_bytes : where a raw file ends when nobody writes the end of its last array; None = with that array
    exact : even what the MPI library writes alone must end there; else that is noted like other bytes of nobody's
    """

    name: str
    variables: tuple[Variable, ...]
    owner: int | None = None
    written_end_bytes: int | None = None
    exact: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(variable.size_bytes for variable in self.variables)

    @property
    def end_bytes(self) -> int:
        """Size of the raw file."""
        if self.written_end_bytes is not None:
            return self.written_end_bytes
        return max((v.offset_bytes + v.size_bytes for v in self.variables), default=0)

    def variable(self, name: str) -> Variable:
        """Return the array of that name."""
        return next(variable for variable in self.variables if variable.name == name)


def packed_variables(
    *parts: tuple[str, str, tuple[int, ...]], start_bytes: int = 0, align_bytes: int = 1, **common: Any
) -> tuple[Variable, ...]:
    """Return arrays (name, dtype, shape) that follow each other in a raw file, each at a multiple of `align_bytes`."""
    variables, offset = [], start_bytes
    for name, dtype, shape in parts:
        offset = -(-offset // align_bytes) * align_bytes
        variables.append(Variable(name=name, dtype=dtype, shape=shape, offset_bytes=offset, **common))
        offset += variables[-1].size_bytes
    return tuple(variables)


def address_of(files: tuple[FileLayout, ...], file: int, name: str) -> int:
    """Return the begin of an array's bytes in the sequence of all bytes of all files, which the pattern numbers."""
    address = sum(layout.size_bytes for layout in files[:file])
    for variable in files[file].variables:
        if variable.name == name:
            return address
        address += variable.size_bytes
    raise KeyError(name)


@lru_cache(maxsize=16)
def slab_pieces(shape: tuple[int, ...], slabs: tuple[Slab, ...], item_bytes: int) -> tuple[Offsets, Offsets]:
    """Return (offsets, lengths) in bytes of the slabs in a row-major array, in the order of the data, joined.

    The arrays are kept for the next call with the same arguments and must not be changed.
    """
    offsets, lengths = [], []
    for start, count in slabs:
        if math.prod(count) == 0:
            continue
        inner = len(shape)  # dimensions from here on are whole: they and the one before are one run
        while inner > 1 and count[inner - 1] == shape[inner - 1]:
            inner -= 1
        strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        rows = np.zeros(1, np.int64)
        for d in range(inner - 1):
            rows = (rows[:, None] + (start[d] + np.arange(count[d], dtype=np.int64)) * strides[d]).reshape(-1)
        rows = rows + sum(start[d] * strides[d] for d in range(inner - 1, len(shape)))
        offsets.append(rows * item_bytes)
        lengths.append(np.full(rows.size, math.prod(count[inner - 1 :]) * item_bytes, np.int64))
    if not offsets:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return coalesce(np.concatenate(offsets), np.concatenate(lengths))
