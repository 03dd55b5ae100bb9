"""The one table of I/O calls, ``iocalls.txt``: the calls of MPI, POSIX and stdio, for all code that has to know one.

Problem. Wrappers, tracer, readers of traces, engine and Darshan's modules have to know different things of the same
calls. Algorithm. A row of the table has all that is known of a call; here it becomes a `Call`. Generators of C sources
run this file alone, before the package is there.
Guarantee. The standard library suffices. A word or key that the head of the table does not explain is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_suffix(".txt")
#: What a call does to a file: names of `pioneer.operations.Role`.
ROLES = frozenset(
    "open close read write seek sync resize query control begin end map unmap duplicate wait meta".split()
)
_WORDS = ROLES | frozenset(
    "pass handled outside tracer blocking nonblocking collective shared large mpi5 nofortran f08alias "
    "at traced unread removes needs second lists".split()
)
_KEYS = frozenset({"darshan", "time", "plain", "as", "left", "is"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A row of the table, whose head explains the words.

    Attributes
    ----------
    name : of the function; of MPI with "MPI_".
    layer : "mpiio", "mpi", "posix" or "stdio".
    words : what it is.
    values : what it is, as key and value.
    parameters : (type, name) in the order of the call; a type that nobody needs is "".
    returns : type of what it returns, or "handle"; "": int.
    """

    name: str
    layer: str
    words: tuple[str, ...]
    values: dict[str, str]
    parameters: tuple[tuple[str, str], ...]
    returns: str

    @property
    def role(self) -> str:
        """Effect of the call on a file, one of `ROLES`; "": it is no I/O, or only a row of a trace comes from it."""
        return next((word for word in self.words if word in ROLES), "")


def _call(section: str, line: str) -> Call:
    name, described, signature = (part.strip() for part in re.split(r"\s:(?:\s|$)", line, maxsplit=2))
    signature, _, returns = (part.strip() for part in signature.partition("->"))
    words = [word for word in described.split() if "=" not in word]
    values = dict(word.split("=") for word in described.split() if "=" in word)
    if unknown := {*words} - _WORDS | values.keys() - _KEYS:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}")
    return Call(
        name=f"MPI_{name}" if section == "mpi" else name,
        layer="mpiio" if section == "mpi" and name.startswith("File_") else section,
        words=tuple(words),
        values=values,
        parameters=tuple((kind, word) for kind, _, word in (item.rpartition(":") for item in signature.split())),
        returns=returns,
    )


def parse(text: str) -> list[Call]:
    """Return the rows of a table.

    Raises
    ------
    ValueError
        A line is not of the documented form; with its number.
    """
    calls, section = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.fullmatch(r"\[(\w+)\]", line):
            section = found[1]
        elif line.strip() and not line.startswith("#"):
            try:
                calls.append(_call(section, line))
            except ValueError as error:
                raise ValueError(f"{TABLE.name}:{number}: {error}, or not NAME : WORDS : PARAMETERS") from error
    return calls


CALLS = parse(TABLE.read_text(encoding="utf-8"))
