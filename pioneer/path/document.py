"""What is wrong with a workload path that was written by hand, and where.

Problem.   A path in JSON is there to be written and edited by people. Each mistake shall be a line with its place.
Algorithm. `schema.json` is the statement of its form; it is checked as that of profiles is (`schema_check`), with the
           columns of as many groups as the path has. What a schema cannot say is checked behind that: numbers of
           groups, bits of groups that are not there, values of groups that do not make an operation, names.
Guarantee. Every line begins with a JSON pointer (RFC 6901). A path without problems can be loaded.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpiio_ext.pioneer.path.names import Template
from mpiio_ext.pioneer.schema_check import check, pointer

__all__ = ["MOST_GROUPS", "problems_of", "problems_of_info"]

#: Bits of the column `groups`.
MOST_GROUPS = 63

#: Columns of each group, and where the schema has their form.
_VALUES = {"offset": "offset", "size": "length", "duration": "length", "slack": "length"}


@functools.cache
def _form() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))
    return found


def _schema(groups: int) -> dict[str, Any]:
    """Return the schema of paths of so many groups."""
    form = _form()
    operation = form["$defs"]["operation"]
    values = {f"{name}_{group}": {"$ref": f"#/$defs/{kind}"} for group in range(groups)
              for name, kind in _VALUES.items()}  # fmt: skip
    operation = operation | {"properties": operation["properties"] | values}
    return form | {"$defs": form["$defs"] | {"operation": operation}}


def problems_of_info(info: Any) -> list[str]:
    """Return what is wrong with what is common to all operations of a path."""
    form = _form()
    found = [f"/pioneer-path{line.removeprefix('/') if line.startswith('/:') else line}"
             for line in check(info, form["properties"]["pioneer-path"] | {"$defs": form["$defs"]})]  # fmt: skip
    if found:
        return found
    groups, members = len(info["representatives"]), len(info["members"])
    if not 1 <= groups <= MOST_GROUPS:
        found.append(f"/pioneer-path/representatives: there are {groups}; a path has 1 to {MOST_GROUPS} groups")
    if members != groups:
        found.append(f"/pioneer-path/members: there are {members}, and {groups} representatives")
    starts = len(info.get("starts", ()))
    if starts not in (0, groups):
        found.append(f"/pioneer-path/starts: there are {starts}, and {groups} representatives")
    return found


def _of_operation(row: dict[str, Any], groups: int) -> Iterator[tuple[str, str]]:
    """Yield what a schema cannot say of an operation: the name of the member, and what is wrong."""
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
    if isinstance(row.get("extra"), str):
        try:
            is_object = isinstance(json.loads(row["extra"]), dict)
        except (ValueError, RecursionError):
            is_object = False
        if not is_object:
            yield "extra", "the text is no JSON object"


def problems_of(document: Any) -> list[str]:
    """Return what is wrong with a path as a JSON value: a line each, which begins with its place."""
    info = document.get("pioneer-path") if isinstance(document, dict) else None
    found = problems_of_info(info) if info is not None else check(document, _schema(1))
    if found:
        return found
    groups = len(document["pioneer-path"]["representatives"])
    found = check(document, _schema(groups))
    if found:
        return found
    return [f"{pointer('operations', number, name)}: {what}" for number, row in enumerate(document["operations"])
            for name, what in _of_operation(row, groups)]  # fmt: skip

