"""Files of expected texts: a difference is printed, and what no test compares is an error."""

from __future__ import annotations

import math

import pytest

from support import expected as texts


def test_every_file_has_a_module() -> None:
    for path in texts.FOLDER.rglob("*.txt"):
        assert (texts.TESTS / path.relative_to(texts.FOLDER)).with_suffix(".py").exists(), path


def test_a_difference_fails_and_is_printed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "read", lambda _path: {request.node.name: "a: 1\nb: 0.333333\n"})
    monkeypatch.setattr(request.config.option, "update", False)
    texts.Expected(request)({"a": 1, "b": 1 / 3})
    with pytest.raises(pytest.fail.Exception, match=r"(?s)--update.*-a: 1\n\+a: 2"):
        texts.Expected(request)({"a": 2, "b": 1 / 3})


def test_a_section_without_a_test_is_an_error(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "read", lambda _path: {"test_that_is_gone[a b]": "text\n"})
    monkeypatch.setattr(request.config.option, "update", False)
    monkeypatch.setattr(request.config, "args", ["tests/unit"])
    with pytest.raises(pytest.UsageError, match=r"test_expected.txt: no test compares test_that_is_gone\[a b\]"):
        texts.check(request.config, [request.node])


def test_values_are_lines() -> None:
    value = {"text": "two\nlines", "row": [1, 2.5], "list": [{"a": 1}, {"b": None}], "none": [], "set": {"b", "a"}}
    lines = ["text:", "  two", "  lines", "row: 1 · 2.5", "list:", "  - a: 1", "  - b: None", "none: none"]
    assert list(texts._lines(value)) == [*lines, "set:", "  - a", "  - b"]
    assert list(texts._lines([{"a": 1, "b": [2, 3]}, {"a": "x", "b": None}])) == ["a | b", "1 | 2 · 3", "x | None"]
    assert list(texts._lines([["a", "b"], ["c", 1.5]])) == ["a | b", "c | 1.5"]
    assert list(texts._lines([1.5e9 + 1, 1 / 3, math.nan])) == ["1500000001 · 0.333333 · nan"]
    assert list(texts._lines({"nested": {"a": 1}})) == ["nested:", "  a: 1"]
