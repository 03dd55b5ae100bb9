"""UMAMI: the numbers of a job against its history, its figures, and the command."""

from __future__ import annotations

import json
import math
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.analytics.jobs import HistoryError, Jobs, read, select
from mpiio_ext.analytics.jobs.files import write
from mpiio_ext.analytics.jobs.metrics import DEFAULT_ROWS, METRICS
from mpiio_ext.analytics.jobs.umami import find, find_log, has_log, history_of, show, umami
from mpiio_ext.analytics.jobs.umami.show import chart
from mpiio_ext.cli import main
from mpiio_ext.common.plots import DARK, LIGHT, png, svg, svg_file
from mpiio_ext.common.plots.draw import figure as drawn
from mpiio_ext.common.plots.theme import dark_style
from mpiio_ext.common.units import number_words
from support.expected import Expected
from support.html_page import Page
from support.job_histories import DAY, PERFORMANCE, START, edison, history, steps

TWELVE = (
    PERFORMANCE,
    "coverage_factor_bw",
    "coverage_factor_opens",
    "fs_ave_mds_cpu",
    "fs_ave_oss_cpu",
    "fs_tot_bytes",
    "fs_tot_openclose_ops",
    "fshealth_ost_most_full_pct",
    "fshealth_ost_overloaded_oss_count",
    "jobsdb_concurrent_nodes",
    "topology_job_max_radius",
    "darshan_walltime",
)


def _rich(count: int = 40) -> Jobs:
    """Return a history with values of twelve metrics, the last job slow on busy servers."""
    values: dict[str, Any] = {
        name: steps([(count, 10.0)], seed=number, noise=0.1) for number, name in enumerate(TWELVE[1:])
    }
    for name in ("coverage_factor_bw", "coverage_factor_opens"):
        values[name] /= 12  # above 1.2 it is not used
    values["fshealth_ost_overloaded_oss_count"] = np.zeros(count)
    values["fs_ave_oss_cpu"][-1] = 90.0
    performance = steps([(count, 5000.0)])
    performance[-1] = 900.0
    return select(history(performance, values))[0]


# ---- numbers ---------------------------------------------------------------------------------------------------------


def test_the_job_is_in_no_statistic() -> None:
    table = select(history([*range(1, 22), 1000.0]))[0]
    row = umami(table, 21).metrics[0]
    assert row.value == 1000.0 and row.box is not None and row.box.count == 21
    assert row.box.numbers == (2.0, 6.0, 11.0, 16.0, 20.0)
    assert row.quarter == 4 and row.verdict == "best quarter" and row.below == 1.0


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (5.0, "worst quarter", "best quarter"),
        (6.0, "worst quarter", "best quarter"),
        (7.0, "below the median", "below the median"),
        (11.0, "below the median", "below the median"),
        (12.0, "above the median", "above the median"),
        (16.5, "best quarter", "worst quarter"),
    ],
)
def test_quarters_are_reversed_where_small_is_good(value: float, up: str, down: str) -> None:
    numbers = [*map(float, range(1, 22)), value]
    table = select(history(numbers, {"fs_ave_oss_cpu": numbers, "unknown_metric": numbers}))[0]
    good, bad, other = umami(table, 21, [PERFORMANCE, "fs_ave_oss_cpu", "unknown_metric"]).metrics
    assert (good.verdict, bad.verdict) == (up, down)
    assert good.quarter == other.quarter and bad.quarter == 5 - (good.quarter or 0)
    assert other.verdict in ("lowest quarter", "below the median", "above the median", "highest quarter")


def test_a_value_that_most_jobs_have_is_usual_and_an_unknown_one_is_not_judged() -> None:
    failed = "fshealth_ost_overloaded_oss_count"
    table = select(
        history(
            [1.0] * 9,
            {failed: [0.0] * 9, "fs_ave_oss_cpu": [1.0] * 8 + [math.nan], "fs_max_oss_cpu": [math.nan] * 8 + [2.0]},
        )
    )[0]
    usual, absent, alone = umami(table, 8, [failed, "fs_ave_oss_cpu", "fs_max_oss_cpu"]).metrics
    assert (usual.verdict, usual.below) == ("usual", 0.5)
    assert absent.value is None and absent.verdict == "" and absent.box is not None
    assert alone.box is None and alone.value == 2.0 and alone.verdict == "" and alone.below is None


@pytest.mark.parametrize(("others", "verdict"), [(1, "too few"), (4, "too few"), (5, "best quarter")])
def test_fewer_than_five_other_jobs_judge_nothing(others: int, verdict: str) -> None:
    found = umami(select(history([*map(float, range(1, others + 1)), 99.0]))[0], others, [PERFORMANCE])
    row = found.metrics[0]
    assert row.verdict == verdict and row.box is not None and row.box.count == others and row.below == 1.0
    assert (row.quarter is None) == (others < 5)
    assert f"against {others} other job{'s' * (others > 1)} of the same kind" in show.text(found)
    assert ("Nothing is judged: that needs 5 other jobs." in show.text(found)) == (others < 5)
    assert verdict in svg(chart(found))


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=60))
def test_quarter_and_share_agree_with_counting(values: list[float]) -> None:
    table = history(values, {"darshan_total_gibs_posix": values})
    row = umami(
        table.joined({"_benchmark_id": np.full(len(values), "x", dtype=object)}),
        len(values) - 1,
        ["darshan_total_gibs_posix"],
    ).metrics[0]
    others = values[:-1]
    first, median, third = np.percentile(others, (25, 50, 75))
    equal = sum(one == values[-1] for one in others)
    assert row.below == (sum(one < values[-1] for one in others) + equal / 2) / len(others)
    if row.quarter is None:
        assert first == third == values[-1]
    else:
        bounds = [-math.inf, first, median, third, math.inf]
        assert bounds[row.quarter - 1] <= values[-1] <= bounds[row.quarter]


def test_metrics_without_values_are_told_and_unknown_columns_refused() -> None:
    table = select(history([1.0, 2.0], {"fs_ave_oss_cpu": [math.nan, math.nan]}))[0]
    found = umami(table, 1, [PERFORMANCE, "fs_ave_oss_cpu"])
    assert [row.metric.name for row in found.metrics] == [PERFORMANCE] and found.absent == ["fs_ave_oss_cpu"]
    with pytest.raises(HistoryError, match="no column nonsense"):
        umami(table, 1, ["nonsense"])
    with pytest.raises(HistoryError, match="neither the job nor its history"):
        umami(table, 1, ["fs_ave_oss_cpu"])


def test_a_coverage_factor_of_the_job_that_is_no_share_is_told() -> None:
    opens = {"darshan_tot_opens_posix": [5.0] * 6 + [90.0], "fs_tot_open_ops": [10.0] * 7}
    found = umami(select(history([1.0] * 7, opens))[0], 6)
    (row,) = [row for row in found.metrics if row.metric.name == "coverage_factor_opens"]
    assert row.value is None and row.box is not None and found.beyond == ["coverage_factor_opens"]
    assert "or a cache answered: Coverage factor, opens." in show.text(found)
    assert "not used" not in show.text(umami(select(history([1.0] * 7, opens))[0], 5))


# ---- the job and its history -----------------------------------------------------------------------------------------


def _mixed() -> Jobs:
    motifs = ["a_w", "b_r", "a_w", "b_r", "a_w", "a_w"]
    return select(
        history([1.0] * 6, {"_jobid": [7, 7, 8, 8, 9, 9], "_benchmark_id": motifs, "_file_system": ["s1"] * 5 + ["s2"]})
    )[0]


def test_finding_a_job() -> None:
    table = _mixed()
    assert find(table) == 5 and find(table, motif="b") == 3 and find(table, "8", motif="a_w") == 2
    assert find(table, "9", system="s1") == 4
    for arguments, words in (
        ({"job": "10"}, "no job 10"),
        ({"job": "7"}, "choose one by --motif"),
        ({"motif": "c"}, "there are:\n  a_w\n  b_r"),
        ({"motif": "_"}, "hold it:\n  a_w\n  b_r"),
        ({"job": "7", "system": "s2"}, "no row is of this"),
    ):
        with pytest.raises(HistoryError, match=words):
            find(table, **arguments)  # type: ignore[arg-type]


def test_the_history_is_what_came_before_unless_more_is_asked_for() -> None:
    table = _mixed()
    jobs, place = history_of(table, 2)
    assert jobs.texts("_jobid").tolist() == ["7", "8"] and place == 1
    jobs, place = history_of(table, 2, later=True)
    assert jobs.texts("_jobid").tolist() == ["7", "8", "9"] and place == 1
    jobs, place = history_of(table, 4, days=2)
    assert jobs.texts("_jobid").tolist() == ["8", "9"] and place == 1


@pytest.fixture
def sample() -> Path:
    """Return a log of Darshan: 2,048 processes write a file each."""
    darshan = pytest.importorskip("darshan", reason="needs PyDarshan and its sample logs")
    path = Path(darshan.__file__).parent / "examples" / "example_logs" / "sample-badost.darshan"
    if not path.is_file():
        pytest.skip("this PyDarshan ships no sample-badost.darshan")
    return path


def test_the_row_of_a_darshan_log(tmp_path: Path, sample: Path) -> None:
    import shutil

    from mpiio_ext.analytics.sources.darshanheader import start_of

    start = start_of(sample)
    assert start is not None
    table = history(
        [1.0] * 4, {"_datetime_start": [start - 5, start, start, start + 5], "_log": ["x", "y", "z.darshan", "w"]}
    )
    table = table.joined({"_benchmark_id": np.full(4, "m", dtype=object)})
    assert has_log(table, sample) and find_log(table, sample) == 2
    assert find_log(table, Path(shutil.copy(sample, tmp_path / "y"))) == 1
    assert not has_log(history([1.0]), sample)
    with pytest.raises(HistoryError, match="summarize-job"):
        find_log(history([1.0]), sample)
    (tmp_path / "no.darshan").write_bytes(b"nothing")
    with pytest.raises(HistoryError, match="not a Darshan log"):
        find_log(table, tmp_path / "no.darshan")


def test_a_log_that_is_not_in_the_table_is_shown_against_it(tmp_path: Path, sample: Path) -> None:
    from mpiio_ext.analytics.jobs.summarize import summarize

    row = summarize([sample]).rows()[0]
    before = row["darshan_start_time"] - DAY * np.arange(30, 0, -1)
    same = {
        name: np.full(30, row[name], dtype=object)
        for name in (
            "darshan_app",
            "darshan_nprocs",
            "darshan_biggest_read_api_bytes",
            "darshan_biggest_write_api_bytes",
            "darshan_biggest_read_api_files",
            "darshan_biggest_write_api_files",
        )
    }
    table = tmp_path / "history.parquet"
    write(history(steps([(30, 1e5)]), {**same, "_datetime_start": before}), table)
    done = run("--history", str(table), "--darshan-log", str(sample), "--file-system", "scratch1", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["history_jobs"] == 30 and found["file_system"] == "scratch1" and found["job"] == str(row["_jobid"])
    first = found["metrics"][0]
    assert first["metric"] == PERFORMANCE and first["value"] == row[PERFORMANCE] and first["verdict"] == "worst quarter"
    broken = tmp_path / "broken.darshan"
    broken.write_bytes(sample.read_bytes()[:2000])
    failed = run("--history", str(table), "--darshan-log", str(broken), "--file-system", "scratch1")
    assert failed.exit_code == 2 and "broken.darshan" in failed.stderr, failed.output


@pytest.mark.parametrize("form", ["parquet", "csv", "sqlite", "h5"])
def test_what_summarize_job_writes_is_read(tmp_path: Path, sample: Path, form: str) -> None:
    if form == "h5":
        pytest.importorskip("h5py", reason="needs h5py")
    from mpiio_ext.analytics.jobs import files
    from mpiio_ext.analytics.jobs.summarize import summarize

    made = summarize([sample])
    path = tmp_path / f"summaries.{form}"
    files.write(made, path)
    table = select(read(path))[0]
    row = made.rows()[0]
    assert table.texts("_jobid").tolist() == [str(row["_jobid"])] and table.texts("_log").tolist() == [sample.name]
    assert table.numbers(PERFORMANCE).tolist() == pytest.approx([row[PERFORMANCE]])
    assert table.times().tolist() == [row["darshan_start_time"]]
    assert table.texts("_benchmark_id")[0].endswith("_fpp_write")
    assert np.isnan(table.numbers("fs_tot_bytes_read")).all() and np.isnan(table.numbers("coverage_factor_bw")).all()


# ---- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metrics", [(PERFORMANCE,), TWELVE], ids=["one", "twelve"])
def test_a_figure_holds_its_texts_and_one_row_per_metric(metrics: tuple[str, ...]) -> None:
    found = umami(_rich(), 39, metrics)
    text = svg(chart(found))
    root = ET.fromstring(text)
    seen = " ".join("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    for row in found.metrics:
        assert row.verdict in seen
        for word in row.metric.label.split():
            assert word in seen
    assert number_words(900 * 2**20, "B/s") in seen
    assert len(text) < 20_000 * len(metrics)
    heights = root.get("viewBox", "").split()
    assert float(heights[3]) > 60 * len(metrics)


def test_time_line_and_box_are_four_to_one() -> None:
    figure, _ = drawn(chart(umami(_rich(), 39, TWELVE)))
    widths = [axes.get_position().width for axes in figure.axes]
    assert len(widths) == 24
    for line, beside in zip(widths[::2], widths[1::2], strict=True):
        assert line / beside == pytest.approx(4)


def test_an_svg_file_is_dark_where_the_reader_prefers_that() -> None:
    text = svg_file(chart(umami(_rich(), 39, TWELVE)))
    ET.fromstring(text)
    assert 'class="drawing"' in text.split(">")[0] and "prefers-color-scheme: dark" in text
    drawn = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", text.partition("</style>")[2]))
    assert drawn and drawn <= set(LIGHT.colours())  # every colour has a dark one
    assert len(set(LIGHT.colours())) == len(LIGHT.colours()) == len(DARK.colours())
    for light, dark in zip(LIGHT.colours(), DARK.colours(), strict=True):
        assert f'"fill: {light}"], [fill="{light}"]) {{ fill: {dark} !important }}' in dark_style(".x")


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_words_in_the_colours_can_be_read_on_the_ground(theme: Any) -> None:
    ground = _luminance(theme.page)
    for colour in (theme.ink, theme.soft, theme.neutral, theme.changed, *theme.quarter):
        high, low = sorted((_luminance(colour), ground), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3.0, colour


def test_a_png_is_in_the_colours_of_its_theme() -> None:
    made = chart(umami(_rich(), 39, [PERFORMANCE]))
    light, dark = png(made, LIGHT), png(made, DARK)
    assert light != dark
    for picture in (light, dark):
        assert picture[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", picture[16:24])
        assert width > 1000 and height > 150


def test_one_value_far_outside_does_not_squash_the_others() -> None:
    values = steps([(60, 1.0)], noise=0.1)
    values[20] = 4000.0
    table = select(history(steps([(60, 5000.0)]), {"fs_tot_openclose_ops": values}))[0]
    figure, _ = drawn(chart(umami(table, 59, ["fs_tot_openclose_ops"])))
    assert figure.axes[0].get_ylim()[1] < 10
    assert any(line.get_marker() == "^" and len(line.get_xdata()) == 1 for line in figure.axes[0].lines)


def test_no_line_is_drawn_through_a_gap() -> None:
    from mpiio_ext.analytics.jobs import histories
    from mpiio_ext.analytics.jobs.climate.charts import averages_chart
    from mpiio_ext.analytics.jobs.regimes import Rules, partition

    starts = START + DAY * np.array([*range(100), 120, *range(140, 199), 230])
    table = select(history(steps([(161, 5000.0)]), {"_datetime_start": starts}))[0]
    figure, _ = drawn(chart(umami(table, 160, [PERFORMANCE])))
    line, single, *_ = figure.axes[0].lines
    assert np.isnan(line.get_ydata()).sum() == 3
    assert list(single.get_xdata()) == [starts[100], starts[160]]  # between holes
    assert not [one for one in figure.axes[0].lines if one.get_linewidth() == 1.6]  # none leads to the star
    regimes = averages_chart("x", "s", [partition(histories(table)[0], Rules())], Rules())
    for one in drawn(regimes)[0].axes[0].lines[:3]:
        assert np.isnan(one.get_ydata()).sum() == 3


# ---- the command -----------------------------------------------------------------------------------------------------


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["analyze", "umami", *arguments])


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "year.parquet"
    write(_rich(), path)
    return path


@pytest.mark.parametrize("form", [".sqlite", ".parquet", ".csv.gz"])
def test_pandas_is_not_imported(form: str, tmp_path: Path) -> None:
    """PyArrow's own ways between Python, NumPy and Arrow would."""
    write(_rich(), path := tmp_path / f"year{form}")
    code = (
        f"import sys; from click.testing import CliRunner; from mpiio_ext.cli import main; "
        f"done = CliRunner().invoke(main, ['analyze', 'umami', '--history', {str(path)!r}]); "
        "print(done.exit_code, {'pandas', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "0 set()\n"


def test_json_has_the_numbers_in_the_units_of_the_columns(stored: Path) -> None:
    done = run("--history", str(stored), "--job", "1005", "--later", "--json", "--metric", "performance")
    found = json.loads(done.stdout)
    values = np.delete(_rich().numbers(PERFORMANCE), 5)
    assert found["job"] == "1005" and found["history_jobs"] == 39 and found["start"] == START + 5 * DAY
    assert found["metrics"][0]["history"]["median"] == pytest.approx(np.median(values))
    assert found["metrics"][0]["history"]["p5"] == pytest.approx(np.percentile(values, 5))


@pytest.mark.parametrize("suffix", ["svg", "html", "png"])
def test_the_command_writes_figures_and_a_page(stored: Path, suffix: str) -> None:
    target = stored.with_name(f"umami.{suffix}")
    done = run("--history", str(stored), "--job", "last", "-o", str(target))
    assert done.exit_code == 0 and not done.stdout, done.output
    assert target.stat().st_size > 2000
    if suffix == "html":
        page = Page(target.read_text())
        assert not page.problems
        assert page.elements["svg"] == 2 and "Weather during the job" in page.text
        wide, narrow = target.read_text().split('<div class="drawing narrow">')
        assert '<div class="drawing wide">' in wide
        assert re.search(r'<svg[^>]* width="252(\.0)?pt"', narrow), "as wide as a phone: 336 pixels"
        assert "@media screen and (prefers-color-scheme: dark)" in page.raw


#: Histories, and the options of the command.
RUNS: dict[str, tuple[Callable[[], Jobs], list[str]]] = {
    "the weather of the last job": (_rich, []),
    # the first job: an empty figure does not show why
    "no history": (_rich, ["--job", "1000"]),
    "no history but of later jobs": (_rich, ["--job", "1000", "--later"]),
    "an unknown file system": (lambda: history([1.0] * 4, {"_file_system": ["a", "", "a", ""]}), []),
    "unknown file systems": (lambda: history([1.0] * 4, {"_file_system": [""] * 4}), []),
    "an unknown job": (_rich, ["--job", "5"]),
    "an unknown metric": (_rich, ["--metric", "none"]),
    "an unknown form": (_rich, ["-o", "x.pdf"]),
    "no jobs since a date": (_rich, ["--since", "2030-01-01"]),
    "no history's file": (_rich, ["--history", "none.csv"]),
    "no log": (_rich, ["--darshan-log", "none.darshan"]),
    "many motifs": (
        lambda: history([1.0] * 12, {"_benchmark_id": [f"ior_{number:02}" for number in range(12)]}),
        ["--motif", "bt"],
    ),
    "two filters": (_rich, ["--published", "--complete"]),
    "no date": (_rich, ["--since", "yesterday"]),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: Expected) -> None:
    table, options = RUNS[name]
    monkeypatch.chdir(tmp_path)
    write(table(), tmp_path / "t.parquet")
    done = run(*([] if "--history" in options else ["--history", "t.parquet"]), *options)
    expected({"status": done.exit_code, "text": done.stdout, "errors": done.stderr})


def test_default_rows_are_known_metrics() -> None:
    assert set(DEFAULT_ROWS) <= set(METRICS)


def test_an_umami_of_the_published_year_reads_from_csv_and_store_alike(tmp_path: Path) -> None:
    source = edison()
    store = tmp_path / "year.sqlite"
    write(read(source), store)
    common = ("--published", "--motif", "hacc_io_write", "--file-system", "scratch3", "--json")
    one, two = run("--history", str(source), *common), run("--history", str(store), *common)
    assert one.exit_code == 0 and json.loads(one.stdout) == json.loads(two.stdout)
    found = json.loads(one.stdout)
    assert found["history_jobs"] == 316 and len(found["metrics"]) >= 9
