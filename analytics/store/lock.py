"""One fill at a time: a lock on a store's folder that ends with the process that owns it.

A second fill of a store is refused, since it may take hours.

Guarantees. A fill that fails before it has written anything leaves no files: a set-up with a wrong path makes no folder
that looks like a store. Only its owner removes the lock's file. A process that has waited for a file that was removed
meanwhile locks the new one, so that two fills never have locks of one name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common.locks import is_at, opened


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the store in `folder` for changes; create the folder if it is missing.

    After an error inside the block, the files made for the lock are removed, unless the folder has other files by then.

    Raises
    ------
    AnalyticsError
        Another process has the lock (the message names it), or the file system has no locks.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]  # deepest first
    with _held(folder) as stream:
        stream.seek(0)
        stream.truncate()
        stream.write(f"process {os.getpid()} on {platform.node()}\n")
        stream.flush()
        try:
            yield
        except BaseException:
            _undo(folder, made)
            raise


def _held(folder: Path) -> IO[str]:
    """Return the lock's file, open and locked."""
    path = folder / "lock"
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stream = opened(path)
        except OSError as error:
            raise AnalyticsError(f"{folder}: the store's folder cannot be written: {error.strerror}") from error
        try:
            _lock(stream, folder, path)
            if is_at(stream, path):
                return stream
        except BaseException:
            stream.close()
            raise
        stream.close()  # its holder failed, and removed it after it was opened here


def _lock(stream: IO[str], folder: Path, path: Path) -> None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.seek(0)
        holder = stream.read().strip() or "another process"
        raise AnalyticsError(
            f"{folder}: the store is being filled by {holder}; wait for it, or end it, and call again"
        ) from None
    except OSError as error:
        raise AnalyticsError(
            f"{path}: the file system has no locks ({error.strerror}); mount Lustre with -o flock, or choose a "
            "store folder elsewhere"
        ) from error


def _undo(folder: Path, made: Sequence[Path]) -> None:
    """Remove the lock's file and the folders that were made for it, if they are otherwise empty."""
    with contextlib.suppress(OSError):  # a file that cannot be removed does no harm
        if [each.name for each in folder.iterdir()] == ["lock"]:
            (folder / "lock").unlink()
            for each in made:
                each.rmdir()
