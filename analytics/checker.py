"""Taking values out of a JSON document, and gathering what is wrong with them: a line each, its place first.

Places are JSON pointers (RFC 6901).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["Checker", "escaped", "shown", "unique"]


class Checker:
    """Takes values out of the document, and gathers what is wrong with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []

    def wrong(self, where: str, text: str) -> None:
        """Note a problem of a place."""
        self.problems.append(f"{where or '/'}: {text}")

    def object(self, where: str, value: Any, known: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Return an object; of names that are not `known` it is told."""
        if not isinstance(value, dict):
            self.wrong(where, f"is {shown(value)}, and an object is wanted")
            return {}
        for name in value:
            if known is not None and name not in known:
                self.wrong(f"{where}/{escaped(name)}", f"is not known here; known are {', '.join(known)}")
        return value

    def list(self, where: str, value: Any) -> list[Any]:
        """Return a list."""
        if not isinstance(value, list):
            self.wrong(where, f"is {shown(value)}, and a list is wanted")
            return []
        return value

    def text(self, where: str, value: Any) -> str:
        """Return a text that is not empty."""
        if not isinstance(value, str) or not value or "\0" in value:
            self.wrong(where, f"is {shown(value)}, and a text is wanted")
            return ""
        return value

    def path(self, where: str, value: Any) -> str:
        """Return a path, absolute."""
        text = self.text(where, value)
        try:
            return str(self.folder / Path(text).expanduser()) if text else ""
        except RuntimeError:
            self.wrong(where, f"is {shown(value)}, and there is no such user")
            return ""

    def choice(self, where: str, value: Any, choices: tuple[str, ...]) -> str:
        """Return one of some texts."""
        if value not in choices:
            self.wrong(where, f"is {shown(value)}, and one of {', '.join(choices)} is wanted")
            return choices[0]
        return str(value)

    def integer(self, where: str, value: Any, low: int, high: int = 2**62) -> int:
        """Return a whole number within limits."""
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            upper = f" to {high}" if high < 2**62 else ""
            self.wrong(where, f"is {shown(value)}, and an integer from {low}{upper} is wanted")
            return low
        return value


def shown(value: Any) -> str:
    """Return a value in a few words."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


def escaped(name: str) -> str:
    """Return a name as it stands in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError where a name stands twice in it."""
    names = [name for name, _ in pairs]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"the name {sorted(twice)[0]!r} stands twice in one object")
    return dict(pairs)
