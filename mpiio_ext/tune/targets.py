"""The places of the results of tuning: a bad place is refused before the first run, not after the last one.

Tuning takes minutes or hours; a name that cannot be written must not cost them. Each place is tried by making a file
beside it, because permissions alone do not show that a file system is read-only, or that a name is too long. No folder
is made but the log's own.
"""

from __future__ import annotations

from pathlib import Path

from mpiio_ext.common.files import check_target
from mpiio_ext.errors import FileSystemError
from mpiio_ext.tune.errors import TuneError

EXIT_TARGET = 2


class TargetError(TuneError):
    """A result cannot be put at the user's place; the message names the option, the reason, and the remedy."""

    exit_status = EXIT_TARGET


def _try(trial: Path) -> None:
    trial.open("ab").close()
    trial.unlink()


def check_file(option: str, path: Path) -> None:
    """Refuse a file that could not be written.

    Raises
    ------
    TargetError
        The path is a folder or a device, or the folder of the file is missing or cannot be written.
    """
    try:
        check_target(path)
        _try(path.with_name(f".{path.name}.new"))
    except FileSystemError as error:
        raise TargetError(f"{option} {error}") from error
    except OSError as error:  # pathlib raises it for a name that is too long
        raise TargetError(f"{option} {path}: cannot be written: {error.strerror or error}") from error


def _check_log(log: Path) -> None:
    """Refuse a log folder that cannot be filled; create a missing one."""
    try:
        log.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise TargetError(f"--log {log}: cannot make the log folder: there is no folder {log.parent}") from error
    except FileExistsError as error:
        raise TargetError(f"--log {log}: cannot make the log folder: a file has that name") from error
    except OSError as error:
        raise TargetError(f"--log {log}: cannot make the log folder: {error.strerror or error}") from error
    try:
        _try(log / ".new")
    except OSError as error:
        raise TargetError(f"--log {log}: cannot be written: {error.strerror or error}") from error


def check_targets(output: Path, log: Path) -> None:
    """Refuse places that could not be written at the end; make the log folder.

    Parameters
    ----------
    output : the hints file of `-o`.
    log : the folder of `--log`.

    Raises
    ------
    TargetError
        A place cannot be written; the message is one line that names the option.
    """
    check_file("-o", output)
    if log.resolve() == output.resolve():
        raise TargetError(f"--log {log}: is also the name of a result; name another folder")
    _check_log(log)
