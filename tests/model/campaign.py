"""Run many histories on a pool, shrink those that fail, write them down."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from model.history import MOST_RANKS, History
from model.pool import Pool, Stuck
from model.strategy import Raw, legal, raws


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A history that failed, as small as it was made.

    Attributes
    ----------
    problems : what was wrong when it failed last.
    first : the history as it was drawn.
    """

    history: History
    problems: list[str]
    first: History


@dataclass(slots=True, kw_only=True)
class Report:
    """What a campaign found."""

    histories: int = 0
    calls: int = 0
    elapsed_s: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    kinds: dict[str, int] = field(default_factory=dict)


class Failed(Exception):
    """A history failed: what hypothesis shrinks."""


def problems_of(pool: Pool, history: History) -> list[str]:
    """Run a history; what was wrong, hangs and crashes too."""
    try:
        return pool.run(history)
    except Stuck as stuck:
        return [str(stuck)]


def cost(history: History) -> tuple[int, int, int]:
    """Return what makes a history simpler than another."""
    return len(history["ops"]), history["ranks"], len(json.dumps(history))


@dataclass(slots=True)
class Session:
    """The histories of one run of hypothesis: up to the first failure, which is then shrunk.

    A failure of several ranks may not come every time: while one is shrunk, each history is run ``repeat`` times.
    """

    pool: Pool
    report: Report
    repeat: int
    shrink_s: float
    on_history: Callable[[History], None] | None = None
    smallest: Failure | None = None
    first: History | None = None
    failed_at_s: float = 0.0

    def check(self, raw: tuple[int, list[int], list[Raw]]) -> None:
        """Run one history; raises Failed."""
        history = legal(raw, self.pool.setting.opens)
        if self.first is None:
            self.report.histories += 1
            self.report.calls += len(history["ops"])
            for op in history["ops"]:
                kind = f"{op['op']} {op['how']}" if "how" in op else op["op"]
                self.report.kinds[kind] = self.report.kinds.get(kind, 0) + 1
            if self.on_history is not None:
                self.on_history(history)
        elif time.monotonic() - self.failed_at_s > self.shrink_s and history != self.smallest_history:
            return
        for _ in range(1 if self.first is None else self.repeat):
            problems = problems_of(self.pool, history)
            if problems:
                if self.first is None:
                    self.first, self.failed_at_s = history, time.monotonic()
                if self.smallest is None or cost(history) < cost(self.smallest.history):
                    self.smallest = Failure(history=history, problems=problems, first=self.first)
                raise Failed(problems[0])

    @property
    def smallest_history(self) -> History | None:
        """The simplest failing history so far."""
        return self.smallest.history if self.smallest is not None else None


def campaign(
    pool: Pool,
    histories: int,
    first_seed: int,
    *,
    ranks: int = MOST_RANKS,
    calls: int = 45,
    repeat: int = 4,
    shrink_s: float = 90.0,
    most_failures: int = 3,
    stretch: int = 500,
    on_history: Callable[[History], None] | None = None,
    progress: Callable[[Report], None] | None = None,
) -> Report:
    """Run so many histories; they follow from the seed. After a failure the next stretch has another seed."""
    report, started_s = Report(), time.monotonic()
    done = 0
    while report.histories < histories and len(report.failures) < most_failures:
        session = Session(pool, report, repeat, shrink_s, on_history)
        explore(session, min(stretch, histories - report.histories), first_seed * 1_000_003 + done, ranks, calls)
        done += 1
        if session.smallest is not None:
            report.failures.append(session.smallest)
        report.elapsed_s = time.monotonic() - started_s
        if progress is not None:
            progress(report)
    return report


def explore(session: Session, histories: int, number: int, ranks: int, calls: int) -> None:
    """Run hypothesis once."""

    @seed(number)
    @settings(
        max_examples=histories,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(raws(ranks, calls))
    def check(raw: tuple[int, list[int], list[Raw]]) -> None:
        session.check(raw)

    try:
        check()
    except BaseException:
        # Failed, or that a failure did not come again; what was seen is in the session.
        if session.smallest is None:
            raise


def save(failure: Failure, folder: pathlib.Path, name: str) -> pathlib.Path:
    """Write a failing history to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(failure.history, indent=1), encoding="utf-8")
    (folder / f"{name}.first.json").write_text(json.dumps(failure.first), encoding="utf-8")
    (folder / f"{name}.txt").write_text("\n".join(failure.problems), encoding="utf-8")
    return path


def replay(pool: Pool, history: History, times: int) -> list[list[str]]:
    """Run one history several times; what was wrong each time."""
    return [problems_of(pool, history) for _ in range(times)]
