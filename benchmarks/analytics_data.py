"""A store like that of a production system, straight as Parquet files by the schema, for measurements of queries.

Usage: ``python benchmarks/analytics_data.py FOLDER [--jobs 1000000] [--report]``

10 files a job on average, lognormal; 0.08 % of the jobs have customised stripes, on up to all of 248 OSTs; nine files
of ten lie on Lustre; sizes are lognormal; a day of LMT in steps of 5 s for each OST, without gaps. All numbers come
from hashes of job and file, so that the same call writes the same rows. DuckDB does it in parallel: about two minutes
for a million jobs on two busy cores. Jobs start within ten days, the LMT day is the first of them.

The folder has a manifest, and what the store sets aside of the files with uncommon layouts.

With ``--report``, columns that only the report reads are there too: histograms of request sizes, sequential requests,
collective calls, and each job's sums over its files.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from mpiio_ext.analytics.store.layouts import with_layouts
from mpiio_ext.analytics.store.manifest import FileEntry, Manifest, write_manifest
from mpiio_ext.analytics.tables.parquet import key_of
from mpiio_ext.analytics.tables.schema import OST_WORD_BITS, SIZE_BINS, TABLES, ost_words

OSTS = 248
START = 1_517_097_600  # 2018-01-28 UTC
DAYS = 10
STEP_S = 5
DAY_S = 86_400
CUSTOMISED = 0.0008
JOBS_PER_FILE = 100_000
#: Rows of a row group, as the store writes them.
GROUP_ROWS = 1 << 20
_SQL_TYPES = {
    "int32": "INTEGER", "int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN",
    "list<int32>": "INTEGER[]", "list<string>": "VARCHAR[]",
}  # fmt: skip


def uniform(*keys: str) -> str:
    """Return SQL for a number from 0 to 1 that depends on `keys` only.

    DuckDB's hash of several values ends with an XOR of that of the last one: without the second hash, numbers whose
    keys differ in their end would not be independent of each other.
    """
    return f"((hash(hash({', '.join(keys)})) >> 11)::DOUBLE / 9007199254740992.0)"


def normal(*keys: str) -> str:
    """Return SQL for a standard normal number (Box–Muller)."""
    return f"(sqrt(-2 * ln({uniform(*keys, '1')} + 1e-300)) * cos(2 * pi() * {uniform(*keys, '2')}))"


def jobs_sql(low: int, high: int, jobs: int) -> str:
    """Return SQL for the jobs `low` to below `high` with what their files need."""
    span = DAYS * DAY_S
    return f"""
        SELECT i AS job_id, i + 1 AS log_id, 'darshan' AS source,
            greatest(1, least(2000, floor(exp(1.2 + 1.5 * {normal("i", "'files'")}))))::BIGINT AS files,
            {START} + {span} * (i / {jobs}.0) AS start_time,
            60 + 3600 * {uniform("i", "'run'")} AS run_time,
            (2 ** floor(12 * {uniform("i", "'ranks'")} ** 2))::INTEGER AS processes,
            {uniform("i", "'custom'")} < {CUSTOMISED} AS customised,
            'app' || floor(300 * {uniform("i", "'app'")} ** 3)::INTEGER AS app
        FROM (SELECT unnest(range({low}, {high})) AS i)"""


def files_sql(low: int, high: int, jobs: int) -> str:
    """Return SQL for the files of the jobs `low` to below `high`, all columns by name."""
    word = [
        f"""CASE WHEN stripes IS NULL THEN NULL WHEN stripes = 1
            THEN CASE WHEN first // {OST_WORD_BITS} = {k} THEN 1::BIGINT << (first % {OST_WORD_BITS}) ELSE 0 END
            ELSE list_sum([1::BIGINT << (x % {OST_WORD_BITS}) FOR x IN osts IF x // {OST_WORD_BITS} = {k}])::BIGINT
            END AS {name}"""
        for k, name in enumerate(ost_words(OSTS))
    ]
    key = "job_id", "f"
    return f"""
        SELECT *, {", ".join(word)} FROM (
            SELECT *, CASE WHEN stripes IS NOT NULL
                    THEN list_sort([((first + x) % {OSTS})::INTEGER FOR x IN range(stripes)]) END AS osts,
                stripes AS stripe_count, CASE WHEN stripes IS NOT NULL THEN -1 END AS stripe_offset,
                CASE WHEN stripes IS NULL THEN NULL WHEN customised THEN 4194304 ELSE 1048576 END AS stripe_size,
                CASE WHEN stripes IS NOT NULL THEN 1 END AS components,
                write_start + least(run_time / 2, bytes_written / 5e7) AS write_end,
                read_start + least(run_time / 2, bytes_read / 5e7) AS read_end
            FROM (
                SELECT *,
                    (hash(job_id, f, 'id') >> 1)::BIGINT AS file_id, '/lustre/' || app || '/' || f AS file,
                    'lustre' AS fs_type, processes AS ranks,
                    floor(exp(14 + 3 * {normal(*key, "'bytes'")}))::BIGINT AS bytes_written,
                    floor(exp(13 + 3 * {normal(*key, "'read'")}))::BIGINT AS bytes_read,
                    ceil(1000 * {uniform(*key, "'writes'")})::BIGINT AS writes,
                    ceil(1000 * {uniform(*key, "'reads'")})::BIGINT AS reads,
                    start_time + run_time / 2 * {uniform(*key, "'ws'")} AS write_start,
                    start_time + run_time / 2 * {uniform(*key, "'rs'")} AS read_start,
                    floor({OSTS} * {uniform(*key, "'ost'")})::BIGINT AS first,
                    CASE WHEN {uniform(*key, "'lustre'")} > 0.9 THEN NULL WHEN NOT customised THEN 1
                        ELSE 2 + floor({OSTS - 1} * {uniform(*key, "'count'")} ** 2)::BIGINT END AS stripes
                FROM (SELECT * EXCLUDE (files), unnest(range(files)) AS f FROM ({jobs_sql(low, high, jobs)}))))"""


def requests_sql(files: str) -> str:
    """Return SQL for files with what the report reads of their requests."""
    parts = []
    for way in ("read", "write"):
        large = f"floor({way}s * {uniform('job_id', 'f', repr(way + 'large'))})::BIGINT"
        parts += [f"{large} AS {way}_size_1m_4m", f"{way}s - {large} AS {way}_size_1k_10k"]
        parts += [f"0::BIGINT AS {way}_size_{name}" for name in SIZE_BINS if name not in ("1m_4m", "1k_10k")]
        parts += [f"floor({way}s * {uniform('job_id', repr(way + 'consec'))})::BIGINT AS consec_{way}s"]
        calls = f"CASE WHEN {uniform('job_id', repr('mpiio'))} < 0.1 THEN {way}s"
        parts += [f"{calls} ELSE 0 END AS mpiio_coll_{way}s", f"0::BIGINT AS mpiio_indep_{way}s"]
    return f"SELECT *, {', '.join(parts)} FROM ({files})"


def sums_sql(jobs: str, files: str) -> str:
    """Return SQL for jobs with their sums over a table of files."""
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ("bytes_read", "bytes_written", "reads", "writes"))
    return f"""
        SELECT jobs.*, sums.* EXCLUDE (job_id), start_time + run_time AS end_time, true AS uses_posix,
            {uniform("job_id", repr("mpiio"))} < 0.3 AS uses_mpiio, true AS uses_lustre, false AS partial,
            (1000 + floor(500 * {uniform("job_id", repr("user"))}))::BIGINT AS uid
        FROM ({jobs}) AS jobs JOIN (SELECT job_id, {sums} FROM '{files}' GROUP BY job_id) AS sums USING (job_id)
        ORDER BY job_id"""


def lmt_sql() -> str:
    """Return SQL for a day of LMT."""
    return f"""
        SELECT ({START} + {STEP_S} * s)::DOUBLE AS time, o::INTEGER AS ost, printf('OST%04x', o) AS ost_name,
            'scratch' AS file_system,
            floor(exp(16 + 2 * {normal("s", "o", "'r'")})) AS bytes_read,
            floor(exp(17 + 2 * {normal("s", "o", "'w'")})) AS bytes_written
        FROM (SELECT unnest(range({DAY_S // STEP_S})) AS s), (SELECT unnest(range({OSTS})) AS o) ORDER BY s, o"""


def columns_of(con: Any, table: str, sql: str) -> str:
    """Return SQL for `sql` with the columns of the schema in order; those that it lacks are NULL."""
    have = {row[0] for row in con.execute(f"DESCRIBE {sql}").fetchall()}
    parts = [
        f'{f"{c.name}::{_SQL_TYPES[c.type]}" if c.name in have else f"NULL::{_SQL_TYPES[c.type]}"} AS "{c.name}"'
        for c in TABLES[table].columns
    ]
    if table == "darshan_file":
        parts += ost_words(OSTS)
    return f"SELECT {', '.join(parts)} FROM ({sql})"


def entries(folder: Path) -> tuple[FileEntry, ...]:
    """Return what the manifest of a store says of the files in a folder."""
    found = []
    for table in ("darshan_job", "darshan_file", "lmt"):
        for number, path in enumerate(sorted(folder.glob(f"{table}_[0-9]*.parquet"))):
            ends = pc.min_max(pq.read_table(path, columns=[key_of(table)]).column(0)).as_py()
            rows, osts = pq.read_metadata(path).num_rows, OSTS if table == "darshan_file" else 0
            size, low, high = path.stat().st_size, int(ends["min"]), int(ends["max"])
            part = -1 if table == "lmt" else number
            found.append(FileEntry(table, path.name, rows, size, low, high, osts=osts, subtable=part, target=part))
    return tuple(found)


def generate(folder: Path, jobs: int, report: bool = False) -> dict[str, Any]:
    """Write the store and return what is in it; with `report`, all columns that a report reads."""
    import duckdb

    folder.mkdir(parents=True, exist_ok=True)
    con = duckdb.connect()
    started = time.perf_counter()

    def write(table: str, name: str, sql: str) -> None:
        target = folder / f"{name}.parquet"
        shaped = columns_of(con, table, sql)
        con.execute(f"COPY ({shaped}) TO '{target}' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {GROUP_ROWS})")

    for part, low in enumerate(range(0, jobs, JOBS_PER_FILE)):
        high = min(jobs, low + JOBS_PER_FILE)
        files, of_jobs = files_sql(low, high, jobs), jobs_sql(low, high, jobs)
        write("darshan_file", f"darshan_file_{part:04d}", requests_sql(files) if report else files)
        if report:
            of_jobs = sums_sql(of_jobs, f"{folder}/darshan_file_{part:04d}.parquet")
        write("darshan_job", f"darshan_job_{part:04d}", of_jobs)
    write("lmt", "lmt_0000", lmt_sql())
    write_manifest(folder, with_layouts(folder, Manifest(commit=1, files=entries(folder), osts=OSTS)))
    rows = {
        table: con.execute(f"SELECT count(*) FROM '{folder}/{table}_*.parquet'").fetchall()[0][0]
        for table in ("darshan_job", "darshan_file", "lmt")
    }
    found = {"jobs": jobs, "osts": OSTS, "rows": rows, "seconds": round(time.perf_counter() - started, 1)}
    (folder / "store.json").write_text(json.dumps(found), encoding="utf-8")
    return found


def main() -> None:
    """Generate as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--report", action="store_true", help="also the columns that only a report reads")
    arguments = parser.parse_args()
    print(json.dumps(generate(arguments.folder, arguments.jobs, arguments.report)))


if __name__ == "__main__":
    main()
