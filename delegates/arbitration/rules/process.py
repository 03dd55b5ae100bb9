"""PROCESS: the pool divided by processes."""

from __future__ import annotations

from mpiio_ext.delegates.arbitration.rules.base import Formula, Ints, Sizes
from mpiio_ext.delegates.arbitration.rules.size import proportional


class Process(Formula):
    """The pool divided by processes of the running jobs."""

    name, order = "PROCESS", 4
    rule, exceeds = "the pool × share of processes, rounded", "by rounding"
    colour, marker = "series6", "P"

    def wanted(self, sizes: Sizes) -> Ints:
        """Return the share of the pool."""
        return proportional(sizes.processes, sizes.io_nodes)
