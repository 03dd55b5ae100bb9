"""Values, shapes and patterns of the bench against brute force, without MPI."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.bench import kernels
from mpiio_ext.bench.execution.content import Content
from mpiio_ext.bench.execution.values import POISON, fill_pieces, fill_range, salt_of_run
from mpiio_ext.bench.kernels import Sizes
from mpiio_ext.bench.kernels.btio import BTIO
from mpiio_ext.bench.kernels.decomposition import CASES, deal
from mpiio_ext.bench.kernels.geometry import balanced_grid
from mpiio_ext.bench.kernels.program import Access, Close, Open
from mpiio_ext.bench.kernels.shapes import (
    DOUBLE,
    Block,
    Contiguous,
    Darray,
    Element,
    Indexed,
    Sequence,
    Vector,
    coalesce,
)
from support.marks import slow

RANKS = range(1, 10)
SMALL = Sizes(file_bytes=40 * 1000, blocks_bytes=(64, 7, 24), piece_bytes=256, ghost=2, steps=2, transfer_bytes=1000)


def byte_at(offset: int) -> int:
    """The formula of the values in plain Python integers."""
    word = offset // 8 * 0x9E3779B97F4A7C15 % 2**64
    word ^= word >> 29
    word = word * 0xBF58476D1CE4E5B9 % 2**64
    word ^= word >> 32
    return (word >> (8 * (offset % 8)) & 0xFF) | 1


def expand(offsets, lengths):
    """Every byte offset of the pieces, in order."""
    return np.concatenate([np.arange(o, o + n) for o, n in zip(offsets, lengths, strict=True)] or [np.zeros(0, int)])


def small_variants(ranks):
    return kernels.create_patterns(tuple(kernels.PATTERNS), SMALL, ranks)


# ---- values ----


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 12345, 2**31 - 3, 2**40 + 5])
def test_range_follows_the_formula(offset):
    out = np.zeros(50, np.uint8)
    fill_range(out, offset)
    assert out.tolist() == [byte_at(offset + i) for i in range(50)]


def test_long_range_has_no_seam():
    whole = np.zeros(1_000_003, np.uint8)
    fill_range(whole, 5)
    for begin in (0, 262_139, 262_140, 524_288, 999_990):
        part = np.zeros(13, np.uint8)
        fill_range(part, 5 + begin)
        assert (whole[begin : begin + 13] == part).all()


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 9000)), min_size=1, max_size=40), st.sampled_from([1, 8]))
@settings(deadline=None, max_examples=60)
def test_pieces_are_ranges_one_after_the_other(gaps_and_lengths, unit):
    offsets, lengths, position = [], [], 0
    for gap, length in gaps_and_lengths:
        position += gap * unit
        offsets.append(position)
        lengths.append(length * unit)
        position += length * unit
    out = np.zeros(sum(lengths), np.uint8)
    fill_pieces(out, np.array(offsets), np.array(lengths))
    done = 0
    for offset, length in zip(offsets, lengths, strict=True):
        expected = np.zeros(length, np.uint8)
        fill_range(expected, offset)
        assert (out[done : done + length] == expected).all()
        done += length


def test_many_short_pieces_cross_the_batches():
    offsets = np.arange(0, 40_000 * 24, 24)
    lengths = np.full(offsets.size, 8)
    lengths[[100, 20_000]] = 24
    out = np.zeros(int(lengths.sum()), np.uint8)
    fill_pieces(out, offsets, lengths)
    expected = np.zeros(40_000 * 24, np.uint8)
    fill_range(expected, 0)
    assert (out == expected[expand(offsets, lengths)]).all()


def test_written_bytes_are_never_zero_nor_poison():
    out = np.zeros(100_000, np.uint8)
    fill_range(out, 3)
    for run in range(300):
        salted = out[:5000] ^ salt_of_run(run)
        assert salted.all()
        assert not (salted == (POISON ^ salt_of_run(run))).any()
        assert salt_of_run(run) != salt_of_run(run + 1)


# ---- shapes ----


def reference_block(block):
    unit = block.element.size_bytes
    index = np.arange(math.prod(block.sizes) * unit).reshape(*block.sizes, unit)
    window = tuple(slice(s, s + n) for s, n in zip(block.starts, block.subsizes, strict=True))
    return index[window].reshape(-1)


@st.composite
def blocks(draw):
    dimensions = draw(st.integers(1, 4))
    sizes = tuple(draw(st.integers(1, 5)) for _ in range(dimensions))
    starts = tuple(draw(st.integers(0, size - 1)) for size in sizes)
    counts = tuple(draw(st.integers(1, size - start)) for size, start in zip(sizes, starts, strict=True))
    element = draw(st.sampled_from([Element(), DOUBLE, Element(basic_bytes=8, count=5)]))
    return Block(element=element, sizes=sizes, subsizes=counts, starts=starts)


@given(blocks())
@settings(deadline=None)
def test_block_enumerates_and_scatters_as_numpy_slices(block):
    expected = reference_block(block)
    assert (expand(*block.pieces()) == expected).all()
    assert block.size_bytes == expected.size
    packed = np.random.default_rng(1).integers(0, 256, block.size_bytes).astype(np.uint8)
    memory, by_pieces = np.zeros((2, block.extent_bytes), np.uint8)
    block.scatter(memory, packed)
    by_pieces[expected] = packed
    assert (memory == by_pieces).all()


def test_vector_indexed_sequence():
    vector = Vector(element=DOUBLE, count=3, block=2, stride=5)
    assert expand(*vector.pieces()).tolist() == [40 * i + j for i in range(3) for j in range(16)]
    assert (vector.size_bytes, vector.extent_bytes) == (48, 120)
    indexed = Indexed(offsets_bytes=np.array([3, 4, 9]), lengths_bytes=np.array([1, 2, 4]), whole_bytes=20)
    assert [x.tolist() for x in indexed.pieces()] == [[3, 9], [3, 4]]
    both = Sequence(parts=(indexed, Contiguous(element=DOUBLE, count=1)))
    assert expand(*both.pieces()).tolist() == [3, 4, 5, 9, 10, 11, 12, *range(8)]
    memory = np.zeros(20, np.uint8)
    indexed.scatter(memory, np.arange(1, 8, dtype=np.uint8))
    assert memory.tolist() == [0, 0, 0, 1, 2, 3, 0, 0, 0, 4, 5, 6, 7, *[0] * 7]


def test_coalesce_keeps_order_and_drops_empty():
    offsets, lengths = coalesce(np.array([8, 10, 0, 4, 99]), np.array([2, 2, 4, 1, 0]))
    assert (offsets.tolist(), lengths.tolist()) == ([8, 0], [4, 5])


@pytest.mark.parametrize("size, parts", list(itertools.product(range(1, 9), range(1, 6))))
def test_darray_is_the_standards_block_distribution(size, parts):
    owner = [i // math.ceil(size / parts) for i in range(size)]
    for rank in range(parts):
        part = Darray(element=Element(), sizes=(size,), grid=(parts,), rank=rank)
        assert expand(*part.pieces()).tolist() == [i for i in range(size) if owner[i] == rank]


@pytest.mark.parametrize("ranks", range(1, 65))
def test_balanced_grid(ranks):
    for dimensions in (1, 2, 3):
        grid = balanced_grid(ranks, dimensions)
        assert math.prod(grid) == ranks
        assert list(grid) == sorted(grid, reverse=True)
        every = itertools.product(*[[d for d in range(1, ranks + 1) if ranks % d == 0]] * dimensions)
        best = min(max(g) - min(g) for g in every if math.prod(g) == ranks)
        assert grid[0] - grid[-1] == best


# ---- patterns: each owner formula again, naively ----


def climate_owner(pattern, ranks):
    """Owner of every byte, one variable after the other; cells are dealt by runs no longer than the case's."""
    case, owners = CASES[pattern.case], []
    for group in case.reduced(pattern.divisor):
        cells = pattern.cells * group.cells
        owner = np.full(cells, -1)
        for rank, (starts, lengths) in enumerate(deal(cells, ranks, case.longest, pattern.seed + group.cells)):
            for start, length in zip(starts, lengths, strict=True):
                assert (owner[start : start + length] == -1).all()
                owner[start : start + length] = rank
        item = np.dtype(group.dtype).itemsize
        whole = np.repeat(owner, group.levels * item) if group.inner else np.tile(np.repeat(owner, item), group.levels)
        owners += [whole] * group.number
    return np.concatenate(owners)


def owners(pattern):
    """Rank that writes each byte of the file, -1 for nobody, from the pattern's documented layout."""
    out = np.full(pattern.extent_bytes, -1)
    ranks = pattern.ranks
    match pattern.name:
        case "contiguous":
            return np.arange(out.size) // (out.size // ranks)
        case "interleaved":
            return np.arange(out.size) // pattern.block_bytes % ranks
        case "block3d":
            n, grid = pattern.edge, balanced_grid(ranks, 3)
            coordinate = [np.arange(n) // math.ceil(n / parts) for parts in grid]
            z, y, x = np.meshgrid(*coordinate, indexing="ij")
            return np.repeat(((z * grid[1] + y) * grid[2] + x).reshape(-1), 8)
        case "tiles2d":
            rows, columns = balanced_grid(ranks, 2)
            g, (height, width) = pattern.ghost, pattern.tile
            field = np.full((rows * height + 2 * g, columns * width + 2 * g), -1)
            for y, x in np.ndindex(rows * height, columns * width):
                field[y + g, x + g] = y // height * columns + x // width
            return np.repeat(field.reshape(-1), 8)
        case "btio":
            return np.tile(np.repeat(bt_owner(pattern.grid, math.isqrt(ranks)).reshape(-1), 40), pattern.time_steps)
        case "random":
            assert pattern.mask(0, out.size) is not None
            return None
        case "climate":
            return climate_owner(pattern, ranks)
    raise AssertionError(pattern.name)


def bt_owner(n, p):
    """Owner of each grid point, following make_set.f of NAS BT: cell by cell, with its 1-based coordinates."""
    owner = np.full((n, n, n), -1)
    size, excess = divmod(n, p)

    def span(coordinate):  # 1-based, as there
        if coordinate <= excess:
            low = (coordinate - 1) * (size + 1)
            return slice(low, low + size + 1)
        low = excess * (size + 1) + (coordinate - excess - 1) * size
        return slice(low, low + size)

    for node in range(p * p):
        x, y, z = node % p, node // p, 0
        for _ in range(p):
            assert (owner[span(z + 1), span(y + 1), span(x + 1)] == -1).all()
            owner[span(z + 1), span(y + 1), span(x + 1)] = node
            x, y, z = (x + 1) % p, (y - 1 + p) % p, z + 1
    return owner


@pytest.mark.parametrize("ranks", RANKS)
def test_ranks_cover_each_byte_once_and_nothing_else(ranks):
    for pattern in small_variants(ranks):
        written = np.zeros(pattern.extent_bytes, int)
        by_plan = np.full(pattern.extent_bytes, -1)
        calls = set()
        for rank in range(pattern.ranks):
            plan = pattern.write_plan(rank)
            calls.add(len(plan.calls))
            for call in plan.calls:
                every = expand(*plan.file_pieces(call))
                assert every.size == call.memory.size_bytes
                written[every] += 1
                by_plan[every] = rank
        assert len(calls) == 1, f"{pattern.key}: ranks with different numbers of collective calls"
        mask = pattern.mask(0, pattern.extent_bytes)
        expected = np.ones(written.size, bool) if mask is None else mask
        assert (written == expected).all(), pattern.key
        naive = owners(pattern)
        if naive is not None:
            assert (by_plan == naive).all(), pattern.key
        assert pattern.written_end_bytes == np.flatnonzero(written)[-1] + 1


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_mask_of_a_range_is_a_part_of_the_whole(ranks):
    for pattern in small_variants(ranks):
        whole = pattern.mask(0, pattern.extent_bytes)
        if whole is None:
            continue
        for begin, end in ((0, 1), (1, 2), (13, 4001), (pattern.extent_bytes - 5, pattern.extent_bytes)):
            assert (pattern.mask(begin, end) == whole[begin:end]).all(), (pattern.key, begin, end)


def test_random_has_gaps_and_every_alignment():
    (pattern,) = kernels.create_patterns(("random",), Sizes(file_bytes=1 << 20), 4)
    assert 0.2 < pattern.mask(0, 1 << 20).mean() < 0.6
    offsets, _ = pattern.write_plan(2).file.pieces()
    assert set(offsets % 8) == set(range(8))
    (again,) = kernels.create_patterns(("random",), Sizes(file_bytes=1 << 20), 4)
    (other,) = kernels.create_patterns(("random",), Sizes(file_bytes=1 << 20, seed=2), 4)
    assert (again.write_plan(0).file.pieces()[0] == pattern.write_plan(0).file.pieces()[0]).all()
    assert other.write_plan(0).file.pieces()[0][:5].tolist() != pattern.write_plan(0).file.pieces()[0][:5].tolist()


@pytest.mark.parametrize("ranks", [1, 2, 4, 6])
def test_tiles_read_their_ghost_cells_from_the_neighbours(ranks):
    (pattern,) = kernels.create_patterns(("tiles2d",), SMALL, ranks)
    rows, columns = balanced_grid(ranks, 2)
    g, (height, width) = pattern.ghost, pattern.tile
    pitch = columns * width + 2 * g
    for rank in range(ranks):
        y0, x0 = rank // columns * height, rank % columns * width
        expected = [
            ((y + g) * pitch + x + g) * 8 + b
            for y in range(max(0, y0 - g), min(rows * height, y0 + height + g))
            for x in range(max(0, x0 - g), min(columns * width, x0 + width + g))
            for b in range(8)
        ]
        plan = pattern.read_plan(rank)
        assert expand(*plan.file_pieces(plan.calls[0])).tolist() == expected


@pytest.mark.parametrize("ranks", [4, 7, *slow(1, 2, 3, 5, 6, 8, 9)])
def test_memory_holds_the_byte_of_its_file_offset_or_poison(ranks):
    for pattern in small_variants(ranks):
        content = Content(pattern, 3)
        salt, poison = content.salt(0), POISON ^ content.salt(0)
        for rank, phase, interface in itertools.product({0, pattern.ranks - 1}, ("write", "read"), ("mpiio", "hdf5")):
            plan = pattern.write_plan(rank) if phase == "write" else pattern.read_plan(rank)
            steps = [step for step in pattern.steps(phase, rank, interface) if isinstance(step, Access)]
            memories = [content.memory(step) for step in steps]
            assert sum((memory != poison).sum() for memory in memories) == plan.data_bytes
            extents = [call.memory.extent_bytes for call in plan.calls]
            assert sum(m.size for m in memories) == (sum(extents) if interface == "mpiio" else plan.data_bytes)
            for step, memory in zip(steps, memories, strict=True):
                draw = np.random.default_rng(rank).integers(0, max(memory.size, 1), min(memory.size, 20))
                for index in draw:
                    offset = content.position(step, int(index))
                    assert memory[index] == (poison if offset is None else byte_at(offset) ^ salt), pattern.key


@pytest.mark.parametrize("ranks", RANKS)
def test_a_pattern_is_a_program_of_one_array(ranks):
    """One open, the calls of the plan, one close, the same number on each rank, in every interface that it has."""
    for pattern in small_variants(ranks):
        (layout,) = pattern.files()
        (array,) = layout.variables
        assert (array.size_bytes, layout.end_bytes) == (pattern.extent_bytes, pattern.written_end_bytes)
        assert pattern.active == pattern.ranks
        assert pattern.versions("write", "mpiio") == {(0, array.name): 0}
        assert pattern.versions("read", "mpiio") == {}
        for phase, interface in itertools.product(pattern.phases(), pattern.interfaces):
            assert phase.parts
            counts = set()
            for rank in range(pattern.ranks):
                first, *accesses, last = pattern.steps(phase.name, rank, interface)
                assert first == Open(file=0, mode=phase.operation)
                assert last == Close(file=0)
                assert all(step.collective and step.write == (phase.name == "write") for step in accesses)
                counts.add(len(accesses))
                for step in accesses:
                    assert step.data_bytes(array) == step.call.memory.size_bytes
                    if interface != "mpiio":
                        assert step.elements * array.item_bytes == step.data_bytes(array)
                        assert step.memory_bytes(array) == step.data_bytes(array)
            assert len(counts) == 1, pattern.key
        plans = [pattern.write_plan(rank) for rank in range(pattern.ranks)]
        assert pattern.data_bytes("write", "mpiio") == sum(plan.data_bytes for plan in plans)


@pytest.mark.parametrize("ranks", RANKS)
def test_dataset_parts_are_the_same_bytes_in_the_same_order(ranks):
    for pattern in small_variants(ranks):
        if pattern.array_shape is None:
            continue
        assert math.prod(pattern.array_shape) * 8 == pattern.extent_bytes
        for rank in range(pattern.ranks):
            plan = pattern.write_plan(rank)
            for call, slabs in zip(plan.calls, pattern.array_slabs(rank), strict=True):
                of_slabs = [
                    reference_block(Block(element=DOUBLE, sizes=pattern.array_shape, subsizes=count, starts=start))
                    for start, count in slabs
                ]
                in_dataset = np.concatenate([*of_slabs, np.zeros(0, int)])
                assert (in_dataset == expand(*plan.file_pieces(call))).all(), pattern.key
                # HDF5 transfers a union of slabs in row-major order, whatever the order in which they were selected.
                assert (np.diff(in_dataset) > 0).all(), pattern.key


@pytest.mark.parametrize("ranks, taking_part", [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4), (8, 4), (9, 9)])
def test_btio_takes_the_largest_square(ranks, taking_part):
    (pattern,) = BTIO.create(SMALL, ranks)
    assert pattern.ranks == taking_part
    assert (pattern.note != "") == (ranks != taking_part)


def test_zero_size_ranks_take_part_with_nothing():
    (pattern,) = kernels.create_patterns(("block3d",), Sizes(file_bytes=5**3 * 8), 4 * 4 * 4)
    empty = [rank for rank in range(64) if pattern.write_plan(rank).data_bytes == 0]
    assert empty, "5 elements over 4 processes in blocks of 2 leave the last one nothing"
    assert all(len(pattern.write_plan(rank).calls) == 1 for rank in empty)


@pytest.mark.parametrize("name", list(kernels.PATTERNS))
def test_too_small_a_file_is_an_argument_error(name):
    with pytest.raises(ValueError, match=name):
        kernels.create_patterns((name,), Sizes(file_bytes=3, steps=4), 4)


@pytest.mark.parametrize("name", list(kernels.PATTERNS))
@pytest.mark.parametrize("size", [1 << 20, 10_000_019, *slow(64 << 20)])
def test_files_are_no_larger_than_asked_for_and_not_much_smaller(name, size):
    for pattern in kernels.create_patterns((name,), Sizes(file_bytes=size), 4):
        assert 0.8 * size < pattern.extent_bytes <= size
