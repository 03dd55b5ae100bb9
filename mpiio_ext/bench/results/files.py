"""The files of results: JSON and Parquet with the same columns."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mpiio_ext.common.files import write_whole
from mpiio_ext.common.results import SCHEMA_VERSION, Absent, Row, measure, summary, tables


@functools.cache
def _text(row: Row) -> str:
    """Return a row as JSON on one line; between measurements all but the newest rows are known."""
    return json.dumps(asdict(row), ensure_ascii=False)


def write_document(
    folder: Path,
    *,
    environment: dict[str, Any],
    configuration: dict[str, Any],
    rows: Sequence[Row],
    absent: Sequence[Absent],
    failure: str | None,
    final: bool = True,
) -> Path:
    """Write results.json and return its path; the earlier file stays until the new one is complete.

    Parameters
    ----------
    final : with ``summary``, and on the disk. Between measurements neither is waited for: the disk would have to take
        what they have left in memory.
    """
    document = {
        "schema_version": SCHEMA_VERSION,
        "environment": environment,
        "configuration": configuration,
        "failure": failure,
        "absent": [asdict(item) for item in absent],
        "summary": [summary(row) for row in measure(rows)] if final else [],
    }
    if final:
        text = json.dumps({**document, "runs": [asdict(row) for row in rows]}, indent=1, ensure_ascii=False)
    else:
        head = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
        text = f'{head},\n "runs": [{", ".join(map(_text, rows))}]\n}}'
    path = folder / "results.json"
    write_whole(path, text + "\n", durable=final)
    return path


def write_results(
    folder: Path,
    *,
    environment: dict[str, Any],
    configuration: dict[str, Any],
    rows: Sequence[Row],
    absent: Sequence[Absent],
    failure: str | None,
) -> list[Path]:
    """Write results.json, runs.parquet and summary.parquet and return their paths.

    The Parquet files carry environment and configuration as JSON text in the schema's metadata, under
    ``mpiio_ext.bench.environment`` and ``mpiio_ext.bench.configuration``.
    """
    import pyarrow.parquet as pq

    paths = [
        write_document(
            folder, environment=environment, configuration=configuration, rows=rows, absent=absent, failure=failure
        )
    ]
    metadata: dict[bytes | str, bytes | str] = {
        "mpiio_ext.bench.schema_version": str(SCHEMA_VERSION),
        "mpiio_ext.bench.environment": json.dumps(environment),
        "mpiio_ext.bench.configuration": json.dumps(configuration),
    }
    for name, table in tables(rows, metadata).items():
        paths.append(folder / f"{name}.parquet")
        pq.write_table(table, paths[-1])
    return paths
