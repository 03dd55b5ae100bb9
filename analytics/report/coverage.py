"""What a report does not cover: the logs that the store knows, by status and reason, and the rows of each table.

A page that counts three jobs and is silent about five logs that could not be read says something false about a system.
"""

from __future__ import annotations

from typing import Any

from mpiio_ext.analytics.analyses.counting import count_words

#: Reasons that are told; the manifest has all of them.
_MOST_REASONS = 8


def coverage(source: Any, *, anonymous: bool = False) -> tuple[list[tuple[str, str]], list[str]]:
    """Return facts (logs by status, rows by table) and sentences (why logs are not whole) of a store.

    Nothing of a source that is no store. `anonymous`: without reasons, which may name files.
    """
    catalog = getattr(source, "catalog", None)
    if catalog is None:
        return [], []
    from mpiio_ext.analytics.store.logtable import read_logs

    logs = read_logs(catalog.folder, catalog.manifest.logs).select(["kind", "status", "reason"])
    counts = logs.group_by(["kind", "status", "reason"]).aggregate([([], "count_all")]).to_pylist()
    rows: dict[str, int] = {}
    for entry in catalog.manifest.files:
        rows[entry.table] = rows.get(entry.table, 0) + entry.rows
    facts = [
        ("logs", _statuses(counts)),
        ("rows", ", ".join(f"{name} {count:,}" for name, count in rows.items()) or "none"),
    ]
    missing = [row for row in counts if row["status"] != "whole"]
    if anonymous or not missing:
        return facts, []
    missing.sort(key=lambda row: (-row["count_all"], row["kind"], row["status"], row["reason"] or ""))
    told = [
        f"{count_words(row['count_all'], 'log')} of {row['kind']} {row['status']}: {row['reason'] or 'no reason given'}"
        for row in missing[:_MOST_REASONS]
    ]
    left = sum(row["count_all"] for row in missing[_MOST_REASONS:])
    more = f"; {left:,} more for other reasons" if left else ""
    return facts, [f"Not covered, or not whole: {'; '.join(told)}{more}. `mpiio-ext analyze manifest` names each log."]


def _statuses(counts: list[dict[str, Any]]) -> str:
    kinds: dict[str, dict[str, int]] = {}
    for row in counts:
        found = kinds.setdefault(row["kind"], {})
        found[row["status"]] = found.get(row["status"], 0) + row["count_all"]
    parts = []
    for kind, found in sorted(kinds.items()):
        told = ", ".join(f"{count:,} {name}" for name, count in sorted(found.items()))
        parts.append(f"{kind} {sum(found.values()):,} ({told})")
    return ", ".join(parts) or "none"
