"""Arbitration: which job gets how many I/O nodes (delegates).

Policies (`policy`, `policy_classes`), the exact knapsack behind MCKP (`Solver`, `solve`), bandwidth
curves with their uncertainty, and simulations (`simulate`, `run_queue`). See docs/explanation/arbitration.md.

Source throughout: Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms", IPDPS
2021, "the arbitration paper".
"""

from __future__ import annotations

from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.errors import CurveError, InfeasibleError
from mpiio_ext.delegates.arbitration.jobs import Allocation, Grant, Job, Machine
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.queue import QueueJob, QueueResult, run_queue
from mpiio_ext.delegates.arbitration.rules import policy, policy_classes
from mpiio_ext.delegates.arbitration.rules.base import Formula, Policy, Sizes
from mpiio_ext.delegates.arbitration.rules.mckp import Mckp
from mpiio_ext.delegates.arbitration.rules.one import One
from mpiio_ext.delegates.arbitration.rules.oracle import Oracle
from mpiio_ext.delegates.arbitration.rules.process import Process
from mpiio_ext.delegates.arbitration.rules.size import Size
from mpiio_ext.delegates.arbitration.rules.static import Static
from mpiio_ext.delegates.arbitration.rules.zero import Zero
from mpiio_ext.delegates.arbitration.sets import catalogue
from mpiio_ext.delegates.arbitration.simulation import Simulation, simulate
from mpiio_ext.delegates.arbitration.solver import Solution, Solver, profiles, solve, solve_arrays

__all__ = [
    "Allocation",
    "Curve",
    "CurveError",
    "Formula",
    "Grant",
    "InfeasibleError",
    "Job",
    "Machine",
    "Mckp",
    "One",
    "Oracle",
    "Pattern",
    "Point",
    "Policy",
    "Process",
    "QueueJob",
    "QueueResult",
    "Simulation",
    "Size",
    "Sizes",
    "Solution",
    "Solver",
    "Static",
    "Zero",
    "catalogue",
    "policy",
    "policy_classes",
    "profiles",
    "run_queue",
    "simulate",
    "solve",
    "solve_arrays",
]
