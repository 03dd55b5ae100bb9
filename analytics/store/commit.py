"""From parts to the next state of the store: choose files to merge, write the new ones, then change the manifest.

Problem. Rows must stay sorted in few files, rows of replaced logs must go, and a kill at any moment must leave the
state before or the state after.

Algorithm. New rows of a table and period are merged with (1) files that hold rows of replaced logs. (2) Of tables whose
rows are facts that several logs contain (`IDENTITY`), files whose key range meets the new rows'. (3) Smaller files, as
in a log-structured merge tree. A file is rewritten only with at least half as many new rows, so all rewriting is O(n
log n). Files never change: new ones get new names, and the manifest's rename makes them count. What it does not name
any more is removed when the next fill begins, so that readers may finish.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from mpiio_ext.analytics.store.conflicts import Conflicts
from mpiio_ext.analytics.store.convert import Part
from mpiio_ext.analytics.store.layouts import Split, split_of
from mpiio_ext.analytics.store.manifest import FileEntry, Manifest
from mpiio_ext.analytics.store.merge import IDENTITY, Source, merged
from mpiio_ext.analytics.tables.parquet import FILE_ROWS, TableWriter, key_of
from mpiio_ext.analytics.tables.schema import TABLES
from mpiio_ext.common.files import TEMPORARY, replacing, step

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows from which on a file is merged again only when it must be.
_LARGE = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Staged:
    """A part that waits for a commit: of which period, and how new it is compared with others."""

    part: Part
    period: str
    age: int


@dataclasses.dataclass
class _Group:
    """The new rows of one table and period, and the files that they are merged with."""

    table: str
    period: str
    parts: list[Staged]
    files: list[FileEntry]
    without: frozenset[int] = frozenset()


def write_files(
    rows: Iterator[pa.Table],
    schema: pa.Schema,
    folder: Path,
    stem: str,
    model: FileEntry,
    prepare: Callable[[Path], None] | None = None,
) -> list[FileEntry]:
    """Write sorted rows to files of at most `FILE_ROWS` rows, and return their entries.

    Parameters
    ----------
    rows : iterator of pyarrow.Table
    stem : begin of the files' names.
    model : what the entries have in common.
    prepare : called with each file's name before it is written.
    """
    entries: list[FileEntry] = []
    rest = next(rows, None)
    while rest is not None:
        path = folder / f"{stem}-{len(entries)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            if prepare is not None:
                prepare(part)
            split = Split()
            seen = split.take if model.table == "darshan_file" else None
            with TableWriter(part, schema, model.table, seen=seen) as writer:
                while rest is not None and writer.rows < FILE_ROWS:
                    room = FILE_ROWS - writer.rows
                    writer.write(rest.slice(0, room))
                    rest = rest.slice(room) if rest.num_rows > room else next(rows, None)
            count, low, high = writer.rows, writer.low, writer.high
        size = path.stat().st_size
        entry = dataclasses.replace(model, path=str(path), rows=count, bytes=size, low=low, high=high)
        entries.append(split_of(split, entry, path, schema, prepare))
    return [entry for entry in entries if entry.rows]


def _range_of(parts: Sequence[Staged], table: str) -> tuple[int, int]:
    """Return the smallest and largest key of parts, from the statistics of their row groups."""
    lows, highs = [], []
    for staged in parts:
        with pq.ParquetFile(staged.part.path) as file:
            column = file.schema_arrow.get_field_index(key_of(table))
            lows.append(file.metadata.row_group(0).column(column).statistics.min)
            highs.append(file.metadata.row_group(file.metadata.num_row_groups - 1).column(column).statistics.max)
    return int(min(lows) // 1), int(max(highs) // 1)


def _choose(group: _Group, entries: Sequence[FileEntry], replaced: Mapping[int, set[int]]) -> None:
    """Choose the files that the new rows of a group are merged with."""
    facts = group.table in IDENTITY
    low, high = _range_of(group.parts, group.table) if facts and group.parts else (0, -1)
    rows = sum(staged.part.rows for staged in group.parts)
    for entry in entries:
        stale = not facts and any(commit in replaced for commit in entry.commits)
        if stale or (entry.low <= high and entry.high >= low):
            group.files.append(entry)
            rows += entry.rows
    for entry in sorted(entries, key=lambda item: item.rows):
        if entry not in group.files and entry.subtable < 0 and entry.rows <= min(2 * rows, _LARGE):
            group.files.append(entry)
            rows += entry.rows
    if not facts:
        commits = {commit for file in group.files for commit in file.commits}
        group.without = frozenset().union(*(replaced.get(commit, ()) for commit in commits))


def _groups(manifest: Manifest, staged: Sequence[Staged], replaced: Mapping[int, set[int]]) -> list[_Group]:
    by_place: dict[tuple[str, str], _Group] = {}

    def group_of(table: str, period: str) -> _Group:
        period = "" if table in IDENTITY else period
        return by_place.setdefault((table, period), _Group(table, period, [], []))

    for item in staged:
        group_of(item.part.table, item.period).parts.append(item)
    for entry in manifest.files:
        if entry.table not in IDENTITY and any(commit in replaced for commit in entry.commits):
            group_of(entry.table, entry.period)
    groups = list(by_place.values())
    for group in groups:
        here = [entry for entry in manifest.files if (entry.table, entry.period) == (group.table, group.period)]
        _choose(group, here, replaced)
    return [group for group in groups if group.parts or group.files]


def age_of(commit: int, number: int) -> int:
    """Return how new rows are: those of part `number` of a commit, or (0) of a file of that commit."""
    return commit * 10**6 + number


def merge_parts(
    folder: Path,
    manifest: Manifest,
    staged: Sequence[Staged],
    replaced: Mapping[int, set[int]],
    osts: int,
    conflicts: Conflicts | None = None,
) -> Manifest:
    """Write the files of the next state and return its manifest, which is not yet published.

    Parameters
    ----------
    folder : of the store.
    manifest : its state.
    staged : new rows.
    replaced : commit -> IDs of logs whose rows of that commit do not count any more.
    osts : width of the OST bitmap at least.
    conflicts : gets what sources of ``lmt`` contradict each other in; their ages are those of :func:`age_of`.
    """
    number = manifest.commit + 1
    files = list(manifest.files)
    width = max([manifest.osts, osts, *(item.part.osts for item in staged)])
    for group in _groups(manifest, staged, replaced):
        sources = [
            Source(folder / entry.path, group.without, age_of(max(entry.commits, default=0), 0))
            for entry in group.files
        ]
        sources += [Source(Path(item.part.path), age=age_of(number, item.age)) for item in group.parts]
        commits = {commit for entry in group.files for commit in entry.commits} | ({number} if group.parts else set())
        schema = TABLES[group.table].schema(width)
        model = FileEntry(
            table=group.table,
            path="",
            rows=0,
            bytes=0,
            low=0,
            high=0,
            period=group.period,
            commits=tuple(sorted(commits)),
            osts=width if group.table == "darshan_file" else 0,
        )
        place = folder / "tables" / group.table / (group.period or "all")
        rows = merged(group.table, sources, schema, conflicts)
        made = write_files(rows, schema, place, f"{number:06d}", model)
        files = [entry for entry in files if entry not in group.files]
        files += [relative(entry, folder) for entry in made]
    return dataclasses.replace(manifest, commit=number, files=tuple(files), osts=width)


def relative(entry: FileEntry, folder: Path) -> FileEntry:
    """Return an entry with paths relative to the store's folder."""
    uncommon = str(Path(entry.uncommon).relative_to(folder)) if entry.uncommon else ""
    return dataclasses.replace(entry, path=str(Path(entry.path).relative_to(folder)), uncommon=uncommon)


def _leftovers(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """Yield the files of a store that do not count: those of killed fills, those that were replaced or moved away."""
    valid = {folder / entry.path for entry in manifest.files} | {folder / name for name in manifest.logs}
    valid |= {folder / entry.uncommon for entry in manifest.files if entry.uncommon}
    places = [folder / "tables", folder / "logs", *map(Path, manifest.placement.get("folders", ()))]
    places += map(Path, manifest.placement.get("retired", ()))
    for place in places:
        if place.is_dir():
            yield from (path for path in place.rglob("*.parquet*") if path not in valid and path.is_file())
    yield from folder.glob(f"*{TEMPORARY}")
    if (folder / "staging").is_dir():
        yield from (path for path in (folder / "staging").rglob("*") if path.is_file())


def clean(folder: Path, manifest: Manifest) -> int:
    """Remove files that do not count, and return their number."""
    count = 0
    for path in list(_leftovers(folder, manifest)):
        path.unlink(missing_ok=True)
        step(f"removed {path.name}")
        count += 1
    empty = sorted((folder / "staging").glob("*"))
    for place in map(Path, manifest.placement.get("retired", ())):
        empty += [*place.glob("*"), place]
    for path in empty:
        with contextlib.suppress(OSError):
            path.rmdir()
    return count
