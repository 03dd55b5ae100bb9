"""I/O pioneering: trace a program once, characterise its I/O, synthesise it at any scale and replay it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.pioneer.profile import Profile, characterize
    from mpiio_ext.pioneer.recording import record
    from mpiio_ext.pioneer.synthesis import Scale, synthesize

__all__ = ["Profile", "Scale", "WorkloadPath", "characterize", "record", "synthesize"]

#: Imported when first used: importing the package alone stays quick.
_LAZY = {
    "Profile": "mpiio_ext.pioneer.profile",
    "Scale": "mpiio_ext.pioneer.synthesis",
    "WorkloadPath": "mpiio_ext.pioneer.path",
    "characterize": "mpiio_ext.pioneer.profile",
    "record": "mpiio_ext.pioneer.recording",
    "synthesize": "mpiio_ext.pioneer.synthesis",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
