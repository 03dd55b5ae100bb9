"""Sources: each reads one kind of file, and returns its content as Arrow tables, unmodified, with units.

Other packages add theirs as entry points of the group ``mpiio_ext.analytics.connectors``, name = source.

Example
-------
>>> from mpiio_ext.analytics import sources
>>> records = sources.read("ost-fullness.txt.gz", time_zone="America/Los_Angeles")    # doctest: +SKIP
>>> records.source, records.status, records.tables["targets"].num_rows                # doctest: +SKIP
('lfs-df', 'whole', 23800)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiio_ext.analytics.sources.apart import ApartReader, read_apart
    from mpiio_ext.analytics.sources.base import Head, Source
    from mpiio_ext.analytics.sources.content import load
    from mpiio_ext.analytics.sources.records import Problem, Records, SourceError
    from mpiio_ext.analytics.sources.registry import (
        BUILT_IN,
        ENTRY_POINTS,
        connector_of,
        connectors,
        local_times,
        read,
        recognize,
    )

__all__ = [
    "BUILT_IN",
    "ENTRY_POINTS",
    "ApartReader",
    "Head",
    "Problem",
    "Records",
    "Source",
    "SourceError",
    "connector_of",
    "connectors",
    "load",
    "local_times",
    "read",
    "read_apart",
    "recognize",
]

#: Module -> its names; imported when first used: a reader of Darshan logs needs none of them.
_LAZY = {
    "apart": ("ApartReader", "read_apart"),
    "base": ("Head", "Source"),
    "content": ("load",),
    "records": ("Problem", "Records", "SourceError"),
    "registry": ("BUILT_IN", "ENTRY_POINTS", "connector_of", "connectors", "local_times", "read", "recognize"),
}


def __getattr__(name: str) -> object:
    for module, names in _LAZY.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
