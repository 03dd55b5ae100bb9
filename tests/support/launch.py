"""Run Python scripts, modules and C programs under mpirun, each under a timeout that leaves no process behind.

MPI is never initialised in the calling process: the family of the running virtual environment is learnt from the
environment variable ``MPI`` or, failing that, from a child process. Every process of a launch carries a marker in its
environment, so that a launch which is out of time is ended as a whole even where the launcher put its children into
sessions and process groups of their own.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

MARKER = "MPIOX_TEST_LAUNCH"
ROOT = pathlib.Path(__file__).resolve().parents[2]
#: The programs that tests launch.
PROGRAMS = ROOT / "tests" / "programs"
TAIL_BYTES = 6000
#: Limits are there to end what hangs. What tests state is several times what a quiet machine takes; a machine that is
#: busy with other things gets this many times as much.
PATIENCE = 4
#: Set when a developer's shell forces hints on every program: tests must see the defaults unless they set them.
SCRUBBED = (
    "MPIOX_HINTS",
    "MPIOX_HINTS_FILE",
    "MPIOX_SITE_FILE",
    "MPICH_MPIIO_HINTS",
    "MPICH_MPIIO_HINTS_DISPLAY",
    "ROMIO_HINTS",
    "ROMIO_PRINT_HINTS",
    "MPIOX_STATS",
    "MPIOX_FAULT",
    "MPIOX_RANKS_PER_NODE",
    "LD_PRELOAD",
)


class LostLaunch(UserWarning):
    """The MPI library has lost a launch, which is started once more; pytest counts them."""


#: Starts of a launch at most where the launcher lost the job: one of several hundred launches is lost twice.
_STARTS = 4
#: What mpirun of Open MPI 4.1 prints where one of its own processes, not a rank, has failed.
LOST = re.compile(
    r"ORTE has lost communication with a remote daemon|An ORTE daemon has unexpectedly failed"
    r"|ORTE was unable to reliably start one or more daemons"
)
#: What it prints where it lost the message of a rank that ends the job. With the MPI library alone one launch in 16 of
#: three ranks lost it on one machine, 18 launches in 40 on another.
LOST_WORDS = re.compile(r"ORTE_ERROR_LOG: .* in file .*show_help\.c")
#: Starts at most for a message: if every second one is lost, all are once in a million.
_STARTS_FOR_WORDS = 20


class LaunchError(AssertionError):
    """A launch ended with a non-zero status or ran out of time; the message holds the end of its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What one launch did.

    Attributes
    ----------
    command : the complete command line.
    returncode : exit status; negative for a signal.
    stdout, stderr : complete output, decoded with replacement.
    timed_out : whether the launch was ended because its time was up.
    elapsed_s : wall-clock seconds.
    """

    command: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    timed_out: bool
    elapsed_s: float

    def describe(self) -> str:
        """Return the command, the status and the end of both outputs, bounded in length."""
        state = "timed out" if self.timed_out else f"exit status {self.returncode}"
        return (
            f"{' '.join(self.command)}\n{state} after {self.elapsed_s:.1f} s\n"
            f"--- stdout (end) ---\n{self.stdout[-TAIL_BYTES:]}\n--- stderr (end) ---\n{self.stderr[-TAIL_BYTES:]}"
        )


@functools.cache
def library_version() -> str:
    """Return the MPI library's version text as a child process sees it, or "" when there is no working MPI."""
    probe = "from mpi4py import MPI; print(MPI.Get_library_version())"
    try:
        done = python_alone(probe)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip("\0\n ") if done.returncode == 0 else ""


@functools.cache
def mpi_family() -> str | None:
    """Return "openmpi" or "mpich" for the running virtual environment, None when it has no working MPI."""
    text = library_version()
    for needle, family in (("Open MPI", "openmpi"), ("MPICH", "mpich"), ("Intel(R) MPI", "mpich")):
        if needle in text:
            return family
    return None


def launcher() -> str | None:
    """Return the path of mpiexec or mpirun that belongs to the MPI library of this environment."""
    own = pathlib.Path(sys.prefix) / "bin" / "mpiexec"
    if own.exists():
        return str(own)
    return shutil.which("mpirun.openmpi" if mpi_family() == "openmpi" else "mpiexec.mpich") or shutil.which("mpirun")


def base_environment() -> dict[str, str]:
    """Return the environment of every launch: this one, without the library's settings, made fit for any machine."""
    environment = {name: value for name, value in os.environ.items() if name not in SCRUBBED}
    environment |= {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_pml": "ob1",  # what Open MPI takes without a fast network, after 0.2 s of looking for one
        "OMPI_MCA_btl_base_warn_component_unused": "0",
        "OMPI_MCA_orte_base_help_aggregate": "0",  # mpirun loses messages when it puts equal ones together
        "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",  # ranks of MPICH that wait sleep, and leave the cores to the others
        "MPIR_CVAR_POLLS_BEFORE_YIELD": "20",
        **{f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "mpir" for name in ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE")},
        "HWLOC_COMPONENTS": "-pci,-linuxio",  # to look for devices takes a fifth of a launch of four ranks
        "PYTHONFAULTHANDLER": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    return environment


#: A folder in memory where there is one.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
#: Words that start ranks in place of the MPI library's own launcher: ``srun --nodes=4``.
OTHER_LAUNCHER = "MPIOX_TEST_LAUNCHER"
#: Another library in place of the installed one, under all programs; tests/mutants/run.py sets it.
OTHER_LIBRARY = "MPIOX_TEST_LIBRARY"


def library_path() -> str | None:
    """Return the path of libmpiio_ext.so of the installed package, None when it is not installed."""
    return os.environ.get(OTHER_LIBRARY) or _installed_library()


@functools.cache
def _installed_library() -> str | None:
    done = python_alone("import mpiio_ext; print(mpiio_ext.get_library())")
    return done.stdout.strip() if done.returncode == 0 else None


def posix_library() -> str:
    """Return the path of libmpiio_ext_posix.so of the installed package, which is installed."""
    return str(pathlib.Path(_installed_library() or "").with_name("libmpiio_ext_posix.so"))


def preload_environment(hints: str = "mpiox_close") -> dict[str, str]:
    """Return the variables that put libmpiio_ext.so under an unchanged program.

    The library for calls past MPI is beside it where hints name what needs it, as with ``mpiio-ext run``.
    """
    path = library_path()
    if path is None:
        raise LaunchError("mpiio_ext is not installed in this environment")
    return {"LD_PRELOAD": f"{path}:{posix_library()}" if re.search("mpiox_(close|subfiles)", hints) else path}


def mpi_run(
    program: Sequence[str | os.PathLike[str]],
    ranks: int,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
    cwd: str | os.PathLike[str] | None = None,
    preload: bool = False,
    check: bool = True,
    last_words: pathlib.Path | None = None,
) -> Launch:
    """Run ``program`` (an executable with arguments) on ``ranks`` ranks.

    Parameters
    ----------
    program : command line; use :func:`python_run` for scripts and modules.
    ranks : number of processes.
    env : variables laid over :func:`base_environment`; they reach every rank.
    timeout_s : after PATIENCE times this many seconds the whole launch is killed and ``timed_out`` set.
    cwd : working folder of all ranks.
    preload : put the library under the program by LD_PRELOAD.
    check : raise :class:`LaunchError` unless the launch ended by itself with status 0.
    last_words : file in which the ranks write their standard error, which `stderr` then ends with. Launchers end the
        job when one rank dies, now and then before they have passed on what it said (Hydra: a few in a thousand).
    """
    words = os.environ.get(OTHER_LAUNCHER, launcher() or "").split()
    if not words:
        raise LaunchError("no mpiexec found for this environment")
    settings = dict(env or {})
    if preload:
        settings |= preload_environment(settings.get("MPIOX_HINTS", ""))
    command = [*words, "-n", str(ranks)]
    if last_words is not None:
        command += ["sh", "-c", 'exec "$@" 2>>"$0"', str(last_words)]
    if "LD_PRELOAD" in settings:  # the launcher itself is not an MPI program: only the ranks get it
        command += ["env", f"LD_PRELOAD={settings.pop('LD_PRELOAD')}"]
    command += [os.fspath(word) for word in program]

    def run() -> Launch:
        if last_words is not None:
            last_words.unlink(missing_ok=True)
        return run_bounded(command, env=base_environment() | settings, timeout_s=timeout_s, cwd=cwd, check=False)

    reasons = [(LOST, _STARTS)]
    if last_words is not None:
        reasons.append((LOST_WORDS, _STARTS_FOR_WORDS))
    launch = run()
    for reason, starts in reasons:
        for _ in range(starts - 1):
            lost = reason.search(launch.stderr) if launch.returncode != 0 else None
            if lost is None:
                break
            started_once_more(f"the launcher has printed {lost[0]}")
            launch = run()
    if last_words is not None and last_words.exists():
        launch = replace(launch, stderr=launch.stderr + last_words.read_text(encoding="utf-8", errors="replace"))
    return checked(launch) if check else launch


def python_alone(
    code: str, *arguments: str | os.PathLike[str], timeout_s: float = 60.0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of this environment without a launcher; `variables` are laid over its environment."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=base_environment() | variables,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def of_ranks(folder: pathlib.Path, ranks: int, prefix: str = "") -> list[Any]:
    """Return what every rank of a program has written into a folder, as PREFIXrank.json."""
    return [json.loads((folder / f"{prefix}{rank}.json").read_text(encoding="utf-8")) for rank in range(ranks)]


def json_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return the objects of a file, one a line, as statistics are written."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def python_run(
    arguments: Sequence[str | os.PathLike[str]],
    ranks: int,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
    cwd: str | os.PathLike[str] | None = None,
    preload: bool = False,
    check: bool = True,
) -> Launch:
    """Run this environment's Python with ``arguments`` (a script's path, or "-m", "module", …) on ``ranks`` ranks."""
    program: list[str | os.PathLike[str]] = [sys.executable, *arguments]
    if OTHER_LIBRARY in os.environ and (env or {}).get("NATIVE") != "1":
        preload = True  # importing the package would load the installed one
    return mpi_run(program, ranks, env=env, timeout_s=timeout_s, cwd=cwd, preload=preload, check=check)


def started_once_more(why: str) -> None:
    """Count that what the MPI library has lost is started once more, for a reason that is not this library's."""
    warnings.warn(f"started once more: {why}", LostLaunch, stacklevel=3)


def run_bounded(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    cwd: str | os.PathLike[str] | None = None,
    check: bool = True,
) -> Launch:
    """Run any command for at most PATIENCE * timeout_s seconds; nothing it started is alive when this returns."""
    marker = uuid.uuid4().hex
    started_s = time.monotonic()
    timed_out = False
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            env={**env, MARKER: marker},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            process.wait(timeout=PATIENCE * timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            end_marked(marker, process)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    launch = Launch(
        command=tuple(command),
        returncode=process.returncode,
        stdout=texts[0],
        stderr=texts[1],
        timed_out=timed_out,
        elapsed_s=time.monotonic() - started_s,
    )
    return checked(launch) if check else launch


def checked(launch: Launch) -> Launch:
    """Return a launch that has ended by itself with status 0."""
    if launch.timed_out or launch.returncode != 0:
        raise LaunchError(launch.describe())
    return launch


def marked_processes(marker: str) -> list[int]:
    """Return the ids of all living processes that were started with ``marker`` in their environment."""
    needle = f"{MARKER}={marker}".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if needle in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def end_marked(marker: str, process: subprocess.Popen[bytes]) -> None:
    """End the launcher politely, then everything that carries the marker for certain."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            process.kill()
    for _ in range(50):
        left = marked_processes(marker)
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)
    process.wait(timeout=10)
