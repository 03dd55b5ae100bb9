"""The folder into which ``mpiio-ext run --report`` and ``--darshan`` record, and how it is told from others.

Guarantee. Importing this module imports nothing but the standard library: every rank does.
"""

from __future__ import annotations

import re
from pathlib import Path

#: The library's statistics, as lines of JSON.
STATISTICS = "statistics.jsonl"
#: How the file of each process ends: a recording; a trace, where every access was asked for.
SUFFIXES = (".mpioxrec", ".mpioxtrace")
#: The folder's own name, also where nothing was recorded into it.
_NAME = re.compile(r"\..+\.[0-9a-f]{16}\.run")


def has_recordings(folder: Path) -> bool:
    """Return whether a folder is one that a run has recorded into."""
    names = (STATISTICS, *(f"*{suffix}" for suffix in SUFFIXES))
    named = _NAME.fullmatch(folder.absolute().name) is not None
    return folder.is_dir() and (named or any(next(folder.glob(name), None) is not None for name in names))
