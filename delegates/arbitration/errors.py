"""The errors of arbitration."""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError


class CurveError(MpiioExtError, ValueError):
    """Measurements that cannot be used; the message names the file, the line and the remedy."""


class InfeasibleError(MpiioExtError, ValueError):
    """There is no allocation within the pool: the smallest options of all jobs together need more I/O nodes."""
