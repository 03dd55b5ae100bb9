"""A file that is there whole or not at all.

It is written under another name in the same folder and renamed when the file system has taken all of it, so that a
full disk, a signal or a lost connection never leaves half a page under the name that was asked for, nor harms a page
that was there before.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mpiio_ext.report.errors import ReportError

__all__ = ["check_target", "write_bytes", "write_whole"]


def check_target(path: Path, inputs: list[Path]) -> None:
    """Refuse a target that is an input, a folder, a device, or in no folder.

    Raises
    ------
    ReportError
        What is wrong with the target.
    """
    if path.is_dir():
        raise ReportError(f"{path}: is a folder; name a file, for example -o {path / 'report.html'}")
    if path.exists() and not path.is_file():
        raise ReportError(f"{path}: is not a regular file, so the page cannot be put in its place")
    if path.resolve() in {item.resolve() for item in inputs}:
        raise ReportError(f"{path}: holds results that the report is made from; name another file")
    if not path.parent.is_dir():
        raise ReportError(f"{path}: cannot be written: there is no folder {path.parent}")


def write_whole(path: Path, text: str) -> int:
    """Write `text` in UTF-8 and return its bytes.

    Raises
    ------
    ReportError
        The file cannot be written; then nothing is left behind, and what was there before still is.
    """
    return write_bytes(path, text.encode("utf-8", "replace"))  # a lone surrogate in a label must not end the report


def write_bytes(path: Path, content: bytes) -> int:
    """Write bytes and return how many; errors as of `write_whole`."""
    target = path.resolve()  # a link keeps pointing to the file
    temporary = target.with_name(f".{target.name[:200]}.{os.getpid()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise ReportError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return len(content)
