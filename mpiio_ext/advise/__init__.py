"""Hints for a program from one traced run of it: ``mpiio-ext advise``, which is `command`."""

from __future__ import annotations

__all__: list[str] = []
