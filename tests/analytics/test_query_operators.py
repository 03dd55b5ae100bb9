"""Every operator of the query interface on both engines, against what Python makes of the same rows."""

from __future__ import annotations

import ast
import collections
import datetime
import math
import pathlib
import re
import statistics
import types
from collections.abc import Callable
from typing import Any

import pytest

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.query import APPROXIMATE_RANK_ERROR, ExpressionError, Tuples, load, open_engine
from support import analytics_query
from support.analytics_query import Store, comparable
from support.marks import slow
from support.parts import require

require("ibis")

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "howto" / "ask-a-store.md"
DAY = 1517097600.0  # 2018-01-28 UTC
APPS = ["vasp_std", "lmp", None, "Vasp%", "it's"]
JOBS: list[dict[str, Any]] = [
    {
        "job_id": number,
        "log_id": 1000 + number,
        "app": APPS[number % 5],
        "bytes_written": None if number % 7 == 0 else (number % 4) * 4 * 10**9 + number,
        "bytes_read": 2**53 + 2 * number + 1,
        "write_time": float(number % 3),
        "start_time": DAY - 43200 + 3600 * number,
        "end_time": DAY - 43200 + 3600 * number + (None or 60 * number),
        "uses_mpiio": None if number % 6 == 0 else number % 2 == 0,
        "modules": None if number == 5 else ["POSIX", "MPI-IO"][: number % 3],
    }
    for number in range(1, 41)
]
FILES: list[dict[str, Any]] = [
    {
        "job_id": 1 + number // 3,
        "log_id": 1001 + number // 3,
        "file_id": 2**62 + number,
        "bytes_written": number * 10**8,
        "ost_word_0": None if number // 3 == 4 else 1 << (number % 4) | (number // 3 % 2) << 9,
        # Files of the first half come from a store that had one word.
        **({"ost_word_1": 1 << (number % 3)} if number >= 60 else {}),
    }
    for number in range(120)
]
SLURM = [{"job_id": number, "node_count": 2 * number, "start_time": DAY} for number in range(10, 60)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    found = Store(tmp_path_factory.mktemp("store"))
    found.add("darshan_job", JOBS[:20])
    found.add("darshan_job", JOBS[20:])
    found.add("darshan_file", FILES[:60], osts=62)
    found.add("darshan_file", FILES[60:], osts=80)
    found.add("slurm", SLURM)
    return found


Loader = Callable[[str], Tuples]


@pytest.fixture(scope="module", params=["duckdb", *slow("spark")])
def tuples(request: pytest.FixtureRequest, store: Store) -> Loader:
    engine = analytics_query.engine(request.param)
    return lambda table: load(engine, store, table)


CONDITIONS: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("bytes_written < 1GB", lambda j: j["bytes_written"] < 10**9),
    ("bytes_written >= 8GB and write_time > 0", lambda j: j["bytes_written"] >= 8 * 10**9 and j["write_time"] > 0),
    ("not bytes_written < 4GB", lambda j: not j["bytes_written"] < 4 * 10**9),
    ("bytes_written is null", lambda j: j["bytes_written"] is None),
    ("job_id in (3, 5, 8) or job_id = 40", lambda j: j["job_id"] in (3, 5, 8, 40)),
    ("job_id not between 5 and 38", lambda j: not 5 <= j["job_id"] <= 38),
    ("app like 'vasp%'", lambda j: j["app"].startswith("vasp")),
    ("app contains 'asp'", lambda j: "asp" in j["app"]),
    ("app not in ('lmp', 'it''s')", lambda j: j["app"].strip() not in ("lmp", "it's")),
    ('lower(app) startswith "vasp"', lambda j: j["app"].lower().startswith("vasp")),
    ("app == 'it''s'", lambda j: j["app"] == "it's"),
    ("start_time >= '2018-01-28'", lambda j: j["start_time"] >= DAY),
    (
        "start_time between '2018-01-28 02:00' and '2018-01-28T05:00+01:00'",
        lambda j: DAY + 7200 <= j["start_time"] <= DAY + 14400,
    ),
    ("end_time - start_time < 20min", lambda j: j["end_time"] - j["start_time"] < 1200),
    ("start_time + 1h > '2018-01-28'", lambda j: j["start_time"] + 3600 > DAY),
    ("bytes_written / write_time >= 2GB/s", lambda j: j["write_time"] and j["bytes_written"] / j["write_time"] >= 2e9),
    ("job_id % 7 = 2", lambda j: j["job_id"] % 7 == 2),
    ("-job_id * 2 + 1 < -41", lambda j: -j["job_id"] * 2 + 1 < -41),
    ("uses_mpiio", lambda j: j["uses_mpiio"]),
    ("not uses_mpiio or job_id = 6", lambda j: j["job_id"] == 6 or j["uses_mpiio"] is False),
    ("coalesce(bytes_written, 0) = 0", lambda j: (j["bytes_written"] or 0) == 0),
    ("bytes_read = 9007199254740995", lambda j: j["bytes_read"] == 2**53 + 3),
    ("modules contains 'MPI-IO'", lambda j: "MPI-IO" in j["modules"]),
    ("length(modules) = 1", lambda j: len(j["modules"]) == 1),
    ("true", lambda j: True),
]


def _holds(test: Callable[[dict[str, Any]], Any], job: dict[str, Any]) -> bool:
    """Return what SQL makes of a test in Python: a comparison with NULL does not hold."""
    try:
        return bool(test(job))
    except (TypeError, AttributeError):
        return False


def test_conditions(tuples: Loader) -> None:
    """Every condition in one query, as computed columns; NULL passes no filter."""
    computed = {f"c{at}": text for at, (text, _) in enumerate(CONDITIONS)}
    rows = tuples("darshan_job").project("job_id", **computed).sort("job_id").rows()
    for at, (text, test) in enumerate(CONDITIONS):
        found = [row["job_id"] for row in rows if row[f"c{at}"]]
        expected = [job["job_id"] for job in JOBS if _holds(test, job)]
        assert found == expected, text


def test_filter_takes_texts_expressions_and_functions(tuples: Loader) -> None:
    import ibis

    jobs = tuples("darshan_job")
    few = jobs.filter("bytes_written < 1GB", ibis._.job_id > 5, lambda table: table.job_id < 20)
    expected = [j["job_id"] for j in JOBS if 5 < j["job_id"] < 20 and (j["bytes_written"] or 10**9) < 10**9]
    assert sorted(few.pandas()["job_id"]) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bytes_writen < 1GB", "no column 'bytes_writen'; did you mean bytes_written"),
        ("BYTES_WRITTEN < 1GB", "no column 'BYTES_WRITTEN'; did you mean bytes_written"),
        ("zzz = 1", "no column 'zzz'; there are: job_id"),
        ("app < 5", "does not compare"),
        ("bytes_written < '1GB'", "does not compare"),
        ("bytes_written < 5min", "a value in B meets one in s"),
        ("start_time > 'yesterday'", "'yesterday' is no date"),
        ("bytes_written = null", "is null"),
        ("bytes_written", "is no condition"),
        ("bytes_written and true", "is no condition"),
        ("app + 1 = 2", "needs numbers"),
        ("sum(bytes_written) > 5", "needs a group"),
        ("lowr(app) = 'x'", "no function 'lowr'; did you mean lower"),
        ("job_id in ()", "is empty"),
        ("abs(1, 2) = 1", "abs.. takes 1 values, not 2"),
    ],
)
def test_wrong_conditions(text: str, reason: str, store: Store) -> None:
    jobs = load(analytics_query.engine("duckdb"), store, "darshan_job")
    with pytest.raises(ExpressionError, match=reason):
        jobs.filter(text)


def test_a_question_in_a_message_ends_it(store: Store) -> None:
    with pytest.raises(ExpressionError, match=r"^in 'bytes_writen < 1GB': .*did you mean bytes_written.*\?$"):
        load(analytics_query.engine("duckdb"), store, "darshan_job").filter("bytes_writen < 1GB")


def test_sort_and_limit(tuples: Loader) -> None:
    jobs = tuples("darshan_job").project("job_id", "bytes_written")

    def size(job: dict[str, Any]) -> tuple[bool, int]:
        return job["bytes_written"] is None, -(job["bytes_written"] or 0)

    expected = [job["job_id"] for job in sorted(JOBS, key=lambda job: (*size(job), job["job_id"]))]
    assert [row["job_id"] for row in jobs.sort("-bytes_written", "job_id").rows()] == expected
    assert [row["job_id"] for row in jobs.sort("job_id", descending=True).limit(3)] == [40, 39, 38]


def test_aggregates(tuples: Loader) -> None:
    rows = (
        tuples("darshan_job")
        .group(
            "app",
            jobs="count()",
            known="count(bytes_written)",
            most="max(bytes_written)",
            total="sum(bytes_read)",
            average="mean(write_time)",
            middle="median(write_time)",
            kinds="count_distinct(write_time)",
            rate="sum(bytes_written) / sum(write_time)",
            spread="std(job_id)",
            third="quantile(job_id, 0.25)",
        )
        .rows()
    )
    assert {row["app"] for row in rows} == set(APPS)
    for row in rows:
        jobs = [job for job in JOBS if job["app"] == row["app"]]
        sizes = [job["bytes_written"] for job in jobs if job["bytes_written"] is not None]
        times = [job["write_time"] for job in jobs]
        assert row["jobs"] == len(jobs) and row["known"] == len(sizes) and row["most"] == max(sizes)
        assert row["total"] == sum(job["bytes_read"] for job in jobs)
        assert row["average"] == pytest.approx(statistics.mean(times)) and row["middle"] == statistics.median(times)
        assert row["kinds"] == len(set(times)) and row["rate"] == pytest.approx(sum(sizes) / sum(times))
        assert row["spread"] == pytest.approx(statistics.stdev(job["job_id"] for job in jobs))
        assert row["third"] == pytest.approx(
            statistics.quantiles([j["job_id"] for j in jobs], n=4, method="inclusive")[0]
        )


def test_ost_bitmaps(tuples: Loader) -> None:
    """The union of bitmaps of two widths; files of a store that had one word lack the second, which is not 0 OSTs."""
    used: dict[int, set[int]] = collections.defaultdict(set)
    for file in FILES:
        for word in (0, 1):
            bits = file.get(f"ost_word_{word}") or 0
            used[file["job_id"]] |= {62 * word + bit for bit in range(62) if bits >> bit & 1}
    rows = tuples("darshan_file").group("job_id", osts="ost_count()").rows()
    assert {row["job_id"]: row["osts"] for row in rows} == {job: len(osts) or None for job, osts in used.items()}
    assert any(row["osts"] is None for row in rows)
    with pytest.raises(ExpressionError, match="no OST bitmap"):
        tuples("slurm").group("job_id", osts="ost_count()")


def _bits(file: dict[str, Any]) -> set[int] | None:
    words = [file.get(f"ost_word_{word}") for word in (0, 1)]
    if words == [None, None]:
        return None
    return {62 * at + bit for at, word in enumerate(words) for bit in range(62) if (word or 0) >> bit & 1}


def test_osts_of_groups_as_results(tuples: Loader) -> None:
    """Union and intersection over the files of each job; a job without Lustre has NULL, not no OST."""
    jobs: dict[int, list[set[int] | None]] = collections.defaultdict(list)
    for file in FILES:
        jobs[file["job_id"]].append(_bits(file))
    known = {job: [osts for osts in files if osts is not None] for job, files in jobs.items()}
    files = tuples("darshan_file")
    both = ((files.ost_union("job_id"), set.union), (files.ost_intersection(["job_id"]), set.intersection))
    for found, merge in both:
        rows = {row["job_id"]: row for row in found}
        assert {job: row["osts"] for job, row in rows.items()} == {
            job: sorted(merge(*osts)) if osts else None for job, osts in known.items()
        }
        assert all(row["with_osts"] == len(known[job]) for job, row in rows.items())
        assert all(row["with_osts"] + row["without_osts"] == len(jobs[job]) for job, row in rows.items())
    assert rows[5]["osts"] is None and rows[5]["without_osts"] == 3
    assert any(row["osts"] == [] for row in rows.values()) and any(row["osts"] for row in rows.values())
    with pytest.raises(ExpressionError, match="no OST bitmap"):
        tuples("slurm").ost_union("job_id")
    with pytest.raises(ExpressionError, match="no column 'job'"):
        files.ost_union("job")


def test_osts_that_jobs_have_in_common(tuples: Loader) -> None:
    """The intersection of unions; a job whose OSTs are not known is counted as left out."""
    used: dict[int, set[int]] = collections.defaultdict(set)
    for file in FILES:
        used[file["job_id"]] |= _bits(file) or set()
    unions = tuples("darshan_file").ost_union("job_id")

    def common(*jobs: int) -> tuple[Any, ...]:
        [row] = unions.filter(f"job_id in ({', '.join(map(str, jobs))})").ost_intersection().rows()
        return row["osts"], row["with_osts"], row["without_osts"]

    assert common(20, 31) == (sorted(used[20] & used[31]), 2, 0)  # of stores with one word and with two
    assert common(30, 31) == (sorted(used[30] & used[31]), 2, 0) and max(used[30] & used[31]) >= 62
    assert common(1, 5) == (sorted(used[1]), 1, 1) and common(5) == (None, 0, 1) and common(999) == (None, 0, 0)
    [row] = unions.filter("length(osts) > 3", "osts contains 62").ost_union().rows()
    assert row["osts"] == sorted(set().union(*(osts for osts in used.values() if len(osts) > 3 and 62 in osts)))
    assert unions.group("job_id", osts="ost_count()").filter("job_id = 30").rows() == [
        {"job_id": 30, "osts": len(used[30])}
    ]


def test_documented_examples_of_osts(tuples: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of docs/howto/ask-a-store.md as they stand there, but for the IDs of the jobs."""
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    [block] = [block for block in blocks if "ost_intersection" in block]
    monkeypatch.setattr("mpiio_ext.analytics.IOMiner", lambda setup: types.SimpleNamespace(load=tuples))
    space: dict[str, Any] = {}
    found = []
    for statement in ast.parse(block.replace("4478544", "30").replace("6265799", "31")).body:
        if isinstance(statement, ast.Expr):
            found.append(eval(ast.unparse(statement), space).rows())
        else:
            exec(ast.unparse(statement), space)
    counts, unions, shared, two, on_14 = found
    assert {row["job_id"]: row["osts"] for row in counts} == {
        row["job_id"]: None if row["osts"] is None else len(row["osts"]) for row in unions
    }
    assert len(shared) == len(unions) and [row["with_osts"] for row in two] == [2] and len(two[0]["osts"]) > 1
    assert on_14 == []


def test_bins(tuples: Loader) -> None:
    def classify_workload(size: int) -> int:
        return 0 if size < 10**9 else 1 if size < 10**10 else 2

    jobs = tuples("darshan_job").project("job_id", "bytes_written", "app")
    binned = jobs.bin("workload", classify_workload, "bytes_written").bin("edges", ["1GB", "10GB"], "bytes_written")
    named = binned.bin("label", lambda app, number: f"{app}-{number}", "app", "job_id", type="string")
    fast = named.bin("half", lambda size: size / 2, "bytes_written", vectorized=True)
    for row in fast.rows():
        size = row["bytes_written"]
        assert row["workload"] == row["edges"] == (None if size is None else classify_workload(size))
        assert row["label"] == (None if row["app"] is None else f"{row['app']}-{row['job_id']}")
        assert row["half"] == (None if size is None else size / 2)


def test_a_single_edge_of_a_bin_may_stand_by_itself(tuples: Loader) -> None:
    jobs = tuples("darshan_job")
    found = [jobs.bin("x", edge, "bytes_written").sort("job_id").rows() for edge in ("10GB", ["10GB"], 10**10)]
    assert found[0] == found[1] == found[2]
    assert {row["x"] for row in found[0]} >= {0, 1}


def test_bins_that_fail(tuples: Loader) -> None:
    jobs = tuples("darshan_job").sort("job_id")
    with pytest.raises(AnalyticsError, match=r"function <lambda> failed for the row job_id=5: ZeroDivisionError"):
        jobs.bin("x", lambda job: 1 // (job - 5), "job_id", type="int64").rows()
    with pytest.raises(AnalyticsError, match=r"returned 'a' for job_id=\d+, no int64; name the type"):
        jobs.bin("x", lambda job: "a", "job_id", type="int64").rows()


def test_group_function(tuples: Loader) -> None:
    """A function of groups gives scalars, mappings, several tuples; what is chained behind it waits for it."""
    files = tuples("darshan_file").project("job_id", "file_id", "bytes_written", "ost_word_0")

    def calculate_ost_count(frame: Any) -> int | None:
        words = frame["ost_word_0"].dropna()
        return len(set(words)) if len(words) else None

    counted = files.group("job_id", calculate_ost_count)
    assert "not run yet" in repr(counted) and "not run yet" in counted.explain()
    expected = {job: None if job == 5 else 3 for job in range(1, 41)}
    assert {row["job_id"]: row["calculate_ost_count"] for row in counted.rows()} == expected
    assert counted.filter("calculate_ost_count is null").rows() == [{"job_id": 5, "calculate_ost_count": None}]

    def extremes(frame: Any) -> list[dict[str, Any]]:
        ordered = frame.sort_values("bytes_written")
        return [{"which": name, "file_id": ordered["file_id"].iloc[at]} for name, at in (("least", 0), ("most", -1))]

    found = files.group("job_id", extremes).filter("which = 'most'").join(tuples("slurm"), "job_id").sort("job_id")
    expected_rows = [(job, 2**62 + 3 * (job - 1) + 2, 2 * job) for job in range(10, 41)]
    assert [(row["job_id"], row["file_id"], row["node_count"]) for row in found.rows()] == expected_rows


def test_group_function_that_fails(tuples: Loader) -> None:
    def broken(frame: Any) -> int:
        return 1 if frame["job_id"].iloc[0] != 7 else [][1]

    files = tuples("darshan_file").project("job_id", "bytes_written")
    with pytest.raises(AnalyticsError, match=r"^function broken failed for the group job_id=7 \(3 rows\): IndexError"):
        files.group("job_id", broken).rows()


def test_percentiles(tuples: Loader) -> None:
    jobs = tuples("darshan_job")
    rows = jobs.percentile("bytes_written", "write_time").rows()
    sizes = sorted(job["bytes_written"] for job in JOBS if job["bytes_written"] is not None)
    assert [row["percentile"] for row in rows] == list(range(101))
    for row in rows:
        place = row["percentile"] / 100 * (len(sizes) - 1)
        low, high = sizes[math.floor(place)], sizes[math.ceil(place)]
        assert row["bytes_written"] == pytest.approx(low + (high - low) * (place - math.floor(place)), rel=1e-12)
    assert jobs.filter("job_id > 100").percentile("write_time", points=[50]).rows() == [
        {"percentile": 50.0, "write_time": None}
    ]


@pytest.mark.parametrize("name", ["duckdb", *slow("spark")])
@pytest.mark.parametrize("kind", ["even", "long tail", "ties"])
def test_approximate_percentiles_keep_their_promise(name: str, kind: str) -> None:
    """The rank of each is off by less than APPROXIMATE_RANK_ERROR of the rows; NULL has no rank."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(23)
    values = {
        "even": random.permutation(30_000).astype(float),
        "long tail": np.exp(3 * random.standard_normal(30_000)),
        "ties": random.integers(0, 12, 30_000).astype(float) ** 9,
    }[kind]
    engine = analytics_query.engine(name)
    column = pa.array(values, mask=random.random(values.size) < 0.1)
    known = np.sort(column.drop_null().to_numpy())
    tuples = Tuples(engine, engine.table(pa.table({"size": column})), "made")
    points = [0, 0.5, 1, 5, 25, 50, 75, 95, 99, 99.5, 100]
    rows = tuples.percentile("size", points=points, approximate=True).rows()
    assert [row["percentile"] for row in rows] == points
    for row in rows:
        # Of equal values any rank may be meant: [share below, share up to and with it] has to come near the point.
        below, upto = (np.searchsorted(known, row["size"], side) / known.size for side in ("left", "right"))
        wanted = row["percentile"] / 100
        assert below - APPROXIMATE_RANK_ERROR < wanted < upto + APPROXIMATE_RANK_ERROR, (kind, row)
    exact = tuples.percentile("size", points=points).arrow()["size"].to_numpy()
    assert exact == pytest.approx(np.percentile(known, points), rel=1e-12)


def test_results(tuples: Loader) -> None:
    """Every form of a result holds the same values; absent is not 0, large numbers keep their digits."""
    jobs = (
        tuples("darshan_job").sort("job_id").project("job_id", "bytes_written", "bytes_read", "uses_mpiio", "modules")
    )
    expected = [{name: job[name] for name in jobs.columns} for job in JOBS]
    assert jobs.rows() == expected == list(jobs) == jobs.polars().to_dicts()
    frame = jobs.pandas()
    assert str(frame["bytes_written"].dtype) == "Int64" and frame["bytes_written"].isna().sum() == 5
    assert list(frame["bytes_read"]) == [job["bytes_read"] for job in JOBS]
    assert jobs.count() == len(jobs) == 40 and bool(jobs) and not tuples("lmt")
    assert [batch.num_rows for batch in jobs.batches(25)] == [25, 15]
    text = repr(jobs)
    assert "NULL" in text and "… more rows" in text and len(text.splitlines()) == 14


def test_tables_without_files_are_empty(tuples: Loader) -> None:
    assert tuples("lmt").rows() == []
    assert tuples("lmt").columns[:2] == ["time", "ost"]
    with pytest.raises(AnalyticsError, match="no table 'darshan'; there are darshan_job"):
        tuples("darshan")


def test_project_distinct_rename(tuples: Loader) -> None:
    apps = tuples("darshan_job").project(name="app").distinct().rename(program="name")
    assert comparable(apps.rows()) == comparable([{"program": app} for app in APPS])
    with pytest.raises(ExpressionError, match="did you mean job_id"):
        tuples("slurm").project("jobid")


def test_explain_names_the_files(tuples: Loader, store: Store) -> None:
    text = tuples("slurm").filter("job_id = 12").explain()
    assert "SELECT" in text and "job_id" in text
    assert "slurm_0.parquet" in text or "READ_PARQUET" in text


def test_explain_carries_out_and_says_what_it_took(tuples: Loader) -> None:
    found = tuples("slurm").filter("job_id >= 0")
    assert re.search(r"(Total Time|Carried out in):? \d*\.\d+ ?s", found.explain(run=True))
    assert not re.search(r"Total Time|Carried out", found.explain())


def test_quoted_dates_are_utc_unless_they_say_otherwise(tuples: Loader) -> None:
    starts = [row["start_time"] for row in tuples("slurm").rows() if row["start_time"] is not None]
    middle = math.floor(sorted(starts)[len(starts) // 2])
    when = datetime.datetime.fromtimestamp(middle, datetime.timezone.utc)
    local = when.astimezone(datetime.timezone(datetime.timedelta(hours=-8)))
    counts = {
        tuples("slurm").filter(f"start_time >= '{text}'").count()
        for text in (when.strftime("%Y-%m-%d %H:%M:%S"), local.isoformat(" "))
    }
    assert counts == {sum(start >= when.timestamp() for start in starts)} and counts != {0}


def test_duckdb_prunes_row_groups_by_job(tmp_path: pathlib.Path) -> None:
    """A filter or a join on job_id reads the row groups that can have such jobs, and few others."""
    store = Store(tmp_path)
    rows = [{"job_id": job, "file_id": hash((job, 1)), "file": f"{hash((job, 2))}"} for job in range(40_960)]
    store.add("darshan_file", rows, row_group=2048)
    store.add("darshan_job", [{"job_id": job} for job in range(5000, 5020)])
    engine = open_engine("duckdb", threads=1)
    files, jobs = load(engine, store, "darshan_file"), load(engine, store, "darshan_job")
    whole = _bytes_read(files.project("job_id", "file_id", "file"))
    assert _bytes_read(files.filter("job_id between 5000 and 5010").project("job_id", "file_id", "file")) < whole / 4
    assert _bytes_read(jobs.project("job_id").join(files, "job_id").project("job_id", "file_id", "file")) < whole / 4
    engine.close()


def _bytes_read(tuples: Tuples) -> int:
    """Return the bytes that DuckDB read from files for a query, from its profile."""
    sql = tuples.engine.compile(tuples.expression)
    plan = tuples.engine.backend.con.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}").fetchall()[0][1]
    found = re.search(r'"total_bytes_read": (\d+)', plan)
    assert found, plan[:500]
    return int(found.group(1))


def test_settings_that_do_not_exist() -> None:
    with pytest.raises(AnalyticsError, match="engine 'sparc' is not known"):
        open_engine("sparc")
    with pytest.raises(AnalyticsError, match="has no setting 'cores'; it has memory, temporary, threads"):
        open_engine("duckdb", cores=2)
