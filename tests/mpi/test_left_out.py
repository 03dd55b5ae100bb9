"""Builds without subfiles, and without staged closes: who asks for them is told so in one line, and the rest works."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

from support.launch import Launch, base_environment, launcher, run_bounded
from support.parts import CACHE, PARTS, missing

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.slow]

PROGRAM = """
import sys
from mpi4py import MPI

file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_WRONLY | MPI.MODE_CREATE)
file.Write_at_all(0, bytes(64))
file.Close()
"""
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=PARTS)
def option(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if missing(name):
        pytest.skip(f"the library of the tests was built with -D{name}=OFF")
    return name


@pytest.fixture(scope="module")
def library(option: str, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Build the library without a part."""
    if not CACHE.exists():
        pytest.skip("the library was not built here")
    compiler = next(
        line for line in CACHE.read_text(encoding="utf-8").splitlines() if line.startswith("MPI_C_COMPILER:")
    )
    folder = tmp_path_factory.mktemp(option)
    cmake = shutil.which("cmake", path=f"{sys.prefix}/bin") or "cmake"
    options = [f"-D{option}=OFF", f"-D{compiler}", "-DMPIOX_BUILD_BINDING=OFF", "-DMPIOX_WERROR=ON"]
    for words in (
        ["-S", str(ROOT), "-B", str(folder), *options],
        ["--build", str(folder), "--target", "mpiio_ext", "-j2"],
    ):
        done = subprocess.run(
            [cmake, *words], capture_output=True, text=True, timeout=900, check=False, env=base_environment()
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "lib" / "libmpiio_ext.so"


def write(library: pathlib.Path | str, path: pathlib.Path, hint: str) -> Launch:
    """Let a program write 64 bytes."""
    program = ["env", f"LD_PRELOAD={library}", sys.executable, "-c", PROGRAM, str(path)]
    environment = base_environment() | {"MPIOX_HINTS": hint}
    return run_bounded([str(launcher()), "-n", "1", *program], env=environment, timeout_s=60, check=False)


def test_a_hint_of_it_is_refused_in_one_line(option: str, library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path, hint = tmp_path / "file", PARTS[option][0]
    launch = write(library, path, hint)
    text = f"hint {hint} needs a part that this build does not have (-D{option}=OFF)"
    assert launch.returncode == 0 and launch.stderr.count(text) == 1, launch.describe()
    assert path.read_bytes() == bytes(64)


@pytest.mark.parametrize("option", ["MPIOX_SUBFILES"], indirect=True)
def test_subfiles_that_are_there_are_refused(
    option: str, library: pathlib.Path, extension: str, tmp_path: pathlib.Path
) -> None:
    """Nobody takes their index for the data."""
    path = tmp_path / "file"
    made = write(extension, path, PARTS[option][0])
    index = path.read_bytes()
    assert made.returncode == 0 and index.startswith(b"mpiio_ext subfiles "), made.describe()
    launch = write(library, path, "")
    assert launch.returncode != 0 and "stored as subfiles, which this build does not support" in launch.stderr, (
        launch.describe()
    )
    assert path.read_bytes() == index
