"""State of GPFS' disks: output of ``mmlsdisk``, as text, with ``-L`` or ``-Y``, to ``disk_states``.

Problem. A disk that is down or suspended gets no data, so that the others have more to do. Its data are read from a
replica or not at all. ``mmlsdisk`` says no time, and no file system (site.json does): sites append its output to a file
behind a line ``BEGIN <seconds since 1970>``.

Algorithm. The heading says which columns a text has. A state may be of several words (``being emptied``), behind which
the availability follows: up, down, recovering or unrecovered.

Guarantees. Values are as printed. No disk comes twice in a snapshot. The end of a list cannot be seen to be cut between
two lines; with ``-L`` its trailer (quorum) can, and is asked for.

Header: ``snapshots`` (int: lines BEGIN).

Source: IBM Storage Scale, mmlsdisk command; TOKIO, Section "Health monitoring" (Mira).
"""

from __future__ import annotations

import re
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import first_lines, lines_of
from mpiio_ext.analytics.sources.gpfs import Colons, kib, whole, yes
from mpiio_ext.analytics.sources.numbers import count
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError
from mpiio_ext.analytics.sources.targets import SNAPSHOT, begin
from mpiio_ext.analytics.tables.schema import Column, Table

STATES = Table(
    "disk_states",
    "one row a snapshot and a disk",
    (
        SNAPSHOT,
        Column("disk", "string", "", "name of the NSD"),
        Column("driver", "string", "", "nsd, disk …"),
        Column("sector_size", "int64", "B", ""),
        Column("failure_group", "int32", "", ""),
        Column("metadata", "bool", "", "holds metadata"),
        Column("data", "bool", "", "holds data"),
        Column("status", "string", "", "ready, suspended, being emptied, emptied, replacing, replacement …"),
        Column("availability", "string", "", "up, down, recovering, unrecovered"),
        Column("pool", "string", "", "storage pool; NULL if it is not printed"),
        Column("disk_id", "int64", "", "with -L and -Y"),
        Column("remarks", "string", "", "with -L and -Y: desc of a disk with a file system descriptor"),
        Column("size", "int64", "KiB", "with -Y"),
    ),
)

_HEADING = re.compile(r"name\s+type\s+size\s+group\s+metadata\s+data\s+status\s+availability(?P<more>.*)")
_AVAILABILITY = ("up", "down", "recovering", "unrecovered")
_ROW = re.compile(
    r"(?P<disk>\S+)\s+(?P<driver>\S+)\s+(?P<sector>[0-9]+)\s+(?P<group>-?[0-9]+)\s+(?P<metadata>\w+)\s+"
    rf"(?P<data>\w+)\s+(?P<status>[a-z]+(?: [a-z]+)*)\s+(?P<availability>{'|'.join(_AVAILABILITY)})"
    r"(?:\s+(?P<more>\S.*))?"
)
_QUORUM = re.compile(r"(?:Number of quorum disks|Read quorum value|Write quorum value):\s+[0-9]+")
_DECORATION = re.compile(r"disk\s+driver\s+sector\s+failure holds.*|[- ]+|Attention: .*")
_STATUS = re.compile(r"[a-z]+(?: [a-z]+)*")


class _Reader:
    """Reads the lines of one file."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._colons = Colons("mmlsdisk")
        self._time: float | None = None
        self._columns: list[str] | None = None  # behind the availability
        self._line = 0
        self._trailer = True  # whether a list that has a trailer has reached it
        self._seen: set[str] = set()
        self.rows: list[Row] = []
        self.snapshots = 0
        self.found = False

    def line(self, number: int, text: str) -> None:
        """Take a line."""
        stripped = text.strip()
        try:
            time = begin(text)
            if time is not None:
                self._restart(time)
                self.snapshots += 1
            elif match := _HEADING.fullmatch(stripped):
                self._heading(number, match["more"])
            elif _QUORUM.fullmatch(stripped):
                self._trailer = True
            elif self._columns is not None and (match := _ROW.fullmatch(stripped)):
                self._add(self._printed(match, self._columns))
            elif stripped and not _DECORATION.fullmatch(stripped) and not self._coded(stripped):
                raise ValueError(f"neither heading nor disk: {stripped[:60]!r}")
        except ValueError as error:
            self._problems.add(number, str(error))
            if stripped.startswith("BEGIN"):
                self._restart(None)

    def _restart(self, time: float | None) -> None:
        self.finish()
        self._time, self._columns, self._seen = time, None, set()

    def _heading(self, number: int, more: str) -> None:
        self.finish()
        if self._columns is not None:  # a second table without a BEGIN before it
            self._time, self._seen = None, set()
        words = more.replace("disk id", "disk_id").split()
        if not set(words) <= {"disk_id", "pool", "remarks"}:
            raise ValueError(f"columns behind the availability that are not known: {more.strip()[:40]!r}")
        self._columns, self._line, self.found = words, number, True
        self._trailer = "disk_id" not in words

    @staticmethod
    def _printed(match: re.Match[str], columns: list[str]) -> Row:
        words = (match["more"] or "").split()
        least = len(columns) - ("remarks" in columns)
        if not least <= len(words) or (len(words) > len(columns) and "remarks" not in columns):
            raise ValueError(f"{len(words)} values behind the availability, and the heading names {len(columns)}")
        more: Row = dict(zip(columns, [*words[:least], " ".join(words[least:]) or None], strict=False))
        if "disk_id" in more:
            more["disk_id"] = count(str(more["disk_id"]))
        return {
            "disk": match["disk"],
            "driver": match["driver"],
            "sector_size": count(match["sector"]),
            "failure_group": whole(match["group"]),
            "metadata": yes(match["metadata"]),
            "data": yes(match["data"]),
            "status": match["status"],
            "availability": match["availability"],
            **more,
        }

    def _coded(self, text: str) -> bool:
        """Take a line of -Y; return whether it is one."""
        found = self._colons.fields(text)
        if found is None:
            return False
        self.found = True
        fields = found[1]
        if not fields:
            return True
        try:
            if fields["availability"] not in _AVAILABILITY or not _STATUS.fullmatch(fields["status"]):
                raise ValueError(f"a disk that is {fields['status'][:20]!r} and {fields['availability'][:20]!r}")
            size = fields.get("diskSizeKB", "")
            self._add(
                {
                    "disk": fields["nsdName"],
                    "driver": fields["driverType"],
                    "sector_size": count(fields["sectorSize"]),
                    "failure_group": whole(fields["failureGroup"]),
                    "metadata": yes(fields["metadata"]),
                    "data": yes(fields["data"]),
                    "status": fields["status"],
                    "availability": fields["availability"],
                    "pool": fields.get("storagePool") or None,
                    "disk_id": count(fields["diskID"]),
                    "remarks": fields.get("remarks") or None,
                    "size": kib(size) if size else None,
                }
            )
        except KeyError as error:
            raise ValueError(f"a line without the field {error}") from error
        return True

    def _add(self, row: Row) -> None:
        if not row["disk"] or row["disk"] in self._seen:
            raise ValueError(f"disk {row['disk'][:40]} a second time in a snapshot, or without a name")
        self._seen.add(row["disk"])
        self.rows.append({name: row.get(name) for name in STATES.names()} | {"time": self._time})

    def finish(self) -> None:
        """Note a list without its trailer."""
        if not self._trailer:
            self._problems.add(self._line, "cut: the list of -L that begins here has no lines about the quorum")
        self._trailer = True


class Mmlsdisk(Source):
    """The output of ``mmlsdisk``."""

    NAME = "mmlsdisk"
    MEANING = "GPFS: states of disks, output of mmlsdisk (text, -L or -Y), with lines BEGIN or without"
    ROLE = "failover"
    PATTERNS = ("*mmlsdisk*.txt*", "*mmlsdisk*.out*")
    TABLES = (STATES,)

    def recognizes(self, head: Head) -> bool:
        lines = [line.strip() for line in first_lines(head.text)]
        return any(_HEADING.fullmatch(line) or line.startswith("mmlsdisk::HEADER:") for line in lines)

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        reader = _Reader(problems)
        for number, line in lines_of(path, problems):
            reader.line(number, line)
        reader.finish()
        if not reader.found:
            raise SourceError(
                str(path), 0, "no output of mmlsdisk: neither a line 'name type size group …' nor mmlsdisk::HEADER"
            )
        tables: dict[str, Any] = {"disk_states": reader.rows}
        return tables, {"snapshots": reader.snapshots}


SOURCE = Mmlsdisk()
