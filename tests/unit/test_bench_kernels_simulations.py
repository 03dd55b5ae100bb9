"""S3D-IO, FLASH-IO, NAS BT-IO, MADBench2 and iPIC3D: sizes and layouts against the originals' published ones."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.bench import kernels
from mpiio_ext.bench.execution.content import Content
from mpiio_ext.bench.execution.values import POISON
from mpiio_ext.bench.kernels.btio import BTIO
from mpiio_ext.bench.kernels.decomposition import deal
from mpiio_ext.bench.kernels.flash import Flash
from mpiio_ext.bench.kernels.ipic3d import Ipic3d
from mpiio_ext.bench.kernels.layout import slab_pieces
from mpiio_ext.bench.kernels.madbench import Madbench, local_elements
from mpiio_ext.bench.kernels.nas_btio import NasBtio
from mpiio_ext.bench.kernels.program import Access, Barrier, Kernel, Sync, Wait, box_part
from mpiio_ext.bench.kernels.s3d import S3d
from mpiio_ext.errors import ArgumentError
from support.launch import python_run

GIB = 1 << 30
MIB = 1 << 20


def file_bytes(kernel: Kernel) -> int:
    return sum(layout.size_bytes for layout in kernel.files())


def accesses(kernel: Kernel, phase: str, rank: int, interface: str) -> list[Access]:
    return [step for step in kernel.steps(phase, rank, interface) if isinstance(step, Access)]


# ---- boxes ----------------------------------------------------------------------------------------------------------


def test_box_part() -> None:
    """Leading ones come and go; named counts take any other part of as many elements, no other one."""
    assert box_part(((7, 8), (1, 2)), (3, 4)) == ((7, 8), (1, 2), (3, 4))
    assert box_part(((5, 7, 8), (0, 1, 2)), (3, 4)) == ((5, 7, 8), (0, 1, 2), (1, 3, 4))
    assert box_part(((7, 8), (1, 2)), (1, 1, 3, 4)) == ((7, 8), (1, 2), (3, 4))
    assert box_part(((7, 8, 24), (1, 2, 5), (3, 4, 1)), (3, 4)) == ((7, 8, 24), (1, 2, 5), (3, 4, 1))
    for box, count in ((((7, 8), (1, 2)), (2, 3, 4)), (((7, 8), (1, 2), (3, 3)), (3, 4))):
        with pytest.raises(ValueError, match="does not fit"):
            box_part(box, count)


# ---- S3D-IO ---------------------------------------------------------------------------------------------------------


def test_s3d_sizes() -> None:
    """305.18 GiB in the README's example on 4096 processes; 33.7 GB in Table 3 of Bez et al. on 512."""
    readme = kernels.create("s3d", 4096, preset="published")
    assert readme.processes == (16, 16, 16)
    assert readme.files()[0].variable("temp").shape == (800, 800, 800)
    assert round(file_bytes(readme) / GIB, 2) == 305.18
    forwarding = kernels.create("s3d", 512, preset="forwarding")
    assert len(forwarding.files()) == 5
    assert math.isclose(file_bytes(forwarding) / GIB, 33.7, abs_tol=0.06)


def test_s3d_steps() -> None:
    """Four nonblocking writes, a wait and a flush per checkpoint; blocking elsewhere, by species where asked for."""
    kernel = kernels.create("s3d", 4, preset="quick")
    assert [v.name for v in kernel.files()[0].variables] == ["yspecies", "u", "pressure", "temp"]
    for file in range(5):
        every = kernel.steps("checkpoint", 1, "pnetcdf")
        steps = [step for step in every if step.file == file]  # type: ignore[union-attr]
        kinds = [type(step).__name__ for step in steps]
        assert kinds == ["Open", *["Access"] * 4, "Wait", "Sync", "Close"]
        assert all(step.nonblocking for step in steps if isinstance(step, Access))
    for interface in ("mpiio", "hdf5", "netcdf4"):
        steps = list(kernel.steps("checkpoint", 1, interface))
        assert not any(isinstance(step, Wait) or (isinstance(step, Access) and step.nonblocking) for step in steps)
        assert sum(isinstance(step, Sync) for step in steps) == 5
    assert {a.file for a in accesses(kernel, "restart", 0, "pnetcdf")} == {4}
    species = kernels.create("s3d", 4, preset="quick", parameters={"method": 0, "io_one_species_at_a_time": True})
    assert len(accesses(species, "restart", 0, "pnetcdf")) == 11 + 3 + 2
    keys = {S3d(ranks=1, method=m, io_one_species_at_a_time=one).key for m in (0, 1) for one in (False, True)}
    assert len(keys) == 3


def test_s3d_ranks_go_along_x_first() -> None:
    """S3D's topology: rank = (mypz npy + mypy) npx + mypx; arrays are (z, y, x)."""
    kernel = S3d.create(24, {"nx": 2, "ny": 3, "nz": 5, "npx": 2, "npy": 3, "npz": 4})
    starts = [accesses(kernel, "checkpoint", rank, "mpiio")[-1].slabs[0][0] for rank in range(24)]
    assert starts == [(z * 5, y * 3, x * 2) for z, y, x in itertools.product(range(4), range(3), range(2))]
    with pytest.raises(ArgumentError, match="not the number of ranks"):
        S3d.create(4, {"npx": 2, "npy": 3, "npz": 1})


# ---- FLASH-IO -------------------------------------------------------------------------------------------------------


def test_flash_sizes() -> None:
    """31109.74 MiB in the checkpoint of the README's example on 512 processes; 24 unknowns; 80, 81 and 82 blocks."""
    kernel = kernels.create("flash", 512, preset="published")
    assert isinstance(kernel, Flash)
    checkpoint, centred, corners = kernel.files()
    assert round(checkpoint.size_bytes / MIB, 2) == 31109.74
    assert len(kernel.unknowns) == len(set(kernel.unknowns)) == 24
    assert checkpoint.variable("dens").shape[1:] == centred.variable("dens").shape[1:] == (16, 16, 16)
    assert corners.variable("f1__").shape[1:] == (17, 17, 17)
    assert {v.dtype for v in centred.variables} == {"<i4", "<f4"}
    blocks = [kernel.blocks(rank) for rank in range(7)]
    assert [own for _, own in blocks] == [80, 81, 82, 80, 81, 82, 80]
    assert [below for below, _ in blocks] == list(itertools.accumulate([own for _, own in blocks[:-1]], initial=0))


def test_flash_memory_is_one_array() -> None:
    """All unknowns of a rank are the interior of one array, the unknown's number fastest; guard cells are poison."""
    kernel = Flash.create(2, {"nxb": 3, "nyb": 4, "nzb": 5, "nguard": 2, "local_blocks": 2})
    content = Content(kernel, 9)
    for interface in ("hdf5", "mpiio", "pnetcdf"):
        parts = [a for a in accesses(kernel, "checkpoint", 1, interface) if a.memory == "unk"]
        assert [a.variable for a in parts] == list(kernel.unknowns)
        memory = content.poison(parts[0])
        assert memory.size == 3 * 9 * 8 * 7 * 24 * 8
        for access in parts:
            content.place(access, memory)
        unk = memory.view("<f8").reshape(3, 9, 8, 7, 24)
        for number, access in enumerate(parts):
            inner = np.ascontiguousarray(unk[:, 2:-2, 2:-2, 2:-2, number])
            assert inner.tobytes() == content.packed(access).tobytes()
        assert (memory == np.uint8(POISON ^ content.salt(0))).sum() == memory.size - 24 * 3 * 60 * 8
    blocking = kernel.replace(use_nonblocking_io=False)
    assert not any(a.boxes or a.nonblocking for a in accesses(blocking, "checkpoint", 0, "pnetcdf"))
    assert all(a.nonblocking for a in accesses(kernel, "plotfile", 0, "pnetcdf"))
    assert kernel.key != blocking.key


# ---- NAS BT-IO ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letter", "grid", "writes", "total"),
    [
        ("S", 12, 12, 829_440),
        ("W", 24, 40, 22_118_400),
        ("A", 64, 40, 419_430_400),
        ("B", 102, 40, 1_697_932_800),
        ("C", 162, 40, 6_802_444_800),
        ("D", 408, 50, 135_834_624_000),
    ],
)
def test_btio_classes(letter: str, grid: int, writes: int, total: int) -> None:
    """The classes of the NPB: points a side, time steps / 5, bytes; 6.3 and 126.5 GiB in Table 3 of Bez et al."""
    kernel = kernels.create("nas_btio", 4, preset=letter)
    assert kernel.files()[0].variables[0].shape == (writes, grid, grid, grid, 5)
    assert file_bytes(kernel) == total
    assert kernel.data_bytes("timesteps", "mpiio") == kernel.data_bytes("verification", "mpiio") == total
    table = {"C": 6.3, "D": 126.5}
    assert letter not in table or math.isclose(total / GIB, table[letter], abs_tol=0.05)


@pytest.mark.parametrize(("ranks", "grid"), [(1, 5), (4, 7), (9, 12), (16, 13)])
def test_btio_geometry(ranks: int, grid: int) -> None:
    """The bytes of a write are those of the pattern of that name; boxes have NPB's MAX_CELL_DIM and two ghosts."""
    kernel = NasBtio.create(ranks, {"problem_size": grid, "niter": 10})
    pattern = BTIO(ranks=ranks, grid=grid, time_steps=1, ranks_there=ranks)
    shape = kernel.files()[0].variables[0].shape
    for rank in range(ranks):
        second = accesses(kernel, "timesteps", rank, "mpiio")[1]
        offsets, lengths = slab_pieces(shape, second.slabs, 8)
        expected_offsets, expected_lengths = pattern.write_plan(rank).file.pieces()
        assert (offsets == expected_offsets + grid**3 * 40).all()
        assert (lengths == expected_lengths).all()
        side = grid // math.isqrt(ranks) + 5
        assert second.boxes == (((side, side, side, 5), (2, 2, 2, 0)),) * math.isqrt(ranks)
        cells = accesses(kernel, "timesteps", rank, "pnetcdf")
        assert [a.slabs[0] for a in cells if a.slabs[0][0][0] == 1] == list(second.slabs)


def test_btio_refuses() -> None:
    """A grid below the ranks a side, no write at all; the ranks that take part are a square number."""
    for bad in ({"problem_size": 2}, {"niter": 4}, {"wr_interval": 0}):
        with pytest.raises(ArgumentError, match=r"nas_btio: .*(problem_size|wr_interval)"):
            NasBtio.create(9, {"problem_size": 9, **bad})
    kernel = kernels.create("nas_btio", 7, preset="S")
    assert kernel.active == 4
    assert "4 of 7" in kernel.note
    assert kernel.replace(nonblocking=False).key != kernel.key  # type: ignore[call-arg]


# ---- MADBench2 ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 4))
def test_madbench_parts_are_block_cyclic(no_pix: int, block: int, side: int) -> None:
    """NUMROC: the elements whose block row and block column fall to a process; together the matrix."""
    owner = np.arange(no_pix) // block % side
    counts = [local_elements(no_pix, block, side, process) for process in range(side**2)]
    assert counts == [int((owner == p % side).sum() * (owner == p // side).sum()) for p in range(side**2)]
    assert sum(counts) == no_pix**2


def test_madbench_volumes() -> None:
    """Every phase moves all matrices in each of its directions; 16.2 GiB each way with 64 processes (Bez et al.)."""
    kernel = kernels.create("madbench", 64, preset="published")
    matrices = 8 * 11648**2 * 8
    assert [kernel.data_bytes(p.name, "mpiio") for p in kernel.phases()] == [matrices, 2 * matrices, matrices]
    assert math.isclose(2 * matrices / GIB, 16.2, abs_tol=0.05)
    assert [p.operation for p in kernel.phases()] == ["write", "both", "read"]
    uneven = Madbench.create(9, {"no_pix": 100, "no_bin": 3, "fblocksize": 4096})
    assert uneven.data_bytes("S", "mpiio") == 3 * 100**2 * 8
    assert all(v.offset_bytes % 4096 == 0 for v in uneven.files()[0].variables)


@pytest.mark.parametrize("no_gang", [1, 4])
@pytest.mark.parametrize("filetype", ["SHARED", "UNIQUE"])
def test_madbench_writes_over_what_has_been_read(no_gang: int, filetype: str) -> None:
    """In W a place is written again after the rank has read all of it; in C it is read as written then."""
    kernel = Madbench.create(16, {"no_pix": 64, "no_bin": 8, "no_gang": no_gang, "filetype": filetype})
    assert file_bytes(kernel) == 8 * 64**2 * 8
    assert all(layout.end_bytes == layout.size_bytes for layout in kernel.files())
    for rank in range(16):
        read: dict[str, int] = {}
        for access in accesses(kernel, "W", rank, "mpiio"):
            if access.write:
                assert read.pop(access.variable) == access.elements == 64**2 * no_gang // 16
            else:
                read[access.variable] = read.get(access.variable, 0) + access.elements
        assert not read
        third = accesses(kernel, "C", rank, "mpiio")
        assert len(third) == 8 // no_gang
        assert all(a.version == 1 and a.elements == 64**2 * no_gang // 16 for a in third)


def test_madbench_takes_turns() -> None:
    """With w_mod neighbours only one of them writes between two barriers, in order."""
    kernel = Madbench.create(4, {"no_pix": 32, "no_bin": 2, "w_mod": 2})
    for rank in range(4):
        steps = list(kernel.steps("S", rank, "mpiio"))
        barriers = list(itertools.accumulate(isinstance(step, Barrier) for step in steps))
        turns = [before for step, before in zip(steps, barriers, strict=True) if isinstance(step, Access)]
        assert turns == [1 + rank % 2, 4 + rank % 2]


def test_madbench_asynchronous() -> None:
    """IOMODE ASYNC begins accesses and waits; POSIX has nothing of the kind."""
    kernel = Madbench.create(4, {"no_pix": 32, "no_bin": 2, "iomode": "ASYNC"})
    steps = list(kernel.steps("W", 0, "mpiio"))
    assert all(step.nonblocking for step in steps if isinstance(step, Access))
    pending = 0
    for step in steps:
        pending = 0 if isinstance(step, Wait) else pending + isinstance(step, Access)
    assert pending == 0
    assert not any(a.nonblocking for a in accesses(kernel, "W", 0, "posix"))
    keys = {
        Madbench(ranks=4, filetype=f, iomode=m, no_gang=g).key
        for f in ("SHARED", "UNIQUE")
        for m in ("SYNC", "ASYNC")
        for g in (1, 4)
    }
    assert len(keys) == 8


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"no_gang": 2}, "no_gang"),
        ({"no_bin": 6, "no_gang": 4}, "no_gang"),
        ({"r_mod": 3}, "r_mod"),
        ({"fblocksize": 12}, "fblocksize"),
        ({"filetype": "BOTH"}, "filetype"),
        ({"no_pix": 8}, "rows"),
        ({"no_pix": 40, "no_gang": 4}, "with gangs"),
        ({"fblocksize": 65536, "no_pix": 64, "no_gang": 4}, "with gangs"),
    ],
)
def test_madbench_refuses(parameters: dict[str, object], word: str) -> None:
    """What the original refuses, and gangs whose matrices would not fit into each other's places."""
    with pytest.raises(ArgumentError, match=f"madbench: .*{word}"):
        Madbench.create(16, {"no_bin": 8, **parameters})


# ---- iPIC3D ---------------------------------------------------------------------------------------------------------


def test_ipic3d_input_file() -> None:
    """inputfiles/LargeIvy.inp: 128 × 96 × 64 cells on 2 × 2 × 2 processes, four species of 4³ particles per cell."""
    kernel = kernels.create("ipic3d", 8, preset="published")
    assert isinstance(kernel, Ipic3d)
    fields, particles = kernel.files()[0], kernel.files()[2]
    assert fields.variable("Step#0/Block/Bz/0").shape == (65, 97, 129)
    assert len(fields.variables) == 6 + 4 * 4
    assert len(particles.variables) == 7 * 4
    total = particles.variable("Step#0/x_3").shape[0]
    assert math.isclose(total, 128 * 96 * 64 * 4**3, rel_tol=0.02)
    assert len({kernel.particles(rank, 0) for rank in range(8)}) == 3
    assert kernel.replace(imbalance=0).files()[2].variable("Step#0/x_3").shape == (128 * 96 * 64 * 4**3,)


def test_ipic3d_restart_files() -> None:
    """One file per rank with its nodes and particles, accessed by that rank alone and read as written."""
    kernel = kernels.create("ipic3d", 3, preset="quick")
    assert isinstance(kernel, Ipic3d)
    own = [layout for layout in kernel.files() if layout.owner is not None]
    assert [(layout.name, layout.owner) for layout in own] == [(f"restart{rank}", rank) for rank in range(3)]
    for rank in range(3):
        assert own[rank].variable("fields/Ex/cycle_0").shape == (13, 13, 13)
        assert own[rank].variable("particles/species_1/q/cycle_0").shape == (kernel.particles(rank, 1),)
        written, read = (accesses(kernel, phase, rank, "hdf5") for phase in ("restart", "resume"))
        assert [dataclasses.replace(a, write=False) for a in written] == read
        assert not any(a.collective for a in read)


# ---- netCDF-4 -------------------------------------------------------------------------------------------------------


COMPARISON = """
import pathlib, sys
import mpiio_ext
import netCDF4
from mpiio_ext.bench.interfaces.netcdf4 import Netcdf4

def make(name, variable="group/v", length=3, value=1.5, before=""):
    path = pathlib.Path(sys.argv[1]) / name
    with netCDF4.Dataset(path, "w", format="NETCDF4") as file:
        file.set_fill_off()
        file.before = before
        file.createDimension("n", length)
        file.createVariable(variable, "f8", ("n",), contiguous=True)[:] = value
    return path

one = make("one.nc4")
longer = make("longer.nc4", before="x" * 100)
assert one.read_bytes() != longer.read_bytes()
for other in (longer, make("value.nc4", value=2.5), make("length.nc4", length=4), make("name.nc4", variable="group/w")):
    print(other.stem, *Netcdf4().compare(one, other), sep="|")
"""


@pytest.mark.both
@pytest.mark.mpi
@pytest.mark.skipif(importlib.util.find_spec("netCDF4") is None, reason="netCDF4 is not installed")
def test_netcdf4_comparison(tmp_path: Path) -> None:
    """Files that differ in bytes but not in groups, dimensions and variables are the same."""
    launch = python_run(["-c", COMPARISON, tmp_path], 1)
    assert launch.stdout.splitlines() == [
        "longer|netCDF4|None",
        "value|netCDF4|in variable /group/v",
        "length|netCDF4|in the lengths of dimensions of group /",
        "name|netCDF4|in the names of variables of group /group",
    ]


@pytest.mark.parametrize(("name", "variables"), [("e3sm_f", 387), ("e3sm_g", 41), ("e3sm_i", 546)])
def test_e3sm_has_the_variables_of_the_original(name: str, variables: int) -> None:
    """As many partitioned variables as docs/variables.md of E3SM-IO counts; one list for all that are alike."""
    kernel = kernels.create(name, 64, preset="published")
    assert len(kernel.files()[0].variables) == variables
    quick = kernels.create(name, 4, preset="quick")
    steps = [step for step in quick.steps("history", 1, "pnetcdf") if isinstance(step, Access)]
    assert len(steps) == len(quick.files()[0].variables)
    assert all(step.nonblocking and step.write for step in steps)
    assert len({id(step.slabs) for step in steps}) <= 6


def test_e3sm_pieces_are_short_or_long() -> None:
    """Case F has pieces of a few values, case G of whole cells; a rank's runs are apart."""
    for name, least, most in (("e3sm_f", 4, 64), ("e3sm_g", 640, 64 * 648)):
        kernel = kernels.create(name, 4, preset="quick")
        variables = {v.name: v for v in kernel.files()[0].variables if len(v.shape) == 2}
        lengths = np.concatenate(
            [
                slab_pieces(variables[step.variable].shape, step.slabs, variables[step.variable].item_bytes)[1]
                for step in kernel.steps("history", 2, "pnetcdf")
                if isinstance(step, Access) and step.variable in variables
            ]
        )
        assert lengths.min() >= least and lengths.mean() < most


@pytest.mark.parametrize(("cells", "ranks"), [(1, 1), (1, 5), (7, 3), (1000, 4)])
def test_dealt_cells_are_everybodys_once(cells: int, ranks: int) -> None:
    """Runs of all ranks together are the grid; those of one rank never touch."""
    dealt = deal(cells, ranks, 4, 3)
    owned = np.zeros(cells, int)
    for starts, lengths in dealt:
        assert (starts[1:] > (starts + lengths)[:-1]).all()
        for start, length in zip(starts, lengths, strict=True):
            owned[start : start + length] += 1
    assert len(dealt) == ranks and (owned == 1).all()
