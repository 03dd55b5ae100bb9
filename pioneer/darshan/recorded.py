"""A recording as Darshan's records, heat maps and accesses: the same as `calls` and `timeline` make of a trace.

Problem. A log must not depend on whether a run was traced or recorded. Algorithm: a recording's counters are put into
the records of its rank under Darshan's names; several recordings of one rank (programs that follow each other, or
without MPI all processes) are added up. Guarantees. The same counters as of a trace of the same calls; heat maps are
moved by the difference between the start of the rank and of the job, and keep their sums.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from mpiio_ext.pioneer.darshan.calls import block_bytes
from mpiio_ext.pioneer.darshan.meanings import Kind
from mpiio_ext.pioneer.darshan.names import clean, record_id
from mpiio_ext.pioneer.darshan.recordings import BINS, MODULES, Recording, Structured, misaligned
from mpiio_ext.pioneer.darshan.records import Calls, Integers, Layout, Records
from mpiio_ext.pioneer.darshan.timeline import Heat, Segments

_WAYS = ("READ", "WRITE")
_DONE = ("READ", "WRITTEN")


def _counters(recording: Recording, layout: Layout, module: int, rows: Structured) -> Integers:
    """Return the counters of a module's records as a log has them."""
    found = np.zeros((len(rows), len(layout.counters)), np.int64)

    def put(name: str, values: Any) -> None:
        if (at := layout.at(name)) >= 0:
            found[:, at] = values

    for number, name in enumerate(recording.counts[module]):
        put(name, rows["counts"][:, number])
    put("MODE", rows["mode"])
    put("RW_SWITCHES", rows["switches"])
    for way, (verb, done) in enumerate(zip(_WAYS, _DONE, strict=True)):
        put(f"BYTES_{done}", rows["done"][:, way])
        put(f"MAX_BYTE_{done}", rows["max_byte"][:, way])
        put(f"CONSEC_{verb}S", rows["consecutive"][:, way])
        put(f"SEQ_{verb}S", rows["sequential"][:, way])
        put(f"MAX_{verb}_TIME_SIZE", rows["longest_size"][:, way])
        first = max(layout.at(f"SIZE_{verb}_0_100"), layout.at(f"SIZE_{verb}_AGG_0_100"))
        if first >= 0:
            found[:, first : first + 10] = rows["buckets"][:, way]
    return found


def _times(layout: Layout, rows: Structured, since: int) -> Integers:
    """Return the times of a module's records in ns; moments: `since` more than the recording has."""
    found = np.zeros((len(rows), len(layout.times)), np.int64)
    for number, name in enumerate(("OPEN", "READ", "WRITE", "CLOSE")):
        for edge, field in (("START", "first"), ("END", "last")):
            moments = rows[field][:, number]
            found[:, layout.at(f"F_{name}_{edge}_TIMESTAMP")] = np.where(moments == 0, 0, moments + since)
    for number, name in enumerate(("READ", "WRITE", "META")):
        found[:, layout.at(f"F_{name}_TIME")] = rows["busy"][:, number]
    for way, verb in enumerate(_WAYS):
        if (at := layout.at(f"F_MAX_{verb}_TIME")) >= 0:
            found[:, at] = rows["longest"][:, way]
    return found


def _add(records: Records, place: int, counters: Integers, times: Integers) -> None:
    """Add another process's I/O on a file, for the same rank."""
    at = records.layout.at
    had, spent = records.counters[place].copy(), records.times[place].copy()
    records.counters[place] += counters
    records.times[place] += times
    for verb, done in zip(_WAYS, _DONE, strict=True):
        if (most := at(f"MAX_BYTE_{done}")) >= 0:
            records.counters[place, most] = max(had[most], counters[most])
        if (longest := at(f"F_MAX_{verb}_TIME")) >= 0:
            size = at(f"MAX_{verb}_TIME_SIZE")
            records.times[place, longest] = max(spent[longest], times[longest])
            records.counters[place, size] = (counters if times[longest] > spent[longest] else had)[size]
    if (mode := at("MODE")) >= 0:
        records.counters[place, mode] = counters[mode] or had[mode]
    for name in ("OPEN", "READ", "WRITE", "CLOSE"):
        first, last = at(f"F_{name}_START_TIMESTAMP"), at(f"F_{name}_END_TIMESTAMP")
        records.times[place, first] = min((each for each in (spent[first], times[first]) if each), default=0)
        records.times[place, last] = max(spent[last], times[last])


def _place(records: Records, name: str) -> int:
    """Return the place of a file's record, with its alignment."""
    known = name in records.names
    place = records.place(name)
    if not known and (at := records.layout.at("FILE_ALIGNMENT")) >= 0:
        records.counters[place, at] = block_bytes(os.path.dirname(name))  # noqa: PTH120
    return place


def fill(recording: Recording, module: str, records: Records, since: int) -> dict[int, int]:
    """Put the records of a module into those of its rank.

    Parameters
    ----------
    recording : of a process of the rank.
    module : of Darshan.
    records : of the rank; they grow.
    since : what is added to moments of the recording, for ns since the start of the job.

    Returns
    -------
    dict
        Number of a name -> place of its record.
    """
    layout, number = records.layout, MODULES.index(module)
    rows = recording.records[recording.records["module"] == number]
    counters, times = _counters(recording, layout, number, rows), _times(layout, rows, since)
    places: dict[int, int] = {}
    for row, mine, spent in zip(rows, counters, times, strict=True):
        name = clean(recording.names[int(row["name"])])
        place = places[int(row["name"])] = _place(records, name)
        if (odd := layout.at("FILE_NOT_ALIGNED")) >= 0:
            mine[odd] = misaligned(row["aligned"], int(records.counters[place, layout.at("FILE_ALIGNMENT")]))
        source = recording.names.get(int(row["renamed_from"]))
        if (at := layout.at("RENAMED_FROM")) >= 0 and source is not None and records.counters[place, at] == 0:
            identity = record_id(clean(source))
            mine[at] = identity - (1 << 64 if identity >> 63 else 0)
        _add(records, place, mine, spent)
        for which, seen in enumerate((records.sizes[place], records.strides[place])):
            for value, often in recording.values(row, which).items():
                seen[value] = seen.get(value, 0) + often
    return places


def warm(recording: Recording, module: str, heat: Heat, origin_ns: int) -> None:
    """Put the bytes of a module by time into the heat map of its rank."""
    first = 2 * MODULES.index(module)
    read, written = (recording.lanes.get(first + way, np.zeros(BINS, np.int64)) for way in (0, 1))
    heat.add_bins(np.array([written, read]), recording.bin_ns, recording.started_ns - origin_ns)


def keep(recording: Recording, places: Mapping[int, int], module: str, segments: Segments, since: int) -> None:
    """Put the recorded accesses of a module into those of its rank; `places` as `fill` returns them."""
    rows = recording.segments[recording.segments["module"] == MODULES.index(module)]
    rows = rows[np.isin(rows["name"], list(places))]
    start = rows["start"] + since
    segments.add(
        Calls(
            np.array([places[each] for each in rows["name"].tolist()], np.int64),
            np.where(rows["writes"] != 0, int(Kind.WRITE), int(Kind.READ)),
            np.full(len(rows), -1, np.int64),
            rows["offset"].astype(np.int64),
            rows["length"].astype(np.int64),
            start,
            start + rows["duration"],
        )
    )
