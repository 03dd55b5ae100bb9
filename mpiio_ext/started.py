"""What ``mpiio-ext run`` becomes: the command of a program with the library under it, found without the command line.

Problem. Each rank of ``mpirun mpiio-ext run -- ./app`` pays for what is imported before the program. Reading options,
their help and their errors takes most of that.

Algorithm. `begin` reads the common words alone, hints and the program behind them, and becomes the program. For any
other word, variable or error it returns, and the command line begins anew, which reads and reports everything.

Guarantee. The program gets the same environment as by the command line: both use the functions of this module.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mpiio_ext.errors import ArgumentError, LoadError, MpiioExtError

if TYPE_CHECKING:
    from mpiio_ext.launchers import Launch

_WITH_GLOB = re.compile(r"(?P<glob>.+?):(?P<name>[A-Za-z]\w*)\s*=(?P<value>.*)", re.DOTALL)
_PLAIN = re.compile(r"(?P<name>[A-Za-z]\w*)\s*=(?P<value>.*)", re.DOTALL)
_HINT = ("-H", "--hint")
#: Variables that ask for more than the program.
_MORE = ("MPIOX_STATS", "MPIOX_STATS_FILE", "MPIOX_REPORT", "_MPIIO_EXT_COMPLETE")


def hint_rule(text: str) -> str:
    """Turn ``[GLOB:]NAME=VALUE`` into a rule of MPIOX_HINTS, checked; raises `ArgumentError`."""
    from mpiio_ext.hints import check, quote

    match = _PLAIN.fullmatch(text) or _WITH_GLOB.fullmatch(text)
    if match is None:
        raise ArgumentError(f"{text!r} is not of the form [GLOB:]NAME=VALUE")
    check(match["name"], match["value"])
    return f"{quote(match.groupdict().get('glob') or '*')}:{match['name']}={quote(match['value'])}"


def with_hints(rules: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable for rules of hints, behind those that are there."""
    present = environment.get("MPIOX_HINTS", "")
    return {"MPIOX_HINTS": ",".join([*([present] if present else []), *rules])} if rules else {}


def planned(command: Sequence[str], library: str, settings: Mapping[str, str]) -> Launch:
    """Return the command to execute, with the library preloaded.

    Raises
    ------
    LoadError
        The launcher, or the program, is of another MPI or C library.
    """
    from mpiio_ext._load import family as family_of_library
    from mpiio_ext.launchers import launcher_family, plan
    from mpiio_ext.loadable import first_libraries

    family = family_of_library()
    kind = launcher_family(command[0], family)
    if (kind, family) in (("openmpi", "mpich"), ("hydra", "openmpi")):
        names = {"openmpi": "Open MPI", "mpich": "MPICH", "hydra": "MPICH"}
        raise LoadError(
            f"{command[0]} starts programs of {names[kind or family]}, but the program or this mpiio_ext is for "
            f"{names[family]}: use the launcher of that MPI library, or the mpiio-ext of the other one"
        )
    library = ":".join([*first_libraries(command, kind is not None), library])
    return plan(command, library=library, settings=settings, family=family, environment=os.environ)


def _words(arguments: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """Return the hints, and the program with its arguments; no program: they are not of the common form."""
    hints, at = list[str](), 0
    while arguments[at : at + 1] and arguments[at] in _HINT and len(arguments) > at + 1:
        hints.append(arguments[at + 1])
        at += 2
    at += arguments[at : at + 1] == ["--"]
    command = arguments[at:]
    return hints, command if command and not command[0].startswith("-") else ()


def begin(arguments: Sequence[str]) -> None:
    """Become the program of ``mpiio-ext run [-H HINT]... [--] PROGRAM``; return if anything else is to be done.

    Parameters
    ----------
    arguments : those of the command, without its own name.
    """
    if arguments[:1] != ["run"] or any(name in os.environ for name in _MORE):
        return
    hints, command = _words(arguments[1:])
    if not command:
        return
    from mpiio_ext import __version__, _load
    from mpiio_ext.environment import unknown
    from mpiio_ext.launchers import execute

    try:
        settings = with_hints([hint_rule(hint) for hint in hints], os.environ)
        _load.select(command)
        if _load.misfit_here(__version__) or unknown(os.environ):
            return
        launch = planned(command, str(_load.get_library()), settings)
        sys.stdout.flush()
        execute(launch)
    except (MpiioExtError, OSError):  # the command line finds it again, and reports it
        return
