"""The logs of one job, from files or from a store, and their report: as text, as JSON, or on a page.

Problem. A job has one log or many. A log by itself, and a log whose rows are in a store, give the same report.

Algorithm. Logs with the same ID of a job, and of the same user, are of one job. The number of a log is its place, as
two logs in different folders may have the same name. DXT and HEATMAP are read from the file of each log, before names
are taken out.

Guarantees. A log that is given twice counts once. A log without an ID of its job is a job by itself.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.activity_read import activity_of
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.report.findings import Headline, Known
from mpiio_ext.analytics.report.job import document
from mpiio_ext.analytics.report.output import job_text
from mpiio_ext.analytics.report.steps import Steps, of_job, of_log
from mpiio_ext.analytics.sources.darshan import convert
from mpiio_ext.analytics.tables.plain import column_of_array, scalar_of

if TYPE_CHECKING:
    from mpiio_ext.analytics.miner import IOMiner
    from mpiio_ext.analytics.sources.base import Outcome
    from mpiio_ext.analytics.tools.health import DiskStates


#: USER_PROGRAM_idJOB-PROCESS_..., as Darshan names its logs.
_ID_IN_NAME = re.compile(r"_id(\d+)(?=[-_])")
#: What `mpiio_ext.analytics.sources.darshan` says of a part that is cut off or damaged.
_HURT = re.compile(r"(?:^|; )(?:[\w-]+|file names|mount points) left out: | (?:may lack records|is cut|is damaged)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobReport:
    """The report of a job: its tables, further facts, and its steps if it has several logs.

    `damaged`: unreadable modules, for each log that has some; tables have no rows of them.
    """

    tables: Mapping[str, pa.Table]
    known: Known
    steps: Steps | None
    damaged: Mapping[Path, Sequence[str]] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def _found(self) -> dict[str, Any]:
        return document(self.tables, self.known, self.steps)

    @property
    def sentence(self) -> str:
        """Return the first sentence."""
        if self.steps is not None:
            return self.steps.conclusion
        return str(self._found.get("sentence") or self._found["undiagnosed"])

    @property
    def has_findings(self) -> bool:
        """Return whether a cause was found."""
        return any(one["document"]["findings"] for one in self._found["diagnosis"])

    @property
    def has_files(self) -> bool:
        """Return whether the logs have any record of a file."""
        return bool(self.tables["darshan_file"].num_rows)

    def text(self) -> str:
        """Return it for people."""
        return job_text(self.tables, self.known, self.steps, self._found)

    def page(self) -> str:
        """Return it as a page."""
        from mpiio_ext.analytics.report.job_page import job_page

        return job_page(self.tables, self.known, steps=self.steps)

    def document(self) -> dict[str, Any]:
        """Return it as JSON can hold it; the diagnoses of several logs are in ``steps``."""
        found = self._found | {"diagnosis": [one["document"] for one in self._found["diagnosis"]]}
        return found if self.steps is None else found | self.steps.document()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Logs:
    """The logs of one job.

    Attributes
    ----------
    tables : its rows, by table.
    paths : the file of each log that is there, by ``log_id``.
    osts : OSTs that are known to exist.
    disks : which disks were down or not ready when each log began.
    unread : logs that may be the job's and cannot be read.
    """

    tables: Mapping[str, pa.Table]
    paths: Mapping[int, Path]
    osts: int | None = None
    disks: Mapping[int, DiskStates | None] = dataclasses.field(default_factory=dict)
    unread: Sequence[str] = ()

    def of(self, log: int) -> dict[str, pa.Table]:
        """Return the rows of one log."""
        return of_log(self.tables, log)

    def report(
        self, areas: Mapping[str, str] | None, anonymous: bool, low: float, headline: Headline | None = None
    ) -> JobReport:
        """Return the report; a bandwidth below `low` (B/s) is called low; `headline`: as of `Known`."""
        seen = {
            log: found for log, path in self.paths.items() if (found := activity_of(path, self.of(log))) is not None
        }
        damaged = {self.paths[log]: sorted(one.damaged) for log, one in seen.items() if one.damaged}
        tables, disks = _with_damage(self.tables, seen), self.disks
        if anonymous:
            from mpiio_ext.analytics.anonymous import anonymous_tables

            tables = anonymous_tables(tables, areas)
            logs, files = (
                dict(zip(*(each[name][column].to_pylist() for each in (self.tables, tables)), strict=True))
                for name, column in (("darshan_job", "log_id"), ("darshan_file", "file_id"))
            )
            seen = {logs[log]: one.renamed(files) for log, one in seen.items()}
            disks = {logs[log]: one for log, one in disks.items()}
        known = Known(
            anonymous=anonymous, osts=self.osts, limits=Limits(fast=low), unread=self.unread, headline=headline
        )
        if tables["darshan_job"].num_rows > 1:
            return JobReport(tables=tables, known=known, steps=of_job(tables, known, seen, disks), damaged=damaged)
        (log,) = tables["darshan_job"]["log_id"].to_pylist()
        return JobReport(
            tables=tables,
            known=dataclasses.replace(known, activity=seen.get(log), disks=disks.get(log)),
            steps=None,
            damaged=damaged,
        )


def _with_damage(tables: Mapping[str, pa.Table], seen: Mapping[int, Activity]) -> dict[str, pa.Table]:
    """Return tables in which a log whose DXT or HEATMAP is damaged is partial, too."""
    jobs = tables["darshan_job"]
    partial = [
        flag or (log in seen and bool(seen[log].damaged))
        for log, flag in zip(jobs["log_id"].to_pylist(), jobs["partial"].to_pylist(), strict=True)
    ]
    return {**tables, "darshan_job": _with_column(jobs, "partial", column_of_array(np.array(partial, np.bool_)))}


def job_in_name(name: str) -> int | None:
    """Return the ID of the job that Darshan has written into the name of a log; None if there is none."""
    found = _ID_IN_NAME.search(name)
    return None if found is None else int(found[1])


def is_empty(tables: Mapping[str, pa.Table]) -> bool:
    """Return whether the logs of a job have lost the records of all their files."""
    return not tables["darshan_file"].num_rows and any(tables["darshan_job"]["partial"].to_pylist())


def is_hurt(outcome: Outcome) -> bool:
    """Return whether a log has lost something since Darshan wrote it; not what Darshan left out in the run."""
    return outcome.status == "skipped" or _HURT.search(outcome.reason) is not None


def converted(files: Sequence[Path]) -> list[tuple[Path, Outcome, dict[str, pa.Table]]]:
    """Return what became of each log, and its tables: empty ones of logs that are skipped; a log once.

    Logs of one folder are read together.
    """
    folders: dict[Path, dict[str, Path]] = {}
    for path in files:
        folders.setdefault(path.absolute().parent, {}).setdefault(path.name, path)
    found = {}
    for folder, names in folders.items():
        read = convert(list(names), str(folder))
        tables = {name: table.combine_chunks() for name, table in read.tables.items()}
        for (name, path), outcome in zip(names.items(), read.outcomes, strict=True):
            found[folder / name] = path, outcome, of_log(tables, outcome.log_id)
    return [found[path] for path in dict.fromkeys(path.absolute() for path in files)]


def by_job(logs: Sequence[tuple[Path, Mapping[str, pa.Table]]], *, one_job: bool = False) -> list[Logs]:
    """Return logs by their jobs, in the order of the first log of each.

    Parameters
    ----------
    logs : path and tables of each log.
    one_job : they are of one job, whatever their IDs.
    """
    groups: dict[Any, dict[int, tuple[Path, dict[str, pa.Table]]]] = {}
    met: set[str] = set()
    names = collections.Counter(path.name for path, _ in logs)
    for number, (path, tables) in enumerate(logs, 1):
        (row,) = tables["darshan_job"].to_pylist()
        if (it := repr(row)) in met:
            continue
        met.add(it)
        job = row["job_id"] or 0
        key = "all" if one_job else (job, row["uid"]) if job else number
        into = groups.setdefault(key, {})
        first = next(iter(into.values()))[1]["darshan_job"]["job_id"][0].as_py() if into else job
        own = {name: _with(table, job_id=first, log_id=number) for name, table in tables.items()}
        if names[path.name] > 1:
            own["darshan_job"] = _with(own["darshan_job"], log_file=str(path))
        into[number] = path, own
    return [
        Logs(
            tables={
                name: pa.concat_tables([own[name] for _, own in group.values()]).combine_chunks()
                for name in next(iter(group.values()))[1]
            },
            paths={number: path for number, (path, _) in group.items()},
        )
        for group in groups.values()
    ]


def _with(table: pa.Table, **values: Any) -> pa.Table:
    """Return a table with one value each in columns."""
    for name, value in values.items():
        table = _with_column(table, name, pa.repeat(scalar_of(value), table.num_rows))
    return table


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Return a table with other values in a column."""
    field = table.schema.field(name)
    return table.set_column(table.schema.get_field_index(name), field, values.cast(field.type))


def logs_of_store(miner: IOMiner, tables: Mapping[str, pa.Table]) -> tuple[dict[int, Path], list[tuple[str, str]]]:
    """Return the files of a job's logs by ``log_id``; and the logs that are not as they were, with what is wrong."""
    known = _logs_known(miner)
    wanted = tables["darshan_job"].filter(pc.equal(tables["darshan_job"]["source"], "darshan"))
    rows = known.filter(
        pc.and_(
            pc.equal(known["kind"], "darshan"),
            pc.is_in(known["log_id"], pa.array(wanted["source_log"].to_pylist(), pa.int64())),
        )
    )
    there = {row["log_id"]: row for row in rows.to_pylist()}
    found, gone = {}, []
    for log, source, name in zip(
        *(wanted[name].to_pylist() for name in ("log_id", "source_log", "log_file")), strict=True
    ):
        row = there.get(source)
        path = Path(row["root"]) / row["path"] if row else Path(name or "")
        if row is None or not path.is_file():
            gone.append((str(path), "is no longer there"))
        elif path.stat().st_mtime_ns != row["mtime_ns"]:
            gone.append((str(path), "has changed since it was read"))
        else:
            found[log] = path
    return found, gone


def unread_of_store(miner: IOMiner, job_id: int) -> list[str]:
    """Return the logs that the store could not read and whose names have the ID of the job."""
    rows = [row for row in _logs_known(miner).to_pylist() if (row["kind"], row["status"]) == ("darshan", "skipped")]
    names = [Path(row["path"]).name for row in rows]
    return sorted(name for name in names if job_in_name(name) == job_id)


def _logs_known(miner: IOMiner) -> pa.Table:
    """Return the rows of the store's manifest."""
    from mpiio_ext.analytics.store.logtable import read_logs

    return read_logs(miner.catalog.folder, miner.catalog.manifest.logs)
