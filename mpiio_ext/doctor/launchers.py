"""What has started this process as a rank of a job: not what is first on PATH, which may be another one.

Algorithm. The variables that a launcher leaves in a rank's environment say of which MPI it is. Its executable, which
they do not tell, is among the parents of the process: on the launcher's own host itself, else its daemon.

Of the launchers in the `bin` of a folder above an MPI library, that is its own whose release is the library's: several
may share a prefix, and a library in /usr/local has no launcher in /usr.

Guarantees. Of a job only /proc is read; where it tells nothing, the variables alone count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_PARENTS = 64  # shells, tools and wrappers may stand between
#: Names of launchers, and of the daemons that they start ranks by.
_NAMES = {
    "openmpi": ("mpirun.openmpi", "mpiexec.openmpi", "orterun", "orted", "prterun", "prted"),
    "mpich": ("mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra", "hydra_pmi_proxy", "hydra_bstrap_proxy"),
}
_EITHER = ("mpirun", "mpiexec")
_DAEMONS = ("orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy")
#: Folders above a library that may have its `bin`: /usr of /usr/lib/PROCESSOR/openmpi/lib/libmpi.so.
_LEVELS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """What has started this process.

    Attributes
    ----------
    family : "openmpi" or "mpich".
    path : its executable, or that of its daemon on this host; "" where it is not seen.
    """

    family: str
    path: str


def by_srun(environment: Mapping[str, str]) -> bool:
    """Return whether srun has started this process as a rank, not mpirun inside of an allocation."""
    others = ("OMPI_COMM_WORLD_SIZE", "HYDI_CONTROL_FD")
    return "SLURM_STEP_NUM_TASKS" in environment and not any(name in environment for name in others)


def of_job(environment: Mapping[str, str], proc: Path = Path("/proc"), pid: int | None = None) -> Launcher | None:
    """Return what has started a process as a rank; None where nothing has, and for srun.

    Parameters
    ----------
    environment : of the rank.
    proc : where the kernel tells of processes.
    pid : of the process; None for this one.
    """
    if by_srun(environment):
        return None
    if "HYDI_CONTROL_FD" in environment or "PMI_SIZE" in environment or "MPI_LOCALNRANKS" in environment:
        family = "mpich"
    elif "OMPI_COMM_WORLD_SIZE" in environment:
        family = "openmpi"
    else:
        return None
    if family == "mpich" and "HYDI_CONTROL_FD" not in environment and "OMPI_COMM_WORLD_SIZE" in environment:
        family = "openmpi"  # under a process manager that has left variables of PMI, too
    return Launcher(family=family, path=_executable(family, proc, os.getpid() if pid is None else pid))


def _parent(proc: Path, pid: int) -> int:
    """Return the parent of a process, 0 where it has none that is seen."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def _command(proc: Path, pid: int) -> str:
    """Return the executable of a process, "" where it may not be seen."""
    try:
        return str((proc / str(pid) / "exe").readlink())
    except OSError:
        return ""


def _executable(family: str, proc: Path, pid: int) -> str:
    """Return the executable of the next launcher above a process; its daemons are passed over as far as they go."""
    found = ""
    for _ in range(_PARENTS):
        pid = _parent(proc, pid)
        path = _command(proc, pid) if pid > 0 else ""
        if pid <= 0:
            break
        if Path(path).name in (*_NAMES[family], *_EITHER):
            found = path
        elif found:
            break
    return found


def release_of(text: str) -> str:
    """Return the release of Open MPI or MPICH in what a library or a launcher says of itself; "" where it has none."""
    found = re.search(r"(?:Open MPI\)?|OpenRTE\)?|MPICH|Version:)\D*?(\d+\.\d+(?:\.\d+)?\w*)", text)
    return "" if found is None else found[1]


def _candidates(library: Path, family: str) -> Iterator[Path]:
    """Yield launchers in the folders above an MPI library, the nearest first, names that tell the MPI before others."""
    # prterun, as which Open MPI 5's mpirun shows itself in /proc, is no command of its users.
    names = [name for name in _NAMES.get(family, ()) if name not in (*_DAEMONS, "prterun")]
    for folder in library.resolve().parents[:_LEVELS]:
        for name in (*names, *_EITHER):
            path = folder / "bin" / name
            if path.is_file() and os.access(path, os.X_OK):
                yield path


def beside(library: Path, family: str, release: str, says: Callable[[str], str]) -> str:
    """Return the launcher of the installation that an MPI library is of; "" where none is seen.

    Parameters
    ----------
    library : the MPI library's file.
    family : of it.
    release : of it, as of `release_of`; "" where it is not known: then the nearest launcher is taken.
    says : what a launcher prints for --version.
    """
    for path in _candidates(library, family):
        theirs = release_of(says(str(path)))
        if not release or not theirs or theirs == release:
            return str(path)
    return ""
