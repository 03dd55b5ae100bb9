"""The error of tables of summaries."""

from __future__ import annotations

from mpiio_ext.analytics.errors import AnalyticsError


class HistoryError(AnalyticsError, ValueError):
    """A table of summaries that cannot be read, lacks what is asked of it, or holds what is no such value."""
