"""A table of a store before it is read, with the operators on its rows so far, so that files can still be left out.

Problem. A query begins with a whole table, and only the following operators show the jobs that it is about: a filter by
job ID, or a join with tuples of a range of jobs. By then the files are chosen already.

Algorithm. Operators that are chained behind a loaded table and work row by row (filters, projections) are stored beside
it. When a range of the key becomes known, the table is read anew with the files that may hold it, and the operators are
applied again. So it is where a filter is about the layouts of files and lets none of the common ones pass: then the
rows with the others are read, which lie in files by themselves.

Guarantees. Only files are left out, never rows: a range is what later operators let pass anyway. A table is not read
before its first operator.

What it pays stands with the two kinds of ranges: :mod:`.keyrange` and :mod:`.layoutrange`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.query.keyrange import EVERYTHING, KeyRange
from mpiio_ext.analytics.query.layoutrange import may_meet
from mpiio_ext.analytics.tables.parquet import key_of
from mpiio_ext.analytics.tables.schema import DARSHAN_FILE, LAYOUT, TABLES

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from mpiio_ext.analytics.query.engines import Engine

Operator = Callable[["ir.Table"], "ir.Table"]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Loaded:
    """A table of a store with a range of its key and operators that work row by row.

    Attributes
    ----------
    store : StoreFiles
    name : of the table.
    within : keys that matter.
    operators : tuple of callable
        Applied one after the other.
    conditions : that all rows must meet, of columns under their own names.
    """

    engine: Engine
    store: Any
    name: str
    within: KeyRange = EVERYTHING
    operators: tuple[Operator, ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name of the column by whose range files are left out."""
        return key_of(self.name)

    def then(self, operator: Operator) -> Loaded:
        """Return the table with one more operator; data that was read stays."""
        found = dataclasses.replace(self, operators=(*self.operators, operator))
        if "_base" in self.__dict__:
            found.__dict__["_base"] = self._base
        if "expression" in self.__dict__:
            found.__dict__["expression"] = operator(self.expression)
        return found

    def narrowed(self, within: KeyRange, conditions: Sequence[str] = ()) -> Loaded:
        """Return the table without files that have no key of a range, or no row that meets the conditions."""
        met = self.within.meet(within)
        if met == self.within and not conditions:
            return self
        found = dataclasses.replace(self, within=met, conditions=(*self.conditions, *conditions))
        if "_base" in self.__dict__ and found._files == self._files:
            known = {name: value for name, value in self.__dict__.items() if name in ("_base", "expression")}
            found.__dict__.update(known)
        return found

    @functools.cached_property
    def _files(self) -> list[str]:
        return list(self.store.files(self.name, *self._chosen()[0], **self._chosen()[1]))

    def _chosen(self) -> tuple[tuple[float | None, ...], dict[str, Any]]:
        """Return the facts of the store about the files that matter."""
        bounds = () if self.within == EVERYTHING else (self.within.low, self.within.high)
        about = [text for text in self.conditions if any(name in text for name in LAYOUT)]
        if not about or self.name != DARSHAN_FILE.name or not getattr(self.store, "knows_layouts", False):
            return bounds, {}
        return bounds, {"layouts": lambda layout: all(may_meet(text, layout) for text in about)}

    @functools.cached_property
    def _base(self) -> ir.Table:
        """The table as the engine reads it."""
        schema = TABLES[self.name].schema(self.store.osts)
        found = self.engine.read(self._files, schema)
        self.engine.sources[found.op()] = self.name
        return found

    @functools.cached_property
    def expression(self) -> ir.Table:
        """The Ibis expression; the table is read for it."""
        table = self._base
        for operator in self.operators:
            table = operator(table)
        return table
