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
from mpiio_ext.pioneer.path.rules import Rule
from mpiio_ext.pioneer.schema_check import check, pointer

__all__ = ["MOST_GROUPS", "check_communicator", "problems_of", "problems_of_info"]

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
    found += [f"{pointer('pioneer-path', 'communicators', number)}{where}: {what}"
              for number, rule in enumerate(info.get("communicators", ())) for where, what in check_communicator(rule)]
    return found


def check_communicator(found: Any) -> list[tuple[str, str]]:
    """Return what is wrong with the rule of a communicator as a JSON value: its place in it, and what."""
    form = _form()
    problems = check(found, form["$defs"]["communicator"] | {"$defs": form["$defs"]})
    if problems:
        return [(place if place != "/" else "", what) for place, _, what in (line.partition(": ") for line in problems)]
    try:
        Rule.from_json(found)
    except ValueError as error:
        return [("", str(error))]
    return []


def _extra_of(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the object that `extra` is; None: it is none."""
    extra = row.get("extra")
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except (ValueError, RecursionError):
            return None
    return {} if extra is None else extra if isinstance(extra, dict) else None


def _of_operation(row: dict[str, Any], groups: int, communicators: int) -> Iterator[tuple[str, str]]:
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
    extra = _extra_of(row)
    if extra is None:
        yield "extra", "the text is no JSON object"
    elif "communicator" in extra:
        number = extra["communicator"]
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < communicators:
            yield "extra", f"communicator {json.dumps(number)} is not there: the path has {communicators}"


def problems_of(document: Any) -> list[str]:
    """Return what is wrong with a path as a JSON value: a line each, which begins with its place."""
    info = document.get("pioneer-path") if isinstance(document, dict) else None
    found = problems_of_info(info) if info is not None else check(document, _schema(1))
    if found:
        return found
    groups = len(document["pioneer-path"]["representatives"])
    communicators = len(document["pioneer-path"].get("communicators", ()))
    found = check(document, _schema(groups))
    if found:
        return found
    return [f"{pointer('operations', number, name)}: {what}" for number, row in enumerate(document["operations"])
            for name, what in _of_operation(row, groups, communicators)]  # fmt: skip

