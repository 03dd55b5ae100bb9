"""The archive of suites: the folder of the results, and beside them parameters, environment, logs.

``<archive>/<suite>/<YYYY-MM-DD>/<HH-MM-SS>/`` holds one run. Darshan, where it is under the program, writes its log
when MPI ends, so that its logs are collected after that.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from mpiio_ext.bench.environment import JOB_NUMBERS
from mpiio_ext.bench.suites.files import Suite
from mpiio_ext.common.files import write_whole

#: Variables of launchers and batch systems: where the job ran.
_JOB_PREFIXES = ("SLURM_", "PBS_", "LSB_", "COBALT_", "FLUX_", "OMPI_COMM_WORLD_", "PMI_", "PMIX_", "DARSHAN_")
_SECRET = re.compile(r"JWT|TOKEN|SECRET|PASS|KEY|COOKIE|CRED", re.IGNORECASE)


def folder_of(archive: Path, suite: str, now: datetime.datetime) -> Path:
    """Make and return the folder of a run that begins now; a second one of the same second gets a number."""
    day = archive / suite / now.strftime("%Y-%m-%d")
    day.mkdir(parents=True, exist_ok=True)
    name, count = now.strftime("%H-%M-%S"), 1
    while True:
        folder = day / (name if count == 1 else f"{name}-{count}")
        try:
            folder.mkdir()
        except FileExistsError:
            count += 1
            continue
        return folder


def write_surroundings(folder: Path, suite: Suite, environment: dict[str, Any]) -> list[Path]:
    """Write the parameter file and environment.json: the bench's record, the loaded modules, the job.

    Variables whose names sound like secrets are left out.
    """
    variables = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_JOB_PREFIXES) and not _SECRET.search(name)
    }
    document = {
        "environment": environment,
        "modules": [name for name in os.environ.get("LOADEDMODULES", "").split(":") if name],
        "preloaded": os.environ.get("LD_PRELOAD", ""),
        "job": variables,
    }
    paths = [folder / f"{suite.name}.toml", folder / "environment.json"]
    write_whole(paths[0], suite.text)
    write_whole(paths[1], json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return paths


def _candidates(started: datetime.datetime) -> list[Path]:
    """Return the logs at the place that the environment names: one file, a folder, or its folder of the day."""
    named = os.environ.get("DARSHAN_LOGFILE")
    if named:
        return [Path(named)]
    base = os.environ.get("DARSHAN_LOGPATH")
    if not base:
        return []
    today = datetime.datetime.now().astimezone()
    folders = dict.fromkeys(
        [Path(base), *(Path(base, str(day.year), str(day.month), str(day.day)) for day in (started, today))]
    )
    return [path for folder in folders for path in sorted(folder.glob("*.darshan"))]


def _is_of_job(path: Path) -> bool:
    """Return whether a log's name, USER_PROGRAM_idJOB-PROCESS_DATE…, speaks of this job, or of this process."""
    match = re.search(r"_id(\d+)(?:-(\d+))?_", path.name)
    if match is None:
        return False
    jobs = {value.partition(".")[0] for name in JOB_NUMBERS if (value := os.environ.get(name))}
    return match[1] in jobs if jobs else str(os.getpid()) in match.groups()


def collect_darshan(folder: Path, started: datetime.datetime) -> list[Path]:
    """Copy the logs that Darshan wrote of this job since `started` (with a time zone) into ``folder/darshan``.

    Returns
    -------
    The copies; none where Darshan is not there.
    """
    kept = []
    for path in _candidates(started):
        try:
            if path.stat().st_mtime < started.timestamp() or not (
                os.environ.get("DARSHAN_LOGFILE") or _is_of_job(path)
            ):
                continue
            target = folder / "darshan" / path.name
            target.parent.mkdir(exist_ok=True)
            kept.append(Path(shutil.copy2(path, target)))
        except OSError:
            continue  # a log that cannot be read is no reason to fail a bench that is done
    return kept
