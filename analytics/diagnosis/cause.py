"""A cause of slow I/O is one record: its rule, its words, its advice and further facts.

Problem. A cause has a rule that finds it, sentences, advice, a section of a page, and effects that it explains away. If
one of these parts stands elsewhere, authors forget it.

Algorithm. Each rule is followed by its :class:`Cause` in the same module; :data:`.causes.CAUSES` has all causes in
order. The first sentence, gains, pages, the table of triggers and the list of rules all come from
:data:`.causes.CAUSES`.

Guarantees. Every field without a default has to be given. A finding is made with its record, so none is without one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from mpiio_ext.analytics.diagnosis.case import Case
    from mpiio_ext.analytics.diagnosis.model import Advice, Finding
    from mpiio_ext.analytics.sweep.paths import Direction

#: "data": reads or writes, those of the direction that is examined.
Kind = Literal[
    "data",
    "open",
    "stat",
    "rename",
    "unlink",
    "read",
    "write",
    "sync",
    "lock",
    "mapping",
    "waiting",
    "exchange",
    "other",
]
Layer = Literal["POSIX", "STDIO", "MPI-IO"]
Rule = Callable[["Case"], "Finding | None"]

#: Conditions of advice that several causes have.
ALWAYS = "always"
OF_MPI = "if MPI-IO calls move bytes of the critical files"


class Cells(NamedTuple):
    """Cells of the table of time that a cause explains: of these kinds of calls in these layers."""

    kinds: Sequence[Kind]
    layers: Sequence[Layer] = ("POSIX", "STDIO", "MPI-IO")

    def of_darshan(self, direction: Direction) -> list[str]:
        """Return the kinds of calls that a Darshan log has the time of: of waits in calls, all.

        A log counts the time of syncs as time of writes; recordings count it separately.
        """
        if not set(self.kinds) <= {"data", "read", "write", "sync", "open", "stat"}:
            return []
        known: dict[str, list[str]] = {"sync": ["write", "sync"], "open": ["meta"], "stat": ["meta"]}
        known["data"] = [direction]
        return list(dict.fromkeys(each for one in self.kinds for each in known.get(one, [one])))


class Offer(NamedTuple):
    """An advice, and when a finding has it: `make` returns it for a direction."""

    when: str
    make: Callable[[str], Advice]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cause:
    """What is known of a cause; thresholds (:class:`.limits.Limits`) are in its texts by their names between braces.

    Attributes
    ----------
    name : for programs.
    rule : returns the finding, or None. A rule may find several causes; those have one condition, or one of their own.
    cells : whose time it is.
    effects : names of causes that are only effects of it, if their files are among its own.
    effects_if : it is sure, or found at all; "anywhere": found, whatever files the effects are about.
    phrase : what the time was spent on, as a noun, with `{way}`, `{at}` and `{of}`; "" if each finding has its own.
    section : of docs/howto/what-to-do.md, by its title.
    mechanism : why it is slow.
    condition : when it is reported.
    sure : when its confidence is high; "" for never.
    sentences : parts of the titles of its findings.
    advice : what its findings may advise.
    time_is : what the time is that its findings explain.
    least_sure : share of the time in calls that a finding of high confidence must explain; None: ``Limits.sure``.
    moves_data : its calls move data; else a bandwidth says nothing of them.
    of_opening : a long time in opening and closing may be of it.
    by_few : one rank, or few, do the work of all: where all share one memory, they do it as fast as all of them would.
    not_shown : a sentence on what neither logs nor recordings show of its effect; it follows the first sentence.
    outside : its time passes outside of I/O calls, too: ranks wait for their turn in calls of other kinds.
    waits : its time is that of waits in calls, beside requests, of all ranks on average. It is no effect of a cause
        that explains less than half of it.
    often_free : caches often make it cost nothing, or other programs on the CPUs make it: with low confidence it is not
        the first sentence.
    on_lustre : the page on Lustre is about it.
    """

    name: str
    rule: Rule
    cells: Cells
    effects: Sequence[str] = ()
    effects_if: Literal["sure", "found", "anywhere"] = "sure"
    phrase: str = ""
    section: str
    mechanism: str
    condition: str
    sure: str = ""
    sentences: Sequence[str]
    advice: Sequence[Offer]
    time_is: str = "the time of this finding"
    least_sure: float | None = None
    moves_data: bool = True
    of_opening: bool = False
    by_few: bool = False
    not_shown: str = ""
    outside: bool = False
    waits: bool = False
    often_free: bool = False
    on_lustre: bool = False
