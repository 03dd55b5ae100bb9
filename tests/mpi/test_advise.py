"""`mpiio-ext advise` on real programs, and `mpiio-ext tune` on workload paths: what is done, told, and left behind."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys

import pytest

from mpiio_ext.pioneer.path import WorkloadPath
from support.cbuild import mpi_program, slow_storage
from support.launch import Launch, base_environment, launcher, run_bounded
from support.parts import require
from support.pioneer_paths import EVERYTHING, save

require("optuna", "scipy")

pytestmark = [pytest.mark.mpi, pytest.mark.usefixtures("extension")]

COMMAND = str(pathlib.Path(sys.prefix) / "bin" / "mpiio-ext")
#: As few runs as a decision takes.
SHORT = ["--trials", "1", "--confidence", "0.5", "--budget", "20m"]


def command(folder: pathlib.Path, *words: str, timeout_s: float = 300.0, **variables: str) -> Launch:
    env = base_environment() | variables
    return run_bounded([COMMAND, *words], env=env, timeout_s=timeout_s, cwd=folder, check=False)


def btio(path: pathlib.Path) -> list[str]:
    return [str(launcher()), "-n", "4", os.fspath(mpi_program("btio_like")), str(path), "13", "3"]


def one_line(launch: Launch) -> str:
    """Return the only line on standard error, but for that of files that are not recorded."""
    assert not launch.timed_out, launch.describe()
    assert launch.returncode != 0, launch.describe()
    lines = [line for line in launch.stderr.splitlines() if "files of the system, such as" not in line]
    assert len(lines) == 1 and lines[0].startswith("mpiio-ext: "), launch.describe()
    return launch.stderr


def test_hints_from_one_run(tmp_path: pathlib.Path) -> None:
    """The path is that of the program, is carried out beside its file, and only a proven gain is kept, and checked."""
    (tmp_path / "data").mkdir()
    program = btio(tmp_path / "data" / "out")
    launch = command(tmp_path, "advise", *SHORT, "--check", "--json", "--", *program)
    assert launch.returncode == 0, launch.describe()
    assert f"most data in {tmp_path}/data/out" in launch.stderr, launch.describe()
    assert [item.name for item in (tmp_path / "data").iterdir()] == ["out"]  # the scratch folder is gone
    path = WorkloadPath.load(tmp_path / "advised.hints.log" / "path.parquet")
    names = path.table["operation"].to_pylist()
    assert [names.count(f"MPI_File_{name}") for name in ("open", "set_view", "write_at_all", "close")] == [1, 1, 3, 1]
    assert path.info.members == ((0,), (1,), (2,), (3,))
    found = json.loads(launch.stdout)
    assert found["runs"][0]["phase"] == "baseline"
    assert {"name": "mpiox_enable", "value": "false", "source": "MPIOX_HINTS"} in found["own_hints"], found["own_hints"]
    assert "pioneer" in found["command"]
    assert found["advise"]["command"] == program
    won = found["verdict"] == "wins"
    assert (tmp_path / "advised.hints").exists() == won
    assert (found["advise"]["check"] is not None) == won
    if won:
        text = (tmp_path / "advised.hints").read_text()
        assert text.startswith("# promised: the calls of the path take "), text
        assert "# measured for the program: " in text
        assert "measured for the program: " in launch.stderr
        again = command(tmp_path, "run", "--hints-file", "advised.hints", "--", *program)
        assert again.returncode == 0, again.describe()


def test_programs_that_cannot_be_advised(tmp_path: pathlib.Path) -> None:
    """One line says why: no MPI-IO, a failure of its own with its status, a time limit, no program."""
    quiet = [str(launcher()), "-n", "2", sys.executable, "-c", "from mpi4py import MPI"]
    assert "moves no data through MPI-IO" in one_line(command(tmp_path, "advise", "--", *quiet))
    broken = [str(launcher()), "-n", "2", sys.executable, "-c", "import sys; from mpi4py import MPI; sys.exit(7)"]
    launch = command(tmp_path, "advise", "--", *broken)
    assert "the program fails as it is, under the tracer" in one_line(launch)
    assert launch.returncode == 7
    slow = [str(launcher()), "-n", "1", sys.executable, "-c", "import time; time.sleep(60)"]
    text = one_line(command(tmp_path, "advise", "--trace-limit", "1s", "--", *slow))
    assert "did not end within 1 s" in text
    launch = command(tmp_path, "advise", "--", str(launcher()), "-n", "1", "./no-such-program")
    assert launch.returncode == 2, launch.describe()
    assert "where does the program begin?" in launch.stderr
    launch = command(tmp_path, "advise", "--pairs", "3", "--", *quiet)
    assert "--pairs needs --check" in launch.stderr, launch.describe()
    assert not (tmp_path / "advised.hints").exists()


@pytest.mark.slow
def test_a_short_budget_says_what_it_takes(tmp_path: pathlib.Path) -> None:
    """After the traced run, of a program whose least part takes too long; the scratch folder is gone all the same."""
    (tmp_path / "data").mkdir()
    slow = {"LD_PRELOAD": slow_storage(), "SLOW_STORAGE_PATH": str(tmp_path / "data"), "SLOW_STORAGE_US": "3000000"}
    text = one_line(command(tmp_path, "advise", "--budget", "30s", "--", *btio(tmp_path / "data" / "out"), **slow))
    assert "the budget of 30 s is too short: " in text
    assert int(re.search(r"use --budget ([0-9]+)s at least", text)[1]) > 30  # type: ignore[index]
    assert [item.name for item in (tmp_path / "data").iterdir()] == ["out"]


@pytest.mark.slow
def test_a_short_budget_is_enough_for_a_short_program(tmp_path: pathlib.Path) -> None:
    """A minute, for a program of a second: a result, by ranks that start once."""
    launch = command(tmp_path, "advise", "--budget", "60s", "--json", "--", *btio(tmp_path / "out"))
    assert launch.returncode == 0, launch.describe()
    lines = launch.stderr.splitlines()
    assert lines[0].startswith("budget: 60 s, of which a start of 4 ranks takes about "), launch.describe()
    assert lines[1].startswith("traced: ")
    found = json.loads(launch.stdout)
    ended = [run for run in found["runs"] if run["status"] == "ok"]
    assert found["spent_s"] <= 61 and len({json.dumps(run["hints"]) for run in ended}) > 2, found["runs"]
    served = [run for run in ended if not run["hints"].get("mpiox_delegates")]
    assert "MPIOX_HINTS" in {hint["source"] for hint in found["own_hints"]}
    logs = sorted((tmp_path / "advised.hints.log").glob("[0-9]*.log"))
    ends = [log for log in logs if "calls in " in log.read_text()]
    assert len(served) > 2 and len(ends) >= len(ended)


def test_a_budget_that_holds_nothing_is_refused_before_anything_runs(tmp_path: pathlib.Path) -> None:
    text = one_line(command(tmp_path, "advise", "--budget", "0.1s", "--", *btio(tmp_path / "out")))
    assert "budget of 0.1 s is too short" in text and "use --budget " in text
    assert not (tmp_path / "out").exists() and not (tmp_path / "advised.hints.log" / "trace").exists()


def test_orders_are_carried_out_like_starts(tmp_path: pathlib.Path) -> None:
    """Each has its own hints, and what it says ends with the mark and a status; the end of the input ends the ranks."""
    save(EVERYTHING, tmp_path / "all.parquet")
    orders = [
        {"set": {"MPIOX_HINTS": hints, "MPIOX_STATS_FILE": str(tmp_path / f"{number}.stats")}, "unset": []}
        for number, hints in enumerate(["mpiox_enable=true", "mpiox_partition=static_cyclic", ""])
    ]
    (tmp_path / "orders").write_text("".join(json.dumps(order) + "\n" for order in orders))
    words = [COMMAND, "run", "--", sys.executable, "-m", "mpiio_ext", "pioneer", "replay"]
    words += [str(tmp_path / "all.parquet"), str(tmp_path / "here"), "--orders"]
    line = " ".join([str(launcher()), "-n", "3", *words])
    launch = run_bounded(
        ["sh", "-c", f"{line} < orders"],
        env={**base_environment(), "MPIOX_STATS": "1"},
        timeout_s=120,
        cwd=tmp_path,
        check=False,
    )
    assert launch.returncode == 0, launch.describe()
    assert launch.stdout.count("mpiio-ext: end of order 0\n") == 1 + 3, launch.describe()
    hints = [json.loads((tmp_path / f"{number}.stats").read_text().splitlines()[0])["hints"] for number in range(3)]
    assert hints[0]["mpiox_enable"]["value"] == "true" and "mpiox_partition" not in hints[0]
    assert hints[1]["mpiox_partition"]["value"] == "static_cyclic" and "mpiox_enable" not in hints[1]
    assert "mpiox_partition" not in hints[2] and "mpiox_enable" not in hints[2]
