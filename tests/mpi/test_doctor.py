"""mpiio-ext doctor in jobs: one report of all ranks, under both MPIs, and nothing hangs where ranks do."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from support import hosts
from support.cbuild import mpi_program
from support.launch import Launch, base_environment, launcher, mpi_run, run_bounded
from support.marks import slow

pytestmark = pytest.mark.mpi

DOCTOR = [str(pathlib.Path(sys.prefix) / "bin" / "mpiio-ext"), "doctor"]
#: A rank that does not come: it sleeps, and the others wait for it in MPI_Init.
ABSENT = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && exec sleep 300; exec "$@"'


def report(launch: Launch) -> dict[str, Any]:
    """Return the one report of a job."""
    start = launch.stdout.index("{\n")
    found, _ = json.JSONDecoder().raw_decode(launch.stdout[start:])
    assert launch.stdout.count('"checks"') == 1, "more than one rank has printed"
    return dict(found)


def checks(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["key"]: item for item in found["checks"]}


@pytest.mark.both
@pytest.mark.parametrize("ranks", [*slow(1), 4, *slow(2)])
def test_job(ranks: int, tmp_path: pathlib.Path, family: str) -> None:
    launch = mpi_run([*DOCTOR, "--json", "--timeout", "120", "--path", str(tmp_path)], ranks, timeout_s=300)
    found = report(launch)
    of = checks(found)
    assert found["ranks"] == ranks
    errors = [item for item in found["checks"] if item["state"] == "error"]
    assert not errors and launch.returncode == 0
    assert of["mpi.start"]["facts"] == {"size": ranks, "asked": ranks, "finalized": True}
    assert of["job.agreement"]["facts"]["ranks"] == ranks and of["job.agreement"]["state"] == "ok"
    assert of["job.agreement"]["facts"]["hosts"] == 1
    assert of["library"]["facts"]["family"] == family
    facts = of["mpi.launcher"]["facts"]
    assert facts["family"] == family and facts["job"] is True
    assert of["io.round_trip"]["facts"]["right"] is True and of["io.round_trip"]["facts"]["own"] is True
    assert of["mpi.spawn"]["state"] == "ok"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.both
def test_alone(tmp_path: pathlib.Path) -> None:
    """Without a launcher, with a program; lines for people, one head and one end."""
    app = mpi_program("writes")
    command = [*DOCTOR, "--timeout", "120", "--path", str(tmp_path), "--", str(app), "data"]
    launch = run_bounded(command, env=base_environment(), timeout_s=300)
    lines = launch.stdout.splitlines()
    assert lines[0].startswith("mpiio_ext ") and "✗ 0" in lines[-1]
    assert [line for line in lines if line.startswith("✓ program.under")]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["-n", "--no-such-option"])
def test_launcher_of_the_command_line(option: str, tmp_path: pathlib.Path) -> None:
    """Its ranks are examined, all of them; where it starts none, this process alone is, and a line says so."""
    app = mpi_program("writes")
    command = [*DOCTOR, "--json", "--no-spawn", "--timeout", "120", "--path", str(tmp_path)]
    command += ["--", str(launcher()), option, "2", str(app), "data"]
    found = report(run_bounded(command, env=base_environment(), timeout_s=300))
    of, ranks = checks(found), 2 if option == "-n" else 1
    assert of["mpi.start"]["facts"] == {"size": ranks, "asked": 2 if ranks == 2 else None, "finalized": True}
    assert of["job.agreement"]["facts"]["ranks"] == ranks and of["io.round_trip"]["state"] == "ok"
    assert ("job.started" in of) == (ranks == 1) and "mpi.spawn" not in of
    assert list(tmp_path.iterdir()) == []


def test_program_has_the_mpi_of_mpi4py(tmp_path: pathlib.Path) -> None:
    """Both resolve to the same file: nothing is said of another one."""
    app = mpi_program("writes")
    command = [*DOCTOR, "--json", "--no-spawn", "--timeout", "120", "--path", str(tmp_path), "--", str(app)]
    of = checks(report(run_bounded(command, env=base_environment(), timeout_s=300)))
    assert of["mpi.version"]["state"] == "ok"
    library = pathlib.Path(of["program.mpi"]["facts"]["library"])
    assert of["mpi.version"]["facts"]["libraries"] == [str(library.resolve())]


def test_wishes_are_kept(tmp_path: pathlib.Path) -> None:
    command = [*DOCTOR, "--json", "--no-write", "--no-spawn", "--timeout", "120", "--path", str(tmp_path)]
    of = checks(report(run_bounded(command, env=base_environment(), timeout_s=300)))
    assert "io.round_trip" not in of and "mpi.spawn" not in of and "job.agreement" in of


def test_error_makes_the_exit_status_1() -> None:
    command = [*DOCTOR, "--no-write", "--no-spawn", "--timeout", "120", "--", "/nothing/here"]
    launch = run_bounded(command, env=base_environment(), timeout_s=300, check=False)
    assert launch.returncode == 1 and "✗ program.found" in launch.stdout


def test_file_left_to_the_mpi_library_is_told(tmp_path: pathlib.Path) -> None:
    command = [*DOCTOR, "--json", "--no-spawn", "--timeout", "120", "--path", str(tmp_path)]
    launch = mpi_run(command, 2, env={"MPIOX_HINTS": "*:mpiox_enable=false"}, timeout_s=300)
    trip = checks(report(launch))["io.round_trip"]
    assert trip["state"] == "warning" and trip["facts"]["right"] is True and trip["facts"]["own"] is False


@pytest.mark.slow
def test_rank_that_does_not_come(tmp_path: pathlib.Path) -> None:
    """Rank 0 says that MPI_Init has not returned, after the limit, and the job ends."""
    command = ["sh", "-c", ABSENT, "sh", *DOCTOR, "--json", "--timeout", "8", "--path", str(tmp_path)]
    launch = mpi_run(command, 2, timeout_s=150, check=False)
    assert not launch.timed_out
    found = checks(report(launch))
    assert found["mpi.start"]["state"] == "error" and "no answer within 8 s" in found["mpi.start"]["text"]


@pytest.mark.both
def test_launcher_of_another_mpi(family: str) -> None:
    """Every rank is alone, each as the first of one: rank 0 by the launcher's number says so, the other is silent."""
    names = {"openmpi": ("PMI_SIZE", "PMI_RANK"), "mpich": ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")}[family]
    outputs = []
    for rank in ("0", "1"):
        environment = base_environment() | dict(zip(names, ("2", rank), strict=True))
        command = [*DOCTOR, "--json", "--no-write", "--no-spawn", "--timeout", "120"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
        outputs.append(done.stdout)
    found = checks(json.loads(outputs[0]))["mpi.start"]
    assert found["state"] == "error" and "started 2 ranks, MPI sees 1" in found["text"]
    assert outputs[1] == ""


def test_job_that_is_ended_says_what_is_known(tmp_path: pathlib.Path) -> None:
    """A launcher that ends the job sends SIGTERM; the report so far is printed, whole."""
    command = ["timeout", "-s", "TERM", "4", *DOCTOR, "--json", "--timeout", "120", "--path", str(tmp_path)]
    slow = tmp_path / "mpirun"
    slow.write_text("#!/bin/sh\nsleep 300\n")
    slow.chmod(0o755)
    environment = base_environment()
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    launch = run_bounded(command, env=environment, timeout_s=120, check=False)
    found = json.loads(launch.stdout)
    assert found["state"] == "error" and found["checks"][0]["key"] == "library"


def test_two_hosts(extension: str) -> None:
    """Hosts are compared, and a folder that only one of them has is no place for the program's files."""
    hosts.require()
    with hosts.cluster(2) as cluster:
        command = [*DOCTOR, "--json", "--no-spawn", "--timeout", "120", "--path"]
        launch = cluster.run([*command, str(cluster.folder)], 2, 1, preload=False, timeout_s=300, check=False)
        of = checks(report(launch))
        assert of["job.agreement"]["facts"]["hosts"] == 2 and of["job.agreement"]["state"] == "ok"
        assert of["io.round_trip"]["facts"]["right"] is True
        launch = cluster.run([*command, "/dev/shm"], 2, 1, preload=False, timeout_s=300, check=False)
        trip = checks(report(launch))["io.round_trip"]
        assert trip["state"] == "error" and "does not see the file" in trip["text"]
        assert launch.returncode != 0
