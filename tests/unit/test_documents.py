"""Documents of people: every mistake with its place, what is there and what should be."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field

from mpiio_ext.analytics import site
from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, ONE_OR_MORE, DocumentError
from mpiio_ext.pioneer.profile.document import profile_schema


def _even(value: int) -> int:
    if value % 2:
        raise DocumentError([("/half", f"{value} has none")])
    return value


@dataclasses.dataclass(frozen=True)
class Inner:
    __pydantic_config__ = CLOSED

    kind: Literal["a", "b"] = "a"
    share: Annotated[float, Field(ge=0, lt=1)] = 0.5


@dataclasses.dataclass(frozen=True)
class Outer:
    __pydantic_config__ = CLOSED

    count: Annotated[int, Field(ge=1, le=2**63 - 1)]
    flag: bool = False
    names: Annotated[tuple[str, ...], Field(min_length=1), ONE_OR_MORE] = ()
    inner: Mapping[str, Inner] = dataclasses.field(default_factory=dict)
    any: dict[str, Any] | list[Any] | None = None
    even: Annotated[int, AfterValidator(_even)] = 0


def test_a_document() -> None:
    found = documents.parse(Outer, {"count": 2, "names": "x", "inner": {"i": {"share": 0}}, "any": [1.5, {"a": None}]})
    assert found == Outer(2, names=("x",), inner={"i": Inner(share=0.0)}, any=[1.5, {"a": None}])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": 1.0}, ["/count: 1.0 is not a whole number"]),
        ({"count": True}, ["/count: true is not a whole number"]),
        ({"count": "2"}, ['/count: "2" is not a whole number']),
        ({"count": 0}, ["/count: 0 is less than 1"]),
        ({"count": 2**63}, ["/count: 9223372036854775808 is greater than 9223372036854775807"]),
        ({"flag": 1}, ["/flag: 1 is not true or false"]),
        ({"names": []}, ["/names: is empty"]),
        ({"names": 5}, ["/names: 5 is not a text or a list"]),
        ({"names": ["x", 5]}, ["/names/1: 5 is not a text"]),
        ({"any": 5}, ["/any: 5 is not an object or a list"]),
        ({"even": 3}, ["/even/half: 3 has none"]),
        ({"more": 1}, ["/more: there is no such name; there are count, flag, names, inner, any, even"]),
        ({"inner": {"a/b~": 5}}, ["/inner/a~1b~0: 5 is not an object"]),
        (
            {"inner": {"x": {"kind": "c", "share": 1, "y": 0}}},
            [
                '/inner/x/kind: "c" is not one of "a", "b"',
                "/inner/x/share: 1 is not less than 1",
                "/inner/x/y: there is no such name; there are kind, share",
            ],
        ),
        (
            {"inner": {"x": {"share": math.nan}, "y": {"share": "0"}}},
            ["/inner/x/share: NaN is not a number", '/inner/y/share: "0" is not a number'],
        ),
    ],
)
def test_mistakes(change: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(DocumentError) as caught:
        documents.parse(Outer, {"count": 2, **change})
    assert list(caught.value.problems) == said
    assert str(caught.value.of("file")) == "\n".join(f"file: {line}" for line in said)


@pytest.mark.parametrize("schema", [profile_schema(), site.schema()], ids=["profile", "site"])
def test_published_schemas_say_what_each_name_is(schema: dict[str, Any]) -> None:
    assert [
        f"{kind}/{name}"
        for kind, part in {"": schema, **schema["$defs"]}.items()
        for name, found in part["properties"].items()
        if not found.get("description")
    ] == []
    assert "Attributes" not in json.dumps(schema)


def test_descriptions_by_places() -> None:
    plain = documents.form_schema(Outer)
    schema = documents.with_meanings(plain, {"/inner/*/share": "of what", "/count": "things"})
    assert schema["$defs"]["Inner"]["properties"]["share"]["description"] == "of what"
    assert schema["properties"]["count"]["description"] == "things"
    assert "description" not in plain["$defs"]["Inner"]["properties"]["share"]
    with pytest.raises(KeyError):
        documents.with_meanings(plain, {"/inner/*/weight": "of nothing"})


def test_what_is_missing_or_no_object() -> None:
    for document, said in (({}, '/: "count" is missing'), ([1], "/: a list of 1 is not an object")):
        with pytest.raises(DocumentError) as caught:
            documents.parse(Outer, document)
        assert str(caught.value) == said


@pytest.mark.parametrize("text", ["", "{", "\xff", "[" * 100_000, "NaN", '{"a": 1, "a": 2}'])
def test_what_is_no_json(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "file").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError):
        documents.read_json(tmp_path / "file")
