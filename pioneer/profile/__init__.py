"""Phase C: open sessions and their characteristics, as a profile that a person can read and edit.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
sections IV-C and V-C, Table III.
"""

from __future__ import annotations

from mpiio_ext.pioneer.profile.characterize import ClassProfile, Profile, characterize
from mpiio_ext.pioneer.profile.distributions import Distribution
from mpiio_ext.pioneer.profile.sessions import Session, Sessions, find_sessions

__all__ = ["ClassProfile", "Distribution", "Profile", "Session", "Sessions", "characterize", "find_sessions"]
