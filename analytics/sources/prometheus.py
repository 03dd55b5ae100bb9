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
from typing import Any

from mpiio_ext.analytics.sources.base import File, Head, Parsed, Source
from mpiio_ext.analytics.sources.content import read_json
from mpiio_ext.analytics.sources.records import Problems, SourceError
from mpiio_ext.analytics.tables.schema import Column, Table

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

_VALUE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|NaN|[+-]?Inf")
_LATEST = 2**33
_ANSWER = re.compile(r'\s*\{\s*"status"\s*:\s*"(?:success|error)"')


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


class Prometheus(Source):
    """An answer of Prometheus."""

    NAME = "prometheus"
    MEANING = "time series of Prometheus: the JSON of query_range or query"
    ROLE = "series"
    PATTERNS = ("*prometheus*.json", "*prometheus*.json.gz")
    TABLES = (SERIES,)

    def recognizes(self, head: Head) -> bool:
        return _ANSWER.match(head.text) is not None

    def parse(self, file: File) -> Parsed:
        path, problems = file.path, file.problems
        document = read_json(path, problems)
        if not isinstance(document, dict) or document.get("status") not in ("success", "error"):
            raise SourceError(str(path), 0, 'no answer of Prometheus: no "status"')
        if document["status"] == "error":
            raise SourceError(str(path), 0, f"Prometheus answers {document.get('errorType')}: {document.get('error')}")
        data = document.get("data")
        result = data.get("result") if isinstance(data, dict) else None
        kind = data.get("resultType") if isinstance(data, dict) else None
        if kind not in ("matrix", "vector") or not isinstance(result, list):
            raise SourceError(str(path), 0, f"a result of type {str(kind)[:20]!r}; matrix and vector are read")
        columns: dict[str, list[Any]] = {name: [] for name in SERIES.names()}
        for number, series in enumerate(result):
            _series(number, series, columns, problems)
        warnings = document.get("warnings")
        lines = [str(item) for item in warnings] if isinstance(warnings, list) else []
        return {"series": columns}, {"result_type": kind, "warnings": lines}


SOURCE = Prometheus()
