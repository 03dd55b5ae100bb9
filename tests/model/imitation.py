"""Ranks that are no processes: a history played on NumPy arrays in some order of the ranks, right or with a mistake.

The tests of the oracle use it: whatever the ranks of a right imitation see, in whatever order they go, must be allowed,
and a mistake must be found.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from model.history import ACCESS, ALONE, BLANK, COLLECTIVE, Bytes, History, Op, View, groups_of, initial, turns, values

Found = tuple[list[list[dict[str, Any] | None]], list[bytes | None]]
MISTAKES = ("lost write", "stale read", "torn write", "neighbour", "short count", "old size", "zero")


class Disk:
    """One file, as everybody sees it at once."""

    def __init__(self, data: Bytes, *, exists: bool) -> None:
        self.data, self.exists = data, exists

    def put(self, at: Any, data: Bytes) -> None:
        """Write bytes."""
        if len(at):
            top = int(at.max()) + 1
            if top > len(self.data):
                self.data = np.concatenate([self.data, np.zeros(top - len(self.data), np.uint8)])
            self.data[at] = data

    def get(self, at: Any) -> tuple[int, Bytes]:
        """Read bytes: how many there are, and the buffer."""
        n = int(np.searchsorted(at, len(self.data)))
        out = np.full(len(at), BLANK, np.uint8)
        out[:n] = self.data[at[:n]]
        return n, out


class Imitation:
    """Plays one history; the ranks go on in an order drawn from ``seed`` until they must meet.

    ``mistake`` is made in the access number ``victim`` that it fits.
    """

    def __init__(self, history: History, seed: int, mistake: str | None = None, victim: int = 0) -> None:
        self.history, self.rng, self.ranks = history, random.Random(seed), history["ranks"]
        self.mistake, self.victim, self.made = mistake, victim, False
        self.disks = [Disk(initial(i, n), exists=n >= 0) for i, n in enumerate(history["files"])]
        self.before = [disk.data.copy() for disk in self.disks]
        self.handles: dict[int, dict[str, Any]] = {}
        ops = history["ops"]
        self.results: list[list[Any]] = [[None] * (len(ops) + 1) for _ in range(self.ranks)]
        self.requests: dict[int, Any] = {}

    def run(self) -> Found:
        """Play everything: independent calls between two meetings in any order that keeps each rank's own."""
        ops, start = self.history["ops"], 0
        while start < len(ops):
            end = start
            while end < len(ops) and self.is_alone(ops[end]):
                end += 1
            queues = [
                [(i, ops[i]) for i in range(start, end) if rank in self.members(ops[i])] for rank in range(self.ranks)
            ]
            while any(queues):
                rank = self.rng.choice([r for r in range(self.ranks) if queues[r]])
                index, op = queues[rank].pop(0)
                self.alone(index, op, rank)
            if end < len(ops):
                self.together(end, ops[end])
            start = end + 1
        for number in sorted(self.handles):
            self.close(number)
        return self.results, [disk.data.tobytes() if disk.exists else None for disk in self.disks]

    @staticmethod
    def is_alone(op: Op) -> bool:
        """Tell whether ranks make a call without meeting others."""
        return op["op"] in ("seek", "ask", "wait") or (op["op"] in ACCESS and op["how"] != "shared")

    def members(self, op: Op) -> list[int]:
        """Return who makes a call."""
        return [op["rank"]] if "rank" in op else sorted(self.handles[op["h"]]["group"])

    # ---- calls together ---------------------------------------------------------------------------------------------

    def together(self, index: int, op: Op) -> None:
        """Make a call of several ranks."""
        kind = op["op"]
        if kind == "open":
            groups, disk = groups_of(op["comm"], self.ranks), self.disks[op["file"]]
            disk.exists = True
            start = len(disk.data) if "append" in op["mode"] else 0
            group = {rank: g for g, members in enumerate(groups) for rank in members}
            self.handles[op["h"]] = {
                "op": op,
                "group": group,
                "groups": groups,
                "view": {rank: View() for rank in group},
                "own": dict.fromkeys(group, start),
                "shared": [start] * len(groups),
            }
        elif kind in ("barrier", "fence", "sync", "atomicity"):
            self.before = [disk.data.copy() for disk in self.disks]
        elif kind == "close":
            self.close(op["h"])
        elif kind == "view":
            handle = self.handles[op["h"]]
            for rank in handle["group"]:
                handle["view"][rank] = View(op["disp"][rank], op["etype"], op["types"][rank])
                handle["own"][rank] = 0
            handle["shared"] = [0] * len(handle["groups"])
        elif kind in ("size", "allocate"):
            disk = self.disks[self.handles[op["h"]]["op"]["file"]]
            n = op["bytes"] if kind == "size" else max(op["bytes"], len(disk.data))
            disk.data = np.concatenate([disk.data[:n], np.zeros(max(n - len(disk.data), 0), np.uint8)])
        else:
            self.meet_in_place(index, op)

    def close(self, number: int) -> None:
        """Close a handle."""
        op = self.handles.pop(number)["op"]
        if "delete" in op["mode"]:
            self.disks[op["file"]] = Disk(np.zeros(0, np.uint8), exists=False)

    def meet_in_place(self, index: int, op: Op) -> None:
        """Several ranks at the shared pointer, or in the same place."""
        handle, who = self.handles[op["h"]], list(op["who"])
        disk = self.disks[handle["op"]["file"]]
        self.rng.shuffle(who)
        if op["op"] == "race":
            for rank in who:
                at = handle["view"][rank].offsets(op["at"], op["n"])
                disk.put(at, values(index, rank, len(at)))
            for rank in handle["group"]:
                look = disk.get(handle["view"][rank].offsets(op["at"], op["n"]))[1].tobytes()
                self.results[rank][index] = {"look": look}
            return
        g = handle["group"][who[0]]
        view, start = handle["view"][who[0]], handle["shared"][g]
        for i, rank in enumerate(who):
            at = view.offsets(start + i * op["n"], op["n"])
            if op["op"] == "write":
                disk.put(at, values(index, rank, len(at)))
                self.results[rank][index] = {"n": len(at), "spoilt": False}
            else:
                n, out = disk.get(at)
                self.results[rank][index] = {"n": n, "spoilt": False, "data": out.tobytes()}
        if op["op"] == "write":
            look = disk.get(view.offsets(start, op["n"] * len(who)))[1].tobytes()
            self.results[op["who"][0]][index]["look"] = look
        handle["shared"][g] += op["n"] * len(who)

    # ---- calls alone ------------------------------------------------------------------------------------------------

    def alone(self, index: int, op: Op, rank: int) -> None:
        """Make one rank's part of a call."""
        if op["op"] == "wait":
            self.results[rank][index] = {"done": {number: self.requests.pop(number)() for number in op["reqs"]}}
            return
        handle = self.handles[op["h"]]
        disk, view = self.disks[handle["op"]["file"]], handle["view"][rank]
        if op["op"] == "ask":
            n = len(disk.data)
            if self.hits("old size"):
                n = max(n - 1, 0) if n else 1
            self.results[rank][index] = {"size": n}
        elif op["op"] == "seek":
            end = (len(disk.data) - view.displacement) // view.etype
            base = {"set": 0, "cur": handle["own"][rank], "end": end}[op["whence"]]
            handle["own"][rank] = base + op["offset"]
            self.results[rank][index] = {"position": handle["own"][rank]}
        else:
            at = self.target(op, handle, rank)

            def move() -> dict[str, Any]:
                return self.move(index, op, rank, disk, at)

            if ALONE.get(op["how"]):
                if self.rng.random() < 0.5:
                    done = move()
                    self.requests[op["req"]] = lambda: done
                else:
                    self.requests[op["req"]] = move
            else:
                self.results[rank][index] = move()

    @staticmethod
    def target(op: Op, handle: dict[str, Any], rank: int) -> Any:
        """Return where a rank's part of a call goes, and move its pointer."""
        view, how = handle["view"][rank], op["how"]
        if how == "burst":
            group = handle["groups"][handle["group"][rank]]
            return np.concatenate([view.offsets(start, op["block"]) for start in turns(op, group, rank)])
        n = op["n"][rank] if how in COLLECTIVE else op["n"]
        if how in ("own", "iown", "all"):
            start = handle["own"][rank]
            handle["own"][rank] += n
        else:
            start = op["at"][rank] if how == "at_all" else op["at"]
        return view.offsets(start, n)

    def hits(self, *mistakes: str) -> bool:
        """Tell whether the mistake is to be made here, where it fits; it is made once."""
        if self.made or self.mistake not in mistakes:
            return False
        self.victim -= 1
        self.made = self.victim < 0
        return self.made

    def move(self, index: int, op: Op, rank: int, disk: Disk, at: Any) -> dict[str, Any]:
        """Move the data of one rank."""
        n = len(at)
        if op["op"] == "write":
            data = values(index, rank, n)
            if n and self.hits("lost write"):
                disk.put(at[-1:], np.zeros(1, np.uint8))
            elif n > 1 and self.hits("torn write"):
                disk.put(at[: n // 2], data[: n // 2])
                disk.put(at[-1:], data[-1:])
                disk.data[at[n // 2]] = 0
            elif n and at[-1] + 1 < len(disk.data) and disk.data[at[-1] + 1] and self.hits("neighbour"):
                disk.put(at, data)
                disk.put(at[-1:] + 1, np.zeros(1, np.uint8))
            else:
                disk.put(at, data)
            return {"n": n - int(n > 0 and self.hits("short count")), "spoilt": False}
        n, out = disk.get(at)
        if n and out[n // 2] and self.hits("zero"):
            out[n // 2] = 0
        elif out[:n].any() and self.hits("stale read"):
            out[:n] = 0
        elif n and self.hits("short count"):
            n -= 1
        return {"n": n, "spoilt": False, "data": out.tobytes()}
