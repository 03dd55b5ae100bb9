"""Curves stored between runs: one JSON file with versions, replaced as a whole.

Problem.    The curve of an application must be there at its next run, on another node, after an upgrade, and be
separate from later measurements. Algorithm.  Each save of a name adds a version. The newest is what `load` returns;
older ones stay (up to `KEPT`), so
            that a bad measurement can be undone. Then the store writes the version before it once more, as the newest;
            a second undo goes on to the one before that. A new file beside the old one replaces it by a rename; writers
            wait for one another by a lock file.
Guarantees. A reader sees the file before or after a save, never half of one. Two writers lose nothing. Units stand in
            the file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, DocumentError
from mpiio_ext.common.files import write_whole
from mpiio_ext.common.locks import alone
from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.errors import CurveError

#: Version of the file's format.
FORMAT = 1
#: Most stored versions of one curve.
KEPT = 8


_MBPerS = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPoint:
    """A point of a curve: number of I/O nodes and bandwidths in MB/s (10^6 bytes), as `Point` has them."""

    __pydantic_config__ = CLOSED

    io_nodes: Annotated[int, Field(ge=0)]
    mean_mb_per_s: _MBPerS
    best_mb_per_s: _MBPerS
    deviation_mb_per_s: _MBPerS | None
    repetitions: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a curve.

    Attributes
    ----------
    version : number, from 1
    time_s : when it was written, s since 1970 UTC
    source, points : the curve
    restored : the version that it is once more; None = it is new
    """

    __pydantic_config__ = CLOSED

    version: Annotated[int, Field(ge=1)]
    time_s: float
    source: str
    points: Annotated[tuple[StoredPoint, ...], Field(min_length=1)]
    restored: int | None = None

    @property
    def curve(self) -> Curve:
        """The curve."""
        points = {
            each.io_nodes: Point(
                mean=each.mean_mb_per_s,
                best=each.best_mb_per_s,
                deviation=each.deviation_mb_per_s,
                repetitions=each.repetitions,
            )
            for each in self.points
        }
        return Curve(points, source=self.source)

    @property
    def original(self) -> int:
        """Number of the version in which the curve was new."""
        return self.restored or self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    __pydantic_config__ = CLOSED

    format: int = FORMAT
    curves: dict[str, list[Version]] = field(default_factory=dict)


def _points(curve: Curve) -> tuple[StoredPoint, ...]:
    return tuple(
        StoredPoint(
            io_nodes=count,
            mean_mb_per_s=p.mean,
            best_mb_per_s=p.best,
            deviation_mb_per_s=p.deviation,
            repetitions=p.repetitions,
        )
        for count, p in curve.points.items()
    )


def plain(curve: Curve) -> dict[str, Any]:
    """Return a curve as JSON has it; bandwidths in MB/s."""
    return {"source": curve.source, "points": [asdict(point) for point in _points(curve)]}


def _append(versions: list[Version], source: str, points: tuple[StoredPoint, ...], restored: int | None = None) -> None:
    number = versions[-1].version + 1 if versions else 1
    versions.append(Version(version=number, time_s=time.time(), source=source, points=points, restored=restored))
    del versions[:-KEPT]


class Store:
    """Curves by name in one file.

    Parameters
    ----------
    path : the file; it need not be there yet, its folder must
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def _document(self) -> _Document:
        if not self.path.exists():
            return _Document()
        document = documents.read_json(self.path, CurveError)
        if isinstance(document, dict) and document.get("format") != FORMAT:
            raise CurveError(
                f"{self.path}: has format {document.get('format')!r}, and this version of mpiio_ext knows "
                f"{FORMAT}: upgrade it, or name another file"
            )
        try:
            return documents.parse(_Document, document)
        except DocumentError as error:
            raise CurveError(str(error.of(self.path))) from error

    def names(self) -> list[str]:
        """Return the names that have a curve."""
        return sorted(self._document().curves)

    def save(self, curves: Mapping[str, Curve]) -> None:
        """Add a version of each curve.

        Raises
        ------
        CurveError
            The file is no store of this format; the file is not changed.
        FileSystemError
            The file cannot be written.
        """
        with alone(self.path):
            document = self._document()
            for name, curve in curves.items():
                _append(document.curves.setdefault(name, []), curve.source, _points(curve))
            self._replace(document)

    def _replace(self, document: _Document) -> None:
        write_whole(self.path, json.dumps(asdict(document), indent=1))

    def undo(self, name: str) -> int:
        """Make the version before the one in force the newest again; no version is deleted.

        Returns
        -------
        int
            The version that holds again, by the number that it had.

        Raises
        ------
        CurveError
            The store has no such curve, or no version before the one in force, or the file is no store.
        FileSystemError
            The file cannot be written.
        """
        with alone(self.path):
            document = self._document()
            kept = document.curves.get(name, [])
            if not kept:
                raise CurveError(f"{self.path}: has no curve {name!r}")
            in_force = kept[-1].original
            earlier = [each for each in kept if each.original < in_force]
            if not earlier:
                raise CurveError(f"{self.path}: curve {name!r} has no version before {in_force} that is stored")
            found = max(earlier, key=lambda each: each.original)
            _append(kept, found.source, found.points, found.original)
            self._replace(document)
            return found.original

    def history(self, name: str) -> list[Version]:
        """Return the facts of the stored versions of a curve, oldest first."""
        return self._document().curves.get(name, [])

    def versions(self, name: str) -> list[int]:
        """Return the stored versions of a curve, ascending."""
        return [each.version for each in self.history(name)]

    def load(self, name: str, version: int | None = None) -> Curve:
        """Return a curve, its newest version unless one is named.

        Raises
        ------
        CurveError
            The store has no such curve or version, or the file is no store.
        """
        for each in reversed(self.history(name)):
            if version in (None, each.version):
                return each.curve
        raise CurveError(f"{self.path}: has no curve {name!r}" + ("" if version is None else f" of version {version}"))
