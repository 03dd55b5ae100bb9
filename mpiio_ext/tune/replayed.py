"""Programs that carry out workload paths, for ``mpiio-ext advise``.

The user's own launcher starts ``mpiio-ext pioneer replay`` on the path, which prints how long the calls of the path
took. Runs are compared by that time; the start of Python and the making of input files are not part of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

#: The replay's line with the time of its calls; less is better.
CALLS_TIME = r"calls in ([0-9.]+) s"
#: What a replay on orders prints behind each of them, with the exit status that it would have had alone.
END_MARK = "mpiio-ext: end of order "


def replay_command(launcher: Sequence[str], path: Path, folder: Path, *, time_scale: float = 1.0) -> tuple[str, ...]:
    """Return the command that carries a path out below a folder.

    Parameters
    ----------
    launcher : for example ``mpirun -n 4``.
    """
    words = ["-m", "mpiio_ext", "pioneer", "replay", str(path), str(folder), "--time-scale", repr(time_scale)]
    return (*launcher, sys.executable, *words)
