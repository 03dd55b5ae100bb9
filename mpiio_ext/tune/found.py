"""Results of `tune` and `advise` for callers from Python: the contents of their JSON, with a text form."""

from __future__ import annotations

from typing import Any

from mpiio_ext.common.shown import Shown


class Tuned(Shown, dict[str, Any]):
    """The verdict and every run: the object that ``--json`` prints, by name."""

    def lines(self) -> list[str]:
        """Return the verdict with its reason, the hints, and the file that they are in."""
        hints = " ".join(f"{name}={value}" for name, value in (self["hints"] or {}).items())
        return [
            f"{self['verdict']}: {self['reason']}" if self["reason"] else self["verdict"],
            *([f"{hints} (in {self['hints_file']})"] if hints else []),
            f"{len(self['runs'])} runs in {self['spent_s']:.0f} s, judged by {self['metric']}",
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return the runs; cost is lower-is-better, ``["metric"]`` names its unit."""
        return [
            run | {"hints": " ".join(f"{name}={value}" for name, value in run["hints"].items())} for run in self["runs"]
        ]
