"""Connectors of monitoring sources: each returns what one source says, unmodified, and writes it again.

A connector is a module, or any object, with the attributes of :class:`~.registry.Connector`. Other packages add theirs
as entry points of the group ``mpiio_ext.analytics.connectors``, name = source.

Example
-------
>>> from mpiio_ext.analytics.connectors import sources
>>> records = sources.read("ost-fullness.txt.gz", time_zone="America/Los_Angeles")    # doctest: +SKIP
>>> records.source, records.status, records.tables["targets"].num_rows                # doctest: +SKIP
('lfs-df', 'whole', 23800)
"""

from mpiio_ext.analytics.connectors.sources.apart import ApartReader, read_apart
from mpiio_ext.analytics.connectors.sources.records import Problem, Records, SourceError, load
from mpiio_ext.analytics.connectors.sources.registry import (
    BUILT_IN,
    ENTRY_POINTS,
    Connector,
    Head,
    connector_of,
    connectors,
    local_times,
    read,
    recognize,
    write,
)

__all__ = [
    "BUILT_IN",
    "ENTRY_POINTS",
    "ApartReader",
    "Connector",
    "Head",
    "Problem",
    "Records",
    "SourceError",
    "connector_of",
    "connectors",
    "load",
    "local_times",
    "read",
    "read_apart",
    "recognize",
    "write",
]
