"""IOR, MPI-IO Test, HACC-IO, S3aSim and coll_perf: their layouts and sizes, against the originals' definitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mpiio_ext.bench import kernels
from mpiio_ext.bench.kernels.geometry import balanced_grid
from mpiio_ext.bench.kernels.program import Access, Kernel, Open, Sync, Wait
from mpiio_ext.errors import ArgumentError

MIB = 1 << 20


def transfers(kernel: Kernel, phase: str, rank: int) -> list[tuple[int, int, int]]:
    """Return (file, offset, length) in bytes of every contiguous access of a rank, in the order of time."""
    files, found = kernel.files(), []
    for step in kernel.steps(phase, rank, kernel.interfaces[0]):
        if isinstance(step, Access):
            variable = files[step.file].variable(step.variable)
            ((start,), (count,)) = step.slabs[0]
            found.append((step.file, variable.offset_bytes + start * variable.item_bytes, count * variable.item_bytes))
    return found


def ior_order(rank: int, ranks: int, *, segments: int, block: int, transfer: int, own_file: bool) -> list[int]:
    """Return the offsets of a rank by the definition of IOR's user guide: a walk through the whole file."""
    offsets, position = [], 0
    for _ in range(segments):
        for owner in range(1 if own_file else ranks):
            for _ in range(block // transfer):
                if own_file or owner == rank:
                    offsets.append(position)
                position += transfer
    return offsets


@pytest.mark.parametrize("name", ["ior_shared", "ior_fpp", "ior_hard"])
@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize(("segments", "block", "transfer"), [(1, 64, 64), (3, 64, 16), (7, 40, 8)])
def test_ior_offsets(name: str, ranks: int, segments: int, block: int, transfer: int) -> None:
    """Segments of blocks of transfers, read by the rank as far away as asked for."""
    for shift in (0, 1, 3):
        kernel = kernels.create(
            name,
            ranks,
            parameters={
                "segment_count": segments,
                "block_size": block,
                "transfer_size": transfer,
                "reorder_tasks": shift > 0,
                "task_per_node_offset": shift,
            },
        )
        for rank in range(ranks):
            for phase, owner in (("write", rank), ("read", (rank + shift) % ranks)):
                own_file = name == "ior_fpp"
                expected = [
                    (owner if own_file else 0, offset, transfer)
                    for offset in ior_order(
                        owner, ranks, segments=segments, block=block, transfer=transfer, own_file=own_file
                    )
                ]
                assert transfers(kernel, phase, rank) == expected


@pytest.mark.parametrize(
    ("name", "preset", "ranks", "size_bytes", "files"),
    [
        ("ior_shared", "published", 128, 16 << 30, 1),
        ("ior_shared", "posix_s", 128, 16 << 30, 1),
        ("ior_fpp", "published", 512, 32 << 30, 512),
        ("ior_shared", "tokio_mira", 16_384, 1 << 40, 1),
        ("ior_shared", "tokio_edison", 2_048, 1 << 39, 1),
        ("ior_fpp", "tokio_mira", 16_384, 1 << 40, 16_384),
        ("ior_fpp", "tokio_edison", 2_048, 2 << 40, 2_048),
    ],
)
def test_ior_published_sizes(name: str, preset: str, ranks: int, size_bytes: int, files: int) -> None:
    """The volumes of the papers' tables at their numbers of processes."""
    layouts = kernels.create(name, ranks, preset=preset).files()
    assert len(layouts) == files
    assert sum(layout.size_bytes for layout in layouts) == size_bytes


def test_ior_collective_and_flush() -> None:
    """-c and -e are seen in the steps; through HDF5 a segment is a dataset."""
    kernel = kernels.create("ior_shared", 4, preset="tokio_mira")
    steps = list(kernel.steps("write", 1, "hdf5"))
    assert all(step.collective for step in steps if isinstance(step, Access))
    assert isinstance(steps[-2], Sync)
    assert not any(isinstance(step, Sync) for step in kernel.steps("read", 1, "hdf5"))
    assert [v.name for v in kernel.files()[0].variables] == [f"Dataset-0000.{i:04d}" for i in range(16)]
    assert all(v.shape == (4 * 4 * MIB // 8,) for v in kernel.files()[0].variables)
    hard = kernels.create("ior_hard", 2, preset="quick")
    assert {length for _, _, length in transfers(hard, "write", 0)} == {47_008}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"transfer_size": 12, "block_size": 24}, "multiple of 8"),
        ({"transfer_size": 16, "block_size": 24}, "not a multiple of transfer_size"),
        ({"segment_count": 0}, "segment_count must be at least 1"),
        ({"file_per_process": True, "collective": True}, "of no use"),
    ],
)
def test_ior_refuses(parameters: dict[str, object], message: str) -> None:
    """What IOR refuses, by name."""
    with pytest.raises(ArgumentError, match=message):
        kernels.create("ior_shared", 2, parameters=parameters)


@pytest.mark.parametrize("name", ["ior_shared", "ior_fpp", "ior_hard"])
def test_ior_scaling(name: str) -> None:
    """Fewer segments first, then smaller blocks of the same transfers."""
    quick = kernels.create(name, 4, preset="quick")
    for factor in (1 / 1000, 1 / 3, 2, 8):
        scaled = quick.scaled(factor)
        scaled.check()
        assert scaled.transfer_size == quick.transfer_size  # type: ignore[attr-defined]
        size, whole = scaled.files()[0].size_bytes, quick.files()[0].size_bytes
        smallest: int = 4 * quick.transfer_size  # type: ignore[attr-defined]
        assert size == pytest.approx(whole * factor, rel=0.3) or size <= smallest


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("mpi_io_test_strided", lambda rank, i, ranks, nobj: (0, i * ranks + rank)),
        ("mpi_io_test_segmented", lambda rank, i, ranks, nobj: (0, rank * nobj + i)),
        ("mpi_io_test_nn", lambda rank, i, ranks, nobj: (rank, i)),
    ],
)
def test_mpi_io_test_layouts(name: str, place: object) -> None:
    """Object i of a rank is where fs_test puts it; a shifted reader is half the ranks away."""
    ranks, nobj, size = 5, 3, 448 << 10
    kernel = kernels.create(name, ranks, parameters={"nobj": nobj, "shift": True})
    for rank in range(ranks):
        for phase, owner in (("write", rank), ("read", (rank + ranks // 2) % ranks)):
            expected = [place(owner, i, ranks, nobj) for i in range(nobj)]  # type: ignore[operator]
            assert transfers(kernel, phase, rank) == [(file, number * size, size) for file, number in expected]


def test_mpi_io_test_independent_is_nonblocking() -> None:
    """An independent transfer is begun and completed before the next; a collective one is blocking."""
    kernel = kernels.create("mpi_io_test_segmented", 2, preset="quick")
    steps = list(kernel.steps("write", 1, "mpiio"))
    assert [type(step) for step in steps[1:-1]] == [Access, Wait] * 8
    assert all(step.nonblocking and not step.collective for step in steps if isinstance(step, Access))
    strided = list(kernels.create("mpi_io_test_strided", 2, preset="quick").steps("write", 1, "mpiio"))
    assert not any(isinstance(step, Wait) for step in strided)
    assert all(step.collective and not step.nonblocking for step in strided if isinstance(step, Access))
    alone = kernels.create("mpi_io_test_strided", 2, preset="independent").steps("write", 1, "mpiio")
    assert all(step.nonblocking for step in alone if isinstance(step, Access))
    with pytest.raises(ArgumentError, match="for test_type 2"):
        kernels.create("mpi_io_test_nn", 2, parameters={"collective": True})
    with pytest.raises(ArgumentError, match="test_type must be 1"):
        kernels.create("mpi_io_test_nn", 2, parameters={"test_type": 3})


def test_hacc_particle_and_file() -> None:
    """38 bytes a particle behind a header of 24 MiB: 1.8 GB on 64 processes, 96 MiB and 1 GiB a process."""
    published = kernels.create("hacc", 64, preset="published")
    (layout, *_) = files = published.files()
    assert len(files) == 64 and [layout.owner for layout in files] == list(range(64))
    assert layout.end_bytes == layout.size_bytes == 24 * MIB + 38 * 100_000
    total = sum(layout.size_bytes for layout in files)
    assert int(total / 1e8) == 18  # the table's 1.8 GB
    assert total == published.data_bytes("checkpoint", "posix")
    for preset, wanted in (("tokio_mira", 96 * MIB), ("tokio_edison", 1 << 30)):
        size = kernels.create("hacc", 1, preset=preset).files()[0].size_bytes
        assert 0 <= wanted - size < 38
    kinds = Counter(np.dtype(v.dtype).str for v in layout.variables[1:])
    assert kinds == {"<f4": 7, "<i8": 1, "<u2": 1}


def test_hacc_order() -> None:
    """Nine arrays and then the header; the restart begins with it."""
    names = ["xx", "yy", "zz", "vx", "vy", "vz", "phi", "pid", "mask"]

    def accessed(kernel: Kernel, phase: str, rank: int) -> list[str]:
        steps = kernel.steps(phase, rank, "mpiio")
        return [step.variable.split("/")[0] for step in steps if isinstance(step, Access)]

    own = kernels.create("hacc", 3, preset="quick")
    for rank in range(3):
        assert accessed(own, "checkpoint", rank) == [*names, "header"]
        assert accessed(own, "restart", rank) == ["header", *names]
    assert sum(isinstance(step, Open) for step in own.steps("restart", 0, "mpiio")) == 2
    with pytest.raises(ArgumentError, match="header_size must be a multiple of 8"):
        kernels.create("hacc", 1, parameters={"header_size": 20})


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_s3asim_results(ranks: int) -> None:
    """Uniform numbers and sizes of results in their bounds; every byte once, by a worker."""
    kernel = kernels.create("s3asim", ranks, preset="quick", parameters={"queries": 300, "size_max": 1000})
    sizes, position, owners = [], 0, Counter[int]()
    per_query = Counter[str]()
    for rank in range(ranks):
        begins = [offset for _, offset, _ in transfers(kernel, "results", rank)]
        assert begins == sorted(begins)
        for step in kernel.steps("results", rank, "mpiio"):
            if isinstance(step, Access):
                assert step.write and not step.collective
                per_query[step.variable] += 1
    moves = sorted(
        (offset, length, rank) for rank in range(ranks) for _, offset, length in transfers(kernel, "results", rank)
    )
    for offset, length, rank in moves:
        assert offset == position
        position += length
        sizes.append(length)
        owners[rank] += 1
    assert position == kernel.files()[0].end_bytes
    assert min(sizes) >= 6 and max(sizes) <= 1000
    assert np.mean(sizes) == pytest.approx(503, rel=0.1)
    assert len(per_query) == 300 and set(per_query.values()) == set(range(1, 11))
    assert set(owners) == ({0} if ranks == 1 else set(range(1, ranks)))  # rank 0 is the master
    assert min(owners.values()) > 0.5 * max(owners.values())
    assert kernel.files() == kernel.replace(ranks=ranks + 1).files()  # results do not depend on who writes them
    assert kernel.files() != kernel.replace(seed=2).files()


def test_s3asim_published_sizes() -> None:
    """About 100 MB a query, from about 4 MB to about 328 MB, 100 queries and 128 fragments."""
    kernel = kernels.create("s3asim", 16, preset="published")
    queries = [variable.size_bytes for variable in kernel.files()[0].variables]
    assert len(queries) == 100 and kernel.fragments == 128  # type: ignore[attr-defined]
    assert np.mean(queries) == pytest.approx(100e6, rel=0.1)
    assert min(queries) == pytest.approx(4e6, rel=0.1) and max(queries) == pytest.approx(328e6, rel=0.1)
    worker = kernel.worker  # type: ignore[attr-defined]
    workers = {worker(query, fragment) for query in range(3) for fragment in range(128)}
    assert workers == set(range(1, 16))


@pytest.mark.parametrize("ranks", [1, 4, 6, 7])
def test_coll_perf_blocks(ranks: int) -> None:
    """The blocks are those of MPI_DISTRIBUTE_BLOCK, cell by cell; 128 a side as published."""
    sizes = (13, 16, 20)
    kernel = kernels.create("coll_perf", ranks, parameters={"array_of_gsizes": sizes})
    grid = balanced_grid(ranks, 3)
    blocks = [-(-size // processes) for size, processes in zip(sizes, grid, strict=True)]
    owner = np.empty(sizes, int)
    for cell in np.ndindex(*sizes):
        place = [index // block for index, block in zip(cell, blocks, strict=True)]
        owner[cell] = np.ravel_multi_index(place, grid)
    for phase in ("write", "read"):
        for rank in range(ranks):
            (access,) = [step for step in kernel.steps(phase, rank, "mpiio") if isinstance(step, Access)]
            start, count = access.slabs[0]
            mine = np.zeros(sizes, bool)
            mine[tuple(slice(s, s + c) for s, c in zip(start, count, strict=True))] = True
            assert (mine == (owner == rank)).all() and access.collective
    published = kernels.create("coll_perf", 8, preset="published")
    assert published.files()[0].size_bytes == 4 * 128**3


def test_coll_perf_refuses_ranks_without_work() -> None:
    """netCDF4-python cannot take part with nothing, and the message names the number."""
    with pytest.raises(ArgumentError, match="blocks of 4 elements over 3 processes"):
        kernels.create("coll_perf", 3, parameters={"array_of_gsizes": (4, 8, 8)})
    with pytest.raises(ArgumentError, match="must have 3 numbers"):
        kernels.create("coll_perf", 3, parameters={"array_of_gsizes": (4, 8)})


@pytest.mark.parametrize(
    "name", [name for name in kernels.KERNELS if name.startswith(("ior", "mpi_io_test", "hacc", "s3asim", "coll_perf"))]
)
def test_volumes_on_four_ranks(name: str) -> None:
    """Quick and laptop sizes stay what they are called; variants have keys of their own."""
    sizes = {
        preset: sum(layout.end_bytes for layout in kernels.create(name, 4, preset=preset).files())
        for preset in ("quick", "laptop")
    }
    assert sizes["quick"] <= 32 * MIB and sizes["quick"] < sizes["laptop"] <= 512 * MIB
    assert len({kernels.create(name, 4, preset=preset).key for preset in ("quick", "laptop", "published")}) == 3
