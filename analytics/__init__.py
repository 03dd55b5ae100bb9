"""Analytics of I/O logs: Darshan logs, traces and statistics as tables, queries over them, and reports."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiio_ext.analytics.errors import AnalyticsError
    from mpiio_ext.analytics.jobs.umami import of_job as umami
    from mpiio_ext.analytics.miner import IOMiner

__all__ = ["AnalyticsError", "IOMiner", "umami"]

#: Name -> (module, its name there); imported when first used: importing the package alone stays quick.
_LAZY = {
    "AnalyticsError": ("mpiio_ext.analytics.errors", "AnalyticsError"),
    "IOMiner": ("mpiio_ext.analytics.miner", "IOMiner"),
    "umami": ("mpiio_ext.analytics.jobs.umami", "of_job"),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)
