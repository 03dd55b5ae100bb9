"""The places of a command of the bench: a temporary folder for its files, and a folder for its results.

Conditions that would fail in the middle are checked before anything runs. Results are not lost when the job is killed:
`keeping` writes them after each row.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mpiio_ext.bench.errors import SetupError
from mpiio_ext.bench.execution.agreement import agree
from mpiio_ext.bench.interrupted import remove_at_the_end, report_at_the_end
from mpiio_ext.bench.terminal import launcher_errors
from mpiio_ext.common.progress import Advance
from mpiio_ext.common.units import amount_text

if TYPE_CHECKING:
    from mpi4py import MPI


def make_folder(path: Path, name: str, needed_bytes: int) -> Path:
    """Make a temporary folder on the file system to measure, and return it; on rank 0.

    The folder is removed if the job is ended from outside.

    Parameters
    ----------
    path : of --path.
    name : of the command.
    needed_bytes : that will lie there at most.

    Raises
    ------
    SetupError
        The folder does not exist, cannot be written, or has not enough space.
    """
    if not path.is_dir():
        raise SetupError(f"--path {path}: {'not a folder' if path.exists() else 'no such folder'}")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"mpiio-{name}-", dir=path.resolve()))
        remove_at_the_end(folder)
        folder.chmod(0o755)
    except OSError as error:
        raise SetupError(f"--path {path}: cannot write there ({error.strerror})") from error
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if free < needed_bytes:
        folder.rmdir()
        raise SetupError(f"--path {path}: {amount_text(needed_bytes)} needed, {amount_text(free)} free")
    return folder


def make_output(output: Path, *, kept: Path | None = None, title: str = "") -> Path:
    """Make the folder of the results if it is missing, and return it; on rank 0.

    Parameters
    ----------
    output : folder.
    kept : the folder above it that was there before; None: the nearest that is there.
    title : of the page that is made of the results when the job is ended from outside; "": there is none.

    Raises
    ------
    SetupError
        The folder cannot be written.
    """
    try:
        kept = kept or next(path for path in (output.absolute(), *output.absolute().parents) if path.exists())
        report_at_the_end(output, kept=kept, title=title, speak_to=launcher_errors())
        output.mkdir(parents=True, exist_ok=True)
        if not os.access(output, os.W_OK):
            raise SetupError(f"--output {output}: cannot write there")
    except OSError as error:
        raise SetupError(f"--output {output}: cannot write there ({error.strerror})") from error
    return output


def check_shared(comm: MPI.Intracomm, folder: Path) -> None:
    """Raise SetupError on all ranks unless every rank sees the folder that rank 0 has made; collective."""
    unseen = None if folder.is_dir() else SetupError(f"--path {folder.parent}: not the same folder on every host")
    agree(comm, unseen, "preparing")


def keeping(advance: Advance, write: Callable[[], None]) -> Callable[[str], None]:
    """Return `advance` that also has the results so far written."""

    def advance_and_keep(text: str) -> None:
        advance(text)
        with contextlib.suppress(OSError):  # reported at the end
            write()

    return advance_and_keep
