"""Texts and tables that tests compare with the files of tests/expected, which `pytest --update` writes anew.

Problem.    A better sentence breaks every assertion that contains a part of it.
Algorithm.  A test compares a whole text, or values laid out as text, with a section of the file named as its module:
            tests/expected/unit/test_top.txt of tests/unit/test_top.py. The section is named as the test, with its
            parameters. With --update the test replaces its section, and a reader reviews the diff.
Guarantees. A section that no test compares is an error, if its whole module runs.
"""

from __future__ import annotations

import dataclasses
import difflib
import fcntl
import math
import numbers
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from support.launch import ROOT

TESTS = ROOT / "tests"
FOLDER = TESTS / "expected"
#: The line above a section.
_HEAD = re.compile(r"^=+ (test_.*) =+\n", re.MULTILINE)


def file_of(module: pathlib.Path) -> pathlib.Path:
    """Return the file with the expected texts of a module of tests."""
    return FOLDER / module.resolve().relative_to(TESTS).with_suffix(".txt")


def read(path: pathlib.Path) -> dict[str, str]:
    """Return the sections of a file by name; none of a file that does not exist."""
    if not path.exists():
        return {}
    _, *found = _HEAD.split(path.read_text(encoding="utf-8"))
    return dict(zip(found[::2], found[1::2], strict=True))


def change(path: pathlib.Path, sections: Mapping[str, str], gone: Iterable[str] = ()) -> None:
    """Replace sections of a file, and remove others; several processes may do so at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        every = {name: text for name, text in (read(path) | dict(sections)).items() if name not in set(gone)}
        file.truncate(0)
        file.write("".join(f"======== {name} ========\n{every[name]}" for name in sorted(every)))
    if not every:
        path.unlink()


def _rows(every: list[Any]) -> list[str]:
    """Return a table, of which each row is a line: of lists, or of mappings with equal columns; else nothing."""
    rows = [list(each.values()) if isinstance(each, Mapping) else each for each in every]
    named = [each for each in every if isinstance(each, Mapping)]
    if len(every) < 2 or not all(isinstance(row, list | tuple) for row in rows) or len(named) not in (0, len(every)):
        return []
    cells = [[list(_lines(cell)) or [""] for cell in row] for row in rows]
    if any(each.keys() != named[0].keys() for each in named) or any(len(cell) > 1 for row in cells for cell in row):
        return []
    heads = [" | ".join(map(str, named[0]))] if named else []
    return [*heads, *(" | ".join(cell[0] for cell in row).rstrip() for row in cells)]


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a value: a text is as it is, a table has a line for each row."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, str):
        yield from value.splitlines()
    elif isinstance(value, Mapping):
        for name, each in value.items():
            first, *others = list(_lines(each)) or [""]
            if others or isinstance(each, Mapping) or (first.startswith("- ") and not isinstance(each, str)):
                yield f"{name}:"
                yield from (f"  {line}".rstrip() for line in (first, *others))
            else:
                yield f"{name}: {first}".rstrip()
    elif isinstance(value, set | frozenset):
        yield from _lines(sorted(value))
    elif isinstance(value, Iterable):
        every = list(value)
        if table := _rows(every):
            yield from table
        elif any(isinstance(each, str | Mapping | Iterable) or dataclasses.is_dataclass(each) for each in every):
            for each in every:
                first, *others = list(_lines(each)) or [""]
                yield from (f"- {first}".rstrip(), *(f"  {line}".rstrip() for line in others))
        else:
            yield " · ".join(line for each in every for line in _lines(each)) or "none"
    elif isinstance(value, numbers.Real) and not isinstance(value, bool | int):
        whole = math.isfinite(value) and math.isclose(value, round(value))
        yield str(round(value)) if whole else f"{value:.6g}"
    else:
        yield str(value)


def in_words(row: Mapping[str, Any]) -> str:
    """Return a row of a wide table as one line, without what it does not have."""
    return " ".join(f"{name}={value!r}" for name, value in row.items() if value is not None)


class Expected:
    """Compare what a test got with its section of the file; each further call has a section of its own."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._path = file_of(request.path)
        self._calls = 0

    def __call__(self, value: Any, hide: Mapping[str, str] | None = None) -> None:
        """Fail unless `value`, a text or nested values, is shown by the text in the file.

        Parameters
        ----------
        value : what the test got.
        hide : regular expressions of what differs between runs, and the words in their place.
        """
        __tracebackhide__ = True
        self._calls += 1
        name = self._request.node.name + (f" #{self._calls}" if self._calls > 1 else "")
        text = "".join(f"{line}\n" for line in _lines(value))
        places = {str(ROOT): "ROOT"}
        if "tmp_path" in self._request.fixturenames:
            places = {str(self._request.getfixturevalue("tmp_path")): "TMP", **places}
        for place, word in places.items():
            text = text.replace(place, word)
        for pattern, word in (hide or {}).items():
            text = re.sub(pattern, word, text)
        if _HEAD.search(text):
            raise ValueError(f"a line looks like the head of a section:\n{text}")
        if self._request.config.getoption("--update"):
            change(self._path, {name: text})
            return
        wanted = read(self._path).get(name, "")
        if text != wanted:
            diff = difflib.unified_diff(wanted.splitlines(), text.splitlines(), "expected", "got", lineterm="")
            where = self._path.relative_to(ROOT)
            pytest.fail(
                "\n".join([f"{where}: {name} (--update writes it anew: review its diff)", *diff]), pytrace=False
            )


@pytest.fixture()
def expected(request: pytest.FixtureRequest) -> Expected:
    """Return a function that compares a text, or values, with the section of this test in tests/expected."""
    return Expected(request)


def check(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Refuse sections that no test compares, of modules that run as a whole; --update removes them."""
    if any("::" in word for word in config.args) or config.getoption("lf", default=False):
        return
    tests: dict[pathlib.Path, set[str]] = {}
    for item in items:
        names = tests.setdefault(item.path, set())
        if "expected" in getattr(item, "fixturenames", ()):
            names.add(item.name)
    for module, names in tests.items():
        if TESTS not in module.resolve().parents:  # a test that a test has made
            continue
        path = file_of(module)
        gone = {section for section in read(path) if section.partition(" #")[0] not in names}
        if gone and config.getoption("--update"):
            change(path, {}, gone)
        elif gone:
            raise pytest.UsageError(f"{path.relative_to(ROOT)}: no test compares {', '.join(sorted(gone))}")
