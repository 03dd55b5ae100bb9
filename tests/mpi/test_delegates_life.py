"""How delegates start and end: every mode, under both MPIs, with whatever dies; nothing of ours stays behind.

What a file holds afterwards is looked at with plain reads by the programs themselves. tests/programs/delegates_life.c
says "ok NAME" or "FAILED NAME" for each of its checks.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import pytest

from support import processes
from support.cbuild import failed_checks, mpi_program
from support.launch import PROGRAMS, Launch, base_environment, launcher, library_path, mpi_run, python_run, run_bounded
from support.marks import slow
from support.processes import Job, shared_memory

pytestmark = pytest.mark.mpi

LIMIT_S = 160.0
#: How long processes may take to be gone after mpirun.
GRACE_S = 40.0
#: What the program of `life` says of one delegate.
DELEGATE = re.compile(r"^delegate (\d+) pid (\d+) node (-?\d+) local (\d)$", re.M)


def hints(mode: str, delegates: str = "2", more: str = "") -> dict[str, str]:
    return {"MPIOX_HINTS": f"mpiox_delegates={delegates}:mpiox_delegate_mode={mode}{more}"}


def life(
    tmp_path: pathlib.Path,
    ranks: int,
    env: Mapping[str, str],
    *action: str,
    check: bool = True,
    preload: bool = True,
    limit_s: float = 60,
) -> Launch:
    """Run delegates_life.c; every process that it has started must be gone, and every check fine."""
    program = [mpi_program("delegates_life"), tmp_path / "file", *action]
    launch = mpi_run(program, ranks, env=env, preload=preload, timeout_s=limit_s, check=check)
    if check:
        assert failed_checks(launch.stdout, 5) == set(), launch.describe()
        assert "ok end" in launch.stdout, launch.describe()
    return launch


def mode_of(launch: Launch) -> str:
    """Return the mode that the delegates were started in."""
    found = re.search(r"^delegates \d+ mode (\w+)$", launch.stdout, re.M)
    assert found is not None, launch.describe()
    return found.group(1)


def nodes_of(launch: Launch) -> list[int]:
    """Return the nodes of the delegates."""
    return [int(node) for _, _, node, _ in DELEGATE.findall(launch.stdout)]


# ---- starting and ending ---------------------------------------------------------------------------------------------


@pytest.mark.both
@pytest.mark.slow_with("1-0-1-nodes0-*", "3-0-50%-nodes1-thread", "4-1-2-nodes2-spawn", "7-3-per_node=2-nodes3-spawn")
@pytest.mark.parametrize("mode", ["spawn", "process", "thread"])
@pytest.mark.parametrize(
    ("ranks", "per_node", "delegates", "nodes"),
    [
        (1, 0, "1", [0]),
        (3, 0, "50%", [0]),
        (4, 1, "2", [0, 2]),
        (7, 3, "per_node=2", [0, 0, 1, 1, 2, 2]),
        *slow((2, 0, "2", [0, 0]), (4, 2, "2", [0, 1])),
    ],
)
def test_modes(
    extension: str, tmp_path: pathlib.Path, mode: str, ranks: int, per_node: int, delegates: str, nodes: list[int]
) -> None:
    """They start in MPI_Init, spread over the nodes, answer every rank, and are gone afterwards."""
    before = shared_memory()
    launch = life(tmp_path, ranks, hints(mode, delegates) | {"MPIOX_RANKS_PER_NODE": str(per_node)}, "end")
    assert mode_of(launch) == mode, launch.describe()
    assert nodes_of(launch) == nodes, launch.describe()
    assert "mpiio_ext" not in launch.stderr, launch.describe()
    assert not shared_memory() - before


@pytest.mark.both
@pytest.mark.parametrize("mode", ["spawn", "process", *slow("thread"), "auto"])
def test_started_by_the_first_file(extension: str, tmp_path: pathlib.Path, mode: str) -> None:
    """A hint for some files only: nothing starts before one of them is opened by all ranks."""
    env = {"MPIOX_HINTS": f"*/file:mpiox_delegates=2,*/file:mpiox_delegate_mode={mode}"}
    launch = life(tmp_path, 3, env, "opened")
    assert mode_of(launch) == ("spawn" if mode == "auto" else mode), launch.describe()
    idle = life(tmp_path, 2, {"MPIOX_HINTS": f"*/other:mpiox_delegates=2,*/other:mpiox_delegate_mode={mode}"}, "end")
    assert "delegates 0 mode none" in idle.stdout, idle.describe()


@pytest.mark.both
@pytest.mark.parametrize("mode", ["spawn", "process", *slow("thread")])
def test_files_of_parts(extension: str, tmp_path: pathlib.Path, mode: str) -> None:
    """Once they are there, files of parts of the ranks use them, too."""
    launch = life(tmp_path, 4, hints(mode) | {"MPIOX_STATS": "1"}, "two")
    assert mode_of(launch) == mode
    assert "delegated_writes" in launch.stderr, launch.describe()


@pytest.mark.both
@pytest.mark.parametrize("mode", ["spawn", "process", *slow("thread")])
def test_hdf5_file_that_is_never_closed(extension: str, parallel_h5py: None, tmp_path: pathlib.Path, mode: str) -> None:
    """HDF5 closes it inside MPI_Finalize: the delegates are still there."""
    name = tmp_path / "data.h5"
    launch = python_run([PROGRAMS / "delegates_unclosed.py", name], 3, env=hints(mode), timeout_s=90)
    assert f"mode {mode}" in launch.stdout, launch.describe()
    code = (
        "import h5py, sys; d = h5py.File(sys.argv[1])['data'][...]; "
        "assert d.tolist() == [[r * 1000 + c for c in range(3)] for r in range(100)]; print('equal')"
    )
    serial = run_bounded([sys.executable, "-c", code, str(name)], env=base_environment(), timeout_s=60)
    assert "equal" in serial.stdout, serial.describe()


# ---- ranks that become delegates -------------------------------------------------------------------------------------


@pytest.mark.both
@pytest.mark.parametrize(
    ("ranks", "delegates", "per_node", "left"),
    [*slow((2, 1, 0, [0])), (7, 3, 3, [0, 1, 3, 4]), *slow((4, 2, 2, [0, 2]))],
)
def test_split(
    extension: str, tmp_path: pathlib.Path, ranks: int, delegates: int, per_node: int, left: list[int]
) -> None:
    """An unchanged script runs on the first ranks of each node; its files go through delegates without any hint."""
    script = [PROGRAMS / "delegates_split.py", tmp_path / "file", "--and", "more"]
    env = {"MPIOX_RANKS_PER_NODE": str(per_node), "MPIOX_STATS": "1"}
    launch = python_run(["-m", "mpiio_ext.delegates", "--split", str(delegates), *script], ranks, env=env, timeout_s=90)
    seen = json.loads(next(line for line in launch.stdout.splitlines() if line.startswith("{")))
    assert len(set(seen.pop("ids"))) == delegates, launch.describe()
    expected = {"ranks": left, "right": True, "mode": "split", "serving": [True] * delegates}
    assert seen == expected | {"arguments": ["--and", "more"]}, launch.describe()
    assert re.search(rf"delegated_writes +{200 * (ranks - delegates)} ", launch.stderr), launch.describe()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--split", "3", str(PROGRAMS / "delegates_split.py"), "file"), "3 of 3 ranks cannot become delegates"),
        (("--split", "1", "no-such.py"), "there is no script 'no-such.py'"),
        (("--split", "1", "-m", "no.such.module"), "there is no module 'no.such.module'"),
    ],
)
def test_split_that_cannot_be(tmp_path: pathlib.Path, words: tuple[str, ...], said: str) -> None:
    """One line for all ranks, and an exit status."""
    launch = python_run(["-m", "mpiio_ext.delegates", *words], 3, timeout_s=60, cwd=tmp_path, check=False)
    assert launch.returncode != 0
    assert launch.stderr.count(said) == 1, launch.describe()
    assert "Traceback" not in launch.stderr, launch.describe()


def test_split_refused(extension: str, tmp_path: pathlib.Path) -> None:
    """A rank must be left; what is refused is said, on every rank, and nobody waits."""
    script = [PROGRAMS / "delegates_split.py", tmp_path / "file"]
    launch = python_run(["-m", "mpiio_ext.delegates", "--split", "3", *script], 3, timeout_s=60, check=False)
    assert not launch.timed_out
    assert launch.returncode != 0
    assert "a rank must be left" in launch.stderr, launch.describe()


# ---- what is refused, and what takes its place -----------------------------------------------------------------------


@pytest.fixture
def bare_library(tmp_path: pathlib.Path) -> str:
    """Return a copy of the library beside which there is no executable."""
    folder = tmp_path / "bare" / "lib"
    folder.mkdir(parents=True)
    return str(shutil.copy(str(library_path()), folder))


@pytest.mark.both
@pytest.mark.parametrize("mode", ["spawn", "auto", "split", "process"])
def test_without_the_executable(extension: str, tmp_path: pathlib.Path, bare_library: str, mode: str) -> None:
    """Threads take its place; a line says so, unless the choice was left to the library."""
    launch = life(tmp_path, 2, hints(mode) | {"LD_PRELOAD": bare_library}, "opened", preload=False)
    assert mode_of(launch) == "thread", launch.describe()
    said = re.findall(r"^mpiio_ext: .*", launch.stderr, re.M)
    assert len(said) == (mode != "auto"), launch.describe()
    assert f"reason no {'spawn' if mode == 'auto' else mode}: " in launch.stdout, launch.describe()
    assert all("mode thread is in force" in line for line in said)


@pytest.mark.both
def test_without_a_launcher(extension: str, tmp_path: pathlib.Path) -> None:
    """A program that was started by hand: its MPI library could not spawn without hanging."""
    program = [str(mpi_program("delegates_life")), str(tmp_path / "file"), "end"]
    env = base_environment() | hints("spawn") | {"LD_PRELOAD": str(library_path())}
    launch = run_bounded(program, env=env, timeout_s=60)
    assert failed_checks(launch.stdout, 5) == set(), launch.describe()
    assert mode_of(launch) == "process"
    assert "the program was not started by mp" in launch.stderr, launch.describe()


@pytest.mark.parametrize("mode", ["spawn", "process", *slow("thread")])
def test_impossible_settings(extension: str, tmp_path: pathlib.Path, mode: str) -> None:
    """A cache that holds no page: no mode can do that; files are accessed without delegates. What it takes is said."""
    launch = life(tmp_path, 3, hints(mode, more=":mpiox_delegate_cache=20k"), "end")
    assert "delegates 0 mode none" in launch.stdout, launch.describe()
    assert launch.stderr.count("files are accessed without them") == 1, launch.describe()
    found = re.search(r"mpiox_delegate_cache=20480 is too small: pages of \d+ bytes need (\d+)", launch.stderr)
    assert found is not None, launch.describe()
    for cache, expected in ((int(found[1]) - 1, "none"), (int(found[1]), mode)):
        again = life(tmp_path, 3, hints(mode, more=f":mpiox_delegate_cache={cache}"), "end")
        assert f"mode {expected}\n" in again.stdout, again.describe()


def test_strange_settings(extension: str, tmp_path: pathlib.Path) -> None:
    """Far more delegates than cores are started, with a warning; a replica of one alone is the disk."""
    many = 8 * (os.cpu_count() or 1) + 1
    if many <= 40:
        launch = life(tmp_path, 2, hints("thread", str(many)), "end")
        assert launch.stderr.count(f"{many} delegates for 2 ranks on ") == 1, launch.describe()
    for interface, warnings in (("nope0,nope1", 1), ("nope0,lo", 0)):
        launch = life(tmp_path, 2, hints("thread", "1", more=f':mpiox_delegate_interface="{interface}"'), "end")
        assert "mode thread\n" in launch.stdout, launch.describe()
        line = f"mpiio_ext: mpiox_delegate_interface={interface}: this host has no such network interface\n"
        assert launch.stderr.count(line) == launch.stderr.count("network interface") == warnings, launch.describe()
    launch = life(tmp_path, 2, hints("thread", "1", more=":mpiox_delegate_ack=replica"), "end")
    assert launch.stderr.count("mpiox_delegate_ack=replica: level disk, since") == 1, launch.describe()


def test_hosts_that_are_none(extension: str, tmp_path: pathlib.Path) -> None:
    """A host that the launcher cannot know would end the job: it is refused before."""
    launch = life(tmp_path, 2, hints("spawn", more=":mpiox_delegate_hosts=no-such-host.invalid"), "end")
    assert mode_of(launch) == "process", launch.describe()
    assert "mpiox_delegate_hosts" in launch.stderr, launch.describe()


@pytest.mark.both
def test_hosts(extension: str, tmp_path: pathlib.Path) -> None:
    """The job's own host by its name."""
    name = os.uname().nodename
    launch = life(tmp_path, 2, hints("spawn", "3", more=f":mpiox_delegate_hosts={name}"), "end")
    assert mode_of(launch) == "spawn", launch.describe()
    assert nodes_of(launch) == [0, 0, 0]


@pytest.mark.both
def test_no_free_slots(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """Open MPI's mpirun would never end after a spawn without slots; they are asked for beyond what there is."""
    if family != "openmpi":
        pytest.skip("MPICH's mpiexec has no slots")
    program = [str(mpi_program("delegates_life")), str(tmp_path / "file"), "end"]
    command = [str(launcher()), "--host", "localhost:2", "-n", "2", "env", f"LD_PRELOAD={library_path()}", *program]
    env = base_environment() | hints("spawn", "3") | {"OMPI_MCA_rmaps_base_oversubscribe": "0"}
    launch = run_bounded(command, env=env, timeout_s=60)
    assert failed_checks(launch.stdout, 5) == set(), launch.describe()
    assert mode_of(launch) == "spawn"


@pytest.mark.both
def test_ranks_without_the_library(extension: str, tmp_path: pathlib.Path) -> None:
    """Some programs of one mpiexec line lack it: there are no delegates, and nobody waits for anybody."""
    program = [str(mpi_program("delegates_life")), str(tmp_path / "file"), "end"]
    with_library = ["env", f"LD_PRELOAD={library_path()}", *program]
    command = [str(launcher()), "-n", "1", *with_library, ":", "-n", "2", *program]
    launch = run_bounded(command, env=base_environment() | hints("thread"), timeout_s=60, check=False)
    assert not launch.timed_out, launch.describe()
    assert "ok end" in launch.stdout, launch.describe()
    assert failed_checks(launch.stdout, 5) == {"ping"}, launch.describe()  # of those that have nothing to ask
    assert "FAILED ping 1 2\n" in launch.stdout


# ---- programs that spawn ---------------------------------------------------------------------------------------------


def with_children(run: Callable[[float], Launch]) -> Launch:
    """Run `children` of delegates_life.c for so many seconds, once more where Open MPI has not started the children.

    Open MPI 4.1 with OpenPMIx 4 now and then loses a spawn (openpmix issue 2735), also without the library: rank 0
    waits in PMIx_Lookup, within MPI_Comm_spawn, for children that were never started.
    """
    launch = run(15)
    if launch.timed_out and "ok spawned" not in launch.stdout:
        launch = run(60)
    assert launch.returncode == 0 and not launch.timed_out, launch.describe()
    assert failed_checks(launch.stdout, 5) == set() and "ok children" in launch.stdout, launch.describe()
    assert "ok end" in launch.stdout, launch.describe()
    return launch


@pytest.mark.both
@pytest.mark.parametrize("mode", ["spawn", "process", *slow("thread")])
def test_program_with_children(extension: str, tmp_path: pathlib.Path, mode: str) -> None:
    """Its children find their slots, start no delegates themselves, and are spoken to as ever."""
    launch = with_children(lambda limit_s: life(tmp_path, 2, hints(mode), "children", check=False, limit_s=limit_s))
    assert mode_of(launch) == mode


@pytest.mark.both
def test_the_programs_heap_is_its_own(extension: str, tmp_path: pathlib.Path) -> None:
    """Blocks of the MPI library's threads, far from all others, do not come out of malloc() since it has spawned."""
    launch = mpi_run([mpi_program("near_heap")], 3, env=hints("spawn"), preload=True, timeout_s=60)
    assert failed_checks(launch.stdout, 1) == set(), launch.describe()


@pytest.mark.both
def test_slots_are_free_again(extension: str, family: str, tmp_path: pathlib.Path) -> None:
    """The program's own children need every slot that is not a rank's."""
    if family != "openmpi":
        pytest.skip("MPICH's mpiexec has no slots")
    program = [str(mpi_program("delegates_life")), str(tmp_path / "file"), "children"]
    command = [str(launcher()), "--host", "localhost:4", "-n", "2", "-x", "MPIOX_HINTS"]
    command += ["-x", f"LD_PRELOAD={library_path()}", *program]
    env = base_environment() | hints("spawn", "2") | {"OMPI_MCA_rmaps_base_oversubscribe": "0"}
    launch = with_children(lambda limit_s: run_bounded(command, env=env, timeout_s=limit_s, check=False))
    assert mode_of(launch) == "spawn"


# ---- deaths ----------------------------------------------------------------------------------------------------------


def job(tmp_path: pathlib.Path, ranks: int, env: Mapping[str, str], *action: str) -> AbstractContextManager[Job]:
    """Start delegates_life.c in the background."""
    program = [mpi_program("delegates_life"), tmp_path / "file", *action]
    command = [str(launcher()), "-n", str(ranks), "env", f"LD_PRELOAD={library_path()}", *map(str, program)]
    return processes.job(command, tmp_path / "log", env)


@pytest.mark.both
@pytest.mark.slow_with("abort-3-1-thread", "kill-3-2-thread", "kill-4-0-spawn")
@pytest.mark.parametrize("mode", ["spawn", "process", "thread"])
@pytest.mark.parametrize(("way", "ranks", "victim"), [("abort", 3, 1), ("kill", 3, 2), ("kill", 4, 0)])
def test_job_that_dies(extension: str, tmp_path: pathlib.Path, mode: str, way: str, ranks: int, victim: int) -> None:
    """MPI_Abort, and SIGKILL of a rank: the job ends, and its delegates with it."""
    before = shared_memory()
    with job(tmp_path, ranks, hints(mode), way, str(victim)) as running:
        running.wait_for("ok ping", LIMIT_S)
        assert running.status(LIMIT_S) not in {None, 0}, running.text()
        assert not running.left(GRACE_S), running.text()
    assert not shared_memory() - before


@pytest.mark.both
@pytest.mark.parametrize("mode", ["spawn", "process", *slow("thread")])
def test_killed_launcher(extension: str, tmp_path: pathlib.Path, mode: str) -> None:
    """SIGKILL of mpirun: nothing stays, though nobody can end the delegates."""
    before = shared_memory()
    with job(tmp_path, 3, hints(mode), "sleep", "600") as running:
        running.wait_for("ok ping", LIMIT_S)
        running.wait_for("delegate 1 pid", LIMIT_S)
        running.process.kill()
        assert running.status(LIMIT_S) is not None, running.text()
        assert not running.left(GRACE_S), running.text()
    assert not shared_memory() - before


@pytest.mark.both
@pytest.mark.parametrize(
    ("ranks", "per_node", "victim"), [*slow((1, 0, 0)), (3, 0, 1), (4, 2, 0), *slow((4, 2, 1), (7, 3, 2))]
)
def test_killed_delegate(extension: str, tmp_path: pathlib.Path, ranks: int, per_node: int, victim: int) -> None:
    """No launcher takes it for the death of a rank; all ranks notice, and go on without it."""
    env = hints("spawn", "3" if ranks == 7 else "2") | {"MPIOX_RANKS_PER_NODE": str(per_node)}
    launch = life(tmp_path, ranks, env, "delegate", str(victim))
    assert mode_of(launch) == "spawn"
    assert f"I/O delegate {victim} " in launch.stderr, launch.describe()
    assert "was ended by signal 9" in launch.stderr


@pytest.mark.both
@pytest.mark.parametrize("who", ["supervisor", *slow("both"), "all"])
def test_killed_supervisor(extension: str, tmp_path: pathlib.Path, who: str) -> None:
    """Without its supervisor a delegate goes on; without both, and without any, the ranks do."""
    before = shared_memory()
    with job(tmp_path, 3, hints("spawn") | {"MPIOX_STATS": "1"}, "sleep", "3") as running:
        running.wait_for("delegate 1 pid", LIMIT_S)
        delegates = [int(pid) for _, pid, _, _ in DELEGATE.findall(running.text())]
        for pid in delegates if who == "all" else delegates[:1]:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)  # its parent
            if who != "supervisor":
                os.kill(pid, signal.SIGKILL)
        assert running.status(LIMIT_S) == 0, running.text()
        assert failed_checks(running.text(), 5) == set(), running.text()
        assert not running.left(GRACE_S), running.text()
        dead = {"supervisor": 0, "both": 1, "all": 2}[who]
        assert running.text().count("has died; ") == dead, running.text()  # said by the rank that has found it
        assert (f"summed over 2 of 2; {dead} died\n" in running.text()) == (dead > 0), running.text()
        assert ("none: a delegate of the job has died\n" in running.text()) == (dead > 0), running.text()
    assert not shared_memory() - before


@pytest.mark.both
def test_warned_delegates_go_on(extension: str, tmp_path: pathlib.Path) -> None:
    """Signals with which batch systems warn a job do not end its delegates: the ranks may live on, too."""
    with job(tmp_path, 2, hints("spawn"), "sleep", "2") as running:
        running.wait_for("delegate 1 pid", LIMIT_S)
        for _, pid, _, _ in DELEGATE.findall(running.text()):
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT):
                os.kill(int(pid), number)
        assert running.status(LIMIT_S) == 0, running.text()
        assert failed_checks(running.text(), 5) == set(), running.text()
        assert "was ended by signal" not in running.text()
        assert not running.left(GRACE_S), running.text()
