"""Random programs that do I/O, as calls on a time line: what each rank does on which file, by which interface.

Problem. Bounds of time that hold for the programs one has thought of fail for others. Algorithm. A program is some
phases in turn. In each, some ranks use a file: by POSIX or STDIO calls, by MPI-IO calls of their own or together, with
the POSIX calls that an MPI library makes inside (aggregators, sieving, the open that creates a file), by two interfaces
in turn, by threads, or by calls that go on in the background. A rank's clock is where its last call has ended.
Guarantees. The same generator gives the same program. An MPI library opens a file that the program also uses itself by
POSIX on each rank, and once more to create it, so that the program's opens come beside. POSIX calls of an MPI library
lie inside of its call, but for those in the background; without `Traced.threads` no other calls of a rank overlap.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from support.traced_truth import (
    CALL,
    CLOSE,
    FIELDS,
    MPIIO,
    OPEN,
    POSIX,
    READ,
    SEEK,
    STAT,
    STDIO,
    SYNC,
    WRITE,
    Traced,
    Whole,
)

Ranks: TypeAlias = npt.NDArray[np.int64]
#: Phases in which a program itself uses a file by POSIX, and in which it uses it by MPI-IO.
_BY_POSIX, _BY_MPI = ("posix", "posix", "stdio", "looked"), ("own", "together", "together", "stdio", "looked")
#: Phases in which calls of a rank overlap.
_OVERLAPPING = ("threads", "background")


@dataclasses.dataclass
class _Program:
    """What has happened so far; `clock`: of each rank, ns; `mixed`: files that are used by POSIX and by MPI-IO."""

    rng: np.random.Generator
    clock: Whole
    slow: npt.NDArray[np.float64]
    parts: list[tuple[Any, ...]]
    mixed: npt.NDArray[np.bool_]
    scale_ns: float = 1e6

    def took(self, ranks: Ranks) -> Whole:
        """Return how long the next call of ranks takes: at least 1 ns."""
        drawn = self.rng.exponential(self.scale_ns, len(ranks)) * self.slow[ranks]
        return drawn.astype(np.int64) + 1

    def call(self, ranks: Ranks, layer: int, op: int, file: int, start: Whole, end: Whole, **more: int) -> None:
        """Note a call of each rank; `more`: its bytes, and `together` = 1 where ranks make it together."""
        size = more.get("size", self.size()) if op in (READ, WRITE) else 0
        self.parts.append((ranks, layer, op, file, start, end, size, more.get("together", 0)))

    def size(self) -> int:
        """Return the bytes of an access."""
        return int(self.rng.integers(1, 1 << int(self.rng.integers(1, 24))))

    def simple(self, ranks: Ranks, layer: int, op: int, file: int, **more: int) -> None:
        """Let ranks make a call each, on their own."""
        start = self.clock[ranks]
        self.clock[ranks] = start + self.took(ranks)
        self.call(ranks, layer, op, file, start, self.clock[ranks], **more)

    def pause(self, ranks: Ranks) -> None:
        """Let ranks compute."""
        self.clock[ranks] += self.took(ranks)

    def outer(self, ranks: Ranks, op: int, file: int, inner: list[tuple[Ranks, int]], *, together: bool) -> None:
        """Let ranks make an MPI-IO call with POSIX calls inside: who makes which; `together`: nobody returns early."""
        start = self.clock[ranks].copy()
        if together and self.rng.random() < 0.5:
            self.clock[ranks] = start.max()
        below = [len(who) for who, inner_op in inner if inner_op == op]
        size = self.size() * sum(below)
        for who, inner_op in inner:
            if self.rng.random() < 0.5:
                self.pause(who)
            self.simple(who, POSIX, inner_op, file, size=size // max(sum(below), 1))
        if together:
            self.clock[ranks] = self.clock[ranks].max()
        if self.rng.random() < 0.7:
            self.pause(ranks)
        size = -(-size // max(len(ranks), 1)) if below else self.size()
        self.call(
            ranks, MPIIO, op, file, start, self.clock[ranks], size=size, together=int(together and len(ranks) > 1)
        )


def _accesses(program: _Program, ranks: Ranks, layer: int, file: int) -> None:
    """Open a file, use it, and mostly close it."""
    program.simple(ranks, layer, OPEN, file)
    ops = (READ, WRITE, WRITE, SYNC, SEEK) if layer == STDIO else (READ, WRITE, WRITE, SYNC, SEEK, STAT)
    for _ in range(int(program.rng.integers(0, 5))):
        some = ranks if program.rng.random() < 0.7 else ranks[program.rng.random(len(ranks)) < 0.5]
        if program.rng.random() < 0.5:
            program.pause(some)
        program.simple(some, layer, int(program.rng.choice(ops)), file)
    if program.rng.random() < 0.8:
        program.simple(ranks, layer, CLOSE, file)


def _inside(program: _Program, users: Ranks, op: int, file: int) -> list[tuple[Ranks, int]]:
    """Return the POSIX calls inside of an access: none, some, or those of sieving, which reads to write."""
    draw = program.rng.uniform(0.15 if program.mixed[file] else 0.0, 1.0)
    if op == SYNC:
        return [(users, SYNC)]
    if draw < 0.15:
        return []
    if draw < 0.4:
        return [(users, READ), (users, op)]
    return [(users, SEEK), (users, op)] if draw < 0.5 else [(users, op)] * int(program.rng.integers(1, 4))


def _mpiio(program: _Program, ranks: Ranks, file: int, *, together: bool) -> None:
    """Open a file by MPI-IO, use it on their own or together, and close it."""
    rng = program.rng
    users = ranks if rng.random() < 0.7 else ranks[: max(1, len(ranks) // 2)]  # aggregators
    opening = ranks if program.mixed[file] else users
    creation = [(ranks[:1], OPEN), (ranks[:1], CLOSE)] if program.mixed[file] or rng.random() < 0.5 else []
    program.outer(ranks, OPEN, file, [*creation, (opening, OPEN)], together=True)
    for _ in range(int(rng.integers(0, 4))):
        op = int(rng.choice((READ, WRITE, WRITE, SYNC)))
        if together:
            program.outer(ranks, op, file, _inside(program, users, op, file), together=True)
        else:
            some = users[rng.random(len(users)) < 0.7]
            program.outer(some, op, file, _inside(program, some, op, file), together=False)
    program.outer(ranks, CLOSE, file, [(opening, CLOSE)], together=bool(rng.random() < 0.7))


def _threads(program: _Program, ranks: Ranks, file: int, other: int) -> None:
    """Let threads of some ranks use one or two files at the same time."""
    ranks = ranks[: max(1, len(ranks) // 2)]
    begun, ends = program.clock[ranks].copy(), []
    for number in range(int(program.rng.integers(2, 4))):
        program.clock[ranks] = begun
        program.pause(ranks)
        _accesses(program, ranks, int(program.rng.integers(0, 2)), other if number % 2 else file)
        ends.append(program.clock[ranks].copy())
    program.clock[ranks] = np.max(ends, axis=0)


def _background(program: _Program, ranks: Ranks, file: int) -> None:
    """Let ranks start accesses whose POSIX calls another thread makes."""
    program.outer(ranks, OPEN, file, [(ranks, OPEN)], together=True)
    program.outer(ranks, WRITE, file, [], together=False)
    begun = program.clock[ranks].copy()
    program.simple(ranks, POSIX, WRITE, file)
    program.clock[ranks] = begun
    program.pause(ranks)
    program.outer(ranks, READ, file, [(ranks, READ)], together=False)


def _phase(program: _Program, name: str, ranks: Ranks, file: int, other: int) -> None:
    if name in ("posix", "stdio"):
        _accesses(program, ranks, POSIX if name == "posix" else STDIO, file)
    elif name in ("own", "together"):
        _mpiio(program, ranks, file, together=name == "together")
    elif name == "looked":
        program.simple(ranks, POSIX, STAT, file)
    elif name == "threads":
        _threads(program, ranks, file, other)
    else:
        _background(program, ranks, file)


def random_program(rng: np.random.Generator, *, ranks: int | None = None, threads: bool = False) -> Traced:
    """Return a program.

    Parameters
    ----------
    rng : where everything is drawn.
    ranks : of the program; None: 1 to 12.
    threads : with calls of a rank that overlap.
    """
    count = ranks or int(rng.integers(1, 13))
    files = int(rng.integers(1, 5)) if rng.random() < 0.7 else int(rng.integers(5, 21))
    clock = rng.integers(1, 1 << int(rng.integers(1, 30)), count)
    slow = np.where(rng.random(count) < 0.2, 10.0 ** rng.uniform(-1, 2), 1.0)
    program = _Program(rng, clock, slow, [], rng.random(files) < 0.3)
    everyone = np.arange(count)
    users = [_some(rng, everyone) for _ in range(files)]
    phases = [_BY_POSIX + _BY_MPI if each else (_BY_POSIX, _BY_MPI)[int(rng.integers(0, 2))] for each in program.mixed]
    phases = [each + _OVERLAPPING * threads for each in phases]
    for _ in range(int(rng.integers(1, 12))):
        file = int(rng.integers(0, files))
        who = users[file] if rng.random() < 0.8 else _some(rng, everyone)
        program.scale_ns = 10.0 ** rng.uniform(2, 9)
        if rng.random() < 0.7:
            program.pause(everyone)
        _phase(program, str(rng.choice(phases[file])), who, file, int(rng.integers(0, files)))
    calls = _table(program.parts)
    run_ns = int(max(calls["end"].max(initial=0), program.clock.max())) + int(rng.integers(0, 1 << 20))
    names = tuple(f"/data/{number}" for number in range(files))
    return Traced(processes=count, run_ns=run_ns, names=names, calls=calls, threads=threads)


def _table(parts: list[tuple[Any, ...]]) -> npt.NDArray[np.void]:
    """Return calls as rows; each part has arrays of ranks, starts and ends, and what its calls have in common."""
    sizes = [len(part[0]) for part in parts]
    calls = np.zeros(sum(sizes), CALL)
    for at, field in enumerate(FIELDS) if parts else ():
        values = [part[at] for part in parts]
        each = field in ("rank", "start", "end")
        calls[field] = np.concatenate(values) if each else np.repeat(np.array(values, np.int64), sizes)
    return calls


def _some(rng: np.random.Generator, everyone: Ranks) -> Ranks:
    """Return all ranks, one of them, or some."""
    draw = rng.random()
    if draw < 0.5:
        return everyone
    if draw < 0.7:
        return everyone[rng.integers(0, len(everyone)) :][:1]
    chosen: Ranks = everyone[rng.random(len(everyone)) < rng.uniform(0.2, 1.0)]
    return chosen if len(chosen) else everyone[:1]
