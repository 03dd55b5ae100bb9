"""Geometries over which what `auto` decides is judged by the lock model, drawn from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

from mpiio_ext.partitioning import Choice, Geometry, choose, methods
from mpiio_ext.partitioning.locks import FileSystem, gpfs, lustre, simulate, unlocked

SERVERS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 48, 64, 97, 128, 156, 256, 480, 1344)
STRIPES = (0.3, 0.9, 1, 2, 3.5, 8, 10, 30, 64, 100, 300, 1000, 3000)
KINDS = ("factor", "equal", "multiple", "coprime", "near", "any")
MAX_STRIPES = 20_000  # of one geometry: bounds the time of the test
FILE_SYSTEMS: dict[str, FileSystem] = {"server": lustre(), "token": gpfs(), "none": unlocked(lustre())}


class Point(NamedTuple):
    """One geometry, and how it is accessed."""

    geometry: Geometry
    lock: str
    window_bytes: int
    operation: str


class Verdict(NamedTuple):
    """The decision's time as a multiple of the best fixed method's, and what each method takes."""

    ratio: float
    point: Point
    choice: Choice
    times_s: dict[tuple[str, bool], float]

    def __str__(self) -> str:
        best = min(self.times_s.values())
        others = ", ".join(f"{m}{'+stripes' if s else ''} {t / best:.2f}" for (m, s), t in self.times_s.items())
        return f"{self.ratio:.2f} {self.choice.method}: {self.point} [{others}]"


def _aggregators(rng: random.Random, servers: int) -> int:
    """Draw a number that divides the servers, equals them, is a multiple, shares no factor, is near one, or any."""
    kind = rng.choice(KINDS)
    if kind == "factor":
        return rng.choice([d for d in range(1, servers + 1) if servers % d == 0])
    if kind == "equal":
        return servers
    if kind == "multiple":
        return servers * rng.choice((2, 3, 4, 8, 16))
    if kind == "near":
        return max(1, servers * rng.choice((1, 2, 3)) + rng.choice((-2, -1, 1, 2)))
    number = rng.randint(1, 3 * servers + 8)
    while kind == "coprime" and math.gcd(number, servers) != 1:
        number += 1
    return number


def draw(seed: int) -> Iterator[Point]:
    """Yield points without end: 1 to 1,344 servers, from a third of a stripe to thousands for each aggregator."""
    rng = random.Random(seed)
    while True:
        servers = rng.choice(SERVERS)
        aggregators = _aggregators(rng, servers)
        size = rng.choice((2**16, 2**20, 2**20, 2**22))
        stripes = max(1, int(rng.choice(STRIPES) * aggregators))
        start = rng.choice((0, 0, size * rng.randint(1, 5000), rng.randint(0, 1000 * size)))
        end = start + stripes * size + rng.choice((0, 0, rng.randint(-size // 2, size // 2)))
        window = rng.choice((size, size, 2**20, 4 * size, 16 * size, size // 4))
        lock = rng.choice(("server", "server", "server", "token", "none"))
        operation = rng.choice(("write", "write", "read"))
        if aggregators > 4096 or stripes > MAX_STRIPES or end <= start:
            continue
        geometry = Geometry(
            start_bytes=start, end_bytes=end, stripe_size_bytes=size, servers=servers, aggregators=aggregators
        )
        yield Point(geometry, lock, window, operation)


def simulated(point: Point) -> dict[tuple[str, bool], float]:
    """Return the time of each fixed method, with and without stripe-size I/O, in the lock model.

    Without locks `even` does not count: it lets two clients' caches share a block, which nobody keeps coherent there.
    """
    geometry, lock, window, operation = point
    return {
        (m.name, stripes): simulate(
            geometry,
            m.name,
            file_system=FILE_SYSTEMS[lock],
            window_bytes=window,
            stripe_size_io=stripes,
            operation=operation,
        ).time_s
        for m in methods()
        for stripes in (False, True)
        if not (lock == "none" and m.name == "even")
    }


def judge(point: Point) -> Verdict:
    """Compare the decision with each fixed method at the same aggregators."""
    geometry, lock, window, operation = point
    times_s = simulated(point)
    choice = choose(geometry, lock=lock, operation=operation, window_bytes=window)
    chosen_s = times_s[choice.method, choice.stripe_size_io]
    return Verdict(chosen_s / min(times_s.values()), point, choice, times_s)
