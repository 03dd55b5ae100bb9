"""One rank's run of one case: the MPI calls themselves. Imported by the workers only, after the library."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from mpi4py import MPI

from differential import classic, outside, typetree
from differential.ownership import is_on
from differential.state import (
    ACCESS,
    ERRORS,
    HOWS,
    Case,
    Handle,
    Memory,
    Op,
    first_open,
    follows,
    initial_buffer,
    is_large,
    memory_of,
    verb_of,
)
from support import pretended_gpu, subfiles

FAMILY = "openmpi" if "Open MPI" in MPI.Get_library_version() else "mpich"
MODES = {
    "rdonly": MPI.MODE_RDONLY,
    "wronly": MPI.MODE_WRONLY,
    "rdwr": MPI.MODE_RDWR,
    "create": MPI.MODE_CREATE,
    "excl": MPI.MODE_EXCL,
    "append": MPI.MODE_APPEND,
    "unique": MPI.MODE_UNIQUE_OPEN,
    "delete": MPI.MODE_DELETE_ON_CLOSE,
    "sequential": MPI.MODE_SEQUENTIAL,
    "none": 0,
}
#: With it most buffers of calls that the library carries out are in its memory.
GPU = pretended_gpu.Gpu() if pretended_gpu.VARIABLE in os.environ else None
WHENCE = {"set": MPI.SEEK_SET, "cur": MPI.SEEK_CUR, "end": MPI.SEEK_END}
#: OMPIO 4.1 hangs in nonblocking reads that meet the end of the file and divides by zero: there in blocking form
BLOCKING = {"iat_all": "at_all", "iall": "all", "iat": "at", "iindividual": "individual", "ishared": "shared"}
STEMS = {"individual": "", "at": "_at", "all": "_all", "at_all": "_at_all", "shared": "_shared", "ordered": "_ordered"}
CLASSES = {getattr(MPI, f"ERR_{name}"): name for name in ERRORS}


def drop_caches(path: pathlib.Path) -> None:
    """Have what this host has cached of a file asked for again; see csrc/core/storage/mpiox_storage_refresh.c."""
    keep_size, libc = 1, ctypes.CDLL(None)
    fd = os.open(path, os.O_RDWR)
    libc.fallocate(fd, keep_size, ctypes.c_long(0), ctypes.c_long(1))
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def told(error: MPI.Exception) -> dict[str, str]:
    """Return what an error says: its class and its text."""
    number = error.Get_error_class()
    return {"class": CLASSES.get(number, str(number)), "error": error.Get_error_string()}


class Clock(Protocol):
    """Somebody who wants to know what is being done."""

    where: str


@dataclass(slots=True, kw_only=True)
class Running:
    """A data access under way (or done): what completes it and where its results go."""

    op: Op
    rank: int
    file: MPI.File
    result: dict[str, Any]
    region: Any
    message: list[Any]
    free: MPI.Datatype | None
    there: int | None = None  # the buffer's address in a GPU's memory
    end: Any = None  # of a split collective
    request: MPI.Request | None = None


class Rank:
    """One rank's run of one case in one arm."""

    def __init__(
        self,
        case: Case,
        comm: MPI.Intracomm,
        stem: str,
        managed: list[bool],
        clock: Clock,
        hints: Callable[[dict[str, str]], dict[str, str]],
    ) -> None:
        self.case, self.comm, self.stem, self.clock = case, comm, stem, clock
        self.managed, self.hints = managed, hints
        self.hazards = set(case.get("hazards", [])) if FAMILY == "openmpi" else set()
        self.handles: dict[int, Handle] = {}
        self.files: dict[int, MPI.File] = {}
        self.running: dict[int, Running] = {}
        self.types: dict[str, MPI.Datatype] = {}
        self.made: list[MPI.Datatype] = []
        self.notes: list[str] = []
        self.names: set[str] = set()
        self.on_close: Any = None
        self.before_death: Callable[[list[dict[str, Any]]], None] = lambda _: None
        self.failing = False
        self.steps = slice(0, None)
        self.delegates_killed = self.reported = 0

    # ---- helpers ------------------------------------------------------------------------------------------------

    def datatype(self, tree: typetree.Tree) -> MPI.Datatype:
        """Return the committed MPI datatype of a tree and check its bounds against the model."""
        if tree[0] == "raw":  # not committed
            return typetree.build(tree[1], self.made)
        key = json.dumps(tree)
        if key not in self.types:
            before = len(self.made)
            made = typetree.build(tree, self.made)
            if not made.is_predefined:
                made.Commit()
            for part, built in zip(typetree.composites(tree), self.made[before:], strict=True):
                kind, there = typetree.model(part), built.Get_extent()
                if kind.size and not kind.ambiguous and there != (kind.lb, kind.extent):
                    self.notes.append(f"model differs from MPI: {json.dumps(part)} {there} {(kind.lb, kind.extent)}")
            self.types[key] = made
        return self.types[key]

    def give_back(self) -> None:
        """Free all datatypes, if the case wants that."""
        if self.case.get("free"):
            for made in reversed(self.made):
                made.Free()
            self.made, self.types = [], {}

    def path(self, name: str) -> str:
        """Return the path of one of the case's files."""
        if name.startswith("./"):
            folder, _, stem = self.stem.rpartition("/")
            return f"{folder}/./{stem}.{name[2:]}"
        return f"{self.stem}.{name}"

    def communicator(self, handle: Handle) -> MPI.Intracomm:
        """Return the communicator that opens a handle; COMM_NULL where the rank takes no part."""
        if handle.op["comm"] == "world":
            return self.comm
        if handle.op["comm"] == "dup":
            twin: MPI.Intracomm = self.comm.Dup()
            return twin
        rank = self.comm.rank
        if handle.op["comm"] == "self":
            return MPI.COMM_SELF
        if handle.op["comm"] == "inter":
            half: Any = self.comm.Split(rank % 2, rank)
            both: Any = half.Create_intercomm(0, self.comm, 1 - rank % 2)
            half.Free()
            return both  # type: ignore[no-any-return]
        color = handle.group.get(rank, MPI.UNDEFINED)
        key = handle.groups[handle.group[rank]].index(rank) if rank in handle.group else 0
        part: Any = self.comm.Split(color, key)
        return part  # type: ignore[no-any-return]

    def snapshot(self) -> dict[str, bytes | None] | None:
        """Return the bytes of all files, on rank 0 only."""
        if self.comm.rank:
            return None
        found: dict[str, bytes | None] = {}
        for name in sorted(self.names):
            path = pathlib.Path(self.path(name))
            if self.case.get("strict") and path.exists():
                drop_caches(path)
            found[name] = subfiles.read(path) if path.exists() else None
        return found

    # ---- the calls ----------------------------------------------------------------------------------------------

    def run(self) -> list[dict[str, Any]]:
        """Make all calls of this job; one result per call."""
        results: list[dict[str, Any]] = []
        if self.steps.start == 0:
            self.open(first_open(self.case))
        start = self.clock.where.split(": ")[0]
        for index, op in list(enumerate(self.case["ops"]))[self.steps]:
            where = f"seed {self.case['seed']} call {index} {op['op']} {op.get('how', '')}"
            self.clock.where = f"{start}: {where}"
            refused = None
            if op["op"] == "kill":
                self.kill(op, results)
                continue
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
        if "but" in op:
            other = op["but"] if op["other"][self.comm.rank] else {k: v for k, v in op.items() if k != "but"}
            return self.step(index, other | ({"fails": op["fails"]} if "fails" in op else {}))
        if "lost" in op:
            return self.lose(index, {k: v for k, v in op.items() if k != "lost"}, *op["lost"])
        if "fails" in op:
            return self.fail(index, {k: v for k, v in op.items() if k not in ("fails", "failing")})
        kind, number = op["op"], op.get("h", 0)
        if kind == "open":
            return self.open(op)
        if kind == "sync":
            self.sync()
        elif kind == "fence":
            self.comm.Barrier()
        elif kind == "delete":
            self.delete(str(op["file"]))
        elif kind == "wait":
            self.wait(index, op)
        elif kind == "posix":
            return self.posix(index, op)
        elif kind == "limit":
            outside.limit(op["bytes"])
        elif kind == "job":
            pass
        elif number not in self.handles:
            return {"error": "call on a file that could not be opened"}
        elif self.comm.rank not in self.handles[number].group:
            pass
        elif kind in ACCESS:
            return self.access(index, op)
        elif kind == "query":
            return self.query(op)
        else:
            self.steer(op, self.handles[number], self.files[number])
        if kind in ACCESS and op.get("snap"):
            return self.snapped({})
        return {}

    def posix(self, index: int, op: Op) -> dict[str, Any]:
        """Have rank 0 make a POSIX call."""
        self.names.update((op["file"], op.get("to", op["file"])))
        self.comm.Barrier()
        found = None
        if self.comm.rank == 0:
            path, to = (pathlib.Path(self.path(name)) for name in (op["file"], op.get("to", op["file"])))
            found = outside.posix(self.case["seed"], index, op, path, to)
        self.comm.Barrier()
        return {"posix": found}

    def kill(self, op: Op, results: list[dict[str, Any]]) -> None:
        """Kill processes; a rank's own results are written before."""
        results.append({})
        self.comm.Barrier()
        if op["who"] == "delegates":
            self.delegates_killed += outside.kill_delegates() if self.comm.rank == 0 else 0
            self.comm.Barrier()
            return
        if self.on_close is not None:
            for fh in self.files.values():
                self.on_close(fh)
        self.before_death(results)
        self.comm.Barrier()
        if op["who"] == "launcher" and self.comm.rank == 0:
            outside.kill_launcher()
        elif op["who"] == "ranks" and op["ranks"][self.comm.rank]:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            signal.pause()

    def fail(self, index: int, op: Op) -> dict[str, Any]:
        """Make a call that must give an error, perhaps on a handle that is closed."""
        number = op.get("h", 0)
        closed, self.failing = number not in self.files and op["op"] != "open", True
        if closed:
            self.files[number] = MPI.File(MPI.FILE_NULL)
            self.handles[number] = Handle(first_open(self.case), self.case["ranks"], 0)
        try:
            return self.step(index, op)
        except MPI.Exception as error:
            return told(error)
        finally:
            self.failing, self.reported = False, 0
            if closed:
                self.files.pop(number, None)
                self.handles.pop(number, None)

    def lose(self, index: int, op: Op, name: str, number: int) -> dict[str, Any]:
        """Make a call while a call of the MPI library by this one fails."""
        loaded = ctypes.CDLL(None)  # with undefine.c
        loaded.undefine_arm(name.encode(), number)
        try:
            result = self.step(index, op)
            calls = {each: loaded.undefine_calls(each.encode()) for each in outside.LOSABLE}
            return result | {"lost": loaded.undefine_done() == 1, "calls": calls}
        finally:
            loaded.undefine_arm(b"", 0)

    def snapped(self, result: dict[str, Any]) -> dict[str, Any]:
        """Add to a result what the files hold when all ranks are done."""
        self.sync()
        result["snap"] = self.snapshot()
        self.comm.Barrier()
        return result

    def open(self, op: Op) -> dict[str, Any]:
        """Open a file."""
        handle = Handle(op, self.case["ranks"], 0)
        self.names.update(handle.files)
        comm = self.communicator(handle)
        hints = self.hints(op["hints"] if "hints" in op else self.case["hints"])
        mode = 0
        for name in op["mode"]:
            mode |= MODES[name]
        problem = None
        if comm != MPI.COMM_NULL:
            info = MPI.Info.Create()
            for name, value in hints.items():
                info.Set(name, value)
            name = handle.files[0] if op["comm"] == "inter" else handle.file_of(self.comm.rank)
            try:
                self.files[op["h"]] = classic.open_file(comm, None if name == "null" else self.path(name), mode, info)
            except MPI.Exception as error:
                problem = told(error)
            info.Free()
            if op["comm"] not in ("world", "self"):
                comm.Free()
        if "append" in op["mode"] and problem is None:  # no group's file may have grown by another group's next call
            self.comm.Barrier()
        if problem is None:
            self.handles[op["h"]] = handle
        return {"opened": "no member" if comm == MPI.COMM_NULL else problem and problem["class"]} | (problem or {})

    def delete(self, name: str) -> None:
        """Have rank 0 delete a file; its error is everybody's."""
        code = MPI.SUCCESS
        if self.comm.rank == 0:
            try:
                MPI.File.Delete(self.path(name))
            except MPI.Exception as error:
                code = error.Get_error_class()
        code = self.comm.bcast(code)
        if code != MPI.SUCCESS:
            raise MPI.Exception(code)

    def sync(self) -> None:
        """Make all data visible to everybody: sync, barrier, sync. A rank that fails takes part in all of it."""
        failed = None
        for turn in range(2):
            for number, fh in sorted(self.files.items()):
                if self.handles[number].writable:
                    try:
                        fh.Sync()
                    except MPI.Exception as error:
                        failed = error
            if not turn:
                self.comm.Barrier()
        if failed:
            raise failed

    def steer(self, op: Op, handle: Handle, fh: MPI.File) -> None:
        """Make one call that moves no data."""
        rank, kind = self.comm.rank, op["op"]
        if kind == "view":
            handle.tracks[rank].apply(op, rank)
            rep = op.get("rep", "native")
            if FAMILY == "openmpi" and rep == "internal":  # has none; its form is its own business everywhere
                rep = "native"
            kinds = [typetree.model(op["ftype"][r]) for r in handle.groups[handle.group[rank]]]
            foreign = FAMILY == "openmpi" and not self.failing and "views" not in self.case
            if foreign and not all(kind.is_file_legal(write=True) for kind in kinds):
                raise MPI.Exception(MPI.ERR_TYPE)  # OMPIO says so where bytes repeat; ranks without would wait for ever
            fh.Set_view(op["disp"][rank], self.datatype(op["etype"]), self.datatype(op["ftype"][rank]), rep)
            self.give_back()
        elif kind == "seek":
            fh.Seek(op["offset"][rank], WHENCE[op["whence"]])
        elif kind == "seek_shared":
            fh.Seek_shared(op["offset"], WHENCE[op["whence"]])
        elif kind == "atomicity":
            fh.Set_atomicity(op["flag"])
        elif kind == "size":
            fh.Set_size(op["bytes"])
        elif kind == "preallocate":
            ours = self.on_close is not None and is_on(
                handle.op["hints"] if "hints" in handle.op else self.case["hints"]
            )
            if FAMILY == "openmpi" and not ours:  # OMPIO's loses count of its ranks: errors on some, a hang of others
                fh.Set_size(max(op["bytes"], fh.Get_size()))
            else:
                fh.Preallocate(op["bytes"])
        elif kind == "close":
            self.close_one(op["h"])
        else:
            raise ValueError(f"unknown call {kind!r}")

    def query(self, op: Op) -> dict[str, Any]:
        """Ask a handle about itself."""
        fh = self.files[op.get("h", 0)]
        disp, etype, filetype, rep = fh.Get_view()
        answer = {
            "position": fh.Get_position(),
            "size": fh.Get_size(),
            "atomicity": fh.Get_atomicity(),
            "amode": sorted(name for name, bit in MODES.items() if fh.Get_amode() & bit),
            "disp": disp,
            "rep": "native" if rep == "internal" else rep,
            "etype": [etype.Get_size(), etype.Get_extent()[1]],
            "filetype": [filetype.Get_size(), filetype.Get_extent()[1]],
        }
        if filetype.Get_size():  # ROMIO divides by it
            answer["byte_offset"] = fh.Get_byte_offset(fh.Get_position())
        for kind in (etype, filetype):
            if not kind.is_predefined:
                kind.Free()
        if op.get("shared"):
            answer["shared"] = fh.Get_position_shared()
        return {"query": answer}

    # ---- data access --------------------------------------------------------------------------------------------

    def access(self, index: int, op: Op) -> dict[str, Any]:
        """Make one data-access call, or start it."""
        rank, how = self.comm.rank, HOWS[op["how"]]
        fh, who = self.files[op.get("h", 0)], op.get("who")
        result: dict[str, Any] = {}
        if index in self.hazards and not self.managed[index] and verb_of(op, rank) == "read":
            result = self.skip(op, fh)
        elif how.everybody or who is None or who[rank]:
            try:
                result = self.transfer(index, op, fh)
            except MPI.Exception as error:
                result = told(error) | ({"nbytes": self.reported} if self.failing else {})
        return self.snapped(result) if op.get("snap") else result

    def skip(self, op: Op, fh: MPI.File) -> dict[str, Any]:
        """Move the file pointers as the call would have done."""
        handle, rank = self.handles[op.get("h", 0)], self.comm.rank
        pointer = HOWS[op["how"]].pointer
        units = [
            len(memory_of(op, r).offsets) // handle.tracks[rank].view.etype.size for r in range(self.case["ranks"])
        ]
        who = op.get("who") or [True] * len(units)
        active = [HOWS[op["how"]].everybody or who[r] for r in range(len(units))]
        if pointer == "own" and active[rank]:
            fh.Seek(units[rank], MPI.SEEK_CUR)
        elif pointer in ("shared", "ordered"):
            self.comm.Barrier()
            members = handle.groups[handle.group[rank]]
            fh.Seek_shared(sum(units[r] for r in members if active[r]), MPI.SEEK_CUR)
            self.comm.Barrier()
        return {"skipped": True}

    def target(self, op: Op, rank: int, fh: MPI.File) -> Any:
        """Return the file offsets of a write whose data follow the offset, else None."""
        track = self.handles[op.get("h", 0)].tracks[rank]
        if verb_of(op, rank) != "write" or not follows(self.case, op, track.view.rep):
            return None
        start = op["at"][rank] if "at" in op else fh.Get_position()
        return track.targets(start, memory_of(op, rank))

    def transfer(self, index: int, op: Op, fh: MPI.File) -> dict[str, Any]:
        """Make the buffer and the call."""
        rank = self.comm.rank
        memory = memory_of(op, rank)
        data = initial_buffer(self.case, index, rank, memory, self.target(op, rank, fh))
        shift = (self.case["seed"] + index) % 8
        region = np.empty(len(data) + 8, np.uint8)[shift : shift + len(data)]
        region[:] = data
        there = GPU.place(region) if GPU and self.managed[index] and (self.case["seed"] + index + rank) % 4 else None
        address = (region.ctypes.data if there is None else there) + memory.origin
        datatype, count, free = self.datatype(op["mem"][rank]), op["count"][rank], None
        bottom, large = op["bottom"][rank], is_large(op, rank)
        if FAMILY == "openmpi" and not self.managed[index] and not len(memory.offsets) and count >= 0:
            datatype, count, bottom = MPI.BYTE, 0, False  # OMPIO divides by the size of the type
        null = not len(memory.offsets) and not bottom and (self.case["seed"] + index + rank) % 2
        buffer: Any = MPI.buffer.fromaddress(0, 0) if null else MPI.buffer.fromaddress(address, max(memory.hi, 1))
        if bottom:
            free = datatype.Create_hindexed([count], [address]) if large else classic.hindexed(count, address, datatype)
            free.Commit()
            buffer, datatype, count = MPI.BOTTOM, free, 1
        running = Running(
            op=op,
            rank=rank,
            file=fh,
            result={},
            region=region,
            message=[buffer, count, datatype],
            free=free,
            there=there,
        )
        status = MPI.Status()
        if "threads" in op:
            return self.by_threads(running, memory)
        try:
            self.call(running, status, self.managed[index])
        except MPI.Exception:
            self.reported = classic.count(status, MPI.BYTE)
            raise
        self.give_back()
        sequential = "sequential" in self.handles[op.get("h", 0)].op["mode"]
        if not sequential and (not HOWS[op["how"]].split or "req" not in op):
            running.result["position"] = fh.Get_position()
        if running.request is None and running.end is None:
            self.finish(running, status)
        else:
            self.running[op["req"]] = running
        return running.result

    def call(self, running: Running, status: MPI.Status, managed: bool) -> None:
        """Make the MPI call itself; what it leaves open is entered in ``running``."""
        op, fh, how = running.op, running.file, running.op["how"]
        if FAMILY == "openmpi" and not managed and not self.failing:
            how = BLOCKING.get(how, how)
        verb, large = verb_of(op, running.rank), is_large(op, running.rank)
        at = [op["at"][running.rank]] if "at" in op else []

        def make(name: str, *last: MPI.Status | MPI.Request) -> Any:
            """Call MPI_File_NAME, or its large-count form; a request comes back."""
            if large:
                statuses = [value for value in last if isinstance(value, MPI.Status)]
                return getattr(fh, name.capitalize())(*at, running.message, *statuses)
            classic.access(fh, name, at, running.message, last[0] if last else None)
            return last[0] if last else None

        if HOWS[how].split:
            stem = verb + STEMS[how.removesuffix("_split")]
            make(f"{stem}_begin")
            running.end = getattr(fh, f"{stem.capitalize()}_end")
            if "req" not in op:
                running.end(running.message, status)
                running.end = None
        elif HOWS[how].nonblocking:
            request = make(f"i{verb}{STEMS[how[1:]]}", MPI.Request())
            if "req" in op:
                running.request = request
            else:
                request.Wait(status)
        else:
            make(verb + STEMS[how], status)

    def by_threads(self, running: Running, memory: Memory) -> dict[str, Any]:
        """Make an access by threads at the same time: each moves as many elements of the buffer, one after another."""
        op, rank, (buffer, count, datatype) = running.op, running.rank, running.message
        share, extent = count // op["threads"], memory.type.extent
        etypes = share * memory.type.size // self.handles[op.get("h", 0)].tracks[rank].view.etype.size
        parts, errors = [], list[MPI.Exception]()
        for number in range(op["threads"]):
            own = MPI.buffer.fromaddress(buffer.address + number * share * extent, 0)
            at = [place + number * etypes for place in op["at"]]
            part = Running(
                op=op | {"at": at},
                rank=rank,
                file=running.file,
                result={},
                region=running.region,
                message=[own, share, datatype],
                free=None,
            )
            parts.append((part, MPI.Status()))

        def make(part: Running, status: MPI.Status) -> None:
            try:
                self.call(part, status, managed=True)
            except MPI.Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=make, args=part) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        parts[-1][0].there = running.there
        for part, status in parts:
            self.finish(part, status)
        sums = {name: sum(part.result[name] or 0 for part, _ in parts) for name in ("nbytes", "elements", "count")}
        elements = None if parts[0][0].result["elements"] is None else sums["elements"]
        return parts[-1][0].result | sums | {"elements": elements, "position": running.file.Get_position()}

    def finish(self, running: Running, status: MPI.Status) -> None:
        """Take the results of a call that is complete."""
        tree = running.op["mem"][running.rank]
        if GPU and running.there is not None:
            running.region[:] = GPU.get(running.there, len(running.region))
            GPU.free(running.there)
        count, elements = classic.count, classic.elements
        if is_large(running.op, running.rank):
            count, elements = MPI.Status.Get_count, MPI.Status.Get_elements
        running.result |= {
            "buffer": running.region.tobytes(),
            "nbytes": count(status, MPI.BYTE),
            "elements": elements(status, self.datatype(tree)) if typetree.countable(tree, FAMILY) else None,
            "count": count(status, self.datatype(tree)),
            "undefined": MPI.UNDEFINED,
        }
        if running.free is not None:
            running.free.Free()

    def wait(self, index: int, op: Op) -> None:
        """Complete requests and split collectives, in the style that the call asks for."""
        chosen = [self.running.pop(name) for name in op["reqs"] if name in self.running]
        for running in [r for r in chosen if r.end is not None]:
            status = MPI.Status()
            try:
                running.end(running.message, status)
                if HOWS[running.op["how"]].pointer == "own":
                    running.result["position"] = running.file.Get_position()
                self.finish(running, status)
            except MPI.Exception as error:
                running.result["error"] = error.Get_error_string()
        left = [r for r in chosen if r.request is not None]
        random.Random(f"{self.case['seed']} {index} {self.comm.rank}").shuffle(left)
        collective = sum(HOWS[r.op["how"]].everybody for r in left) > 1
        if collective and op["style"] in ("wait", "test"):  # one after the other only in an order that all ranks share
            left.sort(key=lambda running: int(running.op["req"]))
        try:
            self.complete(left, op["style"])
        except MPI.Exception as error:
            for running in left:
                running.result.setdefault("error", error.Get_error_string())

    def complete(self, left: list[Running], style: str) -> None:
        """Complete requests."""
        requests: Any = [running.request for running in left]
        done: dict[int, MPI.Status] = {}
        if style in ("wait", "test"):
            for i, request in enumerate(requests):
                status = done[i] = MPI.Status()
                if style == "wait":
                    request.Wait(status)
                while style == "test" and not request.Test(status):
                    os.sched_yield()
        elif style in ("waitall", "testall"):
            statuses = [MPI.Status() for _ in requests]
            if style == "waitall":
                MPI.Request.Waitall(requests, statuses)
            while style == "testall" and not MPI.Request.Testall(requests, statuses):
                os.sched_yield()
            done = dict(enumerate(statuses))
        while len(done) < len(requests):
            self.some(requests, style, done)
        for i, running in enumerate(left):
            self.finish(running, done[i])

    @staticmethod
    def some(requests: Any, style: str, done: dict[int, MPI.Status]) -> None:
        """Complete at least one request, or look once."""
        if style in ("waitany", "testany"):
            status = MPI.Status()
            if style == "waitany":
                index = MPI.Request.Waitany(requests, status)
            else:
                index = MPI.Request.Testany(requests, status)[0]
            if index != MPI.UNDEFINED:
                done[index] = status
        else:
            statuses = [MPI.Status() for _ in requests]
            act = MPI.Request.Waitsome if style == "waitsome" else MPI.Request.Testsome
            done.update(zip(act(requests, statuses) or [], statuses, strict=False))
        os.sched_yield()

    # ---- the end ------------------------------------------------------------------------------------------------

    def close_one(self, number: int) -> None:
        """Close one file."""
        fh = self.files.pop(number)
        del self.handles[number]
        if self.on_close is not None and fh != MPI.FILE_NULL:
            self.on_close(fh)
        fh.Close()

    def close(self) -> None:
        """Complete what is left (after a refused view), close the files and free the types."""
        self.wait(0, {"reqs": sorted(self.running), "style": "wait"})
        for number in sorted(self.files):
            self.close_one(number)
        for made in reversed(self.made):
            made.Free()
