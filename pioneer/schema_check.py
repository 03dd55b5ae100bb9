"""Checking a document against a JSON Schema, and saying what is wrong and where.

Problem.   A profile or a path that was edited by hand is checked before anything is made of it. The schema shall be the
           only statement of its form, and each problem a line that begins with a JSON pointer (RFC 6901).
Algorithm. The part of JSON Schema (2020-12) that their schemas use is interpreted here: type, enum, required,
           properties, additionalProperties, items, minimum, maximum, exclusiveMinimum and $ref to its own $defs; any
           other word is refused when the schema is read. Lists of whole numbers, of which a profile has thousands of
           values, are checked as a whole. A whole number is one that is written without a fraction: 1.0 is none; what
           is not finite is no number.
Guarantee. What passes is valid by the schema: a test compares with the package jsonschema on documents that were
           changed at random.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["check", "pointer", "read_schema"]

_WORDS = frozenset({"$schema", "$id", "$defs", "$ref", "title", "description", "type", "enum", "required", "properties",
                    "additionalProperties", "items", "minimum", "maximum", "exclusiveMinimum"})  # fmt: skip
_NAMES = {"object": "an object", "array": "a list", "integer": "a whole number", "number": "a number",
          "string": "a text", "boolean": "true or false", "null": "null"}  # fmt: skip
_REFERENCE = "#/$defs/"
_SHOWN = 60


def pointer(*parts: object) -> str:
    """Return the JSON pointer of a place, "" of the document itself."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def read_schema(file: Path) -> dict[str, Any]:
    """Return the schema in a file.

    Raises
    ------
    ValueError
        It uses a word that is not interpreted here.
    """
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    for part in _parts(found):
        unknown = set(part) - _WORDS
        if unknown:
            raise ValueError(f"{file.name}: {', '.join(sorted(unknown))}: not interpreted")
    return found


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all schemas in a schema."""
    if isinstance(schema, dict):
        yield schema
        inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
        for item in [*inner, schema.get("items"), schema.get("additionalProperties")]:
            yield from _parts(item)


def _is_a(kind: str, value: Any) -> bool:
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    known = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}[kind]
    return isinstance(value, known)


def _shown(value: Any) -> str:
    """Return a value in a few words."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _of_numbers(items: Mapping[str, Any], found: list[Any]) -> bool:
    """Return whether a list is one of whole numbers within the limits; quick."""
    if items.get("type") != "integer" or not all(type(item) is int for item in found):
        return False
    return not found or (items["minimum"] <= min(found) and max(found) <= items["maximum"])


class _Checker:
    """Collects problems of one document."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self.problems: list[str] = []

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a schema, its reference put in."""
        name = schema.get("$ref")
        return schema if name is None else {**self._schema["$defs"][name.removeprefix(_REFERENCE)], **schema}

    def _say(self, place: str, what: str) -> None:
        self.problems.append(f"{place or '/'}: {what}")

    def check(self, schema: Mapping[str, Any], found: Any, place: str) -> None:
        """Check a value and what is in it."""
        schema = self._resolved(schema)
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(_is_a(kind, found) for kind in kinds):
            self._say(place, f"{_shown(found)} is not {' or '.join(_NAMES[kind] for kind in kinds)}")
        elif "enum" in schema and not any(type(item) is type(found) and item == found for item in schema["enum"]):
            self._say(place, f"{_shown(found)} is not one of {', '.join(json.dumps(item) for item in schema['enum'])}")
        elif isinstance(found, dict):
            self._object(schema, found, place)
        elif isinstance(found, list):
            self._list(schema, found, place)
        elif isinstance(found, (int, float)) and not isinstance(found, bool):
            self._number(schema, found, place)

    def _object(self, schema: Mapping[str, Any], found: dict[str, Any], place: str) -> None:
        for name in schema.get("required", []):
            if name not in found:
                self._say(place, f"{json.dumps(name)} is missing")
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for name, value in found.items():
            inner = place + pointer(name)
            if name in known:
                self.check(known[name], value, inner)
            elif others is False:
                self._say(inner, f"there is no such name; there are {', '.join(known)}")
            elif isinstance(others, dict):
                self.check(others, value, inner)

    def _list(self, schema: Mapping[str, Any], found: list[Any], place: str) -> None:
        items = schema.get("items")
        if items is None or _of_numbers(self._resolved(items), found):
            return
        for number, value in enumerate(found):
            self.check(items, value, place + pointer(number))

    def _number(self, schema: Mapping[str, Any], found: float, place: str) -> None:
        if "minimum" in schema and found < schema["minimum"]:
            self._say(place, f"{_shown(found)} is less than {schema['minimum']}")
        if "exclusiveMinimum" in schema and found <= schema["exclusiveMinimum"]:
            self._say(place, f"{_shown(found)} is not greater than {schema['exclusiveMinimum']}")
        if "maximum" in schema and found > schema["maximum"]:
            self._say(place, f"{_shown(found)} is greater than {schema['maximum']}")


def check(document: Any, schema: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a JSON value: a line each, which begins with its place."""
    checker = _Checker(schema)
    checker.check(schema, document, "")
    return checker.problems
