"""SIZE: the pool divided by compute nodes."""

from __future__ import annotations

from mpiio_ext.delegates.arbitration.rules.base import Formula, Ints, Sizes


def proportional(sizes: Ints, io_nodes: int) -> Ints:
    """Return round(F s / sum of s), halves up, for the sizes s of jobs, (..., jobs)."""
    total = sizes.sum(axis=-1, keepdims=True)
    shares: Ints = (2 * io_nodes * sizes + total) // (2 * total)
    return shares


class Size(Formula):
    """The pool divided by compute nodes of the running jobs."""

    name, order = "SIZE", 3
    rule, exceeds = "the pool × share of compute nodes, rounded", "by rounding"
    colour, marker = "series5", "D"

    def wanted(self, sizes: Sizes) -> Ints:
        """Return the share of the pool."""
        return proportional(sizes.compute_nodes, sizes.io_nodes)
