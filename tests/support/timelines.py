"""Time lines read back as a viewer does: what is on which track, what nests, where arrows lead."""

from __future__ import annotations

import gzip
import json
import pathlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]
ENDLESS = 1 << 62


def ns(value: float) -> int:
    """Return a time as viewers take it: cut off."""
    return int(value * 1000.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A time line.

    Attributes
    ----------
    begin_ns : what its times count from.
    groups, tracks : their names by number.
    slices : all of them, in the order of the file; `around` of each: those that it is inside of, the outermost first.
    """

    begin_ns: int
    groups: dict[int, str]
    tracks: dict[int, str]
    slices: list[Event]

    def of_trace(self) -> list[Event]:
        """Return the slices that are there once for each row of the trace."""
        return [
            event
            for event in self.slices
            if self.groups[event["pid"]].startswith("rank ") or self.tracks[event["tid"]].startswith("delegate: ")
        ]

    def of_group(self, beginning: str) -> list[Event]:
        """Return the slices of groups whose names begin so."""
        return [event for event in self.slices if self.groups[event["pid"]].startswith(beginning)]

    def arrows(self) -> list[tuple[Event, Event]]:
        """Return begins and ends of arrows; each end has one begin."""
        begins = {event["bind_id"]: event for event in self.slices if event.get("flow_out")}
        assert len(begins) == sum(bool(event.get("flow_out")) for event in self.slices)
        return [(begins[event["bind_id"]], event) for event in self.slices if event.get("flow_in")]


def _nest(slices: Sequence[Event]) -> None:
    """Find what each slice is inside of; a viewer drops what overlaps."""
    tracks = defaultdict(list)
    for event in slices:
        tracks[event["tid"]].append(event)
    for events in tracks.values():
        going_on: list[Event] = []
        for event in sorted(events, key=lambda event: event["start"]):  # stable, as viewers
            while going_on and going_on[-1]["end"] <= event["start"]:
                going_on.pop()
            assert not going_on or event["end"] <= going_on[-1]["end"], (going_on[-1], event)
            event["around"] = list(going_on)
            going_on.append(event)


def read(path: pathlib.Path) -> Timeline:
    """Read a time line; slices get `start`, `end` (ns) and `around`."""
    packed = path.read_bytes()
    document = json.loads(gzip.decompress(packed) if path.suffix == ".gz" else packed)
    events = document["traceEvents"]
    named: dict[str, dict[int, str]] = {"process_name": {}, "thread_name": {}}
    for event in events:
        if event["ph"] == "M" and event["name"] in named:
            number = event["pid"] if event["name"] == "process_name" else event["tid"]
            assert number not in named[event["name"]]
            named[event["name"]][number] = event["args"]["name"]
    slices = [event for event in events if event["ph"] in "XB"]
    assert len(slices) + sum(event["ph"] == "M" for event in events) == len(events)
    for event in slices:
        event["start"] = ns(event["ts"])
        event["end"] = event["start"] + ns(event["dur"]) if event["ph"] == "X" else ENDLESS
    _nest(slices)
    return Timeline(
        begin_ns=document["otherData"]["begin_ns"],
        groups=named["process_name"],
        tracks=named["thread_name"],
        slices=slices,
    )


def check(found: Timeline, rows: Sequence[dict[str, Any]]) -> None:
    """Compare a time line with the rows of its trace: every call once, with its times; copies and arrows are right."""

    def key(operation: str, start: int, end: int | None, file: str | None) -> tuple[Any, ...]:
        return operation, start, end, file

    expected = Counter(
        key(
            row["operation"],
            row["timestamp"] - found.begin_ns,
            None
            if row["duration"] is None and "unfinished" in (row["extra"] or {})
            else row["timestamp"] - found.begin_ns + (row["duration"] or 0),
            row["file"],
        )
        for row in rows
    )
    there = Counter(
        key(event["name"], event["start"], None if event["end"] == ENDLESS else event["end"], event["args"].get("file"))
        for event in found.of_trace()
    )
    assert there == expected
    for event in found.of_group("file "):
        assert event["cat"] in ("posix", "stdio")
        assert found.groups[event["pid"]].endswith(f"({event['args']['file']})")
    for begin, end in found.arrows():
        assert begin["cat"] == "mpiio"
        assert begin["start"] <= end["start"] and end["end"] <= begin["end"]
    copied = Counter((event["name"], event["start"], event["end"]) for event in found.of_group("file "))
    originals = Counter((event["name"], event["start"], event["end"]) for event in found.of_trace())
    assert not copied - originals
