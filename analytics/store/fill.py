"""Fill a store: the logs of a period into Parquet tables, once; incrementally, in parallel, and safe against kills.

Problem. A period has 10^5 and more small logs; a second call must find out in seconds that nothing is new; a call may
be killed; a log may be corrupt, or kill the process that reads it.

Algorithm. (1) Lock, remove leftovers. (2) Scan the inputs and compare with the manifest (`plan`). (3) Digests of what
is new, to find logs that are there twice. (4) Worker processes convert chunks of logs and write sorted parts
(`convert`). If a chunk fails, it is tried again log by log, so that the error names the log that caused it. (5) Now and
then a commit merges the parts into the tables and renames the manifest (`commit`): a killed fill goes on from its last
commit.

Guarantees. Every log of the period has one row with its result in the manifest. Memory is bounded by chunks, row
groups, and the table of logs.

Source: IOMiner, Section II-B: "formatting happens only once".
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import Setup
from mpiio_ext.analytics.sources.base import Connector
from mpiio_ext.analytics.sources.registry import KINDS, connector_for
from mpiio_ext.analytics.store.commit import Staged, age_of, clean, merge_parts
from mpiio_ext.analytics.store.conflicts import NOTE, Conflicts, with_conflicts
from mpiio_ext.analytics.store.convert import Done, convert_chunk, digests, log_id_of
from mpiio_ext.analytics.store.dates import dates_in_words, with_dates
from mpiio_ext.analytics.store.layouts import with_layouts
from mpiio_ext.analytics.store.lock import locked
from mpiio_ext.analytics.store.logtable import LOGS, SEEN, keys_of, read_logs, write_logs
from mpiio_ext.analytics.store.manifest import Manifest, read_manifest, write_manifest
from mpiio_ext.analytics.store.plan import Date, Plan, day_of, mark_duplicates, plan
from mpiio_ext.analytics.store.pool import Pool, WorkerDeathError, WorkerError
from mpiio_ext.analytics.store.scan import scan
from mpiio_ext.analytics.store.zones import Days, zone_notes
from mpiio_ext.analytics.tables.schema import TABLES
from mpiio_ext.common.extras import install_line
from mpiio_ext.common.progress import LINES_S, progress

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Flags, Whole

#: Parts, rows and seconds after which a commit follows.
_COMMIT_PARTS, _COMMIT_ROWS, _COMMIT_S = 64, 4 << 20, 60.0
_CHUNK_BYTES = 64 << 20
#: Segments of the table of logs that stay separate.
_SEGMENTS = 8


@dataclasses.dataclass
class Report:
    """The result of a fill, in numbers of logs; `rows`: rows by table that this fill converted.

    Attributes
    ----------
    known : logs of earlier fills that are unchanged
    outside : logs that are new or changed, but not of the period
    vanished : logs of earlier fills that are gone; their rows stay
    whole, partial, conflict, skipped, duplicate, unreadable : what became of the others; the manifest says why
    others : files in the inputs with names that no log has
    problems : what could not be looked at, a line each
    notes : what dated the logs outside the period, and from when they are; what is suspicious in the contents
    """

    known: int = 0
    outside: int = 0
    vanished: int = 0
    whole: int = 0
    partial: int = 0
    conflict: int = 0
    skipped: int = 0
    duplicate: int = 0
    unreadable: int = 0
    others: int = 0
    rows: dict[str, int] = dataclasses.field(default_factory=dict)
    problems: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        counts = [
            (name, getattr(self, name))
            for name in (
                "whole",
                "partial",
                "conflict",
                "skipped",
                "duplicate",
                "unreadable",
                "known",
                "vanished",
                "outside",
                "others",
            )
        ]
        words = {"known": "unchanged", "outside": "outside the period", "others": "other files"}
        line = ", ".join(f"{count:,} {words.get(name, name)}" for name, count in counts if count) or "no logs"
        rows = ", ".join(f"{count:,} rows of {name}" for name, count in self.rows.items() if count)
        return "\n".join([f"logs: {line}", *([f"new: {rows}"] if rows else []), *self.notes, *self.problems])


@dataclasses.dataclass(frozen=True)
class _Chunk:
    """Logs of one kind, folder and period: rows of the plan's table, in order."""

    number: int
    kind: str
    root: str
    period: str
    rows: pa.Table
    paths: list[str]


class _Filler:
    """One fill of one store, under its lock."""

    def __init__(self, setup: Setup, connectors: Mapping[str, Connector], manifest: Manifest) -> None:
        self.folder = setup.store.absolute()
        self.setup, self.connectors, self.manifest = setup, connectors, manifest
        self.staging = self.folder / "staging" / f"{os.getpid()}-{time.time_ns()}"
        self.report = Report()
        self.plan: Plan
        self._staged: list[Staged] = []
        self._results: list[Any] = []
        self._since = time.monotonic()
        self._days = Days(setup.time_zone)
        self._notes: list[str] = []
        #: Keys of the logs of LMT, by the number of their chunk.
        self._lmt: dict[int, str] = {}

    # ---- converting ----

    def chunks(self, rows: Whole) -> Iterator[_Chunk]:
        """Yield the rows of the plan in chunks."""
        todo = self.plan.todo.take(pa.array(rows))
        names = ("kind", "root", "period")
        codes = [np.asarray(pc.dictionary_encode(todo.column(name).combine_chunks()).indices) for name in names]
        oldest = np.where(np.isin(todo.column("kind").to_pylist(), ("slurm", "lmt")), todo.column("mtime_ns"), 0)
        order = np.lexsort((np.arange(len(rows)), oldest, *codes))
        sizes = np.asarray(todo.column("size"))[order]
        edges = np.any([code[order][1:] != code[order][:-1] for code in codes], axis=0)
        ends = [*(np.flatnonzero(edges) + 1), len(order)] if len(order) else []
        at, number, columns = 0, 0, {name: todo.column(name) for name in (*names, "path")}
        for end in ends:
            kind = columns["kind"][int(order[at])].as_py()
            most = max(1, min(KINDS[kind].chunk, -(-len(order) // (4 * max(1, self.setup.workers)))))
            while at < end:
                stop = at + 1
                space = _CHUNK_BYTES - sizes[at]
                while stop < end and stop - at < most and sizes[stop] <= space:
                    space -= sizes[stop]
                    stop += 1
                mine = order[at:stop]
                yield _Chunk(
                    number,
                    kind,
                    columns["root"][int(mine[0])].as_py(),
                    columns["period"][int(mine[0])].as_py(),
                    rows[mine],
                    columns["path"].take(pa.array(mine)).to_pylist(),
                )
                at, number = stop, number + 1

    def convert(self, pool: Pool, chunk: _Chunk) -> tuple[_Chunk, list[Done]]:
        """Convert a chunk, whole or else log by log; called in threads."""
        stem = self.staging / f"{chunk.number:06d}"
        ids = [log_id_of(chunk.kind, chunk.root, path) for path in chunk.paths]
        connector = self.connectors[chunk.kind]
        width = max(self.setup.osts, self.manifest.osts)
        try:
            return chunk, [pool.call(convert_chunk, connector, chunk.paths, chunk.root, ids, str(stem), width)]
        except (WorkerDeathError, WorkerError) as error:
            if len(ids) == 1:
                return chunk, [Done(["skipped"], [str(error)], {}, [])]
        done = []
        for number, (path, log_id) in enumerate(zip(chunk.paths, ids, strict=True)):
            try:
                one = (connector, [path], chunk.root, [log_id], f"{stem}-{number}", width)
                done.append(pool.call(convert_chunk, *one))
            except (WorkerDeathError, WorkerError) as error:
                done.append(Done(["skipped"], [str(error)], {}, []))
        return chunk, done

    def take(self, chunk: _Chunk, done: Sequence[Done]) -> None:
        """Keep the outcome of a chunk for the next commit."""
        at = 0
        for item in done:
            rows = chunk.rows[at : at + len(item.statuses)]
            ids = [log_id_of(chunk.kind, chunk.root, path) for path in chunk.paths[at : at + len(rows)]]
            counts = {f"rows_{name}": item.rows.get(name, [None] * len(rows)) for name in TABLES}
            self._results.append(
                (
                    rows,
                    pa.table(
                        {
                            "status": pa.array(item.statuses, pa.string()),
                            "reason": pa.array(item.reasons, pa.string()),
                            "same_as": pa.nulls(len(rows), pa.string()),
                            "log_id": pa.array(ids, pa.int64()),
                            **{name: pa.array(values, pa.int64()) for name, values in counts.items()},
                        }
                    ),
                )
            )
            self._look_at_days(chunk, [part.path for part in item.parts if part.table == "lmt"], rows)
            self._staged += [Staged(part=part, period=chunk.period, age=chunk.number) for part in item.parts]
            for name, values in item.rows.items():
                self.report.rows[name] = self.report.rows.get(name, 0) + sum(values)
            at += len(rows)
        rows_waiting = sum(item.part.rows for item in self._staged)
        late = time.monotonic() - self._since > _COMMIT_S
        if len(self._staged) >= _COMMIT_PARTS or rows_waiting >= _COMMIT_ROWS or late:
            self.commit()

    def _look_at_days(self, chunk: _Chunk, parts: list[str], rows: Whole) -> None:
        """Examine the times of a log of LMT, and store its key."""
        if parts:
            self._lmt[chunk.number] = f"{chunk.kind}\0{chunk.root}/{chunk.paths[0]}"
            log = self.plan.todo.slice(int(rows[0]), 1)
            date = log.column("date")[0].as_py() if log.column("dated")[0].as_py() == "path" else ""
            self._days.look_at(chunk.paths[0], parts, date)

    def take_notes(self) -> None:
        """Compare the times of sources, and put the findings into the manifest and the report."""
        zone = self.setup.time_zone
        notes = [note for note in self.manifest.notes if note.startswith("lmt")]
        notes += [*self._notes, *self._days.notes(), *zone_notes(self.folder, self.manifest, zone)]
        notes = list(dict.fromkeys(notes))
        if tuple(notes) != self.manifest.notes:
            self.manifest = dataclasses.replace(self.manifest, notes=tuple(notes))
            write_manifest(self.folder, self.manifest)
        self.report.notes += notes

    def set_aside(self, rows: Whole, status: str, reasons: list[str], same_as: list[str | None]) -> None:
        """Keep logs that are not converted for the next commit."""
        if len(rows):
            empty = {f"rows_{name}": pa.nulls(len(rows), pa.int64()) for name in TABLES}
            self._results.append(
                (
                    rows,
                    pa.table(
                        {
                            "status": pa.array([status] * len(rows), pa.string()),
                            "reason": pa.array(reasons, pa.string()),
                            "same_as": pa.array(same_as, pa.string()),
                            "log_id": pa.nulls(len(rows), pa.int64()),
                            **empty,
                        }
                    ),
                )
            )

    # ---- committing ----

    def _replaced(self, keys: pa.Array) -> dict[int, set[int]]:
        """Return commit -> IDs of the logs of that commit among those that are done now and have changed."""
        old = self.plan.replaced
        if not old.num_rows:
            return {}
        mine = old.filter(pc.is_in(keys_of(old), value_set=keys))
        out: dict[int, set[int]] = {}
        for commit, log_id in zip(mine.column("commit").to_pylist(), mine.column("log_id").to_pylist(), strict=True):
            if log_id is not None and commit is not None:
                out.setdefault(commit, set()).add(log_id)
        return out

    def commit(self, extra: pa.Table | None = None) -> None:
        """Make converted rows part of the store; `extra`: rows of the table of logs as they are."""
        self._since = time.monotonic()
        segment = self._segment()
        if not self._staged and not segment.num_rows and extra is None:
            return
        readable = segment.filter(pc.not_equal(segment.column("status"), "unreadable"))
        replaced = self._replaced(keys_of(readable).combine_chunks())
        conflicts = Conflicts()
        manifest = merge_parts(self.folder, self.manifest, self._staged, replaced, self.setup.osts, conflicts)
        if meetings := conflicts.meetings():
            keys = {age_of(manifest.commit, number): key for number, key in self._lmt.items()}
            segment = with_conflicts(segment, meetings, keys)
            self._notes.append(NOTE)
        self._count(segment)
        if extra is not None:
            segment = pa.concat_tables([segment, extra])
        name = f"logs/{manifest.commit:06d}.parquet"
        names = (*manifest.logs, name)
        write_logs(self.folder, name, segment)
        if len(names) > _SEGMENTS:
            names = (f"logs/{manifest.commit:06d}-all.parquet",)
            write_logs(self.folder, names[0], read_logs(self.folder, (*manifest.logs, name)))
        self.manifest = dataclasses.replace(manifest, logs=names)
        write_manifest(self.folder, self.manifest)
        for item in self._staged:
            Path(item.part.path).unlink(missing_ok=True)
        self._staged, self._results = [], []

    def _segment(self) -> pa.Table:
        """Return the rows of the table of logs for finished ones."""
        if not self._results:
            return LOGS.empty_table()
        rows = np.concatenate([rows for rows, _ in self._results])
        outcome = pa.concat_tables([table for _, table in self._results])
        table = self.plan.todo.take(pa.array(rows))
        for name in outcome.column_names:
            table = table.append_column(name, outcome.column(name))
        table = table.append_column("commit", pa.array(np.full(len(rows), self.manifest.commit + 1)))
        table = table.append_column("vanished", pa.array(np.zeros(len(rows), dtype=bool)))
        return self._with_old_rows(table).select(LOGS.names).cast(LOGS)

    def _count(self, segment: pa.Table) -> None:
        for value in pc.value_counts(segment.column("status")):
            status, count = value["values"].as_py(), value["counts"].as_py()
            setattr(self.report, status, getattr(self.report, status) + count)

    def _with_old_rows(self, table: pa.Table) -> pa.Table:
        """Leave the manifest's rows of a log that was readable before, and is not now."""
        old, unreadable = self.plan.replaced, pc.equal(table.column("status"), "unreadable")
        if not old.num_rows or not pc.any(unreadable).as_py():
            return table
        place = pc.index_in(keys_of(table), value_set=keys_of(old).combine_chunks())
        place = pc.if_else(unreadable, place, pa.scalar(None, pa.int32()))
        for name in ("log_id", "commit", "digest", "size", "mtime_ns", *(f"rows_{table}" for table in TABLES)):
            number = table.column_names.index(name)
            value = pc.coalesce(old.column(name).take(place), table.column(name))
            table = table.set_column(number, name, value)
        return table


def _digest(filler: _Filler, pool: Pool) -> pa.Array:
    """Return the digest of every log to convert whose kind must not be there twice; others have an empty one."""
    todo = filler.plan.todo
    out: list[str] = [""] * todo.num_rows
    kinds = [name for name, kind in KINDS.items() if "darshan_job" in kind.tables]
    once = pc.is_in(todo.column("kind"), value_set=pa.array(kinds))
    wanted = np.flatnonzero(np.asarray(pc.and_(once, pc.equal(todo.column("problem"), ""))))

    def run(chunk: _Chunk) -> tuple[_Chunk, list[str]]:
        try:
            found: list[str] = pool.call(digests, chunk.root, chunk.paths)
        except (WorkerDeathError, WorkerError) as error:
            found = [f"!{error}"] * len(chunk.paths)
        return chunk, found

    for chunk, found in pool.each(run, filler.chunks(wanted)):
        for row, digest in zip(chunk.rows.tolist(), found, strict=True):
            out[row] = digest
    return pa.array(out, pa.string())


def _problems(filler: _Filler) -> Flags:
    """Set logs aside that are no files that can be read, and return which these are."""
    problems = filler.plan.todo.column("problem").to_numpy(zero_copy_only=False)
    for status in ("skipped", "unreadable"):
        rows = np.flatnonzero([problem.startswith(f"{status}: ") for problem in problems])
        reasons = [problems[row].removeprefix(f"{status}: ") for row in rows]
        filler.set_aside(rows, status, reasons, [None] * len(rows))
    bad: Flags = problems != ""
    return bad


def _convert_all(filler: _Filler, logs: pa.Table, quiet: bool | None) -> None:
    """Carry out the plan."""
    filler.staging.mkdir(parents=True, exist_ok=True)
    count = filler.plan.todo.num_rows
    shown = None if quiet is None else not quiet
    lines_s = 0.0 if quiet else LINES_S
    with (
        Pool(filler.setup.workers, filler.setup.timeout_s) as pool,
        progress(count, shown=shown, every_s=lines_s, step="log", name="mpiio-ext analyze init") as advance,
    ):
        found = _digest(filler, pool)
        same = mark_duplicates(filler.plan.todo, found, logs, filler.plan.replaced)
        filler.plan = dataclasses.replace(filler.plan, todo=filler.plan.todo.append_column("digest", found))
        repeated, unreadable = np.asarray(pc.is_valid(same)), np.asarray(pc.starts_with(found, "!"))
        bad = _problems(filler)
        rows = np.flatnonzero(unreadable)
        filler.set_aside(rows, "unreadable", [found[int(row)].as_py()[1:] for row in rows], [None] * len(rows))
        rows = np.flatnonzero(repeated)
        names = [same[int(row)].as_py() for row in rows]
        filler.set_aside(rows, "duplicate", [f"is equal to {name}" for name in names], names)
        advance(by=int((repeated | unreadable | bad).sum()))
        rows = np.flatnonzero(~repeated & ~unreadable & ~bad)
        for chunk, done in pool.each(lambda chunk: filler.convert(pool, chunk), filler.chunks(rows)):
            filler.take(chunk, done)
            advance(by=len(chunk.paths))
        filler.commit()


def _check_options(setup: Setup, manifest: Manifest, folder: Path) -> None:
    for name, value in setup.options().items():
        if manifest.options.get(name, value) != value:
            raise AnalyticsError(
                f"{folder}: the store was filled with {name} {manifest.options[name]!r}, and the set-up says "
                f"{value!r}; set it back, or fill a new folder"
            )


def fill(
    setup: Setup,
    start: Date = None,
    end: Date = None,
    *,
    connectors: Mapping[str, Connector] | None = None,
    quiet: bool | None = None,
) -> Report:
    """Convert the logs of a period that the store does not have yet.

    Parameters
    ----------
    start, end : ISO date, date, datetime or None
        First and last day, both included; None: no bound. Logs without a date belong to every period.
    connectors : in the place of the own ones, by kind.
    quiet : show no progress; default: where the standard error stream is no terminal.

    Raises
    ------
    AnalyticsError
        The store is held by another process or was filled with other options, an input is missing, a connector lacks a
        package, or the disk cannot be written. What was committed before stays.
    """
    began = time.monotonic()
    first, last = day_of(start, "start_date"), day_of(end, "end_date")
    if first and last and last < first:
        raise AnalyticsError(f"the period ends on {last}, before it begins on {first}")
    folder = setup.store.absolute()
    with locked(folder):
        manifest = read_manifest(folder) or Manifest(options=setup.options())
        _check_options(setup, manifest, folder)
        clean(folder, manifest)
        given = {kind: connector_for(kind, {"time_zone": setup.time_zone}) for kind in KINDS} | dict(connectors or {})
        filler = _Filler(setup, given, manifest)
        seen, filler.report.problems, filler.report.others = scan(setup.inputs)
        logs = read_logs(folder, manifest.logs)
        filler.plan = plan(with_dates(seen, logs, setup.time_zone), logs, setup, first, last)
        filler.report.known, filler.report.outside = filler.plan.known, filler.plan.outside.num_rows
        filler.report.notes = dates_in_words(filler.plan.outside)
        filler.report.vanished = filler.plan.vanished.num_rows
        try:
            _carry_out(filler, logs, quiet)
        except ImportError as error:
            hint = f"is a package missing? {install_line('analytics')}"
            raise AnalyticsError(f"a connector cannot be imported: {error}; {hint}") from error
        except OSError as error:
            raise AnalyticsError(f"{folder}: the store cannot be written: {error}") from error
    filler.report.seconds = time.monotonic() - began
    return filler.report


def _carry_out(filler: _Filler, logs: pa.Table, quiet: bool | None) -> None:
    if filler.plan.todo.num_rows:
        _convert_all(filler, logs, quiet)
    marks = []
    for table, gone in ((filler.plan.vanished, True), (filler.plan.returned, False)):
        if table.num_rows:
            marks.append(
                table.set_column(
                    LOGS.get_field_index("vanished"), "vanished", pa.array([gone] * table.num_rows, pa.bool_())
                )
            )
    if filler.plan.looked_at.num_rows:
        marks.append(_outside(filler.plan.looked_at))
    if marks:
        filler.commit(pa.concat_tables(marks))
    elif filler.manifest.commit == 0:
        write_manifest(filler.folder, filler.manifest)
    whole = with_layouts(filler.folder, filler.manifest)
    if whole is not filler.manifest:
        filler.manifest = whole
        write_manifest(filler.folder, whole)
    if filler.report.rows:
        filler.take_notes()


def _outside(logs: pa.Table) -> pa.Table:
    """Return rows of the table of logs for logs outside the period, so that they are not opened again."""
    basis = pc.if_else(pc.equal(logs.column("dated"), "start"), "the start of its job", "its last change")
    reasons = pc.binary_join_element_wise("dated ", logs.column("date"), " by ", basis, ": not of a period so far", "")
    known = {"status": pa.array(["outside"] * logs.num_rows, pa.string()), "reason": reasons}
    known["vanished"] = pa.array([False] * logs.num_rows, pa.bool_())
    columns = {**{name: logs.column(name) for name in SEEN.names}, **known}
    return pa.table([columns.get(field.name, pa.nulls(logs.num_rows, field.type)) for field in LOGS], schema=LOGS)
