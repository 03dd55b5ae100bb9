"""Which calls of a case the library must carry out itself, and which it hands to the MPI library."""

from __future__ import annotations

from differential.state import ACCESS, HOWS, Case, Op
from differential.typetree import model

#: Families of data access (state.HOWS) that the library takes over; "atomic": also in atomic mode. What is not here is
#: judged by what native does.
TAKEN_OVER = frozenset(
    {"collective", "split", "independent", "nonblocking", "icollective", "shared", "ordered", "atomic"}
)
#: In views of these data representations.
TAKEN_OVER_REPS = ("native",)
#: Calls that change the content of a file.
CHANGES = ("write", "mixed", "size", "preallocate", "close")


def managed_calls(case: Case) -> list[bool]:
    """Return for every call whether the library takes it over: its family, switched on, in a view it can manage.

    A case may name the families in ``owned``.
    """
    result, taken = [], frozenset(case.get("owned", TAKEN_OVER))
    usable: dict[int, bool] = {0: "sequential" not in case.get("mode", [])}
    atomic: dict[int, bool] = {}
    hints: dict[int, dict[str, str]] = {}
    for op in case["ops"]:
        number = op.get("h", 0)
        if "fails" in op:
            result.append(False)
            continue
        if op["op"] == "open":
            usable[number], atomic[number] = "sequential" not in op["mode"] and "lost" not in op, False
            hints[number] = op["hints"] if "hints" in op else case["hints"]
        elif op["op"] == "view":
            usable[number] = "views" in case or view_is_usable(op)
        elif op["op"] == "atomicity":
            atomic[number] = op["flag"]
        result.append(
            op["op"] in ACCESS
            and usable.get(number, True)
            and HOWS[op["how"]].family in taken
            and ("atomic" in taken or not atomic.get(number, False))
            and is_on(hints[number] if number in hints else case["hints"])
        )
    return result


def view_is_usable(op: Op) -> bool:
    """Tell whether the library can manage a view: monotonic on every rank, in a known data representation."""
    kinds = [model(tree) for tree in op["ftype"]]
    return op.get("rep", "native") in TAKEN_OVER_REPS and all(
        kind.size > 0 and kind.is_file_legal(write=True) for kind in kinds
    )


def is_on(hints: dict[str, str]) -> bool:
    """Tell whether no hint hands a call back."""
    return hints.get("mpiox_enable") != "false"


def may_be_native(problem: str, case: Case) -> bool:
    """Tell whether a problem may come from what the library hands to the MPI library; it does if native has it too.

    Views and sizes are set on the MPI library's handle as well, so it can refuse or end any case. What it carries out
    wrongly shows in the call itself, in what is read of what it wrote, or in the file pointers that it moved.
    """
    if problem.startswith(("error: contiguous", "merge", "mount")):
        return False
    if problem.startswith(("crash", "hang")):
        return True
    kind = problem.split(":", 1)[0]
    last = int(problem.split(": call ", 1)[1].split()[0]) if ": call " in problem else len(case["ops"])
    foreign = [op for op, own in zip(case["ops"], managed_calls(case), strict=True) if not own]
    if last < len(case["ops"]) and any(op is case["ops"][last] for op in foreign):
        return True
    before = [op for op in case["ops"][:last] if any(op is other for other in foreign)]
    if kind in ("position", "query"):
        moves = [op for op in before if op["op"] == "seek" or (op["op"] in ACCESS and HOWS[op["how"]].pointer == "own")]
        return bool(moves)
    return any(op["op"] in CHANGES for op in before)


def expected_calls(case: Case) -> tuple[int, int]:
    """Return how many collective writes and reads rank 0 must see taken over."""
    taken = [
        op["op"]
        for op, own in zip(case["ops"], managed_calls(case), strict=True)
        if own and HOWS[op["how"]].family in ("collective", "split")
    ]
    return taken.count("write"), taken.count("read")


def missing_calls(case: Case, stats: dict[str, int]) -> str | None:
    """Return a complaint when the library did not take over what it must."""
    writes, reads = expected_calls(case)
    got = stats.get("collective_writes", 0), stats.get("collective_reads", 0)
    if got[0] < writes or got[1] < reads:
        return (
            f"not managed: {got[0]} collective writes and {got[1]} reads were taken over, expected {writes} and {reads}"
        )
    return None
