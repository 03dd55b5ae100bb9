"""Every MPI datatype of the bench's patterns against their enumeration, through MPI_Pack.

A datatype's bytes are found by packing a buffer whose bytes hold their own index, one digit of it at a time; that uses
nothing of the bench. The comparison runs under the MPI launcher as this file's own program.
"""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

pytestmark = pytest.mark.mpi


def test_datatypes_have_the_bytes_of_their_enumeration(extension, mpi_python):
    launch = mpi_python([pathlib.Path(__file__)], 1, timeout_s=120)
    assert "datatypes agree" in launch.stdout, launch.describe()


def typemap(datatype, extent_bytes):
    """Byte offsets of a datatype in the order of its type map, shape (size,)."""
    from mpi4py import MPI

    size = datatype.Get_size()
    index = np.arange(extent_bytes)
    found = np.zeros(size, np.int64)
    for digit in range(4):
        source = (index >> (8 * digit) & 0xFF).astype(np.uint8)
        packed = np.zeros(size, np.uint8)
        position = datatype.Pack(source, packed, 0, MPI.COMM_SELF)
        assert position == size
        found |= packed.astype(np.int64) << (8 * digit)
    return found


def check(shape):
    from mpiio_ext.bench.kernels.shapes import free

    datatype = shape.datatype()
    offsets, lengths = shape.pieces()
    expected = np.concatenate([np.arange(o, o + n) for o, n in zip(offsets, lengths, strict=True)])
    lower, extent = datatype.Get_extent()
    assert (lower, extent) == (0, shape.extent_bytes), (shape, lower, extent)
    assert datatype.Get_size() == shape.size_bytes
    assert (typemap(datatype, extent) == expected).all(), shape
    free(datatype)


def main():
    import mpiio_ext  # noqa: F401 - before MPI
    from mpiio_ext.bench import kernels
    from mpiio_ext.bench.kernels import Sizes

    sizes = Sizes(file_bytes=30_000, blocks_bytes=(64, 7), piece_bytes=256, steps=2, transfer_bytes=800)
    count = 0
    for ranks in (1, 2, 3, 4, 5, 6, 8, 9, 16):
        for pattern in kernels.create_patterns(tuple(kernels.PATTERNS), sizes, ranks):
            for rank in range(pattern.ranks):
                for plan in (pattern.write_plan(rank), pattern.read_plan(rank)):
                    check(plan.file)
                    for memory in {id(call.memory): call.memory for call in plan.calls}.values():
                        if memory.size_bytes:
                            check(memory)
                            count += 1
    print(f"{count} datatypes agree")


if __name__ == "__main__":
    main()
