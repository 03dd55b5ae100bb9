"""Hints for a program from one traced run of it: `command` is ``mpiio-ext advise``; `run` does it from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mpiio_ext import tune
from mpiio_ext.common.called import Option
from mpiio_ext.tune.found import Tuned

__all__ = ["run"]


def run(command: Sequence[str], *, output: str | Path = "advised.hints", **options: Option) -> Tuned:
    """Run a program once, and find hints for what it has done; parameters, result and errors as of `tune.run`."""
    return tune.run(command, kind="advise", output=output, **options)
