"""Names of jobs: their numbers, and words of their commands.

Problem. Every job of an interpreter is a "python". A person knows a job by its script and what the script was given.

Algorithm. A job is called what its command is without the folder of the program, and without an interpreter and the
interpreter's options. The user gives a number of the name, or a glob that matches a word of the command, with its
folder or without. Words stand between blanks: quotation marks are lost in a command that a page keeps.

Guarantee. A number that is some job's means that job, whatever is in the commands of others.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from mpiio_ext.common.programs import base_name, without_interpreter

_MOST = 48


def _words_of(command: str, program: str) -> list[str]:
    """Return a script or a program without its folder, and its arguments; see `name_of`."""
    words = without_interpreter(command.split() or [program])
    return [base_name(words[0]), *words[1:]]


def program_of(command: str, program: str) -> str:
    """Return the script or the program of a job, without its folder; see `name_of`."""
    return _words_of(command, program)[0]


def name_of(command: str, program: str) -> str:
    """Return the name of a job: the script or the program, and its arguments; the start of a long one.

    Parameters
    ----------
    command : words between blanks; "": it is not known.
    program : what the system calls the process.
    """
    name = " ".join(_words_of(command, program))
    return name if len(name) <= _MOST else f"{name[: _MOST - 1]}…"


def is_word_of(wanted: str, commands: Iterable[str]) -> bool:
    """Return whether a glob matches a word of one of the commands, with its folder or without."""
    return any(
        fnmatch.fnmatchcase(each, wanted)
        for command in commands
        for word in command.split()
        for each in (word, base_name(word))
    )
