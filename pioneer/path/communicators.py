"""Files that a part of the ranks have opened together: what a path cannot keep of them.

Problem.   A path knows the root and one representative of each subgroup. A file that ranks 2 and 3 have opened on a
           communicator of their own may be in nobody's trace that counts, and its communicator is not recorded.
Guarantee. Every such file is found, in all traces that there are, so that nothing is left out without a word.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["opened_by_a_part", "partly_words"]

_OPEN = "MPI_File_open"
_SIZE = r'"comm_size":\s*(?P<size>\d+)'


def opened_by_a_part(tables: Mapping[int, pa.Table], ranks: int) -> dict[str, int]:
    """Return the files that were opened on communicators of several ranks but not all, with the sizes of these.

    Parameters
    ----------
    tables : trace table (`pioneer.table.SCHEMA`) by rank.
    ranks : of the program.
    """
    found: dict[str, int] = {}
    for table in tables.values():
        opens = table.filter(pc.equal(table["operation"].cast(pa.string()), _OPEN))
        sizes = pc.struct_field(pc.extract_regex(opens["extra"], _SIZE), "size").to_pylist()
        for name, size in zip(opens["file"].to_pylist(), sizes, strict=True):
            if name is not None and size is not None and 1 < int(size) < ranks:
                found[name] = int(size)
    return found


def partly_words(found: Mapping[str, int], ranks: int) -> str:
    """Return what people have to know of such files, a line; empty where there are none."""
    if not found:
        return ""
    name, size = min(found.items())
    return (f"{len(found)} files were opened on communicators of a part of the ranks, as {name!r} by {size} of "
            f"{ranks}: a replay opens them on all ranks, or on each alone, and files of other parts may be missing; "
            "--each-rank keeps the files of every rank")  # fmt: skip
