"""The errors of tuning, each with the exit status of the command."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from mpiio_ext.common.extras import needing
from mpiio_ext.errors import MpiioExtError

if TYPE_CHECKING:
    from mpiio_ext.tune.outcome import Result

EXIT_TUNE = 1


class TuneError(MpiioExtError):
    """Tuning cannot continue; the message is one line with the remedy."""

    exit_status = EXIT_TUNE


class ProgramError(TuneError):
    """The program fails without any change of its hints; the error has the program's exit status."""

    def __init__(self, message: str, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


class TooShort(TuneError):  # noqa: N818  (a verdict, not only an error)
    """The budget does not allow a decision.

    Attributes
    ----------
    run_s : what a run takes at least, seconds.
    left_s : of the budget.
    more_s : what the budget lacks at least.
    result : of the runs that there were; None: none has ended.
    """

    def __init__(self, message: str, *, run_s: float, left_s: float, more_s: float) -> None:
        super().__init__(message)
        self.run_s, self.left_s, self.more_s = run_s, left_s, more_s
        self.result: Result | None = None


def need(module: str) -> ModuleType:
    """Import a module of the extra `tune`.

    Raises
    ------
    MissingExtraError
        The module is not installed.
    """
    with needing("tune", "tuning"):
        return importlib.import_module(module)
