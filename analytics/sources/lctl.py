"""The server of a Lustre target: output of ``lctl dl -t``, once or repeated, to ``devices``.

Problem. When an object storage server fails, another takes its targets. A client sees that only by the address behind
the target in its list of devices. Sites append that list to a file every 15 minutes, each behind a line ``BEGIN``.

Algorithm. The numbers of devices rise within a list; where one does not, a BEGIN is missing. A server has failed over
targets where it has more OSTs of a file system than most servers do (:func:`failovers`).

Guarantees. Values are as printed. Devices behind a damaged BEGIN have no time.

Header: ``snapshots`` (int: lines BEGIN).

Source: TOKIO, Section "Health monitoring"; Lustre, lctl(8).
"""

from __future__ import annotations

import collections
import re

import pyarrow as pa

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import first_lines, lines_of
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError, make_table
from mpiio_ext.analytics.sources.targets import SNAPSHOT, begin, target_of
from mpiio_ext.analytics.tables.schema import Column, Table

DEVICES = Table(
    "devices",
    "one row a snapshot and a device of the client",
    (
        SNAPSHOT,
        Column("number", "int32", "", "of the device"),
        Column("state", "string", "", "UP, IN (inactive) …"),
        Column("type", "string", "", "mgc, lov, lmv, mdc (of an MDT), osc (of an OST)"),
        Column("name", "string", "", "snx11035-OST0014-osc-ffff885f81a64000"),
        Column("uuid", "string", "", "of the client"),
        Column("references", "int32", "count", ""),
        Column("nid", "string", "", "address of the server, 10.100.101.25@o2ib2; NULL if none is printed"),
        Column("file_system", "string", "", "snx11035; NULL of devices that are no target"),
        Column("target", "string", "", "snx11035-OST0014"),
        Column("kind", "string", "", "OST or MDT"),
        Column("index", "int32", "", "of the target"),
    ),
)

FAILOVERS = Table(
    "failovers",
    "one row a snapshot and an OST: its server, and whether that has more OSTs than most",
    (
        SNAPSHOT,
        Column("file_system", "string", "", ""),
        Column("target", "string", "", ""),
        Column("index", "int32", "", "of the OST"),
        Column("oss", "string", "", "address of the server"),
        Column("osts_of_oss", "int32", "count", "OSTs of this file system on it"),
        Column("usual", "int32", "count", "OSTs that most servers of this file system have; the fewest of several"),
        Column("overloaded", "bool", "", "osts_of_oss is above usual: OSTs of another server have failed over to it"),
    ),
)

_LINE = re.compile(
    r"\s*(?P<number>[0-9]{1,6}) (?P<state>[A-Z]{2}) (?P<type>[a-z]\w*) (?P<name>\S+) (?P<uuid>\S+) "
    r"(?P<references>[0-9]{1,9})(?: (?P<nid>[^\s@]+@[a-z0-9]+))?\s*"
)


class _Reader:
    """Reads the lines of one file."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._time: float | None = None
        self._before = -1
        self.devices: list[Row] = []
        self.snapshots = 0

    def line(self, number: int, text: str) -> None:
        """Take a line."""
        if not text.strip():
            return
        try:
            time = begin(text)
        except ValueError as error:
            self._problems.add(number, f"{error}: the devices behind it have no time")
            self._time, self._before = None, -1
            return
        if time is not None:
            self.snapshots += 1
            self._time, self._before = time, -1
        elif match := _LINE.fullmatch(text):
            self._device(number, match)
        else:
            self._problems.add(number, f"no device: {text.strip()[:60]!r}")

    def _device(self, number: int, match: re.Match[str]) -> None:
        place = int(match["number"])
        if place <= self._before:
            self._problems.add(
                number,
                f"device {place} behind {self._before}: a line BEGIN is missing, and the "
                "devices from here have no time",
                0,
            )
            self._time = None
        self._before = place
        named = None
        if match["type"] in ("osc", "mdc", "osp"):
            named = target_of(match["name"], r"-\S+")
            if named is None:
                self._problems.add(number, f"{match['name'][:60]!r} is no name of a target")
                return
        row: Row = {**match.groupdict(), "time": self._time, "number": place}
        row["references"] = int(match["references"])
        row |= dict(zip(("file_system", "target", "kind", "index"), named or (None,) * 4, strict=True))
        self.devices.append(row)


def failovers(devices: pa.Table) -> pa.Table:
    """Return the server of each OST, and which servers have OSTs of others.

    A snapshot alone does not say which of the OSTs on an overloaded server are the foreign ones: all of them share it.

    Parameters
    ----------
    devices : ``devices`` of :func:`read`.

    Returns
    -------
    pyarrow.Table
        :data:`FAILOVERS`, in the order of `devices`; OSTs without an address are left out.

    References
    ----------
    TOKIO, Section "Health monitoring": servers that have an abnormal number of OSTs as a result of a failover.
    """
    rows = [row for row in devices.to_pylist() if row["kind"] == "OST" and row["nid"] is not None]
    held: dict[tuple[float | None, str], collections.Counter[str]] = {}
    for row in rows:
        held.setdefault((row["time"], row["file_system"]), collections.Counter())[row["nid"]] += 1
    usual = {}
    for place, servers in held.items():
        sizes = collections.Counter(servers.values())
        usual[place] = min(size for size, times in sizes.items() if times == max(sizes.values()))
    for row in rows:
        place = (row["time"], row["file_system"])
        osts = held[place][row["nid"]]
        row |= {"oss": row["nid"], "osts_of_oss": osts, "usual": usual[place], "overloaded": osts > usual[place]}
    return make_table(FAILOVERS, rows)


class LctlDl(Source):
    """The output of ``lctl dl -t``."""

    NAME = "lctl-dl"
    MEANING = "Lustre: which server each target is on, output of lctl dl -t, with lines BEGIN or without"
    ROLE = "failover"
    PATTERNS = ("*lctl-dl*.txt*", "*ost-map*.txt*")
    TABLES = (DEVICES,)

    def recognizes(self, head: Head) -> bool:
        lines = [line for line in first_lines(head.text) if not line.startswith("BEGIN")][:4]
        return bool(lines) and sum(_LINE.fullmatch(line) is not None for line in lines) > len(lines) // 2

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        reader = _Reader(problems)
        for number, line in lines_of(path, problems):
            reader.line(number, line)
        if not reader.devices:
            raise SourceError(str(path), 0, "no output of lctl dl -t: no line '0 UP mgc …'")
        return {"devices": reader.devices}, {"snapshots": reader.snapshots}


SOURCE = LctlDl()
