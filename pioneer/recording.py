"""A program's workload path, from Python: one run under the tracer.

Problem. A notebook wants the path of a program without folders of traces. Algorithm: the commands ``trace`` and
``pioneer path``, in a folder that is gone afterwards. Guarantee: a program that fails raises, with its last line.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mpiio_ext.common.called import Several, call, keywords, words_of
from mpiio_ext.pioneer.path import WorkloadPath

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TraceOptions(TypedDict, total=False):
    """Options of ``mpiio-ext trace``, by name."""

    extension: bool | None
    system_files: bool | None
    only: Several
    skip: Several
    folders: bool | None


@keywords(TraceOptions)
def record(command: Sequence[str], **options: Unpack[TraceOptions]) -> WorkloadPath:
    """Run a program once under the tracer, and return its I/O as a workload path.

    Parameters
    ----------
    command : the program, with its launcher and arguments.
    **options : those of ``mpiio-ext trace``, by name: ``only="*.nc"``, ``extension=True``.

    Raises
    ------
    CommandError
        The program has failed, or did no I/O that the tracer sees.
    """
    with tempfile.TemporaryDirectory(prefix="mpiio-ext-") as folder:
        trace, path = Path(folder) / "trace", Path(folder) / "path.parquet"
        call(["trace", *words_of(options), "-o", str(trace)], program=command)
        call(["pioneer", "path", str(trace), "-o", str(path)])
        return WorkloadPath.load(path)
