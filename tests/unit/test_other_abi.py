"""The library under a program of another MPI ABI, and under the launcher of another MPI
(csrc/core/abi/mpiox_other_abi.h)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mpiio_ext
from mpiio_ext import _load
from support.cbuild import compiler

#: ABI -> file name of its MPI library, and a symbol that tells it.
LIBRARIES = {
    "openmpi": ("libmpi.so.40", "ompi_mpi_comm_world"),
    "mpich": ("libmpich.so.12", "MPIR_Err_return_comm"),
    "mpiabi": ("libmpi_abi.so.1", "MPIR_Err_return_comm"),
}
WORDS = {"openmpi": "Open MPI", "mpich": "MPICH or its kin", "mpiabi": "the standard ABI of MPI 5"}
OTHERS = [name for name in LIBRARIES if name != _load.family()]
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int PMPI_Init(void);
int main(int count, char **words)
{
    FILE *file = fopen("/proc/self/comm", "r");
    char name[32] = "";
    if (file == NULL || fscanf(file, "%31s", name) != 1)
        return 3;
    printf("%s of %d, %s, %s, %s, %d\\n", words[0], count, words[1], name, getenv("LD_PRELOAD"), PMPI_Init());
    return 0;
}
"""


def build(folder: Path, abi: str) -> Path:
    """Build a program, and the MPI library of an ABI for it, as far as the loader sees one."""
    library, symbol = LIBRARIES[abi]
    (folder / "mpi.c").write_text(f"int {symbol}; int PMPI_Init(void) {{ return 7; }}\n")
    (folder / "app.c").write_text(PROGRAM)
    for words in (
        ["-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", library, "mpi.c"],
        [f"-Wl,-rpath,{folder}", "-o", "app", "app.c", library],
    ):
        subprocess.run([compiler(), *words], cwd=folder, check=True, timeout=60)
    return folder / "app"


def started(command: list[str], preload: Path, **more: str) -> subprocess.CompletedProcess[str]:
    marks = ("OMPI_", "PMI", "PMIX", "SLURM", "MPIIO_EXT", "LD_PRELOAD")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(marks)}
    return subprocess.run(
        command, env=kept | {"LD_PRELOAD": str(preload)} | more, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", ["libmpiio_ext.so", "libmpiio_ext_trace.so"])
@pytest.mark.parametrize("abi", OTHERS)
def test_ends_before_main_where_nothing_fits(abi: str, name: str, tmp_path: Path) -> None:
    done = started([str(build(tmp_path, abi)), "x"], mpiio_ext.get_library().with_name(name))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert f"this program uses {WORDS[abi]} ({tmp_path}/{LIBRARIES[abi][0]})" in done.stderr
    assert f"is for {WORDS[_load.family()]}" in done.stderr and "built with that MPI" in done.stderr


def test_one_rank_speaks(tmp_path: Path) -> None:
    program = str(build(tmp_path, OTHERS[0]))
    for variable in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        assert started([program, "x"], mpiio_ext.get_library(), **{variable: "0"}).stderr.count("\n") == 1
        other = started([program, "x"], mpiio_ext.get_library(), **{variable: "1"})
        assert (other.returncode, other.stderr) == (1, "")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """The folder abis of a wheel: the library that is tested, and one for each other ABI that only says its name."""
    for abi in LIBRARIES:
        folder = tmp_path / "abis" / abi / "lib"
        folder.mkdir(parents=True)
        if abi == _load.family():
            for name in ("libmpiio_ext.so", "libmpiio_ext_trace.so"):
                shutil.copy(mpiio_ext.get_library().with_name(name), folder)
            continue
        (folder / "own.c").write_text(f"""
            #include <stdio.h>
            __attribute__((constructor)) static void begin(void) {{ fprintf(stderr, "for {abi}\\n"); }}
        """)
        command = [compiler(), "-shared", "-fPIC", "-o", "libmpiio_ext.so", "own.c"]
        subprocess.run(command, cwd=folder, check=True, timeout=60)
        shutil.copy(folder / "libmpiio_ext.so", folder / "libmpiio_ext_trace.so")
    return tmp_path / "abis"


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("abi", OTHERS)
def test_the_library_that_fits_takes_its_place(abi: str, behind: bool, wheel: Path, tmp_path: Path) -> None:
    """Once, with the same words, also behind a script; what else is preloaded stays."""
    program = build(tmp_path, abi)
    command = ["sh", "-c", f"exec {program} x"] if behind else [str(program), "x"]
    others = tmp_path / "other.so"
    shutil.copy(wheel / abi / "lib" / "libmpiio_ext.so", others)
    done = started(command, Path(f"{wheel / _load.family()}/lib/libmpiio_ext.so:{others}"))
    preload = f"{wheel / abi}/lib/libmpiio_ext.so:{others}"
    assert done.stdout == f"{program} of 2, x, app, {preload}, 7\n", done.stderr
    assert done.returncode == 0
    assert set(done.stderr.splitlines()) == {f"for {abi}"}


@pytest.mark.parametrize("abi", OTHERS)
def test_the_tracer_is_exchanged_as_well(abi: str, wheel: Path, tmp_path: Path) -> None:
    folder = wheel / _load.family() / "lib"
    for names in (["libmpiio_ext_trace.so"], ["libmpiio_ext_trace.so", "libmpiio_ext.so"]):
        done = started([str(build(tmp_path, abi)), "x"], Path(":".join(str(folder / name) for name in names)))
        preload = ":".join(str(wheel / abi / "lib" / name) for name in names)
        assert done.stdout == f"{tmp_path}/app of 2, x, app, {preload}, 7\n", done.stderr
        assert done.stderr == f"for {abi}\n" * len(names)


def test_a_wrong_variable_is_told(wheel: Path, tmp_path: Path) -> None:
    own, other = _load.family(), OTHERS[0]
    program, preload = str(build(tmp_path, other)), wheel / own / "lib" / "libmpiio_ext.so"
    done = started([program, "x"], preload, MPIIO_EXT_ABI=own)
    assert done.returncode == 0
    first = done.stderr.splitlines()[0]
    assert first.startswith(f"mpiio_ext: MPIIO_EXT_ABI={own}, but this program uses {WORDS[other]}: ")
    assert started([program, "x"], preload, MPIIO_EXT_ABI=own, PMI_RANK="1").stderr == f"for {other}\n"
    assert started([program, "x"], preload, MPIIO_EXT_ABI=other).stderr == f"for {other}\n"


def test_a_program_that_the_loader_was_given_ends(wheel: Path, tmp_path: Path) -> None:
    """The loader is the executable of such a process, so that it cannot be executed anew."""
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    if not loader.exists():
        pytest.skip("no loader of x86_64")
    program = str(build(tmp_path, OTHERS[0]))
    done = started([str(loader), program, "x"], wheel / _load.family() / "lib" / "libmpiio_ext.so")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"`export MPIIO_EXT_ABI={OTHERS[0]}` and start it again" in done.stderr


def test_a_program_of_the_same_abi_or_of_none_is_left_alone(wheel: Path, tmp_path: Path) -> None:
    tracer = wheel / _load.family() / "lib" / "libmpiio_ext_trace.so"  # needs less of the MPI library than the other
    done = started([str(build(tmp_path, _load.family())), "x"], tracer)
    assert (done.stdout, done.stderr) == (f"{tmp_path}/app of 2, x, app, {tracer}, 7\n", "")
    for library in (tracer, tracer.with_name("libmpiio_ext.so")):
        assert started(["true"], library).stderr == ""


# ---- the launcher of another MPI -------------------------------------------------------------------------------------

LONE = "import mpiio_ext; from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
#: Variables of the launcher that is not of this MPI, and what it is called.
FOREIGN = {"openmpi": ("PMI", "the launcher of MPICH or its kin"), "mpich": ("OMPI_COMM_WORLD", "Open MPI's")}


def lone(**more: str) -> str:
    done = started([sys.executable, "-c", LONE], Path(), LD_PRELOAD="", **more)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    return "".join(line for line in done.stderr.splitlines(True) if line.startswith("mpiio_ext"))  # mpi4py warns, too


def test_ranks_that_do_not_meet_are_told() -> None:
    family = _load.family()
    prefix, words = FOREIGN[family]
    said = lone(**{f"{prefix}_SIZE": "2", f"{prefix}_RANK": "0"})
    assert said.count("\n") == 1
    assert f"uses {WORDS[family]} and its launcher is {words}: each of the 2 processes is a job of one rank" in said
    assert lone(**{f"{prefix}_SIZE": "2", f"{prefix}_RANK": "1"}) == ""
    assert lone(**{f"{prefix}_SIZE": "1", f"{prefix}_RANK": "0"}) == ""
    assert lone() == ""
