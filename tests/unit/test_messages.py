"""docs/reference/messages.md has every message that the library, or ``mpiio-ext run``, prints.

The messages are found in the sources: literals of C that begin as a message does, or are handed to what prints one, and
texts of some words in the modules of the command. Of each, the longest piece without a place holder is looked for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from support.documents import ROOT

PAGE = ROOT / "docs" / "reference" / "messages.md"
#: Modules whose texts are messages of `mpiio-ext run`; help and docstrings are left out.
MODULES = (
    "_load.py",
    "abi.py",
    "cli/endings.py",
    "cli/logged.py",
    "cli/run.py",
    "cli/witness.py",
    "common/extras.py",
    "common/files.py",
    "loadable.py",
)
_TEXT = r'"((?:[^"\\\n]|\\.)*)"'
_LITERAL = re.compile(rf"{_TEXT}(?:\s*{_TEXT})*")
_PRINTS = re.compile(r"\b(?:mpiox_process_notify|mpiox_storage_report)\(|\btell\(arbiter")
#: What is no fixed text: conversions of printf, escapes, and marks that a page writes otherwise.
_HOLDER = re.compile(r"%[-+ #0-9.*]*(?:ll|l|z)?[a-zA-Z]|\\[n\"]|[`*\n]|\{\}|…")
_FEWEST_WORDS = 3


def pieces_of(text: str) -> list[str]:
    """Return the fixed pieces of a message, the longest first."""
    text = text.removeprefix("mpiio_ext: ").removeprefix("mpiio-ext: ")
    found = (" ".join(piece.split()).strip(" ,:;()") for piece in _HOLDER.split(text))
    return sorted((piece for piece in found if len(piece.split()) >= _FEWEST_WORDS), key=len, reverse=True)


def of_c(text: str) -> Iterator[str]:
    """Yield the messages in a C source: adjacent literals are one. What only a library for tests prints is left out."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"#ifdef MPIOX_TESTING\n.*?#endif\n", "", text, flags=re.DOTALL)
    text = re.sub(r'%"\s*PRI\w+\s*"', "%d", text)
    for match in _LITERAL.finditer(text):
        joined = "".join(re.findall(_TEXT, match[0]))
        statement = text[max(text.rfind(";", 0, match.start()), text.rfind("{", 0, match.start())) + 1 : match.start()]
        if joined.startswith("mpiio_ext: ") or _PRINTS.search(statement):
            yield joined


def of_python(text: str) -> Iterator[str]:
    """Yield the texts in a module that are neither docstrings nor help."""
    tree = ast.parse(text)
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        if isinstance(node, ast.keyword) and node.arg in {"help", "metavar"}:
            left_out.update(ast.walk(node.value))
        if isinstance(node, ast.JoinedStr):
            left_out.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.value


def advice() -> list[str]:
    """Return what a failed access is called, and what its last words are, by errno."""
    text = (ROOT / "csrc" / "core" / "common" / "mpiox_error.c").read_text(encoding="utf-8")
    return re.findall(r'return "([^"]+)"', text)


LIBRARY = set((ROOT / "csrc").rglob("*.c")) - set((ROOT / "csrc").rglob("*_fault*.c"))
SOURCES = sorted(LIBRARY) + [ROOT / "mpiio_ext" / name for name in MODULES]


@pytest.fixture(scope="module")
def page() -> str:
    return " ".join(re.sub(r"[`*\\…]", "", PAGE.read_text(encoding="utf-8")).split())


def test_every_message_is_on_the_page(page: str) -> None:
    missing, found = [], 0
    for file in SOURCES:
        source = file.read_text(encoding="utf-8")
        for message in of_c(source) if file.suffix == ".c" else of_python(source):
            pieces = pieces_of(message)
            found += bool(pieces)
            if pieces and pieces[0] not in page:
                missing.append(f"{file.relative_to(ROOT)}: {pieces[0]}")
    assert found > 60
    assert not missing, "\n".join(missing)


def test_every_error_is_on_the_page(page: str) -> None:
    assert len(advice()) > 15
    assert [text for text in advice() if text not in page] == []
