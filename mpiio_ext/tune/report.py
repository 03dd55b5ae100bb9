"""The output of tuning: lines for people, comments for the hints file, JSON of every run for scripts."""

from __future__ import annotations

import dataclasses
import datetime
import platform
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mpiio_ext.common.units import count_text, digits_text, size_text
from mpiio_ext.tune.evidence import Evidence
from mpiio_ext.tune.objective import SMALL_SHARE, Elapsed, Metric, access_share
from mpiio_ext.tune.outcome import Result
from mpiio_ext.tune.program import Present, files_of
from mpiio_ext.tune.setting import BASELINE, LEFT_AWAY, Setting

_MOST_FILES = 20
_MOST_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The tuned program.

    Attributes
    ----------
    command : program or launcher with arguments.
    metric : by which runs were judged.
    glob : files for which hints were searched.
    present : hints in force in the baseline; None when it did not end.
    budget_s : seconds.
    why_metric : why runs were judged by it, where the first run has chosen it; "" if the user has.
    """

    command: tuple[str, ...]
    metric: Metric
    glob: str
    present: Present | None
    budget_s: float
    why_metric: str = ""


def gain_words(found: Evidence) -> str:
    """Return the gain with its interval and how it was measured."""
    return (
        f"{digits_text(found.gain)} times as fast ({found.confidence:.0%} confidence: "
        f"{digits_text(found.low)} to {digits_text(found.high)}; "
        f"{found.pairs} pairs of runs in random order)"
    )


def _medians(found: Evidence, metric: Metric) -> str:
    return f"{metric.name}: {metric.shown(found.baseline_cost)} before, {metric.shown(found.cost)} with them (medians)"


def file_lines(result: Result) -> list[str]:
    """Return one line for each file that the program opened, most bytes first."""
    if result.baseline is None:
        return []
    rows = files_of(result.baseline)
    found = []
    for path, times, size, native in rows[:_MOST_FILES]:
        moved = "moved by the MPI library" if native and not size else size_text(size)
        found.append(f"{path}: {moved}, opened {times} time{'s' if times > 1 else ''}")
    if len(rows) > _MOST_FILES:
        found.append(f"and {len(rows) - _MOST_FILES} more files")
    return found


def lost_hints(subject: Subject, setting: Setting) -> list[str]:
    """Return one line for each of the user's or program's own hints that the setting replaces."""
    if subject.present is None:
        return []
    chosen, found = setting.as_dict(), []
    native = chosen.get("mpiox_enable") == "false"
    for name, source in sorted(subject.present.sources.items()):
        if name in chosen:
            left = name in LEFT_AWAY and chosen[name] == "0"
            better = "the library's choice" if left else f"{name}={chosen[name]}"
            found.append(f"{name}={subject.present.values[name]} (from {source}) lost to {better}")
        elif native and name.startswith("mpiox_"):
            found.append(f"{name}={subject.present.values[name]} (from {source}) has no effect with mpiox_enable=false")
    return found


def header(result: Result, subject: Subject) -> list[str]:
    """Return the comment at the head of the hints file of a result that wins."""
    from mpiio_ext import __version__

    assert result.evidence is not None and result.candidate is not None
    assert result.baseline is not None
    return [
        f"Hints of mpiio-ext tune (mpiio_ext {__version__}, {datetime.date.today():%Y-%m-%d}, {platform.node()}) for",
        f"    {shlex.join(subject.command)}",
        "",
        f"Gain: {gain_words(result.evidence)}.",
        f"{_medians(result.evidence, subject.metric)}.",
        *_judged(subject),
        f"{len(result.records)} runs of {len({record.setting for record in result.records})} settings in "
        f"{result.spent_s:.0f} s; {result.baseline.ranks} ranks.",
        "Measured for this program, this size, this number of ranks and these files:",
        *(f"    {line}" for line in file_lines(result)),
        *lost_hints(subject, result.candidate),
    ]


def reasons(subject: Subject, setting: Setting) -> dict[str, str]:
    """Return {hint: meaning, and value before} for the lines of the hints file."""
    from mpiio_ext.hints import registry

    assert subject.present is not None
    meanings = {spec.name: spec.description for spec in registry()}
    found = {}
    for name, _ in setting.hints:
        was = subject.present.values.get(name, "")
        source = subject.present.sources.get(name, "default")
        found[name] = f"{meanings.get(name, 'a hint of the MPI library')} (was {was or 'not set'}, {source})"
    return found


def _delegates(result: Result) -> list[str]:
    """Return the gain of delegates by the counters, unless they have won."""
    candidate = {} if result.candidate is None else result.candidate.as_dict()
    if not result.delegates or (result.verdict == "wins" and "mpiox_delegates" in candidate):
        return []
    return [f"note: by the statistics of a run, delegates of {result.delegates}"]


def _advice(result: Result, subject: Subject) -> list[str]:
    if result.baseline is None or not isinstance(subject.metric, Elapsed):
        return []
    share = access_share(result.baseline)
    if share is None or share >= SMALL_SHARE:
        return []
    return [
        f"note: data access is {share:.0%} of the elapsed time, so that gains there hardly show: --metric io or "
        "--metric-regex would measure them"
    ]


def _counts(result: Result) -> str:
    settings = {record.setting for record in result.records}
    counts = count_text(len(result.records), "run"), count_text(len(settings), "setting")
    return f"{' of '.join(counts)} in {result.spent_s:.0f} s"


def _failures(result: Result) -> list[str]:
    """Return a line for each of the first settings that were lost because a run failed or was stopped."""
    lost = {record.setting: record for record in result.records if record.cost is None}
    found = [f"lost in run {record.number}: {setting}: {record.reason}" for setting, record in lost.items()]
    return [*found[:_MOST_FAILURES], *([f"and {len(found) - _MOST_FAILURES} more"] if found[_MOST_FAILURES:] else [])]


def _judged(subject: Subject) -> list[str]:
    """Return the metric that judged runs, if the first run has chosen it."""
    return [f"judged by {subject.metric.name}: {subject.why_metric}"] if subject.why_metric else []


def lines(result: Result, subject: Subject) -> list[str]:
    """Return the result for people."""
    text = [_counts(result), *(f"  {line}" for line in [*file_lines(result), *_failures(result)])]
    text += _judged(subject)
    if result.verdict == "wins":
        assert result.evidence is not None and result.candidate is not None
        text += [f"wins: {result.candidate}", f"  {gain_words(result.evidence)}"]
        text += [f"  {_medians(result.evidence, subject.metric)}"]
        text += [f"  {line}" for line in lost_hints(subject, result.candidate)]
        return text + _delegates(result) + _advice(result, subject)
    title = "nothing wins" if result.verdict == "nothing" else "no decision"
    text.append(f"{title}: {result.reason}")
    if result.candidate is not None:
        text.append(f"  best candidate, not written: {result.candidate}")
    if result.evidence is not None:
        text.append(f"  it was {gain_words(result.evidence)}")
    return text + _delegates(result) + _advice(result, subject)


def _hints(setting: Setting | None) -> dict[str, str] | None:
    return None if setting is None else setting.as_dict()


def settings_of(result: Result) -> list[tuple[Setting, list[float]]]:
    """Return each setting that ran with the costs of its runs, that with the least median first."""
    costs: dict[Setting, list[float]] = {}
    for record in result.records:
        costs.setdefault(record.setting, [])
        if record.cost is not None:
            costs[record.setting].append(record.cost)
    return sorted(costs.items(), key=lambda item: statistics.median(item[1]) if item[1] else float("inf"))


def _summary(result: Result) -> list[dict[str, Any]]:
    """Return the facts of each setting that ran, best first."""
    return [
        {
            "hints": setting.as_dict(),
            "baseline": setting == BASELINE,
            "runs": len(found),
            "median_cost": statistics.median(found) if found else None,
        }
        for setting, found in settings_of(result)
    ]


def as_json(result: Result, subject: Subject, hints_file: str | None) -> dict[str, Any]:
    """Return everything as one object; costs are lower-is-better, "metric" names their unit."""
    from mpiio_ext import __version__

    own = subject.present
    return {
        "version": 1,
        "mpiio_ext": __version__,
        "command": list(subject.command),
        "metric": subject.metric.name,
        "metric_reason": subject.why_metric,
        "files_glob": subject.glob,
        "budget_s": subject.budget_s,
        "spent_s": result.spent_s,
        "interrupted": result.interrupted,
        "verdict": result.verdict,
        "reason": result.reason,
        "hints": _hints(result.candidate) if result.verdict == "wins" else None,
        "candidate": _hints(result.candidate),
        "evidence": None if result.evidence is None else dataclasses.asdict(result.evidence),
        "hints_file": hints_file,
        "own_hints": []
        if own is None
        else [{"name": name, "value": own.values[name], "source": source} for name, source in own.sources.items()],
        "files": []
        if result.baseline is None
        else [
            {"path": path, "openings": times, "bytes": size, "native": native}
            for path, times, size, native in files_of(result.baseline)
        ],
        "settings": _summary(result),
        "runs": [
            {
                "number": record.number,
                "phase": record.phase,
                "hints": record.setting.as_dict(),
                "status": record.status,
                "reason": record.reason,
                "exit_status": record.exit_status,
                "elapsed_s": record.elapsed_s,
                "cost": record.cost,
            }
            for record in result.records
        ],
    }


def trial_line(point: dict[str, str | int], setting: Setting) -> str:
    """Return a starting point for `--dry-run`."""
    return f"  {point['way']}: {setting}"


def space_lines(rows: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> list[str]:
    """Return (hint, values, ways) as lines."""
    found = []
    for hint, values, ways in rows:
        found.append(f"  {hint}: {' '.join(value or '(not set)' for value in values)}   [{', '.join(ways)}]")
    return found
