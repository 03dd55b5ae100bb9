"""The bench's errors, each with the exit status of the command."""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError

EXIT_RUN = 1
EXIT_USAGE = 2
EXIT_VERIFY = 3


class BenchError(MpiioExtError):
    """A run cannot go on; raised on every rank with the same one-line message."""

    exit_status = EXIT_RUN


class VerificationError(BenchError, ValueError):
    """A file or a read buffer has other bytes than its formula gives."""

    exit_status = EXIT_VERIFY


class SetupError(BenchError):
    """The request of the user cannot run here."""

    exit_status = EXIT_USAGE
