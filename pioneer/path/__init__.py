"""Phase B: the generic workload path, which stands for the operations of all processes.

`extract()` makes one of the traces of the root process and of one child process of each subgroup.

Source: He, Du, Narasimhamurthy, "PIONEER: A Solution To Parallel I/O Workload Characterization And Generation",
sections IV-A and V-B.
"""

from __future__ import annotations

from mpiio_ext.pioneer.path.diff import Difference, compare
from mpiio_ext.pioneer.path.document import MOST_GROUPS, OWNERS
from mpiio_ext.pioneer.path.extract import extract
from mpiio_ext.pioneer.path.groups import find_groups
from mpiio_ext.pioneer.path.names import Template, find_templates
from mpiio_ext.pioneer.path.workload_path import WorkloadPath

__all__ = [
    "MOST_GROUPS",
    "OWNERS",
    "Difference",
    "Template",
    "WorkloadPath",
    "compare",
    "extract",
    "find_groups",
    "find_templates",
]
