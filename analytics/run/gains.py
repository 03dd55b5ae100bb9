"""What a next step would gain: at most the time that its finding is about, and less if counts of this run show it.

Problem. A number without a basis is worse than none, and "not known" is no help to choose.

Algorithm. A step saves at most the time that its finding explains, as a share of the run. For two kinds of findings the
text also names a longer time. For waits, it is the time of the rank that waits most. For requests, it is the time of
the MPI-IO calls that make them, in which the library works, too. For small accesses that would be collected, the run
knows their number and their bytes. It does not know how long a large request takes, so the gain is a range.

Guarantees. Every gain has its basis beside it. None is above the bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mpiio_ext.analytics.diagnosis.causes import named
from mpiio_ext.analytics.diagnosis.model import IN_MPIIO
from mpiio_ext.analytics.run.opening import Spent, concrete, leading, leading_others, share_text
from mpiio_ext.common.units import seconds_text, size_text

#: Bytes of the requests that small accesses are collected to, and how long one takes (s): as of delegates, in
#: csrc/core/stats/mpiox_stats_paying.c.
_LARGE, _LARGE_S = 1 << 20, (0.001, 0.01)
#: Accesses that are collected: at most so long, and at least so many.
_SMALL, _FEWEST = 1 << 14, 1000
#: Steps by which they are; those words begin their texts.
_COLLECTS = ("Use collective calls",)
#: A step that makes a request of each piece: it costs where these are many.
_PIECES = "ds_write=disable"


def longest(finding: Mapping[str, Any], spent: Spent) -> tuple[float, str]:
    """Return the time (s) that any step of a finding can take away, and what that time is, in words."""
    cause, time_s = named(finding["cause"]), float(finding["time"]["value"])
    of = cause.time_is
    inside = sum(one["value"] for one in finding["evidence"] if one["meaning"] == IN_MPIIO)
    if cause.waits and spent.waiting_s > time_s:
        time_s, of = spent.waiting_s, "the time of the rank that waits most"
    if inside > time_s:
        time_s, of = inside, "the time in the MPI-IO calls that make these requests"
    return min(time_s, spent.run_s if cause.outside else spent.io_s), of


def bound(finding: Mapping[str, Any], spent: Spent) -> str:
    """Return the gain of a step of a finding of which no more is known."""
    time_s, of = longest(finding, spent)
    return f"at most {share_text(time_s, spent.run_s)} of the run ({seconds_text(time_s)}, {of})"


def _collected_s(finding: Mapping[str, Any], direction: str, spent: Spent, processes: int) -> tuple[float, float, str]:
    """Return the least and the most time (s) after small accesses are collected, and the counts; "": they are not."""
    names = set(finding["files"])
    rows = [row for row in spent.files if row["file"] in names]
    verb = "written" if direction == "write" else "read"
    size, count = (sum(row[name] or 0 for row in rows) for name in (f"{verb}_bytes", f"{direction}s"))
    if count < _FEWEST or not 0 < size <= _SMALL * count:
        return 0.0, 0.0, ""
    requests = max(size / _LARGE, processes)
    least, most = (requests / processes * each for each in _LARGE_S)
    return least, most, f"{count:,.0f} requests of {size_text(size / count)} become {requests:,.0f}"


def gain(text: str, finding: Mapping[str, Any], direction: str, spent: Spent, processes: int) -> str:
    """Return the gain of a step, with its basis.

    Parameters
    ----------
    text : of the advice.
    finding, direction : which it is of.
    """
    most_s = longest(finding, spent)[0]
    if finding["cause"] == "small_requests" and text.startswith(_COLLECTS):
        least, most, counts = _collected_s(finding, direction, spent, processes)
        high, low = (share_text(max(most_s - each, 0.0), spent.run_s) for each in (least, most))
        if counts and most_s > least:
            range_ = f"up to {high}" if most_s <= most or low == high else f"{low} to {high}"
            return f"{range_} of the run, if {counts}, and the file system moves 1 MiB in 1 to 10 ms"
    if _PIECES in text:
        return f"{bound(finding, spent)}. The hint makes a request of each piece: many pieces cost time"
    return bound(finding, spent)


def _of(measured: Mapping[str, str], finding: Mapping[str, Any], spent: Spent) -> str:
    """Return the gain of the step that the library has measured, as a share of the run, too."""
    up_to = share_text(longest(finding, spent)[0] * (1 - 1 / float(measured["most"])), spent.run_s)
    return f"up to {up_to} of the run: the accesses become {measured['gain']}"


def found(diagnosed: Sequence[Mapping[str, Any]], title: str) -> tuple[Mapping[str, Any], str]:
    """Return the finding of a title and its direction; if both directions have it, the one that takes longer."""
    of = [
        (one, diagnosis["direction"])
        for diagnosis in diagnosed
        for one in diagnosis["findings"]
        if one["title"] == title
    ]
    return max(of, key=lambda pair: float(pair[0]["time"]["value"]))


def with_gains(
    advice: Sequence[str],
    finding: Mapping[str, Any],
    direction: str,
    spent: Spent,
    processes: int,
    measured: Mapping[str, str] | None,
) -> list[str]:
    """Return the next steps of a finding, each with its gain, steps with a measured gain first.

    Parameters
    ----------
    advice : texts of its steps, with their commands.
    finding, direction : it as the diagnosis has it, and of which.
    measured : the step of which the library has measured the gain (`opening.paying`); None: there is none.
    """
    first, rest, tune = list[str](), list[str](), list[str]()
    for text in advice:
        if "mpiio-ext tune" in text:
            tune.append(text)
        elif measured is not None and "delegates" in text:
            of = _of(measured, finding, spent)
            first.append(f"{measured['text']}. Command: `{measured['command']}` Gain: {of}.")
        else:
            rest.append(f"{text} Gain: {gain(text, finding, direction, spent, processes)}.")
    return [*first, *rest, *tune]


def help_of(
    diagnosed: Sequence[Mapping[str, Any]],
    spent: Spent,
    measured: Mapping[str, str] | None,
    program: str,
    processes: int,
) -> dict[str, str] | None:
    """Return the best remedy: text, command, gain; None if the diagnosis found nothing."""
    first = leading(diagnosed, spent)
    if first is None or leading_others(diagnosed, spent) is not None:
        return None
    finding, direction = first
    if measured is not None and finding["cause"] == "small_requests":
        return {**measured, "gain": _of(measured, finding, spent)}
    advice = next(iter(finding["advice"]), None)
    if advice is None:
        return None
    command = next(
        (each["command"] for each in finding["advice"] if each["command"] and "tune" not in each["command"]), ""
    )
    text = next((each["text"] for each in finding["advice"] if each["command"] == command), advice["text"])
    printed_gain = gain(f"{text} {command}", finding, direction, spent, processes)
    tune = concrete("mpiio-ext tune -- PROGRAM", program, processes)
    return {
        "text": text.rstrip("."),
        "command": command,
        "gain": f"{printed_gain}; `{tune}` measures the gain" if command else printed_gain,
    }
