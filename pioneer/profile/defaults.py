"""The parts that a profile written by hand may leave out.

Problem.   Table III has thirteen characteristics for each class of files. Who describes a workload that was never
           traced knows what is done to how many files, and how large the requests are.
Content.   A class needs `inside`, the operations, and `size` if some of them move data. The rest, where it is missing:
           one file, and one open session of each. Operations are one behind the other (gaps of 1), all from the
           beginning of the path; a session has as many as `inside` has for each, open and close included (D). Accesses
           are one behind the other (SEQ). The access mode follows from the operations (AM). There are no slack times,
           and nothing outside of sessions. Offsets and sizes of files are as they come. `operations` and `span` are
           then what the classes have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpiio_ext.pioneer.operations import CATALOG, DATA, Role
from mpiio_ext.pioneer.profile.extended import parse_extended

_NOTHING: Mapping[str, list[int]] = {"values": [], "counts": []}
_SCALE = 1000  # of SEQ
_BY_NAME = {name: operation for (_, name), operation in CATALOG.items()}


def _always(value: int, count: int = 1) -> dict[str, list[int]]:
    return {"values": [value], "counts": [count]}


def _calls(inside: Mapping[str, int]) -> tuple[int, set[bool]]:
    """Return how many operations there are, seeks and waits included, and whether some read (False) or write (True)."""
    total, moves = 0, set()
    for name, count in inside.items():
        operation, after_seek, waited = parse_extended(_BY_NAME, name)
        total += count * (1 + after_seek + waited)
        if operation is not None and (operation.role in DATA or operation.role is Role.BEGIN):
            moves.add(bool(operation.writes))
    return total, moves


def _lengths(operations: int, sessions: int) -> dict[str, list[int]]:
    """Return operations dealt to sessions as evenly as can be, open and close included."""
    each, more = divmod(operations, sessions)
    counted = {2 + each: sessions - more, 3 + each: more}
    return {
        "values": [value for value, count in counted.items() if count],
        "counts": [count for count in counted.values() if count],
    }


def _completed_class(found: Mapping[str, Any]) -> dict[str, Any]:
    files = found.get("files", 1)
    opened = found.get("opened", _always(1, max(1, files)))
    pairs = list(zip(opened["values"], opened["counts"], strict=False))
    sessions = max(1, sum(value * count for value, count in pairs) * files // max(1, sum(count for _, count in pairs)))
    operations, moves = _calls(found["inside"])
    mode = {frozenset(): "none", frozenset({False}): "read", frozenset({True}): "write"}.get(
        frozenset(moves), "read_write"
    )
    return {
        "files": files,
        "opened": opened,
        "first": _always(0),
        "session_gap": _always(1),
        "request_gap": _always(1),
        "duration": _lengths(operations, sessions),
        "file_size": _NOTHING,
        "outside": {},
        "offset": _NOTHING,
        "size": _NOTHING,
        "sequentiality": _always(_SCALE) if moves else _NOTHING,
        "access_mode": {mode: sessions},
        "slack": _always(0),
        **found,
    }


def completed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile as JSON, with the parts that it left out.

    Parameters
    ----------
    document : its form is right (`schema.check`).
    """
    classes = {name: _completed_class(found) for name, found in document["classes"].items()}
    total = sum(_calls(found["inside"])[0] + sum(found["outside"].values()) for found in classes.values())
    return {"operations": total, "span": total, "ranks": 0, **document, "classes": classes}


def without_sizes(document: Mapping[str, Any]) -> list[str]:
    """Return the classes of a profile whose operations move data of a size that it lacks."""
    return [name for name, found in document["classes"].items() if "size" not in found and _calls(found["inside"])[1]]
