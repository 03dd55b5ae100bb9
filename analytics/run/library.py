"""What the library did for each file of a run, and which hints were in force: from its statistics as lines of JSON.

Guarantees. Lines of the same file are added up. Memory depends on the number of stored files (`_MOST`), the files with
the most bytes. A line that was cut by a full disk is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpiio_ext.common.units import seconds_text, size_text

#: Files that are kept.
_MOST = 200
_SUMMED = (
    "collective_writes",
    "collective_reads",
    "independent_writes",
    "independent_reads",
    "native_calls",
    "rounds",
    "bytes_written",
    "bytes_read",
    "independent_bytes_written",
    "independent_bytes_read",
    "write_requests",
    "write_request_bytes",
    "read_requests",
    "read_request_bytes",
    "messages",
    "message_bytes",
    "direct_bytes_written",
    "direct_bytes_read",
    "device_bytes_written",
    "device_bytes_read",
    "device_s",
    "delegated_calls",
    "delegated_writes",
    "delegated_reads",
    "total_s",
    "independent_s",
    "exchange_s",
    "io_s",
    "wait_s",
    "delegated_s",
    "flush_barrier_s",
)
_WAYS = ("write", "read")
_AGGREGATORS = re.compile(r"(\d+) of \d+ aggregators?\b")
#: Times of a table, and those of the lines, which are sums over the ranks.
_TIMES = {"exchange": "exchange", "storage": "io", "wait": "wait", "independent": "independent"}
_TEXTS = ("write_partition", "read_partition", "write_reason", "read_reason", "delegation")

_NOTHING = dict.fromkeys(_SUMMED, 0) | dict.fromkeys(_TEXTS, "") | {"ranks": 0, "slowest_rank": None, "slowest_s": 0.0}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as stream:
        for text in stream:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            if isinstance(line, dict) and line.get("kind") in ("file", "run"):
                yield line


def _bytes(row: Mapping[str, Any]) -> float:
    return float(row["write_request_bytes"] + row["read_request_bytes"])


def _join(files: dict[str, dict[str, Any]], line: Mapping[str, Any]) -> None:
    path = str(line.get("path", ""))
    row = files.setdefault(path, {"path": path, "hints": {}, **_NOTHING})
    for name in _SUMMED:
        row[name] += line.get(name) or 0
    for name in _TEXTS:
        row[name] = line.get(name) or row[name]
    row["ranks"] = max(row["ranks"], line.get("ranks") or 0)
    if (line.get("slowest_s") or 0.0) > row["slowest_s"]:
        row["slowest_rank"], row["slowest_s"] = line.get("slowest_rank"), line["slowest_s"]
    row["hints"] |= line.get("hints") or {}
    if len(files) > 2 * _MOST:
        for path in sorted(files, key=lambda path: -_bytes(files[path]))[_MOST:]:
            del files[path]


def read(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """Return the files of the statistics, those with the most bytes first, and whether the library was there at all."""
    files: dict[str, dict[str, Any]] = {}
    seen = False
    if path.is_file():
        for line in _lines(path):
            seen = True
            if line["kind"] == "file":
                _join(files, line)
    return sorted(files.values(), key=lambda row: -_bytes(row))[:_MOST], seen


def is_of(row: Mapping[str, Any], file: str) -> bool:
    """Return whether a row of the statistics, which name files as the program does, is of a file."""
    name = str(row["path"]).rpartition(":")[2].removeprefix("./")
    return file == name or (not name.startswith("/") and file.endswith(f"/{name}"))


def _method(row: Mapping[str, Any]) -> str:
    """Return how a file was accessed."""
    ways = []
    collectives = row["collective_writes"] + row["collective_reads"]
    names = sorted({row[f"{way}_partition"] for way in _WAYS} - {""})
    if collectives:
        ways.append(f"two-phase, file domains {' and '.join(names)}" if names else "collectives without exchange")
    if row["independent_writes"] + row["independent_reads"]:
        ways.append("each rank by itself")
    if row["delegated_calls"] + row["delegated_writes"] + row["delegated_reads"]:
        ways.append("through delegates")
    if row["device_bytes_written"] + row["device_bytes_read"]:
        of_gpu = size_text(row["device_bytes_written"] + row["device_bytes_read"])
        ways.append(f"{of_gpu} in GPU memory (copies by the driver: {seconds_text(row['device_s'])}, sum of all ranks)")
    if row["native_calls"]:
        ways.append(f"{row['native_calls']:,} calls by the MPI library")
    return ", ".join(ways) or "nothing"


def _aggregators(row: Mapping[str, Any]) -> str | None:
    """Return how many of the file's ranks owned file domains, by the reasons of collectives."""
    found = dict.fromkeys(each for way in _WAYS for each in _AGGREGATORS.findall(row[f"{way}_reason"]))
    return f"{', '.join(found)} of {row['ranks']:,} ranks" if found else None


def table(files: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each file: method, rounds, requests, bytes between nodes, time, reason; units in the names."""
    out = []
    for row in files:
        requests = row["write_requests"] + row["read_requests"]
        each = {f"{name}_s": row[f"{source}_s"] / max(row["ranks"], 1) for name, source in _TIMES.items()}
        out.append(
            {
                "file": row["path"],
                "ranks": row["ranks"],
                "method": _method(row),
                "aggregators": _aggregators(row),
                "rounds": row["rounds"],
                "collectives": row["collective_writes"] + row["collective_reads"],
                "independent_accesses": row["independent_writes"] + row["independent_reads"],
                "requests": requests,
                "request_bytes": int(_bytes(row)),
                "mean_request_bytes": round(_bytes(row) / requests) if requests else None,
                "messages": row["messages"],
                "between_nodes_bytes": row["message_bytes"],
                **each,
                "slowest_rank": row["slowest_rank"],
                "slowest_s": row["slowest_s"],
                "why": "; ".join(
                    dict.fromkeys(filter(None, (row["write_reason"], row["read_reason"], row["delegation"])))
                ),
            }
        )
    return out


def hints(files: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each hint that is no default, who set it, and for how many files."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in files:
        for name, one in row["hints"].items():
            if one.get("source") != "MPIOX_REPORT_STATS":
                found.setdefault((name, str(one.get("value")), str(one.get("source"))), []).append(row["path"])
    return [
        {"hint": name, "value": value, "set_by": source, "files": len(paths), "for_example": paths[0]}
        for (name, value, source), paths in sorted(found.items())
    ]
