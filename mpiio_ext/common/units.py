"""Numbers with units: sizes, durations and bandwidths as people write and read them; bytes, seconds, bytes a second.

Problem. "1GB" means 10^9 bytes to some and 2^30 to others, "5m" is five minutes or five mebibytes. A threshold that is
off by 7 % changes a list of jobs silently, a buffer that is off by 5 % no longer fits the stripes.

Rules. One meaning, in every option, query, hint and file. ``kB MB GB TB PB EB`` (also ``KB``) are powers of 1000; ``KiB
MiB … EiB``, and the letters ``k m g t p e`` alone, are powers of 1024, as in most tools of parallel I/O; ``B`` or
nothing is bytes. Bandwidths have ``/s`` behind that. Durations have ``ns us ms s min h d``; ``m`` alone is a minute
there, and units may follow each other (``1h30m``). Letters may have either case, since bits are never meant. If the
kind of number is not known, the parser refuses a single letter, except ``s``, ``h`` and ``d``.

Guarantees. A value that is a whole number of base units is an ``int``, exactly; any other is a ``float``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import TYPE_CHECKING

from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    import fractions


class UnitError(ArgumentError):
    """A text that is no number with a known unit."""


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A number in base units.

    Attributes
    ----------
    value : in bytes, seconds or bytes a second.
    unit : ``B``, ``s``, ``B/s``, or ``""`` for a plain number.
    """

    value: int | float
    unit: str = ""


_Units = dict[str, "tuple[fractions.Fraction, str]"]


@functools.cache
def _units() -> tuple[_Units, dict[str, _Units]]:
    """Return unit in small letters -> (factor to the base unit, base unit), and the meaning of a letter alone besides.

    The latter, also of ``Ki``, by the unit that is wanted. Made when a text is read: most commands read none.
    """
    import fractions

    found = {"b": (fractions.Fraction(1), "B")}
    for power, prefix in enumerate("kmgtpe", 1):
        found[f"{prefix}b"] = (fractions.Fraction(1000**power), "B")
        found[f"{prefix}ib"] = (fractions.Fraction(1024**power), "B")
    found |= {f"{name}/s": (factor, "B/s") for name, (factor, _) in found.items()}
    seconds = {f"{prefix}s": fractions.Fraction(1, 1000**power) for power, prefix in enumerate("mun", 1)}
    seconds |= {name: fractions.Fraction(count) for name, count in (("s", 1), ("min", 60), ("h", 3600), ("d", 86400))}
    found |= {name: (factor, "s") for name, factor in seconds.items()}
    short: dict[str, _Units] = {"": {}, "B": {}, "B/s": {}, "s": {"m": found["min"]}}
    for power, prefix in enumerate("kmgtpe", 1):
        for end, base in (("", "B"), ("/s", "B/s")):
            short[base] |= {name + end: (fractions.Fraction(1024**power), base) for name in (prefix, f"{prefix}i")}
    return found, short


_QUANTITY = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*([A-Za-zµ/]*)\s*")
_DURATIONS = re.compile(r"\s*(?:\d[\d_]*(?:\.\d*)?\s*(?:ns|us|µs|ms|s|min|m|h|d)\s*){2,}", re.IGNORECASE)
_NAMES = {"B": "a size such as 4096, 64KiB or 1.5GB", "s": "a duration such as 90s, 5m or 1h30m"}
_NAMES[""] = "a number without a unit"
_KNOWN = {"B": "B, kB, KiB, MB, MiB … EB, EiB", "B/s": "B/s, kB/s, KiB/s … EiB/s", "s": "ns, us, ms, s, min or m, h, d"}
_NAMES["B/s"] = "a bandwidth such as 500MB/s or 1GiB/s"


def known() -> _Units:
    """Return the units: in small letters -> factor to the base unit, and that."""
    return _units()[0]


def parse(text: str, wanted: str | None = None) -> Quantity:
    """Return the quantity that `text` names, such as ``1.5TiB``, ``5min``, ``20GB/s`` or ``42``.

    Parameters
    ----------
    text : a number and its unit.
    wanted : {"B", "s", "B/s", ""}, optional
        The base unit, if it is known: it decides the meaning of a single letter.

    Raises
    ------
    UnitError
        When `text` is no number, or its unit is not known.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        example = _NAMES[wanted] if wanted else "a number with a unit; write for example 1GB, 1.5TiB, 5min or 20GB/s"
        raise UnitError(f"'{text}' is not {example}")
    import fractions

    units, shorts = _units()
    number, unit = match.group(1).replace("_", ""), match.group(2).lower().replace("µ", "u")
    if not unit:
        return Quantity(_plain(fractions.Fraction(number)))
    short = shorts[wanted or ""]
    if unit not in units and unit not in short:
        raise UnitError(
            f"'{match.group(2)}' in '{text}' is not a unit{f' of {_NAMES[wanted]}' if wanted else ''}; known are "
            f"{_KNOWN.get(wanted or '', ', '.join(_KNOWN.values()))}"
        )
    factor, base = short[unit] if unit in short else units[unit]
    return Quantity(_plain(fractions.Fraction(number) * factor), base)


def size(value: str | int | float) -> int | float:
    """Return a size in bytes; plain numbers are bytes."""
    return _of_unit(value, "B")


def duration(value: str | int | float) -> int | float:
    """Return a duration in seconds; plain numbers are seconds."""
    if isinstance(value, str) and _DURATIONS.fullmatch(value):
        parts = re.findall(r"[\d_.]+\s*[A-Za-zµ]+", value)
        return sum(_of_unit(part, "s") for part in parts)
    return _of_unit(value, "s")


def bandwidth(value: str | int | float) -> int | float:
    """Return a bandwidth in bytes a second; plain numbers are bytes a second.

    A size is taken as that size a second, since papers write a bandwidth as "1 GB".
    """
    if isinstance(value, str) and not value.rstrip().endswith("/s"):
        return _of_unit(value, "B")
    return _of_unit(value, "B/s")


def number(value: str | int | float) -> int | float:
    """Return a number that has no unit."""
    return _of_unit(value, "")


#: Largest power of two that is taken for the size of a block, a stripe or a buffer, and printed exactly.
_MOST_EXACT = 1 << 26
_DECIMAL = (("EB", 1e18), ("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_BINARY = (("EiB", 1 << 60), ("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def size_text(size_bytes: float, *, exact: bool = False) -> str:
    """Return bytes as people read them.

    Parameters
    ----------
    size_bytes : bytes.
    exact : for sizes that somebody has set: in the largest power of 1024 that divides them, ``16 MiB``, ``1,000,000
        B``. Otherwise amounts are in powers of 1000 with three digits, ``19.8 GB``, as bandwidths are. But powers of
        two from 1024 to 64 Mi are printed exactly, ``1,048,576 B``: blocks, stripes and bounds of histograms are such.
        No page shall have two meanings of a gigabyte beside each other.
    """
    whole = int(size_bytes)
    if whole == size_bytes and 1024 <= whole <= _MOST_EXACT and whole & (whole - 1) == 0 and not exact:
        return f"{whole:,} B"
    if exact:
        for unit, factor in _BINARY:
            if whole and whole % factor == 0:
                return f"{whole // factor:,} {unit}"
        return f"{whole:,} B"
    return amount_text(size_bytes)


def amount_text(size_bytes: float) -> str:
    """Return bytes that were counted: in powers of 1000 with three digits, ``33.6 MB``, also where a power of two."""
    for unit, decimal in _DECIMAL:
        if abs(size_bytes) >= decimal * 0.9995:  # what rounds to it
            return f"{digits_text(size_bytes / decimal)} {unit}"
    return f"{digits_text(size_bytes)} B"


def mean_text(size_bytes: float) -> str:
    """Return the mean size of accesses: exactly if it is an integer, ``16 MiB``, ``1,000,000 B``, else ``1.15 kB``."""
    return size_text(round(size_bytes), exact=True) if size_bytes == round(size_bytes) else amount_text(size_bytes)


def digits_text(value: float, digits: int = 3) -> str:
    """Return a number in so many significant digits, without a power of ten: ``0.00012``, ``1.5``, ``1,234,568``.

    All digits before the decimal point are there.
    """
    places = digits - 1 - math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0
    text = f"{value:,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def megabytes(size_bytes: float) -> str:
    """Return bytes in 10⁶ bytes, for sizes that stand below each other or beside MB/s: ``1,234.5 MB``."""
    return f"{size_bytes / 1e6:,.1f} MB"


def number_words(value: float, quantity: str = "") -> str:
    """Return a value with its unit (``B``, ``B/s`` or another) in few characters, as at the ticks of an axis."""
    if value == 0:
        return "0"
    if quantity in ("B", "B/s"):
        return size_text(value) + quantity[1:]
    size = abs(value)
    if size >= 1e5 and not quantity:
        return size_text(value).removesuffix("B").replace(" ", "\u202f")
    text = digits_text(value)
    return f"{text} {quantity}".strip()


def seconds_text(value: float) -> str:
    """Return a time with its unit, in three digits: ``1.5 s``, ``12 ms``, ``3.1 µs``; from 1000 s on whole seconds."""
    factor, unit = (1.0, "s") if value >= 0.9995 else (1e3, "ms") if value >= 0.9995e-3 else (1e6, "µs")
    return f"{digits_text(value * factor)} {unit}"


def count_text(count: float, one: str, many: str | None = None) -> str:
    """Return a number and its noun: ``1 file``, ``2,000 files``; `many` is the plural, if it is not `one` and an s."""
    return f"{count:,.0f} {one if count == 1 else many or one + 's'}"


def _of_unit(value: object, unit: str) -> int | float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise UnitError(f"{value!r} is not {_NAMES[unit]}")
    quantity = parse(value, unit)
    if quantity.unit not in ("", unit):
        raise UnitError(f"'{value}' is not {_NAMES[unit]}")
    return quantity.value


def _plain(value: fractions.Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)
