"""Logs in Darshan's own format of what the tracer saw: tools that read Darshan logs read runs of this library."""

from __future__ import annotations

from mpiio_ext.pioneer.darshan.convert import Written, convert

__all__ = ["Written", "convert"]
