"""Commands of mpiio-ext, called from Python: a process of their own, options by name, errors as exceptions.

Problem. A tuner sets variables and takes signals, and the bench is an MPI program: neither belongs into the process of
a notebook. Algorithm: the command runs as a child. Guarantee: if a command fails, the function raises an error with the
last line of the command, not of its launcher. The options of a command are a TypedDict: mypy checks them, and
`keywords` shows them.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mpiio_ext.errors import ArgumentError, MpiioExtError

#: Values of options: a size or time as text or in bytes or seconds; a number; an option that may be repeated.
Quantity = str | int | float | None
Number = int | float | None
Several = str | Sequence[str] | None

Function = TypeVar("Function", bound=Callable[..., Any])

#: How a line of an error begins; launchers print more lines behind it.
_ERROR = re.compile(r"(mpiio[-_]ext[\w. -]*|\w*Error): ")
#: How Open MPI's launcher names a program that it cannot start, in the middle of a text; others name it in their line.
_NOT_STARTED = re.compile(r"^Executable: +(.+)$", re.MULTILINE)


class CommandError(MpiioExtError):
    """A command has failed.

    Attributes
    ----------
    status : its exit status.
    """

    def __init__(self, status: int, output: str) -> None:
        lines = [line for line in output.splitlines() if any(map(str.isalnum, line))]
        unstarted = [
            f"{name}: there is no such program, or it cannot be executed" for name in _NOT_STARTED.findall(output)
        ]
        last = ([line for line in lines if _ERROR.match(line)] or unstarted or lines)[-1:]
        super().__init__(*last or [f"the command ended with status {status}"])
        self.status = status


def keywords(options: type) -> Callable[[Function], Function]:
    """Return a decorator that puts the keys of a TypedDict in place of ``**options``, for help() and completion."""
    given = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=getattr(kind, "__forward_arg__", kind)
        )
        for name, kind in options.__annotations__.items()
    ]

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        before = [each for each in own.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        function.__signature__ = own.replace(parameters=[*before, *given])  # type: ignore[attr-defined]
        return function

    return decorate


def words_of(options: Mapping[str, object], *opposites: str) -> Iterator[str]:
    """Yield the words of options.

    ``metric_regex="x"`` is ``--metric-regex x``, True is a flag, and False of `opposites` is ``--no-NAME``. A sequence
    becomes an option that is repeated; a None becomes no option.
    """
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            yield flag
        elif value is False and name in opposites:
            yield f"--no-{flag[2:]}"
        elif value is not None and value is not False:
            for each in value if isinstance(value, Sequence) and not isinstance(value, str) else [value]:
                yield from (flag, str(each))


def call(
    words: Sequence[str], *, program: Sequence[str] = (), launcher: Sequence[str] = (), module: str = "mpiio_ext"
) -> str:
    """Run a command; return its output.

    Parameters
    ----------
    words : of the command.
    program : what the command starts, with its arguments.
    launcher : what starts the command, such as ``("mpirun", "-n", "4")``.
    module : Python module that is the command.

    Raises
    ------
    CommandError
        The command ends with another status than 0, or the launcher cannot be started.
    ArgumentError
        A program or launcher is a text and not a list of words.
    """
    for given in (program, launcher):
        if isinstance(given, str):
            raise ArgumentError(f"{given!r} is one text: give a list of words, as {given.split()}")
    command = [*launcher, sys.executable, "-m", module, *words, *(["--", *program] if program else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise CommandError(127, f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode:
        raise CommandError(done.returncode, done.stderr or done.stdout)
    return done.stdout
