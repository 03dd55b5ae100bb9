"""Curves kept between runs: one JSON file, versioned, replaced whole.

Problem.    What was learnt of an application must be there at its next run, on another node, after an upgrade, and be
            told apart from what was measured since.
Algorithm.  Each save of a name adds a version: the newest is what `load` returns, older ones stay (up to `KEPT`), so
            that a bad measurement can be undone. The file is written beside the old one and renamed over it; writers
            take turns by a lock file.
Guarantees. A reader sees the file before or after a save, never half of one. Two writers lose nothing. Units stand in
            the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.errors import ArgumentError, FileSystemError

__all__ = ["FORMAT", "KEPT", "Store", "curve_of", "plain"]

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
                versions = document["curves"].setdefault(name, [])
                newest = versions[-1]["version"] if versions else 0
                versions.append({"version": newest + 1, "time_s": time.time(), **plain(curve)})
                del versions[:-KEPT]
            temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)

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
