"""The error of tables of summaries."""

from __future__ import annotations

from mpiio_ext.analytics.errors import AnalyticsError


class HistoryError(AnalyticsError, ValueError):
    """A table of summaries cannot be read, lacks a needed column, or has an impossible value."""
