"""Runs that store files as several: merged for real, the merge counted, and what is left is a plain file."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import pytest
from click.testing import CliRunner

from mpiio_ext.cli import main
from mpiio_ext.tune import report
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.merging import MergingRunner, asks, merge_lines, servers_of
from mpiio_ext.tune.objective import Elapsed
from mpiio_ext.tune.outcome import Plan, Result
from mpiio_ext.tune.program import registry_defaults
from mpiio_ext.tune.setting import BASELINE, Setting
from mpiio_ext.tune.space import Options, Usage, build
from mpiio_ext.tune.trial import FileUse, Outcome
from mpiio_ext.tune.tuner import Tuner
from support import fuzz
from support.made_subfiles import make
from support.parts import require

require("optuna", "scipy")

FOUR = Setting((("mpiox_subfiles", "4"),))
SIZE = 3_000_000


def use(path: pathlib.Path) -> FileUse:
    return FileUse(
        path=str(path),
        ranks=4,
        bytes_moved=SIZE,
        written=True,
        collective_calls=1,
        independent_calls=0,
        direct_calls=0,
        native_calls=0,
        collective_s=1.0,
        independent_s=0.0,
    )


def runner_of(path: pathlib.Path, data: bytes, *, status: str = "ok", anew: bool = True, whole: bool = True):
    """Return a program that writes a file: as several where it is asked to and makes it anew."""

    def run(setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        del number, limit_s, keep
        if anew:
            path.unlink(missing_ok=True)
        if asks(setting) and not path.exists():
            make(path, {0: data}, SIZE, 100_000, 4, whole=whole)
        else:
            path.write_bytes(data)
        failed = status != "ok" and setting != BASELINE
        return Outcome(status=status if failed else "ok", elapsed_s=1.0, files=() if failed else (use(path),))

    return run


def names(folder: pathlib.Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


def test_files_are_merged_and_nothing_else_stays(tmp_path: pathlib.Path) -> None:
    data = fuzz.data(SIZE)
    runner = MergingRunner(runner_of(tmp_path / "f", data))
    assert runner(BASELINE, 1, 9.0).merge_s == 0
    for number in (2, 3):
        outcome = runner(FOUR, number, 9.0)
        assert (outcome.status, outcome.elapsed_s) == ("ok", 1.0)
        assert outcome.merge_s > 0 and outcome.merged_by in ("reflink", "copy_file_range", "read and write")
        assert names(tmp_path) == {"f"} and (tmp_path / "f").read_bytes() == data
    assert runner(BASELINE, 4, 9.0).status == "ok"


def test_a_hint_without_effect_is_told(tmp_path: pathlib.Path) -> None:
    """The program opens the file of the run before: it is not stored as several, and the run is no evidence."""
    runner = MergingRunner(runner_of(tmp_path / "f", bytes(SIZE), anew=False))
    runner(BASELINE, 1, 9.0)
    outcome = runner(FOUR, 2, 9.0)
    assert outcome.status == "unused" and "let --before delete them" in outcome.reason


def test_a_replay_makes_its_files_anew(tmp_path: pathlib.Path) -> None:
    """In a folder of the tuner's own the files of the run before go; others stay."""
    (tmp_path / "mine").write_text("not the tuner's")
    inside, data = tmp_path / "replay" / "f", fuzz.data(SIZE)
    inside.parent.mkdir()
    runner = MergingRunner(runner_of(inside, data, anew=False), inside.parent)
    runner(BASELINE, 1, 9.0)
    assert runner(FOUR, 2, 9.0).merge_s > 0 and inside.read_bytes() == data
    other = MergingRunner(runner_of(tmp_path / "g", data, anew=False), inside.parent)
    other(BASELINE, 1, 9.0)
    assert other(FOUR, 2, 9.0).status == "unused" and (tmp_path / "mine").exists()


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_failed_run_has_left_goes(tmp_path: pathlib.Path, whole: bool) -> None:
    """Else the next run would open it as a file that is stored as several."""
    runner = MergingRunner(runner_of(tmp_path / "f", bytes(SIZE), status="stopped", whole=whole))
    assert runner(BASELINE, 1, 9.0).status == "ok"
    assert runner(FOUR, 2, 9.0).status == "stopped" and names(tmp_path) == set()
    assert runner(BASELINE, 3, 9.0).status == "ok"


def test_a_merge_that_fails_ends_the_setting(tmp_path: pathlib.Path) -> None:
    write = runner_of(tmp_path / "f", bytes(SIZE))

    def damages(setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        outcome = write(setting, number, limit_s, keep=keep)
        if asks(setting):
            os.truncate(next((tmp_path / "f.subfiles").glob("*.2")), 10)
        return outcome

    runner = MergingRunner(damages)
    runner(BASELINE, 1, 9.0)
    outcome = runner(FOUR, 2, 9.0)
    assert outcome.status == "failed" and "is too short" in outcome.reason and names(tmp_path) == set()


def test_a_file_that_is_stored_as_several_before_is_not_touched(tmp_path: pathlib.Path) -> None:
    def nothing(setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        del setting, number, limit_s, keep
        return Outcome(status="ok", elapsed_s=1.0, files=(use(tmp_path / "f"),))

    make(tmp_path / "f", {0: bytes(SIZE)}, SIZE, 100_000, 4)
    before = (tmp_path / "f").read_bytes()
    with pytest.raises(TuneError, match=r"is stored as several already: .* merge"):
        MergingRunner(nothing)(BASELINE, 1, 9.0)
    assert (tmp_path / "f").read_bytes() == before and names(tmp_path) == {"f", "f.subfiles"}


# ---- the decision ----------------------------------------------------------------------------------------------------


def tuned(run_s: float, merge_s: float, *, merges: bool = True) -> Result:
    """Tune a program of a second, which takes `run_s` where it stores files as several."""
    now_s = 0.0

    def run(setting: Setting, number: int, limit_s: float, *, keep: bool = False) -> Outcome:
        nonlocal now_s
        del number, limit_s, keep
        several = asks(setting)
        outcome = Outcome(
            status="ok",
            elapsed_s=run_s if several else 1.0,
            ranks=4,
            merge_s=merge_s if several else 0.0,
            merged_by="copy_file_range" if several else "",
        )
        now_s += outcome.elapsed_s + outcome.merge_s
        return dataclasses.replace(outcome, elapsed_s=outcome.elapsed_s * (1 + now_s % 0.01))

    defaults = registry_defaults()
    options = Options(subfiles=True, targets=4)
    space = build(Usage(ranks=4, independent=False), options, defaults=defaults, in_force=defaults)
    plan = Plan(budget_s=300.0, trials=15, merges=merges)
    return Tuner(runner=run, metric=Elapsed(), plan=plan, space_of=lambda _: space, clock=lambda: now_s).run()


@pytest.mark.parametrize(
    ("run_s", "merge_s", "merges", "wins"),
    [
        (0.5, 0.2, True, True),  # 0.7 s against 1 s
        (0.5, 0.7, True, False),  # faster without the merge, slower with it
        (0.5, 0.7, False, True),  # nobody merges
        (1.5, 0.0, True, False),
    ],
)
def test_the_merge_is_part_of_the_decision(run_s: float, merge_s: float, merges: bool, wins: bool) -> None:
    result = tuned(run_s, merge_s, merges=merges)
    tried = [record for record in result.records if asks(record.setting)]
    assert tried, "no setting stored files as several"
    assert (result.verdict == "wins") == wins
    assert (result.candidate is not None and asks(result.candidate)) == wins
    if wins:
        assert result.candidate is not None and set(result.candidate.as_dict()) == {"mpiox_subfiles"}
        assert result.evidence is not None
        assert result.evidence.gain == pytest.approx(1 / (run_s + merges * merge_s), rel=0.05)
    (line,) = merge_lines(result, Elapsed().shown, counted=merges)
    assert f"merge {merge_s:.3f} s (copy_file_range)" in line
    assert ("which does not count (--unmerged)" in line) == (not merges)
    assert ("together" in line) == merges
    subject = report.Subject(command=("app",), metric=Elapsed(), glob="*", present=None, budget_s=300.0, merges=merges)
    assert any(line in text for text in report.lines(result, subject))
    assert {run["merge_s"] for run in report.as_json(result, subject, None)["runs"]} == {0.0, merge_s}


def test_subfiles_are_tried_only_where_they_are_allowed() -> None:
    defaults = registry_defaults()

    def values(written: bool, **options: object) -> list[tuple[str, ...]]:
        space = build(
            Usage(ranks=6, written=written),
            Options(**options),
            defaults=defaults,  # type: ignore[arg-type]
            in_force=defaults,
        )
        found = [item for item in space.parameters if item.hint == "mpiox_subfiles"]
        assert all("native" not in item.ways for item in found)
        tried = [space.setting_of(point).as_dict().get("mpiox_subfiles") for point in space.starting_points()]
        assert tried.count(None) < len(tried) or not found
        return [item.values for item in found]

    assert values(True) == values(False, subfiles=True) == values(True, targets=4) == []
    assert values(True, subfiles=True) == [("0", "2", "4")]
    assert values(True, subfiles=True, targets=4) == [("0", "2", "4", "per_server")]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--unmerged"], "--unmerged needs --subfiles"),
        (["--subfiles", "--metric-regex", "x"], "judge by --metric, or give --unmerged"),
    ],
)
def test_options_that_do_not_go_together(words: list[str], why: str) -> None:
    done = CliRunner().invoke(main, ["tune", *words, "--", "true"])
    assert done.exit_code == 2 and why in " ".join(done.output.split()), done.output


def test_whole_files_on_servers(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mpiio_ext import layout

    assert servers_of(tmp_path)[0] == 0
    assert servers_of(tmp_path / "missing") == (0, "")
    facts: dict[str, object] = {"targets": 4, "file_system": "glusterfs"}
    monkeypatch.setattr(layout, "inspect", lambda _: type("Found", (), {"value": staticmethod(facts.get)})())
    assert servers_of(tmp_path) == (4, "glusterfs")
    facts["targets"] = 1
    assert servers_of(tmp_path)[0] == 0
