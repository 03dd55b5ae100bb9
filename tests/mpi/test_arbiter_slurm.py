"""The arbiter beside a scheduler, with a running job: it is listed, opens its first file, and has ended."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from mpiio_ext.delegates.arbiter import mapfile
from support.launch import base_environment, launcher

pytestmark = pytest.mark.mpi

PROGRAM = pathlib.Path(__file__).parents[1] / "programs" / "delegates_remapped.py"
SLURM = {"SLURM_JOB_ID": "4711"}


def wait(what: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def test_listed_job_ended(extension: str, tmp_path: pathlib.Path) -> None:
    """Counted from the first list on, then by its own word; when Slurm ends it its claim ends, though it writes on."""
    folder, stop = tmp_path / "arbiter", tmp_path / "stop"
    command = [sys.executable, "-m", "mpiio_ext", "delegates", "arbiter"]

    def report(state: str) -> None:
        words = [*command, "slurm-watch", "--dir", str(folder), "--input", "-", "--part"]
        listed = f"JobIDRaw|JobName|State|NNodes\n4711|flow|{state}|2\n"
        subprocess.run(words, input=listed, text=True, check=True, timeout=120)

    def jobs() -> list[str]:
        return list(mapfile.read(folder).jobs)

    with (tmp_path / "log").open("w") as log:
        options = f"--dir {folder} --io-nodes 2 --policy size --reserve 600 --lease 600"
        arbiter = subprocess.Popen([*command, *options.split()], stdout=log, stderr=log)
        job = None
        try:
            wait(lambda: mapfile.read(folder).generation > 0)
            report("RUNNING")
            wait(lambda: jobs() == ["slurm-4711"])
            hints = f"*:mpiox_delegates=2:mpiox_delegate_mode=thread:mpiox_arbiter={folder}:mpiox_arbiter_name=flow"
            words = [sys.executable, str(PROGRAM), str(tmp_path / "file"), "1", "0", str(stop)]
            job = subprocess.Popen(
                [str(launcher()), "-n", "2", *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**base_environment(), **SLURM, "MPIOX_HINTS": hints},
            )
            wait(lambda: len(jobs()) == 1 and jobs() != ["slurm-4711"])
            (announced,) = [path for path in (folder / "jobs").iterdir() if not path.name.startswith(".")]
            assert "program flow\n" in announced.read_text() and "scheduler_job 4711\n" in announced.read_text()
            report("COMPLETED")
            wait(lambda: jobs() == [])
            assert job.poll() is None
            stop.touch()
            out, err = job.communicate(timeout=240)
            found = json.loads(out.splitlines()[-1])
            assert job.returncode == 0 and found["same"] and found["wrong_reads"] == 0, err
        finally:
            if job is not None and job.poll() is None:
                job.kill()
                job.communicate()
            arbiter.send_signal(signal.SIGTERM)
            arbiter.wait(60)
