"""Inputs of a comparison: raw traces, sanitized tables and workload paths, brought to one form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.pioneer.compare.activity import Activity, activity_of_path, activity_of_tables
from mpiio_ext.pioneer.compare.touched import Touched, touched_by_ranks
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.sanitize.system_files import matcher
from mpiio_ext.pioneer.traces import is_table, path_of, patterns_of, read_sanitized, selected, tables_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A workload that is compared.

    Attributes
    ----------
    name : what was read.
    kind : "path", "table" or "trace".
    format : of a trace or table, the tracer's; "" of a path.
    path : its generic workload path.
    activity : its operations in time.
    skipped : lines of the trace that are in no row and should be.
    left_out : operations by name, of all ranks, that were not to be compared.
    not_made : of these those that `activity` still has, for single calls of a name are left out, not all.
    made_up : operations of all ranks that `activity` lacks and a replay makes.
    touched : of a trace or table what each rank touches; None of a path.
    """

    name: str
    kind: str
    format: str
    path: WorkloadPath
    activity: Activity
    skipped: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    not_made: int = 0
    made_up: int = 0
    touched: Touched | None = None

    @property
    def operations(self) -> float:
        """Operations of all ranks that are compared."""
        return self.activity.operations - self.not_made + self.made_up


def _without(tables: Mapping[int, pa.Table], names: Collection[str]) -> tuple[dict[int, pa.Table], Mapping[str, int]]:
    """Return the operations that have other names, and how many have these."""
    counts: Counter[str] = Counter()
    kept = {}
    for rank, table in tables.items():
        operations = table["operation"].cast(pa.string())
        found = pc.is_in(operations, pa.array(sorted(names), pa.string()))
        counts.update(operations.filter(found).to_pylist())
        kept[rank] = table.filter(pc.invert(found))
    return kept, counts


def _is_path(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(64)
    return (begin.startswith(b"PAR1") and not is_table(path)) or b'"pioneer-path"' in begin


def load_workload(
    source: Path,
    *,
    below: str | None = None,
    reader: str | None = None,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    without: Collection[str] = (),
    each_rank: bool = False,
) -> Workload:
    """Return a workload from a file or folder.

    Parameters
    ----------
    source : workload path, sanitized table, or trace in any format that is known.
    below : of a trace or table only operations on files whose names begin so.
    reader : format of a trace; None: it is found out.
    only, skip : of a trace or table, patterns of names of files, as of `traces.selected`.
    without : of a trace or table, names of operations that are not to be counted; they stay in the path, where they
        identify duplicates.
    each_rank : of a trace or table: each rank is a subgroup of its path.

    Raises
    ------
    OSError, ValueError
        The source cannot be read, is no workload, or has no operations.
    """
    if _is_path(source):
        path = WorkloadPath.load(source)
        return Workload(name=str(source), kind="path", format="", path=path, activity=activity_of_path(path))
    kind = "table" if is_table(source) else "trace"
    pattern = None if below is None else matcher(below=below, only=patterns_of(only))
    info, rows = read_sanitized([source], reader, system_files=pattern, only=only)
    chosen = {rank: selected(table, only, skip) for rank, table in tables_of(rows, below=below).items()}
    chosen = {rank: table for rank, table in chosen.items() if table.num_rows}
    tables, left_out = _without(chosen, without)
    if not tables:
        where = "" if below is None else f" on files below {below}"
        raise ValueError(
            f"{source}: the {kind} has no operations of the application{where}; "
            f"{info.skipped:,} of its lines were not understood"
        )
    return Workload(
        name=str(source),
        kind=kind,
        format=info.format,
        path=path_of(chosen, info, each_rank=each_rank),
        activity=activity_of_tables(tables),
        skipped=info.skipped,
        left_out=left_out,
        touched=touched_by_ranks(tables),
    )
