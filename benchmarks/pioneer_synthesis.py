"""How long phase D takes: synthesis of a long path, and the proof of its hard dependencies.

Problem.   The target is 1 million operations in 5 s. Anyone should be able to see what a machine needs, and for what.
Path.      A program of two groups that writes checkpoints: each has a shared file with collective accesses and private
           ones with many small writes, seeks and reads, in turn, and a log that the root appends to between. Nothing
           is drawn at random, so that all machines do the same.
Result.    Processor time of each step in this process, the least of the repetitions; the status is 1 where the target
           is missed.

    build/openmpi/venv/bin/python benchmarks/pioneer_synthesis.py [--operations 1430000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import mpiio_ext  # noqa: F401  (before anything that loads MPI)
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.pioneer.synthesis import find_violations, synthesize

TARGET_S, TARGET_OPERATIONS = 5.0, 1_000_000

#: Of a private file: name, offset and size of one turn, in bytes; the offset goes on by `_STEP`.
_TURN = (("lseek", 0, None), ("write", 0, 4096), ("pwrite", 4096, 512), ("pread", 0, 64))
_STEP = 4608
_TURNS, _FILES, _COLLECTIVES = 100, 8, 64


def _checkpoint(number: int) -> list[tuple[str, str, str, int | None, int | None, int, str | None]]:
    """Return the operations of one checkpoint: name, layer, file, offset, size, groups, extra."""
    shared = f"ckpt.{number:06}"
    rows: list[Any] = [("stat", "posix", shared, None, None, 3, None),
                       ("MPI_File_open", "mpiio", shared, None, None, 3, '{"amode":9,"comm":"world"}')]  # fmt: skip
    rows += [("MPI_File_write_at_all", "mpiio", shared, at << 20, 1 << 20, 3, None) for at in range(_COLLECTIVES)]
    rows.append(("MPI_File_close", "mpiio", shared, None, None, 3, None))
    for part in range(_FILES):
        own = f"part.{number:06}.{part}.{{rank:04}}"
        rows.append(("open", "posix", own, None, None, 3, '{"flags":578}'))
        rows += [(name, "posix", own, at + turn * _STEP, size, 3, '{"whence":0}' if name == "lseek" else None)
                 for turn in range(_TURNS) for name, at, size in _TURN]  # fmt: skip
        rows.append(("close", "posix", own, None, None, 3, None))
    return [*rows, ("write", "posix", "log", 80 * number, 80, 1, None), ("fsync", "posix", "log", None, None, 1, None)]


def made(operations: int) -> WorkloadPath:
    """Return a path of about so many operations."""
    rows: list[Any] = [("open", "posix", "log", None, None, 1, '{"flags":1025}')]
    number = 0
    while len(rows) < operations - 1:
        rows += _checkpoint(number)
        number += 1
    rows.append(("close", "posix", "log", None, None, 1, None))
    name, layer, file, offset, size, groups, extra = zip(*rows, strict=True)
    mask = np.array(groups)
    owner = np.where(mask == 1, "root", np.where([item.startswith("ckpt") for item in file], "shared", "private"))
    schema = WorkloadPath.schema(2)
    columns: dict[str, Any] = {
        "id": np.arange(len(rows)), "operation": name, "file": file, "owner": owner, "groups": mask,
        "session": pa.nulls(len(rows), pa.int64()), "layer": layer, "extra": pa.array(extra, pa.string()),
    }  # fmt: skip
    noise = np.arange(len(rows)) * 7919 % 1009
    for group in range(2):
        absent = mask >> group & 1 == 0
        columns[f"offset_{group}"] = pa.array(offset, pa.int64())
        columns[f"size_{group}"] = pa.array(size, pa.int64())
        columns[f"duration_{group}"] = pa.array(500 + noise, mask=absent)
        columns[f"slack_{group}"] = pa.array(200 + noise[::-1], mask=absent)
    kinds = {field.name: pa.string() if pa.types.is_dictionary(field.type) else field.type for field in schema}
    table = pa.table({field: pa.array(columns[field], kinds[field]) for field in schema.names}).cast(schema)
    return WorkloadPath(table, PathInfo(representatives=(0, 1), members=((0,), tuple(range(1, 64))), ranks=64))


def _least(repeat: int, work: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        found = work()
        times.append(time.process_time() - begin)
    return min(times), found


def main() -> int:
    """Measure; the status says whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=1_430_000, help="of the path (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="the least time of so many (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there, too")
    options = parser.parse_args()
    path = made(options.operations)
    count, seconds = path.table.num_rows, {}
    print(f"{count:,} operations, {len(path.table['file'].unique()):,} files")
    for mode in ("sampled", "quota"):
        seconds[mode], found = _least(options.repeat, lambda mode=mode: synthesize(path, mode=mode, seed=1))
        assert found.table.num_rows == count
    seconds["find_violations"], violations = _least(options.repeat, lambda: find_violations(found))
    memory_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    whole = (seconds["sampled"] + seconds["find_violations"]) * TARGET_OPERATIONS / count
    for name, took in seconds.items():
        print(f"{name:<16} {took:6.2f} s  {count / took / 1e6:6.2f} M operations/s")
    print(f"violations: {len(violations)}; memory: {memory_mib} MiB")
    print(f"1 million operations, sampled and proven: {whole:.2f} s; the target is {TARGET_S:g} s"
          f"{'' if whole <= TARGET_S else ': MISSED'}")  # fmt: skip
    if options.json is not None:
        about = {"operations": count, "seconds": seconds, "violations": len(violations), "memory_mib": memory_mib,
                 "python": platform.python_version(), "machine": platform.machine()}  # fmt: skip
        options.json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0 if whole <= TARGET_S and not violations else 1


if __name__ == "__main__":
    sys.exit(main())
