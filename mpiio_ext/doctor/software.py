"""Versions of the packages that programs in Python use, and the variables that are set for this library."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.common.extras import install_line
from mpiio_ext.doctor.children import ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn
from mpiio_ext.environment import VARIABLES, looks_ours, unknown

_FOLDERS = ("MPIOX_TRACE_DIR",)
_FILES = ("MPIOX_HINTS_FILE", "MPIOX_SITE_FILE")


def versions(environment: Mapping[str, str], limit_s: float = 20.0) -> list[Finding]:
    """Return the versions of Python and of the packages that reach MPI-IO, and whether these are parallel."""
    answer = ask("software", environment=environment, limit_s=limit_s)
    values, python = answer.values, platform.python_version()
    facts = {"python": python, **{name: values.get(name) for name in ("mpiio_ext", "mpi4py", "numpy")}}
    text = ", ".join(f"{name} {version}" for name, version in facts.items() if version)
    lacks = values.get("mpi4py", "") is None
    found = [good("versions.python", text, **facts)]
    if lacks:
        text = f"{text}; no mpi4py, which checks of MPI need, and programs in Python"
        found = [warn("versions.python", text, install_line("doctor"), **facts)]
    if answer.trouble and "mpi_libraries" not in values:
        if lacks:
            return found
        text = f"h5py and netCDF4 cannot be examined: {answer.reason()}"
        return [*found, warn("versions.packages", text, "import mpiio_ext before them, or install it with their MPI")]
    return [*found, _parallel("h5py", "HDF5", values), _parallel("netCDF4", "netCDF", values), *_one_mpi(values)]


def gpus(library: str, environment: Mapping[str, str], limit_s: float = 20.0, root: Path = Path("/")) -> list[Finding]:
    """Return whether buffers in the memory of this host's GPUs can be written and read; empty if there is no GPU.

    Parameters
    ----------
    library : file of the MPI library; "" where it is not known.
    environment : of the child that asks the MPI library.
    limit_s : seconds that the child may take.
    root : where the host's files are.
    """
    key, found = "gpu.memory", []
    if (root / "proc/driver/nvidia/version").exists():
        count = len(list((root / "proc/driver/nvidia/gpus").glob("*")))
        aware = ask("library_version", library, environment=environment, limit_s=limit_s).values.get("cuda")
        knows = "does not tell" if aware is None else f"{'knows' if aware else 'does not know'} their memory"
        text = f"{count} NVIDIA GPU{'s' * (count != 1)}: buffers there are written and read; the MPI library {knows}"
        found.append(good(key, text, cuda_gpus=count, cuda_mpi=aware))
    if (root / "dev/kfd").exists():
        found.append(good(key, "an AMD GPU: buffers in its memory are written and read", rocm=True))
    return found


def _parallel(name: str, library: str, values: Mapping[str, Any]) -> Finding:
    key, prefix = f"versions.{name}", {"h5py": "h5py", "netCDF4": "netcdf"}[name]
    parallel, version = values.get(f"{prefix}_parallel"), values.get(library.lower())
    facts = {"version": values.get(name), "library": version, "parallel": parallel}
    if values.get(name) is None:
        return good(key, f"{name} is not installed", "needed by programs that use it only", **facts)
    if parallel is None:
        text = f"{name} {values[name]} cannot be imported: {values.get(f'{prefix}_error')}"
        return bad(key, text, f"build {name} again", **facts)
    if not parallel:
        flag = "HDF5_MPI=ON CC=mpicc " if name == "h5py" else "CC=mpicc "
        install = f"{flag}pip install --no-binary={name} {name}, with a parallel {library}"
        text = f"{name} {values[name]} is serial ({library} {version} without MPI)"
        return warn(key, text, f"files are opened without MPI-IO: {install}", **facts)
    return good(key, f"{name} {values[name]}, {library} {version}, parallel", **facts)


def _one_mpi(values: Mapping[str, Any]) -> list[Finding]:
    """Return a finding where the packages load more than one MPI library."""
    found = {Path(path).resolve() for path in values.get("mpi_libraries") or []}
    fronts = {path.parent for path in found if not path.name.startswith("libmpich.")}  # MPICH 5: libmpi before libmpich
    real = sorted(str(path) for path in found if not (path.name.startswith("libmpich.") and path.parent in fronts))
    if len(real) <= 1:
        return []
    text = f"two MPI libraries in one process: {' and '.join(real)}"
    return [bad("versions.mpi", text, "build mpi4py, h5py and netCDF4 with the same MPI", libraries=real)]


def variables(environment: Mapping[str, str]) -> list[Finding]:
    """Return the variables of this library, those that do not exist first of all."""
    key = "environment.variables"
    found: list[Finding] = []
    ours = {name: value for name, value in sorted(environment.items()) if looks_ours(name)}
    for name, near in unknown(environment).items():
        advice = f"did you mean {near}?" if near else "`mpiio-ext help reference/checks` lists the variables"
        found.append(warn(key, f"{name} does not exist, and has no effect", advice, name=name, nearest=near or None))
    for name in (*_FILES, *_FOLDERS):
        path = ours.get(name)
        if path and not (Path(path).is_file() if name in _FILES else Path(path).is_dir()):
            found.append(bad(key, f"{name} names {path}, which is not there", "correct it, or unset it", name=name))
    if "I_MPI_ROOT" in environment and environment.get("I_MPI_EXTRA_FILESYSTEM", "").lower() not in ("on", "1"):
        text = "Intel MPI (I_MPI_ROOT is set) locks local files as NFS at each access that this library leaves to it"
        found.append(warn(key, text, "export I_MPI_EXTRA_FILESYSTEM=on", name="I_MPI_EXTRA_FILESYSTEM"))
    if found:
        return found
    known = {name: value for name, value in ours.items() if name in VARIABLES}
    text = ", ".join(f"{name}={value}" for name, value in known.items())
    return [good(key, text or "none is set", set=known)]


def hints(environment: Mapping[str, str], limit_s: float = 20.0) -> Finding:
    """Return whether the hints in files and variables can be understood."""
    key = "environment.hints"
    answer = ask("hints", environment=environment, limit_s=limit_s)
    problems = answer.values.get("problems")
    if problems is None:
        return warn(key, f"hints cannot be read: {answer.reason()}", "the library must load first")
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return warn(key, f"{problems[0]}{more}", "mpiio-ext hints lists them all", problems=problems)
    return good(key, "hints of files and variables are understood", problems=[])
