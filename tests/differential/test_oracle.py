"""The model of the differential test: what it refuses, how many results it allows, what the comparison sees."""

from __future__ import annotations

import json
import pathlib
import random
import re
from typing import Any

import pytest

from differential import arms, generate, outside, shrink, simulate
from differential.compare import Comparison
from differential.draw_forms import formed
from differential.draw_types import memory_tree
from differential.simulate import Simulation
from differential.state import ACCESS, BYTE, Case, Op
from differential.typetree import classic_text, constructors, leaves, model

ROOT = pathlib.Path(__file__).resolve().parents[2]


def case_of(ops: list[Op], *, ranks: int = 2, **more: Any) -> Case:
    """Return a case of some calls on an empty file."""
    return {
        "seed": 1,
        "ranks": ranks,
        "comm": "world",
        "fill": "random",
        "lax": False,
        "initial": 0,
        "readonly": False,
        "hints": {},
        "ops": ops,
    } | more


def access(kind: str, how: str, sizes: list[int], at: list[int] | None = None, **more: Any) -> Op:
    """Return a data-access call on bytes."""
    op: Op = {"op": kind, "how": how, "mem": [BYTE] * len(sizes), "count": sizes, "bottom": [False] * len(sizes)}
    return op | ({"at": at} if at else {}) | more


SYNC: Op = {"op": "sync"}
FENCE: Op = {"op": "fence"}
ATOMIC: Op = {"op": "atomicity", "flag": True}
WRITE = access("write", "at", [8, 8], [0, 8])
CROSS = access("read", "at", [8, 8], [8, 0])
LEGAL: dict[str, list[Op]] = {
    "own data without sync": [WRITE, access("read", "at", [8, 8], [0, 8])],
    "others' data after sync": [WRITE, SYNC, CROSS],
    "others' data after a barrier in atomic mode": [ATOMIC, WRITE, FENCE, CROSS],
    "a file that the reader made grow": [
        access("read", "at", [8, 0], [0, 0], who=[True, False]),
        access("write", "at", [8, 8], [100, 0], who=[True, False]),
    ],
    "requests completed": [access("write", "iat", [8, 8], [0, 8], req=1), {"op": "wait", "reqs": [1], "style": "wait"}],
    "conflict in atomic mode, looked at": [ATOMIC, access("write", "at", [8, 8], [0, 4], snap=True)],
    "shared pointer by one rank, then by the other": [
        access("write", "shared", [4, 4], who=[True, False]),
        FENCE,
        access("write", "shared", [4, 4], who=[False, True]),
    ],
}
ILLEGAL: dict[str, list[Op]] = {
    "others' data without sync": [WRITE, CROSS],
    "others' data after a barrier only": [WRITE, FENCE, CROSS],
    "others' data without barrier in atomic mode": [ATOMIC, WRITE, CROSS],
    "request left": [access("write", "iat", [8, 8], [0, 8], req=1)],
    "conflict with a request": [
        access("write", "iat", [8, 8], [0, 8], req=1),
        access("read", "at", [8, 8], [0, 8]),
        {"op": "wait", "reqs": [1], "style": "wait"},
    ],
    "sync with a request": [access("read", "iat", [8, 8], [0, 8], req=1), SYNC],
    "conflict in nonatomic mode": [access("write", "at", [8, 8], [0, 4], snap=True)],
    "size changed without sync": [WRITE, {"op": "size", "bytes": 4}],
    "size changed after it was asked": [{"op": "query", "shared": False}, {"op": "size", "bytes": 4}],
    "size asked while another rank writes": [
        {"op": "query", "shared": False},
        access("write", "at", [8, 8], [0, 8], who=[True, False]),
    ],
    "file grows after a read past its end": [
        access("read", "at", [8, 0], [0, 0], who=[True, False]),
        access("write", "at", [8, 8], [0, 50], who=[False, True]),
    ],
    "file grows after a read past its end, and the reader itself made it grow in between": [
        access("read", "at", [8, 0], [0, 0], who=[True, False]),
        access("write", "at", [8, 8], [100, 0], who=[True, False]),
        access("write", "at", [8, 8], [0, 50], who=[False, True]),
    ],
    "shared pointer by both without barrier": [
        access("write", "shared", [4, 4], who=[True, False]),
        access("write", "shared", [4, 4], who=[False, True]),
    ],
    "collective during a split collective": [
        access("read", "at_all_split", [4, 4], [0, 0], req=1),
        access("read", "at_all", [4, 4], [0, 0]),
        {"op": "wait", "reqs": [1], "style": "wait"},
    ],
}


@pytest.mark.parametrize("name", LEGAL)
def test_what_is_defined_is_legal(name: str) -> None:
    """Programs whose result the standard defines are accepted."""
    assert simulate.check(case_of(LEGAL[name])) is None


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_is_undefined_is_refused(name: str) -> None:
    """Programs whose result depends on time are refused."""
    assert simulate.check(case_of(ILLEGAL[name])) is not None


def test_strict_programs_leave_nothing_to_caches() -> None:
    """The same value by two ranks, and collectives taken for ordered, are refused in strict programs alone."""
    same = access("write", "at_all", [8, 8], [0, 4])
    after = access("write", "at_all", [8, 8], [8, 0])
    for ops in ([same], [access("write", "at_all", [8, 8], [0, 8]), after]):
        assert simulate.check(case_of(ops, fill="offset", lax=True)) is None
        assert simulate.check(case_of(ops, fill="offset", lax=False, strict=True)) is not None
    assert simulate.check(case_of([WRITE, SYNC, CROSS], strict=True)) is None


def test_collectives_are_in_order_among_themselves_only() -> None:
    """A collective read does not wait for a write of another rank alone."""
    together, again = access("write", "at_all", [8, 8], [0, 8]), access("read", "at_all", [8, 8], [8, 0])
    assert simulate.check(case_of([together, again], lax=True)) is None
    assert simulate.check(case_of([WRITE, again], lax=True)) is not None
    assert simulate.check(case_of([WRITE, SYNC, again], lax=True)) is None


@pytest.mark.parametrize("seed", range(1, 60))
def test_strict_programs_are_drawn_legal(seed: int) -> None:
    """What is drawn keeps its own rules, and names neither come nor go."""
    case = generate.generate(seed, strict=True)
    assert simulate.check(case) is None
    modes = [set(case.get("mode", [])), *(set(op["mode"]) for op in case["ops"] if op["op"] == "open")]
    assert not any({"delete", "excl", "rdonly"} & mode for mode in modes)


def test_conflicting_atomic_writes_have_one_result_per_order() -> None:
    """Of three ranks that write to the same place, the last one wins: six orders, three results."""
    simulation = Simulation(case_of([], ranks=3))
    simulation.step(0, ATOMIC)
    op = access("write", "at", [8, 8, 8], [0, 0, 0], snap=True)
    orders = simulation.orders(op)
    assert len(orders) == 6
    results = set()
    for order in orders:
        trial = simulation.copy()
        trial.step(1, op, order)
        results.add(trial.files["0"].data.tobytes())
    assert len(results) == 3


def seen(case: Case) -> tuple[list[list[dict[str, Any]]], dict[str, bytes | None]]:
    """Return what ranks would see if everything were right."""
    simulation = Simulation(case)
    results: list[list[dict[str, Any]]] = [[] for _ in range(case["ranks"])]
    for index, op in enumerate(case["ops"]):
        expected = simulation.step(index, op)
        for rank in range(case["ranks"]):
            want = expected[rank] if op["op"] in ACCESS else None
            got: dict[str, Any] = {}
            if want is not None:
                got = {"buffer": want.buffer.tobytes(), "nbytes": want.nbytes, "count": want.nbytes, "undefined": -1}
                got |= {"elements": want.nbytes, "position": want.position}
            if op.get("snap"):
                got["snap"] = {"0": simulation.files["0"].data.tobytes()}
            results[rank].append(got)
    return results, {"0": simulation.files["0"].data.tobytes()}


OPS = [ATOMIC, WRITE, SYNC, CROSS, SYNC, access("write", "at", [8, 8], [0, 4], snap=True)]


def test_right_results_have_no_problems() -> None:
    """The comparison is silent when all is well."""
    case = case_of(OPS)
    results, files = seen(case)
    assert Comparison(case, results, strict=True).run(files) == []


def test_a_mixture_of_two_atomic_writes_is_found() -> None:
    """Bytes of both ranks in the place where they meet are no order of the two."""
    case = case_of(OPS)
    results, files = seen(case)
    snap = results[0][-1]["snap"]["0"]
    torn = snap[:5] + bytes([snap[5] ^ 255]) + snap[6:]
    for result in (results[0][-1], results[1][-1]):
        result["snap"] = {"0": torn}
    problems = Comparison(case, results, strict=True).run(files)
    assert problems[0].startswith("atomic: call 5")


@pytest.mark.parametrize("name", ["buffer", "nbytes", "position"])
def test_a_wrong_read_is_found(name: str) -> None:
    """Data, status and file pointer are compared."""
    case = case_of(OPS)
    results, files = seen(case)
    right = results[1][3][name]
    results[1][3][name] = right[:-70] + b"\0" + right[-69:] if name == "buffer" else right + 1
    assert Comparison(case, results, strict=True).run(files)


def test_forms_change_nothing_else() -> None:
    """A type in large-count form describes the same; of a case, only the names of constructors and ``large`` differ."""
    rng = random.Random(3)
    for _ in range(200):
        tree = memory_tree(rng, 3)
        drawn = formed(rng, tree)
        assert json.loads(classic_text(drawn)) == tree
        assert model(drawn) is model(tree)
        assert leaves(drawn) == leaves(tree)
        assert {name.removesuffix("_c") for name in constructors(drawn)} == constructors(tree)


def test_shrinking_tries_the_classic_form() -> None:
    """A failure that does not need large-count calls is shown without them, one that does keeps them."""
    op = access("write", "at", [8, 8], [0, 8], large=[True, False]) | {"mem": [["contiguous_c", 8, BYTE], BYTE]}
    case = case_of([op | {"count": [1, 8]}])

    def needs_call(cases: list[Case]) -> list[bool]:
        return ["large" in c["ops"][0] and c["ops"][0]["large"][0] if c["ops"] else False for c in cases]

    kept = shrink.shrink(case, needs_call)["ops"][0]
    assert kept["large"][0]
    assert "_c" not in json.dumps(kept["mem"])
    anything = shrink.shrink(case, lambda cases: [bool(c["ops"]) for c in cases])
    assert "large" not in anything["ops"][0]


# ---- what a launch prints --------------------------------------------------------------------------------------------


def test_bytes_of_a_removed_file_are_a_problem_unless_the_case_removes_it() -> None:
    """The sentence is that of the library's source."""
    source = (ROOT / "csrc" / "iod" / "process" / "mpiox_process.c").read_text(encoding="utf-8")
    said = re.search(r'mpiox_process_notify\("%s (was removed while )%lld ', source)
    assert said
    case = case_of([])
    printed = f"mpiio_ext: /folder/ours.{case['seed']}.0 {said[1]}5 bytes were not written\n"
    (found,) = arms.gone([case], printed)
    assert found["id"] == case["seed"] and said[1] in found["problems"][0]
    assert arms.gone([case_of([{"op": "posix", "what": "remove", "file": 0}])], printed) == []


@pytest.mark.parametrize(
    ("there", "named", "hidden"), [((), False, False), (("f",), True, False), ((".f.staging",), False, True)]
)
def test_whether_a_file_has_its_name(
    tmp_path: pathlib.Path, there: tuple[str, ...], *, named: bool, hidden: bool
) -> None:
    """The worker: a file that is gone has neither name."""
    for name in there:
        (tmp_path / name).touch()
    for what, expected in (("named", named), ("hidden", hidden)):
        assert outside.posix(1, 0, {"op": "posix", "what": what}, tmp_path / "f", tmp_path / "f") is expected
