"""netCDF4 for Python, through parallel HDF5 and through PnetCDF: the library is under it, and the files are right."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

from support.cases import Case, Cases, program_case
from support.launch import PROGRAMS, json_lines, mpi_run, of_ranks, python_alone, python_run
from support.marks import slow
from support.partition_methods import METHODS

pytestmark = pytest.mark.mpi

PROGRAM = PROGRAMS / "netcdf4_variables.py"
CDF5 = "NETCDF3_64BIT_DATA"
CHECK = """
import sys
sys.path.insert(0, sys.argv[2])
import netcdf4_variables
netcdf4_variables.check(sys.argv[1])
print("equal")
"""


@pytest.fixture(scope="module")
def parallel_netcdf4(extension: str) -> None:
    """Skip unless netCDF4 of this environment has parallel HDF5 and PnetCDF."""
    done = python_alone("import netCDF4 as n; print(n.__has_parallel4_support__, n.__has_pnetcdf_support__)")
    if done.returncode:
        pytest.skip(f"netCDF4 cannot be imported: {done.stderr.strip().splitlines()[-1]}")
    if done.stdout.split() != ["1", "1"]:
        pytest.skip(f"netCDF4 of this environment: parallel HDF5, PnetCDF: {done.stdout.strip()}")


MISSING = r"""
import sys
import mpiio_ext
import netCDF4
from mpi4py import MPI
try:
    netCDF4.Dataset(sys.argv[1], "r", parallel=True, comm=MPI.COMM_WORLD, info=MPI.Info())
except OSError as error:
    print("raised", str(error.filename).endswith("missing.nc"))
"""
GEOMETRY = (
    "mpiox_exchange=two_phase:striping_unit=512:striping_factor=3:cb_buffer_size=1024:cb_nodes=3:mpiox_ranks_per_node=2"
)


def variables(form: str, ranks: int, hints: str = "") -> Case:
    return program_case(PROGRAM.stem, ranks, form, "{folder}/data.nc", "{folder}", MPIOX_HINTS=hints)


CASES = {f"{form} {ranks}": variables(form, ranks) for form in ("NETCDF4", CDF5) for ranks in (1, 4)}
CASES |= {method: variables(CDF5, 4, f"*.nc:mpiox_partition={method}:{GEOMETRY}") for method in METHODS}
CASES["missing"] = Case(text=MISSING, ranks=4, arguments=("{folder}/missing.nc",))


def check_alone(path: pathlib.Path) -> None:
    """Compare the file with the formula in a process without MPI-IO."""
    done = python_alone(CHECK, path, PROGRAM.parent, NATIVE="1")
    assert done.stdout.strip() == "equal", done.stderr[-3000:]


@pytest.mark.both_with("NETCDF4-4")
@pytest.mark.parametrize(("form", "ranks"), [*slow(("NETCDF4", 1)), ("NETCDF4", 4), *slow((CDF5, 1)), (CDF5, 4)])
def test_round_trip(parallel_netcdf4: None, cases: Cases, form: str, ranks: int) -> None:
    """Both ways to the file; statistics prove that the calls went through the library."""
    folder = cases.result(f"{form} {ranks}").folder
    path, seen = folder / "data.nc", of_ranks(folder, ranks)
    for result in seen:
        assert result["equal"]
        assert result["errors"] == 0
        assert result["collective_writes"] >= 3
        assert result["collective_reads"] >= 3
        assert result["opens"] >= 2
        assert len(result["mpis"]) == 1, result["mpis"]
    data = 24 * 18 * 10 * 8 + 2 * 18 * 10 * 4 + 24 * 4
    assert sum(result["bytes_written"] + result["independent_bytes_written"] for result in seen) >= data
    with path.open("rb") as file:
        assert file.read(4) == (b"CDF\x05" if form == CDF5 else b"\x89HDF")
    check_alone(path)


@pytest.fixture(scope="module")
def native(parallel_netcdf4: None, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return what the MPI library alone writes."""
    folder = tmp_path_factory.mktemp("native")
    python_run([PROGRAM, CDF5, folder / "data.nc", folder], 4, env={"NATIVE": "1"}, timeout_s=60)
    assert all(result["equal"] for result in of_ranks(folder, 4))
    return folder / "data.nc"


@pytest.mark.slow_except("group_cyclic", "transpose")
@pytest.mark.parametrize("method", METHODS)
def test_methods_leave_the_native_bytes(cases: Cases, native: pathlib.Path, method: str) -> None:
    """CDF-5 has no time stamps: the MPI library alone and every method leave the same file."""
    folder = cases.result(method).folder
    assert all(result["equal"] and result["collective_writes"] >= 3 for result in of_ranks(folder, 4))
    assert (folder / "data.nc").read_bytes() == native.read_bytes()


@pytest.mark.both
@pytest.mark.parametrize("form", ["NETCDF4", CDF5])
def test_preloaded(tmp_path: pathlib.Path, parallel_netcdf4: None, form: str) -> None:
    """An unchanged program under LD_PRELOAD."""
    statistics = tmp_path / "stats.jsonl"
    path = tmp_path / "data.nc"
    mpi_run(
        [sys.executable, PROGRAM, form, path, tmp_path],
        3,
        preload=True,
        timeout_s=60,
        env={"NATIVE": "1", "MPIOX_STATS": "1", "MPIOX_STATS_FILE": os.fspath(statistics)},
    )
    check_alone(path)
    lines = json_lines(statistics)
    ours = [line for line in lines if str(line.get("path", "")).endswith("data.nc")]
    assert sum(line["collective_writes"] for line in ours) >= 3, lines  # calls per rank
    assert sum(line["collective_reads"] for line in ours) >= 3, lines


AGAIN = """
import sys
import mpiio_ext
import netCDF4
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD

def make(name, rows, **how):
    with netCDF4.Dataset(sys.argv[1] + name, "w", format="NETCDF3_64BIT_DATA", parallel=True, comm=comm,
                         info=MPI.Info(), **how) as file:
        file.createDimension("x", rows * comm.size)
        mine = slice(comm.rank * rows, (comm.rank + 1) * rows)
        file.createVariable("v", "f8", ("x",))[mine] = np.arange(mine.start, mine.stop)

def read(name, rows):
    with netCDF4.Dataset(sys.argv[1] + name, "r", parallel=True, comm=comm, info=MPI.Info()) as file:
        fine = np.array_equal(file["v"][...], np.arange(rows * comm.size))
    if comm.allreduce(fine, MPI.LAND) and comm.rank == 0:
        print("read", rows)

make("/read.nc", 9000)
read("/read.nc", 9000)
make("/smaller.nc", 9000)
make("/smaller.nc", 100)
read("/smaller.nc", 100)
make("/refused.nc", 5000)
refused = False
try:
    make("/refused.nc", 10, clobber=False)
except OSError:
    refused = True
if comm.allreduce(refused, MPI.LAND) and comm.rank == 0:
    print("refused")
read("/refused.nc", 5000)
"""


@pytest.mark.parametrize("preload", [True, *slow(False)])
def test_staged_files_again(tmp_path: pathlib.Path, parallel_netcdf4: None, preload: bool) -> None:
    """What PnetCDF does by POSIX calls finds files that are written behind their close: read, replaced, refused."""
    found = {}
    for close in ("written", "staged"):
        (folder := tmp_path / close).mkdir()
        hints = f"*:mpiox_delegates=2:mpiox_delegate_cache=4m:mpiox_close={close}:mpiox_drain_rate=50k"
        launch = python_run(["-c", AGAIN, folder], 2, env={"MPIOX_HINTS": hints}, timeout_s=120, preload=preload)
        assert launch.stdout.split("\n") == ["read 9000", "read 100", "refused", "read 5000", ""]
        told = close == "staged" and not preload  # the library is not in front of the C library
        assert launch.stderr.count("mpiio_ext:") == launch.stderr.count("do not wait until") == told, launch.describe()
        found[close] = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found["staged"] == found["written"]
    assert len(found["staged"]) == 3


@pytest.mark.both
def test_missing_file(parallel_netcdf4: None, cases: Cases) -> None:
    """Errors of the layers below arrive as netCDF4's own, on every rank."""
    assert cases.result("missing").stdout == ("raised True\n",) * 4
