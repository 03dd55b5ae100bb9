"""The files that hold results: JSON and Parquet with the same columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from mpiio_ext.bench.results.rows import SCHEMA_VERSION, Absent, Row, Summary, summarize
from mpiio_ext.common.files import write_whole

__all__ = ["write_document", "write_results"]

_ARROW_TYPES = {"str": "string", "int": "int64", "float": "float64", "bool": "bool"}


def _arrow_type(annotation: str) -> Any:
    """Return the Arrow type of a field's annotation."""
    import pyarrow as pa

    name = annotation.split(" | ")[0]
    return pa.list_(pa.int64()) if name.startswith("tuple[int") else pa.type_for_alias(_ARROW_TYPES[name])


def _arrow_table(kind: type[Row] | type[Summary], rows: Sequence[Row | Summary], metadata: dict[str, str]) -> Any:
    import pyarrow as pa

    schema = pa.schema(
        [
            pa.field(
                field.name,
                _arrow_type(str(field.type)),
                nullable="None" in str(field.type),
            )
            for field in fields(kind)
        ],
        metadata=metadata,
    )
    return pa.Table.from_pylist([asdict(row) for row in rows], schema=schema)


def write_document(
    folder: Path,
    *,
    environment: dict[str, Any],
    configuration: dict[str, Any],
    rows: Sequence[Row],
    absent: Sequence[Absent],
    failure: str | None,
) -> Path:
    """Write results.json and return its path; what was there before stays until the new file is whole."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "environment": environment,
        "configuration": configuration,
        "failure": failure,
        "absent": [asdict(item) for item in absent],
        "summary": [asdict(row) for row in summarize(rows)],
        "runs": [asdict(row) for row in rows],
    }
    path = folder / "results.json"
    write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
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

    summaries = summarize(rows)
    json_path = write_document(folder, environment=environment, configuration=configuration, rows=rows, absent=absent,
                               failure=failure)
    metadata = {
        "mpiio_ext.bench.schema_version": str(SCHEMA_VERSION),
        "mpiio_ext.bench.environment": json.dumps(environment),
        "mpiio_ext.bench.configuration": json.dumps(configuration),
    }
    runs_path, summary_path = folder / "runs.parquet", folder / "summary.parquet"
    pq.write_table(_arrow_table(Row, rows, metadata), runs_path)
    pq.write_table(_arrow_table(Summary, summaries, metadata), summary_path)
    return [json_path, runs_path, summary_path]
