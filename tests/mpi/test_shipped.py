"""The library as those who install it get it: nothing of it fails on purpose, and no assertion is checked.

A checkout's own build is for tests, which break it by MPIOX_FAULT and other variables, and checks assertions. The
target `mpiio_ext_shipped` is the same without MPIOX_TESTING, as wheels and source distributions are.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

from support.cbuild import mpi_program
from support.launch import base_environment, launcher, run_bounded

pytestmark = [pytest.mark.mpi, pytest.mark.both]

#: Symbols, and texts that are loaded with the library. A failing assert() of <assert.h> calls __assert_fail.
SYMBOLS = ("mpiox_fault", "mpiox_link_fault", "mpiox_testing", "pretend_locks", "__assert_fail")
TEXTS = (
    "MPIOX_FAULT",
    "MPIOX_NETWORK_FAULT",
    "MPIOX_LOCKS",
    "MPIOX_NICS",
    "MPIOX_DEATH",
    "MPIOX_TESTING",
    "on purpose",
)


@pytest.fixture(scope="module")
def shipped() -> pathlib.Path:
    build = pathlib.Path(sys.prefix).parent / "cmake"
    if not (build / "CMakeCache.txt").exists():
        pytest.skip("the library was not built here")
    cmake = shutil.which("cmake", path=f"{sys.prefix}/bin") or "cmake"
    done = subprocess.run(
        [cmake, "--build", str(build), "--target", "mpiio_ext_shipped"],
        capture_output=True,
        text=True,
        timeout=600,
        env=base_environment(),
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return build / "shipped" / "lib" / "libmpiio_ext.so"


def found_in(library: pathlib.Path) -> set[str]:
    """Return which of SYMBOLS and TEXTS a library has."""
    if shutil.which("nm") is None or shutil.which("strings") is None:
        pytest.skip("no binutils")
    symbols, texts = (
        subprocess.run([*words, str(library)], capture_output=True, text=True, timeout=60, check=True).stdout
        for words in (["nm"], ["strings", "-d"])
    )
    return {name for name in SYMBOLS if name in symbols} | {text for text in TEXTS if text in texts}


def test_nothing_for_tests_is_in_the_library(shipped: pathlib.Path, extension: str) -> None:
    """Neither functions nor variables; the library of the tests, which has them, shows that they would be seen."""
    assert found_in(shipped) == set()
    of_tests = found_in(pathlib.Path(extension))
    assert {"mpiox_fault", "mpiox_link_fault", "__assert_fail", "MPIOX_FAULT", "MPIOX_LOCKS"} <= of_tests
    delegate = pathlib.Path(extension).parents[1] / "bin" / "mpiio-ext-delegate"
    assert found_in(delegate) == set(), "what it serves with is in the library"


def test_a_variable_that_was_left_breaks_nothing(shipped: pathlib.Path, extension: str, tmp_path: pathlib.Path) -> None:
    for library, breaks in ((str(shipped), False), (extension, True)):
        path = tmp_path / str(breaks)
        command = [
            str(launcher()),
            "-n",
            "2",
            "env",
            f"LD_PRELOAD={library}",
            str(mpi_program("lives")),
            str(path),
            "successive",
            "3",
        ]
        launch = run_bounded(
            command, env=base_environment() | {"MPIOX_FAULT": "op=write,errno=ENOSPC"}, timeout_s=60, check=False
        )
        assert (launch.returncode != 0) == breaks, launch.describe()
        assert breaks or path.stat().st_size == 128
