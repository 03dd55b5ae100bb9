"""Numbers of a diagnosis in words: with units, and rounded where the job must not be recognised."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from mpiio_ext.common.units import amount_text, count_text, digits_text, seconds_text, size_text

#: Share of a size by which few other sizes change the mean.
_FEW = 0.004


def rounded(value: float, digits: int) -> float:
    """Return a value with so many significant digits; whole numbers stay whole."""
    if value == 0 or not math.isfinite(value):
        return value
    places = digits - 1 - math.floor(math.log10(abs(value)))
    out = round(value, places)
    return int(out) if isinstance(value, int) or float(value).is_integer() else out


def sized(mean: float, requests: str) -> str:
    """Return requests of a mean size (B; 0: unknown) as a noun: "8 B reads", "reads of 10.7 B on average".

    It may be the size of most if it is a whole number, but for a few other sizes.
    """
    if not mean:
        return f"small {requests}"
    if abs(mean - round(mean)) <= _FEW * mean:
        return f"{size_text(round(mean))} {requests}"
    return f"{requests} of {size_text(mean)} on average"


def as_sentences(reason: str) -> str:
    """Return the parts of a reason, between semicolons, as sentences."""
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in reason.split("; "))


def number(value: float) -> str:
    """Return a plain number: whole where it is, else three digits."""
    return digits_text(value)


def worded(value: float | None, unit: str) -> str:
    """Return a value with its unit as people write it.

    Units are ``s``, ``B``, ``B/s``, ``share`` (percent), ``count``, ``ratio`` (times), or none.
    """
    if value is None:
        return "unknown"
    if unit == "s":
        return seconds_text(value) if value < 1000 else f"{value:,.0f} s"
    if unit == "B":
        return amount_text(value)
    if unit == "B/s":
        return f"{amount_text(value)}/s"
    if unit == "share":
        percent = 100 * value
        return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{digits_text(percent, 1)} %"
    return f"{number(value)} times" if unit == "ratio" else number(value)


def where(files: Sequence[str], word: str, among: Collection[str] = ()) -> str:
    """Return which files, by short names, after a preposition: " to `a`", " to `a` and 3 more files"; "" for none.

    The first one has as many folders as no other one `among` all names has, if there are any.
    """
    names = [name for name in files if not name.startswith("and ")]
    if not names:
        return ""
    hidden = sum(int(name.split()[1].replace(",", "")) for name in files if name.startswith("and "))
    left = len(names) - 1 + hidden
    more = f" and {count_text(left, 'more file')}" if left else ""
    return f" {word} `{short_name(names[0], among) if among else names[0]}`{more}"


def short_name(name: str, among: Collection[str]) -> str:
    """Return the shortest end of a file's name, in whole folders, that no other name `among` all names has."""
    parts, same = name.split("/"), [other for other in among if other != name]
    for count in range(1, len(parts)):
        end = "/".join(parts[-count:])
        same = [other for other in same if f"/{other}".endswith(f"/{end}")]
        if end and not same:
            return end
    return name
