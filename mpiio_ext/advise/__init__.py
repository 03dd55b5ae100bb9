"""Hints for a program from one traced run of it: `command` is ``mpiio-ext advise``; `run` does it from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpiio_ext import tune
from mpiio_ext.common.called import Option

__all__ = ["run"]


def run(command: Sequence[str], *, output: str | Path = "advised.hints", **options: Option) -> dict[str, Any]:
    """Run a program once, and find hints for what it has done; parameters, result and errors as of `tune.run`."""
    return tune.run(command, kind="advise", output=output, **options)
