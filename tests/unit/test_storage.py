"""Back ends of file access: whole transfers, lists of pieces, direct I/O, faults by rule, a full disk."""

from __future__ import annotations

import errno
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache

import pytest

from support import cbuild

MIB = 2**20
SKIPPED = 77
BACK_ENDS = (
    "posix",
    "auto",
    "io_uring",
    "io_uring-1",
    "io_uring-5",
    "direct-posix",
    "direct-auto",
    "direct-io_uring",
    "direct-read",
    "direct-write",
    "direct-changing",
)


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
    cbuild.passes(program, "units", tmp_path)


GOOD = "0 0 - 0 0"


@pytest.mark.parametrize(
    ("size", "rank", "fault", "line"),
    [
        (200_000, 0, None, GOOD),
        (200_000, 0, "", GOOD),
        (200_000, 0, "op=write,rank=1,after=2,errno=ENOSPC", GOOD),
        # The third request of 64 KiB fails; every open counts anew.
        (200_000, 1, "op=write,rank=1,after=2,errno=ENOSPC", f"-3 {errno.ENOSPC} write {3 * 65536} 0"),
        (10, 0, "op=open,errno=EACCES", f"-3 {errno.EACCES} open -1 0"),
        (10, 0, "op=close,errno=EIO", "0 0 - 0 -3"),
        # The path is a glob.
        (10, 0, "path=*.nc,errno=EIO", GOOD),
        (10, 0, "path=*.h5,errno=EIO", f"-3 {errno.EIO} write 10 0"),
    ],
)
def test_rules_of_the_environment(
    program: pathlib.Path, file: pathlib.Path, size: int, rank: int, fault: str | None, line: str
) -> None:
    assert write(program, file, size, rank=rank, fault=fault) == [line] * 2
    assert file.stat().st_size == size or line != GOOD


def test_a_bad_rule_is_reported_once_and_fails_every_open(program: pathlib.Path, file: pathlib.Path) -> None:
    done = cbuild.run(program, "write", str(file), "0", "10", MPIOX_FAULT="op=write,errno=ENOSPACE")
    assert done.stdout.splitlines() == [f"-2 {errno.EINVAL} MPIOX_FAULT -1 0"] * 2
    assert done.stderr.count("\n") == 1
    assert "MPIOX_FAULT=\"op=write,errno=ENOSPACE\": cannot parse 'errno=ENOSPACE'" in done.stderr


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


def test_the_name_until_a_file_is_whole(tmp_path: pathlib.Path) -> None:
    """Whoever is the last gives a file its name; nothing is replaced, and no link is followed."""
    cbuild.passes(cbuild.program("storage/test_staging.c", "storage"), tmp_path)


def test_descriptors_that_are_closed_and_opened_again(tmp_path: pathlib.Path) -> None:
    """The same file, whatever has become of its name and of the permission to open it; in a limit of 64."""
    cbuild.passes(cbuild.program("storage/test_pool.c", "storage"), tmp_path)


def test_descriptors_that_threads_close_and_open_again(tmp_path: pathlib.Path) -> None:
    """More files than may have a descriptor, used by several threads at once, under the thread sanitizer."""
    cbuild.passes(cbuild.threads_program("storage/test_pool.c", "storage"), tmp_path, "threads")


# ---- lists, back end by back end ------------------------------------------------------------------------------------


@cache
def lists(*sanitize: str, ring: bool = True) -> pathlib.Path:
    """Compile the conformance program, with io_uring where liburing is installed and `ring` asks for it."""
    found = subprocess.run(["pkg-config", "--exists", "liburing >= 2.2"], timeout=60).returncode == 0
    flags, more = ((*sanitize, "-DMPIOX_HAVE_IO_URING"), ("-luring",)) if ring and found else (sanitize, ())
    return cbuild.program("storage/test_storage_list.c", "storage", flags=flags, more=more)


def check_or_skip(program: pathlib.Path, *arguments: str) -> None:
    done = cbuild.run(program, *arguments)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.splitlines()[-1].endswith(" 0 failures")


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder on the file system of temporary files, and one on tmpfs."""
    if request.param == "disk":
        yield tmp_path
        return
    shm = pathlib.Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        pytest.skip("no /dev/shm")
    with tempfile.TemporaryDirectory(dir=shm, prefix="mpiio_ext_") as name:
        yield pathlib.Path(name)


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_conformance(back_end: str, folder: pathlib.Path) -> None:
    check_or_skip(lists(*cbuild.SANITIZE), "conformance", back_end, str(folder))


@pytest.mark.parametrize("back_end", ["posix", "auto", "io_uring", "direct-posix", "direct-io_uring"])
def test_threads_on_one_handle(back_end: str, folder: pathlib.Path) -> None:
    check_or_skip(lists(*cbuild.SANITIZE), "threads", back_end, str(folder))


@pytest.mark.parametrize("back_end", ["posix", "auto", "io_uring", "direct-io_uring"])
def test_threads_race_for_nothing(back_end: str, tmp_path: pathlib.Path) -> None:
    probe = ["-fsanitize=thread", "-x", "c", "-", "-o", str(tmp_path / "probe")]
    built = subprocess.run([cbuild.compiler(), *probe], input="int main(void) { return 0; }", text=True, timeout=60)
    if built.returncode != 0 or subprocess.run([str(tmp_path / "probe")], timeout=60).returncode != 0:
        pytest.skip("no thread sanitizer that runs here")
    check_or_skip(lists("-fsanitize=thread"), "threads", back_end, str(tmp_path))


def test_limits_of_a_list() -> None:
    check_or_skip(lists(*cbuild.SANITIZE), "limits")


# ---- wishes that cannot be granted are said once, and the data arrives ----------------------------------------------


def said(program: pathlib.Path, wish: str, folder: pathlib.Path) -> str:
    done = cbuild.run(program, "fallback", wish, str(folder))
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_io_uring_is_not_built_in(tmp_path: pathlib.Path) -> None:
    text = said(lists(*cbuild.SANITIZE, ring=False), "io_uring", tmp_path)
    assert text == "mpiio_ext: io_uring is not used, but posix: it was not built in (no liburing)\n"


def test_io_uring_is_refused_by_the_kernel(tmp_path: pathlib.Path) -> None:
    program = lists(*cbuild.SANITIZE)
    if program == lists(*cbuild.SANITIZE, ring=False):
        pytest.skip("liburing is not installed")
    text = said(program, "refused", tmp_path)
    assert text.startswith("mpiio_ext: io_uring is not used, but posix: it is not permitted")


def test_file_system_without_direct_io(tmp_path: pathlib.Path) -> None:
    """ramfs has none: O_DIRECT ends with EINVAL at open."""
    if os.geteuid() != 0:
        pytest.skip("mounting a ramfs needs root")
    mounted = subprocess.run(["mount", "-t", "ramfs", "ramfs", str(tmp_path)], capture_output=True, timeout=30)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a ramfs: {mounted.stderr.decode().strip()}")
    try:
        text = said(lists(*cbuild.SANITIZE), "direct-posix", tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True, timeout=30)
    assert text == "mpiio_ext: direct I/O is not used, but the page cache: the file system does not offer it\n"
