"""Every page, made by its command of small inputs: what it begins with, and what each of its figures has."""

from __future__ import annotations

import base64
import csv
import functools
import gzip
import io
import itertools
import json
import pathlib
import re
import shutil
from collections.abc import Callable, Iterator
from html import unescape
from urllib.parse import unquote

import numpy as np
import pytest
from click.testing import CliRunner

from mpiio_ext.analytics.jobs import Jobs
from mpiio_ext.analytics.jobs.files import write
from mpiio_ext.bench.arbitrated import results as arbitrated
from mpiio_ext.bench.explore import results as explored
from mpiio_ext.bench.explore.measure import Measured
from mpiio_ext.bench.explore.results import Run
from mpiio_ext.bench.explore.spec import parse
from mpiio_ext.cli import main
from mpiio_ext.common import page
from mpiio_ext.common.plots import LIGHT, Axis, Chart, Panel, draw
from mpiio_ext.pioneer.compare.workload import load_workload
from mpiio_ext.tune.evidence import evidence
from mpiio_ext.tune.objective import Elapsed
from mpiio_ext.tune.outcome import Record, Result
from mpiio_ext.tune.page import tuning_page
from mpiio_ext.tune.report import Subject
from mpiio_ext.tune.setting import Setting
from support import report_results
from support.darshan_logs import packaged_logs
from support.html_page import Page
from support.job_histories import history, steps
from support.pioneer_traces import saved_table

#: Labels that need no unit in brackets: numbers of things, and what names stand for.
COUNTED = {
    "requests",
    "jobs",
    "files",
    "rank",
    "pairs of file and OST",
    "I/O nodes",
    "I/O nodes in the pool",
    "operations per bin",
    "share of the operations",
    "share of time units",
    "stripes of the file",
    "pattern, and R = files / processes",
    "processes of the job",
    "pattern and operation",
    "storage target",
    "run",
}
LOGS = ("sample-badost.darshan", "sample-dxt-simple.darshan")


# ---- pages -----------------------------------------------------------------------------------------------------------


def command(*words: object, status: tuple[int, ...] = (0,)) -> None:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code in status, done.output + repr(done.exception)


def bench(folder: pathlib.Path) -> pathlib.Path:
    path = report_results.write(folder / "results.json", report_results.large_document(kernels=4, repetitions=3))
    jobs = {
        name: {
            "pattern": "shared,4KiB",
            "begin_s": 0.0,
            "end_s": 4.0,
            "data_bytes": 1 << 20,
            "slot_s": 0.1,
            "bandwidth_mb_per_s": 5.0,
            "slots": [{"time_s": 0.1 * k, "data_bytes": 9} for k in range(40)],
        }
        for name in ("small", "large")
    }
    steps_of = [{"time_s": 0.0, "io_nodes": {"small": 1, "large": 3}}]
    runs = [{"policy": name, "jobs": jobs, "map": steps_of} for name in ("static", "mckp")]
    arbitrated.write(folder, arbitrated.document(runs, {}, {"ranks": 2, "io_nodes": 4}, {}))
    command("bench", "report", path, "-o", folder / "report.html")
    return folder / "report.html"


def peers(folder: pathlib.Path) -> pathlib.Path:
    path = report_results.write(folder / "results.json", report_results.COMPARE)
    command("bench", "report", path, "-o", folder / "report.html")
    return folder / "report.html"


def explore(folder: pathlib.Path) -> pathlib.Path:
    runs = []
    for text, base in (("shared,strided,4k", 100.0), ("individual,1000", 300.0)):
        (spec,) = parse(text, total_bytes=1 << 20)
        for count, repetition in itertools.product((0, 1, 2), (1, 2, 3)):
            took = 1 / (base * (1 + count) * (0.9 + 0.1 * repetition))
            did = Measured(
                data_bytes=10**6,
                requests=9,
                stopped_ranks=0,
                open_s=0.1,
                data_s=took,
                close_s=0.0,
                delegated_bytes=10**6,
                bypass_bytes=0,
                serving_delegates=0,
                verified_bytes=9,
            )
            runs.append(Run(spec=spec, pattern=spec.pattern(1, 2), io_nodes=count, repetition=repetition, measured=did))
    explored.write(folder, explored.document(runs, {}, {}, None), runs, page=True)
    return folder / "index.html"


def forge(folder: pathlib.Path) -> pathlib.Path:
    random = np.random.default_rng(1)
    lines = ["forwarders;clients;processes;layout;spatiality;request;operation;bandwidth"]
    for size in range(1, 31):
        nodes = int(random.choice([8, 16, 32]))
        lines += [
            f"{count};{nodes};{nodes * 12};1;0;{size};write;{random.integers(1, 4000)}" for count in (0, 1, 2, 4, 8)
        ]
    (folder / "forge.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder / "forge.csv"


def simulate(folder: pathlib.Path) -> pathlib.Path:
    command(
        "delegates",
        "arbitrate",
        "simulate",
        "--forge",
        forge(folder),
        "--sets",
        40,
        "--apps",
        6,
        "--io-nodes",
        "0..48:16",
        "-o",
        folder / "out",
    )
    return folder / "out" / "index.html"


def policies(folder: pathlib.Path) -> pathlib.Path:
    command("delegates", "arbitrate", "compare", "--forge", forge(folder), "-o", folder / "out")
    return folder / "out" / "index.html"


def curves(folder: pathlib.Path) -> pathlib.Path:
    command("delegates", "arbitrate", "curves", "--forge", forge(folder), "-o", folder / "out")
    return folder / "out" / "index.html"


def compare(folder: pathlib.Path) -> pathlib.Path:
    table = saved_table(folder, "original.parquet")
    load_workload(table).path.save(folder / "path.parquet")
    command("pioneer", "compare", table, folder / "path.parquet", "-o", folder / "out")
    return folder / "out" / "comparison.html"


def tuned(verdict: str, *, works: bool = True) -> tuple[Result, Subject]:
    """Return a tuning of a program that a setting makes twice as fast, if it is confirmed."""
    best, other = (Setting((("cb_nodes", value),)) for value in ("2", "8"))
    order = [Setting(), other, best, *[Setting(), best] * 6]
    records = [
        Record(
            number=number,
            phase="confirm" if number > 3 else "search",
            setting=setting,
            status="ok",
            reason="",
            exit_status=0,
            elapsed_s=2.0,
            cost=(1.0 if setting == best else 2.0) + number / 100 if works else None,
        )
        for number, setting in enumerate(order, 1)
    ]
    costs = [[record.cost or 1.0 for record in records[3:] if record.setting == one] for one in (Setting(), best)]
    won = evidence(costs[0], costs[1], 0.95) if verdict == "wins" else None
    result = Result(
        verdict=verdict,
        reason="" if won else "chance may explain it",
        candidate=best,
        evidence=won,
        records=tuple(records),
        baseline=None,
        interrupted=False,
        broken_status=0,
        spent_s=30.0,
    )
    return result, Subject(command=("mpirun", "./<app>"), metric=Elapsed(), glob="*", present=None, budget_s=60.0)


def tune(folder: pathlib.Path) -> pathlib.Path:
    (folder / "tuning.html").write_text(tuning_page(*tuned("wins")), encoding="utf-8")
    return folder / "tuning.html"


def table_of_jobs(folder: pathlib.Path) -> pathlib.Path:
    load = {"fs_ave_oss_cpu": steps([(100, 10.0), (20, 20.0)], seed=2)}
    other = history(steps([(90, 50.0)], seed=5), darshan_app="/bin/hacc_io", _file_system="scratch2")
    write(Jobs.stacked([history(steps([(100, 100.0), (20, 60.0)]), load), other], "both"), folder / "table.parquet")
    return folder / "table.parquet"


def climate(folder: pathlib.Path) -> pathlib.Path:
    command("analyze", "climate", table_of_jobs(folder), "-o", folder / "climate.html", status=(0, 1))
    return folder / "climate.html"


def umami(folder: pathlib.Path) -> pathlib.Path:
    command(
        "analyze",
        "umami",
        "--history",
        table_of_jobs(folder),
        "--file-system",
        "scratch1",
        "--job",
        "1119",
        "-o",
        folder / "umami.html",
    )
    return folder / "umami.html"


def log(name: str) -> pathlib.Path:
    found = [path for path in packaged_logs() if path.name == name]
    return found[0] if found else pytest.skip(f"this PyDarshan ships no {name}")


def logs(folder: pathlib.Path) -> pathlib.Path:
    command("analyze", "logs", log(LOGS[1]), "-o", folder / "job.html")
    return folder / "job.html"


def run_of_log(folder: pathlib.Path) -> pathlib.Path:
    command("report", log(LOGS[1]), "-o", folder / "io.html")
    return folder / "io.html"


def setup(folder: pathlib.Path) -> pathlib.Path:
    (folder / "logs").mkdir()
    for name in LOGS:
        shutil.copy(log(name), folder / "logs")
    (folder / "setup.json").write_text(json.dumps({"store": "store", "inputs": {"darshan": ["logs"]}, "workers": 0}))
    command("analyze", "init", folder / "setup.json")
    return folder / "setup.json"


def store(folder: pathlib.Path) -> pathlib.Path:
    command("analyze", "report", "--setup", setup(folder), "-o", folder / "store.html")
    return folder / "store.html"


def job(folder: pathlib.Path) -> pathlib.Path:
    command("analyze", "job", "6265799", "--setup", setup(folder), "-o", folder / "job.html")
    return folder / "job.html"


PAGES: dict[str, Callable[[pathlib.Path], pathlib.Path]] = {
    "bench": bench,
    "bench compare": peers,
    "explore": explore,
    "simulate": simulate,
    "curves": curves,
    "pioneer compare": compare,
    "climate": climate,
    "umami": umami,
    "logs": logs,
    "job": job,
    "store": store,
    "run": run_of_log,
    "tune": tune,
    "policies": policies,
}


# ---- what they have --------------------------------------------------------------------------------------------------


def data_of(figure: str) -> str:
    """Return what the data link of a figure holds."""
    (link,) = re.findall(r'<a class="data" download="([^"]+)" href="data:([^"]+)" aria-label="Data of: [^"]+">', figure)
    name, (kind, _, text) = link[0], unescape(link[1]).partition(",")
    assert name.endswith((".csv", ".json", ".csv.gz", ".json.gz"))
    return gzip.decompress(base64.b64decode(text)).decode() if kind.endswith("base64") else unquote(text)


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d[\d.]*(e[+-]?\d+)?", text) is not None


def numbers_of(text: str) -> list[float]:
    """Return the numbers of CSV."""
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1 and all(rows[0])
    return [float(cell) for row in rows for cell in row if is_number(cell)]


def panels_of(chart: Chart) -> list[Panel]:
    """Return the panels of a chart, drawn."""
    from matplotlib import rc_context

    with rc_context(draw.style(LIGHT, chart)):
        return draw.figure(chart)[1]


def drawn_numbers(chart: Chart) -> list[float]:
    """Return the heights that are drawn, as Matplotlib has them."""
    from matplotlib.collections import LineCollection, PolyCollection

    found: list[float] = []
    for axes in (panel.axes for panel in panels_of(chart)):
        for bars in axes.containers:
            across = bars.orientation == "horizontal"
            found += [each.get_x() + each.get_width() if across else each.get_y() + each.get_height() for each in bars]
        for line in axes.lines:
            if line.get_transform() == axes.transData:  # else it goes through the whole panel
                found += np.asarray(line.get_ydata(), float).tolist()
        for each in axes.collections:
            if isinstance(each, LineCollection):
                found += [y for segment in each.get_segments() for _, y in segment.tolist()]
            elif isinstance(each, PolyCollection):
                found += [y for path in each.get_paths() for _, y in path.vertices.tolist()]
    return [value for value in found if value == value]


def has_units(axis: Axis) -> bool:
    """Return whether an axis says what it is: by a unit, by words at its ticks, or as a number of things."""
    words = [text for _, text in axis.ticks or () if text]
    told = (axis.form(1.0) or "as beside it") if axis.form is not None else ""
    label = " ".join(axis.label.split())
    counted = label in COUNTED or label.startswith("operations in ")
    return (
        "[" in label
        or counted
        or axis.date
        or any(not is_number(text.replace(",", "")) for text in words)
        or bool(re.search(r"[A-Za-z%×]", told))
        or axis.ticks == ()
        or not axis.line
    )


Made = tuple[str, list[tuple[Chart, page.Figure]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Made]]:
    """Return a function from the name of a page to its text, and to the charts that became figures of it."""
    charts: list[tuple[Chart, page.Figure]] = []
    drawn = page.drawn

    def noted(chart: Chart, **how: object) -> page.Figure:
        figure = drawn(chart, **how)  # type: ignore[arg-type]
        charts.append((chart, figure))
        return figure

    @functools.cache
    def make(name: str) -> Made:
        charts.clear()
        text = PAGES[name](tmp_path_factory.mktemp("page")).read_text(encoding="utf-8")
        return text, charts.copy()

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(page, "drawn", noted)
        monkeypatch.setattr("mpiio_ext.pioneer.compare.page.drawn", noted)
        yield make


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str, made: Callable[[str], Made]) -> None:
    """It begins with a sentence and a picture; every figure has a finding, units and numbers; nothing is fetched."""
    text, charts = made(name)
    assert len(text.encode()) <= page.MOST_BYTES and Page(text).problems == []
    opening = re.search(r'</h1>\s*<p class="[^"]*lead">(.*?)</p>(.*?)<figure', text, re.DOTALL)
    assert opening is not None and re.search(r"\w{2,}.*[.!?”]", opening[1]), text[text.find("</h1>") :][:300]
    assert not re.search(r"--low|\((DXT|HEATMAP)\)", opening[1] + opening[2]), "first plain words, then how it is known"
    assert re.findall(r"<(\w+)", opening[2]) in ([], ["p"]), "only sentences stand before the picture"
    figures = re.findall(r"<figure.*?</figure>", text, re.DOTALL)
    assert figures
    for figure in figures:
        title = re.search(r"<h3>(.*?)</h3>", figure)
        assert title is not None and len(title[1].split()) >= 3, figure[:200]
        assert "<details" in figure or data_of(figure)
    assert len(re.findall("<figure", text)) >= len(charts)
    for chart, figure in charts:
        assert figure.title == chart.title and figure.data in map(data_of, figures)
        assert numbers_of(figure.data)
        for panel in panels_of(chart):
            assert has_units(panel.x) and has_units(panel.y), (chart.name, panel.x, panel.y)


def test_the_data_are_what_is_drawn(made: Callable[[str], Made]) -> None:
    """Of charts that have no table of their own, every height is among the data."""
    plain = [(chart, figure) for name in PAGES for chart, figure in made(name)[1] if chart.table is None]
    assert len(plain) > 15
    for chart, figure in plain:
        categorical = any(tick for panel in panels_of(chart) for tick in panel.y.ticks or ())
        told = np.array(numbers_of(figure.data))
        left = [value for value in drawn_numbers(chart) if not np.isclose(value, told, rtol=1e-5, atol=0).any()]
        assert categorical or not left, (chart.name, left[:9])


def test_a_page_of_tuning_says_faster_only_where_that_is_confirmed() -> None:
    every = tuned("wins"), tuned("nothing"), tuned("nothing", works=False)
    won, nothing, broken = (tuning_page(*made) for made in every)
    assert "<code>cb_nodes=2</code> makes the program " in won and "times as fast (95% confidence" in won
    assert "Nothing wins: chance may explain it." in nothing and "times as fast" not in nothing
    assert "No setting of 3 is shown to be faster" in nothing and "<figure" not in broken
    assert all(not Page(text).problems and "&lt;app&gt;" in text for text in (won, nothing, broken))


def test_the_picture_keeps_its_form_for_phones() -> None:
    """Of a page that is too large the others lose theirs, the largest first, however large that of the picture is."""
    figures = [
        page.Figure(title=name, drawing="<svg></svg>", narrow=f"<svg>{name * size}</svg>")
        for name, size in (("a", 900_000), ("b", 300_000), ("c", 10))
    ]
    text = page.document("P", [page.Section(anchor="s", title="S", figures=figures)], lead=["It is."])
    assert "aaaa" in text and "bbbb" not in text and "cccc" in text and len(text) <= page.MOST_BYTES
