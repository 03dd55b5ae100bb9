"""Phase E: carrying out a workload path with any number of processes.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
section V-E.
"""

from __future__ import annotations

from mpiio_ext.pioneer.engine.places import PlaceError, Places
from mpiio_ext.pioneer.engine.plan import OPERATIONS, Plan, make_plan
from mpiio_ext.pioneer.engine.run import Outcome, prepare_files, replay

__all__ = ["OPERATIONS", "Outcome", "PlaceError", "Places", "Plan", "make_plan", "prepare_files", "replay"]
