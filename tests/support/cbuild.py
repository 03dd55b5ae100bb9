"""Compile modules of csrc that need no MPI, apart from the library, so that what it does not export can be tested.

Programs run under the address and undefined-behaviour sanitizers: reading one byte too far fails the test.
"""

from __future__ import annotations

import concurrent.futures
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import cache

import pytest

from support.fuzz import examples, seed
from support.launch import PATIENCE, mpi_family

ROOT = pathlib.Path(__file__).resolve().parents[2]
CSRC = pathlib.Path(os.environ.get("MPIOX_TEST_CSRC", ROOT / "csrc"))  # tests/mutants/run.py has its own
MODULES = (
    "common",
    "typemap",
    "layout",
    "domains",
    "lock_model",
    "auto_select",
    "storage",
    "subfiles",
    "cache",
    "rendezvous",
    "network",
    "schedule",
    "server",
    "pioneer",
    "analytics",
    "arbiter",
    "stats",
    "live",
)
#: The rest needs no MPI.
MPI_FILES = ("mpiox_typemap_mpi.c", "mpiox_typemap_decode.c", "mpiox_typemap_contents.c", "mpiox_subfiles_opener.c")
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-DMPIOX_TESTING", "-Wall", "-Wextra", "-Werror", "-g1", "-O1")
C_TESTS = ROOT / "tests" / "c"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
THREADS = ("-fsanitize=thread",)
FUZZER = ("-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize-recover=all")


def folder(module: str) -> pathlib.Path:
    """Return the folder of a module, which lies in the part of csrc that says who loads it."""
    return next(CSRC.glob(f"*/{module}"))


def scratch() -> pathlib.Path:
    """Return the folder of what is compiled. Workers share that of the process that started them."""
    if SCRATCH not in os.environ:
        _keep.append(tempfile.TemporaryDirectory(prefix="mpiio_ext_c_"))
        os.environ[SCRATCH] = _keep[0].name
    return pathlib.Path(os.environ[SCRATCH])


SCRATCH = "CBUILD_COMPILED"
_keep: list[tempfile.TemporaryDirectory[str]] = []  # deleted when the process ends


def compiler() -> str:
    """Return a C compiler, or skip the test."""
    name = os.environ.get("CC", "cc")
    if shutil.which(name) is None:
        pytest.skip(f"no C compiler ({name})")
    return name


def sources(*modules: str) -> list[str]:
    """Return the C files of modules that need no MPI, and the least of common."""
    least = ["mpiox_error.c", "mpiox_print.c", "mpiox_text.c"]
    least += ["mpiox_count.c", "mpiox_wait.c"] if "storage" in modules else []
    found = [str(CSRC / "core" / "common" / name) for name in least]
    more = ("subfiles",) if "storage" in modules else ()  # an index may have a staging name
    for module in (*modules, *more):
        found += sorted(str(p) for p in folder(module).glob("*.c"))
    if "rendezvous" in modules:
        found.append(str(CSRC / "iod" / "third_party" / "monocypher" / "monocypher.c"))
    return [path for path in dict.fromkeys(found) if pathlib.Path(path).name not in MPI_FILES]


def includes() -> list[str]:
    return [f"-I{folder(module)}" for module in (*MODULES, "third_party/monocypher")]


def compile_c(command: Sequence[str], output: str) -> pathlib.Path:
    """Run a compile command unless some worker has, or does so now; its messages are the failure's."""
    folder = scratch() / hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]
    path = folder / output
    if path.exists():
        return path
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            return path
        made = folder / f"{output}.{os.getpid()}.{threading.get_ident()}"
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            pytest.fail(f"{' '.join(command)}\n{done.stderr}")
        made.rename(path)
    return path


@cache
def slow_storage() -> str:
    """Return a library to be preloaded: each request to a file below a folder waits, as for a server."""
    source = ROOT / "tests" / "programs" / "slow_storage.c"
    return str(compile_c([compiler(), "-O2", "-shared", "-fPIC", str(source), "-ldl"], "slow_storage.so"))


@cache
def objects(flags: tuple[str, ...], *modules: str, cc: str = "") -> tuple[str, ...]:
    """Compile modules of csrc, each file once for all programs; a macro counts where the file names it."""

    def compiled(source: str) -> str:
        text = pathlib.Path(source).read_text(encoding="utf-8")
        own = [flag for flag in flags if not flag.startswith("-D") or flag[2:] in text]
        command = [cc or compiler(), *FLAGS, *own, *includes(), "-c", source]
        return str(compile_c(command, f"{pathlib.Path(source).stem}.o"))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return tuple(pool.map(compiled, sources(*modules)))


@cache
def program(source: str, *modules: str, flags: tuple[str, ...] = SANITIZE, more: tuple[str, ...] = ()) -> pathlib.Path:
    """Compile tests/c/SOURCE with modules of csrc, under address and undefined-behaviour sanitizers by default.

    `flags` are for the modules too, `more` (options, sources, libraries) only for the program.
    """
    files = [str(C_TESTS / source), *objects(flags, *modules)]
    command = [compiler(), *FLAGS, *flags, *includes(), f"-I{C_TESTS}", *files, "-pthread", "-lm", *more]
    return compile_c(command, pathlib.Path(source).stem)


@cache
def threads_program(source: str, *modules: str, more: tuple[str, ...] = ()) -> pathlib.Path:
    """Compile tests/c/SOURCE with modules of csrc under the thread sanitizer; skip the test where it does not run."""
    probe = scratch() / "probe"
    command = [compiler(), *THREADS, "-x", "c", "-", "-o", str(probe)]
    built = subprocess.run(command, input="int main(void) { return 0; }", capture_output=True, text=True, timeout=60)
    if built.returncode != 0 or subprocess.run([str(probe)], capture_output=True, timeout=60).returncode != 0:
        pytest.skip("no thread sanitizer that runs here")
    return program(source, *modules, flags=THREADS, more=more)


def fuzz(
    source: str,
    *modules: str,
    folder: pathlib.Path,
    runs: int,
    most: int,
    options: Sequence[str] = (),
    files: Sequence[pathlib.Path] = (),
    corpus: Sequence[bytes] = (),
) -> None:
    """Run tests/c/SOURCE on input of `most` bytes that libFuzzer makes, guided by coverage, from `corpus` on.

    It is linked with modules of csrc, or with single `files`. What fails stays in `folder`.
    """
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("no clang: libFuzzer is not available")
    probe = [clang, "-fsanitize=fuzzer", "-x", "c", "-", "-o", str(folder / "probe")]
    text = "#include <stddef.h>\nint LLVMFuzzerTestOneInput(const void *data, size_t size) { return !data && size; }"
    built = subprocess.run(probe, input=text, capture_output=True, text=True, timeout=60)
    if built.returncode != 0 and "libclang_rt.fuzzer" in built.stderr:
        pytest.skip("clang has no libFuzzer")
    flags = [*FLAGS, "-DFUZZ", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
    parts = [*map(str, files), *(objects(FUZZER, *modules, cc=clang) if modules else ())]
    folders = [*includes(), *{f"-I{file.parent}": None for file in files}, f"-I{C_TESTS}"]
    command = [clang, *flags, *folders, str(C_TESTS / source), *parts, "-lm"]
    path = compile_c(command, pathlib.Path(source).stem)
    (folder / "corpus").mkdir()
    for number, content in enumerate(corpus):
        (folder / "corpus" / f"{number:03}").write_bytes(content)
    more = [f"-runs={examples(runs)}", f"-max_len={most}", f"-seed={seed()}", *options]
    command = [str(path), *more, f"-artifact_prefix={folder}/", str(folder / "corpus")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"Done {examples(runs)} runs" in done.stderr, done.stderr[-4000:]


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
    return compile_c(command, name)


@cache
def fortran_program(binding: int, *flags: str, name: str = "fortran") -> pathlib.Path:
    """Compile tests/programs/NAME.F90 by mpif.h (1), `use mpi` (2) or `use mpi_f08` (3).

    PyPI's MPICH has no Fortran library: Debian's is linked to it.
    """
    prefix = pathlib.Path(sys.prefix)
    command, libraries = [str(prefix / "bin" / "mpifort")], ["-Wl,--no-as-needed", *flags]
    if mpi_family() == "mpich":
        if binding == 3:
            pytest.skip("MPICH's mpi_f08 module calls PMPI_File_open, past the library and the tracer")
        found = sorted(pathlib.Path("/usr/include").glob("*/mpich/mpif.h"))
        if not found or shutil.which("gfortran") is None:
            pytest.skip("no Fortran library of MPICH (gfortran, libmpich-dev)")
        command = ["gfortran", f"-I{found[0].parent}"]
        libraries += ["-lmpichfort", f"-L{prefix}/lib", "-l:libmpich.so.12", f"-Wl,-rpath,{prefix}/lib"]
        libraries += ["-Wl,--allow-shlib-undefined"]  # three functions of MPICH 4.0 that later ones do not have
    command += ["-cpp", "-fallow-argument-mismatch", f"-DBINDING={binding}"]
    return compile_c([*command, str(ROOT / "tests" / "programs" / f"{name}.F90"), *libraries], name)


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
    """Run a compiled program, for at most PATIENCE * timeout seconds."""
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "MPIOX_FAULT")}
    return subprocess.run(
        [str(path), *arguments], capture_output=True, text=True, timeout=PATIENCE * timeout, env=clean | environment
    )


def check(path: pathlib.Path, *arguments: str, timeout: int = 120, **environment: str) -> str:
    """Run a compiled program that must succeed; return what it printed."""
    done = run(path, *arguments, timeout=timeout, **environment)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def passes(path: pathlib.Path, *arguments: object, timeout: int = 300, **environment: str) -> str:
    """Run a program that counts its checks, of which none may fail; return what it printed."""
    out = check(path, *map(str, arguments), timeout=timeout, **environment)
    assert out.splitlines()[-1].endswith(" 0 failures"), out
    return out
