"""Readers of raw traces: one module for each format, found by the first bytes of a file.

A reader is any object with the attributes of `Reader`. Other packages add theirs as entry points of the group
``mpiio_ext.pioneer.readers``, name = format.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from mpiio_ext.pioneer.table import TraceInfo

__all__ = ["FORMATS", "GROUP", "Reader", "find_reader", "reader_of"]

GROUP = "mpiio_ext.pioneer.readers"

#: Format -> module with the functions of a Reader.
FORMATS = {
    "mpiio_ext": "mpiio_ext.pioneer.readers.own",
    "dftracer": "mpiio_ext.pioneer.readers.dftracer",
    "dxt": "mpiio_ext.pioneer.readers.dxt",
    "ltrace": "mpiio_ext.pioneer.readers.ltrace",
    "recorder": "mpiio_ext.pioneer.readers.recorder",
    "strace": "mpiio_ext.pioneer.readers.strace",
}


class Reader(Protocol):
    """The functions of a reader; a module with these names is one."""

    #: Name of the format.
    NAME: str

    def recognizes(self, path: Path) -> bool:
        """Return whether a file, or a folder, is a trace of this format. Reads a few KiB at most."""

    def read(self, paths: Sequence[Path]) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
        """Return the facts of the trace, and its rows as batches of `table.SCHEMA`.

        Rows of a rank come in the order in which it made the calls; ranks may follow each other or mix. The memory that
        is in use does not depend on the size of the trace. `TraceInfo` is complete when the last batch has been taken.

        Raises
        ------
        OSError
            A file cannot be read. Text that a reader cannot understand is no error: the sources' `Loss` counts it.
        """


def _load(name: str) -> Reader:
    if name in FORMATS:
        found: Reader = importlib.import_module(FORMATS[name])
        return found
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        loaded: Reader = entry.load()
        return loaded
    known = [*FORMATS, *(entry.name for entry in importlib.metadata.entry_points(group=GROUP))]
    raise ValueError(f"there is no reader of the format {name!r}; there are: {', '.join(sorted(known))}")


def reader_of(name: str) -> Reader:
    """Return the reader of a format by its name.

    Raises
    ------
    ValueError
        No reader has this name.
    """
    return _load(name)


def find_reader(path: Path) -> Reader:
    """Return the reader that recognizes a file or folder.

    Raises
    ------
    ValueError
        No reader recognizes the path.
    """
    others = [entry.name for entry in importlib.metadata.entry_points(group=GROUP)]
    for name in [*FORMATS, *others]:
        reader = _load(name)
        if reader.recognizes(path):
            return reader
    if importlib.import_module(FORMATS["strace"]).has_no_times(path):
        raise ValueError(f"{path}: strace recorded no times: start it with `-ttt -T`, and `-f -y`")
    raise ValueError(f"{path}: no reader recognizes this; there are readers of {', '.join([*FORMATS, *others])}")
