"""Which connector reads which source: by name, or by what a file begins with.

Connectors are imported when they are asked for: h5py and libdarshan-util are slow to import, and may be missing.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import warnings
from pathlib import Path
from typing import Literal, Protocol, cast

from mpiio_ext.analytics.connectors.sources.content import head_of
from mpiio_ext.analytics.connectors.sources.numbers import zone_of
from mpiio_ext.analytics.connectors.sources.records import Records, SourceError
from mpiio_ext.analytics.tables.schema import Table

__all__ = ["BUILT_IN", "ENTRY_POINTS", "Connector", "Head", "Role", "connector_of", "connectors", "local_times",
           "names", "read", "recognize", "write"]  # fmt: skip

#: Group of the entry points by which other packages add connectors; name = source.
ENTRY_POINTS = "mpiio_ext.analytics.connectors"

#: What a source is good for: what servers moved; how full targets are; which server a target is on; jobs; where nodes
#: are; any series over time; runs of programs.
Role = Literal["traffic", "fullness", "failover", "jobs", "topology", "series", "programs"]

_PACKAGE = "mpiio_ext.analytics.connectors.sources"
#: Source -> module; in the order in which they are asked whether a file is theirs.
BUILT_IN = {
    "darshan": f"{_PACKAGE}.darshan",
    "lmt": f"{_PACKAGE}.lmt",
    "jobsdb": f"{_PACKAGE}.jobsdb",
    "ggiostat": f"{_PACKAGE}.ggiostat",
    "mmperfmon": f"{_PACKAGE}.mmperfmon",
    "lfs-df": f"{_PACKAGE}.lfsdf",
    "lctl-dl": f"{_PACKAGE}.lctl",
    "xtdb2proc": f"{_PACKAGE}.topology",
    "prometheus": f"{_PACKAGE}.prometheus",
    "arbiter": f"{_PACKAGE}.arbiter",
    "delegates": f"{_PACKAGE}.delegates",
    "arbitration": f"{_PACKAGE}.arbitration",
    "results": f"{_PACKAGE}.results",
    "slurm": f"{_PACKAGE}.slurm",
    "csv": f"{_PACKAGE}.series",
}


@dataclasses.dataclass(frozen=True)
class Head:
    """The beginning of a file, by which it is recognised.

    Attributes
    ----------
    path : Path
    data : bytes
        Up to 64 KiB of it, uncompressed; empty for a folder.
    tables : frozenset of str
        Names of the tables of an SQLite database; empty for other files.
    members : tuple of str
        Names of the first files of a tar archive; empty for other files.
    """

    path: Path
    data: bytes
    tables: frozenset[str] = frozenset()
    members: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What it begins with, as text; bytes that are none are U+FFFD."""
        return self.data.decode("utf-8", "replace")


class Connector(Protocol):
    """What a connector offers; a module with these names is one.

    Attributes
    ----------
    NAME : str
        Name of the source.
    MEANING : str
        One line for people.
    ROLE : str
        One of :data:`Role`.
    TABLES : tuple of Table
        The tables that it returns: names, types, units and meanings of their columns.
    PATTERNS : tuple of str
        Usual names of its files (shell patterns).
    """

    NAME: str
    MEANING: str
    ROLE: Role
    TABLES: tuple[Table, ...]
    PATTERNS: tuple[str, ...]

    def recognizes(self, head: Head) -> bool:
        """Return whether a file is of this source, by its beginning."""
        ...

    def read(self, path: Path, time_zone: str) -> Records:
        """Read a file, compressed by gzip or not.

        Parameters
        ----------
        path : Path
        time_zone : str
            Of times without zone, a name as Europe/Berlin.

        Raises
        ------
        SourceError
            Nothing of it can be read. Lines that cannot be read are no error: they are among the problems.
        """
        ...

    def write(self, records: Records, path: Path) -> None:
        """Write records in the source's own form, which :meth:`read` makes the same tables of.

        Raises
        ------
        SourceError
            The source has no form that this package writes (use :meth:`Records.save`), or it cannot be written.
        """
        ...


@functools.cache
def _others() -> dict[str, Connector]:
    """Return the connectors of other packages; one that cannot be imported is left out with a warning."""
    found: dict[str, Connector] = {}
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
            missing = [name for name in _WANTED if not hasattr(loaded, name)]
            if missing:
                raise TypeError(f"it has no {', '.join(missing)}")
            if entry.name != loaded.NAME:
                raise ValueError(f"it is called {loaded.NAME!r}")
            found[entry.name] = cast("Connector", loaded)
        except Exception as error:  # whatever another package does on import
            warnings.warn(f"connector {entry.name} ({entry.value}) is left out: {error}", RuntimeWarning, stacklevel=2)
    return found


_WANTED = ("NAME", "MEANING", "ROLE", "TABLES", "PATTERNS", "recognizes", "read", "write")


def connectors() -> dict[str, Connector]:
    """Return all connectors by the name of their source: the built-in ones, then those of other packages."""
    own = {name: connector_of(name) for name in BUILT_IN}
    return own | {name: other for name, other in _others().items() if name not in own}


def names() -> list[str]:
    """Return the names of all sources; connectors of other packages are not loaded for it."""
    found = [entry.name for entry in importlib.metadata.entry_points(group=ENTRY_POINTS)]
    return list(dict.fromkeys([*BUILT_IN, *found]))


def connector_of(source: str) -> Connector:
    """Return the connector of a source.

    Raises
    ------
    SourceError
        There is none of this name.
    """
    if source in BUILT_IN:
        return cast("Connector", importlib.import_module(BUILT_IN[source]))
    others = _others()
    if source not in others:
        known = ", ".join([*BUILT_IN, *others])
        raise SourceError(source, 0, f"there is no connector of this name; there are {known}")
    return others[source]


def recognize(path: str | Path) -> Connector:
    """Return the connector that a file belongs to, by what it begins with; connectors of other packages are asked last.

    Raises
    ------
    SourceError
        The file cannot be read, or no connector knows it.
    """
    path = Path(path)
    head = Head(path, *head_of(path))
    for connector in connectors().values():
        if connector.recognizes(head):
            return connector
    raise SourceError(str(path), 0, f"no connector knows this; name one of {', '.join(connectors())}")


def local_times(path: str | Path, source: str | None = None) -> bool:
    """Return whether times of a file are local and do not say their zone, as far as its beginning tells.

    A connector says so by a function ``local_times(head)``; times of one without it have a zone.

    Raises
    ------
    SourceError
        The file cannot be read, or no connector knows it.
    """
    connector = recognize(path) if source is None else connector_of(source)
    asked = getattr(connector, "local_times", None)
    return asked is not None and bool(asked(Head(Path(path), *head_of(Path(path)))))


def read(path: str | Path, source: str | None = None, *, time_zone: str = "UTC") -> Records:
    """Read a source.

    Parameters
    ----------
    path : path
        A file, compressed by gzip or not; of some sources a folder.
    source : str, optional
        Name of its connector; else it is recognised.
    time_zone : str
        Of times without zone.

    Raises
    ------
    SourceError
        Nothing of it can be read, or there is no such time zone.
    """
    try:
        zone_of(time_zone)
    except ValueError as error:
        raise SourceError(str(path), 0, str(error)) from error
    connector = recognize(path) if source is None else connector_of(source)
    return connector.read(Path(path), time_zone)


def write(records: Records, path: str | Path) -> None:
    """Write records in the own form of their source; :meth:`Records.save` writes JSON of any.

    Raises
    ------
    SourceError
        The source has no form that this package writes, or it cannot be written.
    """
    connector_of(records.source).write(records, Path(path))
