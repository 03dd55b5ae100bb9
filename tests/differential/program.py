"""Random programs of all families of MPI-IO calls, mixed freely; what is illegal is repaired or dropped.

A program grows call by call beside a simulation of it. A call that the simulation refuses is tried again behind a
barrier, behind sync-barrier-sync, after all requests have been completed, and is given up otherwise. So whatever is
drawn, the program that comes out has a defined result.
"""

from __future__ import annotations

import random

from differential.conflicts import MOST_IN_RACE
from differential.draw_calls import memory_for, offsets_of
from differential.draw_types import etype_tree, file_tree, weighted
from differential.draw_views import STRATEGIES
from differential.simulate import Simulation
from differential.state import BYTE, HOWS, SWAPPABLE, Case, Handle, Illegal, Op
from differential.typetree import model

#: What --only can name: the families of data access, and other calls.
FAMILIES = (
    "collective",
    "split",
    "independent",
    "nonblocking",
    "icollective",
    "shared",
    "ordered",
    "atomic",
    "size",
    "query",
    "open",
    "datarep",
)
ACCESS_FAMILIES = frozenset(how.family for how in HOWS.values())
HOW_WEIGHTS = {
    "at_all": 1.5,
    "all": 1.5,
    "at_all_split": 1,
    "all_split": 1,
    "at": 2,
    "individual": 2,
    "iat": 1.5,
    "iindividual": 1.5,
    "iat_all": 1.2,
    "iall": 1.2,
    "shared": 1.5,
    "ishared": 0.7,
    "ordered": 1.3,
    "ordered_split": 0.7,
}
STYLES = ("wait", "test", "waitall", "testall", "waitany", "testany", "waitsome", "testsome")
MOST_BYTES = 2500  # of one rank in one call


class Program:
    """A program under construction."""

    def __init__(self, rng: random.Random, case: Case, families: frozenset[str]) -> None:
        self.rng, self.case, self.families = rng, case, families
        self.ranks: int = case["ranks"]
        self.simulation = Simulation(case)
        self.ops: list[Op] = []
        self.strategies: list[str] = []
        self.requests = 0

    def add(self, op: Op) -> bool:
        """Append a call, with what must come before it; False when it is illegal all the same."""
        waits: Op = {"op": "wait", "reqs": list(self.simulation.pending), "style": self.rng.choice(STYLES)}
        repairs: list[list[Op]] = [[], [{"op": "fence"}], [{"op": "sync"}]]
        if self.simulation.pending:
            repairs = [[], [{"op": "fence"}], [waits], [waits, {"op": "sync"}]]
        for repair in repairs:
            trial = self.simulation.copy() if repair else self.simulation
            try:
                for step in [*repair, op]:
                    trial.step(0, step)
            except Illegal:
                continue
            self.ops += [*repair, op]
            self.simulation = trial
            return True
        return False

    def some_handle(self) -> tuple[int, Handle]:
        """Draw an open file."""
        return self.rng.choice(sorted(self.simulation.handles.items()))

    # ---- calls that move no data --------------------------------------------------------------------------------

    def add_view(self) -> None:
        """Set a view, mostly one of the usual ways to share a file."""
        rng = self.rng
        number, handle = self.some_handle()
        sharing = {"shared", "ordered"} & self.families
        names = [n for n in STRATEGIES if not handle.writable or n != "backward"]
        name = weighted(rng, *((n, STRATEGIES[n][1]) for n in names))
        if sharing and rng.random() < 0.7:
            name = "same"
        rep = "native"
        etype = etype_tree(rng)
        if "datarep" in self.families and rng.random() < (0.8 if len(self.families) < 4 else 0.4):
            rep = rng.choice(["external32", "external32", "internal"])
            etype = ["named", rng.choice(SWAPPABLE)]
            etype = ["contiguous", rng.randrange(2, 4), etype] if rng.random() < 0.3 else etype
        if name == "same":
            dense = rng.random() < 0.4
            tree = etype if dense else file_tree(rng, etype, rng.randrange(4))
            displacements, types = [rng.choice([0, 0, 5, 1000])] * self.ranks, [tree] * self.ranks
        else:
            displacements, types = STRATEGIES[name][0](rng, self.ranks, etype)
        op: Op = {"op": "view", "h": number, "disp": displacements, "etype": etype, "ftype": types}
        if rep != "native":
            op["rep"] = rep
        if self.add(op):
            self.strategies.append(name)

    def add_seek(self) -> None:
        """Move the individual pointers: anywhere, apart, to the end."""
        rng = self.rng
        number, _ = self.some_handle()
        whence = weighted(rng, ("set", 4), ("cur", 3), ("end", 3))
        low = {"set": 0, "cur": -40, "end": -100}[whence]
        offsets = [rng.randrange(low, 50) for _ in range(self.ranks)]
        if whence == "set" and rng.random() < 0.5:
            step = rng.choice([100, 500, 3000])
            offsets = [place * step for place in rng.sample(range(self.ranks), self.ranks)]
        self.add({"op": "seek", "h": number, "offset": offsets, "whence": whence})

    def add_seek_shared(self) -> None:
        """Move the shared pointer."""
        number, _ = self.some_handle()
        whence = weighted(self.rng, ("set", 4), ("cur", 3), ("end", 3))
        offset = self.rng.randrange({"set": 0, "cur": -40, "end": -100}[whence], 60)
        self.add({"op": "seek_shared", "h": number, "offset": offset, "whence": whence})

    def add_query(self) -> None:
        """Ask a handle about itself."""
        number, _ = self.some_handle()
        shared = bool({"shared", "ordered"} & self.families)
        if shared:
            self.add({"op": "fence"})
        self.add({"op": "query", "h": number, "shared": shared})

    def add_size(self) -> None:
        """Set the size of the file, or reserve its room."""
        number, _ = self.some_handle()
        kind = weighted(self.rng, ("size", 3), ("preallocate", 1))
        size = self.rng.choice([0, self.rng.randrange(20_000), self.rng.randrange(2000), self.simulation.size // 2])
        if self.add({"op": kind, "h": number, "bytes": size}):
            self.add({"op": "sync"})

    def add_atomicity(self) -> None:
        """Switch atomic mode."""
        number, handle = self.some_handle()
        self.add({"op": "atomicity", "h": number, "flag": not handle.atomic or self.rng.random() < 0.2})

    def add_open(self) -> None:
        """Open a file once more, or another one."""
        rng, used = self.rng, self.simulation.handles
        free = [number for number in range(4) if number not in used]
        if not free:
            return
        strict = self.case.get("strict", False)
        access = weighted(rng, ("rdwr", 6), ("rdwr" if strict else "rdonly", 2), ("wronly", 1))
        mode = [access]
        if access != "rdonly" and rng.random() < 0.8:
            mode.append("create")
            if rng.random() < 0.25 and not strict:
                mode.append("excl")
        for name, chance in (("append", 0.15), ("unique", 0.1), ("delete", 0.1)):
            if rng.random() < chance and not (strict and name == "delete"):
                mode.append(name)
        op: Op = {
            "op": "open",
            "h": free[0],
            "file": rng.choice([0, 0, 1, 2]),
            "comm": weighted(
                rng, ("world", 2), ("dup", 2), ("back", 2), ("self", 2), ("halves", 2), ("parity", 1), ("some", 1)
            ),
            "mode": mode,
        }
        if op["file"] and rng.random() < 0.5:
            op["each"] = True
        if rng.random() < 0.3:
            op["hints"] = {"romio_ds_write": rng.choice(["enable", "disable"]), "cb_nodes": "1"}
        self.add(op)

    def add_close(self) -> None:
        """Close a file."""
        number, _ = self.some_handle()
        if number or self.rng.random() < 0.2:
            self.add({"op": "close", "h": number})
            self.add({"op": "sync"})

    def add_wait(self) -> None:
        """Complete some of what is under way."""
        names = list(self.simulation.pending)
        if names:
            chosen = self.rng.sample(names, self.rng.randrange(1, len(names) + 1))
            self.add({"op": "wait", "reqs": chosen, "style": self.rng.choice(STYLES)})

    # ---- data access --------------------------------------------------------------------------------------------

    def add_access(self) -> None:
        """Add a data-access call; when it is refused, another one."""
        for _ in range(4):
            number, handle = self.some_handle()
            names = [name for name in HOW_WEIGHTS if HOWS[name].family in self.families]
            how = weighted(self.rng, *((name, HOW_WEIGHTS[name]) for name in names))
            if self.add(self.access_op(number, handle, how)):
                return

    def access_op(self, number: int, handle: Handle, how: str) -> Op:
        """Draw one data-access call."""
        rng, pointer = self.rng, HOWS[how].pointer
        kind = weighted(rng, ("write", 3), ("read", 2))
        if not handle.writable or not handle.readable:
            kind = "read" if handle.readable else "write"
        racing = handle.atomic and rng.random() < 0.6 and pointer in ("explicit", "own")
        op: Op = {"op": kind, "h": number, "how": how, "mem": [], "count": [], "bottom": []}
        quiet = rng.choice([0.0, 0.1, 0.3])
        converts = handle.view and "rep" in handle.view  # ROMIO ends the program where there is nothing to convert
        for rank in range(self.ranks):
            tree, count = memory_for(rng, "mixed" if racing else kind, self.case, handle.view, rank, MOST_BYTES)
            if rng.random() < quiet and not converts:
                tree, count = weighted(rng, ((tree, 0), 3), ((["contiguous", 0, ["named", "INT"]], 3), 1))
            op["mem"].append(tree)
            op["count"].append(count)
            op["bottom"].append(rng.random() < 0.1 and not converts)
        if pointer == "explicit":
            etype = model(handle.view["etype"]) if handle.view else model(BYTE)
            op["at"] = offsets_of(rng, op, etype, handle.view)
        if not HOWS[how].everybody:
            op["who"] = [rng.random() < 0.75 for _ in range(self.ranks)]
        if racing:
            self.make_race(op, handle)
        elif pointer == "shared":
            self.make_shared(op)
        if "snap" not in op and (HOWS[how].nonblocking or HOWS[how].split) and rng.random() < 0.75:
            self.requests += 1
            op["req"] = self.requests
        return op

    def make_race(self, op: Op, handle: Handle) -> None:
        """Let few ranks meet in the same place, with data of their own."""
        rng = self.rng
        keep = set(rng.sample(sorted(handle.tracks), min(len(handle.tracks), rng.randrange(2, MOST_IN_RACE + 1))))
        op["fill"], op["snap"] = "random", True
        if "at" in op:
            op["at"] = [rng.choice([0, 0, rng.randrange(20)])] * self.ranks
        if "who" in op:
            op["who"] = [rank in keep for rank in range(self.ranks)]
            if handle.readable and handle.writable and rng.random() < 0.7:
                op["op"] = "mixed"
                op["verb"] = [rng.choice(["read", "write"]) for _ in range(self.ranks)]
        else:
            op["count"] = [
                n if rank in keep or "rep" in (handle.view or {}) else 0 for rank, n in enumerate(op["count"])
            ]

    def make_shared(self, op: Op) -> None:
        """Let one rank use the shared pointer, or a few at the same time."""
        rng = self.rng
        several = self.ranks > 1 and rng.random() < 0.5
        most = min(self.ranks, MOST_IN_RACE)
        keep = set(rng.sample(range(self.ranks), rng.randrange(2, most + 1) if several else 1))
        op["who"] = [rank in keep for rank in range(self.ranks)]
        if several:
            op["snap"] = True

    # ---- the whole ----------------------------------------------------------------------------------------------

    def draw(self) -> None:
        """Draw the program."""
        has = self.families
        choices = [
            (self.add_access, 10.0),
            (self.add_view, 1.8),
            (self.add_seek, 0.8),
            (lambda: self.add({"op": "sync"}), 0.3),
            (self.add_wait, 1.5 if has & {"split", "nonblocking", "icollective", "shared", "ordered"} else 0),
            (self.add_seek_shared, 1.0 if has & {"shared", "ordered"} else 0),
            (self.add_query, 0.8 if "query" in has else 0),
            (self.add_size, 0.7 if "size" in has and not self.case["readonly"] else 0),
            (self.add_atomicity, 2.0 if "atomic" in has else 0),
            (self.add_open, 2.2 if "open" in has else 0),
            (self.add_close, 0.7 if "open" in has else 0),
        ]
        if self.rng.random() < 0.7 or "datarep" in has:
            self.add_view()
        if "atomic" in has:
            self.add_atomicity()
        for _ in range(weighted(self.rng, (3, 2), (6, 4), (10, 3), (16, 1))):
            weighted(self.rng, *(choices if self.simulation.handles else [(self.add_open, 1.0)]))()
        while self.simulation.pending:
            self.add({"op": "wait", "reqs": list(self.simulation.pending), "style": self.rng.choice(STYLES)})
