"""The form of a workload path that was written by hand, and the mistakes in one, with their places.

Problem.   A path in JSON is there to be written and edited by people. Each mistake shall be a line with its place.
Algorithm. `PathInfo` and the columns of as many groups as the path has are its form (`common.documents`). What types
           cannot say is checked behind that: numbers of groups, bits of groups that are not there, values of groups
           that do not make an operation, names.
Guarantee. Every line begins with a JSON pointer (RFC 6901). A path without problems can be loaded.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, with_config
from typing_extensions import Required, TypedDict

from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, DocumentError, made_of, pointer
from mpiio_ext.pioneer.path.names import Template
from mpiio_ext.pioneer.path.rules import Rule

VERSION: Literal[1] = 1
#: Bits of the column `groups`.
MOST_GROUPS = 63
#: File classes of the paper: used by the root process alone, by several processes, by each process its own; and by
#: children alone.
OWNERS = ("root", "shared", "private", "child")

Whole = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**63 - 1)]
_Rank = Annotated[int, Field(ge=0, le=1 << 24)]
_Size = Annotated[int, Field(ge=1, le=1 << 24)]

#: Columns of each group: bytes, bytes, ns, ns.
_VALUES = {"offset": Whole, "size": Count, "duration": Count, "slack": Count}

_Communicator = TypedDict(
    "_Communicator",
    {"blocks": _Size, "every": _Size, "from": _Rank, "ranks": list[list[_Rank]], "which": list[_Rank]},
    total=False,
)
with_config(CLOSED)(_Communicator)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathInfo:
    """The facts that all rows share.

    Attributes
    ----------
    representatives : ranks whose traces the path was made of; the root first, then one of each subgroup.
    members : ranks of each subgroup, as far as they are known; [0] is the root's.
    ranks : of the program that was traced; 0: not known.
    minimal : the differences between the representatives are the fewest that exist.
    starts : ns from the first operation of any rank to the first one of each representative; empty: not known.
    communicators : rules of those of a part of the ranks; the number ``communicator`` in `extra` of an open is a place
        in this list.
    """

    __pydantic_config__ = CLOSED

    representatives: tuple[Count, ...]
    members: tuple[tuple[Count, ...], ...]
    ranks: Count = 0
    minimal: bool = True
    starts: tuple[Count, ...] = ()
    communicators: tuple[Annotated[Rule, made_of(_Communicator, Rule.from_json)], ...] = ()
    version: Literal[1] = VERSION

    @property
    def traced(self) -> int:
        """How many ranks were traced."""
        return self.ranks or 1 + max(rank for group in (self.representatives, *self.members) for rank in group)

    def start(self, group: int) -> int:
        """Return the start of a group, ns; 0 if unknown."""
        return self.starts[group] if self.starts else 0

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object, without communicators and starts if there are none."""
        found = asdict(self)
        found["communicators"] = [rule.to_json() for rule in self.communicators]
        return {name: value for name, value in found.items() if name not in ("communicators", "starts") or value}


def parse_info(document: Any) -> PathInfo:
    """Return the facts that all operations of a path share.

    Raises
    ------
    DocumentError
        A fact is missing or wrong.
    """
    info = documents.parse(PathInfo, document)
    groups, members, starts = len(info.representatives), len(info.members), len(info.starts)
    mistakes = []
    if not 1 <= groups <= MOST_GROUPS:
        mistakes.append(("/representatives", f"there are {groups}; a path has 1 to {MOST_GROUPS} groups"))
    if members != groups:
        mistakes.append(("/members", f"there are {members}, and {groups} representatives"))
    if starts not in (0, groups):
        mistakes.append(("/starts", f"there are {starts}, and {groups} representatives"))
    if mistakes:
        raise DocumentError(mistakes)
    return info


_Info = Annotated[PathInfo, PlainValidator(parse_info, json_schema_input_type=PathInfo)]
_Head = TypedDict("_Head", {"pioneer-path": _Info, "operations": list[Any]})
with_config(CLOSED)(_Head)


@functools.cache
def path_form(groups: int) -> Any:
    """Return the form of paths of so many groups."""
    form: Any = TypedDict  # its fields are known at run time only
    columns = {f"{name}_{group}": kind | None for group in range(groups) for name, kind in _VALUES.items()}
    row = form(
        "Operation",
        {
            "id": Count | None,
            "operation": Required[str],
            "file": str | None,
            "owner": Literal["root", "shared", "private", "child"] | None,
            "groups": Required[Positive],
            "session": Count | None,
            "layer": Required[Literal["posix", "stdio", "mpiio", "mpi"]],
            "extra": str | dict[str, Any] | None,
            **columns,
        },
        total=False,
    )
    rows: Any = list[with_config(CLOSED)(row)]  # type: ignore[misc]
    return with_config(CLOSED)(form("Path", {"pioneer-path": _Info, "operations": rows}))


def _extra_of(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the object in `extra`; None: it is no object."""
    extra = row.get("extra")
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except (ValueError, RecursionError):
            return None
    return {} if extra is None else extra if isinstance(extra, dict) else None


def _of_operation(row: dict[str, Any], groups: int, communicators: int) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in an operation that a schema cannot find: the name of the member, and the mistake."""
    if row["groups"] >> groups:
        yield "groups", f"{row['groups']} has bits of groups that are not there: the path has {groups}"
    for name in _VALUES:
        for group in range(groups):
            if row.get(f"{name}_{group}") is not None and not row["groups"] >> group & 1:
                yield f"{name}_{group}", f"group {group} does not make this operation"
    if row.get("file") is not None:
        try:
            Template(row["file"]).name(0)
        except ValueError as error:
            yield "file", str(error)
    extra = _extra_of(row)
    if extra is None:
        yield "extra", "the text is no JSON object"
    elif "communicator" in extra:
        number = extra["communicator"]
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < communicators:
            yield "extra", f"communicator {json.dumps(number)} is not there: the path has {communicators}"


def parse_path(document: Any) -> tuple[PathInfo, list[dict[str, Any]]]:
    """Return the facts that all operations share, and the operations, from a JSON value.

    Raises
    ------
    DocumentError
        The value is no path; the error lists all mistakes.
    """
    info = documents.parse(_Head, document)["pioneer-path"]
    groups = len(info.representatives)
    rows: list[dict[str, Any]] = documents.parse(path_form(groups), document)["operations"]
    mistakes = [
        (pointer("operations", number, name), what)
        for number, row in enumerate(rows)
        for name, what in _of_operation(row, groups, len(info.communicators))
    ]
    if mistakes:
        raise DocumentError(mistakes)
    return info, rows
