"""Placement: each table split by job ranges into subtables, which lie on given storage targets.

Problem. Executors that read at once should not meet on one storage target, and a join on the job ID should read from
one target only.

Algorithm. The bounds of the subtables are quantiles of the job IDs of ``darshan_file`` (else of the largest table about
jobs): equal numbers of rows, and the same bounds for every table about jobs. ``lmt`` is split by time in the same way.
Neighbouring subtables lie on the same target, and each target has equally many. New rows go to the subtables of their
range; when one has grown beyond twice the mean, all is split anew. On Lustre each file is made with one stripe on the
target's OST (``lfs setstripe -c 1 -i OST``).

Guarantees. The manifest changes once, at the end: readers see the tables before or after. Only files that the store has
made are removed. What lay on targets that are none any more stays until the next fill begins, for readers that have
begun.

Source: IOMiner, Section II-C and Figure 2.
"""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.setup import PlacementPlan
from mpiio_ext.analytics.store.commit import write_files
from mpiio_ext.analytics.store.lock import locked
from mpiio_ext.analytics.store.manifest import FileEntry, Manifest, read_manifest, write_manifest
from mpiio_ext.analytics.store.merge import Source, merged
from mpiio_ext.analytics.tables.parquet import key_of
from mpiio_ext.analytics.tables.schema import TABLES
from mpiio_ext.common.children import run
from mpiio_ext.common.files import TEMPORARY, step

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers

#: Files that a subtable may have before they are merged.
_MOST_FILES = 8
#: That ``lfs`` may take for a file.
_LFS_S = 60.0
#: A subtable this many rows above twice the mean makes that all is split anew.
_SLACK_ROWS = 1 << 16


def target_of(subtable: int, subtables: int, targets: int) -> int:
    """Return the number of the target on which a subtable lies: neighbours together, equally many on each."""
    return subtable * targets // subtables


# ---- bounds ----------------------------------------------------------------------------------------------------------


def _keys(folder: Path, entries: Sequence[FileEntry]) -> Numbers:
    parts = [np.zeros(0)]
    for entry in entries:
        column = pq.read_table(folder / entry.path, columns=[key_of(entry.table)]).column(0)
        parts.append(np.asarray(column))
    keys = np.concatenate(parts[1:] or parts)
    keys.sort()
    return keys


def _bounds(keys: Numbers, count: int) -> list[int]:
    """Return the smallest keys of the subtables after the first, so that each has about as many rows."""
    if not len(keys):
        return []
    places = (np.arange(1, count) * len(keys)) // count
    return [int(keys[place] // 1) for place in places]


def _all_bounds(folder: Path, manifest: Manifest, count: int) -> dict[str, list[int]]:
    of = {name: [entry for entry in manifest.files if entry.table == name] for name in TABLES}
    rows = {name: sum(entry.rows for entry in entries) for name, entries in of.items() if name != "lmt"}
    largest = "darshan_file" if rows["darshan_file"] else max(rows, key=lambda name: rows[name])
    return {"jobs": _bounds(_keys(folder, of[largest]), count), "lmt": _bounds(_keys(folder, of["lmt"]), count)}


# ---- writing ---------------------------------------------------------------------------------------------------------


def _cut(tables: Iterator[Any], key: str, bounds: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yield (number of the subtable, rows) of sorted rows."""
    for table in tables:
        places = [0, *np.searchsorted(np.asarray(table.column(key)), bounds, side="left").tolist(), table.num_rows]
        for number in range(len(places) - 1):
            if places[number + 1] > places[number]:
                yield number, table.slice(places[number], places[number + 1] - places[number])


class _Pieces:
    """The rows of one subtable after the other."""

    def __init__(self, pieces: Iterator[tuple[int, Any]]) -> None:
        self._pieces = pieces
        self._next = next(pieces, None)

    def number(self) -> int | None:
        """Return the number of the next subtable that has rows; None at the end."""
        return None if self._next is None else self._next[0]

    def rows(self) -> Iterator[Any]:
        """Yield the rows of the next subtable."""
        number = self.number()
        while self._next is not None and self._next[0] == number:
            yield self._next[1]
            self._next = next(self._pieces, None)


def _striped_on(ost: int) -> Callable[[Path], None]:
    """Return the function that makes a file with one stripe on an OST."""
    lfs = shutil.which("lfs")
    if lfs is None:
        raise AnalyticsError(
            "/placement/osts of the set-up names OSTs, but there is no lfs command; leave it out, or "
            "run where Lustre's tools are installed"
        )

    def prepare(path: Path) -> None:
        path.unlink(missing_ok=True)
        done = run([lfs, "setstripe", "-c", "1", "-i", str(ost), str(path)], limit_s=_LFS_S)
        if done.trouble:
            raise AnalyticsError(
                f"{path.parent}: no file could be made on OST {ost}: {done.errors.strip() or done.trouble}"
            )

    return prepare


def _write_table(
    folder: Path, manifest: Manifest, table: str, entries: Sequence[FileEntry], number: int, plan: PlacementPlan
) -> list[FileEntry]:
    """Merge files of a table, and write them as subtables to their targets."""
    schema = TABLES[table].schema(manifest.osts)
    sources = [Source(folder / entry.path, age=max(entry.commits, default=0)) for entry in entries]
    bounds = manifest.placement["bounds"]["lmt" if table == "lmt" else "jobs"]
    pieces = _Pieces(_cut(merged(table, sources, schema), key_of(table), bounds))
    out: list[FileEntry] = []
    commits = tuple(sorted({commit for entry in entries for commit in entry.commits}))
    while (subtable := pieces.number()) is not None:
        target = target_of(subtable, plan.subtables, len(plan.targets))
        place_ = Path(manifest.placement["folders"][target]) / table
        model = FileEntry(
            table=table,
            path="",
            rows=0,
            bytes=0,
            low=0,
            high=0,
            period="",
            commits=commits,
            osts=manifest.osts if table == "darshan_file" else 0,
            subtable=subtable,
            target=target,
        )
        prepare = _striped_on(plan.osts[target]) if plan.osts else None
        out += write_files(pieces.rows(), schema, place_, f"{number:06d}-{subtable:05d}", model, prepare)
        step(f"placed {table} {subtable}")
    return out


def _unbalanced(files: Sequence[FileEntry], table: str, plan: PlacementPlan) -> bool:
    rows = np.zeros(plan.subtables, dtype=np.int64)
    for entry in files:
        if entry.table == table and entry.subtable >= 0:
            rows[entry.subtable] += entry.rows
    return bool(rows.max() > 2 * rows.mean() + _SLACK_ROWS)


def _folders(folder: Path, plan: PlacementPlan) -> list[str]:
    mark = hashlib.blake2b(str(folder).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return [str(Path(target) / f"mpiio_ext-store-{mark}") for target in plan.targets]


def _placed(folder: Path, manifest: Manifest, plan: PlacementPlan, *, anew: bool) -> Manifest:
    """Write the missing files, and return the manifest that names them."""
    number = manifest.commit + 1
    wanted = {
        "targets": list(plan.targets),
        "folders": _folders(folder, plan),
        "subtables": plan.subtables,
        "osts": list(plan.osts),
    }
    here = {name: value for name, value in manifest.placement.items() if name in wanted}
    anew = anew or here != wanted
    if anew:
        bounds = _all_bounds(folder, manifest, plan.subtables)
        manifest = dataclasses.replace(manifest, placement={**wanted, "bounds": bounds})
    files = [] if anew else [entry for entry in manifest.files if entry.subtable >= 0]
    for table in TABLES:
        mine = [entry for entry in manifest.files if entry.table == table]
        moving = mine if anew else _moving(mine)
        if moving:
            files = [entry for entry in files if entry not in moving]
            files += _write_table(folder, manifest, table, moving, number, plan)
    if not anew and any(_unbalanced(files, table, plan) for table in ("darshan_file", "lmt")):
        return _placed(folder, manifest, plan, anew=True)
    return dataclasses.replace(manifest, commit=number, files=tuple(files))


def _moving(files: Sequence[FileEntry]) -> list[FileEntry]:
    """Return the files of a table that are not placed yet, and those of subtables that have too many."""
    count: dict[int, int] = {}
    for entry in files:
        count[entry.subtable] = count.get(entry.subtable, 0) + 1
    return [entry for entry in files if entry.subtable < 0 or count[entry.subtable] > _MOST_FILES]


def place(store: str | Path, plan: PlacementPlan, *, anew: bool = False) -> Manifest:
    """Place the tables of a store on storage targets; existing files stay.

    Parameters
    ----------
    anew : compute the bounds of the subtables again, and write all files.

    Raises
    ------
    AnalyticsError
        There is no store, it is being changed, or a target cannot be written.
    """
    folder = Path(store).absolute()
    with locked(folder):
        manifest = read_manifest(folder)
        if manifest is None:
            raise AnalyticsError(f"{folder}: there is no store to place; fill it first")
        folders = _folders(folder, plan)
        now = {"folders": folders, "subtables": plan.subtables, "osts": list(plan.osts)}
        same = all(manifest.placement.get(name) == value for name, value in now.items())
        if same and not anew and all(entry.subtable >= 0 for entry in manifest.files):
            return manifest
        try:
            killed = [path for name in folders for path in Path(name).rglob(f"*{TEMPORARY}")]
            for left in (*killed, *folder.glob(f"*{TEMPORARY}")):
                left.unlink(missing_ok=True)
            placed = _placed(folder, manifest, plan, anew=anew)
            before = {*manifest.placement.get("folders", ()), *manifest.placement.get("retired", ())}
            retired = sorted(path for path in before - set(folders) if Path(path).exists())
            placed = dataclasses.replace(placed, placement={**placed.placement, "retired": retired})
            write_manifest(folder, placed)
        except OSError as error:
            raise AnalyticsError(f"{error.filename or folder}: cannot be written: {error.strerror or error}") from error
        return placed
