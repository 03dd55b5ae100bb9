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


def passes(program: pathlib.Path, *arguments: object) -> str:
    out = cbuild.check(program, *map(str, arguments), timeout=300)
    assert out.splitlines()[-1].endswith(" 0 failures"), out
    return out


@pytest.mark.slow_with("1-5-0-1", "3-3-0-1", "4081-4-0-2", "7310-4-0-2")
@pytest.mark.parametrize(
    ("frames", "clients", "processes", "io_threads"),
    [(1, 5, 0, 1), (1, 4, 1, 3), (3, 3, 0, 1), (7, 4, 1, 2), (30, 6, 0, 3), (300, 3, 1, 1)]
    + [(tokens - 16, 4, 0, 2) for tokens in (4095, 4097, 7326, 65000)],
)
def test_model(tmp_path: pathlib.Path, frames: int, clients: int, processes: int, io_threads: int) -> None:
    """A cache of one page, of a few, and larger than the file; clients are threads or processes."""
    passes(checked("model"), tmp_path / "file", frames, clients, processes, io_threads, *fuzz.words(15))


SCHEDULERS = ("fifo", "sjf", "to_agg", "aioli", "mlf", "hbrr", "twins", "wfq")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(("frames", "clients", "io_threads"), [*slow((1, 3, 1)), (6, 4, 3), *slow((100, 4, 1))])
def test_model_under_each_scheduler(
    tmp_path: pathlib.Path, scheduler: str, frames: int, clients: int, io_threads: int
) -> None:
    """The order in which pages reach the file changes no byte."""
    passes(checked("model"), tmp_path / "file", frames, clients, 0, io_threads, *fuzz.words(8), scheduler)


def test_frames_are_shared_by_weight() -> None:
    passes(checked("test_share"))


def test_which_server_has_a_page() -> None:
    passes(checked("test_target"))


@pytest.mark.parametrize("scheduler", [*slow("wfq"), "twins"])
def test_schedulers_have_no_races(tmp_path: pathlib.Path, scheduler: str) -> None:
    passes(raced("model"), tmp_path / "file", 6, 4, 0, 2, *fuzz.words(4), scheduler)


@pytest.mark.parametrize("frames", [1, *slow(6), 100])
def test_model_has_no_races(tmp_path: pathlib.Path, frames: int) -> None:
    passes(raced("model"), tmp_path / "file", frames, 4, 0, 2, *fuzz.words(5))


@pytest.mark.parametrize("build", [checked, raced])
def test_errors_name_their_bytes(tmp_path: pathlib.Path, build: Callable[[str], pathlib.Path]) -> None:
    passes(build("test_errors"), tmp_path)


@pytest.mark.parametrize("build", [checked, *slow(raced)])
def test_flush_barriers(tmp_path: pathlib.Path, build: Callable[[str], pathlib.Path]) -> None:
    passes(build("test_flush_barriers"), tmp_path)


@pytest.mark.parametrize("build", [checked, raced])
def test_ranges(tmp_path: pathlib.Path, build: Callable[[str], pathlib.Path]) -> None:
    passes(build("test_ranges"), tmp_path)


@pytest.mark.parametrize("build", [checked, raced])
def test_direct(tmp_path: pathlib.Path, build: Callable[[str], pathlib.Path]) -> None:
    """Direct I/O of the delegate: right bytes, and whole blocks that the page cache does not have."""
    done = subprocess.run([build("test_direct"), tmp_path], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_life(tmp_path: pathlib.Path) -> None:
    """How a delegate ends, also when its clients are killed or stopped in the middle of an access."""
    passes(checked("test_life"), tmp_path / "file")


def test_policy(tmp_path: pathlib.Path) -> None:
    """Requests are large, in file order; hot pages stay; reading ahead follows its use; memory is the segment."""
    passes(checked("test_policy"), tmp_path / "file")


def test_memory_is_the_segment(tmp_path: pathlib.Path) -> None:
    out = passes(plain("test_policy"), tmp_path / "file")
    assert re.search(r"^memory: grew by \d+ KiB", out, re.MULTILINE)


def test_io_uring(tmp_path: pathlib.Path) -> None:
    """The same model on the io_uring back end: many dirty runs are in flight together."""
    if subprocess.run(["pkg-config", "--exists", "liburing >= 2.2"], timeout=60).returncode != 0:
        pytest.skip("no liburing")
    flags = (*cbuild.SANITIZE, "-DMPIOX_HAVE_IO_URING")
    program = cbuild.program("server/model.c", *MODULES, flags=flags, more=("-luring",))
    passes(program, tmp_path / "file", 7, 4, 0, 2, *fuzz.words(10), "io_uring")


def test_an_open_waits_for_what_was_closed_before(tmp_path: pathlib.Path) -> None:
    """By an earlier job, whose cache is just adopted, or by this one, when its file is just getting its name."""
    passes(checked("test_waits"), tmp_path)
