"""``mpiio-ext analyze`` from set-up to page, on the sample logs that PyDarshan ships."""

from __future__ import annotations

import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from mpiio_ext.cli import main
from mpiio_ext.common.extras import darshan_library
from support import report_results as results
from support.expected import Expected
from support.html_page import Page
from support.parts import require

require("darshan")

LOGS = pathlib.Path(darshan_library("a Darshan log", "pioneer")).parent.parent / "darshan" / "examples" / "example_logs"
#: 2,048 processes, a file each, on 24 OSTs.
SAMPLE, PLAIN = "sample-badost.darshan", "noposix.darshan"
JOB = 6265799


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder with a set-up and a store of two logs and a broken one."""
    place = tmp_path_factory.mktemp("analyze")
    (place / "logs").mkdir()
    for name in (SAMPLE, PLAIN):
        if not (LOGS / name).is_file():
            pytest.skip(f"this PyDarshan ships no {name}")
        shutil.copy(LOGS / name, place / "logs")
    (place / "logs" / "broken.darshan").write_bytes((LOGS / SAMPLE).read_bytes()[:300])
    (place / "setup.json").write_text(json.dumps({"store": "store", "inputs": {"darshan": ["logs"]}, "workers": 0}))
    done = run(["init", str(place / "setup.json")])
    assert done.exit_code == 0, done.output
    assert "2 whole" in done.output and "1 skipped" in done.output and "broken.darshan" in done.output
    return place


def run(arguments: Sequence[str]) -> Result:
    return CliRunner().invoke(main, ["analyze", *arguments])


def ask(folder: pathlib.Path, *arguments: str) -> Result:
    done = run([*arguments, "--setup", str(folder / "setup.json")])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done


def test_help_names_every_subcommand() -> None:
    text = run(["--help"]).output
    for name in ("init", "manifest", "query", "report", "job", "logs", "root-causes", "methods"):
        assert re.search(rf"^  {name} ", text, re.MULTILINE), name
        assert run([name, "--help"]).exit_code == 0


def test_a_query_as_sql(folder: pathlib.Path) -> None:
    """DuckDB alone carries it out, and finds the same rows."""
    import duckdb

    words = ["query", "darshan_job", "--filter", "bytes_written > 1KB", "--project", "job_id,bytes_written"]
    words += ["--sort", "job_id"]
    text = ask(folder, *words, "--sql").stdout
    assert "read_parquet" in text and "SELECT" in text
    rows = duckdb.connect().execute(text).fetchall()
    assert rows and rows == [
        (row["job_id"], row["bytes_written"]) for row in json.loads(ask(folder, *words, "--json").stdout)
    ]
    for option in ("--json", "--anonymous"):
        assert "--sql prints a query" in run([*words, "--sql", option]).output


def test_an_analysis_as_table_json_files_and_figure(
    folder: pathlib.Path, tmp_path: pathlib.Path, expected: Expected
) -> None:
    shown = "\n".join(line.rstrip() for line in ask(folder, "applications").stdout.splitlines())
    found = json.loads(ask(folder, "applications", "--json").stdout)
    out = [str(tmp_path / name) for name in ("a.csv", "a.parquet", "a.svg")]
    ask(folder, "applications", "--csv", out[0], "--parquet", out[1], "--figure", out[2])
    with open(out[0], newline="") as file:
        assert len(list(csv.DictReader(file))) == len(found["rows"]) == pq.read_table(out[1]).num_rows
    assert "<svg" in pathlib.Path(out[2]).read_text()
    expected({"text": shown, "json": found})


#: Commands on the store, and what they print.
ASKED = {
    "the manifest": ["manifest", "--json"],
    "the manifest of all logs": ["manifest", "--json", "--all"],
    "the manifest without names": ["manifest", "--json", "--anonymous"],
    "a filter and columns": [
        "query",
        "darshan_job",
        "--filter",
        "bytes_written > 1GB",
        "--project",
        "job_id, processes",
    ],
    "the largest files": [
        "query",
        "darshan_file",
        "--sort",
        "-bytes_written",
        "--limit",
        "3",
        "--project",
        "bytes_written",
    ],
    "a long table is cut": ["read-ratio"],
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_printed(name: str, folder: pathlib.Path, expected: Expected) -> None:
    expected("\n".join(line.rstrip() for line in ask(folder, *ASKED[name]).stdout.splitlines()))


@pytest.mark.parametrize("name", ["sequential", "read-ratio", "sharing", "middleware", "striping", "root-causes"])
def test_every_analysis_answers(folder: pathlib.Path, name: str) -> None:
    found = json.loads(ask(folder, name, "--json").stdout)
    assert found["analysis"] == name and found["caption"]


def test_query_bins_and_groups(folder: pathlib.Path) -> None:
    given = ["query", "darshan_file", "--bin", "size=bytes_written:1B, 200MB", "--group", "size", "--json"]
    every = json.loads(ask(folder, "query", "darshan_file", "--project", "bytes_written", "--json").stdout)
    sizes = [row["bytes_written"] for row in every]
    bins = [None if size is None else (size >= 1) + (size >= 200_000_000) for size in sizes]
    counts = json.loads(ask(folder, *given).stdout)
    assert {row["size"]: row["rows"] for row in counts} == {one: bins.count(one) for one in set(bins)}
    summed = json.loads(
        ask(
            folder,
            *given,
            "--filter",
            "bytes_written >= 1B",
            "--compute",
            "moved=sum(bytes_written)",
            "--compute",
            "most=max(bytes_written)",
        ).stdout
    )
    assert len(counts) > len(summed) > 0
    assert sum(row["moved"] for row in summed) == sum(size or 0 for size in sizes)
    assert max(row["most"] for row in summed) == max(size or 0 for size in sizes)


#: What is refused, in a line, with status 2.
REFUSED = [
    *(
        ["query", "darshan_job", *options]
        for options in (
            ["--bin", "bytes_written:1GB"],
            ["--bin", "x=opens"],
            ["--compute", "n=count()"],
            ["--group", "app", "--compute", "count()"],
            ["--bin", "x=bytes_written:1GB", "--anonymous"],
            ["--group", "processes", "--compute", "n=max(app)", "--anonymous"],
            ["--group", "nosuch"],
            ["--bin", "x=bytes_written:5s"],
            ["--percentile", "opens", "--sort", "opens"],
            ["--filter", "bytes_writen > 1"],
        )
    ),
    ["query", "nosuch"],
    ["job", "5"],
    ["sharing", "--setup", "/nosuch.json"],
    ["logs", "/nosuch.darshan"],
    ["--results", "none", "sharing"],
    ["--results", "none"],
    ["methods"],
]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_is_refused(
    words: list[str], folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, expected: Expected
) -> None:
    monkeypatch.chdir(folder)
    done = run([*words, *(["--setup", "setup.json"] if words[0] in ("query", "job") else [])])
    assert done.exit_code == 2 and not done.stdout
    (error,) = done.stderr.rpartition("Error: ")[2].splitlines()
    expected(error, hide={"there are: .*": "there are: COLUMNS"})


def test_a_query_s_file_has_all_rows_and_the_terminal_says_where_it_stops(
    folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ask(folder, "query", "darshan_file", "--csv", str(tmp_path / "all.csv"))
    assert len((tmp_path / "all.csv").read_text().splitlines()) > 2048
    assert "Only 1,000 rows were requested" in ask(folder, "query", "darshan_file").stdout
    percentiles = ask(folder, "query", "darshan_job", "--percentile", "bytes_written").stdout
    assert re.search(r"^ +100 +549,755,815,877 *$", percentiles, re.MULTILINE)


# ---- pages -----------------------------------------------------------------------------------------------------------


def _page(path: pathlib.Path) -> Page:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    page = Page(text)
    assert page.problems == []
    return page


def test_the_report_is_one_page_that_fetches_nothing(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ask(folder, "report", "-o", str(tmp_path / "io.html"), "--title", "Two <jobs>")
    page = _page(tmp_path / "io.html")
    assert "Two <jobs>" in page.text and "File-sharing patterns" in page.text and page.elements["svg"] >= 4
    assert page.problems == [] and "script" not in page.elements and page.elements["figure"] >= 4
    assert "3 (1 skipped, 2 whole)" in page.text and "1 log of darshan skipped: " in page.text
    assert re.search(r"darshan_job 2\b.*darshan_file [\d,]+", page.text)
    ask(folder, "report", "-o", str(tmp_path / "hidden.html"), "--anonymous")
    hidden = _page(tmp_path / "hidden.html").text
    assert "3 (1 skipped, 2 whole)" in hidden and "1 log of darshan skipped" not in hidden


def test_a_job_as_text_json_and_page(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    text = ask(folder, "job", str(JOB)).stdout
    assert "2,048" in text and "550 GB" in text and "ior" in text
    found = json.loads(ask(folder, "job", str(JOB), "--json").stdout)
    factors, told = found["directions"]["write"]["factors"], found["diagnosis"][0]
    assert found["job_id"] == JOB and factors["bytes"] == 549755815877
    said = {one["meaning"]: one["value"] for one in told["facts"]}
    assert factors["bandwidth"] == pytest.approx(said["bandwidth from the first access to the last"])
    critical = sorted(row["file"] for row in found["directions"]["write"]["critical_files"])
    assert critical == sorted(row["file"] for row in told["critical_files"])
    assert all(one["direction"] in ("read", "write") for one in found["diagnosis"])
    ask(folder, "job", str(JOB), "-o", str(tmp_path / "job.html"))
    page = _page(tmp_path / "job.html")
    assert "Critical files" in page.text and "time since the start of the job [s]" in page.text


def test_logs_need_no_set_up(tmp_path: pathlib.Path) -> None:
    done = run(["logs", str(LOGS / SAMPLE), "-o", str(tmp_path / "log.html")])
    assert done.exit_code == 0, done.output
    assert f"I/O of job {JOB}" in _page(tmp_path / "log.html").text


def test_logs_that_cannot_be_read_are_told_and_others_diagnosed(folder: pathlib.Path) -> None:
    broken = str(folder / "logs" / "broken.darshan")
    done = run(["logs", broken, str(LOGS / SAMPLE)])
    assert done.exit_code == 1 and "broken.darshan: skipped" in done.stderr and "550 GB" in done.stdout
    assert run(["logs", broken]).exit_code == 2


def test_a_path_is_that_of_a_log(tmp_path: pathlib.Path) -> None:
    """`analyze LOG` is `analyze logs LOG`; a path that is not there is no command."""
    named = run([str(LOGS / PLAIN)])
    assert named.exit_code == 0 and named.stdout == run(["logs", str(LOGS / PLAIN)]).stdout
    assert run([str(tmp_path / "none.darshan")]).exit_code == 2


def test_a_log_without_files_says_that_nothing_could_be_diagnosed(tmp_path: pathlib.Path) -> None:
    cut = tmp_path / "cut.darshan"
    cut.write_bytes((LOGS / SAMPLE).read_bytes()[:3000])
    done = run(["logs", str(cut)])
    assert done.exit_code == 2 and "Nothing could be diagnosed: the log has lost the records" in done.stdout
    assert "mpiio-ext: no log could be diagnosed: the records of the files are lost" in done.stderr
    found = json.loads(run(["logs", "--json", str(cut)]).stdout)
    assert found["diagnosis"] == [] and found["undiagnosed"].startswith("Nothing could be diagnosed")
    run(["logs", str(cut), "-o", str(tmp_path / "cut.html")])
    assert "Nothing could be diagnosed" in Page((tmp_path / "cut.html").read_text()).text
    both = run(["logs", str(cut), str(LOGS / PLAIN)])
    overview, _, reports = both.stdout.partition("\n\n" + str(cut))
    assert both.exit_code == 1 and overview.startswith("2 jobs with 2 logs: no job has findings.")
    assert overview.count("Nothing could be diagnosed") == reports.count("Nothing could be diagnosed") == 1


def test_several_logs_are_one_json_document() -> None:
    found = json.loads(run(["logs", "--json", str(LOGS / SAMPLE), str(LOGS / PLAIN)]).stdout)
    assert len(found) == 2 and found[0]["job_id"] == JOB


def test_results_of_the_bench_are_compared(tmp_path: pathlib.Path) -> None:
    runs = [
        results.run(method, operation, bandwidth=speed)
        for method, speed in (("even", 500.0), ("auto", 1000.0))
        for operation in ("write", "read")
    ]
    results.write(tmp_path / "results.json", results.document(runs))
    done = run(["--results", str(tmp_path)])
    assert done.exit_code == 0 and "even" in done.stdout and "auto" in done.stdout, done.output + done.stderr
    done = run(["methods", "--results", str(tmp_path), "--slower", "even", "--faster", "auto", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    whole = [row for row in found["rows"] if row["quantity"] == "the whole"]
    assert [row["operation"] for row in whole] == ["read", "write"]
    assert run(["methods", "--results", str(tmp_path), "--slower", "even", "--faster", "nosuch"]).exit_code == 2


def test_the_report_of_the_bench_says_why_methods_were_slower(tmp_path: pathlib.Path) -> None:
    """The page keeps its heading, all its rows and its limit of size; what differs is told of the pair that differs."""
    slow = {"exchange_s": 0.014, "rounds": 64, "wait_s": 0.0004}
    runs = [
        results.run(method, operation, k, bandwidth=speed, **(slow if method == "even" else {}))
        for method, speed in (("native", 800.0), ("even", 500.0), ("auto", 1000.0), ("group_cyclic", 1050.0))
        for operation in ("write", "read")
        for k in range(2)
    ]
    results.write(tmp_path / "out" / "results.json", results.document(runs))
    (tmp_path / "out" / "report.html").write_text("<title>Mine &amp; yours</title>")
    done = run(["--results", str(tmp_path / "out")])
    assert done.exit_code == 0 and "report.html" in done.stderr, done.output + done.stderr
    page = _page(tmp_path / "out" / "report.html")
    assert "Mine & yours" in page.text and "Ratios to native" in page.text
    (rows,) = [rows for rows in page.of_class("plain") if rows[0][0] == "case"]
    assert rows[0] == ["case", "slower", "faster", "time", "what differs"]
    assert [row[:4] for row in rows[1:]] == [
        [f"interleaved_512 [MPI-IO], {operation}", "even", "group_cyclic", "2.10×"] for operation in ("read", "write")
    ]
    assert rows[1][4] == "exchange 14 ms against 1 ms; rounds 64 against 8"
    assert "2 pairs. Most of the difference is accounted for by: exchange in 2." in page.text

    run(["--results", str(tmp_path / "out"), "-o", str(tmp_path / "other.html")])
    assert "I/O benchmark of mpiio_ext" in _page(tmp_path / "other.html").text
    assert run(["-o", str(tmp_path / "x.html")]).exit_code == 2
    assert run(["--results", str(tmp_path / "out"), "--results", str(tmp_path / "out")]).exit_code == 2
    onto = run(["--results", str(tmp_path / "out"), "-o", str(tmp_path / "out" / "results.json")])
    assert onto.exit_code == 2 and json.loads((tmp_path / "out" / "results.json").read_text())["runs"]


def test_the_report_of_many_results_stays_small_and_says_what_it_leaves_out(tmp_path: pathlib.Path) -> None:
    results.write(tmp_path / "results.json", results.large_document(kernels=60, repetitions=1))
    assert run(["--results", str(tmp_path)]).exit_code == 0
    page = _page(tmp_path / "report.html")
    (rows,) = [rows for rows in page.of_class("plain") if rows[0][0] == "case"]
    assert len(rows) == 101 and "smaller differences are not shown" in page.text
    ratios = [float(row[3].rstrip("×")) for row in rows[1:]]
    assert ratios == sorted(ratios, reverse=True) and ratios[-1] >= 1.1


# ---- without names ---------------------------------------------------------------------------------------------------


def _secrets(folder: pathlib.Path) -> list[str]:
    """Return every name, ID and time of day in the store."""
    found: set[str] = set()
    secret = {
        "darshan_job": ("app", "exe", "uid", "job_id", "log_id", "log_file", "start_time", "end_time"),
        "darshan_file": ("file", "mount", "write_start", "write_end", "file_id"),
    }
    for name, columns in secret.items():
        rows = json.loads(ask(folder, "query", name, "--json", "--limit", "500", "--project", ",".join(columns)).stdout)
        for row in rows:
            for value in row.values():
                if value is not None and not (isinstance(value, str) and value.startswith("<STD")):
                    found.add(str(int(value)) if isinstance(value, float) else str(value))
    return sorted(text for text in found if len(text) > 3 or text == "ior")


def _leaks(text: str, secrets: Sequence[str]) -> list[str]:
    return [secret for secret in secrets if re.search(rf"(?<![\w.]){re.escape(secret)}(?!\w)", text)]


def test_nothing_anonymous_has_names_ids_or_times(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    secrets = _secrets(folder)
    assert "ior" in secrets and str(JOB) in secrets and len(secrets) > 100
    (tmp_path / "areas.json").write_text('{"io*": "Benchmark"}')
    areas = ["--areas", str(tmp_path / "areas.json")]
    outputs: dict[str, Any] = {
        "applications": ask(folder, "applications", "--json", *areas).output,
        "root-causes": ask(
            folder, "root-causes", "--each-job", "--processes", "2", "--bandwidth", "100GB", "--json", "--anonymous"
        ).output,
        "job": ask(folder, "job", str(JOB), *areas).output,
        "job --json": ask(folder, "job", str(JOB), "--json", "--anonymous").output,
        "query": ask(folder, "query", "darshan_job", "--json", "--anonymous").output,
        "logs": run(["logs", "--anonymous", "--json", str(LOGS / SAMPLE)]).output,
    }
    ask(folder, "job", str(JOB), "--anonymous", "-o", str(tmp_path / "job.html"))
    ask(folder, "report", "--anonymous", "-o", str(tmp_path / "io.html"))
    outputs |= {name: Page((tmp_path / name).read_text()).text for name in ("job.html", "io.html")}
    assert {name: _leaks(text, secrets) for name, text in outputs.items() if _leaks(text, secrets)} == {}
    assert "Benchmark1" in outputs["applications"] and "Benchmark1" in outputs["job"]
    assert _leaks(ask(folder, "job", str(JOB)).output, secrets)  # the check finds what it looks for
    told = outputs["job"].split("Factors")[0]
    assert "slow_ost" in outputs["job --json"] and "OST 14" not in told and "OST 1 is" in told
    assert re.search(r"\bfile \d+: 7\d0 s", told)  # two digits, and a file's number is that of the tables


def test_logs_are_diagnosed_without_pandas() -> None:
    """PyArrow's own ways between Python, NumPy and Arrow would import it."""
    samples = pathlib.Path(__file__).parents[1] / "samples"
    logs = [str(samples / f"{name}.darshan") for name in ("times/beat.1", "diagnosis/gather_and_write-4-2-dxt")]
    code = (
        f"import sys; from click.testing import CliRunner; from mpiio_ext.cli import main; "
        f"done = [CliRunner().invoke(main, ['analyze', 'logs', *logs]) for logs in ({logs[:1]}, {logs})]; "
        "print([one.exit_code for one in done], {'pandas', 'pyarrow.dataset'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[0, 0] set()\n"
