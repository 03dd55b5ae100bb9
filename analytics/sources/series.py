"""A time series as CSV: times in the first column, values in the others, to rows of ``series``.

Problem. What no other connector reads can mostly be exported as CSV, in some form.

Form. Lines that begin with ``#`` are comments. The first other line names the columns; a name may end with its unit in
brackets: ``read [B/s]``. Times are ``2018-01-28T00:00:05`` (``T`` or a blank; with a zone, or local) or seconds since
1970. Values are numbers; an empty one, ``nan``, ``null`` and ``NA`` are NULL. The separator is the one of ``,`` ``;``
and tab that the first line has most of.

Guarantees. Rows come line by line. A line with another number of values than names, or with a value that is no number,
is left out and named. A last line without an end is kept, and named: it may be cut.

Header: ``separator``, ``time_column`` (its name), ``columns`` (list of str: the others with their units).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import csv_values, first_lines, lines_of
from mpiio_ext.analytics.sources.numbers import Zone, decimal, has_local_time
from mpiio_ext.analytics.sources.records import SourceError
from mpiio_ext.analytics.tables.schema import Column, Table

SERIES = Table(
    "series",
    "one row a line and a column",
    (
        Column("time", "float64", "s since 1970 UTC", "of the line"),
        Column("timestamp", "string", "", "as it stands there"),
        Column("metric", "string", "", "name of the column, without its unit"),
        Column("value", "float64", "", "in the unit; NULL if there is none"),
        Column("unit", "string", "", "in brackets behind the name; empty without"),
    ),
)

_NAMED = re.compile(r"(.*?)\s*\[([^\[\]]*)\]")
_FORMS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z")
_SECONDS = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,9})?")
_NOTHING = ("", "nan", "null", "na")
_LATEST = 2**33
#: Before 1990 no tool wrote series: a table whose first column has smaller numbers is another one, unless its name
#: says time.
_EARLIEST = 631_152_000
_TIMES = re.compile(r"time|date|epoch|seconds")


def _separator(line: str) -> str:
    return max((",", ";", "\t"), key=line.count)


def _time(text: str, zone: Zone) -> float:
    if _SECONDS.fullmatch(text):
        if float(text) >= _LATEST:
            raise ValueError(f"{text!r} is no time")
        return float(text)
    return zone.seconds(text.replace(" ", "T", 1))


def _names(number: int, words: list[str], path: Path) -> list[tuple[str, str]]:
    """Return the names and units of the columns of values.

    Raises
    ------
    SourceError
        The line has no column of values, or two columns have the same name.
    """
    found = []
    for word in words[1:]:
        match = _NAMED.fullmatch(word.strip())
        found.append((match[1], match[2]) if match else (word.strip(), ""))
    names = [name for name, _ in found]
    if not names or "" in names or len(set(names)) < len(names):
        raise SourceError(str(path), number, "the first line must name a time and columns of values, each once")
    return found


def _value(text: str) -> float | None:
    text = text.strip()
    return None if text.lower() in _NOTHING else decimal(text)


class Csv(Source):
    """A time series as CSV."""

    NAME = "csv"
    MEANING = "a time series as CSV: times in the first column, values in the others"
    ROLE = "series"
    PATTERNS = ("*.csv", "*.csv.gz", "*.tsv")
    TABLES = (SERIES,)

    def recognizes(self, head: Head) -> bool:
        lines = [line for line in first_lines(head.text, 40) if not line.startswith("#")]
        if len(lines) < 2:
            return False
        separator = _separator(lines[0])
        try:
            words = csv_values(lines[1], separator)
            time = _time(words[0].strip(), Zone("UTC", _FORMS))
            named = csv_values(lines[0], separator)[0].strip().lower()
        except (ValueError, IndexError):
            return False
        return len(words) > 1 and (time >= _EARLIEST or _TIMES.match(named) is not None)

    def local_times(self, head: Head) -> bool:
        return has_local_time(head.text)

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        zone = Zone(file.time_zone, _FORMS)
        columns: dict[str, list[Any]] = {name: [] for name in SERIES.names()}
        names: list[tuple[str, str]] | None = None
        header: dict[str, Any] = {}
        for number, text in lines_of(path, problems, ended=False):
            if not text.strip() or text.startswith("#"):
                continue
            try:
                if names is None:
                    words = csv_values(text, _separator(text))
                    names = _names(number, words, path)
                    header = {
                        "separator": _separator(text),
                        "time_column": words[0].strip(),
                        "columns": [word.strip() for word in words[1:]],
                    }
                    continue
                words = csv_values(text, header["separator"])
                if len(words) != len(names) + 1:
                    raise ValueError(f"{len(words)} values, and the first line names {len(names) + 1}")
                stamp = words[0].strip()
                time = _time(stamp, zone)
                values = [_value(word) for word in words[1:]]
            except ValueError as error:
                if isinstance(error, SourceError):
                    raise
                problems.add(number, str(error))
                continue
            for (name, unit), value in zip(names, values, strict=True):
                for column, found in zip(columns.values(), (time, stamp, name, value, unit), strict=True):
                    column.append(found)
        if not columns["time"]:
            raise SourceError(str(path), 0, f"no time series: {problems.first or 'no line with a time and values'}")
        return {"series": columns}, header


SOURCE = Csv()
