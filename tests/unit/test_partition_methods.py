"""Every partition method of the registry against its definition in tests/support/partition_reference.py."""

from __future__ import annotations

from mpiio_ext.partitioning import methods
from support.partition_conformance import PartitionConformance

for each in methods():
    name = "Test" + each.name.title().replace("_", "")
    globals()[name] = type(name, (PartitionConformance,), {"method": each.name})


def test_every_method_is_tested() -> None:
    tested = {subclass.method for subclass in PartitionConformance.__subclasses__()}
    assert tested == {m.name for m in methods()} and len(tested) >= 5
