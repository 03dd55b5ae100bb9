"""One fill at a time: a lock on the store's folder that ends with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from mpiio_ext.analytics.errors import AnalyticsError

__all__ = ["locked"]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the store in `folder` for changes; the folder is made when it is missing.

    Raises
    ------
    AnalyticsError
        Another process holds it (the message says which), or the file system has no locks.
    """
    path = folder / "lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise AnalyticsError(f"{folder}: the store's folder cannot be written: {error.strerror}") from error
    with stream:
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
        stream.seek(0)
        stream.truncate()
        stream.write(f"process {os.getpid()} on {platform.node()}\n")
        stream.flush()
        yield
