"""File-domain partitioning: which aggregator owns which stripes of a collective's access region.

``plan(geometry, method)`` runs the planner that the library itself uses in collective I/O and shows its result as NumPy
arrays. Nothing here needs MPI or touches a file. See docs/explanation/file-domains.md for the methods and their origin.

``python -m mpiio_ext.partitioning --help`` draws file domains.
"""

from __future__ import annotations

from mpiio_ext.partitioning._auto import LOCKS, Choice, Rule, choose, rules, rules_markdown
from mpiio_ext.partitioning._plan import (
    EXTENT_DTYPE,
    MAX_OFFSET_BYTES,
    MAX_PARTIES,
    SET_DTYPE,
    Geometry,
    Method,
    Plan,
    Sets,
    StripeSet,
    methods,
    plan,
)

__all__ = [
    "EXTENT_DTYPE",
    "LOCKS",
    "MAX_OFFSET_BYTES",
    "MAX_PARTIES",
    "SET_DTYPE",
    "Choice",
    "Geometry",
    "Method",
    "Plan",
    "Rule",
    "Sets",
    "StripeSet",
    "choose",
    "methods",
    "plan",
    "rules",
    "rules_markdown",
]
