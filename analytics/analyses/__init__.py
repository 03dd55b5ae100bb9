"""The paper's analyses: functions over the store's tables that return a table, a caption and figures.

Each takes a source of tables (an :class:`mpiio_ext.analytics.IOMiner`, or Arrow tables as
:class:`mpiio_ext.analytics.analyses.source.Tables`) and returns a
:class:`mpiio_ext.analytics.analyses.result.Result`. `ANALYSES` names them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpiio_ext.analytics.analyses.result import Result

__all__ = ["ANALYSES", "analysis"]

#: Name on the command line -> (module, function).
ANALYSES: dict[str, tuple[str, str]] = {
    "applications": ("applications", "applications"),
    "sequential": ("sequential", "sequential"),
    "read-ratio": ("read_ratio", "read_ratio"),
    "sharing": ("sharing", "sharing"),
    "middleware": ("middleware", "middleware"),
    "striping": ("layouts", "striping"),
    "root-causes": ("root_causes", "root_causes"),
}


def analysis(name: str) -> Callable[..., Result]:
    """Return the function of an analysis by its name in `ANALYSES`."""
    module, function = ANALYSES[name]
    found = getattr(importlib.import_module(f"mpiio_ext.analytics.analyses.{module}"), function)
    assert callable(found)
    return found  # type: ignore[no-any-return]
