"""Slabs inside arrays with guard cells in memory: copying them out and in, for interfaces without memory types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpiio_ext.bench.interfaces.base import Request
from mpiio_ext.bench.kernels.program import box_part
from mpiio_ext.bench.kernels.shapes import Bytes


def boxed_parts(request: Request) -> Iterator[np.ndarray[Any, Any]]:
    """Yield for each slab its part of the memory, a view with the box's number of dimensions."""
    access, variable = request.access, request.variable
    assert access.boxes is not None
    begin = 0
    for (_, count), box in zip(access.slabs, access.boxes, strict=True):
        sizes, starts, counts = box_part(box, count)
        end = begin + math.prod(sizes) * variable.item_bytes
        array = request.memory[begin:end].view(variable.dtype).reshape(sizes)
        yield array[tuple(slice(s, s + c) for s, c in zip(starts, counts, strict=True))]
        begin = end


def pack(request: Request) -> Bytes:
    """Return the bytes of all slabs, one behind the other; for a read, room for them."""
    size = request.access.data_bytes(request.variable)
    if not request.access.write:
        return np.empty(size, np.uint8)
    parts = [part.tobytes() for part in boxed_parts(request)]
    return np.frombuffer(b"".join(parts), np.uint8)


def unpack(request: Request, packed: Bytes) -> None:
    """Copy bytes read to their places."""
    begin = 0
    for part in boxed_parts(request):
        end = begin + part.nbytes
        part[...] = packed[begin:end].view(part.dtype).reshape(part.shape)
        begin = end
