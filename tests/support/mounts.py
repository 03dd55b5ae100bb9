"""A folder mounted by `subfiles mount`: what programs see of files that are stored as several, without the library."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

from support.made_subfiles import child


class NoMountError(RuntimeError):
    """Nothing can be mounted here; the message says why."""


def mount(path: pathlib.Path, at: pathlib.Path) -> None:
    """Show a folder, or one file, at a mount point, by a process of its own.

    Raises
    ------
    NoMountError
        There is no FUSE, or no right to mount.
    """
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise NoMountError("no FUSE: /dev/fuse cannot be opened")
    with child("mount", path, at) as process:
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if b"needs libfuse" in err or b"Operation not permitted" in err or b"fusermount" in err:
        raise NoMountError(f"cannot mount here: {err.decode().strip()}")
    assert process.returncode == 0 and not out, err
    assert os.path.ismount(at)


def unmount(at: pathlib.Path) -> None:
    """End a mount, and with it its process."""
    subprocess.run([shutil.which("fusermount3") or "fusermount", "-u", at], check=True, timeout=60)
    assert not os.path.ismount(at)


@contextlib.contextmanager
def mounted(path: pathlib.Path, at: pathlib.Path) -> Iterator[None]:
    """Mount for the block; raises as `mount`."""
    mount(path, at)
    try:
        yield
    finally:
        unmount(at)
