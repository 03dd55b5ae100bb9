"""Errors of the analytics for the user: the mistake, its place, and the remedy."""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError


class AnalyticsError(MpiioExtError):
    """A set-up, a store, a query or an analysis that cannot be carried out; the message has reason and remedy."""
