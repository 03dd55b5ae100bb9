"""Phase D: synthetic workload paths, and the rules that every path obeys.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
sections IV-B and V-D.
"""

from __future__ import annotations

from mpiio_ext.pioneer.synthesis.dependencies import Violation, find_violations
from mpiio_ext.pioneer.synthesis.scale import Scale
from mpiio_ext.pioneer.synthesis.synthesize import MODES, synthesize, with_shapes

__all__ = ["MODES", "Scale", "Violation", "find_violations", "synthesize", "with_shapes"]
