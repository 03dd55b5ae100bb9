"""The scheduler's facts about jobs in the arbiter's folder: a file each, below ``scheduler``.

Problem.    Readers of Slurm's list of jobs must report jobs to the arbiter, also from other hosts.
Format.     ``scheduler/ID``, lines of a word and a value: ``mpiox-scheduled 1``, ``id``, ``state`` (Slurm's word),
            ``nodes``, ``processes``, ``name``; ``-`` for what is not known. Replaced by renaming.
Guarantees. A file that is none of these is left out and named once. Who may write the folder may end jobs' claims: it
            belongs to the scheduler's user, other than ``jobs``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mpiio_ext.common.files import read_plain, write_whole
from mpiio_ext.delegates.arbiter.slurm.joblist import SlurmJob

FOLDER = "scheduler"
_MOST_BYTES = 1 << 16
_ID = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"[^A-Za-z0-9._+-]")


def encode(job: SlurmJob) -> str:
    """Return a file's content."""
    name = _NAME.sub("_", job.name)[:63]
    return (
        f"mpiox-scheduled 1\nid {job.id}\nstate {job.state.split()[0]}\nnodes {job.nodes or '-'}\n"
        f"processes {job.processes or '-'}\nname {name or '-'}\n"
    )


def write(folder: Path, job: SlurmJob) -> None:
    """Replace the file of a job in an arbiter's folder; whole."""
    below = folder / FOLDER
    below.mkdir(exist_ok=True)
    write_whole(below / job.id, encode(job), follow=False)


def _parse(name: str, text: str) -> SlurmJob | None:
    words = dict(line.split(" ", 1) for line in text.split("\n") if " " in line)

    def count(key: str) -> int | None:
        value = words.get(key, "-")
        return int(value) if re.fullmatch(r"[1-9][0-9]{0,8}", value) else None

    if words.get("mpiox-scheduled") != "1" or words.get("id") != name or not words.get("state"):
        return None
    label = words.get("name", "-")
    return SlurmJob(
        id=name,
        state=words["state"],
        nodes=count("nodes"),
        processes=count("processes"),
        name="" if label == "-" else label,
    )


def read_all(folder: Path) -> tuple[list[SlurmJob], list[str]]:
    """Return the scheduler's facts, by number, and the names of files without any.

    Raises
    ------
    OSError
        The file system fails.
    """
    found, others = [], []
    for entry in _entries(folder / FOLDER):
        try:
            content = read_plain(Path(entry.path), _MOST_BYTES)
        except FileNotFoundError:
            continue
        except OSError:  # not ours to read
            content = None
        job = None
        if content is not None and _ID.fullmatch(entry.name):
            job = _parse(entry.name, content.decode("utf-8", errors="replace"))
        if job is None:
            others.append(entry.name)
        else:
            found.append(job)
    return sorted(found, key=lambda job: int(job.id)), sorted(others)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    with entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))
