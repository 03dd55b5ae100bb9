"""Factors by which mode "tuned" multiplies a workload."""

from __future__ import annotations

from dataclasses import dataclass, fields

_MOST = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The factors; 1 changes nothing.

    Attributes
    ----------
    files : OS, number of files of each class.
    opens : OT, open sessions of each file.
    sizes : SIZE, OFF and with them FS.
    slack : ST.

    Raises
    ------
    ValueError
        A factor is negative or too large, or leaves no file or no session.
    """

    files: float = 1.0
    opens: float = 1.0
    sizes: float = 1.0
    slack: float = 1.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least = "more than 0" if item.name in ("files", "opens") else "0 or more"
            if not 0 <= value <= _MOST or (value == 0 and least != "0 or more"):
                raise ValueError(f"scale of {item.name}: {value:g} is not {least}, and at most {_MOST:,.0f}")
