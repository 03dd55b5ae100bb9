"""ONE: an I/O node for every job."""

from __future__ import annotations

import numpy as np

from mpiio_ext.delegates.arbitration.rules.base import Formula, Ints, Sizes


class One(Formula):
    """Every job gets one I/O node of its own, whether or not there are as many."""

    name, order = "ONE", 1
    rule, exceeds = "1", "yes"
    reallocates = False
    limited = False
    colour, marker = "series3", "v"

    def wanted(self, sizes: Sizes) -> Ints:
        """Return 1."""
        return np.ones_like(sizes.compute_nodes)
