"""Functions of the public interface that start a command return what the command has found."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import pytest

from support.launch import base_environment, run_bounded

pytestmark = pytest.mark.mpi

APP = """
import numpy as np
from mpi4py import MPI

comm, rows = MPI.COMM_WORLD, 2000
mine = MPI.DOUBLE.Create_vector(rows, 16, 16 * comm.size).Commit()
file = MPI.File.Open(comm, "columns.dat", MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Set_view(comm.rank * 128, MPI.DOUBLE, mine)
file.Write_all(np.full(16 * rows, comm.rank, dtype=float))
file.Close()
"""


def found_by(folder: pathlib.Path, expression: str) -> Any:
    """Return the value of an expression in which `app` is the command of a program."""
    (folder / "app.py").write_text(APP)
    app = ["mpirun", "-n", "2", sys.executable, "app.py"]
    program = f"""
import json, os, pathlib
from mpiio_ext import advise, bench, pioneer, tune
os.environ["PATH"] = {str(pathlib.Path(sys.executable).parent)!r} + os.pathsep + os.environ["PATH"]
app = {app!r}
print(json.dumps({expression}, default=str))
"""
    launch = run_bounded([sys.executable, "-c", program], env=base_environment(), timeout_s=400, cwd=folder)
    assert launch.returncode == 0, launch.describe()
    return json.loads(launch.stdout.splitlines()[-1])


def test_bench_returns_a_row_for_each_measurement(extension: str, tmp_path: pathlib.Path) -> None:
    rows = found_by(
        tmp_path,
        """[row.bandwidth.median for row in bench.run(
            ".", launcher=app[:3], workload="interleaved", size="1MiB", block="4KiB", method="native,auto", repeats=1,
            figures=False,
        ).results.rows]""",
    )
    assert len(rows) == 4 and min(rows) > 0


def test_record_returns_the_path_of_a_program(extension: str, tmp_path: pathlib.Path) -> None:
    operations = found_by(tmp_path, 'pioneer.record(app, only="*/columns.dat").table["operation"].to_pylist()')
    assert {"MPI_File_open", "MPI_File_write_all", "MPI_File_close"} <= set(operations)


@pytest.mark.slow
def test_tune_returns_runs_and_verdict(extension: str, tmp_path: pathlib.Path) -> None:
    tuned = found_by(tmp_path, 'tune.run(app, budget="10m", trials=2, confidence=0.5)')
    assert tuned["verdict"] in ("wins", "nothing", "unconfirmed")
    assert tuned["runs"][0]["phase"] == "baseline" and len(tuned["runs"]) >= 3


@pytest.mark.slow
def test_advise_returns_what_it_has_tried(extension: str, tmp_path: pathlib.Path) -> None:
    advised = found_by(tmp_path, 'advise.run(app, budget="20m", trials=1, confidence=0.5)')
    assert advised["advise"]["main_file"].endswith("/columns.dat")
