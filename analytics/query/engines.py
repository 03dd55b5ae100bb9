"""The engines that carry out queries: DuckDB inside this process, and Spark, on this machine or on a cluster.

Problem. A laptop has no server and a cluster has more logs than one process can read; queries must not know which of
them they run on. Ibis writes the SQL of either from one expression. What Ibis leaves to the engine stands here: reading
Parquet files of different ages, results as Arrow without a detour over pandas (which turns absent whole numbers into
floats), Python functions on batches of columns, Python functions on groups, and plans.

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
import logging
import os
import re
import shutil
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import groups

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

__all__ = ["DuckDBEngine", "Engine", "SparkEngine", "java_missing", "open_engine"]

#: A user's function on batches: Arrow arrays of the columns in, an Arrow array of the same length out.
Batched = Callable[..., Any]
_MARKED = re.compile(rf"{re.escape(groups.MARK)}(.*?){re.escape(groups.MARK_END)}", re.DOTALL)
_names = itertools.count()


def open_engine(name: str = "duckdb", **settings: Any) -> Engine:
    """Open an engine.

    Parameters
    ----------
    name : {"duckdb", "spark"}
    **settings
        Of :class:`DuckDBEngine` or :class:`SparkEngine`.

    Raises
    ------
    AnalyticsError
        For an unknown engine or setting, a missing package, or a missing Java.
    """
    engines: dict[str, type[Engine]] = {"duckdb": DuckDBEngine, "spark": SparkEngine}
    if name not in engines:
        raise AnalyticsError(f"engine '{name}' is not known; choose duckdb or spark")
    known = {field.name for field in dataclasses.fields(engines[name])}  # type: ignore[arg-type] # both are
    if wrong := sorted(settings.keys() - known):
        raise AnalyticsError(f"engine {name} has no setting '{wrong[0]}'; it has {', '.join(sorted(known))}")
    return engines[name](**settings)


class Engine(abc.ABC):
    """What :class:`mpiio_ext.analytics.query.Tuples` asks of an engine."""

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
        """Return the rows of Parquet files, with exactly the columns of `schema`; NULL where a file lacks one."""

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
    def explain(self, expression: ir.Table, *, run: bool = False) -> str:
        """Return the engine's plan of a query; with `run`, carried out and with what it took."""

    @abc.abstractmethod
    def scalar(self, function: Batched, arguments: Sequence[ir.Value], result: Any) -> ir.Value:
        """Apply a function of Arrow arrays to columns, batch by batch; `result` is the Ibis type of its values."""

    @abc.abstractmethod
    def map_groups(self, expression: ir.Table, keys: Sequence[str], function: groups.Function) -> groups.Results:
        """Call `function` with the pandas frame of every group; return keys and results, in order of the keys."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give back what the engine holds; its tables are gone."""

    def item(self, array: ir.Value, place: ir.Value) -> ir.Value:
        """Return the element of an array of float64 at a place from 1 (int32)."""
        return call(self.element, [array, place], array.type().value_type)

    def compile(self, expression: ir.Table) -> str:
        """Return the SQL of a query."""
        return str(self.backend.compile(expression))

    def _shaped(self, table: pa.Table, expression: ir.Table) -> pa.Table:
        """Return a result with the column types that Ibis promises, which are the same on every engine."""
        return table.cast(expression.schema().to_pyarrow())


@contextlib.contextmanager
def _plain_errors(engine: str) -> Iterator[None]:
    """Turn what an engine raises into one error with the user's function's message, where it has one."""
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
        Limit of the memory, ``4GB`` or ``4GiB``; what does not fit goes to the temporary folder. Empty: DuckDB's own,
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
        try:
            import ibis
        except ImportError as error:
            raise AnalyticsError(f"engine duckdb needs {error.name}: pip install 'mpiio_ext[analytics]'") from error
        settings: dict[str, Any] = {"memory_limit": self.memory, "threads": self.threads}
        settings["temp_directory"] = self.temporary
        with _plain_errors("duckdb"):
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
        name = _unique("parquet")
        paths = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        with _plain_errors("duckdb"):
            # No temporary view, which is how Ibis would do it: cursors do not see those.
            source = f"read_parquet([{paths}], union_by_name = true)"
            self.backend.con.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")
            return _with_columns(self.backend.table(name), schema)

    def table(self, arrow: pa.Table) -> ir.Table:
        """See :meth:`Engine.table`."""
        name = _unique("arrow")
        with _plain_errors("duckdb"):
            self.backend.con.register(f"{name}_source", arrow)
            self.backend.con.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_source")
            self.backend.con.unregister(f"{name}_source")
        return self.backend.table(name)

    def arrow(self, expression: ir.Table) -> pa.Table:
        """See :meth:`Engine.arrow`."""
        with _plain_errors("duckdb"):
            return self._shaped(self._result(expression).to_arrow_table(), expression)

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """See :meth:`Engine.batches`."""
        schema = expression.schema().to_pyarrow()
        with _plain_errors("duckdb"):
            for batch in self._result(expression).to_arrow_reader(rows):
                yield batch.cast(schema)

    def _result(self, expression: ir.Table) -> Any:
        """Run a query on a cursor of its own, so that another may start before this one is read to its end."""
        return self.backend.con.cursor().sql(self.compile(expression))

    def explain(self, expression: ir.Table, *, run: bool = False) -> str:
        """See :meth:`Engine.explain`."""
        with _plain_errors("duckdb"):
            rows = self.backend.con.execute(f"EXPLAIN {'ANALYZE ' if run else ''}{self.compile(expression)}").fetchall()
        return "\n".join(str(row[1]) for row in rows)

    def scalar(self, function: Batched, arguments: Sequence[ir.Value], result: Any) -> ir.Value:
        """See :meth:`Engine.scalar`."""
        types = self.backend.compiler.type_mapper
        name = _unique("function")
        kinds = [types.to_string(argument.type()) for argument in arguments]
        _with_parameters(function, len(arguments))
        self.backend.con.create_function(
            name, function, kinds, types.to_string(result), type="arrow", null_handling="special"
        )  # fmt: skip
        return call(name, arguments, result)

    def map_groups(self, expression: ir.Table, keys: Sequence[str], function: groups.Function) -> groups.Results:
        """See :meth:`Engine.map_groups`."""
        ordered = expression.order_by(list(keys))
        return groups.over_batches(self.batches(ordered, 200_000), keys, function)

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        self.backend.disconnect()


@dataclasses.dataclass
class SparkEngine(Engine):
    """Spark through PySpark.

    Attributes
    ----------
    master : str
        ``local[*]`` (this machine, all cores), ``local[2]``, or the URL of a cluster's master.
    memory : str
        Memory of the driver, in Java's spelling: ``4g``.
    temporary : str
        Folder for shuffles and spills.
    configuration : mapping
        Further settings of Spark, by name.
    """

    master: str = "local[*]"
    memory: str = ""
    temporary: str = ""
    configuration: Mapping[str, str] = dataclasses.field(default_factory=dict)
    name = "spark"
    element = "element_at"

    def __post_init__(self) -> None:
        self.sources, self.merged = {}, {}
        if reason := java_missing():
            raise AnalyticsError(reason)
        try:
            import ibis
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise AnalyticsError(
                f"engine spark needs {error.name}: pip install 'mpiio_ext[analytics,spark]'"
            ) from error
        # Workers must run this Python with these packages, not whatever `python3` is.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = SparkSession.builder.master(self.master).appName("mpiio_ext analytics")
        for key, value in self._settings().items():
            builder = builder.config(key, value)
        with _plain_errors("spark"):
            self.session = builder.getOrCreate()
            self.session.sparkContext.setLogLevel("OFF")
            logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # the same errors once more
            self.backend = ibis.pyspark.connect(self.session)

    def _settings(self) -> dict[str, str]:
        found = {
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.ansi.enabled": "true",  # an overflow is an error, as in DuckDB
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # Frames of groups and batches of columns may be larger than Spark's limit on records suggests.
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        }
        if self.master.startswith("local"):
            found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
            # 200 tasks a shuffle, Spark's default, are for clusters.
            found["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))
        if self.memory:
            found["spark.driver.memory"] = self.memory
        if self.temporary:
            found["spark.local.dir"] = self.temporary
        return {**found, **self.configuration}

    def read(self, files: Sequence[str], schema: pa.Schema) -> ir.Table:
        """See :meth:`Engine.read`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        # With the schema given, Spark opens no file before the query, and columns that a file lacks are NULL.
        frame = self.session.read.schema(from_arrow_schema(schema)).parquet(*[_url(file) for file in files])
        return self._view(frame)

    def table(self, arrow: pa.Table) -> ir.Table:
        """See :meth:`Engine.table`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if arrow.num_rows == 0:
            return self._view(self.session.createDataFrame([], from_arrow_schema(arrow.schema)))
        return self._view(self.session.createDataFrame(arrow))

    def _view(self, frame: Any) -> ir.Table:
        name = _unique("view")
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)

    def arrow(self, expression: ir.Table) -> pa.Table:
        """See :meth:`Engine.arrow`."""
        with _plain_errors("spark"):
            return self._shaped(self._frame(expression).toArrow(), expression)

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """See :meth:`Engine.batches`."""
        # Spark has no stream of Arrow batches to the driver: the result is collected first.
        yield from self.arrow(expression).to_batches(max_chunksize=rows)

    def _frame(self, expression: ir.Table) -> Any:
        return self.session.sql(self.compile(expression))

    def explain(self, expression: ir.Table, *, run: bool = False) -> str:
        """See :meth:`Engine.explain`."""
        if run:
            self.arrow(expression)
        with _plain_errors("spark"):
            return str(self.session.sql(f"EXPLAIN FORMATTED {self.compile(expression)}").collect()[0][0])

    def scalar(self, function: Batched, arguments: Sequence[ir.Value], result: Any) -> ir.Value:
        """See :meth:`Engine.scalar`."""
        from ibis.backends.pyspark.datatypes import PySparkType
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

        name = _unique("function")
        kind = PySparkType.from_ibis(result)
        with warnings.catch_warnings():
            # Spark prefers to find the kind by annotations, and does not understand those of any number of columns.
            warnings.simplefilter("ignore", UserWarning)
            self.session.udf.register(name, arrow_udf(function, kind, ArrowUDFType.SCALAR))
        return call(name, arguments, result)

    def map_groups(self, expression: ir.Table, keys: Sequence[str], function: groups.Function) -> groups.Results:
        """See :meth:`Engine.map_groups`: executors call `function`, and send back pickled results."""
        work = groups.in_executor(keys, function)
        with _plain_errors("spark"):
            frame = self._frame(expression).groupBy(*[f"`{key}`" for key in keys])
            found = frame.applyInArrow(work, "results binary").toArrow()
        return groups.collected(found)

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        self.session.stop()


def java_missing() -> str:
    """Return why Spark cannot start on this machine in one line; empty if Java is there."""
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return ""
    return "engine spark needs Java, which is missing: install it (Debian: default-jre-headless) or take engine duckdb"


def _close(engine: weakref.ref[Any]) -> None:
    if (found := engine()) is not None:
        found.close()


def _unique(kind: str) -> str:
    return f"mpiox_{kind}_{next(_names)}"


def _url(file: str) -> str:
    return file if "://" in file else Path(file).resolve().as_uri()


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
    """Have a function say that it takes so many values: DuckDB and Ibis ask for its signature."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(f"a{number}", kind) for number in range(count)])
