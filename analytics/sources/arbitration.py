"""Jobs under a live arbiter: results of ``mpiio-ext bench arbitration`` (``arbitration.json``).

Content. Of each policy: ``jobs`` (when each ran, what it moved), ``slots`` (bytes in slots of its time), ``io_nodes``
(how many I/O nodes the arbiter's map gave it, a row a change). ``curves``: the bandwidth of each job by I/O nodes that
the arbiter had. Times are seconds since the first job began: the file does not say when that was.

Guarantees. Values are the file's. What is no such value is left out, and named by its place as a JSON pointer; fields
that have no column are in ``others`` as JSON.

Header: ``environment``, ``configuration`` and ``units`` as they stand there, where they do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.documents import read_json, row_of
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table

#: Version of the form, the only one that the bench writes.
FORMAT = 1
_WHAT = "arbitration run"

_POLICY = Column("policy", "string", "", "of the arbiter: static, mckp …")
_JOB = Column("job", "string", "", "its name")
_OTHERS = Column("others", "string", "", "further fields: JSON; NULL without any")
_BEGUN = "s since the first job began"
POLICIES = Table(
    "policies",
    "one row a policy",
    (_POLICY, Column("bandwidth_mb_per_s", "float64", "MB/s", "of all jobs, while all of them wrote"), _OTHERS),
)
JOBS = Table(
    "jobs",
    "one row a policy and a job",
    (
        _POLICY,
        _JOB,
        Column("pattern", "string", "", "of its accesses"),
        Column("begin_s", "float64", _BEGUN, "first write"),
        Column("end_s", "float64", _BEGUN, "last write"),
        Column("data_bytes", "int64", "B", "written"),
        Column("verified_bytes", "int64", "B", "compared at the end"),
        Column("bandwidth_mb_per_s", "float64", "MB/s", "data_bytes by its time"),
        Column("remapped_ranges", "int64", "count", "ranges of files that went to other I/O nodes while it ran"),
        Column("slot_s", "float64", "s", "length of its slots"),
        _OTHERS,
    ),
)
SLOTS = Table(
    "slots",
    "one row a policy, a job and a slot of its time",
    (
        _POLICY,
        _JOB,
        Column("time_s", "float64", _BEGUN, "begin of the slot"),
        Column("data_bytes", "int64", "B", "written in it"),
        _OTHERS,
    ),
)
IO_NODES = Table(
    "io_nodes",
    "one row a change of the arbiter's map and a job in it",
    (
        _POLICY,
        Column("time_s", "float64", _BEGUN, "when the map had changed"),
        Column("step", "int64", "", "number of the change, from 0"),
        Column("job", "string", "", "its name; NULL if the map had none"),
        Column("io_nodes", "int64", "count", "that it had from then on"),
        _OTHERS,
    ),
)
CURVES = Table(
    "curves",
    "one row a job and a number of I/O nodes that was measured",
    (
        _JOB,
        Column("source", "string", "", "where the curve comes from"),
        Column("io_nodes", "int64", "count", ""),
        Column("mean_mb_per_s", "float64", "MB/s", "mean of the repetitions"),
        Column("best_mb_per_s", "float64", "MB/s", "best of them"),
        Column("deviation_mb_per_s", "float64", "MB/s", "their standard deviation; NULL with one"),
        Column("repetitions", "int64", "count", ""),
        _OTHERS,
    ),
)
_TABLES = (POLICIES, JOBS, SLOTS, IO_NODES, CURVES)
_HEADER = ("environment", "configuration", "units")


class _Reading:
    """Gathers the rows of one document, and its mistakes."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.rows: dict[str, list[Row]] = {table.name: [] for table in _TABLES}

    def add(self, place: str, table: Table, fields: Mapping[str, Any]) -> bool:
        """Add a row, or name its mistake; return which."""
        try:
            self.rows[table.name].append(row_of(fields, table))
        except ValueError as error:
            self.problems.add(0, f"{place}: {error}")
            return False
        return True

    def items(self, place: str, value: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """Yield place, key and value of the objects in an object."""
        if not isinstance(value, dict):
            self.problems.add(0, f"{place}: it is no object")
            return
        for key, each in value.items():
            if isinstance(each, dict):
                yield f"{place}/{key}", key, each
            else:
                self.problems.add(0, f"{place}/{key}: it is no object")

    def elements(self, place: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield place and value of the objects in a list."""
        if not isinstance(value, list):
            self.problems.add(0, f"{place}: no list")
            return
        for number, each in enumerate(value):
            if isinstance(each, dict):
                yield f"{place}/{number}", each
            else:
                self.problems.add(0, f"{place}/{number}: it is no object")


def _without(item: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in names}


def _policy(out: _Reading, place: str, policy: str, run: Mapping[str, Any]) -> None:
    if not out.add(place, POLICIES, {**_without(run, "jobs", "map"), "policy": policy}):
        return
    for where, name, job in out.items(f"{place}/jobs", run.get("jobs")):
        if out.add(where, JOBS, {**_without(job, "slots"), "policy": policy, "job": name}):
            for at, slot in out.elements(f"{where}/slots", job.get("slots")):
                out.add(at, SLOTS, {**slot, "policy": policy, "job": name})
    for number, (where, step) in enumerate(out.elements(f"{place}/map", run.get("map"))):
        common = {**_without(step, "io_nodes"), "policy": policy, "step": number}
        has = step.get("io_nodes")
        if not isinstance(has, dict):
            out.problems.add(0, f"{where}/io_nodes: it is no object")
            continue
        for name, count in has.items() or [(None, None)]:
            out.add(f"{where}/io_nodes", IO_NODES, {**common, "job": name, "io_nodes": count})


def _header(document: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return the facts about the run that JSON in UTF-8 can contain."""
    found = {}
    for name in _HEADER:
        if name in document:
            try:
                json.dumps(document[name], ensure_ascii=False, allow_nan=False).encode()
                found[name] = document[name]
            except ValueError as error:  # UnicodeEncodeError is one
                problems.add(0, f"/{name}: {error}", 0)
    return found


class Arbitration(Source):
    """A run of the bench's arbitration."""

    NAME = "arbitration"
    MEANING = "jobs under a live arbiter, by policy: what the bench's arbitration has measured"
    ROLE = "programs"
    PATTERNS = ("arbitration*.json", "arbitration*.json.gz")
    TABLES = _TABLES

    def recognizes(self, head: Head) -> bool:
        beginning = head.text[:200].lstrip()
        return beginning.startswith("{") and f'"{_WHAT}"' in beginning and '"what"' in beginning

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        document = read_json(path, problems)
        if not isinstance(document, dict) or document.get("what") != _WHAT:
            raise SourceError(str(path), 0, f'is no "{_WHAT}" of the bench')
        if document.get("format") != FORMAT:
            raise SourceError(str(path), 0, f"is of format {str(document.get('format'))[:20]}, and {FORMAT} is known")
        out = _Reading(problems)
        for place, policy, run in out.items("/policies", document.get("policies")):
            _policy(out, place, policy, run)
        for place, name, curve in out.items("/curves", document.get("curves")):
            for at, point in out.elements(f"{place}/points", curve.get("points")):
                out.add(at, CURVES, {**point, "job": name, "source": curve.get("source")})
        return out.rows, _header(document, problems)


SOURCE = Arbitration()
