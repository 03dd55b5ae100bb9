"""Descriptors that a process has inherited by a fork, and whose end another process may wait for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path


def let_go(kept: Collection[int]) -> None:
    """Close every descriptor but these."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(entry.name))
