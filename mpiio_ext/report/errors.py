"""The report's error."""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError

EXIT_SLOWER = 1


class ReportError(MpiioExtError, ValueError):
    """The report cannot be made; the message is one line: the mistake, its place, the remedy."""
