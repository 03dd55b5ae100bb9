"""Compile modules of csrc that need no MPI, apart from the library, so that what it does not export can be tested.

Programs run under the address and undefined-behaviour sanitizers: reading one byte too far fails the test.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CSRC = pathlib.Path(os.environ.get("MPIOX_TEST_CSRC", ROOT / "csrc"))  # tests/mutants/run.py has its own
MODULES = (
    "common", "typemap", "layout", "domains", "lock_model", "auto_select", "storage", "cache", "rendezvous", "network",
    "schedule", "server", "pioneer", "analytics", "arbiter", "stats",
)
MPI_FILES = ("mpiox_typemap_mpi.c", "mpiox_typemap_decode.c", "mpiox_typemap_contents.c")  # the rest needs none
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-O1")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


def folder(module: str) -> pathlib.Path:
    """Return the folder of a module, which lies in the part of csrc that says who loads it."""
    return next(CSRC.glob(f"*/{module}"))


@cache
def _scratch() -> pathlib.Path:
    folder = tempfile.TemporaryDirectory(prefix="mpiio_ext_c_")
    _keep.append(folder)
    return pathlib.Path(folder.name)


_keep: list[tempfile.TemporaryDirectory[str]] = []  # deleted when the process ends


def compiler() -> str:
    """Return a C compiler, or skip the test."""
    name = os.environ.get("CC", "cc")
    if shutil.which(name) is None:
        pytest.skip(f"no C compiler ({name})")
    return name


def sources(*modules: str) -> list[str]:
    """Return the C files of modules that need no MPI, and the least of common."""
    found = [str(CSRC / "core" / "common" / name) for name in ("mpiox_error.c", "mpiox_testing.c", "mpiox_text.c")]
    for module in modules:
        found += sorted(str(p) for p in folder(module).glob("*.c"))
    if "rendezvous" in modules:
        found.append(str(CSRC / "iod" / "third_party" / "monocypher" / "monocypher.c"))
    return [path for path in dict.fromkeys(found) if pathlib.Path(path).name not in MPI_FILES]


def includes() -> list[str]:
    return [f"-I{folder(module)}" for module in (*MODULES, "third_party/monocypher")]


def compile_c(command: Sequence[str], output: str) -> pathlib.Path:
    """Run a compile command; its messages are the failure's."""
    path = _scratch() / output
    done = subprocess.run([*command, "-o", str(path)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}\n{done.stderr}")
    return path


@cache
def slow_storage() -> str:
    """Return a library to be preloaded: each request to a file below a folder waits, as for a server."""
    source = CSRC.parent / "benchmarks" / "slow_storage.c"
    return str(compile_c([compiler(), "-O2", "-shared", "-fPIC", str(source), "-ldl"], "slow_storage.so"))


@cache
def objects(sanitize: tuple[str, ...], *modules: str) -> tuple[str, ...]:
    """Compile modules of csrc, once for all programs that are linked with them."""
    folder = _scratch() / f"objects_{len(list(_scratch().iterdir()))}"
    folder.mkdir()
    command = [compiler(), *FLAGS, *sanitize, *includes(), "-c", *sources(*modules)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}\n{done.stderr}")
    return tuple(sorted(str(path) for path in folder.glob("*.o")))


@cache
def program(source: str, *modules: str) -> pathlib.Path:
    """Compile tests/c/SOURCE with modules of csrc under address and undefined-behaviour sanitizers."""
    return _program(SANITIZE, source, *modules)


@cache
def threads_program(source: str, *modules: str) -> pathlib.Path:
    """Compile tests/c/SOURCE with modules of csrc under the thread sanitizer; skip the test where it does not run."""
    probe = _scratch() / "probe"
    command = [compiler(), "-fsanitize=thread", "-x", "c", "-", "-o", str(probe)]
    built = subprocess.run(command, input="int main(void) { return 0; }", capture_output=True, text=True, timeout=60)
    if built.returncode != 0 or subprocess.run([str(probe)], capture_output=True, timeout=60).returncode != 0:
        pytest.skip("no thread sanitizer that runs here")
    return _program(("-fsanitize=thread",), source, *modules)


def _program(sanitize: tuple[str, ...], source: str, *modules: str) -> pathlib.Path:
    files = [str(ROOT / "tests" / "c" / source), *objects(sanitize, *modules)]
    command = [compiler(), *FLAGS, *sanitize, *includes(), f"-I{ROOT / 'tests' / 'c'}", *files, "-lm"]
    return compile_c(command, pathlib.Path(source).stem + ("" if sanitize == SANITIZE else "_threads"))


@cache
def shared(*modules: str) -> pathlib.Path:
    """Compile modules of csrc into a shared object, under the undefined-behaviour sanitizer."""
    sanitize = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    if "clang" in subprocess.run([compiler(), "--version"], capture_output=True, text=True, timeout=60).stdout:
        sanitize = ["-fsanitize=undefined", "-fsanitize-trap=undefined"]  # its run-time library is for programs only
    command = [compiler(), *FLAGS, *sanitize, "-fPIC", "-shared"]
    return compile_c([*command, *includes(), *sources(*modules)], f"lib{'_'.join(modules)}.so")


@cache
def mpi_program(name: str, *flags: str) -> pathlib.Path:
    """Compile tests/programs/NAME.c with the mpicc of this environment."""
    wrapper = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    source = ROOT / "tests" / "programs" / f"{name}.c"
    command = [str(wrapper), *FLAGS, "-pthread", *flags, str(source)]
    return compile_c(command, "".join([name, *flags]).replace("=", "_").replace(",", "_"))


@cache
def mpi_program_of(folder: str) -> pathlib.Path:
    """Compile all C files of tests/programs/FOLDER into one program with the mpicc of this environment."""
    wrapper = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    files = sorted(str(path) for path in (ROOT / "tests" / "programs" / folder).glob("*.c"))
    return compile_c([str(wrapper), *FLAGS, "-pthread", *files, "-lm"], folder)


@cache
def mpi_library(name: str, *flags: str) -> pathlib.Path:
    """Compile tests/programs/NAME.c into a shared library with the mpicc of this environment."""
    wrapper = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    source = ROOT / "tests" / "programs" / f"{name}.c"
    return compile_c([str(wrapper), *FLAGS, "-fPIC", "-shared", *flags, str(source)], "lib" + "".join([name, *flags]))


def failed_checks(text: str, at_least: int = 1) -> set[str]:
    """Return the names of the checks that a program with tests/programs/report.h says have failed."""
    lines = [line for line in text.splitlines() if line.startswith(("ok ", "FAILED "))]
    assert len(lines) >= at_least, f"{len(lines)} checks instead of {at_least}\n{text}"
    failed = [line.removeprefix("FAILED ").split() for line in lines if line.startswith("FAILED ")]
    return {" ".join(word for word in words if not word.isdigit()) for words in failed}  # the numbers are ranks


def run(
    path: pathlib.Path, *arguments: str, timeout: int = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a compiled program."""
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "MPIOX_FAULT")} | {"MPIOX_TESTING": "1"}
    return subprocess.run(
        [str(path), *arguments], capture_output=True, text=True, timeout=timeout, env=clean | environment
    )


def check(path: pathlib.Path, *arguments: str, timeout: int = 120, **environment: str) -> str:
    """Run a compiled program that must succeed; return what it printed."""
    done = run(path, *arguments, timeout=timeout, **environment)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
