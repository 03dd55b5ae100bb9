"""Errors of the analytics for the user: the mistake, its place, and the remedy.

The error of tables of summaries.
"""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError


class AnalyticsError(MpiioExtError):
    """A set-up, a store, a query or an analysis that cannot be carried out; the message has reason and remedy."""


class HistoryError(AnalyticsError, ValueError):
    """A table of summaries cannot be read, lacks a needed column, or has an impossible value."""
