"""``--only`` and ``--skip`` of ``mpiio-ext trace`` and ``run``: which files are recorded."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mpiio_ext.common.files import in_any_folder

#: Less than PATTERN_BYTES of csrc/tools/trace/mpiox_trace_names.c, by the "*/" of `in_any_folder`.
_MOST_PATTERN_BYTES = 8190
only_option = click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Record files that match, also the system's, and no others; may be repeated.",
)
skip_option = click.option("--skip", multiple=True, metavar="GLOB", help="Record no files that match; may be repeated.")


def _pattern(glob: str) -> str:
    """Return a pattern for absolute names."""
    if not glob or "\n" in glob or len(glob.encode()) >= _MOST_PATTERN_BYTES:
        raise click.BadParameter(
            f"{glob[:80]!r} is no pattern: give 1 to {_MOST_PATTERN_BYTES - 1} bytes on one line",
            param_hint="--only/--skip",
        )
    return in_any_folder(glob)


def selection(only: Sequence[str], skip: Sequence[str], *, recorded: bool = True) -> dict[str, str]:
    """Return the variables by which the tracer selects files.

    Raises
    ------
    click.UsageError
        Nothing is recorded, or a pattern is none.
    """
    if (only or skip) and not recorded:
        raise click.UsageError(
            "--only and --skip select what is recorded: give --report FILE.html, --darshan FILE or --timeline FILE, too"
        )
    named = (("MPIOX_TRACE_ONLY", only), ("MPIOX_TRACE_SKIP", skip))
    return {name: "\n".join(_pattern(each) for each in patterns) for name, patterns in named if patterns}
