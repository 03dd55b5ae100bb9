"""Sources: each reads one kind of file, and returns its content as Arrow tables, unmodified, with units.

Other packages add theirs as entry points of the group ``mpiio_ext.analytics.connectors``, name = source.

Example
-------
>>> from mpiio_ext.analytics import sources
>>> records = sources.read("ost-fullness.txt.gz", time_zone="America/Los_Angeles")    # doctest: +SKIP
>>> records.source, records.status, records.tables["targets"].num_rows                # doctest: +SKIP
('lfs-df', 'whole', 23800)
"""

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
