"""From a seed to a case: a legal random program of MPI-IO calls for 1 to 8 ranks. Pure Python, no MPI.

The same seed gives the same case on every machine. There are two kinds: programs about collectives, with large views
and buffers and every hint (``draw_ops``), and shorter programs of all families of calls (program.py). Calls that would
make a program illegal (for example because two ranks' views collide) are dropped, so that every case that is run means
something.
"""

from __future__ import annotations

import random

from differential import simulate
from differential.draw_calls import METHODS, access_op, draw_hints, draw_how
from differential.draw_forms import draw_forms
from differential.draw_types import etype_tree, weighted
from differential.draw_views import STRATEGIES
from differential.program import ACCESS_FAMILIES, FAMILIES, Program
from differential.state import BYTE, Case, Op
from differential.typetree import model

__all__ = ["FAMILIES", "METHODS", "STRATEGIES", "families_of", "generate", "ranks_of"]

RANKS_WEIGHTS = ((1, 6), (2, 20), (3, 18), (4, 24), (5, 10), (6, 8), (7, 6), (8, 8))
CLASSIC = frozenset({"collective", "split"})  # families whose programs are those about collectives


def ranks_of(seed: int) -> int:
    """Return the number of ranks of a seed's case."""
    return int(weighted(random.Random(f"ranks {seed}"), *RANKS_WEIGHTS))


def families_of(text: str | None) -> frozenset[str] | None:
    """Return the families that a comma-separated list names, None for all."""
    if not text:
        return None
    names = frozenset(name.strip() for name in text.split(","))
    if names - set(FAMILIES):
        raise ValueError(f"unknown: {', '.join(sorted(names - set(FAMILIES)))}; there are {', '.join(FAMILIES)}")
    return names


def draw_ops(rng: random.Random, case: Case, strategies: list[str], only: frozenset[str] | None) -> list[Op]:
    """Draw the calls of a case about collectives."""
    ranks, ops = case["ranks"], []
    view: Op | None = None
    for _ in range(weighted(rng, (1, 6), (2, 2), (3, 1))):
        if rng.random() < 0.9:
            names = [n for n in STRATEGIES if case["readonly"] or n != "backward"]  # erroneous where one may write
            name = weighted(rng, *((n, STRATEGIES[n][1]) for n in names))
            etype = etype_tree(rng)
            displacements, types = STRATEGIES[name][0](rng, ranks, etype)
            view = {"op": "view", "disp": displacements, "etype": etype, "ftype": types}
            ops.append(view)
            strategies.append(name)
        for _ in range(weighted(rng, (1, 3), (2, 4), (3, 2), (5, 1))):
            if rng.random() < 0.1:
                offsets = [rng.randrange(50) for _ in range(ranks)]
                ops.append({"op": "seek", "offset": offsets, "whence": rng.choice(["set", "cur"])})
            kind = "read" if case["readonly"] else rng.choice(["write", "write", "read"])
            ops.append(access_op(rng, case, kind, view, draw_how(rng, only)))
        if rng.random() < 0.06 and not case["readonly"]:
            size = rng.randrange(20_000)
            change = weighted(rng, ({"op": "size", "bytes": size}, 3), ({"op": "preallocate", "bytes": size}, 1))
            ops += [{"op": "sync"}, change, {"op": "sync"}]
    return ops


def legal_ops(case: Case) -> int:
    """Drop what is illegal and put a sync where the standard asks for one, in place; the bytes of the final file."""
    simulation, kept = simulate.Simulation(case), []
    for op in case["ops"]:
        attempts: tuple[list[Op], ...] = ([op], [{"op": "sync"}, op])
        for attempt in attempts:
            trial = simulation.copy() if len(attempt) > 1 else simulation
            try:
                for step in attempt:
                    trial.step(0, step)
            except simulate.Illegal:
                continue
            kept += attempt
            simulation = trial
            break
    case["ops"] = kept
    return simulation.size


def draw_collectives(rng: random.Random, case: Case, only: frozenset[str] | None) -> int:
    """Draw a program about collectives; the bytes of the final file."""
    size = 0
    for _ in range(30):
        strategies: list[str] = []
        case["ops"] = draw_ops(rng, case, strategies, only)
        size = legal_ops(case)
        case["strategies"] = strategies
        if any(op.get("how") in simulate.COLLECTIVE and any(op["count"]) for op in case["ops"]):
            break
    return size


def draw_program(rng: random.Random, case: Case, only: frozenset[str] | None) -> int:
    """Draw a program of several families; the bytes of its largest file."""
    case["big"], case["lax"] = False, False
    strict = case.get("strict", False)
    if only is None:
        families = set(rng.sample(FAMILIES, rng.randrange(2, 6)))
    else:
        families = set(only)
    if strict:  # other data representations, and their shared pointers, are the MPI library's
        families.discard("datarep")
    if not families & ACCESS_FAMILIES:
        families.add(rng.choice(["independent", "collective", "nonblocking"]))
    case["families"] = sorted(families)
    if not case["readonly"] and "open" in families:
        case["mode"] = weighted(
            rng,
            (["rdwr"], 6),
            (["wronly"], 1),
            (["rdwr", "append"], 1),
            (["rdwr", "unique"], 0.5),
            (["rdwr"] if strict else ["rdwr", "delete"], 0.5),
            (["rdwr", "excl"] if case["initial"] < 0 and not strict else ["rdwr"], 1),
        )
    if rng.random() < 0.5 and case["initial"] > 4000:  # mostly small files
        case["initial"] = rng.randrange(4000)
    program = Program(rng, case, frozenset(families))
    program.draw()
    case["ops"], case["strategies"] = program.ops, program.strategies
    return program.simulation.size


def plainer(case: Case) -> Case:
    """Return the case with buffers of plain bytes: MPI libraries' ways with memory types then do not matter."""
    converting: dict[int, bool] = {}
    for op in case["ops"]:
        if op["op"] in ("view", "open"):
            converting[op.get("h", 0)] = "rep" in op
        if "mem" in op and not converting.get(op.get("h", 0)):
            op["count"] = [model(t).size * n for t, n in zip(op["mem"], op["count"], strict=True)]
            op["mem"] = [list(BYTE) for _ in op["mem"]]
            op["bottom"] = [False] * case["ranks"]
    return case


def generate(seed: int, only: frozenset[str] | None = None, *, strict: bool = False) -> Case:
    """Return the case of a seed; ``only``: programs of these families.

    ``strict``: nothing that MPI leaves open where every node has caches of its own. Collectives are not taken for
    ordered, ranks do not write the same byte in one call (not even the same value). Names do not come and go either,
    and no file is only read that others write: what a client knows of names and small files may be a second old.
    """
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
    if strict:
        case["strict"], case["lax"] = True, False
    case["readonly"] = rng.random() < 0.12
    if case["readonly"]:
        case["initial"] = rng.randrange(1, 9000)
    collectives = only <= CLASSIC if only is not None else rng.random() < 0.4
    size = draw_collectives(rng, case, only) if collectives else draw_program(rng, case, only)
    patient = any(op.get("how") in simulate.NONBLOCKING for op in case["ops"])
    case["hints"] = draw_hints(rng, ranks, size, patient=patient)
    # Consecutive writes are ordered by the library's own collectives only: OMPIO may carry out a rank's first write,
    # which another rank does for it, after its second.
    if sum(op["op"] in ("write", "mixed") for op in case["ops"]) > 1:
        for name in ("romio_cb_write", "romio_cb_read"):
            if case["hints"].get(name) == "disable":
                case["hints"][name] = "automatic"
    draw_forms(random.Random(f"forms {seed}"), case)
    return case
