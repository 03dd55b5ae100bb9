"""Random data-access calls: buffers, offsets, hints. Pure Python, no MPI."""

from __future__ import annotations

import json
import math
import random

from differential.draw_types import memory_tree, weighted
from differential.state import BYTE, COLLECTIVE, HOWS, Case, Op
from differential.typetree import Model, Tree, leaves, model

METHODS = ("auto", "even", "aligned", "static_cyclic", "group_cyclic", "transpose")
#: In programs about collectives: how often each way of access.
COLLECTIVE_WEIGHTS = {
    "at_all": 8,
    "all": 8,
    "at_all_split": 1.5,
    "all_split": 1.5,
    "at": 0.7,
    "individual": 0.7,
    "iat_all": 0.3,
    "iall": 0.3,
    "iat": 0.2,
    "iindividual": 0.2,
}


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


def draw_how(rng: random.Random, only: frozenset[str] | None) -> str:
    """Draw the way of one call of a program about collectives, perhaps of some families only."""
    names = [name for name in COLLECTIVE_WEIGHTS if only is None or HOWS[name].family in only]
    return str(weighted(rng, *((name, COLLECTIVE_WEIGHTS[name]) for name in names)))


def swappable_memory(rng: random.Random, leaf: Tree, unit: int, limit: int) -> tuple[Tree, int]:
    """Draw a memory type of one kind of element, for views that convert their data."""
    n = max(1, min(limit, 600) // unit)
    tree = weighted(
        rng,
        (leaf, 2),
        (["contiguous", unit, leaf], 1),
        (["hvector", unit, 1, 2 * model(leaf).extent, leaf], 1),
        (["indexed", [unit, unit], [unit + 1, 0], leaf], 1),
    )
    return tree, rng.randrange(1, n + 1) * (unit if tree == leaf else 1)


def memory_for(rng: random.Random, kind: str, case: Case, view: Op | None, rank: int, most: int) -> tuple[Tree, int]:
    """Draw the buffer of one rank for an access through a view."""
    etype = model(view["etype"]) if view else model(BYTE)
    limit = int(math.exp(rng.uniform(1, math.log(most))))
    if view:
        filetype = model(view["ftype"][rank])
        limit = min(limit, max(1, 120_000 // max(1, filetype.extent)) * filetype.size)
    if view and view.get("rep", "native") != "native":
        leaf = json.loads(next(iter(leaves(view["etype"]))))
        return swappable_memory(rng, leaf, max(1, etype.size // model(leaf).size), limit)
    return draw_memory(rng, etype.size, max(limit, etype.size), distinct=kind != "write" or case["fill"] == "offset")


def access_op(rng: random.Random, case: Case, kind: str, view: Op | None, how: str) -> Op:
    """Draw one data-access call of a program about collectives."""
    ranks, big = case["ranks"], case["big"]
    etype = model(view["etype"]) if view else model(BYTE)
    op: Op = {"op": kind, "how": how, "mem": [], "count": [], "bottom": []}
    quiet = rng.choice([0.0, 0.1, 0.3, 0.3])
    for rank in range(ranks):
        limit = 300_000 if big else int(math.exp(rng.uniform(1, math.log(6000))))
        if view:
            filetype = model(view["ftype"][rank])
            tiles = max(1, (1_000_000 if big else 120_000) // max(1, filetype.extent))
            limit = min(limit, tiles * filetype.size)
        distinct = kind == "read" or case["fill"] == "offset"
        tree, count = draw_memory(rng, etype.size, max(limit, etype.size), distinct=distinct)
        # what goes to the MPI library anyway gets plain memory here: programs of all families do more
        if how not in COLLECTIVE or (big and rng.random() < 0.7):
            tree, count = list(BYTE), max(1, limit // etype.size) * etype.size
        if rng.random() < quiet:
            tree, count = weighted(rng, ((tree, 0), 3), ((["contiguous", 0, ["named", "INT"]], 3), 1))
        op["mem"].append(tree)
        op["count"].append(count)
        op["bottom"].append(rng.random() < 0.12)
    if HOWS[how].pointer == "explicit":
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
    maybe("mpiox_synchronous", 0.2, "true")
    maybe("mpiox_coverage_map", 0.3, "true")
    maybe("cb_buffer_size", 0.8, *sizes)
    maybe("cb_nodes", 0.7, *range(1, ranks + 3))
    maybe("cb_config_list", 0.2, "*:*", "*:1", "*:2")
    maybe("striping_unit", 0.7, *[size for size in sizes if size >= 7])
    maybe("striping_factor", 0.6, 1, 2, 3, 4, 7)
    maybe("romio_cb_write", 0.1, "enable", "disable", "automatic")
    maybe("romio_cb_read", 0.1, "enable", "disable", "automatic")
    maybe("romio_ds_write", 0.3, "enable", "disable", "automatic")
    maybe("romio_ds_read", 0.3, "enable", "disable", "automatic")
    maybe("ind_rd_buffer_size", 0.2, 64, 1000, 65536)
    maybe("ind_wr_buffer_size", 0.2, 64, 1000, 65536)
    maybe("mpiox_storage", 0.3, "posix", "io_uring", "auto")
    maybe("direct_write", 0.1, "true", "false")
    maybe("direct_read", 0.1, "true", "false")
    return hints
