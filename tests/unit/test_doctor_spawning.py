"""mpiio-ext doctor says that delegates are spawned exactly where the library spawns them: its C function is asked."""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys

import pytest

from mpiio_ext.doctor import spawning
from support.launch import ROOT, base_environment

pytestmark = pytest.mark.mpi

#: The library's function, with an MPI library under it that says what it is told.
ASK = """
#include <stdio.h>
#include <string.h>
#include "mpiox_service_check.h"
static const char *version;
int PMPI_Get_library_version(char *text, int *length) { strcpy(text, version); *length = strlen(text); return 0; }
int main(int argc, char **argv)
{
    const char *reason = NULL;
    version = argc > 1 ? argv[1] : "";
    mpiox_service_check_launcher(&reason);
    printf("%s", reason == NULL ? "" : reason);
    return 0;
}
"""
VERSIONS = (
    "Open MPI v3.1.6, package", "Open MPI v4.1.4, package: Open MPI Debian", "Open MPI v5.0.8, package",
    "MVAPICH Version : 4.0", "Open MPI v40.0.1", "MPICH Version:      3.4.3\nMPICH Release date: 2021",
    "MPICH Version:\t4.0.2", "MPICH Version: 4.1", "MPICH Version:      5.0.0",
    "Intel(R) MPI Library 2021.18", "MPICH Version:",
)  # fmt: skip
VARIABLES = {
    "openmpi": ("OMPI_COMM_WORLD_SIZE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_rmaps"),
    "mpich": ("PMI_RANK", "HYDI_CONTROL_FD", "MPI_LOCALNRANKS"),
}
EVERY = {name for names in VARIABLES.values() for name in names} | {"PMI_FD"}


@pytest.fixture(scope="module")
def library_says(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("check")
    source, target = folder / "ask.c", folder / "ask"
    source.write_text(ASK)
    own = ROOT / "csrc" / "iod" / "service"
    wrapper = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    check = own / "mpiox_service_check.c"
    command = [str(wrapper), "-D_GNU_SOURCE", f"-I{own}", str(source), str(check), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, env=base_environment())
    assert done.returncode == 0, done.stderr
    return target


def bare() -> dict[str, str]:
    lists = ("OMPI_MCA_orte_rankfile", "OMPI_MCA_rmaps_rank_file_path")
    return {name: value for name, value in base_environment().items() if name not in EVERY and name not in lists}


def test_library_and_doctor_agree(library_says: pathlib.Path, family: str) -> None:
    """Every release with every set of a launcher's variables; some sets are safe, and each reason comes up."""
    reasons = set()
    names = VARIABLES[family]
    for version in VERSIONS:
        for given in itertools.product((False, True), repeat=len(names)):
            environment = bare() | {name: "2" for name, there in zip(names, given, strict=True) if there}
            done = subprocess.run([library_says, version], capture_output=True, text=True, env=environment, check=True)
            assert spawning.refusal(family, version, environment) == done.stdout, (version, given)
            reasons.add(done.stdout)
    assert len(reasons) == 4 and "" in reasons


def test_standard_abi_is_hydra_s() -> None:
    environment = dict.fromkeys(VARIABLES["mpich"], "2")
    assert spawning.refusal("mpiabi", "MPICH Version: 5.0.0", environment) == ""
    assert "only known to be safe" in spawning.refusal("mpiabi", "Open MPI v6.0.0", environment)


def test_process_ids_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket whose maker cannot be seen from here; a real one from this namespace is none."""
    import socket

    left, right = socket.socketpair()
    environment = dict.fromkeys(VARIABLES["mpich"], "2") | {"PMI_FD": str(left.fileno())}
    with left, right:
        assert spawning.refusal("mpich", "MPICH Version: 5.0.0", environment) == ""
        monkeypatch.setattr(socket.socket, "getsockopt", lambda *_: bytes(12))
        assert "process ids of their own" in spawning.refusal("mpich", "MPICH Version: 5.0.0", environment)
        assert left.fileno() >= 0
