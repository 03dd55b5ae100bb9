"""Back ends of file access: whole transfers, faults by rule, a full disk."""

from __future__ import annotations

import errno
import os
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

from support import cbuild

MIB = 2**20


@pytest.fixture(scope="module")
def program() -> pathlib.Path:
    return cbuild.program("storage/test_storage.c", "storage")


def write(
    program: pathlib.Path, path: pathlib.Path, size: int, *, rank: int = 0, fault: str | None = None
) -> list[str]:
    """Open and write twice; return per attempt "result errno operation end-of-what-is-missing close-result"."""
    environment = {} if fault is None else {"MPIOX_FAULT": fault}
    return cbuild.check(program, "write", str(path), str(rank), str(size), **environment).splitlines()


@pytest.fixture()
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "data.h5"
    path.touch()
    return path


def test_back_ends_under_sanitizers(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = cbuild.check(program, "units", str(tmp_path))
    assert out.splitlines()[-1].endswith(" 0 failures")


def test_no_fault_without_the_variable(program: pathlib.Path, file: pathlib.Path) -> None:
    assert write(program, file, 200_000) == ["0 0 - 0 0"] * 2
    assert write(program, file, 200_000, fault="") == ["0 0 - 0 0"] * 2
    assert file.stat().st_size == 200_000


def test_environment_rules(program: pathlib.Path, file: pathlib.Path) -> None:
    fault = "op=write,rank=1,after=2,errno=ENOSPC"
    assert write(program, file, 200_000, rank=0, fault=fault) == ["0 0 - 0 0"] * 2
    # The third request of 64 KiB fails; every open counts anew.
    assert write(program, file, 200_000, rank=1, fault=fault) == [f"-3 {errno.ENOSPC} write {3 * 65536} 0"] * 2


def test_open_and_close_can_fail(program: pathlib.Path, file: pathlib.Path) -> None:
    assert write(program, file, 10, fault="op=open,errno=EACCES") == [f"-3 {errno.EACCES} open -1 0"] * 2
    assert write(program, file, 10, fault="op=close,errno=EIO") == ["0 0 - 0 -3"] * 2


def test_path_of_a_rule_is_a_glob(program: pathlib.Path, file: pathlib.Path) -> None:
    assert write(program, file, 10, fault="path=*.nc,errno=EIO") == ["0 0 - 0 0"] * 2
    assert write(program, file, 10, fault="path=*.h5,errno=EIO") == [f"-3 {errno.EIO} write 10 0"] * 2


def test_a_bad_rule_is_reported_once_and_fails_every_open(program: pathlib.Path, file: pathlib.Path) -> None:
    done = cbuild.run(program, "write", str(file), "0", "10", MPIOX_FAULT="op=write,errno=ENOSPACE")
    assert done.stdout.splitlines() == [f"-2 {errno.EINVAL} MPIOX_FAULT -1 0"] * 2
    assert done.stderr.count("\n") == 1
    assert "MPIOX_FAULT=\"op=write,errno=ENOSPACE\": cannot understand 'errno=ENOSPACE'" in done.stderr


def test_missing_file_and_folder(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert write(program, tmp_path / "none", 10) == [f"-3 {errno.ENOENT} open -1 0"] * 2
    assert write(program, tmp_path, 10) == [f"-3 {errno.EISDIR} open -1 0"] * 2


@pytest.fixture()
def small_disk(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, text=True, timeout=30
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=30)


def test_full_disk(program: pathlib.Path, small_disk: pathlib.Path) -> None:
    path = small_disk / "data"
    path.touch()
    lines = write(program, path, 2 * MIB)
    assert lines == [f"-3 {errno.ENOSPC} write {MIB + 65536} 0"] * 2
    assert path.stat().st_size == MIB


def test_file_size_limit(program: pathlib.Path, file: pathlib.Path) -> None:
    """EFBIG in the middle of a request, as with ulimit -f."""
    command = f"trap '' XFSZ; ulimit -f 97; exec {program} write {file} 0 200000"  # blocks of 1024 bytes
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [f"-3 {errno.EFBIG} write {2 * 65536} 0"] * 2, done.stderr
    assert file.stat().st_size == 97 * 1024
