"""All factors: the paper's, this library's, and those of installed distributions.

A distribution offers factors by entry points of the group ``mpiio_ext.analytics.factors``, each of which names a
:class:`mpiio_ext.analytics.factors.registry.Factor`, which the decorator ``factor`` makes of a function. One that
cannot be loaded is left out with a warning that names it: a stranger's factor never stops an analysis.
"""

from __future__ import annotations

import functools
import importlib.metadata
import warnings
from collections.abc import Sequence

from mpiio_ext.analytics.factors import paper, storage
from mpiio_ext.analytics.factors.registry import Factor, register, registered
from mpiio_ext.errors import ArgumentError, MpiioExtWarning

#: Group of entry points.
ENTRY_POINTS = "mpiio_ext.analytics.factors"

#: Modules whose factors are always there: importing them has registered them, those of the paper first.
BUILT_IN = (paper, storage)


@functools.cache
def _load_entry_points() -> None:
    """Register the factors of installed distributions, once."""
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            found = point.load()
            if not isinstance(found, Factor):
                raise TypeError(f"{point.value} is a {type(found).__name__}; use the decorator factor")
            if found.name not in registered():
                register(found)
        except Exception as error:  # a stranger's code may raise anything
            warnings.warn(f"factor {point.name} ({point.value}) is left out: {error}", MpiioExtWarning, stacklevel=2)


def factors(direction: str | None = None) -> dict[str, Factor]:
    """Return all factors by name, those of the paper first; with `direction`, those that it has."""
    _load_entry_points()
    return {name: one for name, one in registered().items() if direction is None or direction in one.directions}


def find(names: Sequence[str] | None, direction: str) -> dict[str, Factor]:
    """Return the factors of these names, or all of a direction.

    Raises
    ------
    ArgumentError
        A name that does not exist.
    """
    known = factors()
    if names is None:
        return factors(direction)
    for name in names:
        if name not in known:
            raise ArgumentError(f"there is no factor {name}; there are {', '.join(known)}")
    return {name: known[name] for name in names}
