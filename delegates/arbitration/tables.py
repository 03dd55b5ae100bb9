"""Curves from files: FORGE's tables, results of our bench, a plain table of jobs.

Every file is understood or refused with one line that names it, the line or row, the column, and what to do.
Repetitions of one scenario become one point with its spread. Nothing is guessed: a number of I/O nodes that was not
measured has no point.

Measurements that moved another total, or stopped after another time, are no repetitions of each other: a table that has
both for one pattern and number of I/O nodes is refused. With O_DIRECT and through the page cache are two patterns.

`request_bytes`, which `mpiio-ext bench explore` adds, has the exact size that FORGE's whole KiB cannot express.

Source. FORGE's columns: `run/output` of the artefact of the arbitration paper (jeanbez/forge-evaluation): bandwidths
        in MB/s, request sizes in KiB, layout 0 file per process and 1 shared, spatiality 0 contiguous and 1 1D-strided.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError
from mpiio_ext.common.files import cannot_read
from mpiio_ext.delegates.arbitration.curves import Curve, Point
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.jobs import Job
from mpiio_ext.delegates.arbitration.pattern import Layout, Pattern, Spatiality

_FORGE = ("forwarders", "clients", "processes", "layout", "spatiality", "request", "operation", "bandwidth")
_JOBS = ("job", "compute_nodes", "processes", "io_nodes", "bandwidth")
_LAYOUTS: tuple[Layout, ...] = ("file-per-process", "shared")
_SPATIALITIES: tuple[Spatiality, ...] = ("contiguous", "strided")


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (place for messages, row) of a table with a heading, separated by ";" or ","."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CurveError(cannot_read(path, error)) from error
    except UnicodeDecodeError as error:
        raise CurveError(f"{path}: is no text in UTF-8 (byte {error.start})") from error
    heading, _, _ = text.partition("\n")
    if not heading.strip():
        raise CurveError(f"{path}:1: is empty; the first line must name the columns {', '.join(columns)}")
    reader = csv.DictReader(text.splitlines(), delimiter=";" if ";" in heading else ",")
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise CurveError(
            f"{path}:1: missing columns: {', '.join(missing)}; there are: {', '.join(reader.fieldnames or ())}"
        )
    for row in reader:
        where = f"{path}:{reader.line_num}"
        if None in row or any(row[name] is None for name in columns):
            raise CurveError(f"{where}: the number of its fields is not that of the first line's columns")
        yield where, row


def _number(where: str, row: Mapping[str, Any], column: str) -> float:
    """Return a finite number >= 0."""
    text = row[column]
    try:
        value = float(text)
    except (TypeError, ValueError):
        raise CurveError(f"{where}: {column} must be a number, not {text!r}") from None
    if math.isnan(value):
        raise CurveError(f"{where}: {column} is not a number (NaN): leave the line out, or measure again")
    if math.isinf(value) or value < 0:
        raise CurveError(f"{where}: {column} must be a finite number >= 0, not {text}")
    return value


def _whole(where: str, row: Mapping[str, Any], column: str, low: int, high: int = 2**31 - 1) -> int:
    value = _number(where, row, column)
    if value != int(value) or not low <= value <= high:
        raise CurveError(f"{where}: {column} must be a whole number from {low} to {high}, not {row[column]}")
    return int(value)


def _curves(found: Mapping[Any, Mapping[int, Sequence[float]]], source: str) -> dict[Any, Curve]:
    return {
        key: Curve({count: Point.of(values) for count, values in points.items()}, source=source)
        for key, points in found.items()
    }


def _pattern(where: str, row: Mapping[str, Any]) -> Pattern:
    operation = row["operation"].strip()
    if operation not in ("write", "read"):
        raise CurveError(f"{where}: operation must be write or read, not {operation!r}")
    return Pattern(
        layout=_LAYOUTS[_whole(where, row, "layout", 0, 1)],
        spatiality=_SPATIALITIES[_whole(where, row, "spatiality", 0, 1)],
        request_bytes=_whole(where, row, "request_bytes", 1)
        if row.get("request_bytes")
        else 1024 * _whole(where, row, "request", 1),
        compute_nodes=_whole(where, row, "clients", 1),
        processes=_whole(where, row, "processes", 1),
        operation=operation,
        direct=bool(_whole(where, row, "odirect", 0, 1)) if (row.get("odirect") or "").strip() else False,
    )


def _amount(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the limits of the bytes of a run, total and stonewall; "" if the table has none."""
    return (row.get("total") or "").strip(), (row.get("stonewall") or "").strip()


def read_forge(paths: Iterable[Path]) -> dict[Pattern, Curve]:
    """Return the curve of every pattern in FORGE's tables, those of all files together, ordered by pattern.

    Raises
    ------
    CurveError
        A file that cannot be read or understood, or no row at all; with file and line.
    """
    paths = list(paths)
    found: dict[Pattern, dict[int, list[float]]] = {}
    amounts: dict[tuple[Pattern, int], tuple[str, str]] = {}
    for path in paths:
        for where, row in _rows(path, _FORGE):
            pattern = _pattern(where, row)
            count = _whole(where, row, "forwarders", 0)
            amount = _amount(row)
            before = amounts.setdefault((pattern, count), amount)
            if amount != before:
                raise CurveError(
                    f"{where}: {pattern.name} with {count} I/O nodes: total {amount[0]!r} and stonewall "
                    f"{amount[1]!r}, and {before[0]!r} and {before[1]!r} in an earlier line: these are no "
                    "repetitions of one another; read such tables one by one"
                )
            found.setdefault(pattern, {}).setdefault(count, []).append(_number(where, row, "bandwidth"))
    if not found:
        raise CurveError(f"{', '.join(map(str, paths))}: no measurement in it")
    return dict(sorted(_curves(found, "measured").items()))


def read_jobs(path: Path, store: Path | None = None) -> list[Job]:
    """Return jobs with curves of a table: one line a job, number of I/O nodes and repetition; in the order of the file.

    The columns are job, compute_nodes, processes, io_nodes, bandwidth (MB/s), separated by "," or ";"; `bandwidth` may
    be empty in the one line of a job of which nothing is known. There may be weight, current (I/O nodes that the job
    has now; empty: none yet) and program.

    Parameters
    ----------
    store : curves of the jobs that have none in the table, by `program`, or else by the job's name; io_nodes and
        bandwidth may be missing in the table then

    Raises
    ------
    CurveError
        A file that cannot be read or understood, with file and line.
    """
    from mpiio_ext.delegates.arbitration.store import Store

    kept = None if store is None else Store(store)
    stored = frozenset(kept.names() if kept is not None else ())
    jobs: dict[str, Job] = {}
    programs: dict[str, str] = {}
    found: dict[str, dict[int, list[float]]] = {}
    for where, row in _rows(path, _JOBS if kept is None else _JOBS[:3]):
        job = _job(where, row)
        if jobs.setdefault(job.name, job) != job:
            raise CurveError(
                f"{where}: job {job.name} has other sizes, weight or current I/O nodes than before: "
                f"{job.compute_nodes} compute nodes and {job.processes} processes"
            )
        programs[job.name] = (row.get("program") or "").strip() or job.name
        points = found.setdefault(job.name, {})
        if (row.get("bandwidth") or "").strip():
            count = _whole(where, row, "io_nodes", 0)
            points.setdefault(count, []).append(_number(where, row, "bandwidth"))
    if not found:
        raise CurveError(f"{path}: no job in it")
    curves = _curves({name: points for name, points in found.items() if points}, "measured")
    if kept is not None:
        curves |= {name: kept.load(programs[name]) for name in jobs if name not in curves and programs[name] in stored}
    return [replace(job, curve=curves.get(name)) for name, job in jobs.items()]


def _job(where: str, row: Mapping[str, Any]) -> Job:
    """Return the facts of a line about a job, without its curve."""
    name = row["job"].strip()
    if not name:
        raise CurveError(f"{where}: job has no name")
    return Job(
        name=name,
        compute_nodes=_whole(where, row, "compute_nodes", 1),
        processes=_whole(where, row, "processes", 1),
        weight=_number(where, row, "weight") if (row.get("weight") or "").strip() else 1.0,
        current=_whole(where, row, "current", 0) if (row.get("current") or "").strip() else None,
    )


# ---- results of the bench --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Run:
    """The used part of a line of ``runs``; its names are those of `mpiio_ext.common.results.Row`."""

    variant: str
    interface: str
    operation: str
    strategy: str
    bandwidth_mb_per_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    phase: str | None = ""
    delegates: Annotated[int, Field(ge=1)] | None = None
    delegated_accesses: int | None = None

    @property
    def key(self) -> str:
        """Name of its curve."""
        phase = f" {self.phase}" if self.phase else ""
        return f"{self.variant} [{self.interface}]{phase} {self.operation}"


@dataclass(frozen=True, kw_only=True)
class _Results:
    runs: list[_Run]


def _runs(path: Path) -> list[_Run]:
    """Return the runs of results.json or results.parquet."""
    document: object
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            document = {"runs": pq.read_table(path).to_pylist()}
        except (OSError, pa.ArrowException) as error:
            raise CurveError(f"{path}: is no Parquet file that can be read: {error}") from error
    else:
        document = documents.read_json(path, CurveError)
    try:
        return documents.parse(_Results, document).runs
    except DocumentError as error:
        raise CurveError(f"{path}: no results of the bench: {error.problems[0]}") from error


def read_bench(paths: Iterable[Path], *, direct: str = "auto") -> dict[str, Curve]:
    """Return curves by I/O delegates from results of ``mpiio-ext bench``, by "variant [interface] operation".

    Parameters
    ----------
    paths : results.json or results.parquet; runs with other numbers of delegates are other files
    direct : method whose runs count as no I/O node, if it was run

    Rows whose accesses did not go through the delegates, although the method requests them, are left out: they measure
    another path.

    Raises
    ------
    CurveError
        A file that cannot be read or understood, or no row that counts.
    """
    paths = list(paths)
    found: dict[str, dict[int, list[float]]] = {}
    for path in paths:
        for run in _runs(path):
            if run.strategy != direct if run.delegates is None else not run.delegated_accesses:
                continue
            found.setdefault(run.key, {}).setdefault(run.delegates or 0, []).append(run.bandwidth_mb_per_s)
    if not found:
        raise CurveError(f"{', '.join(map(str, paths))}: no run through delegates and none of the method {direct!r}")
    return _curves(found, "measured by the bench")
