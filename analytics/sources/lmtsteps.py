"""What every form of LMT's records is turned into: the steps of one OST."""

from __future__ import annotations

import dataclasses

from mpiio_ext.analytics.tables.arrays import Numbers, Whole

#: Seconds of a step.
STEP_S = 5


class LmtError(Exception):
    """A log that is not what it should be; the message says how."""


@dataclasses.dataclass
class Steps:
    """Rows of one OST: numbers of the steps (time / 5 s), and bytes with NaN where they are not known."""

    name: str
    steps: Whole
    read: Numbers
    written: Numbers
