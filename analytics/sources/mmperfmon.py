"""GPFS: output of ``mmperfmon query``, as text or as an archive of a day's texts, to rows of ``samples``.

Problem. A query prints a legend of numbered columns, then one table after the other, each with as many of the columns
as fit beside each other; values may have a unit (``98.7 kB``). A file that is cut between two lines looks whole.

Algorithm. The columns of a table are the next ones of the legend; the names above them must agree with it. A row is
taken by its words: a value, and a unit where one follows. At the end all tables of a legend must have the same stamps,
and all columns of the legend a table.

Guarantees. Rows come column by column of the legend, each in the order of its stamps. Values are as printed, in the
printed unit (kB and MB are powers of 1024 there). A stamp is local time. Whether it begins or ends its interval the
text does not say: ``stamps`` in site.json does (:mod:`mpiio_ext.analytics.site`).

Header: ``step_s`` (float, s: between two stamps; None if it differs), ``hosts`` (list of str).

Source: IBM Storage Scale, mmperfmon command; TOKIO, Section "Storage system traffic" (ggiostat).
"""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import first_lines, head_of, lines_of_log, members_of, read_bytes
from mpiio_ext.analytics.sources.numbers import Zone, decimal
from mpiio_ext.analytics.sources.opener import Log, open_log
from mpiio_ext.analytics.sources.records import Problems, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table
from mpiio_ext.common.limits import limit_text, most_bytes

SAMPLES = Table(
    "samples",
    "one row a stamp and a column of the legend",
    (
        Column("member", "string", "", "file of the archive; NULL if the source is one text"),
        Column("timestamp", "string", "", "as printed: local time"),
        Column("time", "float64", "s since 1970 UTC", "of the stamp"),
        Column("host", "string", "", "server"),
        Column("sensor", "string", "", "GPFSNSDDisk, CPU, Memory, Network …"),
        Column("component", "string", "", "NSD, interface …; NULL if the sensor has none"),
        Column("metric", "string", "", "gpfs_nsdds_bytes_read, cpu_user …"),
        Column("value", "float64", "", "as printed, in its unit; NULL where null is printed"),
        Column("unit", "string", "", "as printed (kB, MB: powers of 1024); empty if there is none"),
    ),
)

#: Printed unit -> bytes.
UNITS = {"B": 1, "kB": 1 << 10, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}

_LEGEND = re.compile(r"^\s*([0-9]{1,6}):\s+(\S[^|]*)\|([^|]+)\|(?:(.*)\|)?([^|\s]+)\s*$")
_HEADING = re.compile(r"^\s*Row\s+Timestamp\s+(\S.*?)\s*$")
_ROW = re.compile(r"^\s*[0-9]+\s+([0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{2}:[0-9]{2}:[0-9]{2})\s+(\S.*?)\s*$")
_STAMP = "%Y-%m-%d-%H:%M:%S"
_ARCHIVE = b"ustar"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Key:
    """A column of the legend."""

    host: str
    sensor: str
    component: str | None
    metric: str


@dataclasses.dataclass
class _Columns:
    """One table of a text: the keys of its columns (None: not known), and its rows."""

    line: int
    keys: list[_Key | None]
    stamps: list[str] = dataclasses.field(default_factory=list)
    times: list[float] = dataclasses.field(default_factory=list)
    values: list[float | None] = dataclasses.field(default_factory=list)
    units: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class _Part:
    """The columns of all tables of one text."""

    member: str | None
    tables: list[_Columns] = dataclasses.field(default_factory=list)


def _values(text: str) -> tuple[list[float | None], list[str]]:
    """Return the values and units of a row.

    Raises
    ------
    ValueError
        A word is neither.
    """
    values: list[float | None] = []
    units: list[str] = []
    free = False  # a unit may follow
    for word in text.split():
        if word in ("null", "-"):
            values.append(None)
            units.append("")
            free = False
        elif free and (word in UNITS or word == "%"):
            units[-1] = word
            free = False
        else:
            values.append(decimal(word))
            units.append("")
            free = True
    return values, units


class _Reader:
    """Reads one text.

    Parameters
    ----------
    part : tables are added.
    """

    def __init__(self, part: _Part, problems: Problems, zone: Zone) -> None:
        self._part = part
        self._problems = problems
        self._zone = zone
        self._legend: dict[int, _Key] = {}
        self._place = 0
        self._first = 0  # table of the legend in force
        self._table: _Columns | None = None
        self._lost: set[int] = set()  # tables with lost rows
        self.seen = False

    def line(self, number: int, text: str) -> None:
        """Take a line."""
        if not text.strip():
            return
        if text.strip() == "Legend:":
            self.close()
            self._legend, self._place, self._first, self._table = {}, 0, len(self._part.tables), None
            self.seen = True
        elif (match := _LEGEND.match(text)) and self._place == 0:
            self._key(number, match)
        elif match := _HEADING.match(text):
            self._heading(number, match[1].split())
        elif match := _ROW.match(text):
            self._row(number, match[1], match[2])
        else:
            self._problems.add(number, f"neither legend, heading nor row: {text.strip()[:60]!r}")
            self._lost.add(len(self._part.tables))

    def _key(self, number: int, match: re.Match[str]) -> None:
        place = int(match[1])
        if place in self._legend:
            self._problems.add(number, f"column {place} stands twice in the legend")
            return
        self._legend[place] = _Key(host=match[2], sensor=match[3], component=match[4] or None, metric=match[5])

    def _heading(self, number: int, names: Sequence[str]) -> None:
        self.seen = True
        keys: list[_Key | None] = []
        for name in names:
            self._place += 1
            key = self._legend.get(self._place)
            if key is None or key.metric != name:
                why = "is not in the legend" if key is None else f"is {key.metric} in the legend"
                self._problems.add(number, f"column {self._place} ({name[:40]}) {why}: its values are left out")
                key = None
            keys.append(key)
        self._table = _Columns(number, keys)
        self._zone.restart()
        self._part.tables.append(self._table)

    def _row(self, number: int, stamp: str, text: str) -> None:
        table = self._table
        if table is None:
            self._problems.add(number, "a row without a heading above it")
            return
        try:
            time = self._zone.seconds(stamp)
            values, units = _values(text)
            if len(values) != len(table.keys):
                raise ValueError(f"{len(values)} values, and the heading has {len(table.keys)}")
        except ValueError as error:
            self._problems.add(number, str(error))
            self._lost.add(len(self._part.tables))
            return
        table.stamps.append(stamp)
        table.times.append(time)
        table.values += values
        table.units += units

    def close(self) -> None:
        """Report columns of a legend that the text lacks."""
        tables = self._part.tables[self._first :]
        missing = sorted(place for place in self._legend if place > self._place)
        if missing:
            self._problems.add(
                0, f"columns {missing[0]} to {missing[-1]} of the legend have no table: the text is cut", len(missing)
            )
        if self.seen and not tables and not missing:
            self._problems.add(0, "a legend without columns: the text is cut")
        # A heading without rows is cut, too.
        most = max((1, *(len(table.stamps) for table in tables)))
        for number, table in enumerate(tables, self._first + 1):
            if len(table.stamps) < most and number not in self._lost:
                self._problems.add(
                    table.line,
                    f"the table has {len(table.stamps)} rows, and others have {most}: the text is cut",
                    most - len(table.stamps),
                )


def _text(log: Log, member: str | None, problems: Problems, time_zone: str) -> _Part:
    part = _Part(member)
    reader = _Reader(part, problems, Zone(time_zone, (_STAMP,)))
    for number, line in lines_of_log(log, problems):
        reader.line(number, line)
    if not reader.seen:
        raise SourceError(problems.file, 0, "no output of mmperfmon query: neither a legend nor a table")
    reader.close()
    return part


def _parts(path: Path, problems: Problems, time_zone: str) -> Iterator[_Part]:
    if head_of(path).data[257:262] != _ARCHIVE:
        with open_log(path) as log:
            yield _text(log, None, problems, time_zone)
        return
    data = read_bytes(path, problems)
    packed_bytes = path.stat().st_size
    most, count = most_bytes(packed_bytes), 0
    for member, content in members_of(path, data, problems):
        inner = Problems(f"{path}:{member}")
        try:
            with Log(io.BytesIO(content), inner.file, len(content)) as log:
                yield _text(log, member, inner, time_zone)
                count += log.count
            if count > most:
                raise SourceError(str(path), 0, limit_text(most, packed_bytes))
        except SourceError as error:
            inner.add(0, error.what)
        problems.extend(inner.all())


def _arrow(parts: Sequence[_Part]) -> pa.Table:
    """Return the samples of all texts, column by column of the legends."""
    columns: dict[str, list[Any]] = {name: [] for name in SAMPLES.names()}
    for part in parts:
        for table in part.tables:
            rows, width = len(table.stamps), len(table.keys)
            values = np.array(table.values, dtype=object).reshape(rows, width)
            units = np.array(table.units, dtype=object).reshape(rows, width)
            for place, key in enumerate(table.keys):
                if key is None or not rows:
                    continue
                columns["timestamp"].append(pa.array(table.stamps))
                columns["time"].append(pa.array(table.times))
                columns["value"].append(pa.array(values[:, place], pa.float64()))
                columns["unit"].append(pa.array(units[:, place], pa.string()))
                constants = {"member": part.member, **dataclasses.asdict(key)}
                for name, text in constants.items():
                    columns[name].append(pa.repeat(pa.scalar(text, pa.string()), rows))
    schema = SAMPLES.schema()
    return pa.table([pa.chunked_array(columns[field.name], field.type) for field in schema], schema=schema)


def _step(parts: Sequence[_Part]) -> float | None:
    steps = {
        round(after - before, 3)
        for part in parts
        for table in part.tables
        for before, after in zip(table.times, table.times[1:], strict=False)
    }
    return steps.pop() if len(steps) == 1 else None


class Mmperfmon(Source):
    """The output of ``mmperfmon query``."""

    NAME = "mmperfmon"
    MEANING = "GPFS: output of mmperfmon query, or an archive of it"
    ROLE = "traffic"
    PATTERNS = ("mmperfmon*.txt", "mmperfmon*.txt.gz", "mmperfmon*.tgz", "*.out", "*.out.gz")
    TABLES = (SAMPLES,)

    def recognizes(self, head: Head) -> bool:
        if head.members:
            return any(name.endswith((".out", ".out.gz")) or "mmperfmon" in name for name in head.members)
        lines = first_lines(head.text)
        return any(line.strip() == "Legend:" or _HEADING.match(line) for line in lines)

    def local_times(self, head: Head) -> bool:  # noqa: ARG002  (it prints the time of its node)
        return True

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        parts = list(_parts(path, problems, file.time_zone))
        if not parts:
            first = problems.first
            raise SourceError(str(path), 0, f"nothing of the archive can be read: {first or 'it is empty'}")
        samples = _arrow(parts)
        header = {"step_s": _step(parts), "hosts": sorted(samples["host"].unique().to_pylist())}
        return {"samples": samples}, header


SOURCE = Mmperfmon()
