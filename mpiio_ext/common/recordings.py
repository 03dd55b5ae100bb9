"""The folder into which ``mpiio-ext run --report`` and ``--darshan`` record, and how it differs from others.

Beside the recordings of processes the folder has the begin and the end of the program, as the command knows them.

Guarantee. This module imports only the standard library, because every rank imports it.
"""

from __future__ import annotations

import json
import re
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: The library's statistics, as lines of JSON.
STATISTICS = "statistics.jsonl"
#: When the program was started and had ended (ns since 1970), and whether the user selected files.
_LAUNCH = "launch.json"
#: Made by the first process that loads the tracer (csrc/tools/trace/mpiox_trace_process.c), with the batch system's ID
#: of the job that the process is of.
LOADED = ".loaded"
#: How the file of each process ends: a recording; a trace, if every access is recorded.
SUFFIXES = (".mpioxrec", ".mpioxtrace")
#: Why a run has no recording at all.
NOT_LOADED = (
    "no process reported that it had loaded mpiio_ext: the launcher did not pass LD_PRELOAD on to the ranks, the"
    " program is linked statically, or the ranks run on a node that does not see the folder of the recordings"
)
#: The folder's own name, also where nothing was recorded into it.
_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.run")


#: The beginning of a recording, as `pioneer/darshan/recordings.py` has it: its state, its zero of time since
#: 1970, when MPI_Finalize began, process, parent, rank, host, whether the process has recorded how it ends, its exit
#: status, when it recorded that, when it called MPI_Abort, and with which code.
HEAD = struct.Struct("<16xI20xq8xq8xqqi36x256s2816xIi48xqqi")
_RUNNING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How far a process of a run has come, by its recording.

    Attributes
    ----------
    rank, host, pid : which; rank -1: it has none.
    running : it has not ended its recording: it lives, or was killed.
    finalized : it has begun MPI_Finalize.
    exit_status : the process has recorded that it ends with this one; None: it has not.
    abort_code : it has called MPI_Abort with this one; None: it has not.
    failed_ns : when it recorded that, or called MPI_Abort (ns since 1970); None: neither.
    """

    rank: int
    host: str
    pid: int
    running: bool
    finalized: bool
    exit_status: int | None
    abort_code: int | None = None
    failed_ns: int | None = None


def states(folder: Path) -> list[State]:
    """Return the states of the processes that have recorded into a folder, without the children of ranks."""
    found, parents = [], []
    for path in sorted(folder.glob(f"*{SUFFIXES[0]}")):
        with suppress(OSError), path.open("rb") as file:
            data = file.read(HEAD.size)
            if len(data) == HEAD.size:
                (state, since, finalized, pid, parent, rank, host, exited, status, left, aborted, code) = HEAD.unpack(
                    data
                )
                moment = aborted or (left if exited else 0)
                found.append(
                    State(
                        rank=rank,
                        host=host.partition(b"\0")[0].decode(errors="replace"),
                        pid=pid,
                        running=state == _RUNNING,
                        finalized=finalized != 0,
                        exit_status=status if exited else None,
                        abort_code=code if aborted else None,
                        failed_ns=moment + since if moment else None,
                    )
                )
                parents.append((found[-1].host, rank, parent))
    there = {(each.host, each.rank, each.pid) for each in found}
    return [each for each, parent in zip(found, parents, strict=True) if parent not in there]


def lives(pid: int) -> bool:
    """Return whether a process of this host lives; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def has_recordings(folder: Path) -> bool:
    """Return whether a folder is one that a run has recorded into."""
    named = _NAME.fullmatch(folder.absolute().name) is not None
    return folder.is_dir() and (named or (folder / STATISTICS).exists() or has_recordings_of_processes(folder))


def _launch(folder: Path) -> tuple[int | None, int | None, bool]:
    try:
        started, ended, selects = json.loads((folder / _LAUNCH).read_text(encoding="ascii"))
        return int(started), None if ended is None else int(ended), bool(selects)
    except (OSError, ValueError, TypeError):
        return None, None, False


def note_launch(folder: Path, started_ns: int, ended_ns: int | None = None, *, selects: bool | None = None) -> None:
    """Write the times at which a program was started and had ended; write nothing on a full disk.

    `selects`: the user selected files; None: as was written down before.
    """
    selects = _launch(folder)[2] if selects is None else selects
    with suppress(OSError):
        (folder / _LAUNCH).write_text(json.dumps([started_ns, ended_ns, selects]), encoding="ascii")


def launch_of(folder: Path) -> tuple[int | None, int | None]:
    """Return the times at which a program was started and had ended (ns since 1970); None if unknown."""
    return _launch(folder)[:2]


def was_loaded(folder: Path) -> bool:
    """Return whether any process has loaded the tracer that records into a folder."""
    return (folder / LOADED).exists() or has_recordings_of_processes(folder)


def scheduler_job(folder: Path) -> str:
    """Return the batch system's ID of the job that has recorded into a folder; "" if there is no known one."""
    try:
        return (folder / LOADED).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def has_recordings_of_processes(folder: Path) -> bool:
    """Return whether any process has recorded into a folder."""
    return any(next(folder.glob(f"*{suffix}"), None) is not None for suffix in SUFFIXES)


def nothing_recorded(folder: Path) -> str:
    """Return why there may be no recording in a folder."""
    if not was_loaded(folder):
        return NOT_LOADED
    calls = (
        "has made no call on a file that --only/--skip select"
        if _launch(folder)[2]
        else "has done no I/O, or only on files of the system, or a script started it and it is linked statically"
    )
    return f"no call was recorded: the program {calls}"
