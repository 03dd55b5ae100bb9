"""The PnetCDF binding without MPI: which library, which declarations, how places are passed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cffi
import numpy as np
import pytest

from mpiio_ext.bench.pnetcdf import library
from mpiio_ext.bench.pnetcdf.memory import TYPES, Variable, subarray, subarrays, type_number
from mpiio_ext.errors import ArgumentError

pytestmark = [pytest.mark.mpi, pytest.mark.both]  # each family has its own library
HEADERS = (Path(sys.prefix, "include", "pnetcdf.h"), Path("/usr/include/pnetcdf.h"))


@pytest.fixture(scope="module")
def pnetcdf() -> Any:
    """Return the types of the interface, without the library."""
    ffi = cffi.FFI()
    ffi.cdef(library.declarations("int"))
    return SimpleNamespace(ffi=ffi)


def variable(dimensions: int) -> Variable:
    return Variable(id=3, name="v", dimensions=dimensions)


# ---- the library ----------------------------------------------------------------------------------------------------


def test_names_of_mpi_libraries(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(
        b"\0libmpi_cxx.so.40\0libmpi.so.40\0libmpi.so.40\0libc.so.6\0xlibmpi.so.12\0libmpich.so.12\0libmpi.so"
    )
    assert library.mpi_names(path) == ["libmpi.so.40", "libmpich.so.12"]


def test_named_library_is_the_only_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIIO_EXT_PNETCDF", str(tmp_path / "mine.so"))
    assert library.candidates() == [tmp_path / "mine.so"]


def test_own_library_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = tmp_path / "venv" / "lib", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / "libpnetcdf.so.4.0.3").touch()
        (folder / "libpnetcdf.so.4").symlink_to("libpnetcdf.so.4.0.3")
    monkeypatch.delenv("MPIIO_EXT_PNETCDF", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{other}")
    assert library.candidates()[:2] == [own / "libpnetcdf.so.4.0.3", other / "libpnetcdf.so.4.0.3"]  # links once


# ---- the declarations -----------------------------------------------------------------------------------------------


def prototypes(text: str) -> dict[str, tuple[str, list[str]]]:
    """Return {function: (result, types of its parameters)} of every ncmpi_ function, names of parameters left out."""
    text = re.sub(r"/\*.*?\*/|^\s*#.*?$", " ", text, flags=re.DOTALL | re.MULTILINE)
    found = {}
    for result, name, parameters in re.findall(r"((?:const\s+char\s*\*|int))\s*(ncmpi_\w+)\s*\(([^)]*)\)\s*;", text):
        types = []
        for parameter in parameters.split(","):
            declared = re.sub(r"\b(\w+)\[\]", r"*\1", parameter.strip())  # an array is a pointer
            declared = re.sub(r"\bnc_type\b", "int", declared)
            words = re.findall(r"\w+|\*", declared)
            types.append(" ".join(words[:-1] if words[-1] not in ("void", "*") and len(words) > 1 else words))
        found[name] = (" ".join(re.findall(r"\w+|\*", result)), types)
    return found


def test_declarations_are_those_of_the_header() -> None:
    header = next((path for path in HEADERS if path.exists()), None)
    if header is None:
        pytest.skip("pnetcdf.h is not installed")
    theirs = prototypes(header.read_text(errors="replace"))
    ours = prototypes(library.declarations("int"))
    assert len(ours) >= 25
    assert {name: theirs.get(name) for name in ours} == ours


def test_types_are_those_of_the_header() -> None:
    header = next((path for path in HEADERS if path.exists()), None)
    if header is None:
        pytest.skip("pnetcdf.h is not installed")
    numbers = dict(re.findall(r"#define\s+(NC_[A-Z0-9]+)\s+(\d+)", header.read_text(errors="replace")))
    names = {"S1": "CHAR", "i1": "BYTE", "i2": "SHORT", "i4": "INT", "i8": "INT64", "f4": "FLOAT", "f8": "DOUBLE"}
    names |= {"u1": "UBYTE", "u2": "USHORT", "u4": "UINT", "u8": "UINT64"}
    assert {code: int(numbers[f"NC_{name}"]) for code, name in names.items()} == {c: n for c, (n, _) in TYPES.items()}


# ---- places ---------------------------------------------------------------------------------------------------------


def test_subarray(pnetcdf: Any) -> None:
    place = subarray(pnetcdf, variable(2), np.array([1, 2], "i4"), (3, 4))
    start, count = place.arguments
    assert ([start[0], start[1]], [count[0], count[1]], place.elements) == ([1, 2], [3, 4], 12)


def test_scalar_and_empty_places(pnetcdf: Any) -> None:
    assert subarray(pnetcdf, variable(0), [], []).elements == 1
    assert subarray(pnetcdf, variable(2), [0, 0], [0, 7]).elements == 0
    for starts in ([], np.empty((0, 2))):
        number, _, _ = subarrays(pnetcdf, variable(2), starts, starts).arguments
        assert number == 0


def test_subarrays_are_rows_in_order(pnetcdf: Any) -> None:
    starts = np.arange(30, dtype="i8").reshape(10, 3)[::2]  # not contiguous: copied
    counts = np.full((5, 3), 2)
    place = subarrays(pnetcdf, variable(3), starts, counts)
    number, first, lengths = place.arguments
    assert (number, place.elements) == (5, 5 * 8)
    assert [[first[n][d] for d in range(3)] for n in range(5)] == starts.tolist()
    assert [[lengths[n][d] for d in range(3)] for n in range(5)] == counts.tolist()


@pytest.mark.parametrize(
    ("start", "count", "text"),
    [
        ([1], [1, 1], "v: start"),
        ([1, 1], [1, 1, 1], "v: count"),
        ([1, 1.5], [1, 1], "float64"),
        ([[1, 1]], [1, 1], "v: start"),
        ([], [1, 1], "v: start"),
    ],
)
def test_wrong_subarrays(pnetcdf: Any, start: Any, count: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        subarray(pnetcdf, variable(2), start, count)


def test_wrong_lists(pnetcdf: Any) -> None:
    with pytest.raises(ArgumentError, match="v: starts"):
        subarrays(pnetcdf, variable(2), [[1, 2, 3]], [[1, 1, 1]])
    with pytest.raises(ArgumentError, match="v: counts"):
        subarrays(pnetcdf, variable(2), [[1, 2], [3, 4]], [[1, 1]])


@pytest.mark.parametrize("code", ["c16", "S2", "f2", "b1", ">f8"])
def test_types_that_netcdf_lacks(code: str) -> None:
    with pytest.raises(ArgumentError, match="no netCDF type"):
        type_number(np.dtype(code))
