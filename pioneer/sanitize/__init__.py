"""Phase A: from raw traces to the operations of the application, each with its file and offset.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
section V-A and Table II.
"""

from __future__ import annotations

from mpiio_ext.pioneer.sanitize.sanitize import APPLICATION, MASKS, SANITIZED, application_only, sanitize

__all__ = ["APPLICATION", "MASKS", "SANITIZED", "application_only", "sanitize"]
