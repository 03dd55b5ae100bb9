"""The places of a path's files during a replay: all of them lie below one folder.

A path has the names of the program that was traced. ``/scratch/u/out.nc`` becomes ``FOLDER/scratch/u/out.nc``,
``run/out.nc`` becomes ``FOLDER/run/out.nc``. A name that would leave the folder is refused, with the option that
leaves it out of a path.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Protocol

_FIELD = re.compile(r"\{rank[^}]*\}")
_WILD = re.compile(r"([*?[])")

_MOST_OF_PART, _MOST_OF_NAME = 255, 3000  # bytes; the folder's own name comes before it


class PlaceError(ValueError):
    """A name has no place below the folder."""


def _parts(name: str) -> list[str]:
    """Return the parts of a name below a folder; none if it leads out, or is the folder itself."""
    parts = [part for part in PurePosixPath(posixpath.normpath(name)).parts if not part.startswith("/")]
    return [] if ".." in parts or "\0" in name else parts


def without_place(names: Iterable[str]) -> list[str]:
    """Return the names that have no place below any folder, sorted."""
    return sorted(name for name in names if not _parts(name))


def leave_out(names: Iterable[str]) -> str:
    """Return the options by which `pioneer path` and `all` leave out operations on files, as a shell has them.

    Parameters
    ----------
    names : of files, also templates of a path: their fields match any text.
    """
    patterns = [_FIELD.sub("*", _WILD.sub(r"[\1]", name)) for name in names]
    return " ".join(f"--skip {shlex.quote(pattern)}" for pattern in dict.fromkeys(patterns))


class Placing(Protocol):
    """Something that gives files places."""

    def of(self, name: str) -> Path:
        """Return the place of a file."""


class Places:
    """Names of a path below a folder.

    Parameters
    ----------
    folder : an existing folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def of(self, name: str) -> Path:
        """Return the place of a file.

        Raises
        ------
        PlaceError
            The name leads out of the folder, by ``..`` or by a symbolic link that is there, is empty, or longer than
            names are.
        """
        if any(len(os.fsencode(part)) > _MOST_OF_PART for part in name.split("/")) or (
            len(os.fsencode(name)) > _MOST_OF_NAME
        ):
            raise PlaceError(f"{name[:80]!r}... is longer than names of files are")
        parts = _parts(name)
        if not parts:
            raise PlaceError(
                f"{name!r} has no place below {self.folder}; a path is made without it by {leave_out([name])}"
            )
        place = self.folder.joinpath(*parts)
        if not place.parent.resolve().is_relative_to(self.folder) or place.is_symlink():
            raise PlaceError(f"{place}: a symbolic link leads out of {self.folder}, or may do so")
        return place
