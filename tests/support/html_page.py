"""An HTML page read by the standard library's parser: well-formedness, references, tables."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["Page"]

_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_NETWORK = re.compile(
    r"""(?i)https?:|["'(]//|@import|url\((?!#)|\b(fetch|XMLHttpRequest|import|eval|WebSocket)\b\s*\("""
)


class Page(HTMLParser):
    """A page, parsed.

    Attributes
    ----------
    problems : everything that is not well formed or leaves the page
    ids : of elements
    data : what links and images hold themselves
    tables : (class, rows) in order; a row is the texts of its cells
    elements : how often each element occurs
    text : all text that a reader sees
    raw : content of script and style elements
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.data: list[str] = []
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.elements: dict[str, int] = {}
        self.text = ""
        self.raw = ""
        self._open: list[str] = []
        self._cell: list[str] | None = None
        self.feed(text)
        self.close()
        self.problems += [f"<{name}> is never closed" for name in self._open]
        self.problems += [f"id {name} twice" for name in set(self.ids) if self.ids.count(name) > 1]
        self.problems += [f"#{name} leads nowhere" for name in self.links if name not in self.ids]
        self.problems += [f"leaves the page: {found[0]}" for found in _NETWORK.finditer(self.raw)]

    def _attributes(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attributes]
        self.problems += [f"<{tag}> has {name} twice" for name in set(names) if names.count(name) > 1]
        for name, value in attributes:
            value = value or ""
            if name.startswith("on"):
                self.problems.append(f"<{tag}> has a handler {name}")
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "action", "data", "srcset", "poster", "xlink:href"):
                if value.startswith("#"):
                    self.links.append(value[1:])
                elif value.startswith("data:"):  # in the page, or a file that it holds
                    self.data.append(value)
                else:
                    self.problems.append(f"<{tag} {name}={value!r}> leaves the page")
            if name == "style" and _NETWORK.search(value):
                self.problems.append(f"<{tag} style={value!r}> leaves the page")

    def handle_startendtag(self, tag, attrs):
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self._attributes(tag, attrs)

    def handle_starttag(self, tag, attrs):
        self.elements[tag] = self.elements.get(tag, 0) + 1
        self._attributes(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append((dict(attrs).get("class") or "", []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self._cell = []
        elif self._cell is not None and tag in ("small", "div"):
            self._cell.append(" ")

    def handle_endtag(self, tag):
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> at {self.getpos()} closes {self._open[-1:]}")
            return
        self._open.pop()
        if tag in ("td", "th"):
            assert self._cell is not None
            self.tables[-1][1][-1].append(" ".join("".join(self._cell).split()))
            self._cell = None

    def handle_data(self, data):
        if self._open and self._open[-1] in ("script", "style"):
            self.raw += data
            return
        self.text += data
        if self._cell is not None:
            self._cell.append(data)

    def of_class(self, name: str) -> list[list[list[str]]]:
        """Return the rows of every table whose first class is `name`."""
        return [rows for classes, rows in self.tables if classes.split()[:1] == [name]]
