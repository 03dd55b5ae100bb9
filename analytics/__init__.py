"""Analytics of I/O logs: Darshan logs, traces and statistics as tables, queries over them, and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpiio_ext.analytics.errors import AnalyticsError
    from mpiio_ext.analytics.miner import IOMiner

__all__ = ["AnalyticsError", "IOMiner"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: importing the package alone stays quick."""
    if name == "IOMiner":
        from mpiio_ext.analytics.miner import IOMiner

        return IOMiner
    if name == "AnalyticsError":
        from mpiio_ext.analytics.errors import AnalyticsError

        return AnalyticsError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
