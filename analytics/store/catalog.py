"""The catalog: which Parquet files of a store are valid now, for the query engines.

A catalog is one state of the store, read once; a fill that goes on meanwhile does not change it. Files that a fill has
replaced stay on the disk until the next one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.store.manifest import FileEntry, Manifest, read_manifest
from mpiio_ext.analytics.tables.schema import LAYOUT, TABLES

if TYPE_CHECKING:
    import pyarrow as pa

#: Returns whether rows with a layout matter.
Wanted = Callable[[Mapping[str, int | None]], bool]


class Catalog:
    """The valid files of a store.

    Parameters
    ----------
    folder : the store's folder.

    Attributes
    ----------
    knows_layouts : bool
        That :meth:`files` takes `layouts`.
    folder : absolute.
    osts : int
        Width of the OST bitmap in OSTs: ``darshan_file`` has the columns ``ost_words(osts)``. Older files may lack
        the last ones (read them with union by name); NULL there means 0.
    manifest : Manifest

    Raises
    ------
    AnalyticsError
        There is no store in the folder, or one that cannot be read.
    """

    knows_layouts = True

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        found = read_manifest(self.folder)
        if found is None:
            how = "mpiio-ext analyze init SETUP, or IOMiner(setup).init_stores()"
            raise AnalyticsError(f"{self.folder}: there is no store; fill it: {how}")
        self.manifest: Manifest = found
        self.osts = found.osts

    def entries(self, table: str, low: float | None = None, high: float | None = None) -> list[FileEntry]:
        """Return the files of a table, in the order of their smallest key.

        Parameters
        ----------
        low, high : only files that may hold keys from `low` to `high`, both included: ``job_id``, of ``lmt`` the time.

        Raises
        ------
        AnalyticsError
            No table has this name.
        """
        if table not in TABLES:
            raise AnalyticsError(f"{table!r} is no table of the store; there are {', '.join(TABLES)}")
        files = [
            entry
            for entry in self.manifest.files
            if entry.table == table
            and (high is None or entry.low <= high)
            and (low is None or entry.high >= low - (table == "lmt"))  # times are floored
        ]
        return sorted(files, key=lambda entry: (entry.low, entry.high, entry.path))

    def files(
        self, table: str, low: float | None = None, high: float | None = None, layouts: Wanted | None = None
    ) -> list[str]:
        """Return the absolute paths of the files to read for a table; empty if there are none.

        Parameters
        ----------
        low, high : as in :meth:`entries`.
        layouts : callable, optional
            Says of a layout (columns and values) whether rows of ``darshan_file`` with it matter. Where no common
            layout of a file does, the rows with the others are read from the file beside it.
        """
        chosen = (self._chosen(entry, layouts) for entry in self.entries(table, low, high))
        return [str(self.folder / path) for path in chosen if path]

    @staticmethod
    def _chosen(entry: FileEntry, layouts: Wanted | None) -> str:
        """Return the path to read for an entry: of the file, of the one beside it, or none."""
        if layouts is None or not entry.layouts:
            return entry.path
        matters = any(layouts(dict(zip(LAYOUT, layout, strict=True))) for layout in entry.layouts)
        return entry.path if matters else entry.uncommon

    def path(self, entry: FileEntry) -> Path:
        """Return the absolute path of a file."""
        return self.folder / entry.path

    def rows(self, table: str) -> int:
        """Return how many rows a table has."""
        return sum(entry.rows for entry in self.entries(table))

    def schema(self, table: str) -> pa.Schema:
        """Return the Arrow schema of a table, with the words of the OST bitmap."""
        self.entries(table)
        return TABLES[table].schema(self.osts)
