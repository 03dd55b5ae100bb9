"""One candidate of tuning: the hints in which a run differs from the program as it is.

The empty setting is the baseline: the program with the library's defaults and the hints that its user has set already.
A setting lacks hints whose value is in force anyway. So two settings that lead to equal runs are equal, and a setting
contains only the changes whose gain is to be proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Hints whose default "0" means that they are not set. They are handed on to the MPI library, and OMPIO of Open MPI 4.1
#: divides by a `cb_nodes` of 0: their default is had by leaving them away, never by writing 0.
LEFT_AWAY = frozenset(
    ("cb_nodes", "cb_buffer_size", "ind_rd_buffer_size", "ind_wr_buffer_size", "striping_unit", "striping_factor")
)


@dataclass(frozen=True, slots=True)
class Setting:
    """Hints laid over the baseline.

    Attributes
    ----------
    hints : (name, value) pairs, sorted by name, each name once.
    """

    hints: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, hints: Mapping[str, str], in_force: Mapping[str, str]) -> Setting:
        """Return the setting that puts `hints` in force where `in_force` is without it ({name: value}, both)."""
        return cls(tuple(sorted((name, value) for name, value in hints.items() if in_force.get(name) != value)))

    def without(self, name: str) -> Setting:
        """Return this setting with one hint left at its value in the baseline."""
        return Setting(tuple(pair for pair in self.hints if pair[0] != name))

    def as_dict(self) -> dict[str, str]:
        """Return {name: value}."""
        return dict(self.hints)

    def __str__(self) -> str:
        texts = ((name, "(not set)" if name in LEFT_AWAY and value == "0" else value) for name, value in self.hints)
        return " ".join(f"{name}={text}" for name, text in texts) or "(as it is)"


BASELINE = Setting()
