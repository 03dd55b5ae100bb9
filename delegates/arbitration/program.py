"""What a program is called, by its command line: the name that its curve and weight have.

Problem.    An interpreter is not the program: every program in Python would be "python3", with one curve for all.
Algorithm.  The file name of the executable; where that is Python, of the script, or the module after ``-m``, without
            ``.py``. The library announces jobs by the same rule (csrc/iod/arbiter/mpiox_program.h), so that a curve
            that was learnt from a Darshan log is found when the program runs again. The hint `mpiox_arbiter_name` names
            another one.
Guarantees. Never empty; letters, digits and ``._+-`` only, others become ``_``; at most 63 characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PYTHON = re.compile(r"python[0-9.]*")
#: Options of Python that the next word belongs to.
_WITH_WORD = ("-W", "-X", "--check-hash-based-pycs")
_MOST = 63


def _of_python(words: Sequence[str]) -> str | None:
    """Return the script or module that Python runs, given the words behind its name; None: neither."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-m":
            return words[at + 1] if at + 1 < len(words) else None
        if word in ("-c", "-") or not word.startswith("-"):
            return None if word.startswith("-") else word.rpartition("/")[2].removesuffix(".py")
        at += 2 if word in _WITH_WORD else 1
    return None


def program_name(words: Sequence[str]) -> str:
    """Return the name of the program of a command line, its executable first."""
    executable = words[0].rpartition("/")[2] if words else ""
    name = (_of_python(words[1:]) if _PYTHON.fullmatch(executable) else None) or executable
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name)[:_MOST] or "unknown"
