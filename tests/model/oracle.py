"""The model of a whole history: which calls are legal, and whether what the ranks saw is allowed.

:class:`Oracle` applies the calls of a history one after the other to files (consistency.py), views, file pointers and
requests. ``apply`` raises :class:`Illegal` and changes nothing where a call would make the program erroneous; the
generator then drops the call or puts a fence before it. With the results of the ranks it judges them as well.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from differential.typetree import Offsets
from model.consistency import MOST_BYTES, File, meet
from model.handles import Handle, Illegal, Request
from model.history import ACCESS, ALONE, COLLECTIVE, Bytes, History, Op, View, initial, turns, values
from model.judge import Check, Judge, Question, Results

MOST_AT_ONCE = 4  # ranks whose order in one call is open: all orders are tried


class Oracle:
    """All ranks and files of one history."""

    def __init__(self, history: History, results: Results | None = None) -> None:
        self.ranks: int = history["ranks"]
        self.files = [File(initial(i, n), exists=n >= 0) for i, n in enumerate(history["files"])]
        self.handles: dict[int, Handle] = {}
        self.requests: dict[int, Request] = {}
        self.openings = 0
        self.index = 0
        self.judge = Judge(results) if results is not None else None

    def run(self, ops: list[Op]) -> None:
        """Apply all calls, then what every rank does at the end: close what is open."""
        for op in ops:
            self.apply(op)
        if self.requests:
            raise Illegal("requests are left")
        for number in sorted(self.handles):
            self.close(number)
        self.barrier()
        if self.judge is not None:
            self.judge.settle(everything=True)

    def apply(self, op: Op) -> None:
        """Apply one call."""
        kind = op["op"]
        if kind in ("open", "barrier", "fence", "wait"):
            getattr(self, kind)(*[op] if kind in ("open", "wait") else [])
        else:
            handle = self.handles.get(op["h"])
            if handle is None:
                raise Illegal("no such file")
            if kind in ACCESS:
                self.access(op, handle)
            else:
                getattr(self, kind)(op, handle)
        if self.judge is not None:
            self.errors(op)
        self.index += 1

    def errors(self, op: Op) -> None:
        """Report the calls that failed."""
        assert self.judge is not None
        for rank, results in enumerate(self.judge.results):
            result = results[self.index]
            if result is not None and "error" in result:
                self.judge.problems.append(f"error: {self.name(op, rank)}: {result['error']}")

    def name(self, op: Op, rank: int) -> str:
        """Return how messages call a rank's part in a call."""
        return f"call {self.index} ({op['op']} {op.get('how', '')}) rank {rank}".replace(" )", ")")

    def result(self, rank: int) -> dict[str, Any] | None:
        """Return what a rank saw in the present call."""
        return None if self.judge is None else self.judge.results[rank][self.index]

    def file(self, handle: Handle) -> File:
        """Return the file of a handle."""
        return self.files[handle.op["file"]]

    def others(self, file: File, but: Handle | None = None) -> list[Handle]:
        """Return the handles of a file."""
        return [handle for handle in self.handles.values() if handle is not but and self.file(handle) is file]

    # ---- calls that move no data ------------------------------------------------------------------------------------

    def idle(self, handles: list[int] | None = None) -> None:
        """Refuse what may not be called while requests are under way."""
        if any(handles is None or request.h in handles for request in self.requests.values()):
            raise Illegal("requests are under way")

    def clean(self, file: File) -> None:
        """Refuse what needs everybody to have seen everything."""
        if file.busy:
            raise Illegal("accesses without a fence", fence=True)

    def open(self, op: Op) -> None:
        """Open a file."""
        handle, file, mode = Handle(op, self.ranks, self.openings), self.files[op["file"]], op["mode"]
        others = self.others(file)
        if op["h"] in self.handles or len(self.handles) >= 4:
            raise Illegal("handle is in use")
        if not file.exists and ("create" not in mode or file.busy):
            raise Illegal("no such file", fence=file.busy)
        if file.is_new and "create" not in mode:
            raise Illegal("another opening may not have made it yet", fence=True)
        if "delete" in mode and (others or len(handle.groups) > 1):
            raise Illegal("file is in use")
        if any("delete" in other.op["mode"] for other in others):
            raise Illegal("file will be deleted")
        if "append" in mode:
            self.clean(file)
            if len(handle.groups) > 1:
                raise Illegal("an opening may write before another begins")
        file.is_new = file.is_new or not file.exists
        file.exists = True
        for opening in handle.openings:
            file.openings.add(opening)
            file.sync(opening)
        self.openings += len(handle.groups)
        if "append" in mode:
            handle.own = dict.fromkeys(handle.group, len(file.data))
            handle.shared = [len(file.data)] * len(handle.groups)
            file.ended |= {handle.agent(rank) for rank in handle.group}
        self.handles[op["h"]] = handle

    def close(self, op: Op | int, _: Handle | None = None) -> None:
        """Close a handle."""
        number = op if isinstance(op, int) else op["h"]
        self.idle([number])
        handle = self.handles[number]
        file = self.file(handle)
        gone = "delete" in handle.op["mode"]
        for opening in handle.openings:
            file.sync(opening)
            file.openings.discard(opening)
        del self.handles[number]
        if gone:
            fresh = File(np.zeros(0, np.uint8), exists=False)
            fresh.resized_by = -1  # until everybody knows
            self.files[handle.op["file"]] = fresh

    def barrier(self) -> None:
        """All ranks meet."""
        if self.judge is not None:
            self.judge.settle(everything=False)
        for file in self.files:
            if file.resized_by == -1:
                file.resized_by = None
            file.is_new = False
            file.barrier()

    def fence(self) -> None:
        """Sync, barrier, sync on every handle."""
        self.idle()
        for turn in range(2):
            for handle in self.handles.values():
                for opening in handle.openings:
                    self.file(handle).sync(opening)
            if not turn:
                self.barrier()
        for file in self.files:
            file.settle()
            file.resized_by = None

    def wait(self, op: Op) -> None:
        """Complete requests."""
        chosen = [self.requests.get(number) for number in op["reqs"]]
        if not chosen or any(request is None or request.rank != op["rank"] for request in chosen):
            raise Illegal("no such request")
        for request in chosen:
            assert request is not None
            del self.requests[request.number]
            handle = self.handles[request.h]
            if request.reading is not None:
                request.reading.done = True
            for entry in self.file(handle).entries if request.write else []:
                if entry.agent == handle.agent(request.rank) and entry.at is request.at:
                    entry.done = True
            found = ((self.result(op["rank"]) or {}).get("done") or {}).get(request.number)
            if self.judge is None:
                continue
            if found is None:
                self.judge.problems.append(f"wait: {self.name(op, op['rank'])}: request {request.number} is not done")
            elif request.write:
                self.written(self.name(op, op["rank"]), found, len(request.at))
            for check in self.judge.checks:
                if check.reading is request.reading:
                    check.result = found

    def view(self, op: Op, handle: Handle) -> None:
        """Set the views of a handle."""
        self.idle([op["h"]])
        for rank in handle.group:
            handle.views[rank] = View(op["disp"][rank], op["etype"], op["types"][rank])
            handle.own[rank] = 0
        handle.shared = [0] * len(handle.groups)
        handle.same_view = len({(op["disp"][rank], repr(op["types"][rank])) for rank in handle.group}) == 1

    def seek(self, op: Op, handle: Handle) -> None:
        """Move an individual pointer."""
        rank = op["rank"]
        if rank not in handle.group:
            raise Illegal("not open here")
        view, base = handle.views[rank], handle.own[rank]
        if op["whence"] == "end":
            file = self.file(handle)
            self.clean(file)
            size = len(file.data) - view.displacement
            if not view.dense or size < 0 or size % view.etype:
                raise Illegal("end of the file inside a hole or an etype")
            file.ended.add(handle.agent(rank))
            base = size // view.etype
        position = op["offset"] + (0 if op["whence"] == "set" else base)
        if position < 0:
            raise Illegal("negative offset")
        handle.own[rank] = position
        if self.judge is not None and (self.result(rank) or {}).get("position", position) != position:
            self.judge.problems.append(
                f"position: {self.name(op, rank)}: {(self.result(rank) or {})['position']}, expected {position}"
            )

    def sync(self, op: Op, handle: Handle) -> None:
        """MPI_File_sync."""
        self.idle([op["h"]])
        if not handle.writable:
            raise Illegal("MPI libraries refuse to sync what was opened for reading only")
        for opening in handle.openings:
            self.file(handle).sync(opening)

    def atomicity(self, op: Op, handle: Handle) -> None:
        """Switch atomic mode."""
        self.idle([op["h"]])
        self.clean(self.file(handle))
        handle.atomic = op["flag"]

    def resize(self, op: Op, handle: Handle, *, shrink: bool) -> None:
        """Set the size, or make sure of it."""
        self.idle()
        file = self.file(handle)
        self.clean(file)
        if not handle.writable or len(handle.groups) > 1:
            raise Illegal("not by several openings at once")
        if op["bytes"] > MOST_BYTES:
            raise Illegal("too large")
        file.resize(op["bytes"], opening=handle.first, shrink=shrink)

    def size(self, op: Op, handle: Handle) -> None:
        """MPI_File_set_size."""
        self.resize(op, handle, shrink=True)

    def allocate(self, op: Op, handle: Handle) -> None:
        """MPI_File_preallocate."""
        self.resize(op, handle, shrink=False)

    def ask(self, op: Op, handle: Handle) -> None:
        """MPI_File_get_size."""
        if op["rank"] not in handle.group:
            raise Illegal("not open here")
        self.may_use(handle, op["rank"])
        sizing = self.file(handle).ask(handle.agent(op["rank"]))
        if self.judge is not None:
            self.judge.questions.append(Question(self.name(op, op["rank"]), sizing, self.result(op["rank"])))

    # ---- data access ------------------------------------------------------------------------------------------------

    def may_use(self, handle: Handle, rank: int) -> None:
        """Refuse an access while another opening has changed the size and nobody has synced."""
        file = self.file(handle)
        if file.resized_by not in (None, handle.agent(rank)[0]):
            raise Illegal("another opening has changed the size", fence=True)

    def access(self, op: Op, handle: Handle) -> None:
        """Apply one data-access call."""
        if not (handle.writable if op["op"] == "write" else handle.readable):
            raise Illegal("not allowed by the mode")
        if op["how"] == "shared":
            self.shared_access(op, handle)
            return
        plans: dict[int, Offsets] = {}
        for rank in [op["rank"]] if op["how"] in ALONE else handle.group:
            if rank not in handle.group:
                raise Illegal("not open here")
            self.may_use(handle, rank)
            plans[rank] = self.target(op, handle, rank)
            self.apart(op, handle, rank, plans[rank])
        if ALONE.get(op["how"]) and op["req"] in self.requests:
            raise Illegal("request is in use")
        for rank, at in plans.items():
            if op["how"] in ("own", "iown", "all"):
                handle.own[rank] += op["n"] if op["how"] in ALONE else op["n"][rank]
            self.move(op, handle, rank, at)

    def target(self, op: Op, handle: Handle, rank: int) -> Offsets:
        """Return the file offsets of a rank's part in a call."""
        view, how = handle.views[rank], op["how"]
        if how == "burst":
            group = handle.groups[handle.group[rank]]
            starts = list(turns(op, group, rank))
            at = np.concatenate([view.offsets(start, op["block"]) for start in starts])
        else:
            n = op["n"][rank] if how in COLLECTIVE else op["n"]
            start = {"at": op.get("at"), "iat": op.get("at")}.get(how, handle.own[rank])
            at = view.offsets(op["at"][rank] if how == "at_all" else start, n)
        if len(at) and int(at[-1]) >= MOST_BYTES:
            raise Illegal("too far out")
        file = self.file(handle)
        if op["op"] == "write" and len(at) and int(at[-1]) >= len(file.data) and file.ended - {handle.agent(rank)}:
            raise Illegal("another rank has gone to the end of the file", fence=True)
        return at

    def apart(self, op: Op, handle: Handle, rank: int, at: Offsets) -> None:
        """Refuse a conflict with a call that the same rank has under way: nothing would order the two."""
        file = self.file(handle)
        for request in self.requests.values():
            other = self.handles[request.h]
            if request.rank != rank or self.file(other) is not file or not (request.write or op["op"] == "write"):
                continue
            if meet(request.at, at) is not None:
                raise Illegal("conflict with a request under way")
            if len(at) and len(request.at) and max(int(at[-1]), int(request.at[-1])) >= len(file.data):
                raise Illegal("the end of the file is open")

    def move(self, op: Op, handle: Handle, rank: int, at: Offsets) -> None:
        """Move the data of one rank."""
        file, agent, later = self.file(handle), handle.agent(rank), ALONE.get(op["how"], False)
        result = self.result(rank)
        if op["op"] == "write":
            file.write(agent, at, values(self.index, rank, len(at)), atomic=handle.atomic, done=not later)
            if self.judge is not None and not later:
                self.written(self.name(op, rank), result, len(at))
        reading = file.read(agent, at, done=not later) if op["op"] == "read" else None
        if self.judge is not None and reading is not None:
            if not later and result is None:
                self.judge.problems.append(f"lost: {self.name(op, rank)}: no result")
            reading.several_calls = op["how"] == "burst"
            self.judge.checks.append(Check(self.name(op, rank), file, reading, result))
        if later:
            self.requests[op["req"]] = Request(op["req"], op["h"], rank, op["op"] == "write", at, reading)

    def written(self, name: str, result: dict[str, Any] | None, n: int) -> None:
        """Judge what the status of a write says."""
        assert self.judge is not None
        if result is None:
            self.judge.problems.append(f"lost: {name}: no result")
        elif "error" not in result and (result["n"] != n or result["spoilt"]):
            self.judge.problems.append(f"status: {name}: {result['n']} bytes were written, expected {n}")

    def shared_access(self, op: Op, handle: Handle) -> None:
        """Use the shared pointer: the order of the ranks is open."""
        who, file = op["who"], self.file(handle)
        if not who or len(who) > MOST_AT_ONCE or len({handle.group.get(rank, -1) for rank in who}) > 1:
            raise Illegal("not by these ranks")
        if who[0] not in handle.group or not handle.same_view or not op["n"]:
            raise Illegal("shared pointer with different views")
        self.idle()
        self.clean(file)
        g, view = handle.group[who[0]], handle.views[who[0]]
        start = op["from"] = handle.shared[g]  # the worker looks there
        at = [view.offsets(start + i * op["n"], op["n"]) for i in range(len(who))]
        if int(at[-1][-1]) >= MOST_BYTES or (op["op"] == "write" and not handle.readable):
            raise Illegal("too far out, or nobody may look")
        handle.shared[g] = start + len(who) * op["n"]
        data = [values(self.index, rank, len(at[0])) for rank in who]
        if op["op"] == "write":
            self.fence()
            self.adopt_order(op, handle, at, data)
            self.fence()
        else:
            self.barrier()
            if self.judge is not None:
                self.read_shared(op, file, at)

    def adopt_order(self, op: Op, handle: Handle, at: list[Offsets], data: list[Bytes]) -> None:
        """Find the order in which the ranks have written, and go on from there."""
        who, everywhere = op["who"], np.concatenate(at)
        order: tuple[int, ...] = tuple(range(len(who)))
        if self.judge is not None:
            for i, rank in enumerate(who):
                self.written(self.name(op, rank), self.result(rank), len(data[i]))
            seen = (self.result(who[0]) or {}).get("look", b"")
            for trial in itertools.permutations(range(len(who))):
                if seen == np.concatenate([data[i] for i in trial]).tobytes():
                    order = trial
                    break
            else:
                self.judge.problems.append(f"shared: {self.name(op, who[0])}: no order of the ranks explains the file")
        self.file(handle).adopt(everywhere, np.concatenate([data[i] for i in order]))

    def read_shared(self, op: Op, file: File, at: list[Offsets]) -> None:
        """Find the order in which the ranks have read."""
        assert self.judge is not None
        results = [self.result(rank) for rank in op["who"]]
        if any(result is None or "error" in result for result in results):
            return
        expected = [file.read((-1, -1), part) for part in at]
        file.readings = []
        for order in itertools.permutations(range(len(at))):
            pairs = [(expected[i], r) for i, r in zip(order, results, strict=True) if r is not None]
            if all(e.check(np.frombuffer(r["data"], np.uint8), r["n"]) is None for e, r in pairs):
                return
        seen = [(result or {}).get("n") for result in results]
        name = self.name(op, op["who"][0])
        self.judge.problems.append(f"shared: {name}: no order of the ranks explains what was read; bytes: {seen}")

    def race(self, op: Op, handle: Handle) -> None:
        """Several ranks write in the same place in atomic mode: one after the other, whole."""
        who, file = op["who"], self.file(handle)
        if not handle.atomic or not handle.writable or not handle.readable or len(handle.groups) > 1 or not op["n"]:
            raise Illegal("not an atomic race")
        if not who or len(who) > MOST_AT_ONCE or any(rank not in handle.group for rank in who):
            raise Illegal("not by these ranks")
        self.idle()
        self.clean(file)
        at = {rank: handle.views[rank].offsets(op["at"], op["n"]) for rank in handle.group}
        if max(int(part[-1]) for part in at.values()) >= MOST_BYTES:
            raise Illegal("too far out")
        data = {rank: values(self.index, rank, len(at[rank])) for rank in who}
        before, fits = file.content(), None
        for order in itertools.permutations(who):
            file.restore(before)
            for rank in order:
                file.adopt(at[rank], data[rank])
            if self.judge is None or self.looks_right(op, handle, file, at):
                fits = order
                break
        if fits is None:
            assert self.judge is not None
            self.judge.problems.append(f"atomic: {self.name(op, who[0])}: no order of the ranks explains what is there")
        file.resized_by = handle.first  # other openings know after a fence

    def looks_right(self, op: Op, handle: Handle, file: File, at: dict[int, Offsets]) -> bool:
        """Tell whether what the ranks saw after a race is what the file would hold."""
        for rank, part in at.items():
            seen = np.frombuffer((self.result(rank) or {}).get("look", b""), np.uint8)
            reading = file.read((-1, -1), part)
            file.readings.remove(reading)
            if len(seen) != len(part) or reading.check(seen, reading.shortest) is not None:
                return False
        return True


def judge(history: History, results: Results, held: list[bytes | None]) -> list[str]:
    """Return what is wrong with what the ranks saw and with the files that they left."""
    oracle = Oracle(history, results)
    oracle.run(history["ops"])
    assert oracle.judge is not None
    for rank, seen in enumerate(results):
        if "error" in (seen[-1] or {}):
            oracle.judge.problems.append(f"error: close at the end, rank {rank}: {(seen[-1] or {})['error']}")
    for i, (file, content) in enumerate(zip(oracle.files, held, strict=True)):
        if (content is not None) != file.exists:
            oracle.judge.problems.append(f"exists: file {i} is {'there' if content is not None else 'not there'}")
        elif content is not None and (problem := file.compare(np.frombuffer(content, np.uint8))):
            oracle.judge.problems.append(f"file: file {i}: {problem}")
    return oracle.judge.problems
