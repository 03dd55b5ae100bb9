"""The profile as a JSON file: written by the characterization or by hand, edited, checked.

Problem.   People change a profile to get another workload. Mistakes in it must be reported with their places, all
           together, before it is used.
Content.   ``{"pioneer_profile": 2, "operations": ..., "span": ..., "ranks": ..., "classes": {"shared": {...}}}``; its
           form is `profile.form`, units are in `UNITS`. The names are those of `ClassProfile`.
Checks. First the form is checked, then the conditions on distributions that types cannot express. Problems begin with a
JSON pointer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError, pointer
from mpiio_ext.common.files import replacing
from mpiio_ext.pioneer.profile.characterize import SCALE, ClassProfile, Profile
from mpiio_ext.pioneer.profile.defaults import completed, without_sizes
from mpiio_ext.pioneer.profile.distributions import Distribution
from mpiio_ext.pioneer.profile.form import ProfileForm

#: Raised when the meaning of a name changes, or an older release could not read the document.
VERSION = 2

#: Unit of each characteristic that has one; the others are numbers of operations, sessions or files.
UNITS = {
    "first": "global sequence ID",
    "session_gap": "global sequence IDs",
    "request_gap": "global sequence IDs",
    "duration": "operations",
    "file_size": "bytes",
    "offset": "bytes",
    "size": "bytes",
    "sequentiality": f"1/{SCALE}",
    "slack": "ns",
    "rank_step": "bytes",
}

_TABLES = ("inside", "outside", "access_mode")
_NUMBERS = ("files", "rank_step")
_HEAD = ("operations", "span", "ranks")
#: Smallest values of characteristics. A session gap may be negative: sessions of a file may overlap.
_LEAST = {
    "opened": 1,
    "duration": 1,
    **dict.fromkeys(("first", "request_gap", "file_size", "offset", "size", "sequentiality", "slack"), 0),
}


# ---- writing ---------------------------------------------------------------------------------------------------------


def _class_to_json(found: ClassProfile, *, fits: bool) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for item in fields(ClassProfile):
        value = getattr(found, item.name)
        if value is None:
            continue
        document[item.name] = value.to_json() if isinstance(value, Distribution) else value
        if isinstance(value, Distribution) and not fits:
            document[item.name].pop("fits", None)
    return document


def to_json(profile: Profile, *, fits: bool = True) -> dict[str, Any]:
    """Return a profile as a JSON object.

    Parameters
    ----------
    profile : what is written.
    fits : with the known distributions beside the values.
    """
    head = {"pioneer_profile": VERSION, "units": UNITS, **{name: getattr(profile, name) for name in _HEAD}}
    head |= {"classes": {name: _class_to_json(found, fits=fits) for name, found in profile.classes.items()}}
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
    with replacing(path) as partial:
        partial.write_text(_lines(to_json(profile)) + "\n", encoding="utf-8")


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema of profiles."""
    schema = documents.form_schema(
        ProfileForm, ProfileForm=Profile.__doc__, _Class=ClassProfile.__doc__, ListedDistribution=Distribution.__doc__
    )
    return {"$id": "urn:mpiio_ext:pioneer_profile:2", **schema, "title": "PIONEER profile"}


# ---- reading ---------------------------------------------------------------------------------------------------------


def _beyond(name: str, values: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield the forbidden values of a characteristic: the place in it, and the mistake."""
    least = _LEAST.get(name)
    for number, value in enumerate(values):
        if least is not None and value < least:
            yield pointer("values", number), f"{value} is less than {least}"
        elif name == "sequentiality" and value > SCALE:
            yield pointer("values", number), f"{value} is more than {SCALE}"


def _class_of(place: str, found: dict[str, Any], mistakes: list[tuple[str | None, str]]) -> ClassProfile:
    """Return the characteristics of a class whose form is right; other mistakes are added to the list."""
    values: dict[str, Any] = {}
    for item in fields(ClassProfile):
        value = values[item.name] = found.get(item.name)
        if item.name in (*_TABLES, *_NUMBERS):
            continue
        wrong: list[tuple[str | None, str]] = []
        try:
            values[item.name] = Distribution.from_json(value)
        except DocumentError as error:
            wrong += error.mistakes
        wrong += _beyond(item.name, found[item.name]["values"])
        mistakes += [(f"{place}{pointer(item.name)}{within}", what) for within, what in wrong]
    return ClassProfile(**values)


def parse(document: Any) -> Profile:
    """Return the profile that a JSON object is.

    Raises
    ------
    DocumentError
        The object is no profile; the error lists all mistakes and their places.
    """
    documents.parse(ProfileForm, document)
    mistakes: list[tuple[str | None, str]] = [
        (pointer("classes", name), '"size" is missing, and there are data operations inside')
        for name in without_sizes(document)
    ]
    if not mistakes:
        document = completed(document)
        classes = {
            name: _class_of(pointer("classes", name), found, mistakes) for name, found in document["classes"].items()
        }
    if mistakes:
        raise DocumentError(mistakes)
    return Profile(**{name: document[name] for name in _HEAD}, classes=classes, shapes=document.get("shapes"))


def load(path: Path) -> Profile:
    """Read a profile.

    Raises
    ------
    ArgumentError
        The file cannot be read, or is not JSON.
    DocumentError
        The document is no profile.
    """
    try:
        return parse(documents.read_json(path))
    except DocumentError as error:
        raise error.of(path) from error
