"""The shared memory of a node: ranks that cannot share it, or have no room for it, leave files to the MPI library."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from support.launch import base_environment, json_lines, launcher, run_bounded
from support.marks import slow

pytestmark = [pytest.mark.mpi, pytest.mark.both]

OWN_PIDS = ["unshare", "--pid", "--fork", "--mount-proc"]

# Every rank has its own process ids, so that a number of another rank names a process of this rank, mostly itself. What
# it finds under the descriptor's number is then one of its own files: rank 0 has few open files, the others have many.
CONTAINERS = """
import ctypes, os, pathlib, subprocess, sys
import mpiio_ext
import numpy as np
from mpi4py import MPI
comm, folder = MPI.COMM_WORLD, pathlib.Path(sys.argv[1])
own, pattern = folder / f"own{comm.rank}", np.arange(1 << 23, dtype=np.uint8)
pattern.tofile(own)
assert os.getpid() < 10, "not in a process-id namespace of its own"
kept = [os.open(own, os.O_RDWR) for _ in range(300 if comm.rank else 5)]

def remount(size):
    comm.Barrier()
    if comm.rank == 0:
        subprocess.run(["mount", "-o", f"remount,size={size}", "none", "/dev/shm"], check=True)
    comm.Barrier()

def hide():
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x20000) == 0  # CLONE_NEWNS
    assert libc.mount(b"none", b"/", None, 0x44000, None) == 0  # MS_REC | MS_PRIVATE
    assert libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, None) == 0

def round_trip(name, buffer_bytes):
    info = MPI.Info.Create()
    info.Set("cb_buffer_size", str(buffer_bytes))
    fh = MPI.File.Open(comm, str(folder / name), MPI.MODE_CREATE | MPI.MODE_RDWR, info)
    info.Free()
    data = np.arange(400000, dtype=np.int32) * comm.size + comm.rank
    fh.Set_view(4 * comm.rank, MPI.INT, MPI.INT.Create_resized(0, 4 * comm.size).Commit())
    fh.Write_all(data)
    back = np.zeros_like(data)
    fh.Seek(0)
    fh.Read_all(back)
    assert np.array_equal(back, data), name
    fh.Close()
    whole = np.fromfile(folder / name, np.int32)
    assert np.array_equal(whole, np.arange(400000 * comm.size, dtype=np.int32)), name
    assert np.array_equal(np.fromfile(own, np.uint8), pattern), f"{name}: the program's own file was written"
    comm.Barrier()

round_trip("named", 65536)
os.environ["TMPDIR"] = "/dev/shm"
remount("1g")
used = os.statvfs("/dev/shm")
remount((used.f_blocks - used.f_bfree) * used.f_frsize + (1 << 20))
round_trip("full", 1 << 20)
remount("1g")
round_trip("room", 1 << 20)
hide()
round_trip("apart", 1 << 21)
if comm.rank == 0:
    print("verified")
"""


def needs_namespaces(*command: str) -> None:
    """Skip where this machine does not let us have namespaces of our own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("no namespaces: not root, or no unshare")
    done = subprocess.run([*command, "true"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"no namespaces: {done.stderr.strip()}")


def records(path: pathlib.Path) -> dict[str, dict[str, object]]:
    """Return the statistics of every file, by its name."""
    lines = json_lines(path)
    return {pathlib.Path(line["path"]).name: line for line in lines if line["kind"] == "file"}


@pytest.mark.parametrize("ranks_per_node", [0, *slow(2)])
def test_containers(extension: str, tmp_path: pathlib.Path, ranks_per_node: int) -> None:
    """One process-id namespace a rank: named memory takes the place of descriptors; without room or names, native."""
    needs_namespaces("unshare", "--mount")
    needs_namespaces(*OWN_PIDS)
    script, statistics = tmp_path / "program.py", tmp_path / "stats.jsonl"
    script.write_text(CONTAINERS, encoding="utf-8")
    environment = base_environment() | {
        "OMPI_MCA_btl": "tcp,self",  # its shared memory wants one process-id namespace...
        "MPIR_CVAR_CH4_CMA_ENABLE": "0",  # ...and so do MPICH's copies between processes
        "MPIOX_HINTS": "*:mpiox_exchange=two_phase:cb_nodes=4",
        "MPIOX_RANKS_PER_NODE": str(ranks_per_node),
        "MPIOX_STATS": "1",
        "MPIOX_STATS_FILE": str(statistics),
    }
    own_shm = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1g none /dev/shm && exec "$@"', "sh"]
    ranks = [str(launcher()), "-n", "4", *OWN_PIDS, sys.executable, str(script), str(tmp_path)]
    launch = run_bounded([*own_shm, *ranks], env=environment, timeout_s=90)
    assert "verified" in launch.stdout, launch.describe()
    found = records(statistics)
    assert {name for name, record in found.items() if record["collective_writes"] == 1} == {"named", "room"}
    assert "full" in str(found["full"]["reason"]), found["full"]
    assert found["apart"]["reason"] == "native: ranks of a node cannot share memory", found["apart"]
