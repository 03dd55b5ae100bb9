"""mpiio-ext locks: series of aggregators, table, JSON, picture, errors."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree

import pytest
from click.testing import CliRunner, Result

from mpiio_ext.cli import main
from mpiio_ext.common.plots import LIGHT, Panel
from mpiio_ext.errors import ArgumentError
from mpiio_ext.partitioning import Geometry, methods
from mpiio_ext.partitioning.locks import _figure, cached, gpfs, lustre, simulate, uncached
from mpiio_ext.partitioning.locks._sweep import relation, requests_about, variants

MIB = 2**20
SMALL = ("--servers", "6", "--region", "96M", "--window", "4M")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["locks", *arguments], catch_exceptions=False)


def test_relation_of_aggregators_and_servers() -> None:
    for servers in range(1, 40):
        for aggregators in range(1, 40):
            found = relation(aggregators, servers)
            assert (found == "equal") == (aggregators == servers)
            assert (found in ("factor", "equal")) == (servers % aggregators == 0)
            assert (found in ("multiple", "equal")) == (aggregators % servers == 0)
            if found in ("co-prime", "neither"):
                assert (found == "co-prime") == (math.gcd(servers, aggregators) == 1)


def test_variants() -> None:
    names = [m.name for m in methods()]
    assert [v.method for v in variants(["all"], "no")] == names
    assert len(variants(["all"], "both")) == 2 * len(names)
    assert all(v.stripe_size_io for v in variants(["all"], "yes"))
    assert [v.label for v in variants(["aligned", "even"], "aligned")] == ["even", "aligned", "aligned + stripe-size"]
    with pytest.raises(ArgumentError, match="nosuch"):
        variants(["nosuch"], "no")


@pytest.mark.parametrize(("fs", "system"), [("lustre", lustre()), ("gpfs", gpfs())])
def test_json_has_what_the_model_says(fs: str, system: object) -> None:
    result = run(*SMALL, "--fs", fs, "--aggregators", "3,4,6,12", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert (found["region_bytes"], found["stripe_size_bytes"], found["window_bytes"]) == (96 * MIB, MIB, 4 * MIB)
    assert found["servers"] == 6
    assert [r["aggregators"] for r in found["rows"][:: len(methods()) + 1]] == [3, 4, 6, 12]
    for row in found["rows"]:
        wanted = simulate(
            Geometry.of_stripes(96, servers=6, aggregators=row["aggregators"]),
            row["method"],
            file_system=system,
            window_bytes=4 * MIB,
            stripe_size_io=row["stripe_size_io"],
        )
        assert row == {"relation": relation(row["aggregators"], 6), **json.loads(json.dumps(wanted.as_dict()))}
        assert row["data_bytes"] == 96 * MIB


def test_options_reach_the_model() -> None:
    def rows(*more: str) -> list[dict[str, object]]:
        result = run(*SMALL, "--aggregators", "4", "--method", "even", "--stripe-size-io", "no", *more, "--json")
        return list(json.loads(result.stdout)["rows"])

    assert len(rows()) == 1
    assert rows("--granularity", "768k") != rows()
    free = rows("--without-locks")[0]
    assert free["lock_requests"] == free["revocations"] == 0 < rows()[0]["lock_requests"]  # type: ignore[operator]
    assert rows("--stripe-size", "2M") != rows()
    geometry = Geometry.of_stripes(96, servers=6, aggregators=4)
    off, on = (
        simulate(geometry, "even", file_system=system(lustre()), window_bytes=4 * MIB).time_s
        for system in (uncached, cached)
    )
    assert rows("--no-cache")[0]["time_s"] == off != on == rows("--cache")[0]["time_s"]
    assert rows("--commit", "500ms") == rows("--commit", "0.5") != rows()


def test_table_has_each_method_and_marks_the_fastest() -> None:
    result = run(*SMALL, "--aggregators", "4,6")
    assert result.exit_code == 0
    for word in ("co-prime", "neither", "equal", "aligned + stripe-size", "group_cyclic", "transpose", "requests"):
        assert (word in result.output) == (word != "co-prime")
    assert result.output.count(" *\n") + result.output.count(" * \n") >= 2
    assert result.output.startswith("Lustre: ")
    assert run(*SMALL, "--aggregators", "4", "--cache").output.startswith("Lustre, caches: ")


def test_table_is_whole_in_a_pipe_and_on_a_narrow_terminal() -> None:
    arguments = ("--servers", "156", "--aggregators", "312,16384", "--region", "16G", "--method", "all")
    heads = {"to", "servers", "A", "method", "lock", "requests", "conflicts", "revo-", "cations", "seconds", "MiB/s"}
    for environment, more in (
        ({"COLUMNS": "80"}, {"shared", "units", "used"}),
        ({"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm"}, set()),
    ):
        result = CliRunner().invoke(main, ["locks", *arguments], env=environment, catch_exceptions=False)
        lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", result.stdout).splitlines()
        assert lines[0] == "Lustre: 156 servers, window 16 MiB, a collective write of 16 GiB in stripes of 1 MiB"
        assert set(" ".join(lines[1:3]).split()) == heads | more
        assert "…" not in "".join(lines)
        assert max(map(len, lines[1:])) <= (110 if more else 80)
        (row,) = [line.split() for line in lines if line.startswith("16384")]
        assert row[:3] == ["16384", "neither", "even"] and len(row) == (11 if more else 9)
        assert ("terminal is narrow" in result.stdout) == (not more)


def test_times_and_rates_reach_the_model() -> None:
    given = {
        ("--round-trip", "30us"): ("round_trip_s", 30e-6),
        ("--commit", "250µs"): ("commit_s", 250e-6),
        ("--server-bandwidth", "100MB/s"): ("server_bandwidth_bytes_s", 1e8),
    }
    system = lustre()
    arguments: list[str] = []
    geometry = Geometry.of_stripes(96, servers=6, aggregators=4)
    for option, (field, value) in given.items():
        arguments += option
        before, system = system, dataclasses.replace(system, **{field: value})
        wanted = simulate(geometry, "even", file_system=system, window_bytes=4 * MIB).time_s
        assert wanted != simulate(geometry, "even", file_system=before, window_bytes=4 * MIB).time_s, field
        one = ("--aggregators", "4", "--method", "even", "--stripe-size-io", "no")
        found = json.loads(run(*SMALL, *one, *arguments, "--json").stdout)
        assert found["file_system"][field] == pytest.approx(value)
        assert found["rows"][0]["time_s"] == pytest.approx(wanted)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--commit", "3parsec"],
        ["--commit", "-1s"],
        ["--commit", "20us/s/s"],
        ["--round-trip", ""],
        ["--round-trip", "250MB"],
        ["--server-bandwidth", "20us"],
        ["--server-bandwidth", "x"],
        ["--server-bandwidth", "0"],
        ["--round-trip", "1e999"],
        ["--region", "0"],
    ],
)
def test_what_is_no_time_or_rate_is_refused(arguments: list[str]) -> None:
    result = run(*SMALL, "--aggregators", "4", *arguments)
    assert result.exit_code == 2 and result.output.count("rror: ") + result.output.startswith("mpiio-ext: ") == 1


def test_large_counts_are_short_in_the_table_and_exact_in_json() -> None:
    arguments = ("--servers", "8", "--aggregators", "6", "--region", "120G", "--method", "static_cyclic")
    (row,) = json.loads(run(*arguments, "--json").stdout)["rows"]
    assert row["lock_requests"] == 120 * 1024 and "123k" in run(*arguments).output


def test_picture_and_json_file(tmp_path: pathlib.Path) -> None:
    picture, numbers = tmp_path / "l.svg", tmp_path / "l.json"
    result = run(*SMALL, "--aggregators", "3,5,6,12", "--plot", str(picture), "--json", "-o", str(numbers))
    assert result.exit_code == 0 and f"wrote {picture}" in result.output
    root = ElementTree.parse(picture).getroot()
    texts = {"".join(e.itertext()) for e in root.iter("{http://www.w3.org/2000/svg}text")}
    wanted = {"lock requests", "conflicts", "predicted MiB/s", "even", "aligned + stripe-size", "transpose"}
    wanted |= {"predicted bandwidth, % of the fastest method with as many aggregators"}
    assert wanted | {f"{r} (aggregators to servers)" for r in ("factor", "co-prime", "equal", "multiple")} <= texts
    assert len(json.loads(numbers.read_text())["rows"]) == 4 * (len(methods()) + 1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["l.json", "l.svg"]


def test_what_would_take_years_is_refused() -> None:
    years = run("--servers", "6", "--region", "4000P", "--aggregators", "4")
    assert years.exit_code == 2
    assert "data requests" in years.output and "days or more" in years.output and "--force" in years.output


def test_requests_about_are_those_of_the_model() -> None:
    """The guess that decides what is refused: as many as the planners make, or up to three times as many."""
    for window in (MIB // 2, 4 * MIB):
        for number in (3, 6, 12):
            geometry = Geometry.of_stripes(96, servers=6, aggregators=number)
            for variant in variants(["all"], "aligned"):
                o = simulate(
                    geometry,
                    variant.method,
                    file_system=lustre(),
                    window_bytes=window,
                    stripe_size_io=variant.stripe_size_io,
                )
                about = requests_about([geometry], [variant], window)
                assert int(o.data_requests.sum()) <= about <= 3 * int(o.data_requests.sum())


def test_ctrl_c_ends_it_without_a_file(tmp_path: pathlib.Path) -> None:
    """Years of work, known to be in the model by the bar on the terminal, end within seconds; nothing is written."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "mpiio_ext", "locks", "--servers", "6", "--region", "4000P"]
    command += ["--aggregators", "4", "--method", "even"]
    files = ["--json", "-o", str(tmp_path / "l.json"), "--plot", str(tmp_path / "l.svg")]
    with subprocess.Popen(
        [*command, "--force", *files],
        stderr=its,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(its)
        shown = b""
        while b"4: even" not in shown:
            shown += os.read(ours, 4096)
        drain = threading.Thread(target=lambda: collections.deque(iter(lambda: read(ours), b""), 0), daemon=True)
        drain.start()
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        begun_s = time.monotonic()
        assert process.wait(timeout=60) == 130
        assert time.monotonic() - begun_s < 5  # it looks once a step; the rest is for a busy machine
        assert process.stdout is not None and process.stdout.read() == b""
    assert not list(tmp_path.iterdir())


def read(terminal: int) -> bytes:
    """Return what a terminal shows next, nothing when its last process has gone."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_picture_joins_like_with_like_and_hides_nothing() -> None:
    """A line has aggregators that divide or are divided by the servers, or others; equal results differ in width."""
    from matplotlib.figure import Figure

    outcomes = [
        simulate(
            Geometry.of_stripes(120, servers=6, aggregators=number), method, file_system=lustre(), window_bytes=4 * MIB
        )
        for number in (2, 3, 4, 5, 6, 7, 12)
        for method in ("even", "aligned", "static_cyclic")
    ]
    values = [o.total_conflicts for o in outcomes]
    panel = Panel(Figure().subplots(), LIGHT)
    _figure._panel(outcomes, "conflicts", values, True, panel)
    lines = panel.axes.lines
    joined = [line for line in lines if line.get_marker() in ("", "None")]
    assert [list(line.get_xdata()) for line in joined] == [[2, 3, 6, 12], [4, 5, 7]] * 3
    for at, line in enumerate(joined):
        method = ("even", "aligned", "static_cyclic")[at // 2]
        mine = [v for o, v in zip(outcomes, values, strict=True) if o.method == method]
        by_number = dict(zip((2, 3, 4, 5, 6, 7, 12), mine, strict=True))
        assert list(line.get_ydata()) == [by_number[number] for number in line.get_xdata()]
    widths = [line.get_linewidth() for line in joined[::2]]
    assert widths[0] > 1.5 * widths[1] > 2 * widths[2]
    assert [line.get_color() for line in joined[::2]] == [LIGHT.colour(f"series{number}") for number in range(3)]
    marks = [line for line in lines if line.get_marker() not in ("", "None")]
    assert len(marks) == len(outcomes)
    assert all(line.get_markerfacecolor() == "none" and line.get_linestyle() == "None" for line in marks)
    assert {line.get_marker() for line in marks if line.get_xdata()[0] == 5} == {"o"}


def test_picture_names_each_number_and_joins_a_lone_one() -> None:
    from matplotlib.figure import Figure

    outcomes = [
        simulate(
            Geometry.of_stripes(400, servers=16, aggregators=number), "even", file_system=lustre(), window_bytes=4 * MIB
        )
        for number in (16, 64, 100)
    ]
    panel = Panel(Figure().subplots(), LIGHT)
    _figure._panel(outcomes, "conflicts", [o.total_conflicts for o in outcomes], True, panel)
    joined = [line for line in panel.axes.lines if line.get_marker() in ("", "None")]
    assert [list(line.get_xdata()) for line in joined] == [[16, 64], [64, 100]]
    assert [text.get_text() for text in panel.axes.get_xticklabels()] == ["16", "64", "100"]
    assert _figure._named(list(range(1, 20))) is None
    assert _figure._named([4, 5, 6, 4096]) == [(6, "6"), (4096, "4,096")]


def test_picture_compares_with_the_fastest_of_as_many_aggregators() -> None:
    outcomes = [
        simulate(
            Geometry.of_stripes(96, servers=6, aggregators=number), method, file_system=lustre(), window_bytes=4 * MIB
        )
        for number in (4, 6)
        for method in ("even", "transpose", "group_cyclic")
    ]
    shares = _figure._share_of_fastest(outcomes)
    for some, of in ((shares[:3], outcomes[:3]), (shares[3:], outcomes[3:])):
        assert max(some) == 100
        times = [o.time_s for o in of]
        assert some == pytest.approx([100 * min(times) / t for t in times])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--aggregators", "0"], "is not from 1 to"),
        (["--aggregators", "4", "--method", "nosuch"], "unknown partition method"),
        (["--aggregators", "4", "--stripe-size", "0"], "stripe_size_bytes must be"),
        (["--aggregators", "4", "--window", "0"], "window_bytes must be"),
        (["--aggregators", "4", "--plot", "x.txt"], "a picture ends in"),
        (["--aggregators", "4", "--plot", "none/x.svg"], "none/x.svg: "),
        (["--aggregators", "4", "--json", "-o", "none/x.json"], "none/x.json: cannot be written: there is no folder"),
    ],
)
def test_errors(arguments: list[str], message: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(SMALL[:4] if "--window" in arguments else SMALL), *arguments)
    assert result.exit_code == 2 and message in result.output
    assert not list(tmp_path.iterdir())
