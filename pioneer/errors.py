"""Errors of mpiio_ext.pioneer."""

from __future__ import annotations

from mpiio_ext.errors import MpiioExtError

__all__ = ["MissingPackageError"]


class MissingPackageError(MpiioExtError, ImportError):
    """A package is missing that only one reader needs."""

    def __init__(self, what: str, package: str, error: Exception) -> None:
        super().__init__(f"{what} needs {package}, which is not there ({error}): pip install 'mpiio_ext[trace]'")
