"""The manifest: the one place that lists the valid files of a store, and the outcome of every log.

Problem. Files and logs are many, a fill may be killed at any moment, and a reader may come at any moment.

Content. ``manifest.json`` lists the valid files of every table (few: thousands at most) and the segments with the logs
(Parquet, a row a log, up to millions). It is replaced by a rename, so that each reader sees one state of the store. A
later row of the same log takes the place of an earlier one. A log's rows lie in the files whose ``commits`` hold the
number of the log's commit (`LogTable`, column ``commit``).

Guarantees. Files that ``manifest.json`` names are complete and on the disk; all other files are leftovers.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, DocumentError
from mpiio_ext.common.files import write_whole

#: Name of the manifest in the store's folder.
NAME = "manifest.json"

#: Version of the store's layout and of its tables' columns.
FORMAT = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One valid Parquet file.

    Attributes
    ----------
    table : name of the table.
    path : relative to the store's folder, or absolute where it lies on a storage target.
    rows, bytes : rows, and size of the file.
    low, high : int
        Smallest and largest key in it, both included: ``job_id``, of ``lmt`` the time in s since 1970 UTC, floored.
    period : of its logs: ``2018-01``, ``2018-01-28``, or ``undated``; ``""`` in tables that are not split by period.
    commits : numbers of the commits that gave its rows.
    osts : width of its OST bitmap in OSTs (``darshan_file``), else 0.
    subtable : number of the subtable when it is placed, else -1.
    target : number of the storage target on which it lies, else -1.
    layouts : layouts (`mpiio_ext.analytics.tables.schema.LAYOUT`) of its rows that are common
        (:mod:`mpiio_ext.analytics.store.layouts`); none: they are too different. None: not read yet.
    uncommon : file with the rows of other layouts, a second time; its path as `path`, or empty if there are none.
    """

    __pydantic_config__ = CLOSED

    table: str
    path: str
    rows: int
    bytes: int
    low: int
    high: int
    period: str = ""
    commits: tuple[int, ...] = ()
    osts: int = 0
    subtable: int = -1
    target: int = -1
    layouts: tuple[tuple[int | None, ...], ...] | None = None
    uncommon: str = ""


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One state of a store.

    Attributes
    ----------
    commit : number of the state; 0: empty.
    files : all valid files.
    logs : segments of the table of logs, relative to the folder, oldest first.
    osts : width of the widest OST bitmap, in OSTs.
    options : what changes the rows that the connectors make (time zones …), as when the store was made.
    placement : storage targets and the bounds of the subtables; empty when the tables are not placed.
    notes : what is suspicious in the contents, a line each: times that are off by whole hours.
    """

    __pydantic_config__ = CLOSED

    commit: int = 0
    files: tuple[FileEntry, ...] = ()
    logs: tuple[str, ...] = ()
    osts: int = 0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    placement: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_manifest(folder: Path) -> Manifest | None:
    """Return the state of the store in `folder`; None if there is none.

    Raises
    ------
    AnalyticsError
        The manifest cannot be read, or belongs to another version of the store.
    """
    path = folder / NAME
    if not path.exists():
        return None
    document = documents.read_json(
        path,
        lambda text: AnalyticsError(
            f"{text}; it is the store's manifest: restore it, or remove the folder and fill it again from the logs"
        ),
    )
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else None
        raise AnalyticsError(
            f"{path}: a store of format {found}, and this mpiio_ext knows format {FORMAT}, whose columns differ;"
            " fill a new folder, or remove this one and fill it again from the logs (mpiio-ext analyze init)"
        )
    try:
        return documents.parse(Manifest, {name: value for name, value in document.items() if name != "format"})
    except DocumentError as error:
        raise AnalyticsError(str(error.of(path))) from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make `manifest` the state of the store in `folder`: from now on readers see it."""
    document = {"format": FORMAT, **dataclasses.asdict(manifest)}
    write_whole(folder / NAME, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
