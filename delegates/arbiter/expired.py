"""Jobs that are dead, remembered in the arbiter's folder.

Problem. The announcement of a dead job that is another user's cannot be deleted where each user may delete only its own
(jobs/ with mode 1777). Otherwise every reading would include it, and each new arbiter would count it again. Format.
``expired.json``, an object: job -> time of its announcement's file, ns. Replaced whole.
Guarantees. A job that speaks again has another time, and is not meant any more. A file that is missing or damaged is an
empty one: jobs expire again by their silence. Announcements that are gone are forgotten when one is added.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from mpiio_ext.common.files import read_plain, write_whole

_NAME = "expired.json"
_MOST_BYTES = 64 << 20


class Expired:
    """Dead jobs of one folder.

    Parameters
    ----------
    folder : the arbiter's

    Attributes
    ----------
    times : job -> time of its file, ns
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.times: dict[str, int] = {}
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(read_plain(folder / _NAME, _MOST_BYTES) or b"")
            if isinstance(found, dict):
                self.times = {job: value for job, value in found.items() if type(value) is int}

    def add(self, jobs: Mapping[str, int]) -> list[str]:
        """Remember jobs; returns the new ones. If they cannot be written, this arbiter alone remembers them."""
        new = [job for job, time_ns in jobs.items() if self.times.get(job) != time_ns]
        if new:
            folder = self._folder / "jobs"
            self.times = {job: at for job, at in self.times.items() if os.path.lexists(folder / job)} | dict(jobs)
            with contextlib.suppress(OSError):
                write_whole(self._folder / _NAME, json.dumps(self.times).encode(), follow=False, mode=0o644)
        return new
