"""Contents of each storage target of a placed store: subtables, files, rows and bytes, by the manifest.

Problem. A store is placed on storage targets so that executors do not meet on one, and so that a question about some
jobs leaves the other targets alone (IOMiner, Section II-C, Figure 2). For that the targets must hold about as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiio_ext.analytics.analyses.counting import count_words, share, share_words
from mpiio_ext.analytics.analyses.result import Chart, Result

if TYPE_CHECKING:
    from mpiio_ext.analytics.store.catalog import Catalog


def _chart(rows: list[dict[str, int | str]]) -> list[Chart]:
    """Return the bytes of each target as a figure; none without bytes."""
    sizes = [int(row["bytes"]) for row in rows]
    if not sum(sizes):
        return []
    ends = [share_words(share(end(sizes), sum(sizes))) for end in (min, max)]
    title = f"Each storage target has {ends[0]}" + (f" to {ends[1]}" if ends[0] != ends[1] else "") + " of the bytes"
    return [
        Chart(
            kind="bars",
            name="place",
            title=title,
            data={
                "labels": ["store" if row["target"] == -1 else str(row["target"]) for row in rows],
                "series": [{"name": "bytes", "values": sizes}],
                "notes": [share_words(share(size, sum(sizes))) for size in sizes],
                "x_label": "storage target",
                "y_label": "bytes of tables [B]",
            },
        )
    ]


def placement_of(catalog: Catalog) -> Result:
    """Return each storage target's contents: ``target``, ``folder``, ``subtables``, ``files``, ``rows``, ``bytes``.

    Target -1 is the store's own folder: what is not placed (yet).
    """
    import pyarrow as pa

    manifest = catalog.manifest
    folders = dict(enumerate(manifest.placement.get("folders", ()))) or {-1: str(catalog.folder)}
    for entry in manifest.files:
        folders.setdefault(entry.target, str(catalog.folder))
    rows: list[dict[str, int | str]] = []
    for target, folder in sorted(folders.items()):
        mine = [entry for entry in manifest.files if entry.target == target]
        rows.append(
            {
                "target": target,
                "folder": folder,
                "subtables": len({entry.subtable for entry in mine}) if target >= 0 else 0,
                "files": len(mine),
                "rows": sum(entry.rows for entry in mine),
                "bytes": sum(entry.bytes for entry in mine),
            }
        )
    count = int(manifest.placement.get("subtables", 0))
    words = f"{count_words(len(rows), 'storage target')}, {count_words(count, 'subtable')} of each table."
    fields = [
        pa.field(
            name, pa.string() if name == "folder" else pa.int64(), metadata={"unit": "B"} if name == "bytes" else None
        )
        for name in ("target", "folder", "subtables", "files", "rows", "bytes")
    ]
    return Result(
        name="place",
        title="Tables on storage targets",
        unit="B",
        caption=words if count else "The store is not placed.",
        parameters={"subtables": count},
        charts=_chart(rows),
        table=pa.Table.from_pylist(rows, schema=pa.schema(fields)),
    )
