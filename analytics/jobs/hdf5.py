"""Job tables in HDF5: rows, notes, and the series of the servers.

Form. A dataset a column in ``/summary`` and ``/notes``, whose attributes say unit, meaning, and which value stands for
NULL; and ``/slices/JOB/LOG/SERIES``, steps × servers, with unit, step and begin as attributes. Its attribute
``servers`` names the dataset in ``/servers`` with their names, one for all series of the same servers. In front (HDF5's
user block) stands the checksum of all that follows. It is compared before the HDF5 library, which a damaged file can
crash, sees the file.

Where rows are added the slices of other logs are copied as they lie there, and neither read nor compressed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mpiio_ext.analytics.errors import HistoryError
from mpiio_ext.analytics.jobs.merging import merged
from mpiio_ext.analytics.jobs.table import ID, LOG_ID, Jobs, Slice, completed
from mpiio_ext.analytics.tools.series import Series
from mpiio_ext.common.extras import needing

with needing("hdf5", "an HDF5 file"):
    import h5py

_NO_INT = np.iinfo(np.int64).min
_NO_TEXT = "\\N"

#: Values that a dataset may have; a damaged shape needs more than memory has.
_MOST_VALUES = 100_000_000


def _checked(dataset: h5py.Dataset) -> h5py.Dataset:
    """Return a dataset whose shape can be true."""
    if dataset.size > _MOST_VALUES:
        raise HistoryError(f"{dataset.name} has a shape of {dataset.shape}, which is damaged")
    return dataset


def _put_table(group: h5py.Group, table: pa.Table) -> None:
    for field in table.schema:
        if pa.types.is_string(field.type):
            null: Any = _NO_TEXT
            kind: Any = h5py.string_dtype()
            data = np.array(table[field.name].fill_null(null).to_pylist(), dtype=object)
        else:
            null, kind = (_NO_INT, np.int64) if pa.types.is_integer(field.type) else (np.nan, np.float64)
            data = table[field.name].cast(pa.from_numpy_dtype(kind)).fill_null(null).to_numpy()
        dataset = group.create_dataset(field.name, data=data, dtype=kind)
        for name, text in (field.metadata or {}).items():
            dataset.attrs[name.decode()] = text.decode()
        dataset.attrs["null"] = null


def _get_table(group: h5py.Group) -> pa.Table:
    import h5py

    columns: dict[str, pa.Array] = {}
    for name in group:
        dataset = _checked(group[name])
        # Not the attribute `null`, which is for others: of a text it lies where a damaged file can crash HDF5.
        if h5py.check_string_dtype(dataset.dtype) is not None:
            columns[name] = pa.array(
                [None if value == _NO_TEXT else value for value in dataset.asstr()[()].tolist()], pa.string()
            )
        else:
            values = dataset[()]
            columns[name] = pa.array(values, mask=values == _NO_INT if values.dtype.kind == "i" else np.isnan(values))
    if len({len(values) for values in columns.values()}) > 1:
        raise HistoryError(f"its columns of {group.name} have different lengths")
    return pa.table(columns)


def _put_series(file: h5py.File, group: h5py.Group, name: str, series: Series) -> None:
    data = (
        group.create_dataset(name, data=series.values, compression="gzip", shuffle=True)
        if series.values.size
        else (group.create_dataset(name, data=series.values))
    )
    data.attrs["quantity"], data.attrs["unit"], data.attrs["level"] = series.quantity, series.unit, series.level
    data.attrs["step_s"], data.attrs["first"] = series.step_s, series.first
    data.attrs["servers"] = _put_names(file.require_group("servers"), series.names)


def _put_names(group: h5py.Group, names: Sequence[str]) -> str:
    """Return the name of the dataset with these names, which is made if it is missing."""
    key = hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]
    if key not in group:
        group.create_dataset(key, data=np.array(names, dtype=object), dtype=h5py.string_dtype())
    return key


def _get_series(data: h5py.Dataset) -> Series:
    names = _checked(data.file["servers"][data.attrs["servers"]]).asstr()[()].tolist()
    return Series(
        quantity=str(data.attrs["quantity"]),
        unit=str(data.attrs["unit"]),
        level=bool(data.attrs["level"]),
        step_s=float(data.attrs["step_s"]),
        first=float(data.attrs["first"]),
        names=tuple(names),
        values=np.asarray(_checked(data)[()], dtype=np.float64),
    )


def _put_slices(file: h5py.File, jobs: Jobs) -> None:
    slices = file.require_group("slices")
    ids = {row[LOG_ID]: row[ID] for row in jobs.table.select([LOG_ID, ID]).to_pylist()} if jobs.slices else {}
    for log, found in jobs.slices.items():
        group = slices.require_group(str(ids[log])).create_group(str(log))
        for name, series in found.items():
            _put_series(file, group, name, series)


#: Bytes of the user block, and what it begins with.
_BLOCK, _SIGNED = 512, b"mpiio_ext summaries, SHA-256 of what follows 512 bytes: "


def _digest(path: Path) -> bytes:
    """Return the checksum of a file behind its user block."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        stream.seek(_BLOCK)
        while part := stream.read(1 << 20):
            digest.update(part)
    return digest.hexdigest().encode()


@contextlib.contextmanager
def _made(path: Path) -> Iterator[h5py.File]:
    """Give a new HDF5 file, which gets its checksum when it is closed."""
    with h5py.File(path, "w", userblock_size=_BLOCK) as file:
        yield file
    line = _SIGNED + _digest(path) + b"\n"
    with path.open("r+b") as stream:
        stream.write(line)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """Give an HDF5 file whose checksum is right."""
    with path.open("rb") as stream:
        block = stream.read(_BLOCK)
    if not block.startswith(_SIGNED):
        raise HistoryError("it does not begin with a checksum: another program wrote it, or it is damaged")
    if block[len(_SIGNED) :].split(b"\n")[0] != _digest(path):
        raise HistoryError("its checksum is wrong: it is damaged, or another program has changed it")
    with h5py.File(path, "r") as file:
        yield file


def write(jobs: Jobs, path: Path) -> None:
    """Write a table with its notes and slices into a new file."""
    with _made(path) as file:
        _put_tables(file, jobs)
        _put_slices(file, jobs)


#: Stands for a slice that stays in the file.
_STORED: Slice = {}


def add(jobs: Jobs, path: Path, target: Path) -> Jobs:
    """Write the contents of a file, and more summaries, into another, and return it without its earlier slices.

    These are copied as they lie in the file, compressed. A new file, since HDF5 does not use all space again.
    """
    with _opened(path) as before, _made(target) as file:
        stored = {int(log): job for job, logs in before["slices"].items() for log in logs}
        whole = merged(_get_tables(before, dict.fromkeys(stored, _STORED)), jobs)
        kept = {log for log, found in whole.slices.items() if found is _STORED}
        whole.slices = {log: found for log, found in whole.slices.items() if log not in kept}
        _put_tables(file, whole)
        if "servers" in before:
            before.copy("servers", file)
        slices = file.create_group("slices")
        for log in kept:
            before.copy(before["slices"][stored[log]][str(log)], slices.require_group(stored[log]))
        _put_slices(file, whole)
    return whole


def _slices(file: h5py.File, job_id: int | None) -> dict[int, Slice]:
    groups = file["slices"]
    jobs = list(groups) if job_id is None else [name for name in (str(job_id),) if name in groups]
    return {
        int(log): {name: _get_series(data) for name, data in group.items()}
        for job in jobs
        for log, group in groups[job].items()
    }


def _put_tables(file: h5py.File, jobs: Jobs) -> None:
    _put_table(file.create_group("summary"), jobs.table)
    _put_table(file.create_group("notes"), jobs.notes)


def _get_tables(file: h5py.File, slices: Mapping[int, Slice]) -> Jobs:
    return Jobs(completed(_get_table(file["summary"])), notes=_get_table(file["notes"]).to_pylist(), slices=slices)


def read(path: Path, slices: bool = True) -> Jobs:
    """Return the table of a file with its notes, and with or without its slices."""
    with _opened(path) as file:
        return _get_tables(file, _slices(file, None) if slices else {})


def slices_of(path: Path, job_id: int) -> dict[int, Slice]:
    """Return the slices of one job by log, without reading others."""
    with _opened(path) as file:
        return _slices(file, job_id)
