"""Which connector reads which kind of log, and which files of a folder are such logs.

Connectors are imported only when they are called: PyDarshan and h5py are slow to import, and may be missing.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.connectors.base import Connector, Converted

__all__ = ["KINDS", "Kind", "connector_for"]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of log.

    Attributes
    ----------
    name : str
        As in ``inputs`` of setup.json.
    module : str
        Module with ``convert(logs, root, **options)``.
    patterns : tuple of str
        Which names in an input folder are logs of this kind (shell patterns).
    options : tuple of str
        Keywords of ``convert`` that the set-up gives.
    tables : tuple of str
        Tables that it fills.
    chunk : int
        Logs of one call, at most.
    dated : bool
        Where the path has no date, the time of the last change is that of the contents.
    header : str
        Module with ``start_of(path)``, which tells better when the contents began, or "".
    """

    name: str
    module: str
    patterns: tuple[str, ...]
    options: tuple[str, ...]
    tables: tuple[str, ...]
    chunk: int
    dated: bool = False
    header: str = ""


_PACKAGE = "mpiio_ext.analytics.connectors"

#: Every kind, by name.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "darshan",
            f"{_PACKAGE}.darshan",
            ("*.darshan", "*.darshan_partial"),
            (),
            ("darshan_job", "darshan_file"),
            256,
            dated=True,
            header=f"{_PACKAGE}.darshanheader",
        ),
        Kind(
            "slurm",
            f"{_PACKAGE}.slurm",
            (
                "*.txt",
                "*.csv",
                "*.sacct",
                "*.slurm",
                "*.json",
                "*.sqlite3",
                "*.sqlite",
                "*.txt.gz",
                "*.sacct.gz",
                "*.json.gz",
            ),
            ("time_zone",),
            ("slurm",),
            1,
        ),
        Kind(
            "lmt",
            f"{_PACKAGE}.lmt",
            ("*.h5lmt", "*.hdf5", "*.h5", "*.sqlite", "*.sqlite3", "*.sql", "*.sql.gz"),
            ("time_zone", "between"),
            ("lmt",),
            1,
        ),
        Kind(
            "results",
            f"{_PACKAGE}.results",
            ("results.json", "*.jsonl"),
            (),
            ("runs", "darshan_job", "darshan_file"),
            64,
        ),
    )
}


def _call(module: str, options: Mapping[str, Any], logs: Sequence[str], root: str) -> Converted:
    convert = importlib.import_module(module).convert
    converted: Converted = convert(logs, root, **options)
    return converted


def connector_for(kind: str, settings: Mapping[str, Any]) -> Connector:
    """Return the connector of a kind of log with its options bound; it can be sent to another process."""
    found = KINDS[kind]
    options = {name: settings[name] for name in found.options if name in settings}
    return functools.partial(_call, found.module, options)
