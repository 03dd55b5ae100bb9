"""Whether this library would spawn delegates here: its own rule, and what it does where the rule says no.

Problem. ``MPI_Comm_spawn`` that works is not enough: the library tries it only where it is known to be safe, with some
releases under their own launchers (``csrc/iod/service/mpiox_service_check.c``), and takes threads elsewhere.

Algorithm. The same questions in the same order as there: the release, then what the launcher has left in a rank's
environment. Stated again here, because it has to be asked before any file has delegates, and in the process that is
the rank: it has the socket to its proxy.

Guarantees. ``tests/unit/test_doctor_spawning.py`` compiles the C function and compares both, reason by reason.
"""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Mapping

_RELEASES = "spawning is only known to be safe with Open MPI 4 and MPICH 4.1 or later"
_LISTS = ("OMPI_MCA_orte_rankfile", "OMPI_MCA_rmaps", "OMPI_MCA_rmaps_rank_file_path")
_UCRED = struct.Struct("iII")


def refusal(family: str, version: str, environment: Mapping[str, str]) -> str:
    """Return why the library spawns no delegates in this process' job, "" where it does.

    Parameters
    ----------
    family : that the library was built for: "openmpi", "mpich" or "mpiabi".
    version : what MPI_Get_library_version says.
    environment : of the rank.
    """
    if family == "openmpi":
        return _under_openmpi(version, environment)
    return _under_hydra(version, environment)


def _release(name: str, version: str) -> tuple[int, int]:
    """Return major and minor number of a release, (0, 0) where the text is of another MPI."""
    found = re.search(rf"{name}[^0-9]*(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _under_openmpi(version: str, environment: Mapping[str, str]) -> str:
    if _release("Open MPI", version)[0] != 4:
        return _RELEASES
    if "OMPI_COMM_WORLD_SIZE" not in environment or "OMPI_MCA_orte_hnp_uri" not in environment:
        return "the program was not started by mpirun, which would have to spawn"
    if any(name in environment for name in _LISTS):
        return "mpirun places processes by a list, in which spawned ones are missing"
    return ""


def _apart_from_proxy(environment: Mapping[str, str]) -> bool:
    """Return whether this process is in another process-id namespace than its proxy: nobody has made their socket."""
    number = environment.get("PMI_FD", "")
    if not number.isdecimal():
        return False
    try:
        with socket.socket(fileno=os.dup(int(number))) as link:
            said = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    except OSError:
        return False
    return int(_UCRED.unpack(said)[0]) == 0


def _under_hydra(version: str, environment: Mapping[str, str]) -> str:
    if _release("MPICH Version", version) < (4, 1):
        return _RELEASES
    if "PMI_RANK" not in environment:
        return "the program was not started by mpiexec, which would have to spawn"
    if "HYDI_CONTROL_FD" not in environment or "MPI_LOCALNRANKS" not in environment:
        return "the program was not started by MPICH's own mpiexec (Hydra)"
    if _apart_from_proxy(environment):
        return "the ranks have process ids of their own, with which MPI_Comm_spawn of MPICH fails"
    return ""
