"""The findings of a diagnosis as a page and a terminal show them: weight, title, evidence, advice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from mpiio_ext.analytics.diagnosis import Diagnosis, Finding, diagnose
from mpiio_ext.analytics.diagnosis.activity import Activity
from mpiio_ext.analytics.diagnosis.causes import named
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.words import as_sentences, worded
from mpiio_ext.analytics.report import howto
from mpiio_ext.common import page

if TYPE_CHECKING:
    from mpiio_ext.analytics.tools.health import DiskStates

_DIRECTIONS: tuple[Literal["read", "write"], ...] = ("read", "write")
#: Share of the critical time from which a finding is shown as a warning.
_WARNING = 0.2
#: Share of the time of a finding that times alone show, from which on a wait for a CPU explains it.
_BY_CPU = 0.5


Headline = Callable[["Mapping[str, pa.Table]", "Known", list[dict[str, Any]]], str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Known:
    """The facts of a job beside its rows, and the form of its report.

    Attributes
    ----------
    anonymous : names were taken out of the tables; the diagnosis shall name neither OSTs nor exact numbers.
    osts : so many OSTs are known to exist.
    activity : facts of its log's DXT and HEATMAP.
    disks : which disks were down or not ready when it began.
    limits : from which values on something is a cause.
    unread : logs that were named and cannot be read; whose they are is not known.
    waited_s : seconds in which every rank had no CPU: a finding of times alone has low confidence then.
    one_host : files lie behind the memory of one host: where the bandwidth is not low, that one rank does it all is no
        finding.
    without_mpi : no process of the job has initialised MPI.
    headline : makes the first sentence about one log: of its tables, of what is known, and of its diagnoses.
    """

    anonymous: bool = False
    osts: int | None = None
    activity: Activity | None = None
    disks: DiskStates | None = None
    limits: Limits = dataclasses.field(default_factory=Limits)
    unread: Sequence[str] = ()
    waited_s: float = 0.0
    one_host: bool = False
    without_mpi: bool = False
    headline: Headline | None = None


def diagnoses(
    tables: Mapping[str, pa.Table],
    known: Known | None = None,
    own_share: Mapping[str, float | None] | None = None,
    *,
    concrete: Callable[[str], str | None] | None = None,
) -> list[dict[str, Any]]:
    """Return the diagnosis of a job in each direction that has I/O time, the most important first.

    That is the direction whose sure cause takes most time, else the longer one; it is the writes if both directions are
    one read-modify-write. Each is a mapping of ``document`` (JSON values), ``text`` (lines) and ``shown`` (findings for
    a page). `concrete` turns a command of advice into one for the program at hand; if it returns None, the advice is
    left out.
    """
    aside = ("unread", "waited_s", "one_host", "headline")
    how = {name: value for name, value in vars(known or Known()).items() if name not in aside}
    found: list[tuple[Diagnosis, dict[str, Any]]] = []
    for direction in _DIRECTIONS:
        one = diagnose(
            tables["darshan_job"], tables["darshan_file"], direction, own_share=(own_share or {}).get(direction), **how
        )
        one = _judged(one, known or Known(), concrete or str)
        other = bool(one.findings or one.unseen)  # metadata calls of neither direction, or none but of mapped files
        alone = direction == _DIRECTIONS[-1] and not found and other
        if one.critical_files or alone:
            shown = [_shown(finding, direction) for finding in one.findings]
            found.append((one, {"document": one.to_dict(), "text": one.text(), "shown": shown}))
    found.sort(key=lambda each: _weight(each[0]), reverse=True)
    if all(_sure_cause(one) == "read_modify_write" for one, _ in found):
        found.sort(key=lambda each: each[0].direction == "read")
    return [diagnosed for _, diagnosed in found]


def _sure_cause(one: Diagnosis) -> str:
    """Return the first cause of a diagnosis, where it is sure; else ""."""
    return one.findings[0].cause if one.findings and one.findings[0].confidence == "high" else ""


def _weight(one: Diagnosis) -> tuple[bool, float]:
    """Return whether a diagnosis has a sure cause, and the time (s) of that; else that of its longest file."""
    if _sure_cause(one):
        return True, one.findings[0].time
    return False, max((time.value for _, time in one.critical_files), default=0.0)


def _judged(one: Diagnosis, known: Known, concrete: Callable[[str], str | None]) -> Diagnosis:
    """Return a diagnosis with the facts known beside the log, and the commands of the program at hand.

    A finding of times alone is not sure if missing CPUs may explain it as well. Where I/O is as fast as memory, none
    is that one rank works for all.
    """
    kept = []
    for each in one.findings:
        if known.one_host and one.not_low and named(each.cause).by_few:
            continue
        pairs = [(advice, concrete(advice.command)) for advice in each.advice]
        advice = [dataclasses.replace(advice, command=command) for advice, command in pairs if command is not None]
        finding = dataclasses.replace(each, advice=advice)
        if each.by_times and known.waited_s >= _BY_CPU * each.time:
            waited = worded(known.waited_s, "s")
            reason = f"{each.reason}; but each rank waited for a CPU for {waited} or more, which may explain the time"
            finding = dataclasses.replace(finding, confidence="low", reason=reason)
        kept.append(finding)
    return dataclasses.replace(one, findings=sorted(kept, key=lambda each: each.rank))


def findings(diagnosed: list[dict[str, Any]]) -> list[page.Finding]:
    """Return the findings of both directions as parts of a page, surest first, then those that explain most.

    Findings of both directions that differ only in the time that they explain become one.
    """
    found: dict[tuple[str, tuple[str, ...]], page.Finding] = {}
    for _, finding in sorted((shown for one in diagnosed for shown in one["shown"]), key=lambda shown: shown[0]):
        what = finding.title, tuple(finding.advice)
        first = found.setdefault(what, finding)
        if first is not finding:
            found[what] = dataclasses.replace(
                first, evidence=[first.evidence[0], finding.evidence[0], *first.evidence[1:]]
            )
    return list(found.values())


def _shown(finding: Finding, direction: str) -> tuple[tuple[int, float], page.Finding]:
    """Return the sort key of a finding (confidence, then time), and its text on a page."""
    explains = f"For the {direction}s, the cause {finding.explains}"
    evidence = [f"{explains}; confidence {finding.confidence}. {as_sentences(finding.reason)}"]
    evidence += [one.text() for one in finding.evidence]
    for label, names in (("files", finding.files), ("OSTs", finding.osts)):
        if names:
            evidence.append(f"{label}: {', '.join(names)}")
    advice = [f"{one.text}{f' Command: `{one.command}`' if one.command else ''}" for one in finding.advice]
    weight: Literal["warning", "note"] = "warning" if finding.share >= _WARNING else "note"
    links = howto.links(finding.cause, finding.files, [one.see for one in finding.advice])
    shown = page.Finding(weight=weight, title=finding.title, evidence=evidence, advice=advice, links=links)
    return (finding.rank[0], -finding.time), shown
