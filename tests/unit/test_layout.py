"""What the library learns of a file's layout: the table of file systems, detection, hints."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess

import pytest

from support import cbuild

MIB = 2**20


class Layout(ctypes.Structure):
    """struct mpiox_layout."""

    _fields_ = (
        ("fs", ctypes.c_int),
        ("lock", ctypes.c_int),
        ("stripe_size", ctypes.c_int64),
        ("servers", ctypes.c_int32),
        ("hashed", ctypes.c_bool),
        ("stripe_known", ctypes.c_bool),
        ("coherent", ctypes.c_bool),
        ("refreshable", ctypes.c_bool),
        ("stripe_count", ctypes.c_int32),
        ("start", ctypes.c_int32),
        ("subfiles", ctypes.c_bool),
    )


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(cbuild.shared("layout")))
    lib.mpiox_layout_from_magic.argtypes = (ctypes.c_uint64, ctypes.POINTER(Layout))
    lib.mpiox_layout_detect.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int32, ctypes.POINTER(Layout))
    return lib


LOCKS = ("local", "server", "token", "none")
LOCAL, SERVER, TOKEN, NONE = range(4)
FILE_SYSTEMS = (
    "unknown",
    "tmpfs",
    "ext",
    "xfs",
    "btrfs",
    "lustre",
    "gpfs",
    "nfs",
    "fuse",
    "panfs",
    "pvfs",
    "overlay",
    "zfs",
    "f2fs",
    "ceph",
    "beegfs",
    "smb",
)


@pytest.mark.parametrize(
    ("magic", "name", "lock", "coherent"),
    [
        (0x01021994, "tmpfs", LOCAL, True),
        (0xEF53, "ext", LOCAL, True),
        (0x58465342, "xfs", LOCAL, True),
        (0x9123683E, "btrfs", LOCAL, True),
        (0x794C7630, "overlay", LOCAL, True),
        (0x2FC12FC1, "zfs", LOCAL, True),
        (0x0BD00BD0, "lustre", SERVER, False),
        (0x47504653, "gpfs", TOKEN, False),
        (0x6969, "nfs", NONE, False),
        (0x65735546, "fuse", NONE, False),
        (0x20030528, "pvfs", NONE, False),
        (0xFF534D42, "smb", NONE, False),
        (0xFFFFFFFF9123683E, "btrfs", LOCAL, True),  # sign-extended
        (0x12345678, "unknown", NONE, False),
    ],
)
def test_file_system_table(lib: ctypes.CDLL, magic: int, name: str, lock: int, coherent: bool) -> None:
    layout = Layout()
    lib.mpiox_layout_from_magic(magic, layout)
    assert (FILE_SYSTEMS[layout.fs], layout.lock) == (name, lock)
    assert (layout.coherent, layout.stripe_known) == (coherent, False)
    assert (layout.stripe_size, layout.servers) == (MIB, 1)


def test_lock_protocols_by_name(lib: ctypes.CDLL) -> None:
    for number, name in enumerate(LOCKS):
        found = ctypes.c_int(-1)
        assert lib.mpiox_layout_lock_find(name.encode(), ctypes.byref(found)) == 0
        assert found.value == number
    assert lib.mpiox_layout_lock_find(b"spin", ctypes.byref(ctypes.c_int())) == -2
    assert lib.mpiox_layout_lock_find(None, ctypes.byref(ctypes.c_int())) == -2


def detect(lib: ctypes.CDLL, path: pathlib.Path, unit: int = 0, factor: int = 0) -> Layout:
    layout = Layout()
    with path.open("w+b") as file:
        lib.mpiox_layout_detect(file.fileno(), unit, factor, layout)
    return layout


def test_detect_agrees_with_stat(lib: ctypes.CDLL, tmp_path: pathlib.Path) -> None:
    layout = detect(lib, tmp_path / "file")
    stat = shutil.which("stat")
    assert stat is not None
    magic = subprocess.run([stat, "-f", "-c", "%t", str(tmp_path)], capture_output=True, text=True, check=True).stdout
    expected = Layout()
    lib.mpiox_layout_from_magic(int(magic, 16), expected)
    assert (layout.fs, layout.lock, layout.coherent) == (expected.fs, expected.lock, expected.coherent)
    assert layout.stripe_size >= max(MIB, os.stat(tmp_path).st_blksize)


def test_detect_tmpfs(lib: ctypes.CDLL) -> None:
    path = pathlib.Path("/dev/shm") / f"mpiio_ext_test_{os.getpid()}"
    if not path.parent.is_dir():
        pytest.skip("no /dev/shm")
    try:
        layout = detect(lib, path)
    finally:
        path.unlink(missing_ok=True)
    assert FILE_SYSTEMS[layout.fs] == "tmpfs"
    assert layout.coherent
    assert not layout.stripe_known


def test_hints_win(lib: ctypes.CDLL, tmp_path: pathlib.Path) -> None:
    layout = detect(lib, tmp_path / "file", unit=12345, factor=7)
    assert (layout.stripe_size, layout.servers, layout.stripe_known) == (12345, 7, True)
    layout = detect(lib, tmp_path / "file", unit=-1, factor=-1)
    assert (layout.stripe_size >= MIB, layout.servers, layout.stripe_known) == (True, 1, False)
    layout = detect(lib, tmp_path / "file", unit=2**62 + 1)
    assert layout.stripe_size < 2**62


def test_bad_descriptor_gives_defaults(lib: ctypes.CDLL) -> None:
    layout = Layout()
    lib.mpiox_layout_detect(-1, 0, 0, layout)
    assert (layout.stripe_size, layout.servers, layout.coherent) == (MIB, 1, False)
    assert layout.lock == NONE


def test_detect_on_file_systems_that_are_not_at_hand() -> None:
    """Lustre, GPFS and a failing fstatfs, played by the test program."""
    cbuild.check(cbuild.program("layout/test_detect.c", "layout"))
