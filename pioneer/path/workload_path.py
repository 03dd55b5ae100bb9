"""The generic workload path as a table, in memory and in files.

Content.   One row for each operation, in order; its number is the global sequence ID. `groups` names the groups that
make it: bit
           0 is the root process, bit g the children of subgroup g. What differs between them stands once for each
           group, as the group's representative has done it: `offset_0`, `offset_1`, ... Operations through one open
           handle of a file, or duplicates of it, have the same `session`; where it is null, or the column is missing,
           the file's opens and closes in order give the sessions (`profile.sessions`).
Names.     Files are templates (`names.Template`), so that every rank can compute its own.
Files.     Parquet, with what is common to all rows in the metadata (key ``pioneer-path``, JSON). A name that ends in
           ``.json`` is one JSON object, to be read and written by hand. "pioneer-path" is what is common. "operations"
           are the rows, without the columns that they have no value for. `id` may be left out, `extra` may be an
           object. Its form, and what is wrong with one, is `document`.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mpiio_ext.common import documents
from mpiio_ext.common.documents import DocumentError
from mpiio_ext.common.files import replacing
from mpiio_ext.common.shown import MOST_SHOWN, html_of
from mpiio_ext.errors import FileSystemError
from mpiio_ext.pioneer.path.document import VERSION, PathInfo, parse_info, parse_path
from mpiio_ext.pioneer.table import encoded

_TEXT = pa.dictionary(pa.int32(), pa.string())

COMMON = (
    pa.field("id", pa.int64(), nullable=False),
    pa.field("operation", _TEXT, nullable=False),
    pa.field("file", _TEXT),
    pa.field("owner", _TEXT),
    pa.field("groups", pa.int64(), nullable=False),
    pa.field("session", pa.int64()),
    pa.field("layer", _TEXT, nullable=False),
    pa.field("extra", pa.string()),
)
#: Columns that exist for each group, null if it takes no part: bytes, bytes, ns, and ns from the end of the group's
#: operation before to the start of this one.
PER_GROUP = ("offset", "size", "duration", "slack")


@dataclass(frozen=True, slots=True)
class WorkloadPath:
    """A generic workload path.

    Attributes
    ----------
    table : rows of `schema()`.
    info : what is common to them.
    """

    table: pa.Table
    info: PathInfo

    def __repr__(self) -> str:
        files = len(pc.unique(self.table["file"].drop_null()))
        return (
            f"WorkloadPath: {self.table.num_rows:,} operations on {files:,} files, by the root and "
            f"{self.group_count - 1} subgroups of {self.info.traced:,} ranks; .table has them"
        )

    def _repr_html_(self) -> str:
        """Return the first operations as a table, without columns that they have no value for."""
        known = [name for name in self.table.column_names if self.table[name].null_count < self.table.num_rows]
        rows = [{name: row[name] for name in known} for row in self.table.slice(0, MOST_SHOWN).to_pylist()]
        return html_of([repr(self)], rows, self.table.num_rows, ".table")

    @staticmethod
    def schema(groups: int) -> pa.Schema:
        """Return the columns of a path of so many groups, the root's included."""
        values = [pa.field(f"{name}_{group}", pa.int64()) for group in range(groups) for name in PER_GROUP]
        return pa.schema([*COMMON, *values])

    @property
    def group_count(self) -> int:
        """Groups, the root's included."""
        return len(self.info.representatives)

    def words(self, name: str) -> NDArray[np.object_]:
        """Return a column of text, None for null; much faster than a list of all."""
        numbers, words = encoded(self.table[name])
        found: NDArray[np.object_] = np.array([*words, None], object)[numbers]  # -1 is the last one
        return found

    def save(self, path: Path) -> None:
        """Write it to a file; it replaces one that is there when it is complete.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        if not path.parent.is_dir():
            raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}")
        about = json.dumps(self.info.to_json())
        if path.suffix == ".json":
            rows = [{name: value for name, value in row.items() if value is not None} for row in self.table.to_pylist()]
            lines = ",\n".join(json.dumps(row) for row in rows)
            with replacing(path) as partial:
                partial.write_text(f'{{"pioneer-path": {about},\n"operations": [\n{lines}\n]}}\n', encoding="utf-8")
            return
        whole = self.table.replace_schema_metadata({b"pioneer-path": about.encode()})
        with replacing(path) as partial:
            pq.write_table(whole, partial, compression="zstd")

    @classmethod
    def load(cls, path: str | Path) -> WorkloadPath:
        """Read one.

        Raises
        ------
        FileSystemError, ValueError
            The file cannot be read, or is no workload path of this version; the message names the file.
        """
        path = Path(path)
        if not path.is_file():  # pyarrow's error is the bare name
            if path.is_dir():
                raise FileSystemError(errno.EISDIR, "a folder, not a workload path", str(path))
            raise FileSystemError(errno.ENOENT, f"cannot be read: {os.strerror(errno.ENOENT)}", str(path))
        try:
            table, info = _from_json(path) if path.suffix == ".json" else _from_parquet(path)
            schema = cls.schema(len(info.representatives))
            return cls(table.select(schema.names).cast(schema), info)
        except DocumentError as error:
            raise error.of(path) from error
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} is no workload path: {error}") from error


def _check_version(info: Any) -> None:
    if isinstance(info, dict) and info.get("version") != VERSION:
        raise DocumentError([("/pioneer-path/version", f"{info.get('version')}; this release reads {VERSION}")])


def _from_parquet(path: Path) -> tuple[pa.Table, PathInfo]:
    table = pq.read_table(path)
    text = (table.schema.metadata or {}).get(b"pioneer-path")
    if text is None:
        raise ValueError(f"{path} is no workload path: the metadata 'pioneer-path' is missing")
    document = json.loads(text)
    _check_version(document)
    try:
        return table, parse_info(document)
    except DocumentError as error:
        raise error.under("/pioneer-path") from error


def _from_json(path: Path) -> tuple[pa.Table, PathInfo]:
    document = documents.read_json(path)
    _check_version(document.get("pioneer-path") if isinstance(document, dict) else None)
    info, rows = parse_path(document)
    columns = {}
    for field in WorkloadPath.schema(len(info.representatives)):
        kind = pa.string() if pa.types.is_dictionary(field.type) else field.type
        values = [row.get(field.name) for row in rows]
        if field.name == "id":
            values = [number if value is None else value for number, value in enumerate(values)]
        elif field.name == "extra":
            values = [json.dumps(value) if isinstance(value, dict) else value for value in values]
        columns[field.name] = pa.array(values, kind)
    return pa.table(columns), info
