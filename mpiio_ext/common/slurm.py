"""Output of Slurm's ``squeue`` and ``sacct``, as text or JSON: one parser for all its readers.

Problem.    Sites print different columns, in any order, padded or not; newer versions wrap numbers in objects, states
            in lists; steps, waiting tasks of arrays and parts of heterogeneous jobs stand among the jobs.
Forms.      Text whose first line names the columns, separated by ``|`` (``squeue --format='%A|%T|%D'``, ``squeue
            --Format='JobID:20|,...'``, ``sacct --parsable2``, ``--parsable``); ``squeue --json`` and ``sacct --json``:
            one object with ``jobs``; TOKIO's JSON: ``{"4478544.0": {"jobidraw": …, "nodelist": […]}}``.
Guarantees. A document without columns or jobs is refused as a whole: an error message is never taken for an empty
            list. A line that cannot be parsed is left out and named. Missing facts are None and not 0. A component of
            a heterogeneous job has the ID of the first one, as SLURM_JOB_ID of its ranks. The name of a job may have
            the separator in it. If the columns in front of the name are padded, as those of ``squeue
            --Format='JobID:20|,...'``, a line must have its separators below those of the first line: a name that is
            cut to fewer characters than these columns have, and has a line break in it, forges no line.
Source.     squeue(1), sacct(1); counts are printed in powers of 1024, "1.50K" for 1536 (Slurm's convert_num_unit).
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mpiio_ext.errors import MpiioExtError

#: Receives a job and the contents of its line: by column in lower case, or an entry of JSON. It may raise SlurmError.
Add = Callable[["JobId", Mapping[str, object]], None]

#: What a state means for the job's processes.
Phase = Literal["waiting", "running", "paused", "ending", "ended", "unlisted", "unknown"]

_PHASES: dict[Phase, str] = {
    "waiting": "PENDING PD REQUEUED RQ REQUEUE_FED RF REQUEUE_HOLD RH RESV_DEL_HOLD RD SPECIAL_EXIT SE",
    "running": "RUNNING R CONFIGURING CF RESIZING RS SIGNALING SI POWER_UP_NODE",
    "paused": "SUSPENDED S STOPPED ST",
    "ending": "COMPLETING CG STAGE_OUT SO",
    "ended": "BOOT_FAIL BF CANCELLED CA COMPLETED CD DEADLINE DL FAILED F NODE_FAIL NF OUT_OF_MEMORY OOM PREEMPTED PR "
    "REVOKED RV TIMEOUT TO LAUNCH_FAILED RECONFIG_FAIL",
    "unlisted": "UNLISTED",  # not Slurm's: lists that should name the job do not; the arbiter writes it
}
_PHASE_OF: dict[str, Phase] = {word: phase for phase, words in _PHASES.items() for word in words.split()}
#: Columns of the only text that a user chooses.
_NAMES = ("jobname", "name")
_JOB = re.compile(r"(?P<job>\d{1,18})(?:_(?P<task>\d+|\[[^\]]*\]))?(?:\+(?P<part>\d+))?(?:\.(?P<step>.+))?")
_COUNT = re.compile(r"(\d{1,12}(?:\.\d+)?)(?:-\d+)?([KM]?)", re.IGNORECASE)  # "1-4": nodes of a job that waits
_NOTHING = frozenset({"", "unknown", "none", "n/a", "invalid", "none assigned", "(null)", "partition_limit"})
#: Names that one list of nodes may have; a larger one is a mistake.
_MOST_NODES = 1 << 20
_NODES = re.compile(r"([^\[\],]*)(?:\[([^\[\]]*)\])?")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")


class SlurmError(MpiioExtError, ValueError):
    """A text is no list of jobs, or has a line of unknown form; the message names the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobId:
    """The ID of a job, as in SLURM_JOB_ID, and the part of the job that a line is about.

    Attributes
    ----------
    number : of the job; below 10^18
    part : of a heterogeneous job (``100+1``); None or 0 = the first
    step : of the job (``100.batch``); None = the job itself
    """

    number: int
    part: int | None = None
    step: str | None = None


# ---- values ----------------------------------------------------------------------------------------------------------


def is_nothing(value: object) -> bool:
    """Return whether a value of a line is empty, as "Unknown" and "None assigned" are."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def plain(value: object) -> object:
    """Return a value of JSON, which newer versions wrap: ``{"set": true, "infinite": false, "number": 5}``."""
    if isinstance(value, Mapping) and "number" in value:
        return value["number"] if value.get("set", True) and not value.get("infinite") else None
    return value


def count(value: object, most: int = 2**31 - 1) -> int | None:
    """Return a count, wrapped or not; None = unknown.

    Raises
    ------
    SlurmError
        The value is no number, or is above `most`.
    """
    value = plain(value)
    if is_nothing(value):
        return None
    text = str(value).strip()
    match = _COUNT.fullmatch(text)
    if match is None:
        raise SlurmError(f"{text[:40]!r} is no number")
    number = int(float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2].upper()])
    if number > most:
        raise SlurmError(f"{text[:40]!r} is out of range")
    return number


def job_id(text: str) -> JobId | None:
    """Return the parts of an ID; None: tasks of an array that wait (``7_[1-9]``).

    Raises
    ------
    SlurmError
        The text is no ID, or a task of an array, which has an ID of its own.
    """
    match = _JOB.fullmatch(text.strip())
    if match is None:
        raise SlurmError(f"{text[:40]!r} is no job ID")
    if match["task"] is not None:
        if match["task"].startswith("["):
            return None
        raise SlurmError(f"{text[:40]!r} is a task of an array, whose own ID is in the column JobIDRaw (squeue: %A)")
    return JobId(
        number=int(match["job"]), part=None if match["part"] is None else int(match["part"]), step=match["step"]
    )


def _whole_job(job: JobId, values: Mapping[str, object]) -> JobId:
    """Return the ID and the part of a heterogeneous job of which a line names a component, or the job itself.

    squeue has the ID of the first component in ``HetJobID``, sacct's text in ``JobID`` (``100+1``) beside ``JobIDRaw``.
    """
    shown, het = str(values.get("jobid", "")), values.get("het")
    if "+" in shown:
        return job_id(shown) or job
    fields = (het.get("job_id"), het.get("job_offset")) if isinstance(het, Mapping) else ()
    first, part = map(count, fields or (values.get("het_job_id"), values.get("het_job_offset")))
    return JobId(number=first, part=part, step=job.step) if first else job


def phase(state: str) -> Phase:
    """Return the meaning of a word of Slurm for a state; "CANCELLED by 1000" is one, too."""
    words = state.upper().rstrip("+").split()
    return _PHASE_OF.get(words[0], "unknown") if words else "unknown"


def states(item: Mapping[str, object]) -> list[str]:
    """Return the words for the state of an entry of JSON: the state, and flags beside it (COMPLETED, COMPLETING)."""
    state = item.get("job_state", item.get("state"))
    state = state.get("current") if isinstance(state, Mapping) else state
    return [str(word) for word in (state if isinstance(state, list) else [state]) if word]


def tasks(item: Mapping[str, object]) -> int | None:
    """Return the tasks of an entry of JSON, or of its largest step; None = unknown."""
    if item.get("tasks") is not None:
        return count(item["tasks"])
    steps = item.get("steps") or []
    if not isinstance(steps, list):
        raise SlurmError("steps is no list")
    counts = [
        count(step["tasks"].get("count"))
        for step in steps
        if isinstance(step, Mapping) and isinstance(step.get("tasks"), Mapping)
    ]
    return max((number for number in counts if number is not None), default=None)


# ---- forms -----------------------------------------------------------------------------------------------------------


def split_line(line: str, names: Sequence[str]) -> list[str]:
    """Return the values of a line, one for each column; the name of a job may have the separator in it.

    Parameters
    ----------
    names : of the columns, in lower case; "" at their end: each line ends with a separator (sacct --parsable)

    Raises
    ------
    SlurmError
        The line has more or fewer columns.
    """
    values, ends = line.split("|"), not names[-1]
    names = names[: len(names) - ends]
    if (ends or len(values) > len(names)) and not values[-1].strip():
        values.pop()
    free = next((place for place, name in enumerate(names) if name in _NAMES), None)
    more = len(values) - len(names)
    if free is not None and more > 0:
        values[free : free + more + 1] = ["|".join(values[free : free + more + 1])]
    if len(values) != len(names):
        raise SlurmError(f"{len(values)} columns, not {len(names)}")
    return [value.strip() for value in values]


def _separators(head: str, names: Sequence[str]) -> list[int]:
    """Return where lines have the separators behind their first columns, as far as these are padded."""
    free = next((place for place, name in enumerate(names) if name in _NAMES), len(names))
    padded = itertools.takewhile(lambda column: column.endswith("  "), head.split("|")[:free])
    return [end + number for number, end in enumerate(itertools.accumulate(map(len, padded)))]


def read_text(lines: Iterable[str], add: Add, bad: list[str], *, need: Sequence[str] = ()) -> None:
    """Call `add` for each line of a text whose first line names the columns; name those not understood in `bad`.

    Parameters
    ----------
    lines : with or without their ends
    need : columns in lower case of which one must be there, beside JobID or JobIDRaw

    Raises
    ------
    SlurmError
        The first line does not name the columns.
    """
    numbered = ((number, line.rstrip("\r\n")) for number, line in enumerate(lines, 1) if line.strip())
    head = next(numbered, (1, ""))[1]
    names = [name.strip().lower() for name in head.split("|")]
    key = next((name for name in ("jobidraw", "jobid") if name in names), None)
    if key is None or len(names) < 2 or (need and not {*need} & {*names}):
        also = f" and {need[0].upper()}" if need else ""
        raise SlurmError(
            "no list of jobs: a first line with columns is expected, separated by |, with JOBID (or "
            f"JobIDRaw){also} among them, not {head.strip()[:60]!r}"
        )
    places = _separators(head, names)
    for number, line in numbered:
        try:
            if any(line[place : place + 1] != "|" for place in places):
                raise SlurmError("its columns are not below those of the first line: part of a job's name?")
            found = dict(zip(names, split_line(line, names), strict=False))  # "" has no value
            job = job_id(found[key])
            if job is not None:
                add(_whole_job(job, found), found)
        except SlurmError as error:
            bad.append(f"line {number}: {error}")


def read_json(text: str, add: Add, bad: list[str], *, by_id: bool = False) -> None:
    """Call `add` for each entry of JSON; name those not understood in `bad`.

    Parameters
    ----------
    by_id : TOKIO's form is one, too; its values come by column in lower case, as those of a text

    Raises
    ------
    SlurmError
        The text is not JSON, or has no jobs, or only errors.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SlurmError(f"no list of jobs: is not JSON: {error}") from error
    items = document.get("jobs") if isinstance(document, dict) else None
    if isinstance(items, list):
        entries = [(str(item.get("job_id", "")) if isinstance(item, dict) else "?", item) for item in items]
        if document.get("errors") and not items:
            raise SlurmError(f"Slurm answers: {json.dumps(document['errors'])[:200]}")
    elif isinstance(document, dict) and by_id:
        entries = [
            (str(item.get("jobidraw", name)) if isinstance(item, dict) else name, item and _by_column(item))
            for name, item in document.items()
        ]
    else:
        raise SlurmError("no list of jobs: JSON without a list `jobs`")
    for name, item in entries:
        try:
            if not isinstance(item, dict):
                raise SlurmError("no object")
            job = job_id(name)
            if job is not None:
                add(_whole_job(job, item), item)
        except (SlurmError, AttributeError, TypeError) as error:
            bad.append(f"job {name[:40]}: {error}")


def _by_column(item: object) -> object:
    if not isinstance(item, dict):
        return item
    return {str(name).lower(): value if isinstance(value, (str, list)) else str(value) for name, value in item.items()}


# ---- lists of nodes --------------------------------------------------------------------------------------------------


def _range(text: str) -> tuple[int, int, int]:
    """Return the ends of ``0001-0003``, and how many digits they have."""
    match = _RANGE.fullmatch(text.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if match is None or not 0 <= last - first < _MOST_NODES:
        raise SlurmError(f"{text[:40]!r} is no range of nodes")
    return first, last, len(match[1])


def _parts(text: str) -> list[list[tuple[str, list[tuple[int, int, int]] | None]]]:
    """Return the names of a list, each as texts with the ranges that follow them."""
    if re.fullmatch(r"(?:[^\[\]]|\[[^\[\]]*\])*", text) is None:
        raise SlurmError(f"brackets do not match in the list of nodes {text[:40]!r}")
    parts = [part.strip() for part in re.findall(r"(?:[^\[\],]|\[[^\[\]]*\])+", text)]
    found = [
        [
            (match[1], None if match[2] is None else [_range(item) for item in match[2].split(",")])
            for match in _NODES.finditer(part)
            if match[0]
        ]
        for part in parts
        if part
    ]
    count = sum(
        math.prod(sum(last - first + 1 for first, last, _ in ranges) for _, ranges in part if ranges is not None)
        for part in found
    )
    if count > _MOST_NODES:
        raise SlurmError(f"more than {_MOST_NODES} names in the list of nodes {text[:40]!r}")
    return found


def expand_nodes(text: str) -> list[str]:
    """Return the names of a compressed list of nodes, ``nid0[0001-0003,5],login1``, in its order.

    Raises
    ------
    SlurmError
        The brackets do not match, a range is none, or there are more than 2^20 names.
    """
    names = []
    for part in _parts(text):
        pieces = []
        for word, ranges in part:
            pieces.append([word])
            if ranges is not None:
                pieces.append(
                    [str(number).zfill(digits) for first, last, digits in ranges for number in range(first, last + 1)]
                )
        names += ["".join(words) for words in itertools.product(*pieces)]
    return names
