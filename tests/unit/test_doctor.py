"""mpiio-ext doctor: each check of /dev/shm, the software and the variables, with its bad case provoked."""

from __future__ import annotations

import dataclasses
import io
import os
import pathlib
import platform
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from mpiio_ext.common.children import run
from mpiio_ext.common.extras import install_line
from mpiio_ext.doctor import Finding, State, program, show, software, storage, worst
from mpiio_ext.doctor.children import Answer, ask
from mpiio_ext.doctor.findings import bad, good, warn
from mpiio_ext.environment import VARIABLES, markdown_table
from support.expected import Expected
from support.launch import ROOT, base_environment

# ---- child processes ------------------------------------------------------------------------------------------------


def test_a_child_that_hangs_is_ended_with_what_it_started(tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "pid"
    started_s = time.monotonic()
    ended = run(["sh", "-c", f"sleep 300 & echo $! > {mark}; wait"], limit_s=2)
    assert (ended.trouble, ended.stopped) == ("no answer within 2 s", True)
    assert time.monotonic() - started_s < 200
    pid = int(mark.read_text())
    for _ in range(100):
        if not pathlib.Path(f"/proc/{pid}").exists() or "Z" in pathlib.Path(f"/proc/{pid}/stat").read_text():
            return
        time.sleep(0.05)
    pytest.fail("what the child has started lives on")


@pytest.mark.parametrize(
    "script, trouble",
    [
        ("exit 3", "exit status 3"),
        ("kill -SEGV $$", "ended by SIGSEGV"),
        ("true", ""),
        ("kill -ABRT $$", "ended by SIGABRT"),
    ],
)
def test_how_a_child_ends_is_told(script: str, trouble: str) -> None:
    assert run(["sh", "-c", script], limit_s=60).trouble == trouble


def test_a_command_that_is_not_there() -> None:
    assert run(["/nothing/here"], limit_s=5).trouble.startswith("cannot be started: No such")


def test_a_question_that_fails_says_why() -> None:
    answer = ask("library_version", "/nothing/libmpi.so", limit_s=60)
    assert answer.values == {}
    assert "exit status 1" in answer.reason() and "/nothing/libmpi.so" in answer.reason()


# ---- findings -------------------------------------------------------------------------------------------------------

WHOLE = {
    "mpi4py": "4.1",
    "numpy": "2",
    "mpiio_ext": "0",
    "h5py": "3",
    "netCDF4": "1",
    "h5py_parallel": True,
    "hdf5": "1.14",
    "netcdf_parallel": True,
    "netcdf": "4.9",
    "mpi_libraries": ["/lib/libmpi.so.40"],
}


def versions(monkeypatch: pytest.MonkeyPatch, trouble: str = "", **changes: Any) -> dict[str, Finding]:
    values = {name: value for name, value in (WHOLE | changes).items() if value != "drop"}
    monkeypatch.setattr(software, "ask", lambda *_, **__: Answer(values=values, trouble=trouble, output="it said"))
    return {item.key: item for item in software.versions({}, 1)}


def test_versions_of_this_environment() -> None:
    import importlib.metadata

    found = {item.key: item for item in software.versions(base_environment(), 240)}
    assert found["versions.python"].facts["mpi4py"] == importlib.metadata.version("mpi4py")
    assert "versions.mpi" not in found


def shm(monkeypatch: pytest.MonkeyPatch, root: pathlib.Path, blocks: int, free: int) -> Finding:
    """Return the finding about a /dev/shm of so many pages."""
    (root / "dev/shm").mkdir(parents=True)
    room = os.statvfs_result((4096, 4096, blocks, free, free, 1, 1, 1, 0, 255))
    monkeypatch.setattr(storage.os, "statvfs", lambda _: room)
    return storage.shm({}, root)


def unwritable(root: pathlib.Path) -> Finding:
    """Return the finding about a /dev/shm in which not even root can make a file."""
    (root / "dev").mkdir()
    (root / "dev/shm").symlink_to("/proc/self")
    return storage.shm({}, root)


def gpus(monkeypatch: pytest.MonkeyPatch, root: pathlib.Path, aware: bool | None) -> list[Finding]:
    """Return the findings about two GPUs of NVIDIA and one of AMD; without them there are none."""
    monkeypatch.setattr(software, "ask", lambda *_, **__: Answer(values={"cuda": aware}))
    assert software.gpus("", {}, root=root) == []
    for name in ("dev/kfd", "proc/driver/nvidia/version", "proc/driver/nvidia/gpus/0", "proc/driver/nvidia/gpus/1"):
        (root / name).mkdir(parents=True)
    return software.gpus("", {}, root=root)


def existing(root: pathlib.Path) -> list[Finding]:
    """Return the findings about variables that all exist, and name a file that exists."""
    (root / "hints").write_text("")
    settings = {"MPIOX_STATS": "1", "MPIOX_HINTS_FILE": str(root / "hints"), "MPIIO_EXT_ABI": "mpich"}
    return software.variables(settings | {"MPIIO_EXT_SKIP_APT": "1"})


def preloaded(root: pathlib.Path, words: str) -> list[Finding]:
    """Return the finding about LD_PRELOAD, in which TOOL is another library."""
    tool, ours = root / "tool.so", root / "libmpiio_ext.so"
    tool.touch()
    ours.touch()
    return [program.preloaded({"LD_PRELOAD": words.replace("TOOL", str(tool)).replace("OURS", str(ours))})]


def libraries(monkeypatch: pytest.MonkeyPatch, *paths: str) -> list[Finding]:
    """Return the findings about a process with these libraries of MPI, apart from those about packages."""
    return [item for key, item in versions(monkeypatch, mpi_libraries=list(paths)).items() if key == "versions.mpi"]


INTEL = {"I_MPI_ROOT": "/opt/intel/mpi"}
#: What is provoked, and how the checks report it.
FOUND: dict[str, Callable[[pytest.MonkeyPatch, pathlib.Path], Iterable[Finding]]] = {
    "no /dev/shm": lambda _, root: [storage.shm({}, root)],
    "a /dev/shm that nobody can write to": lambda _, root: [unwritable(root)],
    "a small /dev/shm": lambda patch, root: [shm(patch, root, 16, 16)],
    "a full /dev/shm": lambda patch, root: [shm(patch, root, 2**20, 3)],
    "a /dev/shm with room": lambda patch, root: [shm(patch, root, 2**20, 2**20)],
    "all versions": lambda patch, _: versions(patch).values(),
    "serial h5py": lambda patch, _: versions(patch, h5py_parallel=False).values(),
    "h5py that cannot be imported": lambda patch, _: versions(
        patch, h5py_parallel="drop", h5py_error="ImportError: libhdf5"
    ).values(),
    # a program in C needs none: without a program, `mpi.version` is the error
    "no mpi4py": lambda patch, _: versions(patch, mpi4py=None, trouble="ImportError", mpi_libraries="drop").values(),
    "no mpi4py, serial h5py": lambda patch, _: versions(patch, mpi4py=None, h5py_parallel=False).values(),
    "packages that crash": lambda patch, _: versions(patch, trouble="ended by SIGSEGV", mpi_libraries="drop").values(),
    # MPICH 5: its functions, and what they stand on
    "two libraries of one MPI": lambda patch, _: libraries(patch, "/a/libmpi.so.12", "/a/libmpich.so.12"),
    "one library": lambda patch, _: libraries(patch, "/a/libmpich.so.12"),
    "two MPICHs": lambda patch, _: libraries(patch, "/a/libmpi.so.12", "/b/libmpich.so.12"),
    "two ABIs": lambda patch, _: libraries(patch, "/a/libmpi.so.12", "/a/libmpi_abi.so.0"),
    "two MPIs": lambda patch, _: libraries(patch, "/a/libmpi.so.40", "/b/libmpi.so.12"),
    **{
        f"an MPI that is aware of GPUs: {aware}": lambda patch, root, aware=aware: gpus(patch, root, aware)
        for aware in (True, False, None)
    },
    **{
        f"{name}=1": lambda _, __, name=name: software.variables({name: "1", "HOME": "/"})
        for name in (
            "MPIOX_HINT",
            "MPIOX_STAT_FILE",
            "mpiox_hints",
            "MPIIOX_HINTS",
            "MPIO_STATS",
            "MPIOX_QUITE_ANOTHER_THING",
            "MPIOX_FAULT",
        )
    },
    "variables that exist": lambda _, root: existing(root),
    "a file that is missing": lambda _, __: software.variables({"MPIOX_HINTS_FILE": "/nothing/here"}),
    "Intel MPI that locks": lambda _, __: software.variables(INTEL),
    "Intel MPI that does not lock": lambda _, __: software.variables(INTEL | {"I_MPI_EXTRA_FILESYSTEM": "on"}),
    "nothing preloaded": lambda _, __: [program.preloaded({})],
    "this library in front": lambda _, root: preloaded(root, "OURS:TOOL"),
    "another library in front": lambda _, root: preloaded(root, "TOOL OURS"),
    "a preloaded library that is missing": lambda _, __: [program.preloaded({"LD_PRELOAD": "/nothing/here.so"})],
}


@pytest.mark.parametrize("name", FOUND)
def test_findings(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, expected: Expected) -> None:
    found = [dataclasses.asdict(item) | {"state": item.state.value} for item in FOUND[name](monkeypatch, tmp_path)]
    expected(
        found, hide={re.escape(platform.python_version()): "VERSION", re.escape(install_line("doctor")): "INSTALL"}
    )


def test_hints_that_do_not_exist() -> None:
    found = software.hints(base_environment() | {"MPIOX_HINTS": "*:cb_nods=1,*:mpiox_nothing=2"}, 120)
    assert found.state.value == "warning" and "did you mean cb_nodes" in found.text and "and 1 more" in found.text
    assert software.hints(base_environment(), 120).state.value == "ok"


def test_table_of_variables_is_that_of_the_sources() -> None:
    """Every variable that C or Python reads is in the table, and nothing else is."""
    found: set[str] = set()
    for folder in ("csrc", "mpiio_ext", "partitioning", "delegates", "pioneer", "analytics"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".py") and path.name not in ("environment.py", "software.py"):
                text = path.read_text(encoding="utf-8")
                readers = "getenv|mpiox_text_variable|environment|number_of"
                found |= set(re.findall(rf'(?:{readers})\("(MPIOX_[A-Z_]+)"', text))
                found |= set(re.findall(r'(?:environ|environment)(?:\.get\(|\[)"(MPIOX_[A-Z_]+)"', text))
                found |= set(re.findall(r'define MPIOX_\w+_VARIABLE "(MPIOX_[A-Z_]+)"', text))
                found |= set(re.findall(r'\{"(MPIOX_[A-Z_]+)", "mpiox_[a-z_]+"\}', text))
    assert found == {name for name in VARIABLES if name.startswith("MPIOX_")}
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "mpiio_ext").rglob("*.py") if path.name != "environment.py"
    )
    assert all(f'"{name}"' in sources for name in VARIABLES if name.startswith("MPIIO_EXT_"))


def test_documentation_has_the_table_and_every_key() -> None:
    text = (ROOT / "docs/reference/checks.md").read_text(encoding="utf-8")
    assert markdown_table() in text
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "mpiio_ext/doctor").glob("*.py"))
    sources += (ROOT / "mpiio_ext/cli/doctor.py").read_text(encoding="utf-8")
    groups = "library|(?:program|environment|path|memory|gpu|versions|mpi|job|io)\\.[a-z_]+"
    keys = set(re.findall(rf'(?:key = |key, \w+ = |key, \w+, \w+ = |good\(|bad\(|warn\()\s*"({groups})"', sources))
    keys |= {"versions.h5py", "versions.netCDF4"}
    documented = set(re.findall(r"^\| `([a-zA-Z0-9_.]+)` \|", text.split("## Variables")[0], re.MULTILINE))
    assert documented == keys


# ---- how it is shown ------------------------------------------------------------------------------------------------


def test_worst() -> None:
    assert worst([]) is State.OK
    assert worst([good("a", "b"), warn("a", "b", "c")]) is State.WARNING
    assert worst([bad("a", "b", "c"), good("a", "b"), warn("a", "b", "c")]) is State.ERROR


@pytest.mark.parametrize(
    "encoding, marks, arrow", [("utf-8", "✓!✗", "→"), ("ascii", "+!x", "->"), ("latin-1", "+!x", "->")]
)
def test_lines(encoding: str, marks: str, arrow: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    lines = show.Lines(stream)
    found = [good("a", "fine"), warn("b", "less – so", "do it"), bad("c", "not", "do that")]
    for item in found:
        lines.add(item)
    early = raw.getvalue().decode(encoding)
    assert "not" in early and "fine" not in early  # a problem is there even if the job is ended
    lines.end(found)
    text = raw.getvalue().decode(encoding).splitlines()
    problems_first = [marks[1], marks[2], marks[0]]
    assert [line[0] for line in text if line[0] != " "] == [*problems_first, marks[0]]
    assert [line.split()[:2] for line in text if line.startswith(" ")] == [[arrow, "do"]] * 2


def test_keys_of_json() -> None:
    shown = show.as_json([bad("a", "b", "c", size=1)], 3)
    assert shown == {
        "mpiio_ext": shown["mpiio_ext"],
        "host": shown["host"],
        "ranks": 3,
        "state": "error",
        "checks": [{"key": "a", "state": "error", "text": "b", "advice": "c", "facts": {"size": 1}}],
    }
