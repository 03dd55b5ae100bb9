"""What keeps a command that makes one page from spending its time on what the page does not need.

Problem. A page shall be there in two seconds, imports included. PyArrow imports pandas with the first Python value that
it converts, only to ask whether the value is one of pandas; that takes a fifth of a second. The collector of cyclic
garbage looks again and again at the hundred thousand objects that Ibis, DuckDB and PyArrow make while they are
imported, of which none is garbage.

Algorithm. PyArrow asks for pandas once and keeps the answer; it gets "no" where nobody has imported pandas so far. What
is asked of PyArrow for pandas (``to_pandas``) imports it all the same, and from then on PyArrow knows it. Collecting is
put off to the end.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.abc
import sys
from collections.abc import Iterator

__all__ = ["quick_start"]


@contextlib.contextmanager
def quick_start() -> Iterator[None]:
    """Make one page, and nothing else, inside the ``with`` statement."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        _without_pandas()
        yield
    finally:
        if collecting:
            gc.enable()


class _NoPandas(importlib.abc.MetaPathFinder):
    """Let the import of pandas fail as where it is not installed."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Say that there is no pandas; others are looked for elsewhere."""
        if fullname == "pandas":
            raise ModuleNotFoundError("not looked for while PyArrow asks", name=fullname)


def _without_pandas() -> None:
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
