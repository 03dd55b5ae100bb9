"""The name of a program, from its command line: its curve and weight have this name.

Problem.    An interpreter is not the program: every program in Python would be "python3", with one curve for all.
Algorithm.  The file name of the executable; where that is Python, of what it runs (:mod:`mpiio_ext.common.programs`),
            without ``.py``. The library announces jobs by the same rule (csrc/iod/arbiter/mpiox_program.h), so that a
            curve that was learnt from a Darshan log is found when the program runs again. The hint `mpiox_arbiter_name`
            names another one.
Guarantees. Never empty; letters, digits and ``._+-`` only, others become ``_``; at most 63 characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mpiio_ext.common.programs import PYTHON, script_of

_MOST = 63


def program_name(words: Sequence[str]) -> str:
    """Return the name of the program of a command line, its executable first."""
    executable = words[0].rpartition("/")[2] if words else ""
    script = script_of(words[1:]) if PYTHON.fullmatch(executable) else []
    name = (script[0].rpartition("/")[2].removesuffix(".py") if script else "") or executable
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name)[:_MOST] or "unknown"
