"""The choice of the library in a wheel: ELF files read, commands and their MPI ABI, messages when none fits."""

from __future__ import annotations

import importlib.util
import io
import os
import random
import shutil
import struct
import subprocess
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

import mpiio_ext
from mpiio_ext import _load, abi
from mpiio_ext.cli import main
from mpiio_ext.elf import Elf, ElfError, listed, parse, read
from mpiio_ext.errors import LoadError


def elf(needed: tuple[str, ...], *, order: str = "<", wide: bool = True, dynamic: bool = True) -> bytes:
    """Make an executable of one segment with these DT_NEEDED."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    places = [1 + sum(len(name) + 1 for name in needed[:index]) for index in range(len(needed))]
    head_bytes, entry_bytes, base = (64, 56, 0x400000) if wide else (52, 32, 0x8000)
    tags = [(1, place) for place in places] + [(5, 0), (0, 0)]
    word = struct.Struct(order + ("qQ" if wide else "iI"))
    at = head_bytes + 2 * entry_bytes
    table = at + len(tags) * word.size
    section = b"".join(word.pack(tag, base + table if tag == 5 else value) for tag, value in tags)
    total = table + len(strings)

    def segment(kind: int, offset: int, size: int) -> bytes:
        if wide:
            return struct.pack(order + "IIQQQQQQ", kind, 4, offset, base + offset, 0, size, size, 8)
        return struct.pack(order + "IIIIIIII", kind, offset, base + offset, 0, size, size, 4, 4)

    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    form = "HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"
    head = ident + struct.pack(order + form, 2, 62, 1, 0, head_bytes, 0, 0, head_bytes, entry_bytes, 2, 0, 0, 0)
    kind = 2 if dynamic else 4
    return head + segment(1, 0, total) + segment(kind, at, len(section)) + section + strings


def program(folder: Path, name: str, *needed: str) -> Path:
    """Make a file that is an executable by its mode and its ELF header."""
    path = folder / name
    path.write_bytes(elf(needed))
    path.chmod(0o755)
    return path


# ---- ELF files -------------------------------------------------------------------------------------------------------


def parsed(data: bytes) -> Elf:
    return parse(io.BytesIO(data))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("wide", [True, False])
def test_needed_of_every_form(order: str, wide: bool) -> None:
    names = ("libmpi.so.40", "libm.so.6", "libc.so.6")
    machine = f"EM_X86_64 {64 if wide else 32}"
    assert parsed(elf(names, order=order, wide=wide)) == Elf(names, "", True, machine)
    assert parsed(elf(names, order=order, wide=wide, dynamic=False)) == Elf((), "", False, machine)
    assert parsed(elf((), order=order, wide=wide)).needed == ()


def test_needed_of_this_python_and_library() -> None:
    """What readelf prints, of a real executable and a real library."""
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("needs readelf")
    for path in (Path(sys.executable).resolve(), mpiio_ext.get_library()):
        text = subprocess.run([readelf, "-d", path], capture_output=True, text=True, check=True, timeout=60).stdout
        expected = tuple(line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line)
        assert read(path).needed == expected
    assert read(Path(sys.executable).resolve()).interpreter.startswith("/")


def test_a_text_is_no_elf_file(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with pytest.raises(ElfError, match="no ELF file"):
        read(tmp_path / "script")


def test_damaged_files_are_refused_and_never_crash() -> None:
    """Cut at every length, and changed at random places: a result or `ElfError`, nothing else."""
    whole = elf(("libmpi.so.12", "libc.so.6"))
    refused = 0
    for length in range(len(whole)):
        try:
            parsed(whole[:length])
        except ElfError:
            refused += 1
    assert refused == len(whole)
    draw = random.Random(1)
    for _ in range(1_000):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        try:
            parsed(bytes(data))
        except ElfError:
            refused += 1
    assert refused > len(whole) + 500


def test_the_dynamic_linker_lists_what_it_can(tmp_path: Path) -> None:
    """All that a program or library needs, not what the user preloads; None for what it refuses or would crash on."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    (tmp_path / "app.c").write_text("int main(void) { return 0; }")
    for name, options in (("app", ["-Wl,--no-as-needed", "-lm"]), ("static", ["-static"]), ("lib.so", ["-shared"])):
        words = [compiler, "-fPIC", "-o", tmp_path / name, tmp_path / "app.c", *options]
        subprocess.run(words, check=True, timeout=60)
    assert {"libm.so.6", "libc.so.6"} <= set(listed(tmp_path / "app") or ())
    assert {*read(tmp_path / "lib.so").needed} <= {*(listed(tmp_path / "lib.so") or ())}
    needed = {name for name in read(mpiio_ext.get_library()).needed if not name.startswith("ld-")}
    assert needed <= {*(listed(mpiio_ext.get_library()) or ())}
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "damaged").write_bytes(elf(("libc.so.6",))[:100])
    for name in ("static", "script", "damaged", "absent"):
        assert listed(tmp_path / name) is None, name
    assert listed(tmp_path / "app", "/lib/no-linker") is None


# ---- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libmpi.so.40", "openmpi"),
        ("/opt/lib/libmpi.so.40.30.4", "openmpi"),
        ("libmpi_mpifh.so.40", "openmpi"),
        ("libmpi_usempif08.so.40", "openmpi"),
        ("libmpi.so.12", "mpich"),
        ("libmpich.so.12", "mpich"),
        ("libmpichfort.so.12", "mpich"),
        ("libmpi_gnu_123.so.12", "mpich"),
        ("libmpifort.so.12", "mpich"),
        ("libmpi_abi.so.0", "mpiabi"),
        ("libmpi_abi.so.1", "mpiabi"),
        ("libmpifort_abi.so.1", "mpiabi"),
        ("libmpi.so.20", None),
        ("libmpi_ibm.so.3", None),
        ("libmpiio_ext.so", None),
        ("libc.so.6", None),
    ],
)
def test_abi_by_name(name: str, expected: str | None) -> None:
    assert abi.of_library(name) == expected


def test_first_program_of_a_command_counts(tmp_path: Path) -> None:
    app = str(program(tmp_path, "app", "libc.so.6", "libmpi.so.12"))
    other = str(program(tmp_path, "other", "libmpi.so.40"))
    tool = str(program(tmp_path, "tool", "libc.so.6"))
    standard = str(program(tmp_path, "standard", "libmpi_abi.so.1"))
    assert abi.chosen([app, other], None, {})[0] == "mpich"
    assert abi.chosen([tool, "-x", other], None, {})[0] == "openmpi"
    assert abi.chosen([standard], None, {})[0] == "mpiabi"
    assert abi.chosen(["mpirun", "-n", "4", app], "unknown", {})[0] == "mpich"
    assert abi.chosen(["srun", "-n", "4", other], "slurm", {})[0] == "openmpi"


def test_launcher_counts_where_the_program_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "of_mpi4py", lambda: "mpiabi")
    script = tmp_path / "job"
    script.write_text("#!/bin/sh\nexec ./app\n")
    script.chmod(0o755)
    assert abi.chosen(["mpirun.openmpi", str(script)], "openmpi", {})[0] == "openmpi"
    assert abi.chosen([str(script)], None, {"OMPI_COMM_WORLD_SIZE": "2"})[0] == "openmpi"
    assert abi.chosen(["mpiexec.hydra", str(script)], "hydra", {})[0] == "mpiabi"
    assert abi.chosen([str(script)], None, {})[0] == "mpiabi"
    monkeypatch.setattr(abi, "of_mpi4py", lambda: "openmpi")
    assert abi.chosen(["mpiexec.hydra", str(script)], "hydra", {})[0] == "mpich"
    assert abi.chosen([str(script)], None, {"HYDI_CONTROL_FD": "7"})[0] == "mpich"


def test_why_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "of_mpi4py", lambda: "mpiabi")
    app = str(program(tmp_path, "app", "libmpi.so.12"))
    tool = str(program(tmp_path, "tool", "libc.so.6"))
    assert abi.chosen([app], None, {}) == ("mpich", f"{app} uses it")
    assert abi.chosen([tool], None, {"OMPI_COMM_WORLD_SIZE": "2"}) == ("openmpi", "the launcher is of it")
    assert abi.chosen([tool], "hydra", {}) == ("mpiabi", "the launcher is of it")
    assert abi.chosen([tool], None, {}) == ("mpiabi", "mpi4py uses it")
    assert abi.chosen([app], None, {abi.VARIABLE: "openmpi"}) == ("openmpi", f"{abi.VARIABLE} says so")


def test_no_command_means_what_an_import_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """mpi4py's MPI, also under a launcher of another one; without mpi4py the launcher's."""
    monkeypatch.setattr(abi, "of_mpi4py", lambda: "mpich")
    assert abi.chosen([], None, {"OMPI_COMM_WORLD_SIZE": "2"}) == ("mpich", "mpi4py uses it")
    monkeypatch.setattr(abi, "of_mpi4py", lambda: None)
    assert abi.chosen([], None, {"OMPI_COMM_WORLD_SIZE": "2"}) == ("openmpi", "the launcher is of it")
    assert abi.chosen([], None, {})[0] is None


def test_place_in_a_wheel() -> None:
    assert abi.of_part(Path("/env/mpiio_ext/abis/mpich/lib/libmpiio_ext.so")) == "mpich"
    assert abi.of_part(Path("/env/mpiio_ext/abis/other/lib/libmpiio_ext.so")) == ""
    assert abi.of_part(Path("/env/mpiio_ext/lib/libmpiio_ext.so")) == ""


def test_python_of_this_environment_has_the_mpi_of_mpi4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "of_mpi4py", lambda: "mpiabi")
    assert abi.chosen([sys.executable, "app.py"], None, {"OMPI_COMM_WORLD_SIZE": "2"})[0] == "mpiabi"
    script = tmp_path / "app"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    assert abi.chosen([str(script)], None, {"OMPI_COMM_WORLD_SIZE": "2"})[0] == "mpiabi"


def test_python_of_another_environment_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mpi4py may be for another MPI library than that of this environment."""
    monkeypatch.setattr(abi, "of_mpi4py", lambda: "mpiabi")
    other = tmp_path / "bin" / Path(sys.executable).name
    other.parent.mkdir()
    other.symlink_to(sys.executable)
    assert abi.chosen([str(other), "app.py"], None, {"OMPI_COMM_WORLD_SIZE": "2"})[0] == "openmpi"


def test_script_of_the_python_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "of_mpi4py", lambda: "mpiabi")
    script = tmp_path / "app"
    script.write_text(f"#!/usr/bin/env {Path(sys.executable).name}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert abi.chosen([str(script)], None, {"OMPI_COMM_WORLD_SIZE": "2"})[0] == "mpiabi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert abi.chosen([str(script)], None, {"OMPI_COMM_WORLD_SIZE": "2"})[0] == "openmpi"


@pytest.mark.parametrize(("launcher", "kind"), [("srun", "slurm"), ("mpirun", "unknown")])
def test_mpi4py_counts_last(launcher: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher that is not of one MPI library, and a program that tells nothing."""
    tool = str(program(tmp_path, "tool", "libc.so.6"))
    for expected in ("openmpi", "mpich", "mpiabi", None):
        monkeypatch.setattr(abi, "of_mpi4py", lambda expected=expected: expected)
        assert abi.chosen([launcher, "-n", "4", tool], kind, {})[0] == expected


def test_the_variable_comes_first(tmp_path: Path) -> None:
    app = str(program(tmp_path, "app", "libmpi.so.12"))
    assert abi.chosen([app], None, {abi.VARIABLE: "openmpi"})[0] == "openmpi"
    assert abi.of_mpi4py({abi.VARIABLE: "openmpi"}) == "openmpi"


def test_needed_through_another_library(tmp_path: Path) -> None:
    """A program whose HDF5 needs the MPI library: the dynamic linker is asked."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs gcc")
    sources = {
        "mpi": "int one(void) { return 1; }",
        "io": "int one(void); int two(void) { return one(); }",
        "app": "int two(void); int main(void) { return two(); }",
    }
    for name, text in sources.items():
        (tmp_path / f"{name}.c").write_text(text)
    shared = ["-shared", "-fPIC", f"-Wl,-rpath,{tmp_path}", f"-L{tmp_path}"]
    names = ["-Wl,-soname,libmpi.so.40", "-o", "libmpi.so.40"]
    steps = [
        [*shared, *names, "mpi.c"],
        [*shared, "-o", "libio.so", "io.c", "-l:libmpi.so.40"],
        [f"-Wl,-rpath,{tmp_path}", f"-L{tmp_path}", "-o", "app", "app.c", "-lio"],
    ]
    for step in steps:
        subprocess.run([compiler, *step], cwd=tmp_path, check=True, timeout=60)
    assert "libmpi.so.40" not in read(tmp_path / "app").needed
    assert abi.of_file(str(tmp_path / "app")) == "openmpi"


def test_an_unknown_mpi_is_named_with_what_to_do(tmp_path: Path) -> None:
    app = str(program(tmp_path, "app", "libmpi.so.20", "libc.so.6"))
    with pytest.raises(LoadError, match=r"app uses libmpi\.so\.20, .*MPI 4 and 5.*MPICC=mpicc pip install \.`"):
        abi.chosen([app], None, {})


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["run"], ["--", "./app"]),
        (["trace", "-o", "trace"], ["--", "./app"]),
        (["tune", "--budget", "1s"], ["--", "./app"]),
        (["advise"], ["--", "./app"]),
        (["pioneer", "replay", "--hint", "cb_nodes=1"], ["path.parquet", "here"]),
    ],
)
def test_every_command_that_starts_a_program_looks_for_its_mpi(
    command: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of the choice is the command's, and nothing was started."""
    asked: list[tuple[str, ...]] = []

    def select(words: tuple[str, ...]) -> None:
        asked.append(words)
        raise LoadError("app uses libmpi.so.20")

    monkeypatch.setattr(_load, "select", select)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "path.parquet").touch()
    done = CliRunner().invoke(main, [*command, *words])
    assert done.exit_code == 2, done.output
    assert "app uses libmpi.so.20" in done.output
    assert len(asked) == 1
    assert asked[0] == ("./app",) or asked[0][:5] == (sys.executable, "-m", "mpiio_ext", "pioneer", "replay")


# ---- mpi4py ----------------------------------------------------------------------------------------------------------


def put_mpi4py(monkeypatch: pytest.MonkeyPatch, folder: Path | None, asked: object = None) -> None:
    """Put a package mpi4py in place of the installed one: its folder, and what its wheel answers."""
    spec = None if folder is None else types.SimpleNamespace(submodule_search_locations=[str(folder)])
    package = types.ModuleType("mpi4py")
    if asked is not None:
        package._mpiabi = types.SimpleNamespace(_get_mpiabi=asked)  # type: ignore[attr-defined]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setitem(sys.modules, "mpi4py", package)
    monkeypatch.delitem(sys.modules, "mpi4py._mpiabi", raising=False)


@pytest.mark.parametrize("name", ["MPI.cpython-311-x86_64-linux-gnu.so", "MPI.abi3.so"])
@pytest.mark.parametrize(
    ("needed", "expected"), [("libmpi.so.40", "openmpi"), ("libmpich.so.12", "mpich"), ("libmpi_abi.so.1", "mpiabi")]
)
def test_mpi4py_built_for_one_library(
    name: str, needed: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file says which; it is not asked."""
    (tmp_path / name).write_bytes(elf(("libc.so.6", needed)))
    put_mpi4py(monkeypatch, tmp_path, asked=lambda: "never")
    assert abi.of_mpi4py({}) == expected


def test_mpi4py_built_for_an_unknown_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "MPI.abi3.so").write_bytes(elf(("libmpi.so.20",)))
    put_mpi4py(monkeypatch, tmp_path)
    with pytest.raises(LoadError, match=r"MPI\.abi3\.so uses libmpi\.so\.20, .*MPICC=mpicc pip install \.`"):
        abi.of_mpi4py({})


@pytest.mark.parametrize("expected", abi.NAMES)
def test_mpi4py_of_a_wheel_is_asked(expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds a file for every ABI and looks for the library itself."""
    for name in abi.NAMES:
        (tmp_path / f"MPI.{name}.cpython-311-x86_64-linux-gnu.so").write_bytes(elf(("libmpi.so.20",)))
    put_mpi4py(monkeypatch, tmp_path, asked=lambda: expected)
    assert abi.of_mpi4py({}) == expected


def test_mpi4py_of_a_wheel_that_finds_another_abi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_mpi4py(monkeypatch, tmp_path, asked=lambda: "msmpi")
    with pytest.raises(LoadError, match=r"mpi4py uses an MPI .* of the ABI 'msmpi', .*MPICC=mpicc pip install \.`"):
        abi.of_mpi4py({})


def test_without_mpi4py_or_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_found() -> str:
        raise RuntimeError("cannot load MPI library")

    put_mpi4py(monkeypatch, None)
    assert abi.of_mpi4py({}) is None
    put_mpi4py(monkeypatch, tmp_path)  # of a version that cannot be asked
    assert abi.of_mpi4py({}) is None
    put_mpi4py(monkeypatch, tmp_path, asked=nothing_found)
    assert abi.of_mpi4py({}) is None


# ---- a wheel ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package folder as the wheel leaves it, with empty libraries."""
    for name in abi.NAMES:
        (tmp_path / "abis" / name / "lib").mkdir(parents=True)
        (tmp_path / "abis" / name / "lib" / "libmpiio_ext.so").touch()
    monkeypatch.setattr(_load, "_folder", lambda: tmp_path)
    monkeypatch.setattr(_load, "_selected", None)
    monkeypatch.setattr(_load, "_in_process", lambda: None)
    monkeypatch.delenv(abi.VARIABLE, raising=False)
    return tmp_path


def test_library_for_a_command(wheel: Path, tmp_path: Path) -> None:
    app = str(program(tmp_path, "app", "libmpi_abi.so.1"))
    assert _load.select([app]) == f"{app} uses it"
    assert _load.get_library() == wheel / "abis" / "mpiabi" / "lib" / "libmpiio_ext.so"
    assert _load.get_tracer() == wheel / "abis" / "mpiabi" / "lib" / "libmpiio_ext_trace.so"
    assert _load.family() == "mpiabi"


@pytest.mark.parametrize("name", abi.NAMES)
def test_library_for_an_import_is_that_of_mpi4py(name: str, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "of_mpi4py", lambda: name)
    assert _load.get_library() == wheel / "abis" / name / "lib" / "libmpiio_ext.so"
    assert _load.family() == name


def test_library_that_is_in_the_process(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_load, "_in_process", lambda: "openmpi")
    assert _load.family() == "openmpi"


def test_library_without_any_mpi(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abi, "of_mpi4py", lambda: None)
    assert _load.select(()) == "" and _load.get_library().is_file()


def test_library_that_the_wheel_lacks(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(abi.VARIABLE, "msmpi")
    with pytest.raises(LoadError, match=r"MPIIO_EXT_ABI=msmpi: .*openmpi, mpich, mpiabi.*MPICC=mpicc"):
        _load.get_library()


def test_an_installation_from_source_has_one_library() -> None:
    assert abi.installed(Path(os.devnull)) == {}
    assert _load.family() in ("openmpi", "mpich")
    assert _load.get_library().parent.parent == _load._folder()
