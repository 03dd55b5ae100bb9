"""User-defined functions over groups of tuples: from sorted batches to frames, and from results to a table.

Problem. ``group("job_id", calculate_ost_count)`` calls a Python function with all tuples of each job. Which columns its
results have is only known when it has run; groups may be many, and one may lie across several batches.

Algorithm. DuckDB streams the rows ordered by the keys. The rows of a group are consecutive, so that one pass separates
the groups, with at most a batch and the current group in memory. Spark shuffles groups to its executors, which call the
function and send back pickled results. Either way the results are put together here, by :func:`assemble`.

Guarantees. The function sees a pandas frame with nullable types (absent is ``<NA>``), the keys among its columns; rows
of a group are in no particular order. A NULL key is a group of its own. An exception names the function and the group.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import results

if TYPE_CHECKING:
    import pyarrow as pa

#: A user's function of a group: a pandas frame in; a scalar, a mapping, a sequence of mappings or a frame out.
Function = Callable[[Any], Any]
#: What stands around the message of a user's function's failure on its way through an engine.
MARK, MARK_END = "[[mpiio_ext: ", " :mpiio_ext]]"


@dataclasses.dataclass
class Results:
    """Keys and the function's results, group by group; `kinds` are the Arrow types of the keys."""

    keys: list[tuple[Any, ...]]
    values: list[Any]


def call(function: Function, frame: Any, names: Sequence[str], key: tuple[Any, ...]) -> object:
    """Call a user's function with one group.

    Raises
    ------
    AnalyticsError
        That names the function, the group and the exception.
    """
    try:
        return function(frame)
    except Exception as error:
        group = ", ".join(f"{name}={value!r}" for name, value in zip(names, key, strict=True))
        raise AnalyticsError(
            f"{MARK}function {called(function)} failed for the group {group}"
            f" ({len(frame)} rows): {type(error).__name__}: {error}{MARK_END}"
        ) from error


@contextlib.contextmanager
def marked() -> Iterator[None]:
    """Mark the message of an exception, so that it comes back from an executor and not the executor's stack."""
    try:
        yield
    except Exception as error:
        raise AnalyticsError(f"{MARK}{error}{MARK_END}") from error


def called(function: Any) -> str:
    """Return the name of a user's function, for messages and columns."""
    return str(getattr(function, "__name__", type(function).__name__))


def over_batches(batches: Iterable[pa.RecordBatch], keys: Sequence[str], function: Function) -> Results:
    """Call `function` for each group of batches that are ordered by `keys`."""
    found = Results([], [])
    try:
        for key, frame in _frames(batches, keys):
            found.keys.append(key)
            found.values.append(call(function, frame, keys, key))
    except AnalyticsError as error:
        text = str(error).removeprefix(MARK).removesuffix(MARK_END)
        raise AnalyticsError(text) from error.__cause__
    return found


def _frames(batches: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield (key, frame) of each group; the last group of a batch waits for the next batch."""
    import pyarrow as pa

    rest: pa.Table | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        table = pa.Table.from_batches([batch])
        if rest is not None:
            table = pa.concat_tables([rest, table])
        starts = _starts(table, keys)
        yield from _cut(table.slice(0, starts[-1]), starts[:-1], keys)
        rest = table.slice(starts[-1])
    if rest is not None:
        yield from _cut(rest, [0], keys)


def _starts(table: pa.Table, keys: Sequence[str]) -> list[int]:
    """Return the rows at which a group begins; NULL equals NULL and no value."""
    import numpy as np
    import pyarrow.compute as pc

    changed = np.zeros(table.num_rows, dtype=bool)
    changed[:1] = True
    for key in keys:
        values = table.column(key).combine_chunks()
        left, right = values[:-1], values[1:]
        differs = pc.fill_null(pc.not_equal(left, right), False)
        gaps = pc.not_equal(pc.is_null(left), pc.is_null(right))
        changed[1:] |= pc.or_(differs, gaps).to_numpy(zero_copy_only=False)
    return [int(start) for start in np.flatnonzero(changed)]


def _cut(table: pa.Table, starts: Sequence[int], keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not starts:
        return
    import pyarrow as pa

    frame = results.to_pandas(table)
    firsts = table.select(list(keys)).take(pa.array(starts))
    values = zip(*(firsts.column(key).to_pylist() for key in keys), strict=True)
    ends = [*starts[1:], table.num_rows]
    for key, start, end in zip(values, starts, ends, strict=True):
        yield key, frame.iloc[start:end].reset_index(drop=True)


def in_executor(keys: Sequence[str], function: Function) -> Callable[[pa.Table], pa.Table]:
    """Return the function that Spark's executors call with the Arrow table of one group."""
    by_value(function)
    names = list(keys)

    def work(table: pa.Table) -> pa.Table:
        import pyarrow as pa

        key = tuple(table.column(name)[0].as_py() for name in names)
        value = call(function, results.to_pandas(table), names, key)
        return pa.table({"results": pa.array([pickle.dumps((key, value))], pa.binary())})

    return work


def collected(table: pa.Table) -> Results:
    """Return the results of the executors, in order of the keys, NULL last."""
    pairs = [pickle.loads(value) for value in table.column("results").to_pylist()]
    pairs.sort(key=lambda pair: tuple((value is None, 0 if value is None else value) for value in pair[0]))
    return Results([key for key, _ in pairs], [value for _, value in pairs])


def by_value(function: Any) -> None:
    """Send the module of a user's function along with it, unless workers can import it by themselves."""
    import sys

    from pyspark import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", None) or "")
    path = getattr(module, "__file__", None) or ""
    installed = "site-packages" in path or "dist-packages" in path or path.startswith(sys.base_prefix + "/lib")
    ours = module is not None and module.__name__.split(".")[0] in ("mpiio_ext", "__main__")
    if module is not None and path and not installed and not ours:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def assemble(found: Results, keys: pa.Schema, column: str) -> pa.Table:
    """Return the results as a table: the keys' columns, then the results' columns.

    A scalar becomes the column `column`, a mapping one column for each of its entries, a sequence of mappings or a
    pandas frame several rows. ``None`` is NULL.

    Raises
    ------
    AnalyticsError
        When the results of different groups do not fit in one column.
    """
    import pyarrow as pa

    rows: list[tuple[tuple[Any, ...], Mapping[str, Any]]] = []
    for key, value in zip(found.keys, found.values, strict=True):
        rows.extend((key, row) for row in _rows(value, column))
    names: dict[str, None] = dict.fromkeys(name for _, row in rows for name in row)
    if not names:
        names[column] = None
    arrays = {field.name: pa.array([key[at] for key, _ in rows], field.type) for at, field in enumerate(keys)}
    for name in names:
        if name in arrays:  # a mapping may repeat the key
            continue
        values = [_plain(row.get(name)) for _, row in rows]
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            kinds = sorted({type(value).__name__ for value in values if value is not None})
            raise AnalyticsError(
                f"the results for '{name}' do not fit in one column ({', '.join(kinds)}): {error};"
                " let the function return one type for all groups"
            ) from error
        if pa.types.is_null(arrays[name].type):
            arrays[name] = arrays[name].cast(pa.float64())
    return pa.table(arrays)


def _rows(value: Any, column: str) -> Sequence[Mapping[str, Any]]:
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a pandas frame
        return [dict(row) for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, (list, tuple)) and value and all(isinstance(row, Mapping) for row in value):
        return list(value)
    return [{column: value}]


def _plain(value: Any) -> object:
    """Return NumPy's and pandas' scalars as Python's; pandas' NA is None."""
    import pandas as pd

    if value is pd.NA or value is pd.NaT:
        return None
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
