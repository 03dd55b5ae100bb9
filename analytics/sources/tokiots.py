"""Time series of pytokio's HDF5, of any monitoring tool and step, to ``timeseries``.

Problem. pytokio archives LMT, collectd (burst buffers) and mmperfmon (GPFS) in one form: groups of servers and targets
with matrices of (time, column), whose names, units and stamps stand beside them. Only LMT's have OSTs in steps of 5 s,
which ``lmt`` and the tables beside it hold.

Algorithm. A group's stamps are a grid; its step is the median of their distances. Of LMT's files those datasets are
taken that no other table holds; of all others everything.

Guarantees. Values are as stored, and so are units; without one it is the unit of the schema (version 1). What pytokio
marks as lost (-0.0), what cannot be read, and steps whose stamp is off the grid are NULL.

Source: pytokio, connectors.hdf5 (schema), archive_collectdes, archive_mmperfmon; TOKIO, Section "Data integration".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.sources.lmtcut import cut
from mpiio_ext.analytics.sources.lmthdf5 import DAMAGE, Hdf5Problems, tokio_columns
from mpiio_ext.analytics.sources.lmtsteps import LmtError
from mpiio_ext.analytics.sources.records import Problems
from mpiio_ext.analytics.tables.arrays import Flags, Numbers
from mpiio_ext.analytics.tables.schema import Column, Table

if TYPE_CHECKING:
    import h5py

TIMESERIES = Table(
    "timeseries",
    "one row a step, a dataset of pytokio's HDF5 that no other table holds, and a column of it",
    (
        Column("time", "float64", "s since 1970 UTC", "start of the half-open step"),
        Column("step", "float64", "s", "its length"),
        Column("group", "string", "", "datatargets, dataservers, mdtargets, mdservers, fullness, failover"),
        Column("dataset", "string", "", "readbytes, readrates, cpuload, opens …"),
        Column("column", "string", "", "target or server: bb0001:nvme0n1, ngfsv468.nersc.gov:na07md01lun …"),
        Column("value", "float64", "", "in the unit; NULL where it was lost"),
        Column("unit", "string", "", "as stored: bytes, bytes/sec, ops, %, KiB …; empty where nobody says it"),
    ),
)

_GROUPS = ("datatargets", "dataservers", "mdtargets", "mdservers", "fullness", "failover")
#: Datasets that ``lmt`` and the tables beside it hold; of mdtargets those of counts.
_HELD = re.compile(
    r"datatargets/(read|write)(bytes|rates)|dataservers/(cpuload|memused)|mdservers/cpuload|"
    r"mdtargets/.*|fullness/(bytes|bytestotal|inodes|inodestotal)"
)
_MOST_TIMES, _ON_GRID = 10_000_000, 0.9


def _unit(name: str, stored: object) -> str:
    """Return the unit of a dataset: the stored one, else that of its name in pytokio's schema."""
    text = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored or "")
    if text and text.lower() != "unknown":
        return text
    for ending, unit in (("oprates", "ops/sec"), ("ops", "ops"), ("bytes", "bytes")):
        if name.endswith(ending):
            return unit
    return "bytes/sec" if name in ("readrates", "writerates") else "%" if name.startswith("cpu") else ""


def _grid(data: h5py.Dataset, name: str) -> tuple[Numbers, float, Flags]:
    """Return the begins of the steps, their length, and which stamps are off the grid.

    Raises
    ------
    LmtError
        They are no grid.
    """
    if len(data.shape) != 1 or not 2 <= data.shape[0] <= _MOST_TIMES:
        raise LmtError(f"{name} has {data.shape} time stamps")
    stamps = np.asarray(data[()], dtype=np.float64)
    step = float(np.nanmedian(np.diff(stamps)))
    places = step * np.arange(len(stamps), dtype=np.float64)
    base = float(np.nanmedian(stamps - places))
    odd = ~(np.abs(stamps - places - base) < step / 10)
    if not step > 0 or not np.isfinite(base) or np.count_nonzero(~odd) < _ON_GRID * len(stamps):
        raise LmtError(f"the time stamps of {name} are no steps of one length")
    return base + places, step, odd


def _parts(file: h5py.File, everything: bool, problems: Hdf5Problems) -> Iterator[pa.Table]:
    """Yield the rows of each dataset."""
    schema = TIMESERIES.schema()
    for group in (name for name in _GROUPS if name in file and "timestamps" in file[name]):
        names = [
            name
            for name in sorted(file[group])
            if name != "timestamps"
            and hasattr(file[group][name], "shape")
            and (everything or not _HELD.fullmatch(f"{group}/{name}"))
        ]
        if not names:
            continue
        try:
            times, step, odd = _grid(file[group]["timestamps"], group)
        except LmtError as error:
            problems.add(str(error))
            continue
        for name in names:
            try:
                columns, values = tokio_columns(file[group], name, odd, problems)
                unit = _unit(name, file[group][name].attrs.get("units"))
            except (LmtError, *DAMAGE) as error:
                problems.add(f"{group}/{name} cannot be read: {str(error)[:120]}")
                continue
            for at, column in enumerate(columns):
                texts = {"group": group, "dataset": name, "column": column, "unit": unit}
                if column:
                    arrays = {
                        "time": pa.array(times),
                        "step": pa.repeat(step, len(times)),
                        "value": pa.array(values[:, at], mask=np.isnan(values[:, at])),
                        **{key: pa.repeat(text, len(times)) for key, text in texts.items()},
                    }
                    yield pa.table([arrays[field.name] for field in schema], schema=schema)


def read_timeseries(
    path: Path, between: tuple[float, float] | None, problems: Problems, *, everything: bool
) -> pa.Table | None:
    """Return the time series of a file; None of one that is not pytokio's.

    Parameters
    ----------
    path : Path
    between : (float, float), optional
        Steps of this period (s since 1970 UTC), and some around it.
    problems : what cannot be read is added.
    everything : no other table holds a part of it.
    """
    import h5py

    noted = Hdf5Problems()
    try:
        with h5py.File(path, "r") as opened:
            file = cut(opened, between)
            if "OSTReadGroup" in file or not any(name in file for name in _GROUPS):
                return None
            parts = list(_parts(file, everything, noted))
    except (*DAMAGE, MemoryError) as error:
        problems.add(0, f"time series cannot be read: {error}", 0)
        return None
    if noted.lines:
        problems.add(0, str(noted), 0)
    return pa.concat_tables([TIMESERIES.schema().empty_table(), *parts])
