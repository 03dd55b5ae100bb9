"""Hints from ROMIO_HINTS, MPICH_MPIIO_HINTS and Open MPI's parameters, in force for an open file on every rank."""

from __future__ import annotations

import json
import pathlib

import pytest

from support.cases import Case, Cases
from support.launch import mpi_family, python_run

pytestmark = pytest.mark.mpi

PROGRAM = '''
import os
import sys

import mpiio_ext.hints
from mpi4py import MPI

comm = MPI.COMM_WORLD
folder = sys.argv[1]
if comm.rank > 0:  # rank 0 reads the sources, for all
    os.environ["ROMIO_HINTS"] = "/dev/null"
    os.environ["MPICH_MPIIO_HINTS"] = "*:cb_nodes=7:ind_wr_buffer_size=7"
    os.environ["OMPI_MCA_fs_lustre_stripe_width"] = "7"
info = MPI.Info.Create()
info.Set("cb_nodes", "2")
info.Set("ind_rd_buffer_size", "1048576")
file = MPI.File.Open(comm, folder + "/data.h5", MPI.MODE_CREATE | MPI.MODE_RDWR, info)
found = {item.spec.name: (item.value, item.source) for item in mpiio_ext.hints.of(file)}
expected = {
    "cb_nodes": ("3", "MPICH_MPIIO_HINTS"),  # stronger than MPI_Info, as in Cray's MPI
    "ind_wr_buffer_size": ("262144", "MPICH_MPIIO_HINTS"),
    "ind_rd_buffer_size": ("1048576", "MPI_Info"),  # stronger than ROMIO_HINTS, as in ROMIO
    "cb_buffer_size": ("4194304", "ROMIO_HINTS"),  # the first value
    "striping_unit": ("65536", "ROMIO_HINTS"),
    "striping_factor": ("1", "Open MPI parameter"),
    "romio_ds_write": ("disable", "site file"),
    "mpiox_buffers": ("4", "MPIOX_HINTS"),
}
for name, value in expected.items():
    assert found[name] == value, (name, found[name])
told = file.Get_info()
for name, (value, _) in expected.items():
    value = str(min(3, comm.size)) if name == "cb_nodes" else value  # as many as there are
    assert told.Get(name) == value, (name, told.Get(name))
told.Free()
data = bytes([65 + comm.rank]) * 1000
file.Write_at_all(1000 * comm.rank, data)
file.Close()
if comm.rank == 0:
    with open(folder + "/data.h5", "rb") as stream:
        assert stream.read() == b"".join(bytes([65 + rank]) * 1000 for rank in range(comm.size))
info.Free()
'''
ENVIRONMENT = {
    "MPIOX_SITE_FILE": "{folder}/site",
    "ROMIO_HINTS": "{folder}/romio",
    "MPICH_MPIIO_HINTS": "*.nc:cb_nodes=9,*.h5:cb_nodes=3:ind_wr_buffer_size=256k,*:cb_nodes=8",
    "OMPI_MCA_fs_lustre_stripe_width": "1",
    "OMPI_MCA_fs_lustre_stripe_size": "4096",
    "MPIOX_HINTS": "mpiox_buffers=4",
}
FILES = {
    "site": "romio_ds_write = disable\nstriping_factor = 3\n",
    "romio": (
        "# first values count\ncb_buffer_size 4M\ncb_buffer_size 8M\nstriping_unit 65536\ncb_nodes 1\n"
        "ind_rd_buffer_size 12345\nunknown_to_us_and_them 1\nthis line is wrong\n"
    ),
}
RANKS = (1, 2, 3, 4, 5)
CASES = {str(ranks): Case(text=PROGRAM, ranks=ranks, environment=ENVIRONMENT, files=FILES) for ranks in RANKS}


@pytest.mark.parametrize("ranks", RANKS)
def test_habits(cases: Cases, ranks: int) -> None:
    """Each source at its place, the same on all ranks although only rank 0 has the variables; reported by MPI."""
    cases.result(str(ranks))


#: The hints of a file as MPI tells them, with the library or, after "native", without.
TELL = """
import json, sys
if sys.argv[2] != "native":
    import mpiio_ext
from mpi4py import MPI
info = MPI.Info.Create()
info.Set("ind_rd_buffer_size", "1048576")
file = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR, info)
told = file.Get_info()
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps({name: told.Get(name) for name in sys.argv[3:]}))
file.Close()
"""
AS_ROMIO = {
    "ind_rd_buffer_size": "1048576",  # of the program
    "ind_wr_buffer_size": "131072",
    "romio_ds_write": "disable",
    "romio_cb_read": "disable",
    "striping_unit": "65536",
}


@pytest.mark.skipif(mpi_family() != "mpich", reason="the MPI library is to be ROMIO's")
def test_as_romio_does(tmp_path: pathlib.Path) -> None:
    """ROMIO alone and the library tell the same: the program wins, first values hold, other lines do not count."""
    (tmp_path / "romio").write_text(
        "# what both read\nind_rd_buffer_size 65536\nind_wr_buffer_size 131072\nind_wr_buffer_size 262144\n"
        "romio_ds_write = enable\nromio_ds_write disable\nromio_cb_read enable # really\nromio_cb_read\tdisable\n"
        "striping_unit 65536\n",
        encoding="utf-8",
    )
    environment = {"ROMIO_HINTS": str(tmp_path / "romio"), "NATIVE": "1"}
    told = []
    for word in ("native", "ours"):
        done = python_run(["-c", TELL, f"{tmp_path}/data", word, *AS_ROMIO], 2, env=environment)
        told.append(json.loads(done.stdout))
    assert told == [AS_ROMIO, AS_ROMIO]
