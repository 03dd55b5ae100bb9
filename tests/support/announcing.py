"""Jobs that announce themselves to an arbiter, without a job."""

from __future__ import annotations

import os
import pathlib
import time


def announce(
    folder: pathlib.Path,
    job: str,
    *,
    ranks: int | None = None,
    delegates: int = 8,
    pid: int | None = None,
    program: str = "app",
    age_s: float = 0.0,
    applied: int = 0,
    nodes: int | None = None,
    system: tuple[str, int] = ("another", 1),
) -> pathlib.Path:
    """Write what the library writes."""
    path = folder / "jobs" / job
    path.write_text(
        f"mpiox-job 1\njob {job}\nhost node\nboot {system[0]}\nprocesses {system[1]}\n"
        f"pid {os.getpid() if pid is None else pid}\n"
        f"ranks {max(4, nodes or 0) if ranks is None else ranks}\n"
        + (f"nodes {nodes}\n" if nodes is not None else "")
        + f"delegates {delegates}\n"
        f"program {program}\nscheduler_job -\napplied {applied}\n"
    )
    os.utime(path, (time.time() - age_s,) * 2)
    return path
