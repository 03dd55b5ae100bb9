"""Phase E: carrying out a workload path with any number of processes.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
section V-E.
"""

from __future__ import annotations

from mpiio_ext.pioneer.engine.coverage import LEFT_OUT, OPERATIONS, engine_name
from mpiio_ext.pioneer.engine.expected import comparable_path, expected_path
from mpiio_ext.pioneer.engine.places import PlaceError, Places
from mpiio_ext.pioneer.engine.plan import Plan, make_plan
from mpiio_ext.pioneer.engine.reduced import without_names
from mpiio_ext.pioneer.engine.run import Outcome, carry_out, prepare_files, replay
from mpiio_ext.pioneer.engine.tracer import recorded, unrecorded

__all__ = [
    "LEFT_OUT",
    "OPERATIONS",
    "Outcome",
    "PlaceError",
    "Places",
    "Plan",
    "carry_out",
    "comparable_path",
    "engine_name",
    "expected_path",
    "make_plan",
    "prepare_files",
    "recorded",
    "replay",
    "unrecorded",
    "without_names",
]
