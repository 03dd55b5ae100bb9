"""Whether delegates are spawned: the library's rule, by release and by what a launcher leaves, each reason."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from support.launch import ROOT, base_environment

pytestmark = [pytest.mark.mpi, pytest.mark.both]

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
#: MPI family -> a release with which spawning is safe, and those with which it is not.
SAFE = {
    "openmpi": ("Open MPI v4.1.4, package: Open MPI Debian",),
    "mpich": ("MPICH Version: 4.1", "MPICH Version:      5.0.0\nMPICH Release date: 2025"),
}
UNSAFE = {
    "openmpi": ("Open MPI v3.1.6, package", "Open MPI v5.0.8, package", "Open MPI v40.0.1"),
    "mpich": (
        "MPICH Version:      3.4.3",
        "MPICH Version:\t4.0.2",
        "MVAPICH Version : 4.0",
        "MPICH Version:",
        "Intel(R) MPI Library 2021.18",
        "Open MPI v6.0.0",
    ),
}
LEFT = {
    "openmpi": ("OMPI_COMM_WORLD_SIZE", "OMPI_MCA_orte_hnp_uri"),
    "mpich": ("PMI_RANK", "HYDI_CONTROL_FD", "MPI_LOCALNRANKS"),
}
LISTS = ("OMPI_MCA_orte_rankfile", "OMPI_MCA_rmaps", "OMPI_MCA_rmaps_rank_file_path")


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("check")
    source, target = folder / "ask.c", folder / "ask"
    source.write_text(ASK)
    own = ROOT / "csrc" / "iod" / "service"
    wrapper = pathlib.Path(sys.prefix) / "bin" / "mpicc"
    command = [str(wrapper), "-D_GNU_SOURCE", f"-I{own}", str(source), str(own / "mpiox_service_check.c"), "-o", target]
    done = subprocess.run(command, capture_output=True, text=True, env=base_environment())
    assert done.returncode == 0, done.stderr
    return target


def refusal(check: pathlib.Path, version: str, *variables: str) -> str:
    every = {*LEFT["openmpi"], *LEFT["mpich"], *LISTS, "PMI_FD", "PMI_JOBID", "SLURM_STEP_ID", "SLURM_OVERLAP"}
    environment = {name: value for name, value in base_environment().items() if name not in every}
    environment |= dict.fromkeys(variables, "2")
    return subprocess.run([check, version], capture_output=True, text=True, env=environment, check=True).stdout


def test_releases(check: pathlib.Path, family: str) -> None:
    for version in SAFE[family]:
        assert refusal(check, version, *LEFT[family]) == "", version
    for version in UNSAFE[family]:
        assert "known to be safe only" in refusal(check, version, *LEFT[family]), version


def test_launchers(check: pathlib.Path, family: str) -> None:
    version, left = SAFE[family][0], LEFT[family]
    assert "the program was not started by mpi" in refusal(check, version)
    for name in left:
        reason = refusal(check, version, *(other for other in left if other != name))
        own = family == "openmpi" or name == "PMI_RANK"
        assert ("the program was not started by mpi" if own else "MPICH's own mpiexec (Hydra)") in reason, name
    if family == "mpich":  # srun starts Hydra's proxies, or ranks by its own PMI-2
        slurm = ("PMI_RANK", "MPI_LOCALNRANKS", "SLURM_STEP_ID", "SLURM_OVERLAP")
        assert refusal(check, version, *slurm) == ""
        assert "SLURM_OVERLAP=1 before mpiexec" in refusal(check, version, *slurm[:-1])
        assert "MPICH's own mpiexec (Hydra)" in refusal(check, version, *slurm, "PMI_JOBID")
        assert "MPICH's own mpiexec (Hydra)" in refusal(check, version, "PMI_RANK", "SLURM_STEP_ID")
    for name in LISTS if family == "openmpi" else ():
        assert "places processes by a list" in refusal(check, version, *left, name)
