"""``mpiio-ext pioneer compare``: activity in time, the figures' series, the page, the document, the exit status."""

from __future__ import annotations

import html.parser
import json
import pathlib
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.cli import main
from mpiio_ext.pioneer.compare.activity import Activity, activity_of_path, activity_of_tables
from mpiio_ext.pioneer.compare.comparison import BINS, MEANINGS, Metric, compare_workloads
from mpiio_ext.pioneer.compare.metrics import LIMITS, TIMED, is_within, shown
from mpiio_ext.pioneer.compare.page import beside, render
from mpiio_ext.pioneer.compare.workload import load_workload
from mpiio_ext.pioneer.path.document import PathInfo
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from mpiio_ext.pioneer.sanitize.sanitize import SANITIZED
from mpiio_ext.pioneer.sanitize.system_files import matcher
from mpiio_ext.pioneer.table import TraceInfo
from mpiio_ext.pioneer.traces import is_table, open_trace, sanitized, save_sanitized, tables_of
from support.expected import Expected
from support.pioneer_traces import saved_table, trace_batches

MS = 1_000_000


def activity(rows: list[tuple[int, int, int]], *, ranks: int = 1, root: bool = True) -> Activity:
    """Return the activity of writes (start, duration, size)."""
    columns = np.array(rows, np.int64).reshape(-1, 3)
    yes = np.ones(len(rows), bool)
    return Activity(columns[:, 0], columns[:, 1], columns[:, 2], yes, yes, yes & root, np.ones(len(rows)), ranks)


# ---- activity --------------------------------------------------------------------------------------------------------


def test_bytes_are_spread_over_the_time_that_they_take() -> None:
    found = activity([(0, 100, 1000), (150, 0, 40), (90, 40, 80)]).moved(50, 4)
    assert found.tolist() == pytest.approx([500, 500 + 20, 60, 40])


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9)), max_size=40),
    st.integers(1, 300),
)
def test_bins_add_up(rows: list[tuple[int, int, int]], bins: int) -> None:
    one = activity(rows)
    width = max(1, one.makespan) / bins
    assert one.moved(width, bins).sum() == pytest.approx(one.total_bytes(writes=True))
    assert one.begun(width, bins).sum() == len(rows)
    assert (one.moved(width, bins) >= 0).all()


def test_children_weigh_as_many_as_are_wanted() -> None:
    tables = tables_of(sanitized(trace_batches(ranks=4, writes=10)))
    found = activity_of_tables(tables)
    assert (found.ranks, found.operations, found.total_bytes(writes=True)) == (4, 5 * 12, 50_000)
    assert (found.total_bytes(writes=False), found.makespan) == (0, 24 * MS * 3 // 2 - MS)
    more = found.with_children(6)
    assert (more.ranks, more.operations) == (7, 2 * 12 + 6 * 12)
    assert found.with_children(3) is found


def test_a_path_stands_for_all_members(tmp_path: pathlib.Path) -> None:
    """What the activity of a trace is, is that of its path, whose groups stand for the ranks."""
    workload = load_workload(saved_table(tmp_path, ranks=5))
    of_path = activity_of_path(workload.path)
    assert (of_path.ranks, of_path.operations) == (5, workload.activity.operations)
    assert of_path.total_bytes(writes=True) == workload.activity.total_bytes(writes=True) == 6 * 20_000
    width = workload.activity.makespan / 10
    assert of_path.makespan == workload.activity.makespan
    assert of_path.begun(width, 10).tolist() == workload.activity.begun(width, 10).tolist()
    assert of_path.moved(width, 10).tolist() == pytest.approx(workload.activity.moved(width, 10).tolist())


def test_a_path_of_nothing() -> None:
    empty = WorkloadPath(WorkloadPath.schema(1).empty_table(), PathInfo(representatives=(0,), members=((0,),)))
    found = activity_of_path(empty)
    assert (found.makespan, found.operations, found.moved(1.0, 3).tolist()) == (0, 0, [0, 0, 0])


# ---- tables in files -------------------------------------------------------------------------------------------------


def test_a_sanitized_table_is_read_in_place_of_the_trace(tmp_path: pathlib.Path) -> None:
    path = saved_table(tmp_path)
    assert is_table(path)
    assert [item.name for item in tmp_path.iterdir()] == ["table.parquet"]
    info, batches = open_trace([path])
    assert (info.format, info.ranks) == ("test", 3)
    rows = pa.Table.from_batches(list(batches), SANITIZED)
    again = pa.Table.from_batches(list(sanitized(rows.to_batches())), SANITIZED)
    assert (
        again.to_pylist()
        == rows.to_pylist()
        == pa.Table.from_batches(list(sanitized(trace_batches())), SANITIZED).to_pylist()
    )
    result = CliRunner().invoke(main, ["pioneer", "path", str(path), "-o", str(tmp_path / "path.parquet")])
    assert "88 operations" not in result.output and "44 operations of 3 ranks" in result.output
    assert not is_table(tmp_path / "path.parquet")


def test_only_what_is_below_a_folder(tmp_path: pathlib.Path) -> None:
    assert matcher(below="/run/x/").match("/run/x/file") is None
    assert matcher(below="/run/x/").match("/run/y")
    path = saved_table(tmp_path)
    assert load_workload(path, below="/scratch/own").activity.operations == 3 * 22
    with pytest.raises(ValueError, match=r"no operations of the application on files below /nowhere/"):
        load_workload(path, below="/nowhere/")


# ---- the comparison --------------------------------------------------------------------------------------------------


def test_figures_of_the_same_and_of_another_number_of_processes(tmp_path: pathlib.Path) -> None:
    """More children of the same behaviour make the same figures."""
    first, second = (load_workload(saved_table(tmp_path, f"{ranks}.parquet", ranks=ranks)) for ranks in (3, 6))
    found = compare_workloads(first, second)
    assert found.passed, found.failed
    for pair in (found.figures.throughput, found.figures.data_operations, found.figures.arrivals):
        assert pair[0].tolist() == pytest.approx(pair[1].tolist())
    assert found.figures.arrival_distance == 0
    assert found.figures.throughput[0].size == BINS
    assert found.figures.throughput[0].sum() * found.figures.bin_ns / 1e9 == pytest.approx(
        first.activity.total_bytes(writes=True)
    )
    known = found.figures.data_ratio[0][~np.isnan(found.figures.data_ratio[0])]
    assert known.min() == 0 and known.max() == 1


@pytest.mark.parametrize("note", ["", "slack times were multiplied by 0"])
def test_another_number_of_processes_makes_another_number_of_operations(tmp_path: pathlib.Path, note: str) -> None:
    """That is no difference, at whatever pace; with as many processes it is one."""
    three, six = (load_workload(saved_table(tmp_path, f"{ranks}.parquet", ranks=ranks)) for ranks in (3, 6))
    for second, judged in ((six, False), (three, True)):
        total = next(item for item in compare_workloads(three, second, note=note).metrics if item.name == "total")
        assert total.judged == judged


def test_another_pace_is_not_judged_where_that_is_said(tmp_path: pathlib.Path) -> None:
    first = load_workload(saved_table(tmp_path, "a.parquet", pause=10 * MS))
    second = load_workload(saved_table(tmp_path, "b.parquet", pause=0))
    assert {metric.name for metric in compare_workloads(first, second).failed} == {"slack_us", "makespan"}
    found = compare_workloads(first, second, note="replayed as fast as can be")
    assert found.passed
    assert {metric.name for metric in found.metrics if not metric.judged} == TIMED


def test_the_time_of_a_run_of_milliseconds_is_not_judged(tmp_path: pathlib.Path) -> None:
    """No machine repeats it within 5 %; what a run of it did is judged as ever."""
    first = load_workload(saved_table(tmp_path, "a.parquet", pause=0))
    second = load_workload(saved_table(tmp_path, "b.parquet", pause=MS // 20))
    found = compare_workloads(first, second)
    makespan = next(metric for metric in found.metrics if metric.name == "makespan")
    assert first.activity.makespan < 100 * MS and makespan.value > makespan.limit and not makespan.judged
    assert found.passed


@pytest.mark.parametrize(
    ("value", "passes", "text"),
    [
        (0.7 - 0.65, True, "0.0500"),
        (0.35 - 0.3, True, "0.0500"),
        (0.45 - 0.4, True, "0.0500"),
        (0.55 - 0.5, True, "0.0500"),  # 0.05000000000000004
        (0.05004, False, "0.05004"),
        (0.0500001, False, "0.0500001"),
        (0.0499999, True, "0.0500"),
        (0.0512, False, "0.0512"),
    ],
)
def test_what_is_printed_agrees_with_the_judgment(value: float, passes: bool, text: str) -> None:
    metric = Metric(name="arrival", value=value, limit=LIMITS["arrival"])
    assert (metric.passed, shown(value, metric.limit)) == (passes, text)


@given(st.floats(0, 200), st.sampled_from(sorted({*LIMITS.values()})))
def test_no_number_is_printed_on_the_other_side_of_its_limit(value: float, limit: float) -> None:
    assert is_within(float(shown(value, limit)), limit) == is_within(value, limit)
    assert is_within(limit, limit) and not is_within(limit + 1e-6, limit)


class _Page(html.parser.HTMLParser):
    """Collects what a page would fetch, and whether its elements are closed."""

    VOID = ("meta", "br", "path")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.charts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.charts += tag == "svg"
        for name in ("src", "href"):
            if values.get(name) is not None and not str(values[name]).startswith(("#", "data:")):
                self.fetched.append(str(values[name]))
        if tag not in self.VOID or (tag == "path" and "d" not in values):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            while self.open.pop() != tag:
                pass


def test_everything_is_left(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Page, document and figures; the page fetches nothing, names are escaped, all metrics have limits and meanings."""
    table = saved_table(tmp_path, "<original>.parquet")
    path = tmp_path / "path.parquet"
    load_workload(table).path.save(path)
    words = ["pioneer", "compare", str(table), str(path), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert {item.name for item in (tmp_path / "out").iterdir()} == {
        "comparison.html",
        "comparison.json",
        "throughput.svg",
        "data-ratio.svg",
        "data-operations.svg",
        "arrival-rate.svg",
    }
    text = (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert (page.fetched, page.charts, page.open) == ([], 2 * 4, [])  # each also in a form for phones
    assert "<original>" not in text and "url(http" not in text
    assert "All limits hold" in text
    document = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    names = {item["name"].rpartition(".")[2] for item in document["metrics"]}
    assert names == {*LIMITS, "total"} - {"in_path"} and {*LIMITS, "total"} == set(MEANINGS)
    expected({name: part for name, part in document.items() if name not in ("figures", "metrics", "mpiio_ext")})
    assert len(document["figures"]["throughput"]["original"]) == BINS
    for figure in (tmp_path / "out").glob("*.svg"):
        ElementTree.parse(figure)


@pytest.mark.parametrize("spoilt", [False, True])
def test_the_status_says_whether_all_limits_hold(tmp_path: pathlib.Path, spoilt: bool) -> None:
    first = saved_table(tmp_path, "a.parquet")
    second = saved_table(tmp_path, "b.parquet", size=1500 if spoilt else 1000)
    words = ["pioneer", "compare", str(first), str(second)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == int(spoilt)
    assert ("FAILED" in result.output) == spoilt
    result = CliRunner().invoke(main, [*words, "--json", "--html", str(tmp_path / "page.html")])
    document = json.loads(result.stdout)
    assert ("private.size" in document["failed"]) == spoilt != document["passed"]
    assert ("beyond their limits" in (tmp_path / "page.html").read_text(encoding="utf-8")) == spoilt


@pytest.mark.parametrize("which", [0, 1], ids=["original", "synthetic"])
def test_offsets_that_one_of_them_does_not_have(tmp_path: pathlib.Path, which: int, expected: Expected) -> None:
    """As of DFTracer at the file pointer: nothing that they say is judged, and the output says so; sizes still are."""
    both = [saved_table(tmp_path, "a.parquet"), saved_table(tmp_path, "b.parquet")]
    rows = pa.Table.from_batches(trace_batches())
    for name in ("offset", "handle"):
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), pa.nulls(len(rows), pa.int64()))
    save_sanitized(TraceInfo(format="test", ranks=3), sanitized(rows.to_batches()), both[which])
    words = ["pioneer", "compare", *map(str, both), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    judged = {item["name"]: item["judged"] for item in document["metrics"]}
    expected({"output": result.output, "choices": document["choices"], "judged": judged}, hide={r"[\d.]+ kB": "SIZE"})
    page = (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")
    assert "Not judged: private.offset, private.touched: the" in page


def test_the_page_names_what_was_judged_and_what_was_not(tmp_path: pathlib.Path) -> None:
    """Of another number of processes neither the speed nor the number of all operations is judged."""
    three, six = (load_workload(saved_table(tmp_path, f"{ranks}.parquet", ranks=ranks)) for ranks in (3, 6))
    found = compare_workloads(three, six)
    text = render(found)
    rest = [metric.name for metric in found.metrics if not metric.judged]
    assert found.passed and set(rest) == {"total", "slack", "arrival", "makespan"}
    every = len(found.metrics)
    assert f"All limits hold for {every - 4} of {every} metrics: by counts, span, " in text
    assert "The other 4 metrics were not judged." in text
    assert "Not judged: total: the numbers of processes are not the same." in text
    assert "Not judged: arrival, makespan: with another number of processes calls take another time." in text
    assert found.verdict == f"{every - 4} of {every - 4} limits hold; 4 metrics not judged"


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ((100.0, 212.6), "100 MB/s in the original, 212.6 MB/s in the synthetic workload (+113 %)"),
        ((1234567.0, 1000000.0), "1,234,567 MB/s in the original, 1,000,000 MB/s in the synthetic workload (-19 %)"),
        ((0.0, 0.00001), "0 MB/s in the original, 0.00001 MB/s in the synthetic workload"),
        ((5.0, 5.00001), "5 MB/s in both workloads"),
    ],
)
def test_numbers_of_a_figure_have_no_power_of_ten(figures: tuple[float, float], words: str) -> None:
    assert beside(figures, "MB/s") == words


def test_what_cannot_be_compared(tmp_path: pathlib.Path) -> None:
    """Status 2 and one line that names the file; nothing is left."""
    table = saved_table(tmp_path)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(table.read_bytes()[:-30])
    (tmp_path / "text").write_text("no trace\n", encoding="utf-8")
    for broken in (cut, tmp_path / "text"):
        result = CliRunner().invoke(main, ["pioneer", "compare", str(table), str(broken), "-o", str(tmp_path / "out")])
        assert result.exit_code == 2, result.output
        assert broken.name in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    result = CliRunner().invoke(main, ["pioneer", "compare", str(table), str(table), "--html", str(tmp_path)])
    assert result.exit_code == 2 and "cannot be written" in result.stderr
