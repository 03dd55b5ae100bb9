"""Time series of Prometheus: the answer to ``/api/v1/query_range`` (or ``/query``) as JSON, to rows of ``series``.

Problem. Much of a machine is watched by Prometheus; an answer has series with labels and values as texts.

Guarantees. A row is one value; ``text`` is the value as sent, ``value`` its number (NaN and infinities are values
there). Samples that are none are left out and named with the series they are in. An answer ``"status": "error"`` is an
error with Prometheus' own words. JSON that is cut is an error with the line at which it ends: no part of it can be
trusted to be whole.

Header: ``result_type`` (matrix, vector), ``warnings`` (list of str, as sent).

Source: Prometheus, HTTP API.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpiio_ext.analytics.connectors.sources.content import read_bytes, write_bytes
from mpiio_ext.analytics.connectors.sources.records import Problems, Records, SourceError, make_table
from mpiio_ext.analytics.tables.schema import Column, Table

if TYPE_CHECKING:
    from mpiio_ext.analytics.connectors.sources.registry import Head, Role

__all__ = ["MEANING", "NAME", "PATTERNS", "ROLE", "TABLES", "read", "read_json", "recognizes", "write"]

NAME = "prometheus"
MEANING = "time series of Prometheus: the JSON of query_range or query"
ROLE: Role = "series"
PATTERNS = ("*prometheus*.json", "*prometheus*.json.gz")

SERIES = Table(
    "series",
    "one row a value",
    (
        Column("time", "float64", "s since 1970 UTC", "of the sample"),
        Column("metric", "string", "", "label __name__; NULL of an expression, which has none"),
        Column("labels", "string", "", "the other labels: a JSON object, in the order of their names"),
        Column("value", "float64", "", "in the metric's unit, which its name ends with"),
        Column("text", "string", "", "the value as sent"),
    ),
)
TABLES = (SERIES,)

_VALUE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|NaN|[+-]?Inf")
_LATEST = 2**33
_ANSWER = re.compile(r'\s*\{\s*"status"\s*:\s*"(?:success|error)"')


def read_json(path: Path, problems: Problems) -> Any:
    """Return the JSON document in a file.

    Raises
    ------
    SourceError
        It is none: with the line at which it stops being one.
    """
    data = read_bytes(path, problems)
    try:
        return json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise SourceError(str(path), error.lineno, f"no JSON from column {error.colno}, or cut: {error.msg}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceError(str(path), line, "bytes that are no text") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; a thousand brackets
        raise SourceError(str(path), 1, f"no JSON that can be read: {error}") from error


def recognizes(head: Head) -> bool:
    """Return whether a text begins as an answer of Prometheus."""
    return _ANSWER.match(head.text) is not None


def _number(text: str) -> float:
    if not _VALUE.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no value")
    value = float(text)
    if math.isinf(value) and "Inf" not in text:
        raise ValueError(f"{text[:40]!r} is no value")
    return value


def _sample(item: Any) -> tuple[float, float, str]:
    """Return time, value and its text.

    Raises
    ------
    ValueError
        It is no sample.
    """
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[1], str):
        raise ValueError(f"{json.dumps(item)[:40]} is no [time, value]")
    time = item[0]
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not 0 <= time < _LATEST:
        raise ValueError(f"{json.dumps(time)[:40]} is no time")
    return float(time), _number(item[1]), item[1]


def _samples(series: Any) -> Iterator[Any]:
    if "values" in series:
        if not isinstance(series["values"], list):
            raise ValueError("its values are no list")
        yield from series["values"]
    elif "value" in series:
        yield series["value"]
    else:
        raise ValueError("it has no values (histograms are not read)")


def _series(number: int, series: Any, columns: dict[str, list[Any]], problems: Problems) -> None:
    """Add the values of one series."""
    try:
        labels = series["metric"] if isinstance(series, dict) else None
        if not isinstance(labels, dict) or not all(isinstance(text, str) for text in labels.values()):
            raise ValueError("its labels are no object of texts")
        name = labels.get("__name__")
        others = {key: labels[key] for key in sorted(labels) if key != "__name__"}
        text = json.dumps(others, ensure_ascii=False)
        text.encode()  # lone surrogates are no text
        (name or "").encode()
        for place, item in enumerate(_samples(series)):
            try:
                time, value, printed = _sample(item)
            except ValueError as error:
                problems.add(0, f"/data/result/{number}/values/{place}: {error}")
                continue
            for column, found in zip(columns.values(), (time, name, text, value, printed), strict=True):
                column.append(found)
    except (ValueError, KeyError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        problems.add(0, f"/data/result/{number}: {what}")


def read(path: Path, time_zone: str = "UTC") -> Records:  # noqa: ARG001  (its times are seconds since 1970)
    """Read an answer of Prometheus.

    Parameters
    ----------
    path : Path
    time_zone : str
        Not used.

    Raises
    ------
    SourceError
        It is no JSON, no answer of Prometheus, or one that says an error.
    """
    problems = Problems(str(path))
    document = read_json(path, problems)
    if not isinstance(document, dict) or document.get("status") not in ("success", "error"):
        raise SourceError(str(path), 0, 'no answer of Prometheus: no "status"')
    if document["status"] == "error":
        raise SourceError(str(path), 0, f"Prometheus says {document.get('errorType')}: {document.get('error')}")
    data = document.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind not in ("matrix", "vector") or not isinstance(result, list):
        raise SourceError(str(path), 0, f"a result of type {str(kind)[:20]!r}; matrix and vector are read")
    columns: dict[str, list[Any]] = {name: [] for name in SERIES.names()}
    for number, series in enumerate(result):
        _series(number, series, columns, problems)
    warnings = document.get("warnings")
    header = {"result_type": kind, "warnings": [str(item) for item in warnings] if isinstance(warnings, list) else []}
    tables = {"series": make_table(SERIES, columns)}
    return Records(source=NAME, path=str(path), tables=tables, header=header, problems=problems.all())


def write(records: Records, path: Path) -> None:
    """Write the series as Prometheus answers ``query_range``.

    Raises
    ------
    SourceError
        The file cannot be written.
    """
    matrix = records.header.get("result_type") != "vector"
    result: list[dict[str, Any]] = []
    last: tuple[Any, Any] | None = None
    for row in records.tables["series"].to_pylist():
        key = (row["metric"], row["labels"])
        sample = [row["time"], row["text"]]
        if key != last or not matrix:
            name = {} if row["metric"] is None else {"__name__": row["metric"]}
            result.append(
                {"metric": name | json.loads(row["labels"]), **({"values": []} if matrix else {"value": sample})}
            )
            last = key
        if matrix:
            result[-1]["values"].append(sample)
    document: dict[str, Any] = {"status": "success", "data": {"resultType": "matrix" if matrix else "vector",
                                                              "result": result}}  # fmt: skip
    if records.header.get("warnings"):
        document["warnings"] = records.header["warnings"]
    write_bytes(path, json.dumps(document, ensure_ascii=False).encode())
