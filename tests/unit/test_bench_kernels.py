"""Every kernel keeps the rules that player and verification rest on, by brute force on small sizes; their content."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpiio_ext.bench import interfaces, kernels
from mpiio_ext.bench.execution.content import Content
from mpiio_ext.bench.execution.values import POISON
from mpiio_ext.bench.interfaces import Request
from mpiio_ext.bench.interfaces.base import RawReader
from mpiio_ext.bench.interfaces.memory import pack, unpack
from mpiio_ext.bench.kernels.layout import FileLayout, Variable, packed_variables, slab_pieces
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Step
from mpiio_ext.errors import ArgumentError

RANKS = (1, 2, 3, 4, 7)
NAMES = sorted(kernels.KERNELS)


def small(name: str, ranks: int) -> Kernel:
    return kernels.create(name, ranks, preset="quick", scale=1 / 256)


def variants(name: str) -> Iterator[tuple[Kernel, str]]:
    for ranks in RANKS:
        kernel = small(name, ranks)
        for interface in kernel.interfaces:
            yield kernel, interface


def all_steps(kernel: Kernel, interface: str) -> list[tuple[str, int, list[Step]]]:
    return [
        (phase.name, rank, list(kernel.steps(phase.name, rank, interface)))
        for phase in kernel.phases()
        for rank in range(kernel.active)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_element_is_written_once(name: str) -> None:
    """By one rank per version, all of an array in the phase that writes it; nothing is left unwritten."""
    for kernel, interface in variants(name):
        files, seen = kernel.files(), set[tuple[int, str]]()
        for phase in kernel.phases():
            counts: dict[tuple[int, str, int], np.ndarray] = {}
            for rank in range(kernel.active):
                for step in kernel.steps(phase.name, rank, interface):
                    if isinstance(step, Access) and step.write:
                        variable = files[step.file].variable(step.variable)
                        count = counts.setdefault(
                            (step.file, step.variable, step.version), np.zeros(math.prod(variable.shape), np.uint8)
                        )
                        for start, size in zip(*slab_pieces(variable.shape, step.slabs, 1), strict=True):
                            count[start : start + size] += 1
            for place, count in counts.items():
                assert (count == 1).all(), (kernel, interface, phase, place)
                seen.add(place[:2])
        assert seen == {(i, v.name) for i, layout in enumerate(files) for v in layout.variables}, (kernel, interface)


@pytest.mark.parametrize("name", NAMES)
def test_accesses_are_legal(name: str) -> None:
    """Inside the array, in its order, in an open file, of the version that is there; files are closed in the end."""
    for kernel, interface in variants(name):
        files = kernel.files()
        present: dict[tuple[int, str], int] = {}
        for phase in kernel.phases():
            written: dict[tuple[int, str], int] = {}
            for rank in range(kernel.active):
                opened: dict[int, str] = {}
                own = dict(present)
                for step in kernel.steps(phase.name, rank, interface):
                    if isinstance(step, Open):
                        assert step.file not in opened
                        opened[step.file] = step.mode
                    elif isinstance(step, Close):
                        del opened[step.file]
                    elif isinstance(step, Access):
                        place = (step.file, step.variable)
                        variable = files[step.file].variable(step.variable)
                        for start, count in step.slabs:
                            assert len(start) == len(count) == len(variable.shape)
                            assert all(
                                s >= 0 and s + c <= n for s, c, n in zip(start, count, variable.shape, strict=True)
                            )
                        offsets, lengths = slab_pieces(variable.shape, step.slabs, 1)
                        assert (offsets[1:] >= (offsets + lengths)[:-1]).all(), (kernel, step)
                        assert opened[step.file] != "read" or not step.write
                        if step.write:
                            written[place] = max(step.version, written.get(place, 0))
                            own[place] = step.version
                        else:
                            assert step.version == own[place], (kernel, phase, step)
                    elif hasattr(step, "file"):
                        assert step.file in opened
                assert not opened, (kernel, interface, phase, rank, opened)
            present |= written


@pytest.mark.parametrize("name", NAMES)
def test_ranks_agree_on_collectives(name: str) -> None:
    """The ranks that share a file make the same collective calls on it in the same order; others leave it alone."""

    def collective(step: Step) -> bool:
        return not isinstance(step, Access) or step.collective

    def shape(step: Step) -> object:
        if isinstance(step, Access):
            return dataclasses.replace(step, slabs=(), boxes=None)
        return step

    for kernel, interface in variants(name):
        files = kernel.files()
        for phase in kernel.phases():
            sequences, users = [], dict[int, int]()
            for rank in range(kernel.active):
                steps = list(kernel.steps(phase.name, rank, interface))
                for step in steps:
                    if hasattr(step, "file") and files[step.file].owner is not None:
                        assert users.setdefault(step.file, rank) == rank, (kernel, rank, step)
                sequences.append(
                    [
                        shape(step)
                        for step in steps
                        if collective(step) and (not hasattr(step, "file") or files[step.file].owner is None)
                    ]
                )
            assert all(sequence == sequences[0] for sequence in sequences), (kernel, interface, phase)


@pytest.mark.parametrize("name", NAMES)
def test_memory_holds_the_data(name: str) -> None:
    """Memory with guard cells has the data in it and poison around; packing finds the data, unpacking puts it back."""
    for kernel, interface in variants(name):
        content = Content(kernel, 5)
        for _, rank, steps in all_steps(kernel, interface):
            if rank not in (0, kernel.active - 1):
                continue
            for step in steps:
                if not isinstance(step, Access) or step.boxes is None or step.memory_elements > 1 << 20:
                    continue
                variable = content.files[step.file].variable(step.variable)
                memory = content.memory(step)
                packed = content.packed(step)
                writing = dataclasses.replace(step, write=True)
                assert (pack(Request(access=writing, variable=variable, memory=memory)) == packed).all()
                poison = np.uint8(POISON ^ content.salt(step.version))
                assert (memory == poison).sum() == memory.size - packed.size
                empty = content.poison(step)
                assert (empty == poison).all()
                unpack(Request(access=step, variable=variable, memory=empty), packed)
                assert (empty == memory).all()


@pytest.mark.parametrize("name", NAMES)
def test_sizes(name: str) -> None:
    """Presets exist, scaling scales, phases move data, unknown parameters are refused by name."""
    kind = kernels.KERNELS[name]
    assert {"quick", "laptop", "published"} <= set(kind.presets)
    assert kind.interfaces and set(kind.interfaces) <= set(interfaces.REGISTRY)
    quick = kernels.create(name, 4, preset="quick")
    total = sum(layout.size_bytes for layout in quick.files())
    assert 0 < total <= 64 << 20
    assert sum(f.size_bytes for f in quick.scaled(4).files()) > total
    for phase in quick.phases():
        assert phase.operation in ("write", "read", "both")
        assert quick.data_bytes(phase.name, quick.interfaces[0]) > 0
    with pytest.raises(ArgumentError, match="unknown parameter 'nonsense'"):
        kernels.create(name, 4, parameters={"nonsense": 1})
    with pytest.raises(ArgumentError, match="no preset"):
        kernels.create(name, 4, preset="nonsense")
    published = kernels.create(name, 64, preset="published")
    assert sum(layout.size_bytes for layout in published.files()) > total


def test_keys_tell_kernels_apart() -> None:
    """Files and results of two kernels never have the same name."""
    made = [kernels.create(name, 4, preset="quick") for name in NAMES]
    assert len({kernel.key for kernel in made}) == len(made)


def test_data_bytes_are_those_of_the_steps() -> None:
    """VPIC-IO moves 32 bytes a particle, BD-CATS-IO reads 75 % of them."""
    kernel = kernels.create("bdcats", 3, parameters={"particles": 100})
    assert kernel.data_bytes("particles", "hdf5") == 3 * 100 * 32
    assert kernel.data_bytes("clustering", "hdf5") == 3 * 100 * 24


@st.composite
def arrays_with_slabs(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    start = tuple(draw(st.integers(0, n - 1)) for n in shape)
    count = tuple(draw(st.integers(0, n - s)) for n, s in zip(shape, start, strict=True))
    return shape, (start, count)


@given(arrays_with_slabs(), st.sampled_from([1, 2, 4, 8]))
def test_slab_pieces(case: tuple[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]], item: int) -> None:
    """The pieces are the bytes that NumPy's indexing selects, in order and as few as possible."""
    shape, (start, count) = case
    numbers = np.arange(math.prod(shape)).reshape(shape)
    chosen = numbers[tuple(slice(s, s + c) for s, c in zip(start, count, strict=True))].reshape(-1)
    offsets, lengths = slab_pieces(shape, ((start, count),), item)
    covered = [byte for o, n in zip(offsets, lengths, strict=True) for byte in range(o, o + n)]
    assert covered == [byte for number in chosen for byte in range(number * item, (number + 1) * item)]
    assert (offsets[1:] > (offsets + lengths)[:-1]).all()


def test_content_differs_between_versions_and_runs() -> None:
    """A byte of an older run or version is never right."""
    kernel = kernels.create("vpic", 2, parameters={"particles": 16})
    step = next(s for s in kernel.steps("particles", 0, "hdf5") if isinstance(s, Access))
    again = dataclasses.replace(step, version=1)
    one, other = Content(kernel, 1), Content(kernel, 2)
    assert (one.packed(step) != one.packed(again)).all()
    assert (one.packed(step) != other.packed(step)).all()
    assert (one.packed(step) != one.poison(step)).all()


def test_raw_reader(tmp_path: Path) -> None:
    """Items of either byte order at any cut; gaps and the size are judged."""
    layout = FileLayout(name="f", variables=packed_variables(("a", "<i4", (5,)), ("b", "<f8", (2,)), align_bytes=32))
    a, b = layout.variables
    assert (a.offset_bytes, b.offset_bytes, layout.end_bytes) == (0, 32, 48)
    path = tmp_path / "f"
    numbers = np.arange(5, dtype="<i4")
    path.write_bytes(numbers.tobytes() + bytes(12) + np.ones(2).tobytes())
    reader = RawReader(path, {"a": 0, "b": 32}, layout=layout)
    assert bytes(reader.read(a, 3, 17)) == numbers.tobytes()[3:17]
    assert reader.foreign() is None
    path.write_bytes(numbers.tobytes() + bytes(11) + b"\1" + np.ones(2).tobytes())
    assert "at byte 31" in str(RawReader(path, {}, layout=layout).foreign())
    path.write_bytes(bytes(40))
    assert "40 bytes in place of 48" in str(RawReader(path, {}, layout=layout).foreign())
    path.write_bytes(numbers.astype(">i4").tobytes())
    big = RawReader(path, {"a": 0}, big_endian=True)
    assert bytes(big.read(a, 2, 18)) == numbers.tobytes()[2:18]
    assert big.read(Variable(name="a", dtype="<i4", shape=(9,)), 16, 36).size == 4


@pytest.mark.parametrize("name", NAMES)
def test_contiguous_phases_are(name: str) -> None:
    """A phase that is called contiguous has no access of several pieces, in the file or in memory, on any rank."""
    for kernel, interface in variants(name):
        for phase in kernel.phases():
            if not phase.contiguous and kernel.noncontiguous:
                continue
            for rank in range(kernel.active):
                for step in kernel.steps(phase.name, rank, interface):
                    if isinstance(step, Access):
                        shape = kernel.files()[step.file].variable(step.variable).shape
                        pieces = slab_pieces(shape, step.slabs, 1)[0].size
                        assert pieces <= 1 and step.boxes is None, (kernel, interface, phase, step)
