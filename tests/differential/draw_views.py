"""Random file views: how the ranks of a file share it. Pure Python, no MPI."""

from __future__ import annotations

import random
from collections.abc import Callable

from differential.draw_types import SPAN_BYTES, file_tree, settled, weighted
from differential.typetree import DEFAULT, Tree, model


def padded(rng: random.Random, filetype: Tree, before: int, whole: int) -> Tree:
    """Return filetype moved by ``before`` bytes in a tile of ``whole`` bytes."""
    moved: Tree = ["hindexed", [1], [before], filetype] if before or rng.random() < 0.3 else filetype
    return ["resized", 0, whole, moved]


def view_tile(rng: random.Random, ranks: int, etype: Tree) -> tuple[list[int], list[Tree]]:
    """Ranks take turns: one tile holds a piece of every rank, each with a file type of its own."""
    unit = model(etype).extent
    same = rng.random() < 0.4
    first = file_tree(rng, etype, rng.randrange(4))
    types = [first if same else file_tree(rng, etype, rng.randrange(4)) for _ in range(ranks)]
    reach = [-(-max(int(model(t).offsets.max()) + 1, model(t).extent) // unit) * unit for t in types]
    starts, at = [0] * ranks, 0
    for rank in rng.sample(range(ranks), ranks):
        starts[rank] = at
        at += reach[rank] + weighted(rng, (0, 4), (unit, 1), (rng.randrange(9) * unit, 1))
    displacement = weighted(rng, (0, 2), (rng.randrange(300), 1))
    by_type = rng.random() < 0.5
    return (
        [displacement if by_type else displacement + s for s in starts],
        [padded(rng, t, s if by_type else 0, at) for t, s in zip(types, starts, strict=True)],
    )


def view_cells(rng: random.Random, ranks: int, etype: Tree) -> tuple[list[int], list[Tree]]:
    """Every cell of the tile belongs to a random rank or to nobody: irregular lists."""
    unit = model(etype).extent
    cells = rng.randrange(ranks, max(ranks + 1, min(120, SPAN_BYTES // unit)))
    gap = rng.choice([0, 0, 0.3])
    owner = [rng.randrange(ranks) if rng.random() >= gap else -1 for _ in range(cells)]
    types: list[Tree] = []
    for rank in range(ranks):
        mine = [i for i, o in enumerate(owner) if o == rank]
        if not mine:
            mine = [cells + rank]
        if rng.random() < 0.5:
            types.append(["resized", 0, (cells + ranks) * unit, ["indexed_block", 1, mine, etype]])
        else:
            types.append(
                ["resized", 0, (cells + ranks) * unit, ["hindexed", [1] * len(mine), [i * unit for i in mine], etype]]
            )
    return [weighted(rng, (0, 2), (rng.randrange(300), 1))] * ranks, types


def view_grid(rng: random.Random, ranks: int, etype: Tree) -> tuple[list[int], list[Tree]]:
    """Block or cyclic decomposition of an array: darray, or subarrays in the first dimension."""
    displacement = [rng.choice([0, 0, 17, 512])] * ranks
    order = rng.choice("CF")
    shape = [rng.randrange(1, 9) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.5:
        cuts = sorted(rng.randrange(12 * ranks) for _ in range(ranks - 1))
        edges = [0, *cuts, 12 * ranks]
        axis = rng.randrange(len(shape))
        shape[axis] = 12 * ranks
        types = []
        for rank in range(ranks):
            low, high = edges[rank], edges[rank + 1]
            if high == low:
                return view_grid(rng, ranks, etype)
            starts, sub = [0] * len(shape), list(shape)
            starts[axis], sub[axis] = low, high - low
            types.append(["subarray", list(shape), sub, starts, order, etype])
        return displacement, types
    parts, rest = [1] * len(shape), ranks
    for prime in (2, 2, 2, 3, 5, 7):
        if rest % prime == 0:
            parts[rng.randrange(len(shape))] *= prime
            rest //= prime
    shape = [max(n, p) * rng.choice([1, 2]) for n, p in zip(shape, parts, strict=True)]
    ways = [rng.choice(["block", "cyclic"]) for _ in shape]
    arguments = [DEFAULT if way == "block" or rng.random() < 0.5 else rng.randrange(1, 3) for way in ways]
    return displacement, [["darray", ranks, r, shape, ways, arguments, parts, order, etype] for r in range(ranks)]


def view_regions(rng: random.Random, ranks: int, etype: Tree) -> tuple[list[int], list[Tree]]:
    """Every rank has a region of its own, far enough from the next one's."""
    region = rng.choice([4096, 20_000, 60_001])
    start = rng.randrange(100)
    order = rng.sample(range(ranks), ranks)
    return [start + place * region for place in order], [file_tree(rng, etype, rng.randrange(4)) for _ in range(ranks)]


def view_same(rng: random.Random, ranks: int, etype: Tree) -> tuple[list[int], list[Tree]]:
    """All ranks have one view: they meet, unless their offsets differ."""
    filetype = file_tree(rng, etype, rng.randrange(4))
    return [rng.choice([0, 0, 5, 1000])] * ranks, [filetype] * ranks


def view_free(rng: random.Random, ranks: int, etype: Tree) -> tuple[list[int], list[Tree]]:
    """Nothing is agreed: views overlap as they like."""
    return ([rng.randrange(400) for _ in range(ranks)], [file_tree(rng, etype, rng.randrange(4)) for _ in range(ranks)])


def view_backward(rng: random.Random, ranks: int, etype: Tree) -> tuple[list[int], list[Tree]]:
    """File types that have bytes twice (legal where they are only read), on some ranks."""
    displacements, types = view_free(rng, ranks, etype)
    for rank in range(ranks):
        if rng.random() < 0.7:
            unit = model(etype).extent
            at = sorted(rng.randrange(6) * unit for _ in range(5))
            types[rank] = settled(["hindexed", [1] * 5, at, etype], etype)
    return displacements, types


STRATEGIES: dict[str, tuple[Callable[[random.Random, int, Tree], tuple[list[int], list[Tree]]], float]] = {
    "tile": (view_tile, 4),
    "cells": (view_cells, 2.5),
    "grid": (view_grid, 2.5),
    "regions": (view_regions, 1.5),
    "same": (view_same, 1.5),
    "free": (view_free, 1.5),
    "backward": (view_backward, 1),
}
