"""`mpiio-ext tune` on real programs: bad hints are beaten, failures end with one line and a status, Ctrl-C cleanly."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import uuid

import pytest

from support.cbuild import mpi_program
from support.launch import MARKER, Launch, base_environment, end_marked, launcher, marked_processes, run_bounded
from support.parts import require

require("optuna", "scipy")

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

COMMAND = str(pathlib.Path(sys.prefix) / "bin" / "mpiio-ext")
#: Every request of the library waits, so that settings differ by their number of requests on any machine.
SLOW_REQUESTS = {"MPIOX_FAULT": "op=any,delay_ms=10"}


def btio(path: pathlib.Path, *more: str, ranks: int = 4) -> list[str]:
    return [str(launcher()), "-n", str(ranks), os.fspath(mpi_program("btio_like")), str(path), *more]


def tune(folder: pathlib.Path, *words: str, env: dict[str, str] | None = None, timeout_s: float = 120.0) -> Launch:
    return run_bounded(
        [COMMAND, "tune", *words], env=base_environment() | (env or {}), timeout_s=timeout_s, cwd=folder, check=False
    )


def budget_of(program: list[str], env: dict[str, str] | None = None) -> str:
    """Return a budget for the fourteen runs that a decision by two pairs takes, on a machine that others load."""
    slowest_s = 0.0
    for _ in range(3):
        begin_s = time.monotonic()
        run_bounded([COMMAND, "run", "--", *program], env=base_environment() | (env or {}), timeout_s=60.0)
        slowest_s = max(slowest_s, time.monotonic() - begin_s)
    return f"{40 * slowest_s:.1f}s"


def one_line(launch: Launch) -> str:
    """Return the only line on standard error; nothing else may be printed."""
    assert not launch.timed_out, launch.describe()
    assert launch.returncode != 0 and launch.stdout == "", launch.describe()
    assert launch.stderr.count("\n") == 1 and launch.stderr.startswith("mpiio-ext: "), launch.describe()
    return launch.stderr


@pytest.mark.parametrize("words", [(), ("--read", "--verify")])
def test_the_program_of_these_tests(tmp_path: pathlib.Path, words: tuple[str, ...]) -> None:
    """What it writes it reads back, with and without the library."""
    sizes = []
    for preload in ("1", ""):
        command = btio(tmp_path / "file", "13", "3", *words)
        launcher = [COMMAND, "run", "--", *command] if preload else command
        done = run_bounded(launcher, env=base_environment(), timeout_s=60.0)
        assert done.stdout.startswith("write 0.3 MB") and ("read 0.3 MB" in done.stdout) == bool(words)
        assert ("verified: 0 wrong numbers" in done.stdout) == ("--verify" in words)
        sizes.append((tmp_path / "file").stat().st_size)
    assert sizes == [13**3 * 40 * 3] * 2


@pytest.mark.slow
def test_a_bad_hints_file_is_beaten(tmp_path: pathlib.Path) -> None:
    """Dozens of requests of 32 KiB, one after the other, against a few: whatever wins replaces the tiny buffer."""
    (tmp_path / "bad.hints").write_text("# mine\ncb_nodes = 1\ncb_buffer_size = 32k\n")
    program = btio(tmp_path / "file", "22", "1")
    budget = budget_of(program, SLOW_REQUESTS | {"MPIOX_HINTS_FILE": str(tmp_path / "bad.hints")})
    words = ["--budget", budget, "--trials", "1", "--confidence", "0.5", "--metric", "io"]
    words += ["--hints-file", "bad.hints", "-o", "new.hints", "--json"]
    done = tune(tmp_path, *words, "--", *program, env=SLOW_REQUESTS)
    assert done.returncode == 0, done.describe()
    found = json.loads(done.stdout)
    assert found["runs"][0]["phase"] == "baseline" and found["runs"][0]["hints"] == {}
    own = {item["name"]: item["value"] for item in found["own_hints"]}
    assert own == {"cb_nodes": "1", "cb_buffer_size": "32768"}
    assert [(item["path"], item["bytes"]) for item in found["files"]] == [(str(tmp_path / "file"), 22**3 * 40)]
    assert found["verdict"] == "wins", done.describe()
    assert found["evidence"]["low"] > 1
    assert found["hints"]["cb_buffer_size"] == "0"  # the only setting that was tried: the library's choice
    assert "cb_buffer_size=32768 (from MPIOX_HINTS_FILE) lost to the library's choice" in done.stderr
    environment = base_environment() | {"MPIOX_HINTS_FILE": str(tmp_path / "new.hints")}
    check = run_bounded([COMMAND, "hints", "--path", str(tmp_path / "file"), "--json"], env=environment, timeout_s=30)
    force = {item["name"]: item["value"] for item in json.loads(check.stdout)["hints"]}
    assert all(force[name] == value for name, value in found["hints"].items())
    text = (tmp_path / "new.hints").read_text()
    assert "times as fast" in text and "pairs of runs" in text and "# mine" in text
    logs = [path.suffix for path in (tmp_path / "new.hints.log").iterdir()]
    kept = [run for run in found["runs"] if run["phase"] in ("baseline", "confirm")]
    assert set(logs) == {".log", ".stats", ".html"}
    page = (tmp_path / "new.hints.log" / "tuning.html").read_text(encoding="utf-8")
    assert "times as fast" in page and f"{len(found['runs'])} runs of" in page
    assert (logs.count(".log"), logs.count(".stats")) == (len(found["runs"]), len(kept))


@pytest.mark.both
def test_a_program_that_hardly_accesses_data_is_judged_by_that(tmp_path: pathlib.Path) -> None:
    """Starting a rank takes longer by far than 88 KB: the MPI library, whose calls are not timed, is left out."""
    program = btio(tmp_path / "file", "13", "1", ranks=1)
    words = ["--budget", budget_of(program), "--trials", "2", "--confidence", "0.5", "--json"]
    done = tune(tmp_path, *words, "--", *program)
    assert done.returncode == 0, done.describe()
    found = json.loads(done.stdout)
    assert found["metric"].startswith("seconds inside data access") and "native settings are left out" in done.stderr
    assert found["metric_reason"] in done.stderr
    assert len(found["runs"]) > 1 and all(run["hints"].get("mpiox_enable") != "false" for run in found["runs"])


def test_a_budget_that_a_loaded_machine_uses_up(tmp_path: pathlib.Path) -> None:
    """The run that there was is reported, with the budget that would do; that is no error."""
    code = (
        "import sys, time; from mpi4py import MPI; "
        "f = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_WRONLY); "
        "f.Write_at(0, bytes(100000)); f.Close(); time.sleep(8)"
    )
    program = [str(launcher()), "-n", "1", sys.executable, "-c", code, str(tmp_path / "file")]
    done = tune(tmp_path, "--budget", "100s", "--", *program, timeout_s=240)
    assert done.returncode == 0, done.describe()
    words = r"no decision: the budget of 100 s is too short: a run takes .* use --budget \d+s"
    assert re.search(words, done.stdout), done.describe()
    assert done.stdout.startswith("1 run of 1 setting in "), done.describe()
    assert not (tmp_path / "tuned.hints").exists() and (tmp_path / "tuned.hints.log" / "tuning.html").is_file()


def test_a_program_that_fails(tmp_path: pathlib.Path) -> None:
    text = one_line(tune(tmp_path, "--", *btio(tmp_path / "missing" / "file")))
    assert "fails as it is" in text and "exit status" in text
    assert not (tmp_path / "tuned.hints").exists()


def test_a_program_that_is_not_there(tmp_path: pathlib.Path) -> None:
    done = tune(tmp_path, "--", "/nowhere/mpirun-of-mine", "-n", "2", "app")
    assert "cannot execute /nowhere/mpirun-of-mine" in one_line(done) and done.returncode == 127


def test_no_space(tmp_path: pathlib.Path) -> None:
    done = tune(tmp_path, "--", *btio(tmp_path / "file"), env={"MPIOX_FAULT": "op=write,errno=ENOSPC"})
    assert "space" in one_line(done).lower() and done.returncode != 0


def test_a_killed_rank(tmp_path: pathlib.Path) -> None:
    program = [os.fspath(mpi_program("killed")), str(tmp_path / "file"), "kill", "between", "1"]
    text = one_line(tune(tmp_path, "--", str(launcher()), "-n", "3", *program))
    assert "fails as it is" in text and ("SIGKILL" in text or "signal 9" in text.lower() or "exit status 9" in text)


def test_a_program_without_files(tmp_path: pathlib.Path) -> None:
    program = [str(launcher()), "-n", "2", sys.executable, "-c", "from mpi4py import MPI"]
    assert "no file through MPI-IO" in one_line(tune(tmp_path, "--", *program))


def test_ctrl_c_writes_what_is_known(tmp_path: pathlib.Path) -> None:
    marker = uuid.uuid4().hex
    command = [COMMAND, "tune", "--json", "--", *btio(tmp_path / "file", "13", "1")]
    with (tmp_path / "log").open("wb") as log, (tmp_path / "runs.json").open("wb") as runs:
        environment = {**base_environment(), MARKER: marker}
        # Whoever has started the tests in the background of a shell has made them ignore the signal.
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=tmp_path,
            stdout=runs,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            deadline_s = time.monotonic() + 40
            while not (tmp_path / "tuned.hints.log" / "0002.log").exists() and time.monotonic() < deadline_s:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 130, (tmp_path / "log").read_text()
            assert marked_processes(marker) == []
        finally:
            end_marked(marker, process)
    found = json.loads((tmp_path / "runs.json").read_text())
    assert found["interrupted"] and found["verdict"] == "unconfirmed" and len(found["runs"]) >= 2
    assert not (tmp_path / "tuned.hints").exists()
