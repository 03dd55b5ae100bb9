"""A mounted folder: files that are stored as several are one file each to programs that know nothing of it; read-only.

The mount is a process of its own, as users have it. h5dump, h5py, netCDF4 and plain reads go through it. Needs
/dev/fuse, libfuse and the right to mount; without them the tests are skipped with that reason.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.common.extras import install_line
from support import mounts
from support.made_subfiles import IDENT, child, command, content, make

SIZE, UNIT, COUNT = 1_000_003, 4096, 5
RUNS = {0: b"begin" * 1000, 400_000: bytes(range(256)) * 400, SIZE - 3: b"end"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What is shown: files of each kind."""
    folder = tmp_path_factory.mktemp("shown")
    (folder / "deep").mkdir()
    make(folder / "f", RUNS, SIZE, UNIT, COUNT)
    make(folder / "deep" / "small", {0: b"0123456789" * 100}, 1000, 3, 4)
    make(folder / "writing", {0: b"abc"}, 600, 64, 3, whole=False)
    make(folder / "short", {0: b"x" * 600}, 600, 64, 3)
    os.truncate(folder / "short.subfiles" / f"{IDENT}.1", 5)
    make(folder / "empty", {}, 0, 64, 3)
    make(folder / "huge", {1 << 41: b"far"}, (1 << 42) + 1, 1 << 20, 3)
    (folder / "plain").write_bytes(b"plain text\n")
    (folder / "damaged").write_bytes(b"mpiio_ext subfiles 1\n")
    (folder / "link").symlink_to("f")
    (folder / "name with \udcff\n").write_bytes(b"odd")
    (folder / "odd.subfiles").mkdir()
    return folder


@contextlib.contextmanager
def mounted(path: pathlib.Path, at: pathlib.Path) -> Iterator[None]:
    """Mount for the block, or skip the test."""
    try:
        mounts.mount(path, at)
    except mounts.NoMountError as error:
        pytest.skip(str(error))
    try:
        yield
    finally:
        mounts.unmount(at)


@pytest.fixture(scope="module")
def shown(folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    at = tmp_path_factory.mktemp("at")
    with mounted(folder, at):
        yield at


def test_what_is_in_it(shown: pathlib.Path, folder: pathlib.Path) -> None:
    assert {one.name for one in shown.iterdir()} == {
        "f",
        "deep",
        "writing",
        "short",
        "empty",
        "huge",
        "plain",
        "damaged",
        "link",
        "name with \udcff\n",
        "odd.subfiles",
    }
    whole = content(RUNS, SIZE)
    assert (shown / "f").read_bytes() == (shown / "link").read_bytes() == whole
    assert (shown / "deep" / "small").read_bytes() == b"0123456789" * 100
    assert (shown / "empty").read_bytes() == b"" and (shown / "huge").stat().st_size == (1 << 42) + 1
    with (shown / "huge").open("rb") as stream:
        assert os.pread(stream.fileno(), 9, (1 << 41) - 3) == b"\0\0\0far\0\0\0"
    for name in ("plain", "name with \udcff\n"):
        assert (shown / name).read_bytes() == (folder / name).read_bytes()
    for name in ("f.subfiles", f"f.subfiles/{IDENT}.0", "nothing"):
        with pytest.raises(FileNotFoundError):
            (shown / name).stat()
    for name in ("short", "writing", "damaged"):
        with pytest.raises(OSError) as raised:
            (shown / name).read_bytes()
        assert raised.value.errno == errno.EIO


def test_nothing_can_be_changed(shown: pathlib.Path, folder: pathlib.Path) -> None:
    before = {one: one.stat().st_mtime_ns for one in folder.rglob("*")}
    for change in (
        lambda: (shown / "new").write_bytes(b""),
        lambda: (shown / "f").open("r+b"),
        lambda: (shown / "f").unlink(),
        lambda: (shown / "d").mkdir(),
        lambda: os.truncate(shown / "f", 0),
        lambda: (shown / "f").rename(shown / "g"),
        lambda: os.utime(shown / "f"),
        lambda: (shown / "f").chmod(0o777),
        lambda: (shown / "s").symlink_to("f"),
    ):
        with pytest.raises(OSError) as raised:
            change()
        assert raised.value.errno == errno.EROFS
    assert {one: one.stat().st_mtime_ns for one in folder.rglob("*")} == before
    assert (shown / "f").stat().st_mode & 0o222 == 0 and not os.access(shown / "f", os.W_OK)


@given(st.integers(0, SIZE + 10), st.integers(0, 300_000))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_range_is_read(shown: pathlib.Path, begin: int, length: int) -> None:
    with (shown / "f").open("rb") as stream:
        assert os.pread(stream.fileno(), length, begin) == content(RUNS, SIZE)[begin : begin + length]


def test_a_file_that_is_replaced_is_seen(shown: pathlib.Path, folder: pathlib.Path) -> None:
    """An index that becomes a plain file, and a plain file that becomes an index, below the mount."""
    make(folder / "changing", {0: b"first"}, 5, 2, 2)
    assert (shown / "changing").read_bytes() == b"first"
    assert command("merge", folder / "changing", "--in-place").exit_code == 0
    deadline_s = time.monotonic() + 60
    while (shown / "changing").read_bytes() != b"first" and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert (shown / "changing").read_bytes() == b"first" and not (shown / "changing.subfiles").exists()
    (folder / "changing").unlink()


def test_in_the_foreground(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("no FUSE: /dev/fuse cannot be opened")
    with child("mount", folder, tmp_path, "--foreground") as process:
        deadline_s = time.monotonic() + 60
        while not os.path.ismount(tmp_path) and process.poll() is None and time.monotonic() < deadline_s:
            time.sleep(0.05)
        if process.poll() is not None:
            pytest.skip(f"cannot mount here: {process.communicate()[1].decode()}")
        assert (tmp_path / "plain").read_bytes() == b"plain text\n"
        for name in ("writing", "short"):
            with pytest.raises(OSError):
                (tmp_path / name).open()
        mounts.unmount(tmp_path)
        said = process.communicate(timeout=60)[1].decode()
        assert process.returncode == 0 and f"mpiio-ext: {folder / 'writing'}: is not whole: the index says" in said
        assert f"mpiio-ext: {folder / 'short.subfiles' / IDENT}.1: is too short: 5 B" in said


def test_what_cannot_be_mounted(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    for path, at, words in (
        (folder / "plain", tmp_path, "Directory"),
        (folder, folder / "deep", "is inside the folder that it would show"),
        (folder, folder, "is inside the folder that it would show"),
    ):
        done = command("mount", path, at)
        assert done.exit_code == 2 and words in done.stderr, done.output
    assert command("mount", folder / "none", tmp_path).exit_code == 2


def test_without_the_extra_it_is_one_line(tmp_path: pathlib.Path) -> None:
    with child("mount", tmp_path, "/tmp", before="sys.modules['mfusepy'] = None") as process:
        err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 2 and install_line("mount") in err and len(err.splitlines()) == 1


def test_programs_that_know_nothing_of_it(tmp_path: pathlib.Path) -> None:
    """h5dump, h5py, netCDF4, ncdump or PnetCDF's, and cmp."""
    h5py, numpy, netcdf = (pytest.importorskip(name) for name in ("h5py", "numpy", "netCDF4"))
    shown, at = tmp_path / "shown", tmp_path / "at"
    for one in (shown, at):
        one.mkdir()
    with h5py.File(shown / "a.h5", "w") as file:
        file["x"] = numpy.arange(100_000.0)
    with netcdf.Dataset(shown / "b.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("t", 1000)
        file.createVariable("v", "f8", ("t",))[:] = numpy.arange(1000.0)
    for name, unit in (("a.h5", 64 << 10), ("b.nc", 100)):
        data = (shown / name).rename(tmp_path / name).read_bytes()
        make(shown / name, {0: data}, len(data), unit, 3)
    with mounted(shown, at):
        with h5py.File(at / "a.h5") as file:
            assert file["x"][...].sum() == 100_000 * 99_999 / 2
        with netcdf.Dataset(at / "b.nc") as file:
            assert file["v"][...].sum() == 1000 * 999 / 2
        for program, words, said in (
            ("h5dump", ["-d", "/x", "-s", "99999", "-c", "1"], "99999"),
            ("ncdump", ["-h"], "double v(t)"),
            ("ncmpidump", ["-h"], "double v(t)"),
        ):
            name = at / ("a.h5" if program == "h5dump" else "b.nc")
            if shutil.which(program) is not None:
                done = subprocess.run([program, *words, name], capture_output=True, text=True, timeout=60)
                assert done.returncode == 0 and said in done.stdout, done.stderr
        for name in ("a.h5", "b.nc"):
            assert subprocess.run(["cmp", at / name, tmp_path / name], timeout=60).returncode == 0
