"""HDF5, netCDF and PnetCDF over files that are stored as several, by programs that know nothing of it.

Four ranks write with mpiox_subfiles, twice. Three ranks open the file again without a hint: they read it, and one
program changes it. Then programs without the library read it through a mount, and once more after a merge.
"""

from __future__ import annotations

import functools
import json
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from support import mounts
from support.cases import Case, Cases
from support.codes import comparable
from support.launch import PROGRAMS, LaunchError, base_environment, python_alone
from support.made_subfiles import command

pytestmark = pytest.mark.mpi

RANKS, FEWER, COUNT, UNIT = 4, 3, 4, 1000
HINTS = f"*:mpiox_subfiles={COUNT}:mpiox_subfile_unit={UNIT}"
#: Datasets that ranks write independently, one of which grows.
ALONE = """
import sys
import h5py, numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm) as file:
    plain = file.create_dataset("plain", (4, 3000), "i4")
    grown = file.create_dataset("grown", (1, 3000), "f8", chunks=(1, 500), maxshape=(None, 3000))
    plain[comm.rank] = np.arange(3000) * comm.rank
    grown.resize(4, axis=0)
    grown[comm.rank] = np.arange(3000) + comm.rank
"""
#: Fewer ranks read that, change a part, add a dataset.
ALONE_AGAIN = """
import sys
import h5py, numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
with h5py.File(sys.argv[1], "r+", driver="mpio", comm=comm) as file:
    for rank in range(4):
        assert np.array_equal(file["plain"][rank], np.arange(3000) * rank)
        assert np.array_equal(file["grown"][rank], np.arange(3000) + rank)
    comm.Barrier()
    added = file.create_dataset("added", (comm.size, 7), "i8")
    added[comm.rank] = comm.rank
    with file["plain"].collective:
        file["plain"][comm.rank, 1000:2000] = -np.arange(1000)
"""
ALONE_CHECK = """
import sys
import h5py, numpy as np
with h5py.File(sys.argv[1]) as file:
    plain = np.arange(3000) * np.arange(4)[:, None]
    plain[:3, 1000:2000] = -np.arange(1000)
    assert np.array_equal(file["plain"], plain)
    assert np.array_equal(file["grown"], np.arange(3000.0) + np.arange(4)[:, None])
    assert np.array_equal(file["added"], np.repeat([[0], [1], [2]], 7, axis=1))
"""
OF_PROGRAM = f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nimport {{}} as program\n"
OF_PROGRAM = f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nimport {{}} as program\n"
MPI = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
MODES = ("blocking", "nonblocking", "independent")
#: The program of each file, how it writes and how it reads.
WRITERS = {
    "hdf5": ("hdf5_datasets", "write(sys.argv[1], comm)", "read(sys.argv[1], comm)"),
    "netcdf4": ("netcdf4_variables", "write('NETCDF4', sys.argv[1], comm)", "read(sys.argv[1], comm)"),
    "classic": ("netcdf4_variables", "write('NETCDF3_64BIT_DATA', sys.argv[1], comm)", "read(sys.argv[1], comm)"),
    **{
        f"pnetcdf {mode}": (
            "pnetcdf_calls",
            f"write(sys.argv[1], {mode!r}, comm)",
            f"read(sys.argv[1], {mode!r}, comm)",
        )
        for mode in MODES
    },
}
NAMES = (*WRITERS, "hdf5 alone")
#: No byte of these is left to the library, so the file that is written as one is what they have to be.
FIXED = ("classic", *(f"pnetcdf {mode}" for mode in MODES))
LIBRARIES = {
    "hdf5": "import h5py\nif not h5py.get_config().mpi: print('h5py has no MPI')",
    "netcdf": "import netCDF4 as n\nif not n.__has_parallel4_support__: print('netCDF4 has no parallel HDF5')\n"
    "if not n.__has_pnetcdf_support__: print('netCDF4 has no PnetCDF')",
    "pnetcdf": "import mpiio_ext.bench.pnetcdf as p\nprint(p.absent_reason() or '')",
}


def case(text: str, ranks: int, path: pathlib.Path | str, hints: str) -> Case:
    return Case(text=text, ranks=ranks, arguments=(str(path),), environment={"MPIOX_HINTS": hints} if hints else {})


def written(name: str, hints: str) -> Case:
    program, write, _ = WRITERS[name]
    again = f"comm.Barrier()\nprogram.{write}\n"  # PnetCDF empties what is there, past MPI
    return case(f"{OF_PROGRAM.format(program)}{MPI}program.{write}\n{again}", RANKS, "{folder}/data", hints)


CASES = {name: written(name, HINTS) for name in WRITERS} | {f"{name} as one": written(name, "") for name in FIXED}
CASES["hdf5 alone"] = case(ALONE, RANKS, "{folder}/data", HINTS)


def text_again(name: str) -> str:
    """Return what the ranks do that open a file again."""
    if name == "hdf5 alone":
        return ALONE_AGAIN
    program, _, read = WRITERS[name]
    return f"{OF_PROGRAM.format(program)}{MPI}assert program.{read}\n"


@functools.cache
def absent(library: str) -> str:
    """Return why there is no parallel HDF5, netCDF4 or PnetCDF; "": there is."""
    done = python_alone(LIBRARIES[library])
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


@pytest.fixture()
def name(request: pytest.FixtureRequest, extension: str) -> str:
    """Return the name of a file that this environment can write."""
    chosen = str(request.param)
    library = "pnetcdf" if chosen.startswith("pnetcdf") else "hdf5" if chosen.startswith("hdf5") else "netcdf"
    if absent(library):
        pytest.skip(absent(library))
    return chosen


@pytest.fixture(scope="module")
def again(cases: Cases, tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """Return the launches that open again, with fewer ranks and no hint, what could be written."""
    found = {}
    for one in NAMES:
        try:
            path = cases.result(one).folder / "data"
        except LaunchError:
            continue
        found[one] = case(text_again(one), FEWER, path, "")
    return Cases(found, tmp_path_factory.mktemp("again"))


@pytest.fixture(scope="module")
def shown(again: Cases, cases: Cases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Return where the folders of all cases are mounted, after they were opened again."""
    for one in set(again.cases) - set(FIXED):
        again.result(one)
    at = tmp_path_factory.mktemp("shown")
    try:
        with mounts.mounted(cases.folder, at):
            yield at
    except mounts.NoMountError as error:
        pytest.skip(str(error))


def check(name: str, path: pathlib.Path, cases: Cases) -> None:
    """Compare a file with what was written, without the library."""
    if name in FIXED:
        assert path.read_bytes() == (cases.result(f"{name} as one").folder / "data").read_bytes()
    code = ALONE_CHECK if name == "hdf5 alone" else OF_PROGRAM.format(WRITERS[name][0]) + "program.check(sys.argv[1])"
    if not name.startswith("pnetcdf"):
        done = python_alone(code, path, NATIVE="1")
        assert done.returncode == 0, done.stderr[-3000:]


def check_whole(path: pathlib.Path) -> None:
    (found,) = json.loads(command("check", path, "--json").stdout)
    assert (found["state"], found["unit_bytes"], found["count"]) == ("whole", UNIT, COUNT) and not found["problems"]


@pytest.mark.both
@pytest.mark.parametrize("name", NAMES, indirect=True)
def test_is_written(name: str, cases: Cases) -> None:
    check_whole(cases.result(name).folder / "data")


@pytest.mark.parametrize("name", NAMES, indirect=True)
def test_is_opened_again(name: str, cases: Cases, again: Cases) -> None:
    """Other ranks, no hint."""
    again.result(name)
    check_whole(cases.result(name).folder / "data")


@pytest.mark.parametrize("name", NAMES, indirect=True)
def test_is_read_by_others(name: str, cases: Cases, shown: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Through the mount, by Python and by the tools of the format; and after a merge."""
    path = cases.result(name).folder / "data"
    through = shown / path.relative_to(cases.folder)
    check(name, through, cases)
    assert command("merge", path, "-o", tmp_path / "plain").exit_code == 0
    assert (tmp_path / "plain").read_bytes() == through.read_bytes()
    check(name, tmp_path / "plain", cases)
    for tool in ("ncmpidump", "ncdump") if name in FIXED else ("h5dump",):
        if shutil.which(tool) is not None:
            done = [
                subprocess.run([tool, one], capture_output=True, text=True, timeout=60, env=base_environment())
                for one in (through, tmp_path / "plain")
            ]
            assert [one.returncode for one in done] == [0, 0], done
            texts = [comparable(one.stdout) for one in done]
            assert texts[0] == texts[1] and len(texts[0]) > 1000
