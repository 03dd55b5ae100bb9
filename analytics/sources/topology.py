"""Where the nodes of a Cray are: a dump of the system database (xtdb2proc) to ``processors``; the radius of a job.

Problem. How far a job's nodes are from each other says which part of the network its I/O shares. The dump is a line of
``field=value`` pairs a processor; which fields there are depends on the release.

Algorithm. All lines have the fields of the first one; a line with others is damaged. The radius of a job is the mean
distance of its nodes from their centroid in the coordinates of the network (:func:`job_radius`).

Guarantees. Values are as dumped, ``null`` is NULL, texts are without their quotes. A processor that comes twice counts
once. Fields that are not in the table are in its column ``others``.

Header: ``fields`` (list of str: those of a line, in their order).

Source: TOKIO, Section "Other components".
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import first_lines, lines_of
from mpiio_ext.analytics.sources.records import Row, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table

_INTEGERS = {
    "processor_id": "of the node",
    "x_coord": "coordinate in the network",
    "y_coord": "coordinate in the network",
    "z_coord": "coordinate in the network",
    "cab_position": "column of cabinets",
    "cab_row": "row of cabinets",
    "cage": "chassis in the cabinet",
    "slot": "blade in the chassis",
    "cpu": "node on the blade",
    "process_slots": "",
    "process_slots_free": "",
    "od_allocator_id": "",
}
_TEXTS = {
    "processor_type": "compute, service",
    "processor_status": "up, down, admindown …",
    "alloc_mode": "batch, interactive",
    "cabinet": "",
    "next_red_black_switch": "",
    "processor_spec": "",
}
PROCESSORS = Table(
    "processors",
    "one row a node",
    (
        Column("node", "string", "", "name of the node as in Slurm: nid05000"),
        *(Column(name, "int64", "", meaning) for name, meaning in _INTEGERS.items()),
        *(Column(name, "string", "", meaning) for name, meaning in _TEXTS.items()),
        Column("others", "string", "", "fields that are none of these, as JSON; NULL without any"),
    ),
)

_COORDINATES = ("x_coord", "y_coord", "z_coord")
_PAIR = re.compile(r"([a-z_]\w*)=('[^']*'|[^,']*)(?:,|$)")
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def _pairs(text: str) -> dict[str, str]:
    """Return the fields of a line.

    Raises
    ------
    ValueError
        The line does not consist of pairs, or has a field twice.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None or match[1] in found:
            raise ValueError(f"no field=value at column {at + 1}: {text[at : at + 40]!r}")
        found[match[1]] = match[2]
        at = match.end()
    if text.endswith(","):
        raise ValueError("nothing behind the last comma")
    return found


def _row(found: dict[str, str]) -> Row:
    row: Row = {}
    others = {}
    for name, value in found.items():
        null = value == "null"
        if name in _INTEGERS:
            if not null and not _NUMBER.fullmatch(value):
                raise ValueError(f"{name} is {value[:40]!r}, which is no number")
            row[name] = None if null else int(value)
        elif name in _TEXTS:
            row[name] = None if null else value.strip("'")
        else:
            others[name] = value
    if row.get("processor_id") is None or row["processor_id"] < 0:
        raise ValueError("it has no processor_id")
    row["node"] = f"nid{row['processor_id']:05d}"
    row["others"] = json.dumps(others) if others else None
    return row


# ---- the radius of a job ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobRadius:
    """The distance of a job's nodes from their centre.

    Attributes
    ----------
    mean, least, greatest : distance from the centroid, in hops of the coordinates; None if no node is known.
    centroid : x, y, z.
    nodes : nodes that are known.
    unknown : nodes of the job that are not in the table, or there without coordinates.
    """

    mean: float | None
    least: float | None
    greatest: float | None
    centroid: tuple[float, float, float] | None
    nodes: int
    unknown: tuple[str, ...]


def job_radius(processors: pa.Table, nodes: Iterable[str]) -> JobRadius:
    """Return the mean distance of a job's nodes from their centroid.

    Parameters
    ----------
    processors : ``processors`` of :func:`read`.
    nodes : names of the job's nodes (:func:`mpiio_ext.common.slurm.expand_nodes` of Slurm's list); one that comes twice
        counts once.

    References
    ----------
    TOKIO, Section "Other components": a job's layout can be calculated from its node list and a topology map.
    """
    names: Sequence[str] = processors["node"].to_pylist()
    coordinates = dict(
        zip(names, zip(*(processors[axis].to_pylist() for axis in _COORDINATES), strict=True), strict=True)
    )
    wanted = list(dict.fromkeys(nodes))
    known = [name for name in wanted if None not in coordinates.get(name, (None,))]
    unknown = tuple(name for name in wanted if None in coordinates.get(name, (None,)))
    if not known:
        return JobRadius(mean=None, least=None, greatest=None, centroid=None, nodes=0, unknown=unknown)
    places = np.array([coordinates[name] for name in known], dtype=np.float64)
    centre = places.mean(axis=0)
    distances = np.sqrt(((places - centre) ** 2).sum(axis=1))
    return JobRadius(
        mean=float(distances.mean()),
        least=float(distances.min()),
        greatest=float(distances.max()),
        centroid=(float(centre[0]), float(centre[1]), float(centre[2])),
        nodes=len(known),
        unknown=unknown,
    )


class Topology(Source):
    """A dump of the system database."""

    NAME = "xtdb2proc"
    MEANING = "Cray: coordinates of nodes, a dump of the system database (xtdb2proc)"
    ROLE = "topology"
    PATTERNS = ("*.xtdb2proc", "*.xtdb2proc.gz", "*.xtprocadmin*")
    TABLES = (PROCESSORS,)

    def recognizes(self, head: Head) -> bool:
        lines = [line for line in first_lines(head.text, 40) if not line.startswith("#")][:2]
        return bool(lines) and all("processor_id=" in line and "x_coord=" in line for line in lines)

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        rows: list[Row] = []
        fields: list[str] | None = None
        seen: set[int] = set()
        for number, text in lines_of(path, problems):
            if not text.strip() or text.startswith("#"):
                continue
            try:
                found = _pairs(text.strip())
                if fields is not None and list(found) != fields:
                    raise ValueError("its fields are not those of the first line")
                row = _row(found)
                if row["processor_id"] in seen:
                    raise ValueError(f"processor {row['processor_id']} a second time")
            except ValueError as error:
                problems.add(number, str(error))
                continue
            fields = list(found)
            seen.add(row["processor_id"])
            rows.append(row)
        if fields is None:
            raise SourceError(str(path), 0, "no dump of the system database: no line 'cpu=…,processor_id=…'")
        return {"processors": rows}, {"fields": fields}


SOURCE = Topology()
