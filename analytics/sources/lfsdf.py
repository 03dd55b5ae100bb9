"""Fullness of Lustre targets: output of ``lfs df``, once or repeated, to ``targets`` and ``summaries``.

Problem. Sites append the output to a file every 15 minutes, each time behind a line ``BEGIN <seconds since 1970>``. A
line that is lost makes a target vanish, and a lost BEGIN gives its rows to the snapshot before.

Algorithm. A section is a heading, rows, and a summary of one mount point. Its OSTs must add up to the summary, and no
target may come twice in a snapshot. The index behind the mount point must be the one in the target's name.

Guarantees. Numbers are as printed, 1K-blocks in KiB. A target that is not there now (``inactive device``) is a row with
its state and without numbers. Rows behind a damaged BEGIN have no time.

Header: ``snapshots`` (int: lines BEGIN).

Source: TOKIO, Section "Health monitoring"; Lustre, lfs-df(1).
"""

from __future__ import annotations

import re

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import first_lines
from mpiio_ext.analytics.sources.numbers import count
from mpiio_ext.analytics.sources.records import Problems, Row
from mpiio_ext.analytics.sources.targets import SNAPSHOT, begin, read_lists, target_of
from mpiio_ext.analytics.tables.schema import Column, Table

_NUMBERS = (
    Column("quantity", "string", "", "what is counted: 1K-blocks (KiB), or Inodes (lfs df -i)"),
    Column("total", "int64", "KiB or inodes", "size"),
    Column("used", "int64", "KiB or inodes", ""),
    Column("available", "int64", "KiB or inodes", "to users; less than total - used where some are reserved"),
    Column("used_percent", "int32", "%", "as printed; NULL if it is -"),
)

TARGETS = Table(
    "targets",
    "one row a snapshot and a target",
    (
        SNAPSHOT,
        Column("file_system", "string", "", "Lustre's name of it: snx11035; NULL if the target is printed without"),
        Column("target", "string", "", "snx11035-OST001f"),
        Column("kind", "string", "", "OST or MDT"),
        Column("index", "int32", "", "of the target"),
        *_NUMBERS,
        Column("mount", "string", "", "mount point"),
        Column("state", "string", "", "flags behind the mount point (D: degraded …), or why there are no numbers"),
    ),
)
SUMMARIES = Table(
    "summaries",
    "one row a snapshot and a mount point: all OSTs together, as printed",
    (SNAPSHOT, *_NUMBERS, Column("mount", "string", "", "mount point")),
)

_HEADING = re.compile(r"UUID\s+(\S+)\s+I?Used\s+(?:Available|IFree)\s+I?Use%\s+Mounted on")
_COUNTS = r"\s+(?P<total>[0-9]+)\s+(?P<used>[0-9]+)\s+(?P<available>[0-9]+)\s+(?P<percent>[0-9]{1,3}%|-)\s+"
_ROW = re.compile(
    rf"(?P<target>\S+){_COUNTS}(?P<mount>/.*)\[(?P<kind>OST|MDT):(?P<index>[0-9]{{1,9}})\](?:\s+(?P<state>\w+))?"
)
_SUMMARY = re.compile(rf"filesystem[ _]summary:{_COUNTS}(?P<mount>/.*\S)")
_GONE = re.compile(r"(?P<target>(?:\S+?-)?(?:OST|MDT)[0-9a-fA-F]{4,7}(?:_UUID)?)\s*: (?P<state>\D.*)")
_QUANTITIES = ("1K-blocks", "Inodes")


class _Section:
    """The lines of one mount point since its heading."""

    def __init__(self, quantity: str, line: int) -> None:
        self.quantity = quantity
        self.line = line
        self.sums = {"total": 0, "used": 0, "available": 0}
        self.damaged = False


class _Reader:
    """Reads the lines of one file."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._time: float | None = None
        self._known = True  # whether the time of the snapshot is that of the last BEGIN
        self._section: _Section | None = None
        self._seen: set[tuple[str, str]] = set()
        self.targets: list[Row] = []
        self.summaries: list[Row] = []
        self.snapshots = 0
        self.found = False

    def line(self, number: int, text: str) -> None:
        """Take a line."""
        stripped = text.strip()
        if not stripped:
            return
        try:
            time = begin(text)
        except ValueError as error:
            self.finish()
            self._problems.add(number, f"{error}: the rows behind it have no time")
            self._restart(None)
            return
        if time is not None:
            self.finish()
            self.snapshots += 1
            self._restart(time)
        elif match := _HEADING.fullmatch(stripped):
            self.finish()
            self._heading(number, match[1])
        elif self._section is not None and (match := _ROW.fullmatch(stripped)):
            self._row(number, match, self._section)
        elif self._section is not None and (match := _SUMMARY.fullmatch(stripped)):
            self._summary(number, match, self._section)
        elif self._section is not None and (match := _GONE.fullmatch(stripped)):
            self._gone(match, self._section)
        else:
            self._unknown(number, stripped)

    def lost(self) -> None:
        """Note that a line could not even be given to :meth:`line`."""
        if self._section is None:
            self._restart(None)
        else:
            self._section.damaged = True

    def _restart(self, time: float | None) -> None:
        self._time = time
        self._seen = set()
        self._section = None

    def _unknown(self, number: int, text: str) -> None:
        self._problems.add(number, f"neither heading, target nor summary: {text[:60]!r}")
        self.lost()

    def _heading(self, number: int, quantity: str) -> None:
        if quantity not in _QUANTITIES:
            self._problems.add(
                number, f"a table of {quantity[:20]!r}: only those of lfs df and lfs df -i have exact numbers"
            )
            return
        self.found = True
        self._section = _Section(quantity, number)

    def _numbers(self, match: re.Match[str], section: _Section) -> Row:
        percent = match["percent"]
        return {
            "quantity": section.quantity,
            **{name: count(match[name]) for name in ("total", "used", "available")},
            "used_percent": None if percent == "-" else int(percent[:-1]),
        }

    def _once(self, number: int, name: str, section: _Section) -> None:
        """Take a target for one of another snapshot when it comes again: a BEGIN is missing."""
        if (name, section.quantity) in self._seen:
            self._problems.add(
                number, f"{name} a second time: a line BEGIN is missing, and the rows from here have no time", 0
            )
            self._time = None
            self._seen = set()
        self._seen.add((name, section.quantity))

    def _row(self, number: int, match: re.Match[str], section: _Section) -> None:
        named = target_of(match["target"], "_UUID")
        try:
            if named is None or (named[2], named[3]) != (match["kind"], int(match["index"])):
                raise ValueError(f"{match['target'][:40]!r} is not {match['kind']} {match['index'][:10]}")
            numbers = self._numbers(match, section)
        except ValueError as error:
            self._problems.add(number, str(error))
            section.damaged = True
            return
        self._once(number, named[1], section)
        if named[2] == "OST":
            for name in section.sums:
                section.sums[name] += numbers[name]
        self._add(named, numbers, match["mount"], match["state"])

    def _gone(self, match: re.Match[str], section: _Section) -> None:
        named = target_of(match["target"], "(_UUID)?")
        if named is None:
            bare = re.fullmatch(r".*?(OST|MDT)([0-9a-fA-F]+)(?:_UUID)?", match["target"])
            assert bare is not None
            named = ("", match["target"].removesuffix("_UUID"), bare[1], int(bare[2], 16))
        self._add(named, {"quantity": section.quantity}, None, match["state"])

    def _add(self, named: tuple[str, str, str, int], numbers: Row, mount: str | None, state: str | None) -> None:
        identity = dict(zip(("file_system", "target", "kind", "index"), (named[0] or None, *named[1:]), strict=True))
        self.targets.append({"time": self._time, **identity, **numbers, "mount": mount, "state": state})

    def _summary(self, number: int, match: re.Match[str], section: _Section) -> None:
        try:
            numbers = self._numbers(match, section)
        except ValueError as error:
            self._problems.add(number, str(error))
            self._section = None
            return
        if section.quantity == "1K-blocks" and not section.damaged:
            for name, sum_ in section.sums.items():
                if sum_ != numbers[name]:
                    self._problems.add(
                        number,
                        f"{name} of {match['mount'][:60]} is {numbers[name]}, and its OSTs "
                        f"add up to {sum_}: a line is damaged or missing",
                        0,
                    )
        self.summaries.append({"time": self._time, **numbers, "mount": match["mount"]})
        self._section = None

    def finish(self) -> None:
        """Note a section without its summary."""
        if self._section is not None:
            self._problems.add(self._section.line, "cut: the table that begins here has no summary")
            self._section = None


class LfsDf(Source):
    """The output of ``lfs df``."""

    NAME = "lfs-df"
    MEANING = "Lustre: fullness of targets, output of lfs df, with lines BEGIN or without"
    ROLE = "fullness"
    PATTERNS = ("*lfs-df*.txt*", "*osts*.txt*", "*ost-fullness*.txt*")
    TABLES = (TARGETS, SUMMARIES)

    def recognizes(self, head: Head) -> bool:
        return any(_HEADING.fullmatch(line.strip()) for line in first_lines(head.text))

    def parse(self, file: File) -> Parsed:
        reader = _Reader(file.problems)
        read_lists(file, reader, "no output of lfs df: no line 'UUID 1K-blocks Used …'")
        return {"targets": reader.targets, "summaries": reader.summaries}, {"snapshots": reader.snapshots}


SOURCE = LfsDf()
