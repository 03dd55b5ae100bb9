"""Child processes that carry out checks: a child that hangs, crashes or is ended by MPI ends no other process.

Algorithm. A question is a function of `mpiio_ext.doctor.probes`. The child runs that file as a script, so that a
question loads this library only if it is about it. The child inherits the descriptor of a file without a name, and
writes each fact there as soon as it knows it, one JSON object a line. All facts count that it wrote before it ended,
whether it ended by itself or not. At its limit the child is killed with its process group
(`mpiio_ext.common.children`).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from mpiio_ext.common.children import last_line, run

#: A child ends itself by an alarm so many seconds after its limit, should its parent be gone.
_ALARM_S = 5
_OUTPUT = 2000
_PROBES = Path(__file__).with_name("probes.py")


class JobEnded(Exception):  # noqa: N818  (no error of this program)
    """The launcher of the job has asked this process to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a child process.

    Attributes
    ----------
    values : all that it has reported, later values over earlier ones.
    trouble : "" when it ended by itself with status 0, else how it ended, such as "no answer within 20 s".
    output : end of its standard output and error.
    """

    values: dict[str, Any] = field(default_factory=dict)
    trouble: str = ""
    output: str = ""

    def reason(self) -> str:
        """Return the status of the process and the last line that it printed, in one line."""
        return ": ".join(word for word in (self.trouble, last_line(self.output)) if word)


def _values(file: IO[bytes]) -> dict[str, Any]:
    file.seek(0)
    found: dict[str, Any] = {}
    for line in file.read().splitlines():
        with contextlib.suppress(ValueError):  # a line that was cut by the child's end
            values = json.loads(line)
            if isinstance(values, dict):
                found |= values
    return found


def ask(
    question: str, *words: str, environment: Mapping[str, str] | None = None, limit_s: float = 20, inherit: bool = False
) -> Answer:
    """Put a question to a child process and wait for it for a limited time.

    Parameters
    ----------
    question : name of a function in `mpiio_ext.doctor.probes`.
    words : its arguments.
    environment : complete environment of the child; None for that of this process.
    limit_s : seconds after which the child is killed.
    inherit : the child inherits every descriptor that can be inherited; the question is the job's, and its answers
        count even if the launcher ends it.

    Raises
    ------
    JobEnded
        The launcher ends the job; not with `inherit`.
    """
    with tempfile.TemporaryFile() as answers:
        number = answers.fileno()
        command = [sys.executable, str(_PROBES), str(number), str(int(limit_s) + _ALARM_S), question, *words]
        try:
            os.set_inheritable(number, inherit)
            kept = None if inherit else (number,)
            ended = run(command, environment=environment, limit_s=limit_s, errors="output", keep=kept)
            trouble, printed = ended.trouble, ended.output
        except JobEnded:
            if not inherit:
                raise
            trouble, printed = "the launcher ended the job", ""  # the answers of its ranks are worth more than haste
        return Answer(values=_values(answers), trouble=trouble, output=printed[-_OUTPUT:])


def pause(seconds: float) -> None:
    """Wait, unless the launcher ends the job."""
    with contextlib.suppress(JobEnded):
        time.sleep(seconds)
