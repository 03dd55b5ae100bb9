"""mpiio_ext.layout on XFS and ext4 of arrays, in files that are mounted for it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

from mpiio_ext.layout import Layout, inspect

pytestmark = pytest.mark.slow

LIMIT_S = 60
MIB = 2**20


def on(tmp_path: pathlib.Path, image_bytes: int, *command: str) -> Layout:
    """Make a file system in a file, mount it, and return what is known of a file on it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    image, point = tmp_path / "image", tmp_path / "mount"
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(image_bytes)
    subprocess.run([*command, str(image)], check=True, capture_output=True, timeout=LIMIT_S)
    mounted = subprocess.run(
        ["mount", "-o", "loop", str(image), str(point)], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a file cannot be mounted here: {mounted.stderr.strip()}")
    try:
        (point / "file").write_bytes(b"x")
        return inspect(point / "file")
    finally:
        subprocess.run(["umount", str(point)], check=True, timeout=LIMIT_S)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_xfs(tmp_path: pathlib.Path) -> None:
    found = on(tmp_path, 600 * MIB, "mkfs.xfs", "-q", "-l", "size=64m", "-d", "su=64k,sw=4")
    assert (found.value("file_system"), found.value("stripe_size"), found.value("stripe_count")) == ("xfs", 65536, 4)
    assert found.source("stripe_size") == "ioctl XFS_IOC_FSGEOMETRY (sunit)"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_ext4(tmp_path: pathlib.Path) -> None:
    found = on(tmp_path, 100 * MIB, "mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "stride=16,stripe_width=64")
    assert (found.value("file_system"), found.value("stripe_size")) == ("ext4", 64 * 4096)
    assert found.source("stripe_size") == "mountinfo option stripe"
