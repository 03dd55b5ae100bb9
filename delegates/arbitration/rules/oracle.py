"""ORACLE: an upper bound for every policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpiio_ext.delegates.arbitration.formulas import fitted, options, static_share
from mpiio_ext.delegates.arbitration.jobs import Allocation, Job, Machine
from mpiio_ext.delegates.arbitration.rules.base import Floats, Policy, check_jobs, grant_of
from mpiio_ext.delegates.arbitration.sets import Sets


class Oracle(Policy):
    """The best number for each job, whatever the pool. A job without a curve gets STATIC's number."""

    name, order = "ORACLE", 5
    rule, exceeds = "the best number, whatever the pool: an upper bound", "yes"
    asks_curves = True
    colour, marker, line = "ink", "", "--"

    def allocate(self, jobs: Sequence[Job], machine: Machine) -> Allocation:
        """Decide; see :class:`Policy`."""
        check_jobs(jobs)
        total = machine.compute_nodes or sum(job.compute_nodes for job in jobs)

        def best(job: Job) -> int:
            usable, curve = options(job, machine, limited=False), job.curve
            if curve is None:
                return fitted(static_share(job.compute_nodes, machine.io_nodes, total), usable)
            return max(usable, key=lambda count: (curve.bandwidth(count), -count))

        return Allocation(
            policy=self.name, grants={job.name: grant_of(job, best(job)) for job in jobs}, pool=machine.io_nodes
        )

    def simulate(self, sets: Sets) -> tuple[Floats, None]:
        """Decide for all sets at once; see :class:`Policy`."""
        return np.repeat(sets.reached(sets.best_places())[0][:, None], sets.pools.size, 1), None
