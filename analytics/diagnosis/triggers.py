"""The page of triggers: of each cause its mechanism, condition, sentence, and each advice with its own condition.

Problem. A reader wants to know the number from which on an observation is a cause, and the reason for a piece of
advice.
Algorithm. The records of causes contain the words and the advice (:data:`.causes.CAUSES`); the numbers are fields of
:class:`.limits.Limits`, each with its name. Causes that have one condition have one section.
Guarantees. Tests compare the page with the records, and findings on real logs with both.
"""

from __future__ import annotations

import itertools

from mpiio_ext.analytics.diagnosis import causes
from mpiio_ext.analytics.diagnosis.limits import Limits
from mpiio_ext.analytics.diagnosis.words import worded
from mpiio_ext.common.printing import echo
from mpiio_ext.common.units import size_text

_BANDWIDTHS, _TIMES = ("fast", "waiting", "slow_rank"), ("least", "slow_request", "slow_sync", "slow_opening")


def _named(limits: Limits) -> dict[str, str]:
    """Return each threshold in words, with its name."""

    def words(name: str, value: float) -> str:
        if name.endswith("_bytes"):
            return size_text(value, exact=True)
        if name in _BANDWIDTHS:
            return worded(value, "B/s")
        if name in _TIMES:
            return worded(value, "s")
        return worded(value, "share") if value < 1 and name not in ("synced", "flushed") else worded(value, "count")

    return {name: f"{words(name, value)} (`{name}`)" for name, value in vars(limits).items()}


def markdown() -> str:
    """Return the table as sections of a page."""
    limits, lines = _named(Limits()), []
    for _, alike in itertools.groupby(causes.CAUSES, lambda one: one.condition):
        one, *others = alike
        names = ", ".join(f"`{each.name}`" for each in (one, *others))
        sure = one.sure.format(**limits) or "never"
        lines += [
            f"## {names}",
            "",
            one.mechanism,
            "",
            f"- **Reported if:** {one.condition.format(**limits)}",
            f"- **High confidence:** {sure}.",
            f"- **Sentence:** {'; '.join(f'*… {text.strip()} …*' for text in one.sentences)}",
            "",
        ]
        if one.advice:
            lines += ["| advice | when |", "|---|---|"]
            for offer in one.advice:
                made = offer.make("write")
                lines.append(f"| {made.text} | {offer.when.format(**limits)} |")
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    echo(markdown(), nl=False)
