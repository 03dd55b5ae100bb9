"""One launch of the differential test: every rank runs the same list of cases, rank 0 compares with the model.

Started by run.py under mpirun as ``worker.py JOB``, where JOB is a JSON file: folder, out (result lines), cases or
seeds, arms, limit_s. For each case the calls are made on two files: "ours" with the library in charge and "native"
with the hint mpiox_enable=false, which hands every call to the MPI library. A line of JSON per case and arm is appended
to the result file before the next one starts, so that a crash or a hang costs one case only.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pathlib
import sys
import threading
import time
import traceback
from typing import Any

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

JOB = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")) if len(sys.argv) > 1 else {}
if "ours" in JOB.get("arms", []):
    import mpiio_ext.stats  # before MPI: this is what puts the library under mpi4py

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from differential import generate, simulate, typetree  # noqa: E402
from differential.simulate import Case, Op, Track  # noqa: E402

WORLD = MPI.COMM_WORLD
POISON = 0xA5
FAMILY = "openmpi" if "Open MPI" in MPI.Get_library_version() else "mpich"


class Watchdog:
    """Ends the whole job when a case takes too long, after saying which one and where every rank stood."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.deadline_s = float("inf")
        self.where = ""
        threading.Thread(target=self.watch, daemon=True).start()

    def enter(self, where: str, factor: float = 1.0) -> None:
        """Start the clock for a case or a call."""
        self.where = where
        self.deadline_s = time.monotonic() + self.limit_s * factor

    def leave(self) -> None:
        """Stop the clock."""
        self.deadline_s = float("inf")

    def watch(self) -> None:
        """Look at the clock for ever."""
        while True:
            time.sleep(0.25)
            if time.monotonic() > self.deadline_s:
                sys.stderr.write(f"WATCHDOG rank {WORLD.rank}: {self.where} is stuck\n")
                faulthandler.dump_traceback()
                sys.stderr.flush()
                if WORLD.rank == 0:
                    time.sleep(1)  # let the other ranks say where they are
                os._exit(86)


class Rank:
    """One rank's run of one case on one file."""

    def __init__(
        self, case: Case, comm: MPI.Intracomm, path: str, hints: dict[str, str], watchdog: Watchdog, managed: list[bool]
    ) -> None:
        self.case, self.comm, self.watchdog, self.managed = case, comm, watchdog, managed
        self.hazards: list[int] = []
        if FAMILY == "openmpi":  # OMPIO never ends some reads beyond the end of the file, even on one rank
            self.hazards = comm.bcast(ends_met(case) if comm.rank == 0 else None)
        self.track = Track()
        self.types: dict[str, MPI.Datatype] = {}
        self.made: list[MPI.Datatype] = []
        self.notes: list[str] = []
        info = MPI.Info.Create()
        for name, value in hints.items():
            info.Set(name, value)
        self.file = MPI.File.Open(
            comm, path, MPI.MODE_RDONLY if case["readonly"] else MPI.MODE_RDWR | MPI.MODE_CREATE, info
        )
        info.Free()

    def datatype(self, tree: typetree.Tree) -> MPI.Datatype:
        """Return the committed MPI datatype of a tree and check its bounds against the model."""
        key = json.dumps(tree)
        if key not in self.types:
            made = typetree.build(tree, self.made)
            if not made.is_predefined:
                made.Commit()
            kind = typetree.model(tree)
            if made.Get_size() != kind.size or (kind.size and made.Get_extent() != (kind.lb, kind.extent)):
                self.notes.append(f"model differs from MPI: {key} {made.Get_extent()} {(kind.lb, kind.extent)}")
            self.types[key] = made
        return self.types[key]

    def run(self) -> list[dict[str, Any]]:
        """Make all calls; one result per call."""
        results = []
        for index, op in enumerate(self.case["ops"]):
            where = f"seed {self.case['seed']} call {index} {op['op']} {op.get('how', '')}"
            self.watchdog.where = f"{self.watchdog.where.split(': ')[0]}: {where}"
            refused = None
            try:
                results.append(self.step(index, op))
            except MPI.Exception as error:
                results.append({"error": f"{where}: {error.Get_error_string()}"})
                refused = error.Get_error_string() if op["op"] == "view" else None
            if op["op"] == "view" and self.comm.allreduce(refused is not None):
                # Views are set on the MPI library's handle first, so what it refuses is refused; legal ones are, too.
                self.notes.append(f"the MPI library refuses a legal view: {where}: {refused}")
                break
        return results

    def step(self, index: int, op: Op) -> dict[str, Any]:
        """Make one call."""
        rank, fh = self.comm.rank, self.file
        kind = op["op"]
        if kind == "view":
            self.track.apply(op, rank)
            fh.Set_view(op["disp"][rank], self.datatype(op["etype"]), self.datatype(op["ftype"][rank]), "native")
        elif kind == "seek":
            self.track.apply(op, rank)
            fh.Seek(op["offset"][rank], MPI.SEEK_SET if op["whence"] == "set" else MPI.SEEK_CUR)
        elif kind == "sync":
            fh.Sync()
            self.comm.Barrier()
            fh.Sync()
        elif kind == "size":
            fh.Set_size(op["bytes"])
        elif kind == "preallocate":
            if FAMILY == "openmpi":  # OMPIO's loses count of its ranks: errors on some, a hang of others
                fh.Set_size(max(op["bytes"], fh.Get_size()))
            else:
                fh.Preallocate(op["bytes"])
        else:
            return self.access(index, op, rank)
        return {}

    def access(self, index: int, op: Op, rank: int) -> dict[str, Any]:
        """Make one data-access call."""
        memory = simulate.memory_of(op, rank)
        target = self.track.access(op, rank, memory)
        data = simulate.initial_buffer(self.case, index, rank, memory, target if op["op"] == "write" else None)
        shift = (self.case["seed"] + index) % 8
        region = np.empty(len(data) + 8, np.uint8)[shift : shift + len(data)]
        region[:] = data
        address = region.ctypes.data + memory.origin
        datatype, count, free = self.datatype(op["mem"][rank]), op["count"][rank], None
        bottom = op["bottom"][rank]
        if not self.managed[index]:
            if index in self.hazards:
                if "at" not in op:
                    self.file.Seek(len(memory.offsets) // self.track.view.etype.size, MPI.SEEK_CUR)
                return {"skipped": True}
            if FAMILY == "openmpi" and not len(memory.offsets):
                datatype, count, bottom = MPI.BYTE, 0, False  # OMPIO divides by the size of the type
        buffer: Any = MPI.buffer.fromaddress(address, max(memory.hi, 1))
        if bottom:
            free = datatype.Create_hindexed([count], [address]).Commit()
            buffer, datatype, count = MPI.BOTTOM, free, 1
        status = MPI.Status()
        error = None
        try:
            self.call(op, rank, [buffer, count, datatype], status)
        except MPI.Exception as problem:
            error = problem.Get_error_string()
        result = {
            "buffer": region.tobytes(),
            "nbytes": status.Get_count(MPI.BYTE),
            "elements": status.Get_elements(self.datatype(op["mem"][rank])) if countable(op["mem"][rank]) else None,
            "count": status.Get_count(self.datatype(op["mem"][rank])),
            "position": self.file.Get_position(),
        }
        if error:
            result["error"] = error
        if free is not None:
            free.Free()
        return result

    def call(self, op: Op, rank: int, message: list[Any], status: MPI.Status) -> None:
        """Make the MPI call itself."""
        fh, how = self.file, op["how"]
        if (
            FAMILY == "openmpi"
        ):  # OMPIO 4.1 hangs in nonblocking reads that meet the end of the file and divides by zero
            how = {"iat_all": "at_all", "iall": "all", "iat": "at", "iindividual": "individual"}.get(how, how)
        verb = "Write" if op["op"] == "write" else "Read"
        at = [op["at"][rank]] if "at" in op else []
        if how.endswith("_split"):
            stem = f"{verb}_{how.removesuffix('_split')}"
            getattr(fh, f"{stem}_begin")(*at, message)
            getattr(fh, f"{stem}_end")(message, status)
        elif how.startswith("i") and how != "individual":
            stem = {"iat_all": "at_all", "iall": "all", "iat": "at", "iindividual": ""}[how]
            name = f"I{verb.lower()}" + (f"_{stem}" if stem else "")
            getattr(fh, name)(*at, message).Wait(status)
        else:
            name = verb + {"at_all": "_at_all", "all": "_all", "at": "_at", "individual": ""}[how]
            getattr(fh, name)(*at, message, status)

    def close(self) -> None:
        """Close the file and free the types."""
        self.file.Close()
        for made in reversed(self.made):
            made.Free()


def ends_met(case: Case) -> list[int]:
    """Return the reads of a case in which some rank asks for bytes beyond the end of the file."""
    expected = simulate.Simulation(case).run()
    return [i for i, ranks in enumerate(expected) if ranks and any(e.nbytes < e.requested for e in ranks)]


def countable(tree: typetree.Tree) -> bool:
    """Tell whether MPI_Get_elements can be asked: MPICH 5.0 aborts on mixed and empty types, pairs count as 1 or 2."""
    if not typetree.model(tree).size or "pair" in typetree.constructors(tree):
        return False
    simple = {"named", "contiguous", "vector", "hvector", "indexed", "hindexed"}
    return FAMILY == "openmpi" or (len(typetree.leaves(tree)) == 1 and typetree.constructors(tree) <= simple)


def compare(case: Case, results: list[list[dict[str, Any]]], path: str, *, strict: bool) -> list[str]:
    """Return the differences between what all ranks saw and the model; ``strict`` also at the end of the file."""
    simulation = simulate.Simulation(case)
    problems: list[str] = []
    managed = simulate.managed_calls(case)
    foreign = any(  # the MPI library may leave anything in gaps
        op["op"] == "preallocate" or (op["op"] == "write" and not own)
        for op, own in zip(case["ops"], managed, strict=True)
    )
    for index, op in enumerate(case["ops"]):
        if index >= len(results[0]):  # a view was refused: what was done until then has been compared
            return problems
        expected = simulation.step(index, op)
        name = f"call {index} ({op['op']} {op.get('how', '')})"
        for rank in range(case["ranks"]):
            got = results[rank][index]
            if "error" in got:
                problems.append(f"error: {name} rank {rank}: {got['error']}")
            elif expected is not None and "skipped" not in got:
                own = strict and managed[index]
                if strict and not own and expected[rank].nbytes < expected[rank].requested:
                    continue  # handed to the MPI library, whose ways at the end of the file are its own business
                problems += compare_access(
                    f"{name} rank {rank}", expected[rank], got, strict=own, gaps=strict and not foreign
                )
    final = np.fromfile(path, np.uint8)
    if len(final) != len(simulation.data):
        problems.append(f"size: file has {len(final)} bytes, expected {len(simulation.data)}")
    common = min(len(final), len(simulation.data))
    care = np.ones(common, bool) if strict and not foreign else simulation.written[:common]
    wrong = np.flatnonzero((final[:common] != simulation.data[:common]) & care)
    if len(wrong):
        first = wrong[:8]
        problems.append(
            f"file: {len(wrong)} of {common} bytes differ, the first at {wrong[0]}, the last at {wrong[-1]}; there are "
            f"{final[first].tobytes().hex(' ')} for {simulation.data[first].tobytes().hex(' ')}, "
            f"{int((final[wrong] == POISON).sum())} are {POISON:02x} as stale buffers"
        )
    return problems


def compare_access(
    name: str, expected: simulate.Expected, got: dict[str, Any], *, strict: bool, gaps: bool
) -> list[str]:
    """Return the differences of one call on one rank; ``gaps``: bytes that nobody ever wrote must read as zero."""
    problems = []
    buffer = np.frombuffer(got["buffer"], np.uint8)
    differs = buffer != expected.buffer
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
        count = MPI.UNDEFINED if expected.count is None else expected.count
        if got["count"] != count:
            problems.append(f"status: {name}: count {got['count']}, expected {count}")
        if expected.elements is not None and got["elements"] is not None and got["elements"] != expected.elements:
            problems.append(f"status: {name}: elements {got['elements']}, expected {expected.elements}")
    if got["position"] != expected.position:
        problems.append(f"position: {name}: {got['position']}, expected {expected.position}")
    return problems


def communicator(case: Case, made: dict[tuple[int, str], MPI.Intracomm | None]) -> MPI.Intracomm | None:
    """Return the communicator of a case: the first ranks of the world, perhaps in another order."""
    key = (case["ranks"], case["comm"])
    if key not in made:
        ranks, rank = case["ranks"], WORLD.rank
        order = {"world": rank, "reversed": ranks - rank, "rotated": (rank + 1) % max(ranks, 1)}[case["comm"]]
        comm: Any = WORLD.Split(0 if rank < ranks else MPI.UNDEFINED, order)
        made[key] = None if comm == MPI.COMM_NULL else comm
    return made[key]


def statistics(fh: MPI.File) -> dict[str, Any]:
    """Return the library's counters of an open file on this rank."""
    found = mpiio_ext.stats.of(fh)
    names = (
        "collective_writes",
        "collective_reads",
        "native_calls",
        "direct_calls",
        "rounds",
        "messages",
        "windows_holes",
    )
    return {name: getattr(found, name) for name in names}


def poison(case: Case, comm: MPI.Intracomm) -> list[str]:
    """Fill the collective buffers that the case will use with a pattern: a hole written by mistake then shows.

    Returns what went wrong: a plain contiguous write with the hints of the case must work, too.
    """
    info = MPI.Info.Create()
    for name, value in case["hints"].items():
        info.Set(name, value)
    path = os.path.join(JOB["folder"], "poison")
    fh = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE, info)
    block = np.full(1 << 15, POISON, np.uint8)
    problem = []
    try:
        fh.Write_at_all(comm.rank * len(block), block)
    except MPI.Exception as error:
        problem.append(f"error: contiguous write with the hints of the case: {error.Get_error_string()}")
    fh.Close()
    info.Free()
    return problem


def run_arm(case: Case, arm: str, comm: MPI.Intracomm, watchdog: Watchdog) -> dict[str, Any] | None:
    """Run one case on one file; the result line on rank 0."""
    path = os.path.join(JOB["folder"], f"{arm}.dat")
    if comm.rank == 0:
        pathlib.Path(path).unlink(missing_ok=True)
        if case["initial"] >= 0:
            simulate.initial_file(case).tofile(path)
    comm.Barrier()
    hints = dict(case["hints"]) if arm == "ours" or JOB.get("hinted") else {}
    if arm == "native" and "ours" in JOB["arms"]:
        hints["mpiox_enable"] = "false"
    problems = poison(case, comm) if arm == "ours" else []
    started_s = time.perf_counter()
    managed = simulate.managed_calls(case) if arm == "ours" else [False] * len(case["ops"])
    run = Rank(case, comm, path, hints, watchdog, managed)
    results = run.run()
    stats = statistics(run.file) if arm == "ours" else {}
    run.close()
    elapsed_s = time.perf_counter() - started_s
    everybody = comm.gather((results, run.notes, stats))
    if everybody is None:
        return None
    problems += compare(case, [r for r, _, _ in everybody], path, strict=arm == "ours")
    return {
        "seed": case["seed"],
        "arm": arm,
        "problems": problems,
        "notes": sorted({n for _, ns, _ in everybody for n in ns}),
        "stats": everybody[0][2],
        "elapsed_s": elapsed_s,
        "id": case.get("id", case["seed"]),
    }


def main() -> None:
    """Run the job."""
    faulthandler.enable()
    watchdog = Watchdog(JOB["limit_s"])
    cases = JOB.get("cases")
    seeds = JOB.get("seeds") or []
    made: dict[tuple[int, str], MPI.Intracomm | None] = {}
    with open(JOB["out"] if WORLD.rank == 0 else os.devnull, "a", encoding="utf-8", buffering=1) as out:
        for index in range(len(cases) if cases else len(seeds)):
            drawn = None
            if WORLD.rank == 0:
                drawn = cases[index] if cases else generate.generate(seeds[index])
            case = WORLD.bcast(drawn)
            comm = communicator(case, made)
            for arm in JOB["arms"]:
                start = {"start": case.get("id", case["seed"]), "seed": case["seed"], "arm": arm}
                out.write(json.dumps(start) + "\n")
                watchdog.enter(arm, 1.0 if arm == "ours" else 0.25)  # native ends within milliseconds or never
                line = run_arm(case, arm, comm, watchdog) if comm is not None else None
                watchdog.leave()
                if comm is not None:
                    line = comm.bcast(line, root=0)  # rank 0 of the world takes part, perhaps under another number
                if line:
                    out.write(json.dumps(line) + "\n")
        out.write(json.dumps({"end": True}) + "\n")


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # one rank alone would wait for the others in MPI_Finalize for ever
        traceback.print_exc()
        sys.stderr.flush()
        WORLD.Abort(1)
