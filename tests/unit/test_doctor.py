"""mpiio-ext doctor: each check of /dev/shm, the software and the variables, with its bad case provoked."""

from __future__ import annotations

import io
import os
import pathlib
import re
import time
from typing import Any

import pytest

from mpiio_ext.common.children import run
from mpiio_ext.common.extras import install_line
from mpiio_ext.doctor import Finding, State, program, show, software, storage, worst
from mpiio_ext.doctor.children import Answer, ask
from mpiio_ext.doctor.findings import bad, good, warn
from mpiio_ext.environment import VARIABLES, markdown_table
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


# ---- /dev/shm -------------------------------------------------------------------------------------------------------


def test_shm_that_is_missing(tmp_path: pathlib.Path) -> None:
    found = storage.shm({}, tmp_path)
    assert found.state.value == "warning"
    assert "No such file" in found.text and found.facts["writable"] is False


def test_shm_that_cannot_be_written_to(tmp_path: pathlib.Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/shm").symlink_to("/proc/self")  # where not even root can make a file
    found = storage.shm({}, tmp_path)
    assert found.state.value == "warning"
    assert found.text.startswith("/dev/shm cannot be used") and "mount a tmpfs" in found.advice


@pytest.mark.parametrize("blocks, free, words", [(16, 16, "--shm-size"), (2**20, 3, "ended jobs have left")])
def test_shm_that_is_small_or_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, blocks: int, free: int, words: str
) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    room = os.statvfs_result((4096, 4096, blocks, free, free, 1, 1, 1, 0, 255))
    monkeypatch.setattr(storage.os, "statvfs", lambda _: room)
    found = storage.shm({}, tmp_path)
    assert found.state.value == "warning" and words in found.advice
    assert found.facts["total_bytes"] == blocks * 4096 and found.facts["free_bytes"] == free * 4096


def test_shm_with_room(tmp_path: pathlib.Path) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    assert storage.shm({}, tmp_path).state.value == "ok"


# ---- software -------------------------------------------------------------------------------------------------------

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


def test_versions_that_are_as_they_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    found = versions(monkeypatch)
    assert {item.state.value for item in found.values()} == {"ok"}
    assert set(found) == {"versions.python", "versions.h5py", "versions.netCDF4"}


@pytest.mark.parametrize(("aware", "said"), [(True, "knows their"), (False, "does not know"), (None, "does not tell")])
def test_gpus(aware: bool | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(software, "ask", lambda *_, **__: Answer(values={"cuda": aware}))
    assert software.gpus("", {}, root=tmp_path) == []
    for name in ("dev/kfd", "proc/driver/nvidia/version", "proc/driver/nvidia/gpus/0", "proc/driver/nvidia/gpus/1"):
        (tmp_path / name).mkdir(parents=True)
    nvidia, amd = software.gpus("", {}, root=tmp_path)
    assert nvidia.state.value == "ok" and nvidia.text.startswith("2 NVIDIA GPUs") and said in nvidia.text
    assert amd.state.value == "ok" and "AMD GPU" in amd.text


def test_serial_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    found = versions(monkeypatch, h5py_parallel=False)["versions.h5py"]
    assert found.state.value == "warning" and "HDF5_MPI=ON" in found.advice


def test_h5py_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    found = versions(monkeypatch, h5py_parallel="drop", h5py_error="ImportError: libhdf5")["versions.h5py"]
    assert found.state.value == "error" and "libhdf5" in found.text


def test_no_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in C needs none: without a program, `mpi.version` is the error."""
    (found,) = versions(monkeypatch, mpi4py=None, trouble="ImportError", mpi_libraries="drop").values()
    assert found.state.value == "warning" and found.advice == install_line("doctor")
    assert versions(monkeypatch, mpi4py=None, h5py_parallel=False)["versions.h5py"].state.value == "warning"


def test_packages_that_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    found = versions(monkeypatch, trouble="ended by SIGSEGV", mpi_libraries="drop")
    assert found["versions.packages"].state.value == "warning" and "SIGSEGV" in found["versions.packages"].text


@pytest.mark.parametrize(
    "paths, several",
    [
        (["/a/libmpi.so.12", "/a/libmpich.so.12"], False),  # MPICH 5: its functions, and what they stand on
        (["/a/libmpich.so.12"], False),
        (["/a/libmpi.so.12", "/b/libmpich.so.12"], True),
        (["/a/libmpi.so.12", "/a/libmpi_abi.so.0"], True),
    ],
)
def test_libraries_of_one_mpi(monkeypatch: pytest.MonkeyPatch, paths: list[str], several: bool) -> None:
    assert ("versions.mpi" in versions(monkeypatch, mpi_libraries=paths)) == several


def test_two_mpi_libraries_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    found = versions(monkeypatch, mpi_libraries=["/a/libmpi.so.40", "/b/libmpi.so.12"])["versions.mpi"]
    assert found.state.value == "error" and "/a/libmpi.so.40 and /b/libmpi.so.12" in found.text


# ---- variables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("MPIOX_HINT", "MPIOX_HINTS"),
        ("MPIOX_STAT_FILE", "MPIOX_STATS_FILE"),
        ("mpiox_hints", "MPIOX_HINTS"),
        ("MPIIOX_HINTS", "MPIOX_HINTS"),
        ("MPIO_STATS", "MPIOX_STATS"),
        ("MPIOX_QUITE_ANOTHER_THING", None),
    ],
)
def test_variables_that_do_not_exist(name: str, nearest: str | None) -> None:
    (found,) = software.variables({name: "1", "HOME": "/"})
    assert found.state.value == "warning" and found.facts == {"name": name, "nearest": nearest}
    assert f"did you mean {nearest}?" == found.advice if nearest else "lists the variables" in found.advice


def test_variables_that_exist(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hints").write_text("")
    settings = {"MPIOX_STATS": "1", "MPIOX_HINTS_FILE": str(tmp_path / "hints"), "MPIIO_EXT_ABI": "mpich"}
    (found,) = software.variables(settings | {"MPIIO_EXT_SKIP_APT": "1"})
    assert found.state.value == "ok" and found.facts["set"] == settings


def test_files_of_variables_that_are_missing() -> None:
    (found,) = software.variables({"MPIOX_HINTS_FILE": "/nothing/here"})
    assert found.state.value == "error" and "/nothing/here" in found.text


def test_variables_for_tests() -> None:
    (found,) = software.variables({"MPIOX_FAULT": "x"})
    assert found.state.value == "warning" and "MPIOX_FAULT" in found.text


def test_intel_mpi_that_locks() -> None:
    intel = {"I_MPI_ROOT": "/opt/intel/mpi"}
    (found,) = software.variables(intel)
    assert found.state.value == "warning" and found.advice == "export I_MPI_EXTRA_FILESYSTEM=on"
    (found,) = software.variables(intel | {"I_MPI_EXTRA_FILESYSTEM": "on"})
    assert found.state.value == "ok"


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


# ---- LD_PRELOAD -----------------------------------------------------------------------------------------------------


def test_preload(tmp_path: pathlib.Path) -> None:
    tool, ours = tmp_path / "tool.so", tmp_path / "libmpiio_ext.so"
    tool.touch()
    ours.touch()
    assert program.preloaded({}).state.value == "ok"
    assert program.preloaded({"LD_PRELOAD": f"{ours}:{tool}"}).state.value == "ok"
    assert "in front of" in program.preloaded({"LD_PRELOAD": f"{tool} {ours}"}).text
    found = program.preloaded({"LD_PRELOAD": "/nothing/here.so"})
    assert found.state.value == "error" and found.facts["missing"] == ["/nothing/here.so"]


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
