"""Which rows are repeated within a budget, and what is said meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TypeVar

import pytest

from mpiio_ext.bench.execution.schedule import Schedule
from mpiio_ext.bench.terminal import within_budget
from mpiio_ext.common.progress import progress

Value = TypeVar("Value")


class Alone:
    """A communicator of one rank."""

    rank, size = 0, 1

    def bcast(self, value: Value) -> Value:
        return value


@pytest.mark.parametrize(
    ("costs", "budget", "runs"),
    [
        ((1.0, 1.0, 1.0), 0.0, "abc abc abc abc"),  # no limit
        ((1.0, 1.0, 1.0), 12.0, "abc abc abc abc"),
        ((1.0, 1.0, 1.0), 10.0, "abc abc abc"),
        ((1.0, 5.0, 1.0), 12.0, "abc ac ac"),  # the dear one is measured once, so that the others are often enough
        ((1.0, 1.0, 5.0), 11.0, "abc ab ab"),
        ((4.0, 4.0, 4.0), 13.0, "abc"),
        ((4.0, 4.0, 4.0), 1e-9, "abc"),
    ],
)
def test_fewer_rows_are_repeated_before_rows_are_repeated_less_often(monkeypatch, costs, budget, runs):
    clock, seen = [0.0], [""] * 4
    monkeypatch.setattr("mpiio_ext.bench.execution.schedule.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def run_case(case: str, number: int) -> None:
        seen[number] += case
        clock[0] += costs["abc".index(case)]

    told: list[str] = []
    schedule = Schedule(
        comm=Alone(),
        cases="abc",
        run_case=run_case,
        repetitions=4,
        budget_s=budget,
        replanned=lambda cases: told.append("".join(cases)),
    )
    schedule.run()
    assert " ".join(filter(None, seen)) == runs
    assert schedule.repetitions_done == len(runs.split())
    assert told == ([] if "abc abc" in runs else [runs.split()[1] if " " in runs else ""])


@pytest.mark.parametrize(
    ("first_s", "shares", "runs"),
    [
        (4.0, [], "ab ab ab ab ab"),  # enough repetitions fit, and more
        (8.0, [], "ab ab ab"),
        (12.0, [0.5], "ab ab ab ab"),  # (30 - 12) / (3 * 12)
        (40.0, [1 / 4], "ab ab ab ab"),  # never less, and three repetitions, whatever they take
    ],
)
def test_cases_become_smaller_so_that_all_are_repeated(monkeypatch, first_s, shares, runs):
    clock, seen, asked = [0.0], [""], list[float]()
    monkeypatch.setattr("mpiio_ext.bench.execution.schedule.time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def run_case(case: str, number: int) -> None:
        if case == "a":
            seen.append("")
        seen[-1] += case
        clock[0] += first_s / 2 * (asked[-1] if asked else 1)

    def smaller(share: float) -> str:
        asked.append(share)
        return "ab"

    schedule = Schedule(comm=Alone(), cases="ab", run_case=run_case, repetitions=5, budget_s=30.0, smaller=smaller)
    schedule.run()
    assert (" ".join(filter(None, seen)), asked) == (runs, shares)
    assert schedule.repetitions_done == len(runs.split()) - len(shares)
    assert schedule.share == (shares or [1.0])[0]


def test_a_failure_ends_the_repetitions():
    seen: list[int] = []

    def run_case(case: str, number: int) -> None:
        seen.append(number)
        if number == 1:
            raise ValueError("end")

    schedule = Schedule(comm=Alone(), cases="a", run_case=run_case, repetitions=5)
    with pytest.raises(ValueError, match="end"):
        schedule.run()
    assert (schedule.repetitions_done, seen) == (2, [0, 1])


def test_progress_in_a_log_is_a_line_now_and_then(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr("mpiio_ext.common.progress.time", SimpleNamespace(monotonic=lambda: clock[0]))
    with progress(40, shown=False, step="row", every_s=15.0, name="bench") as advance:
        for number in range(20):
            clock[0] += 2.0
            advance(f"case {number}")
        advance(by=0, of=30)
    assert capsys.readouterr().err.splitlines() == [
        "bench: row 8 of 40, about 64 s left: case 7",
        "bench: row 16 of 40, about 48 s left: case 15",
    ]
    with progress(9, shown=False) as advance:  # no end is known before the first step
        clock[0] += 31.0
        advance("tried", by=0)
    assert capsys.readouterr().err == "0/9: tried\n"
    with progress(1, shown=False, every_s=0.0) as advance:
        clock[0] += 100.0
        advance("nothing is said")
    assert capsys.readouterr().err == ""


def test_the_time_that_is_left_is_that_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are run in any case may take longer. Rows are as many as fit, or as were promised."""
    clock, seen = [0.0], []

    def advance(
        text: str = "", *, by: float = 1, to: float | None = None, of: float | None = None, left_s: float | None = None
    ) -> None:
        seen.append((of, left_s))

    monkeypatch.setattr("mpiio_ext.bench.terminal.time", SimpleNamespace(monotonic=lambda: clock[0]))
    for row_s, left_s, rows in ((8.0, 80.0, 20), (4.0, 40.0, 20), (1.0, 30.0, 40), (0.125, 38.75, 70)):
        moved = within_budget(advance, once=20, most=70, budget_s=40.0)
        assert seen[-1] == (None, 40.0)
        for _ in range(10):
            clock[0] += row_s
            moved("a row")
        assert seen[-1] == (rows, left_s)
    moved(by=0, of=60)
    assert seen[-1] == (60, 38.75)
    clock[0] += 2.0  # rows are slower than was thought: those that were promised are run
    moved("a row")
    assert seen[-1] == (60, 98.0) and within_budget(advance, once=1, most=1, budget_s=0.0) is advance


def test_progress_on_a_terminal_counts_rows(capsys):
    with progress(7, shown=True, width=100, step="row") as advance:
        advance("block3d, auto")
    shown = capsys.readouterr().err
    assert "row 1 of 7" in shown and "left" in shown and "block3d, auto" in shown


def test_progress_on_a_terminal_keeps_the_time_that_is_left(capsys):
    """Also when the number of rows changes."""
    with progress(9, shown=True, width=100, step="row", about=True) as advance:
        advance("block3d, auto", left_s=100.0)
        advance(by=0, of=7, left_s=100.0)
    last = capsys.readouterr().err.split("row 1 of about 7")[-1]
    assert "0:01:" in last and "-:--" not in last
