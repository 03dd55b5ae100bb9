"""Jobs with several logs: side by side, in turn, and mixed; what they report together is what passes on the clock."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mpiio_ext
from mpiio_ext.cli import main
from support import darshan_rows
from support.darshan_logs import Job, make_log, posix
from support.expected import Expected
from support.html_page import Page
from support.job_logs import causes, run, told, written_log
from support.marks import slow

SAMPLES = pathlib.Path(__file__).parent.parent / "samples" / "diagnosis"
GB = 1 << 30


def brief(found: Any) -> dict[str, Any]:
    """Return what is known of a job: its times, its steps and its causes."""
    keys = ("job_id", "conclusion", "run_time", "io_time", "io_of_run")
    columns = ("log", "start", "run_time", "io_time", "io_of_run")
    steps = [" · ".join(f"{step[key]}" for key in columns) + f": {causes(step)}" for step in found.get("steps", [])]
    return {key: found[key] for key in keys if key in found} | {"steps": steps, "causes": causes(found)}


def test_logs_side_by_side_by_the_union_of_time(tmp_path: pathlib.Path, expected: Expected) -> None:
    """24 programs run for 100 s, each with 1 s of I/O at another time: that is 24 % of the job's time, not 1 %."""
    logs = [written_log(tmp_path / f"{k}.darshan", (0, 100), (10 + k, 11 + k)) for k in range(24)]
    same = [written_log(tmp_path / "same" / f"{k}.darshan", (0, 100), (10, 11)) for k in range(24)]
    (apart,), (together,) = told(logs), told(same)
    text = run("logs", *logs).stdout
    expected(
        {
            "apart": brief(apart),
            "facts": apart["facts"],
            "together": brief(together),
            "text": text[text.index("side by side:") :],
        }
    )


def test_three_steps_in_turn(tmp_path: pathlib.Path, expected: Expected) -> None:
    """The step that takes the time in I/O is named, and no file of one step waits for that of another."""
    logs = [
        written_log(tmp_path / "b.darshan", (100, 140), (5, 10), by_root=False, bytes_written=8 * GB),
        written_log(tmp_path / "a.darshan", (0, 100), (10, 60)),
        written_log(tmp_path / "c.darshan", (150, 160), (2, 3), by_root=False, bytes_written=4 * GB),
    ]
    (found,) = told(logs)
    expected({"job": brief(found), "text": run("logs", *logs).stdout})


def test_a_folder_stands_for_the_logs_in_it(tmp_path: pathlib.Path) -> None:
    for k in range(3):
        written_log(tmp_path / "logs" / str(k) / f"{k}.darshan", (100 * k, 100 * k + 50), (1, 21))
    (tmp_path / "logs" / "notes.txt").write_text("no log")
    (found,) = told([tmp_path / "logs"])
    assert [step["log"] for step in found["steps"]] == ["0.darshan", "1.darshan", "2.darshan"]
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(main, ["analyze", "logs", str(tmp_path / "empty")])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "empty: " in done.stderr and "(*.darshan, *.darshan_partial)" in done.stderr


def test_warnings_of_libraries_are_no_lines(tmp_path: pathlib.Path) -> None:
    """numpy's of a sum that is no number, matplotlib's of letters that its font lacks; ours stay."""
    log = tmp_path / "a.darshan"
    counters, times = dict.fromkeys(range(60), 5), {k: 1.0 + k for k in range(17)}
    endless = posix(2, 0, dict.fromkeys(range(60), 2**62), dict.fromkeys(range(17), np.inf))
    log.write_bytes(
        make_log(
            Job(exe="/bin/\u4e2d"),
            {1: "/a/\u4e2d\u6587", 2: "/b"},
            {"POSIX": (4, posix(1, 0, counters, times) + endless)},
        )
    )
    code = (
        "import warnings, sys, click; from mpiio_ext.common.commands import own_warnings\n"
        "from mpiio_ext.errors import MpiioExtWarning\nfrom mpiio_ext.cli import main\n"
        "with own_warnings(): warnings.warn('ours', MpiioExtWarning); warnings.warn('theirs')\n"
        "main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", "logs", log, "-o", tmp_path / "a.html"],
        text=True,
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert done.stderr.splitlines()[0] == "mpiio-ext: ours" and len(done.stderr.splitlines()) == 2, done.stderr
    assert "a.html: " in done.stderr


def test_logs_of_two_jobs_mixed(tmp_path: pathlib.Path, expected: Expected) -> None:
    logs = [
        written_log(tmp_path / f"{job}{k}.darshan", (100 * k, 100 * k + length), (1, end), job_id=job)
        for k in range(3)
        for job, length, end in ((7, 50, 21), (8, 80, 5))
    ]
    done = CliRunner().invoke(main, ["analyze", "logs", *map(str, logs), "-o", str(tmp_path / "x.html")])
    assert done.exit_code == 2 and not (tmp_path / "x.html").exists()
    expected({"jobs": [brief(one) for one in told(logs)], "one job": brief(*told(logs, "--one-job"))})
    assert run("logs", *logs).stdout.count("\njob ") == 2


def test_an_overview_of_many_jobs_comes_first(tmp_path: pathlib.Path) -> None:
    """The counts are right, the longest time in I/O stands first, and each sentence is that of the job's report."""
    ends = {"b": 21, "a": 41, "c": 3}
    for number, (name, end) in enumerate(ends.items(), 1):
        written_log(tmp_path / f"{name}.darshan", (0, 100), (1, end), job_id=number)
    written_log(tmp_path / "well.darshan", (0, 100), (1, 31), job_id=4, by_root=False, bytes_written=400 * GB)
    (tmp_path / "no.darshan").write_bytes(b"no log")
    written_log(tmp_path / "lost.darshan", (0, 100), (1, 21), job_id=5)
    (tmp_path / "lost.darshan").write_bytes((tmp_path / "lost.darshan").read_bytes()[:-5])
    done = run("logs", tmp_path, status=1)
    first, _, details = done.stdout.partition(f"\n\n{tmp_path}")
    found = json.loads(run("logs", "--json", tmp_path, status=1).stdout)
    assert sum(any(one["findings"] for one in job["diagnosis"]) for job in found) == 3
    head = "5 jobs with 5 logs: 3 jobs have findings. 1 more log cannot be read. 1 log lacks records."
    assert first.partition("\n\n")[0] == head
    assert details.count("\njob ") == 5
    named = re.findall(r"/(\w+)\.darshan$", first, re.MULTILINE)
    assert sorted(named) == ["a", "b", "c", "lost", "well"]
    assert named.index("a") < named.index("well") < named.index("b") < named.index("c")
    words = " ".join(first.split())
    assert all(" ".join(job["sentence"].split()) in words for job in found if "sentence" in job)
    assert str(tmp_path) not in run("logs", "--anonymous", tmp_path, status=1).stdout
    only = run("logs", tmp_path / "a.darshan").stdout
    assert only.startswith("job 2\n") and "with 1 log" not in only


def test_what_several_logs_say_of_a_job_is_that_of_all(tmp_path: pathlib.Path, expected: Expected) -> None:
    """Applications are those of all logs; on a terminal long names are shortened where they do not differ."""
    names = [f"me_app_id42-{k}_11-25-35894-17291130573449436033_{k}" for k in range(7)]
    logs = [
        written_log(tmp_path / f"{name}.darshan", (100 * k, 100 * k + 50), (1, 21), exe=f"/bin/app{k}")
        for k, name in enumerate(names)
    ]
    (found,) = told(logs)
    expected({"facts": found["facts"], "text": run("logs", *logs).stdout.partition("Factors")[0]})


def test_a_log_counts_once_and_logs_of_the_same_name_are_two(tmp_path: pathlib.Path, expected: Expected) -> None:
    first = written_log(tmp_path / "1" / "run.darshan", (0, 100), (10, 60))
    second = written_log(tmp_path / "2" / "run.darshan", (100, 200), (10, 20))
    expected(brief(*told([first, second, first])))


def test_logs_without_an_id_of_their_job_are_jobs_by_themselves(tmp_path: pathlib.Path) -> None:
    logs = [written_log(tmp_path / f"{k}.darshan", (0, 100), (10, 60), job_id=0) for k in range(2)]
    assert [one.get("steps") for one in told(logs)] == [None, None]
    assert len(told(logs, "--one-job")[0]["steps"]) == 2


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("strangers", "collective-one-stripe-496"),
        *slow(("strangers", "dfs-ior-16")),
        ("strangers", "ompio-locks-32-dxt"),
        *slow(("strangers", "python-imports-3"), ("known_truth", "random_reads-4"), ("known_truth", "one_writer-4")),
        ("known_truth", "little_io-4-dxt"),
    ],
)
def test_report_and_analyze_begin_with_the_same_sentence(folder: str, name: str, tmp_path: pathlib.Path) -> None:
    log = darshan_rows.shared_data(folder, f"{name}.darshan")
    sentence = json.loads(run("logs", "--json", log).stdout)["sentence"]
    made = CliRunner().invoke(main, ["report", str(log), "-o", str(tmp_path / "report.html")])
    assert made.exit_code == 0 and made.output.strip().endswith(sentence)
    assert re.match(
        r"(By the calls in the log, |The log gives two bounds: )?((.* of )?your program|the rank with most time in I/O)"
        r" spent (at least |between [\d.]+ % and )?[\d.]+ % of its time",
        sentence,
        re.I,
    )
    text = run("logs", log).stdout
    assert " ".join(text.split()).split(" ", 2)[2].startswith(sentence)
    run("logs", log, "-o", tmp_path / "job.html")
    for page in ("report", "job"):
        shown = Page((tmp_path / f"{page}.html").read_text()).text
        assert sentence.replace("`", "") in " ".join(shown.replace("`", "").split())


def test_the_time_in_io_is_at_least_that_of_the_longest_file() -> None:
    """2,048 processes write a file each; the job waits for 762 s, nearly all of its time, for those on OST 14.

    The process with most time in calls has 778.5 s in its file, and 0.2 s in the files of all.
    """
    log = darshan_rows.shared_data("tokio", "samples", "sample-badost.darshan")
    found = json.loads(run("logs", "--json", log).stdout)
    assert re.match(r"The rank with most time in I/O .* 100 % .* 4 %\); nearly all .* 779 s ", found["sentence"]), (
        found["sentence"]
    )
    assert causes(found["diagnosis"][0])


def test_the_head_of_a_log_has_date_command_and_common_sizes() -> None:
    log = darshan_rows.shared_data("known_truth", "random_reads-4.darshan")
    found = json.loads(run("logs", "--json", log).stdout)["facts"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", found["started"]) and found["command"]
    assert found["common access sizes"].startswith("MPI-IO: 4,096 B (")
    hidden = json.loads(run("logs", "--json", "--anonymous", log).stdout)["facts"]
    assert not {"started", "command", "common access sizes"} & set(hidden)


def test_sizes_and_places_of_requests_are_drawn_where_the_log_has_them(tmp_path: pathlib.Path) -> None:
    for name, places in (("random_reads-4-dxt", True), ("random_reads-4", False)):
        log = darshan_rows.shared_data("known_truth", f"{name}.darshan")
        assert run("logs", log, "-o", tmp_path / "job.html").exit_code == 0
        text = Page((tmp_path / "job.html").read_text()).text
        assert "reads are of 1 KiB " in text and ("Offsets over time: " in text) == places


@pytest.mark.parametrize("log", ["random_reads-4-dxt", "small_independent-4-dxt"])
def test_pictures_say_that_dxt_ended_early(log: str, tmp_path: pathlib.Path) -> None:
    """DXT of one log had no room for more than 209,704 of 1,200,256 requests: these end at 0.57 s of 2.16 s."""
    path, early = darshan_rows.shared_data("known_truth", f"{log}.darshan"), log.startswith("random")
    run("logs", path, "-o", tmp_path / "job.html")
    charts = mpiio_ext.run_report(path).document["charts"]
    told = (
        Page((tmp_path / "job.html").read_text()).text,
        str([(one["title"], one["data"].get("caption")) for one in charts]),
    )
    for text in told:
        assert ("Offsets over time: 17 %" in text) == ("after 573 ms" in text) == early
        assert ("DXT ended early" in text) == ("as far as" in text) == early
    assert ("100 ms (HEATMAP)" in told[1]) == early, "HEATMAP has the bytes to the end"


def test_the_page_of_a_job_with_several_logs(tmp_path: pathlib.Path, expected: Expected) -> None:
    logs = [written_log(tmp_path / f"{k}.darshan", (100 * k, 100 * k + 50), (1, 21)) for k in range(3)]
    for options, name in (([], "job.html"), (["--anonymous"], "hidden.html")):
        run("logs", *options, *logs, "-o", tmp_path / name)
    page, hidden = (Page((tmp_path / name).read_text()) for name in ("job.html", "hidden.html"))
    expected({"problems": page.problems, "tables": page.tables, "hidden": hidden.tables})
    assert "one after" in page.text and "0.darshan" not in hidden.text and "log 1" in hidden.text


def test_the_page_shows_the_ranks_of_the_busiest_log(tmp_path: pathlib.Path) -> None:
    logs = [SAMPLES / f"{name}.darshan" for name in ("sync_per_write-2-1-dxt", "gather_and_write-4-2-dxt")]
    run("logs", "--one-job", *logs, "-o", tmp_path / "job.html")
    assert "Ranks over time: gather_and_write-4-2-dxt.darshan" in Page((tmp_path / "job.html").read_text()).text


def test_the_bound_of_a_low_bandwidth_is_an_option(tmp_path: pathlib.Path) -> None:
    """8 GiB by all ranks in 5 s: not low by default; where 2 GB/s are, the sentence no longer says so."""
    log = written_log(tmp_path / "a.darshan", (0, 40), (5, 10), by_root=False, bytes_written=8 * GB)
    found = json.loads(run("logs", "--json", log).stdout)["diagnosis"][0]
    assert not found["low_bandwidth"] and "--low-bandwidth" in found["conclusion"]
    found = json.loads(run("logs", "--json", "--low-bandwidth", "2GB/s", log).stdout)["diagnosis"][0]
    assert found["low_bandwidth"] and "--low-bandwidth" not in found["conclusion"]
    done = CliRunner().invoke(main, ["analyze", "logs", "--low-bandwidth", "fast", str(log)])
    assert done.exit_code == 2 and "'--low-bandwidth'" in done.output


# ---- a store ---------------------------------------------------------------------------------------------------------


def test_a_store_uses_dxt_where_the_log_is_still_there(tmp_path: pathlib.Path) -> None:
    """What a store does not have comes from the log; where that is gone, or another one, it is said."""
    log = tmp_path / "logs" / "gather_and_write-4-2-dxt.darshan"
    log.parent.mkdir()
    shutil.copy(SAMPLES / log.name, log)
    (tmp_path / "setup.json").write_text(json.dumps({"store": "s", "inputs": {"darshan": ["logs"]}, "workers": 0}))
    run("init", tmp_path / "setup.json")
    job = told([log])["job_id"]
    with_dxt = run("job", job, "--setup", tmp_path / "setup.json")
    assert with_dxt.stdout == run("logs", log).stdout and "DXT)" in with_dxt.stdout and not with_dxt.stderr
    run("job", job, "--setup", tmp_path / "setup.json", "-o", tmp_path / "job.html")
    assert "Ranks over time" in (tmp_path / "job.html").read_text()
    log.touch()
    changed = run("job", job, "--setup", tmp_path / "setup.json")
    assert f"{log} has changed " in changed.stderr
    log.unlink()
    gone = run("job", job, "--setup", tmp_path / "setup.json")
    assert str(log) in gone.stderr and "(DXT)" not in gone.stdout
    assert str(log) not in run("job", job, "--setup", tmp_path / "setup.json", "--anonymous").stderr


def test_a_store_tells_the_steps_of_a_job(tmp_path: pathlib.Path) -> None:
    for k in range(3):
        written_log(tmp_path / "logs" / f"{k}.darshan", (100 * k, 100 * k + 50), (1, 21))
    (tmp_path / "setup.json").write_text(json.dumps({"store": "s", "inputs": {"darshan": ["logs"]}, "workers": 0}))
    run("init", tmp_path / "setup.json")
    found = json.loads(run("job", 42, "--setup", tmp_path / "setup.json", "--json").stdout)
    assert (found["run_time"], found["io_time"], len(found["steps"])) == (150, 60, 3)
