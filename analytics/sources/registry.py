"""The source of a file, by name or by its first bytes; and the kinds of logs that the store takes.

Modules of sources are imported when they are asked for: h5py is slow to import, or missing.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mpiio_ext.analytics.sources.base import Connector, Converted, Head, Period, Source
from mpiio_ext.analytics.sources.content import head_of
from mpiio_ext.analytics.sources.numbers import zone_of
from mpiio_ext.analytics.sources.records import Records, SourceError
from mpiio_ext.errors import MpiioExtWarning

#: Group of the entry points by which other packages add sources; name = source.
ENTRY_POINTS = "mpiio_ext.analytics.connectors"

_PACKAGE = "mpiio_ext.analytics.sources"
#: Source -> module; in the order in which they are tried.
BUILT_IN = {
    "darshan": f"{_PACKAGE}.darshan",
    "lmt": f"{_PACKAGE}.lmt",
    "jobsdb": f"{_PACKAGE}.jobsdb",
    "ggiostat": f"{_PACKAGE}.ggiostat",
    "mmperfmon": f"{_PACKAGE}.mmperfmon",
    "mmdf": f"{_PACKAGE}.mmdf",
    "mmlsdisk": f"{_PACKAGE}.mmlsdisk",
    "lfs-df": f"{_PACKAGE}.lfsdf",
    "lctl-dl": f"{_PACKAGE}.lctl",
    "xtdb2proc": f"{_PACKAGE}.topology",
    "results": f"{_PACKAGE}.results",
    "slurm": f"{_PACKAGE}.slurm",
    "cobalt": f"{_PACKAGE}.cobalt",
    "csv": f"{_PACKAGE}.series",
}


# ---- sources ---------------------------------------------------------------------------------------------------------

_WANTED = ("NAME", "MEANING", "ROLE", "TABLES", "PATTERNS", "recognizes", "read")


class _Other(Source):
    """A source of another package: a module, or any object, with the names of `_WANTED`."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs
        self.NAME, self.MEANING, self.ROLE = theirs.NAME, theirs.MEANING, theirs.ROLE
        self.TABLES, self.PATTERNS = theirs.TABLES, theirs.PATTERNS

    def recognizes(self, head: Head) -> bool:
        return bool(self._theirs.recognizes(head))

    def local_times(self, head: Head) -> bool:
        asked = getattr(self._theirs, "local_times", None)
        return asked is not None and bool(asked(head))

    def read(self, path: Path, time_zone: str = "UTC", between: Period | None = None) -> Records:  # noqa: ARG002
        return cast("Records", self._theirs.read(path, time_zone))


@functools.cache
def _others() -> dict[str, Source]:
    """Return the sources of other packages; one that cannot be imported is left out with a warning."""
    found: dict[str, Source] = {}
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
            missing = [name for name in _WANTED if not hasattr(loaded, name)]
            if missing:
                raise TypeError(f"it has no {', '.join(missing)}")
            if entry.name != loaded.NAME:
                raise ValueError(f"it is called {loaded.NAME!r}")
            found[entry.name] = loaded if isinstance(loaded, Source) else _Other(loaded)
        except Exception as error:  # whatever another package does on import
            warnings.warn(f"connector {entry.name} ({entry.value}) is left out: {error}", MpiioExtWarning, stacklevel=2)
    return found


def connectors() -> dict[str, Source]:
    """Return all sources by name: the built-in ones, then those of other packages."""
    own = {name: connector_of(name) for name in BUILT_IN}
    return own | {name: other for name, other in _others().items() if name not in own}


def names() -> list[str]:
    """Return the names of all sources; those of other packages are not loaded for it."""
    found = [entry.name for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)]
    return list(dict.fromkeys([*BUILT_IN, *found]))


def connector_of(source: str) -> Source:
    """Return a source by name.

    Raises
    ------
    SourceError
        No source has this name.
    """
    if source in BUILT_IN:
        return cast("Source", importlib.import_module(BUILT_IN[source]).SOURCE)
    others = _others()
    if source not in others:
        known = ", ".join([*BUILT_IN, *others])
        raise SourceError(source, 0, f"there is no connector of this name; there are {known}")
    return others[source]


def recognize(path: str | Path) -> Source:
    """Return the source of a file, by its first bytes; sources of other packages are tried last.

    Raises
    ------
    SourceError
        The file cannot be read, or no source recognizes the file.
    """
    path = Path(path)
    head = head_of(path)
    for connector in connectors().values():
        if connector.recognizes(head):
            return connector
    raise SourceError(str(path), 0, f"no connector knows this; name one of {', '.join(connectors())}")


def local_times(path: str | Path, source: str | None = None) -> bool:
    """Return whether times of a file are local and without a zone, as far as its beginning shows.

    Raises
    ------
    SourceError
        The file cannot be read, or no source recognizes the file.
    """
    connector = recognize(path) if source is None else connector_of(source)
    return connector.local_times(head_of(Path(path)))


def read(
    path: str | Path, source: str | None = None, *, time_zone: str = "UTC", between: Period | None = None
) -> Records:
    """Read a file of a source.

    Parameters
    ----------
    path : path
        A file, compressed by gzip or not.
    source : str, optional
        Its name; else it is recognised.
    time_zone : str
        Of times without zone.
    between : (float, float), optional
        The period that is read, of a source of which a part can be; in seconds since 1970 UTC.

    Raises
    ------
    SourceError
        No part of the file can be read, or this machine does not know the time zone.
    """
    try:
        zone_of(time_zone)
    except ValueError as error:
        raise SourceError(str(path), 0, str(error)) from error
    connector = recognize(path) if source is None else connector_of(source)
    return connector.read(Path(path), time_zone, between)


# ---- logs of the store -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of log that the store takes, as in ``inputs`` of setup.json; its module has ``convert(logs, root, ...)``.

    Attributes
    ----------
    patterns : tuple of str
        Which names in an input folder are logs of this kind (shell patterns).
    tables : tuple of str
        Tables that it fills.
    chunk : int
        Logs of one call, at most.
    options : tuple of str
        Keywords of ``convert`` that the set-up gives.
    dated : bool
        Where the path has no date, the time of the last change is that of the contents.
    header : str
        Module with ``start_of(path)``, which returns the begin of the contents more exactly, or "".
    """

    patterns: tuple[str, ...]
    tables: tuple[str, ...]
    chunk: int = 1
    options: tuple[str, ...] = ()
    dated: bool = False
    header: str = ""


#: Every kind, by the name of its source.
KINDS: dict[str, Kind] = {
    "darshan": Kind(
        ("*.darshan", "*.darshan_partial"),
        ("darshan_job", "darshan_file"),
        256,
        dated=True,
        header=f"{_PACKAGE}.darshanheader",
    ),
    "slurm": Kind(
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
        ("slurm",),
        options=("time_zone",),
    ),
    "cobalt": Kind(("*.csv", "*.csv.gz", "*.log", "*.log.gz", "*.txt", "*.txt.gz"), ("slurm",), options=("time_zone",)),
    "lmt": Kind(
        ("*.h5lmt", "*.hdf5", "*.h5", "*.sqlite", "*.sqlite3", "*.sql", "*.sql.gz"), ("lmt",), options=("time_zone",)
    ),
    "results": Kind(("results.json", "*.jsonl"), ("runs", "darshan_job", "darshan_file"), 64),
}


def _call(module: str, options: Mapping[str, Any], logs: Sequence[str], root: str) -> Converted:
    return cast("Converted", importlib.import_module(module).convert(logs, root, **options))


def connector_for(kind: str, settings: Mapping[str, Any]) -> Connector:
    """Return the converter of a kind of log, with its options bound; it can be sent to another process."""
    options = {name: settings[name] for name in KINDS[kind].options if name in settings}
    return functools.partial(_call, BUILT_IN[kind], options)
