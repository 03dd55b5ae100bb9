"""Decoding of MPI datatypes: against MPI_Pack and MPI_Unpack in C, and through `support.typemap.describe`."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import sys
from collections.abc import Callable

import pytest

from support import cbuild
from support.launch import Launch

pytestmark = [pytest.mark.mpi, pytest.mark.both]

SEED = os.environ.get("MPIOX_TEST_SEED", "1")


def mpicc() -> str:
    """Return the compiler wrapper that belongs to this environment's MPI."""
    beside = pathlib.Path(sys.executable).with_name("mpicc")
    found = str(beside) if beside.exists() else shutil.which("mpicc")
    if found is None:
        pytest.skip("no mpicc")
    return found


@pytest.mark.slow
def test_random_datatypes_against_pack(mpi: Callable[..., Launch]) -> None:
    source = str(cbuild.ROOT / "tests" / "c" / "typemap" / "datatypes.c")
    command = [
        mpicc(),
        *cbuild.FLAGS,
        *cbuild.SANITIZE,
        *cbuild.includes(),
        source,
        *cbuild.sources("typemap"),
        *(str(cbuild.CSRC / "core" / "typemap" / name) for name in cbuild.MPI_FILES),
        "-lpthread",
    ]
    program = cbuild.compile_c(command, "typemap_datatypes")
    launch = mpi([program, "4000", SEED], 1, timeout_s=120, env={"ASAN_OPTIONS": "detect_leaks=0"})
    match = re.search(r"(\d+) datatypes checked, (\d+) refused, (\d+) combiners", launch.stdout)
    assert match, launch.describe()
    checked, refused, combiners = map(int, match.groups())
    assert checked > 3500 and refused <= checked // 50 and combiners >= 13


WITH_SUPPORT = {"PYTHONPATH": str(cbuild.ROOT / "tests")}
NAMED = """
    import numpy as np
    import mpiio_ext
    from support import typemap
    from mpi4py import MPI

    def pieces(t):
        return [tuple(map(int, p)) for p in zip(*typemap.describe(t).pieces())]

    assert pieces(MPI.SHORT_INT) == [(0, 2), (4, 4)]
    assert typemap.describe(MPI.SHORT_INT).extent_bytes == 8
    assert pieces(MPI.DOUBLE_INT) == [(0, 12)] and typemap.describe(MPI.DOUBLE_INT).extent_bytes == 16
    assert pieces(MPI.LONG_DOUBLE_INT) == [(0, 20)] and typemap.describe(MPI.LONG_DOUBLE_INT).extent_bytes == 32
    assert typemap.describe(MPI.DOUBLE).contiguous and typemap.describe(MPI.BYTE).size_bytes == 1
    try:
        typemap.describe(MPI.DATATYPE_NULL)
    except mpiio_ext.ArgumentError:
        pass
    else:
        raise AssertionError("MPI_DATATYPE_NULL was described")

    # the tree stays small, whatever the counts: 2^36 pieces, offsets far beyond 2^31
    rows = MPI.DOUBLE.Create_vector(1 << 18, 1, 1 << 10)
    slabs = rows.Create_hvector(1 << 18, 1, 1 << 33)
    a = typemap.describe(slabs)
    assert a.piece_count == 1 << 36 and len(a.blob) < 500
    assert a.offset(a.size_bytes - 8) == ((1 << 18) - 1) * ((1 << 33) + (1 << 13))

    # file order and equal meaning of darray and subarray, both storage orders
    shape, grid = (10, 7, 6), (3, 2, 2)
    for order, letter in ((MPI.ORDER_C, "C"), (MPI.ORDER_FORTRAN, "F")):
        cells = np.arange(np.prod(shape)).reshape(shape, order=letter)
        for kind in (MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC):
            described, seen = [], []
            for rank in range(12):
                t = MPI.DOUBLE.Create_darray(12, rank, shape, [kind] * 3, [MPI.DISTRIBUTE_DFLT_DARG] * 3, grid, order)
                where = np.unravel_index(rank, grid)
                if kind == MPI.DISTRIBUTE_BLOCK:
                    steps = [-(-n // p) for n, p in zip(shape, grid)]
                    mine = cells[tuple(slice(w * s, (w + 1) * s) for w, s in zip(where, steps))]
                else:
                    mine = cells[tuple(slice(w, None, p) for w, p in zip(where, grid))]
                a = typemap.describe(t)
                offsets, lengths = a.pieces()
                got = np.concatenate([np.arange(o, o + n, 8) for o, n in zip(offsets, lengths)]) // 8
                assert np.array_equal(got, np.sort(mine.ravel())), (order, kind, rank)
                assert a.monotonic and a.extent_bytes == cells.size * 8
                described.append(a)
                seen.append(got)
                t.Free()
            assert np.array_equal(np.sort(np.concatenate(seen)), np.arange(cells.size))
            for i, a in enumerate(described):
                for b in described[:i]:
                    assert typemap.disjoint(a, b, origins=(24, 24)), (order, kind, i)
    print("all good")
"""


def test_describe(mpi_python: Callable[..., Launch], script: Callable[[str], pathlib.Path]) -> None:
    launch = mpi_python([script(NAMED)], 1, env=WITH_SUPPORT)
    assert launch.stdout.splitlines()[-1:] == ["all good"], launch.describe()


LIFE = """
    import resource
    import mpiio_ext
    from support import typemap
    from mpi4py import MPI

    displacements = [3 * k + (k * k) % 2 for k in range(2000)]

    def use(n):
        for _ in range(n):
            inner = MPI.INT.Create_indexed_block(1, displacements)
            outer = inner.Create_contiguous(2)
            copy = outer.Dup()
            a, b = typemap.describe(outer), typemap.describe(copy)
            assert a == b and a.size_bytes == 16000
            outer.Free()
            c = typemap.describe(copy)
            copy.Free()
            inner.Free()
            assert a.blob == b.blob == c.blob  # descriptions outlive their datatypes

    use(100)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    use(2500)  # a description of 16 KB leaked each time would make 40 MB
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20_000, f"{grown} KiB"
    print("all good")
"""


def test_descriptions_outlive_their_datatypes_and_do_not_leak(
    mpi_python: Callable[..., Launch], script: Callable[[str], pathlib.Path]
) -> None:
    launch = mpi_python([script(LIFE)], 1, env=WITH_SUPPORT)
    assert launch.stdout.splitlines()[-1:] == ["all good"], launch.describe()
