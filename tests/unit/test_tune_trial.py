"""One run of `mpiio-ext tune`, its objective, and the command's errors; the program is a shell command, no MPI."""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import signal
import sys
import time
import types
from typing import Any

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.launchers import Launch
from mpiio_ext.pioneer.orders import obey
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.objective import Elapsed, InOutput, InsideAccess, Unjudged, access_s, access_share, choose
from mpiio_ext.tune.setting import BASELINE, Setting
from mpiio_ext.tune.trial import FileUse, Outcome, ProcessRunner, outcome_of, status_text
from support.expected import Expected

COUNTERS = (
    "collective_writes",
    "collective_reads",
    "native_calls",
    "direct_calls",
    "bytes_written",
    "bytes_read",
    "independent_writes",
    "independent_reads",
    "independent_bytes_written",
    "independent_bytes_read",
)


def line(path: str = "/d/f", **values: float) -> dict[str, object]:
    fixed = {"kind": "file", "path": path, "ranks": 4, "total_s": 0.0, "independent_s": 0.0}
    return fixed | dict.fromkeys(COUNTERS, 0) | values


def shell(script: str, folder: pathlib.Path, before: str | None = None) -> ProcessRunner:
    def launch(variables, without):
        environment = {name: value for name, value in os.environ.items() if name not in without}
        return Launch(arguments=("sh", "-c", script), environment={**environment, **variables})

    return ProcessRunner(launch=launch, hints_text=lambda setting: f"{setting}\n", log=folder, before=before)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# ---- a run ----------------------------------------------------------------------------------------------------------


def test_output_statistics_and_environment_of_a_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MPIOX_HINTS", "cb_nodes=7")
    text = json.dumps(line(collective_writes=3, bytes_written=10, hints={"cb_nodes": {"value": "7", "source": "x"}}))
    run = json.dumps({"kind": "run", "ranks": 8})
    script = f"""echo "[$MPIOX_HINTS] [$MPIOX_HINTS_FILE]"; echo '{text}' >> $MPIOX_STATS_FILE
    echo '{run}' >> $MPIOX_STATS_FILE; printf '{{"kind": "file", "pa' >> $MPIOX_STATS_FILE"""
    runner = shell(script, tmp_path)
    for _ in range(2):  # the second one must not see the first one's statistics
        outcome = runner(BASELINE, 1, 20.0)
    assert (outcome.status, outcome.exit_status, outcome.ranks, len(outcome.files)) == ("ok", 0, 8, 1)
    assert outcome.files[0].bytes_moved == 10 and outcome.files[0].hints == (("cb_nodes", "7", "x"),)
    assert outcome.stdout() == "[cb_nodes=7] []\n"
    changed = runner(Setting((("cb_nodes", "2"),)), 2, 20.0)
    assert changed.stdout() == f"[] [{tmp_path}/0002.hints]\n"
    assert (tmp_path / "0002.log").read_text() == f"{changed.stdout()}\n---- hints\ncb_nodes=2\n"


def test_a_run_leaves_one_file_and_its_statistics_if_asked(tmp_path) -> None:
    """Errors are in the file, but are not what a metric reads."""
    text = json.dumps(line(collective_writes=1))
    runner = shell(f"echo 5 MB/s; echo 9 MB/s >&2; echo '{text}' >> $MPIOX_STATS_FILE", tmp_path, before="echo made")
    for number, keep in ((1, True), (2, False)):
        outcome = runner(Setting((("cb_nodes", "2"),)), number, 20.0, keep=keep)
        assert outcome.stdout() == "5 MB/s\n" and outcome.files[0].collective_calls == 1
    assert {path.name for path in tmp_path.iterdir()} == {"0001.log", "0001.stats", "0002.log"}
    expected = "5 MB/s\n\n---- standard error\n9 MB/s\n\n---- hints\ncb_nodes=2\n\n---- the command before\nmade\n"
    assert (tmp_path / "0002.log").read_text() == expected


def test_a_run_that_takes_too_long_leaves_no_process(tmp_path) -> None:
    """Not even one that has left the process group and ignores SIGTERM."""
    code = "import os, signal, time; signal.signal(15, signal.SIG_IGN); print(os.getpid(), flush=True); time.sleep(60)"
    outcome = shell(f"setsid {sys.executable} -c '{code}' & sleep 60", tmp_path)(BASELINE, 1, 3.0)
    assert outcome.status == "stopped" and "stopped after 3.0 s" in outcome.reason
    pid = int(outcome.stdout())
    deadline_s = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert not alive(pid)


def test_how_a_failed_run_is_told(tmp_path) -> None:
    script = "echo progress; echo 'app: error: no space left' >&2; echo later >&2; exit 5"
    failed = shell(script, tmp_path)(BASELINE, 1, 20.0)
    assert (failed.status, failed.exit_status) == ("failed", 5)
    assert failed.reason == "exit status 5: app: error: no space left"
    killed = shell("kill -KILL $$", tmp_path)(BASELINE, 2, 20.0)
    assert killed.exit_status == 128 + signal.SIGKILL and "SIGKILL" in killed.reason
    assert status_text(137).endswith("SIGKILL") and status_text(1) == "exit status 1"


def test_a_program_that_does_not_exist(tmp_path) -> None:
    runner = ProcessRunner(
        launch=lambda variables, without: Launch(arguments=("/nowhere/app",), environment={}),
        hints_text=str,
        log=tmp_path,
    )
    outcome = runner(BASELINE, 1, 5.0)
    assert (outcome.status, outcome.exit_status) == ("failed", 127)
    assert outcome.reason == "cannot execute /nowhere/app: No such file or directory"


def test_the_command_before_a_run(tmp_path) -> None:
    runner = shell(f"cat {tmp_path}/mark", tmp_path, before=f"echo fresh > {tmp_path}/mark")
    assert runner(BASELINE, 1, 20.0).stdout() == "fresh\n"
    with pytest.raises(TuneError, match="--before: 'exit 4' ended with exit status 4"):
        shell("true", tmp_path, before="exit 4")(BASELINE, 1, 20.0)


def test_a_log_folder_that_is_gone(tmp_path) -> None:
    with pytest.raises(TuneError, match="cannot write to the log folder"):
        shell("true", tmp_path / "gone")(BASELINE, 1, 20.0)


# ---- objectives -----------------------------------------------------------------------------------------------------


def outcome_with(text: str, folder: pathlib.Path) -> Outcome:
    (folder / "out").write_text(text, encoding="utf-8")
    return Outcome(status="ok", elapsed_s=2.0, output=folder / "out")


def test_bandwidths_and_times_in_the_output(tmp_path) -> None:
    outcome = outcome_with("write 100 MB/s\nread 400 MB/s\n1,250.5 s\n", tmp_path)
    bandwidth = InOutput(re.compile(r"([0-9.]+) MB/s"))
    assert bandwidth.cost(outcome) == pytest.approx(1 / 200) and bandwidth.shown(1 / 200) == "200"
    seconds = InOutput(re.compile(r"[0-9.,]+(?= s$)", re.MULTILINE), lower_is_better=True)
    assert seconds.cost(outcome) == pytest.approx(1250.5)
    for text in ("nothing", "0 MB/s", "nan MB/s"):
        with pytest.raises(Unjudged):
            InOutput(re.compile(r"(\S+) MB/s")).cost(outcome_with(text, tmp_path))
    assert Elapsed().cost(outcome) == 2.0


def test_time_inside_data_access_counts_direct_collectives_once() -> None:
    two_phase = FileUse.of(line(collective_writes=2, total_s=8.0))
    direct = FileUse.of(line(collective_writes=2, direct_calls=2, independent_writes=8, total_s=8.0, independent_s=6.0))
    alone = FileUse.of(line(independent_writes=8, independent_s=6.0, independent_bytes_written=5))
    behind = FileUse.of(line(independent_writes=8, independent_s=2.0, flush_barrier_s=6.0, delegated_writes=8))
    through = FileUse.of(
        line(
            collective_writes=2,
            delegated_calls=2,
            independent_writes=8,
            independent_s=6.0,
            bytes_written=5,
            independent_bytes_written=5,
        )
    )
    assert through.bytes_moved == 5
    for use, expected in ((two_phase, 2.0), (direct, 2.0), (alone, 1.5), (behind, 2.0), (through, 1.5)):
        outcome = Outcome(status="ok", elapsed_s=9.0, files=(use,))
        assert access_s(outcome) == pytest.approx(expected)
        assert InsideAccess().cost(outcome) == pytest.approx(expected)
    assert alone.bytes_moved == 5 and alone.written
    native = Outcome(status="ok", elapsed_s=9.0, files=(FileUse.of(line(native_calls=3, total_s=1.0)),))
    with pytest.raises(Unjudged, match="3 calls"):
        InsideAccess().cost(native)
    with pytest.raises(Unjudged, match="no time"):
        InsideAccess().cost(Outcome(status="ok", elapsed_s=9.0))


@pytest.mark.parametrize(
    ("values", "metric", "share"),
    [
        ({"collective_writes": 2, "total_s": 8.0}, InsideAccess, 0.2),  # of four ranks, in ten seconds
        ({"collective_writes": 2, "total_s": 12.0}, Elapsed, 0.3),
        ({"collective_writes": 2, "total_s": 8.0, "native_calls": 1}, Elapsed, None),
        ({}, Elapsed, None),
    ],
)
def test_the_first_run_chooses_the_metric(values: dict[str, float], metric: type, share: float | None) -> None:
    outcome = Outcome(status="ok", elapsed_s=10.0, files=(FileUse.of(line(**values)),), ranks=4)
    assert access_share(outcome) == (None if share is None else pytest.approx(share))
    chosen, why = choose(outcome)
    assert type(chosen) is metric
    if share is not None:
        assert f"{share:.0%} of the elapsed time" in why
    assert ("native settings are left out" in why) == (metric is InsideAccess)


# ---- the command ----------------------------------------------------------------------------------------------------


def failing(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["tune", *arguments])
    assert result.exit_code != 0 and (result.exception is None or isinstance(result.exception, SystemExit))
    return result.exit_code, result.output


@pytest.fixture()
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    for name in ("MPIOX_HINTS", "MPIOX_HINTS_FILE", "LD_PRELOAD"):
        monkeypatch.setenv(name, "")  # so that what the command sets is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv("MPIOX_SITE_FILE", os.devnull)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("clean")
class TestCommand:
    @pytest.mark.parametrize("module", ["optuna", "scipy.stats"])
    def test_without_the_optional_packages(self, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
        monkeypatch.setitem(sys.modules, module, None)
        status, output = failing("--", "true")
        assert status == 2 and output.count("\n") == 1
        assert f"needs {module.partition('.')[0]}" in output and "pip install" in output and "'optuna>=" in output

    def test_without_the_library(self, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
        monkeypatch.setattr("mpiio_ext.tune.job.get_library", lambda: tmp_path / "libmpiio_ext.so")
        status, output = failing("--", "true")
        assert status == 1 and output.count("\n") == 1 and "libmpiio_ext.so is missing" in output

    @pytest.mark.parametrize(
        "words",
        [
            ["--", "/nowhere/app"],
            ["--", "sh", "-c", "echo 'x: error: disk full' >&2; exit 9"],
            ["--budget", "20s", "--", "true"],
            ["--metric-regex", "([0-9.]+) MB/s", "--", "true"],
            ["--metric-regex", "(", "--", "true"],
            ["--lower-is-better", "--", "true"],
            ["-H", "cb_nods=1", "--", "true"],
            ["--hints-file", "missing.hints", "--", "true"],
            ["--files", "a#b", "--", "true"],
            *(["--budget", text, "--", "true"] for text in ("", "0", "5x", "-3s", "m", "5 x")),
        ],
        ids=" ".join,
    )
    def test_what_fails(self, words: list[str], expected: Expected) -> None:
        status, output = failing(*words)
        expected(f"{status}: {output.rpartition('Error: ')[2]}")

    @pytest.mark.parametrize(
        ("words", "text"),
        [
            (["-o", "folder"], "-o folder: is a folder"),
            (["-o", "missing/x.hints"], "there is no folder missing"),
            (["-o", "file/x.hints"], "there is no folder file"),
            (["-o", "x" * 300, "--log", "log"], "cannot be written: File name too long"),
            (["-o", "/proc/x.hints", "--log", "log"], "-o /proc/x.hints: cannot be written"),
            (["-o", "pipe"], "is not a regular file"),
            (["--log", "file/log"], "cannot make the log folder"),
            (["--log", "file"], "cannot make the log folder: a file has that name"),
            (["--log", "missing/log"], "there is no folder missing"),
            (["--log", "/proc/sys"], "--log /proc/sys: cannot be written"),
            (["--log", "tuned.hints"], "is also the name of a result"),
        ],
    )
    def test_places_that_cannot_be_written_are_refused_before_the_first_run(self, words: list[str], text: str) -> None:
        pathlib.Path("folder").mkdir()
        pathlib.Path("file").write_text("", encoding="utf-8")
        os.mkfifo("pipe")
        before = sorted(pathlib.Path().rglob("*"))
        status, output = failing(*words, "--", "sh", "-c", "touch ran")
        assert status == 2 and output.count("\n") == 1 and output.startswith("mpiio-ext: ") and text in output
        assert sorted(pathlib.Path().rglob("*")) == before

    @pytest.mark.parametrize(
        ("words", "metric", "choose", "native"),
        [
            ([], Elapsed, True, True),
            (["--metric", "auto"], Elapsed, True, True),
            (["--metric", "elapsed"], Elapsed, False, True),
            (["--metric", "io"], InsideAccess, False, False),
            (["--metric-regex", "x"], InOutput, False, True),
        ],
    )
    def test_only_a_metric_that_was_not_given_is_chosen(
        self, monkeypatch: pytest.MonkeyPatch, words: list[str], metric: type, choose: bool, native: bool
    ) -> None:
        jobs = []

        def no_runs(job, *rest: object) -> None:
            jobs.append(job)
            raise TuneError("no runs here")

        monkeypatch.setattr("mpiio_ext.cli.tune.tune_job", no_runs)
        assert failing(*words, "--", "true") == (1, "mpiio-ext: no runs here\n")
        (job,) = jobs
        assert (type(job.metric), job.choose, job.options.native) == (metric, choose, native)
        small = Outcome(status="ok", elapsed_s=9.0, files=(FileUse.of(line(collective_writes=1, total_s=1.0)),))
        assert isinstance(job.judge(small), InsideAccess) and not job.options.native

    def test_dry_run(self) -> None:
        result = CliRunner().invoke(main, ["tune", "--dry-run", "-H", "cb_nodes=1", "--", "srun", "-n", "3", "./app"])
        assert result.exit_code == 0, result.output
        assert "space for 3 ranks" in result.output and "cb_nodes: 0 1 2 3 " in result.output
        assert "auto: cb_nodes=(not set)" in result.output and "native: " in result.output
        assert not list(pathlib.Path().iterdir())

    def test_dry_run_as_json(self) -> None:
        words = ["tune", "--dry-run", "--json", "-H", "cb_nodes=1", "--", "srun", "-n", "3", "./app"]
        result = CliRunner().invoke(main, words)
        found = json.loads(result.stdout)
        assert result.exit_code == 0 and found["space"]["ranks"] == 3 and found["command"][:2] == ["srun", "-n"]
        nodes = next(hint for hint in found["space"]["hints"] if hint["hint"] == "cb_nodes")
        assert (
            nodes["values"] == ["0", "1", "2", "3"] and "auto" in nodes["ways"] and "native" in found["space"]["ways"]
        )
        text = CliRunner().invoke(main, [word for word in words if word != "--json"]).output
        assert len(found["first"]) == text.partition("first settings")[2].count(": ")
        assert found["first"][1]["hints"] == {"cb_nodes": "3", "mpiox_enable": "false"}


@pytest.mark.parametrize("abort_first", [True, False])
def test_the_reason_is_the_programs_not_the_banner_of_its_abort(tmp_path: pathlib.Path, abort_first: bool) -> None:
    """Open MPI's lines on MPI_Abort come before or behind the program's."""
    banner = "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n"
    own = "write: error: No space left on device\n"
    for ending in ("err", "out"):
        (tmp_path / f"run.{ending}").write_text(banner + own if abort_first else own + banner)
    assert outcome_of(1, 1.0, tmp_path / "run", None).reason.endswith("No space left on device")


@pytest.mark.parametrize("command", ["tune", "advise"])
@pytest.mark.parametrize("size", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
@pytest.mark.usefixtures("clean")
def test_a_launcher_in_front_is_refused(command: str, size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank would tune, in the same folders."""
    monkeypatch.setenv(size, "2")
    result = CliRunner().invoke(main, [command, "--", sys.executable])
    assert result.exit_code == 2 and "-- mpirun -n 4 ./app" in result.output


def test_an_order_takes_back_the_variables_of_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that stay between two settings have nothing of the first one in the second one."""
    orders = [
        {"set": {"HINT": "1", "OWN": "2"}, "unset": []},
        {"set": {}, "unset": ["OTHER"]},
        {"set": {}, "unset": []},
    ]
    start = {"OWN": "0", "OTHER": "0"}
    comm: Any = types.SimpleNamespace(
        rank=0, Barrier=lambda: None, Ibarrier=lambda: types.SimpleNamespace(Test=lambda: True), bcast=lambda line: line
    )
    seen: list[dict[str, str]] = []

    def run() -> int:
        seen.append(dict(os.environ))
        return 0

    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{json.dumps(order)}\n" for order in orders)))
    monkeypatch.setattr(os, "environ", dict(start))
    obey(comm, run)
    assert seen == [{"HINT": "1", "OWN": "2", "OTHER": "0"}, {"OWN": "0"}, start]
