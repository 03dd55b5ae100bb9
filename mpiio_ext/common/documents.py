"""JSON documents of people: read, checked against a typed description, and refused with every mistake and its place.

Problem.    Set-ups, site facts, profiles and settings are written by hand. What is wrong with them shall be reported
            together, with its place, before anything is made of it; and their form shall be stated once.
Algorithm.  The form is a dataclass whose annotations say types and limits (pydantic's `Field`); `CLOSED` refuses names
            that it has not. pydantic converts and checks, strictly: 1.0 is no whole number, true is no number. Its
            errors are put into our words.
Guarantees. A line for each mistake, which begins with a JSON pointer (RFC 6901) of a place in the document. The JSON
            Schema that is published is made of the same types. A name that stands twice in an object is a mistake.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BeforeValidator, ConfigDict, GetPydanticSchema, TypeAdapter, ValidationError, ValidationInfo
from pydantic_core import core_schema

from mpiio_ext.common.files import cannot_read
from mpiio_ext.common.near import near_names
from mpiio_ext.errors import ArgumentError

Form = TypeVar("Form")

#: `__pydantic_config__` of a dataclass whose names are all that there are.
CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)

_KINDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "string_type": "a text",
    "bool_type": "true or false",
    "dataclass_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "int_parsing": "a whole number",
}
_LIMITS = {
    "greater_than_equal": ("less than", "ge"),
    "less_than_equal": ("greater than", "le"),
    "greater_than": ("not greater than", "gt"),
    "less_than": ("not less than", "lt"),
}
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_MISSING = ("missing", "missing_argument")
_SHOWN = 60
_MOST_TOLD = 20


class DocumentError(ValueError):
    """A document does not have its form.

    A validator of a form may raise one: its places are those in the value that it was given.

    Parameters
    ----------
    mistakes : the place of each as a JSON pointer, "" of the whole, None of no place in it; and what is wrong there.
    name : of the document, which begins each line.

    Attributes
    ----------
    mistakes : the same
    problems : a line for each of the first ones, and one that says how many more there are
    """

    def __init__(self, mistakes: Iterable[tuple[str | None, str]], name: object = None) -> None:
        self.mistakes = tuple(mistakes)
        begin = "" if name is None else f"{name}: "
        lines = (begin + (what if place is None else f"{place or '/'}: {what}") for place, what in self.mistakes)
        # One line each, whatever names there are.
        shown = [
            "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
            for line in itertools.islice(lines, _MOST_TOLD)
        ]
        more = len(self.mistakes) - len(shown)
        self.problems = (*shown, *([f"{begin}and {more:,} more"] if more else []))
        super().__init__("\n".join(self.problems))

    def of(self, name: object) -> DocumentError:
        """Return the same of a document with a name."""
        return DocumentError(self.mistakes, name)

    def under(self, place: str) -> DocumentError:
        """Return the same of the document that has this one at a place."""
        return DocumentError((place + (within or ""), what) for within, what in self.mistakes)


def pointer(*parts: object) -> str:
    """Return the JSON pointer of a place, "" of the document itself."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def shown(value: object) -> str:
    """Return a value in a few words."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _listed(value: object) -> tuple[object, ...]:
    if not isinstance(value, (str, list)):
        raise ValueError(f"{shown(value)} is not a text or a list")
    return (value,) if isinstance(value, str) else tuple(value)


#: Of a tuple of texts in place of which there may be a single one.
ONE_OR_MORE = BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])


def made_of(form: Any, make: Callable[[Any], object]) -> GetPydanticSchema:
    """Return the annotation of the result that a function makes of a value of a form; its errors are mistakes there."""
    return GetPydanticSchema(
        lambda _, handler: core_schema.no_info_after_validator_function(make, handler.generate_schema(form))
    )


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name!r} stands twice in one object")
        found[name] = value
    return found


def from_json(text: str) -> object:
    """Return the JSON value of a text; ValueError if there is none, it has NaN, or a name twice in one object."""
    try:
        found: object = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return found


def read_json(path: Path, wrong: Callable[[str], Exception] = ArgumentError) -> object:
    """Return the JSON value in a file, as `from_json`; on an error raise the exception that `wrong` makes.

    Raises
    ------
    ArgumentError
        Or another: the file cannot be read, or is not JSON.
    """
    try:
        return from_json(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise wrong(cannot_read(path, error)) from error
    except ValueError as error:
        raise wrong(f"{path}: is not JSON: {error}") from error


@functools.cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def _describe(part: dict[str, Any], text: str) -> None:
    """Copy a docstring and its section of attributes into the descriptions of an object's schema and its names."""
    description, _, attributes = inspect.cleandoc(text).partition("\n\nAttributes\n----------\n")
    if description:
        part["description"] = description
    lines = attributes.partition("\n\n")[0]
    for names, meaning in re.findall(r"^(\w[\w, ]*?) : (.+(?:\n +.+)*)", lines, re.MULTILINE):
        for name in set(names.split(", ")) & set(part.get("properties", ())):
            part["properties"][name].setdefault("description", " ".join(meaning.split()))


@functools.cache
def form_schema(form: Any, **docstrings: str | None) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the documents of a form.

    Descriptions of names are those of the section Attributes, a line "name : meaning" each, of the docstrings of the
    form and of those that it is made of; `docstrings` has others, by the names of these.
    """
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_adapter(form).json_schema()}
    for name, part in {getattr(form, "__name__", ""): schema, **schema.get("$defs", {})}.items():
        _describe(part, docstrings.get(name) or part.pop("description", ""))
    return schema


def with_meanings(schema: dict[str, Any], meanings: Mapping[str, str]) -> dict[str, Any]:
    """Return a schema with descriptions by JSON pointers of documents; ``*`` stands for any name or number.

    Raises
    ------
    KeyError
        The documents have no such place.
    """
    schema = copy.deepcopy(schema)
    for place, meaning in meanings.items():
        found = schema
        for name in place.split("/")[1:]:
            found = schema["$defs"][found["$ref"].rpartition("/")[2]] if "$ref" in found else found
            under = next((found[key] for key in ("additionalProperties", "items") if key in found), None)
            found = under if name == "*" and under is not None else found["properties"][name]
        found["description"] = meaning
    return schema


def given(info: ValidationInfo) -> dict[str, Any]:
    """Return the input of `parse` for the validators of a form."""
    return info.context or {}


def parse(form: Callable[..., Form], document: object, **context: object) -> Form:
    """Return the kind of a JSON value, as its form names it.

    Parameters
    ----------
    form : a dataclass, whose annotations say what there is.
    document : of lists, dicts and so on, as `read_json` returns it; dates of TOML count as texts.
    context : for validators of the form (`given`).

    Raises
    ------
    DocumentError
        The value has not that form; the error lists all mistakes.
    """
    try:
        found: Form = _adapter(form).validate_json(json.dumps(document, default=str), strict=True, context=context)
    except ValidationError as error:
        raise DocumentError(_mistakes(form, document, error.errors(include_url=False))) from error
    except RecursionError as error:
        raise DocumentError([("", "it is nested too deeply")]) from error
    return found


def _place(document: Any, location: Iterable[int | str]) -> tuple[int | str, ...]:
    """Return the parts of a location that are in the document; the others are names of alternatives."""
    parts: list[int | str] = []
    for part in location:
        if isinstance(document, dict) and part in document:
            document = document[str(part)]
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            continue
        parts.append(part)
    return tuple(parts)


def _names(form: Any, place: Iterable[int | str]) -> list[str]:
    """Return the names that an object at a place may have."""
    schema = form_schema(form)
    options = [schema]

    def resolved(part: Mapping[str, Any]) -> list[Any]:
        if "$ref" in part:
            return resolved(schema["$defs"][part["$ref"].rpartition("/")[2]])
        return [each for option in part.get("anyOf", ()) for each in resolved(option)] or [part]

    for part in place:
        inner = [each for option in options for each in resolved(option)]
        options = [
            found
            for each in inner
            for found in (each.get("properties", {}).get(part), each.get("additionalProperties"), each.get("items"))
            if isinstance(found, dict)
        ]
    return list(
        dict.fromkeys(name for option in options for each in resolved(option) for name in each.get("properties", ()))
    )


def _said(form: Any, place: tuple[int | str, ...], error: Any) -> str:
    """Return the mistake in a value of the right kind."""
    kind, about, found = error["type"], error.get("ctx", {}), shown(error["input"])
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return (
            f"{found} is {words} {about[limit]:.16g}"
            if isinstance(about[limit], float)
            else (f"{found} is {words} {about[limit]}")
        )
    if kind in _MISSING:
        return f"{json.dumps(error['loc'][-1])} is missing"
    if kind in _UNKNOWN:
        names = _names(form, place[:-1])
        near = near_names(str(place[-1]), names)
        return f"there is no such name; there are {', '.join(names)}" + (f"; did you mean '{near[0]}'?" if near else "")
    if kind == "literal_error":
        return f"{found} is not one of {about['expected'].replace(chr(39), chr(34)).replace(' or ', ', ')}"
    if kind in ("too_short", "string_too_short"):
        return "is empty" if about["min_length"] == 1 else f"has fewer than {about['min_length']} entries"
    if kind in ("too_long", "string_too_long"):
        return f"has more than {about['max_length']} entries"
    if kind == "json_invalid":
        return "a text has a lone surrogate, or lists and objects are nested too deeply"
    return str(about["error"]) if kind == "value_error" else str(error["msg"])


def _mistakes(form: Any, document: Any, errors: Iterable[Any]) -> list[tuple[str | None, str]]:
    """Return the place and text of each mistake; a value that fits none of several kinds is one mistake."""
    found: list[tuple[str | None, str]] = []
    for error in errors:
        parts = _place(document, error["loc"])
        place, inner = pointer(*parts), error.get("ctx", {}).get("error")
        wrong, kind = f"{shown(error['input'])} is not ", _KINDS.get(error["type"])
        if kind is None and error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
            continue  # entries that are wrong were not counted
        if isinstance(inner, DocumentError):
            found += inner.under(place).mistakes
        elif kind is None:
            if (mistake := (place, _said(form, parts, error))) not in found:  # of each of several kinds
                found.append(mistake)
        elif found and found[-1][0] == place and found[-1][1].startswith(wrong):
            found[-1] = (place, f"{found[-1][1]} or {kind}")
        else:
            found.append((place, wrong + kind))
    return found
