"""A model of file locking: the cost of file domains on a file system that locks, counted and timed.

``simulate(geometry, method, file_system=lustre(), window_bytes=...)`` runs the requests that the planners make through
a lock server (Lustre) or a token manager (GPFS), and returns counts for every server and a predicted time. Nothing
here needs MPI or touches a file. See docs/explanation/locks.md for the model, its assumptions
and the sources of the defaults.
"""

from __future__ import annotations

from mpiio_ext.partitioning.locks._outcome import Outcome
from mpiio_ext.partitioning.locks._simulate import simulate
from mpiio_ext.partitioning.locks._systems import FileSystem, cached, gpfs, lustre, uncached, unlocked

__all__ = ["FileSystem", "Outcome", "cached", "gpfs", "lustre", "simulate", "uncached", "unlocked"]
