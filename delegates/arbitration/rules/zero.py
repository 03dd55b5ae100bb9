"""ZERO: direct access for every job."""

from __future__ import annotations

import numpy as np

from mpiio_ext.delegates.arbitration.rules.base import Formula, Ints, Sizes


class Zero(Formula):
    """No job gets an I/O node (or its smallest option, if it must have one)."""

    name, order = "ZERO", 0
    rule = "0"
    reallocates = False
    colour, marker = "series4", "o"

    def wanted(self, sizes: Sizes) -> Ints:
        """Return 0."""
        return np.zeros_like(sizes.compute_nodes)
