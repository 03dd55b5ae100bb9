"""The tables of one Darshan log, without a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from mpiio_ext.analytics.sources.darshan import convert

if TYPE_CHECKING:
    import pyarrow as pa

    from mpiio_ext.analytics.sources.base import Outcome


def tables_of(path: Path) -> tuple[dict[str, pa.Table], Outcome]:
    """Return the rows of a log in each table, and whether it is whole; there are none where it could not be read.

    A log without the ID of a job is a job all the same: it has the number 0.
    """
    converted = convert([path.name], str(path.absolute().parent))
    (outcome,) = converted.outcomes
    tables = dict(converted.tables)
    for name in ("darshan_job", "darshan_file"):
        ids = pc.fill_null(tables[name]["job_id"], 0)
        tables[name] = tables[name].set_column(tables[name].column_names.index("job_id"), "job_id", ids)
    return tables, outcome
