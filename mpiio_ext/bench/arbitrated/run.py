"""Two jobs that overlap, under a live arbiter, once for each policy.

Problem.    Show what arbitration does to running programs, on any machine, in seconds, with curves of its own.
Algorithm.  The patterns of both jobs are explored first, with as many delegates as there are I/O nodes: that gives the
            curves. Then the bench starts an arbiter for each policy. The first job begins, then the second one. The
            bench stops the first job while the second one continues. A phase begins when the job that starts it makes a
            file, before its first write, and the arbiter's map has the job: a job may take seconds to start. The map is
            read meanwhile.
Guarantees. All processes are ended, whatever fails. A job that wrote wrong bytes, or that did not follow the arbiter,
            is an error. Programs are started by the launcher of the running Python's MPI.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpiio_ext.bench.compare.peers import launcher_of, own_environment
from mpiio_ext.bench.errors import BenchError, SetupError
from mpiio_ext.common.children import launched
from mpiio_ext.delegates.arbiter import announcements, mapfile
from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.store import Store
from mpiio_ext.errors import MpiioExtError

#: Name of a job -> its pattern.
JOBS = {"small-pieces": "shared,strided,4KiB,16MiB", "large-pieces": "shared,contiguous,256KiB,16MiB"}
#: Hints of both jobs, explored or running. The caches together are smaller than a file, so that what is written at last
#: waits for the file system; small units, so that each delegate has some.
_HINTS = {
    "mpiox_delegate_cache": "2m",
    "mpiox_delegate_page": "64k",
    "striping_unit": "64k",
    "mpiox_delegate_bypass": "0",
}
_PATIENCE_S = 180.0
_LOOK_S = 0.02
#: Not mpi_yield_when_idle: a rank that waits by yielding was starved for a minute by another job's (Linux 6.18).
_ENVIRONMENT = {"OMPI_MCA_rmaps_base_oversubscribe": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How it is run.

    Attributes
    ----------
    folder : of the jobs' files; on the file system to measure
    ranks : of each job
    io_nodes : in the pool
    seconds : that both jobs write at the same time
    lead_s : that one of them writes alone at the begin and at the end, at least
    mode : how delegates are started
    jobs : name -> pattern
    """

    folder: Path
    ranks: int = 2
    io_nodes: int = 4
    seconds: float = 4.0
    lead_s: float = 1.5
    mode: str = "thread"
    jobs: Mapping[str, str] = field(default_factory=lambda: dict(JOBS))


def _launcher() -> str:
    found = launcher_of(Path(sys.executable))
    if found is None:
        raise SetupError("mpirun is not to be found: jobs cannot be started")
    return found


def _environment(hints: str) -> dict[str, str]:
    return _ENVIRONMENT | own_environment() | ({"MPIOX_HINTS": hints} if hints else {})


@contextlib.contextmanager
def _process(command: list[str], hints: str = "") -> Iterator[subprocess.Popen[str]]:
    """Start a program in a session of its own, and end it with all its ranks."""
    with launched(
        command,
        _environment(hints),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
    process.communicate()


def _output(process: subprocess.Popen[str], what: str) -> str:
    try:
        out, err = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{what}: not done in {_PATIENCE_S:.0f} s") from error
    if process.returncode != 0:
        kept = [line for line in err.splitlines() if "Error" in line or "mpiio_ext" in line] or err.splitlines()[-1:]
        raise BenchError(f"{what}: failed ({process.returncode}): {' '.join(kept[:1])[:300]}")
    return out


def explore(setting: Setting, repetitions: int = 2) -> dict[str, Curve]:
    """Return the curve of each job, measured.

    Raises
    ------
    BenchError
        A launch failed.
    """
    from mpiio_ext.bench.explore.spec import parse

    output = setting.folder / "explored"
    counts = sorted({1, 2, setting.io_nodes, *([3] if setting.io_nodes > 3 else [])})
    words = [word for pattern in setting.jobs.values() for word in ("--pattern", f"{pattern},1s")]
    words += [word for name, value in _HINTS.items() for word in ("-H", f"{name}={value}")]
    command = [
        _launcher(),
        "-n",
        str(setting.ranks),
        sys.executable,
        "-m",
        "mpiio_ext.bench",
        "explore",
        *words,
        "--io-nodes",
        ",".join(str(count) for count in counts if count <= setting.io_nodes),
        "-r",
        str(repetitions),
        "--path",
        str(setting.folder),
        "--output",
        str(output),
        "--delegate-mode",
        setting.mode,
        "--no-page",
        "--no-progress",
    ]
    with _process(command) as process:
        _output(process, "exploring the jobs' patterns")
    store = Store(output / "curves.json")
    return {
        name: store.load(parse(pattern, total_bytes=1)[0].pattern(1, setting.ranks).name)
        for name, pattern in setting.jobs.items()
    }


@contextlib.contextmanager
def _arbiter(setting: Setting, policy: str, curves: Path) -> Iterator[Path]:
    """Run one, and yield its folder."""
    folder = setting.folder / f"arbiter-{policy}"
    command = [
        sys.executable,
        "-m",
        "mpiio_ext",
        "delegates",
        "arbiter",
        "--dir",
        str(folder),
        "--io-nodes",
        str(setting.io_nodes),
        "--policy",
        policy,
        "--curves",
        str(curves),
        "--compute-nodes",
        str(len(setting.jobs)),
        "--interval",
        "0.02",
    ]
    with _process(command) as process:
        end = time.monotonic() + _PATIENCE_S
        while mapfile.read(folder).generation == 0:
            if process.poll() is not None:
                raise BenchError(f"the arbiter has ended: {' '.join((process.communicate()[1]).split())[:300]}")
            if time.monotonic() > end:
                raise BenchError(f"the arbiter has written no map in {_PATIENCE_S:.0f} s")
            time.sleep(_LOOK_S)
        yield folder


def _stop(setting: Setting, name: str) -> Path:
    return setting.folder / f"{name}.stop"


def _begun(setting: Setting, name: str) -> Path:
    """Return the file that rank 0 of a job makes before the first write; see `job`."""
    return setting.folder / f"{name}.begun"


def _start(setting: Setting, stack: contextlib.ExitStack, folder: Path, name: str) -> subprocess.Popen[str]:
    hints = (
        f"*:mpiox_delegates={setting.io_nodes}:mpiox_delegate_mode={setting.mode}:mpiox_arbiter={folder}:"
        f"mpiox_arbiter_name={name}:" + ":".join(f"{hint}={value}" for hint, value in _HINTS.items())
    )
    command = [
        _launcher(),
        "-n",
        str(setting.ranks),
        sys.executable,
        "-m",
        "mpiio_ext.bench.arbitrated.job",
        str(setting.folder / name),
        str(_stop(setting, name)),
        setting.jobs[name],
    ]
    return stack.enter_context(_process(command, hints))


class _Map:
    """The contents of the arbiter's map over time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs: dict[str, str] = {}
        self.steps: list[tuple[float, dict[str, int]]] = []

    def look(self) -> set[str]:
        """Return the programs in the map, and record a step when it has changed."""
        with contextlib.suppress(OSError, MpiioExtError):
            self._programs |= {job.job: job.program for job in announcements.read_all(self._folder)[0]}
            found = mapfile.read(self._folder).jobs
            now = {self._programs[job]: len(nodes) for job, nodes in found.items() if job in self._programs}
            if not self.steps or self.steps[-1][1] != now:
                self.steps.append((time.monotonic(), now))
        return set(self.steps[-1][1]) if self.steps else set()


def _watch(seen: _Map, running: Mapping[str, subprocess.Popen[str]], seconds: float, begun: Path | None = None) -> None:
    """Read the map for some seconds, or until a program is in it and makes its file `begun`.

    Raises
    ------
    BenchError
        A job has failed, or the program does not begin.
    """
    end = time.monotonic() + (_PATIENCE_S if begun else seconds)
    while time.monotonic() < end:
        programs = seen.look()
        if begun is not None and begun.stem in programs and begun.exists():
            return
        for name, process in running.items():
            if process.poll() is not None:
                _output(process, name)
                raise BenchError(f"{name} ended too early")
        time.sleep(_LOOK_S)
    if begun is not None:
        raise BenchError(f"{begun.stem} did not write, or was not in the arbiter's map, within {_PATIENCE_S:.0f} s")


def _follow(setting: Setting, folder: Path, stack: contextlib.ExitStack) -> tuple[dict[str, Any], _Map]:
    """Start the jobs one after the other, stop them in the same order, and read the map meanwhile."""
    seen = _Map(folder)
    running: dict[str, subprocess.Popen[str]] = {}
    for name in setting.jobs:
        running[name] = _start(setting, stack, folder, name)
        _watch(seen, running, 0, _begun(setting, name))
        _watch(seen, running, setting.lead_s if len(running) < len(setting.jobs) else setting.seconds)
    results = {}
    for name, process in list(running.items()):
        _stop(setting, name).touch()
        end = time.monotonic() + _PATIENCE_S
        while process.poll() is None and time.monotonic() < end:  # what it prints fits into the pipe
            seen.look()
            time.sleep(_LOOK_S)
        lines = [line for line in _output(process, name).splitlines() if line.startswith("{")]
        if not lines:
            raise BenchError(f"{name}: printed no result")
        results[name] = json.loads(lines[-1])
        del running[name]
        if running:
            _watch(seen, running, setting.lead_s)
    seen.look()
    return results, seen


def run_policy(setting: Setting, policy: str, curves: Mapping[str, Curve]) -> dict[str, Any]:
    """Return the measurements of the jobs under a policy; times in seconds from the first job's begin.

    Raises
    ------
    BenchError
        A program failed, or a job was not in the arbiter's map.
    """
    file = setting.folder / "curves.json"
    file.write_text(
        json.dumps(
            {
                name: {str(count): list(_repetitions(curve, count)) for count in curve.counts}
                for name, curve in curves.items()
            }
        )
    )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_arbiter(setting, policy, file))
        jobs, seen = _follow(setting, folder, stack)
    for name in setting.jobs:
        (setting.folder / name).unlink(missing_ok=True)
        _stop(setting, name).unlink(missing_ok=True)
        _begun(setting, name).unlink(missing_ok=True)
    zero = min(job["begin_s"] for job in jobs.values())
    return {
        "policy": policy,
        "jobs": {name: _job_document(job, zero, setting.jobs[name]) for name, job in jobs.items()},
        "map": [{"time_s": at - zero, "io_nodes": step} for at, step in seen.steps],
    }


def _repetitions(curve: Curve, count: int) -> tuple[float, ...]:
    """Return values with the mean and deviation of a point, as the arbiter takes them."""
    point = curve.points[count]
    if point.deviation is None:
        return (point.mean,)
    return max(point.mean - point.deviation / 2**0.5, 0.0), point.mean + point.deviation / 2**0.5


def _job_document(job: Mapping[str, Any], zero: float, pattern: str) -> dict[str, Any]:
    first, last = int(job["begin_s"] / job["slot_s"]), int(job["end_s"] / job["slot_s"])
    sizes = {int(slot): int(size) for slot, size in job["slots"]}
    seconds = job["end_s"] - job["begin_s"]
    return {
        "pattern": pattern,
        "begin_s": job["begin_s"] - zero,
        "end_s": job["end_s"] - zero,
        "data_bytes": job["data_bytes"],
        "verified_bytes": job["verified_bytes"],
        "bandwidth_mb_per_s": job["data_bytes"] / 1e6 / max(seconds, 1e-9),
        "remapped_ranges": job["remapped_ranges"],
        "slot_s": job["slot_s"],
        "slots": [
            {"time_s": slot * job["slot_s"] - zero, "data_bytes": sizes.get(slot, 0)} for slot in range(first, last + 1)
        ],
    }
