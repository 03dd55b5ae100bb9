"""Random datatype trees for memory and for files. Pure Python, no MPI."""

from __future__ import annotations

import math
import random
from typing import Any

from differential.state import BYTE
from differential.typetree import DEFAULT, PAIRS, PLAIN, Tree, model

SMALL_BYTES = 1500  # data bytes of one type tree at most
SPAN_BYTES = 24_000  # reach of one type tree at most


def weighted(rng: random.Random, *choices: tuple[Any, float]) -> Any:
    """Draw one of (value, weight) pairs."""
    return rng.choices([value for value, _ in choices], [weight for _, weight in choices])[0]


def leaf(rng: random.Random) -> Tree:
    """Draw a predefined type."""
    kind = weighted(rng, ("byte", 4), ("plain", 8), ("pair", 0.7), ("f90", 0.5))
    if kind == "byte":
        return list(BYTE)
    if kind == "pair":
        return ["named", rng.choice(PAIRS)]
    if kind == "f90":
        return rng.choice([["f90_real", 6, 30], ["f90_real", 15, 300], ["f90_integer", 9], ["f90_integer", 4]])
    return ["named", rng.choice(PLAIN)]


def settled(tree: Tree, fallback: Tree) -> Tree:
    """Wrap an explicit resize around a tree whose bounds MPI libraries compute differently; never an empty type."""
    kind = model(tree)
    if not kind.size:
        return fallback
    if not kind.ambiguous:
        return tree
    return ["resized", int(kind.offsets.min()), max(1, int(kind.offsets.max()) + 1 - int(kind.offsets.min())), tree]


def fits(tree: Tree) -> bool:
    """Tell whether a tree is small enough to be a building block."""
    kind = model(tree)
    if not 0 < kind.size <= SMALL_BYTES:
        return False
    low, high = int(kind.offsets.min()), int(kind.offsets.max())
    return max(abs(low), abs(high), abs(kind.lb), abs(kind.ub)) <= SPAN_BYTES and kind.extent > 0


def ascending(rng: random.Random, lengths: list[int], unit: int, start: int) -> list[int]:
    """Return displacements of blocks of lengths[i] * unit, ascending, with random gaps that are multiples of unit."""
    at, result = start, []
    for length in lengths:
        result.append(at)
        at += (length + weighted(rng, (0, 3), (1, 3), (rng.randrange(5), 2))) * unit
    return result


def block_lengths(rng: random.Random) -> list[int]:
    """Draw block lengths, some of them zero, not all."""
    lengths = [weighted(rng, (0, 1), (1, 4), (rng.randrange(1, 6), 4)) for _ in range(rng.randrange(1, 7))]
    return lengths if any(lengths) else [1]


def grid_type(rng: random.Random, child: Tree) -> Tree:
    """Draw a subarray or darray."""
    dimensions = rng.randrange(1, 4)
    order = rng.choice("CF")
    sizes = [rng.randrange(1, 7) for _ in range(dimensions)]
    if rng.random() < 0.5:
        subsizes = [rng.randrange(1, n + 1) for n in sizes]
        starts = [rng.randrange(n - m + 1) for n, m in zip(sizes, subsizes, strict=True)]
        return ["subarray", sizes, subsizes, starts, order, child]
    parts = [rng.choice([1, 1, 2, 3]) for _ in sizes]
    ways, arguments = [], []
    for n, p in zip(sizes, parts, strict=True):
        way = rng.choice(["block", "cyclic"]) if p > 1 else rng.choice(["block", "cyclic", "none"])
        small = -(-n // p) if way == "block" else 1
        ways.append(way)
        arguments.append(DEFAULT if way == "none" or rng.random() < 0.5 else small + rng.randrange(2))
    total = math.prod(parts)
    return ["darray", total, rng.randrange(total), sizes, ways, arguments, parts, order, child]


def file_tree(rng: random.Random, etype: Tree, depth: int) -> Tree:
    """Draw a file type of etypes that goes forward only and has no byte twice."""
    if depth == 0:
        return etype
    for _ in range(20):
        tree = file_node(rng, etype, depth)
        if tree[0] != "resized":
            tree = settled(tree, etype)
        kind = model(tree)
        if fits(tree) and not kind.ambiguous and kind.is_file_legal(write=True):
            return tree
    return etype


def file_node(rng: random.Random, etype: Tree, depth: int) -> Tree:
    """Draw one constructor of a file type; whether it is legal is seen later."""
    child = file_tree(rng, etype, rng.randrange(depth))
    step, unit = model(child).extent, model(etype).extent
    kind = weighted(
        rng,
        ("contiguous", 1),
        ("vector", 2),
        ("hvector", 2),
        ("indexed", 1.5),
        ("hindexed", 1.5),
        ("indexed_block", 1),
        ("hindexed_block", 1),
        ("struct", 1.5),
        ("grid", 2.5),
        ("resized", 2),
        ("dup", 0.3),
    )
    lengths = block_lengths(rng)
    if kind == "contiguous":
        return [kind, rng.randrange(1, 9), child]
    if kind == "vector":
        length = rng.randrange(1, 5)
        return [kind, rng.randrange(1, 9), length, length + rng.randrange(4), child]
    if kind == "hvector":
        length = rng.randrange(1, 5)
        return [kind, rng.randrange(1, 9), length, length * step + rng.randrange(4) * unit, child]
    if kind == "indexed":
        return [kind, lengths, ascending(rng, lengths, 1, rng.randrange(3)), child]
    if kind == "hindexed":
        starts = ascending(rng, [n * step // unit for n in lengths], unit, rng.randrange(3) * unit)
        return [kind, lengths, starts, child]
    if kind == "indexed_block":
        return [kind, lengths[-1] or 1, ascending(rng, [lengths[-1] or 1] * len(lengths), 1, rng.randrange(3)), child]
    if kind == "hindexed_block":
        blocks = [(lengths[-1] or 1) * step // unit] * len(lengths)
        return [kind, lengths[-1] or 1, ascending(rng, blocks, unit, rng.randrange(3) * unit), child]
    if kind == "struct":
        children = [file_tree(rng, etype, rng.randrange(depth)) for _ in lengths]
        reach = [
            -(-max(n * model(c).extent, int(model(c).tiled(n).max()) + 1 if n else 0) // unit)
            for n, c in zip(lengths, children, strict=True)
        ]
        return [kind, lengths, ascending(rng, reach, unit, rng.randrange(2) * unit), children]
    if kind == "grid":
        return grid_type(rng, child)
    if kind == "resized":
        return [kind, 0, -(-(int(model(child).offsets.max()) + 1) // unit) * unit + rng.randrange(5) * unit, child]
    return [kind, child]


def memory_tree(rng: random.Random, depth: int) -> Tree:
    """Draw any type: negative strides, displacements and bounds, any order, overlaps included."""
    if depth == 0:
        return leaf(rng)
    for _ in range(10):
        tree = settled(memory_node(rng, depth), BYTE)
        if fits(tree) and not model(tree).ambiguous:
            return tree
    return leaf(rng)


def memory_node(rng: random.Random, depth: int) -> Tree:
    """Draw one constructor of a memory type."""
    child = memory_tree(rng, rng.randrange(depth))
    step = model(child).extent
    kind = weighted(
        rng,
        ("contiguous", 1),
        ("vector", 2),
        ("hvector", 2),
        ("indexed", 1.5),
        ("hindexed", 1.5),
        ("indexed_block", 1),
        ("hindexed_block", 1),
        ("struct", 2),
        ("grid", 1.5),
        ("resized", 2),
        ("dup", 0.3),
    )
    lengths = block_lengths(rng)
    far = max(12, sum(lengths) * 2)
    if kind == "contiguous":
        return [kind, rng.randrange(1, 9), child]
    if kind in ("vector", "hvector"):
        length = rng.randrange(1, 5)
        stride = (length + rng.randrange(-1, 4)) * rng.choice([1, 1, -1])
        return [
            kind,
            rng.randrange(1, 9),
            length,
            stride if kind == "vector" else stride * step + rng.choice([0, 0, 1, 5]),
            child,
        ]
    unit = 1 if kind in ("indexed", "indexed_block") else max(1, step) if rng.random() < 0.7 else 1
    if rng.random() < 0.5:
        places = [rng.randrange(-far, far) * unit for _ in lengths]
    else:
        scale = 1 if kind in ("indexed", "indexed_block") else max(1, step)
        places = ascending(rng, lengths, scale, rng.randrange(-5, 5) * unit)
        rng.shuffle(places) if rng.random() < 0.2 else None
    if kind in ("indexed", "hindexed"):
        return [kind, lengths, places, child]
    if kind in ("indexed_block", "hindexed_block"):
        return [kind, rng.choice([1, 1, 2, 3]), places, child]
    if kind == "struct":
        children = [memory_tree(rng, rng.randrange(depth)) for _ in lengths]
        at, places = rng.randrange(-40, 40), []
        for n, c in zip(lengths, children, strict=True):
            places.append(at)
            at += n * model(c).extent + rng.randrange(12)
        return [kind, lengths, places, children]
    if kind == "grid":
        return grid_type(rng, child)
    if kind == "resized":
        data = model(child)
        natural = int(data.offsets.max() - data.offsets.min()) + 1
        extent = weighted(
            rng, (natural + rng.randrange(20), 4), (natural, 2), (max(1, natural // 2), 1), (1, 0.5), (8, 1)
        )
        return [kind, rng.randrange(-20, 20), extent, child]
    return [kind, child]


def etype_tree(rng: random.Random) -> Tree:
    """Draw an etype: mostly predefined, sometimes a small derived type with or without holes."""
    if rng.random() < 0.75:
        return leaf(rng)
    base = leaf(rng)
    step = model(base).extent
    tree = weighted(
        rng,
        (["contiguous", rng.randrange(2, 5), base], 3),
        (["resized", 0, step + rng.randrange(3) * step, base], 1),
        (["vector", 2, 1, 2, base], 1),
        (["struct", [1, 2], [0, 2 * step], [base, base]], 1),
    )
    return settled(tree, base)
