"""Arbitration: which job gets how many I/O nodes (delegates).

Policies behind one protocol (`POLICIES`, `policy`), the exact knapsack behind MCKP (`Solver`, `solve`), bandwidth
curves with their uncertainty, and simulations. See docs/arbitration.md.

Source throughout: Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms", IPDPS
2021, "the arbitration paper".
"""

from __future__ import annotations

from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.errors import CurveError, InfeasibleError
from mpiio_ext.delegates.arbitration.jobs import Allocation, Grant, Job, Machine
from mpiio_ext.delegates.arbitration.mckp import Mckp
from mpiio_ext.delegates.arbitration.policies import One, Oracle, Policy, Process, Size, Static, Zero
from mpiio_ext.delegates.arbitration.registry import POLICIES, policy
from mpiio_ext.delegates.arbitration.solver import Solution, Solver, profiles, solve, solve_arrays

__all__ = [
    "POLICIES",
    "Allocation",
    "Curve",
    "CurveError",
    "Grant",
    "InfeasibleError",
    "Job",
    "Machine",
    "Mckp",
    "One",
    "Oracle",
    "Point",
    "Policy",
    "Process",
    "Size",
    "Solution",
    "Solver",
    "Static",
    "Zero",
    "policy",
    "profiles",
    "solve",
    "solve_arrays",
]
