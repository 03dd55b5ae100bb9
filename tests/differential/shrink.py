"""Make a failing case simpler while it keeps failing: a greedy search over legal simplifications."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator

from differential import simulate
from differential.state import BYTE, HOWS, Case, Op
from differential.typetree import ATOMS, Tree, classic_text, model, plain

Fails = Callable[[list[Case]], list[bool]]


def cost(case: Case) -> tuple[int, int, int, int]:
    """Return what shrinking makes smaller: ranks, calls, bytes moved, length of the description."""
    moved = sum(
        model(t).size * n for op in case["ops"] if "mem" in op for t, n in zip(op["mem"], op["count"], strict=True)
    )
    return case["ranks"], len(case["ops"]), moved, len(json.dumps(case))


def without_rank(case: Case, rank: int) -> Case:
    """Return the case without one of its ranks."""
    small = copy.deepcopy(case)
    small["ranks"] -= 1
    for op in small["ops"]:
        for name in ("disp", "ftype", "mem", "count", "bottom", "large", "at", "offset", "who", "verb"):
            if isinstance(op.get(name), list):
                del op[name][rank]
    return small


def simpler_trees(tree: Tree, leaf: Tree | None) -> Iterator[Tree]:
    """Yield simpler trees: children, or the same constructor over simpler ones; ``leaf`` stays at the bottom."""
    if tree[0] in ATOMS or (leaf is not None and classic_text(tree) == classic_text(leaf)):
        return
    kind = plain(tree)
    if kind == "struct":
        yield from tree[3]
        for i in range(len(tree[1])):
            if len(tree[1]) > 1:
                yield [tree[0], *[[v for j, v in enumerate(part) if j != i] for part in tree[1:4]]]
        return
    yield tree[-1]
    if kind in ("contiguous", "vector", "hvector") and tree[1] > 1:
        yield [tree[0], tree[1] // 2, *tree[2:]]
    if kind in ("indexed", "hindexed") and len(tree[1]) > 1:
        half = len(tree[1]) // 2
        yield [tree[0], tree[1][:half], tree[2][:half], tree[3]]
        yield [tree[0], tree[1][half:], tree[2][half:], tree[3]]
    if kind in ("indexed_block", "hindexed_block") and len(tree[2]) > 1:
        half = len(tree[2]) // 2
        yield [tree[0], tree[1], tree[2][:half], tree[3]]
        yield [tree[0], tree[1], tree[2][half:], tree[3]]
    for child in simpler_trees(tree[-1], leaf):
        yield [*tree[:-1], child]


def candidates(case: Case) -> Iterator[Case]:
    """Yield simplifications of a case, the boldest first; they may be illegal."""
    for index in reversed(range(len(case["ops"]))):
        yield case | {"ops": case["ops"][:index] + case["ops"][index + 1 :]}
    for rank in reversed(range(case["ranks"])):
        if case["ranks"] > 1:
            yield without_rank(case, rank)
    for name in case["hints"]:
        yield case | {"hints": {k: v for k, v in case["hints"].items() if k != name}}
    if case["comm"] != "world":
        yield case | {"comm": "world"}
    if case["initial"] > 0 and not case["readonly"]:
        yield case | {"initial": -1}
    for index, op in enumerate(case["ops"]):
        for change in op_candidates(op, case["ranks"]):
            yield case | {"ops": [change if i == index else o for i, o in enumerate(case["ops"])]}


def plainer_calls(op: Op) -> Iterator[Op]:
    """Yield a call in simpler ways, with the same data."""
    how = HOWS.get(op.get("how", ""))
    if how and (how.split or how.nonblocking):
        name = str(op["how"])
        whole = {k: v for k, v in op.items() if k != "req"}
        yield whole | {"how": name.removesuffix("_split") if how.split else name[1:]}
        if "req" in op:
            yield whole
    if "large" in op:
        yield {k: v for k, v in op.items() if k != "large"}
    if (classic := json.loads(classic_text([op]))[0]) != op:
        yield classic
    if op.get("snap"):
        yield {k: v for k, v in op.items() if k != "snap"}
    if op["op"] == "wait" and op["style"] != "wait":
        yield op | {"style": "wait"}
    if op["op"] == "open":
        if "hints" in op:
            yield {k: v for k, v in op.items() if k != "hints"}
        for name in op["mode"]:
            yield op | {"mode": [other for other in op["mode"] if other != name]}
        if op["comm"] != "world":
            yield op | {"comm": "world"}


def op_candidates(op: Op, ranks: int) -> Iterator[Op]:
    """Yield simpler forms of one call."""
    yield from plainer_calls(op)
    for rank in range(ranks):

        def put(name: str, value: object, rank: int = rank) -> Op:
            return op | {name: [value if r == rank else v for r, v in enumerate(op[name])]}

        if op["op"] == "view":
            for tree in simpler_trees(op["ftype"][rank], op["etype"]):
                yield put("ftype", tree)
            if op["disp"][rank]:
                yield put("disp", 0)
        elif "mem" in op:
            size = model(op["mem"][rank]).size * op["count"][rank]
            if op["mem"][rank] != BYTE:
                yield put("mem", BYTE) | {"count": put("count", size)["count"]}
                for tree in simpler_trees(op["mem"][rank], None):
                    yield put("mem", tree)
            if op["count"][rank]:
                yield put("count", 0)
                yield put("count", op["count"][rank] // 2)
                yield put("count", op["count"][rank] - 1)
            if op.get("who", [False] * ranks)[rank]:
                yield put("who", False)
            if op["bottom"][rank]:
                yield put("bottom", False)
            if op.get("at", [0] * ranks)[rank]:
                yield put("at", 0)


def shrink(case: Case, fails: Fails, *, launches: int = 30, batch: int = 40) -> Case:
    """Return the simplest failing case found; ``fails`` tells for a list of cases which of them fail."""
    best, tried = case, set()
    for _ in range(launches):
        trial: list[Case] = []
        for candidate in candidates(best):
            key = json.dumps(candidate, sort_keys=True)
            if key not in tried and cost(candidate) < cost(best) and simulate.check(candidate) is None:
                tried.add(key)
                trial.append(candidate | {"id": len(trial)})
            if len(trial) == batch:
                break
        if not trial:
            break
        failing = [c for c, bad in zip(trial, fails(trial), strict=True) if bad]
        if failing:
            best = min(failing, key=cost)
    best.pop("id", None)
    return best
