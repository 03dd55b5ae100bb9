"""Fullness of GPFS' disks: output of ``mmdf``, as text or with ``-Y``, to ``disks``, ``totals`` and ``inodes``.

Problem. Sites append the output to a file, each time behind a line ``BEGIN <seconds since 1970>``, since ``mmdf`` says
no time, and no file system either (site.json does). A line that is lost makes a disk vanish.

Algorithm. A text is a heading, disks by storage pool, totals and inodes. The disks of a pool must add up to its total,
as far as numbers are in KB and all of its disks can be allocated, and no disk may come twice.

Guarantees. Sizes are KiB; those of ``--block-size`` M, G or T are multiplied, and those of ``auto``, each with a unit
of its own, are as exact as they are printed. A text without its ``(total)`` is cut.

Header: ``snapshots`` (int: lines BEGIN).

Source: IBM Storage Scale, mmdf command; TOKIO, Section "Health monitoring" (Mira).
"""

from __future__ import annotations

import re
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import first_lines
from mpiio_ext.analytics.sources.gpfs import Colons, kib, whole, yes
from mpiio_ext.analytics.sources.numbers import count
from mpiio_ext.analytics.sources.records import Problems, Row
from mpiio_ext.analytics.sources.targets import SNAPSHOT, begin, read_lists
from mpiio_ext.analytics.tables.schema import Column, Table

_FREE = (
    Column("size", "int64", "KiB", ""),
    Column("free_blocks", "int64", "KiB", "free in full blocks"),
    Column("free_blocks_percent", "int32", "%", "as printed"),
    Column("free_fragments", "int64", "KiB", "free in fragments"),
    Column("free_fragments_percent", "int32", "%", "as printed"),
)
DISKS = Table(
    "disks",
    "one row a snapshot and a disk",
    (
        SNAPSHOT,
        Column("disk", "string", "", "name of the NSD"),
        Column("pool", "string", "", "storage pool"),
        Column("failure_group", "int32", "", ""),
        Column("metadata", "bool", "", "holds metadata"),
        Column("data", "bool", "", "holds data"),
        *_FREE,
        Column("allocatable", "bool", "", "whether new blocks may be allocated there; not where * is printed"),
    ),
)
TOTALS = Table(
    "totals",
    "one row a snapshot and a total, as printed",
    (
        SNAPSHOT,
        Column("of", "string", "", "pool, data, metadata or total"),
        Column("pool", "string", "", "storage pool; NULL of the file system"),
        *_FREE,
    ),
)
_INODES = ("used", "free", "allocated", "maximum")
INODES = Table(
    "inodes",
    "one row a snapshot",
    (SNAPSHOT, *(Column(name, "int64", "count", "inodes of all inode spaces together") for name in _INODES)),
)

_HEADING = re.compile(r"name\s+(?:in (KB|MB|GB|TB)\s+)?group metadata data\s+in full blocks\s+in fragments")
_POOL = re.compile(r"Disks in storage pool: (\S+)(?: \(Maximum disk size allowed is .*\))?")
_SIZE = r"[0-9]+(?:\.[0-9]+)?[BKMGTPE]?B?"
_NUMBERS = rf"(?P<blocks>{_SIZE}) \(\s*(?P<bp>[0-9]{{1,3}})%\)\s+(?P<fragments>{_SIZE}) \(\s*(?P<fp>[0-9]{{1,3}})%\)"
_DISK = re.compile(
    rf"(?P<disk>\S+)\s+(?P<size>{_SIZE})\s+(?P<group>-?[0-9]+)\s+(?P<metadata>\w+)\s+(?P<data>\w+)\s+"
    rf"{_NUMBERS}(?P<star>\s*\*)?"
)
_TOTAL = re.compile(rf"\((?P<of>pool total|data|metadata|total)\)\s+(?P<size>{_SIZE})\s+{_NUMBERS}")
_INODE = re.compile(
    r"(?:Total n|N)umber of (used|free|allocated) inodes(?: in all Inode spaces)?:\s+([0-9]+)|"
    r"(?:Total of )?Maximum number of inodes(?: in all Inode spaces)?:\s+([0-9]+)"
)
_DECORATION = re.compile(r"disk\s+disk size\s+failure holds.*|Inode Information|[-= ]+")
#: Fields of -Y of a disk and of totals -> columns.
_YES_FREE = {
    "freeBlocks": "free_blocks",
    "freeBlocksPct": "free_blocks_percent",
    "freeFragments": "free_fragments",
    "freeFragmentsPct": "free_fragments_percent",
}
_YES_TOTALS = {
    "poolTotal": ("pool", "poolSize"),
    "data": ("data", "totalData"),
    "metadata": ("metadata", "totalMetadata"),
    "fsTotal": ("total", "fsSize"),
}
_YES_INODES = {"used": "usedInodes", "free": "freeInodes", "allocated": "allocatedInodes", "maximum": "maxInodes"}
_SUMMED = ("size", "free_blocks", "free_fragments")


class _Reader:
    """Reads the lines of one file."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._colons = Colons("mmdf")
        self.disks: list[Row] = []
        self.totals: list[Row] = []
        self.inodes: list[Row] = []
        self.snapshots = 0
        self.found = False
        self._restart(None, 0)

    def _restart(self, time: float | None, line: int) -> None:
        """Begin a snapshot."""
        self._time, self._line = time, line
        self._unit = self._pool = ""
        self._mine: dict[str, Row] = {}
        self._open = False  # a text whose total has not come yet
        self._awaited = False  # lines of inodes, which -Y has named
        self._damaged: set[str] = set()
        self._inodes: dict[str, int] = {}

    def line(self, number: int, text: str) -> None:
        """Take a line."""
        stripped = text.strip()
        try:
            time = begin(text)
            if time is not None:
                self.finish()
                self.snapshots += 1
                self._restart(time, number)
            elif stripped and not self._printed(number, stripped) and not self._coded(stripped):
                raise ValueError(f"neither heading, disk, total nor inodes: {stripped[:60]!r}")
        except ValueError as error:
            self._problems.add(number, str(error))
            self.lost()
            if stripped.startswith("BEGIN"):
                self.finish()
                self._restart(None, number)

    def lost(self) -> None:
        """Note that a line of the pool that is read cannot be read."""
        self._damaged.add(self._pool)

    # ---- text --------------------------------------------------------------------------------------------------------

    def _printed(self, number: int, text: str) -> bool:
        """Take a line of text; return whether it is one."""
        if match := _HEADING.fullmatch(text):
            if self._open or self._mine:
                self.finish()
                self._restart(None, number)
            self._unit, self._open, self.found, self._line = match[1] or "auto", True, True, number
        elif match := _POOL.fullmatch(text):
            self._pool = match[1]
        elif match := _INODE.fullmatch(text):
            self._inode(match[1] or "maximum", match[2] or match[3])
        elif self._unit and (match := _TOTAL.fullmatch(text)):
            self._total(number, "pool" if match["of"] == "pool total" else match["of"], self._free(match))
        elif self._unit and (match := _DISK.fullmatch(text)):
            self._disk(
                match["disk"],
                {
                    "failure_group": whole(match["group"]),
                    "metadata": yes(match["metadata"]),
                    "data": yes(match["data"]),
                    **self._free(match),
                    "allocatable": match["star"] is None,
                },
            )
        else:
            return _DECORATION.fullmatch(text) is not None
        return True

    def _free(self, match: re.Match[str]) -> Row:
        return {
            "size": kib(match["size"], self._unit),
            "free_blocks": kib(match["blocks"], self._unit),
            "free_blocks_percent": int(match["bp"]),
            "free_fragments": kib(match["fragments"], self._unit),
            "free_fragments_percent": int(match["fp"]),
        }

    # ---- -Y ----------------------------------------------------------------------------------------------------------

    def _coded(self, text: str) -> bool:
        """Take a line of -Y; return whether it is one."""
        found = self._colons.fields(text)
        if found is None:
            return False
        section, fields = found
        self.found = True
        if not fields:
            self._open |= section == "nsd"
            self._awaited |= section == "inode"
            return True
        try:
            self._fields(section, fields)
        except KeyError as error:
            raise ValueError(f"a line of {section} without the field {error}") from error
        return True

    def _fields(self, section: str, fields: dict[str, str]) -> None:
        if section == "inode":
            for name, theirs in _YES_INODES.items():
                self._inode(name, fields[theirs])
            return
        if section != "nsd" and section not in _YES_TOTALS:
            return  # of a later release
        size = "diskSize" if section == "nsd" else _YES_TOTALS[section][1]
        free: Row = {ours: kib(fields[theirs]) for theirs, ours in _YES_FREE.items()}
        if max(free["free_blocks_percent"], free["free_fragments_percent"]) > 100:
            raise ValueError("a share of more than 100 %")
        free["size"] = kib(fields[size])
        if section == "nsd":
            self._pool = fields["storagePool"]
            available = fields.get("diskAvailableForAlloc", "").lower()
            self._disk(
                fields["nsdName"],
                {
                    "failure_group": whole(fields["failureGroup"]),
                    "metadata": yes(fields["metadata"]),
                    "data": yes(fields["data"]),
                    **free,
                    "allocatable": None if not available else available != "no",
                },
            )
        else:
            self._pool = fields.get("poolName", self._pool)
            self._total(0, _YES_TOTALS[section][0], free)

    # ---- rows --------------------------------------------------------------------------------------------------------

    def _disk(self, disk: str, values: Row) -> None:
        if disk in self._mine:
            raise ValueError(f"disk {disk[:40]} a second time in a snapshot")
        exact = self._unit in ("", "KB")  # larger units are rounded, each by itself
        if exact and values["free_blocks"] + values["free_fragments"] > values["size"]:
            raise ValueError(f"disk {disk[:40]} has more free than its size")
        self._mine[disk] = {"time": self._time, "disk": disk, "pool": self._pool or None, **values}

    def _total(self, number: int, of: str, values: Row) -> None:
        self.totals.append({"time": self._time, "of": of, "pool": self._pool if of == "pool" else None, **values})
        if of == "total":
            self._open = False
        disks = [disk for disk in self._mine.values() if disk["pool"] == (self._pool or None)]
        exact = of == "pool" and self._unit in ("", "KB") and self._pool not in self._damaged
        if exact and all(disk["allocatable"] is not False for disk in disks):
            for name in _SUMMED:
                if (found := sum(disk[name] for disk in disks)) != values[name]:
                    self._problems.add(
                        number,
                        f"{name} of pool {self._pool[:40]} is {values[name]}, and its disks add "
                        f"up to {found}: a line is damaged or missing",
                        0,
                    )

    def _inode(self, name: str, text: str) -> None:
        self._inodes[name] = count(text)
        if len(self._inodes) == len(_INODES):
            self.inodes.append({"time": self._time, **self._inodes})
            self._inodes, self._awaited = {}, False

    def finish(self) -> None:
        """Note a snapshot that is not whole."""
        self.disks += self._mine.values()
        if self._open:
            self._problems.add(self._line, "cut: the table that begins here has no (total)")
        if self._inodes or self._awaited:
            self._problems.add(self._line, "cut: the snapshot that begins here does not have all numbers of inodes", 0)
        self._mine, self._inodes, self._open, self._awaited = {}, {}, False, False


class Mmdf(Source):
    """The output of ``mmdf``."""

    NAME = "mmdf"
    MEANING = "GPFS: fullness of disks, output of mmdf (text or -Y), with lines BEGIN or without"
    ROLE = "fullness"
    PATTERNS = ("*mmdf*.txt*", "*mmdf*.out*")
    TABLES = (DISKS, TOTALS, INODES)

    def recognizes(self, head: Head) -> bool:
        lines = [line.strip() for line in first_lines(head.text)]
        return any(_HEADING.fullmatch(line) or re.match(r"mmdf:\w*:HEADER:", line) for line in lines)

    def parse(self, file: File) -> Parsed:
        reader = _Reader(file.problems)
        read_lists(file, reader, "no output of mmdf: neither a line 'name in KB group …' nor mmdf:nsd:HEADER")
        tables: dict[str, Any] = {"disks": reader.disks, "totals": reader.totals, "inodes": reader.inodes}
        return tables, {"snapshots": reader.snapshots}


SOURCE = Mmdf()
