"""Times of the exact knapsack from Python: `python benchmarks/arbitration.py [--repeat N]`.

Random concave values and random weights, all numbers of I/O nodes as options, and the worst case, values proportional
to weights; then one job that goes and comes again, beside many that stay; then decisions of the policy MCKP, from jobs
with curves to grants, as the arbiter makes them. Prints the best and the median of the repetitions in microseconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mpiio_ext.delegates.arbitration import Curve, Job, Machine, Mckp, Point, Solver, solve_arrays


def instance(jobs: int, pool: int, options: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return first, weights and values."""
    rng = np.random.default_rng(jobs + options)
    if kind == "all":
        weights = np.tile(np.arange(options), jobs)
    else:
        drawn = np.sort(rng.integers(0, max(options, pool // 8), (jobs, options)), axis=1)
        drawn[:, 0] = 0
        weights = drawn.ravel()
    values = (np.sort(rng.random((jobs, options)), axis=1) * rng.integers(1, 5000, (jobs, 1))).ravel()
    if kind == "worst":
        values = 3.0 * weights
    return np.arange(jobs + 1) * options, weights.astype(np.int32), values


def times(call: Callable[[], object], repeat: int) -> list[float]:
    """Return the times of a call in microseconds."""
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        found.append((time.perf_counter() - start) * 1e6)
    return found


def say(what: str, found: list[float]) -> None:
    """Print one line."""
    print(f"{what:48} best {min(found):10.1f} µs   median {statistics.median(found):10.1f} µs")


def come_and_go(jobs: int, pool: int, options: int, kind: str, repeat: int) -> None:
    """Measure solutions after one job has gone, and after it has come again."""
    _, weights, values = instance(jobs, pool, options, kind)
    weights, values = weights.reshape(jobs, options), values.reshape(jobs, options)
    solver = Solver(pool)
    for job in range(jobs):
        solver.add(job, weights[job], values[job])
    solver.solve()
    going, coming = [], []
    for job in range(repeat):
        going += times(lambda k=job: (solver.remove(k), solver.solve()), 1)
        coming += times(lambda k=job: (solver.add(k, weights[k], values[k]), solver.solve()), 1)
    say(f"one of {jobs} goes, {pool} I/O nodes, {options} options", going)
    say("and comes again", coming)


def decisions(jobs: int, pool: int, options: int, repeat: int) -> None:
    """Measure the policy: alone, with its settings, and with running jobs."""
    first, weights, values = instance(jobs, pool, options, "random")
    asked = []
    for job, start in enumerate(first[:-1].tolist()):
        points = {int(w): Point(mean=v, best=v, deviation=v / 20, repetitions=3)
                  for w, v in zip(weights[start : start + options], values[start : start + options], strict=True)}
        asked.append(Job(name=f"job{job:04}", compute_nodes=32, processes=64, curve=Curve(points)))
    machine = Machine(io_nodes=pool, most=pool, divisible=False)
    given = Mckp().allocate(asked, machine).grants
    running = [replace(job, current=given[job.name].io_nodes) for job in asked[1:]]
    for what, mckp, those in (("", Mckp(), asked), (", confidence", Mckp(confidence=0.9), asked),
                              (", floor", Mckp(floor=0.1), asked), (", one has left", Mckp(), running),
                              (", one has left, hysteresis", Mckp(hysteresis=0.1), running)):
        say(f"decision: {jobs} jobs, {pool} I/O nodes{what}",
            times(lambda m=mckp, j=those: m.allocate(j, machine), repeat))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    repeat = parser.parse_args().repeat
    cases = ((6, 12, 5, "random"), (512, 256, 10, "random"), (512, 256, 257, "all"), (4096, 2048, 10, "random"),
             (512, 256, 10, "worst"), (4096, 2048, 10, "worst"))
    for jobs, pool, options, kind in cases:
        first, weights, values = instance(jobs, pool, options, kind)
        say(f"{jobs} jobs, {pool} I/O nodes, {options} options, {kind}",
            times(lambda f=first, w=weights, v=values, p=pool: solve_arrays(f, w, v, p), repeat))
    for jobs, pool, options, kind in (cases[1], cases[4], cases[2], cases[3]):
        come_and_go(jobs, pool, options, kind, repeat)
    decisions(512, 256, 10, repeat)


if __name__ == "__main__":
    main()
