"""Interference: the file's own share of an OST's traffic while the file was in use.

Problem. A slow file may have shared its OSTs with others. LMT has the bytes that each OST moved in every step of 5 s; a
million (file, OST) pairs with intervals of hours would meet thousands of steps each.

Algorithm. Cumulative sums over each OST's steps turn the traffic of an interval into a difference of two values. The
end points of an interval fall on steps of the 5-s grid. So two look-ups by equality (OST, step) are enough, and every
engine does them by a hash join; a join by BETWEEN is 50 times slower. One row has the bytes moved before a step and up
to its end, and the numbers of known steps at both times, so that one look-up returns all four values. Steps that have
no row of LMT are added first. The sums of a few days of traces are arrays, in this process for DuckDB and in each of
Spark's workers, and the look-ups are places in them: no join at all.

Guarantees. A step that the interval only touches counts whole, since LMT knows nothing below 5 s. Lost steps (NULL, or
no row) add nothing, and `coverage` is the fraction of the interval's steps that is known. Where none is, the traffic
is NULL and not 0.

Source: IOMiner, Section II-A (joins of Darshan with LMT) and III-F.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import Tuples
from mpiio_ext.analytics.query.joins import join

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

#: Seconds of a step of the table ``lmt``.
STEP_S = 5
#: Steps that are summed up in arrays (240 MB), in a fraction of the time of a window: four days of 248 OSTs.
_IN_MEMORY = 20_000_000
_PAIR = ("job_id", "log_id", "file_id", "ost")
_RESULTS = ("own", "traffic", "share", "coverage")


def interference(files: Tuples, lmt: Tuples, direction: Literal["read", "write"] = "write") -> Tuples:
    """Return the traffic of each OST of each file while the file was written or read, beside the file's own bytes.

    Parameters
    ----------
    files : of ``darshan_file``; files without OSTs or without a time of this direction are left out.
    lmt : of one file system.
    direction : {"read", "write"}

    Returns
    -------
    Tuples
        ``job_id``, ``log_id``, ``file_id``, ``ost``, ``own`` (bytes; a file's bytes count as spread evenly over its
        OSTs), ``traffic`` (bytes in LMT), ``share`` (own / traffic), ``coverage`` (fraction of the steps known).

    Raises
    ------
    AnalyticsError
        When the result is computed and `lmt` has several file systems, or a step of an OST twice.
    """
    if direction not in ("read", "write"):
        raise AnalyticsError(f"direction is '{direction}'; choose read or write")

    def build() -> ir.Table:
        pairs = _pairs(files.expression, direction)
        steps, low, high, whole, rows = _steps(lmt, direction)
        if 0 < whole <= _IN_MEMORY:
            grid = _Grid(lmt.engine.arrow(steps), low, high)
            return files.engine.mapped(pairs, grid, _schema())
        if rows > whole:
            raise _twice(rows - whole)
        return _looked_up(pairs, _summed(_filled(steps, low, high) if rows < whole else steps), low, high)

    return Tuples(files.engine, build, "interference", "the traffic of each file's OSTs")


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.int64()) for name in _PAIR] + [(name, pa.float64()) for name in _RESULTS])


def _column(direction: str) -> str:
    return "bytes_written" if direction == "write" else "bytes_read"


def _pairs(files: ir.Table, direction: str) -> ir.Table:
    """Return one row a file and OST, with the first and the last step of the file's interval."""
    start, end = files[f"{direction}_start"], files[f"{direction}_end"]
    used = files.filter(start.notnull(), end.notnull(), files.osts.notnull(), files.osts.length() > 0)
    start, end = used[f"{direction}_start"], used[f"{direction}_end"]
    first = (start / STEP_S).floor().cast("int64")
    last = (end / STEP_S).ceil().cast("int64") - 1  # an interval that ends with a step does not touch the next
    return used.select(
        "job_id",
        "log_id",
        "file_id",
        ost=used.osts.cast("array<int64>").unnest(),  # Spark wants the unnest outside of a cast
        own=used[_column(direction)].cast("float64") / used.osts.length(),
        first=first,
        last=(last >= first).ifelse(last, first),
    )


def _steps(lmt: Tuples, direction: str) -> tuple[ir.Table, int, int, int, int]:
    """Return the steps, the first and the last number of a step, the steps of all OSTs together, and the rows."""
    table = lmt.expression
    steps = table.filter(table.time.notnull(), table.ost.notnull()).select(
        ost=table.ost.cast("int64"), step=(table.time / STEP_S).floor().cast("int64"), bytes=table[_column(direction)]
    )
    found = steps.aggregate(rows=steps.count(), osts=steps.ost.nunique(), low=steps.step.min(), high=steps.step.max())
    [seen] = lmt.engine.arrow(found).to_pylist()
    systems = lmt.engine.arrow(table.aggregate(systems=table.file_system.nunique())).to_pylist()[0]["systems"]
    if systems > 1:
        raise AnalyticsError(
            f"lmt holds {systems} file systems, whose OSTs have the same numbers: filter(\"file_system = '…'\")"
        )
    low, high = int(seen["low"] or 0), int(seen["high"] if seen["rows"] else -1)
    whole = int(seen["osts"]) * (high - low + 1)
    return steps, low, high, whole, int(seen["rows"])


def _twice(rows: int) -> AnalyticsError:
    return AnalyticsError(f"lmt holds {rows} rows more than its OSTs have steps: some occur twice")


class _Grid:
    """The cumulative sums as arrays of OSTs and steps; both ends of an interval are found by index."""

    def __init__(self, steps: pa.Table, low: int, high: int) -> None:
        self.low, self.high = low, high
        moved = steps.column("bytes")
        osts = steps.column("ost").to_numpy()
        #: OST -> row of the arrays, -1 for none.
        self.row = np.full(int(osts.max()) + 2, -1, dtype=np.int64)
        self.row[osts] = 0
        present = self.row == 0
        self.row[present] = np.arange(present.sum())
        width = high - low + 2  # what was moved before the step `low + k` stands at k
        places = self.row[osts] * width + (steps.column("step").to_numpy() - low + 1)
        size = int(present.sum()) * width
        seen = np.zeros(size, dtype=bool)
        seen[places] = True
        if len(osts) > (different := int(np.count_nonzero(seen))):
            raise _twice(len(osts) - different)
        known = moved.is_valid().to_numpy()
        self.moved, self.known = np.zeros(size), np.zeros(size, dtype=np.int32)
        self.moved[places[known]] = moved.drop_null().to_numpy()
        self.known[places[known]] = 1
        for sums in (self.moved, self.known):
            np.cumsum(sums.reshape(-1, width), axis=1, out=sums.reshape(-1, width))
        self.width = width

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the pairs of a record batch with their traffic, as an Arrow table."""
        import pyarrow as pa

        pairs = pa.Table.from_batches([batch])
        ost, first, last = (pairs.column(name).to_numpy() for name in ("ost", "first", "last"))
        row = self.row[np.where((ost >= 0) & (ost < len(self.row)), ost, -1)]
        begin, end = np.maximum(first, self.low) - self.low, np.minimum(last, self.high) + 1 - self.low
        inside = (row >= 0) & (begin < end)
        start, stop = (np.where(inside, row * self.width + at, 0) for at in (begin, end))
        known = self.known[stop] - self.known[start]
        traffic = self.moved[stop] - self.moved[start]
        own = pairs.column("own").to_numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            share = own / traffic
        blank = np.isnan(own) | (known == 0)
        results = [
            pairs.column("own"),
            pa.array(traffic, mask=known == 0),
            pa.array(share, mask=blank | (traffic == 0)),
            pa.array(known / (last - first + 1)),
        ]
        kept = pairs.select(list(_PAIR))
        for name, column in zip(_RESULTS, results, strict=True):
            kept = kept.append_column(name, column)
        return kept


def _summed(steps: ir.Table) -> ir.Table:
    """Return the cumulative sums as a query: for engines outside this process, and for data that are too large."""
    import ibis

    window = ibis.cumulative_window(group_by=steps.ost, order_by=steps.step)
    moved, known = steps.bytes.coalesce(0.0), steps.bytes.notnull().cast("int64")
    sums = steps.select(
        "ost", "step", moved=moved, one=known, after=moved.sum().over(window), known_after=known.sum().over(window)
    )
    return sums.select(
        "ost", "step", "after", "known_after", before=sums.after - sums.moved, known_before=sums.known_after - sums.one
    )


def _filled(steps: ir.Table, low: int, high: int) -> ir.Table:
    """Return the steps with a row, of NULL, for each one that is missing between the first and the last of all."""
    import ibis

    numbers = ibis.range(low, high + 1).unnest().name("step").as_table()
    both = steps.select("ost").distinct().cross_join(numbers.select(grid=numbers.step.cast("int64")))
    # Two projections: Ibis would merge a single one with the next join.
    every = both.select("ost", "grid").select("ost", step="grid")
    return join(every, steps, ["ost", "step"], "left", "lmt")


def _looked_up(pairs: ir.Table, sums: ir.Table, low: int, high: int) -> ir.Table:
    """Join the pairs with the sums at their first and at their last step."""
    import ibis

    inside = pairs.mutate(
        from_step=ibis.greatest(pairs["first"], ibis.literal(low, "int64")),
        to_step=ibis.least(pairs["last"], ibis.literal(high, "int64")),
    )
    begin = sums.select("ost", "before", "known_before", from_step="step")
    end = sums.select("ost", "after", "known_after", to_step="step")
    both = join(inside, begin, ["ost", "from_step"], "left", "begin")
    both = join(both, end, ["ost", "to_step"], "left", "end")
    known = (both.from_step <= both.to_step).ifelse(both.known_after - both.known_before, 0).coalesce(0)
    traffic = (known > 0).ifelse(both.after - both.before, None)
    return both.select(
        "job_id",
        "log_id",
        "file_id",
        "ost",
        "own",
        traffic=traffic,
        share=both.own / traffic.nullif(0.0),
        coverage=known / (both["last"] - both["first"] + 1),
    )
