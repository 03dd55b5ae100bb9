"""PnetCDF through the bench's binding: three ways to the same bytes, with and without the library, and its errors."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import pytest

from support.cases import Case, Cases, program_case
from support.launch import PROGRAMS, of_ranks, python_alone
from support.partition_methods import METHODS

pytestmark = [pytest.mark.mpi, pytest.mark.both]

PROGRAM = PROGRAMS / "pnetcdf_calls.py"
NATIVE = "*:mpiox_enable=false"
REASON = """
import mpiio_ext.bench.pnetcdf as pnetcdf
print(pnetcdf.absent_reason() or f"version {pnetcdf.version()}")
"""


def reason(**variables: str) -> str:
    """Return what `absent_reason` says in a fresh process, or the version."""
    done = python_alone(REASON, **variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def pnetcdf(extension: str) -> None:
    """Skip where there is no PnetCDF for this MPI, and say why."""
    found = reason()
    if not found.startswith("version "):
        pytest.skip(found)


def calls(mode: str, ranks: int, hints: str = "") -> Case:
    """Return the program that writes and reads a file."""
    return program_case(PROGRAM.stem, ranks, mode, "{folder}/data.nc", "{folder}", MPIOX_HINTS=hints)


def outcome(cases: Cases, name: str) -> tuple[pathlib.Path, list[dict[str, Any]]]:
    """Return the path of the file that a case has written, and what every rank saw."""
    folder = cases.result(name).folder
    return folder / "data.nc", of_ranks(folder, cases.cases[name].ranks)


def check_bytes(path: pathlib.Path, offsets: dict[str, int]) -> None:
    """Compare the data in the file, big-endian at the offsets that PnetCDF named, with the formulas."""
    content = path.read_bytes()
    assert content[:4] == b"CDF\5"
    rows, columns, records, record_bytes = 12, 10, 3, 12 * 10 * 4 + 10 * 2
    plane = np.arange(rows * columns)

    def at(offset: int, code: str, count: int) -> Any:
        return np.frombuffer(content, np.dtype(code).newbyteorder(">"), count, offset)

    assert np.array_equal(at(offsets["blocks"], "f8", plane.size), plane)
    assert np.array_equal(at(offsets["pieces"], "u4", plane.size), plane + 7)
    for record in range(records):
        shift = record * record_bytes
        assert np.array_equal(at(offsets["records"] + shift, "f4", plane.size), plane + 1000 * record)
        assert np.array_equal(at(offsets["other"] + shift, "i2", columns), plane[:columns] + record)
    assert at(offsets["scalar"], "i8", 1)[0] == 4711
    assert content[offsets["letters"] :][:columns] == b"abcdefghij"
    assert len(content) == offsets["records"] + records * record_bytes


ROUND_TRIPS = [
    ("blocking", 1),
    ("blocking", 2),
    ("blocking", 4),
    ("nonblocking", 2),
    ("nonblocking", 3),
    ("nonblocking", 4),
    ("independent", 4),
]


@pytest.mark.parametrize(("mode", "ranks"), ROUND_TRIPS)
def test_round_trip(pnetcdf: None, cases: Cases, mode: str, ranks: int) -> None:
    """Every way of writing leaves the bytes of the formulas, and they went through the library."""
    path, seen = outcome(cases, f"{mode} {ranks}")
    for result in seen:
        assert result["equal"]
        assert result["errors"] == 0
        assert result["native_calls"] == 0
        assert result["opens"] >= 2
        assert len(result["mpis"]) == 1, result["mpis"]
    accesses = "independent" if mode == "independent" else "collective"
    assert sum(result[f"{accesses}_writes"] for result in seen) >= 1
    assert sum(result[f"{accesses}_reads"] for result in seen) >= 3
    data = 12 * 10 * 8 + 12 * 10 * 4 + 3 * (12 * 10 * 4 + 10 * 2) + 10
    assert sum(result["bytes_written"] for result in seen) >= data
    check_bytes(path, seen[0]["offsets"])


def test_nonblocking_aggregates(pnetcdf: None, cases: Cases) -> None:
    """Posted writes of several variables become fewer collectives than blocking ones."""
    _, blocking = outcome(cases, "blocking 2")
    _, nonblocking = outcome(cases, "nonblocking 2")
    assert blocking[0]["collective_writes"] == 21
    assert nonblocking[0]["collective_writes"] < 5


WAYS = [*(("nonblocking", method) for method in METHODS), ("blocking", "transpose")]
GEOMETRY = (
    "mpiox_exchange=two_phase:striping_unit=256:striping_factor=3:cb_buffer_size=512:cb_nodes=3:mpiox_ranks_per_node=2"
)


def without_padding(path: pathlib.Path, offsets: dict[str, int]) -> bytes:
    """Return the file's bytes, zeros where no rank wrote: native data sieving may leave old memory there."""
    content = bytearray(path.read_bytes())
    sizes = {"blocks": 12 * 10 * 8, "pieces": 12 * 10 * 4, "scalar": 8, "letters": 10}
    for (name, size), after in zip(sizes.items(), [*sizes, "records"][1:], strict=True):
        padding = slice(offsets[name] + size, offsets[after])
        content[padding] = bytes(len(content[padding]))
    return bytes(content)


@pytest.mark.parametrize(("mode", "method"), WAYS)
def test_methods_leave_the_native_bytes(pnetcdf: None, cases: Cases, mode: str, method: str) -> None:
    """The MPI library alone and every method: the same file, small stripes, two pretended nodes."""
    native, seen = outcome(cases, f"native {mode}")
    assert all(result["equal"] and result["collective_writes"] == 0 for result in seen)
    check_bytes(native, seen[0]["offsets"])
    path, seen = outcome(cases, f"{mode} {method}")
    assert all(result["equal"] and result["collective_writes"] >= 1 for result in seen)
    assert path.read_bytes() == without_padding(native, seen[0]["offsets"])


ERRORS = """
    import os, sys
    import mpiio_ext
    # isort: split
    import numpy as np
    from mpi4py import MPI
    from mpiio_ext.bench import pnetcdf
    from mpiio_ext.errors import ArgumentError

    comm, folder = MPI.COMM_WORLD, sys.argv[1]
    if comm.rank == 0:
        os.chmod(os.path.join(folder, "closed.nc"), 0)
    comm.Barrier()
    made = os.path.join(folder, "made.nc")

    def fails(kind, *needles):
        class Expect:
            def __enter__(self): pass
            def __exit__(self, found, error, traceback):
                assert found is not None, f"no error; expected {needles}"
                assert issubclass(found, kind), (found, error)
                text = str(error)
                assert "\\n" not in text and all(needle in text for needle in needles), text
                return True
        return Expect()

    with fails(pnetcdf.PnetcdfError, "missing.nc", "ncmpi_open", "does not exist", "NC_ENOENT"):
        pnetcdf.File.open(os.path.join(folder, "missing.nc"), comm)
    with fails(pnetcdf.PnetcdfError, "nowhere/new.nc", "ncmpi_create"):
        pnetcdf.File.create(os.path.join(folder, "nowhere", "new.nc"), comm)
    with fails(pnetcdf.PnetcdfError, "other.nc", "NC_ENOTNC"):
        pnetcdf.File.open(os.path.join(folder, "other.nc"), comm)
    if os.geteuid():
        with fails(pnetcdf.PnetcdfError, "closed.nc", "ncmpi_open", "ermission"):
            pnetcdf.File.open(os.path.join(folder, "closed.nc"), comm)

    with pnetcdf.File.create(made, comm, info={"nc_header_align_size": "1024"}) as file:
        x = file.def_dim("x", 10)
        v = file.def_var("v", ">f8", [x, x])
        with fails(pnetcdf.PnetcdfError, "made.nc", "'v'", "NC_ENAMEINUSE"):
            file.def_var("v", "i4", [x])
        with fails(ArgumentError, "complex128"):
            file.def_var("w", "c16", [x])
        with fails(pnetcdf.PnetcdfError, "ncmpi_put_vara_all", "'v'", "NC_EINDEFINE"):
            file.put_vara_all(v, [0, 0], [1, 1], np.zeros(1))
        file.enddef()
        assert file.inq_varoffset(v) == 1024
        data = np.zeros(10)
        with fails(pnetcdf.PnetcdfError, "'v'", "NC_EINVALCOORDS"):
            file.put_vara_all(v, [11, 0], [1, 10], data)
        with fails(pnetcdf.PnetcdfError, "'v'", "exceeds dimension bound"):
            file.get_vara_all(v, [9, 1], [1, 10], data)
        with fails(pnetcdf.PnetcdfError, "'v'", "NC_ENOTINDEP"):
            file.put_vara(v, [0, 0], [1, 10], data)
        with fails(ArgumentError, "v: start", "shape (2,)"):
            file.put_vara_all(v, [0], [1, 10], data)
        with fails(ArgumentError, "v: count", "integers"):
            file.put_vara_all(v, [0, 0], [1.0, 10.0], data)
        with fails(ArgumentError, "v: data", "10 values for a place of 20"):
            file.put_vara_all(v, [0, 0], [2, 10], data)
        with fails(ArgumentError, "v: data", "not contiguous"):
            file.put_vara_all(v, [0, 0], [1, 5], data[::2])
        with fails(ArgumentError, "v: data", "read-only"):
            file.put_vara_all(v, [0, 0], [1, 1], np.frombuffer(bytes(8)))
        with fails(ArgumentError, "dtype", ">f8"):
            file.put_vara_all(v, [0, 0], [1, 10], data.astype(">f8"))
        with fails(ArgumentError, "v: data", "a box of 20 values for an array of 10"):
            file.put_vara_all(v, [0, 0], [1, 10], data, ((20,), (0,), (10,)))
        with fails(ArgumentError, "starts", "(1, 2)"):
            file.iput_varn(v, [[0, 0, 0]], [[1, 1, 1]], data)
        file.put_vara_all(v, [comm.rank, 0], [1, 10], data)  # still usable
        with fails(pnetcdf.PnetcdfError, "'w'", "ncmpi_inq_varid", "NC_ENOTVAR"):
            file.variable("w")
    with fails(ArgumentError, "closed"):
        file.sync()
    with pnetcdf.File.open(made, comm) as file:
        with fails(pnetcdf.PnetcdfError, "made.nc", "'v'", "NC_EPERM"):
            file.put_vara_all(file.variable("v"), [0, 0], [1, 10], np.zeros(10))
    class Stop(Exception): pass
    try:
        with pnetcdf.File.open(made, comm, writable=True) as file:
            v = file.variable("v")
            file.iput_vara(v, [comm.rank, 0], [1, 10], np.full(10, 9.0))
            raise Stop
    except Stop:
        assert file.closed
    with pnetcdf.File.open(made, comm) as file:
        file.get_vara_all(file.variable("v"), [comm.rank, 0], [1, 10], data)
        assert data.sum() == 0  # what was not waited for was not written
    print("done")
"""


def test_errors(pnetcdf: None, cases: Cases) -> None:
    """Each error is one line that names file, call, variable and PnetCDF's reason; the file stays usable."""
    assert cases.result("errors").stdout == ("done\n",) * 2


CASES = {f"{mode} {ranks}": calls(mode, ranks) for mode, ranks in ROUND_TRIPS}
CASES |= {f"native {mode}": calls(mode, 4, NATIVE) for mode in ("nonblocking", "blocking")}
CASES |= {f"{mode} {method}": calls(mode, 4, f"*.nc:mpiox_partition={method}:{GEOMETRY}") for mode, method in WAYS}
CASES["errors"] = Case(text=ERRORS, ranks=2, files={"other.nc": "no netCDF file" * 100, "closed.nc": ""})


def test_absent(tmp_path: pathlib.Path, extension: str) -> None:
    """Without a library, and with one for another MPI, the reason is one line; importing is no error."""
    missing = reason(MPIIO_EXT_PNETCDF=os.fspath(tmp_path / "libpnetcdf.so"))
    assert "cannot be read (No such file or directory)" in missing and "\n" not in missing
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(b"\x7fELF\0libc.so.6\0libmpi.so.99\0libm.so.6\0")
    found = reason(MPIIO_EXT_PNETCDF=os.fspath(foreign))
    assert "built for another MPI (libmpi.so.99)" in found and "make build" in found and "\n" not in found


def test_not_loaded_by_importing(extension: str) -> None:
    """Importing the package loads neither PnetCDF nor MPI."""
    code = (
        "import mpiio_ext.bench.pnetcdf, sys; maps = open('/proc/self/maps').read();"
        "print('mpi4py.MPI' in sys.modules, 'libpnetcdf' in maps)"
    )
    done = python_alone(code)
    assert done.stdout.split() == ["False", "False"]
