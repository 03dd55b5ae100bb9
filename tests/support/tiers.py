"""What runs every time and what only with ``--run-slow``: a path of the code once, and the same with other numbers."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet


def slow(*values: object) -> list[ParameterSet]:
    """Return values for parametrize() that are for ``--run-slow``; a tuple is one value, or one for each name."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.slow) for each in values]
