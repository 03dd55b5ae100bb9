"""One rank of the pool: waits for histories, makes the calls, sends back what it saw. Started by pool.py under mpirun.

``worker.py ADDRESS``: the socket of the pool. A message is a dictionary: ``history``, ``folder``, ``limit_s``; the
answer is the list of this rank's results, one per call. Between histories a rank waits in the socket, not in the MPI
library, so that an idle pool costs nothing. Nobody compares here: oracle.py does.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import pathlib
import sys
import traceback
from multiprocessing.connection import Client
from typing import Any

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

NATIVE = os.environ.get("MPIOX_MODEL_NATIVE") == "1"
if not NATIVE:
    import mpiio_ext.stats  # before MPI: this is what puts the library under mpi4py

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from differential import typetree  # noqa: E402
from model.history import (  # noqa: E402
    ACCESS,
    ALONE,
    BLANK,
    COLLECTIVE,
    MOST_RANKS,
    Bytes,
    History,
    Op,
    View,
    etype_tree,
    groups_of,
    spread,
    turns,
    values,
)

WORLD = MPI.COMM_WORLD
#: What is summed over files and ranks: a launch that is to test delegates must have used them.
COUNTERS = (
    "independent_writes",
    "independent_reads",
    "collective_writes",
    "collective_reads",
    "nonblocking_calls",
    "delegated_writes",
    "delegated_reads",
    "delegated_misses",
    "delegated_messages",
    "bypass_bytes_written",
    "bypass_bytes_read",
    "delegated_flush_barriers",
)
MODES = {
    "rdonly": MPI.MODE_RDONLY,
    "wronly": MPI.MODE_WRONLY,
    "rdwr": MPI.MODE_RDWR,
    "create": MPI.MODE_CREATE,
    "append": MPI.MODE_APPEND,
    "delete": MPI.MODE_DELETE_ON_CLOSE,
}
WHENCE = {"set": MPI.SEEK_SET, "cur": MPI.SEEK_CUR, "end": MPI.SEEK_END}
Result = dict[str, Any] | None


class Communicators:
    """The communicators of all histories, made once: by ranks of the history and kind of open."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, str], Any] = {}
        for ranks in range(1, WORLD.size + 1):
            for kind in ("world", "halves", "low", "high"):
                groups = groups_of(kind, ranks)
                mine = next((g for g, group in enumerate(groups) if WORLD.rank in group), MPI.UNDEFINED)
                self.made[ranks, kind] = WORLD.Split(mine, WORLD.rank)
            self.made[ranks, "self"] = MPI.COMM_SELF if WORLD.rank < ranks else MPI.COMM_NULL

    def of(self, ranks: int, kind: str) -> Any:
        """Return a communicator, COMM_NULL where this rank takes no part."""
        return self.made[ranks, kind]


class Opened:
    """A file that this rank has open."""

    def __init__(self, op: Op, file: MPI.File, group: list[int]) -> None:
        self.op, self.file, self.group = op, file, group
        self.view = View()
        self.writable = "rdonly" not in op["mode"]


class Rank:
    """One rank's run of one history."""

    def __init__(self, history: History, folder: str, comms: Communicators, note: Any) -> None:
        self.history, self.folder, self.comms, self.note = history, folder, comms, note
        self.rank, self.ranks = WORLD.rank, history["ranks"]
        self.comm = comms.of(self.ranks, "world")
        self.opened: dict[int, Opened] = {}
        self.requests: dict[int, tuple[Any, Bytes, Any, Any]] = {}
        self.types: list[MPI.Datatype] = []
        self.kept: dict[str, MPI.Datatype] = {}
        self.counts = dict.fromkeys(COUNTERS, 0)

    def run(self) -> list[Result]:
        """Make all calls and close what is left; the last result is what closing and the statistics gave."""
        results: list[Result] = []
        for index, op in enumerate(self.history["ops"]):
            self.note[self.rank] = index + 1
            try:
                results.append(self.step(index, op))
            except MPI.Exception as error:
                results.append({"error": error.Get_error_string(), "class": error.Get_error_class()})
        self.note[self.rank] = -1
        left: dict[str, Any] = {}
        for number in sorted(self.opened):
            try:
                self.close(number)
            except MPI.Exception as error:
                left = {"error": error.Get_error_string(), "class": error.Get_error_class()}
        for kind in reversed(self.types):
            kind.Free()
        self.note[self.rank] = 0
        return [*results, left | {"stats": self.counts}]

    def close(self, number: int) -> None:
        """Close a file, after a look at its statistics."""
        file = self.opened.pop(number).file
        if not NATIVE:
            found = mpiio_ext.stats.of(file)
            for name in COUNTERS:
                self.counts[name] += getattr(found, name)
        file.Close()

    def step(self, index: int, op: Op) -> Result:
        """Make one call, if this rank takes part."""
        kind = op["op"]
        if kind == "open":
            return self.open(op)
        if kind == "barrier":
            self.comm.Barrier()
            return None
        if kind == "fence":
            return self.fence()
        if kind == "wait":
            return self.wait(op)
        opened = self.opened.get(op["h"])
        if kind in ACCESS and op["how"] == "shared":
            return self.shared(index, op, opened)
        if kind == "race":
            return self.race(index, op, opened)
        if opened is None or ("rank" in op and op["rank"] != self.rank):
            return None
        if kind in ACCESS:
            return self.access(index, op, opened)
        return self.steer(op, opened)

    # ---- calls that move no data ------------------------------------------------------------------------------------

    def open(self, op: Op) -> Result:
        """Open a file."""
        comm = self.comms.of(self.ranks, op["comm"])
        if comm == MPI.COMM_NULL:
            return None
        mode = 0
        for name in op["mode"]:
            mode |= MODES[name]
        info = MPI.Info.Create()
        for name, value in op.get("hints", {}).items():
            info.Set(name, value)
        try:
            file = MPI.File.Open(comm, os.path.join(self.folder, f"f{op['file']}"), mode, info)
        finally:
            info.Free()
        group = next(group for group in groups_of(op["comm"], self.ranks) if self.rank in group)
        self.opened[op["h"]] = Opened(op, file, group)
        return None

    def fence(self) -> Result:
        """Sync, barrier, sync: everything written before is seen by everybody after."""
        problem: Result = None
        for turn in range(2):
            for number in sorted(self.opened):
                if self.opened[number].writable:
                    try:
                        self.opened[number].file.Sync()
                    except MPI.Exception as error:
                        problem = {"error": error.Get_error_string(), "class": error.Get_error_class()}
            if not turn:
                self.comm.Barrier()
        return problem

    def steer(self, op: Op, opened: Opened) -> Result:
        """Make one call on a file that moves no data."""
        file, kind = opened.file, op["op"]
        if kind == "view":
            tree = op["types"][self.rank]
            opened.view = View(op["disp"][self.rank], op["etype"], tree)
            file.Set_view(op["disp"][self.rank], self.datatype(etype_tree(op["etype"])), self.datatype(tree), "native")
        elif kind == "seek":
            file.Seek(op["offset"], WHENCE[op["whence"]])
            return {"position": file.Get_position()}
        elif kind == "sync":
            file.Sync()
        elif kind == "atomicity":
            file.Set_atomicity(op["flag"])
        elif kind == "size":
            file.Set_size(op["bytes"])
        elif kind == "allocate":
            file.Preallocate(op["bytes"])
        elif kind == "ask":
            return {"size": file.Get_size()}
        elif kind == "close":
            self.close(op["h"])
        else:
            raise ValueError(f"unknown call {kind!r}")
        return None

    def datatype(self, tree: typetree.Tree) -> MPI.Datatype:
        """Return the committed datatype of a tree."""
        key = repr(tree)
        if key not in self.kept:
            made = typetree.build(tree, self.types)
            if not made.is_predefined:
                made.Commit()
            self.kept[key] = made
        return self.kept[key]

    # ---- data access ------------------------------------------------------------------------------------------------

    def buffer(self, data: Bytes, mem: list[int]) -> tuple[Bytes, Any, list[Any]]:
        """Return a buffer for data in pieces, where the data lie in it, and the buffer as MPI wants it."""
        buffer, where = spread(data, mem)
        if len(buffer) == len(data):
            return buffer, where, [buffer, len(data), MPI.BYTE]
        piece, gap = mem
        kind = self.datatype(["resized", 0, piece + gap, ["contiguous", piece, ["named", "BYTE"]]])
        return buffer, where, [buffer, len(data) // piece, kind]

    def prepared(self, index: int, op: Op, n: int) -> tuple[Bytes, Any, list[Any]]:
        """Return the buffer of an access of n bytes, filled for a write."""
        data = values(index, self.rank, n) if op["op"] == "write" else np.full(n, BLANK, np.uint8)
        buffer, where, message = self.buffer(data, op.get("mem", [0, 0]))
        buffer[where] = data
        return buffer, where, message

    @staticmethod
    def taken(status: MPI.Status, buffer: Bytes, where: Any, *, read: bool) -> Result:
        """Return what a finished access left."""
        rest = np.ones(len(buffer), bool)
        rest[where] = False
        found: dict[str, Any] = {"n": status.Get_count(MPI.BYTE), "spoilt": bool((buffer[rest] != BLANK).any())}
        if read:
            found["data"] = buffer[where].tobytes()
        return found

    def access(self, index: int, op: Op, opened: Opened) -> Result:
        """Make one data-access call of one rank, of all ranks, or a burst of calls."""
        how = op["how"]
        if how == "burst":
            return self.burst(index, op, opened)
        n = op["n"][self.rank] if how in COLLECTIVE else op["n"]
        buffer, where, message = self.prepared(index, op, n * opened.view.etype)
        position = [op["at"][self.rank] if how == "at_all" else op["at"]] if how in ("at", "iat", "at_all") else []
        suffix = {"at": "_at", "iat": "_at", "own": "", "iown": ""}.get(how, f"_{how}")
        if ALONE.get(how):
            request = getattr(opened.file, f"I{op['op']}{suffix}")(*position, message)
            self.requests[op["req"]] = request, buffer, where, op["op"] == "read"
            return None
        status = MPI.Status()
        getattr(opened.file, f"{op['op'].capitalize()}{suffix}")(*position, message, status)
        return self.taken(status, buffer, where, read=op["op"] == "read")

    def burst(self, index: int, op: Op, opened: Opened) -> Result:
        """Make many small calls."""
        step = op["block"] * opened.view.etype
        buffer, _, _ = self.prepared(index, {**op, "mem": [0, 0]}, op["count"] * step)
        call = opened.file.Write_at if op["op"] == "write" else opened.file.Read_at
        moved, status = 0, MPI.Status()
        for i, at in enumerate(turns(op, opened.group, self.rank)):
            call(at, [buffer[i * step : (i + 1) * step], step, MPI.BYTE], status)
            moved += status.Get_count(MPI.BYTE)
        return {"n": moved, "spoilt": False, **({"data": buffer.tobytes()} if op["op"] == "read" else {})}

    def wait(self, op: Op) -> Result:
        """Complete requests; the result is a list."""
        if op["rank"] != self.rank:
            return None
        chosen = [(name, *self.requests.pop(name)) for name in op["reqs"] if name in self.requests]
        statuses = [MPI.Status() for _ in chosen]
        MPI.Request.Waitall([request for _, request, *_ in chosen], statuses)
        return {
            "done": {
                name: self.taken(status, buffer, where, read=read)
                for (name, _, buffer, where, read), status in zip(chosen, statuses, strict=True)
            }
        }

    def shared(self, index: int, op: Op, opened: Opened | None) -> Result:
        """Use the shared pointer, perhaps several ranks at once."""
        self.comm.Barrier()
        result: Result = None
        if opened is not None and self.rank in op["who"]:
            buffer, where, message = self.prepared(index, op, op["n"] * opened.view.etype)
            status = MPI.Status()
            call = opened.file.Write_shared if op["op"] == "write" else opened.file.Read_shared
            call(message, status)
            result = self.taken(status, buffer, where, read=op["op"] == "read")
        if op["op"] == "write":
            self.fence()
            look = None
            if opened is not None and self.rank == op["who"][0]:
                look = self.look(opened, op["from"], op["n"] * len(op["who"]))
            self.comm.Barrier()
            return {**(result or {}), "look": look} if look is not None else result
        self.comm.Barrier()
        return result

    def race(self, index: int, op: Op, opened: Opened | None) -> Result:
        """Write in the same place as others at the same time, in atomic mode."""
        self.comm.Barrier()
        look = None
        if opened is not None and self.rank in op["who"]:
            data = values(index, self.rank, op["n"] * opened.view.etype)
            opened.file.Write_at(op["at"], [data, len(data), MPI.BYTE])
        self.comm.Barrier()
        if opened is not None and self.rank in opened.group:
            look = self.look(opened, op["at"], op["n"])
        self.comm.Barrier()
        return None if look is None else {"look": look}

    @staticmethod
    def look(opened: Opened, at: int, n: int) -> bytes:
        """Read back n etypes."""
        data = np.full(n * opened.view.etype, BLANK, np.uint8)
        opened.file.Read_at(at, [data, len(data), MPI.BYTE])
        return data.tobytes()


def start(address: str) -> None:
    """Open a file by all ranks: what is started then is there for histories of fewer ranks."""
    mode = MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE
    MPI.File.Open(WORLD, address + ".first", mode).Close()


def main() -> None:
    """Answer messages until the pool hangs up."""
    faulthandler.enable()
    for comm in (MPI.COMM_WORLD, MPI.COMM_SELF):
        comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)  # as in most programs; files return theirs
    comms = Communicators()
    connection = Client(sys.argv[1], "AF_UNIX")
    with open(sys.argv[1] + ".note", "r+b") as held:
        note = np.frombuffer(mmap.mmap(held.fileno(), 8 * MOST_RANKS), np.int64)
    start(sys.argv[1])
    connection.send(WORLD.rank)
    while True:
        try:
            message = connection.recv()
        except EOFError:
            break
        faulthandler.dump_traceback_later(message["limit_s"], exit=True)
        answer = Rank(message["history"], message["folder"], comms, note).run()
        faulthandler.cancel_dump_traceback_later()
        connection.send(answer)
    connection.close()


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # one rank alone would wait for the others in MPI_Finalize for ever
        traceback.print_exc()
        sys.stderr.flush()
        WORLD.Abort(1)
