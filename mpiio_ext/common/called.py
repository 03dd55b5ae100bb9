"""Commands of mpiio-ext, called from Python: a process of their own, options by name, errors as exceptions.

Problem. A tuner sets variables and takes signals, and the bench is an MPI program: neither belongs into the process of
a notebook. Algorithm: the command runs as a child. Guarantee: a command that fails raises, with the last line that it,
and not its launcher, has said.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from mpiio_ext.errors import ArgumentError, MpiioExtError

#: True is a flag, False its opposite where it has one; a sequence is an option that is repeated; None is left out.
Option = str | int | float | bool | Sequence[str] | None


#: How a line of an error begins; launchers say more lines behind it.
_ERROR = re.compile(r"(mpiio[-_]ext[\w. -]*|\w*Error): ")


class CommandError(MpiioExtError):
    """A command has failed.

    Attributes
    ----------
    status : its exit status.
    """

    def __init__(self, status: int, said: str) -> None:
        lines = [line for line in said.splitlines() if any(map(str.isalnum, line))]
        last = ([line for line in lines if _ERROR.match(line)] or lines)[-1:]
        super().__init__(*last or [f"the command ended with status {status}"])
        self.status = status


def words_of(options: Mapping[str, Option], *opposites: str) -> Iterator[str]:
    """Yield the words of options.

    ``metric_regex="x"`` is ``--metric-regex x``, and False of `opposites` is ``--no-NAME``.
    """
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            yield flag
        elif value is False and name in opposites:
            yield f"--no-{flag[2:]}"
        elif value is not None and value is not False:
            for each in [value] if isinstance(value, (str, int, float)) else value:
                yield from (flag, str(each))


def call(
    words: Sequence[str], *, program: Sequence[str] = (), launcher: Sequence[str] = (), module: str = "mpiio_ext"
) -> str:
    """Run a command; return what it has printed.

    Parameters
    ----------
    words : of the command.
    program : what the command starts, with its arguments.
    launcher : what starts the command, such as ``("mpirun", "-n", "4")``.
    module : Python module that is the command.

    Raises
    ------
    CommandError
        Its exit status is not 0, or the launcher is not there.
    ArgumentError
        A program or launcher is one text.
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
