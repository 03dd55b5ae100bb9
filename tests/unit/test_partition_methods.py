"""Every partition method against its definition. A new method adds one subclass here."""

from __future__ import annotations

from mpiio_ext.partitioning import methods
from support.partition_conformance import PartitionConformance


class TestEven(PartitionConformance):
    method = "even"


class TestAligned(PartitionConformance):
    method = "aligned"


class TestStaticCyclic(PartitionConformance):
    method = "static_cyclic"


class TestGroupCyclic(PartitionConformance):
    method = "group_cyclic"


class TestTranspose(PartitionConformance):
    method = "transpose"


def test_every_method_is_tested() -> None:
    tested = {subclass.method for subclass in PartitionConformance.__subclasses__()}
    assert tested == {m.name for m in methods()}
