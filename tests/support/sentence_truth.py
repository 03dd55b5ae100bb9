"""The numbers of a run's first sentence beside the truth: which of them the calls refute."""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.traced_truth import Traced

_UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_TIME = r"(\d[\d.,]*) (ns|µs|ms|s)\b"
_WHO = r"(Your program|Rank \d+ of your program|The rank with most time in I/O|An average rank of your program)"
_SPENT = re.compile(
    rf"{_WHO} spent (?:at least |)(?:between (\S+) % and |)(less than |)(\S+) % of its time in I/O", re.IGNORECASE
)
_MEAN = re.compile(r"an average rank: (\S+) %")
_OF_RUN = re.compile(rf"\((?:between (?:{_TIME} and )?)?{_TIME} of {_TIME}")
_PART = re.compile(rf"; (up to |)(?:{_TIME} of|(?:nearly |)all of these) {_TIME} were [^;]*?\b(writes|reads)\b")
#: One number is printed for bounds that differ by a tenth; half a percent is lost by whole ones.
_NARROW, _PERCENT = 1.1, 0.0051


def _seconds(number: str, unit: str) -> float:
    return float(number.replace(",", "")) * _UNITS[unit]


def refuted(sentence: str, traced: Traced) -> Iterator[str]:
    """Yield the numbers of a first sentence that the truth refutes, with the truth."""
    true, run_s = traced.seconds(), traced.run_ns / 1e9
    spent = _SPENT.search(sentence)
    if spent is None:
        yield "the sentence has no share of the time"
        return
    who, low, less, high = spent.groups()
    rank = re.search(r"Rank (\d+)", who, re.IGNORECASE)
    whose = float(true.mean() if "average" in who else true[int(rank[1])] if rank else true.max())
    least, most = float(low or high) / 100, float(high) / 100
    share = whose / run_s
    if less:
        fits = share <= most
    else:
        slack = 1.0 if low else _NARROW
        fits = least / slack - _PERCENT <= share and share <= most * slack + _PERCENT
    if not fits:
        yield f"share: {who} {share:.1%}"
    if rank and whose < true.max() / 1.001:
        yield f"slowest rank: {true.argmax()}"
    if (mean := _MEAN.search(sentence)) and abs(float(mean[1]) / 100 * run_s - true.mean()) > (
        0.1 * true.mean() + _PERCENT * run_s
    ):
        yield f"average rank: {true.mean() / run_s:.1%}"
    if of_run := _OF_RUN.search(sentence):
        if not 0.99 <= _seconds(*of_run.groups()[4:]) / run_s <= 1.01:
            yield f"run: {run_s} s"
        if not low and not 0.9 <= _seconds(*of_run.groups()[2:4]) / whose <= _NARROW + 0.01:
            yield f"time: {who} {whose} s"
    if (part := _PART.search(sentence)) and not part[1]:
        took = _seconds(part[2], part[3]) if part[2] else _seconds(part[4], part[5])
        mine = max(traced.seconds(part[6][:-1], layer=layer).max() for layer in (None, "POSIX"))
        if took > 1.05 * mine:
            yield f"{part[6]}: {mine} s at most"
