"""I/O delegates: the JSON of ``mpiio-ext delegates status --json``, to ``delegates`` and ``files``.

The meaning of every number: docs/reference/delegates.md. What has no column of its own (counters, rates, the histogram
of requests) is in ``others`` as JSON.

Header: ``host`` (str), ``sampled_unix_s`` (float, s since 1970 UTC: when the delegates were inspected).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.documents import read_json, row_of
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table

_SAMPLED = Column("time", "float64", "s since 1970 UTC", "when the delegates were inspected")
_WHOSE = (
    Column("group", "string", "", "of the job's delegates"),
    Column("delegate", "int64", "", "number in the group"),
)
DELEGATES = Table(
    "delegates",
    "one row a delegate",
    (
        _SAMPLED,
        *_WHOSE,
        Column("delegates", "int64", "count", "of the group"),
        Column("mode", "string", "", ""),
        Column("host", "string", "", "its node"),
        Column("pid", "int64", "", ""),
        Column("state", "string", "", ""),
        Column("answers", "bool", "", "its beat moves"),
        Column("started_unix_s", "float64", "s since 1970 UTC", ""),
        Column("uptime_s", "float64", "s", ""),
        Column("threads", "int64", "count", ""),
        Column("clients", "int64", "count", ""),
        Column("page_bytes", "int64", "B", ""),
        Column("cap_bytes", "int64", "B", ""),
        Column("pages", "int64", "count", ""),
        Column("pages_used", "int64", "count", ""),
        Column("pages_dirty", "int64", "count", ""),
        Column("pages_free", "int64", "count", ""),
        Column("pages_prefetched", "int64", "count", ""),
        Column("dirty_bytes", "int64", "B", ""),
        Column("hit_fraction", "float64", "", ""),
        Column("prefetch_used_fraction", "float64", "", ""),
        Column("others", "string", "", "counters, rates, histogram of flush requests: JSON"),
    ),
)
FILES = Table(
    "files",
    "one row a file that is open at a delegate",
    (
        _SAMPLED,
        *_WHOSE,
        Column("path", "string", "", ""),
        Column("openers", "int64", "count", "openings that use it"),
        Column("readable", "bool", "", ""),
        Column("writable", "bool", "", ""),
        Column("replica", "bool", "", "the delegate has copies of another's pages of it"),
        Column("hidden", "bool", "", "its path is the name that it has until all of it is written"),
        Column("scratch", "bool", "", "it is never written, and goes with the job"),
        Column("draining", "bool", "", "it has been closed, and is still being written"),
        Column("drain_errno", "int64", "", "why that does not go on: errno; 0: it does"),
        Column("end_bytes", "int64", "B", "one past the last byte that was deposited"),
        Column("dirty_bytes", "int64", "B", "not in the file yet"),
        Column("errors", "int64", "count", "errors not yet reported"),
        Column("collectives", "int64", "count", "accesses in collectives, which did not use the delegates; else NULL"),
        Column("others", "string", "", "further fields: JSON; NULL without any"),
    ),
)
_OURS = ("time", "group", "delegate")


def _files(place: str, item: Mapping[str, Any], row: Row, rows: list[Row], problems: Problems) -> None:
    files = item.get("files", [])
    if not isinstance(files, list):
        problems.add(0, f"{place}/files: no list")
        return
    for number, file in enumerate(files):
        try:
            found = row_of(file, FILES)
            rows.append(found | {name: row[name] for name in _OURS})
        except ValueError as error:
            problems.add(0, f"{place}/files/{number}: {error}")


class Delegates(Source):
    """The status of delegates."""

    NAME = "delegates"
    MEANING = "what I/O delegates did: the JSON of mpiio-ext delegates status"
    ROLE = "programs"
    PATTERNS = ("delegates*.json", "delegates*.json.gz")
    TABLES = (DELEGATES, FILES)

    def recognizes(self, head: Head) -> bool:
        beginning = head.text[:1000]
        return beginning.lstrip().startswith("{") and '"sampled_unix_s"' in beginning and '"delegates"' in beginning

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        document = read_json(path, problems)
        document = document if isinstance(document, dict) else {}
        items, sampled = document.get("delegates"), document.get("sampled_unix_s")
        if not isinstance(items, list) or isinstance(sampled, bool) or not isinstance(sampled, (int, float)):
            raise SourceError(str(path), 0, 'no status of delegates: no "delegates" or "sampled_unix_s"')
        rows: list[Row] = []
        files: list[Row] = []
        for number, item in enumerate(items):
            place = f"/delegates/{number}"
            try:
                if not isinstance(item, dict):
                    raise ValueError("it is no object")
                row = row_of({name: value for name, value in item.items() if name != "files"}, DELEGATES)
            except ValueError as error:
                problems.add(0, f"{place}: {error}")
                continue
            rows.append(row | {"time": float(sampled)})
            _files(place, item, rows[-1], files, problems)
        header = {"host": str(document.get("host")), "sampled_unix_s": float(sampled)}
        return {"delegates": rows, "files": files}, header


SOURCE = Delegates()
