"""The profile as a JSON file: written by the characterization or by hand, edited, checked.

Problem.   People change a profile to get another workload. What they have got wrong must be said with its place, all of
           it at once, before anything is made of it.
Content.   ``{"pioneer_profile": 1, "operations": ..., "span": ..., "ranks": ..., "classes": {"shared": {...}}}``. The
           names are those of `ClassProfile`; units are in `UNITS`. A distribution has "values" and "counts"; a table of
           operations has counts by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from mpiio_ext.pioneer.path import OWNERS
from mpiio_ext.pioneer.profile.characterize import NO_FILE, SCALE, ClassProfile, Profile
from mpiio_ext.pioneer.profile.distributions import Distribution

__all__ = ["UNITS", "VERSION", "ProfileError", "load", "parse", "save", "to_json"]

VERSION = 1

#: Unit of each characteristic that has one; the others are numbers of operations, sessions or files.
UNITS = {
    "first": "global sequence ID", "session_gap": "global sequence IDs", "request_gap": "global sequence IDs",
    "duration": "operations", "file_size": "bytes", "offset": "bytes", "size": "bytes",
    "sequentiality": f"1/{SCALE}", "slack": "ns",
}  # fmt: skip

_TABLES = ("inside", "outside", "access_mode")
_NUMBERS = ("files",)
_DISTRIBUTIONS = tuple(item.name for item in fields(ClassProfile) if item.name not in (*_TABLES, *_NUMBERS))
_MODES = frozenset({"read", "write", "read_write", "none"})
_HEAD = ("operations", "span", "ranks")


class ProfileError(ValueError):
    """A profile is not valid.

    Attributes
    ----------
    problems : one line each, beginning with the place: ``classes.shared.size: a count is not greater than 0``.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


# ---- writing ---------------------------------------------------------------------------------------------------------


def _class_to_json(found: ClassProfile) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for item in fields(ClassProfile):
        value = getattr(found, item.name)
        document[item.name] = value.to_json() if isinstance(value, Distribution) else value
    return document


def to_json(profile: Profile) -> dict[str, Any]:
    """Return a profile as a JSON object."""
    head = {"pioneer_profile": VERSION, "units": UNITS, **{name: getattr(profile, name) for name in _HEAD}}
    head |= {"classes": {name: _class_to_json(found) for name, found in profile.classes.items()}}
    return head if profile.shapes is None else head | {"shapes": profile.shapes}


def _lines(document: Any, depth: int = 0) -> str:
    """Return JSON with a line for each entry of an object; lists stay on one line."""
    if not isinstance(document, dict) or not document:
        return json.dumps(document)
    inner = " " * (depth + 1)
    entries = [f"{inner}{json.dumps(name)}: {_lines(value, depth + 1)}" for name, value in document.items()]
    return "{\n" + ",\n".join(entries) + "\n" + " " * depth + "}"


def save(profile: Profile, path: Path) -> None:
    """Write a profile; it replaces a file that is there when it is complete.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    partial.write_text(_lines(to_json(profile)) + "\n", encoding="utf-8")
    partial.replace(path)


# ---- reading ---------------------------------------------------------------------------------------------------------


class _Check:
    """Collects what is wrong, with its place."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def say(self, place: str, what: str) -> None:
        self.problems.append(f"{place}: {what}")

    def number(self, place: str, found: Any) -> int:
        """Return a whole number that is not negative; 0 where it is none."""
        if isinstance(found, int) and not isinstance(found, bool) and found >= 0:
            return found
        self.say(place, f"{json.dumps(found)} is no whole number of 0 or more")
        return 0

    def table(self, place: str, found: Any, allowed: frozenset[str] | None) -> dict[str, int]:
        """Return counts by name."""
        if not isinstance(found, dict):
            self.say(place, "not an object of counts by name")
            return {}
        for name in found:
            if allowed is not None and name not in allowed:
                self.say(f"{place}.{name}", f"there is no such name; there are {', '.join(sorted(allowed))}")
        return {name: self.number(f"{place}.{name}", count) for name, count in found.items()}

    def distribution(self, place: str, found: Any) -> Distribution:
        """Return a distribution; an empty one where it is none."""
        try:
            return Distribution.from_json(found)
        except ValueError as error:
            self.say(place, str(error))
            return Distribution.of([])

    def names(self, place: str, found: Mapping[str, Any], wanted: tuple[str, ...]) -> bool:
        """Return whether an object has exactly these names."""
        for name in wanted:
            if name not in found:
                self.say(place, f'"{name}" is missing')
        for name in found:
            if name not in wanted:
                self.say(f"{place}.{name}", "there is no such characteristic")
        return all(name in found for name in wanted)

    def file_class(self, place: str, found: Any) -> ClassProfile | None:
        """Return the characteristics of one class."""
        wanted = tuple(item.name for item in fields(ClassProfile))
        if not isinstance(found, dict):
            self.say(place, "not an object")
            return None
        if not self.names(place, found, wanted):
            return None
        values: dict[str, Any] = {name: self.number(f"{place}.{name}", found[name]) for name in _NUMBERS}
        values |= {name: self.distribution(f"{place}.{name}", found[name]) for name in _DISTRIBUTIONS}
        for name in _TABLES:
            values[name] = self.table(f"{place}.{name}", found[name], _MODES if name == "access_mode" else None)
        return ClassProfile(**values)

    def classes(self, found: Any) -> dict[str, ClassProfile]:
        """Return all classes."""
        if not isinstance(found, dict):
            self.say("classes", "missing, or not an object")
            return {}
        known = (*OWNERS, NO_FILE)
        checked = {}
        for name, item in found.items():
            if name not in known:
                self.say(f"classes.{name}", f"there is no such class; there are {', '.join(known)}")
                continue
            result = self.file_class(f"classes.{name}", item)
            if result is not None:
                checked[name] = result
        return checked


def parse(document: Any) -> Profile:
    """Return the profile that a JSON object is.

    Raises
    ------
    ProfileError
        It is none; the error has everything that is wrong, with its place.
    """
    if not isinstance(document, dict) or document.get("pioneer_profile") != VERSION:
        raise ProfileError([f'pioneer_profile: missing, or not {VERSION}: this is no profile that this release reads'])
    check = _Check()
    numbers = {name: check.number(name, document.get(name)) for name in _HEAD}
    classes = check.classes(document.get("classes"))
    shapes = document.get("shapes")
    if shapes is not None and not isinstance(shapes, dict):
        check.say("shapes", "not an object")
    if check.problems:
        raise ProfileError(check.problems)
    return Profile(**numbers, classes=classes, shapes=shapes)


def load(path: Path) -> Profile:
    """Read a profile.

    Raises
    ------
    OSError
        The file cannot be read.
    ProfileError
        It is no profile.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ProfileError([f"{path}: no JSON: {error}"]) from error
    try:
        return parse(document)
    except ProfileError as error:
        raise ProfileError([f"{path}: {problem}" for problem in error.problems]) from error
