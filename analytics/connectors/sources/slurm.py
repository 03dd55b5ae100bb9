"""Slurm's accounting: ``sacct`` as text or JSON, or TOKIO's JSON, to unmodified ``lines`` and to the store's ``slurm``.

``lines`` has a column for each column of the source, under its name, and a row for each job and step; all values are
texts as printed, but for lists, which stay lists. Of ``sacct --json``, whose entries are deep, it has ``job_id`` and
``json``. ``slurm`` has a row a job; what is made of which column says :mod:`mpiio_ext.analytics.connectors.slurm`.

Header: ``form`` (sacct, sacct-json or tokio).

Source: TOKIO, Section "Job scheduling"; Slurm, sacct(1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mpiio_ext.analytics.connectors.sources.content import first_lines, lines_of, read_bytes, write_bytes
from mpiio_ext.analytics.connectors.sources.numbers import has_local_time
from mpiio_ext.analytics.connectors.sources.prometheus import read_json
from mpiio_ext.analytics.connectors.sources.records import Problems, Records, SourceError
from mpiio_ext.analytics.connectors.sources.stored import converted
from mpiio_ext.analytics.tables.schema import SLURM, Column, Table

if TYPE_CHECKING:
    from mpiio_ext.analytics.connectors.sources.registry import Head, Role

__all__ = ["MEANING", "NAME", "PATTERNS", "ROLE", "TABLES", "local_times", "read", "recognizes", "write"]

NAME = "slurm"
MEANING = "jobs: sacct as text or JSON, or TOKIO's JSON of it"
ROLE: Role = "jobs"
PATTERNS = ("*.slurm", "*.sacct", "*.sacct.gz", "*sacct*.json", "*sacct*.txt")

LINES = Table(
    "lines",
    "one row a line of the source; a column for each of its columns, under its name (these, or others)",
    (
        Column("jobidraw", "string", "", "ID of the job or step"),
        Column("start", "string", "", "as printed: local time"),
        Column("end", "string", "", "as printed: local time"),
        Column("nodelist", "list<string>", "", "of TOKIO's JSON; a text of sacct"),
    ),
)
TABLES = (SLURM, LINES)


def recognizes(head: Head) -> bool:
    """Return whether a text names the columns of sacct, or a JSON object has jobs."""
    if head.tables or head.members:
        return False
    lines = first_lines(head.text, 1)
    if not lines:
        return False
    if lines[0].lstrip().startswith("{"):
        beginning = head.text[:4096].replace(" ", "").replace("\n", "")
        return '"jobidraw"' in beginning or '"job_id"' in head.text or beginning.startswith('{"jobs":[')
    names = [name.strip().lower() for name in lines[0].split("|")]
    return len(names) > 1 and bool({"jobid", "jobidraw"} & set(names))


def _text(data: bytes, path: Path, problems: Problems) -> Any:
    """Return the lines of sacct's text."""
    names: list[str] = []
    rows: list[list[str]] = []
    trailing = False
    for number, line in lines_of(data, problems, ended=False):
        if not line.strip():
            continue
        values = [value.strip() for value in line.split("|")]
        if not names:
            names, trailing = values, values[-1] == ""
            names = names[: len(names) - trailing]
            if len(set(names)) < len(names) or not {"jobid", "jobidraw"} & {name.lower() for name in names}:
                raise SourceError(
                    str(path), number, "not sacct: no line that names its columns, each once, with JobID or JobIDRaw"
                )
            continue
        values = values[: len(values) - (trailing and values[-1] == "")]
        if len(values) != len(names):
            problems.add(number, f"{len(values)} columns, and the first line names {len(names)}")
            continue
        rows.append(values)
    if not names:
        raise SourceError(str(path), 0, "not sacct: no line that names the columns")
    return pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate(names)})


def _entries(document: Mapping[str, Any], problems: Problems) -> Any:
    """Return the lines of TOKIO's JSON: ``{"4478544.0": {"jobidraw": …, "nodelist": […]}}``."""
    rows: list[dict[str, Any]] = []
    for name, item in document.items():
        if isinstance(item, dict) and all(_is_value(value) for value in item.values()):
            rows.append({"jobidraw": str(name)} | item)
        else:
            problems.add(0, f"job {str(name)[:40]}: no object of texts")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        lists = any(isinstance(value, list) for value in values)
        if lists:
            columns[name] = pa.array(
                [[value] if isinstance(value, str) else value for value in values], pa.list_(pa.string())
            )
        else:
            columns[name] = pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.table(columns)


def _is_value(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, (str, int, float))


def _json(path: Path, problems: Problems) -> tuple[str, Any]:
    document = read_json(path, problems)
    if not isinstance(document, dict):
        raise SourceError(str(path), 0, "JSON, but no object as sacct gives")
    jobs = document.get("jobs")
    if not isinstance(jobs, list):
        return "tokio", _entries(document, problems)
    ids = [str(job.get("job_id")) if isinstance(job, dict) and "job_id" in job else None for job in jobs]
    for number, found in enumerate(ids):
        if found is None:
            problems.add(0, f"/jobs/{number}: no object with job_id")
    kept = [(found, json.dumps(job)) for found, job in zip(ids, jobs, strict=True) if found is not None]
    columns = {"job_id": [found for found, _ in kept], "json": [text for _, text in kept]}
    return "sacct-json", pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def local_times(head: Head) -> bool:
    """Return whether times of sacct do not say their zone."""
    return has_local_time(head.text)


def read(path: Path, time_zone: str = "UTC") -> Records:
    """Read Slurm's accounting.

    Parameters
    ----------
    path : Path
    time_zone : str
        Of the times.

    Raises
    ------
    SourceError
        It is no accounting of Slurm.
    """
    problems = Problems(str(path))
    data = read_bytes(path, problems)
    if data.lstrip()[:1] in (b"{", b"["):
        form, lines = _json(path, Problems(str(path)) if problems.first else problems)
    else:
        form, lines = "sacct", _text(data, path, problems)
    try:
        lines.validate(full=True)
    except pa.ArrowException as error:
        raise SourceError(str(path), 0, f"texts that are none: {error}") from error
    tables = {"slurm": SLURM.schema().empty_table()}
    try:
        tables |= converted("slurm", path, time_zone, problems)
    except SourceError as error:
        if not lines.num_rows:
            raise
        problems.add(0, f"its lines are no jobs: {error.what}", 0)
    return Records(source=NAME, path=str(path), tables={**tables, "lines": lines}, header={"form": form},
                   problems=problems.all())  # fmt: skip


def write(records: Records, path: Path) -> None:
    """Write the lines in the form that they were read in.

    Raises
    ------
    SourceError
        The file cannot be written.
    """
    lines = records.tables["lines"]
    rows = lines.to_pylist()
    if records.header["form"] == "sacct":
        text = "\n".join("|".join(row) for row in [lines.column_names, *([*row.values()] for row in rows)]) + "\n"
    elif records.header["form"] == "sacct-json":
        text = '{"jobs": [' + ", ".join(row["json"] for row in rows) + "]}"
    else:
        text = json.dumps(
            {row["jobidraw"]: {name: value for name, value in row.items() if value is not None} for row in rows}
        )
    write_bytes(path, text.encode())
