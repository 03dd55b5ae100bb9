"""The folder into which ``mpiio-ext run --report`` and ``--darshan`` record, and how it is told from others.

Beside what processes record it has when the program was started, and when it had ended, as the command knows it.

Guarantee. Importing this module imports nothing but the standard library: every rank does.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

#: The library's statistics, as lines of JSON.
STATISTICS = "statistics.jsonl"
#: When the program was started and had ended (ns since 1970).
_LAUNCH = "launch.json"
#: How the file of each process ends: a recording; a trace, where every access was asked for.
SUFFIXES = (".mpioxrec", ".mpioxtrace")
#: The folder's own name, also where nothing was recorded into it.
_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.run")


def has_recordings(folder: Path) -> bool:
    """Return whether a folder is one that a run has recorded into."""
    names = (STATISTICS, *(f"*{suffix}" for suffix in SUFFIXES))
    named = _NAME.fullmatch(folder.absolute().name) is not None
    return folder.is_dir() and (named or any(next(folder.glob(name), None) is not None for name in names))


def note_launch(folder: Path, started_ns: int, ended_ns: int | None = None) -> None:
    """Write down when a program was started, and when it had ended; on a full disk nothing."""
    with suppress(OSError):
        (folder / _LAUNCH).write_text(json.dumps([started_ns, ended_ns]), encoding="ascii")


def launch_of(folder: Path) -> tuple[int | None, int | None]:
    """Return when a program was started and had ended (ns since 1970); None where that is not known."""
    try:
        started, ended = json.loads((folder / _LAUNCH).read_text(encoding="ascii"))
        return int(started), None if ended is None else int(ended)
    except (OSError, ValueError, TypeError):
        return None, None
