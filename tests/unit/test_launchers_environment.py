"""The variables that tasks get from launchers that are not here: stand-ins that do what their documents say.

Source. srun(1) (Slurm 22.05 to 25.05), jsrun(1) (IBM JSM), aprun(1) (Cray ALPS), mpiexec of Cray PALS, flux-run(1).
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from mpiio_ext.common import srun
from mpiio_ext.launchers import is_rank, plan

LIBRARY = "/lib/libmpiio_ext.so"
#: Reads options until the program, changes the environment, and prints it as a task would have it.
STAND_IN = """#!{python}
import argparse, json, os, sys
parser = argparse.ArgumentParser(allow_abbrev=True)
name = os.path.basename(sys.argv[0])
parser.add_argument("-n", "--ntasks", type=int)
parser.add_argument("--mpi")
parser.add_argument("-l", "--label", action="store_true")
parser.add_argument("--external-launcher", action="store_true")
sets = {{"jsrun": ("-E", "--env"), "aprun": ("-e",), "mpiexec": ("--env",), "flux": ("--env",)}}.get(name)
words = sys.argv[1:]
if name == "flux":
    assert words.pop(0) == "run", words
tasks = dict(os.environ)
if name == "srun":
    parser.add_argument("--export", default=os.environ.get("SLURM_EXPORT_ENV", "ALL"))
else:
    parser.add_argument(*sets, action="append", dest="sets", default=[])
parser.add_argument("program", nargs=argparse.REMAINDER)
options = parser.parse_args(words)
if name == "srun":
    items = [] if options.export.upper() in ("NONE", "NIL") else [each for each in options.export.split(",") if each]
    items = items[: next((at for at, each in enumerate(items) if each.upper() == "NONE"), len(items))]
    every = any(each.upper() == "ALL" for each in items)
    tasks = {{key: value for key, value in os.environ.items() if every or key.startswith("SLURM_")}}
    for each in items:
        key, by, value = each.partition("=")
        if by and not (every and key in os.environ):
            tasks[key] = value
        elif key in os.environ:
            tasks[key] = os.environ[key]
else:
    for each in options.sets:
        key, by, value = each.partition("=")
        tasks[key] = value
print(json.dumps([options.program, tasks]))
"""


def tasks(
    folder: pathlib.Path, command: list[str], environment: dict[str, str], library: str = LIBRARY
) -> tuple[list[str], dict[str, str]]:
    """Return the program with its arguments, and the environment of its tasks; `library`: "" for no plan."""
    place = folder / ("pals" if command[0] == "mpiexec" else "bin")
    place.mkdir(exist_ok=True)
    path = place / command[0]
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    words, around = [str(path), *command[1:]], environment
    if library:
        settings = {"MPIOX_HINTS": "*:cb_nodes=2"}
        launch = plan(words, library=library, settings=settings, family="openmpi", environment=environment)
        words, around = list(launch.arguments), launch.environment
    done = subprocess.run(words, env=around, capture_output=True, text=True, timeout=60, check=True)
    program, found = json.loads(done.stdout)
    return program, found


AROUND = {"PATH": os.defpath, "AAA": "1", "BBB": "x y"}


@pytest.mark.parametrize("preloaded", [False, True])
@pytest.mark.parametrize("variable", [None, "", "NONE", "AAA", "ALL,FOO=5"])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-n", "2"],
        ["--export=ALL,FOO=1"],
        ["--export=FOO=1,ALL", "-l"],
        ["--export=FOO=1,BBB"],
        ["--export=NONE"],
        ["--export", "NIL", "-n2"],
        ["--mpi", "pmix", "--exp=AAA"],
        ["--export=NONE", "--export=all"],
        ["--export=", "--mpi=pmi2"],
        ["--export=LD_PRELOAD=/lib/darshan.so,AAA"],
        ["--export=ALL,LD_PRELOAD=/lib/darshan.so"],
        ["--export=LD_PRELOAD,MPIOX_HINTS=*:cb_nodes=9"],
        ["--label", "--export=AAA"],
        ["--external-launcher", "--export=AAA"],
        ["--export=NONE,AAA"],
        ["--export=AAA,NONE,BBB"],
    ],
)
def test_tasks_of_srun_have_what_they_would_have_and_the_library(
    options: list[str], variable: str | None, preloaded: bool, tmp_path: pathlib.Path
) -> None:
    """An option of the program that has the same name is the program's."""
    environment = AROUND | ({} if variable is None else {"SLURM_EXPORT_ENV": variable})
    environment |= {"LD_PRELOAD": "/lib/other.so"} if preloaded else {}
    command = ["srun", *options, "./app", "--export=NONE", "-n", "3"]
    program, found = tasks(tmp_path, command, environment)
    assert program == command[-4:]
    _, plain = tasks(tmp_path, command, environment, library="")
    ours = {"LD_PRELOAD": found.pop("LD_PRELOAD"), "MPIOX_HINTS": found.pop("MPIOX_HINTS")}
    before = plain.pop("LD_PRELOAD", "")
    assert ours["MPIOX_HINTS"] == plain.pop("MPIOX_HINTS", "*:cb_nodes=2")
    assert found == plain
    first, *others = ours["LD_PRELOAD"].split(":")
    assert first == LIBRARY and set(before.split(":")) - {""} <= set(others) <= {"/lib/darshan.so", "/lib/other.so"}


def test_each_program_of_srun_has_its_own_option(tmp_path: pathlib.Path) -> None:
    words = ["srun", "-n", "1", "--export=AAA", "./a", ":", "-n", "2", "./b", "x"]
    launch = plan(words, library=LIBRARY, settings={}, family="mpich", environment=AROUND)
    ours = f"LD_PRELOAD={LIBRARY}"
    assert list(launch.arguments) == [
        *("srun", f"--export=AAA,{ours}", "-n", "1", "./a"),
        *(":", f"--export=ALL,{ours}", "-n", "2", "./b", "x"),
    ]


def test_commas_in_quotes_are_no_ends_of_items() -> None:
    items, left = srun.taken_out(["-n1", "--export=A='1,2',B=\"3,4\",C", "./app"], "ALL")
    assert items == ["A='1,2'", 'B="3,4"', "C"] and left == ["-n1", "./app"]


@pytest.mark.parametrize(
    ("launcher", "option"),
    [
        (["jsrun"], ["-E", "LD_PRELOAD=/lib/darshan.so"]),
        (["jsrun"], ["-ELD_PRELOAD=/lib/darshan.so"]),
        (["jsrun"], ["--env", "LD_PRELOAD=/lib/darshan.so"]),
        (["aprun"], ["-e", "LD_PRELOAD=/lib/darshan.so"]),
        (["mpiexec"], ["--env", "LD_PRELOAD=/lib/darshan.so"]),
        (["mpiexec"], ["--env=LD_PRELOAD=/lib/darshan.so"]),
        (["flux", "run"], ["--env=LD_PRELOAD=/lib/darshan.so"]),
    ],
)
@pytest.mark.parametrize("given", [False, True])
def test_launchers_that_pass_the_environment_on(
    launcher: list[str], option: list[str], given: bool, tmp_path: pathlib.Path
) -> None:
    """The launcher itself does not load the library."""
    command = [*launcher, *(option if given else []), "-n", "2", "./app", "-e", "x"]
    program, found = tasks(tmp_path, command, AROUND | {"LD_PRELOAD": "/lib/other.so"})
    assert program == ["./app", "-e", "x"]
    assert found["LD_PRELOAD"].split(":") == [LIBRARY, *["/lib/darshan.so"] * given, "/lib/other.so"]
    assert found["MPIOX_HINTS"] == "*:cb_nodes=2" and found["AAA"] == "1"
    words = [str(tmp_path / "bin" / launcher[0]), *launcher[1:], "./app"]
    (tmp_path / "bin").mkdir(exist_ok=True)
    launch = plan(words, library=LIBRARY, settings={}, family="openmpi", environment={"LD_PRELOAD": "/lib/other.so"})
    assert "LD_PRELOAD" not in launch.environment or launcher == ["mpiexec"]


@pytest.mark.parametrize("launcher", ["/opt/cray/pals/1.2/bin/mpiexec", "aprun", "mpirun"])
def test_each_program_of_a_line_gets_the_library(launcher: str) -> None:
    words = [launcher, "-n", "1", "./a", ":", "-n", "2", "./b"]
    launch = plan(words, library=LIBRARY, settings={}, family="openmpi", environment={})
    ends = [at for at, word in enumerate(launch.arguments) if word in (launcher, ":")]
    assert [launch.arguments[at + 2] for at in ends] == [f"LD_PRELOAD={LIBRARY}"] * 2


def test_options_of_flux_itself_stay_before_its_command() -> None:
    words = ["flux", "-v", "run", "-n", "2", "./app"]
    launch = plan(words, library=LIBRARY, settings={}, family="openmpi", environment={})
    assert launch.arguments == ("flux", "-v", "run", f"--env=LD_PRELOAD={LIBRARY}", "-n", "2", "./app")


def test_steps_of_hydra_share_cores_in_an_allocation() -> None:
    """Else the step of spawned delegates waits for the end of the program's: seen with Slurm 22.05.8."""

    def overlap(**variables: str) -> str | None:
        words, around = (
            ["mpiexec.hydra", "-n", "2", "./app"],
            AROUND | {"MPIOX_HINTS": "*:mpiox_delegates=1"} | variables,
        )
        launch = plan(words, library=LIBRARY, settings={}, family="mpich", environment=around)
        return launch.environment.get("SLURM_OVERLAP")

    assert (overlap(), overlap(SLURM_JOB_ID="7"), overlap(SLURM_JOB_ID="7", SLURM_OVERLAP="0")) == (None, "1", "0")
    assert overlap(SLURM_JOB_ID="7", MPIOX_HINTS="*:cb_nodes=2") is None


def test_a_batch_script_is_no_rank() -> None:
    """sbatch gives its script SLURM_PROCID: a launcher in it starts the ranks."""
    script = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
    assert not is_rank(script) and is_rank(script | {"SLURM_STEP_NUM_TASKS": "8"}) and is_rank({"PMI_RANK": "0"})
