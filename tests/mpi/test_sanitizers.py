"""The library under AddressSanitizer, UndefinedBehaviorSanitizer, LeakSanitizer, ThreadSanitizer and Valgrind.

A long tier (--run-slow). The library is built once more with each, by the CMake option MPIOX_SANITIZE, and preloaded
under the unchanged programs of tests/programs, as the installed one is elsewhere. Each tool has a control: a program
with an error that it must find. They see one process at a time: what ranks do to each other in shared memory is for the
differential test to find.
"""

from __future__ import annotations

import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from differential import run as differential
from differential import text as case_text
from differential.arms import Setting, ready
from differential.arms import launch as launch_cases
from differential.variants import VARIANTS, declared, runs_under
from support.cbuild import ROOT, failed_checks, mpi_program
from support.launch import Launch, base_environment, library_path, mpi_run

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.slow]

#: Tool -> values of -fsanitize= for the library; run-time library; flags of the programs.
TOOLS = {"address": ("address,undefined", "libasan.so", ()), "thread": ("thread", "libtsan.so", ("-fsanitize=thread",))}
#: Memory that the MPI libraries never give back.
LEAKS = "\n".join(
    f"leak:{name}"
    for name in (
        "libmpi.so",
        "libopen-pal",
        "libopen-rte",
        "libpmix",
        "libhwloc",
        "libevent",
        "/openmpi3/",
        "libfabric",
    )
)
#: The MPI libraries are not instrumented: their own ordering of threads, by atomics, is not seen. Without this each
#: receive buffer that another thread's progress has filled would be reported.
FOREIGN = ("libmpi.so", "libopen-pal.so", "mca_", "pmix", "libucs", "libucp", "libuct", "libfabric")
RACES = "\n".join(f"{what}:{name}" for what in ("race", "deadlock", "mutex") for name in FOREIGN)


@functools.cache
def runtime(name: str) -> str:
    """Return the path of a sanitizer's run-time library, which is preloaded first; or skip."""
    done = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0 or not os.path.isabs(done.stdout.strip()):
        pytest.skip(f"gcc has no {name}")
    return done.stdout.strip()


@pytest.fixture(scope="module")
def builds(family: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return tool -> path of the library built with it."""
    folder = pathlib.Path(sys.prefix) / "bin"
    cmake = shutil.which("cmake", path=f"{folder}:{os.environ.get('PATH', '')}")
    if cmake is None or shutil.which("gcc") is None:
        pytest.skip("needs cmake and gcc")
    found = {}
    for tool, (values, runtime_name, _) in TOOLS.items():
        runtime(runtime_name)
        build = tmp_path_factory.mktemp(tool)
        options = {
            "CMAKE_C_COMPILER": "gcc",
            "MPI_C_COMPILER": folder / "mpicc",
            "MPIOX_SANITIZE": values,
            "MPIOX_TESTING": "ON",
            "MPIOX_BUILD_BINDING": "OFF",
            "MPIOX_BUILD_TESTS": "OFF",
        }
        configure = [
            cmake,
            "-S",
            str(ROOT),
            "-B",
            str(build),
            *(f"-D{name}={value}" for name, value in options.items()),
        ]
        for command in (configure, [cmake, "--build", str(build), "--target", "mpiio_ext", "--parallel", "2"]):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=600, check=False, env=base_environment()
            )
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        found[tool] = str(build / "lib" / "libmpiio_ext.so")
    return found


def settings(tool: str, library: str, folder: pathlib.Path, *, leaks: bool = False) -> dict[str, str]:
    """Return the environment that puts a build under a program; reports go to files log.* in the folder."""
    (folder / "leaks").write_text(LEAKS, encoding="utf-8")
    (folder / "races").write_text(RACES, encoding="utf-8")
    log = f"log_path={folder / 'log'}:exitcode=66"
    return {
        "LD_PRELOAD": f"{runtime(TOOLS[tool][1])}:{library}",
        "ASAN_OPTIONS": f"{log}:detect_leaks={int(leaks)}:fast_unwind_on_malloc={int(not leaks)}",
        "UBSAN_OPTIONS": f"{log}:print_stacktrace=1",
        "LSAN_OPTIONS": f"suppressions={folder / 'leaks'}:print_suppressions=0",
        "UCX_MEM_EVENTS": "no",  # UCX (in MPICH's wheel) hooks calls of threads that ThreadSanitizer has left
        "UCX_MEM_MMAP_HOOK_MODE": "none",
        "TSAN_OPTIONS": f"{log}:history_size=4:suppressions={folder / 'races'}",
    }


def reports(folder: pathlib.Path) -> str:
    """Return what the tool has written about all ranks."""
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("log.*")))


def run(
    tool: str,
    builds: Mapping[str, str],
    folder: pathlib.Path,
    words: Sequence[str],
    ranks: int,
    *,
    env: Mapping[str, str] | None = None,
    leaks: bool = False,
) -> Launch:
    """Run the program words[0] with the other words as arguments behind the file, under a tool."""
    path = folder / "file"
    path.with_name("file.folder").mkdir(exist_ok=True)
    program: list[str | os.PathLike[str]] = [mpi_program(words[0], *TOOLS[tool][2]), path, *words[1:]]
    environment = settings(tool, builds[tool], folder, leaks=leaks) | dict(env or {})
    launch = mpi_run(program, ranks, env=environment, timeout_s=240, check=False)
    assert not launch.timed_out, launch.describe()
    return launch


# ---- controls: the tools find what there is to be found --------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "error", "text"),
    [
        ("address", "overrun", "heap-buffer-overflow"),
        ("address", "leak", "10000 byte(s) leaked"),
        ("thread", "race", "data race"),
    ],
)
def test_control(builds: dict[str, str], tmp_path: pathlib.Path, tool: str, error: str, text: str) -> None:
    """An error of the program inside a call of the library is found, and nothing is without one."""
    for name in ("none", error):
        folder = tmp_path / name
        folder.mkdir()
        launch = run(tool, builds, folder, ["misuse", name], 2, leaks=error == "leak")
        assert (text in reports(folder)) == (name == error), f"{reports(folder)[:4000]}\n{launch.describe()}"


# ---- address, undefined behaviour, leaks -----------------------------------------------------------------------------

THREADS = ["one_handle", "one_view", "pointer", "shared_pointer", "open_close", "mixed", "collectives"]
#: Words of the program, ranks, environment.
PROGRAMS: list[tuple[list[str], int, dict[str, str]]] = [
    (["interleaved"], 1, {}),
    (["interleaved"], 3, {}),
    (["interleaved"], 4, {"MPIOX_RANKS_PER_NODE": "2"}),
    (["interleaved"], 3, {"MPIOX_HINTS": "mpiox_exchange=two_phase:mpiox_partition=transpose:cb_buffer_size=4k"}),
    (["interleaved"], 3, {"MPIOX_HINTS": "mpiox_exchange=direct"}),
    (["lives", "successive", "40"], 3, {}),
    (["lives", "successive", "40"], 4, {"MPIOX_RANKS_PER_NODE": "2"}),
    (["threads", *THREADS], 3, {}),
    (["threads", *THREADS], 4, {"MPIOX_RANKS_PER_NODE": "2"}),
    (["threads", "nonblocking", "waitall", "icollectives"], 3, {}),
    (["handlers"], 3, {}),
    (["handlers", "late"], 2, {}),
]


@pytest.mark.parametrize(("words", "ranks", "env"), PROGRAMS)
def test_address(
    builds: dict[str, str], tmp_path: pathlib.Path, words: list[str], ranks: int, env: dict[str, str]
) -> None:
    """No byte out of bounds, none after it is freed, no undefined arithmetic; the rest is tested elsewhere."""
    launch = run("address", builds, tmp_path, words, ranks, env=env)
    assert not reports(tmp_path), f"{reports(tmp_path)[:8000]}\n{launch.describe()}"
    assert launch.returncode in range(10), launch.describe()  # the number of failed checks, not a crash


@pytest.mark.parametrize("words", [["interleaved"], ["lives", "successive", "40"], ["threads", *THREADS]])
def test_leaks(builds: dict[str, str], tmp_path: pathlib.Path, words: list[str]) -> None:
    """Everything is given back by MPI_Finalize."""
    launch = run("address", builds, tmp_path, words, 2, env={"MPIOX_RANKS_PER_NODE": "1"}, leaks=True)
    assert not reports(tmp_path), f"{reports(tmp_path)[:8000]}\n{launch.describe()}"


def test_differential(builds: dict[str, str], tmp_path: pathlib.Path) -> None:
    """Random programs: some hundred datatypes, views and calls, with the address sanitizer under Python."""
    environment = settings("address", builds["address"], tmp_path) | {"PYTHONMALLOC": "malloc"}
    setting = Setting(arms=("ours",), limit_s=90, env=tuple(environment.items()))
    report = differential.run(list(range(30_001, 30_121)), setting, deadline_s=200, shuffle=True)
    assert not reports(tmp_path), reports(tmp_path)[:8000]
    assert report.cases >= 20
    assert report.stats["collective_writes"] > 0
    assert not report.failures, sorted(report.failures.items())[:5]


@pytest.mark.parametrize(
    ("name", "variant", "tool"),
    [
        ("lifetimes", "default", "address"),
        ("modes", "default", "address"),
        ("storage", "default", "address"),
        ("storage", "delegates", "address"),
        ("storage", "default", "thread"),  # of delegates' caches, ThreadSanitizer sees one of two mappings
    ],
)
def test_cases(builds: dict[str, str], family: str, tmp_path: pathlib.Path, name: str, variant: str, tool: str) -> None:
    """Files and types that come and go, opens that fail, wrong arguments, storage that fails, also of delegates."""
    environment = settings(tool, builds[tool], tmp_path) | {"PYTHONMALLOC": "malloc"}
    hints = VARIANTS[variant].setting().env
    setting = Setting(arms=("ours",), limit_s=90, env=(*environment.items(), *hints))
    found = case_text.read_file(case_text.FOLDER / f"{name}.case")
    entries = [entry for entry in found if runs_under(entry, variant)]
    for ranks, disk in {(entry.case["ranks"], entry.case.get("disk", 0)) for entry in entries}:
        chosen = [entry for entry in entries if (entry.case["ranks"], entry.case.get("disk", 0)) == (ranks, disk)]
        cases = [entry.case | {"id": number} for number, entry in enumerate(chosen)]
        for line in launch_cases(ready(cases, setting), ranks, replace(setting, disk=disk)):
            assert not line["problems"] or declared(chosen[line["id"]], variant, family), line
    assert not reports(tmp_path), reports(tmp_path)[:8000]


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("per_node", [0, 1])
@pytest.mark.parametrize("case", [*THREADS, "atomic", "collective_opens", "nonblocking", "waitall", "icollectives"])
def test_threads(builds: dict[str, str], family: str, tmp_path: pathlib.Path, case: str, per_node: int) -> None:
    """No data race and no inverted lock among the threads of a process."""
    if case == "collective_opens" and family == "mpich":
        pytest.skip("ROMIO's lock is kept while files are opened: threads wait for each other for ever")
    env = {"MPIOX_RANKS_PER_NODE": str(per_node)}
    launch = run("thread", builds, tmp_path, ["threads", case], 2, env=env)
    assert not reports(tmp_path), f"{reports(tmp_path)[:8000]}\n{launch.describe()}"
    assert not failed_checks(launch.stdout, 2), launch.describe()


def test_threads_of_a_plain_program(builds: dict[str, str], tmp_path: pathlib.Path) -> None:
    """The library's own threads beside the program's only one."""
    launch = run("thread", builds, tmp_path, ["interleaved"], 3)
    assert not reports(tmp_path), f"{reports(tmp_path)[:8000]}\n{launch.describe()}"
    assert not failed_checks(launch.stdout, 16), launch.describe()


# ---- Valgrind --------------------------------------------------------------------------------------------------------

SUPPRESSIONS = pathlib.Path("/usr/share/openmpi/openmpi-valgrind.supp")
BLOCK = re.compile(r"^==\d+== \n", re.M)
#: The library's wrapper of MPI_Init in a stack: what lies above it is the MPI library's doing, which begins there.
INIT = re.compile(r"^.*: MPI_Init(_thread)? \(.*\n", re.M)


def valgrind(program: Sequence[str | os.PathLike[str]], folder: pathlib.Path) -> str:
    """Run two ranks of a program under memcheck with the library preloaded; return the reports that concern it."""
    folder.mkdir()
    command = [
        "valgrind",
        "--fair-sched=yes",
        "--leak-check=full",
        "--show-leak-kinds=definite",
        f"--suppressions={SUPPRESSIONS}",
        f"--log-file={folder / 'log'}.%p",
        *program,
    ]
    env = {"LD_PRELOAD": library_path() or ""}
    launch = mpi_run(command, 2, env=env, timeout_s=300, check=False)
    assert not launch.timed_out, launch.describe()
    assert launch.returncode == 0 and not failed_checks(launch.stdout, 0), launch.describe()
    text = reports(folder)
    assert "ERROR SUMMARY" in text, launch.describe()
    blocks = (INIT.sub("", block) for block in BLOCK.split(text))
    return "\n".join(block for block in blocks if "mpiox_" in block or "libmpiio_ext" in block)


def test_valgrind(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """Open MPI comes with a list of what to overlook in it; the control writes bytes that were never set."""
    if family != "openmpi" or not SUPPRESSIONS.exists() or shutil.which("valgrind") is None:
        pytest.skip("needs valgrind and Open MPI's list of suppressions")
    found = valgrind([mpi_program("misuse"), tmp_path / "file", "uninitialised"], tmp_path / "control")
    assert "points to uninitialised byte" in found
    assert not valgrind([mpi_program("interleaved"), tmp_path / "file"], tmp_path / "interleaved")
    assert not valgrind([mpi_program("lives"), tmp_path / "file", "successive", "40"], tmp_path / "lives")
