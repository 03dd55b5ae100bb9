"""The arithmetic that policies share: options of a job, and the machine's default.

Source. Section 3.1 (options) and 3.2 (policies) of the arbitration paper. A formula's number may be none that the job
        can use; the paper's Table 4 (3 of the possible 0, 1, 2, 4, 8 becomes 2) shows that the next smaller one is
        taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.jobs import Job, Machine

Ints = npt.NDArray[np.int64]
Numbers = TypeVar("Numbers", int, Ints)


def options(job: Job, machine: Machine, *, limited: bool = True) -> tuple[int, ...]:
    """Return the numbers of I/O nodes that a job can use, ascending.

    Parameters
    ----------
    limited : leave out what exceeds the pool (ORACLE does not)

    Raises
    ------
    CurveError
        The job can use no number at all.
    """
    limit = machine.most if machine.most is not None else job.compute_nodes
    if limited:
        limit = min(limit, machine.io_nodes)
    counts: Sequence[int]
    if machine.counts is not None:
        counts = [c for c in machine.counts if job.curve is None or job.curve.counts[0] <= c <= job.curve.counts[-1]]
    else:
        counts = job.curve.counts if job.curve is not None else range(limit + 1)
    found = sorted(
        {
            count
            for count in counts
            if count <= limit and (count == 0 or not machine.divisible or job.compute_nodes % count == 0)
        }
    )
    if not machine.direct:
        found = [count for count in found if count > 0]
    if not found:
        raise CurveError(
            f"job {job.name!r}: none of {list(counts)} I/O nodes can be given to it: the pool has {machine.io_nodes}, "
            f"the limit for a job is {limit}, it has {job.compute_nodes} compute nodes and direct access is "
            f"{'allowed' if machine.direct else 'not allowed'}; measure other numbers, or change the limits"
        )
    return tuple(found)


def fitted(count: int, allowed: Sequence[int]) -> int:
    """Return the largest allowed number that is not larger than `count`, or the smallest one."""
    return max((each for each in allowed if each <= count), default=min(allowed))


def static_share(nodes: Numbers, io_nodes: int, total: int | Numbers) -> Numbers:
    """Return ceil(Ca / R) with R = C / F, before it is fitted to the options; 0 without I/O nodes.

    Parameters
    ----------
    nodes : compute nodes Ca of a job, or of each
    io_nodes : F, of the system
    total : compute nodes C of the system
    """
    share: Numbers = -(-nodes * io_nodes // total)  # rounded up, in whole numbers
    return share
