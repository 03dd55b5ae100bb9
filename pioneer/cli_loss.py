"""The parts of a trace that were not understood, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpiio_ext.common.commands import warn
from mpiio_ext.common.printing import echo

if TYPE_CHECKING:
    from mpiio_ext.pioneer.table import TraceInfo


def say_loss(info: TraceInfo) -> None:
    """Report on stderr the parts of a trace that were not understood, and those that the tracer left out."""
    for source in info.sources:
        loss = source.loss
        parts = [
            f"{loss.skipped:,} lines or records were not understood, of {max(source.lines, loss.skipped):,}"
        ] * bool(loss.skipped) + ["its end is missing"] * loss.truncated
        parts += [f"{loss.missing_bytes:,} bytes are missing"] * bool(loss.missing_bytes)
        parts += [f"{loss.unread_bytes:,} bytes of it were not read"] * bool(loss.unread_bytes)
        if parts or loss.problems:
            warn(f"{source.path}: {', and '.join(parts) or 'problems in it'}")
            for problem in loss.problems[:3]:
                text = f": {problem.text[:80]}" if problem.text else ""
                echo(f"  {f'line {problem.line}: ' if problem.line > 0 else ''}{problem.why}{text}", err=True)
    if info.left_out:
        warn(info.left_out)
