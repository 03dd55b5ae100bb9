"""File types of views: what is told of one, against the places of its bytes; texts that are none."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from mpiio_ext.pioneer.file_types import FileType, ViewError, next_tile, parse
from mpiio_ext.pioneer.path.views import View, view_of


def places(kind: FileType) -> list[int]:
    """Return where the bytes of a type are, by the definition of its constructor."""
    numbers = kind.numbers
    if not kind.kind:
        return list(range(numbers[0][0]))
    if kind.kind == "S":
        blocks = [(length, at, part) for length, at, part in zip(*numbers[:2], kind.inner, strict=True)]
    else:
        inner = kind.inner[0]
        if kind.kind == "R":
            return places(inner)
        if kind.kind == "A":
            sizes, counts, starts, order = numbers
            return subarray(sizes, counts, starts, order[0], inner)
        blocks = {
            "C": lambda: [(numbers[0][0], 0, inner)],
            "V": lambda: [(numbers[1][0], k * numbers[2][0], inner) for k in range(numbers[0][0])],
            "B": lambda: [(numbers[0][0], at, inner) for at in numbers[1]],
            "I": lambda: [(length, at, inner) for length, at in zip(*numbers[:2], strict=True)],
        }[kind.kind]()
    return [at + k * part.extent + byte for length, at, part in blocks for k in range(length) for byte in places(part)]


def subarray(
    sizes: tuple[int, ...], counts: tuple[int, ...], starts: tuple[int, ...], order: int, inner: FileType
) -> list[int]:
    """Return the same of a subarray of two dimensions."""
    if order:
        sizes, counts, starts = sizes[::-1], counts[::-1], starts[::-1]
    elements = [
        row * sizes[1] + column
        for row in range(starts[0], starts[0] + counts[0])
        for column in range(starts[1], starts[1] + counts[1])
    ]
    return [element * inner.extent + byte for element in elements for byte in places(inner)]


@pytest.mark.parametrize(
    ("text", "extent"),
    [
        ("8", 8),
        ("C(3;4)", 12),
        ("V(3;2;20;4)", 48),
        ("V(2;1;-8;4)", 12),
        ("R(0;100;V(2;1;8;4))", 100),
        ("B(2;4,40,20;4)", 44),
        ("I(1,3,2;30,0,100;2)", 104),
        ("S(2,1;0,10;4;8)", 18),
        ("A(4,6;2,3;1,2;0;8)", 192),
        ("A(4,6;2,3;1,2;1;8)", 192),
        ("C(2;R(0;16;A(2,2;1,2;1,0;0;2)))", 32),
        ("S(1,1;4,64;C(2;2);V(2;1;6;2))", 68),
    ],
)
def test_what_is_told_of_a_type(text: str, extent: int) -> None:
    kind = parse(text)
    found = places(kind)
    assert (kind.size, kind.extent, kind.first) == (len(found), extent, min(found))
    assert bytes_of(*kind.pieces()) == found
    view = View(1000, text, kind)
    stream = [1000 + tile * kind.extent + at for tile in range(3) for at in found]
    for begin, end in ((0, 1), (0, len(stream)), (3, len(found)), (len(found) - 1, 2 * len(found) + 2)):
        assert bytes_of(*view.pieces(begin, end)) == stream[begin:end]
        assert view.end_of(end) > max(stream[begin:end])


def bytes_of(offsets: Any, lengths: Any) -> list[int]:
    return [at + byte for at, length in zip(offsets.tolist(), lengths.tolist(), strict=True) for byte in range(length)]


def test_a_darray() -> None:
    """Two dimensions, of which one is dealt in blocks of 2 to two processes, the other in halves."""
    kind = parse("D(4;1;4,8;1,2;-1,2;2,2;0;4)")
    columns, rows = [2, 3, 6, 7], [0, 1]
    found = [(row * 8 + column) * 4 + byte for row in rows for column in columns for byte in range(4)]
    assert (kind.size, kind.extent, kind.first) == (len(found), 128, min(found))
    assert bytes_of(*kind.pieces()) == found


@pytest.mark.parametrize(
    "text", ["", "C(3;4", "C(3)", "X(1;2)", "V(1;2;4)", "S(1,2;0,8;4)", "-3", "8 8", "C(a;4)", "I(1,2;0;4)", "C(3;4)4"]
)
def test_texts_that_are_no_type(text: str) -> None:
    with pytest.raises(ViewError, match="no file type"):
        parse(text)


def test_views() -> None:
    """A long type comes in parts; a plain one needs no text; where nothing is told there is no view."""
    view = view_of(json.dumps({"displacement": 100, "filetype": "V(3;1;1", "filetype1": "0;4)"}))
    assert view is not None
    assert (view.first, view.text) == (100, "V(3;1;10;4)")
    assert [view.end_of(stream) for stream in (0, 1, 12, 13)] == [0, 124, 124, 148]
    plain = view_of({"displacement": 7, "filetype_size": 4, "filetype_extent": 4})
    assert plain is not None
    assert (plain.first, plain.end_of(10)) == (7, 17)
    assert view_of({"displacement": 7, "filetype_size": 4, "filetype_extent": 8}) is None
    assert view_of({"filetype": "8"}) is None
    assert view_of("{") is None
    assert view_of({"displacement": 0, "filetype": "8("}) is None


# ---- tiles -----------------------------------------------------------------------------------------------------------


def test_texts_are_given_back() -> None:
    for text in ("8", "A(11,20,40;11,20,20;0,0,20;0;8)", "S(512,1;0,0;1;V(4;1;40;10))", "D(4;1;8,8;1,1;-1,-1;2,2;0;8)"):
        assert parse(text).text == text


def test_ranks_get_the_tiles_of_an_array_in_its_order() -> None:
    """A child that has the second of 2 x 2 tiles: the others have those behind it."""
    child = parse("S(1,1;0,512;A(8,8;4,4;0,4;0;8);A(3,40,40;3,20,20;0,0,20;0;8))")
    for rank, (row, column) in enumerate([(0, 0), (0, 20), (20, 0), (20, 20)]):
        kind = next_tile(child, None, 1, rank)
        assert kind is not None
        assert [part.text for part in kind.inner] == [
            f"A(8,8;4,4;{row // 5},{column // 5};0;8)",
            f"A(3,40,40;3,20,20;0,{row},{column};0;8)",
        ]
    assert begins_of([next_tile(child.inner[0], None, 1, rank) for rank in range(4)]) == list(range(0, 8 * 8 * 8, 8))


def begins_of(kinds: list[FileType | None]) -> list[int]:
    """Return where the pieces of file types begin, sorted."""
    return sorted(np.concatenate([kind.pieces()[0] for kind in kinds if kind is not None]).tolist())


@pytest.mark.parametrize(
    ("sizes", "starts", "other"), [("6,4", "3,0", 1), ("6,4", "0,2", 1), ("6,4", "3,2", 3), ("9,6", "3,0", 1)]
)
def test_each_tile_has_one_rank(sizes: str, starts: str, other: int) -> None:
    """Also where ranks are dealt along the columns: there are gaps between the tiles of successive ranks."""
    child = parse(f"A({sizes};3,2;{starts};0;8)")
    rows, columns = map(int, sizes.split(","))
    ranks = range(rows // 3 * (columns // 2))
    found = begins_of([next_tile(child, None, other, rank) for rank in ranks])
    assert found == list(range(0, rows * columns * 8, 8))


#: File types of NAS BT on four ranks: rank r has tiles r and 7 - r of 2 x 2 x 2, here of one element.
BT = [
    f"S(1,1;0,0;A(2,2,2;1,1,1;0,{row},{column};0;8);A(2,2,2;1,1,1;1,{1 - row},{1 - column};0;8))"
    for row in (0, 1)
    for column in (0, 1)
]


@pytest.mark.parametrize("other", [1, 2, 3])
def test_tiles_are_counted_from_those_of_the_root(other: int) -> None:
    """Two tiles a rank, of which the second ones come nearer with the rank."""
    found = [next_tile(parse(BT[other]), parse(BT[0]), other, rank) for rank in range(4)]
    assert [kind and kind.text for kind in found] == BT


def test_tiles_that_would_not_ascend() -> None:
    """MPI refuses such a file type: on one rank alone, for which all others wait."""
    root, child = (parse(f"S(1,1;0,0;A(8;1;{first};0;8);A(8;1;{second};0;8))") for first, second in ((0, 4), (2, 5)))
    assert [kind and kind.text for kind in (next_tile(child, root, 1, rank) for rank in (2, 4))] == [
        "S(1,1;0,0;A(8;1;4;0;8);A(8;1;6;0;8))",
        None,
    ]
    assert next_tile(child, root, 1, 3) is not None
    assert next_tile(parse("S(1,1;0,0;A(8;1;2;0;8);A(8;2;3;0;8))"), root, 1, 2) is None  # the second one is no tile


@pytest.mark.parametrize(
    "text",
    [
        "8",
        "C(3;V(2;1;16;8))",
        "A(8,6;3,2;2,1;0;8)",
        "A(8,6;3,2;2,1;1;8)",
        "D(4;1;8,9;1,2;-1,2;2,2;0;8)",
        "S(1,2,0;100,0,900;8;V(2;1;16;4);8)",
        "R(-8;64;I(1,2;40,8;4))",
        "V(3;2;-40;8)",
    ],
)
def test_where_a_type_ends(text: str) -> None:
    kind = parse(text)
    offsets, lengths = kind.pieces()
    assert (kind.first, kind.end) == (offsets.min(), (offsets + lengths).max())


def test_distributed_arrays_and_what_is_in_no_tiles() -> None:
    dealt = next_tile(parse("D(4;1;8,8;1,1;-1,-1;2,2;0;8)"), None, 1, 2)
    assert dealt is not None
    assert dealt.text == "D(4;2;8,8;1,1;-1,-1;2,2;0;8)"
    for text in ("V(4;1;40;10)", "A(10;4;4;0;8)", "A(12;4;5;0;8)", "A(12;4;0;0;8)", "8"):
        assert next_tile(parse(text), None, 1, 2) is None
    assert next_tile(parse("A(12;4;4;0;8)"), None, 2, 3) is None
