"""The interface ``transposed``: whatever the grid and the length of an extent, the file is the array."""

from __future__ import annotations

import pytest

from support.cases import Case, Cases
from support.marks import slow

pytestmark = pytest.mark.mpi

#: Every way to cut four directions, with extents of one element up to the whole array.
GEOMETRIES = """
import itertools, pathlib, sys
import numpy as np
from mpi4py import MPI
from mpiio_ext.bench import kernels
from mpiio_ext.bench.interfaces import transposed
from mpiio_ext.bench.interfaces.base import Request, Where
from mpiio_ext.bench.kernels.program import Access

comm, folder, done = MPI.COMM_WORLD, pathlib.Path(sys.argv[1]), 0
way, grids = transposed.Transposed(), [
    grid for grid in itertools.product(range(1, comm.size + 1), repeat=4) if np.prod(grid) == comm.size]
for number, (px, py, pz, pt) in enumerate(grids):
    kernel = kernels.create("lattice4d", comm.size, parameters={
        "lx": 3, "ly": 2, "lz": 1 + number % 3, "lt": 2, "px": px, "py": py, "pz": pz, "pt": pt, "doubles": 2})
    layout, = kernel.files()
    field, = layout.variables
    expected = np.arange(field.size_bytes // 8, dtype="<f8").reshape(field.shape)
    for extent in (1, 40, 200, 1000, 1 << 40):
        transposed.EXTENT_BYTES = extent
        for write in (True, False):
            access = [step for step in kernel.steps("write" if write else "read", comm.rank, "transposed")
                      if isinstance(step, Access)][0]
            (start, count), = access.slabs
            mine = expected[tuple(slice(s, s + n) for s, n in zip(start, count))].tobytes()
            memory = np.frombuffer(mine, np.uint8).copy() if write else np.zeros(len(mine), np.uint8)
            request = Request(access=access, variable=field, memory=memory)
            way.arrange(comm, [request])
            where = Where(comm=comm, path=folder / "file", layout=layout, mode="create" if write else "read", hints={})
            comm.Barrier()
            if write and comm.rank == 0:
                where.path.unlink(missing_ok=True)
            file = way.file(where)
            comm.Barrier()
            file.open()
            file.access(request)
            file.close()
            comm.Barrier()
            if write:
                found = np.fromfile(folder / "file", "<f8")
                assert np.array_equal(found, expected.ravel()), (kernel, extent)
            else:
                assert memory.tobytes() == mine, (kernel, extent)
            done += 1
if comm.rank == 0:
    print(f"verified {done}")
"""

REFUSED = """
import numpy as np
from mpi4py import MPI
from mpiio_ext.bench import kernels
from mpiio_ext.bench.interfaces.base import Request
from mpiio_ext.bench.interfaces.transposed import Transposed
from mpiio_ext.bench.kernels.program import Access
from mpiio_ext.errors import ArgumentError

comm = MPI.COMM_WORLD
kernel = kernels.create("lattice4d", comm.size, preset="quick")
(field,), = (layout.variables for layout in kernel.files())
for slabs in ((), (((0, 0, 0, 0, 0), (1, 1, 1, 1, 72)),)):
    try:
        Transposed().arrange(comm, [Request(access=Access(file=0, variable="field", write=True, slabs=slabs),
                                            variable=field, memory=np.zeros(576, np.uint8))])
    except ArgumentError as error:
        assert "not blocks that fill it" in str(error)
    else:
        raise AssertionError("accepted")
print("refused")
"""

CASES = {f"geometries {ranks}": Case(text=GEOMETRIES, ranks=ranks) for ranks in (1, 2, 4, 6)}
CASES["refused"] = Case(text=REFUSED, ranks=2, arguments=())


@pytest.mark.parametrize("ranks", [1, *slow(2, 4), 6])
def test_every_grid(cases: Cases, ranks: int) -> None:
    assert "verified" in cases.result(f"geometries {ranks}").stdout[0]


def test_what_is_no_grid_of_blocks_is_refused(cases: Cases) -> None:
    assert all("refused" in text for text in cases.result("refused").stdout)
