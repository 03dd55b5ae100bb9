"""Spark, on this machine or on a cluster, as an engine of queries.

Problem. What Ibis leaves to the engine (:mod:`mpiio_ext.analytics.query.engines`).

Locality. Spark combines files into tasks by its own rules, even files of several storage targets of a placed store. It
runs a task on the host that the file system names for the files; HDFS names a host, a parallel file system and local
folders do not. A task for each target, with joins by job ID inside it (IOMiner, Section II-C), took 1.0 to 1.8 times as
long.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import pickle
import shutil
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import groups
from mpiio_ext.analytics.query.engines import Batched, Engine, Mapped, Read, Work, call, plain_errors, unique_name
from mpiio_ext.common.extras import needing

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclasses.dataclass
class SparkEngine(Engine):
    """Spark through PySpark.

    Attributes
    ----------
    master : ``local[*]`` (this machine, all cores), ``local[2]``, or the URL of a cluster's master.
    memory : memory of the driver, in Java's spelling: ``4g``.
    temporary : folder for shuffles and spills.
    configuration : further settings of Spark, by name.
    verbose : whether Java's and Spark's remarks at the start are shown.
    """

    master: str = "local[*]"
    memory: str = ""
    temporary: str = ""
    configuration: Mapping[str, str] = dataclasses.field(default_factory=dict)
    verbose: bool = False
    name = "spark"
    element = "element_at"

    def __post_init__(self) -> None:
        self.sources, self.merged = {}, {}
        if reason := java_missing():
            raise AnalyticsError(reason)
        with needing("spark", "engine spark"):
            import ibis
            from pyspark import SparkConf
            from pyspark.sql import SparkSession

            from mpiio_ext.analytics.query.gateway import quiet_context
        # Workers must run this Python with these packages, not whatever `python3` is.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        conf = SparkConf().setMaster(self.master).setAppName("mpiio_ext analytics").setAll([*self._settings().items()])
        if not self.verbose:
            warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
        with plain_errors("spark"):
            if not self.verbose:
                quiet_context(conf)
            self.session = SparkSession.builder.config(conf=conf).getOrCreate()
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

        kind = from_arrow_schema(schema)
        if not files:
            return self._view(self.session.createDataFrame([], kind))
        # With the schema given, Spark opens no file before the query, and columns that a file lacks are NULL.
        with plain_errors("spark"):
            return self._view(self.session.read.schema(kind).parquet(*[_url(file) for file in files]))

    def table(self, arrow: pa.Table) -> ir.Table:
        """See :meth:`Engine.table`."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if arrow.num_rows == 0:
            return self._view(self.session.createDataFrame([], from_arrow_schema(arrow.schema)))
        return self._view(self.session.createDataFrame(arrow))

    def _view(self, frame: DataFrame) -> ir.Table:
        name = unique_name("view")
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)

    def arrow(self, expression: ir.Table) -> pa.Table:
        """See :meth:`Engine.arrow`."""
        with plain_errors("spark"):
            return self._shaped(self._frame(expression).toArrow(), expression)

    def batches(self, expression: ir.Table, rows: int) -> Iterator[pa.RecordBatch]:
        """See :meth:`Engine.batches`: two partitions of the result are in memory, the one in use and the next.

        Partitions are of 128 MB of files or less.
        """
        import pyarrow as pa

        schema = expression.schema().to_pyarrow()
        with plain_errors("spark"):
            # Spark streams rows to the driver, and Arrow only as a whole: each row is a batch as a message of bytes.
            messages = self._frame(expression).mapInArrow(_as_messages, "message binary")
            for row in messages.toLocalIterator(prefetchPartitions=True):
                for batch in pa.ipc.open_stream(row.message):
                    for start in range(0, batch.num_rows, rows):
                        yield batch.slice(start, rows).cast(schema)

    def reads(self, expression: ir.Table) -> tuple[pa.Table, list[Read]]:
        """See :meth:`Engine.reads`: by task, as Spark's own metrics have it."""
        context = self.session.sparkContext
        group = unique_name("reads")
        context.setJobGroup(group, "what a query reads")
        try:
            found = self.arrow(expression)
        finally:
            for name in ("spark.jobGroup.id", "spark.job.description"):
                context.setLocalProperty(name, None)  # type: ignore[arg-type] # how Spark takes a property away
        with plain_errors("spark"):
            return found, list(_task_reads(context, group))

    def _frame(self, expression: ir.Table) -> DataFrame:
        return self.session.sql(self.compile(expression))

    def explain(self, expression: ir.Table, *, run: bool = False) -> str:
        """See :meth:`Engine.explain`; the cost is the time of the whole, Spark's pages have that of each step."""
        took = ""
        if run:
            begin = time.perf_counter()
            rows = self.arrow(expression).num_rows
            took = f"\n\nCarried out in {time.perf_counter() - begin:.3f} s: {rows:,} rows"
        with plain_errors("spark"):
            text = str(self.session.sql(f"EXPLAIN FORMATTED {self.compile(expression)}").collect()[0][0])
        return text.rstrip() + took

    def scalar(self, function: Batched, arguments: Sequence[ir.Value], result: Any) -> ir.Value:
        """See :meth:`Engine.scalar`."""
        from ibis.backends.pyspark.datatypes import PySparkType
        from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

        name = unique_name("function")
        kind = PySparkType.from_ibis(result)
        with warnings.catch_warnings():
            # Spark prefers to find the kind by annotations, and does not understand those of any number of columns.
            warnings.simplefilter("ignore", UserWarning)
            self.session.udf.register(name, arrow_udf(function, kind, ArrowUDFType.SCALAR))
        return call(name, arguments, result)

    def mapped(self, expression: ir.Table, function: Mapped, schema: pa.Schema) -> ir.Table:
        """See :meth:`Engine.mapped`: in the executors, each of which gets `function` once, when the table is read."""
        from pyspark.sql.pandas.types import from_arrow_schema

        shared = self.session.sparkContext.broadcast(function)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from shared.value(batch).cast(schema).to_batches()

        with plain_errors("spark"):
            return self._view(self._frame(expression).mapInArrow(work, from_arrow_schema(schema)))

    def map_groups(self, expression: ir.Table, keys: Sequence[str], function: groups.Function) -> groups.Results:
        """See :meth:`Engine.map_groups`: executors call `function`, and send back pickled results."""
        work = groups.in_executor(keys, function)
        with plain_errors("spark"):
            grouped = self._frame(expression).groupBy(*[f"`{key}`" for key in keys])
            found = grouped.applyInArrow(work, "results binary").toArrow()
        return groups.collected(found)

    def by_key(
        self,
        expression: ir.Table,
        keys: Sequence[str],
        work: Work,
        schema: pa.Schema,
        rows: int,  # noqa: ARG002
    ) -> ir.Table:
        """See :meth:`Engine.by_key`: in the executors, which have the result until the engine is closed.

        A call for each partition.
        """
        from pyspark import cloudpickle
        from pyspark.sql.pandas.types import from_arrow_schema

        # By Spark's pickle, which takes functions of scripts and of notebooks, too; a broadcast takes Python's own.
        shared = self.session.sparkContext.broadcast(cloudpickle.dumps(work))  # type: ignore[no-untyped-call]
        kind = from_arrow_schema(schema)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with groups.marked():
                for table in pickle.loads(shared.value)(batches):
                    yield from table.cast(schema).to_batches()

        with plain_errors("spark"):
            parts = self._frame(expression).repartition(f"`{keys[0]}`")
            found = parts.sortWithinPartitions(*[f"`{key}`" for key in keys]).mapInArrow(run, kind).persist()
            found.count()
        return self._view(found)

    def sendable(self, function: Any) -> None:
        """See :meth:`Engine.sendable`."""
        groups.by_value(function)

    def close(self) -> None:
        """See :meth:`Engine.close`."""
        self.session.stop()


def _task_reads(context: Any, group: str) -> Iterator[Read]:
    """Yield the reads of the tasks in a group of jobs."""
    inner = context._jsc.sc()  # the listener's figures have no way from Python but this
    inner.listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), inner.statusStore()
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
    for stage in sorted(stages):
        tasks = store.taskList(stage, 0, 1 << 30)
        for number in range(tasks.size()):
            task = tasks.apply(number)
            metrics = task.taskMetrics()
            size = metrics.get().inputMetrics().bytesRead() if metrics.isDefined() else 0
            if size:
                yield Read(
                    bytes=int(size), path="", task=int(task.taskId()), executor=f"{task.executorId()} on {task.host()}"
                )


def _as_messages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn each batch into a row with the batch as bytes; runs in executors."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], ["message"])


def _url(file: str) -> str:
    return file if "://" in file else Path(file).resolve().as_uri()


def java_missing() -> str:
    """Return why Spark cannot start on this machine in one line; empty if Java is there."""
    home = os.environ.get("JAVA_HOME")
    if (home and (Path(home) / "bin" / "java").exists()) or shutil.which("java"):
        return ""
    return "engine spark needs Java, which is missing: install it (Debian: default-jre-headless) or take engine duckdb"
