"""Tuples of a store: the operators of the paper's query interface, chained and carried out only when read.

Problem. Questions about I/O logs are pipelines of a few relational operators, of percentiles and bins, and of the
user's own functions. They must read like the paper's Algorithm 1 and run on a laptop as on a cluster.

Algorithm. A :class:`Tuples` is an Ibis expression and the engine that it belongs to. An operator makes a new expression
at once, so that mistakes (unknown columns, wrong texts) raise errors where they are written; nothing runs until a
result is requested. The columns of a user's function on groups are known only after it has run, and factors are no SQL.
So the operators chained behind these two wait, and are put together when a result is requested.

Units. Each operator gives the units of the columns of its result (:mod:`mpiio_ext.analytics.dimensions`), so that a
text such as ``total < 5s`` is refused whatever the name of a number of bytes.

Guarantees. The same calls give the same rows on every engine, exactly, but for approximate quantiles. NULL is "absent"
and stays NULL. Rows have no order but behind :meth:`Tuples.sort`, which puts NULL last.

Source: IOMiner, Section II-A and Algorithm 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from mpiio_ext.analytics import dimensions
from mpiio_ext.analytics.dimensions import NUMBER, UNKNOWN, Unit, Units
from mpiio_ext.analytics.query import binding, functions, groups, joins, ost
from mpiio_ext.analytics.query.keyrange import EVERYTHING, KeyRange, key_range
from mpiio_ext.analytics.query.language import ExpressionError
from mpiio_ext.analytics.query.loaded import Loaded, Operator
from mpiio_ext.analytics.query.origins import files_of
from mpiio_ext.analytics.query.results import Results
from mpiio_ext.analytics.query.values import bin_number, edge_of, fit_edges, order, quantiles, units_of, value_of, wide
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, LAYOUT, TABLES
from mpiio_ext.common import units

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from mpiio_ext.analytics.query.engines import Engine

#: How far the rank of an approximate quantile may be from the one asked for, as a fraction of the rows.
APPROXIMATE_RANK_ERROR = 0.01
_SAMPLE_ROWS = 1000
_JOB = "job_id"


class Tuples(Results):
    """A list of tuples that an engine computes at its first use.

    Parameters
    ----------
    expression : ibis Table, Loaded, or callable
        A callable returns one when a result is requested; it is called once.
    name : str
        Name for clashing columns of joins and for messages: the name of the table.
    waits_for : str
        With a callable: what has to run first, for people.
    jobs : KeyRange
        Values that the column ``job_id`` may have, where that is known.
    inputs : sequence of Tuples
        With a callable: what it reads, for :meth:`explain`.
    units : callable, optional
        Returns the units of the columns, once the expression is known. Otherwise columns with names of the schema have
        the units that they have there.
    """

    def __init__(
        self,
        engine: Engine,
        expression: ir.Table | Loaded | Callable[[], ir.Table],
        name: str = "tuples",
        waits_for: str = "",
        jobs: KeyRange = EVERYTHING,
        inputs: Sequence[Tuples] = (),
        units: Callable[[], Units] | None = None,
    ) -> None:
        self.engine = engine
        self.name = name
        self._loaded = expression if isinstance(expression, Loaded) else None
        self._expression = expression
        self._waits_for = waits_for
        self._steps = tuple((waits_for, each) for each in inputs)
        self._carried = units
        self._jobs = self._loaded.within if self._loaded is not None and self._loaded.key == _JOB else jobs

    # ---- the paper's operators ---------------------------------------------------------------------------------------

    def sort(self, *keys: Any, descending: bool = False) -> Tuples:
        """Return the tuples ordered by columns; NULL comes last.

        Parameters
        ----------
        *keys : str or Ibis value
            Columns or expressions; ``"-bytes_written"`` is descending whatever `descending` says.
        """
        if not keys:
            raise ExpressionError("sort needs a column")

        def ordered(table: ir.Table) -> ir.Table:
            return table.order_by([order(table, key, descending, self._units) for key in keys])

        return self._then(ordered, self._jobs)

    def filter(self, *conditions: Any) -> Tuples:
        """Return the tuples for which every condition is true; a comparison with NULL is not.

        Parameters
        ----------
        *conditions : str, Ibis value, or callable
            ``"bytes_written < 1GB and app like 'vasp%'"`` (:mod:`mpiio_ext.analytics.query.language`), or an Ibis
            expression, or a function of the Ibis table that returns one.

        Raises
        ------
        ExpressionError

        Notes
        -----
        A text that says which job IDs (of ``lmt``: which times) pass, directly behind ``load``, also chooses the files
        that are opened, of these tuples and of those that they are joined with by ``job_id``. So does one about Lustre
        layouts that none of the common layouts meets: rows with the others lie in files by themselves.
        """

        def chosen(table: ir.Table) -> ir.Table:
            return table.filter([value_of(table, each, self._units, boolean=True)[0] for each in conditions])

        texts = [condition for condition in conditions if isinstance(condition, str)]
        if self._loaded is None or len(texts) < len(conditions):  # a function that is no text may read other rows
            return self._then(chosen, self._jobs.meet(key_range(texts, _JOB)))
        return self._on_rows(chosen, self._loaded.narrowed(key_range(texts, self._loaded.key), texts))

    def project(self, *columns: str, **computed: Any) -> Tuples:
        """Return the tuples with these columns, and computed ones: ``project("job_id", gb="bytes_read / 1GB")``."""
        if not columns and not computed:
            raise ExpressionError("project needs a column")

        made: dict[str, Unit] = {}

        def select(table: ir.Table) -> ir.Table:
            kept = {name: binding.column(table, name) for name in columns}
            values = {new: value_of(table, each, self._units) for new, each in computed.items()}
            made.update({name: self._units.get(name, UNKNOWN) for name in columns} | units_of(values))
            return table.select(**kept, **{new: value for new, (value, _) in values.items()})

        texts = all(isinstance(each, str) for each in computed.values())
        own = self._loaded is not None and self._loaded.key in columns and not {self._loaded.key, *LAYOUT} & {*computed}
        if self._loaded is not None and own and texts:
            return self._on_rows(select, self._loaded, lambda: made)
        jobs = self._jobs if _JOB in columns and _JOB not in computed else EVERYTHING
        return self._then(select, jobs, lambda: made)

    def bin(
        self,
        new: str,
        function: Callable[..., Any] | Sequence[str | int | float],
        *columns: str,
        type: str | None = None,  # noqa: A002 # what else would it be called
        vectorized: bool = False,
    ) -> Tuples:
        """Return the tuples with a new column: `function` of the values of `columns`, or the number of a bin.

        Parameters
        ----------
        new : str
            Name of the new column.
        function : callable or sequence
            Called with one value for each of `columns`; not called where one of them is NULL, the result is NULL then.
            Or ascending edges such as ``["1GB", "10GB"]`` for a single column: the bin is the number of edges that are
            not above the value (0, 1, 2), computed by the engine. A single edge may stand by itself, ``"10GB"``.
        *columns : str
        type : str, optional
            ``int64``, ``float64``, ``string`` or ``boolean``. Otherwise the function's annotation counts, and without
            one a sample of rows is read and computed at once.
        vectorized : bool
            Whether `function` takes and returns NumPy arrays.
        """
        if not columns:
            raise ExpressionError(f"bin('{new}', …) needs the columns that the function takes")
        if not callable(function):
            given = [function] if isinstance(function, (str, int, float)) else list(function)
            edges = [edge_of(edge) for edge in given]

            def number(table: ir.Table) -> ir.Table:
                fit_edges(given, edges, columns[0], self._units)
                return table.mutate(**{new: bin_number(table, [value for value, _ in edges], columns)})

            return self._then(number, units=lambda: {**self._units, new: NUMBER})

        def compute(table: ir.Table) -> ir.Table:
            values = [binding.column(table, name) for name in columns]

            def sample() -> pa.Table:
                return self.engine.arrow(table.select(*columns).limit(_SAMPLE_ROWS))

            kind = functions.result_type(function, type, sample, vectorized)
            self.engine.sendable(function)
            work = functions.batched(function, columns, kind, vectorized)
            return table.mutate(**{new: self.engine.scalar(work, values, kind)})

        return self._then(compute, units=lambda: {**self._units, new: UNKNOWN})

    def group(self, keys: str | Sequence[str], function: Any = None, **aggregates: Any) -> Tuples:
        """Return one tuple a group, or the output of a function for each group.

        Parameters
        ----------
        keys : str or sequence of str
        function : callable or mapping, optional
            A callable gets a pandas frame with all tuples of one group (all columns, so project before). It returns a
            scalar (the column has the function's name), a mapping (a column for each entry), or a sequence of mappings
            or a frame (several tuples). A mapping is the same as `aggregates`.
        **aggregates : str or Ibis value
            New column = aggregation, computed by the engine: ``bytes="sum(bytes_written)"``, ``osts="ost_count()"``.
        """
        names = [keys] if isinstance(keys, str) else list(keys)
        if isinstance(function, Mapping):
            aggregates = {**function, **aggregates}
        elif function is not None:
            if aggregates:
                raise ExpressionError("group takes a function or aggregations, not both")
            return self._grouped(names, function)
        if not aggregates:
            raise ExpressionError("group needs a function or an aggregation such as bytes='sum(bytes_written)'")

        made: dict[str, Unit] = {}

        def aggregate(table: ir.Table) -> ir.Table:
            by = [binding.column(table, name) for name in names]
            values = {new: value_of(table, each, self._units, aggregates=True) for new, each in aggregates.items()}
            made.update({name: self._units.get(name, UNKNOWN) for name in names} | units_of(values))
            # Whole numbers stay 64 bits wide on every engine.
            return table.aggregate(by=by, **{new: wide(value) for new, (value, _) in values.items()})

        return self._then(aggregate, units=lambda: made)

    def join(
        self,
        other: Tuples,
        keys: str | Sequence[str],
        how: Literal["inner", "left", "right", "outer", "semi", "anti"] = "inner",
    ) -> Tuples:
        """Return the pairs of tuples with equal keys.

        Columns of `other` whose names this one has as well are called ``column_table``, such as ``start_time_slurm``.

        Parameters
        ----------
        other : Tuples
            Of the same engine.
        keys : str or sequence of str
        how : {"inner", "left", "right", "outer", "semi", "anti"}
        """
        if other.engine is not self.engine:
            raise ExpressionError("the two sides of a join belong to different engines; load them from one miner")
        names = [keys] if isinstance(keys, str) else list(keys)
        left, right, jobs = _of_same_jobs(self, other, names, how)
        waits = " and ".join(filter(None, (left._waits_for, right._waits_for)))
        joined = (lambda: left._joined(right, names, how)) if waits else left._joined(right, names, how)

        def known() -> Units:
            others = joins.right_names(left.columns, right.columns, names, right.name)
            return {**{new: right._units.get(old, UNKNOWN) for old, new in others.items()}, **left._units}

        return Tuples(self.engine, joined, self.name, waits, jobs, units=known)._behind(left, right)

    def percentile(self, *columns: str, points: Sequence[float] | None = None, approximate: bool = False) -> Tuples:
        """Return the percentiles of columns: one tuple a point, with the column ``percentile`` and the columns' values.

        Parameters
        ----------
        *columns : str
        points : sequence of float, optional
            In percent; 0, 1, … 100 otherwise.
        approximate : bool
            Exact values are interpolated linearly between neighbours. Approximate ones are faster on many rows, and
            their rank is off by less than :data:`APPROXIMATE_RANK_ERROR` of the rows.
        """
        percents = [float(point) for point in (range(101) if points is None else points)]
        if not columns or not percents or not all(0 <= point <= 100 for point in percents):
            raise ExpressionError("percentile needs columns, and points from 0 to 100")

        def computed(table: ir.Table) -> ir.Table:
            return quantiles(self.engine, table, columns, percents, approximate)

        return self._then(computed, units=lambda: {**self._units, "percentile": NUMBER})

    def extract_perf_factors(
        self, low: str | float | None, high: str | float | None, direction: Literal["read", "write"], **thresholds: Any
    ) -> Tuples:
        """Return the factors that contribute to the performance of jobs with a bandwidth from `low` to below `high`.

        The tuples are those of ``darshan_file``, or a join that contains them. Each file of a log counts once, however
        often the join repeats it. A join with ``darshan_job`` that has the log ID of both also gives the facts that
        only a log has: its run time, its application, and whether it used MPI-IO at all. Without such a join, factors
        that need these facts are NULL. They are computed when a result is requested. See
        :mod:`mpiio_ext.analytics.factors` for the factors and the thresholds.

        Parameters
        ----------
        low, high : str or float, optional
            Bandwidths: ``"0"``, ``"1GB"`` (a second); None: no bound.
        direction : {"read", "write"}
        **thresholds : str or float
            Thresholds of factors, such as ``small_bytes="64KiB"``, and the options of
            :func:`mpiio_ext.analytics.factors.extract`.
        """
        from mpiio_ext.analytics.factors import extract  # many modules, for this question only

        least, most = (None if bound is None else float(units.bandwidth(bound)) for bound in (low, high))
        found: Tuples = extract(self._files(of_jobs=True), least, most, direction, **thresholds)
        return found

    def ost_union(self, keys: str | Sequence[str] = ()) -> Tuples:
        """Return the OSTs that any tuple of a group uses: ``files.ost_union("job_id")``, those of each job.

        Parameters
        ----------
        keys : str or sequence of str
            None: one group of all tuples.

        Returns
        -------
        Tuples
            The keys; ``osts`` (a list, ascending; NULL if no tuple of the group has known OSTs, such as a job
            without Lustre). ``with_osts`` and ``without_osts`` are the tuples whose OSTs are known, and those left out
            because they are not. The bitmap is there, too, so that unions can be united and intersected further.
        """
        return self._osts(keys, "union")

    def ost_intersection(self, keys: str | Sequence[str] = ()) -> Tuples:
        """Return the OSTs that all tuples of a group use; parameters and columns as of :meth:`ost_union`.

        ``files.ost_intersection("job_id")``: the OSTs that the files of a job have in common;
        ``files.ost_union("job_id").ost_intersection()``: those that the jobs have in common.
        """
        return self._osts(keys, "intersection")

    # ---- smaller ones ------------------------------------------------------------------------------------------------

    def files(self) -> Tuples:
        """Return the tuples of ``darshan_file`` that a join contains, under their own names and each once."""
        return self._files(of_jobs=False)

    def _files(self, *, of_jobs: bool) -> Tuples:
        made: dict[str, Unit] = {}

        def files(table: ir.Table) -> ir.Table:
            chosen, names = files_of(self.engine, table, self.name, of_jobs)
            made.update({original: self._units.get(column, UNKNOWN) for original, column in names.items()})
            return chosen

        found = self._then(files, units=lambda: made)
        found.name = DARSHAN_FILE.name
        return found

    def limit(self, rows: int) -> Tuples:
        """Return at most `rows` tuples; which ones is open unless they are sorted."""
        return self._then(lambda table: table.limit(rows), self._jobs)

    def distinct(self) -> Tuples:
        """Return the tuples, equal ones once."""
        return self._then(lambda table: table.distinct(), self._jobs)

    def rename(self, **names: str) -> Tuples:
        """Return the tuples with columns renamed: ``rename(new="old")``."""

        def renamed(table: ir.Table) -> ir.Table:
            for old in names.values():
                binding.column(table, old)
            return table.rename(**names)

        def known() -> Units:
            return {**self._units, **{new: self._units.get(old, UNKNOWN) for new, old in names.items()}}

        return self._then(renamed, units=known)

    # ---- results -----------------------------------------------------------------------------------------------------

    @property
    def expression(self) -> ir.Table:
        """The Ibis expression; a user's function on groups that it needs is run."""
        if self._loaded is not None:
            return self._loaded.expression
        if callable(self._expression):
            self._expression = self._expression()
            self._waits_for = ""
        return self._expression

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.expression.columns)

    # ---- inside ------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _units(self) -> Units:
        """Units of the columns; there may be more names than columns."""
        if self._carried is None and self._loaded is not None:  # without the expression, which reads files
            return dimensions.of_table(TABLES[self._loaded.name])
        table = self.expression  # operators know the units of their results once they are applied
        if self._carried is not None:
            return self._carried()
        return {name: dimensions.by_name(name) for name in table.columns}

    def _then(
        self, operator: Operator, jobs: KeyRange = EVERYTHING, units: Callable[[], Units] | None = None
    ) -> Tuples:
        """Apply an operator, now or, where the columns are not known yet, later.

        `jobs`: values of ``job_id`` then; `units`: units of the columns then, otherwise those of the same names.
        """
        made = (lambda: operator(self.expression)) if self._waits_for else operator(self.expression)
        units = units or (lambda: self._units)
        return Tuples(self.engine, made, self.name, self._waits_for, jobs, units=units)._behind(self)

    def _behind(self, *before: Tuples) -> Tuples:
        """Note the work outside the engine that must come before these tuples; return them."""
        steps = {(what, id(taken)): (what, taken) for each in before for what, taken in each._steps}
        self._steps = (*steps.values(), *self._steps)
        return self

    def _on_rows(self, operator: Operator, loaded: Loaded, units: Callable[[], Units] | None = None) -> Tuples:
        """Apply an operator that works row by row and leaves the key to a table that may still be read with less."""
        found = Tuples(self.engine, loaded.then(operator), self.name, units=units or self._carried)
        found.expression  # noqa: B018 # a mistake is an error here
        return found

    def _narrowed(self, jobs: KeyRange) -> Tuples:
        """Return the tuples without files that have none of a range of jobs, if possible."""
        if self._loaded is None or self._loaded.key != _JOB or self._loaded.narrowed(jobs) is self._loaded:
            return self
        return Tuples(self.engine, self._loaded.narrowed(jobs), self.name, units=self._carried)

    def _osts(self, keys: str | Sequence[str], how: Literal["union", "intersection"]) -> Tuples:
        names = [keys] if isinstance(keys, str) else list(keys)
        return self._then(lambda table: ost.combined(table, {name: binding.column(table, name) for name in names}, how))

    def _joined(self, other: Tuples, keys: Sequence[str], how: str) -> ir.Table:
        right = other.expression
        found = joins.join(self.expression, right, keys, how, other.name)
        self.engine.merged.update({(found.op(), key): right.op() for key in keys})
        return found

    def _grouped(self, names: Sequence[str], function: Callable[[Any], Any]) -> Tuples:
        """Return the output of a user's function for the groups."""
        if not callable(function):
            raise ExpressionError("group takes a function, a mapping of aggregations, or aggregations by name")
        if not self._waits_for:
            for name in names:
                binding.column(self.expression, name)
        column = groups.called(function) if groups.called(function).isidentifier() else "value"

        def run() -> ir.Table:
            table = self.expression
            found = self.engine.map_groups(table, names, function)
            kinds = table.select(*names).schema().to_pyarrow()
            return self.engine.table(groups.assemble(found, kinds, column))

        waits = f"{groups.called(function)} of each group of {', '.join(names)}"

        def known() -> Units:
            return {name: self._units.get(name, UNKNOWN) for name in names}

        return Tuples(self.engine, run, self.name, waits, inputs=(self,), units=known)


def _of_same_jobs(left: Tuples, right: Tuples, keys: Sequence[str], how: str) -> tuple[Tuples, Tuples, KeyRange]:
    """Return both sides of a join without files of jobs that find no partner, and the jobs of the result."""
    if _JOB not in keys or how not in ("inner", "semi", "left", "right", "anti"):
        return left, right, EVERYTHING
    jobs = right._jobs if how == "right" else left._jobs
    if how in ("inner", "semi"):
        jobs = left._jobs.meet(right._jobs)
    if how in ("inner", "semi", "right"):
        left = left._narrowed(jobs)
    if how in ("inner", "semi", "left", "anti"):
        right = right._narrowed(jobs)
    return left, right, jobs
