"""The environment of a measurement: machine, file system, libraries, revision, command line."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.children import run

if TYPE_CHECKING:
    from mpi4py import MPI

#: Variables of batch systems that number the job.
JOB_NUMBERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "FLUX_JOB_ID")
#: Variables that change what MPI libraries or the extension do; no others are recorded.
_VARIABLE_PREFIXES = ("MPIOX_", "OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "MPIR_CVAR_", "MPICH_", "ROMIO_", "HDF5_")


def file_system_of(path: Path) -> tuple[str, str]:
    """Return (type, mount point) of the file system of `path`, from /proc/self/mountinfo."""
    path = path.resolve()
    best = ("unknown", "")
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return best
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = before.split()[4].replace("\\040", " ")
        if path.is_relative_to(mount) and len(mount) >= len(best[1]):
            best = (after.split()[0], mount)
    return best


def _git_revision() -> str | None:
    """Return the revision of the source tree that this package runs from; None if it is no git checkout."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    done = run(words, limit_s=10)
    return done.output.strip() or None if not done.trouble else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _job() -> dict[str, str]:
    """Return the ID of the scheduler's job that runs this process, as ``job``; empty outside of a job."""
    number = next((os.environ[name] for name in JOB_NUMBERS if os.environ.get(name)), None)
    return {} if number is None else {"job": number}


def here(path: Path) -> dict[str, Any]:
    """Return machine, file system, versions and command line of this process, for JSON; makes no MPI call."""
    kind, mount = file_system_of(path)
    space = os.statvfs(path)
    return {
        "started": datetime.datetime.now(datetime.timezone.utc).astimezone().isoformat(timespec="seconds"),
        "command_line": shlex.join([Path(sys.executable).name, *sys.orig_argv[1:]]),
        **_job(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu_model": _cpu_model(),
        "cpus_online_count": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "path": str(path),
        "file_system_type": kind,
        "file_system_mount": mount,
        "file_system_free_bytes": space.f_bavail * space.f_frsize,
        "git_revision": _git_revision(),
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("mpiio_ext", "mpi4py", "numpy", "pyarrow")},
        },
        "variables": {n: v for n, v in sorted(os.environ.items()) if n.startswith(_VARIABLE_PREFIXES)},
    }


def describe(comm: MPI.Intracomm, path: Path, interface_versions: dict[str, str]) -> dict[str, Any]:
    """Return the environment as a JSON-compatible dictionary; collective over `comm`, equal on every rank."""
    from mpi4py import MPI

    hosts = comm.allgather(MPI.Get_processor_name())
    record = here(path)
    record["versions"] |= interface_versions
    record |= {
        "ranks": comm.size,
        "hosts": sorted(set(hosts)),
        "ranks_per_host": max(hosts.count(host) for host in set(hosts)),
        "cpus_of_rank_0_count": len(os.sched_getaffinity(0)),
        "mpi_library": MPI.Get_library_version().replace("\0", "").strip().splitlines()[0].strip(),
        "mpi_standard": ".".join(str(part) for part in MPI.Get_version()),
    }
    result: dict[str, Any] = comm.bcast(record)
    return result
