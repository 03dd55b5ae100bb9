"""Results of queries for people and their libraries: Arrow, pandas, Polars, rows, a small table of text, plans.

Problem. pandas turns whole numbers with a gap into floats: record IDs lose digits and "absent" looks like NaN among
numbers, or worse is filled with 0. Nullable types keep both.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.common.printing import aligned
from mpiio_ext.common.shown import html_of

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from mpiio_ext.analytics.query.engines import Engine, Read

_SHOWN_ROWS = 10
_BATCH_ROWS = 100_000
_WIDTH = 28
_COLUMNS = 8


@functools.cache
def _nullable() -> Mapping[Any, Any]:
    import pandas as pd
    import pyarrow as pa

    return {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a pandas frame; whole numbers and booleans have nullable types, absent is ``<NA>``."""
    return table.to_pandas(types_mapper=_nullable().get, integer_object_nulls=True)


def preview(table: pa.Table, title: str, more: bool) -> str:
    """Return the rows of a small Arrow table as text: `title`, a line of names, a line of types, the rows."""
    names = list(table.column_names)
    shown = names if len(names) <= _COLUMNS else [*names[: _COLUMNS - 1], "…"]
    types = ["" if name == "…" else str(table.schema.field(name).type) for name in shown]
    lines = [list(shown), types]
    for row in table.select([name for name in shown if name != "…"]).to_pylist():
        lines.append([_cell(row[name]) if name != "…" else "" for name in shown])
    text = aligned(lines)
    if len(names) > len(shown):
        text.append(f"… {len(names) - len(shown) + 1} more columns: {_list(names[_COLUMNS - 1 :])}")
    if more:
        text.append("… more rows")
    return "\n".join([title, *text])


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    text = f"{value:.6g}" if isinstance(value, float) and abs(value) < 1e5 else str(value)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (" …" if len(names) > 12 else "")


class Results(abc.ABC):
    """The results of a query: each of these methods runs it."""

    engine: Engine
    name: str
    #: What has to run before the columns are known, for people; and what was computed outside the engine before.
    _waits_for: str
    _steps: tuple[tuple[str, Results], ...]

    @property
    @abc.abstractmethod
    def expression(self) -> ir.Table:
        """The Ibis expression."""

    def arrow(self) -> pa.Table:
        """Run the query and return an Arrow table."""
        return self.engine.arrow(self.expression)

    def pandas(self) -> pd.DataFrame:
        """Run the query and return a pandas frame; whole numbers and booleans have nullable types."""
        return to_pandas(self.arrow())

    def polars(self) -> pl.DataFrame:
        """Run the query and return a Polars frame."""
        import polars

        return polars.DataFrame(self.arrow())

    def rows(self) -> list[dict[str, Any]]:
        """Run the query and return a dict for each tuple."""
        found: list[dict[str, Any]] = self.arrow().to_pylist()
        return found

    def count(self) -> int:
        """Return the number of tuples."""
        table = self.expression
        return int(self.engine.arrow(table.aggregate(tuples=table.count())).column("tuples")[0].as_py())

    def batches(self, rows: int = _BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Run the query and yield Arrow record batches of at most `rows` tuples; DuckDB has no more in memory."""
        return self.engine.batches(self.expression, rows)

    def reads(self) -> list[Read]:
        """Run the query and return its reads: by file on DuckDB, by task on Spark."""
        return self.engine.reads(self.expression)[1]

    def sql(self) -> str:
        """Return the SQL of the query, which the engine's own command line can carry out."""
        return self.engine.script(self.expression)

    def explain(self, *, run: bool = False) -> str:
        """Return the SQL and the engine's plan; with `run`, carry it out and add its costs.

        Where factors or a user's function on groups come before, the plan of the tuples that these take stands first.
        """
        texts = [f"{taken.explain(run=run)}\n\n{what}: computed of the tuples above" for what, taken in self._steps]
        if self._waits_for:
            texts.append(
                f"{self._waits_for}: not run yet, so that the plan behind it is not known (read .columns first)"
            )
        else:
            table = self.expression
            texts.append(f"{self.engine.compile(table)}\n\n{self.engine.explain(table, run=run)}")
        return "\n\n".join(texts)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return len(self.engine.arrow(self.expression.limit(1))) > 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from batch.to_pylist()

    def _title(self) -> str:
        what = f"{self._waits_for}, not run yet" if self._waits_for else f"{len(self.expression.columns)} columns"
        return f"Tuples {self.name} on {self.engine.name}: {what}"

    def __repr__(self) -> str:
        if self._waits_for:
            return self._title()
        first = self.engine.arrow(self.expression.limit(_SHOWN_ROWS + 1))
        return preview(first.slice(0, _SHOWN_ROWS), self._title(), first.num_rows > _SHOWN_ROWS)

    def _repr_html_(self) -> str:
        """Return the first rows with all columns as a table."""
        rows = [] if self._waits_for else self.engine.arrow(self.expression.limit(_SHOWN_ROWS)).to_pylist()
        return html_of([self._title()], rows)
