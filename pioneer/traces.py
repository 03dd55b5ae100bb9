"""Traces as a whole: raw ones and sanitized tables in files, as the operations of each rank.

Problem.   Several commands begin with a trace: a raw one in any format, or the table that phase A has left. They must
           all see the same operations.
Content.   `open_trace` finds the reader; `read_sanitized` goes through phase A; `selected` and `tables_of` keep what is
           wanted of what the application has made, by rank; `path_of` is phase B. `sanitize_to` leaves
           phase A in a Parquet file (rows of `sanitize.SANITIZED`, masked ones too; key ``pioneer`` of the metadata:
           `table.TraceInfo`), in memory that does not depend on its size; such a file can be read in place of the
           trace.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mpiio_ext.common.files import in_any_folder, replacing
from mpiio_ext.pioneer.path import MOST_GROUPS, WorkloadPath, extract, find_groups
from mpiio_ext.pioneer.path.communicators import Communicators, find_communicators, opened_by_a_part, partly_words
from mpiio_ext.pioneer.path.extract import names_of
from mpiio_ext.pioneer.path.likeness import Counts, counts_of_ranks, lost_words, split_by_likeness
from mpiio_ext.pioneer.path.names import templates_by_rank
from mpiio_ext.pioneer.path.rules import refined
from mpiio_ext.pioneer.path.short import with_moved
from mpiio_ext.pioneer.readers import find_reader, reader_of
from mpiio_ext.pioneer.readers._files import parquet_of
from mpiio_ext.pioneer.sanitize.sanitize import OF_SYSTEM, SANITIZED, application_only, sanitize
from mpiio_ext.pioneer.sanitize.survey import Survey, Surveyor, take_survey
from mpiio_ext.pioneer.sanitize.system_files import matcher
from mpiio_ext.pioneer.table import SCHEMA, LeftOut, TraceInfo, info_of

_PARQUET = b"PAR1"
_KEY = b"pioneer"
#: Names of files in a message.
_NAMED = 5


def is_table(path: Path) -> bool:
    """Return whether a file is a trace table in Parquet, sanitized or not."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if file.read(len(_PARQUET)) != _PARQUET:
            return False
    try:
        return _KEY in (pq.read_metadata(path).metadata or {})
    except pa.ArrowInvalid:
        return False


def _stored(path: Path) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a stored table, and its rows."""
    try:
        file = parquet_of(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: no whole Parquet file: {error}") from error
    info = info_of(file.schema_arrow.with_metadata(file.metadata.metadata))
    schema = SANITIZED if "mask" in file.schema_arrow.names else SCHEMA
    there = [name for name in schema.names if name in file.schema_arrow.names]
    missing = [name for name in schema.names if name not in there and name != "session"]  # earlier ones have none
    if missing:
        raise ValueError(f"{path}: a trace table without the columns {', '.join(missing)}")

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in file.iter_batches(columns=there):
            table = pa.Table.from_batches([batch])
            if len(there) < len(schema):
                table = table.append_column("session", pa.nulls(batch.num_rows, pa.int64()))
            yield from table.select(schema.names).cast(schema).to_batches()

    return info, batches()


def open_trace(sources: Sequence[Path], name: str | None = None) -> tuple[TraceInfo, Iterable[pa.RecordBatch]]:
    """Return the facts of a trace, and its rows: of `table.SCHEMA`, or sanitized if they are already.

    Parameters
    ----------
    sources : files or folders of one run; or one table in Parquet.
    name : format; None: it is found out.

    Raises
    ------
    OSError, ValueError
        A file cannot be read; no reader knows it; there is no reader of that name.
    """
    if name is None and len(sources) == 1 and is_table(sources[0]):
        return _stored(sources[0])
    reader = find_reader(sources[0]) if name is None else reader_of(name)
    return reader.read(sources)


def _nothing(_: str) -> None:
    pass


def _of_system(batch: pa.RecordBatch) -> pa.Array:
    return pc.fill_null(pc.equal(batch["mask"].cast(pa.string()), OF_SYSTEM), False)


def _unmasked(batch: pa.RecordBatch, only: Sequence[str]) -> pa.RecordBatch:
    """Return stored rows where files that match are the program's, as if they had been sanitized so."""
    names = [name for name in pc.unique(batch["file"].filter(_of_system(batch))).to_pylist() if _matches(name, only)]
    if not names:
        return batch
    wanted = pc.and_(_of_system(batch), pc.is_in(batch["file"].cast(pa.string()), pa.array(names)))
    mask = pc.if_else(wanted, pa.scalar(None, pa.string()), batch["mask"].cast(pa.string()))
    at = batch.schema.get_field_index("mask")
    return batch.set_column(at, batch.schema.field(at), mask.dictionary_encode().cast(batch.schema.field(at).type))


def sanitized(
    batches: Iterable[pa.RecordBatch],
    *,
    system_files: re.Pattern[str] | None = None,
    only: Sequence[str] = (),
    say: Callable[[str], None] = _nothing,
) -> Iterator[pa.RecordBatch]:
    """Yield sanitized rows; those that are already so stay as they are, but for files that `only` names.

    Parameters
    ----------
    batches, system_files, only, say : as of `read_sanitized`; `say` gets masked files behind the last row.
    """
    only = patterns_of(only)
    iterator = iter(batches)
    first = next(iterator, None)
    if first is None:
        return

    def whole() -> Iterator[pa.RecordBatch]:
        yield first
        yield from iterator

    if "mask" in first.schema.names:
        rows: Iterator[pa.RecordBatch] = (_unmasked(batch, only) for batch in whole())
    else:
        rows = sanitize(whole(), system_files=system_files or matcher(only=only))
    counts = Counter[str]()
    for batch in rows:
        masked = batch["file"].filter(_of_system(batch)).drop_null()
        counts.update({each["values"]: each["counts"] for each in masked.value_counts().to_pylist()})
        yield batch
    if counts:
        found = LeftOut(operations=counts.total(), files=len(counts), name=counts.most_common(1)[0][0])
        say(f"{found}: left out; --only GLOB takes them")


def _pattern(info: TraceInfo, system_files: re.Pattern[str] | None) -> re.Pattern[str] | None:
    """Return which files are the system's; if the user chose the files to record, none is."""
    return matcher(()) if system_files is None and info.selected else system_files


def read_sanitized(
    sources: Sequence[Path],
    name: str | None = None,
    *,
    system_files: re.Pattern[str] | None = None,
    only: Sequence[str] = (),
    say: Callable[[str], None] = _nothing,
) -> tuple[TraceInfo, Iterator[pa.RecordBatch]]:
    """Return the facts of a trace, and its sanitized rows: phase A.

    A raw trace is read twice: once for its clocks and its cut names (`sanitize.survey`), once for its rows.

    Parameters
    ----------
    sources, name : as of `open_trace`.
    system_files : names that are files of the system; None: the usual ones, but those that match a pattern of `only`.
    say : gets notes for people, a line each: those of the first pass, and behind the rows the masked files.

    Raises
    ------
    OSError, ValueError
        As of `open_trace`.
    """
    info, batches = open_trace(sources, name)
    if name is None and len(sources) == 1 and is_table(sources[0]):
        return info, sanitized(batches, system_files=system_files, only=only, say=say)
    survey = take_survey(info, batches)
    for line in survey.report():
        say(line)
    rows = survey.apply(open_trace(sources, name)[1])
    return info, sanitized(rows, system_files=_pattern(info, system_files), only=only, say=say)


def patterns_of(globs: Sequence[str]) -> list[str]:
    """Return patterns as of `mpiio-ext trace`; also for names without a folder, as some traces have them."""
    return list(dict.fromkeys(each for glob in globs for each in (glob, in_any_folder(glob))))


def _matches(name: str | None, patterns: Sequence[str]) -> bool:
    return name is not None and any(fnmatch.fnmatchcase(name, each) for each in patterns)


def selected(table: pa.Table, only: Sequence[str], skip: Sequence[str]) -> pa.Table:
    """Return the rows whose files match a pattern of `only`, if there are any, and no pattern of `skip`.

    Rows that name no file stay.
    """
    if not only and not skip:
        return table
    only, skip = patterns_of(only), patterns_of(skip)

    def wanted(name: str) -> bool:
        return (not only or _matches(name, only)) and not _matches(name, skip)

    names = table["file"].cast(pa.string())
    kept = [None, *(name for name in pc.unique(names).to_pylist() if name is not None and wanted(name))]
    return table.filter(pc.is_in(names, pa.array(kept, pa.string())))


def require_match(tables: Mapping[int, pa.Table], kept: Mapping[int, pa.Table]) -> None:
    """Make sure that a selection has left something.

    Parameters
    ----------
    tables, kept : operations by rank, before and after `selected`.

    Raises
    ------
    ValueError
        No operation on a file is left, and there were some; the message names files that there are.
    """
    if any(table["file"].null_count < table.num_rows for table in kept.values()):
        return
    names = sorted(
        {
            name
            for table in tables.values()
            for name in pc.unique(table["file"].cast(pa.string())).to_pylist()
            if name is not None
        }
    )
    if names:
        more = f" and {len(names) - _NAMED:,} others" if len(names) > _NAMED else ""
        raise ValueError(
            f"--only and --skip leave no operation on a file; the trace has {', '.join(names[:_NAMED])}"
            f"{more} (a pattern is for the whole name, or for names in any folder: 'out.*')"
        )


#: Columns of texts have a dictionary. Most numbers grow from row to row, and are stored by their differences: half the
#: time and a fourth of the bytes of dictionaries, which such columns outgrow.
_TEXTS = [field.name for field in SANITIZED if pa.types.is_dictionary(field.type)]
_GROWING = dict.fromkeys(("timestamp", "line", "duration", "offset", "parent"), "DELTA_BINARY_PACKED")


#: Rows that are written together: each part of a file and each of its columns costs as much as thousands of rows.
_WRITTEN_ROWS = 1 << 15
#: Columns by whose least and greatest values readers choose parts of the file; the others do not need them.
_CHOSEN_BY = ["timestamp", "rank"]


class _NotKeptError(Exception):
    """Rows that were written are to be thrown away."""


def _always() -> bool:
    return True


def save_sanitized(
    info: TraceInfo, batches: Iterable[pa.RecordBatch], path: Path, *, keep: Callable[[], bool] = _always
) -> int:
    """Write sanitized rows to a Parquet file; the number of rows. The file is there when it is complete.

    `info` is complete only when the last batch has been taken, so the metadata is added at the end. Before that, `keep`
    decides whether the rows are stored; if not, there is no file.

    Raises
    ------
    OSError
        The file cannot be written, and is named; or the trace cannot be read.
    """
    rows = 0
    held: list[pa.RecordBatch] = []
    unread: list[OSError] = []

    def read() -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except OSError as error:  # of the trace, not of the output
            unread.append(error)
            raise

    try:
        with (
            replacing(path) as partial,
            pq.ParquetWriter(
                partial,
                SANITIZED,
                compression="zstd",
                use_dictionary=_TEXTS,
                column_encoding=_GROWING,
                write_statistics=_CHOSEN_BY,
            ) as writer,
        ):
            for batch in read():
                held.append(batch)
                rows += batch.num_rows
                if sum(map(len, held)) >= _WRITTEN_ROWS:
                    writer.write_table(pa.Table.from_batches(held, SANITIZED).unify_dictionaries())
                    held.clear()
            if held:
                writer.write_table(pa.Table.from_batches(held, SANITIZED).unify_dictionaries())
            kept = keep()
            writer.add_key_value_metadata({_KEY: info.to_json().encode()})
            if not kept:
                raise _NotKeptError
    except _NotKeptError:
        pass
    except OSError:
        if unread:
            raise unread[0] from None
        raise
    return rows


def sanitize_to(
    path: Path,
    sources: Sequence[Path],
    name: str | None = None,
    *,
    system_files: re.Pattern[str] | None = None,
    only: Sequence[str] = (),
    say: Callable[[str], None] = _nothing,
    progress: Callable[[int], None] = lambda _: None,
) -> TraceInfo:
    """Write the result of phase A for a trace to a Parquet file, as `save_sanitized` does; return its facts.

    The survey is made while the rows are written. Only if it shows that names or times have to be corrected are they
    read and written again; of a trace with cut names nothing is written the first time.

    Parameters
    ----------
    sources, name, system_files, only, say : as of `read_sanitized`.
    progress : receives the number of rows so far.

    Raises
    ------
    OSError, ValueError
        As of `open_trace`; the file cannot be written.
    """
    info, batches = open_trace(sources, name)
    surveyor, rows = Surveyor(), 0

    masked: list[str] = []

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        rows = 0
        masked.clear()
        for batch in sanitized(batches, system_files=_pattern(info, system_files), only=only, say=masked.append):
            rows += batch.num_rows
            progress(rows)
            yield batch

    if name is None and len(sources) == 1 and is_table(sources[0]):
        save_sanitized(info, counted(batches), path)
        for line in masked:
            say(line)
        return info

    def surveyed() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            surveyor.add(batch)
            if not surveyor.has_cut:
                yield batch

    survey = Survey()

    def is_right() -> bool:
        nonlocal survey
        survey = surveyor.survey(info)
        return not survey.corrects and not surveyor.has_cut

    save_sanitized(info, counted(surveyed()), path, keep=is_right)
    for line in survey.report():
        say(line)
    if survey.corrects or surveyor.has_cut:
        save_sanitized(info, counted(survey.apply(open_trace(sources, name)[1])), path)
    for line in masked:
        say(line)
    return info


def tables_of(batches: Iterable[pa.RecordBatch], *, below: str | None = None) -> dict[int, pa.Table]:
    """Return the application's operations (`sanitize.APPLICATION`) by rank, of sanitized rows.

    Parameters
    ----------
    batches : sanitized rows.
    below : only operations on files whose names begin so, and those that name no file; None: all.
    """
    kept = []
    for batch in batches:
        table = application_only(pa.Table.from_batches([batch], SANITIZED))
        if below is not None:
            names = table["file"].cast(pa.string())
            table = table.filter(pc.or_(pc.is_null(names), pc.fill_null(pc.starts_with(names, below), False)))
        kept.append(table)
    if not kept:
        return {}
    whole = pa.concat_tables(kept).unify_dictionaries()
    ranks = pc.unique(whole["rank"]).to_pylist()
    return {rank: whole.filter(pc.equal(whole["rank"], rank)) for rank in sorted(ranks)}


def groups_of(tables: dict[int, pa.Table], *, each_rank: bool = False) -> list[tuple[int, ...]]:
    """Return the subgroups of the ranks by the first part of their traces, the root's first.

    Parameters
    ----------
    tables : operations by rank.
    each_rank : each rank is a subgroup of its own.

    Raises
    ------
    ValueError
        There are more ranks than a path can distinguish.
    """
    if each_rank:
        if len(tables) > MOST_GROUPS:
            raise ValueError(f"--each-rank: the trace has {len(tables)} ranks; a path can separate {MOST_GROUPS}")
        return [(rank,) for rank in sorted(tables)]
    words: dict[str, int] = {}
    operations = {}
    for rank, table in tables.items():
        column = table["operation"].unify_dictionaries().combine_chunks()
        numbers = [words.setdefault(word, len(words)) for word in column.dictionary.to_pylist()]
        operations[rank] = np.array(numbers, np.int32)[np.asarray(column.indices)]
    return [tuple(group) for group in find_groups(operations, root=min(tables))]


def _counts_of(tables: Mapping[int, pa.Table], ranks: int, known: Communicators) -> dict[int, Counts]:
    names = {rank: names_of(table) for rank, table in tables.items()}
    return counts_of_ranks(tables, templates_by_rank(names, ranks, known.templates, known.members))


def not_represented(tables: Mapping[int, pa.Table], found: WorkloadPath) -> list[str]:
    """Return lines about ranks that have done other things than those that stand for them in a path."""
    first = found.info.representatives[0]
    lines = (
        []
        if first == 0
        else [f"rank 0 has no operations in the trace: rank {first} is in the place of the root, and is no root itself"]
    )
    if len(found.info.members) >= len(tables):
        return lines
    ranks = found.info.ranks or len(tables)
    known = find_communicators(dict(tables), ranks) if found.info.communicators else Communicators()
    return [*lines, *lost_words(found.info.members, _counts_of(tables, ranks, known))]


def communicators_of(
    tables: dict[int, pa.Table], ranks: int, *, each_rank: bool = False
) -> tuple[Communicators, list[tuple[int, ...]]]:
    """Return the communicators of a part of the ranks, and the subgroups of the ranks, the root's first.

    Members of a subgroup are the first ones of their communicators, or others, alike. Where that makes more subgroups
    than a path can separate, communicators are left out. Subgroups are split where a representative does not stand
    for its ranks over the whole trace (`likeness`).

    Parameters
    ----------
    tables, each_rank : as of `groups_of`.
    ranks : of the program.
    """
    groups = groups_of(tables, each_rank=each_rank)
    known = find_communicators(tables, ranks)
    split = refined(groups, known.rules, ranks)
    if len(split) > MOST_GROUPS:
        known, split = Communicators(), tuple(groups)
    return known, split_by_likeness(split, _counts_of(tables, ranks, known))


def communicators_missing(tables: dict[int, pa.Table], info: TraceInfo, *, each_rank: bool = False) -> str:
    """Return a note on files whose communicators the path lacks; empty: there are none.

    Parameters
    ----------
    tables, info, each_rank : as of `path_of`.
    """
    ranks = info.ranks or len(tables)
    known, _ = communicators_of(tables, ranks, each_rank=each_rank)
    return partly_words(opened_by_a_part(tables, ranks, known), ranks)


def path_of(tables: dict[int, pa.Table], info: TraceInfo, *, each_rank: bool = False) -> WorkloadPath:
    """Return the generic workload path of the operations of all ranks: phase B.

    Raises
    ------
    ValueError
        There are no operations, or too many ranks for `each_rank`.
    """
    if not any(table.num_rows for table in tables.values()):
        raise ValueError("the trace has no operations of the application")
    tables = {rank: with_moved(table) for rank, table in tables.items()}
    ranks = info.ranks or len(tables)
    known, groups = communicators_of(tables, ranks, each_rank=each_rank)
    return extract(tables, groups, ranks=ranks, communicators=known)
