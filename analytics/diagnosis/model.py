"""Parts of a diagnosis: evidence, advice, findings; as text for people and as JSON for programs."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any, Literal

from mpiio_ext.analytics.diagnosis.words import as_sentences, rounded, worded
from mpiio_ext.common.guide import command_of
from mpiio_ext.common.units import size_text

Confidence = Literal["high", "medium", "low"]
_CONFIDENCES = ("high", "medium", "low")
_WIDTH = 100
#: What is said where no finding has high confidence.
NOTHING = "No cause stands out."
#: Evidence of a longer time than that of the requests that a finding explains: that of the calls that make them.
IN_MPIIO = "longest time of a rank in MPI-IO calls"
#: What calls of two kinds take, of which two ranks may have most; no share of it is printed.
CALLED = "time of a rank in reads, writes and metadata calls, at most"
#: Evidence of a size that most requests have, where the mean is no such size, and of the most that they have.
COMMON_SIZE, MOST_SIZE = "common size of requests", "size of most requests, at most"
#: What is said beside a time, where a log has lost records.
LOST = "the log has lost records; the time of the lost calls is not known"
#: What is said behind too little time, where it is that of a log.
UNLESS = (
    ". Darshan does not log locks, removals, failed opens or flushes of mapped memory, nor stat calls with glibc 2.33"
    " or later. `mpiio-ext run --report` measures all of these calls"
)


@dataclasses.dataclass(frozen=True)
class Evidence:
    """A number that speaks for a finding.

    Attributes
    ----------
    meaning : str
        What the number is, for people.
    unit : str
        ``s``, ``B``, ``B/s``, ``share`` (0 to 1), ``count``, ``ratio``.
    exact : bool
        Whether bytes are the size of something that was set, as blocks and requests are: powers of two are said so.
    """

    meaning: str
    value: float
    unit: str
    exact: bool = False

    def text(self) -> str:
        """Return one line."""
        return f"{self.meaning}: {size_text(self.value) if self.exact else worded(self.value, self.unit)}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"meaning": self.meaning, "value": self.value, "unit": self.unit}


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to do: a sentence, a command or hint where there is one, and where to read about it."""

    text: str
    command: str = ""
    see: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim of a rule about a cause, before it is weighed against the I/O of the job.

    Attributes
    ----------
    title, what
        As of a `Finding`; "": the phrase of the cause.
    time : float, optional
        As of a `Finding`; None: that of the cause's calls on the chosen files.
    confidence, reason, evidence, advice, by_times
        As of a `Finding`.
    at_most : bool
        Whether the time is that of the files that the finding is about, and not what was measured or would be saved.
    costs : bool
        Whether the log shows that it costs time, however fast the job is; what was measured does so in any case.
    """

    title: str = ""
    what: str = ""
    time: float | None = None
    confidence: Confidence
    reason: str
    evidence: Sequence[Evidence]
    advice: Sequence[Advice] = ()
    at_most: bool = False
    costs: bool = False
    by_times: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Finding:
    """A probable cause.

    Attributes
    ----------
    cause : str
        Its name for programs.
    title : str
        One sentence.
    what : str
        What the time was spent on, as a noun; the first file by a short name.
    share : float
        Share of `of` that it explains (0 to 1).
    time : float
        The same in seconds.
    confidence : {"high", "medium", "low"}
    reason : str
        Why this confidence.
    evidence : sequence of Evidence
    files, osts : sequence of str
        Files and OSTs of the finding, most critical first; evidence states that a list was shortened.
    advice : sequence of Advice
    at_most : bool
        Whether `share` is the time of the files that it is about: a log cannot show how much of that it costs.
    costs : bool
        Whether the log shows that it costs time: a bandwidth that is not low does not speak against it then.
    of : str
        What `share` is a share of.
    of_run : float
        The same time as a share of the run time; NaN where that is unknown.
    lost : bool
        Whether the log has lost records.
    by_times : bool
        Whether times alone show it: where ranks wait for a CPU, calls take as long.
    moves_data : bool
        Whether the finding is about calls that move data: a bandwidth does not describe other calls.
    """

    cause: str
    title: str
    what: str
    share: float
    time: float
    confidence: Confidence
    reason: str
    evidence: Sequence[Evidence] = ()
    files: Sequence[str] = ()
    osts: Sequence[str] = ()
    advice: Sequence[Advice] = ()
    at_most: bool = False
    costs: bool = True
    of: str = "critical time"
    of_run: float = float("nan")
    lost: bool = False
    by_times: bool = False
    moves_data: bool = True

    @property
    def explained(self) -> str:
        """Return how much of the time it explains, in words."""
        shares = [(self.share, self.of)] if self.of != CALLED else []
        shares += [(self.of_run, "run time")] if self.of_run >= 0 else []
        parts = [
            f"{percent} of the {of}"
            for value, of in shares
            if (percent := worded(value, "share")) != "100 %" or not self.at_most
        ]  # at most all says nothing
        bound = "at most " if self.at_most else ""
        text = f"{bound}{worded(self.time, 's')}" + (f" ({'; '.join(parts)})" if parts else "")
        return f"{text}; {LOST}" if self.lost else text

    @property
    def explains(self) -> str:
        """Return that it explains so much, or may do so."""
        return f"{'explains' if self.confidence == 'high' else 'may explain'} {self.explained}"

    @property
    def rank(self) -> tuple[int, float]:
        """Return what findings are sorted by: confidence first, then the time that they explain, to two digits.

        Of two that explain the same time the order of the rules decides, not a microsecond.
        """
        return _CONFIDENCES.index(self.confidence), -rounded(self.time, 2)

    def lines(self, number: int) -> list[str]:
        """Return the finding as lines of text."""
        out = [*wrapped(f"{number}. {self.title}", "   ")]
        out += wrapped(f"   {self.explains}; confidence {self.confidence}", "   ")
        out += wrapped(f"   {as_sentences(self.reason)}", "   ")
        for each in self.evidence:
            out += wrapped(f"   - {each.text()}", "     ")
        for label, names in (("files", self.files), ("OSTs", self.osts)):
            if names:
                out += wrapped(f"   - {label}: {', '.join(names)}", "     ")
        for advice in self.advice:
            out += wrapped(f"   > {advice.text}{f' ({command_of(advice.see)})' if advice.see else ''}", "     ")
            if advice.command:
                out.append(f"       {advice.command}")
        return out


@dataclasses.dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The diagnosis of a job's I/O in one direction.

    Attributes
    ----------
    job : str
        Name for people: program and job, or only that it is a job.
    direction : str
        ``read`` or ``write``.
    facts : sequence of Evidence
        Bytes, bandwidth (Equation 1), critical time, files.
    critical_files : sequence of (str, Evidence)
        The longest critical files and their exclusive times.
    findings : sequence of Finding
        Surest first; of the same confidence, by the time that they explain, longest first.
    notes : sequence of str
        What was seen and is no cause.
    unknown : sequence of str
        What could not be examined, and why.
    not_low : str
        If the bandwidth is not low: this fact, with both numbers, as a clause. Nothing is called a cause then that
        cannot be shown to cost time.
    trivial : str
        Where the I/O is too little of the run time to be worth tuning: that, as a clause. There are no findings then.
    beyond : sequence of str
        Means over the critical files that are beyond their limits, in words, whether or not a finding is about them.
    unseen : str
        Where files are mapped into memory: that, as a sentence.
    """

    job: str
    direction: str
    facts: Sequence[Evidence] = ()
    critical_files: Sequence[tuple[str, Evidence]] = ()
    findings: Sequence[Finding] = ()
    notes: Sequence[str] = ()
    unknown: Sequence[str] = ()
    not_low: str = ""
    trivial: str = ""
    beyond: Sequence[str] = ()
    unseen: str = ""

    @property
    def conclusion(self) -> str:
        """Return the first sentence that a reader needs, with what the log does not see."""
        return f"{self._first} {self.unseen}" if self.unseen else self._first

    @property
    def _first(self) -> str:
        if self.findings:
            first = self.findings[0]
            rest = f" But {self.not_low}." if self.not_low and first.moves_data else ""
            if first.confidence == "high":
                return f"{first.title} The cause {first.explains}.{rest}"
            return f"{NOTHING} Possible: {first.title} The cause {first.explains}.{rest}"
        if not self.critical_files:
            return f"The log has no times of {self.direction}s, so there are no slow {self.direction}s to explain."
        if self.trivial:
            return f"No cause is reported, since {self.trivial}."
        if self.not_low:
            return f"No cause was found, since {self.not_low}."
        if self.beyond:
            text = (
                "No cause was found. Some means over the critical files are beyond their limits, but do not explain the"
                f" time of these files: {'; '.join(self.beyond)}."
            )
        else:
            text = "No cause was found: all numbers that this analysis checks are within their limits."
        return f'{text} The list "Unknown" below names numbers that the log lacks.' if self.unknown else text

    def text(self) -> str:
        """Return the diagnosis for people."""
        out = [f"{self.job}: {self.direction}s", ""]
        out += wrapped(self.conclusion, "")
        out += ["", *(f"  {fact.text()}" for fact in self.facts)]
        if self.critical_files:
            out += ["", "Critical files, with the time that each takes, and its share of the time of all:"]
            out += [f"  {name}: {worded(time.value, 's')} ({time.meaning})" for name, time in self.critical_files]
        for number, finding in enumerate(self.findings, 1):
            out += ["", *finding.lines(number)]
        for title, items in (("Also seen:", self.notes), ("Unknown:", self.unknown)):
            if items:
                out += ["", title]
                for item in items:
                    out += wrapped(f"  - {item}", "    ")
        return "\n".join(out) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values; every number stands beside its unit."""
        return {
            "job": self.job,
            "direction": self.direction,
            "conclusion": self.conclusion,
            "low_bandwidth": not self.not_low,
            "worth_tuning": bool(self.critical_files or self.findings) and not self.trivial,
            "facts": [fact.to_dict() for fact in self.facts],
            "critical_files": [
                {"file": name, "exclusive_time": {"value": time.value, "unit": "s"}, "share": time.meaning}
                for name, time in self.critical_files
            ],
            "findings": [_finding(finding) for finding in self.findings],
            "beyond_limits": list(self.beyond),
            "notes": list(self.notes),
            "unknown": list(self.unknown),
        }


def _finding(finding: Finding) -> dict[str, Any]:
    out = dataclasses.asdict(finding)
    del out["moves_data"]
    out["share"] = {"value": finding.share, "unit": "share"}
    out["time"] = {"value": finding.time, "unit": "s"}
    out["of_run"] = {"value": finding.of_run if finding.of_run >= 0 else None, "unit": "share"}
    out |= {name: list(out[name]) for name in ("files", "osts", "advice")}
    out["evidence"] = [one.to_dict() for one in finding.evidence]
    return out


def wrapped(text: str, indent: str = "") -> list[str]:
    """Return a text as lines; all but the first are indented."""
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    ) or [""]
