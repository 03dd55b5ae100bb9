"""Runs of real programs under the tracer: each counted call, and the Darshan log that the calls are reduced to."""

from __future__ import annotations

import pathlib
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

from mpiio_ext.pioneer.darshan import convert
from mpiio_ext.pioneer.darshan.calls import Module
from mpiio_ext.pioneer.darshan.meanings import Kind
from mpiio_ext.pioneer.darshan.records import Calls
from support.traced_truth import CALL, CLOSE, LAYERS, OPEN, READ, STAT, SYNC, WRITE, Traced

#: Operation of each role; every other call is one of metadata.
_OPERATIONS = {
    Kind.OPEN: OPEN,
    Kind.REOPEN: OPEN,
    Kind.READ: READ,
    Kind.WRITE: WRITE,
    Kind.SYNC: SYNC,
    Kind.META: STAT,
    Kind.CLOSE: CLOSE,
}


def reduced(traces: pathlib.Path, log: pathlib.Path, *, dxt: bool = False) -> Traced:
    """Write the log of a run from its traces; return the calls that the log counts."""
    found: list[tuple[Module, str, Calls]] = []
    add, begin = Module.add, []

    def noted(self: Module, batch: pa.RecordBatch, origin_ns: int) -> Calls:
        counted = add(self, batch, origin_ns)
        found.append((self, self.records.layout.module, counted))
        return counted

    def write(path: pathlib.Path, job: Any, *more: Any) -> None:
        begin.append(job)
        convert_write(path, job, *more)

    convert_write = convert.write
    of_rank: dict[int, int] = {}
    rank_of = convert._rank_of

    def known(*arguments: Any, **more: Any) -> Any:
        one = rank_of(*arguments, **more)
        of_rank.update((id(module), arguments[1]) for module in one.modules.values())
        return one

    with (
        mock.patch.object(Module, "add", noted),
        mock.patch.object(convert, "write", write),
        mock.patch.object(convert, "_rank_of", known),
    ):
        convert.convert(traces, log, dxt=dxt)
    (job,) = begin
    numbers: dict[str, int] = {}
    parts = []
    for module, layer, counted in found:
        names = [numbers.setdefault(name, len(numbers)) for name in module.records.names]
        timed = np.isin(counted.kind, list(_OPERATIONS))
        part = np.zeros(int(timed.sum()), CALL)
        part["rank"], part["layer"] = of_rank[id(module)], LAYERS.index(layer)
        part["op"] = [_OPERATIONS[Kind(kind)] for kind in counted.kind[timed].tolist()]
        part["file"] = np.array(names, np.int64)[counted.record[timed]] if len(names) else 0
        part["start"], part["end"], part["bytes"] = counted.start[timed], counted.end[timed], counted.size[timed]
        parts.append(part)
    return Traced(
        processes=job.processes,
        run_ns=job.end_ns - job.start_ns,
        names=tuple(numbers),
        calls=np.concatenate(parts) if parts else np.zeros(0, CALL),
    )
