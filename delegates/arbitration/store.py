"""Curves kept between runs: one JSON file, versioned, replaced whole.

Problem.    What was learnt of an application must be there at its next run, on another node, after an upgrade, and be
            told apart from what was measured since.
Algorithm.  Each save of a name adds a version: the newest is what `load` returns, older ones stay (up to `KEPT`), so
            that a bad measurement can be undone: the version before it is written once more, as the newest; to undo
            again goes on to the one before that. The file is written beside the old one and renamed over it; writers
            take turns by a lock file.
Guarantees. A reader sees the file before or after a save, never half of one. Two writers lose nothing. Units stand in
            the file.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mpiio_ext.common.files import write_whole
from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.errors import ArgumentError, FileSystemError

#: Version of the file's format.
FORMAT = 1
#: Versions of one curve that are kept.
KEPT = 8


def plain(curve: Curve) -> dict[str, Any]:
    """Return a curve as JSON has it; bandwidths in MB/s."""
    return {
        "source": curve.source,
        "points": [{"io_nodes": count, "mean_mb_per_s": p.mean, "best_mb_per_s": p.best,
                    "deviation_mb_per_s": p.deviation, "repetitions": p.repetitions}
                   for count, p in curve.points.items()],
    }


def curve_of(document: Any, where: str) -> Curve:
    """Return the curve that :func:`plain` has written.

    Raises
    ------
    CurveError
        It is none; the message begins with `where`.
    """
    try:
        points = {int(p["io_nodes"]): Point(mean=float(p["mean_mb_per_s"]), best=float(p["best_mb_per_s"]),
                                            deviation=None if p["deviation_mb_per_s"] is None
                                            else float(p["deviation_mb_per_s"]), repetitions=int(p["repetitions"]))
                  for p in document["points"]}
        return Curve(points, source=str(document["source"]))
    except (KeyError, TypeError, ValueError, ArgumentError) as error:
        raise CurveError(f"{where}: is no curve: {type(error).__name__}: {error}") from error


class Version(NamedTuple):
    """A version of a curve.

    Attributes
    ----------
    version : number, from 1
    time_s : when it was written, s since 1970 UTC
    curve : itself
    restored : the version that it is once more; None = it is new
    """

    version: int
    time_s: float
    curve: Curve
    restored: int | None


def _original(entry: Mapping[str, Any]) -> int:
    return int(entry.get("restored") or entry["version"])


def _append(versions: list[dict[str, Any]], content: Mapping[str, Any]) -> None:
    newest = versions[-1]["version"] if versions else 0
    versions.append({"version": newest + 1, "time_s": time.time(), **content})
    del versions[:-KEPT]


class Store:
    """Curves by name in one file.

    Parameters
    ----------
    path : the file; it need not be there yet, its folder must
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def _document(self) -> dict[str, Any]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {"format": FORMAT, "curves": {}}
        except OSError as error:
            raise FileSystemError(error.errno, error.strerror, str(self.path)) from error
        try:
            document = json.loads(text)
        except ValueError as error:
            raise CurveError(f"{self.path}: is no JSON: {error}") from error
        if not isinstance(document, dict) or not isinstance(document.get("curves"), dict):
            raise CurveError(f"{self.path}: is no store of curves")
        if document.get("format") != FORMAT:
            raise CurveError(f"{self.path}: has format {document.get('format')!r}, and this version of mpiio_ext knows "
                             f"{FORMAT}: upgrade it, or name another file")
        return document

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            with self.path.with_name(f"{self.path.name}.lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise FileSystemError(error.errno, error.strerror, str(self.path)) from error

    def names(self) -> list[str]:
        """Return the names that have a curve."""
        return sorted(self._document()["curves"])

    def save(self, curves: Mapping[str, Curve]) -> None:
        """Add a version of each curve.

        Raises
        ------
        CurveError
            The file is no store of this format; it is left as it is.
        FileSystemError
            It cannot be written.
        """
        with self._alone():
            document = self._document()
            for name, curve in curves.items():
                _append(document["curves"].setdefault(name, []), plain(curve))
            self._replace(document)

    def _replace(self, document: Mapping[str, Any]) -> None:
        write_whole(self.path, json.dumps(document, indent=1))

    def undo(self, name: str) -> int:
        """Make the version before the one in force the newest again; nothing is deleted.

        Returns
        -------
        int
            The version that holds again, by the number that it had.

        Raises
        ------
        CurveError
            There is no such curve, none before the one in force, or the file is no store.
        FileSystemError
            It cannot be written.
        """
        with self._alone():
            document = self._document()
            kept = document["curves"].get(name, [])
            if not kept:
                raise CurveError(f"{self.path}: has no curve {name!r}")
            in_force = _original(kept[-1])
            earlier = [each for each in kept if _original(each) < in_force]
            if not earlier:
                raise CurveError(f"{self.path}: curve {name!r} has no version before {in_force} that is kept")
            found = max(earlier, key=_original)
            again = plain(curve_of(found, f"{self.path}: curve {name!r}, version {found['version']}"))
            _append(kept, {"restored": _original(found), **again})
            self._replace(document)
            return _original(found)

    def history(self, name: str) -> list[Version]:
        """Return what is known of the versions of a curve that are kept, oldest first."""
        where = f"{self.path}: curve {name!r}"
        return [Version(int(each["version"]), float(each["time_s"]), curve_of(each, where), each.get("restored"))
                for each in self._document()["curves"].get(name, [])]

    def versions(self, name: str) -> list[int]:
        """Return the versions of a curve that are kept, ascending."""
        return [int(each["version"]) for each in self._document()["curves"].get(name, [])]

    def load(self, name: str, version: int | None = None) -> Curve:
        """Return a curve, its newest version unless one is named.

        Raises
        ------
        CurveError
            There is none, or the file is no store.
        """
        for each in reversed(self._document()["curves"].get(name, [])):
            if version is None or each.get("version") == version:
                return curve_of(each, f"{self.path}: curve {name!r}, version {each.get('version')}")
        raise CurveError(f"{self.path}: has no curve {name!r}" + ("" if version is None else f" of version {version}"))
