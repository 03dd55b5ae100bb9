"""A delegate, in C, under sanitizers: clients that are threads and processes, against a model of the file's bytes."""

from __future__ import annotations

import pathlib
import re
import subprocess
from collections.abc import Callable

import pytest

from support import cbuild, fuzz
from support.marks import slow

SKIPPED = 77
MODULES = ("common", "typemap", "layout", "storage", "cache", "schedule", "server")


def checked(name: str) -> pathlib.Path:
    return cbuild.program(f"server/{name}.c", *MODULES)


def raced(name: str) -> pathlib.Path:
    return cbuild.threads_program(f"server/{name}.c", *MODULES)


def plain(name: str) -> pathlib.Path:
    """Compile without sanitizers, which take memory of their own, and quickly."""
    return cbuild.program(f"server/{name}.c", *MODULES, flags=("-O0",))


@pytest.mark.slow_with("1-5-0-1", "3-3-0-1", "4081-4-0-2", "7310-4-0-2")
@pytest.mark.parametrize(
    ("frames", "clients", "processes", "io_threads"),
    [(1, 5, 0, 1), (1, 4, 1, 3), (3, 3, 0, 1), (7, 4, 1, 2), (30, 6, 0, 3), (300, 3, 1, 1)]
    + [(tokens - 16, 4, 0, 2) for tokens in (4095, 4097, 7326, 65000)],
)
def test_model(tmp_path: pathlib.Path, frames: int, clients: int, processes: int, io_threads: int) -> None:
    """A cache of one page, of a few, and larger than the file; clients are threads or processes."""
    cbuild.passes(checked("model"), tmp_path / "file", frames, clients, processes, io_threads, *fuzz.words(15))


SCHEDULERS = ("fifo", "sjf", "to_agg", "aioli", "mlf", "hbrr", "twins", "wfq")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(("frames", "clients", "io_threads"), [*slow((1, 3, 1)), (6, 4, 3), *slow((100, 4, 1))])
def test_model_under_each_scheduler(
    tmp_path: pathlib.Path, scheduler: str, frames: int, clients: int, io_threads: int
) -> None:
    """The order in which pages reach the file changes no byte."""
    cbuild.passes(checked("model"), tmp_path / "file", frames, clients, 0, io_threads, *fuzz.words(8), scheduler)


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (checked, "test_share"),  # frames are shared by weight
        (checked, "test_target"),  # which server has a page
        (checked, "test_errors"),  # errors name their bytes
        (raced, "test_errors"),
        (checked, "test_flush_barriers"),
        *slow((raced, "test_flush_barriers")),
        (checked, "test_ranges"),
        (raced, "test_ranges"),
        # How a delegate ends, also when its clients are killed or stopped in the middle of an access.
        (checked, "test_life"),
        # Requests are large, in file order; hot pages stay; reading ahead follows its use; memory is the segment.
        (checked, "test_policy"),
        # An open waits for what was closed before: by an earlier job, whose cache is just adopted, or by this one, when
        # its file is just getting its name.
        (checked, "test_waits"),
    ],
)
def test_once(tmp_path: pathlib.Path, build: Callable[[str], pathlib.Path], name: str) -> None:
    cbuild.passes(build(name), tmp_path / "file" if name in ("test_life", "test_policy") else tmp_path)


@pytest.mark.parametrize("scheduler", [*slow("wfq"), "twins"])
def test_schedulers_have_no_races(tmp_path: pathlib.Path, scheduler: str) -> None:
    cbuild.passes(raced("model"), tmp_path / "file", 6, 4, 0, 2, *fuzz.words(4), scheduler)


@pytest.mark.parametrize("frames", [1, *slow(6), 100])
def test_model_has_no_races(tmp_path: pathlib.Path, frames: int) -> None:
    cbuild.passes(raced("model"), tmp_path / "file", frames, 4, 0, 2, *fuzz.words(5))


@pytest.mark.parametrize("build", [checked, raced])
def test_direct(tmp_path: pathlib.Path, build: Callable[[str], pathlib.Path]) -> None:
    """Direct I/O of the delegate: right bytes, and whole blocks that the page cache does not have."""
    done = subprocess.run([build("test_direct"), tmp_path], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_is_the_segment(tmp_path: pathlib.Path) -> None:
    out = cbuild.passes(plain("test_policy"), tmp_path / "file")
    assert re.search(r"^memory: grew by \d+ KiB", out, re.MULTILINE)


def test_io_uring(tmp_path: pathlib.Path) -> None:
    """The same model on the io_uring back end: many dirty runs are in flight together."""
    if subprocess.run(["pkg-config", "--exists", "liburing >= 2.2"], timeout=60).returncode != 0:
        pytest.skip("no liburing")
    flags = (*cbuild.SANITIZE, "-DMPIOX_HAVE_IO_URING")
    program = cbuild.program("server/model.c", *MODULES, flags=flags, more=("-luring",))
    cbuild.passes(program, tmp_path / "file", 7, 4, 0, 2, *fuzz.words(10), "io_uring")
