"""STATIC: the rule of machines with a forwarding layer."""

from __future__ import annotations

from mpiio_ext.delegates.arbitration.formulas import static_share
from mpiio_ext.delegates.arbitration.rules.base import Formula, Ints, Sizes


class Static(Formula):
    """ceil(Ca / R) with R = C / F of the whole system."""

    name, order = "STATIC", 2
    rule = "⌈Ca / R⌉, R = compute nodes ÷ I/O nodes of the system; running jobs keep their I/O nodes"
    exceeds = "by rounding up"
    reallocates = False
    asks_system = True
    colour, marker = "series1", "s"

    def wanted(self, sizes: Sizes) -> Ints:
        """Return the share of the system."""
        return static_share(sizes.compute_nodes, sizes.io_nodes, sizes.total)
