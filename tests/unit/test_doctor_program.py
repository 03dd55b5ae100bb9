"""mpiio-ext doctor -- PROGRAM: programs under which the library can be put, and those of every other kind."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from mpiio_ext.doctor import Finding, linker, program
from support import cbuild
from support.launch import PROGRAMS, base_environment

pytestmark = pytest.mark.mpi

OTHER = {"openmpi": "libmpi.so.12", "mpich": "libmpi.so.40"}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
FAKE_MPI = """
int MPI_Get_library_version(char *text, int *length) { text[0] = 'F'; text[1] = 0; *length = 1; return 0; }
int MPI_Init(void *a, void *b) { return a == b; }
int MPI_File_open(void) { return 0; }
"""
CALLS = (
    "int MPI_Init(void *, void *); int MPI_File_open(void);\nint main(void) { MPI_Init(0, 0); return MPI_File_open(); }"
)


@pytest.fixture(scope="module")
def library(extension: str) -> pathlib.Path:
    return pathlib.Path(extension)


@pytest.fixture(scope="module")
def writes(family: str) -> pathlib.Path:
    return cbuild.mpi_program("writes")


def built(folder: pathlib.Path, name: str, text: str, *flags: str) -> pathlib.Path:
    source, target = folder / f"{name}.c", folder / name
    source.write_text(text)
    done = subprocess.run([cbuild.compiler(), str(source), "-o", str(target), *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return target


def examined(library: pathlib.Path, *command: str, **variables: str) -> dict[str, Finding]:
    found = program.examine([str(word) for word in command], library, base_environment() | variables, 240)
    assert len({item.key for item in found}) == len(found)
    return {item.key: item for item in found}


def states(found: dict[str, Finding]) -> dict[str, str]:
    return {key.removeprefix("program."): item.state.value for key, item in found.items()}


# ---- programs as they should be -------------------------------------------------------------------------------------


def test_program(library: pathlib.Path, writes: pathlib.Path, family: str) -> None:
    found = examined(library, str(writes))
    assert states(found) == dict.fromkeys(("found", "linking", "mpi", "under"), "ok")
    assert NAMES[family] in found["program.mpi"].text
    assert found["program.under"].facts["now"] is False and "mpiio-ext run" in found["program.under"].text
    assert {"MPI_File_open", "MPI_File_close"} <= set(found["program.under"].facts["calls"])


def test_program_with_the_library_preloaded(library: pathlib.Path, writes: pathlib.Path) -> None:
    found = examined(library, str(writes), LD_PRELOAD=str(library))
    assert found["program.under"].facts["now"] is True and found["program.under"].facts["linked"] is False


def test_program_linked_with_the_library(library: pathlib.Path, family: str) -> None:
    flags = [f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-Wl,--no-as-needed", "-lmpiio_ext"]
    wrapper = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    app = cbuild.compile_c([str(wrapper), str(PROGRAMS / "writes.c"), *flags], "writes_linked")
    found = examined(library, str(app))
    assert states(found)["under"] == "ok"
    assert found["program.under"].facts["linked"] is True and found["program.under"].facts["now"] is True


def test_the_program_is_not_run(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "ran"
    text = f'#include <stdio.h>\nint main(void) {{ return fopen("{mark}", "w") == 0; }}'
    examined(library, str(built(tmp_path, "app", text)))
    assert not mark.exists()


def test_python_and_scripts(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(f"#!/usr/bin/env -S {sys.executable}\nimport mpi4py.MPI\nraise SystemExit('run')\n")
    script.chmod(0o755)
    found = examined(library, str(script))
    assert states(found) == dict.fromkeys(("found", "linking", "mpi", "under"), "ok")
    assert found["program.found"].facts["script"] == str(script)
    assert found["program.found"].facts["path"] == sys.executable


@pytest.mark.parametrize(
    "words",
    [
        ["mpirun", "-n", "4", "--hostfile", "hosts", "APP", "in.txt"],
        ["mpiexec", "-n", "2", "env", "A=1", "APP"],
        ["mpiexec", "-n", "2", "mpiio-ext", "run", "-H", "cb_nodes=1", "--stats", "--", "APP", "--", "x"],
        ["srun", "-N2", "APP"],
        ["mpiio-ext", "run", "-H", "cb_nodes=1", "APP"],
        ["APP", "mpirun"],
    ],
)
def test_what_is_behind_a_launcher(words: list[str]) -> None:
    app = shutil.which("sort") or ""
    found, launcher = program.program_of([app if word == "APP" else word for word in words])
    assert found[0] == app
    assert launcher == (words[0] if words[0] in ("mpirun", "mpiexec", "srun") else "")


@pytest.mark.parametrize(
    ("words", "front"),
    [
        (["srun", "-N2", "-n", "4", "APP", "in.txt"], 4),
        (["mpiexec", "-n", "2", "mpiio-ext", "run", "--", "APP", "--", "x"], 6),
        (["mpiio-ext", "run", "--", "mpirun", "-n", "2", "APP"], 6),
        (["flux", "run", "-n2", "APP"], 3),
        (["flux", "submit", "-n2", "APP"], 0),  # later
        (["APP", "srun"], 0),
        (["srun", "-n", "2"], 0),
    ],
)
def test_what_starts_ranks(words: list[str], front: int) -> None:
    app = shutil.which("sort") or ""
    assert program.launch_of([app if word == "APP" else word for word in words]) == words[:front]


def test_a_launcher_alone(library: pathlib.Path) -> None:
    assert states(examined(library, "mpirun", "-n", "2")) == {"found": "error"}


# ---- programs under which it cannot be put --------------------------------------------------------------------------


def test_static_program(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = examined(library, str(built(tmp_path, "app", "int main(void) { return 0; }", "-static")))
    assert states(found) == {"found": "ok", "linking": "error"}
    assert found["program.linking"].facts["static"] is True
    assert "link it dynamically" in found["program.linking"].advice
    assert "-lmpiio_ext" not in found["program.linking"].advice  # there is no libmpiio_ext.a


@pytest.mark.parametrize("bits, word", [(0o4755, "setuid"), (0o2755, "setgid")])
def test_program_with_other_rights(
    library: pathlib.Path, writes: pathlib.Path, tmp_path: pathlib.Path, bits: int, word: str
) -> None:
    copy = tmp_path / "app"
    shutil.copy(writes, copy)
    copy.chmod(bits)
    found = examined(library, str(copy))
    assert states(found) == {"found": "ok", "linking": "error"} and word in found["program.linking"].text


def test_program_of_another_processor(library: pathlib.Path, writes: pathlib.Path, tmp_path: pathlib.Path) -> None:
    image = bytearray(writes.read_bytes())
    image[18:20] = (8).to_bytes(2, "little")  # e_machine: MIPS
    copy = tmp_path / "app"
    copy.write_bytes(image)
    copy.chmod(0o755)
    found = examined(library, str(copy))
    assert states(found) == {"found": "ok", "linking": "error"} and "EM_MIPS" in found["program.linking"].text


@pytest.mark.parametrize("image", [b"", b"MZ not a program", b"\x7fELF", b"\x7fELF" + bytes(60)])
def test_file_that_is_no_program(library: pathlib.Path, tmp_path: pathlib.Path, image: bytes) -> None:
    path = tmp_path / "app"
    path.write_bytes(image)
    path.chmod(0o755)
    assert states(examined(library, str(path))) == {"found": "ok", "linking": "error"}


def test_damaged_programs_are_refused_in_peace(writes: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """No cut and no changed byte of the header makes more than "no program" of it."""
    image, path = writes.read_bytes(), tmp_path / "app"
    for place in range(4, 120):
        path.write_bytes(image[:place] + bytes([image[place] ^ 0xFF]) + image[place + 1 :])
        linker.header_of(path)
        path.write_bytes(image[: place * 8])
        linker.header_of(path)


def test_program_that_is_not_there(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert states(examined(library, str(tmp_path / "nothing"))) == {"found": "error"}
    (tmp_path / "text").write_text("x")
    found = examined(library, str(tmp_path / "text"))
    assert states(found) == {"found": "error"} and "chmod +x" in found["program.found"].advice


def test_program_of_another_mpi(library: pathlib.Path, tmp_path: pathlib.Path, family: str) -> None:
    built(tmp_path, OTHER[family], FAKE_MPI, "-shared", "-fPIC", f"-Wl,-soname,{OTHER[family]}")
    app = built(tmp_path, "app", CALLS, str(tmp_path / OTHER[family]), f"-Wl,-rpath,{tmp_path}")
    found = examined(library, str(app))
    assert states(found)["mpi"] == "error"
    assert f"this mpiio_ext is for {NAMES[family]}" in found["program.mpi"].text
    assert found["program.mpi"].facts["library"] == str(tmp_path / OTHER[family])
    assert found["program.mpi"].facts["version"] == "F"


def of_wheel(library: pathlib.Path, folder: pathlib.Path, part: str) -> pathlib.Path:
    """A copy of the library where a wheel has that for an ABI."""
    path = folder / "abis" / part / "lib" / "libmpiio_ext.so"
    path.parent.mkdir(parents=True)
    return pathlib.Path(shutil.copy(library, path))


def test_library_of_a_wheel_that_was_chosen_by_hand(
    library: pathlib.Path, writes: pathlib.Path, tmp_path: pathlib.Path, family: str
) -> None:
    assert states(examined(of_wheel(library, tmp_path, family), str(writes)))["mpi"] == "ok"
    other = {"openmpi": "mpich", "mpich": "openmpi"}[family]
    found = examined(of_wheel(library, tmp_path, other), str(writes))
    assert states(found)["mpi"] == "error" and "unset MPIIO_EXT_ABI" in found["program.mpi"].advice
    assert found["program.mpi"].advice.endswith(family)


def test_python_of_another_mpi_than_the_library_of_a_wheel(
    library: pathlib.Path, tmp_path: pathlib.Path, family: str
) -> None:
    assert states(examined(of_wheel(library, tmp_path, family), sys.executable))["under"] == "ok"
    found = examined(of_wheel(library, tmp_path, {"openmpi": "mpich", "mpich": "openmpi"}[family]), sys.executable)
    assert states(found)["under"] == "error" and found["program.under"].advice == f"export MPIIO_EXT_ABI={family}"


@pytest.mark.parametrize(
    "name, called",
    [("libmpi_gnu_123.so.12", "MPICH"), ("libmpi_abi.so.1", "MPI ABI"), ("libmpi_mpifh.so.40", "libmpi_mpifh.so.40")],
)
def test_names_of_mpi_libraries(name: str, called: str) -> None:
    """Cray's has the compiler's name in it; those for Fortran are not the library itself."""
    assert linker.abi_of(name) == called
    assert (name in linker.Trace(libraries={name: "/x"}).mpi()) is (called != name)


def test_program_without_one_of_its_libraries(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    built(tmp_path, "libgone.so", FAKE_MPI, "-shared", "-fPIC", "-Wl,-soname,libgone.so")
    app = built(tmp_path, "app", CALLS, str(tmp_path / "libgone.so"))
    found = examined(library, str(app))
    assert states(found)["libraries"] == "error" and found["program.libraries"].facts["missing"] == ["libgone.so"]


def test_program_without_mpi(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = examined(library, str(built(tmp_path, "app", "int main(void) { return 0; }")))
    assert states(found) == {"found": "ok", "linking": "ok", "mpi": "warning", "under": "warning"}
    assert found["program.mpi"].text.startswith("no MPI here: ")


def test_script_without_mpi(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """By what it imports, itself or by a module beside it; a module that is not there leaves the question open."""
    script, beside = tmp_path / "loader.py", tmp_path / "batches.py"
    for text, other, state in (
        ("import json, batches", "from os import path", "warning"),
        ("def f():\n    from mpi4py import MPI", "", "ok"),
        ("from batches import MPI", "from mpi4py import MPI", "ok"),
        ("import json, no_such_module", "", "ok"),
        ("import (", "", "ok"),
    ):
        script.write_text(text, encoding="utf-8")
        beside.write_text(other, encoding="utf-8")
        found = examined(library, sys.executable, str(script))
        assert found["program.mpi"].state.value == state, (text, found["program.mpi"])
        assert ("no MPI here: loader.py imports" in found["program.mpi"].text) == (state == "warning")


def test_program_with_a_pnetcdf_that_has_its_own_driver(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """It has GIO in it; an older one, or one built without, has not."""
    text = 'const char *ncmpi_hint(void) { return "%s"; }'
    for number, mark in enumerate(("nc_driver", "GIO library version 1.0.0")):
        folder = tmp_path / str(number)
        folder.mkdir()
        flags = ("-shared", "-fPIC", "-Wl,-soname,libpnetcdf.so.9", f"-Wl,-rpath,{folder}")
        built(folder, "libpnetcdf.so.9", text % mark, *flags)
        app = built(
            folder,
            "app",
            "const char *ncmpi_hint(void); int main(void) { return !ncmpi_hint(); }",
            str(folder / "libpnetcdf.so.9"),
            f"-Wl,-rpath,{folder}",
        )
        for hints, state in (("", "warning"), ("nc_driver=ufs", "warning"), ("a=b; nc_driver = mpiio", "ok")):
            found = states(examined(library, str(app), PNETCDF_HINTS=hints))
            assert found.get("pnetcdf") == (state if number else None), (mark, hints)


def test_program_with_mpi_inside(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = examined(library, str(built(tmp_path, "app", FAKE_MPI + "int main(void) { return 0; }")))
    assert states(found)["mpi"] == "error" and "statically" in found["program.mpi"].text


def test_program_with_a_tool_in_front(library: pathlib.Path, writes: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A tool that the program is linked with comes behind LD_PRELOAD; one that is preloaded first is in front."""
    tool = built(tmp_path, "tool.so", "int MPI_File_open(void) { return 0; }", "-shared", "-fPIC")
    first = f"{tool}:{library}"
    asked = linker.trace(writes, linker.header_of(writes).interpreter, base_environment() | {"LD_PRELOAD": first}, 240)
    assert (str(writes), str(tool), "MPI_File_open") in asked.bindings
    environment = {"LD_PRELOAD": first}
    target = program.Target(name="app", path=writes, library=library, environment=environment, limit_s=240)
    found = program._under(target, linker.Trace(libraries={}), asked)
    assert found.state.value == "warning" and str(tool) in found.text


@pytest.mark.parametrize(
    ("called", "binds", "reaches"),
    [
        ("mpi_file_open_f08_", "ompi_file_open_f", True),
        ("mpi_file_open_f08_", "MPI_File_open", False),
        ("mpi_file_open_", "MPI_File_open", True),
        ("mpi_file_open_", None, False),
    ],
)
def test_fortran_libraries_that_call_this_library(
    library: pathlib.Path, tmp_path: pathlib.Path, called: str, binds: str | None, reaches: bool
) -> None:
    """The mpi_f08 module of Open MPI calls functions that this library has; that of MPICH calls PMPI_File_open."""
    fortran = "/lib/libmpifort.so.12"
    bindings = [("app", fortran, called), *([(fortran, str(library), binds)] if binds else [])]
    target = program.Target(name="app", path=tmp_path / "app", library=library, environment={}, limit_s=240)
    found = program._under(target, linker.Trace(libraries={}), linker.Trace(libraries={}, bindings=bindings))
    assert (found.state.value == "ok") is reaches, found


def test_library_that_cannot_be_preloaded(writes: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = examined(tmp_path / "libmpiio_ext.so", str(writes))
    assert states(found)["under"] == "error" and "ignores" in found["program.under"].text


def test_linker_that_cannot_be_asked(writes: pathlib.Path) -> None:
    found = linker.trace(writes, "/lib/ld-musl-x86_64.so.1", os.environ)
    assert found.libraries == {} and "not that of glibc" in found.trouble


def test_python_that_says_nothing(library: pathlib.Path, tmp_path: pathlib.Path) -> None:
    shutil.copy(built(tmp_path, "app", "int main(void) { return 3; }"), tmp_path / "python3")
    found = examined(library, str(tmp_path / "python3"))
    assert states(found)["under"] == "error" and "exit status 3" in found["program.under"].text
