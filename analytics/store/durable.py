"""Files that are whole or not there: written under another name, brought to the disk, then renamed.

Problem. A fill may be killed between any two system calls. What readers see must be the state before or after.

Algorithm. Write to ``NAME.tmp``, fsync, rename, fsync the folder. A name that ends in ``.tmp`` is a leftover of a
killed process, and so is every file that the manifest does not name. :func:`step` marks each point between two changes
of the disk; tests end the process there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["TEMPORARY", "replacing", "step", "sync_folder", "write_text"]

#: How names of files end that are not whole yet.
TEMPORARY = ".tmp"


def step(name: str) -> None:
    """Mark a point between two changes of the disk; `name` says which. Does nothing: tests put an end there."""


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; file systems that cannot are let be."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; afterwards the file stands under `path`, whole and on the disk.

    When the block raises, the temporary file is removed and `path` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + TEMPORARY)
    step(f"before {path.name}")
    try:
        yield part
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    step(f"written {path.name}")
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.replace(path)
    step(f"renamed {path.name}")
    sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Put `text` (UTF-8) in the place of the file `path`."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
