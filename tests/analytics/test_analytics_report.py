"""Pages of a store and of a job: what they say, how large they are, and that tables without names have none."""

from __future__ import annotations

import types
from typing import Any

import pyarrow as pa
import pytest

from mpiio_ext.analytics.analyses.counting import jobs_of
from mpiio_ext.analytics.analyses.source import Tables
from mpiio_ext.analytics.anonymous import anonymous_tables, without_secrets
from mpiio_ext.analytics.cli_output import show_table
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.report.grids import cell_words, grid
from mpiio_ext.analytics.report.job import charts, document, facts, job_tables, store_osts
from mpiio_ext.analytics.report.job_page import _plain, job_page
from mpiio_ext.analytics.report.output import job_text
from mpiio_ext.analytics.report.store import store_page
from support.analytics_jobs import many, source
from support.expected import Expected, in_words
from support.html_page import Page

START = 1_517_126_400.0  # a multiple of 5 s


def _store() -> object:
    """Return the four files of the paper's Figure 3 as one job, a second job, and LMT around the first."""
    times = [(0.0, 10.0), (6.0, 12.0), (4.0, 8.0), (16.0, 18.0)]
    files = [
        {
            "log_id": 1,
            "job_id": 77,
            "file_id": 500 + k,
            "file": f"/scratch/user/$x_{k}$.dat",
            "processes": 64,
            "ranks": 64,
            "bytes_written": 10**9,
            "bytes_read": 0,
            "write_start": START + start,
            "write_end": START + end,
            "osts": [3],
            "stripe_count": 1,
            "mount": "/scratch",
        }
        for k, (start, end) in enumerate(times, 1)
    ]
    files.append(
        {
            "log_id": 1,
            "job_id": 77,
            "file": "<STDOUT>",
            "processes": 64,
            "bytes_written": 5,
            "write_start": START,
            "write_end": START + 30,
            "write_time": 0.01,
        }
    )
    slurm = [{"job_id": 77, "node_count": 2, "user": "someone"}]
    return source(darshan_job=_jobs(), darshan_file=files, lmt=_lmt(), slurm=slurm)


def _lmt() -> list[dict[str, object]]:
    return [
        {"time": START + 5 * k, "ost": ost, "file_system": "snx1", "bytes_written": 2e9, "bytes_read": 0.0}
        for k in range(-20, 30)
        for ost in (3, 4)
    ]


def _jobs() -> list[dict[str, object]]:
    return [
        {
            "log_id": 1,
            "job_id": 77,
            "app": "code_x",
            "exe": "/home/u/code_x in",
            "uid": 4242,
            "processes": 64,
            "start_time": START,
            "end_time": START + 30,
            "run_time": 30.0,
            "bytes_written": 4 * 10**9,
            "bytes_read": 0,
            "modules": ["POSIX"],
            "partial": False,
        },
        {"log_id": 2, "job_id": 78, "app": "code_y"},
    ]


def test_a_job_is_taken_out_of_the_store_with_the_lmt_of_its_time_and_osts() -> None:
    tables = job_tables(_store(), 77)
    assert {name: table.num_rows for name, table in tables.items()} == {
        "darshan_job": 1,
        "darshan_file": 5,
        "slurm": 1,
        "lmt": 31,
    }
    assert set(tables["lmt"]["ost"].to_pylist()) == {3}
    with pytest.raises(AnalyticsError, match="job 9: the store has no log of it"):
        job_tables(_store(), 9)


def test_jobs_of_two_users_with_one_id_are_two() -> None:
    jobs = [{"log_id": 1, "job_id": 5, "uid": 10}, {"log_id": 2, "job_id": 5, "uid": 11}, {"log_id": 3, "job_id": 5}]
    files = [{"log_id": log, "job_id": 5, "bytes_written": 10**log} for log in (1, 2, 3, 2)]
    store = source(darshan_job=jobs, darshan_file=files)
    with pytest.raises(AnalyticsError, match="job 5: the store has logs of 2 users with this ID; --user says whose"):
        job_tables(store, 5)
    tables = job_tables(store, 5, 11)
    assert tables["darshan_job"]["log_id"].to_pylist() == [2] and tables["darshan_file"]["log_id"].to_pylist() == [2, 2]
    with pytest.raises(AnalyticsError, match="job 5: the store has no log of it"):
        job_tables(store, 5, 12)
    one = source(darshan_job=[jobs[0], jobs[2]], darshan_file=files)  # statistics of the library may not say whose
    assert job_tables(one, 5)["darshan_job"].num_rows == 2


def test_the_store_tells_how_many_osts_there_are() -> None:
    """By the bitmaps of all files of the mount point: OSTs 0 to 99, of which one was never met."""
    store: Any = _store()
    tables = job_tables(store, 77)
    assert store_osts(store, tables) is None  # no bitmaps
    files = store.tables["darshan_file"]
    masks = [[sum(1 << bit for bit in range(62) if bit != 7), 0, 0, 0, 0], [0, (1 << 38) - 1, 0, 0, 0]]
    for number, mask in enumerate(masks):
        files = files.append_column(f"ost_word_{number}", pa.array(mask, pa.int64()))
    assert store_osts(Tables({**store.tables, "darshan_file": files}), tables) == 100
    elsewhere = files.set_column(files.column_names.index("mount"), "mount", pa.array(["/home"] * 5))
    assert store_osts(Tables({**store.tables, "darshan_file": elsewhere}), tables) is None


def test_only_lmt_of_the_job_s_own_file_system_counts() -> None:
    store: Any = _store()
    store.setup = types.SimpleNamespace(lmt_mounts={"snx1": "/scratch"})
    assert job_tables(store, 77)["lmt"].num_rows == 31
    store.setup.lmt_mounts = {"snx1": "/elsewhere"}
    assert "lmt" not in job_tables(store, 77)
    lmt = store.tables["lmt"]
    other = lmt.set_column(lmt.column_names.index("file_system"), "file_system", pa.array(["snx2"] * lmt.num_rows))
    both: Any = Tables({**store.tables, "lmt": pa.concat_tables([lmt, other])})
    assert "lmt" not in job_tables(both, 77)  # nobody says which of the two it is
    both.setup = types.SimpleNamespace(lmt_mounts={"snx1": "/scratch", "snx2": "/home"})
    assert set(job_tables(both, 77)["lmt"]["file_system"].to_pylist()) == {"snx1"}


def test_the_critical_path_of_figure_3(expected: Expected) -> None:
    """Without the standard streams. The job's share: its own 4 GB among 2 GB in each step of 5 s; 0 to 10 s, 6 to 12 s
    and 4 to 8 s touch two steps each, 16 to 18 s one."""
    tables = job_tables(_store(), 77)
    found = document(tables)
    line, servers = charts(tables, found)
    write = found["directions"]["write"]
    critical = {row["file"]: row["exclusive"] for row in write["critical_files"]}
    bars = [[line.data["labels"][bar["row"]], bar["start"], bar["end"], bar["critical"]] for bar in line.data["bars"]]
    expected(
        {
            "directions": list(found["directions"]),
            "critical": critical,
            "critical time": write["factors"]["critical_time"],
            "own share": write["own_share"],
            "bars": bars,
            "spans": servers.data["spans"],
            "bytes of servers": set(servers.data["series"][1]["y"]),
        }
    )


def test_ordinary_files_stand_beside_the_slow_ones() -> None:
    """Of 40 files 20 take 100 s and 20 a second: beside slow ones alone nothing would look slow."""
    files = [
        {
            "log_id": 1,
            "job_id": 5,
            "file_id": k,
            "file": f"/f{k}",
            "bytes_written": 10,
            "bytes_read": 0,
            "write_start": START + k % 20,
            "write_end": START + k % 20 + (100 if k < 20 else 1),
        }
        for k in range(40)
    ]
    job = {"log_id": 1, "job_id": 5, "start_time": START, "end_time": START + 200, "run_time": 200.0}
    tables = job_tables(source(darshan_job=[job], darshan_file=files), 5)
    [line] = charts(tables, document(tables))
    took = [bar["end"] - bar["start"] for bar in line.data["bars"] if not bar["critical"]]
    assert len(took) == 16
    assert took.count(1.0) >= 2 and took.count(100.0) >= 12
    assert "24 more files" in line.data["caption"] and "4 of the drawn files" in line.data["caption"]


def test_files_that_were_not_opened_are_named() -> None:
    files = [{"log_id": 1, "job_id": 5, "file_id": k, "file": f"/f{k}"} for k in range(3)]
    tables = job_tables(source(darshan_job=[{"log_id": 1, "job_id": 5, "files": 2}], darshan_file=files), 5)
    assert dict(facts(tables))["files"] == "3, including 1 not opened"


def test_the_page_of_a_job_says_all_of_it_and_stays_small() -> None:
    text = job_page(job_tables(_store(), 77))
    page = Page(text)
    assert page.problems == [] and len(text) < 1_000_000
    for words in (
        "I/O of job 77",
        "code_x",
        "nodes",
        "$x_1$.dat",
        "on the critical path",
        "by all jobs",
        "Contributing factors",
        "time since the start of the job [s]",
    ):
        assert words in page.text, words
    assert "an orange bar is the file's part of the critical path" in page.text and "Dark" not in page.text
    assert "code_x" in job_text(job_tables(_store(), 77))


@pytest.mark.parametrize(
    ("conclusion", "first"),
    [
        (
            "It is slow. The cause explains 5.02 s (100 % of the critical time in which any rank reads; 42 % of the"
            " run time).",
            "It is slow. The cause explains 5.02 s (100 % of the time in I/O; 42 % of the run time).",
        ),
        (
            "No cause was found, since the bandwidth is not low: all ranks together wrote 8 GB in 2 s (critical time),"
            " 4 GB/s (low: below 1 GB/s; option --low-bandwidth).",
            "No cause was found, since the bandwidth is not low: all ranks together wrote 8 GB in 2 s (time in I/O),"
            " 4 GB/s.",
        ),
        (
            "The cause explains 90 % of the estimated critical time in which any rank writes.",
            "The cause explains 90 % of the time in I/O.",
        ),
        (
            "Reads: It is slow. The cause explains at most 491 s (42 % of the critical time, 39 % of the run time).",
            "Reads: It is slow. The cause explains at most 491 s (42 % of the time in which there were reads, 39 %"
            " of the run time).",  # of 748 s in I/O these are 66 %
        ),
    ],
)
def test_the_first_sentence_leaves_out_how_times_are_known(conclusion: str, first: str) -> None:
    assert _plain(conclusion) == first


def test_a_page_counts_files_in_one_way() -> None:
    text = job_text(job_tables(_store(), 77))
    assert "5, including 1 standard stream" in text
    assert "files written, including standard streams: 5" in text


def test_tables_without_names_keep_numbers_and_relations(expected: Expected) -> None:
    tables = job_tables(_store(), 77)
    found = anonymous_tables(tables, {"code*": "Physics"})
    assert [table.schema for table in found.values()] == [table.schema for table in tables.values()]
    expected({name: [in_words(row) for row in table.to_pylist()[:5]] for name, table in found.items()})


def test_a_query_without_secrets_keeps_known_numbers_only() -> None:
    table = pa.table({"bytes_read": [1], "job_id": [5], "app": ["x"], "start_time": [1.0], "made_up": [3], "uid": [4]})
    assert without_secrets(table).column_names == ["bytes_read"]


def test_the_page_of_a_store_loads_each_table_once_and_asks_for_few_columns() -> None:
    class Counting:
        def __init__(self) -> None:
            self.tables, self.loads = many(300), list[str]()

        def load(self, table: str) -> Any:
            self.loads.append(table)
            return self.tables.load(table)

    source = Counting()
    store_page(source, title="x")
    assert len(source.loads) == len(set(source.loads)) >= 2
    assert list(jobs_of(source, "darshan", ["app"]).columns) == ["app", "source"]


def test_the_page_of_a_store_of_many_jobs() -> None:
    text = store_page(many(3000), title="Many")
    page = Page(text)
    assert page.problems == [] and len(text) < 1_000_000
    for title in ("Sequential I/O", "Read ratio", "File-sharing patterns", "Customised striping", "Low bandwidth"):
        assert title in page.text
    assert page.elements["svg"] >= 6


def test_ids_are_plain_and_times_are_dates(expected: Expected) -> None:
    table = pa.table(
        {
            "job_id": [4478544, None],
            "start_time": [1490000342.5, None],
            "uid": [12345, 1],
            "time": [float("nan"), 0.0],
            "opens": [12345, 1],
            "run_time": [5.5, 1234567.0],
        }
    )
    found = grid(table)
    expected([found.columns, *found.rows])


def test_headings_name_units_and_shares_are_percent(expected: Expected) -> None:
    unit = pa.field("own", pa.float64(), metadata={"unit": "s"})
    schema = pa.schema(
        [
            pa.field("bandwidth", pa.float64()),
            pa.field("bytes_read", pa.int64()),
            pa.field("small", pa.float64()),
            unit,
            pa.field("x_y", pa.string(), metadata={"heading": "x_y"}),
        ]
    )
    found = grid(pa.table([[756011854.0], [5], [0.016], [2.5], ["a"]], schema=schema))
    expected([found.columns, *found.rows])


def test_all_five_factors_of_each_job_fit_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        "direction",
        "application",
        "job_id",
        "processes",
        "nodes",
        "bandwidth",
        "small",
        "non_consecutive",
        "collective",
        "osts",
        "processes_per_ost",
    ]
    values = [
        "write",
        "an_application_of_38_letters_in_a_path",
        54478544,
        131072,
        4096,
        987654321.0,
        0.12345,
        0.98765,
        1.0,
        248.0,
        528.51612,
    ]
    show_table(pa.table({name: [value] for name, value in zip(names, values, strict=True)}))
    text = capsys.readouterr().out
    assert "528.5" in text and "54478544" in text and "Not shown" not in text
    assert max(map(len, text.splitlines())) <= 160


def test_cells_are_words_and_long_tables_say_what_is_not_shown() -> None:
    assert [cell_words(value) for value in (None, float("nan"), True, 1234567, 0.12345, 2.0, [1, 2], "x")] == [
        "–",
        "–",
        "yes",
        "1,234,567",
        "0.1235",
        "2",
        "1, 2",
        "x",
    ]
    assert grid(pa.table({"a_b": list(range(30))}), most=25).note == "5 more rows are not shown."
