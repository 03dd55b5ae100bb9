"""Fixtures and command-line options of the whole suite. No MPI is ever initialised in the pytest process."""

from __future__ import annotations

import gc
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any

import hypothesis
import pytest

# Machines that run tests are busy; no test asserts times.
hypothesis.settings.register_profile("no deadline", deadline=None, derandomize=False, print_blob=True)
hypothesis.settings.load_profile("no deadline")

HERE = pathlib.Path(__file__).resolve().parent
# `support`, `differential` and `cluster` are imported by name under --import-mode=importlib
sys.path += [path for path in map(str, (HERE, HERE.parent / "scripts")) if path not in sys.path]

from support import apart, cbuild, fuzz, launch, leftout, marks, parts, workers  # noqa: E402
from support import expected as texts  # noqa: E402
from support.cases import Cases  # noqa: E402
from support.durations import Durations  # noqa: E402
from support.expected import expected  # noqa: E402, F401
from support.launch import Launch, LostLaunch, library_path, mpi_family, mpi_run, python_alone, python_run  # noqa: E402

#: Whether this process may launch MPI programs beside other workers.
APART = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose slow tiers and the number of random cases."""
    group = parser.getgroup("mpiio_ext")
    group.addoption("--run-slow", action="store_true", help="also run the tests marked slow")
    group.addoption("--soak-seconds", type=float, default=600.0, help="how long the long soak test takes")
    group.addoption("--durations-files", action="store_true", help="list the files of tests that took longest")
    group.addoption("--update", action="store_true", help="write the texts of tests/expected anew: review the diff")
    group.addoption("--cases", type=int, default=None, help="number of random cases of the differential test")


def pytest_configure(config: pytest.Config) -> None:
    """Make what all workers share."""
    if hasattr(config, "workerinput"):
        gc.disable()  # ten thousand tests are collected, and none is garbage
    fuzz.start(config.getoption("--run-slow"))
    cbuild.scratch()
    ENVIRONMENT.update(os.environ)
    config.stash[APART] = hasattr(config, "workerinput") and apart.own_shared_memory()
    if config.getoption("--durations-files") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations())


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """Leave out of the tests of a second MPI, before they are imported, files of which it runs no test."""
    if config.option.markexpr != "both" or collection_path.suffix != ".py":
        return None
    return "mark.both" not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, Any, Any]:
    """Mark the tests of a function that its marks name by their parameters."""
    found = yield
    if isinstance(found, list):
        marks.mark_named(found)
    return found


def pytest_collect_directory(path: pathlib.Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Let workers read the files of a folder in different orders."""
    if not hasattr(parent.config, "workerinput") or (path / "__init__.py").exists():
        return None
    return workers.Turned.from_parent(parent, path=path)


def pytest_report_header() -> str:
    """Say how random tests draw the same again."""
    return f"random seed: {fuzz.seed()} (again: {fuzz.SEED_NAME}={fuzz.seed()})"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say the seed with each test that fails."""
    report = yield
    if report.failed:
        report.sections.append(("random seed", f"{fuzz.SEED_NAME}={fuzz.seed()}"))
    return report


#: Tests of which the MPI library has lost a launch.
STARTED_AGAIN: list[str] = []


def pytest_warning_recorded(warning_message: warnings.WarningMessage, nodeid: str) -> None:
    """Count launches that were started once more, those of all workers."""
    if issubclass(warning_message.category, LostLaunch):
        STARTED_AGAIN.append(nodeid)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own: what fails is listed before
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """Say what was left out, and how many launches were started once more, in the last lines but pytest's summary."""
    yield
    leftout.write(terminalreporter)
    terminalreporter.write_line(f"launches that the MPI library lost, started once more: {len(STARTED_AGAIN)}")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is slow unless it was asked for; put tests that one worker takes into a group."""
    texts.check(config, items)
    slow = pytest.mark.skip(reason="slow: run with --run-slow")
    for item in items:
        fuzz.prepare(item)
        item.add_marker(pytest.mark.xdist_group(workers.group(item, apart=config.stash[APART])))
        if lacking := parts.needed_by(item):
            item.add_marker(pytest.mark.skip(reason=f"the build lacks what -D{lacking}=OFF leaves out"))
        if "slow" in item.keywords and not config.getoption("--run-slow"):
            item.add_marker(slow)
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.nodeid.partition("::")[0])  # each worker has collected in an order of its own


def pytest_collection_finish() -> None:
    """Let the collector of garbage look at what tests make, and not at the tests."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _signals() -> None:
    """Have each test begin with Python's own handlers: commands, and Spark, leave theirs in the process of a worker.

    A test that interrupts itself would end its worker, or nothing. Programs started in the background of a script
    ignore SIGINT, and so would all that the tests launch and interrupt.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


#: Variables that packages set in the process that imports or starts them: polars, the binding of FUSE, Spark; pytest.
BY_PACKAGES = re.compile("_RJEM_MALLOC_CONF|FUSE_LIBRARY_NAME|(PY)?SPARK_.*|PYTEST_.*")
#: The variables when the suite began.
ENVIRONMENT: dict[str, str] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Let no file of tests leave variables to the next one of the worker, which differs from run to run."""
    names = set[str]()
    try:
        yield
    finally:
        if nextitem is None or nextitem.path != item.path:
            changed = {name for name, _ in ENVIRONMENT.items() ^ os.environ.items()}
            names = {name for name in changed if BY_PACKAGES.fullmatch(name) is None}
            for name in names:
                os.environ.pop(name, None)
            os.environ.update({name: ENVIRONMENT[name] for name in names & ENVIRONMENT.keys()})
    assert not names, f"{item.path.name} left variables of the environment: {sorted(names)}"


@pytest.fixture(scope="session")
def family() -> str:
    """Return the MPI family of this environment, "openmpi" or "mpich"."""
    found = mpi_family()
    if found is None:
        pytest.skip("this environment has no working MPI")
    return found


@pytest.fixture(scope="session")
def extension(family: str) -> str:
    """Return the path of libmpiio_ext.so; a suite that needs it cannot pass without it."""
    path = library_path()
    if path is None:
        pytest.fail("mpiio_ext cannot be imported in this environment: run `make build` first")
    return path


@pytest.fixture(scope="session")
def parallel_h5py(family: str) -> None:
    """Skip unless h5py of this environment was built for MPI."""
    if python_alone("import h5py; print(h5py.get_config().mpi)").stdout.strip() != "True":
        pytest.skip("h5py of this environment has no MPI support")


@pytest.fixture()
def memory_folder() -> Iterator[pathlib.Path]:
    """Return a folder in memory where there is one, for what syncs small files hundreds of times."""
    with tempfile.TemporaryDirectory(prefix="mpiox_", dir=launch.MEMORY) as name:
        yield pathlib.Path(name)


@pytest.fixture()
def small_disk(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return the folder of a disk of the module's DISK_KIB, or of the test's parameter in place of it."""
    folder = tmp_path / "small"
    folder.mkdir()
    size_kib = getattr(request, "param", None) or request.module.DISK_KIB
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False, timeout=20).returncode != 0:
        pytest.skip("a small tmpfs can only be mounted by root (injected ENOSPC covers the same path)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, timeout=20)


@pytest.fixture()
def failing_disk(small_disk: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Return the folder of an ext4 file system that takes files, until `small_disk`, on which it lies, is full.

    From then on what the kernel writes to it behind the programs' backs fails.
    """
    image, folder = small_disk / "image", tmp_path / "failing"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    commands = [
        ["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", str(image)],
        ["mount", "-o", "loop", str(image), str(folder)],
    ]
    try:
        for command in commands:
            subprocess.run(command, capture_output=True, check=True, timeout=20)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no ext4 on a loop device can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, timeout=20)


@pytest.fixture()
def every_interface_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask h5py and netCDF4 whether they are there starts MPI, which must not happen in this process."""
    from mpiio_ext.bench import interfaces

    for way in interfaces.REGISTRY.values():
        monkeypatch.setattr(type(way), "absent_reason", lambda self: None)


@pytest.fixture(scope="session")
def mpi(family: str) -> Callable[..., Launch]:
    """Return :func:`support.launch.mpi_run`."""
    return mpi_run


@pytest.fixture(scope="session")
def mpi_python(family: str) -> Callable[..., Launch]:
    """Return :func:`support.launch.python_run`."""
    return python_run


@pytest.fixture(scope="module")
def cases(request: pytest.FixtureRequest, extension: str, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """Return the results of a module's CASES, which run in one launch per number of ranks; see :mod:`support.cases`."""
    return Cases(request.module.CASES, tmp_path_factory.mktemp("cases"))


@pytest.fixture()
def script(tmp_path: pathlib.Path) -> Iterator[Callable[[str], pathlib.Path]]:
    """Return a function that writes a Python program into the test's folder and returns its path."""
    import textwrap

    count = 0

    def write(text: str) -> pathlib.Path:
        nonlocal count
        count += 1
        path = tmp_path / f"program{count}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    yield write
