"""What jobs are called: by their numbers, and by words of their commands.

Problem. Every job of an interpreter is a "python". A person knows a job by its script and what the script was given.

Algorithm. A job is called what its command is without the folder of the program, and without an interpreter and the
interpreter's options. Who looks for it gives a number of it, or a glob that matches a word of the command, with its
folder or without. Words stand between blanks: quotation marks are lost in a command that a page keeps.

Guarantee. A number that is some job's means that job, whatever is in the commands of others.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|julia|Rscript|lua|(ba|da|z)?sh)[\d.]*")
#: Options of interpreters behind which a word stands that is no script.
_WITH_WORD = ("-W", "-X")
#: Modules that run a script.
_RUNNERS = ("mpi4py", "mpi4py.run")
_MOST = 48


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2] or word


def _script(words: list[str]) -> list[str]:
    """Return what an interpreter runs and its arguments; nothing where it is no file or module."""
    words = words[1:]
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-c":
            return []
        if option == "-m" and words and words[0] not in _RUNNERS:
            break
        if option in ("-m", *_WITH_WORD):
            words = words[1:]
    return words


def _words_of(command: str, program: str) -> list[str]:
    """Return a script or a program without its folder, and its arguments; see `name_of`."""
    words = command.split() or [program]
    words = (_INTERPRETER.fullmatch(_base(words[0])) and _script(words)) or words
    return [_base(words[0]), *words[1:]]


def program_of(command: str, program: str) -> str:
    """Return the script or the program of a job, without its folder; see `name_of`."""
    return _words_of(command, program)[0]


def name_of(command: str, program: str) -> str:
    """Return what a job is called: the script or the program, and its arguments; the start of a long one.

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
        for each in (word, _base(word))
    )
