"""Numbers with units: sizes, durations and bandwidths as people write them, in bytes, seconds and bytes a second.

What is read may have either family of prefixes; what is written (`size_words`) has powers of 1000 alone, as bandwidths
of storage have, so that no page has two meanings of a gigabyte beside each other.

Problem. "1GB" means 10^9 bytes to some and 2^30 to others, "5m" is a minute or a metre. A threshold that is off by 7 %
changes a list of jobs silently.

Rules. Decimal prefixes are powers of ten (``kB`` or ``KB``, ``MB``, ``GB``, ``TB``, ``PB``, ``EB``), binary ones powers
of two (``KiB`` … ``EiB``). Sizes and bandwidths (``GB/s``, ``MiB/s``) are known by their last letters, ``B`` and
``B/s``; durations are ``us``, ``ms``, ``s``, ``min``, ``h``, ``d``. Letters may have either case, since nobody means
bits; but single letters such as ``G`` or ``m`` are refused, because it is not known what they mean.

Guarantees. A value that is a whole number of base units is an ``int``, exactly; any other is a ``float``.
"""

from __future__ import annotations

import dataclasses
import fractions
import re

from mpiio_ext.analytics.errors import AnalyticsError

__all__ = ["UNITS", "Quantity", "UnitError", "bandwidth", "duration", "number", "parse", "size", "size_words"]


class UnitError(AnalyticsError, ValueError):
    """A text that is no number with a known unit."""


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number in base units.

    Attributes
    ----------
    value : int or float
        In bytes, seconds or bytes a second.
    unit : str
        ``B``, ``s``, ``B/s``, or ``""`` for a plain number; as in :mod:`mpiio_ext.analytics.tables.schema`.
    """

    value: int | float
    unit: str = ""


def _units() -> dict[str, tuple[fractions.Fraction, str]]:
    found = {"b": (fractions.Fraction(1), "B")}
    for power, prefix in enumerate("kmgtpe", 1):
        found[f"{prefix}b"] = (fractions.Fraction(1000**power), "B")
        found[f"{prefix}ib"] = (fractions.Fraction(1024**power), "B")
    found |= {f"{name}/s": (factor, "B/s") for name, (factor, _) in found.items()}
    seconds = {"us": fractions.Fraction(1, 10**6), "ms": fractions.Fraction(1, 1000)}
    seconds |= {name: fractions.Fraction(count) for name, count in (("s", 1), ("min", 60), ("h", 3600), ("d", 86400))}
    return found | {name: (factor, "s") for name, factor in seconds.items()}


#: Unit in small letters -> (factor to the base unit, base unit).
UNITS = _units()
_QUANTITY = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ/]*)\s*")
_NAMES = {"B": "a size such as 4096, 64KiB or 1.5GB", "s": "a duration such as 30s, 5min or 2h"}
_NAMES[""] = "a number without a unit"
_NAMES["B/s"] = "a bandwidth such as 500MB/s or 1GiB/s"


def parse(text: str) -> Quantity:
    """Return the quantity that `text` names, such as ``1.5TiB``, ``5min``, ``20GB/s`` or ``42``.

    Raises
    ------
    UnitError
        When `text` is no number, or its unit is not known.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(f"'{text}' is not a number with a unit; write for example 1GB, 1.5TiB, 5min or 20GB/s")
    number, unit = match.group(1).replace("_", ""), match.group(2).lower().replace("µ", "u")
    if not unit:
        return Quantity(_plain(fractions.Fraction(number)))
    if unit not in UNITS:
        raise UnitError(
            f"'{match.group(2)}' in '{text}' is not a unit; known are B, kB, KiB, MB, MiB … EB, EiB, the same with /s,"
            " and us, ms, s, min, h, d"
        )
    factor, base = UNITS[unit]
    return Quantity(_plain(fractions.Fraction(number) * factor), base)


def size(value: str | int | float) -> int | float:
    """Return a size in bytes; plain numbers are bytes."""
    return _of_unit(value, "B")


def duration(value: str | int | float) -> int | float:
    """Return a duration in seconds; plain numbers are seconds."""
    return _of_unit(value, "s")


def bandwidth(value: str | int | float) -> int | float:
    """Return a bandwidth in bytes a second; plain numbers are bytes a second.

    A size is taken as that size a second, since the paper writes a bandwidth as "1 GB".
    """
    if isinstance(value, str) and (quantity := parse(value)).unit == "B":
        return quantity.value
    return _of_unit(value, "B/s")


def number(value: str | int | float) -> int | float:
    """Return a number that has no unit."""
    return _of_unit(value, "")


#: Largest power of two that is taken for the size of a block, a stripe or a buffer, and said exactly.
_MOST_EXACT = 1 << 26
_PREFIXES = (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def size_words(size_bytes: float) -> str:
    """Return bytes as people read them: in powers of 1000 with three digits, ``19.8 GB``.

    Blocks, stripes and bounds of histograms are powers of two: from 1024 to 64 Mi these are said exactly,
    ``1,048,576 B`` instead of 1.05 MB.
    """
    whole = int(size_bytes)
    if whole == size_bytes and 1024 <= whole <= _MOST_EXACT and whole & (whole - 1) == 0:
        return f"{whole:,} B"
    for unit, factor in _PREFIXES:
        if abs(size_bytes) >= factor * 0.9995:  # what rounds to it
            return f"{size_bytes / factor:.3g} {unit}"
    return f"{size_bytes:.3g} B"


def _of_unit(value: object, unit: str) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise UnitError(f"{value!r} is not {_NAMES[unit]}")
    quantity = parse(value)
    if quantity.unit not in ("", unit):
        raise UnitError(f"'{value}' is not {_NAMES[unit]}")
    return quantity.value


def _plain(value: fractions.Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)
