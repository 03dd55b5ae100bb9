"""Small applications that know nothing of this library: built, or found, and given their arguments.

The sources lie in ``tests/programs/codes``; ``ncmpigen`` is Debian's. A code that cannot be had in this environment
raises :class:`CodeAbsentError` with the reason.
"""

from __future__ import annotations

import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from support.launch import ROOT, base_environment, mpi_family, python_alone

__all__ = ["CODES", "Code", "CodeAbsentError", "command", "comparable", "compiled", "files", "hdf5_flags"]

SOURCES = ROOT / "tests" / "programs" / "codes"
PREFIX = pathlib.Path(sys.prefix)


class CodeAbsentError(RuntimeError):
    """This environment lacks something that a code needs; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One application.

    Attributes
    ----------
    title : what it stands for, its language, its library.
    output : pattern of the names of the files that it writes.
    small, large : arguments behind the name of the file: a fraction of a MB, and some tens of MB.
    program : returns the words that start it; raises CodeAbsentError.
    """

    title: str
    output: str
    small: tuple[str, ...]
    large: tuple[str, ...]
    program: Callable[[], tuple[str, ...]]


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mpiox_codes_")  # deleted when the process ends


def compiled(wrapper: str, source: pathlib.Path, *flags: str) -> tuple[str, ...]:
    """Compile a program with the MPI library's own compiler; return the words that start it.

    Raises
    ------
    CodeAbsentError
        The MPI library has no such compiler.
    """
    target = pathlib.Path(_scratch().name) / source.stem
    compiler = PREFIX / "bin" / wrapper
    if not compiler.exists():
        raise CodeAbsentError(f"this MPI library has no {wrapper}")
    words = [str(compiler), "-O2", "-Wall", "-Wextra", "-Werror", str(source), *flags, "-o", str(target)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=base_environment(), check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}\n{done.stderr}")
    return (str(target),)


def _multiarch() -> str:
    return subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()


def _linked_mpich() -> list[str]:
    """Return flags for libraries of Debian that want libmpich.so.12, the wheel's library by another name."""
    folder = PREFIX / "lib"
    return ["-Wl,--no-as-needed", f"-L{folder}", "-l:libmpich.so.12", f"-Wl,-rpath,{folder}"]


def hdf5_flags() -> list[str]:
    """Return what a C program with parallel HDF5 is compiled with.

    Raises
    ------
    CodeAbsentError
        There is no parallel HDF5 for this MPI library.
    """
    family = mpi_family() or ""
    include = pathlib.Path(f"/usr/include/hdf5/{family}")
    if not (include / "hdf5.h").exists():
        raise CodeAbsentError(f"no parallel HDF5 for {family} (libhdf5-{family}-dev)")
    library = f"-L/usr/lib/{_multiarch()}/hdf5/{family}"
    return [f"-I{include}", *(_linked_mpich() if family == "mpich" else []), library, "-lhdf5"]


@functools.cache
def vpicio() -> tuple[str, ...]:
    """Compile the C program that uses parallel HDF5."""
    return compiled("mpicc", SOURCES / "vpicio.c", "-std=c11", *hdf5_flags())


@functools.cache
def s3dio() -> tuple[str, ...]:
    """Compile the C program that uses PnetCDF."""
    own = PREFIX / "include" / "pnetcdf.h"
    if own.exists():
        folder = PREFIX / "lib"
        flags = [f"-I{own.parent}", f"-L{folder}", "-lpnetcdf", f"-Wl,-rpath,{folder}"]
    elif mpi_family() == "openmpi" and pathlib.Path("/usr/include/pnetcdf.h").exists():
        flags = ["-lpnetcdf"]
    else:
        raise CodeAbsentError(f"no PnetCDF for {mpi_family()}")
    return compiled("mpicc", SOURCES / "s3dio.c", "-std=c11", *flags)


@functools.cache
def flashio() -> tuple[str, ...]:
    """Compile the C program that needs nothing but MPI."""
    return compiled("mpicc", SOURCES / "flashio.c", "-std=c11")


@functools.cache
def btio() -> tuple[str, ...]:
    """Compile the Fortran program."""
    modules = f"-J{_scratch().name}"
    return compiled("mpifort", SOURCES / "btio.f90", "-fallow-argument-mismatch", "-Wno-compare-reals", modules)


def _python(script: str, probe: str, absent: str) -> tuple[str, ...]:
    if python_alone(probe).returncode != 0:
        raise CodeAbsentError(absent)
    return sys.executable, str(SOURCES / script)


@functools.cache
def ipic3d() -> tuple[str, ...]:
    """Return the Python program that uses h5py."""
    probe = "import h5py, sys; sys.exit(not h5py.get_config().mpi)"
    return _python("ipic3d.py", probe, "no h5py built for parallel HDF5")


@functools.cache
def climate() -> tuple[str, ...]:
    """Return the Python program that uses netCDF4."""
    probe = "import netCDF4 as n, sys; sys.exit(not (n.__has_parallel4_support__ and n.__has_pnetcdf_support__))"
    return _python("climate.py", probe, "no netCDF4 built for parallel HDF5 and PnetCDF")


@functools.cache
def ncmpigen() -> tuple[str, ...]:
    """Return Debian's program of PnetCDF that makes a netCDF file from a text; all ranks write the same."""
    found = shutil.which("ncmpigen")
    if found is None:
        raise CodeAbsentError("no ncmpigen (pnetcdf-bin)")
    if mpi_family() != "openmpi":
        raise CodeAbsentError("Debian's ncmpigen is a program of Open MPI")
    return (found,)


CODES = {
    "vpicio": Code(
        title="VPIC-IO, C, HDF5", output="particles.h5", small=("3000", "2"), large=("250000", "2"), program=vpicio
    ),
    "s3dio": Code(
        title="S3D-IO, C, PnetCDF iput", output="checkpoint.*.nc", small=("12", "2"), large=("64", "2"), program=s3dio
    ),
    "flashio": Code(
        title="FLASH-IO independent, C, MPI-IO",
        output="checkpoint.flash",
        small=("3", "5"),
        large=("8", "200"),
        program=flashio,
    ),
    "btio": Code(
        title="BT-IO, Fortran, MPI-IO", output="solution.bt", small=("14", "3"), large=("64", "5"), program=btio
    ),
    "ipic3d": Code(
        title="iPic3D, Python, h5py", output="fields.h5", small=("10", "1"), large=("64", "1"), program=ipic3d
    ),
    "climate": Code(
        title="climate, Python, netCDF4", output="history.nc", small=("12", "4"), large=("200", "12"), program=climate
    ),
    "ncmpigen": Code(title="ncmpigen of PnetCDF", output="grid.nc", small=("16",), large=("64",), program=ncmpigen),
}


def _grid_text(n: int) -> str:
    """Return a netCDF file as ncmpigen reads it: two variables of fixed size, two that grow with time."""
    times = 3
    numbers = {
        "area": ", ".join(f"{i * 0.5}" for i in range(n * n)),
        "flags": ", ".join(str(i * 7) for i in range(n * n)),
        "flow": ", ".join(f"{i * 0.25}f" for i in range(times * n * n)),
        "time": ", ".join(str(i) for i in range(times)),
    }
    data = " ;\n".join(f" {name} = {values}" for name, values in numbers.items())
    return (
        f"netcdf grid {{\ndimensions:\n time = UNLIMITED ; lat = {n} ; lon = {n} ;\nvariables:\n"
        ' double area(lat, lon) ; area:units = "m2" ;\n int flags(lat, lon) ;\n float flow(time, lat, lon) ;\n'
        f' double time(time) ;\n :title = "a grid" ;\ndata:\n{data} ;\n}}\n'
    )


def command(name: str, folder: pathlib.Path, size: str = "small") -> list[str]:
    """Return the command line of a code that writes its files into ``folder``, without launcher.

    Raises
    ------
    CodeAbsentError
        It cannot be had here.
    """
    code = CODES[name]
    words = list(code.program())
    arguments = code.small if size == "small" else code.large
    if name == "ncmpigen":
        text = folder / "grid.cdl"
        text.write_text(_grid_text(int(arguments[0])), encoding="utf-8")
        return [*words, "-v", "5", "-o", str(folder / code.output), str(text)]
    target = code.output.removesuffix(".*.nc")
    return [*words, str(folder / target), *arguments]


def files(name: str, folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the files that a code has written into ``folder``, sorted."""
    return sorted(folder.glob(CODES[name].output))


def comparable(dump: str) -> str:
    """Return what a tool printed of a file, without the file's name and addresses of the tool's memory.

    ``h5dump`` of HDF5 2.2 prints such an address for each reference to an object: two dumps of one file differ.
    """
    named = re.sub(r'\A(netcdf |HDF5 )("[^"]*"|\S+) \{', r"\1{", dump.lstrip())
    return re.sub(r'\b(DATASET|DATATYPE|GROUP) \d{12,} (?=")', r"\1 ", named)
