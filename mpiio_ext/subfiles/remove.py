"""Removes a file that is stored as several: subfiles, folder, index.

Problem. An index can name any file, and a command that is killed half-way must not leave a file that looks whole.

Algorithm. The remover removes only plain files that are named after the id of the index and their number. It removes
the first one, which carries the locks, last, and then the folder, if it is empty, and the index.

Guarantees. A file that is no index is refused, a link to one, and one with another index. After a kill, or an error, a
subfile is missing, so no reader takes the file for a complete one; started again, it removes the rest.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from mpiio_ext.common import files
from mpiio_ext.errors import FileSystemError
from mpiio_ext.subfiles.index import FOLDER, Stored, SubfilesError
from mpiio_ext.subfiles.openers import alone
from mpiio_ext.subfiles.stored import find, refuse_shared


def remove_subfiles(stored: Stored) -> None:
    """Remove subfiles, and their folder if it is empty then.

    Raises
    ------
    OSError
        A subfile cannot be removed.
    """
    for number, path in reversed([*enumerate(stored.subfiles)]):
        if stored.is_named(number) and path.is_file() and not path.is_symlink():
            path.unlink()
            files.step("subfile removed")
    if stored.folder.name.endswith(FOLDER):
        with contextlib.suppress(OSError):  # something else is in it
            stored.folder.rmdir()


def remove(path: Path) -> Stored:
    """Remove a file that is stored as several; return its facts.

    Raises
    ------
    SubfilesError
        The path is no index, or is a link to an index; or the index is damaged, or a program has the file open.
    FileSystemError
        A subfile cannot be removed; the index still exists.
    """
    stored = find(path)
    if path.is_symlink():
        raise SubfilesError(f"{path}: is a link: rm the index {path.resolve()}, or the link itself by plain rm")
    refuse_shared(stored)
    with alone(stored):
        try:
            remove_subfiles(stored)
            files.step("rm: subfiles")
            path.unlink(missing_ok=True)
        except OSError as error:
            raise FileSystemError(error.errno, f"cannot be removed: {error.strerror or error}", str(path)) from error
    return stored
