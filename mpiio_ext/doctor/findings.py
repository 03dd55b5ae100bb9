"""One finding of ``mpiio-ext doctor``: the question, the answer, the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any


class State(str, Enum):
    """How a finding stands; the values are those of ``--json``."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    key : stable name of the check, such as memory.shm; docs/reference/checks.md lists them.
    state : whether it is as it should be, works less well, or does not work.
    text : what was found, one line.
    advice : what to do, or what follows from it; "" if nothing is to be done.
    facts : the same for programs; names are stable, sizes in bytes end in ``_bytes``.
    """

    key: str
    state: State
    text: str
    advice: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return asdict(self) | {"state": self.state.value}


def good(key: str, text: str, advice: str = "", /, **facts: Any) -> Finding:
    """Return a finding that is as it should be."""
    return Finding(key=key, state=State.OK, text=text, advice=advice, facts=facts)


def warn(key: str, text: str, advice: str, /, **facts: Any) -> Finding:
    """Return a finding by which something works less well, or not for everything."""
    return Finding(key=key, state=State.WARNING, text=text, advice=advice, facts=facts)


def bad(key: str, text: str, advice: str, /, **facts: Any) -> Finding:
    """Return a finding by which the library, or the program, does not work."""
    return Finding(key=key, state=State.ERROR, text=text, advice=advice, facts=facts)


def worst(findings: Iterable[Finding]) -> State:
    """Return the worst state of all; `State.OK` of none."""
    order = list(State)
    return max((item.state for item in findings), key=order.index, default=State.OK)
