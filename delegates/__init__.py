"""I/O delegates: processes that own the pages of open files, cache, flush and prefetch them for the program's ranks.

``status()`` returns the status of the delegates of this user's running programs on this host. ``own()`` returns the
status of the delegates of the calling process's job. ``mpiio-ext delegates status`` prints it. See
docs/reference/delegates.md.

``current()`` returns the delegates of the running program's own job, and ``split()`` turns ranks of it into delegates.
See docs/reference/delegates.md.
"""

from __future__ import annotations

from mpiio_ext.delegates._group import Delegate, Group, current, split
from mpiio_ext.delegates._status import (
    Counter,
    DelegateFile,
    DelegateStatus,
    DelegateWaiter,
    Observation,
    Rates,
    Watch,
    counters,
    own,
    rates,
    status,
)

__all__ = [
    "Counter",
    "Delegate",
    "DelegateFile",
    "DelegateStatus",
    "DelegateWaiter",
    "Group",
    "Observation",
    "Rates",
    "Watch",
    "counters",
    "current",
    "own",
    "rates",
    "split",
    "status",
]
