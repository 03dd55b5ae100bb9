"""Where the files of a path are when it is carried out: below one folder, and nowhere else.

A path has the names of the program that was traced. ``/scratch/u/out.nc`` becomes ``FOLDER/scratch/u/out.nc``,
``run/out.nc`` becomes ``FOLDER/run/out.nc``. A name that would leave the folder is refused.
"""

from __future__ import annotations

import posixpath
from pathlib import Path, PurePosixPath
from typing import Protocol

__all__ = ["PlaceError", "Places", "Placing"]


class PlaceError(ValueError):
    """A name has no place below the folder."""


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
            The name leads out of the folder, by ``..`` or by a symbolic link that is there, or is empty.
        """
        parts = [part for part in PurePosixPath(posixpath.normpath(name)).parts if not part.startswith("/")]
        if not parts or ".." in parts or "\0" in name:
            raise PlaceError(f"{name!r} has no place below {self.folder}")
        place = self.folder.joinpath(*parts)
        if not place.parent.resolve().is_relative_to(self.folder) or place.is_symlink():
            raise PlaceError(f"{place}: a symbolic link leads out of {self.folder}, or may do so")
        return place
