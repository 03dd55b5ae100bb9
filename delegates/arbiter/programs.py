"""The arbiter's curves of programs, by the name that a job announces, and the lines about missing ones.

Problem. A job is found by the name of its program. A curve under another name, as a table of measurements has it, would
never be found, without any sign: the job only gets the default.
Guarantees. Each program is named once for each version of the settings, with the names that are nearest to it. Only the
first 64 are named, since jobs choose these names themselves. Curves are made once; the arbiter stores nothing for a
program without a curve.
"""

from __future__ import annotations

from collections.abc import Callable

from mpiio_ext.common.near import near_names
from mpiio_ext.delegates.arbiter.settings import Settings
from mpiio_ext.delegates.arbitration.curves import Curve

_NAMED = 3
_MOST_REPORTED = 64


class Programs:
    """Curves by program.

    Parameters
    ----------
    settings : where the curves are
    report : receives lines for people
    """

    def __init__(self, settings: Settings, report: Callable[[str], None]) -> None:
        self._settings, self._report = settings, report
        self._curves: dict[tuple[str, int], Curve | None] = {}
        self._reported: set[str] = set()
        self._policy = settings.make_policy()
        if self._policy.asks_system and settings.compute_nodes is None:
            report(
                f"{settings.policy}: the machine's number of compute nodes is unknown (--compute-nodes): a decision "
                f"counts those of the running jobs"
            )

    def curve(self, program: str, delegates: int) -> Curve | None:
        """Return the bandwidth of a program with the I/O nodes that a job can use; None if it is unknown."""
        if program not in self._settings.curves:
            self._say(program, "no curve of that name")
            return None
        reach = min(delegates, self._settings.io_nodes)
        if (program, reach) not in self._curves:
            self._curves[program, reach] = self._within(program, reach)
        return self._curves[program, reach]

    def _within(self, program: str, reach: int) -> Curve | None:
        whole = self._settings.curve(program)
        points = {} if whole is None else {count: p for count, p in whole.points.items() if 1 <= count <= reach}
        if not points:
            self._say(program, f"its curve has no point from 1 to {reach} I/O nodes")
        return Curve(points) if points else None

    def _say(self, program: str, why: str) -> None:
        if program in self._reported or len(self._reported) == _MOST_REPORTED or not self._policy.asks_curves:
            return
        self._reported.add(program)
        last = "; more of them are not named" if len(self._reported) == _MOST_REPORTED else ""
        names = sorted(self._settings.curves)
        near = near_names(program, names, _NAMED) or names[:_NAMED]
        there = f"; there are {', '.join(near)}" + (" ..." if len(names) > len(near) else "") if names else ""
        self._report(f"program {program}: {why}: its jobs get the default number of I/O nodes{there}{last}")
