"""Slurm's compressed lists of nodes: ``nid0[0001-0003,5],login1`` to names."""

from __future__ import annotations

import itertools
import re

__all__ = ["expand_nodes"]

#: Names that one list may have; a larger one is a mistake.
_MOST = 1 << 20
_PART = re.compile(r"([^\[\],]*)(?:\[([^\[\]]*)\])?")
_RANGE = re.compile(r"^(\d+)(?:-(\d+))?$")


def _numbers(text: str) -> list[str]:
    out: list[str] = []
    for item in text.split(","):
        match = _RANGE.match(item.strip())
        if match is None:
            raise ValueError(f"{item[:40]!r} is no range of nodes")
        first, last = match[1], match[2] or match[1]
        if not 0 <= int(last) - int(first) < _MOST:
            raise ValueError(f"{item[:40]!r} is no range of nodes")
        out += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return out


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise ValueError(f"brackets do not match in the list of nodes {text[:40]!r}")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    if depth:
        raise ValueError(f"brackets do not match in the list of nodes {text[:40]!r}")
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def expand_nodes(text: str) -> list[str]:
    """Return the names of a list of nodes, in its order.

    Raises
    ------
    ValueError
        The brackets do not match, a range is none, or there are more than 2^20 names.
    """
    names: list[str] = []
    for part in _split(text):
        pieces: list[list[str]] = []
        for match in _PART.finditer(part):
            if match[0]:
                pieces.append([match[1]])
                if match[2] is not None:
                    pieces.append(_numbers(match[2]))
        count = 1
        for piece in pieces:
            count *= len(piece)
        if len(names) + count > _MOST:
            raise ValueError(f"more than {_MOST} names in the list of nodes {text[:40]!r}")
        names += ["".join(combination) for combination in itertools.product(*pieces)]
    return names
