"""Engines that carry out queries: their common interface, and DuckDB inside this process.

Problem. A laptop has no server, and a cluster has more logs than one process can read; the same query must run on both.
Ibis writes the SQL of either from one expression. What Ibis leaves to the engine stands here: reading Parquet files of
different ages, results as Arrow, Python functions on batches of columns and on groups, and plans. Results make no
detour over pandas, which turns absent whole numbers into floats.

Guarantees. Columns that older files do not have are NULL, on both engines. Errors of a user's function come back with
the function's message and the row or group, not as a trace of the engine.
"""

from __future__ import annotations

import abc
import atexit
import contextlib
import dataclasses
import inspect
import itertools
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import groups
from mpiio_ext.common.extras import needing

if TYPE_CHECKING:
    import duckdb
    import ibis.expr.types as ir
    import pyarrow as pa

#: A user's function on batches: Arrow arrays of the columns in, an Arrow array of the same length out.
Batched = Callable[..., Any]
#: A function of a record batch that returns an Arrow table; it is pickled for Spark's workers.
Mapped = Callable[[Any], Any]
#: A function of all batches of a query, or of a part of it, that yields Arrow tables.
Work = Callable[[Iterator[Any]], Iterator[Any]]
_MARKED = re.compile(rf"{re.escape(groups.MARK)}(.*?){re.escape(groups.MARK_END)}", re.DOTALL)
_MAPPED_ROWS = 1_000_000
_names = itertools.count()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Read:
    """The bytes that a query has read from the disk: of one file, or in one task.

    Attributes
    ----------
    bytes : int
        With the footers of the files.
    path : str
        The file; empty if an engine counts by task.
    task : int
        Number of the task; -1 without tasks.
    executor : str
        Which executor carried the task out, and where: ``2 on node17``.
    """

    bytes: int
    path: str = ""
    task: int = -1
    executor: str = ""


class Engine(abc.ABC):
    """The interface of an engine for :class:`mpiio_ext.analytics.query.Tuples`."""

    name: str
    #: The Ibis backend.
    backend: Any
    #: The relations of the tables that were loaded (Ibis operations), and the tables' names.
    sources: dict[Any, str]
    #: Keys of joins: (relation of the join, key) -> relation of its right side.
    merged: dict[tuple[Any, str], Any]
    #: The engine's function of an array and a place from 1; Ibis's own gives Spark a place of the wrong type.
    element: str

    @abc.abstractmethod
    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        """Return the rows of Parquet files, with exactly the columns of `schema`; NULL if a file lacks one."""

    @abc.abstractmethod
    def table(self, arrow: pa.Table) -> ir.Table:
        """Return an Arrow table as a table of the engine."""

    @abc.abstractmethod
    def arrow(self, expression: ir.Table) -> pa.Table:
        """Run a query."""

    @abc.abstractmethod
    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, and yield its result in batches of at most `rows` rows."""

    @abc.abstractmethod
    def reads(self, expression: ir.Table) -> tuple[pa.Table, list[Read]]:
        """Run a query, and return its result and its reads."""

    @abc.abstractmethod
    def explain(self, expression: ir.Table, *, run: bool = False) -> str:
        """Return the engine's plan of a query; with `run`, carry it out and add its costs."""

    @abc.abstractmethod
    def scalar(self, function: Batched, arguments: Sequence[ir.Value], result: Any) -> ir.Value:
        """Apply a function of Arrow arrays to columns, batch by batch; `result` is the Ibis type of its values."""

    @abc.abstractmethod
    def mapped(self, expression: ir.Table, function: Mapped, schema: pa.Schema) -> ir.Table:
        """Return the output of `function` for the result of a query, batch by batch, as a table with this schema."""

    @abc.abstractmethod
    def map_groups(self, expression: ir.Table, keys: Sequence[str], function: groups.Function) -> groups.Results:
        """Call `function` with the pandas frame of every group; return keys and results, in order of the keys."""

    @abc.abstractmethod
    def by_key(self, expression: ir.Table, keys: Sequence[str], work: Work, schema: pa.Schema, rows: int) -> ir.Table:
        """Return the output of `work` for the rows of a query, computed at once, as a table.

        Parameters
        ----------
        expression : ibis Table
        keys : sequence of str
            Order of the rows that `work` gets. All rows of one value of the first key come in the same call of it.
        work : callable
            Takes batches and yields tables, whose rows it may put in any order; Spark's executors get it pickled.
        schema : pyarrow.Schema
            Of the tables.
        rows : int
            Of a batch, at most; Spark has its own measure.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Free the engine's resources; its tables are gone."""

    def sendable(self, function: Any) -> None:  # noqa: B027 # there is nothing to do where there are no workers
        """See to it that workers get a user's function itself, as far as they cannot import it."""

    def item(self, array: ir.Value, place: ir.Value) -> ir.Value:
        """Return the element of an array of float64 at a place from 1 (int32)."""
        return call(self.element, [array, place], array.type().value_type)

    def compile(self, expression: ir.Table) -> str:
        """Return the SQL of a query."""
        return str(self.backend.compile(expression))

    def script(self, expression: ir.Table) -> str:
        """Return the SQL of a query, with what another process of the engine needs before it."""
        return f"{self.compile(expression)};"

    def _shaped(self, table: pa.Table, expression: ir.Table) -> pa.Table:
        """Return a result with the column types that Ibis promises, which are the same on every engine."""
        return table.cast(expression.schema().to_pyarrow())


@contextlib.contextmanager
def plain_errors(engine: str) -> Iterator[None]:
    """Turn an engine's error into one error with the user's function's message, if it has one."""
    try:
        yield
    except AnalyticsError:
        raise
    except Exception as error:
        text = str(error)
        if found := _MARKED.search(text):
            raise AnalyticsError(found.group(1)) from None
        if isinstance(error, (KeyboardInterrupt, MemoryError)):
            raise
        first = text.strip().split("\n")[0]
        raise AnalyticsError(f"{engine} could not carry out the query: {first}") from error


@dataclasses.dataclass
class DuckDBEngine(Engine):
    """DuckDB inside this process.

    Attributes
    ----------
    memory : str
        Limit of the memory, ``4GB`` or ``4GiB``; data that do not fit go to the temporary folder. Empty: DuckDB's own,
        80 % of the machine.
    threads : int
        0: one a core.
    temporary : str
        Folder for what does not fit in memory. Empty: none but DuckDB's own (``.tmp`` in the working folder).
    """

    memory: str = ""
    threads: int = 0
    temporary: str = ""
    name = "duckdb"
    element = "list_extract"

    def __post_init__(self) -> None:
        self.sources, self.merged = {}, {}
        with needing("analytics", "engine duckdb"):
            import ibis
        settings: dict[str, Any] = {"memory_limit": self.memory, "threads": self.threads}
        settings["temp_directory"] = self.temporary
        with plain_errors("duckdb"):
            self.backend = ibis.duckdb.connect(**{key: value for key, value in settings.items() if value})
            # Order of rows is only promised behind a sort; giving it up lets DuckDB write and read in parallel.
            self.backend.raw_sql("SET preserve_insertion_order = false")
            self.backend.raw_sql("SET TimeZone = 'UTC'")
            # The footers of a table with 80 columns take as long as a short query; files that change are read anew.
            self.backend.raw_sql("SET parquet_metadata_cache = true")
        # DuckDB's binding complains at the end of a process about functions that are still registered.
        atexit.register(_close, weakref.ref(self))

    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        """See :meth:`Engine.read`."""
        if not files:
            return self.table(schema.empty_table())
        name = unique_name("parquet")
        paths = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        with plain_errors("duckdb"):
            # No temporary view, which is how Ibis would do it: cursors do not see those.
            source = f"read_parquet([{paths}], union_by_name = true)"
            self.backend.con.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")
            return _with_columns(self.backend.table(name), schema)

    def table(self, arrow: pa.Table) -> ir.Table:
        """See :meth:`Engine.table`."""
        name = unique_name("arrow")
        with plain_errors("duckdb"):
            self.backend.con.register(f"{name}_source", arrow)
            self.backend.con.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_source")
            self.backend.con.unregister(f"{name}_source")
        return self.backend.table(name)

    def arrow(self, expression: ir.Table) -> pa.Table:
        """See :meth:`Engine.arrow`."""
        with plain_errors("duckdb"):
            return self._shaped(self._result(expression).to_arrow_table(), expression)

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """See :meth:`Engine.batches`."""
        schema = expression.schema().to_pyarrow()
        with plain_errors("duckdb"):
            for batch in self._result(expression).to_arrow_reader(rows):
                yield batch.cast(schema)

    def reads(self, expression: ir.Table) -> tuple[pa.Table, list[Read]]:
        """See :meth:`Engine.reads`: by file, as DuckDB's log of the file system has it."""
        con = self.backend.con
        with plain_errors("duckdb"):
            # Footers of earlier queries count, too.
            con.execute("SET parquet_metadata_cache = false")
            con.execute("CALL enable_logging('FileSystem')")
            try:
                con.execute("CALL truncate_duckdb_logs()")
                found = self.arrow(expression)
                rows = con.execute(
                    "SELECT path, sum(bytes)::BIGINT FROM duckdb_logs_parsed('FileSystem') WHERE op = 'READ'"
                    " GROUP BY path ORDER BY path"
                ).fetchall()
            finally:
                con.execute("CALL disable_logging()")
                con.execute("CALL truncate_duckdb_logs()")
                con.execute("SET parquet_metadata_cache = true")
        return found, [Read(bytes=int(count), path=path) for path, count in rows]

    def script(self, expression: ir.Table) -> str:
        """See :meth:`Engine.script`: views of Parquet files come first."""
        query = super().script(expression)
        views = self.backend.con.execute("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal").fetchall()
        return "\n".join([*(sql for name, sql in views if name in query), query])

    def _result(self, expression: ir.Table) -> duckdb.DuckDBPyRelation:
        """Run a query on a cursor of its own, so that another may start before this one is read to its end."""
        found: duckdb.DuckDBPyRelation = self.backend.con.cursor().sql(self.compile(expression))
        return found

    def explain(self, expression: ir.Table, *, run: bool = False) -> str:
        """See :meth:`Engine.explain`."""
        with plain_errors("duckdb"):
            rows = self.backend.con.execute(f"EXPLAIN {'ANALYZE ' if run else ''}{self.compile(expression)}").fetchall()
        return "\n".join(str(row[1]) for row in rows)

    def scalar(self, function: Batched, arguments: Sequence[ir.Value], result: Any) -> ir.Value:
        """See :meth:`Engine.scalar`."""
        types = self.backend.compiler.type_mapper
        name = unique_name("function")
        kinds = [types.to_string(argument.type()) for argument in arguments]
        _with_parameters(function, len(arguments))
        self.backend.con.create_function(
            name, function, kinds, types.to_string(result), type="arrow", null_handling="special"
        )
        return call(name, arguments, result)

    def mapped(self, expression: ir.Table, function: Mapped, schema: pa.Schema) -> ir.Table:
        """See :meth:`Engine.mapped`: at once, into a table in memory."""
        import pyarrow as pa

        found = [function(batch).cast(schema) for batch in self.batches(expression, _MAPPED_ROWS)]
        return self.table(pa.concat_tables(found) if found else schema.empty_table())

    def map_groups(self, expression: ir.Table, keys: Sequence[str], function: groups.Function) -> groups.Results:
        """See :meth:`Engine.map_groups`."""
        ordered = expression.order_by(list(keys))
        return groups.over_batches(self.batches(ordered, 200_000), keys, function)

    def by_key(self, expression: ir.Table, keys: Sequence[str], work: Work, schema: pa.Schema, rows: int) -> ir.Table:
        """See :meth:`Engine.by_key`: in one call, in this process."""
        import pyarrow as pa

        found = [table.cast(schema) for table in work(self.batches(expression.order_by(list(keys)), rows))]
        return self.table(pa.concat_tables(found) if found else schema.empty_table())

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        self.backend.disconnect()


def _close(engine: weakref.ref[Any]) -> None:
    if (found := engine()) is not None:
        found.close()


def unique_name(kind: str) -> str:
    """Return a name for a table or a function that the engine does not have yet."""
    return f"mpiox_{kind}_{next(_names)}"


def _with_columns(table: ir.Table, schema: pa.Schema) -> ir.Table:
    """Return `table` with the columns of an Arrow schema in that order; those that it lacks are NULL."""
    import ibis

    wanted = ibis.Schema.from_pyarrow(schema)
    return table.select(
        **{
            name: (table[name] if table[name].type() == kind else table[name].cast(kind))
            if name in table.columns
            else ibis.null(kind)
            for name, kind in wanted.items()
        }
    )


def call(name: str, arguments: Sequence[ir.Value], result: Any) -> ir.Value:
    """Return a call of a function that the engine knows by `name`."""
    import ibis

    def stub() -> None:
        """Ibis takes a signature from a function."""

    _with_parameters(stub, len(arguments))
    kinds = tuple(argument.type() for argument in arguments)
    return ibis.udf.scalar.builtin(stub, name=name, signature=(kinds, result))(*arguments)


def _with_parameters(function: Any, count: int) -> None:
    """Give a function a signature of so many values: DuckDB and Ibis read it."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(f"a{number}", kind) for number in range(count)])
