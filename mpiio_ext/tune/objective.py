"""The number by which a run is judged: its cost, lower is better.

- `elapsed`: wall-clock seconds of the whole command. What its user waits for, defined for every setting, including
  those under which the MPI library does the work. It contains computation and start-up, which dilute the gain and add
  noise.
- `io`: seconds inside data access, from the statistics, averaged over the ranks. Sharper where a program mostly
  computes. The library does not time calls that the MPI library carries out, nor opening, views and closing: with this
  metric native settings are not tried, and a program some of whose calls stay native cannot be judged.
- a regular expression on what the program prints: its own bandwidth (more is better), or seconds (less is better).
- `auto`: `io` where the first run shows that data access is a small part of the elapsed time and that the statistics
  time all of it, otherwise `elapsed`. A gain in a small part of the elapsed time drowns in the noise of the rest.

Ratios of costs mean the same for all three: how many times faster.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Protocol

from mpiio_ext.common.units import digits_text
from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.trial import Outcome

#: Below this share of the elapsed time, gains in data access hardly show in it.
SMALL_SHARE = 0.3


class Unjudged(TuneError):  # noqa: N818  (a verdict, not only an error)
    """A run that succeeded has no cost under this metric; the message names the reason."""


class Metric(Protocol):
    """How a run is judged."""

    @property
    def name(self) -> str:
        """The measured quantity, for people."""

    @property
    def times_native(self) -> bool:
        """Whether runs are judged in which the MPI library does the work."""

    def cost(self, outcome: Outcome) -> float:
        """Return the cost (> 0) of a run that succeeded; raises Unjudged."""

    def shown(self, cost: float) -> str:
        """Return a cost as people read it, with its unit."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Wall-clock seconds of the command."""

    name: str = "elapsed seconds of the whole command"
    times_native: bool = True

    def cost(self, outcome: Outcome) -> float:  # noqa: D102
        return max(outcome.elapsed_s, 1e-9)

    def shown(self, cost: float) -> str:  # noqa: D102
        return f"{cost:.3f} s"


def access_s(outcome: Outcome) -> float:
    """Return the seconds that an average rank spent in data access, over all files, as the library counted them.

    Accesses of one rank alone are also counted where a collective consists of them; that part of their time is inside
    the collectives' time and must not count twice. It is taken to be the share of such accesses. Bytes that were
    written through delegates count until they are in the file.
    """
    seconds = 0.0
    for use in outcome.files:
        alone = use.independent_calls
        inside = min(alone, use.direct_calls * use.ranks)
        own = use.independent_s * ((alone - inside) / alone if alone else 0.0)
        seconds += (use.collective_s + own + use.flush_barrier_s) / use.ranks
    return seconds


def access_share(outcome: Outcome) -> float | None:
    """Return the share of data access in the elapsed time, 0 to about 1; None if the statistics do not time it all.

    They do not time the calls that the MPI library carries out. A program without any data access has no share.
    """
    seconds = access_s(outcome)
    if seconds <= 0 or any(use.native_calls for use in outcome.files):
        return None
    return seconds / max(outcome.elapsed_s, 1e-9)


@dataclass(frozen=True, slots=True)
class InsideAccess:
    """Seconds inside data access by the statistics of the library."""

    name: str = "seconds inside data access, per rank"
    times_native: bool = False

    def cost(self, outcome: Outcome) -> float:  # noqa: D102
        native = sum(use.native_calls for use in outcome.files)
        if native:
            raise Unjudged(f"the MPI library carried out {native} calls, which --metric io cannot time")
        seconds = access_s(outcome)
        if seconds <= 0:
            raise Unjudged("no time was spent in data access through MPI-IO")
        return seconds

    def shown(self, cost: float) -> str:  # noqa: D102
        return f"{cost:.4f} s"


@dataclass(frozen=True, slots=True)
class InOutput:
    """Numbers in the program's standard output.

    Attributes
    ----------
    pattern : its first group, or else the whole match, is the number.
    lower_is_better : the numbers are times rather than bandwidths.
    """

    pattern: re.Pattern[str]
    lower_is_better: bool = False
    times_native: bool = True

    @property
    def name(self) -> str:
        """The measured quantity, for people."""
        better = "lower" if self.lower_is_better else "higher"
        return f"the number that /{self.pattern.pattern}/ finds in the output, {better} is better"

    def cost(self, outcome: Outcome) -> float:
        """Return the geometric mean of all matches, inverted where more is better."""
        logs = []
        for match in self.pattern.finditer(outcome.stdout()):
            text = match[1] if self.pattern.groups else match[0]
            try:
                logs.append(math.log(float(text.replace(",", ""))))
            except (ValueError, AttributeError):
                raise Unjudged(f"/{self.pattern.pattern}/ found {text!r}, which is not a positive number") from None
        if not logs or not all(map(math.isfinite, logs)):
            raise Unjudged(f"the program printed no number that /{self.pattern.pattern}/ finds")
        mean = math.fsum(logs) / len(logs)
        return math.exp(mean if self.lower_is_better else -mean)

    def shown(self, cost: float) -> str:  # noqa: D102
        return digits_text(cost if self.lower_is_better else 1 / cost, 6)


def choose(baseline: Outcome) -> tuple[Metric, str]:
    """Return the metric that suits a program, and why; its first run decides, before any setting has been tried."""
    share = access_share(baseline)
    if share is None:
        return Elapsed(), "the statistics do not time all data access"
    if share >= SMALL_SHARE:
        return Elapsed(), f"data access is {share:.0%} of the elapsed time"
    return InsideAccess(), (
        f"data access is only {share:.0%} of the elapsed time. The library does not time the MPI library's calls: "
        "native settings are left out; --metric elapsed tries them"
    )
