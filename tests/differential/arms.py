"""Launch the workers on lists of cases and compare what they saw: one line of findings per case and arm."""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from differential import outside
from differential.compare import Comparison
from differential.simulate import Simulation
from differential.state import ACCESS, Case
from support.hosts import Cluster
from support.launch import OTHER_LAUNCHER, OTHER_LIBRARY, Launch, LaunchError, mpi_run, started_once_more

#: Starts of a launch at most that another launcher than the MPI library's loses before its first case.
_STARTS = 4
WORKER = pathlib.Path(__file__).resolve().parent / "worker.py"
#: What a delegate prints of a file that was deleted, if it still had bytes to write.
_GONE = re.compile(r"^mpiio_ext: \S*/ours\.(\d+)\.\S+ was removed while .*$", re.M)
Line = dict[str, Any]
Seen = dict[tuple[int, str], dict[int, dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How cases are launched.

    Attributes
    ----------
    arms : "ours", "native" or both.
    limit_s : seconds after which a case counts as stuck.
    parent : folder for the files; None: memory.
    hinted : give native the hints of the case, too.
    env : variables for all ranks.
    owned : families that must be the library's own; None: ownership.TAKEN_OVER.
    subfiles : how many, and their unit: ours stores its files as several, also those that are there; None: as one.
    shown : where the folder with the folders of the files is mounted, so that each file is one there; None: nowhere.
    disk : bytes of a file system that is mounted for the files; 0: none.
    tool : words in front of each rank's program: a debugger, for example.
    cluster : hosts on which the ranks run, spread evenly; None: this machine. `parent` is a folder of theirs then, None
        the one that they share in memory.
    """

    arms: tuple[str, ...]
    limit_s: float = 20.0
    parent: str | None = None
    hinted: bool = False
    env: tuple[tuple[str, str], ...] = ()
    owned: frozenset[str] | None = None
    subfiles: tuple[int, int] | None = None
    shown: str | None = None
    disk: int = 0
    tool: tuple[str, ...] = ()
    cluster: Cluster | None = None


@contextlib.contextmanager
def work_folders(setting: Setting) -> Iterator[tuple[str, str]]:
    """Make a folder for the files and one for what the ranks see, which may be the same: as the ranks call the first.

    In memory where there is one (the test is about bytes, not about disks).
    """
    shm, cluster, parent = "/dev/shm", setting.cluster, setting.parent
    notes = tempfile.mkdtemp(
        prefix="mpiox_diff_", dir=cluster.folder if cluster else parent or (shm if os.access(shm, os.W_OK) else None)
    )
    files = f"{parent}/{pathlib.Path(notes).name}" if cluster and parent else notes
    try:
        if cluster and files != notes:
            cluster.call(1, ["mkdir", files])
        with small_disk(pathlib.Path(notes), setting.disk) if setting.disk else contextlib.nullcontext(files) as place:
            yield place, notes
    finally:
        shutil.rmtree(notes, ignore_errors=True)
        if cluster and files != notes:
            cluster.call(1, ["rm", "-rf", files])


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, size: int) -> Iterator[str]:
    """Mount a file system of so many bytes in a folder; raises CalledProcessError where that is not permitted."""
    with tempfile.TemporaryDirectory(prefix="disk.", dir=folder) as place:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place]
        subprocess.run(command, check=True, timeout=20, capture_output=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", "-l", place], check=True, timeout=20)


@functools.cache
def has_small_disks() -> bool:
    """Tell whether a small file system can be mounted here."""
    try:
        with tempfile.TemporaryDirectory() as folder, small_disk(pathlib.Path(folder), 65536):
            return True
    except (subprocess.CalledProcessError, FileNotFoundError):
        return False


def launch_worker(job: str, ranks: int, timeout_s: float, setting: Setting) -> Launch:
    """Run the worker on this machine, or on the hosts of a cluster."""
    program = [*setting.tool, sys.executable, str(WORKER), job]  # importing the package puts the library under it
    if setting.cluster is None:
        other = OTHER_LIBRARY in os.environ and "LD_PRELOAD" not in dict(setting.env)
        return mpi_run(program, ranks, env=dict(setting.env), timeout_s=timeout_s, preload=other, check=False)
    return setting.cluster.run(program, ranks, env=dict(setting.env), timeout_s=timeout_s, check=False, preload=False)


def number(case: Case) -> int:
    """Return what tells a case from others in one launch."""
    return int(case["id"] if "id" in case else case["seed"])


def records(folder: str) -> Seen:
    """Return what the ranks wrote: by case and arm, by rank."""
    seen: Seen = collections.defaultdict(dict)
    for path in pathlib.Path(folder).glob("out.[0-9]*"):
        with path.open("rb") as own:
            while True:
                try:
                    record = pickle.load(own)
                except (EOFError, pickle.UnpicklingError):
                    break
                seen[record["id"], record["arm"]][record["rank"]] = record
    return seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One launch: how it ended, its progress lines, what the ranks saw, and where they stood at last."""

    launch: Launch
    lines: list[Line]
    seen: Seen
    stood: list[str]

    def describe(self) -> str:
        """Return the end of a launch that went wrong."""
        return "\n".join([*self.stood, self.launch.describe()])


def once(cases: list[Case], part: int, ranks: int, arm: str, setting: Setting, folders: tuple[str, str]) -> Ended:
    """Make one launch: a job of the cases, with the number `part`."""
    files, above = folders
    with tempfile.TemporaryDirectory(dir=above, prefix="launch.") as notes:
        job = {
            "folder": files,
            "out": f"{notes}/out",
            "arm": arm,
            "library": "ours" in setting.arms,
            "limit_s": setting.limit_s,
            "hinted": setting.hinted,
            "subfiles": setting.subfiles if arm == "ours" else None,
            "shown": f"{setting.shown}/{pathlib.Path(files).name}" if setting.shown else None,
            "part": part,
            "jobs": has_jobs(cases[0]),
            "cases": cases,
        }
        path = pathlib.Path(notes, "job.json")
        path.write_text(json.dumps(job), encoding="utf-8")
        done = launch_worker(str(path), ranks, 120 + 3 * len(cases) + setting.limit_s, setting)
        out = pathlib.Path(notes, "out")
        lines = [json.loads(text) for text in out.read_text("utf-8").splitlines()] if out.exists() else []
        stood = [
            f"rank {rank} stood at {at.read_text().strip()}"
            for rank in range(ranks)
            if (at := pathlib.Path(notes, f"out.at.{rank}")).exists()
        ]
        return Ended(launch=done, lines=lines, seen=records(notes), stood=stood)


def has_jobs(case: Case) -> bool:
    """Tell whether a case goes on in another launch."""
    return len(outside.parts(case)) > 1


def raw(cases: list[Case], ranks: int, setting: Setting) -> tuple[Seen, list[Line]]:
    """Run cases on ``ranks`` ranks in all arms; returns what was seen and the fatal lines.

    Each arm has launches of its own: what the MPI library does to memory cannot harm the other. Cases of several jobs
    share launches with each other only, since their files stay until the last job.
    """
    seen: Seen = {}
    fatal: list[Line] = []
    for several in (False, True):
        chosen = [case for case in cases if has_jobs(case) == several]
        for arm in setting.arms if chosen else ():
            with work_folders(setting) as folders:
                for part in range(max(len(outside.parts(case)) for case in chosen)):
                    lost = {line["id"] for line in fatal if line["arm"] == arm}
                    todo = [case for case in chosen if len(outside.parts(case)) > part and number(case) not in lost]
                    found, ended = one_arm(todo, part, ranks, arm, setting, folders)
                    enter(seen, found, whole=part == 0)
                    fatal += ended
    return {
        key: ranks for key, ranks in seen.items() if key not in {(line["id"], line["arm"]) for line in fatal}
    }, fatal


def enter(seen: Seen, found: Seen, *, whole: bool) -> None:
    """Add what the ranks saw in a job to what they saw in the jobs before."""
    for key, ranks in found.items():
        before = seen.setdefault(key, ranks)
        for rank, record in ranks.items() if not whole else ():
            record["results"] = before[rank]["results"] + record["results"]
            record["problems"] = before[rank]["problems"] + record["problems"]
            record["stats"] = {name: n + before[rank]["stats"][name] for name, n in record["stats"].items()}
            before[rank] = record


def died(case: Case, part: int, ended: Ended, arm: str) -> bool:
    """Tell whether a launch has ended since the case says so, after each rank has written what it saw."""
    last = [*outside.parts(case), len(case["ops"])][part + 1] - 1
    return outside.ends_launch(case["ops"][last]) and len(ended.seen.get((number(case), arm), {})) == case["ranks"]


def gone(cases: list[Case], printed: str) -> list[Line]:
    """Return a problem of each case that deletes files by MPI alone, where a delegate has not learnt of that."""
    found = {int(line[1]): line[0] for line in _GONE.finditer(printed)}
    return [
        {"id": number(case), "seed": case["seed"], "arm": "ours", "problems": [f"gone: {found[number(case)]}"]}
        for case in cases
        if number(case) in found and not any(op.get("what") in ("remove", "rename") for op in case["ops"])
    ]


def one_arm(
    cases: list[Case], part: int, ranks: int, arm: str, setting: Setting, folders: tuple[str, str]
) -> tuple[Seen, list[Line]]:
    """Run a job of the cases in one arm; relaunch after a crash or hang, and after a death that a case asks for.

    Under srun on several hosts, ranks of Open MPI 4.1 crash in MPI_Init now and then, without the library too.
    """
    seen: Seen = {}
    fatal: list[Line] = []
    todo, starts = cases, _STARTS if OTHER_LAUNCHER in os.environ else 1
    while todo:
        ended = once(todo, part, ranks, arm, setting, folders)
        lines, done = ended.lines, ended.launch
        seen |= ended.seen
        fatal += gone(todo, done.stderr)
        if lines and "end" in lines[-1] and done.returncode == 0:
            break
        started = [line for line in lines if "start" in line]
        if not started and (starts := starts - 1) > 0:
            started_once_more("rank 0 has begun no case")
            continue
        if not started:
            raise LaunchError(ended.describe())
        last = started[-1]
        if "end" in lines[-1]:  # everything was done, then the job ended badly: blame the last case
            fatal.append(last | {"problems": [f"exit: {ended.describe()}"], "id": last["start"]})
            break
        position = next(i for i, case in enumerate(todo) if number(case) == last["start"])
        if not died(todo[position], part, ended, arm):
            state = "hang" if "WATCHDOG" in done.stderr or done.timed_out else "crash"
            fatal.append(last | {"problems": [f"{state}: {ended.describe()}"], "id": last["start"]})
            seen.pop((last["start"], last["arm"]), None)
        todo = todo[position + 1 :]
    return seen, fatal


def judge_raw(cases: list[Case], seen: Seen, fatal: list[Line]) -> list[Line]:
    """Compare what was seen with the model; one line per case and arm."""
    lines = list(fatal)
    for case in cases:
        for arm in ("ours", "native"):
            name, ranks = number(case), seen.get((number(case), arm), {})
            if len(ranks) < case["ranks"]:
                continue
            comparison = Comparison(case, [ranks[r]["results"] for r in range(case["ranks"])], strict=arm == "ours")
            lines.append(
                {
                    "id": name,
                    "seed": case["seed"],
                    "arm": arm,
                    "problems": ranks[0]["problems"] + comparison.run(ranks[0]["files"] or {}),
                    "notes": sorted({note for record in ranks.values() for note in record["notes"]}),
                    "stats": ranks[0]["stats"],
                    "elapsed_s": ranks[0]["elapsed_s"],
                }
            )
    return lines


def ready(cases: list[Case], setting: Setting) -> list[Case]:
    """Add to cases what the workers must know and only the model can tell: the reads that meet the end of a file."""
    for case in cases:
        if setting.owned is not None:
            case["owned"] = sorted(setting.owned)
        short, simulation = [], Simulation(case)
        for index, op in enumerate(case["ops"]):
            expected = simulation.step(index, op)
            if op["op"] in ACCESS and "fails" not in op and any(e and e.nbytes < e.requested for e in expected):
                short.append(index)
        case["hazards"] = short
    return cases


def launch(cases: list[Case], ranks: int, setting: Setting) -> list[Line]:
    """Run cases and compare."""
    return judge_raw(cases, *raw(cases, ranks, setting))
