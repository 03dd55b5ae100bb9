"""The oracle: what every call of a case must do to the files, the buffers, the status and the file pointers.

A case is plain data (see generate.py). The simulation applies its calls one after the other to NumPy arrays that
stand for the files. It also decides whether a case is a legal MPI program, so that generation and shrinking never
blame a library for a program that the standard leaves undefined. Where the standard allows several results, it gives
each of them (:meth:`Simulation.orders`).
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np

from differential import outside
from differential.conflicts import Plan, check_pending, racers
from differential.filestate import RANKS, File
from differential.state import (
    ACCESS,
    BYTE,
    COLLECTIVE,
    HOWS,
    INDEPENDENT,
    NONBLOCKING,
    Bytes,
    Case,
    Expected,
    Handle,
    How,
    Illegal,
    Mask,
    Memory,
    Op,
    Track,
    encoded,
    first_open,
    follows,
    initial_buffer,
    initial_file,
    memory_of,
    same_elements,
    verb_of,
)
from differential.typetree import classic_text, model

__all__ = ["BYTE", "COLLECTIVE", "INDEPENDENT", "NONBLOCKING", "Case", "Illegal", "Op", "Simulation", "check"]

Results = list[Expected | None]
Order = tuple[int, ...]


class Simulation:
    """All ranks of one case; :meth:`step` gives the expected results of one call."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ranks: int = case["ranks"]
        self.files = {"0": File(initial_file(case), exists=case["initial"] >= 0)}
        self.handles: dict[int, Handle] = {}
        self.pending: dict[int, Plan] = {}
        self.instances = 0
        self.dead = False
        self.open(first_open(case))

    def copy(self) -> Simulation:
        """Return an independent copy of the present state."""
        twin = copy.copy(self)
        twin.files = {name: file.copy() for name, file in self.files.items()}
        twin.handles = {number: handle.copy() for number, handle in self.handles.items()}
        twin.pending = dict(self.pending)
        return twin

    @property
    def size(self) -> int:
        """Bytes of the largest file."""
        return max(len(file.data) for file in self.files.values())

    def run(self) -> None:
        """Apply all calls."""
        for index, op in enumerate(self.case["ops"]):
            self.step(index, op)
        self.end()

    def end(self) -> None:
        """Refuse an end of the case that leaves something undone."""
        if self.pending:
            raise Illegal("requests are left")
        if self.dead:
            raise Illegal("a death without a job after it")

    # ---- calls that move no data --------------------------------------------------------------------------------

    def step(self, index: int, op: Op, order: Order | None = None) -> Any:
        """Apply one call; what it must give, None when it gives nothing. It changes nothing when it is illegal."""
        kind = op["op"]
        if self.dead and kind != "job":
            raise Illegal("a death without a job after it")
        if "fails" in op:
            return self.fail(index, op)
        if kind == "limit":
            return None
        if kind in ("posix", "kill", "job"):
            return outside.simulate(self, index, op)
        if kind == "open":
            return self.open(op)
        if kind == "delete":
            return self.delete(str(op["file"]))
        if kind in ("sync", "fence"):
            return self.meet(kind)
        if kind == "wait":
            for name in op["reqs"]:
                self.pending.pop(name, None)
            return None
        handle = self.handles.get(op.get("h", 0))
        if handle is None:
            raise Illegal("no such file")
        if kind in ACCESS:
            return self.access(index, op, handle, order)
        if kind == "seek":
            return self.seek(op, handle)
        if kind == "query":
            self.splits_own(op.get("h", 0))
            return self.query(op, handle)
        if kind == "seek_shared":
            return self.seek_shared(op, handle)
        self.idle(op.get("h", 0))
        if kind == "view":
            return self.set_view(op, handle)
        if kind == "close":
            return self.close(op, handle)
        if kind == "atomicity":
            self.clean(handle)
            handle.atomic = op["flag"]
            return None
        return self.resize(op, handle)

    def fail(self, index: int, op: Op) -> Results:
        """Change nothing; what the ranks must see whose calls do not fail. What an open names is there if it was.

        A write that fails for want of storage may have written some of its bytes; a sync or close that fails may have
        lost what was written since the last sync.
        """
        found: Results = [None] * self.ranks
        failing = op.get("failing", [True] * self.ranks)
        plain = {name: value for name, value in op.items() if name not in ("fails", "failing")}
        if not all(failing):
            if HOWS[op["how"]].pointer != "explicit":
                raise Illegal("ranks that fail alone move their pointers")
            quiet = {
                name: [0 if fails else n for n, fails in zip(op[name], failing, strict=True)]
                for name in ("count", "at")
            }
            found = self.access(index, plain | quiet, self.handles[op.get("h", 0)], None)
        if outside.storage_fails(self.case) and op["op"] == "write":
            handle = self.handles[op.get("h", 0)]
            before = {name: self.files[name].data.copy() for name in handle.files}
            counts = [count if fails else 0 for count, fails in zip(op["count"], failing, strict=True)]
            self.access(index, plain | {"count": counts}, handle, None)
            for name, data in before.items():
                self.files[name].may_be(data)
        if outside.storage_fails(self.case) and op["op"] in ("sync", "close", "atomicity"):
            for file in self.files.values():
                file.may_be(file.synced)
        for call in (op, op.get("but", {})):
            if call.get("op") == "open" and call["file"] != "null" and not str(call["file"]).startswith("./"):
                for name in Handle(call, self.ranks, 0).files:
                    self.files.setdefault(name, File(np.zeros(0, np.uint8), exists=False))
        return found

    def delete(self, name: str) -> None:
        """Delete a file; those who have it open keep its bytes."""
        file = self.files.get(name)
        if file is None or not file.exists or file.dirty:
            raise Illegal("no file to delete")
        self.rename(name, f"{name}~{self.instances}")

    def rename(self, name: str, to: str) -> None:
        """Give a file another name, also for those who have it open; what had that name before is deleted."""
        if to in self.files and self.files[to].exists:
            self.delete(to)
        self.files[to] = self.files[name]
        self.files[name] = File(np.zeros(0, np.uint8), exists=False)
        for handle in self.handles.values():
            handle.files = [to if each == name else each for each in handle.files]

    def idle(self, number: int) -> None:
        """Refuse what may not be called while requests or split collectives are under way on a handle."""
        if any(plan.op.get("h", 0) == number for plan in self.pending.values()):
            raise Illegal("requests are outstanding")

    def clean(self, handle: Handle) -> None:
        """Refuse what needs everybody's accesses to be visible."""
        if any(self.files[name].dirty for name in handle.files):
            raise Illegal("accesses without sync")

    def open(self, op: Op) -> Any:
        """Open a file; the class of the error that must come, or None."""
        if op["h"] in self.handles or len(self.handles) > 5:
            raise Illegal("handle is in use")
        handle, mode = Handle(op, self.ranks, self.instances), op["mode"]
        files = [self.files.setdefault(name, File(np.zeros(0, np.uint8), exists=False)) for name in handle.files]
        missing = [not file.exists for file in files]
        others = [other for other in self.handles.values() if set(other.files) & set(handle.files)]
        if any(file.dirty for file in files):
            raise Illegal("accesses without sync")
        if any({"unique", "delete"} & set(other.op["mode"]) for other in others):
            raise Illegal("file is in use alone")
        if "create" not in mode and any(missing):
            if not all(missing):
                raise Illegal("some groups would fail")
            return "NO_SUCH_FILE"
        if "excl" in mode and not all(missing):
            if any(missing):
                raise Illegal("some groups would fail")
            return "FILE_EXISTS"
        alone = len(set(handle.files)) == len(handle.files) and not others
        if {"unique", "delete", "excl"} & set(mode) and not alone:
            raise Illegal("file is in use")
        for file in files:
            file.exists = True
        for rank, track in handle.tracks.items():
            track.pointer = len(self.files[handle.file_of(rank)].data) if "append" in mode else 0
        handle.shared = [len(file.data) if "append" in mode else 0 for file in files]
        self.instances += len(handle.groups)
        self.handles[op["h"]] = handle
        return None

    def close(self, op: Op, handle: Handle) -> None:
        """Close a handle."""
        if "delete" in handle.op["mode"]:
            for name in handle.files:
                self.files[name] = File(np.zeros(0, np.uint8), exists=False)
                self.files[name].dirty = True  # until everybody knows
        del self.handles[op["h"]]

    def meet(self, kind: str) -> None:
        """Apply sync-barrier-sync on all handles, or a barrier."""
        if kind == "sync":
            if self.pending:
                raise Illegal("requests are outstanding")
            for file in self.files.values():
                file.sync()
        for handle in self.handles.values():
            handle.touched = [None] * len(handle.groups)
            if handle.atomic and kind == "fence":
                for g, name in enumerate(handle.files):
                    self.files[name].fence(handle.first + g)

    def set_view(self, op: Op, handle: Handle) -> None:
        """Set the views of a handle."""
        for rank in handle.tracks:
            kind = model(op["ftype"][rank])
            write = handle.writable
            legal = "views" in self.case or kind.is_file_legal(write=write)  # or whoever has drawn it knows
            if model(op["etype"]).size == 0 or not legal:
                raise Illegal("illegal view")
            if op.get("rep", "native") != "native" and not same_elements(op["ftype"][rank], op["etype"]):
                raise Illegal("elements that the model cannot convert")
        for rank, track in handle.tracks.items():
            track.apply(op, rank)
        handle.view = op
        handle.shared = [0] * len(handle.groups)
        handle.touched = [("view", -1)] * len(handle.groups)

    def splits_own(self, number: int) -> None:
        """Refuse a use of the individual pointers during a split collective that moves them."""
        for plan in self.pending.values():
            if plan.how.split and plan.how.pointer == "own" and plan.op.get("h", 0) == number:
                raise Illegal("individual pointer during a split collective")

    def seek(self, op: Op, handle: Handle) -> None:
        """Move the individual pointers."""
        self.splits_own(op.get("h", 0))
        moved: dict[int, Track] = {}
        for rank, track in handle.tracks.items():
            moved[rank] = copy.copy(track)
            file = self.files[handle.file_of(rank)]
            unsure = self.pending or file.resized or set(file.tops) - {self.agent(handle, rank)}
            if op["whence"] == "end" and unsure:
                raise Illegal("size is not settled")
            moved[rank].apply(op | {"end": len(file.data)}, rank)
            if moved[rank].pointer < 0:
                raise Illegal("negative offset")
        if op["whence"] == "end":
            for rank in moved:
                self.files[handle.file_of(rank)].saw_end(self.agent(handle, rank))
        handle.tracks = moved

    def seek_shared(self, op: Op, handle: Handle) -> None:
        """Move the shared pointers."""
        moved = []
        for g, members in enumerate(handle.groups):
            self.may_share(handle, g, "seek", members[0])
            track = handle.tracks[members[0]]
            base = {"set": 0, "cur": handle.shared[g]}.get(op["whence"])
            file = self.files[handle.files[g]]
            if base is None and (file.dirty or file.resized):
                raise Illegal("size is not settled")
            moved.append(op["offset"] + (track.end(len(file.data)) if base is None else base))
        if min(moved) < 0:
            raise Illegal("negative offset")
        handle.shared = moved
        handle.touched = [("seek", -1)] * len(handle.groups)

    def may_share(self, handle: Handle, g: int, use: str, rank: int) -> None:
        """Refuse a use of the shared pointer that is not ordered after the last one."""
        last = handle.touched[g]
        if last is not None and last != (use, rank) and (use, last[0]) != ("ordered", "ordered"):
            raise Illegal("uses of the shared pointer without a barrier")
        if handle.view and len(handle.groups[g]) > 1:
            trees = {(handle.view["disp"][r], classic_text(handle.view["ftype"][r])) for r in handle.groups[g]}
            if len(trees) > 1:
                raise Illegal("shared pointer with different views")

    def resize(self, op: Op, handle: Handle) -> None:
        """Apply MPI_File_set_size or MPI_File_preallocate."""
        self.clean(handle)
        if not handle.writable or len(set(handle.files)) != len(handle.files):
            raise Illegal("not by several groups")
        for name in handle.files:
            file = self.files[name]
            file.resize(op["bytes"] if op["op"] == "size" else max(op["bytes"], len(file.data)))

    def query(self, op: Op, handle: Handle) -> dict[int, dict[str, Any]]:
        """Return what a handle must say about itself, by rank."""
        found = {}
        for rank, track in handle.tracks.items():
            file, g = self.files[handle.file_of(rank)], handle.group[rank]
            plain = int(track.view.etype.offsets[0]) == 0 and track.view.filetype.size
            answer: dict[str, Any] = {
                "position": track.pointer,
                "disp": track.view.displacement,
                "rep": "native" if track.view.rep == "internal" else track.view.rep,  # ROMIO calls it so
                "etype": [track.view.etype.size, track.view.etype.extent],
                "filetype": [track.view.filetype.size, track.view.filetype.extent],
                "atomicity": handle.atomic,
                "amode": sorted(handle.op["mode"]),
            }
            if plain and track.view.rep == "native":
                answer["byte_offset"] = int(track.view.offsets(track.pointer * track.view.etype.size, 1)[0])
            sure = not self.pending and not file.resized and len(set(file.sizes)) == 1
            if sure and not set(file.tops) - {self.agent(handle, rank)}:
                answer["size"] = len(file.data)
                file.saw_end(self.agent(handle, rank))
            if op.get("shared") and handle.touched[g] is None:
                answer["shared"] = handle.shared[g]
            found[rank] = answer
        if op.get("shared"):
            handle.touched = [("query", -1)] * len(handle.groups)
        return found

    # ---- data access --------------------------------------------------------------------------------------------

    @staticmethod
    def agent(handle: Handle, rank: int) -> int:
        """Return the number that stands for a rank's use of a handle in the marks."""
        return handle.instance(rank) * RANKS + rank

    def active(self, op: Op, handle: Handle) -> list[int]:
        """Return the ranks that make a call."""
        who = op.get("who")
        everybody = who is None or HOWS[op["how"]].everybody
        return [rank for rank in sorted(handle.tracks) if everybody or (who and who[rank])]

    def access(self, index: int, op: Op, handle: Handle, order: Order | None) -> list[Expected | None]:
        """Apply one data-access call of all ranks that take part."""
        how = HOWS[op["how"]]
        self.check_call(op, how, handle)
        ranks = self.active(op, handle)
        memories = {rank: memory_of(op, rank) for rank in ranks}
        if order is None:
            order = self.natural_order(handle, ranks, how)
        starts, pointers = self.positions(op, how, handle, memories, order)
        targets = {rank: handle.tracks[rank].targets(starts[rank], memories[rank]) for rank in ranks}
        plan = Plan(op=op, how=how, handle=handle, memories=memories, targets=targets)
        self.check_buffers(plan)
        self.check_conflicts(plan)
        race = racers(self.case, self.files, plan)
        if race and not op.get("snap"):
            raise Illegal("the order of ranks matters and nobody looks")
        for rank in ranks:  # from here on nothing is refused
            if how.pointer == "own":
                handle.tracks[rank].pointer += handle.tracks[rank].length(memories[rank])
            if not race:
                file = self.files[handle.file_of(rank)]
                file.note(self.agent(handle, rank), verb_of(op, rank), targets[rank])
                file.alone |= op["how"] not in COLLECTIVE
        if how.pointer in ("shared", "ordered"):
            handle.shared = pointers
            for rank in ranks:
                handle.touched[handle.group[rank]] = (how.pointer, rank)
        results: list[Expected | None] = [None] * self.ranks
        for rank in order:
            results[rank] = self.transfer(index, plan, rank)
        if "req" in op:
            self.pending[op["req"]] = plan
        if op.get("snap"):
            self.meet("sync")
        return results

    def check_call(self, op: Op, how: How, handle: Handle) -> None:
        """Refuse a call that may not be made now, whatever it moves."""
        number = op.get("h", 0)
        verbs = {verb_of(op, rank) for rank in self.active(op, handle)}
        if ("write" in verbs and not handle.writable) or ("read" in verbs and not handle.readable):
            raise Illegal("access that the mode does not allow")
        self.splits_own(number)
        split = any(plan.how.split and plan.op.get("h", 0) == number for plan in self.pending.values())
        if split and how.everybody:
            raise Illegal("collective during a split collective")
        shared = [
            p for p in self.pending.values() if p.op.get("h", 0) == number and p.how.pointer in ("shared", "ordered")
        ]
        if how.pointer in ("shared", "ordered") and any(p.how.pointer == "ordered" for p in shared):
            raise Illegal("shared pointer during a split ordered access")
        if op.get("snap") and (self.pending or "req" in op):
            raise Illegal("requests are outstanding")
        if "req" in op and (op["req"] in self.pending or not (how.nonblocking or how.split)):
            raise Illegal("request is in use")
        if op["op"] == "mixed" and how.everybody:
            raise Illegal("one collective reads and writes")
        if "threads" in op and (how.family != "independent" or how.pointer != "explicit" or any(op["bottom"])):
            raise Illegal("threads share a pointer, a collective or MPI_BOTTOM")
        if "threads" in op and any(count % op["threads"] or not count for count in op["count"]):
            raise Illegal("threads with other counts")

    @staticmethod
    def natural_order(handle: Handle, ranks: list[int], how: How) -> Order:
        """Return the order in which ranks are simulated when it does not matter (or is given: ordered access)."""
        if how.pointer == "ordered":
            return tuple(rank for members in handle.groups for rank in members)
        return tuple(ranks)

    def positions(
        self, op: Op, how: How, handle: Handle, memories: dict[int, Memory], order: Order
    ) -> tuple[dict[int, int], list[int]]:
        """Return where every rank starts (etypes) and the shared pointers afterwards."""
        starts, pointers = {}, list(handle.shared)
        for rank in order:
            track, g = handle.tracks[rank], handle.group[rank]
            length = track.length(memories[rank])
            if how.pointer == "explicit":
                starts[rank] = op["at"][rank]
            elif how.pointer == "own":
                starts[rank] = track.pointer
            else:
                self.may_share(handle, g, how.pointer, rank)
                starts[rank] = pointers[g]
                pointers[g] += length
        return starts, pointers

    def check_buffers(self, plan: Plan) -> None:
        """Refuse buffers and file types that the call may not have."""
        op, handle = plan.op, plan.handle
        for rank, target in plan.targets.items():
            rep = handle.tracks[rank].view.rep
            if rep == "external32":
                self.check_conversion(plan, rank)
            if (
                rep != "native"
                and handle.view
                and len(target)
                and not same_elements(op["mem"][rank], handle.view["etype"])
            ):
                raise Illegal("elements that the model cannot convert")
            repeats = not plan.memories[rank].type.is_distinct(op["count"][rank])
            if verb_of(op, rank) == "read":
                if repeats:
                    raise Illegal("read into a type that repeats bytes")
                continue
            back = len(target) and not (np.diff(target) >= 1).all()
            if back and (self.case.get("views") is not True or len(np.unique(target)) < len(target)):
                raise Illegal("written file type overlaps itself")
            if repeats and follows(self.case, op, rep):
                raise Illegal("data cannot follow the offset in a type that repeats bytes")

    def check_conversion(self, plan: Plan, rank: int) -> None:
        """Refuse (although they are legal) conversions in which MPI libraries destroy memory."""
        target = plan.targets[rank]
        if plan.how.nonblocking or plan.op["bottom"][rank] or not len(target):
            raise Illegal("conversion in a nonblocking or empty access, or from MPI_BOTTOM")
        if verb_of(plan.op, rank) == "read" and int(target.max()) >= len(self.files[plan.handle.file_of(rank)].data):
            raise Illegal("conversion at the end of the file")

    def check_conflicts(self, plan: Plan) -> None:
        """Refuse a conflict that no sync separates; "lax" cases may rely on the order of collectives."""
        op, handle = plan.op, plan.handle
        lax = self.case["lax"] and op["how"] in COLLECTIVE and len(self.handles) == 1 and not handle.atomic
        clean = plan.how.pointer == "shared" and len(plan.targets) > 1
        for rank, target in plan.targets.items():
            file = self.files[handle.file_of(rank)]
            if file.resized or (clean and file.dirty):
                raise Illegal("accesses without sync")
            if not len(target):
                continue
            file.extend_marks(int(target.max()) + 1)
            if not lax or file.alone:
                file.check(self.agent(handle, rank), verb_of(op, rank), target)
            check_pending(self.pending, self.files, plan, rank)

    def transfer(self, index: int, plan: Plan, rank: int) -> Expected:
        """Move the data of one rank."""
        op, target, memory = plan.op, plan.targets[rank], plan.memories[rank]
        track, file = plan.handle.tracks[rank], self.files[plan.handle.file_of(rank)]
        rep = track.view.rep
        where = memory.origin + memory.offsets
        if verb_of(op, rank) == "write":
            fill = target if follows(self.case, op, rep) else None
            buffer = initial_buffer(self.case, index, rank, memory, fill)
            care, gap = np.ones(len(buffer), bool), np.zeros(len(buffer), bool)
            if len(target):
                file.put(target, encoded(buffer[where], rep, op["mem"][rank]))
            return self.expect(memory, track.pointer, buffer, (care, gap, gap), len(target))
        if file.others and not (target < file.sizes[0]).all():
            raise Illegal("the size is not settled")
        past = np.flatnonzero(target >= len(file.data))
        done = int(past[0]) if len(past) else len(target)
        buffer = initial_buffer(self.case, index, rank, memory, None)
        whole = done - done % int(memory.type.parts[0]) if rep != "native" and len(target) else done
        buffer[where[:whole]] = encoded(file.data[target[:whole]], rep, op["mem"][rank])
        compare, gap = np.ones(len(buffer), bool), np.zeros(len(buffer), bool)
        compare[where[whole:]] = False
        doubt = np.zeros(len(buffer), bool)
        doubt[where[:whole]] = ~file.is_sure(target[:whole])
        gap[where[:done]] = ~file.written[target[:done]]
        return self.expect(memory, track.pointer, buffer, (compare, gap, doubt), done)

    @staticmethod
    def expect(memory: Memory, pointer: int, buffer: Bytes, masks: tuple[Mask, Mask, Mask], done: int) -> Expected:
        """Put the expected results of one rank together."""
        size = memory.type.size
        count = 0 if size == 0 else done // size if done % size == 0 else None
        return Expected(
            buffer=buffer,
            compare=masks[0],
            gap=masks[1],
            doubt=masks[2],
            nbytes=done,
            requested=len(memory.offsets),
            count=count,
            elements=memory.type.elements(done),
            position=pointer,
        )

    def orders(self, op: Op) -> list[Order | None]:
        """Return the orders of ranks whose results are all allowed for a call; [None] when there is only one result."""
        if op["op"] not in ACCESS or not op.get("snap") or op.get("h", 0) not in self.handles:
            return [None]
        handle, how = self.handles[op.get("h", 0)], HOWS[op["how"]]
        ranks = self.active(op, handle)
        memories = {rank: memory_of(op, rank) for rank in ranks}
        starts, _ = self.positions(op, how, handle, memories, self.natural_order(handle, ranks, how))
        targets = {rank: handle.tracks[rank].targets(starts[rank], memories[rank]) for rank in ranks}
        plan = Plan(op=op, how=how, handle=handle, memories=memories, targets=targets)
        racing = racers(self.case, self.files, plan)
        if not racing:
            return [None]
        rest = tuple(rank for rank in ranks if rank not in racing)
        return [rest + order for order in itertools.permutations(racing)]


def check(case: Case) -> str | None:
    """Return why a case is illegal, None when it is legal."""
    try:
        Simulation(case).run()
    except Illegal as error:
        return str(error)
    return None
