"""The I/O nodes of each job: an arbiter's folder, its map, or the output of ``mpiio-ext delegates arbiter --status``.

``assignments`` is the map, ``jobs`` what the jobs announce of themselves. What the parts of the folder mean, and when
they are whole: :mod:`mpiio_ext.delegates.arbiter`.

Header: ``generation`` (int: of the map), ``serving`` (bool, or None if the source does not have it), ``settings`` (the
arbiter's, as JSON, or None), ``form`` (folder, map or status).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import read_bytes
from mpiio_ext.analytics.sources.documents import read_json, row_of
from mpiio_ext.analytics.sources.records import Problems, Row, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table
from mpiio_ext.delegates.arbiter import announcements, mapfile

ASSIGNMENTS = Table(
    "assignments",
    "one row a job of the map",
    (
        Column("generation", "int64", "", "of the map"),
        Column("job", "string", "", "name that the library gave the job"),
        Column("io_nodes", "list<int32>", "", "indices of its I/O nodes"),
    ),
)
JOBS = Table(
    "jobs",
    "one row a job that announces itself",
    (
        Column("job", "string", "", "name, as in the map"),
        Column("host", "string", "", "of the process that announced it"),
        Column("pid", "int64", "", "of that process"),
        Column("boot", "string", "", "of that host's kernel; empty if it is unknown"),
        Column("processes", "string", "", "space of process numbers there (an inode); 0 if it is unknown"),
        Column("ranks", "int32", "count", ""),
        Column("nodes", "int32", "count", "compute nodes"),
        Column("delegates", "int32", "count", ""),
        Column("program", "string", "", "name of the program's curve"),
        Column("scheduler_job", "string", "", "ID in the scheduler; empty without one"),
        Column("applied", "int64", "", "generation of the map that it follows; 0: none yet"),
        Column("touched_ns", "int64", "ns since 1970 UTC", "when it announced itself last"),
        Column("age_s", "float64", "s", "since then, when this was read"),
        Column("noticed_us", "int64", "us", "from the writing of the map until the job saw it"),
        Column("applied_us", "int64", "us", "from then until its page ranges were moved"),
        Column("others", "string", "", "further fields, as JSON; NULL without any"),
    ),
)


def _map(content: mapfile.Map) -> dict[str, Any]:
    return {"generation": content.generation, "jobs": {name: list(nodes) for name, nodes in content.jobs.items()}}


def _from_map(path: Path, data: bytes) -> dict[str, Any]:
    try:
        return _map(mapfile.decode(data))
    except (mapfile.MapError, ValueError) as error:
        line = data.count(b"\n") + (not data.endswith(b"\n"))
        raise SourceError(str(path), line, f"no map of an arbiter: {error}") from error


def _from_folder(path: Path, problems: Problems) -> dict[str, Any]:
    try:
        content = (
            _from_map(path / "map", (path / "map").read_bytes()) if (path / "map").exists() else _map(mapfile.Map())
        )
        jobs, bad = announcements.read_all(path)
        settings = json.loads((path / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(str(path), 0, f"no folder of an arbiter: {error}") from error
    for name in bad:
        problems.add(0, f"jobs/{name}: no announcement of a job")
    return {"serving": None, "settings": settings, "map": content, "jobs": [dataclasses.asdict(job) for job in jobs]}


def _assignments(document: object, problems: Problems) -> tuple[int, list[Row]]:
    found = document if isinstance(document, Mapping) else {}
    generation, jobs = found.get("generation", 0), found.get("jobs", {})
    if isinstance(generation, bool) or not isinstance(generation, int) or not 0 <= generation < 2**63:
        problems.add(0, "/map/generation: no number", 0)
        generation = 0
    rows = []
    for name, nodes in jobs.items() if isinstance(jobs, Mapping) else ():
        try:
            rows.append(row_of({"generation": generation, "job": str(name), "io_nodes": nodes}, ASSIGNMENTS))
        except ValueError as error:
            problems.add(0, f"/map/jobs/{name}: {error}")
    return generation, rows


def _jobs(found: object, problems: Problems) -> list[Row]:
    rows = []
    for number, item in enumerate(found if isinstance(found, list) else ()):
        try:
            if isinstance(item, Mapping) and isinstance(item.get("processes"), int):
                item = {**item, "processes": str(item["processes"])}
            rows.append(row_of(item, JOBS))
        except ValueError as error:
            problems.add(0, f"/jobs/{number}: {error}")
    return rows


class Arbiter(Source):
    """An arbiter's folder, map or status."""

    NAME = "arbiter"
    MEANING = "which job had which I/O nodes: an arbiter's folder, its map, or its status as JSON"
    ROLE = "programs"
    PATTERNS = ("map", "arbiter*.json")
    TABLES = (ASSIGNMENTS, JOBS)

    def recognizes(self, head: Head) -> bool:
        if head.path.is_dir():
            return (head.path / "settings.json").is_file() and (head.path / "jobs").is_dir()
        beginning = head.text[:200].lstrip()
        return beginning.startswith("mpiox-map ") or (beginning.startswith("{") and '"serving"' in beginning)

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        form = "folder"
        document: object
        if path.is_dir():
            document = _from_folder(path, problems)
        else:
            data = read_bytes(path, problems)
            form = "map" if data.startswith(b"mpiox-map ") else "status"
            document = {"map": _from_map(path, data)} if form == "map" else read_json(path, Problems(str(path)))
        if not isinstance(document, dict) or not isinstance(document.get("map"), dict):
            raise SourceError(str(path), 0, 'no status of an arbiter: no "map"')
        generation, assignments = _assignments(document["map"], problems)
        tables = {"assignments": assignments, "jobs": _jobs(document.get("jobs"), problems)}
        header = {
            "generation": generation,
            "serving": document.get("serving"),
            "settings": document.get("settings"),
            "form": form,
        }
        return tables, header


SOURCE = Arbiter()
