"""From a seed to a case: a legal random program of MPI-IO calls for 1 to 8 ranks. Pure Python, no MPI.

The same seed gives the same case on every machine. Calls that would make the program illegal (for example because two
ranks' views collide) are dropped, so that every case that is run means something.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from differential import simulate
from differential.simulate import BYTE, Case, Op
from differential.typetree import DEFAULT, PAIRS, PLAIN, Model, Tree, model

METHODS = ("auto", "even", "aligned", "static_cyclic", "group_cyclic", "transpose")
RANKS_WEIGHTS = ((1, 6), (2, 20), (3, 18), (4, 24), (5, 10), (6, 8), (7, 6), (8, 8))
SMALL_BYTES = 1500  # data bytes of one type tree at most
SPAN_BYTES = 24_000  # reach of one type tree at most


def weighted(rng: random.Random, *choices: tuple[Any, float]) -> Any:
    """Draw one of (value, weight) pairs."""
    return rng.choices([value for value, _ in choices], [weight for _, weight in choices])[0]


def ranks_of(seed: int) -> int:
    """Return the number of ranks of a seed's case."""
    return int(weighted(random.Random(f"ranks {seed}"), *RANKS_WEIGHTS))


# ---- types -----------------------------------------------------------------------------------------------------------


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


# ---- views -----------------------------------------------------------------------------------------------------------


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
    return (
        [rng.randrange(400) for _ in range(ranks)],
        [file_tree(rng, etype, rng.randrange(4)) for _ in range(ranks)],
    )


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
    "backward": (view_backward, 1.5),
}


# ---- calls -----------------------------------------------------------------------------------------------------------


def draw_memory(rng: random.Random, unit: int, limit: int, *, distinct: bool) -> tuple[Tree, int]:
    """Draw a memory type and a count whose bytes are a multiple of ``unit`` and at most ``limit``."""
    roll = rng.random()
    for _ in range(8):
        tree = memory_tree(rng, 0 if roll < 0.2 else rng.randrange(1, 4))
        kind = model(tree)
        step = unit // math.gcd(unit, kind.size)
        most = limit // (kind.size * step)
        if most < 1:
            continue
        count = step * (1 if most == 1 else max(1, int(math.exp(rng.uniform(0, math.log(most + 0.999))))))
        if rng.random() < 0.3 and step == 1:
            count = 1
        if count * kind.extent <= 200_000 and (not distinct or kind.is_distinct(count)):
            return tree, count
    return list(BYTE), unit * rng.randrange(1, max(2, limit // unit))


def access_op(rng: random.Random, ranks: int, kind: str, fill: str, view: Op | None, big: bool) -> Op:
    """Draw one data-access call."""
    how = weighted(
        rng,
        ("at_all", 8),
        ("all", 8),
        ("at_all_split", 1.5),
        ("all_split", 1.5),
        ("at", 0.7),
        ("individual", 0.7),
        ("iat_all", 0.3),
        ("iall", 0.3),
        ("iat", 0.2),
        ("iindividual", 0.2),
    )
    etype = model(view["etype"]) if view else model(BYTE)
    op: Op = {"op": kind, "how": how, "mem": [], "count": [], "bottom": []}
    quiet = rng.choice([0.0, 0.1, 0.3, 0.3])
    for rank in range(ranks):
        limit = 300_000 if big else int(math.exp(rng.uniform(1, math.log(6000))))
        if view:
            filetype = model(view["ftype"][rank])
            tiles = max(1, (1_000_000 if big else 120_000) // max(1, filetype.extent))
            limit = min(limit, tiles * filetype.size)
        tree, count = draw_memory(rng, etype.size, max(limit, etype.size), distinct=kind == "read" or fill == "offset")
        # what goes to the MPI library anyway gets plain memory: its handling of types is not what is tested here
        if how not in simulate.COLLECTIVE or (big and rng.random() < 0.7):
            tree, count = list(BYTE), max(1, limit // etype.size) * etype.size
        if rng.random() < quiet:  # OMPIO divides by the size of an empty type: not where the call goes to it
            empty = 1 if how in simulate.COLLECTIVE else 0
            tree, count = weighted(rng, ((tree, 0), 3), ((["contiguous", 0, ["named", "INT"]], 3), empty))
        op["mem"].append(tree)
        op["count"].append(count)
        op["bottom"].append(rng.random() < 0.12)
    if "at" in how.split("_")[0]:
        op["at"] = offsets_of(rng, op, etype, view)
    return op


def offsets_of(rng: random.Random, op: Op, etype: Model, view: Op | None) -> list[int]:
    """Draw explicit offsets (etypes): apart by rank, or independent ones."""
    sizes = [model(t).size * n // etype.size for t, n in zip(op["mem"], op["count"], strict=True)]
    style = weighted(rng, ("zero", 2), ("small", 2), ("apart", 3 if view is None or len(set(view["disp"])) == 1 else 1))
    if style == "zero":
        return [0] * len(sizes)
    if style == "small":
        return [rng.randrange(60) for _ in sizes]
    at, result = rng.randrange(40), [0] * len(sizes)
    for rank in rng.sample(range(len(sizes)), len(sizes)):
        result[rank] = at
        at += sizes[rank] + rng.choice([0, 0, 0, 3])
    return result


def draw_ops(rng: random.Random, case: Case, strategies: list[str]) -> list[Op]:
    """Draw the calls of a case."""
    ranks, ops = case["ranks"], []
    view: Op | None = None
    for _ in range(weighted(rng, (1, 6), (2, 2), (3, 1))):
        if rng.random() < 0.9:
            names = [
                n for n in STRATEGIES if case["readonly"] or n != "backward"
            ]  # erroneous in a file open for writing
            name = weighted(rng, *((n, STRATEGIES[n][1]) for n in names))
            etype = etype_tree(rng)
            displacements, types = STRATEGIES[name][0](rng, ranks, etype)
            view = {"op": "view", "disp": displacements, "etype": etype, "ftype": types}
            ops.append(view)
            strategies.append(name)
        for _ in range(weighted(rng, (1, 3), (2, 4), (3, 2), (5, 1))):
            if rng.random() < 0.1:
                ops.append(
                    {
                        "op": "seek",
                        "offset": [rng.randrange(50) for _ in range(ranks)],
                        "whence": rng.choice(["set", "cur"]),
                    }
                )
            kind = "read" if case["readonly"] else rng.choice(["write", "write", "read"])
            ops.append(access_op(rng, ranks, kind, case["fill"], view, case["big"]))
        if rng.random() < 0.06 and not case["readonly"]:
            size = rng.randrange(20_000)
            ops += [
                {"op": "sync"},
                weighted(rng, ({"op": "size", "bytes": size}, 3), ({"op": "preallocate", "bytes": size}, 1)),
            ]
            ops.append({"op": "sync"})
    return ops


def legal_ops(case: Case) -> None:
    """Drop what is illegal and put a sync where the standard asks for one, in place."""
    simulation, kept = simulate.Simulation(case), []
    for op in case["ops"]:
        attempts: tuple[list[Op], ...] = ([op], [{"op": "sync"}, op])
        for attempt in attempts:
            trial = simulation.copy()
            try:
                for step in attempt:
                    trial.step(0, step)
            except simulate.Illegal:
                continue
            kept += attempt
            simulation = trial
            break
    case["ops"] = kept


def draw_hints(rng: random.Random, ranks: int, span: int, *, patient: bool) -> dict[str, str]:
    """Draw the hints of a case; buffer and stripe are never so small that a case takes thousands of rounds.

    ``patient``: the case has nonblocking collectives, for which ROMIO needs seconds with tiny buffers.
    """
    least = max(1, span // 400, 512 if patient else 1)
    hints = {"mpiox_partition": rng.choice(METHODS)}

    def maybe(name: str, chance: float, *values: object) -> None:
        if rng.random() < chance:
            hints[name] = str(rng.choice(values))

    sizes = [size for size in (1, 7, 16, 64, 100, 512, 1000, 4096, 4099, 65536) if size >= least] or [65536]
    maybe("mpiox_stripe_size_io", 0.3, "true")
    maybe("mpiox_exchange", 0.7, "two_phase", "two_phase", "two_phase", "direct", "auto")
    maybe("mpiox_io_rank", 0.4, "any", "owner")
    maybe("mpiox_buffers", 0.3, 2, 3, 4)
    nodes = rng.choice([1, 1, 2, 3, 4])
    if nodes > 1 and ranks > 1:
        hints["mpiox_ranks_per_node"] = str(max(1, -(-ranks // nodes)))
    maybe("mpiox_coverage_map", 0.3, "true")
    maybe("cb_buffer_size", 0.8, *sizes)
    maybe("cb_nodes", 0.7, *range(1, ranks + 3))
    maybe("cb_config_list", 0.2, "*:*", "*:1", "*:2")
    maybe("striping_unit", 0.7, *[size for size in sizes if size >= 7])
    maybe("striping_factor", 0.6, 1, 2, 3, 4, 7)
    maybe("romio_cb_write", 0.1, "enable", "disable", "automatic")
    maybe("romio_cb_read", 0.1, "enable", "disable", "automatic")
    return hints


def data_bytes(case: Case) -> int:
    """Return the largest file region that one call of the case may touch, roughly: the bytes of the final file."""
    simulation = simulate.Simulation(case)
    simulation.run()
    return len(simulation.data)


def generate(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(f"case {seed}")
    ranks = ranks_of(seed)
    case: Case = {
        "seed": seed,
        "ranks": ranks,
        "comm": weighted(rng, ("world", 6), ("reversed", 1), ("rotated", 1)),
        "fill": weighted(rng, ("offset", 1), ("random", 1)),
        "lax": rng.random() < 0.3,
        "big": rng.random() < 0.03,
        "initial": weighted(rng, (-1, 2), (0, 0.5), (rng.randrange(1, 9000), 3), (rng.randrange(20_000, 130_000), 3)),
    }
    case["readonly"] = rng.random() < 0.12
    if case["readonly"]:
        case["initial"] = rng.randrange(1, 9000)
    for _ in range(30):
        strategies: list[str] = []
        case["ops"] = draw_ops(rng, case, strategies)
        legal_ops(case)
        if any(
            op["op"] in ("read", "write") and op["how"] in simulate.COLLECTIVE and any(op["count"])
            for op in case["ops"]
        ):
            break
    case["strategies"] = strategies
    case["hints"] = draw_hints(
        rng, ranks, data_bytes(case), patient=any(op.get("how") in simulate.NONBLOCKING for op in case["ops"])
    )
    # Consecutive writes are ordered by the library's own collectives only: OMPIO may carry out a rank's first write,
    # which another rank does for it, after its second.
    if sum(op["op"] == "write" for op in case["ops"]) > 1:
        for name in ("romio_cb_write", "romio_cb_read"):
            if case["hints"].get(name) == "disable":
                case["hints"][name] = "automatic"
    return case
