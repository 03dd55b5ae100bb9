"""The own tests of h5py and the parallel examples of netCDF4: what passes with the MPI library alone passes here.

Three parts. h5py's tests that are marked as parallel run as its authors run them (pytest with the plugin pytest-mpi
under mpirun). They are few, and write little; therefore all of h5py's tests run once more with MPI-IO as the default
driver and collective transfers (``run_h5py_tests.py --on-mpio``): some 1,100 files and 3,000 collective writes. What
HDF5 refuses to do on that driver fails with and without the library. netCDF4's examples come from its source
distribution.

h5py's tests are part of its installation. pytest-mpi and netCDF4's examples are fetched from the package index once;
without a network these tests are skipped.
"""

from __future__ import annotations

import functools
import importlib.metadata
import pathlib
import sys
import tempfile
from typing import Any

import pytest

from mpiio_ext.bench import methods
from support.fetch import FetchError, sdist
from support.launch import MEMORY, PROGRAMS, json_lines, mpi_run, of_ranks, python_alone, python_run

pytestmark = pytest.mark.mpi

SUITE = PROGRAMS / "run_h5py_tests.py"
PYTEST_MPI = "0.6"
GEOMETRY = "striping_unit=1k:striping_factor=3:cb_buffer_size=4k"
NODES = ("transpose+mpiox_ranks_per_node=1", "even+mpiox_ranks_per_node=1")
QUICK = ("auto", NODES[0])
REST = [method for method in (*methods.METHODS, "aligned+stripe_size_io", *NODES) if method not in QUICK]
METHODS = (*QUICK, *(pytest.param(method, marks=pytest.mark.slow) for method in REST))
PARALLEL = ("-p", "pytest_mpi", "--only-mpi", "--pyargs", "h5py.tests.test_file")
SOME = ("-p", "pytest_mpi", "--with-mpi", "--pyargs", "h5py.tests.test_slicing", "h5py.tests.test_dataset")
ALL = ("-p", "pytest_mpi", "--with-mpi", "--pyargs", "h5py")


def hints_of(method: str) -> str:
    """Return the value of MPIOX_HINTS for a method."""
    words = [f"{name}={value}" for name, value in methods.parse_method(method).hints_for(4).items()]
    return ":".join([*words, GEOMETRY])


# ---- h5py ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plugin(parallel_h5py: None) -> str:
    """Return the folder that holds pytest-mpi; skip without parallel h5py."""
    try:
        return str(sdist("pytest-mpi", PYTEST_MPI) / "src")
    except FetchError as error:
        pytest.skip(f"pytest-mpi is not at hand: {error}")


def run_h5py(plugin: str, arguments: tuple[str, ...], ranks: int, hints: str | None) -> list[dict[str, Any]]:
    """Run h5py's tests; one result per rank. ``hints`` None: without the library."""
    with tempfile.TemporaryDirectory(prefix="mpiox_h5py_", dir=MEMORY) as name:
        folder = pathlib.Path(name)
        env = {"TMPDIR": name, "PYTHONPATH": plugin} | ({"MPIOX_HINTS": hints} if hints is not None else {})
        words = [SUITE, folder, *(["--stats"] if hints is not None else []), *arguments]
        # Some tests leave files open, which ends the launch with an error after MPI_Finalize, natively too.
        launch = python_run(words, ranks, env=env, preload=hints is not None, timeout_s=240, cwd=folder, check=False)
        assert not launch.timed_out, launch.describe()
        assert all((folder / f"{rank}.json").exists() for rank in range(ranks)), launch.describe()
        return of_ranks(folder, ranks)


@functools.cache
def native_h5py(plugin: str, arguments: tuple[str, ...], ranks: int) -> list[dict[str, Any]]:
    """Return the results without the library (once per session)."""
    return run_h5py(plugin, arguments, ranks, None)


def check_h5py(plugin: str, arguments: tuple[str, ...], ranks: int, method: str, at_least: int) -> list[dict[str, int]]:
    """Compare a run with the library against the run without; return its statistics, rank by rank."""
    reference = native_h5py(plugin, arguments, ranks)
    results = run_h5py(plugin, arguments, ranks, hints_of(method))
    for result, expected in zip(results, reference, strict=True):
        passed = {name for name, outcome in expected["outcomes"].items() if outcome == "passed"}
        assert len(passed) >= at_least, expected["outcomes"]
        worse = {name: result["outcomes"].get(name, "not run") for name in passed}
        worse = {name: outcome for name, outcome in worse.items() if outcome != "passed"}
        assert not worse, f"{method}: pass natively only: {worse}"
        assert result["opened"] == expected["opened"]
        assert result["interposed"]
        assert result["stats"]["errors"] == result["stats"]["native_calls"] == 0, result["stats"]
    return [result["stats"] for result in results]


@pytest.mark.both
@pytest.mark.slow_with("transpose+mpiox_ranks_per_node=1")
@pytest.mark.parametrize("method", METHODS)
def test_h5py_parallel_tests(extension: str, plugin: str, method: str) -> None:
    """The tests that h5py's authors have marked as parallel."""
    stats = check_h5py(plugin, PARALLEL, 2, method, 4)
    assert sum(rank["independent_writes"] + rank["collective_writes"] for rank in stats) > 0


@pytest.mark.parametrize("method", ["auto", pytest.param("group_cyclic", marks=pytest.mark.slow)])
def test_h5py_tests_on_mpio(extension: str, plugin: str, method: str) -> None:
    """The tests of h5py's datasets and selections, each on MPI-IO."""
    stats = check_h5py(plugin, ("--on-mpio", *SOME), 1, method, 200)
    assert stats[0]["collective_writes"] > 100
    assert stats[0]["collective_reads"] + stats[0]["independent_writes"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", *methods.METHODS, "aligned+stripe_size_io"])
def test_h5py_whole_suite_on_mpio(extension: str, plugin: str, method: str) -> None:
    """All of them."""
    stats = check_h5py(plugin, ("--on-mpio", *ALL), 1, method, 600)
    assert stats[0]["collective_writes"] > 1000
    assert (stats[0]["direct_calls"] == 0) == (method != "auto")


# ---- netCDF4 ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples(family: str) -> pathlib.Path:
    """Return the folder of netCDF4's examples; skip without parallel netCDF4."""
    probe = "import netCDF4 as n; print(n.__has_parallel4_support__ and n.__has_pnetcdf_support__)"
    if python_alone(probe).stdout.strip() not in ("1", "True"):
        pytest.skip("no netCDF4 built for parallel HDF5 and PnetCDF")
    version = importlib.metadata.version("netCDF4")
    reasons = []
    for name in ("netcdf4", "netCDF4"):  # the archives of 1.7 and of earlier releases
        try:
            return sdist(name, version) / "examples"
        except FetchError as error:
            reasons.append(str(error))
    pytest.skip(f"netCDF4's examples are not at hand: {'; '.join(reasons)}")


KINDS = (
    *("NETCDF4", "NETCDF3_64BIT_DATA"),
    *(
        pytest.param(kind, marks=pytest.mark.slow)
        for kind in ("NETCDF4_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_CLASSIC")
    ),
)


def run_example(
    program: pathlib.Path, folder: pathlib.Path, method: str | None, *arguments: str
) -> list[dict[str, Any]]:
    """Run an example on the four ranks that it needs; return the reports of the files that it closed."""
    statistics = folder / "stats.jsonl"
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(statistics)}
    if method is not None:
        env["MPIOX_HINTS"] = hints_of(method)
    mpi_run([sys.executable, program, *arguments], 4, env=env, preload=method is not None, timeout_s=120, cwd=folder)
    if method is None:
        return []
    lines = json_lines(statistics)
    return [line for line in lines if line["kind"] == "file"]


@functools.cache
def native_example(examples: pathlib.Path, kind: str) -> bytes:
    """Return the file that ``mpi_example.py`` makes with the MPI library alone (once per session)."""
    with tempfile.TemporaryDirectory(prefix="mpiox_netcdf4_", dir=MEMORY) as name:
        run_example(examples / "mpi_example.py", pathlib.Path(name), None, kind)
        return (pathlib.Path(name) / "parallel_test.nc").read_bytes()


@pytest.mark.both
@pytest.mark.slow_except("auto-NETCDF4")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_netcdf4_example(
    extension: str, examples: pathlib.Path, tmp_path: pathlib.Path, method: str, kind: str
) -> None:
    """``mpi_example.py`` in every format: independent and collective writes, appending, reading."""
    reports = run_example(examples / "mpi_example.py", tmp_path, method, kind)
    assert len(reports) >= 4, "four times opened and closed"
    assert sum(report["collective_writes"] for report in reports) > 0
    assert all(report["errors"] == report["native_calls"] == 0 for report in reports)
    assert (tmp_path / "parallel_test.nc").read_bytes() == native_example(examples, kind)


@pytest.mark.slow_with("transpose+mpiox_ranks_per_node=1")
@pytest.mark.parametrize("method", METHODS)
def test_netcdf4_compressed_example(
    extension: str, examples: pathlib.Path, tmp_path: pathlib.Path, method: str
) -> None:
    """``mpi_example_compressed.py``: compressed chunks, written collectively."""
    reports = run_example(examples / "mpi_example_compressed.py", tmp_path, method)
    assert sum(report["collective_writes"] + report["collective_reads"] for report in reports) > 0
    assert all(report["errors"] == report["native_calls"] == 0 for report in reports)
