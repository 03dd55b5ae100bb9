"""Files of expected texts: a difference is printed, and what no test compares is an error."""

from __future__ import annotations

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
