"""One launch of the differential test: every rank makes the calls of the same list of cases and writes what it saw.

Started by run.py under mpirun as ``worker.py JOB``, where JOB is a JSON file: folder, out (progress lines), cases,
arm, limit_s, library, part (the number of this job in the cases). In the arm "ours" the library is in charge; in
"native" it is not there or, with ``library``, has the hint mpiox_enable=false, which hands every call to the MPI
library. Each rank appends one pickle per case to a file of its own, rank 0 one line to the progress file before each,
so that a crash or a hang costs one case only. Nobody compares here: run.py does, while the next launch runs.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pathlib
import pickle
import sys
import threading
import time
import traceback
from typing import IO, Any

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

JOB = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")) if len(sys.argv) > 1 else {}
if JOB.get("library"):
    import mpiio_ext.stats  # before MPI: this is what puts the library under mpi4py
    from mpiio_ext.errors import MpiioExtError
    from mpiio_ext.subfiles.merge import merge

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from differential.calls import Rank  # noqa: E402
from differential.compare import POISON  # noqa: E402
from differential.outside import parts, storage_fails  # noqa: E402
from differential.ownership import managed_calls  # noqa: E402
from differential.state import Case, initial_file  # noqa: E402
from support import subfiles  # noqa: E402

WORLD = MPI.COMM_WORLD
COUNTERS = (
    "collective_writes",
    "collective_reads",
    "native_calls",
    "direct_calls",
    "individual_calls",
    "rounds",
    "messages",
    "windows_holes",
    "independent_writes",
    "independent_reads",
    "chunks_sieved",
    "chunks_mapped",
    "chunks_listed",
    "locks",
    "nonblocking_calls",
    "delegated_writes",
    "delegated_reads",
    "delegated_flush_barriers",
    "bypass_bytes_written",
    "bypass_bytes_read",
    "device_bytes_written",
    "device_bytes_read",
)
#: Files that were read in other ways than by their format: see `read_otherwise`.
WAYS = ("merge", "mount")


class Watchdog:
    """Ends the whole job when a case takes too long, after saying which one and where every rank stood."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.deadline_s = float("inf")
        self.note = os.open(f"{JOB['out']}.at.{WORLD.rank}", os.O_CREAT | os.O_WRONLY)
        self._where = ""
        threading.Thread(target=self.watch, daemon=True).start()

    @property
    def where(self) -> str:
        """What is being done; a file holds it, too, for those who look after a crash."""
        return self._where

    @where.setter
    def where(self, where: str) -> None:
        self._where = where
        os.pwrite(self.note, where[:200].ljust(200).encode(), 0)

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


class Communicators:
    """The communicators of the cases: the first ranks of the world, perhaps in another order."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, str], MPI.Intracomm | None] = {}

    def of(self, case: Case) -> MPI.Intracomm | None:
        """Return the communicator of a case, None on ranks that take no part."""
        key = (case["ranks"], case["comm"])
        if key not in self.made:
            ranks, rank = case["ranks"], WORLD.rank
            order = {"world": rank, "reversed": ranks - rank, "rotated": (rank + 1) % max(ranks, 1)}[case["comm"]]
            comm: Any = WORLD.Split(0 if rank < ranks else MPI.UNDEFINED, order)
            self.made[key] = None if comm == MPI.COMM_NULL else comm
        return self.made[key]


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


def merged(path: pathlib.Path) -> bytes:
    """Return what `mpiio-ext subfiles merge` makes of a file."""
    target = path.with_name(f"{path.name}.merged")
    merge(path, target, advance=lambda _: lambda *_, **__: None)
    return target.read_bytes()


def read_otherwise(path: pathlib.Path, held: bytes, stats: dict[str, int]) -> list[str]:
    """Read a file that is stored as several after a merge and through the mount; return how that differs."""
    problems = []
    for way in WAYS:
        if (way == "mount" and not JOB["shown"]) or not subfiles.is_index(path):
            continue
        stats[way] += 1
        try:
            found = merged(path) if way == "merge" else pathlib.Path(JOB["shown"], path.name).read_bytes()
        except (MpiioExtError, OSError) as error:
            problems.append(f"{way}: {path.name}: {error}")
            continue
        if found != held:
            first = next((i for i, (a, b) in enumerate(zip(found, held, strict=False)) if a != b), None)
            problems.append(f"{way}: {path.name}: {len(found)} bytes for {len(held)}, the first difference at {first}")
    return problems


def staging_names(stem: str) -> list[str]:
    """Return the names of files that do not have their own names yet."""
    folder, case = os.path.split(stem)
    return [path.name for path in pathlib.Path(folder).glob(f".{case}.*.staging*")]


def left_behind(run: Rank) -> list[str]:
    """Have delegates write what was closed, as an open past them does; return a problem for each name that is left."""
    hints = os.environ.pop("MPIOX_HINTS", None)
    try:  # a case has hints in the environment, of its own, or of an open
        for path in map(run.path, run.names if "mpiox_close" in f"{hints} {run.case}" else ()):
            with contextlib.suppress(MPI.Exception):  # there is no such file, or its storage fails
                MPI.File.Open(MPI.COMM_SELF, path, MPI.MODE_RDONLY).Close()
    finally:
        os.environ.update({} if hints is None else {"MPIOX_HINTS": hints})
    return [f"left: {name}" for name in staging_names(run.stem)]


def run_arm(case: Case, arm: str, comm: MPI.Intracomm, watchdog: Watchdog, own: IO[bytes]) -> None:
    """Run one case in one arm, and write what this rank saw."""
    stem = os.path.join(JOB["folder"], f"{arm}.{case.get('id', case['seed'])}")  # no name of a case before
    several = case.get("subfiles", JOB.get("subfiles"))
    first = parts(case)[JOB["part"]]
    if comm.rank == 0 and first == 0:
        for old in pathlib.Path(JOB["folder"]).glob(f"{arm}.*") if not JOB["jobs"] else ():
            subfiles.remove(old)
        if case["initial"] >= 0 and several:
            subfiles.store(pathlib.Path(f"{stem}.0"), initial_file(case).tobytes(), *several)
        elif case["initial"] >= 0:
            with open(f"{stem}.0", "wb") as file:
                file.write(initial_file(case).tobytes())
                file.flush()
                os.fsync(file.fileno())  # other hosts may have another cache
    comm.Barrier()
    managed = managed_calls(case) if arm == "ours" else [False] * len(case["ops"])
    problems = poison(case, comm) if any(managed) and not storage_fails(case) else []
    started_s = time.perf_counter()
    stats = dict.fromkeys((*COUNTERS, *WAYS, "delegates_killed", "staged"), 0)

    def count(fh: MPI.File) -> None:
        found = mpiio_ext.stats.of(fh)
        for name in COUNTERS:
            stats[name] += getattr(found, name)
        stats["staged"] += len(staging_names(stem))

    def hints(drawn: dict[str, str]) -> dict[str, str]:
        if arm == "ours" or JOB.get("hinted"):
            return drawn
        return {"mpiox_enable": "false"} if JOB["library"] else {}

    run = Rank(case, comm, stem, managed, watchdog, hints)
    run.on_close = count if arm == "ours" else None
    run.steps = slice(first, [*parts(case), len(case["ops"])][JOB["part"] + 1])

    def write(results: list[dict[str, Any]], files: dict[str, bytes | None] | None = None) -> None:
        seen = {
            "id": case.get("id", case["seed"]),
            "arm": arm,
            "rank": comm.rank,
            "results": results,
            "problems": problems,
            "notes": run.notes,
            "stats": stats if arm == "ours" else {},
            "elapsed_s": time.perf_counter() - started_s,
            "files": files,
        }
        pickle.dump(seen, own)
        own.flush()

    run.before_death = write
    results = run.run()
    run.close()
    stats["delegates_killed"] = run.delegates_killed
    comm.Barrier()
    problems += left_behind(run) if comm.rank == 0 and arm == "ours" else []
    files = run.snapshot()
    for name, held in (files or {}).items() if several else ():
        problems += read_otherwise(pathlib.Path(run.path(name)), held, stats) if held is not None else []
    comm.Barrier()  # another rank may be the first of the next case, which removes the files
    write(results, files)


def run_cases(out: IO[str], own: IO[bytes]) -> None:
    """Run all cases."""
    watchdog, communicators = Watchdog(JOB["limit_s"]), Communicators()
    for case in JOB["cases"]:
        comm = communicators.of(case)
        if comm is None:
            continue
        arm = JOB["arm"]
        start = {"start": case.get("id", case["seed"]), "seed": case["seed"], "arm": arm}
        out.write(json.dumps(start) + "\n")
        watchdog.enter(arm, 1.0 if arm == "ours" else 0.25)  # native ends within milliseconds or never
        env = case.get("env", {}) | ({"MPIOX_FAULT": case["fault"]} if "fault" in case else {})
        given = {name: os.environ.pop(name, None) for name in env}
        os.environ.update(env)  # which the library reads when a file is opened
        run_arm(case, arm, comm, watchdog, own)
        for name, value in given.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})
        watchdog.leave()
    out.write(json.dumps({"end": True}) + "\n")


def main() -> None:
    """Run the job.

    As in most programs, errors that belong to no file end it: also those of calls that the library makes for itself.
    """
    faulthandler.enable()
    for comm in (MPI.COMM_WORLD, MPI.COMM_SELF):
        comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)  # mpi4py has them returned
    out = JOB["out"] if WORLD.rank == 0 else os.devnull
    with open(out, "a", encoding="utf-8", buffering=1) as lines, open(f"{JOB['out']}.{WORLD.rank}", "wb") as own:
        run_cases(lines, own)


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # one rank alone would wait for the others in MPI_Finalize for ever
        traceback.print_exc()
        sys.stderr.flush()
        WORLD.Abort(1)
