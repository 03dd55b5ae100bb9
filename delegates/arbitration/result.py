"""What simulations found, as plain data with units: the JSON results, and the lines of the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpiio_ext.delegates.arbitration.jobs import Allocation
from mpiio_ext.delegates.arbitration.queue import QueueResult
from mpiio_ext.delegates.arbitration.simulate import Simulation

__all__ = ["allocation_document", "queue_document", "queue_lines", "simulation_document", "simulation_lines"]


def _spread(values: Any) -> dict[str, float]:
    return {"min": float(np.min(values)), "median": float(np.median(values)), "mean": float(np.mean(values)),
            "max": float(np.max(values))}


def simulation_document(simulation: Simulation, best: dict[int, int]) -> dict[str, Any]:
    """Return the results of a simulation; bandwidths in MB/s, gains as ratios."""
    document: dict[str, Any] = {
        "what": "arbitration simulation", "units": {"bandwidth": "MB/s (10^6 bytes)", "gains": "ratio"},
        "sets": len(simulation.set_nodes), "apps": simulation.apps, "seed": simulation.seed,
        "statistic": simulation.statistic, "system_compute_nodes": simulation.compute_nodes,
        "pools": simulation.pools.tolist(),
        "best_option_counts_of_maxima": {str(count): number for count, number in best.items()},
        "set_compute_nodes": _spread(simulation.set_nodes),
        "mckp_meets_oracle_io_nodes": _spread(simulation.meets_oracle),
        "bandwidth": {name: [_spread(values[:, k]) for k in range(len(simulation.pools))]
                      for name, values in simulation.bandwidth.items()},
        "sets_beyond_the_pool": {name: (given > simulation.pools).sum(axis=0).tolist()
                                 for name, given in simulation.given.items()},
        "gains": {},
    }
    if "zero" in simulation.bandwidth:
        document["gains"]["oracle_over_zero"] = _spread(simulation.ratio("oracle", "zero")[:, 0])
        if "one" in simulation.bandwidth:
            document["gains"]["one_over_zero"] = _spread(simulation.ratio("one", "zero")[:, 0])
    if "static" in simulation.bandwidth:
        ratio = simulation.ratio("mckp", "static")
        document["gains"]["mckp_over_static"] = [_spread(ratio[:, k]) for k in range(len(simulation.pools))]
        fair = simulation.given["static"] <= simulation.pools
        below = ratio < 1 - 1e-9
        document["sets_where_mckp_is_below_static_within_the_pool"] = int((fair & below).sum())
        document["sets_where_mckp_is_below_static_beyond_the_pool"] = int((~fair & below).sum())
    return document


def simulation_lines(document: dict[str, Any]) -> list[str]:
    """Return what Section 3.2 says of a simulation, in sentences, with the paper's figures."""
    counts = ", ".join(f"{n}: {k}" for n, k in document["best_option_counts_of_maxima"].items())
    lines = [f"patterns by best number of I/O nodes (largest repetition): {counts} (paper: 0: 62, 1: 12, 2: 83, 4: 15, "
             "8: 17)"]
    nodes = document["set_compute_nodes"]
    lines.append(f"compute nodes of a set: {nodes['min']:g}, median {nodes['median']:g}, {nodes['max']:g} (paper: 88, "
                 f"256, 512); STATIC's system has {document['system_compute_nodes'] or 'those of the set'}")
    gains = document["gains"]
    if "oracle_over_zero" in gains:
        each = {key: 100 * (value - 1) for key, value in gains["oracle_over_zero"].items()}
        lines.append(f"ORACLE over ZERO: {each['min']:+.2f} % to {each['max']:+.2f} %, median {each['median']:+.2f} % "
                     "(paper: +0.83, +121.68, +25.63)")
    if "one_over_zero" in gains:
        lines.append(f"ONE: median slowdown {100 * (1 - gains['one_over_zero']['median']):.2f} % (paper: 82.11)")
    meets = document["mckp_meets_oracle_io_nodes"]
    lines.append(f"MCKP meets ORACLE with {meets['median']:g} I/O nodes in the median set, {meets['max']:g} in all "
                 "(paper: 56)")
    if "mckp_over_static" in gains:
        pairs = list(zip(document["pools"], gains["mckp_over_static"], strict=True))
        lines += _gain_lines(dict(pairs))
        below = document["sets_where_mckp_is_below_static_within_the_pool"]
        given = {pool: number for pool, number in zip(document["pools"], document["sets_beyond_the_pool"]["static"],
                                                      strict=True) if number}
        within = document["sets"] * len(pairs) - sum(given.values())
        lines.append(f"MCKP below STATIC: in {below} of the {within:,} cases where STATIC stays within the pool")
        if given:
            lines.append(f"STATIC gives more I/O nodes than there are in {sum(given.values()):,} cases, of the "
                         f"{document['sets']:,} sets: " + ", ".join(f"{number:,} with {pool}" for pool, number
                                                                    in given.items()) + "; MCKP below STATIC in "
                         f"{document['sets_where_mckp_is_below_static_beyond_the_pool']:,} of them")
    return lines


def _gain_lines(gains: Mapping[int, Mapping[str, float]]) -> list[str]:
    """Return what Section 3.2 says of MCKP over STATIC, of the sizes of the pool that were simulated."""
    most = max(gains, key=lambda pool: gains[pool]["median"])
    given = {pool: each for pool, each in gains.items() if pool > 0}
    lines = [f"MCKP over STATIC: largest median {gains[most]['median']:.2f}× with {most} I/O nodes (paper: 5.11× with "
             "24)"]
    if 24 in gains:
        lines.append("MCKP over STATIC with 24: {min:.2f}×, median {median:.2f}×, {max:.2f}× (paper: 1.03, 5.11, "
                     "15.06)".format_map(gains[24]))
    if 56 in gains:
        each = {key: 100 * (value - 1) for key, value in gains[56].items()}
        lines.append("MCKP over STATIC with 56: {min:+.2f} %, median {median:+.2f} %, {max:+.2f} % (paper: +4.08, "
                     "+211.38, +739.22)".format_map(each))
    if 64 in gains and 128 in gains:
        lines.append(f"MCKP over STATIC, medians with 64 and 128: {gains[64]['median']:.2f}× and "
                     f"{gains[128]['median']:.2f}× (paper: 2.7 to 1.6)")
    if given:
        mean = sum(each["mean"] for each in given.values()) / len(given)
        largest = max(each["max"] for each in given.values())
        lines.append(f"MCKP over STATIC, all pools but 0: mean {mean:.2f}×, largest {largest:.2f}× (paper: 2.6, 23.75)")
    return lines


def queue_lines(results: Sequence[QueueResult]) -> list[str]:
    """Return a line for each policy; beside STATIC by the sum of the jobs' bandwidths, and by the time of the whole."""
    base = next((each for each in results if each.policy == "STATIC"), None)
    lines = []
    for each in results:
        text = (f"{each.policy}: {each.bandwidth / 1000:.2f} GB/s (sum of the jobs' means), {each.makespan_s:.0f} s, "
                f"{sum(job.changes for job in each.jobs)} changes of I/O nodes")
        if base is not None and each is not base:
            text += (f"; {each.bandwidth / base.bandwidth:.2f}× STATIC, and the queue is through "
                     f"{base.makespan_s / each.makespan_s:.2f}× as fast")
        lines.append(text)
    return lines


def queue_document(results: Sequence[QueueResult]) -> dict[str, Any]:
    """Return the results of queues; times in s, bandwidths in MB/s."""
    return {
        "what": "arbitration queue", "units": {"bandwidth": "MB/s (10^6 bytes)", "time": "s"},
        "policies": {
            result.policy.lower(): {
                "bandwidth": result.bandwidth, "makespan_s": result.makespan_s,
                "jobs": [{"name": job.name, "start_s": job.start_s, "end_s": job.end_s, "bandwidth": job.bandwidth,
                          "changes": job.changes} for job in result.jobs],
                "steps": [{"time_s": step.time_s, "bandwidth": step.bandwidth,
                           "jobs": {name: {"io_nodes": count, "bandwidth": value}
                                    for name, (count, value) in step.grants.items()}} for step in result.steps],
            } for result in results
        },
    }


def allocation_document(allocation: Allocation) -> dict[str, Any]:
    """Return an allocation; bandwidths in MB/s, null where nothing is known."""
    return {
        "what": "arbitration allocation", "units": {"bandwidth": "MB/s (10^6 bytes)"}, "policy": allocation.policy,
        "pool": allocation.pool, "io_nodes": allocation.io_nodes, "within_pool": allocation.is_within_pool,
        "bandwidth": allocation.bandwidth, "value": allocation.value, "bound": allocation.bound,
        "notes": list(allocation.notes),
        "jobs": {name: {"io_nodes": grant.io_nodes, "bandwidth": grant.bandwidth, "shared": grant.shared}
                 for name, grant in allocation.grants.items()},
    }
