"""Names that a misspelt one could mean: commands, options, patterns, pages.

Problem. Python's `difflib` compares which letters two words share: ``logs`` is near ``locks`` to it, ``--json`` near
``--only``. A wrong suggestion costs more time than none.

Algorithm. A name is suggested if only hyphens differ, if one word begins with the other (``--repeat``, ``--repeats``),
or if few slips of the hand lie between them: a letter that is missing, added or wrong, or two that changed places
(F. J. Damerau, "A technique for computer detection and correction of spelling errors", CACM 7(3), 1964).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Least letters that one word shares with the beginning of a longer one: an abbreviation, a longer form.
_ABBREVIATION, _LONGER = 3, 4
#: Letters of the longer word from which on one slip is allowed, and those where slips leave the first letter.
_ONE, _ONE_WITHIN, _TWO_WITHIN = 4, 3, 7


def near_names(word: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the names that a word could mean, the nearest first; [] if no name is near."""
    found = []
    for place, name in enumerate(names):
        slips = _slips(_bare(word), _bare(name))
        if slips is not None:
            found.append((slips, place, name))
    return [name for _, _, name in sorted(found)[:most]]


def _bare(word: str) -> str:
    return re.sub(r"[-_]", "", word).lower()


def _slips(word: str, name: str) -> int | None:
    """Return the distance of two words; None if it is too large."""
    longer, distance = max(len(word), len(name)), _distance(word, name)
    within = (longer >= _ONE_WITHIN) + (longer >= _TWO_WITHIN) if word[:1] == name[:1] else 0
    if distance <= max(longer >= _ONE, within):
        return distance
    if (len(word) >= _ABBREVIATION and name.startswith(word)) or (len(name) >= _LONGER and word.startswith(name)):
        return distance
    return None


def _distance(word: str, name: str) -> int:
    """Return the slips between two words."""
    before: list[int] = []
    last = list(range(len(name) + 1))
    for row, letter in enumerate(word, 1):
        line = [row]
        for column, other in enumerate(name, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == name[column - 2] and word[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return last[-1]
