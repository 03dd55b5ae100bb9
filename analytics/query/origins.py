"""The table and column of the store behind a column of a query.

Problem. The factors need the files' tuples out of a join. Names do not show it: behind ``jobs.join(files, …)`` the
column ``bytes_written`` is the job's, and the files' has another name. The other way round it is the file's. Where the
files were projected before, a column of the job may stand there alone.

Algorithm. Follow the column through the query's relations down to the table that was loaded. A key of a join is a
column of both sides. Casts are looked through; computed columns have no origin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.query.language import ExpressionError
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, DARSHAN_JOB

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from mpiio_ext.analytics.query.engines import Engine

_FLAT = ("int32", "int64", "float64", "bool")
#: (table of the store, column in it)
Origin = tuple[str, str]


def origins(
    table: ir.Table, sources: Mapping[Any, str], merged: Mapping[tuple[Any, str], Any]
) -> dict[str, set[Origin]]:
    """Return the origins of each column; a merged key has several, a computed column none.

    Parameters
    ----------
    table : ibis Table
    sources : relation (an Ibis operation) of each loaded table -> name of the table.
    merged : (relation of a join, key) -> relation of its right side.
    """
    import ibis.expr.operations as ops

    def of_value(value: Any) -> Iterator[Origin]:
        if isinstance(value, ops.Field):
            yield from of_field(value.rel, value.name)
        elif isinstance(value, ops.Cast):
            yield from of_value(value.arg)
        elif isinstance(value, ops.Coalesce):
            for argument in value.arg:
                yield from of_value(argument)

    def of_field(relation: Any, name: str) -> Iterator[Origin]:
        while True:
            if relation in sources:
                yield sources[relation], name
                return
            if (relation, name) in merged:
                yield from of_field(merged[relation, name], name)
            if isinstance(relation, ops.Reference):
                relation = relation.parent
                continue
            value = relation.values.get(name)
            if value is not None:
                yield from of_value(value)
            return

    relation = table.op()
    return {name: set(of_field(relation, name)) for name in table.columns}


def files_of(engine: Engine, table: ir.Table, name: str, of_jobs: bool) -> tuple[ir.Table, dict[str, str]]:
    """Return the rows of ``darshan_file`` in a join, each once, and {name: column of the join}.

    With `of_jobs` also what only their logs' rows know.
    """
    known = origins(table, engine.sources, engine.merged)
    if name == DARSHAN_FILE.name and not any(known.values()):  # not loaded from a store
        return table, {column: column for column in table.columns}
    found: dict[str, str] = {}
    logs = []
    for column, places in known.items():
        ours = [original for source, original in places if source == DARSHAN_FILE.name]
        for original in ours:
            found.setdefault(original, column)
        if not ours and any(original == "log_id" for _, original in places):
            logs.append(column)
    missing = [each for each in ("job_id", "file_id") if each not in found]
    if missing:
        raise ExpressionError(_no_files(name, missing if found else []))
    # Columns of others, or a key that another table has as well: a join may have repeated the files.
    repeated = any({source for source, _ in places} != {DARSHAN_FILE.name} for places in known.values())
    if "log_id" in found and logs:
        # A job with several logs: the join by job ID pairs each log with the files of all.
        table = table.filter([table[found["log_id"]] == table[other] for other in logs])
    if of_jobs and "log_id" in found:
        found |= _of_logs(known, found["log_id"])
    files = table.select(**{original: table[column] for original, column in found.items()})
    return files.distinct() if repeated else files, found


def _no_files(name: str, missing: Sequence[str]) -> str:
    """Return why tuples have no files to make factors of; `missing`: columns of theirs that were left out."""
    if missing:
        names = " and ".join(missing)
        return f"factors need {names} of darshan_file, which these tuples no longer have: project them too"
    reason = f"factors are made of the tuples of darshan_file, and {name} has none of them: load it, or join it"
    return f'{reason}: .join(miner.load("darshan_file"), "job_id")'


def _of_logs(known: Mapping[str, set[Origin]], log_id: str) -> dict[str, str]:
    """Return {name: column} of the facts of a join about a file's log: numbers, flags and the application.

    Empty unless the join has the log ID of ``darshan_job`` too: by job ID alone, a file is paired with every log of its
    job, whose run times are not its own.
    """
    own = (DARSHAN_JOB.name, "log_id")
    if own not in known[log_id] and not any(own in places for places in known.values()):
        return {}
    files = DARSHAN_FILE.names()
    wanted = {each.name for each in DARSHAN_JOB.columns if each.type in _FLAT or each.name == "app"}.difference(files)
    return {
        original: column
        for column, places in known.items()
        for source, original in places
        if source == DARSHAN_JOB.name and original in wanted
    }
