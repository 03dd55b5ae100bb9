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

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.readerprocess import is_hdf5
from mpiio_ext.analytics.sources.base import Period
from mpiio_ext.analytics.sources.matrices import DAMAGE, Matrices, open_matrices
from mpiio_ext.analytics.sources.records import LogError, Problems
from mpiio_ext.analytics.tables.schema import Column, Table

TIMESERIES = Table(
    "timeseries",
    "one row a step, a dataset of pytokio's HDF5 that no other table holds, and a column of it",
    (
        Column("time", "float64", "s since 1970 UTC", "start of the half-open step"),
        Column("step", "float64", "s", "its length"),
        Column("group", "string", "", "datatargets, dataservers, mdtargets, mdservers, fullness, failover"),
        Column("dataset", "string", "", "readbytes, readrates, cpuload, opens …"),
        Column("column", "string", "", "target or server: bb0001:nvme0n1, ngfsv468.nersc.gov:na07md01lun …"),
        Column("value", "float64", "", "in the unit; NULL if it was lost"),
        Column("unit", "string", "", "as stored: bytes, bytes/sec, ops, %, KiB …; empty if unknown"),
    ),
)

_GROUPS = ("datatargets", "dataservers", "mdtargets", "mdservers", "fullness", "failover")
#: Datasets that ``lmt`` and the tables beside it contain; of mdtargets those of counts.
_HELD = re.compile(
    r"datatargets/(read|write)(bytes|rates)|dataservers/(cpuload|memused)|mdservers/cpuload|"
    r"mdtargets/.*|fullness/(bytes|bytestotal|inodes|inodestotal)"
)


def _unit(name: str, stored: object) -> str:
    """Return the unit of a dataset: the stored one, else that of its name in pytokio's schema."""
    text = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored or "")
    if text and text.lower() != "unknown":
        return text
    for ending, unit in (("oprates", "ops/sec"), ("ops", "ops"), ("bytes", "bytes")):
        if name.endswith(ending):
            return unit
    return "bytes/sec" if name in ("readrates", "writerates") else "%" if name.startswith("cpu") else ""


def _parts(matrices: Matrices, everything: bool) -> Iterator[pa.Table]:
    """Yield the rows of each dataset."""
    schema, file = TIMESERIES.schema(), matrices.file
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
            times, step, odd = matrices.grid(file[group]["timestamps"], group)
        except LogError as error:
            matrices.note(str(error))
            continue
        for name in names:
            try:
                columns = matrices.columns(file[group][name], odd)
                unit = _unit(name, file[group][name].attrs.get("units"))
            except (LogError, *DAMAGE) as error:
                matrices.note(f"{group}/{name} cannot be read: {str(error)[:120]}")
                continue
            for column, values in columns:
                texts = {"group": group, "dataset": name, "column": column, "unit": unit}
                arrays = {
                    "time": pa.array(times),
                    "step": pa.repeat(step, len(times)),
                    "value": pa.array(values, mask=np.isnan(values)),
                    **{key: pa.repeat(text, len(times)) for key, text in texts.items()},
                }
                yield pa.table([arrays[field.name] for field in schema], schema=schema)


def read_timeseries(path: Path, between: Period | None, problems: Problems, *, everything: bool) -> list[pa.Table]:
    """Return the time series of a file, a table a column; none for a file that is not pytokio's.

    Parameters
    ----------
    between : (float, float), optional
        Steps of this period (s since 1970 UTC), and some around it.
    problems : what cannot be read is added.
    everything : no other table holds a part of it.
    """
    if not is_hdf5(path):
        return []
    try:
        with open_matrices(path, between) as matrices:
            if "OSTReadGroup" in matrices.file or not any(name in matrices.file for name in _GROUPS):
                return []
            parts = list(_parts(matrices, everything))
    except (*DAMAGE, MemoryError) as error:
        problems.add(0, f"time series cannot be read: {error}", 0)
        return []
    if noted := matrices.noted():
        problems.add(0, noted, 0)
    return parts
