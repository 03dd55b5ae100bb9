"""Programs that print nothing, and whose reader of standard error has gone: lines of the library do them no harm."""

from __future__ import annotations

import pathlib
import sys

import pytest

from mpiio_ext._load import get_tracer
from support.launch import mpi_run, preload_environment

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.usefixtures("extension")]
RANKS, BYTES = 2, 1 << 16
RUN = [sys.executable, "-m", "mpiio_ext", "run"]

#: Every rank's standard error is a pipe whose reader has ended.
UNREAD = 'exec 2> >(exit 0); wait $!; exec "$@"'
WRITE = f"""
import signal, sys
from mpi4py import MPI
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in a program in C
fh = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY)
fh.Write_at_all(MPI.COMM_WORLD.rank * {BYTES}, bytes([65 + MPI.COMM_WORLD.rank]) * {BYTES})
fh.Close()
"""


@pytest.mark.parametrize("delegates", [False, True])
def test_nobody_reads_it(tmp_path: pathlib.Path, delegates: bool) -> None:
    """Rank 0 prints a hint without effect, statistics and the name of a page; or a delegate's cache, and the tracer."""
    words = [*RUN, "-H", "mpiox_close=staged", "--stats", "--report", str(tmp_path / "page.html"), "--"]
    if delegates:
        preload = f"LD_PRELOAD={get_tracer()}:{preload_environment()['LD_PRELOAD']}"
        words = [*RUN, "-H", "mpiox_delegates=1", "-H", "mpiox_delegate_cache_dir=/proc/nothing", "--stats", "--"]
        words += ["env", "MPIOX_TRACE_DIR=/proc/nothing", preload]
    program = [*words, sys.executable, "-c", WRITE, str(tmp_path / "file")]
    read = mpi_run(program, RANKS, timeout_s=60)
    lines = ["mpiox_delegate_cache_dir=", "mpiio_ext trace: "] if delegates else ["mpiox_close=staged ", "page.html: "]
    assert all(line in read.stderr for line in [*lines, "close"]), read.describe()
    (tmp_path / "file").unlink()
    mpi_run(["bash", "-c", UNREAD, "bash", *program], RANKS, env={"MPIOX_NOTHING": "reported by run"}, timeout_s=60)
    assert (tmp_path / "file").read_bytes() == b"".join(bytes([65 + rank]) * BYTES for rank in range(RANKS))
