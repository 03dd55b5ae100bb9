"""User-defined functions of the values of one tuple: ``bin("workload", classify_workload, "bytes_written")``.

Problem. A Python function has to run inside an engine's query, where it must have a type before it has run, is called
for millions of rows, and must not be called with "absent" as if it were a number.

Algorithm. The engine hands over batches of columns as Arrow arrays. Rows with NULL in any of the columns are NULL in
the result, and the function is not called for them. Of one column every different value is computed once a batch;
`vectorized` functions get NumPy arrays of a whole batch. The type of the result is the caller's `type`, the function's
annotation, or what it returns for a sample of rows.

Guarantees. A function that raises, or returns something that is not of the type, ends the query with an error that
names the function and the values of the row. The function should be a pure one: it may be called again for a row.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query.groups import MARK, MARK_END, called

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import pyarrow as pa

_TYPES = {bool: "boolean", int: "int64", float: "float64", str: "string"}


def result_type(
    function: Callable[..., Any], given: str | None, sample: Callable[[], pa.Table], vectorized: bool
) -> dt.DataType:
    """Return the Ibis type of a function's results.

    Parameters
    ----------
    function : callable
    given : the caller's word.
    sample : gives an Arrow table with some rows of the columns.

    Raises
    ------
    AnalyticsError
        When the type cannot be found out.
    """
    import ibis

    if given is not None:
        try:
            return ibis.dtype(given)
        except Exception:
            raise AnalyticsError(f"'{given}' is no type; write int64, float64, string or boolean") from None
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # annotations that only hold for a type checker
        hints = {}
    if hints.get("return") in _TYPES:
        return ibis.dtype(_TYPES[hints["return"]])
    import pyarrow as pa

    rows = sample()
    try:
        found = _values(function, [column.combine_chunks() for column in rows.columns], rows.column_names, vectorized)
        kind = pa.array(found).type
    except _FunctionError as error:
        raise AnalyticsError(str(error)) from error.__cause__
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise AnalyticsError(f"function {called(function)} does not return values of one type: {error}") from error
    if pa.types.is_null(kind):
        raise AnalyticsError(
            f"the type of what function {called(function)} returns is not known: the first {rows.num_rows} rows give"
            " none; name it: type='int64', 'float64', 'string' or 'boolean'"
        )
    return ibis.expr.datatypes.DataType.from_pyarrow(kind)


class _FunctionError(AnalyticsError):
    """A user's function has raised."""


def batched(function: Callable[..., Any], names: Sequence[str], kind: Any, vectorized: bool) -> Callable[..., Any]:
    """Return `function` as one of Arrow arrays that gives an Arrow array of the Ibis type `kind`."""
    result = kind.to_pyarrow()
    names = list(names)

    def work(*columns: pa.Array | pa.ChunkedArray) -> pa.Array:
        import pyarrow as pa

        arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns]
        try:
            values = _values(function, arrays, names, vectorized)
        except _FunctionError as error:
            raise AnalyticsError(f"{MARK}{error}{MARK_END}") from error
        try:
            return values if isinstance(values, pa.Array) and values.type == result else pa.array(values, result)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            reason = _misfit(function, arrays, names, values, result, error)
            raise AnalyticsError(f"{MARK}{reason}{MARK_END}") from error

    return work


def _misfit(
    function: Callable[..., Any], arrays: Sequence[Any], names: Sequence[str], values: Any, kind: Any, error: Exception
) -> str:
    """Return the message for the first result that is not of the type."""
    import pyarrow as pa

    for at, value in enumerate(values):
        try:
            pa.array([value], kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            where = _row(names, [array[at].as_py() for array in arrays])
            return f"function {called(function)} returned {value!r} for {where}, no {kind}; name the type: type='…'"
    return f"function {called(function)}: {error}"


def _values(
    function: Callable[..., Any], arrays: Sequence[Any], names: Sequence[str], vectorized: bool
) -> list[object] | pa.Array:
    """Return the results, as a list or an Arrow array."""
    import pyarrow as pa

    if vectorized:
        return _vectorized(function, arrays, names)
    if len(arrays) == 1 and pa.types.is_primitive(arrays[0].type):
        encoded = arrays[0].dictionary_encode()
        found = [_call(function, names, (value,)) for value in encoded.dictionary.to_pylist()]
        return [None if at is None else found[at] for at in encoded.indices.to_pylist()]
    rows = zip(*(array.to_pylist() for array in arrays), strict=True)
    return [_call(function, names, row) for row in rows]


def _call(function: Callable[..., Any], names: Sequence[str], row: tuple[Any, ...]) -> object:
    if any(value is None for value in row):
        return None
    try:
        value = function(*row)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise _FunctionError(f"function {called(function)} failed for the row {_row(names, row)}: {reason}") from error
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


def _vectorized(function: Callable[..., Any], arrays: Sequence[pa.Array], names: Sequence[str]) -> pa.Array:
    """Call the function with the rows that have every value; the others are NULL."""
    import numpy as np
    import pyarrow as pa

    known = np.ones(len(arrays[0]), dtype=bool)
    for array in arrays:
        known &= array.is_valid().to_numpy(zero_copy_only=False)
    mask = pa.array(known)
    present = [array.filter(mask).to_numpy(zero_copy_only=False) for array in arrays]
    try:
        found = np.asarray(function(*present))
    except Exception as error:
        where = f"{int(known.sum())} rows of {', '.join(names)}"
        reason = f"{type(error).__name__}: {error}"
        raise _FunctionError(f"function {called(function)} failed for {where}: {reason}") from error
    if found.shape != (int(known.sum()),):
        raise _FunctionError(
            f"function {called(function)} returned {found.shape} for {int(known.sum())} rows; a vectorized function"
            " returns one value a row"
        )
    places = np.full(len(known), -1, dtype=np.int64)
    places[known] = np.arange(len(found))
    return pa.array(found).take(pa.array(places, mask=~known))


def _row(names: Sequence[str], row: Sequence[Any]) -> str:
    pairs: Mapping[str, Any] = dict(zip(names, row, strict=True))
    return ", ".join(f"{name}={value!r}" for name, value in pairs.items())
