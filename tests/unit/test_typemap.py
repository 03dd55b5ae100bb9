"""Typemaps of the public C API: against a reference that lists every piece, and at sizes that cannot be listed."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mpiio_ext.errors import ArgumentError
from support import typemap
from support.typemap import Typemap

GIB = 1 << 30
PATIENT = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Reference:
    """One tile as the list of its data bytes' offsets in stream order, with its bounds."""

    offsets: tuple[int, ...]
    lb: int
    ub: int

    @property
    def extent(self) -> int:
        return self.ub - self.lb

    def at(self, position: int) -> int:
        tile, rest = divmod(position, len(self.offsets))
        return tile * self.extent + self.offsets[rest]


Both = tuple[Typemap, Reference]


def placed(items: list[tuple[int, int, Reference]]) -> Reference:
    """Concatenate items of (count, displacement, child), each child tiled at its extent."""
    offsets: list[int] = []
    bounds: list[tuple[int, int]] = []
    for count, displacement, child in items:
        for tile in range(count):
            at = displacement + tile * child.extent
            offsets += [at + offset for offset in child.offsets]
            bounds.append((at + child.lb, at + child.ub))
    if not bounds:
        return Reference((), 0, 0)
    return Reference(tuple(offsets), min(lb for lb, _ in bounds), max(ub for _, ub in bounds))


def make_block(length: int) -> Both:
    return typemap.block(length), Reference(tuple(range(length)), 0, length)


def make_vector(count: int, stride: int, part: Both) -> Both:
    return typemap.vector(count, stride, part[0]), placed([(1, i * stride, part[1]) for i in range(count)])


def make_indexed(items: list[tuple[int, int]], part: Both) -> Both:
    counts, displacements = [c for c, _ in items], [d for _, d in items]
    return typemap.indexed(counts, displacements, part[0]), placed([(c, d, part[1]) for c, d in items])


def make_struct(items: list[tuple[int, int, Both]]) -> Both:
    built = typemap.struct([c for c, _, _ in items], [d for _, d, _ in items], [part for _, _, (part, _) in items])
    return built, placed([(c, d, part) for c, d, (_, part) in items])


def make_resized(lb: int, extra: int, part: Both) -> Both:
    extent = max(part[1].extent, 0) + extra
    return typemap.resized(lb, extent, part[0]), Reference(part[1].offsets, lb, lb + extent)


def make_subarray(dims: list[tuple[int, int, int]], order: str, part: Both) -> Both:
    sizes, subsizes, starts = ([d[k] for d in dims] for k in range(3))
    built = typemap.subarray(sizes, subsizes, starts, part[0], order="F" if order == "F" else "C")
    inside = [range(start, start + n) for _, n, start in dims]
    order_of = list(range(len(dims))) if order == "C" else list(reversed(range(len(dims))))
    items = []
    for index in itertools.product(*(inside[d] for d in order_of)):
        cell = 0
        for d, i in zip(order_of, index, strict=True):
            cell = cell * sizes[d] + i
        items.append((1, cell * part[1].extent, part[1]))
    return built, Reference(placed(items).offsets, 0, int(np.prod(sizes)) * part[1].extent)


def dimension() -> st.SearchStrategy[tuple[int, int, int]]:
    return st.integers(1, 5).flatmap(
        lambda n: st.integers(1, n).flatmap(lambda k: st.tuples(st.just(n), st.just(k), st.integers(0, n - k)))
    )


def extend(child: st.SearchStrategy[Both]) -> st.SearchStrategy[Both]:
    count, step = st.integers(0, 4), st.integers(-12, 24).map(lambda n: 2 * n)
    items = st.lists(st.tuples(count, step), max_size=6)
    return st.one_of(
        st.builds(make_vector, count, step, child),
        child.flatmap(lambda part: st.builds(make_vector, count, st.just(part[1].extent), st.just(part))),
        st.builds(make_indexed, items, child),
        st.builds(make_struct, st.lists(st.tuples(count, step, child), min_size=1, max_size=3)),
        st.builds(make_resized, st.integers(-8, 8), st.sampled_from([0, 0, 2, 4, 40]), child),
        st.builds(make_subarray, st.lists(dimension(), min_size=1, max_size=3), st.sampled_from("CF"), child),
    )


TREES = st.recursive(st.sampled_from([1, 2, 3, 4, 8, 0]).map(make_block), extend, max_leaves=4).filter(
    lambda both: len(both[1].offsets) <= 3000
)


@PATIENT
@given(TREES)
def test_summary(both: Both) -> None:
    a, r = both
    ordered = all(x < y for x, y in itertools.pairwise(r.offsets))
    span = max(r.offsets) + 1 - r.offsets[0] if r.offsets else 0
    assert (a.size_bytes, a.lb_bytes, a.extent_bytes) == (len(r.offsets), r.lb, r.extent)
    assert a.monotonic == (not r.offsets or (ordered and r.extent >= span))
    if r.offsets:
        assert (a.true_lb_bytes, a.true_ub_bytes) == (min(r.offsets), max(r.offsets) + 1)
    if a.contiguous:
        assert [r.at(k) for k in range(2 * a.size_bytes)] == list(range(r.at(0), r.at(0) + 2 * a.size_bytes))


@PATIENT
@given(TREES, st.data())
def test_pieces_of_any_range(both: Both, data: st.DataObject) -> None:
    a, r = both
    assume(a.size_bytes > 0)
    lo = data.draw(st.integers(0, 2 * a.size_bytes))
    hi = data.draw(st.integers(lo, lo + 2 * a.size_bytes))
    offsets, lengths = a.pieces(lo, hi)
    listed = [o + k for o, n in zip(offsets.tolist(), lengths.tolist(), strict=True) for k in range(n)]
    assert listed == [r.at(k) for k in range(lo, hi)]
    assert a.run_count(lo, hi) <= len(offsets)
    whole, whole_lengths = a.pieces()
    assert len(whole) <= a.piece_count or not a.monotonic
    for values in (whole, whole_lengths):
        assert not np.any(values % a.granule_bytes)
    assert a.extent_bytes % a.granule_bytes == 0


@PATIENT
@given(TREES, st.data())
def test_seeking_both_ways(both: Both, data: st.DataObject) -> None:
    a, r = both
    assume(a.size_bytes > 0)
    position = data.draw(st.integers(0, 4 * a.size_bytes))
    assert a.offset(position) == r.at(position)
    if a.monotonic:
        offset = data.draw(st.integers(r.at(0) - 10, r.at(0) + 4 * r.extent))
        tiles = abs(offset - r.at(0)) // r.extent + 2
        assert a.position(offset) == sum(r.at(k) < offset for k in range(tiles * a.size_bytes))
    else:
        with pytest.raises(ArgumentError):
            a.position(0)


@PATIENT
@given(TREES, st.data())
def test_pack_and_unpack(both: Both, data: st.DataObject) -> None:
    a, r = both
    assume(a.size_bytes > 0)
    lo = data.draw(st.integers(0, a.size_bytes))
    hi = data.draw(st.integers(lo, lo + 2 * a.size_bytes))
    touched = [r.at(k) for k in range(lo, hi)]
    reach = [t * r.extent + o for t in (lo // a.size_bytes, max(hi - 1, lo) // a.size_bytes) for o in r.offsets]
    origin = max(0, -min(reach))
    memory = (np.arange(origin + max(reach) + 1) * 31 % 251).astype(np.uint8)
    assert a.pack(memory, lo, hi, origin=origin) == bytes(memory[[origin + t for t in touched]])
    if len(set(touched)) == len(touched):
        new = bytes((7 * k + 3) % 256 for k in range(hi - lo))
        expected = memory.copy()
        expected[[origin + t for t in touched]] = np.frombuffer(new, np.uint8)
        a.unpack(memory, new, lo, origin=origin)
        assert np.array_equal(memory, expected)


@PATIENT
@given(TREES, st.data())
def test_mark(both: Both, data: st.DataObject) -> None:
    a, r = both
    assume(a.size_bytes > 0)
    g = a.granule_bytes
    lo = data.draw(st.integers(0, a.size_bytes // g)) * g
    hi = lo + data.draw(st.integers(0, 2 * a.size_bytes // g)) * g
    touched = {r.at(k) for k in range(lo, hi)}
    assume(touched)
    start = min(touched)
    cells = np.zeros((max(touched) - start) // g + 1, np.uint8)
    a.mark(cells, lo, hi, start=start, granule_bytes=g)
    assert set(np.flatnonzero(cells).tolist()) == {(t - start) // g for t in touched}


@PATIENT
@given(TREES)
def test_blob_round_trip(both: Both) -> None:
    a, _ = both
    copy = typemap.from_blob(a.blob)
    assert copy == a and hash(copy) == hash(a) and copy.blob == a.blob
    assert pickle.loads(pickle.dumps(a)) == a


@PATIENT
@given(TREES, st.data())
def test_corrupt_blobs_are_refused_or_mean_something(both: Both, data: st.DataObject) -> None:
    blob = bytearray(both[0].blob)
    at = data.draw(st.integers(0, len(blob) - 1))
    blob[at] ^= data.draw(st.integers(1, 255))
    try:
        other = typemap.from_blob(bytes(blob))
    except ArgumentError:
        return
    assert other.blob == bytes(blob)


@PATIENT
@given(TREES, TREES, st.integers(0, 40), st.integers(0, 40))
def test_disjoint_is_never_wrong(one: Both, two: Both, origin_a: int, origin_b: int) -> None:
    (a, ra), (b, rb) = one, two
    assume(a.monotonic and b.monotonic and a.size_bytes and b.size_bytes)
    if typemap.disjoint(a, b, origins=(origin_a, origin_b)):
        reach = 4 * max(ra.extent, rb.extent) + 400
        tiles_a, tiles_b = reach // ra.extent + 1, reach // rb.extent + 1
        bytes_a = {origin_a + t * ra.extent + o for t in range(tiles_a) for o in ra.offsets}
        assert not any(origin_b + t * rb.extent + o in bytes_a for t in range(tiles_b) for o in rb.offsets)


# ---- disjoint: what parallel programs do is proven --------------------------------------------------------------


def all_pairs_disjoint(views: list[tuple[Typemap, int]]) -> bool:
    return all(typemap.disjoint(a, b, origins=(at, bt)) for (a, at), (b, bt) in itertools.permutations(views, 2))


@pytest.mark.parametrize("header", [0, 3, 100, 4096])
@pytest.mark.parametrize("block_bytes", [1, 8, 100])
def test_interleaved_blocks_are_disjoint(header: int, block_bytes: int) -> None:
    ranks = 7
    tile = typemap.resized(0, ranks * block_bytes, typemap.block(block_bytes))
    assert all_pairs_disjoint([(tile, header + rank * block_bytes) for rank in range(ranks)])
    overlapping = typemap.resized(0, ranks * block_bytes, typemap.block(block_bytes + 1))
    assert not typemap.disjoint(overlapping, overlapping, origins=(header, header + block_bytes))


def test_vectors_without_padding_are_disjoint_within_one_tile_only() -> None:
    ranks, blocks, length = 4, 1_000_000, 8
    vector = typemap.vector(blocks, ranks * length, typemap.block(length))
    part = (0, vector.size_bytes)
    for r, s in itertools.permutations(range(ranks), 2):
        origins = (r * length, s * length)
        assert typemap.disjoint(vector, vector, origins=origins, ranges=(part, part))
        assert not typemap.disjoint(vector, vector, origins=origins)  # tile 1 of one rank meets tile 0 of another
    assert not typemap.disjoint(vector, vector, origins=(0, length), ranges=(part, (0, vector.size_bytes + 1)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("sizes", [(100, 90), (12, 17, 23), (5, 1, 64, 9)])
def test_block_decompositions_are_disjoint(sizes: tuple[int, ...], order: str) -> None:
    element = typemap.block(8)
    cuts = [sorted({0, n // 3, n // 2 + 1, n}) for n in sizes]  # uneven
    boxes = itertools.product(*(list(itertools.pairwise(c)) for c in cuts))
    views = []
    for box in boxes:
        starts, ends = zip(*box, strict=True)
        subsizes = [end - start for start, end in zip(starts, ends, strict=True)]
        view = typemap.subarray(sizes, subsizes, starts, element, order="F" if order == "F" else "C")
        views.append((view, 512))
    assert len(views) > 3 and all_pairs_disjoint(views)
    assert not typemap.disjoint(views[0][0], views[0][0])


def test_ghost_cells_are_not_disjoint() -> None:
    element = typemap.block(4)
    left = typemap.subarray((64, 64), (64, 33), (0, 0), element)
    right = typemap.subarray((64, 64), (64, 32), (0, 32), element)
    assert not typemap.disjoint(left, right)


@pytest.mark.parametrize("items", [96, 100, 1000])  # whole and partial cycles
def test_cyclic_decompositions_are_disjoint(items: int) -> None:
    ranks, block = 4, 3
    views = []
    for rank in range(ranks):
        starts = range(rank * block, items, ranks * block)
        counts = [min(block, items - start) for start in starts]
        whole = typemap.indexed(counts, [8 * start for start in starts], typemap.block(8))
        views.append((typemap.resized(0, 8 * items, whole), 64))
    assert all_pairs_disjoint(views)


def test_contiguous_views_are_not_disjoint() -> None:
    byte = typemap.block(1)
    assert not typemap.disjoint(byte, byte, origins=(0, 1000))
    assert typemap.disjoint(byte, byte, origins=(0, 1000), ranges=((0, 1000), None))
    assert not typemap.disjoint(byte, byte, origins=(0, 1000), ranges=((0, 1001), None))


# ---- shapes and sizes --------------------------------------------------------------------------------------------


def test_equal_bytes_take_one_form() -> None:
    ints = typemap.block(4)
    spread = typemap.resized(0, 16, ints)
    assert typemap.vector(6, 4, ints) == typemap.block(24)
    assert typemap.vector(2, 48, typemap.vector(3, 16, ints)).run_count() == 1
    same = typemap.vector(5, 16, ints)
    assert typemap.indexed([1] * 5, range(0, 80, 16), ints) == same
    assert typemap.struct([1] * 5, range(0, 80, 16), [ints] * 5) == same
    assert typemap.subarray((5, 4), (5, 1), (0, 0), ints) == typemap.resized(0, 80, same)
    assert typemap.indexed([5], [0], spread) == typemap.resized(0, 80, same)
    assert typemap.struct([1, 1], [0, 4], [ints, typemap.block(8)]) == typemap.block(12)


def test_runs_cross_tile_boundaries() -> None:
    interleaved = typemap.resized(0, 32, typemap.block(8))
    assert interleaved.run_count(0, 8_000_000) == 1
    columns = typemap.subarray((1000, 16), (1000, 4), (0, 4), typemap.block(8))  # all rows: tiles continue
    assert columns.run_count(0, 100 * columns.size_bytes) == 1
    assert typemap.block(1).run_count(0, 1 << 50) == 1
    assert typemap.vector(1000, 4, typemap.block(4)).run_count(5, 1 << 50) == 1


def test_huge_regular_accesses_are_small_and_quick() -> None:
    box = typemap.subarray((1 << 12, 1 << 14, 1 << 14), (1 << 11, 1 << 13, 1 << 13), (7, 11, 13), typemap.block(8))
    assert box.size_bytes == 8 << 37 and box.extent_bytes == 8 << 40
    assert box.piece_count == 1 << 24 and len(box.blob) < 500
    position = box.size_bytes - 5
    assert box.position(box.offset(position)) == position
    offsets, lengths = box.pieces(position, position + 8)
    assert lengths.tolist() == [5, 3]
    assert offsets[1] == box.extent_bytes + box.true_lb_bytes
    assert offsets[0] == box.true_ub_bytes - 5


def test_strides_and_extents_beyond_32_bits() -> None:
    a = typemap.resized(-GIB, 100 * GIB, typemap.vector(5, -3 * GIB, typemap.block(2 * GIB)))
    assert a.size_bytes == 10 * GIB and a.true_lb_bytes == -12 * GIB and not a.monotonic
    assert a.offset(4 * GIB + 1) == -6 * GIB + 1
    assert a.offset(10 * GIB) == 100 * GIB


def test_a_list_costs_at_most_24_bytes_a_piece() -> None:
    n = 200_000
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 60, n)
    starts = np.cumsum(lengths + rng.integers(1, 50, n)) - lengths
    a = typemap.indexed(lengths.tolist(), starts.tolist(), typemap.block(1))
    assert a.monotonic and a.piece_count == n and len(a.blob) <= 24 * n
    before = np.concatenate([[0], np.cumsum(lengths)])
    for i in (0, 1, n // 2, n - 1):
        assert a.offset(int(before[i])) == starts[i]
        assert a.position(int(starts[i]) + 1) == before[i] + 1
    offsets, found = a.pieces()
    assert np.array_equal(offsets, starts) and np.array_equal(found, lengths)
    equal = typemap.indexed([64] * n, (starts * 64).tolist(), typemap.block(1))
    assert len(equal.blob) <= 8 * n + 1000


def test_deep_nesting_is_listed_or_refused() -> None:
    a = typemap.block(1)
    for level in range(40):  # two copies at a distance that never lets levels merge
        a = typemap.vector(2, 3 * 2**level + level, a) if level < 18 else typemap.resized(0, a.true_ub_bytes, a)
    assert a.size_bytes == 2**18 and a.depth <= 24
    small, large = typemap.block(1), typemap.block(1)
    with pytest.raises(typemap.UnsupportedDatatypeError):
        for level in range(40):
            large = typemap.vector(2, 7 * 2**level + 3 * level + 1, large)
    for level in range(30):  # deeper than the limit with few pieces
        part = typemap.struct([1, 1], [0, 10 + 9 * level], [small, typemap.block(1)])
        small = typemap.vector(1, 0, typemap.resized(0, 17 * (level + 2), part))
    assert small.size_bytes == 31


@pytest.mark.parametrize(
    "build",
    [
        lambda: typemap.block(-1),
        lambda: typemap.vector(-1, 8, typemap.block(8)),
        lambda: typemap.vector(2**40, 2**40, typemap.block(1)),
        lambda: typemap.vector(2**62, 1, typemap.block(8)),
        lambda: typemap.block(2**63),
        lambda: typemap.indexed([1, -1], [0, 8], typemap.block(1)),
        lambda: typemap.indexed([1, 1], [0], typemap.block(1)),
        lambda: typemap.indexed([1, 1], [-(2**62), 2**62], typemap.block(1)),
        lambda: typemap.resized(2**61, 2**62, typemap.block(1)),
        lambda: typemap.subarray((4,), (3,), (2,), typemap.block(1)),
        lambda: typemap.subarray((), (), (), typemap.block(1)),
        lambda: typemap.from_blob(b""),
        lambda: typemap.from_blob(bytes(200)),
        lambda: typemap.block(8).pieces(-1, 4),
        lambda: typemap.block(8).pieces(5, 4),
        lambda: typemap.block(0).offset(0),
        lambda: typemap.block(8).pack(np.zeros(7, np.uint8)),
        lambda: typemap.block(8).pack(np.zeros(16, np.uint8), origin=9),
    ],
)
def test_bad_arguments(build: object) -> None:
    assert callable(build)
    with pytest.raises(ArgumentError):
        build()


def test_no_data() -> None:
    none = typemap.resized(0, 8, typemap.block(0))
    assert none.size_bytes == 0 and none.extent_bytes == 8 and none.granule_bytes == 0
    assert [array.size for array in none.pieces()] == [0, 0]
    assert typemap.disjoint(none, typemap.block(1))
    assert typemap.vector(4, 8, none).extent_bytes == 32
    assert typemap.from_blob(none.blob) == none
