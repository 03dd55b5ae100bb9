"""The partition methods that the library knows, for tests that run under each of them."""

from __future__ import annotations

from mpiio_ext.partitioning import methods

METHODS = tuple(method.name for method in methods())
