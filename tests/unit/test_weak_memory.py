"""Protocols between processes under the memory model of C11: docs/project/testing.md has what is proved."""

from __future__ import annotations

import os

import pytest

from support import weak_memory

SIZES = [
    pytest.param(path.stem, size, id=f"{path.stem}-{size}")
    for path in sorted(weak_memory.MODELS.glob("*.c"))
    for size in weak_memory.read(path.stem).sizes
]


@pytest.mark.slow_with(
    "agreement-NODES=2", "individual-ALONE=0", "individual-ALONE=7", "individual-ALONE=24", "individual-ALONE=56"
)
@pytest.mark.parametrize(("name", "size"), SIZES)
def test_protocols_and_their_mutants(name: str, size: str) -> None:
    model = weak_memory.read(name)
    program, preemptions = weak_memory.relacy(model, size), model.sizes[size]
    assert "\npassed: " in weak_memory.explore(program, preemptions)
    for number, mutant in enumerate(model.mutants, 1):
        if mutant.size == size:
            assert "\nfailed: " in weak_memory.explore(program, preemptions, number), mutant


@pytest.mark.skipif("GENMC" not in os.environ, reason="no GENMC=PATH: the checker is no package")
@pytest.mark.parametrize("order", ["rc11", "imm"])
@pytest.mark.parametrize(("name", "size"), SIZES)
def test_all_executions(name: str, size: str, order: str) -> None:
    model = weak_memory.read(name)
    out = weak_memory.genmc(model, size, order)
    assert "No errors were detected" in out, out
    print(name, size, order, *out.splitlines()[1:4], sep="\n")
    for number, mutant in enumerate(model.mutants, 1):
        if mutant.size == size:
            assert "Error detected" in weak_memory.genmc(model, size, order, number), mutant


def test_an_order_of_the_library_is_that_of_the_model() -> None:
    text = weak_memory.cut("csrc/iod/cache/mpiox_ring.c", "mpiox_ring_give_back")
    assert "atomic_store_explicit(&slot->taken, SLOT_FREE, memory_order_seq_cst);" in text
