"""Columns of CSV as the servers' traffic: which column has it, and in which unit.

Problem. Anybody's table has names of its own, and a column may be amounts, rates or counters.

Algorithm. Of each quantity the first known metric counts (:data:`METRICS`), or the first of those that the site names
(``metrics`` of its files). Units in brackets are converted; a rate counts for the step that it is of. A metric that
ends in ``_total`` is a counter. The component is called like the file.

Guarantees. A unit that is not known is named, and its metric not used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.rows import Rows, amounts, cut, numbers, step_of
from mpiio_ext.common.units import known

#: Metrics that are taken for bytes that servers moved, and for their load in %, in this order.
METRICS: dict[str, tuple[str, ...]] = {
    "bytes_read": ("lustre_read_bytes_total", "bytes_read", "read_bytes", "node_disk_read_bytes_total"),
    "bytes_written": ("lustre_write_bytes_total", "bytes_written", "write_bytes", "node_disk_written_bytes_total"),
    "cpu": ("cpu_percent", "cpu"),
}
#: Names that may be counts of requests as well: of bytes where their unit says so.
_WITH_UNIT: dict[str, tuple[str, ...]] = {"bytes_read": ("read",), "bytes_written": ("written", "write"), "cpu": ()}
_KEYS = {"bytes_read": ("read", ""), "bytes_written": ("written", ""), "cpu": ("cpu", "oss")}
_NAMED = re.compile(r"(.*?)\s*\[([^\[\]]*)\]")


def factor(quantity: str, unit: str, step_s: float, counter: bool = False) -> float | None:
    """Return the factors that turn values into bytes of a step, or % of a load.

    Parameters
    ----------
    quantity : bytes_read, bytes_written or cpu.
    unit : as it stands in brackets; empty: bytes, or %.
    step_s : length of a step, in seconds: a rate is of all of it.
    counter : the values only grow; a rate does not.

    Returns
    -------
    float or None
        None: no such unit of this quantity is known.
    """
    text = unit.strip()
    if quantity == "cpu":
        return 1.0 if text in ("", "%") else None
    by, base = known().get(re.sub(r"^bytes?", "b", text.lower() or "b"), (0, ""))
    if base == "B":
        return float(by)
    return float(by) * step_s if base == "B/s" and not counter else None


def _wanted(records: Records) -> dict[str, tuple[str, str | None]]:
    """Return the metric of each quantity that the records have, and its unit if the site gives it."""
    table = records.tables["series"]
    there = {name: str(unit or "") for name, unit in _pairs(table)}
    of_site: Mapping[str, Sequence[str]] = records.header.get("metrics") or {}
    found: dict[str, tuple[str, str | None]] = {}
    for quantity, metrics in METRICS.items():
        if quantity in of_site:
            given = [
                (match[1], match[2]) if (match := _NAMED.fullmatch(name)) else (name, None)
                for name in of_site[quantity]
            ]
        else:
            more = [name for name in _WITH_UNIT[quantity] if there.get(name) and factor(quantity, there[name], 1.0)]
            given = [(name, None) for name in (*metrics, *more)]
        metric = next((each for each in given if each[0] in there), None)
        if metric is not None:
            found[quantity] = metric
    return found


def _pairs(table: pa.Table) -> Iterator[tuple[str, str | None]]:
    """Yield each metric with one of its units."""
    if "unit" not in table.column_names:
        yield from ((name, "") for name in table["metric"].unique().to_pylist() if name is not None)
        return
    for row in table.select(["metric", "unit"]).group_by(["metric", "unit"]).aggregate([]).to_pylist():
        if row["metric"] is not None:
            yield row["metric"], row["unit"]


def unknown(records: Records) -> str:
    """Return that no metric of a record is known, and which there are; empty if one is known."""
    if _wanted(records):
        return ""
    there = [f"{name} [{unit}]" if unit else name for name, unit in sorted(_pairs(records.tables["series"]))]
    more = f" and {len(there) - 4:,} more" if len(there) > 4 else ""
    return (
        f"{records.path}: no known metric name (there are {', '.join(there[:4]) or 'none'}{more}); name in site.json, "
        'as metrics of its files, bytes_read, bytes_written or cpu, as {"bytes_read": "NAME [B/s]"}'
    )


def of_series(
    records: Records,
    period: Period,
    systems: Collection[str] | None = None,  # noqa: ARG001  (it says no file system)
) -> Iterator[tuple[tuple[str, str], Rows] | str]:
    """Yield the rows of each quantity in a record of series, and its mistake."""
    table = records.tables["series"]
    for quantity, (metric, of_site) in _wanted(records).items():
        rows = table.filter(pc.equal(table["metric"], metric))
        step = step_of(numbers(rows, "time"))
        if step is None:
            continue
        rows = cut(rows, period, step, 2 * step)
        counter = metric.endswith("_total")
        units = [of_site or ""] * rows.num_rows
        if of_site is None and "unit" in rows.column_names:
            units = [unit or "" for unit in rows["unit"].to_pylist()]
        factors = {unit: factor(quantity, unit, step, counter) for unit in dict.fromkeys(units)}
        bad = [unit for unit, by in factors.items() if by is None]
        if bad:
            wanted = "%" if quantity == "cpu" else "B, kB, KiB, MB …" + ("" if counter else ", or these with /s")
            yield f"{records.path}: {metric} [{bad[0]}] is not used: the unit is not known; known are {wanted}"
            continue
        names = [records.path] * rows.num_rows
        times = numbers(rows, "time")
        values = numbers(rows, "value") * np.array([factors[unit] for unit in units], dtype=np.float64)
        if counter:
            yield _KEYS[quantity], amounts(times, names, values, step)
            continue
        begins = times - step if records.header.get("stamps") == "end" else times
        unit = "%" if quantity == "cpu" else "B"
        yield _KEYS[quantity], Rows(begins, names, values, step, unit, level=quantity == "cpu")
