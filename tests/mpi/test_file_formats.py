"""File formats: what an existing code writes with any method is what it writes with the MPI library alone.

Every code of ``tests/programs/codes`` writes its files natively (``mpiox_enable=false``) and with each method. Files
of classic netCDF, of MPI-IO, and of HDF5 without time stamps have no freedom: they must be equal byte for byte. The
formats' own tools, which are programs of other people, read both and must agree: ``h5dump`` and ``h5diff`` (POSIX
I/O), ``ncmpidump``, ``ncmpidiff`` and ``cdfdiff``, of which the first two are programs of MPI-IO and run with the
library under them as well.
"""

from __future__ import annotations

import functools
import itertools
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable

import pytest

from mpiio_ext.bench import methods
from support import codes, mounts, subfiles
from support.launch import Launch, base_environment, mpi_family, mpi_run
from support.made_subfiles import command
from support.marks import slow

pytestmark = pytest.mark.mpi

RANKS = 4
QUICK = ("auto", "transpose+mpiox_ranks_per_node=1")
METHODS = (
    *QUICK,
    *(
        pytest.param(method, marks=pytest.mark.slow)
        for method in (
            *methods.METHODS,
            "aligned+stripe_size_io",
            "even+mpiox_ranks_per_node=1",
            "static_cyclic+mpiox_ranks_per_node=2",
        )
        if method not in QUICK
    ),
)
#: Small enough that every method gives several ranks several parts of files of a fraction of a MB.
GEOMETRY = "striping_unit=1k:striping_factor=3:cb_nodes=3:cb_buffer_size=8k"
CLASSIC = ("s3dio", "climate", "ncmpigen")
HDF5 = ("vpicio", "ipic3d")
PLAIN = ("btio", "flashio")
_keep: list[tempfile.TemporaryDirectory[str]] = []  # deleted when the process ends


def hints_of(method: str) -> str:
    """Return the value of MPIOX_HINTS for a method."""
    strategy = methods.parse_method(method)
    words = [f"{name}={value}" for name, value in strategy.hints_for(RANKS).items()]
    return ":".join(words if strategy.native else [*words, GEOMETRY])


def run_code(name: str, method: str, folder: pathlib.Path, extra: tuple[str, ...] = ()) -> list[pathlib.Path]:
    """Run a code, which verifies what it reads; return its files."""
    try:
        words = codes.command(name, folder)
    except codes.CodeAbsentError as error:
        pytest.skip(str(error))
    statistics = folder / "stats.jsonl"
    env = {"MPIOX_HINTS": hints_of(method), "MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(statistics)}
    mpi_run([*words, *extra], RANKS, env=env, preload=True, timeout_s=120)
    text = statistics.read_text(encoding="utf-8")
    kind = "independent" if name == "flashio" else "collective"
    zero = [int(count) for count in re.findall(rf'"{kind}_writes": (\d+)', text)]
    assert (sum(zero) == 0) == (method == "native"), text  # really native, really ours
    statistics.unlink()
    return codes.files(name, folder)


@functools.cache
def native(name: str, extra: tuple[str, ...] = ()) -> list[pathlib.Path]:
    """Return the files of a code as the MPI library alone writes them (once per session)."""
    folder = tempfile.TemporaryDirectory(prefix=f"mpiox_native_{name}_")
    _keep.append(folder)
    return run_code(name, "native", pathlib.Path(folder.name), extra)


def tool(name: str) -> str:
    """Return the path of a format's own tool, or skip the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} (hdf5-tools, pnetcdf-bin)")
    return found


def serial(*words: str | pathlib.Path) -> str:
    """Run a tool that must succeed, without the library; return what it printed."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=base_environment(), check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def under_the_library(ranks: int, program: str, *words: str | pathlib.Path) -> Launch:
    """Run a tool that is an MPI program with the library under it."""
    env = {"MPIOX_HINTS": f"mpiox_exchange=two_phase:{GEOMETRY}"}
    return mpi_run([program, *words], ranks, env=env, preload=True, timeout_s=60)


def first_difference(left: pathlib.Path, right: pathlib.Path) -> str | None:
    """Return where two files differ first, None when they are equal."""
    a, b = left.read_bytes(), right.read_bytes()
    if a == b:
        return None
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    where = f"first difference at byte {at}: {a[at : at + 8]!r} {b[at : at + 8]!r}"
    return f"{right}: {len(b)} bytes instead of {len(a)}, {where}"


@functools.cache
def reference_dump(program: str, path: pathlib.Path) -> str:
    """Return what a tool says of a file that does not change any more."""
    return codes.comparable(serial(tool(program), path))


def agree_hdf5(reference: pathlib.Path, path: pathlib.Path) -> None:
    """Compare two HDF5 files by HDF5's tools."""
    serial(tool("h5diff"), reference, path)
    assert "DATA {" in reference_dump("h5dump", reference)
    assert reference_dump("h5dump", reference) == codes.comparable(serial(tool("h5dump"), path))


def agree_classic(reference: pathlib.Path, path: pathlib.Path) -> None:
    """Compare two files of classic netCDF by PnetCDF's tools."""
    assert "same" in serial(tool("cdfdiff"), reference, path)
    if mpi_family() != "openmpi":
        return  # the others are programs of Open MPI
    assert "same" in serial(tool("ncmpidiff"), reference, path)
    assert "data:" in reference_dump("ncmpidump", reference)
    assert reference_dump("ncmpidump", reference) == codes.comparable(serial(tool("ncmpidump"), path))


@pytest.mark.both_with("vpicio-transpose*")
@pytest.mark.slow_with("*-auto", "btio-*", "ipic3d-*", "climate-*")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", codes.CODES)
def test_same_file(extension: str, tmp_path: pathlib.Path, name: str, method: str) -> None:
    """Byte for byte what the MPI library alone writes, and the format's tools agree."""
    found = run_code(name, method, tmp_path)
    references = native(name)
    assert [path.name for path in found] == [path.name for path in references] != []
    agree(name, references, found)


def agree(name: str, references: list[pathlib.Path], found: list[pathlib.Path]) -> None:
    """Compare the files of a code byte for byte, and the first by the tools of its format."""
    for reference, path in zip(references, found, strict=True):
        assert first_difference(reference, path) is None, first_difference(reference, path)
    if name in HDF5:
        agree_hdf5(references[0], found[0])
    elif name in CLASSIC:
        agree_classic(references[0], found[0])


@pytest.mark.slow_except("vpicio", "s3dio")
@pytest.mark.parametrize("name", codes.CODES)
def test_stored_as_several(extension: str, tmp_path: pathlib.Path, name: str) -> None:
    """The same file through a mount, and after a merge."""
    folder, at = tmp_path / "written", tmp_path / "shown"
    folder.mkdir()
    at.mkdir()
    unit = 1024 if name == "s3dio" else 1000  # PnetCDF aligns its variables to it, as to a stripe
    found = run_code(name, f"auto+mpiox_subfiles=3+mpiox_subfile_unit={unit}", folder)
    assert found and all(subfiles.is_index(path) for path in found)
    try:
        with mounts.mounted(folder, at):
            agree(name, native(name), [at / path.name for path in found])
    except mounts.NoMountError as error:
        pytest.skip(str(error))
    for path in found:
        assert command("merge", path, "--in-place").exit_code == 0
    agree(name, native(name), found)


@pytest.mark.parametrize(
    "kind", [*slow("NETCDF3_CLASSIC"), "NETCDF3_64BIT_OFFSET", *slow("NETCDF4_CLASSIC", "NETCDF4")]
)
@pytest.mark.parametrize(
    "method", [pytest.param("auto", marks=pytest.mark.slow), "group_cyclic+mpiox_ranks_per_node=2"]
)
def test_formats_of_netcdf(extension: str, tmp_path: pathlib.Path, kind: str, method: str) -> None:
    """The other formats of netCDF4-python: classic ones through PnetCDF, the others through HDF5."""
    reference, path = native("climate", (kind,))[0], run_code("climate", method, tmp_path, (kind,))[0]
    if kind.startswith("NETCDF4"):
        agree_hdf5(reference, path)
    else:
        assert first_difference(reference, path) is None, first_difference(reference, path)
        agree_classic(reference, path)


@pytest.mark.parametrize("name", ["s3dio", "ncmpigen"])
def test_tools_of_pnetcdf_under_the_library(extension: str, tmp_path: pathlib.Path, family: str, name: str) -> None:
    """``ncmpidump`` and ``ncmpidiff`` read through the library what they read without it."""
    if family != "openmpi":
        pytest.skip("Debian's tools of PnetCDF are programs of Open MPI")
    reference = native(name)[0]
    path = run_code(name, "transpose", tmp_path)[0]
    dump = under_the_library(1, tool("ncmpidump"), path).stdout  # every rank would print all of it
    assert "data:" in dump
    assert codes.comparable(dump) == reference_dump("ncmpidump", reference)
    assert "same" in under_the_library(3, tool("ncmpidiff"), reference, path).stdout


def change_one_byte(path: pathlib.Path, at: int) -> None:
    """Spoil a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(("name", "compare"), [("vpicio", agree_hdf5), ("s3dio", agree_classic), ("btio", None)])
def test_a_wrong_byte_is_found(
    extension: str, tmp_path: pathlib.Path, name: str, compare: Callable[[pathlib.Path, pathlib.Path], None] | None
) -> None:
    """The comparisons above can fail."""
    reference = native(name)[0]
    spoilt = tmp_path / reference.name
    shutil.copy(reference, spoilt)
    change_one_byte(spoilt, spoilt.stat().st_size - 4)
    assert first_difference(reference, spoilt) is not None
    if compare is not None:
        with pytest.raises(AssertionError):
            compare(reference, spoilt)


assert set(itertools.chain(CLASSIC, HDF5, PLAIN)) == set(codes.CODES), "a code without a comparison"
