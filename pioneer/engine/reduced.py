"""A path without operations on names and folders: the rest opens files, moves their data, and queries them.

A bench or a tuner carries a path out again and again, and no run must find what another has left behind. Folders that a
program has only searched, such as those of Python's modules, are not its data.
"""

from __future__ import annotations

import pyarrow as pa

from mpiio_ext.pioneer.operations import LISTING, Role, operation_of
from mpiio_ext.pioneer.path import WorkloadPath

#: Operations on names that stay where their file is opened, too.
_KEPT_META = frozenset(
    {
        "stat",
        "lstat",
        "fstatat",
        "statx",
        "access",
        "faccessat",
        "truncate",
        "unlink",
        "unlinkat",
        "remove",
        "MPI_File_delete",
    }
)
_FOLDERS = LISTING | {"opendir", "closedir"}


def without_names(path: WorkloadPath) -> WorkloadPath:
    """Return the path with operations in open sessions of files, waits, and queries or deletions of those files."""
    table = path.table
    pairs = list(zip(table["layer"].to_pylist(), table["operation"].to_pylist(), strict=True))
    files = table["file"].to_pylist()
    kinds = [operation_of(*pair) for pair in pairs]
    opened = {file for file, kind in zip(files, kinds, strict=True) if kind.in_session and kind.name not in _FOLDERS}
    keep = [
        kind.name not in _FOLDERS and (kind.role is not Role.META or (kind.name in _KEPT_META and file in opened))
        for file, kind in zip(files, kinds, strict=True)
    ]
    return WorkloadPath(table.filter(pa.array(keep, pa.bool_())), path.info)
