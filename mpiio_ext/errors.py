"""The errors of mpiio_ext: one root, and subclasses that are also the standard error a caller would expect."""

from __future__ import annotations

__all__ = ["ArgumentError", "FileSystemError", "LoadError", "MpiioExtError", "MpiioExtWarning"]


class MpiioExtError(Exception):
    """Root of every error that mpiio_ext raises on purpose.

    Attributes
    ----------
    exit_status : of a command that ends with it; 2 says that what was given cannot be used.
    """

    exit_status = 2


class MpiioExtWarning(UserWarning, RuntimeWarning):
    """A warning of mpiio_ext: commands print these, and no warnings of other packages."""


class LoadError(MpiioExtError, ImportError):
    """The library cannot be loaded, or is loaded too late to be put under the MPI library's file functions."""


class ArgumentError(MpiioExtError, ValueError):
    """An argument or a hint value is out of range; the message names the argument and the valid values."""


class FileSystemError(MpiioExtError, OSError):
    """A file-system call failed; carries `errno` and `filename` as OSError does. In words: file and reason."""

    def __str__(self) -> str:
        """Return "FILE: reason", as commands print it."""
        return super().__str__() if self.filename is None else f"{self.filename}: {self.strerror}"
