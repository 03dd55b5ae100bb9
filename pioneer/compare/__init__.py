"""How close a synthetic workload comes to the one it stands for.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
section VI-B, and the characteristics of its Table III.
"""

from __future__ import annotations

from mpiio_ext.pioneer.compare.metrics import LIMITS, Fidelity, compare_paths

__all__ = ["LIMITS", "Fidelity", "compare_paths"]
