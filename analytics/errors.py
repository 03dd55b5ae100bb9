"""Errors of the analytics for the user: what, where, and what to do."""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError


class AnalyticsError(MpiioExtError):
    """A set-up, a store, a query or an analysis that cannot be carried out; the message says why and what to do."""
