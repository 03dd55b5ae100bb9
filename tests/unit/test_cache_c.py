"""The page cache of delegates, in C, under sanitizers: threads and processes on it, some of which are killed."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest

from support import cbuild

SEED = os.environ.get("MPIOX_TEST_SEED", "1")
MODULES = ("common", "typemap", "cache")


def passes(program: pathlib.Path, *arguments: str) -> None:
    out = cbuild.check(program, *arguments, timeout=300)
    assert out.splitlines()[-1].endswith(" 0 failures")


def checked(name: str) -> pathlib.Path:
    return cbuild.program(f"cache/{name}.c", *MODULES)


def raced(name: str) -> pathlib.Path:
    return cbuild.threads_program(f"cache/{name}.c", *MODULES)


def test_layout_errors_and_accesses_case_by_case() -> None:
    passes(checked("test_cache"))
    passes(raced("test_cache"))


def test_dirty_bytes_are_exact() -> None:
    passes(checked("test_dirty"), "1000", SEED)


def test_dirty_bytes_of_several_threads() -> None:
    passes(raced("test_dirty"), "100", SEED)


@pytest.mark.parametrize("build", [checked, raced])
def test_misses_are_exact_while_the_table_changes(build: Callable[[str], pathlib.Path]) -> None:
    passes(build("test_frames"), "50000", SEED)


@pytest.mark.parametrize("build", [checked, raced])
def test_requests_of_many_threads(build: Callable[[str], pathlib.Path]) -> None:
    passes(build("test_ring"), "threads", "2000", SEED)


def test_requests_of_processes_some_of_which_are_killed() -> None:
    passes(checked("test_ring"), "processes", "2000", SEED)


def test_accesses_of_threads_while_pages_are_flushed_and_evicted(tmp_path: pathlib.Path) -> None:
    passes(checked("test_access"), "threads", str(tmp_path / "file"), SEED, "1", "2")


def test_accesses_of_threads_race_for_nothing(tmp_path: pathlib.Path) -> None:
    passes(raced("test_access"), "threads", str(tmp_path / "file"), SEED, "1", "20")


def test_a_killed_delegate_loses_nothing(tmp_path: pathlib.Path) -> None:
    passes(checked("test_access"), "processes", str(tmp_path / "file"), SEED, "20")


def test_a_killed_delegate_and_a_client_with_a_page_in_its_hands(tmp_path: pathlib.Path) -> None:
    passes(checked("test_access"), "holders", str(tmp_path / "file"), SEED)


def test_a_killed_survivor(tmp_path: pathlib.Path) -> None:
    passes(checked("test_access"), "rescuers", str(tmp_path / "file"), SEED, "20")
