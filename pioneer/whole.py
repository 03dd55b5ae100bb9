"""Files that are there whole or not at all: written under another name beside it, renamed when complete.

What was there before stays until then. A full disk leaves nothing behind, and its error names the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["written_whole"]


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give the name under which a file is to be written; behind the block it has the name that was asked for.

    Raises
    ------
    OSError
        It cannot be written; the message names the file. There is no part of it then.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror or error}", str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
