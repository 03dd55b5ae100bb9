"""What all ranks saw in one case, against the oracle. Pure Python and NumPy, no MPI."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import simulate
from differential.outside import LOSABLE, storage_fails
from differential.ownership import managed_calls
from differential.simulate import Simulation
from differential.state import ACCESS, HOWS, Case, Expected, Op, memory_of

POISON = 0xA5
Results = list[list[dict[str, Any]]]
Files = dict[str, bytes | None]


class Comparison:
    """One case of one arm: walks through the calls, collects the problems.

    Parameters
    ----------
    case : the case.
    results : by rank, by call: what the worker saw.
    strict : the library is in charge: also what the standard leaves open is judged.
    """

    def __init__(self, case: Case, results: Results, *, strict: bool) -> None:
        self.case, self.results, self.strict = case, results, strict
        self.simulation = Simulation(case)
        self.managed = managed_calls(case)
        self.problems: list[str] = []
        self.reads_short: list[int] = []
        self.errors: set[str] = set()
        self.foreign = any(  # the MPI library may leave anything in gaps
            "fails" not in op and (op["op"] == "preallocate" or (op["op"] in ACCESS and op["op"] != "read" and not own))
            for op, own in zip(case["ops"], self.managed, strict=True)
        )

    def run(self, files: Files) -> list[str]:
        """Compare everything; return the problems."""
        for index, op in enumerate(self.case["ops"]):
            if index >= len(self.results[0]):  # a view was refused: what was done until then has been compared
                return self.problems
            self.call(index, op)
        for number in sorted(self.simulation.handles):  # the files that are deleted on close go now
            self.simulation.step(0, {"op": "close", "h": number})
        self.contents("file", self.simulation, files)
        return self.problems

    def call(self, index: int, op: Op) -> None:
        """Apply one call to the model and compare its results."""
        name = f"call {index} ({op['op']} {op.get('how', '')})".replace(" )", ")")
        orders = self.simulation.orders(op)
        if len(orders) > 1:
            self.race(index, op, name, orders)
            return
        expected = self.simulation.step(index, op)
        if "lost" in op and not any(results[index].get("lost", "error" in results[index]) for results in self.results):
            calls = [results[index]["calls"] for results in self.results]
            made = " ".join(f"{each}={most}" for each in LOSABLE if (most := max(found[each] for found in calls)))
            self.problems.append(f"lost: {name}: no call {op['lost']}, the library makes {made}")
        if "fails" in op:
            classes = [results[index].get("class", "none") for results in self.results]
            calls = [True] * len(classes)  # a rank that makes no call gets no error, nor one whose call does not fail
            fails = map(all, zip(op.get("who", calls), op.get("failing", calls), strict=True))
            others = any(
                found not in (op["fails"] if fail else ["none"]) for found, fail in zip(classes, fails, strict=True)
            )
            if others or ("some" in op and set(classes) == {"none"}):
                text = next((results[index]["error"] for results in self.results if "error" in results[index]), "")
                wanted = " or ".join(op["fails"]) + (" by some" if "some" in op else "")
                self.problems.append(f"error class: {name}: {classes}, expected {wanted} {text}")
            elif "failing" in op:
                self.problems += self.access(index, op, name, expected)
            if storage_fails(self.case):
                self.settle(op, classes)
            if storage_fails(self.case) and op["op"] == "write":
                self.reported(index, op, name)
            return
        if op["op"] in ACCESS:
            self.problems += self.access(index, op, name, expected)
            return
        if op["op"] == "posix":
            self.posix(index, op, expected)
        for rank, results in enumerate(self.results):
            got = results[index]
            if "opened" in got:
                if not self.opened_well(index, got["opened"], expected):
                    text = got.get("error", "")
                    self.problems.append(f"open: {name} rank {rank}: {got['opened']}, expected {expected} {text}")
            elif "error" in got:
                self.problems.append(f"error: {name} rank {rank}: {got['error']}")
            elif op["op"] == "query" and rank in expected:
                wrong = {k: (got["query"].get(k), v) for k, v in expected[rank].items() if got["query"].get(k, v) != v}
                if wrong:
                    self.problems.append(f"query: {name} rank {rank}: (there, expected) {wrong}")

    def settle(self, op: Op, classes: list[str]) -> None:
        """Demand all bytes after a sync or close, unless a call of the case has reported an error."""
        self.errors |= {found for found in classes if found != "none"}
        if op["op"] in ("sync", "close", "atomicity") and not self.errors:
            for file in self.simulation.files.values():
                file.others.clear()

    def reported(self, index: int, op: Op, name: str) -> None:
        """Demand the bytes that the status of a write that failed reports: none of a collective."""
        handle = self.simulation.handles[op.get("h", 0)]
        for rank, results in enumerate(self.results):
            nbytes = results[index].get("nbytes", 0) if "error" in results[index] else 0
            if nbytes and HOWS[op["how"]].everybody:
                self.problems.append(f"status: {name} rank {rank}: {nbytes} bytes of a collective write that failed")
            elif nbytes:
                target = handle.tracks[rank].targets(op["at"][rank], memory_of(op, rank))[:nbytes]
                file = self.simulation.files[handle.file_of(rank)]
                file.put(target, file.data[target])

    def posix(self, index: int, op: Op, size: int | None) -> None:
        """Compare what rank 0 got from a POSIX call."""
        got = self.results[0][index]["posix"]
        if op["what"] == "read":
            self.contents("posix", self.simulation, {op["file"]: got}, only=op["file"])
        elif op["what"] != "write" and got != size:
            self.problems.append(f"posix: call {index} {op['what']} of file {op['file']}: {got}, expected {size}")

    def opened_well(self, index: int, got: str | None, expected: str | None) -> bool:
        """Tell whether an open ended as it must: the class of an error need be right on one rank only (ROMIO's is)."""
        if expected is None or got is None or got == "no member":
            return got in (expected, "no member")
        return any(results[index]["opened"] == expected for results in self.results)

    def access(self, index: int, op: Op, name: str, expected: list[Expected | None]) -> list[str]:
        """Return the differences of one data-access call."""
        problems: list[str] = []
        own = self.strict and self.managed[index]
        for rank, want in enumerate(expected):
            got = self.results[rank][index]
            if "failing" in op and op["failing"][rank]:
                continue
            if "error" in got:
                problems.append(f"error: {name} rank {rank}: {got['error']}")
            elif want is not None and "skipped" not in got:
                if self.strict and not own and want.nbytes < want.requested:
                    continue  # handed to the MPI library, whose ways at the end of the file are its own business
                gaps = own and not self.foreign
                problems += one_access(f"{name} rank {rank}", want, got, strict=own, gaps=gaps)
        return problems

    def race(self, index: int, op: Op, name: str, orders: list[simulate.Order | None]) -> None:
        """Find an order of the ranks that explains what was seen."""
        fewest: tuple[list[str], Simulation] | None = None
        snap = next((results[index]["snap"] for results in self.results if results[index].get("snap")), None)
        for order in orders:
            trial = self.simulation.copy()
            problems = self.access(index, op, name, trial.step(index, op, order))
            if snap is not None:
                before, self.problems = self.problems, problems
                self.contents("order", trial, snap)
                self.problems = before
            if fewest is None or len(problems) < len(fewest[0]):
                fewest = problems, trial
            if not problems:
                break
        assert fewest is not None
        problems, self.simulation = fewest
        if problems:
            what = "shared pointer" if HOWS[op["how"]].pointer == "shared" else "atomic"
            self.problems.append(f"{what}: {name}: no order of the ranks explains it; the nearest: {problems[:2]}")
            self.problems += [problem for problem in problems if problem.startswith("error")]
            self.believe(snap or {})

    def believe(self, snap: Files) -> None:
        """Go on from what the files hold, so that one difference is not reported again and again."""
        for name, file in self.simulation.files.items():
            held = snap.get(name)
            if held is not None and len(held) == len(file.data):
                file.data = np.frombuffer(held, np.uint8).copy()

    def contents(self, kind: str, simulation: Simulation, files: Files, only: str = "") -> None:
        """Compare the bytes of all files, or of one."""
        for name, file in simulation.files.items():
            if "~" in name or (only and name != only):  # a deleted file
                continue
            held = files.get(name)
            if (held is not None) != file.exists:
                self.problems.append(f"exists: file {name} is {'there' if held is not None else 'not there'}")
            if held is None or not file.exists:
                continue
            final = np.frombuffer(held, np.uint8)
            least, most = file.sizes
            if not least <= len(final) <= most:
                self.problems.append(f"size: file {name} has {len(final)} bytes, expected {len(file.data)}")
            common = min(len(final), len(file.data))
            care = np.ones(common, bool) if self.strict and not self.foreign else file.written[:common]
            wrong = np.flatnonzero(file.differs(final) & care)
            if len(wrong):
                first = wrong[:8]
                self.problems.append(
                    f"{kind}: {len(wrong)} of {common} bytes of file {name} differ, the first at {wrong[0]}, the last "
                    f"at {wrong[-1]}; there are {final[first].tobytes().hex(' ')} for "
                    f"{file.data[first].tobytes().hex(' ')}, {int((final[wrong] == POISON).sum())} are "
                    f"{POISON:02x} as stale buffers"
                )


def one_access(name: str, expected: Expected, got: dict[str, Any], *, strict: bool, gaps: bool) -> list[str]:
    """Return the differences of one call on one rank; ``gaps``: bytes that nobody ever wrote must read as zero."""
    problems = []
    if "buffer" not in got:
        return [f"status: {name}: the call did not end"]
    buffer = np.frombuffer(got["buffer"], np.uint8)
    differs = (buffer != expected.buffer) & ~expected.doubt
    wrong = np.flatnonzero(differs & expected.compare & (gaps | ~expected.gap))
    if len(wrong):
        first = wrong[:8]
        problems.append(
            f"buffer: {name}: {len(wrong)} bytes differ, the first at {wrong[0]} of {len(buffer)}; there are "
            f"{buffer[first].tobytes().hex(' ')} for {expected.buffer[first].tobytes().hex(' ')}"
        )
    past = np.flatnonzero(differs & ~expected.compare)
    if strict and len(past):
        problems.append(f"past end: {name}: {len(past)} bytes beyond the end of the file were changed")
    if got["nbytes"] != expected.nbytes:
        problems.append(f"status: {name}: {got['nbytes']} bytes, expected {expected.nbytes} of {expected.requested}")
    else:
        count = got["undefined"] if expected.count is None else expected.count
        if got["count"] != count:
            problems.append(f"status: {name}: count {got['count']}, expected {count}")
        if expected.elements is not None and got["elements"] is not None and got["elements"] != expected.elements:
            problems.append(f"status: {name}: elements {got['elements']}, expected {expected.elements}")
    if got.get("position", expected.position) != expected.position:
        problems.append(f"position: {name}: {got['position']}, expected {expected.position}")
    return problems
