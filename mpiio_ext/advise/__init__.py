"""Hints for a program from one traced run of it: `command` is ``mpiio-ext advise``; `run` does it from Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mpiio_ext import tune
from mpiio_ext.common.called import Number, Quantity, keywords
from mpiio_ext.tune.found import Tuned

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["run"]


class AdviseOptions(TypedDict, total=False):
    """Options of ``mpiio-ext advise``, by name."""

    budget: Quantity
    trace_limit: Quantity
    trials: Number
    time_scale: Number
    scratch: str | None
    check: bool | None
    pairs: Number
    metric_regex: str | None
    lower_is_better: bool | None
    before: str | None
    log: str | None
    confidence: Number
    seed: Number


@keywords(AdviseOptions)
def run(command: Sequence[str], *, output: str | Path = "advised.hints", **options: Unpack[AdviseOptions]) -> Tuned:
    """Run a program once, and find hints for its I/O; parameters, result and errors as of `tune.run`."""
    return tune.carry_out("advise", command, output, options)
