"""Numbers of a diagnosis in words: with units, and rounded where the job must not be recognised."""

from __future__ import annotations

import math

from mpiio_ext.common.units import amount_text, digits_text, seconds_text


def rounded(value: float, digits: int) -> float:
    """Return a value with so many significant digits; whole numbers stay whole."""
    if value == 0 or not math.isfinite(value):
        return value
    places = digits - 1 - math.floor(math.log10(abs(value)))
    out = round(value, places)
    return int(out) if isinstance(value, int) or float(value).is_integer() else out


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
